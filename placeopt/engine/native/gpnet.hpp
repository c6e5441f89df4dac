// What a learned search observes: gpNet (placeopt.learning.graphs.gpnet) and GiPH's message passing over it.
#pragma once

#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

// The gpNet of a placement; N nodes, E edges. The nodes of task i are first[i]..first[i + 1], by device; the edges for edge k
// of the task graph are block[k]..block[k + 1]: first those into the nodes of its consumer, then those from the nodes of its
// producer other than the pivot.
class GpNet {
public:
    // `device` (N,) of each node, `pivot` (n,) the node of each task in the placement.
    GpNet(const Problem& problem, Ints first, Ints device, Ints block, Ints pivot);

    // Moves tasks to other nodes of theirs.
    void move(Ints tasks, Ints nodes);
    // (N,) the last arrival of an input at each node minus the task's start, if tasks start and end at these ticks.
    std::vector<double> potential(Ints start, Ints end) const;
    // (N,) how much later each task ends if it moves to each of its nodes, into the first sufficient gap. The other tasks keep
    // their times. `head` (m,) is the first task of each device, `following` (n,) the next on the same device, -1 for none.
    std::vector<double> insertion(std::span<const double> potential, Ints start, Ints end, Ints head, Ints following,
                                  Stop& stop) const;

    std::vector<Int> pivot;           // (n,)
    std::vector<Int> source, target;  // (E,)
    std::vector<double> data;         // (4, E) bytes, ticks per byte, latency, transfer ticks

private:
    void write(Int k);

    const Problem& problem_;
    Ints first_, device_, block_;
};

// The order in which message passing visits N nodes and E edges, level by level: those of level l are bounds[l]..bounds[l + 1].
struct Levels {
    Ints node, node_bounds, edge, edge_bounds;
};

// The weights of one direction: messages [e_v | x_vu] -> h, and the update of their mean -> o.
struct MessageWeights {
    std::span<const double> message, message_bias, update, update_bias;  // (h, o + g), (h,), (o, h), (o,)
};

// Message passing in topological order (Y. Hu et al. 2023, equation 1). `found` (N, o) are the transformed features, and
// afterwards the embeddings; `data` (E, g) the features of edges.
void pass_messages(const Levels& levels, Ints sender, Ints receiver, std::span<const double> data, const MessageWeights& weights,
                   std::vector<double>& found);

}  // namespace engine
