#include "problem.hpp"

#include <limits>
#include <map>
#include <tuple>

namespace engine {

namespace {

constexpr Int ANY = std::numeric_limits<Int>::max();

[[noreturn]] void wrong(const char* name, std::size_t at, Int value, const std::string& expected) {
    throw Wrong(std::string(name) + ": entry " + std::to_string(at) + " is " + std::to_string(value) + "; expected " +
                expected);
}

}  // namespace

void check_range(const char* name, Ints values, Int least, Int most) {
    bool right = true;
    for (const Int value : values) right &= least <= value && value <= most;
    if (right) return;
    const std::string limit = most == ANY ? "" : " and at most " + std::to_string(most);
    for (std::size_t k = 0; k < values.size(); ++k)
        if (values[k] < least || values[k] > most)
            wrong(name, k, values[k], "at least " + std::to_string(least) + limit);
}

void check_starts(const char* name, Ints start, Int total) {
    if (start.empty()) throw Wrong(std::string(name) + ": no entries; expected at least one");
    if (start[0] != 0) wrong(name, 0, start[0], "0");
    for (std::size_t k = 1; k < start.size(); ++k)
        if (start[k] < start[k - 1]) wrong(name, k, start[k], "at least the entry before");
    if (start.back() != total) wrong(name, start.size() - 1, start.back(), std::to_string(total));
}

void check_unavailability(const Unavailability& unavailable, Int m) {
    if (!unavailable.any()) return;
    check_starts("unavailable.row", unavailable.row, static_cast<Int>(unavailable.begin.size()));
    check_range("unavailable.begin", unavailable.begin, 0, NEVER - 1);
    check_range("unavailable.end", unavailable.end, 1, NEVER - 1);
    for (Int d = 0; d < m; ++d)
        for (Int w = unavailable.row[d]; w < unavailable.row[d + 1]; ++w) {
            if (unavailable.end[w] <= unavailable.begin[w]) wrong("unavailable.end", w, unavailable.end[w], "more than its begin");
            if (w > unavailable.row[d] && unavailable.begin[w] <= unavailable.end[w - 1])
                wrong("unavailable.begin", w, unavailable.begin[w], "more than the end before");
        }
}

void check_setups(Setups& setups) {
    if (!setups.any()) return;
    const Int size = setups.families * setups.families, tables = static_cast<Int>(setups.ticks.size()) / size;
    check_range("setups.family", setups.family, 0, setups.families - 1);
    check_range("setups.initial", setups.initial, 0, setups.families - 1);
    check_range("setups.kind", setups.kind, 0, tables - 1);
    check_range("setups.ticks", setups.ticks, 0, NEVER - 1);
    for (Int t = 0; t < tables; ++t) {
        const Ints table = setups.ticks.subspan(t * size, size);
        setups.used.push_back(std::any_of(table.begin(), table.end(), [](Int ticks) { return ticks > 0; }));
    }
}

void check_ports(const Ports& ports) {
    const SharedLinks& links = ports.links;
    if (!links.any()) return;
    check_range("shared_links.label", links.label, 0, links.labels - 1);
    check_starts("shared_links.row", links.row, static_cast<Int>(links.channel.size()));
    check_range("shared_links.channel", links.channel, 0, links.channels - 1);
}

void check_resources(const Resources& resources) {
    if (!resources.any()) return;
    const Int entries = static_cast<Int>(resources.row.size()) - 1;
    check_starts("resources.row", resources.row, static_cast<Int>(resources.resource.size()));
    check_range("resources.need", resources.need, 0, entries - 1);
    check_range("resources.resource", resources.resource, 0, static_cast<Int>(resources.capacity.size()) - 1);
    check_range("resources.amount", resources.amount, 1, NEVER - 1);
    check_range("resources.capacity", resources.capacity, 0, NEVER - 1);
}

void Problem::prepare() {
    check_range("duration", duration, 0, NEVER - 1);
    check_range("release", release, 0, NEVER - 1);
    check_range("group", group, 0, g - 1);
    check_range("edge_source", edge_source, 0, n - 1);
    check_range("edge_target", edge_target, 0, n - 1);
    check_range("payload", payload, 0, ANY);
    check_range("in_edge", in_edge, 0, e - 1);
    check_range("order", order, 0, n - 1);
    check_starts("out_start", out_start, e);
    check_starts("in_start", in_start, e);
    if (e > 0) check_range("latency", latency, 0, NEVER - 1);  // without edges, links may have any
    check_range("byte_ticks_num", num, 0, ANY);
    check_range("byte_ticks_den", den, 1, ANY);
    check_range("capacity", capacity, 0, ANY);
    check_range("tiers.end", tier_end, 0, ANY);
    check_range("tiers.byte_ticks_num", tier_num, 0, ANY);
    check_range("tiers.byte_ticks_den", tier_den, 1, ANY);
    check_unavailability(unavailable, m);
    check_setups(setups);
    check_resources(resources);
    check_ports(ports);
    const auto check_ratios = [](const char* name, Ints nums, Ints dens) {
        for (std::size_t k = 0; k < nums.size(); ++k)
            if (nums[k] > (NEVER - 1) / dens[k]) wrong(name, k, nums[k], "a product with its denominator below 2^62");
    };
    check_ratios("byte_ticks_num", num, den);
    check_ratios("tiers.byte_ticks_num", tier_num, tier_den);
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
