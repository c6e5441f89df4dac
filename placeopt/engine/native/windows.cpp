// Heads and tails in a window: computed along the order, and repaired after a change.
#include "windows.hpp"

#include <cmath>

namespace engine {

WindowMoves::WindowMoves(const SearchProblem& problem, Int seed)
    : order(problem.n), position(problem.n), device(problem.n), ticks(problem.n), delay(problem.e), end(problem.n),
      after(problem.n), reach(problem.n), before(problem.n), behind(problem.n), first(problem.m), room(problem.m),
      best_order(problem.n), best_device(problem.n), problem_(problem), random_(seed % (MODULUS - 1) + 1), free_(problem.m),
      gate_(problem.m), later_(problem.n), marked_(problem.n) {
    moved_.reserve(LONGEST);
}

void WindowMoves::load(Ints tasks, Ints devices) {
    const Int n = problem_.n;
    std::copy(tasks.begin(), tasks.end(), order.begin());
    std::copy(devices.begin(), devices.end(), device.begin());
    std::copy(problem_.capacity.begin(), problem_.capacity.end(), room.begin());
    std::fill(first.begin(), first.end(), NONE);
    std::fill(gate_.begin(), gate_.end(), NONE);
    for (Int g = 0; g < problem_.g; ++g) {
        Int& left = room[device[problem_.member[problem_.member_start[g]]]];
        left = subtract(left, problem_.memory[g]);
    }
    for (Int p = 0; p < n; ++p) {
        const Int i = order[p], d = device[i], previous = gate_[d];
        position[i] = p;
        ticks[i] = problem_.ticks(i, d);
        before[i] = previous;
        behind[i] = NONE;
        (previous >= 0 ? behind[previous] : first[d]) = i;
        gate_[d] = i;
        for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) {
            const Int a = device[problem_.source[k]];
            delay[k] = problem_.moving(k, a, d);
        }
    }
    std::fill(gate_.begin(), gate_.end(), NONE);
    std::fill(marked_.begin(), marked_.end(), false);
    open_.clear();
    moved_.clear();
    logged_.clear();
    first_ = n;
    last_ = horizon_ = -1;
    low = high = ended_ = span = 0;
    fresh = false;
    same_ = false;
    time_heads(0, n);
    Int latest = 0;
    for (Int p = n; p-- > 0;) {
        const Int i = order[p];
        after[i] = tail(i, 0);
        latest = std::max(latest, add(add(problem_.release[i], ticks[i]), after[i]));
        later_[p] = latest;
        span = std::max(span, end[i]);
    }
}

void WindowMoves::reserve(Int first, Ints free) {
    reserved_ = first;
    std::copy(free.begin(), free.end(), free_.begin());
}

// The end of task i after the tasks before it.
Int WindowMoves::head(Int i) const {
    Int start = problem_.release[i];
    if (position[i] >= reserved_) start = std::max(start, free_[device[i]]);
    if (before[i] >= 0) start = std::max(start, end[before[i]]);
    for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k)
        start = std::max(start, add(end[problem_.source[k]], delay[k]));
    return add(start, ticks[i]);
}

// The ticks after task i on paths that continue at a position from `begin` on, and at least its least tail.
Int WindowMoves::tail(Int i, Int begin) const {
    Int rest = problem_.tail[i];
    if (const Int j = behind[i]; j >= 0 && position[j] >= begin) rest = std::max(rest, add(ticks[j], after[j]));
    for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) {
        const Int j = problem_.target[e];
        if (position[j] >= begin) rest = std::max(rest, add(delay[problem_.slot[e]], add(ticks[j], after[j])));
    }
    return rest;
}

void WindowMoves::time_heads(Int begin, Int until) {
    for (Int p = begin; p < until; ++p) end[order[p]] = head(order[p]);
}

void WindowMoves::enter(Int begin, Int until) {
    time_heads(high, until);
    for (Int p = low; p < begin; ++p) {
        const Int i = order[p];
        gate_[device[i]] = i;
        ended_ = std::max(ended_, end[i]);
        open_.push_back(i);
    }
    low = begin;
    high = until;
    fresh = same_;
    // The longest path around the window: it ends before it, begins after it, or an edge or a device leads past it.
    Int longest = std::max(ended_, high < problem_.n ? later_[high] : 0);
    std::erase_if(open_, [&](Int i) {
        Int farthest = NONE;
        for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e)
            farthest = std::max(farthest, position[problem_.target[e]]);
        if (farthest >= high) longest = std::max(longest, add(end[i], tail(i, high)));
        return farthest < low;
    });
    // From the last task of a device before the window to its first one after it. Tasks between them only make this path longer,
    // so it counts even with such tasks: they may leave the device.
    for (Int d = 0; d < problem_.m; ++d) {
        const Int gate = gate_[d], free = gate < 0 ? 0 : end[gate];
        Int i = gate < 0 ? first[d] : behind[gate];
        while (i >= 0 && position[i] < high) i = behind[i];
        if (i >= 0) longest = std::max(longest, add(free, add(ticks[i], after[i])));
    }
    around_ = longest;
    for (Int p = low; p < high; ++p) {
        const Int i = order[p];
        reach[i] = add(end[i], tail(i, high));
        longest = std::max(longest, reach[i]);
        marked_[p] = false;
    }
    span = longest;
}

// Marks task i to be timed again, if it is in the window.
void WindowMoves::mark(Int i) {
    const Int p = position[i];
    if (p < low || p >= high) return;
    marked_[p] = true;
    first_ = std::min(first_, p);
    horizon_ = std::max(horizon_, p);
}

// Times all tasks whose head or reach the last proposal changes; returns whether the makespan is at most `limit`.
//
// The limit is at least the makespan before the change, so that only changed paths may exceed it. Tails after the last changed
// position are those before the change. So the lengths of all changed paths are known as soon as the tasks up to this position
// are timed.
bool WindowMoves::evaluate(Int limit) {
    for (const Moved& each : moved_) {
        mark(each.task);
        for (const Int j : {before[each.task], behind[each.task], each.before, each.behind})
            if (j >= 0) mark(j);
        for (Int e = problem_.out_start[each.task]; e < problem_.out_start[each.task + 1]; ++e) mark(problem_.target[e]);
    }
    logged_.clear();
    bool shortened = false, kept = true;
    Int longest = 0, p = first_;
    while (kept && p <= horizon_) {
        if (!marked_[p++]) continue;
        marked_[p - 1] = false;
        const Int i = order[p - 1], now = head(i), was = end[i];
        if (now == was && p > last_ + 1) continue;
        Int beyond = problem_.tail[i];
        // Whether the makespan may stay within the limit although task j follows i after a gap.
        const auto follows = [&](Int j, Int gap) {
            const Int q = position[j], rest = gap + ticks[j] + after[j];
            if (q > last_ && now + rest > limit) return false;
            if (q >= high) {
                beyond = std::max(beyond, rest);
            } else if (now != was) {
                const Int start = end[j] - ticks[j];
                if (now + gap > start || was + gap == start) {
                    marked_[q] = true;
                    horizon_ = std::max(horizon_, q);
                }
            }
            return true;
        };
        if (behind[i] >= 0) kept = follows(behind[i], 0);
        for (Int e = problem_.out_start[i]; kept && e < problem_.out_start[i + 1]; ++e)
            kept = follows(problem_.target[e], delay[problem_.slot[e]]);
        logged_.push_back({i, was, reach[i]});
        end[i] = now;
        shortened = shortened || reach[i] == span;
        reach[i] = add(now, beyond);
        longest = std::max(longest, reach[i]);
        kept = kept && reach[i] <= limit;
    }
    if (!kept) {
        for (Int q = p; q <= horizon_; ++q) marked_[q] = false;
        return false;
    }
    if (shortened && longest < span) {
        longest = std::max(longest, around_);
        for (Int q = low; q < high; ++q) longest = std::max(longest, reach[order[q]]);
        span = longest;
    } else {
        span = std::max(span, longest);
    }
    return true;
}

// Reverses a rejected evaluation and its proposal.
void WindowMoves::reject() {
    for (const Logged& each : logged_) {
        end[each.task] = each.end;
        reach[each.task] = each.reach;
    }
    undo();
}

// Repairs the tails after an accepted proposal.
void WindowMoves::accept() {
    same_ = false;
    for (const Moved& each : moved_) {
        mark(each.task);
        for (const Int j : {before[each.task], each.before})
            if (j >= 0) mark(j);
        for (Int k = problem_.in_start[each.task]; k < problem_.in_start[each.task + 1]; ++k) mark(problem_.source[k]);
    }
    Int lowest = first_;
    for (Int p = last_; p >= lowest; --p) {
        if (!marked_[p]) continue;
        marked_[p] = false;
        const Int i = order[p], now = tail(i, 0), was = after[i];
        if (now == was) continue;
        after[i] = now;
        const auto precedes = [&](Int u, Int gap) {
            const Int q = position[u];
            if (q < low || (now + gap <= after[u] && was + gap != after[u])) return;
            marked_[q] = true;
            lowest = std::min(lowest, q);
        };
        if (before[i] >= 0) precedes(before[i], ticks[i]);
        for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) precedes(problem_.source[k], ticks[i] + delay[k]);
    }
}

void WindowMoves::keep_best() {
    const Int begin = fresh ? low : 0, until = fresh ? high : problem_.n;
    for (Int p = begin; p < until; ++p) {
        const Int i = best_order[p] = order[p];
        best_device[i] = device[i];
    }
    held = span;
    fresh = same_ = true;
}

void WindowMoves::settle() {
    if (span <= held)
        keep_best();
    else if (fresh)
        return_to_best();
}

// Returns to the best state, which is the same outside the window.
void WindowMoves::return_to_best() {
    std::vector<Int> next(problem_.m), last = gate_;  // tasks of each device: the first one after the window, the last one linked
    for (Int d = 0; d < problem_.m; ++d) {
        Int i = gate_[d] < 0 ? first[d] : behind[gate_[d]];
        while (i >= 0 && position[i] < high) i = behind[i];
        next[d] = i;
    }
    for (Int p = low; p < high; ++p) {
        const Int i = order[p] = best_order[p], g = problem_.group[i], was = device[i], now = best_device[i];
        position[i] = p;
        device[i] = now;
        ticks[i] = problem_.ticks(i, now);
        if (was == now || problem_.member[problem_.member_start[g]] != i) continue;
        room[was] += problem_.memory[g];
        room[now] -= problem_.memory[g];
    }
    const auto link = [&](Int d, Int i) {
        (last[d] >= 0 ? behind[last[d]] : first[d]) = i;
        if (i >= 0) before[i] = last[d];
        last[d] = i;
    };
    for (Int p = low; p < high; ++p) {
        problem_.delays_around(order[p], device, delay);
        link(device[order[p]], order[p]);
    }
    for (Int d = 0; d < problem_.m; ++d) link(d, next[d]);
    time_heads(low, high);
    for (Int p = high; p-- > low;) {
        const Int i = order[p];
        after[i] = tail(i, 0);
        reach[i] = add(end[i], tail(i, high));
    }
    span = held;
    same_ = true;
}

Int WindowMoves::walk(const Tuning& tuning, Int begin, Int until, Int rounds, double hot, double cold, Stop& stop) {
    for (Int at = begin; at < until; ++at) {
        if (stop.over(2000)) return at;
        double limit = static_cast<double>(span);
        if (hot > 0) {
            const double chance = static_cast<double>(draw(1 << 24)) / (1 << 24);
            limit -= hot * std::pow(cold / hot, static_cast<double>(at) / static_cast<double>(rounds)) * std::log(1.0 - chance);
        }
        if (!propose(tuning, limit)) continue;
        ++evaluated;
        if (!evaluate(whole(limit))) {
            reject();
            continue;
        }
        accept();
        if (span < held) keep_best();
    }
    return until;
}

}  // namespace engine
