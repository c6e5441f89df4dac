#include "problem.hpp"

#include <map>
#include <tuple>

namespace engine {

void Problem::prepare() {
    check_range("duration", duration, 0, NEVER - 1);
    check_range("release", release, 0, NEVER - 1);
    check_range("group", group, 0, g - 1);
    check_range("edge_source", edge_source, 0, n - 1);
    check_range("edge_target", edge_target, 0, n - 1);
    check_range("payload", payload, 0, INT64_MAX);
    check_range("in_edge", in_edge, 0, e - 1);
    check_range("order", order, 0, n - 1);
    check_starts("out_start", out_start, e);
    check_starts("in_start", in_start, e);
    if (e > 0) check_range("latency", latency, 0, NEVER - 1);  // without edges, links may have any
    check_range("byte_ticks_num", num, 0, INT64_MAX);
    check_range("byte_ticks_den", den, 1, INT64_MAX);
    check_range("capacity", capacity, 0, INT64_MAX);
    check_ratios("byte_ticks_num", num, den);
    for (Int i = 0; i < n; ++i) {
        for (Int k = out_start[i]; k < out_start[i + 1]; ++k)
            if (edge_source[k] != i) wrong("edge_source", k, edge_source[k], std::to_string(i) + ", as out_start states");
        for (Int k = in_start[i]; k < in_start[i + 1]; ++k)
            if (edge_target[in_edge[k]] != i) wrong("in_edge", k, in_edge[k], "an edge to task " + std::to_string(i));
    }
    // The order has each task once, after its producers: no loop along it reads a task that has not been placed.
    std::vector<Int> position(n, NONE);
    for (Int k = 0; k < n; ++k) {
        const Int i = order[k];
        if (position[i] != NONE) wrong("order", k, i, "each task once");
        for (Int r = in_start[i]; r < in_start[i + 1]; ++r)
            if (position[edge_source[in_edge[r]]] == NONE) wrong("order", k, i, "producers before their consumers");
        position[i] = k;
    }

    in_source.resize(e);
    in_payload.resize(e);
    for (Int k = 0; k < e; ++k) {
        in_source[k] = edge_source[in_edge[k]];
        in_payload[k] = payload[in_edge[k]];
    }
    classify_links();
}

void Problem::classify_links() {
    kind.assign(m * m, 0);
    leader.assign(m * m, 0);
    kinds.assign(m, 1);
    for (Int a = 0; a < m; ++a) {
        std::map<std::tuple<Int, Int, Int>, Int> known;
        for (Int b = 0; b < m; ++b) {
            if (b == a) continue;
            const Int link = a * m + b;
            const auto [found, fresh] = known.try_emplace({latency[link], num[link], den[link]}, kinds[a]);
            if (fresh) leader[a * m + kinds[a]++] = b;
            kind[link] = found->second;
        }
    }
}

}  // namespace engine
