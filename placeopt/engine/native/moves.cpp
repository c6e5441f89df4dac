// The moves of a local search: each changes the state and stores how to undo it.
//
//     move        a group to a device, mostly that of a neighbour of the task; often the task shifts, too
//     swap        two groups exchange their devices
//     shift       a task to another position in the order, between its producers and its consumers
//     run         consecutive tasks of one device go to another, which moves the cuts that full devices force
//     cluster     tasks of one device that edges connect go to another
//     exchange    two devices exchange their tasks within an interval of the order
//
// Half of the tasks are drawn from a critical path, if one is known: other moves rarely shorten a schedule. Moves respect
// feasibility and separation.
#include "local_search.hpp"

namespace engine {

namespace {

enum Kind { MOVE, SWAP, SHIFT, RUN, CLUSTER, EXCHANGE };

// Groups that one proposal moves, at most.
constexpr std::size_t LONGEST = 512;

}  // namespace

// The price of all transfers of task u; a shared output counts once per device.
double LocalSearch::sending_price(Int u) {
    const Int a = device[u], m = problem_.m;
    Int all_ticks = 0, bytes = 0, energy = 0;
    ++counter_;
    for (Int e = problem_.out_start[u]; e < problem_.out_start[u + 1]; ++e) {
        const Int b = device[problem_.target[e]], k = problem_.slot[e];
        if (b == a) continue;
        if (problem_.shared[k]) {
            if (stamp_[b] == counter_) continue;
            stamp_[b] = counter_;
        }
        all_ticks = add(all_ticks, delay[k]);
        bytes = add(bytes, problem_.payload[k]);
        energy = add(energy, ratio_ceil(problem_.payload[k], problem_.energy_num[a * m + b], problem_.energy_den[a * m + b]));
    }
    return problem_.price[0] * static_cast<double>(all_ticks) + problem_.price[1] * static_cast<double>(bytes) +
           problem_.price[2] * static_cast<double>(energy);
}

// `sending_price` of all tasks of group g and of their producers outside it, each once.
double LocalSearch::touched_price(Int g) {
    double price = 0.0;
    for (Int at = problem_.member_start[g]; at < problem_.member_start[g + 1]; ++at) {
        const Int i = problem_.member[at];
        price += sending_price(i);
        for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) {
            const Int u = problem_.source[k];
            if (problem_.group[u] == g) continue;
            // The producer counts at the first of its edges into the group.
            Int e = problem_.out_start[u];
            while (problem_.group[problem_.target[e]] != g) ++e;
            if (problem_.slot[e] == k) price += sending_price(u);
        }
    }
    return price;
}

// Takes what group g uses of budgets on device d, or with sign -1 gives it back.
void LocalSearch::spend(Int g, Int d, Int sign) {
    const Budgets& budgets = problem_.budgets;
    if (!budgets.any()) return;
    const Int entry = g * problem_.m + d;
    for (Int at = budgets.row[entry]; at < budgets.row[entry + 1]; ++at)
        left_[budgets.budget[at]] = subtract(left_[budgets.budget[at]], sign * budgets.amount[at]);
}

// Moves group g to device `to` without checks; returns the first position whose times change.
Int LocalSearch::relocate(Int g, Int to) {
    const Int away = home[g], m = problem_.m;
    if (problem_.priced) fixed_ -= touched_price(g);
    home[g] = to;
    room_[away] = add(room_[away], problem_.memory[g]);
    room_[to] = subtract(room_[to], problem_.memory[g]);
    spend(g, away, -1);
    spend(g, to, 1);
    Int first = problem_.n;
    for (Int at = problem_.member_start[g]; at < problem_.member_start[g + 1]; ++at) {
        const Int i = problem_.member[at];
        first = std::min(first, position_[i]);
        last_ = std::max(last_, position_[i]);
        device[i] = to;
        load_[away] -= ticks[i];
        ticks[i] = problem_.ticks(i, to);
        load_[to] = add(load_[to], ticks[i]);
        fixed_ += problem_.charge[i * m + to] - problem_.charge[i * m + away];
    }
    for (Int at = problem_.member_start[g]; at < problem_.member_start[g + 1]; ++at) {
        const Int i = problem_.member[at];
        problem_.delays_around(i, device, delay);
    }
    if (problem_.priced) fixed_ += touched_price(g);
    return first;
}

// Whether feasibility and separation allow group g on device `to`.
bool LocalSearch::allowed(Int g, Int to) const {
    if (!problem_.feasible[g * problem_.m + to]) return false;
    for (Int at = problem_.apart_start[g]; at < problem_.apart_start[g + 1]; ++at)
        if (home[problem_.apart[at]] == to) return false;
    return true;
}

// Moves a task from position `taken` of the order to position `to`; returns the first position that changes.
Int LocalSearch::rotate(Int taken, Int to) {
    const auto begin = order.begin();
    if (taken < to) std::rotate(begin + taken, begin + taken + 1, begin + to + 1);
    else std::rotate(begin + to, begin + taken, begin + taken + 1);
    for (Int p = std::min(taken, to); p <= std::max(taken, to); ++p) position_[order[p]] = p;
    last_ = std::max({last_, taken, to});
    return std::min(taken, to);
}

// Recomputes all sums from the order and the homes; all times become invalid.
void LocalSearch::recompute() {
    const Int n = problem_.n, m = problem_.m;
    room_.assign(problem_.capacity.begin(), problem_.capacity.end());
    std::fill(load_.begin(), load_.end(), 0);
    left_.assign(problem_.budgets.left.begin(), problem_.budgets.left.end());
    for (Int g = 0; g < problem_.g; ++g) {
        room_[home[g]] = subtract(room_[home[g]], problem_.memory[g]);
        spend(g, home[g], 1);
    }
    fixed_ = 0.0;
    for (Int i = 0; i < n; ++i) {
        const Int d = home[problem_.group[i]];
        position_[order[i]] = i;
        device[i] = d;
        ticks[i] = problem_.ticks(i, d);
        load_[d] = add(load_[d], ticks[i]);
        fixed_ += problem_.charge[i * m + d];
    }
    for (Int i = 0; i < n; ++i) {
        const Int d = device[i];
        for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) {
            const Int a = device[problem_.source[k]];
            delay[k] = problem_.moving(k, a, d);
        }
    }
    if (problem_.priced)
        for (Int i = 0; i < n; ++i) fixed_ += sending_price(i);
    valid_ = 0;
    known_ = last_ = n;
}

// A random task to change.
Int LocalSearch::pick() {
    if (!critical_.empty() && draw(2) == 0) return critical_[draw(static_cast<Int>(critical_.size()))];
    return draw(problem_.n);
}

// Another device for task i, often that of a neighbour.
Int LocalSearch::random_other_device(Int i) {
    const Int here = device[i];
    if (draw(5) < 3)
        if (const Int j = random_neighbour(i); j >= 0 && device[j] != here) return device[j];
    const Int to = draw(problem_.m - 1);
    return to < here ? to : to + 1;
}

// Moves group g to device `to` and stores its former device; returns the first position that changes.
Int LocalSearch::put(Int g, Int to) {
    moved_.push_back({g, home[g]});
    return relocate(g, to);
}

// The same if it is allowed; returns n if it is not.
Int LocalSearch::take(Int g, Int to) {
    return moved_.size() >= LONGEST || !allowed(g, to) ? problem_.n : put(g, to);
}

// Shifts task i between its producers and its consumers.
Int LocalSearch::shift(Int i) {
    const Int n = problem_.n, here = position_[i];
    Int low = 0, high = n - 1;
    for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) low = std::max(low, position_[problem_.source[k]] + 1);
    for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) high = std::min(high, position_[problem_.target[e]] - 1);
    const Int far = Int{2} << draw(10);
    low = std::max(low, here - far);
    high = std::min(high, here + far);
    if (low == high) return n;
    Int to = low + draw(high - low);
    if (to >= here) ++to;
    taken_ = here;
    put_ = to;
    return rotate(here, to);
}

// Undoes the last proposal.
void LocalSearch::undo() {
    if (put_ >= 0) rotate(put_, taken_);
    for (auto move = moved_.rbegin(); move != moved_.rend(); ++move) relocate(move->group, move->origin);
}

Int LocalSearch::propose(Int kind) {
    moved_.clear();
    put_ = last_ = NONE;
    const Int i = pick();
    if (kind == SHIFT || problem_.m == 1) return shift(i);
    const Int here = device[i], to = random_other_device(i), g = problem_.group[i];
    switch (kind) {
        case MOVE: {
            const Int first = take(g, to);
            return first < problem_.n && draw(2) == 0 ? std::min(first, shift(i)) : first;
        }
        case SWAP: return propose_swap(i, g);
        case RUN: return propose_run(i, to);
        case CLUSTER: return propose_cluster(g, here, to);
        default: return propose_exchange(i, to);
    }
}

Int LocalSearch::propose_swap(Int i, Int g) {
    const Int n = problem_.n, here = device[i];
    Int other = g;
    for (int tried = 0; tried < 4; ++tried) {
        other = problem_.group[order[(position_[i] + draw(n)) % n]];
        if (home[other] != here) break;
    }
    const Int to = home[other];
    if (to == here) return n;
    const Int away = put(g, to), first = std::min(away, put(other, here));
    // Checked after the swap, because two separated groups may exchange their devices.
    if (allowed(g, to) && allowed(other, here)) return first;
    undo();
    return n;
}

Int LocalSearch::propose_run(Int i, Int to) {
    const Int n = problem_.n, here = device[i];
    Int first = n, count = 2 + draw(Int{2} << draw(6));
    const Int step = draw(2) == 0 ? 1 : -1;
    for (Int p = position_[i]; p >= 0 && p < n && count > 0; p += step) {
        const Int h = problem_.group[order[p]];
        if (home[h] != here) continue;
        first = std::min(first, take(h, to));
        --count;
    }
    return first;
}

Int LocalSearch::propose_cluster(Int g, Int here, Int to) {
    Int first = take(g, to);
    const Int wanted = 2 + draw(Int{2} << draw(6));
    for (Int tries = 3 * wanted; tries > 0 && !moved_.empty() && static_cast<Int>(moved_.size()) < wanted; --tries) {
        const Int h = moved_[draw(static_cast<Int>(moved_.size()))].group;
        const Int start = problem_.member_start[h];
        const Int j = random_neighbour(problem_.member[start + draw(problem_.member_start[h + 1] - start)]);
        if (j >= 0 && device[j] == here) first = std::min(first, take(problem_.group[j], to));
    }
    return first;
}

Int LocalSearch::propose_exchange(Int i, Int to) {
    const Int n = problem_.n, here = device[i];
    Int first = n;
    const Int last = std::min(position_[i] + 2 + draw(Int{4} << draw(6)), n);
    for (Int p = position_[i]; p < last; ++p) {
        const Int h = problem_.group[order[p]];
        if (problem_.member[problem_.member_start[h]] != order[p]) continue;  // a group moves once, with its first task
        if (home[h] == here) first = std::min(first, take(h, to));
        else if (home[h] == to) first = std::min(first, take(h, here));
    }
    return first;
}

Int LocalSearch::propose_random(Ints shares) {
    const Int number = draw(100);
    Int kind = 0;
    while (shares[kind] <= number) ++kind;
    return propose(kind);
}

// Finds a critical path backwards from the task that ends last.
//
// Each task of it waits for the previous one on its device, for one that uses the same resource, for the data of a producer,
// or for its release; ties are broken at random.
void LocalSearch::find_critical() {
    Int i = order[0];
    for (const Int j : order)
        if (end[j] > end[i]) i = j;
    critical_.clear();
    while (true) {
        critical_.push_back(i);
        const Int start = end[i] - ticks[i];
        Int before = NONE;
        for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) {
            const Int u = problem_.source[k], arrival = problem_.ports.any() ? arrive[k] : end[u] + delay[k];
            if (arrival == start && (before < 0 || draw(2) == 0)) before = u;
        }
        if (before < 0 || draw(2) == 0) {
            const auto delays = [&](Int j) {
                const bool near = problem_.station(device[j]) == problem_.station(device[i]);
                if (near && problem_.sets_up(device[i]) && ticks[i] > 0 && ticks[j] > 0)
                    return add(end[j], problem_.between(device[i], j, i)) == start;
                if (end[j] != start) return false;
                if (device[j] == device[i] && !problem_.parallel(device[i])) return true;
                return usage_.any() && usage_.compete(problem_.need(i, device[i]), problem_.need(j, device[j]));
            };
            Int at = position_[i] - 1;
            while (at >= 0 && !delays(order[at])) --at;
            if (at >= 0) before = order[at];
        }
        if (before < 0 || start == 0) break;
        i = before;
    }
    if (static_cast<Int>(critical_.size()) == problem_.n) critical_.clear();
}

}  // namespace engine
