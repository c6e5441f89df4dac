// A schedule under construction: what devices, ports and memory hold, the earliest start of a task, placing it, and
// taking placements back.
//
// Transfers under port contention are booked when their consumer is placed: its missing inputs in the order in which
// their producers end, each after all transfers booked before at both ports (O. Beaumont, V. Boudet, Y. Robert: A
// realistic model and an efficient heuristic for scheduling with heterogeneous processors, IPDPS 2002,
// doi:10.1109/IPDPS.2002.1015663). Gaps between transfers are not used. A finished timeline is therefore a valid
// schedule with or without contention.
#pragma once

#include <numeric>

#include "arithmetic.hpp"
#include "memory.hpp"
#include "stop.hpp"
#include "usage.hpp"

namespace engine {

// What loops need to know at compile time.
struct Rules {
    bool ports = false;  // port contention or shared links
    bool tiers = false;  // memory tiers
    bool peak = false;   // live memory
    bool resources = false;  // resources; then tiers and live memory count too, where there are any
};

struct Gap {
    Int start, end;
};

// In place of a gap: the open end after all tasks of the device.
constexpr Int OPEN = -2;

// The start of a task on a device, and the gap that it uses; NONE for a task that occupies no gap.
struct Slot {
    Int start, gap;
};

// A task on a device that needs setups, or on another mode of it.
struct Stay {
    Int start, end, task;
    bool lasts() const { return end > start; }
};

// The data of a timeline, whatever the rules.
struct Line {
    const Problem& problem;
    const Groups& groups;
    const bool insertion;  // whether `slot` uses gaps between tasks
    const bool record;     // whether placements can be taken back

    std::vector<Int> home;          // (g,) device of each group, -1 for groups without a home
    std::vector<Int> room;          // (m,) bytes left; with live memory, bytes beyond the resident ones
    std::vector<Int> trees;         // (m, 2 leaves) with live memory: the profile of each device
    std::vector<Int> device;        // (n,) of the placed tasks; -1 for the others
    std::vector<Int> start, end;    // (n,) of the placed tasks
    std::vector<Int> free, first;   // (m,) end of the last task, start of the first; NEVER without tasks
    std::vector<Int> ready;         // (m,) result of `compute_ready`
    std::vector<std::vector<Gap>> gaps;  // of each device in order of time, those of positive length, then the open end
    std::vector<Int> longest;       // (m,) of the gaps before the open end, 0 if there are none
    std::vector<Int> latest;        // (m,) end of the last of these gaps, 0 if there are none
    std::vector<Int> ports;         // the tick from which each port is free
    std::vector<Int> sent;          // (n, m) with ports: arrival of the task's shared output there; -1 if not sent
    std::vector<Int> moves;         // (e,) with ports: start of each edge's transfer; -1 without a separate one
    std::vector<Int> inputs;        // (e,) with ports: positions of each task's in-edges in the order of transfers
    std::vector<Int> arrival;       // scratch: (m,) of each kind of link
    std::vector<char> closed;       // (m,) devices that take no further groups, for `contends`; empty if none ever closes
    std::vector<std::vector<Stay>> stays;  // of each station that needs setups, by start and end; empty without setups
    Usage usage;                    // what placed tasks use of renewable resources
    std::vector<Int> left;          // (b,) what groups with a home leave of each budget

    // With `record`: what each placement changed, the latest last.
    struct Change {
        Int* cell;
        Int before;
    };
    struct GapChange {
        Int device, gap, count;  // `count` gaps follow where one was: 0, 1 or 2
        Gap before;
    };
    struct Placement {
        Int task;
        bool homed;  // whether the task gave its group a home
        std::size_t changes, gap_changes;
    };
    std::vector<Change> changes;
    std::vector<Change> tried;      // scratch: ports that a trial has written
    std::vector<GapChange> gap_changes;
    std::vector<Placement> placements;

    Line(const Problem& of, const Groups& parts, bool use_gaps, bool recording);

    Rules rules() const {
        return {problem.ports.any(), problem.tiers.any(), groups.live.on, problem.resources.any()};
    }
    Profile profile(Int d) {
        const Int size = 2 * groups.live.leaves;
        return Profile(std::span(trees).subspan(d * size, size));
    }
    // The renewable resources that task i uses on device d, as an entry.
    Int need(Int i, Int d) const { return problem.resources.need[i * problem.m + d]; }
    // Whether budgets leave enough for group k on device d.
    bool affords(Int k, Int d) const {
        const Budgets& budgets = groups.budgets;
        if (!budgets.any()) return true;
        const Int entry = k * problem.m + d;
        for (Int at = budgets.row[entry]; at < budgets.row[entry + 1]; ++at)
            if (budgets.amount[at] > left[budgets.budget[at]]) return false;
        return true;
    }
    // Books what group k uses of budgets on device d, or with sign -1 gives it back.
    void spend(Int k, Int d, Int sign) {
        const Budgets& budgets = groups.budgets;
        if (!budgets.any()) return;
        const Int entry = k * problem.m + d;
        for (Int at = budgets.row[entry]; at < budgets.row[entry + 1]; ++at)
            left[budgets.budget[at]] = subtract(left[budgets.budget[at]], sign * budgets.amount[at]);
    }
    // Whether no budget is exceeded.
    bool solvent() const {
        return std::all_of(left.begin(), left.end(), [](Int amount) { return amount >= 0; });
    }
    void assign_group(Int k, Int d);
    void release_group(Int k);
    // Takes back the latest placement.
    void remove();
    // Takes back all placements at once, without live memory, ports and `record`. `device`, `start` and `end` stay: they are
    // valid again once the tasks are placed.
    void clear();
    // The tick from which device d is set up for task i after the first `before` stays there.
    Int set_up(Int i, Int d, std::size_t before) const {
        const auto& there = stays[problem.station(d)];
        const Int end = before == 0 ? 0 : there[before - 1].end;
        while (before > 0 && !there[before - 1].lasts()) --before;
        if (before == 0) return std::max(end, problem.at_first(d, i));
        const Stay& last = there[before - 1];
        return std::max(end, add(last.end, problem.between(d, last.task, i)));
    }
    // Makes every device free, except in its windows of unavailability.
    void open_gaps();

    // Check that a task, or tasks in turn, can be placed: each is in the problem, not placed yet, and after its producers.
    void check_next(Int i) const;
    void check_sequence(Ints sequence) const;
};

// The operations on a line. An algorithm is a template over the timeline, so that rules cost nothing where absent.
template <Rules rules>
class Timeline {
public:
    Line& line;
    const Problem& problem;
    const Groups& groups;

    explicit Timeline(Line& on) : line(on), problem(on.problem), groups(on.groups) {}

    // Whether device d, which may take group k, has the memory for it, and budgets leave enough.
    bool has_room(Int k, Int d) {
        const Int left = subtract(line.room[d], groups.memory[k]);
        if (left < 0) return false;
        if constexpr (rules.resources)
            if (!line.affords(k, d)) return false;
        if constexpr (rules.peak)
            if (groups.live.on) return line.profile(d).holds(groups.live, k, left);
        return true;
    }

    // Whether device d holds no group that must be apart from group k.
    bool stays_apart(Int k, Int d) const {
        for (Int r = groups.apart_start[k]; r < groups.apart_start[k + 1]; ++r)
            if (line.home[groups.apart[r]] == d) return false;
        return true;
    }

    // Whether device d can take group k, which has no home.
    bool can_host(Int k, Int d) { return groups.feasible[k * problem.m + d] && has_room(k, d) && stays_apart(k, d); }

    // Whether device d can take task i: if its group has a home, only that.
    bool can_run(Int i, Int d) {
        const Int k = problem.group[i], home = line.home[k];
        return home >= 0 ? home == d : can_host(k, d);
    }

    // Whether task i competes for device d: if it can run there, or if devices close, also with too little room there.
    //
    // A task that is chosen for a device without room closes the device: only groups with a home there remain.
    bool contends(Int i, Int d) {
        const Int k = problem.group[i], home = line.home[k];
        if (home >= 0) return home == d;
        if (line.closed.empty()) return can_host(k, d);
        return groups.feasible[k * problem.m + d] && !line.closed[d] && stays_apart(k, d);
    }

    // Fills `line.ready` with the tick from which task i can start on each device; its producers must be placed.
    void compute_ready(Int i) {
        auto& ready = line.ready;
        const Int m = problem.m;
        if constexpr (rules.ports) {
            sort_inputs(i);
            for (Int d = 0; d < m; ++d) ready[d] = through_ports<false>(i, d);
            return;
        }
        if constexpr (rules.tiers) {
            for (Int d = 0; d < m; ++d) ready[d] = opens(i, d);
        } else {
            std::fill(ready.begin(), ready.end(), problem.release[i]);
        }
        for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
            const Int u = problem.in_source[r], a = line.device[u], end = line.end[u];
            const Int own = std::max(ready[a], end);
            if (problem.kinds[a] == 2) {
                raise_all(ready, arrival(r, a, 1, end));  // all links from this device are alike
            } else {
                line.arrival[0] = end;
                for (Int c = 1; c < problem.kinds[a]; ++c) line.arrival[c] = arrival(r, a, c, end);
                const Int* kind = &problem.kind[a * m];
                for (Int b = 0; b < m; ++b) ready[b] = std::max(ready[b], line.arrival[kind[b]]);
            }
            ready[a] = own;
        }
    }

    // The same for one device.
    Int ready_time(Int i, Int d) {
        if constexpr (rules.ports) {
            sort_inputs(i);
            return through_ports<false>(i, d);
        }
        Int ready = opens(i, d);
        for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
            const Int u = problem.in_source[r], a = line.device[u];
            const Int end = line.end[u];
            ready = std::max(ready, a == d ? end : add(end, problem.transfer(problem.in_payload[r], a, d)));
        }
        return ready;
    }

    // A lower bound of `earliest` for task i on device d, after `compute_ready`: a task that fits into no gap starts after all
    // tasks of the device.
    Int least_start(Int i, Int d) const {
        const Int ready = line.ready[d];
        if (rules.resources || !line.stays.empty() || fits_gap(d, problem.work(i, d), ready)) return ready;
        return std::max(ready, line.free[d]);
    }

    // The earliest start of task i on device d at or after `ready`, in a gap between tasks or after the last.
    Slot earliest(Int i, Int d, Int ready) const {
        return with_resources(i, d, ready, [&](Int from) { return earliest_on_device(i, d, from); });
    }

    // The same regardless of resources. A parallel device is always free, except in its windows of unavailability.
    Slot earliest_on_device(Int i, Int d, Int ready) const {
        const Int ticks = problem.work(i, d);
        if (problem.sets_up(d)) return {between_tasks(i, d, ready), NONE};
        if (ticks == 0) {
            // A task of no duration may start where two tasks touch; only the end of a producer is tried.
            if (ready == 0) return {ready, NONE};
            for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
                const Int u = problem.in_source[r];
                if (line.device[u] == d && line.end[u] == ready) return {ready, NONE};
            }
        }
        // Windows in which the device is unavailable are no gaps, so its open end may begin after its last task.
        const Int start = std::max(ready, problem.unavailable.any() ? line.gaps[d].back().start : line.free[d]);
        if (start >= NEVER - ticks) throw Overflow();
        if (!fits_gap(d, ticks, ready)) return {start, OPEN};
        // Gaps that end too early are skipped by bisection; of the others the first that fits. The open end always does.
        const auto& gaps = line.gaps[d];
        Int low = 0, high = static_cast<Int>(gaps.size()) - 1;
        while (low < high) {
            const Int middle = (low + high) / 2;
            if (gaps[middle].end >= ready + ticks) high = middle;
            else low = middle + 1;
        }
        while (std::max(gaps[low].start, ready) + ticks > gaps[low].end) ++low;
        return {std::max(gaps[low].start, ready), low};
    }

    // The start of task i on device d: with insertion the earliest, otherwise after all tasks of the device.
    Slot slot(Int i, Int d, Int ready) const {
        if (line.insertion) return earliest(i, d, ready);
        if (problem.sets_up(i, d)) ready = std::max(ready, line.set_up(i, d, line.stays[problem.station(d)].size()));
        return with_resources(i, d, std::max(ready, line.free[d]),
                              [&](Int from) { return Slot{problem.open(d, from, problem.work(i, d)), NONE}; });
    }

    // Places task i on device d as early as its data and the tasks there allow, see `slot`.
    void place(Int i, Int d) { occupy(i, d, slot(i, d, ready_time(i, d))); }

    // Places task i on device d after all its tasks, with resources as soon as these allow; for heuristics that never use
    // gaps.
    void append(Int i, Int d, Int start) {
        occupy(i, d, with_resources(i, d, start, [](Int from) { return Slot{from, NONE}; }));
    }

    // Places task i on device d in a slot from `earliest` or `slot`. The first task of a group decides its home.
    void occupy(Int i, Int d, Slot slot) {
        const Int k = problem.group[i];
        const bool homed = line.home[k] < 0;
        if (line.record)
            line.placements.push_back({i, homed, line.changes.size(), line.gap_changes.size()});
        if (homed) line.assign_group(k, d);
        if constexpr (rules.ports) {
            sort_inputs(i);
            through_ports<true>(i, d);
        }
        const Int end = add(slot.start, problem.work(i, d));
        if (end >= NEVER) throw Overflow();
        set(line.device[i], d);
        set(line.start[i], slot.start);
        set(line.end[i], end);
        set(line.first[d], std::min(line.first[d], slot.start));
        if constexpr (rules.resources) {
            line.usage.count(line.need(i, d), slot.start, end, 1);
            if (problem.parallel(d)) return;
        }
        set(line.free[d], std::max(line.free[d], end));
        if (slot.gap != NONE) use_gap(d, slot, end);
        if (problem.sets_up(d)) {
            auto& stays = line.stays[problem.station(d)];
            const Stay stay{slot.start, end, i};
            const auto earlier = [](const Stay& a, const Stay& b) {
                return a.start != b.start ? a.start < b.start : a.end < b.end;
            };
            stays.insert(std::upper_bound(stays.begin(), stays.end(), stay, earlier), stay);
        }
    }

    // Arrival of in-edge r, whose producer ends at `end`, over a link of kind c from device a.
    Int arrival(Int r, Int a, Int c, Int end) const {
        return add(end, problem.transfer(problem.in_payload[r], a, problem.leader[a * problem.m + c]));
    }

private:
    // Whether a gap before the open end of device d may have room for `ticks` ticks from `ready` on.
    bool fits_gap(Int d, Int ticks, Int ready) const { return ticks <= line.longest[d] && ticks <= line.latest[d] - ready; }

    // The first slot of `on_device(tick)` from `ready` on at which task i has its resources on device d as long as it runs.
    template <class OnDevice>
    Slot with_resources([[maybe_unused]] Int i, [[maybe_unused]] Int d, Int ready, OnDevice&& on_device) const {
        if constexpr (rules.resources) {
            Slot found{};
            line.usage.earliest(line.need(i, d), ready, problem.work(i, d), [&](Int from) {
                found = on_device(from);
                return found.start;
            });
            return found;
        } else {
            return on_device(ready);
        }
    }

    // The earliest start of task i on device d from `ready` on with setups before it and before the task after it.
    //
    // The triangle inequality makes it enough to look at these two. Setups go on while the device is unavailable.
    Int between_tasks(Int i, Int d, Int ready) const {
        const auto& stays = line.stays[problem.station(d)];
        const Int ticks = problem.work(i, d);
        std::size_t k = 0;
        if (ticks == 0) {
            for (Int tick = ready;;) {  // anywhere but inside a task or a window
                for (; k < stays.size() && stays[k].start < tick; ++k) tick = std::max(tick, stays[k].end);
                const Int open = problem.open(d, tick, 0);
                if (open == tick) return tick;
                tick = open;
            }
        }
        const auto fits = [&](Int end) {  // up to the next task that lasts
            for (std::size_t next = k; next < stays.size(); ++next) {
                const bool lasts = stays[next].lasts();
                const Int setup = lasts ? problem.between(d, i, stays[next].task) : 0;
                if (add(end, setup) > stays[next].start) return false;
                if (lasts) break;
            }
            return true;
        };
        while (k < stays.size() && stays[k].start < add(ready, ticks)) ++k;
        for (;; ++k) {
            const Int tick = problem.open(d, std::max(ready, line.set_up(i, d, k)), ticks);
            if (fits(add(tick, ticks))) return tick;
        }
    }

    void set(Int& cell, Int value) {
        if (line.record) line.changes.push_back({&cell, cell});
        cell = value;
    }

    // The tick from which task i can start on device d regardless of its inputs.
    //
    // With memory tiers the device swaps first. If the bytes of a group without a home take more swap time than the
    // device waits anyway, they delay its first task, and with it the tasks placed so far: the new task starts after
    // these, as much later.
    Int opens(Int i, Int d) const {
        Int ready = problem.release[i];
        if constexpr (rules.tiers) {
            const Int used = subtract(problem.capacity[d], line.room[d]), k = problem.group[i];
            Int swapped = problem.tiers.swap_time(d, used);
            if (line.home[k] < 0) {
                const Int before = swapped;
                swapped = problem.tiers.swap_time(d, add(used, groups.memory[k]));
                const Int delay = std::max(swapped, line.first[d]) - std::max(before, line.first[d]);
                if (delay > 0) ready = std::max(ready, add(line.free[d], delay));
            }
            ready = std::max(ready, swapped);
        }
        return ready;
    }

    // Sorts the in-edges of task i in `line.inputs` by the ends of their producers, then by edge.
    void sort_inputs(Int i) {
        const auto before = [this](Int a, Int b) {
            const Int first = line.end[problem.in_source[a]], second = line.end[problem.in_source[b]];
            return first != second ? first < second : a < b;
        };
        const auto low = line.inputs.begin() + problem.in_start[i], high = line.inputs.begin() + problem.in_start[i + 1];
        if (!std::is_sorted(low, high, before)) std::sort(low, high, before);
    }

    // The tick from which task i can start on device d with ports; `book` reserves them.
    //
    // Without shared links a trial writes nothing: of all ports, only the receiving one is used again. A second transfer
    // from the same device waits for that in any case.
    template <bool book>
    Int through_ports(Int i, Int d) {
        const Ports& ports = problem.ports;
        const bool quick = !book && !ports.links.any();
        Int ready = opens(i, d), free = line.ports[ports.receive + d];
        for (Int at = problem.in_start[i]; at < problem.in_start[i + 1]; ++at) {
            const Int r = line.inputs[at], u = problem.in_source[r], a = line.device[u], edge = problem.in_edge[r];
            Int there = line.end[u];
            if (a != d) {
                const bool shared = problem.shared[edge];
                Int& sent = line.sent[u * problem.m + d];
                if (shared && sent >= 0) {
                    there = sent;
                } else {
                    const Int begin = quick ? std::max({there, line.ports[a], free}) : ports.open(line.ports, a, d, there);
                    there = free = add(begin, problem.transfer(problem.in_payload[r], a, d));
                    if (!quick)
                        ports.each(a, d, [&](Int port) {
                            if constexpr (book) {
                                set(line.ports[port], free);
                            } else {
                                line.tried.push_back({&line.ports[port], line.ports[port]});
                                line.ports[port] = free;
                            }
                        });
                    if constexpr (book) {
                        set(line.moves[edge], begin);
                        if (shared) set(sent, free);
                    }
                }
            }
            ready = std::max(ready, there);
        }
        for (; !line.tried.empty(); line.tried.pop_back()) *line.tried.back().cell = line.tried.back().before;
        return ready;
    }

    // Takes [slot.start, end) out of a gap of device d.
    void use_gap(Int d, Slot slot, Int end) {
        auto& gaps = line.gaps[d];
        const Int open = static_cast<Int>(gaps.size()) - 1, gap = slot.gap == OPEN ? open : slot.gap;
        const Gap whole = gaps[gap];
        const Int before = slot.start - whole.start, after = whole.end - end;
        if (line.record) line.gap_changes.push_back({d, gap, (before > 0) + (after > 0), whole});
        if (before > 0) {
            gaps[gap].end = slot.start;
            if (after > 0) gaps.insert(gaps.begin() + gap + 1, {end, whole.end});
        } else if (after > 0) {
            gaps[gap].start = end;
        } else {
            gaps.erase(gaps.begin() + gap);
        }
        Int longest = std::max(line.longest[d], gap < open ? Int{0} : before);
        if (gap < open && whole.end - whole.start == longest) {
            longest = 0;
            for (std::size_t k = 0; k + 1 < gaps.size(); ++k) longest = std::max(longest, gaps[k].end - gaps[k].start);
        }
        set(line.longest[d], longest);
        set(line.latest[d], gaps.size() < 2 ? 0 : gaps[gaps.size() - 2].end);
    }
};

// Calls `body` with the timeline for the rules of a line.
template <class Body>
auto with_rules(Line& line, Body&& body) {
    const Rules rules = line.rules();
    const auto ruled = [&]<bool ports, bool tiers, bool peak, bool resources = false>() {
        Timeline<Rules{ports, tiers, peak, resources}> timeline(line);
        return body(timeline);
    };
    // Live memory and memory tiers exclude each other, but this does not depend on it.
    const auto swaps = [&]<bool ports>() {
        if (rules.resources) return ruled.template operator()<ports, true, true, true>();
        if (rules.tiers) return rules.peak ? ruled.template operator()<ports, true, true>() : ruled.template operator()<ports, true, false>();
        return rules.peak ? ruled.template operator()<ports, false, true>() : ruled.template operator()<ports, false, false>();
    };
    return rules.ports ? swaps.template operator()<true>() : swaps.template operator()<false>();
}

}  // namespace engine
