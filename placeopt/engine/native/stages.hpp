// Pipelines: the stages of their nodes and units, and the devices of the stages.
//
// Totals of ticks and bytes, those of all runs under way included, are at most 2^60 (placeopt.model.ranges).
#pragma once

#include <array>
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

// k units that a search places on m devices, and x items that may move between them.
struct StageUnits {
    Int k = 0, m = 0, x = 0;
    Ints computing, again;               // (k, m) ticks, and those of outputs that are computed again
    Flags allowed;                       // (k, m)
    Ints fixed, kept, source, gradient;  // (k,) bytes
    Ints tasks;                          // (k, 2) forward and backward tasks
    Rows before, after, apart;           // units whose stages are not later, not earlier; units on other devices
    Rows touched;                        // the items that a unit produces or consumes
    Ints producer, payload;              // (x,)
    Rows consumer;                       // the units that consume an item, at least one
    Ints entering;                       // for each of these, 1 if it consumes the item with a forward task of training
    Ints latency, num, den;              // (m, m)
    Ints capacity, launch, segments, label;  // (m,) bytes, ticks, most stages, class
    Tracks tracks;                       // (m,)
    Int replicas = 1, in_flight = 0;     // most devices of a team; runs whose outputs are kept, 0 for 1f1b
    bool multicast = false, recompute = false;
    bool ordered = false;                // whether stages are limited

    // Whether a unit consumes an item with a forward task of training, 0 or 1.
    Int enters(Int item, Int unit) const {
        for (Int at = consumer.start[item]; at < consumer.start[item + 1]; ++at)
            if (consumer.item[at] == unit) return entering[at];
        return 0;
    }
    // Ticks of an item from device a to another device b.
    Int transfer(Int item, Int a, Int b) const {
        const Int link = a * m + b;
        return add(latency[link], ratio_ceil(payload[item], num[link], den[link]));
    }
};

// How stages along an order use devices, from the last stage on: c classes or devices, q states, r devices of a team at most.
struct DeviceLine {
    Ints device;  // (c,) a device of each class
    Ints then;    // (q, c, r) the state after a team of 1 to r devices, NONE if there are too few
    Ints used;    // (q,) devices used
    Int teams = 0;

    Int classes() const { return static_cast<Int>(device.size()); }
    Int states() const { return static_cast<Int>(used.size()); }
};

// An order of the units, and where stages may begin or end.
struct UnitOrder {
    Ints order, rank;  // (k,) the units, and the position of each
    Ints part;         // (k,) an estimate of the stage of each position, below 63
    Ints cut;          // (b,) positions, the first and the last among them, ascending
};

// The best stages from each cut on, for each state of the devices: (b, q).
struct DivisionTable {
    std::vector<Int> value;   // least period, NEVER without any
    std::vector<Int> origin;  // the cut at which the first of these stages ends
    std::vector<Int> move;    // its class, team, and whether it computes outputs again: (team * classes + class) * 2 + again
};

// Divides an order into stages whose period is less than `below`, from its end.
DivisionTable divide_order(const StageUnits& units, const DeviceLine& line, const UnitOrder& order, Int below, Stop& stop);

// The state of a local search for pipelines: the place of each unit, the device of each place, and teams of devices.
//
// A *place* is a stage that may be empty. Where stages are limited, places are numbered in the order of the pipeline, and a
// unit may move to any place between those of the units before and after it; so each state is a valid sequence of stages.
// Else each device has one place, and units may move anywhere.
//
// The cost of a state is the norm of the periods that the devices allow,
//
//     (sum over devices d of (ticks[d] / team[d] / scale)^p)^(1 / p)    with p = 2^squares
//
// plus `weight` times the shares by which memory exceeds the capacities. stage_moves.cpp has the moves.
class StageSearch {
public:
    struct Placement {
        std::vector<Int> place;   // (k,) place of each unit
        std::vector<Int> home;    // (l,) device of each place; every device has one or more
        std::vector<Int> leader;  // (m,) leader of the team of each device
        std::vector<Int> again;   // (m,) 1 if the device computes outputs again
    };

    StageSearch(const StageUnits& units, Placement start, Int seed, Int squares, double scale, Stop& stop);

    // Tries the moves begin..end of a cooling of `rounds` moves, whose temperature falls from `hot` to `cold`. If it is
    // stopped, only the best placement remains valid.
    void anneal(Int begin, Int end, Int rounds, double hot, double cold, Stop& stop);
    // Returns the cost of the state; sets its period and its bytes above the capacities.
    double assess();
    void set_weight(double changed);

    Placement now, best;
    bool known = false;       // whether there is a best placement
    Int best_period = NEVER;
    double weight = 1.0;
    Int period = 0, over = 0;  // as last assessed

    // Single steps, for tests; `undo` and `restore` are the opposites of `propose` and `rearrange`.
    struct Steps;

private:
    // What the units of a device take.
    struct Load {
        Int busy = 0, again = 0, sent = 0, received = 0, entering = 0, fixed = 0, kept = 0, source = 0, gradient = 0;
        Int tasks[2] = {0, 0};  // forward and backward
    };
    struct Moved {
        Int unit, origin;
    };
    enum class Change { none, swap, recompute, team };
    struct Rearranged {
        Change kind = Change::none;
        Int first = 0, second = 0;  // swap: places; recompute: a device; team: a device and its leader before
    };

    Int draw(Int below) { return (random_ = next_random(random_)) % below; }
    Int where(Int unit) const { return now.home[now.place[unit]]; }
    void poll(Int steps) {
        if (stop_) stop_->poll(steps);
    }
    void walk(Int begin, Int end, Int rounds, double hot, double cold);
    void keep();

    void rebuild();
    void take(Int unit, Int place, Int sign);
    void count(Int item, Int a, Int only, Int sign);
    void shift(Int unit, Int place);

    bool propose();
    bool exchange_units(Int unit);
    void undo();
    bool rearrange();
    void restore();
    bool swap(Int a, Int b);
    bool exchangeable(Int d, Int other) const;
    bool allowed(Int unit, Int place) const;
    bool in_order(Int unit) const;
    Int neighbour(Int unit);
    Int target(Int unit);
    bool go(Int unit, Int place);
    bool gather(Int unit, Int place, Int most);
    bool cluster(Int unit, Int place, Int most);

    const StageUnits& units_;
    Stop* stop_ = nullptr;  // within `anneal`
    Int random_, squares_, longest_;        // `longest_`: most units that a move takes along
    double scale_;                          // ticks that count as one
    double cost_ = 0.0;                     // of the state
    std::vector<Int> team_, stages_;        // (m,) devices of each team, 0 for replicas; scratch
    std::vector<Load> load_;                // (m,)
    std::vector<std::int32_t> consumers_;   // (x, m) units that consume an item, by device
    std::vector<std::int32_t> entering_;    // (x, m) those that do so with forward tasks of training, if outputs may be
                                            // computed again
    std::vector<std::array<Int, 2>> filled_;  // (l,) forward and backward tasks of each place
    std::vector<Moved> moved_;              // units that the last proposal moved
    Rearranged changed_;                    // what the last rearrangement did
};

}  // namespace engine
