// ETF, m-ETF and min-min: the best pair of a ready task and a device comes next. The solvers describe their papers;
// `pairs.hpp` describes the queue.
#include "pairs.hpp"
#include "ready_lists.hpp"

namespace engine {

Int place_pairs(Line& line, Ints sequence, Ints work, bool batches, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        Pairs pairs(timeline, sequence, work, stop);
        std::vector<Int> missing = count_producers(problem), waiting;
        for (Int i = 0; i < problem.n; ++i)
            if (missing[i] == 0) pairs.enqueue(i);
        while (true) {
            const Int d = pairs.best_device();
            if (d < 0) {
                if (waiting.empty()) return first_unplaced(line, missing);
                for (const Int i : waiting) pairs.enqueue(i);
                waiting.clear();
                continue;
            }
            const Int i = pairs.head[d];
            if (!line.closed.empty() && !timeline.can_run(i, d)) {
                line.closed[d] = true;
                continue;
            }
            const Int free = line.free[d];
            const Slot slot = timeline.slot(i, d, pairs.worth[d] - pairs.work(i, d));
            timeline.occupy(i, d, slot);
            if (line.insertion && slot.start > free) pairs.reconsider(d, free, slot.start);
            pairs.refresh(d);
            for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e) {
                const Int j = problem.edge_target[e];
                if (--missing[j] > 0) continue;
                if (batches) waiting.push_back(j);
                else pairs.enqueue(j);
            }
        }
    });
}

}  // namespace engine
