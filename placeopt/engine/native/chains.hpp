// Divides a chain into stages whose loads are at most a given period, from its end.
//
// A state is the vector of used devices by class and the cut at which the next stage must end. D. Narayanan et al.: PipeDream,
// SOSP 2019, section 3.1, fill a table over cuts and numbers of equal devices. Here the period is given, so that a table over
// vectors keeps only some cuts.
//
// Dominance
//     Let all links be alike. Cut i dominates a later cut j if every stage [a, i) has at most the load and the memory of [a, j) on
//     every class with every team. All sums over nodes are monotone; only what crosses the cut may be more. If devices compute or
//     transfer, its excess (d(i) - d(j))+ + (u(i) - u(j))+ must be at most the ticks of [i, j) on every class, because both sums
//     and maxima of sent and received ticks grow by at most that; if they overlap, it must be 0. If i dominates all cuts of (i, j],
//     state (v, j) is not needed beside (v, i): take stages that complete (v, j). One of them, [a, b), has a < i <= b <= j. It
//     becomes [a, i), and all stages in [i, j) are left out. The stages before then have fewer devices behind them, hence at most
//     the runs under way. `reach[i]` is the first cut that i does not dominate. With several links, the next class matters too, and
//     no cut is left out.
//
// Prices
//     Give each device of class c a price >= 0. `cost(0, j)` is the least price of the devices of stages that divide [0, j),
//     regardless of the number of devices of each class. So a state whose nodes left cost more than all devices left is useless,
//     and no division has the period if all nodes cost more than all devices. This is the Lagrangian bound of the linear program of
//     paths from cut 0 to n with a limit for each class. If memory limits the runs under way of 1f1b, `cost(k, j)` counts at least
//     k devices behind [0, j). Dominated cuts cost no less, so they are left out here, too. If links differ, each stage has its
//     best links.
//
// Next candidate
//     Every comparison of a load with the period is also true for all periods below the least load that was above. So if the
//     search fails for a period without leaving states out for lack of space, that load bounds the period.
#pragma once

#include <optional>

#include "stages.hpp"

namespace engine {

// n nodes, c classes of devices, l links, as in placeopt_solvers.pipelines._chains.chain. Arrays of n + 1 entries are sums over
// the nodes before each cut, unless stated otherwise there.
struct Chain {
    Int n = 0, classes = 0, links = 1, devices = 0;
    Ints computing, again, nearest;              // (c, n + 1)
    Ints fixed, kept, source, gradient;          // (n + 1,) bytes
    Ints ahead, behind;                          // (n + 1,) nodes
    Ints down, up;                               // (l, n + 1) ticks
    Ints entering_down, entering_up, reach;      // (n + 1,)
    Ints link;                                   // (c, c)
    Flags binding;                               // (c,)
    Ints capacity, size, launch;                 // (c,)
    Tracks tracks;                               // (c,)
    Int replicas = 1, in_flight = 0;
    bool recompute = false;
};

// Stage [begin, end) on a team of a class of devices.
struct Piece {
    Int begin, end, label, team;
};

// A division with at most the period, first stage first; empty if none was found. If `complete`, then none exists.
struct Pieces {
    std::vector<Piece> pieces;
    bool complete = true;
};

class ChainDivider {
public:
    // With `layered`, prices count the devices behind a stage if memory limits the runs under way.
    ChainDivider(const Chain& chain, bool layered);

    // Starts a search for a period with the prices (c,) of devices; returns whether they allow a division.
    bool begin(Int period, Ints prices, Stop& stop);
    // The most weight of a stage for each device of each class (c,); `weight` (n + 1,) holds sums over the nodes before each cut.
    std::vector<Int> rooms(Ints weight, Stop& stop);
    // The devices (c,) that the cheapest stages use.
    std::vector<Int> used() const;
    // Searches all vectors of used devices.
    Pieces table(Stop& stop);
    // Searches with at most `width` vectors for each number of used devices: those whose nodes left cost the least, compared with
    // the devices left.
    Pieces beam(Int width, Stop& stop);

    // The least load of stage [i, j) on r devices of class c with `runs` runs under way, links a and b at its ends; NEVER if none
    // fits.
    Int least_load(Int c, Int r, Int runs, Int i, Int j, Int a, Int b) const;
    Int rows() const { return rows_; }
    Int least_cost() const { return cost_[chain_.n]; }  // of all nodes
    Int next = NEVER;                                   // the least load that was above the period

private:
    // A state for a layer of the beam: stage [cut, end) of a team, where `parent` of layer `origin` has that end.
    struct Candidate {
        Int origin, parent, label, team, cut, context, score;
    };
    // The best states for each number of used devices: layers of `width` states.
    struct Beam {
        Int width = 0;
        std::vector<std::int16_t> used;                    // (m + 1, width, c)
        std::vector<Int> cut, context, left, key, parent;  // (m + 1, width); `left` is the price of the devices left
        std::vector<Int> label, team;                      // (m + 1, width) of the stage that led to the state
        std::vector<Int> filled;                           // (m + 1,)
        std::vector<Int> score, heap, place;               // (width,) of a layer: the states in a heap, the least score first
        std::vector<Int> bucket, follower;                 // states by key
        bool dropped = false;                              // whether states were left out
    };
    // The cuts at which stages may begin, in `cut_`.
    struct List {
        Int start;
        std::int32_t length;
    };

    Int runs_behind(Int devices, Int r) const { return quotient_ceil(devices, r); }
    Int link_to(Int c, Int later) const { return chain_.links == 1 ? 0 : chain_.link[c * chain_.classes + later]; }
    std::span<const std::int32_t> begins(Int c, Int r, Int runs, Int j, Int a, Int b, Stop& stop);
    Int sweep_front(Int vector, Int context, Stop& stop);
    std::vector<Piece> traced(Int front) const;
    Piece step(Int& front, Int cut) const;
    Int& at(std::vector<Int>& values, Int layer, Int slot) { return values[layer * beam_.width + slot]; }
    void settle(Int size, Int place);
    Int find_state(Int layer, const Candidate& added, Int key, Int bucket);
    Int free_place(Int layer);
    Int keep(Int layer, const Candidate& added);
    Int extend(Int layer, Stop& stop);

    const Chain& chain_;
    const Int most_;                       // devices of a team, at most
    const Int rows_;                       // numbers of devices behind that prices count
    Int period_ = -1;
    std::vector<Int> price_, factor_;      // (c,) of a device; in the key of a state
    std::vector<Int> first_;               // (c, most + 1) first row of a class and a team
    std::vector<List> lists_;              // by class, team, runs under way, end and links; length -1 if not filled
    std::vector<std::int32_t> cut_;        // of all lists
    std::vector<Int> cost_;                // (rows, n + 1) least price of stages of the nodes before a cut
    struct Choice {
        std::int32_t label = 0, team = 0, begin = 0;
    };
    std::vector<Choice> choice_;           // (rows, n + 1) their last stage
    // The table: the cuts kept for each vector of used devices and context. There is one context if all links are alike. Else
    // context q * l + a has next class q and link a to it.
    Int contexts_ = 1;
    std::vector<Int> stride_;              // (c,)
    std::vector<List> fronts_;
    std::vector<std::int32_t> front_cut_;
    std::vector<Int> mark_;                // (n + 1,)
    std::vector<std::int32_t> found_;
    Int stamp_ = 0;
    Beam beam_;
};

}  // namespace engine
