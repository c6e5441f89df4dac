// Graphs as plain arrays, also before there is a problem. The successors of node i are target[start[i]..start[i + 1]].
#pragma once

#include <numeric>
#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

// A topological order; shorter than the graph if there is a cycle. Kahn's algorithm, first in first out: sources by index,
// then nodes as they become ready.
std::vector<Int> topological_order(Ints start, Ints target);
// The topological order in which the task that became ready last comes first. Tasks that become ready together are ordered
// as in `preference`, which lists all tasks.
std::vector<Int> last_ready_first(const Problem& problem, Ints preference);
// The smallest member of the component of each node, for edges between left[k] and right[k].
std::vector<Int> components(Ints left, Ints right, Int nodes);
// Labels that two nodes share if and only if they have the same set of predecessors.
std::vector<Int> siblings(Ints start, Ints target);
// The latest ends of tasks with durations of at least `least` that meet the deadlines `end`.
std::vector<Int> latest_ends(const Problem& problem, Ints least, Ints end);

// Raises `before` to the longest path that ends just before each node, over the nodes' `work` and the edges' `transfer`,
// which may be empty for none. `order` is topological.
template <class T>
void raise_paths(Ints order, Ints start, Ints target, std::span<const T> work, std::span<const T> transfer, std::span<T> before) {
    const auto plus = [](T a, T b) {
        if constexpr (std::is_same_v<T, Int>) return add(a, b);
        else return a + b;
    };
    for (const Int i : order) {
        const T length = plus(before[i], work[i]);
        for (Int e = start[i]; e < start[i + 1]; ++e)
            before[target[e]] = std::max(before[target[e]], transfer.empty() ? length : plus(length, transfer[e]));
    }
}

// The edges that paths over other remaining edges imply; placeopt.passes.dominated_edges states the rule.
struct Implied {
    Ints level;                       // (n,) of each task: the edges on the longest path to it
    Ints required;                    // (e,) the payload that a covering part must carry, or -1 for any
    Ints covers;                      // (e,) the payload that an edge counts for in such a part
    std::span<const bool> removable;  // (e,)
    bool triangle;                    // whether the links keep the triangle inequality
    Int budget;                       // edges followed for each edge
};
std::vector<char> not_implied(const Problem& problem, const Implied& rule, Stop& stop);

}  // namespace engine
