// A queue of items by key, then by item.
#pragma once

#include <algorithm>
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

struct Heap : std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> {
    using std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>>::push;
    // Pushes an entry. Those that are `gone` are removed whenever the memory is full: all at once, in linear time.
    template <class Gone>
    void push(const Entry& entry, Gone&& gone) {
        if (c.size() == c.capacity()) {
            std::erase_if(c, gone);
            std::make_heap(c.begin(), c.end(), comp);
            c.reserve(2 * c.size());
        }
        push(entry);
    }
};

}  // namespace engine
