// FCP: list scheduling with two candidate devices for each task (Radulescu and van Gemund 1999);
// placeopt_solvers.ready_lists.fcp describes it.
#include "pairs.hpp"
#include "ready_lists.hpp"

namespace engine {

// A task without a device does not end the loop: all tasks that do not depend on it are placed.
Int place_on_two(Line& line, Ints sequence, Ints detour, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        const auto is_ready = [&](Int i) {
            for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r)
                if (line.device[problem.in_source[r]] == NONE) return false;
            return true;
        };
        const auto start_on = [&](Int i, Int d) { return std::max(timeline.ready_time(i, d), line.free[d]); };
        Int stuck = NONE;
        for (const Int i : sequence) {
            stop.poll(problem.m + 4 * (problem.in_start[i + 1] - problem.in_start[i]));
            if (stuck != NONE && !is_ready(i)) continue;
            const Int k = problem.group[i], home = line.home[k];
            if (home >= 0) {
                timeline.append(i, home, start_on(i, home));
                continue;
            }
            Int best = first_idle(timeline, detour, i);
            if (best < 0) {
                stuck = stuck == NONE ? i : std::min(stuck, i);
                continue;
            }
            Int start = start_on(i, best);
            if (const Int d = last_message(timeline, i).device; d >= 0 && d != best && timeline.can_host(k, d)) {
                const Int there = start_on(i, d);
                if (add(there, problem.work(i, d)) <= add(start, problem.work(i, best))) {
                    best = d;
                    start = there;
                }
            }
            timeline.append(i, best, start);
        }
        return stuck;
    });
}

}  // namespace engine
