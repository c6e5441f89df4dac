// The moves and the walk of tabu search over critical paths.
#include "critical.hpp"

#include <utility>

namespace engine {

CriticalPaths::CriticalPaths(const SearchProblem& problem, Int seed)
    : order(problem.n), device(problem.n), end(problem.n), after(problem.n), best_order(problem.n), best_device(problem.n),
      problem_(problem), random_(seed % (MODULUS - 1) + 1), chain_(problem.m), rank_(problem.n), place_(problem.n),
      ticks_(problem.n), delay_(problem.e), ready_(problem.n), rest_(problem.n), room_(problem.m), until_(problem.n * problem.m),
      marked_(problem.n) {
    choice_start_.push_back(0);
    for (Int g = 0; g < problem.g; ++g) {
        for (Int d = 0; d < problem.m; ++d)
            if (problem.feasible[g * problem.m + d]) choice_.push_back(d);
        choice_start_.push_back(static_cast<Int>(choice_.size()));
    }
}

void CriticalPaths::load(Ints tasks, Ints devices) {
    const Int n = problem_.n;
    std::copy(tasks.begin(), tasks.end(), order.begin());
    std::copy(devices.begin(), devices.end(), device.begin());
    std::copy(problem_.capacity.begin(), problem_.capacity.end(), room_.begin());
    std::fill(until_.begin(), until_.end(), 0);
    for (auto& chain : chain_) chain.clear();
    for (Int g = 0; g < problem_.g; ++g) {
        Int& left = room_[device[problem_.member[problem_.member_start[g]]]];
        left = subtract(left, problem_.memory[g]);
    }
    for (Int p = 0; p < n; ++p) {
        const Int i = order[p], d = device[i];
        place_[i] = p;
        rank_[i] = static_cast<Int>(chain_[d].size());
        ticks_[i] = problem_.ticks(i, d);
        chain_[d].push_back(i);
        for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k)
            delay_[k] = problem_.moving(k, device[problem_.source[k]], d);
    }
    round_ = 0;
    for (Int p = 0; p < n; ++p) end[order[p]] = head(order[p]);
    for (Int p = n; p-- > 0;) after[order[p]] = tail(order[p]);
    keep_best();
}

void CriticalPaths::keep_best() {
    span = held = *std::max_element(end.begin(), end.end());
    best_order = order;
    best_device = device;
}

// The tasks before and behind task i on its device; NONE at the ends.
Int CriticalPaths::before(Int i) const { return rank_[i] > 0 ? chain_[device[i]][rank_[i] - 1] : NONE; }
Int CriticalPaths::behind(Int i) const {
    const auto& chain = chain_[device[i]];
    const Int r = rank_[i] + 1;
    return r < static_cast<Int>(chain.size()) ? chain[r] : NONE;
}

// The end of task i, and the ticks after it, from its neighbours in the graph and on its device.
Int CriticalPaths::head(Int i) {
    Int start = problem_.release[i];
    for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k)
        start = std::max(start, add(end[problem_.source[k]], delay_[k]));
    ready_[i] = start;
    if (const Int u = before(i); u >= 0) start = std::max(start, end[u]);
    return add(start, ticks_[i]);
}
Int CriticalPaths::tail(Int i) {
    Int rest = 0;
    for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) {
        const Int j = problem_.target[e];
        rest = std::max(rest, add(delay_[problem_.slot[e]], add(ticks_[j], after[j])));
    }
    rest_[i] = rest;
    if (const Int j = behind(i); j >= 0) rest = std::max(rest, add(ticks_[j], after[j]));
    return rest;
}

// Times again what follows from a move of task i, which was between two others (NONE at the ends). A task whose time changes
// marks the next ones.
void CriticalPaths::time_around(Int i, Int previous, Int next) {
    Int first = problem_.n, last = -1;
    const auto mark = [&](Int x) {
        if (x < 0) return;
        const Int p = place_[x];
        marked_[p] = true;
        first = std::min(first, p);
        last = std::max(last, p);
    };
    const auto onward = [&](Int x) {
        mark(behind(x));
        for (Int e = problem_.out_start[x]; e < problem_.out_start[x + 1]; ++e) mark(problem_.target[e]);
    };
    const auto backward = [&](Int x) {
        mark(before(x));
        for (Int k = problem_.in_start[x]; k < problem_.in_start[x + 1]; ++k) mark(problem_.source[k]);
    };
    mark(i);
    mark(next);
    onward(i);
    for (Int p = first; p <= last; ++p) {
        if (!marked_[p]) continue;
        marked_[p] = false;
        const Int x = order[p], now = head(x);
        work += TIMING;
        if (now == end[x]) continue;
        end[x] = now;
        onward(x);
    }
    first = problem_.n;
    last = -1;
    mark(i);
    mark(previous);
    backward(i);
    for (Int p = last; p >= first; --p) {
        if (!marked_[p]) continue;
        marked_[p] = false;
        const Int x = order[p], now = tail(x);
        work += TIMING;
        if (now == after[x]) continue;
        after[x] = now;
        backward(x);
    }
    span = *std::max_element(end.begin(), end.end());
    work += problem_.n / 8;
}

// Finds a longest path; where several tasks continue it, one is drawn.
void CriticalPaths::find_critical() {
    critical_.clear();
    Int i = NONE, ways = 0;
    for (Int j = 0; j < problem_.n; ++j)
        if (end[j] == span && draw(++ways) == 0) i = j;
    while (i >= 0) {
        critical_.push_back(i);
        const Int start = end[i] - ticks_[i];
        Int from = NONE;
        ways = 0;
        if (const Int u = before(i); u >= 0 && end[u] == start) {
            from = u;
            ways = 1;
        }
        for (Int k = problem_.in_start[i]; ready_[i] == start && k < problem_.in_start[i + 1]; ++k) {
            const Int u = problem_.source[k];
            if (end[u] + delay_[k] == start && draw(++ways) == 0) from = u;
        }
        i = from;
    }
}

// Whether separation and memory allow task i to move to another device d.
bool CriticalPaths::allowed(Int i, Int d) const {
    const Int g = problem_.group[i];
    if (room_[d] < problem_.memory[g]) return false;
    for (Int at = problem_.apart_start[g]; at < problem_.apart_start[g + 1]; ++at)
        if (device[problem_.member[problem_.member_start[problem_.apart[at]]]] == d) return false;
    return true;
}

// Visits the slots of task i on device d that certainly close no cycle, with the estimated longest path through it; none if all
// estimates are above `most`.
//
// A path from consumer j of i to a task x means that x starts at the end of j or later. So i may be inserted behind x if x starts
// before all consumers end and is none of them; likewise on the other side.
template <class Visit>
void CriticalPaths::each_slot(Int i, Int d, Int most, Visit&& visit) const {
    const auto& chain = chain_[d];
    const Int here = d == device[i] ? rank_[i] : NONE, count = static_cast<Int>(chain.size());
    Int ready = problem_.release[i], rest = 0, latest = -1, earliest = INT64_MAX, low = 0, high = count;
    for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) {
        const Int u = problem_.source[k], a = device[u];
        ready = std::max(ready, add(end[u], problem_.moving(k, a, d)));
        latest = std::max(latest, end[u] - ticks_[u]);
        if (a == d) low = std::max(low, rank_[u] + 1);
    }
    for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) {
        const Int j = problem_.target[e], b = device[j];
        rest = std::max(rest, add(problem_.moving(problem_.slot[e], d, b), add(ticks_[j], after[j])));
        earliest = std::min(earliest, end[j]);
        if (b == d) high = std::min(high, rank_[j]);
    }
    const Int own = problem_.ticks(i, d);
    if (add(add(ready, own), rest) > most) return;
    if (here < 0) {
        // Starts and ends rise along a chain.
        const auto begins = chain.begin() + low, ends = chain.begin() + std::max(low, high);
        const auto first = std::partition_point(begins, ends, [&](Int x) { return end[x] <= latest; });
        const auto last = std::partition_point(begins, ends, [&](Int x) { return end[x] - ticks_[x] < earliest; });
        for (Int s = first - chain.begin(); s <= last - chain.begin() && s <= high; ++s) {
            const Int begin = s > 0 ? std::max(ready, end[chain[s - 1]]) : ready;
            const Int later = s < count ? std::max(rest, add(ticks_[chain[s]], after[chain[s]])) : rest;
            visit(s, add(add(begin, own), later));
        }
        return;
    }
    // Before its place: tails of the tasks that it passes, without it.
    Int next = here + 1 < count ? add(ticks_[chain[here + 1]], after[chain[here + 1]]) : 0;
    for (Int s = here - 1; s >= low; --s) {
        const Int x = chain[s];
        if (end[x] <= latest) break;
        next = add(ticks_[x], std::max(rest_[x], next));
        const Int begin = s > 0 ? std::max(ready, end[chain[s - 1]]) : ready;
        visit(s, add(add(begin, own), std::max(rest, next)));
    }
    // Behind it: heads without it.
    Int free = here > 0 ? end[chain[here - 1]] : 0;
    for (Int s = here + 1; s < high; ++s) {
        const Int x = chain[s];
        if (end[x] - ticks_[x] >= earliest) break;
        free = add(std::max(ready_[x], free), ticks_[x]);
        const Int later = s + 1 < count ? std::max(rest, add(ticks_[chain[s + 1]], after[chain[s + 1]])) : rest;
        visit(s, add(add(std::max(ready, free), own), later));
    }
}

// A random device on which task i may run: with `near` that of a neighbour, if possible.
Int CriticalPaths::drawn_device(Int i, bool near) {
    const Int g = problem_.group[i], j = near ? problem_.neighbour(i, [this](Int below) { return draw(below); }) : NONE;
    if (j >= 0 && problem_.feasible[g * problem_.m + device[j]]) return device[j];
    return choice_[choice_start_[g] + draw(choice_start_[g + 1] - choice_start_[g])];
}

// The slot of task i on device d with the shortest estimated path; where the order places it if none certainly closes no cycle.
CriticalPaths::Move CriticalPaths::best_slot(Int i, Int d) {
    Move best{i, d, NONE, INT64_MAX};
    work += TIMING;
    each_slot(i, d, INT64_MAX, [&](Int slot, Int length) {
        ++work;
        if (length < best.length) best = {i, d, slot, length};
    });
    if (best.slot >= 0) return best;
    const auto& chain = chain_[d];
    const auto next = std::partition_point(chain.begin(), chain.end(), [&](Int x) { return place_[x] < place_[i]; });
    return {i, d, next - chain.begin(), add(end[i], after[i])};
}

// The move with the shortest estimated path that is not tabu, or that promises a shorter makespan than the best state. Without
// one, a random move; `task` is NONE if there is no move.
CriticalPaths::Move CriticalPaths::choose() {
    Move best, other;
    Int ties = 0, others = 0;
    const auto consider = [&](Int i, Int d) {
        const bool tabu = until_[i * problem_.m + d] > round_;
        each_slot(i, d, best.task < 0 ? INT64_MAX : best.length, [&](Int slot, Int length) {
            ++work;
            if (tabu && length >= held) {
                if (draw(++others) == 0) other = {i, d, slot, length};
                return;
            }
            if (best.task < 0 || length < best.length) ties = 0;
            if ((best.task < 0 || length <= best.length) && draw(++ties) == 0) best = {i, d, slot, length};
        });
    };
    const auto elsewhere = [&](Int i, Int d) {
        if (d != device[i] && allowed(i, d)) consider(i, d);
    };
    Int grouped = NONE, groups = 0;
    for (const Int i : critical_) {
        consider(i, device[i]);
        const Int g = problem_.group[i], first = choice_start_[g], count = choice_start_[g + 1] - first;
        work += 2 + std::min(count, FEW);
        if (problem_.member_start[g + 1] - problem_.member_start[g] > 1) {
            if (draw(++groups) == 0) grouped = i;
        } else if (count <= FEW) {
            for (Int at = first; at < first + count; ++at) elsewhere(i, choice_[at]);
        } else {
            for (Int round = 0; round < FEW; ++round) elsewhere(i, drawn_device(i, round % 2 == 0));
        }
    }
    // One group, to a few devices: the longest estimate of its tasks counts.
    for (Int round = 0; grouped >= 0 && round < GROUPED; ++round) {
        const Int i = grouped, d = drawn_device(i, round % 2 == 0), g = problem_.group[i];
        if (d == device[i] || !allowed(i, d)) continue;
        Int longest = 0;
        for (Int at = problem_.member_start[g]; at < problem_.member_start[g + 1]; ++at)
            longest = std::max(longest, best_slot(problem_.member[at], d).length);
        const bool tabu = until_[i * problem_.m + d] > round_;
        if ((!tabu || longest < held) && (best.task < 0 || longest < best.length)) best = {i, d, NONE, longest};
    }
    return best.task >= 0 ? best : other;
}

// Places task i on device d, as entry `slot` of its chain without the task.
void CriticalPaths::put(Int i, Int d, Int slot) {
    const auto renumber = [&](const std::vector<Int>& chain, Int from) {
        for (Int r = from; r < static_cast<Int>(chain.size()); ++r) rank_[chain[r]] = r;
    };
    auto& away = chain_[device[i]];
    const Int left = rank_[i];
    away.erase(away.begin() + left);
    auto& chain = chain_[d];
    chain.insert(chain.begin() + slot, i);
    if (d == device[i]) {
        renumber(chain, std::min(left, slot));
        return;
    }
    renumber(away, left);
    renumber(chain, slot);
    device[i] = d;
    ticks_[i] = problem_.ticks(i, d);
    problem_.delays_around(i, device, delay_);
}

// Moves task i in the order, with what must follow or precede it, to where its neighbours on the device allow it.
void CriticalPaths::reorder(Int i) {
    const Int previous = before(i), next = behind(i), here = place_[i];
    if (previous >= 0 && place_[previous] > here) {
        shift(here, place_[previous], 1, [&](Int x) {
            const Int u = before(x);
            bool found = u >= 0 && marked_[place_[u]];
            for (Int k = problem_.in_start[x]; !found && k < problem_.in_start[x + 1]; ++k)
                found = marked_[place_[problem_.source[k]]];
            return found;
        });
    } else if (next >= 0 && place_[next] < here) {
        shift(here, place_[next], -1, [&](Int x) {
            const Int j = behind(x);
            bool found = j >= 0 && marked_[place_[j]];
            for (Int e = problem_.out_start[x]; !found && e < problem_.out_start[x + 1]; ++e)
                found = marked_[place_[problem_.target[e]]];
            return found;
        });
    }
}

// Moves the task at position `first`, and all that `depends` on a marked one, behind the others up to position `last`.
template <class Depends>
void CriticalPaths::shift(Int first, Int last, Int step, Depends&& depends) {
    work += (last - first) * step;
    shifted_.clear();
    for (Int p = first; p != last + step; p += step)
        if (p == first || depends(order[p])) {
            marked_[p] = true;
            shifted_.push_back(order[p]);
        }
    Int to = first;
    const auto settle = [&](Int x) {
        order[to] = x;
        place_[x] = to;
        to += step;
    };
    for (Int p = first; p != last + step; p += step)
        if (!std::exchange(marked_[p], false)) settle(order[p]);
    for (const Int x : shifted_) settle(x);
}

// Makes a move, and forbids its tasks to return for some rounds.
void CriticalPaths::make(const Move& move) {
    const Int g = problem_.group[move.task], away = device[move.task];
    const Int until = round_ + TENURE + draw(2 * static_cast<Int>(critical_.size()) + 1);
    const auto insert = [&](Int i, Int slot) {
        const Int previous = before(i), next = behind(i);
        until_[i * problem_.m + away] = until;
        put(i, move.device, slot);
        work += static_cast<Int>(chain_[away].size() + chain_[move.device].size()) / 4;
        reorder(i);
        time_around(i, previous, next);
    };
    if (away != move.device) {
        room_[away] += problem_.memory[g];
        room_[move.device] -= problem_.memory[g];
    }
    if (move.slot >= 0) {
        insert(move.task, move.slot);
        return;
    }
    for (Int at = problem_.member_start[g]; at < problem_.member_start[g + 1]; ++at)
        insert(problem_.member[at], best_slot(problem_.member[at], move.device).slot);
}

Int CriticalPaths::search(Int rounds, Int most, Int enough, Stop& stop) {
    const Int begun = round_;
    Int since = round_;
    const Int last = add(work, most);
    while (held > enough && round_ - since < rounds && work < last) {
        if (stop.over(20 * problem_.n)) break;
        find_critical();
        const Move move = choose();
        if (move.task < 0) break;
        ++round_;
        make(move);
        if (span >= held) continue;
        since = round_;
        keep_best();
    }
    return round_ - begun;
}

}  // namespace engine
