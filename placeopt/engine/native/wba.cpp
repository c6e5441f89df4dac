// WBA: the randomised greedy schedule of workflow-based allocation (Blythe et al. 2005); placeopt_solvers.ready_lists.wba
// describes it.
#include <cmath>

#include "ready.hpp"
#include "ready_lists.hpp"

namespace engine {

namespace {
struct Nothing {};
}  // namespace

Int draw_pairs(Line& line, std::span<const double> chance, double alpha, Stop& stop) {
    return with_rules(line, [&]<class T>(T& timeline) -> Int {
        const Problem& problem = line.problem;
        const Int m = problem.m;
        Ready<T, Nothing> ready(timeline, stop);
        std::vector<Int> growth;  // of each pair in the batch: the growth of the makespan if it is next; NONE if it cannot be
        Int makespan = 0, batch_end = ready.last;
        for (std::size_t step = 0; ready.first < batch_end; ++step) {
            growth.clear();
            Int least = NEVER, most = NONE;
            for (Int at = ready.first; at < batch_end; ++at) {
                stop.poll(2 * m);
                const Int i = ready.task[at];
                bool possible = false;
                for (Int d = 0; d < m; ++d) {
                    growth.push_back(NONE);
                    if (!timeline.can_run(i, d)) continue;
                    const Int end = add(std::max(ready.data(i, d), line.free[d]), problem.work(i, d));
                    growth.back() = std::max(end - makespan, Int{0});
                    possible = true;
                    least = std::min(least, growth.back());
                    most = std::max(most, growth.back());
                }
                if (!possible) return i;
            }
            // At least the pairs with the least growth are drawn from, also where rounding lowers the limit.
            const double range = alpha * static_cast<double>(most - least);
            const Int limit = std::max(least, static_cast<Int>(std::floor(static_cast<double>(least) + range)));
            const auto eligible = [limit](Int ticks) { return 0 <= ticks && ticks <= limit; };
            const auto count = std::count_if(growth.begin(), growth.end(), eligible);
            // The product may be rounded up to the count.
            Int left = std::min<Int>(static_cast<Int>(chance[step] * static_cast<double>(count)), count - 1);
            std::size_t chosen = 0;
            while (!eligible(growth[chosen]) || left-- > 0) ++chosen;
            const Int i = ready.task[ready.first + static_cast<Int>(chosen) / m];
            ready.place(ready.first + static_cast<Int>(chosen) / m, static_cast<Int>(chosen) % m);
            makespan = std::max(makespan, line.end[i]);
            if (ready.first == batch_end) batch_end = ready.last;
        }
        return NONE;
    });
}

}  // namespace engine
