// Forward and backward passes over a part of a schedule: list scheduling that knows what follows each task.
//
// A forward pass places the tasks again, in the order of their starts, each on the device with the least sum of its end
// and of the ticks that follow it there, which are those of the last schedule. A backward pass does the same from the end:
// it runs on the reversed graph, and what follows a task there are the ticks before it. Each pass uses the schedule of the
// pass before, so a chain of passes settles on a schedule in which most tasks have the device that suits both sides.
// placeopt_solvers.search._intervals.passes has the papers and the departures.
#pragma once

#include "stop.hpp"
#include "timeline.hpp"

namespace engine {

// The problem whose edges and links lead the other way.
class Reversed {
public:
    explicit Reversed(const Problem& problem);
    Reversed(const Reversed&) = delete;
    const Problem& view() const { return view_; }

private:
    std::vector<Int> latency_, num_, den_;
    Problem view_;
};

class Passes {
public:
    // `head` (n, m) are the ticks from which a device is free and data from outside is there, `behind` (n, m) those that
    // follow outside. `device` and `tail` (n,) are the devices of a schedule of `span` ticks, and the ticks from the start
    // of each task to its end.
    Passes(const Problem& problem, const Groups& groups, Ints head, Ints behind, Ints device, Ints tail, Int span, Int seed);

    // Makes passes in alternating directions. `noise`: random ticks are added to each duration when devices are compared,
    // up to this many thousandths of it. `aim`: devices with which a task keeps a makespan of this many thousandths of the
    // best one count as equal. A pass that is stopped is forgotten.
    void run(Int passes, Int noise, Int aim, Stop& stop);

    // The best arrangement, if it is shorter than the schedule at the start.
    const std::vector<Int>& device() const { return device_; }
    const std::vector<Int>& start() const { return start_; }
    Int span() const { return best_; }

private:
    // A direction of passes.
    struct Side {
        const Problem& problem;
        Ints before, behind;
        Line line;
    };

    void sort_tasks(const Side& there, bool forth);
    void check_sequence(const Problem& problem) const;
    Int place_again(Side& here, Side& there, Int aim, Int noise, Stop& stop);

    Reversed reversed_;
    const Groups& groups_;
    Side forth_, back_;
    bool last_forth_ = false, kept_forth_ = false;  // direction of the last pass and of the best one
    Int best_;                                      // makespan of the best arrangement
    Int since_ = 0, made_ = 0;                      // passes since then, and in all
    Int random_;
    std::vector<Int> sequence_;                     // of a pass
    std::vector<Int> kept_device_, kept_end_;       // (n,) the best schedule in the direction of its pass
    std::vector<Int> device_, start_;               // (n,) the best arrangement
};

// Sequences of tasks in a topological order, each task on its `device` (n,); ports and memory do not count.
std::vector<Int> earliest_starts(const Problem& problem, Ints sequence, Ints device);
// The ticks from the start of each task to the end of the longest path from it.
std::vector<Int> tails(const Problem& problem, Ints sequence, Ints device);
// The latest start with which each task and its followers meet their deadlines (n,); INT64_MAX stands for none.
std::vector<Int> latest_starts(const Problem& problem, Ints sequence, Ints device, Ints deadline);

}  // namespace engine
