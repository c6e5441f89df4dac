// Colocation groups in a union-find structure. A union is represented by its smallest group.
#pragma once

#include <numeric>
#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

class Unions {
public:
    // Groups with `feasible` (g, m) devices and `memory` (g,) bytes for devices of `capacity` (m,) bytes; the pairs of
    // groups left[k], right[k] must be apart.
    Unions(std::vector<bool> feasible, Ints memory, Ints capacity, Ints left, Ints right);

    Int find(Int k) {
        while (parent_[k] != k) k = parent_[k] = parent_[parent_[k]];
        return k;
    }
    // Whether the unions with the representatives a and b may be united: no pair of them must be apart, and some device may
    // run both and has the memory.
    bool may_unite(Int a, Int b);
    void unite(Int a, Int b);
    // Makes `parent` the representative of each group's union.
    void flatten() {
        for (std::size_t k = 0; k < parent_.size(); ++k) parent_[k] = find(static_cast<Int>(k));
    }
    const std::vector<Int>& parent() const { return parent_; }
    bool feasible(Int k, Int d) const { return feasible_[k * devices() + d]; }
    Int groups() const { return static_cast<Int>(parent_.size()); }
    Int devices() const { return static_cast<Int>(capacity_.size()); }
    void set_capacity(Ints capacity) { capacity_.assign(capacity.begin(), capacity.end()); }

private:
    std::vector<Int> parent_;     // another group of the same union; the representative's own index
    std::vector<bool> feasible_;  // for representatives: whether every task of the union may run on the device
    std::vector<Int> memory_;     // for representatives: bytes of all tasks
    std::vector<Int> capacity_;
    std::vector<std::vector<Int>> apart_;  // for representatives: the groups that must be apart from the union
};

// Unites each pair of groups in turn, if allowed.
void unite_pairs(Unions& unions, Ints left, Ints right);
// Unites all groups that meet between two positions with `first` (n,) of an order of the tasks, each in the group (n,);
// where that is not allowed, the cluster is split: its second part gets `first`.
void unite_clusters(Unions& unions, Ints order, Ints group, std::vector<char>& first);
// Unites groups that `several` (g,) selects where they meet in a cluster; a union has at most `most` of the `work` (g,), or
// `growth` times the work of its largest group. Returns whether some groups that meet could not be united.
bool unite_meeting(Unions& unions, std::vector<double> work, double most, double growth, Ints order, Ints group,
                   std::span<const bool> several, std::span<const bool> first);

// Celeritas's optimal breakpoints: for clusters of at most `longest` tasks and `most` bytes that one device may run, the
// first position (n + 1,) from which all tasks before a position may be one cluster. `apart` are the groups that must be
// apart from group k at apart_start[k]..apart_start[k + 1].
std::vector<Int> first_positions(const Unions& unions, Ints sequence, Ints group, Ints memory, Ints apart_start, Ints apart,
                                 Int longest, Int most);
// The last cut before each position (n + 1,) such that the edges between clusters weigh least; in_start[j]..in_start[j + 1]
// are the edges into the node at position j, from `source`, with `weight`.
std::vector<Int> least_cuts(Ints in_start, Ints source, Ints weight, Ints low, Stop& stop);

}  // namespace engine
