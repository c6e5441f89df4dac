// Paths, rivals and favourites of the linear program of Small Communication Times.
#include "sct.hpp"

namespace engine {

std::vector<double> edge_paths(Ints source, Ints target, Floats ticks, Int nodes, bool backwards) {
    std::vector<double> value(nodes);
    if (!backwards)
        for (std::size_t e = 0; e < source.size(); ++e)
            value[target[e]] = std::max(value[target[e]], value[source[e]] + ticks[e]);
    else
        for (std::size_t e = source.size(); e-- > 0;)
            value[source[e]] = std::max(value[source[e]], value[target[e]] + ticks[e]);
    return value;
}

namespace {

// The size of the next set after one of `size` edges: 2, 3, 4, 6, 8, 12, ...
Int next_size(Int size) {
    Int step = 1;
    while (step * 4 <= size) step *= 2;
    return size + step;
}

// The delay of a set that one favourite cannot hide. The last edge waits for the one before it, the others for the last.
Int unhidden(Ints set, Ints ticks, Ints delay) {
    const Int lowest = ticks[set.back()], second = ticks[set[set.size() - 2]];
    Int total = 0, longest = 0;
    for (const Int& e : set) {
        const Int own = std::min(delay[e], &e == &set.back() ? second : lowest);
        total = add(total, own);
        longest = std::max(longest, own);
    }
    return subtract(total, longest);
}

}  // namespace

std::vector<Int> choose_rivals(Ints start, Ints edge, Ints ticks, Ints delay) {
    std::vector<Int> level(delay.size(), NONE);
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
        const Ints own = edge.subspan(start[i], start[i + 1] - start[i]);
        const Int count = static_cast<Int>(own.size());
        Int chosen = 0, best = 0;
        for (Int size = 2; size <= count; size = size == count ? count + 1 : std::min(next_size(size), count)) {
            const Int found = unhidden(own.first(size), ticks, delay);
            if (found > best) {
                chosen = size;
                best = found;
            }
        }
        for (Int x = 0; x < chosen; ++x) level[own[x]] = ticks[own[x == chosen - 1 ? chosen - 2 : chosen - 1]];
    }
    return level;
}

void raise_favourites(Ints order, const Rivals& rivals, std::vector<double> room, std::vector<double> space, std::span<double> y) {
    for (const Int e : order) {
        double& left = room[rivals.source[e]];
        double& right = space[rivals.target[e]];
        double more = 1.0 - y[e];
        if (rivals.out_rival[e]) more = std::min(more, left);
        if (rivals.in_rival[e]) more = std::min(more, right);
        if (!(more > 0.0)) continue;
        y[e] += more;
        if (rivals.out_rival[e]) left -= more;
        if (rivals.in_rival[e]) right -= more;
    }
}

}  // namespace engine
