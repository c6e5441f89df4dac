// Cuts of the relaxation: trees of groups that do not fit on one device, and shortest detours around pairs of groups.
// placeopt.bounding.relaxation.covers and .cycles state the inequalities and prove them.
#pragma once

#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

using Floats = std::span<const double>;

// Groups joined by pairs: the neighbours of group g are at start[g]..start[g + 1], with the pairs to them.
struct GroupGraph {
    Ints start, neighbour, pair;
};

// How a point values pairs and groups.
struct Point {
    Floats ends;     // (q,) ends on small kinds
    Floats appeal;   // (q,) breaks ties: the largest first
    Floats outside;  // (g,) share on kinds that are not small
};

// A tree from each of some groups, that of group g at start[g]..start[g + 1], empty if there is none.
struct Trees {
    std::vector<Int> start;           // (g + 1,)
    std::vector<Int> member, parent;  // groups, and the position of each one's parent in its tree, NONE for none
    std::vector<Int> via;             // the pair to the parent
    std::vector<double> value;        // (g,) left-hand side of the cover, 0 without a tree
};

// Grows a tree from every group, along the pairs with the fewest ends, until it needs more than `limit` of the `memory` (g,),
// then removes dispensable leaves. A tree has at most `most` groups. It is abandoned once its value is 2 without the leaves.
Trees grow_trees(const GroupGraph& graph, const Point& point, Ints memory, Int limit, Int most, Stop& stop);

// For each pair p of `pairs`, the shortest path between its groups that avoids it: around[start[p]..start[p + 1]], from the
// higher group to the lower one; only if it is shorter than `limit` (p,) and has at most `most` pairs.
struct Detours {
    std::vector<Int> start, around;
    std::vector<double> length;  // (p,) the total of `moved` (q,), 0 without a path
};
struct Ends {
    Ints low, high;  // (q,) the groups of each pair
};
Detours shortest_detours(const GroupGraph& graph, const Ends& ends, Floats moved, Ints pairs, Floats limit, Int most, Stop& stop);

}  // namespace engine
