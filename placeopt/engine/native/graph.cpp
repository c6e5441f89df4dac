#include "graph.hpp"

namespace engine {

std::vector<Int> topological_order(Ints start, Ints target) {
    const Int n = static_cast<Int>(start.size()) - 1;
    std::vector<Int> waiting(n), order;
    order.reserve(n);
    for (const Int j : target) ++waiting[j];
    for (Int i = 0; i < n; ++i)
        if (waiting[i] == 0) order.push_back(i);
    for (std::size_t head = 0; head < order.size(); ++head)
        for (Int e = start[order[head]]; e < start[order[head] + 1]; ++e)
            if (--waiting[target[e]] == 0) order.push_back(target[e]);
    return order;
}

std::vector<Int> last_ready_first(const Problem& problem, Ints preference) {
    const Int n = problem.n;
    // Consumers of each task from least to most preferred: the order in which they are pushed on a stack.
    std::vector<Int> consumer(problem.e), end(problem.out_start.begin(), problem.out_start.end()), waiting(n), stack, order;
    for (Int at = n; at-- > 0;) {
        const Int j = preference[at];
        for (Int r = problem.in_start[j]; r < problem.in_start[j + 1]; ++r) consumer[end[problem.in_source[r]]++] = j;
        waiting[j] = problem.in_start[j + 1] - problem.in_start[j];
        if (waiting[j] == 0) stack.push_back(j);
    }
    while (!stack.empty()) {
        const Int i = stack.back();
        stack.pop_back();
        order.push_back(i);
        for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e)
            if (--waiting[consumer[e]] == 0) stack.push_back(consumer[e]);
    }
    return order;
}

std::vector<Int> components(Ints left, Ints right, Int nodes) {
    std::vector<Int> parent(nodes);
    std::iota(parent.begin(), parent.end(), Int{0});
    const auto find = [&](Int a) {
        while (parent[a] != a) a = parent[a] = parent[parent[a]];
        return a;
    };
    for (std::size_t e = 0; e < left.size(); ++e) {
        const Int a = find(left[e]), b = find(right[e]);
        parent[std::max(a, b)] = std::min(a, b);
    }
    // The smallest member has the lowest index and is final by then.
    for (Int i = 0; i < nodes; ++i) parent[i] = parent[parent[i]];
    return parent;
}

// Partition refinement: each node splits its successors off every class. O(n + e).
std::vector<Int> siblings(Ints start, Ints target) {
    const Int n = static_cast<Int>(start.size()) - 1;
    std::vector<Int> label(n);
    std::vector<Int> last(target.size() + 1, NONE);  // the node that created or last split a class
    std::vector<Int> part(target.size() + 1);        // the class of its successors since then
    Int fresh = 1;
    for (Int i = 0; i < n; ++i) {
        for (Int e = start[i]; e < start[i + 1]; ++e) {
            Int& own = label[target[e]];
            if (last[own] != i) {
                last[own] = last[fresh] = i;
                part[own] = part[fresh] = fresh;  // a repeated edge changes nothing
                ++fresh;
            }
            own = part[own];
        }
    }
    return label;
}

std::vector<Int> latest_ends(const Problem& problem, Ints least, Ints end) {
    std::vector<Int> found(end.begin(), end.end());
    for (Int at = problem.n; at-- > 0;) {
        const Int i = problem.order[at];
        for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e) {
            const Int j = problem.edge_target[e];
            found[i] = std::min(found[i], subtract(found[j], least[j]));
        }
    }
    return found;
}

// The state of a task is 1 on a path that has covered nothing, 2 on a covering part that started in u's group, and 3 after a
// part that ended in v's group. A higher state allows everything that a lower one does.
std::vector<char> not_implied(const Problem& problem, const Implied& rule, Stop& stop) {
    const Ints group = problem.group, target = problem.edge_target;
    std::vector<char> alive(problem.e, true), state(problem.n);
    std::vector<Int> touched, stack;
    for (Int edge = 0; edge < problem.e; ++edge) {
        if (!rule.removable[edge]) continue;
        const Int u = problem.edge_source[edge], v = target[edge];
        touched.assign(1, u);
        stack.assign(1, u);
        state[u] = rule.required[edge] < 0 ? 3 : 2;
        bool found = false;
        for (Int left = rule.budget; !stack.empty() && left > 0 && !found;) {
            const Int x = stack.back();
            stack.pop_back();
            stop.poll(8 + 2 * (problem.out_start[x + 1] - problem.out_start[x]));
            const char reached = state[x];
            for (Int e = problem.out_start[x]; e < problem.out_start[x + 1] && left-- > 0; ++e) {
                const Int y = target[e];
                if (!alive[e] || e == edge || (y != v && rule.level[y] >= rule.level[v])) continue;
                char next = 1;
                const bool covered = rule.covers[e] >= rule.required[edge] && (rule.triangle || group[x] == group[u]);
                if (reached == 3) next = 3;
                else if (reached == 2 && covered) next = group[y] == group[v] ? 3 : 2;
                if (next < 3 && group[y] == group[u]) next = 2;
                else if (next == 2 && !rule.triangle) next = 1;
                if (y == v) {
                    found = next == 3;
                    if (found) break;
                    continue;
                }
                if (next > state[y]) {
                    if (state[y] == 0) touched.push_back(y);
                    state[y] = next;
                    stack.push_back(y);
                }
            }
        }
        if (found) alive[edge] = false;
        for (const Int i : touched) state[i] = 0;
    }
    return alive;
}

}  // namespace engine
