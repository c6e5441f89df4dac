// BIL: list scheduling by best imaginary levels (Oh and Ha 1996); placeopt_solvers.list_scheduling.bil has the formulas.
//
// If at least as many nodes are ready as there are processors, the priority of a node is the maximum over p of
// max(arrival of data on p, p free) + BIL(i, p), where only the time at which p is free changes. So a heap for each
// device by BIL, and one by the maximum of arrival + BIL, give the largest priority: it belongs to the head of one of them.
#include "heap.hpp"
#include "ready.hpp"
#include "ready_lists.hpp"

namespace engine {

std::vector<Int> imaginary_levels(const Line& line, Stop& stop) {
    const Problem& problem = line.problem;
    const Int m = problem.m;
    std::vector<Int> level(problem.n * m), lowest(m * m);
    for (Int k = problem.n; k-- > 0;) {
        const Int j = problem.order[k];
        for (Int p = 0; p < m; ++p) level[j * m + p] = add(level[j * m + p], problem.work(j, p));
        stop.poll(m * (4 + problem.in_start[j + 1] - problem.in_start[j]));
        if (problem.in_start[j] == problem.in_start[j + 1]) continue;
        // For each device and kind of link: the least level of j over the devices that the links lead to.
        std::fill(lowest.begin(), lowest.end(), NEVER);
        const bool* feasible = &line.groups.feasible[problem.group[j] * m];
        Int least = NEVER;
        for (Int q = 0; q < m; ++q) {
            if (!feasible[q]) continue;
            lowest[q * m] = level[j * m + q];
            least = std::min(least, level[j * m + q]);
        }
        if (least == NEVER) continue;
        for (Int p = 0; p < m; ++p) {
            if (problem.kinds[p] == 2) {
                lowest[p * m + 1] = least;
                continue;
            }
            stop.poll(m);
            for (Int q = 0; q < m; ++q) {
                Int& found = lowest[p * m + problem.kind[p * m + q]];
                if (feasible[q]) found = std::min(found, level[j * m + q]);
            }
        }
        for (Int r = problem.in_start[j]; r < problem.in_start[j + 1]; ++r) {
            const Int i = problem.in_source[r];
            for (Int p = 0; p < m; ++p) {
                Int ahead = lowest[p * m];
                for (Int c = 1; c < problem.kinds[p]; ++c)
                    ahead = std::min(ahead, add(lowest[p * m + c],
                                                problem.transfer(problem.in_payload[r], p, problem.leader[p * m + c])));
                level[i * m + p] = std::max(level[i * m + p], ahead);
            }
        }
    }
    return level;
}

namespace {

struct Nothing {};

template <class T>
class Bil {
public:
    Bil(T& timeline, Stop& stop)
        : timeline_(timeline),
          line_(timeline.line),
          problem_(timeline.problem),
          stop_(stop),
          level_(imaginary_levels(line_, stop)),
          ready_(timeline, stop),
          by_level_(problem_.m) {}

    Int run() {
        const Int m = problem_.m;
        for (Int queued = 0; ready_.first < ready_.last;) {
            for (; queued < ready_.last; ++queued) queue_up(ready_.task[queued]);
            const Int k = ready_.last - ready_.first, i = k < m ? largest_kth(k) : largest_of_all();
            if (i < 0) return ready_.task[ready_.first];
            const Int device = best_device(i, std::max(k - m, Int{0}));
            ready_.place(ready_.position[i], device);
        }
        return NONE;
    }

private:
    Int bim(Int i, Int p) { return add(std::max(ready_.data(i, p), line_.free[p]), level_[i * problem_.m + p]); }

    // Adds a ready task to the heaps.
    void queue_up(Int i) {
        stop_.poll(20 * problem_.m);
        for (Int p = 0; p < problem_.m; ++p)
            if (timeline_.can_run(i, p)) by_level_[p].push({-level_[i * problem_.m + p], static_cast<std::int32_t>(i)});
        if (const Int latest = latest_arrival(i); latest >= 0) by_arrival_.push({-latest, static_cast<std::int32_t>(i)});
    }

    // The largest sum of arrival and level over the devices that can take a task, NONE if there is none.
    Int latest_arrival(Int i) {
        Int latest = NONE;
        for (Int p = 0; p < problem_.m; ++p)
            if (timeline_.can_run(i, p)) latest = std::max(latest, add(ready_.data(i, p), level_[i * problem_.m + p]));
        return latest;
    }

    // The ready task with the largest BIM; NONE if no device can take any.
    Int largest_of_all() {
        Int best = NONE, most = NONE;
        const auto consider = [&](Int i, Int value) {
            if (value > most || (value == most && i < best)) {
                best = i;
                most = value;
            }
        };
        for (Int p = 0; p < problem_.m; ++p) {
            for (auto& queue = by_level_[p]; !queue.empty(); queue.pop()) {
                stop_.poll(20);
                const auto [key, i] = queue.top();
                // A pair that became impossible stays impossible.
                if (line_.device[i] == NONE && timeline_.can_run(i, p)) {
                    consider(i, add(line_.free[p], -key));
                    break;
                }
            }
        }
        while (!by_arrival_.empty()) {
            stop_.poll(20 + problem_.m);
            const auto [key, i] = by_arrival_.top();
            const Int latest = line_.device[i] == NONE ? latest_arrival(i) : NONE;
            if (latest == -key) {
                consider(i, latest);
                break;
            }
            // The device with the maximum cannot take the task any more: queue it with the maximum of the others.
            by_arrival_.pop();
            if (latest >= 0) by_arrival_.push({-latest, i});
        }
        return best;
    }

    // The ready task with the largest k-th smallest BIM, or its largest; NONE if no device can take any.
    Int largest_kth(Int k) {
        Int best = NONE, most = NONE;
        for (Int at = ready_.first; at < ready_.last; ++at) {
            const Int i = ready_.task[at];
            stop_.poll(4 * problem_.m);
            row_.clear();
            for (Int p = 0; p < problem_.m; ++p)
                if (timeline_.can_run(i, p)) row_.push_back(bim(i, p));
            if (row_.empty()) continue;
            const auto kth = row_.begin() + std::min(k, static_cast<Int>(row_.size())) - 1;
            std::nth_element(row_.begin(), kth, row_.end());
            if (*kth > most || (*kth == most && i < best)) {
                best = i;
                most = *kth;
            }
        }
        return best;
    }

    // The device with the least BIM*, for `extra` = max(k - P, 0): of P times BIM*, which is a whole number.
    Int best_device(Int i, Int extra) {
        Int best = NONE;
        Wide least{};
        for (Int p = 0; p < problem_.m; ++p) {
            if (!timeline_.can_run(i, p)) continue;
            const Wide revised = product(bim(i, p), problem_.m) + product(problem_.work(i, p), extra);
            if (best < 0 || revised < least) {
                best = p;
                least = revised;
            }
        }
        return best;
    }

    T& timeline_;
    Line& line_;
    const Problem& problem_;
    Stop& stop_;
    std::vector<Int> level_;  // (n, m)
    Ready<T, Nothing> ready_;
    std::vector<Heap> by_level_;  // (m,) the ready tasks, by falling level
    Heap by_arrival_;             // the ready tasks, by falling maximum of arrival and level
    std::vector<Int> row_;        // scratch
};

}  // namespace

Int place_by_imaginary_level(Line& line, Stop& stop) {
    return with_rules(line, [&]<class T>(T& timeline) { return Bil<T>(timeline, stop).run(); });
}

}  // namespace engine
