// The problem as the engine sees it: spans over the arrays of placeopt.model.problem.Problem, which outlive it.
#pragma once

#include "rules.hpp"

namespace engine {

// n tasks, m devices, e edges, g groups. Matrices are in row-major order.
struct Problem : ExecutionRules {
    Int n = 0, m = 0, e = 0, g = 0;
    Ints duration;                            // (n, m) ticks
    Ints release;                             // (n,) ticks
    Ints group;                               // (n,)
    Ints edge_source, edge_target, payload;   // (e,)
    std::span<const bool> shared;             // (e,)
    Ints out_start, in_start, in_edge, order; // (n + 1,), (n + 1,), (e,), (n,)
    Ints latency, num, den;                   // (m, m): num ticks move den bytes
    Ints capacity;                            // (m,) bytes

    // Derived: the producers and bytes of in-edges in the order of `in_edge`, which most loops read.
    std::vector<Int> in_source, in_payload;

    // Derived: (m, m) the kind of the link from each device to each other, 0 for itself. Links of one kind from a device
    // are alike; its kinds are 0..kinds - 1. `leader` (m, m) is the first device that each kind leads to.
    std::vector<Int> kind, kinds, leader;

    // Checks every array once, so that no loop needs to; throws Wrong. Fills what is derived.
    void prepare();
    // Fills `kind`, `kinds` and `leader`.
    void classify_links();

    Int work(Int i, Int d) const { return duration[i * m + d]; }
    using ExecutionRules::sets_up;
    // Whether task i needs device d to be set up for it.
    bool sets_up(Int i, Int d) const { return sets_up(d) && work(i, d) > 0; }

    // Ticks that a payload takes from device a to another device b.
    Int transfer(Int bytes, Int a, Int b) const {
        const Int link = a * m + b;
        return add(latency[link], ratio_ceil(bytes, num[link], den[link]));
    }
};

}  // namespace engine
