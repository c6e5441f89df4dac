// Destructive bounds: start windows and clusters of tasks, propagated until a makespan is refuted.
// placeopt.bounding.destructive has the definitions, the rules and their proof.
//
// No sum of ticks overflows: makespans, heads, tails and transfers are at most 2^61, durations 2^60. The sums of durations
// and of memory over all tasks fit in 63 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "quick_bounds.hpp"

namespace engine {

// Tasks and edges by k classes of devices.
struct ClassTimes {
    Ints head, tail, duration;  // (n, k) ticks; heads are NEVER_BOUND where the task does not run
    Ints move;                  // (e, k, k) ticks from a device of the first class to another device of the second
    Ints capacity, memory;      // (k,), (n,) bytes
    Ints separation;            // (p, 2) tasks that do not share a device
};

class Propagation {
public:
    // A probe takes about `probe` steps, and changes at most `changes` values; what follows from a decision takes about
    // `whole` steps.
    struct Limits {
        Int probe, whole, changes;
    };

    Propagation(const Problem& problem, const ClassTimes& times);

    // Whether the rules refute the makespan: alone if `most` is 0, else also by assumptions about single edges, in up to
    // about that many cases. If not, the arrays hold for every schedule within the makespan. Throws Stopped.
    bool refutes(Int makespan, Int most, const Limits& limits, Stop& stop);

    std::vector<Int> start, latest;  // (n, k) ticks between which the task starts on the class; NEVER_BOUND if it does not run there
    std::vector<Int> cut;            // (e,) 1 if the ends of the edge run on different devices
    std::vector<Int> cluster;        // (n,) tasks with the same number run on one device
    Int cases = 0;                   // the cases of the last makespan

private:
    // The colocation groups: the first task of each, a circular list of its tasks, and their number and bytes, by first task.
    struct Clusters {
        std::vector<Int> first, next, size, held;
    };
    struct Change {
        Int* cell;
        Int old;
    };

    Int& start_on(Int v, Int c) { return start[v * k_ + c]; }
    Int& latest_on(Int v, Int c) { return latest[v * k_ + c]; }
    Int ticks(Int v, Int c) const { return times_.duration[v * k_ + c]; }
    Int moving(Int e, Int a, Int c) const { return times_.move[(e * k_ + a) * k_ + c]; }
    bool closed(Int v, Int c) const { return start[v * k_ + c] >= NEVER_BOUND; }
    // Whether v is a descendant of u; false in large graphs.
    bool descends(Int v, Int u) const { return words_ && before_[v * words_ + u / 64] >> (u % 64) & 1; }
    bool decided(Int e) const { return cut[e] || cluster[problem_.edge_source[e]] == cluster[problem_.edge_target[e]]; }
    // Whether a condition holds for all tasks of v's cluster, from v on.
    template <class Condition>
    bool all_members(Int v, Condition&& condition) const {
        Int x = v;
        do {
            if (!condition(x)) return false;
            x = next_[x];
        } while (x != v);
        return true;
    }
    void count(Int steps) {
        steps_ += steps;
        stop_->poll(steps);
    }

    // Changes a value; false if there is no room to record the old one.
    bool change(Int& cell, Int value);
    void enqueue(Int v);
    void raise_start(Int v, Int c, Int t);
    void lower_latest(Int v, Int c, Int t);
    void close(Int v, Int c);
    // Whether i and j can run one after the other on a device of class c.
    bool disjoint(Int i, Int j, Int c) const;
    // Whether a separation or a cut edge keeps task i apart from a cluster.
    bool parted(Int i, Int from) const;
    // Whether the clusters of u and w may run on one device, as far as their pairs show.
    bool compatible(Int u, Int w);
    // Lets the clusters of u and w, which differ, run on one device, unless there is no room to record that.
    void merge(Int u, Int w);
    // Lets the ends of an edge run on different devices.
    void separate(Int e);
    // Finds the tasks that precede each task.
    void find_ancestors();
    // Orders v and the other tasks of its cluster on their device.
    void order_members(Int v);
    // Whether the members that must run between v's earliest start and the latest end of a member take too long.
    bool overfull(Int v, Int c);
    // The earliest arrival of an edge's data on class c from another device.
    Int arrival(Int e, Int c) const;
    // Applies the rules of an edge, or all rules to a task; false if the makespan is refuted.
    bool relate(Int e);
    bool examine(Int v);
    // Applies the rules to all queued tasks, and stops after about `limit` steps; false if the makespan is refuted.
    bool propagate(Int limit);
    // Lets the ends of an edge run apart, or together; false if they cannot.
    bool assume(Int e, bool apart);
    // How many values change if the ends of an edge run apart, or together; NONE if they cannot. Changes nothing.
    Int consequences(Int e, bool apart);
    void undo(Int changes);
    // Probes an undecided edge.
    enum class Probe { undecided, decided, refuted };
    Probe probe(Int e);
    // The undecided edges, those with the least slack for the transfer first.
    std::vector<Int> undecided();
    // Whether the rules refute all cases; their number grows up to about `most`.
    bool refuted(Int most);
    void reset(Int makespan);

    const Problem& problem_;
    const ClassTimes times_;
    const Int k_;
    std::vector<Int> apart_start_, apart_;  // task v must be apart from apart_[apart_start_[v]..apart_start_[v + 1]]
    Clusters groups_;
    std::vector<Int> next_, size_, held_;   // of the present clusters
    Int words_ = 0;
    std::vector<std::uint64_t> before_;     // (n, words_) the ancestors of each task, as bits; empty for large graphs
    std::vector<std::pair<Int, Int>> earlier_, later_;  // of a task: members of its cluster by start or end, and ticks
    std::vector<Int> effect_;               // (e,) what the assumptions about an edge change, at its last probe
    std::deque<Int> queue_;
    std::vector<char> queued_;
    std::vector<Change> trail_;             // the changes of cases and of a probe, `room_` at most
    Int room_ = 0;
    bool recording_ = false;
    Int steps_ = 0;
    Limits limits_{};
    Stop* stop_ = nullptr;
};

}  // namespace engine
