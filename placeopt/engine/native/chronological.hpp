// A depth-first search for schedules of identical devices, in which tasks are appended by their starts.
//
// placeopt_solvers/exact/_chronological.py states the rules and proves them.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph.hpp"

namespace engine {

// Tasks on `devices` identical devices: edge e from task i, start[i] <= e < start[i + 1], to target[e] takes transfer[e] ticks
// between two of them.
struct IdenticalDevices {
    Int devices;
    Ints duration, start, target, transfer;
};

enum class Outcome { FOUND, NONE, LIMIT };

class Chronological {
public:
    static constexpr Int MOST_TASKS = 64;

    // `states` is the largest number of refuted states to remember.
    Chronological(const IdenticalDevices& given, Int states);

    // Looks for a schedule of at most `makespan` ticks, in at most `nodes` nodes. Refuted states are remembered: a further call
    // must not have a longer makespan than `makespan()`, that of the call before.
    Outcome search(Int makespan, Int nodes, Stop& stop);

    Int makespan() const { return makespan_; }

    std::vector<Int> begin, device;  // of each task, after FOUND
    Int visited = 0;                 // nodes so far

private:
    using Set = uint64_t;
    static constexpr Int MOST_UNITS = 1 << 12;  // up to which sums of durations are enumerated
    struct Choice {
        Int task, device, begin;
    };

    Outcome descend(Int last);
    bool hopeless(Int last);
    bool overfull(Int last);
    bool unshared(Ints open);
    bool leaves_room(const Choice& choice) const;
    bool same_device(Int p, Int q) const;
    std::vector<Choice> choices(Int last) const;
    std::string key() const;
    Int clipped(Int v, Int p) const { return std::max(free_[p], arrival_[v * m_ + p]); }
    void find_tails();
    void find_twins();

    Int n_, m_;
    std::vector<Int> duration_, start_, target_, transfer_;
    std::vector<Int> tail_;                // ticks from a task's start to the end of its descendants
    std::vector<Set> before_;              // predecessors, and twins that start first
    std::vector<Set> parents_;             // predecessors
    std::vector<Int> order_;               // topological
    Set left_ = 0;                         // tasks that are not appended
    std::vector<Int> free_, arrival_;      // of each device; of the data of appended predecessors, for each task and device
    std::vector<Int> head_, by_deadline_;  // of tasks that are not appended
    Int unit_ = 0;                         // the greatest common divisor of the durations
    std::vector<Set> sums_;                // bit k: whether some durations add up to k units
    Int makespan_ = NEVER / MOST_TASKS, nodes_ = 0, states_;
    Stop* stop_ = nullptr;
    std::unordered_map<std::string, Int> refuted_;  // the earliest last start of each refuted state
};

}  // namespace engine
