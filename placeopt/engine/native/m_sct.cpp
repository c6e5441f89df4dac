// m-SCT: ETF with favourite children, for which devices wait (Jeon et al. 2020, section 2.4; Hanen and Munier 2001);
// placeopt_solvers.ready_lists.m_sct describes the rules and the departures.
#include "pairs.hpp"
#include "ready_lists.hpp"

namespace engine {

namespace {

// Reasons for a device to take a task next, in the order that breaks ties between equal starts.
enum class Reason { favourite, earliest, urgent };

template <class T>
class Favourites {
public:
    Favourites(T& timeline, Ints sequence, Ints work, Ints parent, bool urgent_first, Stop& stop)
        : timeline_(timeline),
          line_(timeline.line),
          problem_(timeline.problem),
          parent_(parent),
          urgent_first_(urgent_first),
          stop_(stop),
          pairs_(timeline, sequence, work, stop),
          missing_(count_producers(problem_)),
          last_(problem_.m, NONE),
          awaited_(problem_.m, NONE),
          arrival_(problem_.m * problem_.m, NEVER),
          urgent_(problem_.m),
          due_(problem_.m) {}

    Int run() {
        for (Int i = 0; i < problem_.n; ++i)
            if (missing_[i] == 0) add_ready(i);
        for (int held = 0;;) {
            stop_.poll(8 * problem_.m);
            const Choice best = choose();
            if (best.device < 0) return first_unplaced(line_, missing_);
            const Int d = best.device, i = best.task;
            Int start = best.worth - pairs_.work(i, d);
            if (problem_.ports.any()) {
                // Transfers booked since may delay the data.
                const Int arrival = timeline_.ready_time(i, d), begin = std::max(arrival, line_.free[d]);
                if (begin > start && held == PATIENCE) {
                    start = begin;
                } else if (begin > start) {
                    ++held;
                    postpone(best, arrival);
                    continue;
                }
            }
            held = 0;
            if (!line_.closed.empty() && !timeline_.can_run(i, d)) line_.closed[d] = true;
            else place(i, d, start);
        }
    }

private:
    struct Choice {
        Int device = NONE, task = NONE, worth = NEVER;
        Reason why = Reason::urgent;
    };
    struct Urgent {
        Int task, start;
    };

    // The tick at which the data of the task that device d waits for is on device b; NEVER if it may not run there.
    Int& arrival(Int d, Int b) { return arrival_[d * problem_.m + b]; }

    // Queues ready task i, also as a candidate for urgency, and notes if its favourite parent's device waits for it.
    void add_ready(Int i) {
        const Int m = problem_.m;
        pairs_.enqueue(i);
        Int everywhere = 0, waiting = NONE;
        for (Int d = 0; d < m; ++d)
            if (timeline_.contends(i, d)) everywhere = std::max(everywhere, line_.ready[d]);
        if (const Int p = parent_[i]; p >= 0 && line_.device[p] >= 0 && last_[line_.device[p]] == p) {
            waiting = line_.device[p];
            awaited_[waiting] = i;
            std::fill_n(&arrival(waiting, 0), m, NEVER);
        }
        for (Int d = 0; d < m; ++d) {
            if (!timeline_.contends(i, d)) continue;
            pairs_.push(urgent_[d], pairs_.entry(everywhere, i));
            if (waiting >= 0) arrival(waiting, d) = line_.ready[d];
        }
    }

    // Whether device d waits for its last task's favourite child: it is ready and starts nowhere sooner.
    bool awaits(Int d) {
        const Int j = awaited_[d];
        if (j < 0) return false;
        if (!pairs_.alive(j, d)) {
            awaited_[d] = NONE;
            return false;
        }
        const auto worth = [&](Int b) { return add(std::max(line_.free[b], arrival(d, b)), pairs_.work(j, b)); };
        const Int own = worth(d);
        for (Int b = 0; b < problem_.m; ++b)
            if (worth(b) < own && pairs_.alive(j, b)) return false;
        return true;
    }

    // The urgent task that device d can start first.
    Urgent most_urgent(Int d) {
        for (auto& queue = urgent_[d]; !queue.empty(); queue.pop()) {
            stop_.poll(20);
            const Entry top = queue.top();
            if (!pairs_.alive(pairs_.sequence[top.item], d)) continue;
            if (top.key > line_.free[d]) break;
            pairs_.push(due_[d], {0, top.item});
        }
        for (auto& queue = due_[d]; !queue.empty(); queue.pop()) {
            stop_.poll(20);
            const Int i = pairs_.sequence[queue.top().item];
            if (pairs_.alive(i, d)) return {i, line_.free[d]};
        }
        if (urgent_[d].empty()) return {NONE, NEVER};
        return {pairs_.sequence[urgent_[d].top().item], urgent_[d].top().key};
    }

    Choice choose() {
        Choice best;
        for (Int d = 0; d < problem_.m; ++d) {
            Choice next{d};
            if (awaits(d)) {
                next.task = awaited_[d];
                next.why = Reason::favourite;
                Int start = std::max(line_.free[d], arrival(d, d));
                const Urgent other = most_urgent(d);
                if (other.start < start || (urgent_first_ && other.start == start && other.task != next.task)) {
                    next.task = other.task;
                    next.why = Reason::urgent;
                    start = other.start;
                }
                next.worth = add(start, pairs_.work(next.task, d));
            } else {
                next.task = pairs_.head[d];
                next.why = Reason::earliest;
                if (next.task >= 0 && !pairs_.alive(next.task, d)) {
                    pairs_.refresh(d);
                    next.task = pairs_.head[d];
                }
                if (next.task < 0) continue;
                next.worth = pairs_.worth[d];
            }
            const bool earlier = next.worth == best.worth && next.why == best.why && best.task >= 0 &&
                                 pairs_.rank[next.task] < pairs_.rank[best.task];
            if (next.worth < best.worth || (next.worth == best.worth && next.why < best.why) || earlier) best = next;
        }
        return best;
    }

    // Notes that the data of a choice arrives later than assumed.
    void postpone(const Choice& choice, Int arrives) {
        const Int d = choice.device;
        if (choice.why == Reason::favourite) {
            arrival(d, d) = arrives;
        } else if (choice.why == Reason::urgent) {
            (due_[d].empty() ? urgent_[d] : due_[d]).pop();
            urgent_[d].push(pairs_.entry(arrives, choice.task));
        } else {
            pairs_.postpone(d, arrives);
        }
    }

    // Appends task i to device d, and queues the consumers that become ready.
    void place(Int i, Int d, Int start) {
        timeline_.append(i, d, start);
        last_[d] = i;
        awaited_[d] = NONE;
        pairs_.refresh(d);
        for (Int e = problem_.out_start[i]; e < problem_.out_start[i + 1]; ++e)
            if (const Int j = problem_.edge_target[e]; --missing_[j] == 0) add_ready(j);
    }

    T& timeline_;
    Line& line_;
    const Problem& problem_;
    Ints parent_;
    bool urgent_first_;
    Stop& stop_;
    Pairs<T> pairs_;
    std::vector<Int> missing_;
    std::vector<Int> last_;     // (m,) the last task of each device, NONE before the first
    std::vector<Int> awaited_;  // (m,) the favourite child of that task once it is ready, otherwise NONE
    std::vector<Int> arrival_;  // (m, m)
    std::vector<Heap> urgent_;  // the ready tasks of each device, by the tick at which their data could be everywhere
    std::vector<Heap> due_;     // those for which that tick has come when the device is free, by rank
};

}  // namespace

Int place_favourites(Line& line, Ints sequence, Ints work, Ints parent, bool urgent_first, Stop& stop) {
    return with_rules(line, [&]<class T>(T& timeline) {
        return Favourites<T>(timeline, sequence, work, parent, urgent_first, stop).run();
    });
}

}  // namespace engine
