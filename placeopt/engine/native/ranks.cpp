// Ranks of tasks and orders by rank, which do not depend on the schedule. placeopt/model/levels.py and
// placeopt_solvers/_constructive/priorities.py state the definitions and the papers.
#include <queue>

#include "algorithms.hpp"

namespace engine {

// Raises `before` (n,) to the longest path that ends just before each task, over `work` (n,) and `transfer` (e,); with
// `backwards`, the longest path that begins just after it.
void longest_paths(const Problem& problem, Floats work, Floats transfer, bool backwards, std::span<double> before) {
    if (backwards) {
        for (auto at = problem.order.rbegin(); at != problem.order.rend(); ++at) {
            const double length = before[*at] + work[*at];
            for (Int r = problem.in_start[*at]; r < problem.in_start[*at + 1]; ++r) {
                double& other = before[problem.in_source[r]];
                other = std::max(other, length + transfer[problem.in_edge[r]]);
            }
        }
    } else {
        for (const Int i : problem.order) {
            const double length = before[i] + work[i];
            for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e) {
                double& other = before[problem.edge_target[e]];
                other = std::max(other, length + transfer[e]);
            }
        }
    }
}

// For each task the number of tasks of equal rank on a path to it, at most.
std::vector<Int> tied_depths(const Problem& problem, Floats rank) {
    std::vector<Int> depth(problem.n, 0);
    for (const Int i : problem.order)
        for (Int k = problem.out_start[i]; k < problem.out_start[i + 1]; ++k) {
            const Int j = problem.edge_target[k];
            if (rank[j] == rank[i]) depth[j] = std::max(depth[j], depth[i] + 1);
        }
    return depth;
}

// The tasks in the order in which the ready task with the lowest `rank` (n,) comes next; `preference` (n,) are the
// tasks by rank.
std::vector<Int> highest_first(const Problem& problem, Ints preference, Ints rank) {
    std::vector<Int> order, missing(problem.n);
    order.reserve(problem.n);
    std::priority_queue<Int, std::vector<Int>, std::greater<>> ready;
    for (Int i = 0; i < problem.n; ++i) {
        missing[i] = problem.in_start[i + 1] - problem.in_start[i];
        if (missing[i] == 0) ready.push(rank[i]);
    }
    while (!ready.empty()) {
        const Int i = preference[ready.top()];
        ready.pop();
        order.push_back(i);
        for (Int k = problem.out_start[i]; k < problem.out_start[i + 1]; ++k) {
            const Int j = problem.edge_target[k];
            if (--missing[j] == 0) ready.push(rank[j]);
        }
    }
    return order;
}

// The optimistic cost table of PEFT (n, m): H. Arabnejad, J. G. Barbosa, IEEE TPDS 2014, doi:10.1109/TPDS.2013.57,
// section 4. `transfer` (e,) are the mean ticks of edges, `feasible` (n, m) the devices of each task.
std::vector<Int> optimistic_costs(const Problem& problem, std::span<const bool> feasible, Ints transfer, Stop& stop) {
    const Int m = problem.m;
    std::vector<Int> table(problem.n * m, 0), own(m);
    for (auto at = problem.order.rbegin(); at != problem.order.rend(); ++at) {
        const Int j = *at;
        if (problem.in_start[j] == problem.in_start[j + 1]) continue;
        stop.poll(m * (1 + problem.in_start[j + 1] - problem.in_start[j]));
        // The least time from the start of j on; a task without any device does not count.
        Int least = NEVER;
        for (Int w = 0; w < m; ++w) {
            own[w] = feasible[j * m + w] ? add(table[j * m + w], problem.work(j, w)) : NEVER;
            least = std::min(least, own[w]);
        }
        if (least == NEVER) continue;
        for (Int r = problem.in_start[j]; r < problem.in_start[j + 1]; ++r) {
            const Int moved = add(least, transfer[problem.in_edge[r]]);
            Int* costs = &table[problem.in_source[r] * m];
            for (Int k = 0; k < m; ++k) costs[k] = std::max(costs[k], std::min(moved, own[k]));
        }
    }
    return table;
}

// The tasks of the path from `first` along the out-edges with the largest `behind` (e,), the longest path from there.
std::vector<Int> longest_path(const Problem& problem, Int first, Floats behind) {
    std::vector<Int> path{first};
    while (problem.out_start[path.back()] < problem.out_start[path.back() + 1]) {
        Int best = problem.out_start[path.back()];
        for (Int k = best + 1; k < problem.out_start[path.back() + 1]; ++k)
            if (behind[k] > behind[best]) best = k;
        path.push_back(problem.edge_target[best]);
    }
    return path;
}

}  // namespace engine
