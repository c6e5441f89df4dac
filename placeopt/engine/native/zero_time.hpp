// Zero-time tasks that another task represents; placeopt.passes.zero_time has the rules and the proofs.
#pragma once

#include <vector>

#include "problem.hpp"

namespace engine {

// What the rules ask of the tasks (n,), and change.
struct ZeroTime {
    std::span<const bool> candidate;
    std::span<const bool> free;  // whether the task leaves no trace
    Ints least;                  // least duration
    std::vector<Int> release, deadline;
    std::vector<Int> representative;  // the task itself at first; -1 for tasks that are removed
};

// Rules 1 and 3 (no producers), producers first; `sharing` (n,) is whether the output of a task is shared.
void join_producers(const Problem& problem, ZeroTime& tasks, std::vector<bool> sharing);
// Rules 2 and 3 (no consumers), consumers first.
void join_consumers(const Problem& problem, ZeroTime& tasks);

// Groups of zero-time tasks that move into a neighbour's group.
struct Relays {
    std::vector<Int> group;       // (n,)
    std::vector<Int> size;        // (g,)
    std::vector<Int> when;        // (n,) 1: moved, runs when its last producer ends; 2: when its first consumer starts; else 0
};
// `allowed` (g, m) are the devices of groups; `moves_free` is whether transfers neither cost nor contend.
void join_neighbours(const Problem& problem, const ZeroTime& tasks, std::span<const bool> allowed, bool moves_free, Relays& relays);

}  // namespace engine
