// Pipelines: the stages of their nodes and units, and the devices of the stages.
//
// Totals of ticks and bytes, those of all runs under way included, are at most 2^60 (placeopt.model.ranges).
#pragma once

#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

using Floats = std::span<const double>;
using Flags = std::span<const bool>;

// Lists of items: that of v is item[start[v]..start[v + 1]].
struct Rows {
    Ints start, item;

    Ints operator[](Int v) const { return item.subspan(start[v], start[v + 1] - start[v]); }
};

inline Int quotient_ceil(Int amount, Int by) { return amount / by + (amount % by > 0); }

// How devices add up the work of a stage, by class or by device. `mode` is 2 if computing and transfers overlap, plus 1 if
// sending and receiving do. `free` devices take no time for transfers.
struct Tracks {
    Ints mode;
    Flags free;
    Ints ring_latency, ring_num, ring_den;  // of the links between devices of a team

    // Ticks in which a team of r devices synchronises gradients.
    Int synchronising(Int d, Int r, Int gradient) const {
        if (r < 2 || gradient == 0 || free[d]) return 0;
        const Int moved = multiply(2, gradient) - 2 * gradient / r;  // 2 (r - 1) / r, rounded up
        return add(ring_latency[d], ratio_ceil(moved, ring_num[d], ring_den[d]));
    }
    // Ticks of one run on a team of r devices.
    Int ticks(Int d, Int r, Int busy, Int sent, Int received, Int gradient) const {
        Int moving = free[d] ? 0 : mode[d] & 1 ? std::max(sent, received) : add(sent, received);
        moving = add(moving, synchronising(d, r, gradient));
        return mode[d] & 2 ? std::max(busy, moving) : add(busy, moving);
    }
    // The least period that they allow.
    Int period(Int d, Int r, Int busy, Int sent, Int received, Int gradient) const {
        return quotient_ceil(ticks(d, r, busy, sent, received, gradient), r);
    }
};

// What stages cost: k nodes, c classes of devices, x items that may move between nodes, and q numbers of used devices by
// class: number `state` uses state / stride[c] % (size[c] + 1) devices of class c, for the products `stride` of size + 1.
struct NodeCosts {
    Ints computing, again;                    // (k, c) ticks, and those of outputs that are computed again
    Flags forbidden;                          // (k, c)
    Ints fixed, kept, source, gradient;       // (k,) bytes
    Ints least;                               // (k,) least computing ticks on any class
    Flags directions;                         // (k, 2) whether it has forward tasks, and backward tasks
    Rows incident;                            // the items that touch a node
    Ints producer;                            // (x,)
    Rows consumer, entering;                  // nodes of an item; those that consume it with a forward task of training
    Ints ticks, payload;                      // (x,)
    Rows apart;                               // nodes that must not share a stage
    Ints capacity, size, launch;              // (c,) bytes, devices, ticks
    Tracks tracks;                            // (c,)
    Floats room;                              // (q,) how much of `least` the unused devices compute in a tick, at most
    Int replicas = 1, in_flight = 0;          // most devices of a stage; runs whose outputs are kept, 0 for 1f1b
    bool recompute = false;                   // whether stages may compute outputs again
};

// s sets of last nodes, which contain all successors of their nodes; the first is empty, the last contains all nodes.
struct NodeSets {
    std::span<const std::uint64_t> bits;  // (s, w) the nodes of each
    Ints start, node, result;             // node[e] extends a set to set result[e], which comes later

    Int count() const { return static_cast<Int>(start.size()) - 1; }
};

// A stage: it extends a set of last nodes to the next; `devices` of a class run it, and `again` is 1 if they compute
// outputs again.
struct ChosenStage {
    Int begin, label, devices, again;
};

// Stages, the first one first, with the least period if that is less than `below`; none otherwise.
struct ChosenStages {
    Int period = NEVER;
    std::vector<ChosenStage> stages;
};
ChosenStages divide_sets(const NodeSets& sets, const NodeCosts& costs, Int below, Stop& stop);

}  // namespace engine
