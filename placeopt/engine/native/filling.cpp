// One device after the other, in a given order: m-TOPO and topo-fill.
//
// B. Jeon et al. (Baechi), SoCC 2020, doi:10.1145/3419111.3421302, section 2.2. Tasks are appended to the first device
// until it is full, then to the next. A device is full if it has no memory for the next task, or would hold more than
// its `share` (m,) of the `weight` (g,) of groups.
#include "algorithms.hpp"

namespace engine {

Int fill_devices(Line& line, Ints sequence, Ints weight, std::vector<Int> share, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        const Int m = problem.m;
        Int filling = 0;
        for (const Int i : sequence) {
            stop.poll(2 * m + problem.in_start[i + 1] - problem.in_start[i]);
            const Int k = problem.group[i];
            Int best = line.home[k];
            if (best < 0) {
                while (filling < m - 1 && (share[filling] < weight[k] || !timeline.has_room(k, filling))) ++filling;
                // First the devices from the current one on, then all devices up to their full memory.
                for (Int offset = 0; offset < 2 * m && best < 0; ++offset) {
                    const Int d = (filling + offset) % m;
                    const bool enough = share[d] >= weight[k] && d >= filling;
                    if ((enough || offset >= m) && timeline.can_host(k, d)) best = d;
                }
                if (best < 0) return i;
                share[best] = subtract(share[best], weight[k]);
            }
            timeline.append(i, best, std::max(timeline.ready_time(i, best), line.free[best]));
        }
        return NONE;
    });
}

}  // namespace engine
