// List scheduling with insertion in a given order: HEFT, PEFT and CPOP, which differ in the order and in penalties.
//
// H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE TPDS 2002, doi:10.1109/71.993206: each task goes to the device where it ends
// first, penalties included, in a gap between other tasks if it fits there. Ties go to the lowest device.
#include "algorithms.hpp"

namespace engine {

namespace {

// Loads the data of a task that follows soon: tasks that follow each other by rank are far apart in memory.
void prefetch([[maybe_unused]] const Line& line, [[maybe_unused]] Int i) {
#if defined(__GNUC__) || defined(__clang__)
    const Problem& problem = line.problem;
    const Int m = problem.m, entries = 64 / sizeof(Int);  // of a cache line
    for (Int d = 0; d < m; d += entries) __builtin_prefetch(&problem.duration[i * m + d]);
    __builtin_prefetch(&problem.in_start[i]);
    __builtin_prefetch(&problem.release[i]);
    __builtin_prefetch(&problem.group[i]);
#endif
}

constexpr std::size_t AHEAD = 8;

}  // namespace

Int insert_tasks(Line& line, Ints sequence, const Penalties& penalties, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        const Int m = problem.m;
        for (std::size_t at = 0; at < sequence.size(); ++at) {
            if (at + AHEAD < sequence.size()) prefetch(line, sequence[at + AHEAD]);
            const Int i = sequence[at], k = problem.group[i];
            stop.poll(m * (1 + problem.in_start[i + 1] - problem.in_start[i]));
            Int best = line.home[k];
            Slot slot{0, NONE};
            if (best >= 0) {
                slot = timeline.earliest(i, best, timeline.ready_time(i, best));
            } else {
                timeline.compute_ready(i);
                const Int* penalty = &penalties.ticks[penalties.row[i] * m];
                Int best_worth = NEVER;
                for (Int d = 0; d < m; ++d) {
                    // The least start rules out most devices without a search for gaps.
                    // Nothing overflows: durations and ends are at most NEVER, penalties below it.
                    const Int work = problem.work(i, d) + penalty[d];
                    if (work >= best_worth - timeline.least_start(i, d) || !timeline.can_host(k, d)) continue;
                    const Slot found = timeline.earliest(i, d, line.ready[d]);
                    const Int worth = found.start + work;
                    if (worth < best_worth) {
                        best = d;
                        best_worth = worth;
                        slot = found;
                    }
                }
                if (best < 0) {
                    for (Int d = 0; d < m; ++d)
                        if (timeline.can_host(k, d)) throw Overflow();  // the task would end at NEVER or later
                    return i;
                }
            }
            timeline.occupy(i, best, slot);
        }
        return NONE;
    });
}

}  // namespace engine
