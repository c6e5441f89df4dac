// Tabu search over critical paths: a task of the longest path moves to another place on its device, or to another device.
//
// A state is the order of the tasks of each device. Its heads (ends of tasks) and tails (ticks after them) follow from the paths
// of the graph with an arc between neighbours on a device; the makespan is their largest sum. Only moves of tasks of a longest
// path shorten it (J. Grabowski, E. Nowicki, S. Zdrzalka: A block approach for single-machine scheduling with release dates and
// due dates, EJOR 26, 1986). A task is taken out and inserted elsewhere, and the longest path through it is estimated from heads
// and tails (E. D. Taillard: Parallel taboo search techniques for the job shop scheduling problem, ORSA Journal on Computing 6,
// 1994; M. Mastrolilli, L. M. Gambardella: Effective neighbourhood functions for the flexible job shop problem, Journal of
// Scheduling 3, 2000).
//
// Departures: transfers take time, devices have limited memory, and any slot that certainly closes no cycle may be taken: not only
// those that Mastrolilli and Gambardella prove to contain a shortest one. A group of tasks moves as a whole to one of a few drawn
// devices, each task to the best slot there; of many devices of a single task, only some are tried as well.
#pragma once

#include "local_search.hpp"

namespace engine {

class CriticalPaths {
public:
    CriticalPaths(const SearchProblem& problem, Int seed);

    // Continues from a topological order (n,) and devices (n,), with an empty tabu list.
    void load(Ints tasks, Ints devices);
    // Makes moves until `rounds` of them in a row have not shortened the best state since `load`, until its makespan is at most
    // `enough`, or for about `most` steps of work; returns their number.
    Int search(Int rounds, Int most, Int enough, Stop& stop);

    std::vector<Int> order, device;            // (n,) a topological order and the device of each task
    std::vector<Int> end, after;               // (n,) heads and tails
    std::vector<Int> best_order, best_device;  // (n,) the best state since `load`
    Int span = 0, held = 0;                    // the makespan, and that of the best state
    Int work = 0;                              // elementary steps so far

private:
    static constexpr Int TENURE = 10;  // least rounds for which a task must not return
    static constexpr Int FEW = 12;     // devices that are tried for a task; of more, random ones and those of its neighbours
    static constexpr Int GROUPED = 4;  // devices that are tried for a group of tasks
    static constexpr Int TIMING = 4;   // steps of work to time a task

    struct Move {
        Int task = NONE, device = 0;
        Int slot = 0;    // before entry `slot` of the device's tasks without the task; NONE: all tasks of its group move
        Int length = 0;  // estimated ticks of the longest path through the task
    };

    Int draw(Int below) {
        random_ = next_random(random_);
        return random_ % below;
    }
    void keep_best();
    Int before(Int i) const;
    Int behind(Int i) const;
    Int head(Int i);
    Int tail(Int i);
    void time_around(Int i, Int previous, Int next);
    void find_critical();
    bool allowed(Int i, Int d) const;
    template <class Visit>
    void each_slot(Int i, Int d, Int most, Visit&& visit) const;
    Int drawn_device(Int i, bool near);
    Move best_slot(Int i, Int d);
    Move choose();
    void make(const Move& move);
    void put(Int i, Int d, Int slot);
    void reorder(Int i);
    template <class Depends>
    void shift(Int first, Int last, Int step, Depends&& depends);

    SearchProblem problem_;
    Int random_;
    std::vector<Int> choice_start_, choice_;  // (g + 1,) the devices of each group, as CSR
    std::vector<std::vector<Int>> chain_;     // the tasks of each device in their order
    std::vector<Int> rank_, place_, ticks_;   // (n,) the index in the chain, the position in the order, ticks on the device
    std::vector<Int> delay_;                  // (e,) ticks of in-edges
    std::vector<Int> ready_, rest_;           // (n,) starts, and tails, without the neighbours on the device
    std::vector<Int> room_;                   // (m,) bytes left
    std::vector<Int> critical_;               // a longest path
    std::vector<Int> until_;                  // (n, m) rounds until which a task must not move to a device
    std::vector<Int> shifted_;                // scratch
    std::vector<char> marked_;                // (n,) scratch, by position
    Int round_ = 0;
};

}  // namespace engine
