// Executes placements; placeopt.simulation states the model of execution and the order of events at one tick.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "heap.hpp"
#include "problem.hpp"
#include "stop.hpp"
#include "usage.hpp"

namespace engine {

enum class Discipline { fifo, priority, order };

// A placement, its ticks, and the times of its last execution. An object serves one execution at a time.
class Simulation {
public:
    // `memory` (n,) bytes of each task, for problems with memory tiers.
    Simulation(const Problem& problem, Ints memory);

    std::vector<Int> device;      // (n,)
    std::vector<Int> task_ticks;  // (n,) ticks of each task on its device
    std::vector<Int> edge_ticks;  // (e,) ticks of each edge's transfer, 0 on one device
    // (n,) by priority: the device's ready task with the smallest rank goes first; by order: its position on its device.
    std::vector<Int> rank;
    std::vector<Int> start;  // (n,) -1 for a task that never starts: an order with a circular wait
    std::vector<Int> moves;  // (e,) with ports: start of each edge's transfer, -1 without a separate one

    // Takes a placement and computes its ticks. O(n + e).
    void place(Ints devices);

    // The makespan. O((n + e) log n + n m).
    Int run(Discipline discipline, Stop& stop);

    // First in, first out, of another placement: for searches.
    Int makespan(Ints devices, Stop& stop) {
        place(devices);
        return run(Discipline::fifo, stop);
    }

    // Starts every node as early as its release and its predecessors allow, and returns the makespan. Node i < n is task i,
    // node n + k the transfer of edge k. `nodes` lists each after its predecessors; devices and ports serve them in that
    // order. `representative` (e,) is the edge that stands for each one's transfer, -1 for edges that use no port. O(n + e).
    Int replay(Ints nodes, Ints representative, Stop& stop);

private:
    // Items by key in a vector that keeps its memory.
    class Queue {
    public:
        bool empty() const { return items_.empty(); }
        const Entry& top() const { return items_.front(); }
        void clear() { items_.clear(); }
        void push(Int key, Int item) {
            items_.push_back({key, static_cast<std::int32_t>(item)});
            std::push_heap(items_.begin(), items_.end(), std::greater<>{});
        }
        void pop() {
            std::pop_heap(items_.begin(), items_.end(), std::greater<>{});
            items_.pop_back();
        }

    private:
        std::vector<Entry> items_;
    };

    void make_ready(Int offset);
    void clear();
    Int run_fifo(Stop& stop);
    template <Discipline discipline>
    Int run_events(Stop& stop);
    Int arrival(Int edge, Int tick);
    // Starts task i from `tick` on, as early as its device is open and resources are there; returns its end.
    Int begin(Int i, Int tick);

    const Problem& problem_;
    Ints memory_;
    std::vector<Int> swap_;            // (m,) ticks for which each device swaps before its first task
    std::vector<Int> waiting_, ready_; // (n,) missing inputs; the latest input so far, or the release time
    std::vector<Int> free_;            // (m,) tick at which each device is free
    std::vector<Int> ports_;           // ticks at which ports are free
    std::vector<Int> sent_by_, sent_at_;  // (m,) the last producer that sent its shared output there, and its arrival
    std::vector<Int> first_, queued_, length_, begun_;  // the queues of devices, each in its segment
    std::vector<char> busy_;              // (m,)
    Usage usage_;
    SetUp set_up_;
    std::vector<Queue> by_rank_;          // (m,)
    Queue events_;
};

// Raises the keys (start, end) of tasks and transfers so that none is below a predecessor's. The predecessors of a task are
// its producers and their transfers to it; that of a transfer is its producer. What ends by tick t has a key of at most
// (t, t), so the keys of a valid schedule do not change. O(n + e).
void raise_keys(const Problem& problem, Ints representative, std::span<Int> task_start, std::span<Int> task_end,
                std::span<Int> move_start, std::span<Int> move_end);

// The critical path, first to last, of an execution: from the last task back to what each task waits for. `before` (n,) is
// the task before each on its device, -1 for none; `edge_ticks` (e,). There must be a task.
std::vector<Int> critical_path(const Problem& problem, Ints start, Ints end, Ints edge_ticks, Ints before);

// Runs of a pipeline that follow each other; see placeopt.simulation.pipelines.
struct Operations {
    Ints sequence;            // (k,) operations in the order in which tracks serve them within a period
    Ints lap;                 // (k,) periods until the first run of each
    Ints ticks, device;       // (k,)
    Ints tracks;              // (k, 2) tracks of the device, -1 for none
    Ints in_start;            // (k + 1,)
    Ints before, lag;         // (p,) what each operation follows, and by how many ticks
    Ints member_start, member;  // (m + 1,), (r,) the devices of each team, which serve runs in turn, or `together` each run
    bool together;
};
constexpr Int TRACKS = 3;

// The end of each run, each operation as early as its data and its device allow. The last `window` runs are remembered: more
// than any lap. O(runs (k + p)).
std::vector<Int> execute_runs(const Operations& ops, Int runs, Int window, Stop& stop);

}  // namespace engine
