// The core of the local searches: a topological order of the tasks and a device for each group, evaluated incrementally.
//
// The schedule of a state starts every task, in its order, as soon as its device, its release, its data and its resources
// allow. Under ports, the transfers to a task are booked at its turn. A task that waits for a resource may start after
// tasks of other devices that follow it in the order: a serial schedule generation scheme. Violations of memory, budgets
// and deadlines are penalised.
//
// Evaluation stops as soon as a task is so late that the cost exceeds a limit. After the last position that a change
// affects, the remaining ticks are known exactly (`look_ahead`), and most evaluations stop there. Times before the change
// are kept; devices, ports and resources resume from the mark before it. After the change, without ports, timing ends at
// the first mark where all devices are free at the same ticks as before, no arrival has changed, and as much of each
// resource is in use as before from the first tick on at which a later task could start.
#pragma once

#include <array>
#include <cmath>
#include <limits>

#include "heap.hpp"
#include "memory.hpp"
#include "stop.hpp"
#include "usage.hpp"

namespace engine {

using Floats = std::span<const double>;
using Flags = std::span<const bool>;

// The greatest whole number that is not above a limit.
inline Int whole(double limit) {
    constexpr double most = 9.2e18;
    return limit >= most ? INT64_MAX : limit > -most ? static_cast<Int>(std::floor(limit)) : INT64_MIN;
}

// What a search reads of a problem; n tasks, m devices, e edges, g groups, k device classes.
struct SearchProblem : ExecutionRules {
    Int n = 0, m = 0, e = 0, g = 0, classes = 0;
    Ints group, member_start, member;             // (n,), (g + 1,), (n,) the tasks of each group
    Ints duration, release, deadline, tail;       // (n, m), (n,), (n,), (n,) least ticks after each task's end
    Ints in_start, source, payload;               // (n + 1,), (e,) producer and bytes of each in-edge
    Flags shared;                                 // (e,) whether an in-edge carries its producer's output
    Ints out_start, target, slot;                 // (n + 1,), (e,) consumer of each out-edge, and its index among in-edges
    Ints latency, num, den, energy_num, energy_den;  // (m, m)
    Ints label, kind, table;                      // (m,), (e,), (p, k, k) ticks of each payload between classes, or empty
    Flags feasible;                               // (g, m)
    Ints memory, apart_start, apart;              // (g,), (g + 1,)
    Ints capacity, resident, output, scratch;     // (m,), (n,)
    Budgets budgets;                              // what groups use of them, where none has a home
    Floats budget_bytes;                          // (b,) the bytes above a capacity that a unit above a budget counts as
    Floats charge;                                // (n, m) cost of a task on a device, apart from times
    std::array<double, 5> weight{};               // see Weight
    std::array<double, 3> price{};                // of a tick, a byte and a nanojoule of transfers
    Int bound = 0;                                // a lower bound of the makespan
    bool due = false, peak = false, timed = false, priced = false;

    Int ticks(Int i, Int d) const { return duration[i * m + d]; }
    Int need(Int i, Int d) const { return resources.need[i * m + d]; }
    // The ticks of in-edge k from device a to device b.
    Int moving(Int k, Int a, Int b) const {
        if (a == b) return 0;
        if (!table.empty()) return table[(kind[k] * classes + label[a]) * classes + label[b]];
        return add(latency[a * m + b], ratio_ceil(payload[k], num[a * m + b], den[a * m + b]));
    }
    // A random producer or consumer of task i, NONE if it has none; `draw` returns a number below its argument.
    template <class Draw>
    Int neighbour(Int i, Draw&& draw) const {
        const Int sources = in_start[i + 1] - in_start[i], targets = out_start[i + 1] - out_start[i];
        if (sources + targets == 0) return NONE;
        const Int at = draw(sources + targets);
        return at < sources ? source[in_start[i] + at] : target[out_start[i] + at - sources];
    }
    // Sets the ticks of the transfers to and from task i, which is now on its device.
    void delays_around(Int i, const std::vector<Int>& device, std::vector<Int>& delay) const {
        for (Int k = in_start[i]; k < in_start[i + 1]; ++k) delay[k] = moving(k, device[source[k]], device[i]);
        for (Int e = out_start[i]; e < out_start[i + 1]; ++e) delay[slot[e]] = moving(slot[e], device[i], device[target[e]]);
    }
};

enum Weight { MAKESPAN, LOAD, BALANCE, LATE, OVERFULL };

class LocalSearch {
public:
    LocalSearch(const SearchProblem& problem, Int seed);

    // Continues from an order and homes.
    void load(Ints order, Ints home);
    void return_to_best();
    // Changes the penalties of a tick of lateness and of a byte above the capacity.
    void set_penalties(double late, double overfull);

    // Tries the moves begin..end of a walk of `rounds` moves, and returns how many were evaluated. Temperatures fall from
    // `hot` to `cold` along it. A temperature of 0 accepts moves that do not increase the cost; an infinite one accepts
    // every move. `shares` are the cumulative percentages of the kinds of moves. A better feasible state becomes the best;
    // at a cost of `enough` the walk ends.
    Int walk(Ints shares, Int begin, Int end, Int rounds, double hot, double cold, double enough, Stop& stop);
    // Rounds of tabu search (F. Glover 1989), numbered from `begin`: each makes the best of some moves, even if it is worse,
    // and forbids undoing it for `tenure` to 2 `tenure` rounds. Returns how many states were evaluated.
    Int tabu(Ints shares, Int begin, Int rounds, Int candidates, Int tenure, double enough, Stop& stop);
    // Times all tasks, also where the cost does not depend on times.
    void time_all();

    double cost = 0.0;     // of the state
    double guide = 0.0;    // part of the last evaluation that only guides the search
    double penalty = 0.0;  // part that penalises violated constraints
    double held = std::numeric_limits<double>::infinity();  // cost of the best feasible state
    bool news = false;     // whether a better best state was found
    std::vector<Int> best_order, best_home, order, home;
    std::vector<Int> device, ticks, end;  // (n,)
    std::vector<Int> delay, arrive;       // (e,) of in-edges; `arrive` with ports only

    // Single steps, for tests: a proposal, its evaluation, and what follows it.
    struct Steps;

private:
    struct Moved {
        Int group, origin;
    };

    // Evaluation, in decoding.cpp.
    double evaluate_all();
    double decode(Int begin, double limit);
    template <bool plain>
    double decode_with(Int begin, double limit);
    double standing_cost();
    double live_cost();
    void spend(Int g, Int d, Int sign);
    Int least_later(Int part) const;
    // The tick at which a device has swapped, with memory tiers.
    Int swapped(Int d) const { return problem_.tiers.swap_time(d, subtract(problem_.capacity[d], room_[d])); }
    Int booked(Int k, Int p, Int d);
    void rewind(Int first);
    void look_ahead();
    void keep_best(double worth);
    // Changes, in moves.cpp.
    double sending_price(Int u);
    double touched_price(Int k);
    Int relocate(Int k, Int to);
    bool allowed(Int k, Int to) const;
    Int rotate(Int taken, Int put);
    void recompute();
    void accept() { known_ = std::max(known_, last_ + 1); }
    // Proposals, in moves.cpp: each changes the state and returns the first position whose times change, n if none.
    Int draw(Int below) {
        random_ = next_random(random_);
        return random_ % below;
    }
    Int pick();
    Int random_neighbour(Int i) {
        return problem_.neighbour(i, [this](Int below) { return draw(below); });
    }
    Int random_other_device(Int i);
    Int put(Int k, Int to);
    Int take(Int k, Int to);
    Int shift(Int i);
    void undo();
    Int propose(Int kind);
    Int propose_random(Ints shares);
    Int propose_swap(Int i, Int k);
    Int propose_run(Int i, Int to);
    Int propose_cluster(Int k, Int here, Int to);
    Int propose_exchange(Int i, Int to);
    void find_critical();
    bool forbidden(const std::vector<Int>& until, const std::vector<Int>& still, Int now) const;

    // What devices and ports have reached before every 2^shift-th position and after the last.
    struct Mark {
        std::vector<Int> free, ports;
        SetUp set_up;
        Int counter = 0;  // of the evaluation that timed the positions from there to the next mark
    };

    SearchProblem problem_;
    const Int shift_;      // logarithm to base 2 of the positions between two marks
    const Int parts_;      // intervals between marks
    std::vector<Int> position_, after_;  // (n,); `after_` from position known_ on: least ticks from a task's end to the end
    std::vector<Int> load_, room_, free_, ports_;
    std::vector<Int> left_;                    // (b,) what is left of budgets
    SetUp set_up_;
    Usage usage_;
    std::vector<Usage> usages_, old_usages_;   // with resources: what is in use at each mark
    std::vector<Int> least_, old_least_;       // with resources: the first tick at which the data and the device of a task
                                               // between marks allow its start
    std::vector<Mark> marks_, old_marks_;
    std::vector<Int> latest_, late_, old_latest_, old_late_;  // the latest end and the lateness between marks
    std::vector<Int> old_end_;                                // ends by position that the last evaluation overwrote
    std::vector<Int> owner_, written_, sent_;  // (n, m) shared outputs under ports: the position of the consumer for which it
                                               // was sent, the evaluation in which, and its arrival
    std::vector<Int> stamp_;                   // marks of visited items
    std::vector<Moved> moved_;                 // groups that the last proposal moved
    std::vector<Int> critical_;                // tasks known to be critical
    std::vector<Int> freed_;                   // (n,) under `peak`: when each output is released
    std::vector<Heap> release_;                // (m,) scratch: outputs by release
    double fixed_ = 0.0;                       // part of the cost apart from times
    double overspent_ = 0.0;                   // part that penalises budgets
    double proposed_ = 0.0;                    // the same before the last single step
    Int valid_ = 0;     // first position whose times are not those of the state
    Int known_ = 0;     // first position from which on `after_` is valid
    Int last_ = 0;      // last position that the last proposal changed
    Int timed_ = 0;     // position at which the last evaluation stopped timing tasks, n + 1 if it reached the end
    Int begun_ = 0;     // position at which it began
    Int counter_ = 0;   // number of the evaluation
    Int random_;
    Int taken_ = 0, put_ = NONE;  // positions between which the last proposal moved a task; NONE without
    Int accepted_ = 0;            // moves since the walk began
    std::vector<Int> until_, still_;  // (g, m), (n,) tabu: rounds until which groups and tasks must not move
};

}  // namespace engine
