// LC: linear clustering (Kim and Browne 1988); placeopt_solvers.clustering.lc describes the paper and the departures.
//
// The longest path from each task is kept exact from one cluster to the next: only those through a removed task are
// recomputed, in backward topological order, found by marks in bits. The first task of the next path comes from a heap;
// lengths that have shrunk since are pushed again with their current value. In the worst case every cluster changes every
// path, O(c (n + e)) for c clusters; on graphs of models and random graphs far fewer.
#include <bit>

#include "clustering.hpp"
#include "heap.hpp"

namespace engine {

namespace {

// A set of positions whose maximum is found fast: bits in words of 64, and a bit for each word with any.
class Marks {
public:
    explicit Marks(Int n) : low_(n / 64 + 1), high_(n / 4096 + 1) {}

    void add(Int place) {
        const std::size_t word = place >> 6;
        low_[word] |= std::uint64_t{1} << (place & 63);
        high_[word >> 6] |= std::uint64_t{1} << (word & 63);
        top_ = std::max(top_, word >> 6);
    }

    // Removes the last position and returns it, NONE if there is none.
    Int take_last() {
        while (top_ > 0 && high_[top_] == 0) --top_;
        if (high_[top_] == 0) return NONE;
        const std::size_t word = top_ << 6 | last_bit(high_[top_]), bit = last_bit(low_[word]);
        low_[word] ^= std::uint64_t{1} << bit;
        if (low_[word] == 0) high_[word >> 6] ^= std::uint64_t{1} << (word & 63);
        return static_cast<Int>(word << 6 | bit);
    }

private:
    static std::size_t last_bit(std::uint64_t word) { return 63 - std::countl_zero(word); }

    std::vector<std::uint64_t> low_, high_;
    std::size_t top_ = 0;  // the words of `high_` after it are 0
};

}  // namespace

std::vector<Int> linear_clusters(const Problem& problem, Ints work, Ints transfer, Stop& stop) {
    const Int n = problem.n;
    std::vector<Int> cluster(n, NONE), position(n), missing(n);
    std::vector<Int> length(n);         // of the longest path from each task; negative for removed tasks
    std::vector<Int> onward(n, NONE);   // the next task on it
    Marks marks(n);
    Heap heap;  // the first tasks of paths, by falling length
    const auto push = [&](Int i) { heap.push({-length[i], static_cast<std::int32_t>(i)}); };
    const auto find_path = [&](Int v) {
        stop.poll(4 * (1 + problem.out_start[v + 1] - problem.out_start[v]));
        Int best = 0, following = NONE;
        for (Int e = problem.out_start[v]; e < problem.out_start[v + 1]; ++e) {
            const Int j = problem.edge_target[e];
            if (length[j] < 0 || (following >= 0 && transfer[e] + length[j] <= best)) continue;
            best = transfer[e] + length[j];
            following = j;
        }
        length[v] = work[v] + best;  // below NEVER, as all sums along a path
        onward[v] = following;
    };
    // Marks the producers whose longest path leads through task v.
    const auto mark_changed = [&](Int v) {
        for (Int r = problem.in_start[v]; r < problem.in_start[v + 1]; ++r)
            if (const Int i = problem.in_source[r]; onward[i] == v) marks.add(position[i]);
    };
    for (Int k = n; k-- > 0;) {
        const Int i = problem.order[k];
        position[i] = k;
        missing[i] = problem.in_start[i + 1] - problem.in_start[i];
        find_path(i);
        if (missing[i] == 0) push(i);
    }
    for (Int taken = 0; !heap.empty();) {
        const auto [key, origin] = heap.top();
        heap.pop();
        if (length[origin] < -key) {
            if (length[origin] >= 0) push(origin);
            continue;
        }
        for (Int v = origin; v >= 0;) {
            const Int following = onward[v];
            cluster[v] = taken;
            length[v] = onward[v] = NONE;
            mark_changed(v);
            for (Int e = problem.out_start[v]; e < problem.out_start[v + 1]; ++e)
                if (const Int j = problem.edge_target[e]; --missing[j] == 0 && length[j] >= 0) push(j);
            v = following;
        }
        ++taken;
        for (Int place = marks.take_last(); place >= 0; place = marks.take_last()) {
            const Int v = problem.order[place], before = length[v];
            if (before < 0) continue;
            find_path(v);
            if (length[v] < before) mark_changed(v);
        }
    }
    return cluster;
}

}  // namespace engine
