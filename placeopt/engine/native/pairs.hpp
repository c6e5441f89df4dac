// The queue of pairs of a ready task and a device, by earliest start or by earliest end.
//
// A pair (i, d) of a ready task (all its producers are placed) and a device that can take it has the value
//
//     max(arrival of i's data on d, free[d]) + work
//
// and the pair with the least value comes first. `work` is what the algorithm adds to the start: the duration of i on d,
// for the earliest end; or the detour of i on d, 0 on identical devices, for the earliest start. Ties go to the lower
// rank of the task, then to the lower device index. Arrivals are fixed once the task is ready; only free[d] grows. So
// each device has two heaps:
//
//     later    pairs whose data arrives after the device is free, by arrival + work. This is at most their value, so only
//              the head must be examined; if its data has arrived, it moves to
//     now      pairs that could start as soon as the device is free, by work alone, because all wait for the same tick
//
// The best pair of a device is the better of the two heads, and the best of all is found by a scan of the devices. Pairs
// of tasks that were placed elsewhere stay until they reach the head or the heap is full. Pairs that became impossible stay
// until they reach the head: memory only shrinks, and homes and separation only rule out more, so they never become
// possible again. Once a group has a home, its
// tasks are queued there only. If devices close, pairs without room stay: the device closes when one of them is the best.
//
// Each pair is pushed and popped at most twice: O(n m log n) in all, plus O(e m) for the arrivals.
//
// Under port contention, transfers booked later delay the arrivals of queued pairs. So the arrival of the best pair is
// recomputed, and the pair goes back to `later` if its value has grown. After PATIENCE such pairs for one placement the
// next pair is taken as it is: if one device sends to all others, every placement delays every pair. (The few pairs that a
// transfer for another task has advanced are found when their old key reaches the head.) The same holds for resources,
// which tasks of other devices use.
//
// With insertion, a pair of which `work` is the duration may also start in a gap. Gaps only shrink, so values still only
// grow, but those in gaps grow irregularly. Such pairs are in `later` too, by a lower bound of their value that is raised
// when it reaches the head. When a task leaves a gap before it, the pairs of `now` that fit there go back to `later`
// (`reconsider`). The pair with the earliest end leaves no such gap, except with tasks of no duration or ports.
#pragma once

#include "heap.hpp"
#include "ready.hpp"

namespace engine {

// Pairs delayed by ports that go back into the queue before the next one is taken as it is.
constexpr int PATIENCE = 16;

template <class T>
class Pairs {
public:
    Ints sequence;               // (n,) the tasks by rank, which breaks ties
    std::vector<Int> rank;       // (n,)
    std::vector<Heap> later, now;
    // (m,) value and task of the best pair of each device, NEVER and NONE if there is none. They are as of the last
    // `refresh`: the task may have been placed since.
    std::vector<Int> worth, head;
    // For an algorithm that queues a task for one device only: tasks whose pair became impossible, and (n,) their keys;
    // NONE for tasks that do not go there or went there already.
    Heap loose;
    std::vector<Int> last;

    // `work` (n, m) are the ticks that are added to the start of each pair; not negative, below NEVER.
    Pairs(T& timeline, Ints sequence, Ints work, Stop& stop)
        : sequence(sequence),
          rank(timeline.problem.n),
          later(timeline.problem.m),
          now(timeline.problem.m),
          worth(timeline.problem.m, NEVER),
          head(timeline.problem.m, NONE),
          last(timeline.problem.n, NONE),
          timeline_(timeline),
          line_(timeline.line),
          problem_(timeline.problem),
          work_(work),
          stop_(stop) {
        for (Int r = 0; r < problem_.n; ++r) rank[sequence[r]] = r;
    }

    Int work(Int i, Int d) const { return work_[i * problem_.m + d]; }

    // Whether the pair of ready task i and device d still competes.
    bool alive(Int i, Int d) { return line_.device[i] == NONE && timeline_.contends(i, d); }

    // Moves a task that lost its only pair to `loose`, at most once.
    void loosen(Int i) {
        if (last[i] >= 0 && line_.device[i] == NONE) {
            loose.push(entry(last[i], i));
            last[i] = NONE;
        }
    }

    // Pushes an entry. Most entries become those of placed tasks, so heaps remove them before they grow.
    void push(Heap& queue, const Entry& entry) {
        queue.push(entry, [this](const Entry& each) { return line_.device[sequence[each.item]] != NONE; });
    }

    // Updates the best pair of device d, after a task was placed there or if the pair is no longer possible.
    void refresh(Int d) {
        const Int free = line_.free[d];
        worth[d] = NEVER;
        head[d] = NONE;
        for (auto& queue = later[d]; !queue.empty();) {
            stop_.poll(20);
            const Entry top = queue.top();
            const Int i = sequence[top.item];
            if (alive(i, d)) {
                const Int bound = top.key - work(i, d), start = timeline_.slot(i, d, bound).start;
                if (start == bound && bound != free) {
                    worth[d] = top.key;
                    head[d] = i;
                    break;
                }
                if (start == free) {
                    push(now[d], {work(i, d), top.item});
                } else {
                    queue.pop();
                    queue.push({add(start, work(i, d)), top.item});
                    continue;
                }
            } else {
                loosen(i);
            }
            queue.pop();
        }
        for (auto& queue = now[d]; !queue.empty(); queue.pop()) {
            stop_.poll(20);
            const Entry top = queue.top();
            const Int i = sequence[top.item];
            if (alive(i, d)) {
                const Int end = free + top.key;  // both are below NEVER
                if (end < worth[d] || (head[d] >= 0 && end == worth[d] && top.item < rank[head[d]])) {
                    worth[d] = end;
                    head[d] = i;
                }
                break;
            }
            loosen(i);
        }
    }

    // Queues ready task i for device d, where its data arrives at `arrival`.
    void enqueue_on(Int i, Int d, Int arrival) {
        const Int start = timeline_.slot(i, d, arrival).start, value = add(start, work(i, d));
        if (start == line_.free[d]) push(now[d], entry(work(i, d), i));
        else push(later[d], entry(value, i));
        if (head[d] < 0 || value < worth[d] || (value == worth[d] && rank[i] < rank[head[d]])) {
            worth[d] = value;
            head[d] = i;
        }
    }

    // Queues ready task i for its home, or for every device that can take it. Fills `line.ready` for these.
    void enqueue(Int i) {
        stop_.poll(problem_.m * (4 + problem_.in_start[i + 1] - problem_.in_start[i]));
        const Int home = line_.home[problem_.group[i]];
        if (home >= 0) {
            line_.ready[home] = timeline_.ready_time(i, home);
            enqueue_on(i, home, line_.ready[home]);
            return;
        }
        timeline_.compute_ready(i);
        for (Int d = 0; d < problem_.m; ++d)
            if (timeline_.contends(i, d)) enqueue_on(i, d, line_.ready[d]);
    }

    // Queues the best pair of device d again: its data arrives later than assumed, after the device is free.
    void postpone(Int d, Int arrival) {
        const Int i = head[d];
        if (!now[d].empty() && now[d].top().item == rank[i]) now[d].pop();
        else later[d].pop();
        later[d].push(entry(add(arrival, work(i, d)), i));
        refresh(d);
    }

    // The device of the best pair, NONE if there is none; `head` and `worth` have its task and value.
    Int best_device() {
        for (int held = 0;;) {
            stop_.poll(2 * problem_.m);
            Int best = NONE, least = NEVER;
            for (Int d = 0; d < problem_.m; ++d) {
                if (head[d] >= 0 && line_.device[head[d]] != NONE) refresh(d);
                if (head[d] >= 0 && (worth[d] < least || (worth[d] == least && best >= 0 && rank[head[d]] < rank[head[best]]))) {
                    best = d;
                    least = worth[d];
                }
            }
            if (best < 0) return best;
            // Checking that a pair is possible, and its delay by ports, is expensive: only the best pair is checked.
            const Int i = head[best];
            if (!alive(i, best)) {
                refresh(best);
                continue;
            }
            if (!problem_.ports.any() && !problem_.resources.any()) return best;
            const Int arrival = timeline_.ready_time(i, best);
            const Int end = add(timeline_.slot(i, best, arrival).start, work(i, best));
            if (end <= least || held == PATIENCE) {
                worth[best] = end;
                return best;
            }
            postpone(best, arrival);
            ++held;
        }
    }

    // Queues the pairs of device d that fit into its new gap [begin, end) by the bound of a start in that gap.
    void reconsider(Int d, Int begin, Int end) {
        for (auto& queue = now[d]; !queue.empty() && queue.top().key <= end - begin; queue.pop()) {
            stop_.poll(20);
            later[d].push({begin + queue.top().key, queue.top().item});
        }
    }

    // An entry of task i.
    Entry entry(Int key, Int i) const { return {key, static_cast<std::int32_t>(rank[i])}; }

private:
    T& timeline_;
    Line& line_;
    const Problem& problem_;
    Ints work_;
    Stop& stop_;
};

// The arrival of the last message of ready task i on any device, and the device that it comes from (LMT and EP of FCP and
// FLB). On heterogeneous links a message counts with the slowest link from its device. The arrival is never before the
// release time. The device is NONE without producers; of messages that arrive together that of the first producer counts.
struct Message {
    Int arrival, device;
};

template <class T>
Message last_message(const T& timeline, Int i) {
    const Problem& problem = timeline.problem;
    Message found{NONE, NONE};
    for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
        const Int u = problem.in_source[r], a = timeline.line.device[u];
        Int arrival = timeline.line.end[u];
        for (Int c = 1; c < problem.kinds[a]; ++c) arrival = std::max(arrival, timeline.arrival(r, a, c, timeline.line.end[u]));
        if (arrival > found.arrival) found = {arrival, a};
    }
    return {std::max(found.arrival, problem.release[i]), found.device};
}

// The device that becomes idle first of those that can take task i, whose group has no home; NONE if there is none. A
// device counts as idle later by the task's `detour` (n, m) there.
template <class T>
Int first_idle(T& timeline, Ints detour, Int i) {
    Int best = NONE, idle = NEVER;
    for (Int d = 0; d < timeline.problem.m; ++d) {
        const Int there = timeline.line.free[d] + detour[i * timeline.problem.m + d];  // both are below NEVER
        if (there < idle && timeline.can_host(timeline.problem.group[i], d)) {
            best = d;
            idle = there;
        }
    }
    return best;
}

}  // namespace engine
