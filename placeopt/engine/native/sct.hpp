// The linear program of Small Communication Times: paths, rivals, favourites, and the game that solves it.
// placeopt.bounding.sct has the papers, the definitions and the proofs.
//
// Times are in double precision, in units of the caller. No sum depends on the machine: all are in the order of the arrays.
#pragma once

#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

using Floats = std::span<const double>;
using Flags = std::span<const bool>;

// The longest path (n,) to each node over edges of `ticks` (e,), which are in the order of their sources; `backwards`, from
// each node. Nodes are in topological order.
std::vector<double> edge_paths(Ints source, Ints target, Floats ticks, Int nodes, bool backwards);

// The rivals of each task (placeopt.bounding.sct.bound): the delay (e,) that the other members of an edge's set allow, NONE
// outside of sets. edge[start[i]..start[i + 1]] are edges of task i, the longest `ticks` (e,) first. Sets of 2, 3, 4, 6, 8,
// 12, ... edges and of all edges are tried; the one is chosen whose `delay` (e,) one favourite hides least.
std::vector<Int> choose_rivals(Ints start, Ints edge, Ints ticks, Ints delay);

// Raises y (e,) edge by edge in an order, as far as `room` (n,) of the producers and `space` (n,) of the consumers allow.
struct Rivals {
    Ints source, target;         // (e,)
    Flags out_rival, in_rival;   // (e,)
};
void raise_favourites(Ints order, const Rivals& rivals, std::vector<double> room, std::vector<double> space, std::span<double> y);

// A game with n tasks in topological order and a lanes by source, then kind.
struct Board {
    Floats length;               // (n,)
    Ints start;                  // (n + 1,) the lanes out of each task
    Ints out_start, out_end;     // (n,) those of them with its shares
    Ints in_start, in_lane;      // (n + 1,): in_lane[in_start[i]..in_start[i + 1]] are the lanes into task i with its shares
    Ints target;                 // (a,)
    Floats ticks, relief;        // (a,) the longest time of a lane, and the reduction by a whole share
};

// Regrets, probabilities and averages of each lane, all (a,), as in placeopt.bounding.sct.game.
struct GameState {
    std::vector<double> regret, choice, share_regret, share, mean_flow, mean_share;
};

// Plays the rounds `first` to `last` and returns how many. The averages are those of whole rounds.
Int play_rounds(const Board& board, GameState& state, Int first, Int last, Stop& stop);

// Divides `whole`, at most 2^53, over the lanes in proportion to `flow` (a,), as integers (a,) that are conserved at every
// task. start (n + 1,) and target (a,) are those of a board; lanes lead to later tasks, so that no sum exceeds `whole`.
std::vector<Int> split_flow(Ints start, Ints target, Floats flow, Int whole);

// A core seen from the producers; or from the consumers, if it is reversed. `weight` (e,) is the number of edges that an edge
// represents, `limit` (e,) the y that the other side allows.
struct Side {
    Ints start, target;              // (n + 1,), (e,)
    Floats length;                   // (n,)
    Floats fixed, hidden, weight;    // (e,); hidden and weight are positive where `rival`
    Flags rival;                     // (e,)
    Floats limit;                    // (e,)
};

// The shares that minimise the longest path: the y (e,) that they allow, and the longest path (n,) from each task, its length
// included.
struct Filled {
    std::vector<double> own, value;
};
Filled fill_shares(const Side& side, Stop& stop);

}  // namespace engine
