// The most that the groups of one device can be worth within a limit, by dynamic programming along an order of the groups.
// placeopt.bounding.borders.frontier has the definitions.
#pragma once

#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

// Loads and limits are below this, so that their sums fit in 32 bits.
constexpr Int FRONTIER_LOADS = Int{1} << 30;
// Items that wait for consumers at the same time, and codes of an item: a word has 4 bits for each.
constexpr Int FRONTIER_ITEMS = 16, FRONTIER_CODES = 16;

// Groups and the items between them. Each item's producer precedes its consumers in `order`.
struct Frontier {
    Ints order;                      // (g,)
    Ints amount, worth;              // (g,) load of each group, and its worth
    std::span<const bool> excluded;  // (g,) whether the device does not run the group
    Ints producer;                   // (x,)
    Ints start, consumer;            // (x + 1,), (c,) the consumers of each item, at least one
    Ints ticks, gain, copies;        // (x,) load and worth of each time that an item is sent; the most times, at least 1
};

struct Held {
    Int most = 0;              // the largest worth of a set, at least 0
    std::vector<Int> balance;  // (sets, g + x) 1 for each group of a set; how often each item is sent, -1 if received
};

// The largest worth of a set with a load of at most `limit`, and sets of up to `sets` different worths, the largest first.
Held hold_most(const Frontier& frontier, Int limit, Int sets, Stop& stop);

}  // namespace engine
