// Rules of execution that a problem may have (placeopt.model.rules), and what they ask of tasks and transfers.
#pragma once

#include <algorithm>
#include <vector>

#include "arithmetic.hpp"
#include "checks.hpp"

namespace engine {

// Memory tiers (placeopt.model.tiers); t = 0 without them.
struct Tiers {
    Ints end, num, den;  // (m, t) bytes of each tier and those before; num ticks move den bytes
    Int t = 0;

    bool any() const { return t > 0; }
    // Ticks for which device d swaps with `used` bytes; those beyond its last tier do not count.
    Int swap_time(Int d, Int used) const {
        Int ticks = 0;
        for (Int k = d * t + 1; k < (d + 1) * t; ++k) {
            const Int before = end[k - 1];
            if (used <= before) break;
            ticks = add(ticks, ratio_ceil(std::min(used, end[k]) - before, num[k], den[k]));
        }
        return ticks;
    }
    void check() const {
        check_range("tiers.end", end, 0, INT64_MAX);
        check_range("tiers.byte_ticks_num", num, 0, INT64_MAX);
        check_range("tiers.byte_ticks_den", den, 1, INT64_MAX);
        check_ratios("tiers.byte_ticks_num", num, den);
    }
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
    void check(Int m) const {
        if (!any()) return;
        check_starts("unavailable.row", row, static_cast<Int>(begin.size()));
        check_range("unavailable.begin", begin, 0, NEVER - 1);
        check_range("unavailable.end", end, 1, NEVER - 1);
        for (Int d = 0; d < m; ++d)
            for (Int w = row[d]; w < row[d + 1]; ++w) {
                if (end[w] <= begin[w]) wrong("unavailable.end", w, end[w], "more than its begin");
                if (w > row[d] && begin[w] <= end[w - 1])
                    wrong("unavailable.begin", w, begin[w], "more than the end before");
            }
    }
};

// Setup times between tasks of different families (placeopt.model.setups); no entries if there are none.
struct Setups {
    Ints family, initial, kind;  // (n,), (m,), (m,) family of each task, first one and table of each device
    Ints ticks;                  // (t, families, families)
    Ints station;                // (m,) the device that stands for each one and its other modes
    Int families = 0;
    std::vector<char> used;      // (t,) whether any change of a table takes time

    bool any() const { return !ticks.empty(); }
    // Whether device d needs setups.
    bool on(Int d) const { return any() && used[kind[d]]; }
    // Ticks to set up device d for task i after tasks of a family.
    Int before(Int d, Int from, Int i) const { return ticks[(kind[d] * families + from) * families + family[i]]; }
    void check() {
        if (!any()) return;
        const Int size = families * families, tables = static_cast<Int>(ticks.size()) / size;
        check_range("setups.family", family, 0, families - 1);
        check_range("setups.initial", initial, 0, families - 1);
        check_range("setups.kind", kind, 0, tables - 1);
        check_range("setups.station", station, 0, static_cast<Int>(station.size()) - 1);
        check_range("setups.ticks", ticks, 0, NEVER - 1);
        for (Int t = 0; t < tables; ++t) {
            const Ints table = ticks.subspan(t * size, size);
            used.push_back(std::any_of(table.begin(), table.end(), [](Int each) { return each > 0; }));
        }
    }
};

// What tasks share besides devices (placeopt.model.resources); no entries if there is nothing.
struct Resources {
    Ints need;                          // (n, m) the entry of each task on each device
    Ints row, resource, amount;         // entry k uses amount[row[k]..row[k + 1]] of resource[row[k]..row[k + 1]]
    Ints capacity;                      // (r,)
    std::span<const bool> renewable;    // (r,)
    std::span<const bool> parallel;     // (m,) devices that run several tasks at once

    bool any() const { return !row.empty(); }
    void check() const {
        if (!any()) return;
        const Int entries = static_cast<Int>(row.size()) - 1;
        check_starts("resources.row", row, static_cast<Int>(resource.size()));
        check_range("resources.need", need, 0, entries - 1);
        check_range("resources.resource", resource, 0, static_cast<Int>(capacity.size()) - 1);
        check_range("resources.amount", amount, 1, NEVER - 1);
        check_range("resources.capacity", capacity, 0, NEVER - 1);
    }
};

// The channels of shared links (placeopt.model.shared_links); no entries if there are none.
struct SharedLinks {
    Ints label;         // (m,) below `labels`
    Ints row, channel;  // (labels^2 + 1,), (u,) channels of transfers between devices of two labels
    Int labels = 0, channels = 0;

    bool any() const { return !row.empty(); }
    void check() const {
        if (!any()) return;
        check_range("shared_links.label", label, 0, labels - 1);
        check_starts("shared_links.row", row, static_cast<Int>(channel.size()));
        check_range("shared_links.channel", channel, 0, channels - 1);
    }
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

// The rules of a problem of n tasks and m devices. Loops ask them, not the single rules.
struct ExecutionRules {
    Tiers tiers;
    Unavailability unavailable;
    Setups setups;
    Resources resources;
    Ports ports;

    // Whether there are any but tiers.
    bool ruled() const { return unavailable.any() || setups.any() || resources.any() || ports.any(); }
    bool parallel(Int d) const { return resources.any() && resources.parallel[d]; }
    // The first tick from `tick` on at which device d can start `ticks` ticks of work.
    Int open(Int d, Int tick, Int ticks) const { return unavailable.clear_of(d, tick, ticks); }
    // Whether device d, or any device, is set up for tasks that last.
    bool sets_up(Int d) const { return setups.on(d); }
    bool sets_up() const { return setups.any(); }
    // The device that stands for device d in what it is set up for; one that is not set up stands for itself.
    Int station(Int d) const { return sets_up(d) ? setups.station[d] : d; }
    // Ticks to set up device d for task i before all other tasks, and after task j.
    Int at_first(Int d, Int i) const { return setups.before(d, setups.initial[d], i); }
    Int between(Int d, Int j, Int i) const { return setups.before(d, setups.family[j], i); }
    // Checks every array, and fills what is derived; throws Wrong.
    void check_rules(Int m) {
        tiers.check();
        unavailable.check(m);
        setups.check();
        resources.check();
        ports.links.check();
    }
};

// The family that each station is set up for and the end of its last task, while tasks are appended; of tasks that last.
struct SetUp {
    std::vector<Int> family, since;  // (m,); empty without setups

    explicit SetUp(const ExecutionRules& rules)
        : family(rules.setups.initial.begin(), rules.setups.initial.end()), since(family.size()) {}
    bool any() const { return !family.empty(); }
    // The tick from which device d is set up for task i.
    Int ready(const ExecutionRules& rules, Int d, Int i) const {
        const Int s = rules.setups.station[d];
        return add(since[s], rules.setups.before(d, family[s], i));
    }
    void run(const ExecutionRules& rules, Int d, Int i, Int end) {
        const Int s = rules.setups.station[d];
        family[s] = rules.setups.family[i];
        since[s] = end;
    }
    bool operator==(const SetUp&) const = default;
};

}  // namespace engine
