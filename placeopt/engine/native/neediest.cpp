// Max-min and sufferage: the ready task with the latest earliest end, or with the widest gap to its second best end.
//
// The earliest ends of a ready task over the devices only grow. They are recomputed only if the task's best device (for
// the gap: or its second best) was the last one used, or if its group was assigned a home. All ready tasks are scanned in
// each step: O(n W + r m + e m), where W is the maximum number of tasks ready at once and r <= n W the number of
// recomputations: few if arrivals decide, close to n W if many tasks agree on the best device.
//
// Under port contention later transfers delay the data of ready tasks. It is recomputed for the chosen task, whose device
// is then chosen by it. With insertion ends only grow as well, because gaps only shrink.
#include "ready.hpp"
#include "ready_lists.hpp"

namespace engine {

namespace {

// In place of a device: no device can take the task.
constexpr Int NOWHERE = -2;

// The device where a ready task ends first and the end there, then the second best; NONE before they are computed.
struct Ends {
    Int best = NONE, end = NEVER, second = NONE, second_end = NEVER;
};

// Starts only grow, so the ones found replace the arrivals in `ready.data`: the next call skips more devices.
template <class T>
Ends weigh(T& timeline, Ready<T, Ends>& ready, Int i, bool by_gap) {
    const Problem& problem = timeline.problem;
    Ends found{NOWHERE, NEVER, NOWHERE, NEVER};
    for (Int d = 0; d < problem.m; ++d) {
        const Int work = problem.work(i, d), limit = by_gap ? found.second_end : found.end;
        Int& data = ready.data(i, d);
        if (data >= limit - work) continue;
        data = timeline.slot(i, d, data).start;
        const Int there = add(data, work);
        if (there >= limit || !timeline.can_run(i, d)) continue;
        if (there < found.end) {
            found = {d, there, found.best, found.end};
        } else {
            found.second = d;
            found.second_end = there;
        }
    }
    return found;
}

}  // namespace

Int place_neediest(Line& line, bool by_gap, bool batches, Stop& stop) {
    return with_rules(line, [&]<class T>(T& timeline) -> Int {
        const Problem& problem = line.problem;
        std::vector<Int> members(problem.g);
        for (const Int k : problem.group) ++members[k];
        Ready<T, Ends> ready(timeline, stop);
        const bool budgets = line.groups.budgets.any();  // tasks of all devices use them
        Int used = problem.m, assigned = NONE, batch_end = ready.last;
        while (true) {
            Int chosen = NONE, most = NONE;
            const Int end = batches ? batch_end : ready.last;
            stop.poll(2 * (end - ready.first));
            for (Int at = ready.first; at < end; ++at) {
                Ends& ends = ready.note[at];
                const Int i = ready.task[at];
                if (ends.best == used || ends.best == NONE || (by_gap && ends.second == used) ||
                    (assigned >= 0 && problem.group[i] == assigned) ||
                    (budgets && ends.best >= 0 && !timeline.can_run(i, ends.best))) {
                    stop.poll(2 * problem.m);
                    ends = weigh(timeline, ready, i, by_gap);
                }
                if (ends.best < 0) continue;
                const Int need = by_gap ? ends.second_end - ends.end : ends.end;
                if (need > most || (need == most && i < ready.task[chosen])) {
                    chosen = at;
                    most = need;
                }
            }
            if (chosen < 0) {
                if (!batches || batch_end == ready.last) return first_unplaced(line, ready.missing);
                batch_end = ready.last;
                continue;
            }
            const Int i = ready.task[chosen], k = problem.group[i];
            if (problem.ports.any()) {
                ready.update(i);
                ready.note[chosen] = weigh(timeline, ready, i, by_gap);
            }
            used = ready.note[chosen].best;
            // Ready tasks of the same group must follow. Most groups have one task and need no recomputation.
            assigned = line.home[k] < 0 && members[k] > 1 ? k : NONE;
            ready.place(chosen, used);
        }
    });
}

}  // namespace engine
