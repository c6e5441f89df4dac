// FLB: fast load balancing, the better of two candidate pairs (Radulescu and van Gemund 1999);
// placeopt_solvers.ready_lists.flb describes it. A task that lost its EP type is queued again if its group then gets a
// home, which may be the same device.
#include "pairs.hpp"
#include "ready_lists.hpp"

namespace engine {

Int place_by_type(Line& line, Ints sequence, Ints detour, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        Pairs pairs(timeline, sequence, detour, stop);
        std::vector<Int> missing = count_producers(problem);
        // The EP-type tasks of each device by LMT, to find those that lose that type as it stays busy.
        std::vector<Heap> enabled(problem.m);
        // Queues a ready task for its home, for its enabling device if it is of EP type, or in `loose`.
        const auto sort_in = [&](Int i) {
            stop.poll(8 * (2 + problem.in_start[i + 1] - problem.in_start[i]));
            const Int k = problem.group[i], home = line.home[k];
            if (home >= 0) {
                pairs.enqueue_on(i, home, timeline.ready_time(i, home));
                return;
            }
            const auto [arrival, d] = last_message(timeline, i);
            pairs.last[i] = arrival;
            if (d >= 0 && arrival >= line.free[d] && timeline.can_host(k, d)) {
                pairs.enqueue_on(i, d, timeline.ready_time(i, d));
                enabled[d].push(pairs.entry(arrival, i));
            } else {
                pairs.loosen(i);
            }
        };
        for (Int i = 0; i < problem.n; ++i)
            if (missing[i] == 0) sort_in(i);
        while (true) {
            Int d = pairs.best_device(), i = NONE, worth = NEVER;
            if (d >= 0) {
                i = pairs.head[d];
                worth = pairs.worth[d];
            }
            if (!pairs.loose.empty()) {
                const Int j = sequence[pairs.loose.top().item];
                Int idle = line.home[problem.group[j]];
                if (line.device[j] == NONE && idle < 0) {
                    idle = first_idle(timeline, detour, j);
                    if (idle >= 0) {
                        const Int start = std::max(timeline.ready_time(j, idle), line.free[idle]);
                        const Int there = add(start, pairs.work(j, idle));
                        if (there <= worth) {
                            i = j;
                            d = idle;
                            worth = there;
                        }
                    }
                } else {
                    if (line.device[j] == NONE) pairs.enqueue_on(j, idle, timeline.ready_time(j, idle));
                    idle = NONE;
                }
                if (idle < 0 || i == j) pairs.loose.pop();
                if (idle < 0) continue;
            }
            if (d < 0) return first_unplaced(line, missing);
            timeline.append(i, d, worth - pairs.work(i, d));
            pairs.refresh(d);
            for (auto& queue = enabled[d]; !queue.empty() && queue.top().key < line.free[d]; queue.pop())
                pairs.loosen(sequence[queue.top().item]);
            for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e)
                if (const Int j = problem.edge_target[e]; --missing[j] == 0) sort_in(j);
        }
    });
}

}  // namespace engine
