// Executions of a placement, event by event or along a given sequence.
#include "simulation.hpp"

namespace engine {

Simulation::Simulation(const Problem& problem, Ints memory)
    : device(problem.n), task_ticks(problem.n), edge_ticks(problem.e), rank(problem.n), start(problem.n), moves(problem.e, -1),
      problem_(problem), memory_(memory), swap_(problem.m), waiting_(problem.n), ready_(problem.n), free_(problem.m),
      ports_(problem.ports.count()), sent_by_(problem.m), sent_at_(problem.m), first_(problem.m + 1), queued_(problem.n),
      length_(problem.m), begun_(problem.m), busy_(problem.m), usage_(problem.resources), set_up_(problem),
      by_rank_(problem.m) {}

void Simulation::place(Ints devices) {
    device.assign(devices.begin(), devices.end());
    for (Int i = 0; i < problem_.n; ++i) {
        const Int a = device[i];
        task_ticks[i] = problem_.work(i, a);
        for (Int k = problem_.out_start[i]; k < problem_.out_start[i + 1]; ++k) {
            const Int b = device[problem_.edge_target[k]];
            edge_ticks[k] = a == b ? 0 : problem_.transfer(problem_.payload[k], a, b);
        }
    }
    if (!problem_.tiers.any()) return;
    std::vector<Int> used(problem_.m);
    for (Int i = 0; i < problem_.n; ++i) used[device[i]] = add(used[device[i]], memory_[i]);
    for (Int d = 0; d < problem_.m; ++d) swap_[d] = problem_.tiers.swap_time(d, used[d]);
}

void Simulation::clear() {
    usage_.clear();
    if (set_up_.any()) set_up_ = SetUp(problem_);
}

Int Simulation::begin(Int i, Int tick) {
    const bool sets_up = problem_.sets_up(i, device[i]);
    if (sets_up) tick = std::max(tick, set_up_.ready(problem_, device[i], i));
    const Int d = device[i], ticks = task_ticks[i], entry = usage_.any() ? problem_.resources.need[i * problem_.m + d] : 0;
    const auto open = [&](Int from) { return problem_.open(d, from, ticks); };
    const Usage::Spot spot = usage_.earliest(entry, tick, ticks, open);
    start[i] = spot.tick;
    usage_.book(entry, spot, ticks);
    if (sets_up) set_up_.run(problem_, d, i, add(start[i], ticks));
    return add(start[i], ticks);
}

Int Simulation::run(Discipline discipline, Stop& stop) {
    switch (discipline) {
        case Discipline::priority: return run_events<Discipline::priority>(stop);
        case Discipline::order: return run_events<Discipline::order>(stop);
        default: return problem_.ports.any() ? run_events<Discipline::fifo>(stop) : run_fifo(stop);
    }
}

// Fills what tasks wait for. Those without producers are events, coded by their index and an offset.
void Simulation::make_ready(Int offset) {
    events_.clear();
    for (Int i = 0; i < problem_.n; ++i) {
        ready_[i] = std::max(problem_.release[i], swap_[device[i]]);
        waiting_[i] = problem_.in_start[i + 1] - problem_.in_start[i];
        if (waiting_[i] == 0) events_.push(ready_[i], offset + i);
    }
}

// Without ports, tasks start on every device in the order in which they become ready. One queue of all tasks by (ready tick,
// index) therefore replaces queues of devices: what a task makes ready is ready no earlier than the task itself.
Int Simulation::run_fifo(Stop& stop) {
    std::fill(free_.begin(), free_.end(), 0);
    clear();
    make_ready(0);
    Int span = 0;
    while (!events_.empty()) {
        const Int i = events_.top().item, d = device[i];
        events_.pop();
        stop.poll(20 + 4 * (problem_.out_start[i + 1] - problem_.out_start[i]));
        const Int end = begin(i, std::max(ready_[i], free_[d]));
        if (!problem_.parallel(d)) free_[d] = end;
        span = std::max(span, end);
        for (Int k = problem_.out_start[i]; k < problem_.out_start[i + 1]; ++k) {
            const Int j = problem_.edge_target[k];
            ready_[j] = std::max(ready_[j], add(end, edge_ticks[k]));
            if (--waiting_[j] == 0) events_.push(ready_[j], j);
        }
    }
    return span;
}

// The arrival of an edge's data if its producer ends at this tick; books its transfer with ports.
Int Simulation::arrival(Int edge, Int tick) {
    const Int u = problem_.edge_source[edge], a = device[u], b = device[problem_.edge_target[edge]];
    if (a == b) return tick;
    if (!problem_.ports.any()) return add(tick, edge_ticks[edge]);
    const bool shared = problem_.shared[edge];
    if (shared && sent_by_[b] == u) return sent_at_[b];
    moves[edge] = problem_.ports.book(ports_, a, b, tick, edge_ticks[edge]);
    const Int end = add(moves[edge], edge_ticks[edge]);
    if (shared) {
        sent_by_[b] = u;
        sent_at_[b] = end;
    }
    return end;
}

// Event i < n is the end of task i, event n + i the tick at which it becomes ready: at one tick, ends come first.
template <Discipline discipline>
Int Simulation::run_events(Stop& stop) {
    constexpr bool by_priority = discipline == Discipline::priority;
    const Int n = problem_.n, m = problem_.m;
    std::fill(ports_.begin(), ports_.end(), 0);
    std::fill(sent_by_.begin(), sent_by_.end(), NONE);
    std::fill(busy_.begin(), busy_.end(), false);
    std::fill(moves.begin(), moves.end(), -1);
    std::fill(start.begin(), start.end(), -1);
    clear();
    std::fill(queued_.begin(), queued_.end(), NONE);
    std::fill(first_.begin(), first_.end(), 0);
    for (const Int d : device) ++first_[d + 1];
    for (Int d = 0; d < m; ++d) {
        first_[d + 1] += first_[d];
        length_[d] = begun_[d] = 0;
        by_rank_[d].clear();
    }
    make_ready(n);
    // Starts the next task of a device, if the device is free and the task is there; all such tasks of a parallel device.
    const auto start_next = [&](Int d, Int tick) {
        while (!busy_[d]) {
            Int i = NONE;
            if constexpr (by_priority) {
                if (by_rank_[d].empty()) return;
                i = by_rank_[d].top().item;
                by_rank_[d].pop();
            } else {
                const Int place = first_[d] + begun_[d];
                if (place == first_[d + 1] || queued_[place] == NONE) return;
                i = queued_[place];
                ++begun_[d];
            }
            busy_[d] = !problem_.parallel(d);
            events_.push(begin(i, tick), i);
        }
    };
    Int tick = 0;
    while (!events_.empty()) {
        tick = events_.top().key;
        const Int event = events_.top().item, i = event < n ? event : event - n, d = device[i];
        events_.pop();
        stop.poll(40 + (event < n ? 8 * (problem_.out_start[i + 1] - problem_.out_start[i]) : 0));
        if (event < n) {
            busy_[d] = false;
            for (Int k = problem_.out_start[i]; k < problem_.out_start[i + 1]; ++k) {
                const Int j = problem_.edge_target[k];
                ready_[j] = std::max(ready_[j], arrival(k, tick));
                if (--waiting_[j] == 0) events_.push(ready_[j], n + j);
            }
        } else if constexpr (by_priority) {
            by_rank_[d].push(rank[i], i);
        } else {
            queued_[first_[d] + (discipline == Discipline::order ? rank[i] : length_[d]++)] = i;
        }
        if constexpr (!by_priority) start_next(d, tick);
        else if (events_.empty() || events_.top().key > tick)  // devices choose after all events of the tick
            for (Int each = 0; each < m; ++each) start_next(each, tick);
    }
    return tick;
}

Int Simulation::replay(Ints nodes, Ints representative, Stop& stop) {
    const Int n = problem_.n;
    free_ = swap_;
    clear();
    std::fill(ports_.begin(), ports_.end(), 0);
    std::fill(moves.begin(), moves.end(), -1);
    Int span = 0;
    for (const Int node : nodes) {
        if (node >= n) {
            stop.poll(10);
            const Int k = node - n, u = problem_.edge_source[k], a = device[u], b = device[problem_.edge_target[k]];
            moves[k] = problem_.ports.book(ports_, a, b, add(start[u], task_ticks[u]), edge_ticks[k]);
            continue;
        }
        const Int d = device[node];
        Int tick = std::max(free_[d], problem_.release[node]);
        stop.poll(10 + 2 * (problem_.in_start[node + 1] - problem_.in_start[node]));
        for (Int r = problem_.in_start[node]; r < problem_.in_start[node + 1]; ++r) {
            const Int k = problem_.in_edge[r], u = problem_.in_source[r], move = representative[k];
            if (move >= 0) tick = std::max(tick, add(moves[move], edge_ticks[move]));
            else tick = std::max(tick, add(add(start[u], task_ticks[u]), edge_ticks[k]));
        }
        const Int end = begin(node, tick);
        if (!problem_.parallel(d)) free_[d] = end;
        span = std::max(span, end);
    }
    return span;
}

void raise_keys(const Problem& problem, Ints representative, std::span<Int> task_start, std::span<Int> task_end,
                std::span<Int> move_start, std::span<Int> move_end) {
    const auto raise = [](Int& start, Int& end, Int least_start, Int least_end) {
        if (start < least_start || (start == least_start && end < least_end)) {
            start = least_start;
            end = least_end;
        }
    };
    for (const Int i : problem.order) {
        for (Int k = problem.out_start[i]; k < problem.out_start[i + 1]; ++k) {
            Int from_start = task_start[i], from_end = task_end[i];
            if (const Int move = representative[k]; move >= 0) {
                raise(move_start[move], move_end[move], from_start, from_end);
                from_start = move_start[move];
                from_end = move_end[move];
            }
            const Int j = problem.edge_target[k];
            raise(task_start[j], task_end[j], from_start, from_end);
        }
    }
}

std::vector<Int> critical_path(const Problem& problem, Ints start, Ints end, Ints edge_ticks, Ints before) {
    std::vector<Int> path;
    Int i = static_cast<Int>(std::max_element(end.begin(), end.end()) - end.begin());
    while (i >= 0 && static_cast<Int>(path.size()) < problem.n) {
        path.push_back(i);
        Int latest = -1, cause = before[i];
        if (cause >= 0) latest = end[cause];
        for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
            const Int u = problem.in_source[r], arrival = add(end[u], edge_ticks[problem.in_edge[r]]);
            if (arrival > latest) {
                latest = arrival;
                cause = u;
            }
        }
        i = latest < start[i] ? NONE : cause;  // otherwise it waits for its release, or with ports for another transfer
    }
    std::reverse(path.begin(), path.end());
    return path;
}

std::vector<Int> execute_runs(const Operations& ops, Int runs, Int window, Stop& stop) {
    const Int count = static_cast<Int>(ops.ticks.size()), m = static_cast<Int>(ops.member.size());
    std::vector<Int> ends(runs), begun(count * window), free(TRACKS * m);
    for (Int now = 0; now < runs + window; ++now) {
        for (const Int o : ops.sequence) {
            const Int run = now - ops.lap[o];
            if (run < 0 || run >= runs) continue;
            stop.poll(20);
            Int at = 0;
            for (Int p = ops.in_start[o]; p < ops.in_start[o + 1]; ++p)
                at = std::max(at, add(begun[ops.before[p] * window + run % window], ops.lag[p]));
            const Int first = ops.member_start[ops.device[o]], size = ops.member_start[ops.device[o] + 1] - first;
            const Int low = ops.together ? first : first + run % size, high = ops.together ? first + size : low + 1;
            for (Int r = low; r < high; ++r)
                for (Int k = 2 * o; k < 2 * o + 2; ++k)
                    if (ops.tracks[k] >= 0) at = std::max(at, free[TRACKS * ops.member[r] + ops.tracks[k]]);
            const Int end = add(at, ops.ticks[o]);
            for (Int r = low; r < high; ++r)
                for (Int k = 2 * o; k < 2 * o + 2; ++k)
                    if (ops.tracks[k] >= 0) free[TRACKS * ops.member[r] + ops.tracks[k]] = end;
            begun[o * window + run % window] = at;
            ends[run] = std::max(ends[run], end);
        }
    }
    return ends;
}

}  // namespace engine
