// Buffers with known lifetimes in one memory: which offsets are free, first fit, and the exact search for a capacity.
#pragma once

#include <vector>

#include "arithmetic.hpp"
#include "stop.hpp"

namespace engine {

// Buffers are live in the sections [first, last) of time. The offset of one with `fixed` >= 0 is given. All offsets are multiples of
// `grain`, so a buffer takes its size rounded up to it from the next one.
struct Buffers {
    Ints first, last, size, alignment, fixed;
    Int grain = 1;

    Int count() const { return static_cast<Int>(size.size()); }
    bool overlap(Int a, Int b) const { return first[a] < last[b] && first[b] < last[a]; }
    Int taken(Int b) const { return (size[b] + grain - 1) / grain * grain; }
};

// Offsets that the alignment of a buffer and the buffers with given offsets allow.
class Allowed {
public:
    explicit Allowed(const Buffers& buffers);
    // The least allowed offset of b that is at least `offset`.
    Int settle(Int b, Int offset) const;
    // The largest allowed offset of b below `offset`, or -1.
    Int before(Int b, Int offset) const;

private:
    struct Range {
        Int begin, end;
    };
    const Buffers& buffers_;
    std::vector<std::vector<Range>> ranges_;  // of each buffer: offsets that others forbid, ascending and apart
};

// Of each buffer to place, the others to place that share time with it.
std::vector<std::vector<std::int32_t>> neighbours(const Buffers& buffers);

// Places buffers in an order, each at the least allowed offset that is free. Returns offsets, -1 for a buffer that is not in the order.
std::vector<Int> first_fit(const Buffers& buffers, Ints order, Stop& stop);

// Lowers the height of a plan, down to the target at most, by up to `most` moves: see ejections.cpp. Returns the best offsets.
std::vector<Int> lower_height(const Buffers& buffers, Ints offset, Int target, Int seed, Int most, Stop& stop);

enum class Fit { FOUND, REFUTED, LIMIT };

struct Fitted {
    Fit fit = Fit::LIMIT;
    std::vector<Int> offset;
    Int nodes = 0;
};

// Searches offsets within a capacity: complete unless it visits `most` nodes or is stopped.
Fitted fit_buffers(const Buffers& buffers, Ints order, Int capacity, Int most, Stop& stop);

}  // namespace engine
