// Dijkstra's algorithm from the lower group of each pair; nearest groups come from a list, in which the first of equals counts.
#include "relaxation.hpp"

namespace engine {

Detours shortest_detours(const GroupGraph& graph, const Ends& ends, Floats moved, Ints pairs, Floats limit, Int most, Stop& stop) {
    const Int groups = static_cast<Int>(graph.start.size()) - 1;
    Detours found{{0}, {}, std::vector<double>(pairs.size())};
    std::vector<Int> stamp(groups, NONE), came(groups), came_from(groups), waiting;
    std::vector<double> best(groups);
    for (std::size_t p = 0; p < pairs.size(); ++p) {
        const Int open = 2 * static_cast<Int>(p), closed = open + 1;  // stamps of waiting and of reached groups
        const Int first = ends.low[pairs[p]], last = ends.high[pairs[p]];
        waiting.assign(1, first);
        stamp[first] = open;
        best[first] = 0.0;
        while (!waiting.empty()) {
            auto nearest = waiting.begin();
            for (auto place = nearest + 1; place != waiting.end(); ++place)
                if (best[*place] < best[*nearest]) nearest = place;
            Int g = *nearest;
            stop.poll(static_cast<Int>(waiting.size()) + 4 * (2 + graph.start[g + 1] - graph.start[g]));
            *nearest = waiting.back();
            waiting.pop_back();
            stamp[g] = closed;
            if (g == last) {
                const std::size_t begin = found.around.size();
                for (Int steps = 0; g != first && steps < most; ++steps) {
                    found.around.push_back(came[g]);
                    g = came_from[g];
                }
                if (g == first) found.length[p] = best[last];
                else found.around.resize(begin);
                break;
            }
            for (Int position = graph.start[g]; position < graph.start[g + 1]; ++position) {
                const Int h = graph.neighbour[position], q = graph.pair[position];
                const double reached = best[g] + moved[q];
                if (q == pairs[p] || stamp[h] == closed || reached >= limit[p]) continue;
                if (stamp[h] != open) {
                    stamp[h] = open;
                    waiting.push_back(h);
                } else if (reached >= best[h]) {
                    continue;
                }
                best[h] = reached;
                came[h] = q;
                came_from[h] = g;
            }
        }
        found.start.push_back(static_cast<Int>(found.around.size()));
    }
    return found;
}

}  // namespace engine
