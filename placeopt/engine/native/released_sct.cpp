// m-SCT as Baechi's released code: a clock that goes from event to event, and devices that choose at its ticks.
//
// The code is https://github.com/beomyeol/baechi (`m_etf.py`, `m_sct.py`); only its rules are used here. A task is ready
// when all its producers have *ended*. The *schedulable tick* of a ready task on a device is the latest of the arrival of
// its data there, the end of the device's last task, and the current tick. At each tick, every idle device chooses a task:
//
// - A device waits if the favourite child of its last task is ready, no task of the child's group has a device, and no
//   other device has an earlier schedulable tick for the child. It chooses the first *urgent* task, one that is
//   schedulable now on every device that may run it. Without one, it chooses the child, if that is schedulable now.
// - Any other device chooses the first task that is schedulable there now.
//
// "First" is by rank, that is by `ties` in breadth-first order. Of all choices, the task of the lowest rank starts now, on
// the lowest device that chose it, and all devices choose again. If no device chooses a task, the clock goes to the next
// tick at which a task ends, a device that does not wait could start a task, or a waiting device could start the favourite
// child or a task that is schedulable everywhere.
//
// Differences from m_sct.cpp:
//
// - Nothing is decided before its tick: a device does not wait for a child whose producers are placed but have not ended,
//   and a task that becomes ready meanwhile competes.
// - A task is urgent only if all devices are idle that may run it, and not if its data could be on all of them.
// - Tasks with equal starts compare by rank alone. A favourite child goes to an idle device of a lower index that could
//   start it at the same tick as the device that waits for it.
// - Durations never count, only starts.
//
// The clock moves at most once for each task and each (task, device) pair; each move costs O(W m) for W ready tasks, or
// O(W m^2) if a device waits, because it looks for tasks that are schedulable on all devices.
#include "ready.hpp"
#include "ready_lists.hpp"

namespace engine {

namespace {

template <class T>
class Released {
public:
    Released(T& timeline, Ints sequence, Ints child, Stop& stop)
        : timeline_(timeline),
          line_(timeline.line),
          problem_(timeline.problem),
          child_(child),
          stop_(stop),
          rank_(problem_.n),
          missing_(count_producers(problem_)),
          arrival_(problem_.n * problem_.m),
          last_(problem_.m, NONE),
          running_(problem_.m, NONE) {
        for (Int r = 0; r < problem_.n; ++r) rank_[sequence[r]] = r;
    }

    Int run() {
        for (Int i = 0; i < problem_.n; ++i)
            if (missing_[i] == 0) become_ready(i);
        while (true) {
            advance();
            Int task = NONE, device = NONE, following = NEVER;
            for (Int d = 0; d < problem_.m; ++d) {
                const Choice next = choose(d);
                if (next.task < 0) {
                    following = std::min(following, next.tick);
                } else if (task < 0 || rank_[next.task] < rank_[task]) {
                    task = next.task;
                    device = d;
                }
            }
            if (task >= 0 && timeline_.can_run(task, device)) start(task, device);
            else if (task >= 0) line_.closed[device] = true;
            else if (following < NEVER) now_ = following;
            else return first_unplaced(line_, missing_);
        }
    }

private:
    // The task that a device starts now, NONE if there is none, and the tick at which it could start the next.
    struct Choice {
        Int task, tick;
    };

    // Notes when the data of ready task i is on each device.
    void note_arrival(Int i) {
        stop_.poll(problem_.m * (1 + problem_.in_start[i + 1] - problem_.in_start[i]));
        timeline_.compute_ready(i);
        std::copy(line_.ready.begin(), line_.ready.end(), &arrival_[i * problem_.m]);
    }

    void become_ready(Int i) {
        ready_.push_back(i);
        note_arrival(i);
    }

    // Ends the tasks that have run until now: their consumers become ready. Arrivals that may change are updated.
    void advance() {
        if (problem_.ports.any() || problem_.tiers.any())
            for (const Int i : ready_) note_arrival(i);
        for (Int d = 0; d < problem_.m; ++d) {
            const Int i = running_[d];
            if (i < 0 || line_.free[d] > now_) continue;
            running_[d] = NONE;
            for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e)
                if (const Int j = problem_.edge_target[e]; --missing_[j] == 0) become_ready(j);
        }
    }

    // The schedulable tick of ready task i on device d, NEVER if it may not run there.
    Int schedulable(Int i, Int d) {
        if (!timeline_.contends(i, d)) return NEVER;
        return std::max({arrival_[i * problem_.m + d], line_.free[d], now_});
    }

    // The tick from which ready task i is schedulable on all devices that may run it, NEVER if d may not.
    Int schedulable_everywhere(Int i, Int d) {
        Int latest = schedulable(i, d);
        for (Int b = 0; b < problem_.m && latest < NEVER; ++b)
            if (const Int there = schedulable(i, b); there < NEVER) latest = std::max(latest, there);
        return latest;
    }

    // The favourite child that idle device d waits for, NONE if it does not wait.
    Int awaited(Int d) {
        const Int j = last_[d] >= 0 ? child_[last_[d]] : NONE;
        if (j < 0 || missing_[j] > 0 || line_.device[j] >= 0 || line_.home[problem_.group[j]] >= 0) return NONE;
        const Int own = schedulable(j, d);
        if (own == NEVER) return NONE;
        for (Int b = 0; b < problem_.m; ++b)
            if (schedulable(j, b) < own) return NONE;
        return j;
    }

    Choice choose(Int d) {
        if (line_.free[d] > now_) return {NONE, line_.free[d]};
        const Int j = awaited(d);
        Int first = NONE, least = NEVER;
        for (const Int i : ready_) {
            stop_.poll(j >= 0 ? 3 * problem_.m : 3);
            const Int tick = j >= 0 ? schedulable_everywhere(i, d) : schedulable(i, d);
            if (tick < least || (first >= 0 && tick == least && rank_[i] < rank_[first])) {
                first = i;
                least = tick;
            }
        }
        if (j >= 0 && least > now_) {
            if (const Int own = schedulable(j, d); own <= least) {
                first = j;
                least = own;
            }
        }
        return least <= now_ ? Choice{first, now_} : Choice{NONE, least};
    }

    void start(Int i, Int d) {
        timeline_.append(i, d, now_);
        last_[d] = running_[d] = i;
        *std::find(ready_.begin(), ready_.end(), i) = ready_.back();
        ready_.pop_back();
    }

    T& timeline_;
    Line& line_;
    const Problem& problem_;
    Ints child_;
    Stop& stop_;
    Int now_ = 0;
    std::vector<Int> rank_;     // (n,) the order that breaks ties
    std::vector<Int> missing_;  // (n,) number of each task's producers that have not ended
    std::vector<Int> ready_;    // the ready tasks without a device, in no order
    std::vector<Int> arrival_;  // (n, m) the tick at which the data of each ready task is on each device
    std::vector<Int> last_;     // (m,) the last task of each device, NONE if there is none
    std::vector<Int> running_;  // (m,) the same until it has ended
};

}  // namespace

Int place_by_clock(Line& line, Ints sequence, Ints child, Stop& stop) {
    return with_rules(line, [&]<class T>(T& timeline) { return Released<T>(timeline, sequence, child, stop).run(); });
}

}  // namespace engine
