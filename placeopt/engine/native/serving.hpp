// Nodes that serve a language model: what they pass with their layers, and what the links between them pass.
#pragma once

#include <vector>

#include "stop.hpp"

namespace engine {

// The arrays of placeopt.serving.problem.Serving, whose docstring has their meaning.
struct ServingNodes {
    Int v = 0, layers = 0, most = 0, firsts = 0, prefill_layers = 0;
    Ints kind, site;  // (v,)
    Ints rate;        // (t, firsts, most)
    Ints link, prefill_link;                // (v, v)
    Ints entry, prefill_entry, exit;        // (v,)

    // What a node passes with some layers from a first one on.
    Int passes(Int node, Int first, Int size) const {
        return rate[(kind[node] * firsts + (firsts == 1 ? 0 : first)) * most + size - 1];
    }
    // What the link to the node w passes, from the node u whose layers begin at `begin_u`, to layers from `begin_w` on.
    Int limit(Int u, Int w, Int begin_u, Int begin_w) const {
        if (begin_w < prefill_layers) return prefill_link[u * v + w];
        return begin_u < prefill_layers ? entry[w] : link[u * v + w];
    }
    Int entry_limit(Int node) const { return prefill_layers > 0 ? prefill_entry[node] : entry[node]; }
};

struct ServedLayers {
    std::vector<Int> begin, end;  // (v,) layers of each node
    Int rate = 0;                 // the largest flow through them
};

// Searches stages with a larger flow, from the intervals (v,) of stages; placeopt.serving.rate_search has the cost. It takes
// `steps` steps, or fewer once the flow is `wanted`, or if stopped.
ServedLayers arrange_stages(const ServingNodes& nodes, Ints begin, Ints end, Int wanted, Int steps, Int seed, Stop& stop);

}  // namespace engine
