#include "unions.hpp"

namespace engine {

Unions::Unions(std::vector<bool> feasible, Ints memory, Ints capacity, Ints left, Ints right)
    : parent_(memory.size()),
      feasible_(std::move(feasible)),
      memory_(memory.begin(), memory.end()),
      capacity_(capacity.begin(), capacity.end()),
      apart_(memory.size()) {
    std::iota(parent_.begin(), parent_.end(), Int{0});
    for (std::size_t k = 0; k < left.size(); ++k) {
        apart_[left[k]].push_back(right[k]);
        apart_[right[k]].push_back(left[k]);
    }
}

bool Unions::may_unite(Int a, Int b) {
    for (const Int other : apart_[a])
        if (find(other) == b) return false;
    const Int memory = add(memory_[a], memory_[b]);
    for (Int d = 0; d < devices(); ++d)
        if (feasible(a, d) && feasible(b, d) && memory <= capacity_[d]) return true;
    return false;
}

void Unions::unite(Int a, Int b) {
    const Int into = std::min(a, b), other = std::max(a, b);
    parent_[other] = into;
    memory_[into] = add(memory_[into], memory_[other]);
    for (Int d = 0; d < devices(); ++d) feasible_[into * devices() + d] = feasible(into, d) && feasible(other, d);
    auto &all = apart_[into], &more = apart_[other];
    all.insert(all.end(), more.begin(), more.end());
    more.clear();
}

void unite_pairs(Unions& unions, Ints left, Ints right) {
    for (std::size_t k = 0; k < left.size(); ++k) {
        const Int a = unions.find(left[k]), b = unions.find(right[k]);
        if (a != b && unions.may_unite(a, b)) unions.unite(a, b);
    }
    unions.flatten();
}

void unite_clusters(Unions& unions, Ints order, Ints group, std::vector<char>& first) {
    Int unit = NONE;
    for (std::size_t at = 0; at < order.size(); ++at) {
        const Int other = unions.find(group[order[at]]);
        if (unit >= 0) unit = unions.find(unit);
        if (first[at] || unit < 0 || unit == other) {
            unit = other;
        } else if (unions.may_unite(unit, other)) {
            unions.unite(unit, other);
            unit = std::min(unit, other);
        } else {
            first[at] = true;
            unit = other;
        }
    }
    unions.flatten();
}

bool unite_meeting(Unions& unions, std::vector<double> work, double most, double growth, Ints order, Ints group,
                   std::span<const bool> several, std::span<const bool> first) {
    std::vector<double> core = work;  // work of the largest group of each union
    bool torn = false;
    Int unit = NONE;
    for (std::size_t at = 0; at < order.size(); ++at) {
        const Int k = group[order[at]];
        if (first[at]) unit = NONE;
        if (!several[k]) continue;
        const Int other = unions.find(k);
        if (unit < 0 || unit == other) {
            unit = other;
            continue;
        }
        const double total = work[unit] + work[other], largest = std::max(core[unit], core[other]);
        if (total <= std::max(most, growth * largest) && unions.may_unite(unit, other)) {
            unions.unite(unit, other);
            unit = std::min(unit, other);
            work[unit] = total;
            core[unit] = largest;
        } else {
            torn = true;
            unit = other;
        }
    }
    unions.flatten();
    return torn;
}

std::vector<Int> first_positions(const Unions& unions, Ints sequence, Ints group, Ints memory, Ints apart_start, Ints apart,
                                 Int longest, Int most) {
    const Int n = static_cast<Int>(sequence.size());
    std::vector<Int> low(n + 1);
    std::vector<Int> barred(unions.devices(), NONE);  // the last position of a task that the device may not run
    std::vector<Int> latest(unions.groups(), NONE);   // the last position of the group
    Int first = 0, held = 0, room = 0;
    for (Int j = 0; j < n; ++j) {
        const Int i = sequence[j], k = group[i];
        Int common = j;
        for (Int d = 0; d < unions.devices(); ++d) {
            if (!unions.feasible(k, d)) barred[d] = j;
            common = std::min(common, barred[d] + 1);
        }
        first = std::max({first, common, j + 1 - longest});
        for (Int r = apart_start[k]; r < apart_start[k + 1]; ++r) first = std::max(first, latest[apart[r]] + 1);
        latest[k] = j;
        held = add(held, memory[i]);
        // A task larger than `most` is a cluster by itself.
        for (; (held > most && room < j) || room < first; ++room) held -= memory[sequence[room]];
        first = std::max(first, room);
        low[j + 1] = first;
    }
    return low;
}

std::vector<Int> least_cuts(Ints in_start, Ints source, Ints weight, Ints low, Stop& stop) {
    const Int n = static_cast<Int>(low.size()) - 1;
    std::vector<Int> least(n + 1), cut(n + 1);
    std::vector<Int> onwards(n);  // the weight of the edges from each node to nodes after the present position
    for (std::size_t e = 0; e < source.size(); ++e) onwards[source[e]] = add(onwards[source[e]], weight[e]);
    for (Int j = 1; j <= n; ++j) {
        stop.poll(j - low[j]);
        for (Int e = in_start[j - 1]; e < in_start[j]; ++e) onwards[source[e]] -= weight[e];
        Int cost = onwards[j - 1], best = add(least[j - 1], cost), place = j - 1;
        for (Int i = j - 2; i >= low[j]; --i) {
            cost += onwards[i];  // at most the weight of all edges, which was added up above
            if (least[i] + cost <= best) {
                best = least[i] + cost;
                place = i;
            }
        }
        least[j] = best;
        cut[j] = place;
    }
    return cut;
}

}  // namespace engine
