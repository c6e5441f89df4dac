// The ready list of heuristics that scan all ready tasks, those whose producers are placed, in each step.
#pragma once

#include "stop.hpp"
#include "timeline.hpp"

namespace engine {

// The number of each task's producers that are not placed.
inline std::vector<Int> count_producers(const Problem& problem) {
    std::vector<Int> missing(problem.n);
    for (Int i = 0; i < problem.n; ++i) missing[i] = problem.in_start[i + 1] - problem.in_start[i];
    return missing;
}

// The first ready task without a device, NONE if there is none.
inline Int first_unplaced(const Line& line, const std::vector<Int>& missing) {
    for (Int i = 0; i < line.problem.n; ++i)
        if (missing[i] == 0 && line.device[i] == NONE) return i;
    return NONE;
}

// `Note` is what the heuristic notes on a task. Notes are stored by position, so that a scan reads contiguous memory.
template <class T, class Note>
class Ready {
public:
    // The ready tasks are task[first..last), about in the order in which they became ready: the first one replaces a task
    // that is placed.
    std::vector<Int> task;
    Int first = 0, last = 0;
    std::vector<Int> position;  // (n,) of each ready task in `task`
    std::vector<Note> note;     // (n,) by position
    std::vector<Int> missing;   // (n,) producers of each task that are not placed

    Ready(T& timeline, Stop& stop)
        : task(timeline.problem.n),
          position(timeline.problem.n),
          note(timeline.problem.n),
          missing(count_producers(timeline.problem)),
          timeline_(timeline),
          stop_(stop),
          data_(timeline.problem.n * timeline.problem.m) {
        for (Int i = 0; i < timeline.problem.n; ++i)
            if (missing[i] == 0) admit(i);
    }

    // The tick from which a ready task can start on device d, given its inputs and its release time. With ports: as of
    // the step in which it became ready; later transfers may delay it. A heuristic may raise it to the start that the
    // tasks on the device allow.
    Int& data(Int i, Int d) { return data_[i * timeline_.problem.m + d]; }

    // Computes `data` of a ready task again, for ports.
    void update(Int i) {
        timeline_.compute_ready(i);
        std::copy(timeline_.line.ready.begin(), timeline_.line.ready.end(), &data_[i * timeline_.problem.m]);
    }

    // Places the task at a position of the list on device d, and adds the consumers that become ready.
    void place(Int at, Int d) {
        const Problem& problem = timeline_.problem;
        const Int i = task[at];
        task[at] = task[first];
        position[task[at]] = at;
        note[at] = note[first];
        ++first;
        timeline_.place(i, d);
        for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e)
            if (const Int j = problem.edge_target[e]; --missing[j] == 0) admit(j);
    }

private:
    void admit(Int i) {
        const Problem& problem = timeline_.problem;
        stop_.poll(problem.m * (2 + problem.in_start[i + 1] - problem.in_start[i]));
        update(i);
        task[last] = i;
        position[i] = last++;
    }

    T& timeline_;
    Stop& stop_;
    std::vector<Int> data_;  // (n, m)
};

}  // namespace engine
