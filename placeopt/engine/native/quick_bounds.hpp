// Loops of the certified lower bounds. Every result is proved; where a loop is stopped, the result is weaker and still valid.
//
// Sums of ticks stay below 2^62: the arrays come from a problem, whose totals are at most 2^60 (placeopt.model.ranges), or
// are clipped.
#pragma once

#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

// The in-edges of n tasks, or in the opposite direction the out-edges: start[v]..start[v + 1] lead to v from `producer` (e,). Links between k classes of devices; durations, memory and edges as in placeopt.bounding.quick.classes.
struct ClassGraph {
    Ints order, start, producer;
    Ints latency, num, den;           // (k, k)
    std::span<const bool> linked;     // (k, k)
    Ints capacity;                    // (k,)
    Ints duration, busy;              // (n, k)
    std::span<const bool> allowed;    // (n, k)
    Ints group, group_memory;         // (n,), (g,)
    Ints payload;                     // (e,)
    std::span<const bool> together, apart;  // (e,)
};

// The heads (n, k) of placeopt.bounding.quick.paths, from release times (n,), NEVER_BOUND where not allowed. At most `most`
// edges of a set A(t) are followed, and `budget` edges in all. Tasks that can start nowhere get zeros.
constexpr Int NEVER_BOUND = Int{1} << 61;
std::vector<Int> earliest_heads(const ClassGraph& graph, Int most, Int budget, Ints release, Stop& stop);

// The largest scale (R + Q) + weight of {head >= R, tail >= Q} over all heads R and tails Q (n,). `by_tail` is the order of
// decreasing tails, `rank` the position of each task by increasing heads.
std::pair<Int, Int> best_window(Ints by_tail, Ints rank, Ints head, Ints tail, Ints weight, Int scale);

// The largest sum of durations, `count` smallest near ends and `count` smallest far ends, over the tasks with far >= level
// in the `order` of decreasing near: all prefixes with at least `count` tasks; -2^62 without such a prefix.
Int best_spread(Ints order, Ints near, Ints duration, Ints far, Int level, Int count);

// Energetic reasoning (placeopt.bounding.energetic): the largest a + q + L over all `starts` a and ascending `ends` q, given
// a makespan of at least `least`; or 0. Matrices are (n, k); `worth` is priced memory, `scale` the price of a tick on all
// devices, `memory_worth` the worth of all memory.
struct Priced {
    Ints head, duration, tail;
    std::span<const bool> allowed;
    Ints price, worth;
    Int scale, memory_worth;
};
Int best_interval(Ints starts, Ints ends, const Priced& tasks, Int least, Int too_long, Stop& stop);

}  // namespace engine
