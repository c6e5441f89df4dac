// Search in windows: moves in large graphs cost only what they change, and the makespan stays exact.
//
// A head is the end of a task, a tail the ticks after it; the makespan is the largest sum of both. A window is an interval of
// positions of the order. A path either avoids it, or leaves it at one of its tasks, and `reach` is the longest of these.
// Therefore heads up to the window's end and tails from its begin on give the exact makespan after each change in it. A move is
// evaluated as soon as the tasks up to its last position are timed; only if it is accepted, the changed times are repaired up to
// the borders of the window: task by task, where a task whose time changes marks only those that the former time determined or
// the new one delays.
//
// Sums of ticks are checked where they are made; their own sums stay below 2^63, because totals of a problem are at most 2^60.
#pragma once

#include <array>

#include "local_search.hpp"

namespace engine {

// Parameters of the moves.
struct Tuning {
    Int moves, shifts, swaps, ejections;  // percentages of the kinds of moves; the rest are clusters
    Int tries;    // at most as many random tasks are drawn to change the one on the longest path
    Int choices;  // devices that a move compares
    Int near;     // percentage of these devices that are those of producers or consumers
    Int least;    // fewest tasks of the group of the task to change
};

class WindowMoves {
public:
    WindowMoves(const SearchProblem& problem, Int seed);

    // Continues from a topological order (n,) and devices (n,); the window is empty and at the begin.
    void load(Ints tasks, Ints devices);
    // From position `first` on, devices are not free before `free` (m,). Counts from the next `load` on.
    void reserve(Int first, Ints free);
    // Moves the window to [low, high), where neither is lower than before, and computes the makespan. O(k) for k tasks and edges
    // in both windows and between them, or from tasks before the window to others in or after it.
    void enter(Int low, Int high);
    // Tries the moves begin..end of a walk of `rounds` moves in the window, and returns the number of the next. Temperatures fall
    // from `hot` to `cold` ticks along the walk; 0 accepts moves that do not increase the makespan.
    Int walk(const Tuning& tuning, Int begin, Int end, Int rounds, double hot, double cold, Stop& stop);
    // Stores the state as the best so far.
    void keep_best();
    // Ends the moves in the window: stores the state if it is not longer than the best one, and returns to that one otherwise. If
    // both differ outside the window, it only stores. O(k) for k tasks and edges in the window.
    void settle();

    // Single steps, for tests: a random move, false if there is none; its evaluation, whether the makespan is within a limit; and
    // what follows it.
    bool propose(const Tuning& tuning, double limit);
    bool evaluate(Int limit);
    void accept();
    void reject();
    bool any_marked() const { return std::find(marked_.begin(), marked_.end(), true) != marked_.end(); }

    std::vector<Int> order, position, device;  // (n,) the tasks, the position of each, and its device
    std::vector<Int> ticks, delay;             // (n,) of tasks on their devices, (e,) of in-edges
    std::vector<Int> end;                      // (n,) heads, valid before position `high`
    std::vector<Int> after;                    // (n,) tails, valid from position `low` on
    std::vector<Int> reach;  // (n,) in the window: end plus the ticks after it on paths that leave the window at the task
    std::vector<Int> before, behind, first;    // (n,), (n,), (m,) chains: the tasks of each device in their order, -1 at the ends
    std::vector<Int> room;                     // (m,) bytes left
    std::vector<Int> best_order, best_device;  // (n,) the best state so far
    Int low = 0, high = 0;                     // the window
    Int span = 0, held = 0;                    // the makespan, and that of the best state
    bool fresh = false;                        // whether the best state and this one are the same outside the window
    Int evaluated = 0;                         // moves so far

private:
    static constexpr Int LONGEST = 512;  // tasks that one proposal moves, at most
    static constexpr Int EJECTED = 8;    // tasks that make way for another, at most

    // What surrounds a task on a device, apart from the tasks of the device.
    struct Surroundings {
        Int begin, until;  // positions of the last producer and the first consumer, in the window or just outside
        Int ready, rest;   // ticks before its start and after its end
    };

    // A slot between two tasks of a device; `anchor` is the task before it, NONE for none.
    struct Place {
        Int longest;   // estimated ticks of the longest path through the task there, -1 without a slot
        Int position;  // of the order
        Int anchor;
        Int least;     // a lower bound of the makespan with the task there
    };
    struct Moved {
        Int task, device, position, before, behind;  // what it had before
    };
    struct Logged {
        Int task, end, reach;
    };

    // Timing, in windows.cpp.
    Int head(Int i) const;
    Int tail(Int i, Int begin) const;
    void time_heads(Int begin, Int end);
    void mark(Int i);
    void return_to_best();
    // Moves, in window_moves.cpp.
    Int draw(Int below) {
        random_ = next_random(random_);
        return random_ % below;
    }
    Int pick(Int tries, Int least);
    Int random_neighbour(Int i) {
        return problem_.neighbour(i, [this](Int below) { return draw(below); });
    }
    Int random_other_device(Int i, Int near);
    Int successor(Int previous, Int d, Int i) const;
    Int last_before(Int d, Int p) const;
    Surroundings surroundings(Int i, Int d) const;
    Int position_in(Int i, Int left, Int right) const;
    Place find_slot(Int i, Int d) const;
    Int decisive_device(Int i) const;
    void put(Int i, Int d, Int to, Int anchor);
    void change(Int i, Int d, const Place& place);
    void undo();
    bool stays_apart(Int g, Int d) const;
    bool allowed(Int g, Int to) const;
    bool move_group(Int g, Int to);
    bool move(Int i, const Tuning& tuning, double limit);
    bool shift(Int i, double limit);
    bool swap(Int i);
    bool eject(Int i, const Tuning& tuning, double limit);
    bool make_way(Int f, const Tuning& tuning, double limit);
    bool cluster(Int i, Int near);

    SearchProblem problem_;
    Int random_;
    std::vector<Int> free_;      // (m,) ticks from which tasks from position `reserved_` on may use each device
    std::vector<Int> gate_;      // (m,) the last task of each device before the window, NONE for none
    std::vector<Int> later_;     // (n,) length of the longest path that begins at each position or later, valid like `after`
    std::vector<Int> open_;      // tasks before the window with consumers in or after it
    std::vector<char> marked_;   // (n,) by position: tasks to time again
    std::vector<Moved> moved_;   // by the last proposal
    std::vector<Logged> logged_; // what the last evaluation timed again
    Int first_ = 0, last_ = 0;   // first and last position that the last proposal affects apart from times
    Int reserved_ = 0;
    Int horizon_ = 0;            // last marked position
    Int around_ = 0;             // length of the longest path without a task of the window
    Int ended_ = 0;              // the latest end before the window
    bool same_ = false;          // whether the best state and this one are the same
};

}  // namespace engine
