// Memory of devices: groups and their homes, and live memory along a sequence of tasks (memory model `peak`).
//
// The profile of a device is a segment tree over positions of the sequence, see placeopt_solvers/_constructive/profiles:
// a leaf for each position, and in each node what all positions below it have in common, such that the greater of two
// siblings is 0 and the root is the peak. A change and a maximum of an interval take O(log n).
#pragma once

#include <algorithm>

#include "problem.hpp"

namespace engine {

// What groups hold over a sequence of positions; r rows, each an output or the scratch of a task. Empty under `sum`.
struct Live {
    bool on = false;
    Int leaves = 0;               // of each tree, a power of two
    Ints row;                     // (g + 1,) the rows of group k are row[k]..row[k + 1]
    Ints first, last;             // (r,) `output` bytes are held in the leaves first..last,
    Ints output, scratch;         // (r,) `scratch` bytes in leaf `first`
    Ints peak;                    // (g,) most bytes of the group at one position
};

// What groups use of budgets, beyond the least that each uses on any device. Empty without budgets.
struct Budgets {
    // Group k on device d uses amount[row[j]..row[j + 1]] of budget[row[j]..row[j + 1]], j = k m + d.
    Ints row, budget, amount;
    Ints left;  // (b,) what the groups with a home leave

    bool any() const { return !row.empty(); }
    void check() const;
};

// The colocation groups of a problem and the devices that may take them.
struct Groups {
    Ints memory;                     // (g,) bytes; with live memory the resident ones
    std::span<const bool> feasible;  // (g, m)
    Ints apart_start, apart;         // group k must be apart from apart[apart_start[k]..apart_start[k + 1]]
    Ints home;                       // (g,) device, -1 for groups without a home
    Ints room;                       // (m,) bytes left by the groups with a home
    Live live;
    Budgets budgets;

    void check(const Problem& problem) const;
};

class Profile {
public:
    explicit Profile(std::span<Int> tree) : tree_(tree) {}

    Int peak() const { return tree_[1]; }

    // Adds what group g holds (sign 1), or takes it away (-1).
    void count(const Live& live, Int g, Int sign) {
        for (Int k = live.row[g]; k < live.row[g + 1]; ++k) {
            if (live.output[k] > 0) add_bytes(live.first[k], live.last[k], sign * live.output[k]);
            if (live.scratch[k] > 0) add_bytes(live.first[k], live.first[k], sign * live.scratch[k]);
        }
    }

    // Whether there is room for group g; `room` are the bytes beyond all resident ones, also those of g.
    bool holds(const Live& live, Int g, Int room) {
        if (add(peak(), live.peak[g]) <= room) return true;
        if (peak() > room) return false;
        const Int low = live.row[g];
        if (live.row[g + 1] == low + 1) {
            const Int output = live.output[low], scratch = live.scratch[low];
            const Int held = add(most(live.first[low], live.last[low]), output);
            if (held > room) return false;
            return add(held, scratch) <= room ||
                   add(add(most(live.first[low], live.first[low]), output), scratch) <= room;
        }
        count(live, g, 1);
        const bool fits = peak() <= room;
        count(live, g, -1);
        return fits;
    }

    // The greatest of the leaves first..last.
    Int most(Int first, Int last) const {
        const Int leaves = static_cast<Int>(tree_.size()) / 2;
        Int low = leaves + first, high = leaves + last;
        Int left = tree_[low], right = tree_[high];
        while (low >> 1 != high >> 1) {
            if ((low & 1) == 0) left = std::max(left, tree_[low + 1]);
            if ((high & 1) == 1) right = std::max(right, tree_[high - 1]);
            low >>= 1;
            high >>= 1;
            left = add(left, tree_[low]);
            right = add(right, tree_[high]);
        }
        Int found = std::max(left, right);
        while (low > 1) {
            low >>= 1;
            found = add(found, tree_[low]);
        }
        return found;
    }

    // The first leaf with the greatest number.
    Int fullest() const {
        const Int leaves = static_cast<Int>(tree_.size()) / 2;
        Int at = 1;
        while (at < leaves) at = 2 * at + (tree_[2 * at] == 0 ? 0 : 1);
        return at - leaves;
    }

private:
    // Moves what a node and its sibling have in common to their parent.
    void level_pair(Int at) {
        const Int common = std::max(tree_[at], tree_[at ^ 1]);
        tree_[at] -= common;
        tree_[at ^ 1] -= common;
        tree_[at >> 1] = add(tree_[at >> 1], common);
    }

    // Adds an amount to the leaves first..last.
    void add_bytes(Int first, Int last, Int amount) {
        const Int leaves = static_cast<Int>(tree_.size()) / 2;
        Int low = leaves + first, high = leaves + last;
        tree_[low] = add(tree_[low], amount);
        if (low != high) tree_[high] = add(tree_[high], amount);
        while (low >> 1 != high >> 1) {
            if ((low & 1) == 0) tree_[low + 1] = add(tree_[low + 1], amount);
            if ((high & 1) == 1) tree_[high - 1] = add(tree_[high - 1], amount);
            level_pair(low);
            level_pair(high);
            low >>= 1;
            high >>= 1;
        }
        for (; low > 1; low >>= 1) level_pair(low);
    }

    std::span<Int> tree_;
};

}  // namespace engine
