// The two placers of Celeritas: Adjusting Placement (Algorithm 2) and Order-Place (section 6.2.2). H. Xu, Y. Liao, H. Xie,
// P. Zhou, 2022, arXiv:2208.00184; placeopt_solvers.clustering.celeritas and order_place list the departures.
//
// With `overfill`, a task that no device can take goes to the device with the most memory left, enough or not.
#include "algorithms.hpp"

namespace engine {

namespace {

// The device with the most memory left, enough or not, that may run group k; NONE if there is none.
template <class T>
Int roomiest(const T& timeline, Int k) {
    const Int m = timeline.problem.m;
    Int best = NONE;
    for (Int d = 0; d < m; ++d) {
        const bool roomier = best < 0 || timeline.line.room[d] > timeline.line.room[best];
        if (roomier && timeline.groups.feasible[k * m + d] && timeline.stays_apart(k, d)) best = d;
    }
    return best;
}

// The ticks of the longest transfer of task i's output between two devices; 0 without consumers.
Int back_cost(const Problem& problem, Int i, Int source, Int target) {
    Int cost = 0;
    if (source != target)
        for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e)
            cost = std::max(cost, problem.transfer(problem.payload[e], source, target));
    return cost;
}

}  // namespace

Int fill_in_order(Line& line, Ints sequence, bool overfill, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        const Int m = problem.m;
        Int current = 0;
        for (const Int i : sequence) {
            stop.poll(2 * m + problem.in_start[i + 1] - problem.in_start[i]);
            const Int k = problem.group[i];
            Int d = line.home[k];
            if (d < 0) {
                for (Int step = 0; step < m && d < 0; ++step)
                    if (timeline.can_host(k, (current + step) % m)) d = (current + step) % m;
                if (d < 0 && overfill) d = roomiest(timeline, k);
                if (d < 0) return i;
                // A full device is left for good; one that the group may not use, only for this group.
                if (timeline.groups.feasible[k * m + current] && !timeline.has_room(k, current)) current = d;
            }
            timeline.append(i, d, std::max(timeline.ready_time(i, d), line.free[d]));
        }
        return NONE;
    });
}

Int adjust_in_order(Line& line, Ints sequence, bool overfill, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        Int last = NONE;
        for (const Int i : sequence) {
            stop.poll(problem.m * (4 + problem.in_start[i + 1] - problem.in_start[i]));
            const Int k = problem.group[i];
            Int chosen = line.home[k];
            if (chosen < 0) {
                timeline.compute_ready(i);
                Int best_end = NEVER, last_end = NEVER;
                for (Int d = 0; d < problem.m; ++d) {
                    if (!timeline.can_host(k, d)) continue;
                    const Int end = add(timeline.earliest(i, d, line.ready[d]).start, problem.work(i, d));
                    if (end < best_end) {
                        chosen = d;
                        best_end = end;
                    }
                    if (d == last) last_end = end;
                }
                if (last_end < NEVER && last_end - best_end <= back_cost(problem, i, chosen, last)) chosen = last;
                if (chosen < 0 && overfill) chosen = roomiest(timeline, k);
                if (chosen < 0) return i;
            }
            timeline.occupy(i, chosen, timeline.earliest(i, chosen, timeline.ready_time(i, chosen)));
            last = chosen;
        }
        return NONE;
    });
}

}  // namespace engine
