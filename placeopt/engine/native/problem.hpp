// The problem as the engine sees it: spans over the arrays of placeopt.model.problem.Problem, which outlive it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "arithmetic.hpp"

namespace engine {

// An argument is wrong: the array, the entry, its value and what was expected. The binding raises it as a UsageError.
struct Wrong : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// The windows in which devices run no task (placeopt.model.unavailability); empty arrays if there are none.
struct Unavailability {
    Ints row, begin, end;  // (m + 1,), (w,) windows of each device, in order and apart

    bool any() const { return !begin.empty(); }
    // The first tick from `tick` on at which device d can start `ticks` ticks of work.
    Int clear_of(Int d, Int tick, Int ticks) const {
        if (!any()) return tick;
        auto at = std::upper_bound(end.begin() + row[d], end.begin() + row[d + 1], tick) - end.begin();
        for (; at < row[d + 1] && begin[at] < add(tick, ticks); ++at) tick = end[at];
        return tick;
    }
};

// Setup times between tasks of different families (placeopt.model.setups); no entries if there are none.
struct Setups {
    Ints family, initial, kind;  // (n,), (m,), (m,) family of each task, first one and table of each device
    Ints ticks;                  // (t, families, families)
    Int families = 0;
    std::vector<char> used;      // (t,) whether any change of a table takes time

    bool any() const { return !ticks.empty(); }
    // Whether device d needs setups.
    bool on(Int d) const { return any() && used[kind[d]]; }
    // Ticks to set up device d for task i after tasks of a family.
    Int before(Int d, Int from, Int i) const { return ticks[(kind[d] * families + from) * families + family[i]]; }
};

// The family that each device is set up for and the end of its last task, while tasks are appended; of tasks that last.
struct SetUp {
    std::vector<Int> family, since;  // (m,); empty without setups

    explicit SetUp(const Setups& setups)
        : family(setups.initial.begin(), setups.initial.end()), since(family.size()) {}
    // The tick from which device d is set up for task i.
    Int ready(const Setups& setups, Int d, Int i) const { return add(since[d], setups.before(d, family[d], i)); }
    void run(const Setups& setups, Int d, Int i, Int end) {
        family[d] = setups.family[i];
        since[d] = end;
    }
    bool operator==(const SetUp&) const = default;
};

// What tasks share besides devices (placeopt.model.resources); no entries if there is nothing.
struct Resources {
    Ints need;                          // (n, m) the entry of each task on each device
    Ints row, resource, amount;         // entry k uses amount[row[k]..row[k + 1]] of resource[row[k]..row[k + 1]]
    Ints capacity;                      // (r,)
    std::span<const bool> renewable;    // (r,)
    std::span<const bool> parallel;     // (m,) devices that run several tasks at once

    bool any() const { return !row.empty(); }
};

// The channels of shared links (placeopt.model.shared_links); no entries if there are none.
struct SharedLinks {
    Ints label;         // (m,) below `labels`
    Ints row, channel;  // (labels^2 + 1,), (u,) channels of transfers between devices of two labels
    Int labels = 0, channels = 0;

    bool any() const { return !row.empty(); }
};

// What carries one transfer at a time: the ports of devices under port contention, then the channels of shared links. A
// transfer occupies the sender's port a, the receiver's `receive` + b, which is b under half duplex, and its channels.
struct Ports {
    Int m = 0, receive = 0;
    bool own = false;  // port contention
    SharedLinks links;

    bool any() const { return own || links.any(); }
    Int count() const { return 2 * m + links.channels; }
    // Calls `visit` with each port of a transfer from device a to device b.
    template <class Visit>
    void each(Int a, Int b, Visit&& visit) const {
        if (own) {
            visit(a);
            visit(receive + b);
        }
        if (!links.any()) return;
        const Int entry = links.label[a] * links.labels + links.label[b];
        for (Int at = links.row[entry]; at < links.row[entry + 1]; ++at) visit(2 * m + links.channel[at]);
    }
    // The first tick from `tick` on at which all ports of a transfer are free; `free` (count,) says from when each is.
    Int open(const std::vector<Int>& free, Int a, Int b, Int tick) const {
        each(a, b, [&](Int port) { tick = std::max(tick, free[port]); });
        return tick;
    }
    // Books a transfer of `ticks` ticks as early as from `tick` on; returns its start.
    Int book(std::vector<Int>& free, Int a, Int b, Int tick, Int ticks) const {
        if (!links.any()) {  // as fast as without them
            Int &sender = free[a], &receiver = free[receive + b];
            tick = std::max({tick, sender, receiver});
            sender = receiver = add(tick, ticks);
            return tick;
        }
        tick = open(free, a, b, tick);
        each(a, b, [&](Int port) { free[port] = add(tick, ticks); });
        return tick;
    }
};

// n tasks, m devices, e edges, g groups, t memory tiers. Matrices are in row-major order.
struct Problem {
    Int n = 0, m = 0, e = 0, g = 0, t = 0;
    Ints duration;                            // (n, m) ticks
    Ints release;                             // (n,) ticks
    Ints group;                               // (n,)
    Ints edge_source, edge_target, payload;   // (e,)
    std::span<const bool> shared;             // (e,)
    Ints out_start, in_start, in_edge, order; // (n + 1,), (n + 1,), (e,), (n,)
    Ints latency, num, den;                   // (m, m): num ticks move den bytes
    Ints capacity;                            // (m,) bytes
    Ints tier_end, tier_num, tier_den;        // (m, t), t = 0 without tiers
    Unavailability unavailable;
    Setups setups;
    Resources resources;
    Ports ports;

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
    bool parallel(Int d) const { return resources.any() && resources.parallel[d]; }
    // Whether task i needs device d to be set up for it.
    bool sets_up(Int i, Int d) const { return setups.on(d) && work(i, d) > 0; }

    // Ticks that a payload takes from device a to another device b.
    Int transfer(Int bytes, Int a, Int b) const {
        const Int link = a * m + b;
        return add(latency[link], ratio_ceil(bytes, num[link], den[link]));
    }

    // Ticks for which device d swaps with `used` bytes; those beyond its last tier do not count.
    Int swap_time(Int d, Int used) const {
        Int ticks = 0;
        for (Int k = d * t + 1; k < (d + 1) * t; ++k) {
            const Int before = tier_end[k - 1];
            if (used <= before) break;
            ticks = add(ticks, ratio_ceil(std::min(used, tier_end[k]) - before, tier_num[k], tier_den[k]));
        }
        return ticks;
    }
};

// Checks that entries are at least `least` and at most `most`.
void check_range(const char* name, Ints values, Int least, Int most);

// Checks the windows of m devices.
void check_unavailability(const Unavailability& unavailable, Int m);

// Checks the setups, and fills what is derived.
void check_setups(Setups& setups);

// Checks the channels of shared links of m devices.
void check_ports(const Ports& ports);

// Checks the resources of n tasks on m devices.
void check_resources(const Resources& resources);

// Checks that `start` are the n + 1 bounds of n consecutive ranges in an array of `total` entries.
void check_starts(const char* name, Ints start, Int total);

}  // namespace engine
