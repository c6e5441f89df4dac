// Lookahead HEFT: each task on the device that lets the last of its consumers end first.
//
// L. F. Bittencourt, R. Sakellariou, E. R. M. Madeira, Euromicro PDP 2010, doi:10.1109/PDP.2010.56; the departures are
// in placeopt_solvers/list_scheduling/lookahead_heft.py.
#include "algorithms.hpp"

namespace engine {

namespace {

// The earliest end of the consumer of edge e if its producer i ends on device a at `end`; NEVER if no device can take
// it. The search stops at any end up to `enough`, which need not be the earliest. `arrived` (n, m) is the tick at which
// the data of all placed producers is on each device.
template <class T>
Int first_end(T& timeline, Int i, Int e, Int a, Int end, const std::vector<Int>& arrived, Int enough) {
    const Problem& problem = timeline.problem;
    const Int j = problem.edge_target[e], k = problem.group[j], m = problem.m;
    const Int home = k == problem.group[i] ? a : timeline.line.home[k];
    Int first = NEVER;
    for (Int d = 0; d < m; ++d) {
        if (home >= 0 ? d != home : !timeline.can_host(k, d)) continue;
        const Int there = d == a ? end : add(end, problem.transfer(problem.payload[e], a, d));
        const Int ready = std::max(there, arrived[j * m + d]), work = problem.work(j, d);
        if (add(ready, work) >= first) continue;
        const Int found = add(timeline.earliest(j, d, ready).start, work);
        if (found < first) {
            first = found;
            if (first <= enough) break;
        }
    }
    return first;
}

}  // namespace

Int look_ahead(Line& line, Ints sequence, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        const Int m = problem.m;
        std::vector<Int> arrived(problem.n * m);
        for (Int i = 0; i < problem.n; ++i)
            std::fill_n(arrived.begin() + i * m, m, problem.release[i]);
        for (const Int i : sequence) {
            const Int k = problem.group[i];
            Int best = line.home[k];
            Slot slot{0, NONE};
            if (best >= 0) {
                slot = timeline.earliest(i, best, timeline.ready_time(i, best));
            } else {
                timeline.compute_ready(i);
                Int best_last = NEVER, best_end = NEVER;
                for (Int d = 0; d < m; ++d) {
                    if (!timeline.can_host(k, d)) continue;
                    const Slot found = timeline.earliest(i, d, line.ready[d]);
                    const Int end = add(found.start, problem.work(i, d));
                    Int last = end;
                    for (Int e = problem.out_start[i]; e < problem.out_start[i + 1] && last <= best_last; ++e) {
                        stop.poll(8 * m);
                        const Int first = first_end(timeline, i, e, d, end, arrived, last);
                        if (last < first && first < NEVER) last = first;
                    }
                    if (last < best_last || (last == best_last && end < best_end)) {
                        best = d;
                        best_last = last;
                        best_end = end;
                        slot = found;
                    }
                }
                if (best < 0) return i;
            }
            timeline.occupy(i, best, slot);
            stop.poll(m * (1 + problem.out_start[i + 1] - problem.out_start[i]));
            const Int end = line.end[i];
            for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e) {
                const Int j = problem.edge_target[e];
                for (Int d = 0; d < m; ++d) {
                    const Int there = d == best ? end : add(end, problem.transfer(problem.payload[e], best, d));
                    arrived[j * m + d] = std::max(arrived[j * m + d], there);
                }
            }
        }
        return NONE;
    });
}

}  // namespace engine
