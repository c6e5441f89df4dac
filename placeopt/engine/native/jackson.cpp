// Head, load and tail; placeopt.bounding.quick.jackson has the papers and the proofs.
#include "quick_bounds.hpp"

namespace engine {

namespace {
// Value of an empty set of tasks; below every other value.
constexpr Int EMPTY = -(Int{1} << 62);
}  // namespace

// Each node of a tree over the heads holds the total weight below it and the best scale R + weight of {head >= R} there.
std::pair<Int, Int> best_window(Ints by_tail, Ints rank, Ints head, Ints tail, Ints weight, Int scale) {
    std::size_t leaves = 1;
    while (leaves < by_tail.size()) leaves *= 2;
    std::vector<Int> total(2 * leaves), best(2 * leaves, EMPTY);
    Int largest = EMPTY, last = NONE;
    for (const Int i : by_tail) {
        std::size_t node = leaves + rank[i];
        total[node] = weight[i];
        best[node] = add(multiply(scale, head[i]), weight[i]);
        while (node > 1) {
            node /= 2;
            const std::size_t left = 2 * node, right = left + 1;
            total[node] = add(total[left], total[right]);
            best[node] = std::max(best[right], add(best[left], total[right]));
        }
        const Int value = add(best[1], multiply(scale, tail[i]));
        if (value > largest) {
            largest = value;
            last = i;
        }
    }
    return {largest, last};
}

Int best_spread(Ints order, Ints near, Ints duration, Ints far, Int level, Int count) {
    std::vector<Int> recent(count);    // the last, hence smallest, near ends
    std::vector<Int> smallest;         // far ends, ascending
    Int work = 0, taken = 0, largest = EMPTY;
    for (const Int i : order) {
        if (far[i] < level) continue;
        Int& oldest = recent[taken % count];
        work = add(work, subtract(add(duration[i], near[i]), oldest));
        oldest = near[i];
        if (taken >= count && far[i] < smallest.back()) {
            work = subtract(work, smallest.back());
            smallest.pop_back();
        }
        if (static_cast<Int>(smallest.size()) < count) {
            work = add(work, far[i]);
            smallest.insert(std::upper_bound(smallest.begin(), smallest.end(), far[i]), far[i]);
        }
        if (++taken >= count) largest = std::max(largest, work);
    }
    return largest;
}

namespace {

// The least priced work of all tasks in the interval [a, C - q) of this length.
Int demand(const Priced& tasks, Int a, Int q, Int length) {
    const Int k = static_cast<Int>(tasks.price.size()), n = k == 0 ? 0 : static_cast<Int>(tasks.head.size()) / k;
    Int total = 0;
    for (Int i = 0; i < n; ++i) {
        Int cheapest = NONE;
        for (Int c = 0; c < k; ++c) {
            const Int at = i * k + c, ticks = tasks.duration[at];
            if (!tasks.allowed[at]) continue;
            const Int work = std::min({ticks, tasks.head[at] + ticks - a, tasks.tail[at] + ticks - q, length});
            const Int cost = add(multiply(tasks.price[c], std::max(work, Int{0})), tasks.worth[at]);
            cheapest = cheapest < 0 ? cost : std::min(cheapest, cost);
        }
        total = add(total, std::max(cheapest, Int{0}));
    }
    return total;
}

// a + q + L for the longest length L of an interval that is at least `room` and too short for its work; 0 without one.
Int ends_after(const Priced& tasks, Int a, Int q, Int room, Int too_long) {
    const auto limit = [&](Int length) { return add(tasks.memory_worth, multiply(tasks.scale, length)); };
    if (demand(tasks, a, q, room) <= limit(room)) return 0;
    const Int most = subtract(demand(tasks, a, q, too_long), tasks.memory_worth);
    const Int length = most > 0 ? (most - 1) / tasks.scale : -(-most / tasks.scale) - 1;  // ceil(most / scale) - 1
    return length >= room && demand(tasks, a, q, length) > limit(length) ? add(add(a, q), length + 1) : 0;
}

}  // namespace

Int best_interval(Ints starts, Ints ends, const Priced& tasks, Int least, Int too_long, Stop& stop) {
    Int best = 0;
    for (const Int a : starts) {
        for (const Int q : ends) {
            const Int room = std::max(least, best) - a - q;
            if (room <= 0) break;  // ends are ascending
            if (stop.over(2 * static_cast<Int>(tasks.head.size()))) return best;
            try {
                best = std::max(best, ends_after(tasks, a, q, room, too_long));
            } catch (const Overflow&) {
                // This pair proves nothing.
            }
        }
    }
    return best;
}

}  // namespace engine
