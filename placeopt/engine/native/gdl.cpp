// GDL: list scheduling by generalized dynamic levels (Sih and Lee 1993); placeopt_solvers.ready_lists.gdl has the
// formulas. A level changes only when its device takes a task. So each node's best two devices are stored, and
// recomputed only when one of them took a task.
#include "ready.hpp"
#include "ready_lists.hpp"

namespace engine {

namespace {

// The best two devices of a ready task, NONE for none, and its GDL.
struct Level {
    Int first = NONE, second = NONE, value = 0;
};

}  // namespace

std::vector<Int> fixed_levels(const Line& line, Ints median, Ints level, Ints heaviest, Stop& stop) {
    const Problem& problem = line.problem;
    const Int m = problem.m;
    std::vector<Int> worth(problem.n * m), ticks(m);
    for (Int i = 0; i < problem.n; ++i) {
        stop.poll(m * m);
        for (Int p = 0; p < m; ++p) {
            Int& value = worth[i * m + p];
            value = level[i] + median[i] - problem.work(i, p);  // each is below NEVER
            const Int e = heaviest[i];
            if (e < 0) continue;
            const Int j = problem.edge_target[e];
            for (Int c = 1; c < problem.kinds[p]; ++c)
                ticks[c] = problem.transfer(problem.payload[e], p, problem.leader[p * m + c]);
            ticks[0] = 0;
            Int least = NEVER;
            for (Int q = 0; q < m; ++q)
                if (line.groups.feasible[problem.group[j] * m + q])
                    least = std::min(least, add(ticks[problem.kind[p * m + q]], problem.work(j, q)));
            if (least < NEVER) value = add(value, median[j] - least);
        }
    }
    return worth;
}

Int place_by_level(Line& line, Ints median, Ints level, Ints heaviest, Stop& stop) {
    return with_rules(line, [&]<class T>(T& timeline) -> Int {
        const Problem& problem = line.problem;
        const Int m = problem.m;
        const std::vector<Int> worth = fixed_levels(line, median, level, heaviest, stop);
        Ready<T, Level> ready(timeline, stop);
        const auto best_two = [&](Int i) {
            Level found;
            Int high = 0, next = 0;
            for (Int p = 0; p < m; ++p) {
                const Int here = subtract(worth[i * m + p], std::max(ready.data(i, p), line.free[p]));
                if ((found.second >= 0 && here <= next) || !timeline.can_run(i, p)) continue;
                if (found.first < 0 || here > high) {
                    found.second = found.first;
                    next = high;
                    found.first = p;
                    high = here;
                } else {
                    found.second = p;
                    next = here;
                }
            }
            found.value = found.second < 0 ? high : add(high, subtract(high, next));
            return found;
        };
        const bool budgets = line.groups.budgets.any();  // tasks of all devices use them
        Int changed = NONE, assigned = NONE;
        while (ready.first < ready.last) {
            stop.poll(2 * (ready.last - ready.first));
            Int best = NONE;
            for (Int at = ready.first; at < ready.last; ++at) {
                // Notes are stale for new tasks, after a change of a noted device, and after the group got a home.
                Level& note = ready.note[at];
                const Int i = ready.task[at];
                if (note.first < 0 || note.first == changed || note.second == changed || problem.group[i] == assigned ||
                    (budgets && !timeline.can_run(i, note.first))) {
                    stop.poll(2 * m);
                    note = best_two(i);
                    if (note.first < 0) return i;
                }
                if (best < 0 || note.value > ready.note[best].value ||
                    (note.value == ready.note[best].value && i < ready.task[best]))
                    best = at;
            }
            changed = ready.note[best].first;
            assigned = problem.group[ready.task[best]];
            ready.place(best, changed);
        }
        return NONE;
    });
}

}  // namespace engine
