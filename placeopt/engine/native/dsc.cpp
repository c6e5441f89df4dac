// DSC: dominant sequence clustering (Yang and Gerasoulis 1994); placeopt_solvers.clustering.dsc describes the paper and the
// departures.
//
// The free and the partially free tasks are in heaps. Each task stores the latest arrival, and the latest from clusters
// other than that one. So the gain of joining is computed without a pass over its producers: O((n + e) log n).
#include "clustering.hpp"
#include "heap.hpp"

namespace engine {

namespace {

class Examination {
public:
    Examination(const Problem& problem, Ints work, Ints transfer, Ints blevel, Stop& stop)
        : problem_(problem),
          work_(work),
          transfer_(transfer),
          blevel_(blevel),
          stop_(stop),
          missing_(problem.n),
          latest_(problem.n),
          other_(problem.n),
          dominant_(problem.n, NONE),
          tail_(problem.n),
          size_(problem.n),
          found_{std::vector<Int>(problem.n), std::vector<Int>(problem.n)} {}

    Clustering run() {
        for (Int i = 0; i < problem_.n; ++i) {
            missing_[i] = problem_.in_start[i + 1] - problem_.in_start[i];
            if (missing_[i] == 0) free_.push(entry(-blevel_[i], i));
        }
        for (Int made = 0; made < problem_.n; ++made) {
            const auto [key, x] = free_.top();
            free_.pop();
            stop_.poll(20 * (2 + problem_.out_start[x + 1] - problem_.out_start[x]));
            const Int barred = barred_cluster(-key);
            Int c = dominant_[x], start = latest_[x];
            if (c >= 0 && c != barred && tail_[c] < start) start = minimised(x, c);
            if (start >= latest_[x]) c = made;
            found_.cluster[x] = c;
            found_.start[x] = start;
            missing_[x] = NONE;
            tail_[c] = start + work_[x];
            ++size_[c];
            for (Int e = problem_.out_start[x]; e < problem_.out_start[x + 1]; ++e) reach(e, c, start + work_[x]);
        }
        return std::move(found_);
    }

private:
    static Entry entry(Int key, Int i) { return {key, static_cast<std::int32_t>(i)}; }

    // The cluster that no task may join now (DSRW), NONE if there is none.
    Int barred_cluster(Int priority) {
        for (; !partial_.empty(); partial_.pop()) {
            const auto [key, y] = partial_.top();
            if (missing_[y] <= 0 || -key != latest_[y] + blevel_[y]) continue;
            const Int c = dominant_[y];
            return -key > priority && std::max(tail_[c], other_[y]) < latest_[y] ? c : NONE;
        }
        return NONE;
    }

    // Notes the data of an edge, whose producer in cluster c ends at `end`.
    void reach(Int e, Int c, Int end) {
        const Int j = problem_.edge_target[e], before = latest_[j], arrival = end + transfer_[e];
        const bool first = dominant_[j] < 0;
        if (dominant_[j] == c) {
            latest_[j] = std::max(latest_[j], arrival);
        } else if (first || arrival > latest_[j]) {
            other_[j] = latest_[j];
            latest_[j] = arrival;
            dominant_[j] = c;
        } else {
            other_[j] = std::max(other_[j], arrival);
        }
        if (--missing_[j] == 0) free_.push(entry(-(latest_[j] + blevel_[j]), j));
        else if (first || latest_[j] > before) partial_.push(entry(-(latest_[j] + blevel_[j]), j));
    }

    // When the data of task p is in cluster c.
    Int arrival_in(Int p, Int c) const { return dominant_[p] == c ? other_[p] : latest_[p]; }

    // The start of task x at the end of cluster c, after producers that serve only x are moved there before it. They are
    // moved only if x then starts earlier than on a separate device.
    Int minimised(Int x, Int c) {
        Heap producers;  // by falling arrival
        for (Int r = problem_.in_start[x]; r < problem_.in_start[x + 1]; ++r) {
            const Int p = problem_.in_source[r];
            if (found_.cluster[p] != c)
                producers.push(entry(-(found_.start[p] + work_[p] + transfer_[problem_.in_edge[r]]), p));
        }
        pulled_.clear();
        Int tail = tail_[c];
        // The latest arrival decides the start, so the loop ends at the first producer that cannot be moved.
        for (; !producers.empty(); producers.pop()) {
            const auto [key, p] = producers.top();
            if (size_[found_.cluster[p]] > 1 || problem_.out_start[p + 1] - problem_.out_start[p] > 1) break;
            const Int end = std::max(tail, arrival_in(p, c)) + work_[p];
            if (end >= std::max(tail, -key)) break;
            tail = end;
            pulled_.push_back(p);
        }
        const Int start = producers.empty() ? tail : std::max(tail, -producers.top().key);
        if (start < latest_[x]) {
            for (const Int p : pulled_) {
                --size_[found_.cluster[p]];
                found_.cluster[p] = c;
                found_.start[p] = std::max(tail_[c], arrival_in(p, c));
                tail_[c] = found_.start[p] + work_[p];
                ++size_[c];
            }
        }
        return start;
    }

    // Sums along a path are below NEVER, so nothing overflows.
    const Problem& problem_;
    Ints work_, transfer_, blevel_;
    Stop& stop_;
    std::vector<Int> missing_;         // (n,) producers that are not examined; NONE for a task that is examined
    std::vector<Int> latest_, other_;  // (n,) latest arrival of data of the examined producers, and from other clusters
    std::vector<Int> dominant_;        // (n,) the cluster that the latest comes from, NONE without any
    std::vector<Int> tail_, size_;     // (n,) of each cluster: the end of its last task, and its number of tasks
    Clustering found_;
    Heap free_, partial_;              // by falling priority
    std::vector<Int> pulled_;          // scratch: the producers that are moved before one task
};

}  // namespace

Clustering dominant_sequence_clusters(const Problem& problem, Ints work, Ints transfer, Ints blevel, Stop& stop) {
    return Examination(problem, work, transfer, blevel, stop).run();
}

}  // namespace engine
