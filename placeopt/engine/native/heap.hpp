// A queue of items by key, then by item.
#pragma once

#include <compare>
#include <functional>
#include <queue>
#include <vector>

#include "arithmetic.hpp"

namespace engine {

struct Entry {
    Int key;
    std::int32_t item;
    auto operator<=>(const Entry&) const = default;
};

using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>>;

}  // namespace engine
