// Moves of tasks to other devices and other places on their device, within the window.
//
//     move      a group to another device: of some devices, the one where the path through a task of it is shortest
//     shift     a task to another place on its device
//     swap      two groups exchange their devices
//     eject     a task to the device of the neighbour whose data it waits for; tasks there that it makes late go elsewhere
//     cluster   tasks of one device that edges connect go to another
//
// A task that moves goes to the slot where the path through it is shortest, estimated from heads and tails before the move
// (M. Mastrolilli, L. M. Gambardella: Effective neighbourhood functions for the flexible job shop problem, Journal of Scheduling
// 3, 2000, doi:10.1002/(SICI)1099-1425(200001/02)3:1<3::AID-JOS32>3.0.CO;2-Y, section 3, give the optimal slots without
// transfers). Departures: transfers take time, slots follow from positions in an order of all tasks, and tasks need not be
// critical. Moves respect feasibility, groups, separation and memory.
//
// Without `eject`, a search may stand still with one longest path: to shorten it, a task must take the place of others, and no
// schedule in between is short enough to be accepted. An ejection chain makes both changes at once (F. Glover: Ejection chains,
// reference structures and alternating path methods for traveling salesman problems, Discrete Applied Mathematics 65, 1996,
// doi:10.1016/0166-218X(94)00037-E). Departure: what was ejected ejects nothing.
#include "windows.hpp"

#include <limits>

namespace engine {

// The task on the longest path among `tries` random ones of the window in groups of `least` tasks or more; NONE without one.
Int WindowMoves::pick(Int tries, Int least) {
    Int found = NONE, longest = -1;
    for (Int round = 0; round < tries; ++round) {
        const Int i = order[low + draw(high - low)], g = problem_.group[i], length = end[i] + after[i];
        if (length > longest && problem_.member_start[g + 1] - problem_.member_start[g] >= least) {
            found = i;
            longest = length;
        }
    }
    return found;
}

// Another device for task i, in `near` percent of the cases that of a neighbour.
Int WindowMoves::random_other_device(Int i, Int near) {
    const Int here = device[i];
    if (draw(100) < near)
        if (const Int j = random_neighbour(i); j >= 0 && device[j] != here) return device[j];
    const Int to = draw(problem_.m - 1);
    return to < here ? to : to + 1;
}

// The task after `previous` (NONE: the first one) in the chain of device d without task i.
Int WindowMoves::successor(Int previous, Int d, Int i) const {
    const Int j = previous < 0 ? first[d] : behind[previous];
    return j == i ? behind[i] : j;
}

// The last task of device d up to position p, which is in the window or just before it.
Int WindowMoves::last_before(Int d, Int p) const {
    for (Int q = p; q > std::max(p - 2 * problem_.m, low - 1); --q)
        if (device[order[q]] == d) return order[q];
    Int i = gate_[d];
    for (Int next = i < 0 ? first[d] : behind[i]; next >= 0 && position[next] <= p; next = behind[next]) i = next;
    return i;
}

// What surrounds task i on device d; positions outside the window are those of its borders.
WindowMoves::Surroundings WindowMoves::surroundings(Int i, Int d) const {
    Int begin = low - 1, until = high, ready = std::max(problem_.release[i], free_[d]), rest = 0;
    for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) {
        const Int u = problem_.source[k], a = device[u];
        begin = std::max(begin, position[u]);
        ready = std::max(ready, add(end[u], problem_.moving(k, a, d)));
    }
    for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) {
        const Int j = problem_.target[e], b = device[j];
        until = std::min(until, position[j]);
        const Int gap = problem_.moving(problem_.slot[e], d, b);
        rest = std::max(rest, add(gap, add(ticks[j], after[j])));
    }
    return {begin, until, ready, rest};
}

// The position nearest to the present one at which task i lies between positions `left` and `right`.
Int WindowMoves::position_in(Int i, Int left, Int right) const {
    const Int here = position[i];
    return here <= left ? left : here >= right ? right : here;
}

// The best slot of task i on device d: between two tasks of the device, behind the producers and before the consumers of i, and
// not the present place. The ticks are an estimate, because i has not left its place. Ties are broken by position.
WindowMoves::Place WindowMoves::find_slot(Int i, Int d) const {
    const auto [begin, until, ready, rest] = surroundings(i, d);
    const Int here = position[i], own = problem_.ticks(i, d);
    Place best{-1, 0, NONE, 0};
    Int previous = last_before(d, begin), following = successor(previous, d, i);
    while (true) {
        if (d != device[i] || previous != before[i]) {
            Int start = ready, later = rest;
            if (previous >= 0) start = std::max(start, end[previous]);
            if (following >= 0) later = std::max(later, add(ticks[following], after[following]));
            const Int length = add(add(start, own), later);
            if (best.longest < 0 || length < best.longest) {
                // When i leaves its place, heads before it and tails after it do not change.
                if (previous >= 0 && position[previous] > here) start = ready;
                if (following >= 0 && position[following] < here) later = rest;
                const Int left = previous < 0 ? begin : std::max(begin, position[previous]);
                const Int right = following < 0 ? until : std::min(until, position[following]);
                best = {length, position_in(i, left, right), previous, start + own + later};
            }
        }
        if (following < 0 || position[following] >= until) return best;
        previous = following;
        following = successor(previous, d, i);
    }
}

// Places task i on device d behind task `anchor`, at position `to` of the order. Neither checks rules nor computes times.
void WindowMoves::put(Int i, Int d, Int to, Int anchor) {
    const Int away = device[i], taken = position[i];
    const auto link = [&](Int on, Int previous, Int next) {
        (previous >= 0 ? behind[previous] : first[on]) = next;
        if (next >= 0) before[next] = previous;
    };
    link(away, before[i], behind[i]);
    const Int step = to > taken ? 1 : -1;
    for (Int p = taken; p != to; p += step) {
        order[p] = order[p + step];
        position[order[p]] = p;
    }
    order[to] = i;
    position[i] = to;
    const Int following = anchor >= 0 ? behind[anchor] : first[d];
    link(d, anchor, i);
    link(d, i, following);
    before[i] = anchor;
    behind[i] = following;
    if (d == away) return;
    device[i] = d;
    ticks[i] = problem_.ticks(i, d);
    problem_.delays_around(i, device, delay);
}

// Places a task, and stores how to undo it.
void WindowMoves::change(Int i, Int d, const Place& place) {
    const Int here = position[i];
    moved_.push_back({i, device[i], here, before[i], behind[i]});
    first_ = std::min({first_, here, place.position});
    last_ = std::max({last_, here, place.position});
    put(i, d, place.position, place.anchor);
}

// Undoes the last proposal, apart from times.
void WindowMoves::undo() {
    for (; !moved_.empty(); moved_.pop_back()) {
        const Moved& each = moved_.back();
        const Int g = problem_.group[each.task], here = device[each.task];
        if (here != each.device && problem_.member[problem_.member_start[g]] == each.task) {
            room[here] += problem_.memory[g];
            room[each.device] -= problem_.memory[g];
        }
        put(each.task, each.device, each.position, each.before);
    }
}

// Whether no group that must be separated from group g is on device d.
bool WindowMoves::stays_apart(Int g, Int d) const {
    for (Int at = problem_.apart_start[g]; at < problem_.apart_start[g + 1]; ++at)
        if (device[problem_.member[problem_.member_start[problem_.apart[at]]]] == d) return false;
    return true;
}

// Whether feasibility, memory and separation allow group g on device `to`, where it is not yet.
bool WindowMoves::allowed(Int g, Int to) const {
    return problem_.feasible[g * problem_.m + to] && room[to] >= problem_.memory[g] && stays_apart(g, to);
}

// Moves group g to another device, without checks of rules; returns whether it lies in the window and is small.
bool WindowMoves::move_group(Int g, Int to) {
    const Int begin = problem_.member_start[g], until = problem_.member_start[g + 1];
    if (static_cast<Int>(moved_.size()) + until - begin > LONGEST) return false;
    for (Int at = begin; at < until; ++at)
        if (const Int p = position[problem_.member[at]]; p < low || p >= high) return false;
    room[device[problem_.member[begin]]] += problem_.memory[g];
    room[to] -= problem_.memory[g];
    for (Int at = begin; at < until; ++at) change(problem_.member[at], to, find_slot(problem_.member[at], to));
    return true;
}

// Moves the group of task i to the best of some devices; returns whether there is one. The estimated path through i must not
// become longer: otherwise tasks that are not critical drift until they are.
bool WindowMoves::move(Int i, const Tuning& tuning, double limit) {
    const Int g = problem_.group[i];
    Int best = end[i] + after[i] + 1, to = NONE;
    for (Int choice = 0; choice < tuning.choices; ++choice) {
        const Int d = random_other_device(i, tuning.near);
        if (d == to || !allowed(g, d)) continue;
        const Place place = find_slot(i, d);
        if (place.longest < best && static_cast<double>(place.least) <= limit) {
            best = place.longest;
            to = d;
        }
    }
    return to >= 0 && move_group(g, to);
}

// Moves task i on its device; returns false without a slot, or if the path through i becomes longer.
bool WindowMoves::shift(Int i, double limit) {
    const Place place = find_slot(i, device[i]);
    if (place.longest < 0 || place.longest > end[i] + after[i] || static_cast<double>(place.least) > limit) return false;
    change(i, device[i], place);
    return true;
}

// Exchanges the devices of the group of task i and of a group near it; returns false if rules forbid it.
bool WindowMoves::swap(Int i) {
    const Int g = problem_.group[i], here = device[i], far = Int{4} << draw(6);
    const Int j = order[std::min(std::max(position[i] + draw(2 * far + 1) - far, low), high - 1)];
    const Int h = problem_.group[j], to = device[j];
    if (to == here || !problem_.feasible[g * problem_.m + to] || !problem_.feasible[h * problem_.m + here]) return false;
    // Rules are checked after the swap, because two separated groups may exchange their devices.
    const bool fits = move_group(g, to) && move_group(h, here) && room[here] >= 0 && room[to] >= 0 && stays_apart(g, to) &&
                      stays_apart(h, here);
    if (!fits) undo();
    return fits;
}

// The device of the producer whose data task i waits for until it starts; else that of the consumer at which the longest path from
// i continues; NONE if the tasks of its device decide both times, or no transfer.
Int WindowMoves::decisive_device(Int i) const {
    const Int start = end[i] - ticks[i];
    for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k)
        if (delay[k] > 0 && end[problem_.source[k]] + delay[k] == start) return device[problem_.source[k]];
    for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) {
        const Int j = problem_.target[e], gap = delay[problem_.slot[e]];
        if (gap > 0 && gap + ticks[j] + after[j] == after[i]) return device[j];
    }
    return NONE;
}

// Moves task i to the device that decides its times, or a random one, and the tasks that it would make late there to others.
// Returns false if the path through i does not become shorter, or another task becomes late. Groups of several tasks stay.
bool WindowMoves::eject(Int i, const Tuning& tuning, double limit) {
    const Int g = problem_.group[i], decisive = decisive_device(i);
    const Int d = decisive >= 0 ? decisive : random_other_device(i, tuning.near);
    if (d == device[i] || problem_.member_start[g + 1] - problem_.member_start[g] > 1 || !allowed(g, d)) return false;
    const auto [begin, until, ready, rest] = surroundings(i, d);
    const Int length = end[i] + after[i], own = problem_.ticks(i, d), spare = length - own - rest - 1;
    if (ready > spare) return false;
    // Tasks that end until then remain before i: either when the data is there, or as long as the path through i becomes shorter.
    const Int last = draw(2) == 0 ? ready : spare;
    Int previous = last_before(d, begin), following = successor(previous, d, i);
    while (following >= 0 && position[following] < until && end[following] <= last) {
        previous = following;
        following = successor(previous, d, i);
    }
    const Int left = previous < 0 ? begin : std::max(begin, position[previous]);
    const Int right = following < 0 ? until : std::min(until, position[following]);
    room[device[i]] += problem_.memory[g];
    room[d] -= problem_.memory[g];
    change(i, d, {length, position_in(i, left, right), previous, 0});
    bool fits = true;
    while (fits && before[i] >= 0 && static_cast<double>(end[before[i]] + own + rest) > limit)
        fits = make_way(before[i], tuning, limit);
    const Int free = (before[i] < 0 ? ready : std::max(ready, end[before[i]])) + own;
    while (fits && behind[i] >= 0) {
        const Int f = behind[i], start = std::max(free, end[f] - ticks[f]);
        if (static_cast<double>(start + ticks[f] + after[f]) <= limit) break;
        fits = make_way(f, tuning, limit);
    }
    if (!fits) undo();
    return fits;
}

// Moves the group of task f to the best of some devices; returns false if it becomes late on each of them.
bool WindowMoves::make_way(Int f, const Tuning& tuning, double limit) {
    const Int g = problem_.group[f];
    if (static_cast<Int>(moved_.size()) > EJECTED) return false;
    Int best = std::numeric_limits<Int>::max(), to = NONE;
    for (Int choice = 0; choice < tuning.choices; ++choice) {
        const Int d = random_other_device(f, tuning.near);
        if (d == to || !allowed(g, d)) continue;
        const Place place = find_slot(f, d);
        if (place.longest >= 0 && place.longest < best && static_cast<double>(place.longest) <= limit) {
            best = place.longest;
            to = d;
        }
    }
    return to >= 0 && move_group(g, to);
}

// Moves task i and tasks of its device that edges connect with it to another device; returns false if i cannot move.
bool WindowMoves::cluster(Int i, Int near) {
    const Int here = device[i], to = random_other_device(i, near);
    const Int wanted = 2 + draw(Int{2} << draw(4));
    Int j = i;
    for (Int round = 0; round < 3 * wanted; ++round) {
        if (j >= 0 && device[j] == here && allowed(problem_.group[j], to)) move_group(problem_.group[j], to);
        if (moved_.empty()) return false;
        if (static_cast<Int>(moved_.size()) >= wanted) break;
        j = random_neighbour(moved_[draw(static_cast<Int>(moved_.size()))].task);
    }
    return true;
}

bool WindowMoves::propose(const Tuning& tuning, double limit) {
    moved_.clear();
    first_ = problem_.n;
    last_ = horizon_ = -1;
    const Int i = pick(1 + draw(tuning.tries), tuning.least);
    if (i < 0) return false;
    const Int kind = draw(100);
    if (problem_.m == 1) return shift(i, limit);
    if (kind < tuning.moves) return move(i, tuning, limit);
    if (kind < tuning.moves + tuning.shifts) return shift(i, limit);
    if (kind < tuning.moves + tuning.shifts + tuning.swaps) return swap(i);
    if (kind < tuning.moves + tuning.shifts + tuning.swaps + tuning.ejections) return eject(i, tuning, limit);
    return cluster(i, tuning.near);
}

}  // namespace engine
