// List scheduling in a given order by a simple measure of devices: MCT, MET, OLB and their relatives.
//
// T. D. Braun et al., Journal of Parallel and Distributed Computing 2001, doi:10.1006/jpdc.2000.1714, section 3. Each
// task goes to the device with the least measure: its end there (minimum completion time), its duration there (minimum
// execution time), the time at which the device is free (opportunistic load balancing), or the device's index.
#include "algorithms.hpp"

namespace engine {

Int list_tasks(Line& line, Ints sequence, Measure measure, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        const Int m = problem.m;
        for (const Int i : sequence) {
            stop.poll(m * (1 + problem.in_start[i + 1] - problem.in_start[i]));
            const Int k = problem.group[i];
            Int best = line.home[k];
            Slot slot{0, NONE};
            if (best >= 0) {
                slot = timeline.slot(i, best, timeline.ready_time(i, best));
            } else {
                if (measure == Measure::end) timeline.compute_ready(i);
                Int least = NEVER;
                for (Int d = 0; d < m; ++d) {
                    Int worth = d;
                    Slot found{0, NONE};
                    if (measure == Measure::end) {
                        const Int work = problem.work(i, d);
                        if (work >= least - line.ready[d]) continue;
                        found = timeline.slot(i, d, line.ready[d]);
                        worth = add(found.start, work);
                    } else if (measure == Measure::work) {
                        worth = problem.work(i, d);
                    } else if (measure == Measure::idle) {
                        worth = line.free[d];
                    }
                    if (worth < least && timeline.can_host(k, d)) {
                        best = d;
                        least = worth;
                        slot = found;
                    }
                }
                if (best < 0) return i;
                if (measure != Measure::end) slot = timeline.slot(i, best, timeline.ready_time(i, best));
            }
            timeline.occupy(i, best, slot);
        }
        return NONE;
    });
}

}  // namespace engine
