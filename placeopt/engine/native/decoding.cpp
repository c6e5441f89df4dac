#include <cmath>

#include "local_search.hpp"

namespace engine {

namespace {

// Marks from which on the times before a change are saved; on shorter orders, recomputing them is as fast.
constexpr std::size_t MARKS = 8;
// The memory balance is in parts per million.
constexpr double PARTS = 1e6;
constexpr Int UNLIMITED = INT64_MAX;
constexpr double INFINITE = std::numeric_limits<double>::infinity();

Int step_of(Int n) {
    Int shift = 0;
    for (Int rest = std::max(2 * n - 1, Int{15}); rest > 0; rest >>= 1) ++shift;
    return shift;
}

double share(Int part, Int all) { return static_cast<double>(part) / static_cast<double>(std::max(all, Int{1})); }

}  // namespace

LocalSearch::LocalSearch(const SearchProblem& problem, Int seed)
    : best_order(problem.n),
      best_home(problem.g),
      order(problem.n),
      home(problem.g),
      device(problem.n),
      ticks(problem.n),
      end(problem.n),
      delay(problem.e),
      arrive(problem.ports.any() ? problem.e : 0),
      problem_(problem),
      shift_(step_of(problem.m)),
      parts_((problem.n + (Int{1} << shift_) - 1) >> shift_),
      position_(problem.n),
      after_(problem.n),
      load_(problem.m),
      room_(problem.m),
      free_(problem.m),
      ports_(problem.ports.count()),
      left_(problem.budgets.left.begin(), problem.budgets.left.end()),
      set_up_(problem),
      usage_(problem.resources),
      usages_(usage_.any() ? parts_ : 0, usage_),
      old_usages_(usages_),
      least_(usages_.size()),
      old_least_(least_),
      marks_(parts_ + 1,
             {std::vector<Int>(problem.m), std::vector<Int>(problem.ports.any() ? problem.ports.count() : 0), set_up_}),
      old_marks_(marks_),
      latest_(parts_),
      late_(parts_),
      old_latest_(parts_),
      old_late_(parts_),
      old_end_(problem.n),
      stamp_(std::max({problem.n, problem.m, problem.g})),
      freed_(problem.peak ? problem.n : 0),
      release_(problem.peak ? problem.m : 0),
      random_(seed % (MODULUS - 1) + 1) {
    if (problem.ports.any() && std::any_of(problem.shared.begin(), problem.shared.end(), [](bool each) { return each; })) {
        owner_.assign(problem.n * problem.m, 0);
        written_.assign(problem.n * problem.m, NONE);
        sent_.assign(problem.n * problem.m, 0);
    }
}

void LocalSearch::load(Ints given_order, Ints given_home) {
    order.assign(given_order.begin(), given_order.end());
    home.assign(given_home.begin(), given_home.end());
    cost = evaluate_all();
    if (penalty == 0.0 && cost - guide < held) keep_best(cost - guide);
}

void LocalSearch::return_to_best() {
    if (std::isfinite(held)) load(std::vector<Int>(best_order), std::vector<Int>(best_home));
}

void LocalSearch::set_penalties(double late, double overfull) {
    problem_.weight[LATE] = late;
    problem_.weight[OVERFULL] = overfull;
    cost = decode(std::max(problem_.n - 1, Int{0}), INFINITE);
}

void LocalSearch::time_all() {
    const bool timed = problem_.timed;
    evaluate_all();
    if (timed) return;
    problem_.timed = true;
    decode(0, INFINITE);
    problem_.timed = timed;
}

double LocalSearch::evaluate_all() {
    recompute();
    return decode(0, INFINITE);
}

void LocalSearch::keep_best(double worth) {
    held = worth;
    news = true;
    best_order = order;
    best_home = home;
}

// The cost apart from times; sets the penalty for memory under the `sum` model, and that for budgets.
double LocalSearch::standing_cost() {
    Int overfull = 0, busiest = 0;
    double fullest = 0.0;
    for (Int d = 0; d < problem_.m; ++d) {
        busiest = std::max(busiest, load_[d]);
        if (problem_.capacity[d] == UNLIMITED) continue;
        overfull = add(overfull, std::max(-room_[d], Int{0}));
        fullest = std::max(fullest, share(subtract(problem_.capacity[d], room_[d]), problem_.capacity[d]));
    }
    double value = fixed_ + problem_.weight[LOAD] * static_cast<double>(busiest);
    if (!problem_.peak) value += problem_.weight[BALANCE] * PARTS * fullest;
    penalty = problem_.weight[OVERFULL] * static_cast<double>(overfull);
    double beyond = 0.0;
    for (std::size_t b = 0; b < left_.size(); ++b)
        if (left_[b] < 0) beyond -= problem_.budget_bytes[b] * static_cast<double>(left_[b]);
    overspent_ = problem_.weight[OVERFULL] * beyond;
    return value;
}

// Under `peak`, sets the penalty for memory and returns the cost of the memory balance. O(n log n).
//
// The bytes live on a device grow only when a task starts, and the tasks of a device start in the state's order, unless it
// runs several at once.
double LocalSearch::live_cost() {
    const Int n = problem_.n, m = problem_.m;
    std::vector<Int> by_start;
    if (problem_.resources.any() && std::any_of(device.begin(), device.end(), [&](Int d) { return problem_.parallel(d); })) {
        by_start = order;
        std::stable_sort(by_start.begin(), by_start.end(), [&](Int i, Int j) { return end[i] - ticks[i] < end[j] - ticks[j]; });
    }
    std::vector<Int> live(m), most(m);
    for (Int i = 0; i < n; ++i) {
        const Int d = device[i];
        live[d] = add(live[d], problem_.resident[i]);
        freed_[i] = end[i];
        for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) {
            const Int j = problem_.target[e], k = problem_.slot[e];
            const Int gone = device[j] == d ? end[j] : problem_.ports.any() ? arrive[k] : add(end[i], delay[k]);
            freed_[i] = std::max(freed_[i], gone);
        }
    }
    most = live;
    for (auto& queue : release_) queue = {};
    const auto queued_bytes = [&](Int item) { return item < 0 ? problem_.scratch[-1 - item] : problem_.output[item]; };
    for (const Int i : by_start.empty() ? order : by_start) {
        const Int d = device[i], start = end[i] - ticks[i];
        auto& queue = release_[d];
        for (; !queue.empty() && queue.top().key <= start; queue.pop()) live[d] -= queued_bytes(queue.top().item);
        if (freed_[i] > start && problem_.output[i] > 0) {
            queue.push({freed_[i], static_cast<std::int32_t>(i)});
            live[d] = add(live[d], problem_.output[i]);
        }
        most[d] = std::max(most[d], add(live[d], ticks[i] > 0 ? problem_.scratch[i] : 0));
        if (ticks[i] > 0 && problem_.scratch[i] > 0 && problem_.parallel(d)) {  // in use when the next task starts
            queue.push({end[i], static_cast<std::int32_t>(-1 - i)});
            live[d] = add(live[d], problem_.scratch[i]);
        }
    }
    Int overfull = 0;
    double fullest = 0.0;
    for (Int d = 0; d < m; ++d) {
        if (problem_.capacity[d] == UNLIMITED) continue;
        overfull = add(overfull, std::max(most[d] - problem_.capacity[d], Int{0}));
        fullest = std::max(fullest, share(most[d], problem_.capacity[d]));
    }
    penalty = problem_.weight[OVERFULL] * static_cast<double>(overfull);
    return problem_.weight[BALANCE] * PARTS * fullest;
}

// Books the transfer of in-edge k to device d for the task at position p, under ports; returns its arrival.
//
// A transfer booked for an earlier consumer serves this one, too, if the position of that one is still timed the same.
Int LocalSearch::booked(Int k, Int p, Int d) {
    const Int u = problem_.source[k], a = device[u];
    if (a == d) return end[u];
    const bool shared = problem_.shared[k];
    const Int at = u * problem_.m + d;
    if (shared && owner_[at] < p && written_[at] == marks_[owner_[at] >> shift_].counter) return sent_[at];
    const Int arrival = add(problem_.ports.book(ports_, a, d, end[u], delay[k]), delay[k]);
    if (shared) {
        owner_[at] = p;
        written_[at] = counter_;
        sent_[at] = arrival;
    }
    return arrival;
}

// Restores the times before the last evaluation of a change from position `first`; comes before `undo`.
//
// Under ports, on short orders and without saved times, it only makes the next evaluation begin at `first` or before.
void LocalSearch::rewind(Int first) {
    const Int n = problem_.n;
    first = std::min(first, begun_);
    if (problem_.ports.any() || latest_.size() < MARKS || valid_ < n) {
        valid_ = std::min(valid_, first);
        return;
    }
    const Int timed = std::min(timed_, n);
    Int c = first >> shift_;
    for (Int p = c << shift_; p < timed; ++p) end[order[p]] = old_end_[p];
    for (; c << shift_ < timed; ++c) {
        marks_[c] = old_marks_[c];
        latest_[c] = old_latest_[c];
        late_[c] = old_late_[c];
        if (usage_.any()) {
            usages_[c].swap_steps(old_usages_[c]);
            least_[c] = old_least_[c];
        }
    }
    if (timed_ > n) marks_[c] = old_marks_[c];
}

// The first tick at which the data and the device of a task from a mark on allow its start.
Int LocalSearch::least_later(Int part) const { return *std::min_element(least_.begin() + part, least_.end()); }

// The cost of the state after a change from position `begin` to `last_`; infinite if over `limit`. Then the times before
// the change are restored.
double LocalSearch::decode(Int begin, double limit) {
    return problem_.ruled() ? decode_with<false>(begin, limit) : decode_with<true>(begin, limit);
}

// `plain` is whether there are no rules but memory tiers.
template <bool plain>
double LocalSearch::decode_with(Int begin, double limit) {
    const Int n = problem_.n, m = problem_.m;
    guide = 0.0;
    timed_ = 0;
    double rest = standing_cost();
    const bool roomy = penalty == 0.0;
    if (!problem_.peak) rest += penalty;
    rest += overspent_;
    if (rest > limit || !problem_.timed) {
        penalty += overspent_;
        return rest > limit ? INFINITE : rest;
    }
    ++counter_;
    const double heavy = problem_.weight[MAKESPAN];
    const Int cut = heavy > 0 ? whole((limit - rest) / heavy) : INT64_MAX;
    const Int known = std::max(last_ + 1, known_);
    Int first = std::min(begin, valid_);
    const bool swaps = problem_.tiers.any(), ports = !plain && problem_.ports.any(), due = problem_.due,
               shared = !plain && usage_.any(), sets = !plain && set_up_.any();
    if (swaps)  // a device is busy until it has swapped: any change of that time begins before the first task
        for (Int d = 0; d < m; ++d)
            if (swapped(d) != marks_[0].free[d]) first = 0;
    begun_ = first;
    // Whether the times before the change are saved until the new ones join them again.
    const bool warm = !ports && latest_.size() >= MARKS && valid_ == n;
    const Int touched = last_;
    Int horizon = last_;
    bool joined = false;
    Int c = first >> shift_;
    free_ = marks_[c].free;
    if (swaps && c == 0)
        for (Int d = 0; d < m; ++d) free_[d] = swapped(d);
    if (ports) ports_ = marks_[c].ports;
    if (sets) set_up_ = marks_[c].set_up;
    if (shared && c > 0) usage_.copy_steps(usages_[c]);
    else if (shared) usage_.clear();
    for (; c << shift_ < n; ++c) {
        Mark& mark = marks_[c];
        if (warm) {
            joined = c << shift_ > horizon && free_ == mark.free && (!sets || set_up_ == mark.set_up) &&
                     (!shared || usage_.same_from(least_later(c), usages_[c]));
            if (joined) break;
            old_marks_[c] = mark;
            old_latest_[c] = latest_[c];
            old_late_[c] = late_[c];
            if (shared) {
                old_usages_[c].swap_steps(usages_[c]);
                old_least_[c] = least_[c];
            }
        }
        mark.free = free_;
        if (shared) usages_[c].copy_steps(usage_);
        if (ports) mark.ports = ports_;
        if (sets) mark.set_up = set_up_;
        mark.counter = counter_;
        Int latest = 0, late = 0, least = NEVER;
        for (Int p = c << shift_; p < std::min((c + 1) << shift_, n); ++p) {
            const Int i = order[p], d = device[i];
            Int t = std::max(free_[d], problem_.release[i]);
            if (ports) {
                for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k) {
                    arrive[k] = booked(k, p, d);
                    t = std::max(t, arrive[k]);
                }
            } else {
                for (Int k = problem_.in_start[i]; k < problem_.in_start[i + 1]; ++k)
                    t = std::max(t, add(end[problem_.source[k]], delay[k]));
            }
            const bool sets_up = sets && ticks[i] > 0 && problem_.sets_up(d);
            if (sets_up) t = std::max(t, set_up_.ready(problem_, d, i));
            const auto open = [&](Int tick) { return plain ? tick : problem_.open(d, tick, ticks[i]); };
            Usage::Spot spot{};
            if (shared) {
                least = std::min(least, t);
                spot = usage_.earliest(problem_.need(i, d), t, ticks[i], open);
                t = spot.tick;
            } else {
                t = open(t);
            }
            t = add(t, ticks[i]);
            if (warm) {
                old_end_[p] = end[i];
                if (t != end[i] || p <= touched)
                    for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e)
                        horizon = std::max(horizon, position_[problem_.target[e]]);
            }
            end[i] = t;
            if (plain || !problem_.parallel(d)) free_[d] = t;
            if (sets_up) set_up_.run(problem_, d, i, t);
            latest = std::max(latest, t);
            if (add(t, p >= known ? after_[i] : problem_.tail[i]) > cut) {
                timed_ = p + 1;
                rewind(first);
                return INFINITE;
            }
            if (shared) usage_.book(problem_.need(i, d), spot, ticks[i]);
            if (due && t > problem_.deadline[i]) late = add(late, t - problem_.deadline[i]);
        }
        latest_[c] = latest;
        late_[c] = late;
        if (shared) least_[c] = least;
    }
    timed_ = joined ? c << shift_ : n + 1;
    if (!joined) {
        old_marks_[parts_] = marks_[parts_];
        marks_[parts_].free = free_;
    }
    Int span = 0, late = 0, over = 0;
    for (Int part = 0; part < parts_; ++part) {
        span = std::max(span, latest_[part]);
        late = add(late, late_[part]);
    }
    for (const Int ends : marks_[parts_].free) over = add(over, std::max(ends - problem_.bound, Int{0}));
    guide = heavy * static_cast<double>(over) / static_cast<double>(std::max(m, Int{1}));
    if (problem_.peak) {
        if (!roomy || problem_.weight[BALANCE] > 0) rest += live_cost();
        else penalty = 0.0;
        rest += penalty;
    }
    penalty += overspent_;
    if (due) {
        penalty += problem_.weight[LATE] * static_cast<double>(late);
        rest += problem_.weight[LATE] * static_cast<double>(late);
    }
    const double value = rest + heavy * static_cast<double>(span) + guide;
    if (value > limit) {
        rewind(first);
        return INFINITE;
    }
    valid_ = n;
    return value;
}

// Computes `after_` for all tasks, from the last to the first; overwrites `free_`.
//
// A task is followed by its consumers and by the next task on its device, each with its own followers. Queues at ports and
// resources are ignored, so with these the result is a lower bound.
void LocalSearch::look_ahead() {
    std::fill(free_.begin(), free_.end(), 0);
    for (Int p = problem_.n; p-- > 0;) {
        const Int i = order[p], d = device[i];
        if (p < known_) {
            Int behind = std::max(problem_.tail[i], free_[d]);
            for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e) {
                const Int j = problem_.target[e];
                behind = std::max(behind, add(delay[problem_.slot[e]], ticks[j] + after_[j]));
            }
            after_[i] = behind;
        }
        if (!problem_.parallel(d)) free_[d] = add(ticks[i], after_[i]);
    }
    known_ = 0;
}

}  // namespace engine
