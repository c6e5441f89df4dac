#include "zero_time.hpp"

namespace engine {

void join_producers(const Problem& problem, ZeroTime& tasks, std::vector<bool> sharing) {
    const Ints group = problem.group;
    for (const Int z : problem.order) {
        if (!tasks.candidate[z]) continue;
        Int producer = NONE;
        bool joins = true;
        for (Int r = problem.in_start[z]; r < problem.in_start[z + 1] && joins; ++r) {
            const Int u = problem.in_source[r], p = tasks.representative[u];
            joins = group[u] == group[z] && (p < 0 || p == producer || producer < 0);
            if (joins && p >= 0) producer = p;
        }
        if (!joins) continue;
        if (producer < 0) {
            if (!tasks.free[z] || tasks.release[z] > 0) continue;
            for (Int e = problem.out_start[z]; e < problem.out_start[z + 1]; ++e)
                joins = joins && group[problem.edge_target[e]] == group[z];
            if (joins) tasks.representative[z] = NONE;
            continue;
        }
        const bool late = tasks.release[z] > add(tasks.release[producer], tasks.least[producer]);
        if (late || (sharing[z] && sharing[producer])) continue;
        sharing[producer] = sharing[producer] || sharing[z];
        tasks.deadline[producer] = std::min(tasks.deadline[producer], tasks.deadline[z]);
        tasks.representative[z] = producer;
    }
}

void join_consumers(const Problem& problem, ZeroTime& tasks) {
    const Ints group = problem.group;
    for (Int at = problem.n; at-- > 0;) {
        const Int z = problem.order[at];
        if (!tasks.candidate[z]) continue;
        Int consumer = NONE;
        bool joins = true;
        for (Int e = problem.out_start[z]; e < problem.out_start[z + 1] && joins; ++e) {
            const Int j = problem.edge_target[e], c = tasks.representative[j];
            joins = group[j] == group[z] && (c < 0 || c == consumer || consumer < 0);
            if (joins && c >= 0) consumer = c;
        }
        if (!joins) continue;
        if (consumer >= 0) {
            if (tasks.deadline[z] < subtract(tasks.deadline[consumer], tasks.least[consumer])) continue;
            tasks.release[consumer] = std::max(tasks.release[consumer], tasks.release[z]);
            tasks.representative[z] = consumer;
            continue;
        }
        Int implied = 0;
        for (Int r = problem.in_start[z]; r < problem.in_start[z + 1] && joins; ++r) {
            const Int p = problem.in_source[r];
            joins = group[p] == group[z];
            if (joins) implied = std::max(implied, add(tasks.release[p], tasks.least[p]));
        }
        if (!joins || !tasks.free[z] || tasks.release[z] > implied) continue;
        tasks.representative[z] = NONE;
        for (Int r = problem.in_start[z]; r < problem.in_start[z + 1]; ++r) {
            Int& deadline = tasks.deadline[problem.in_source[r]];
            deadline = std::min(deadline, tasks.deadline[z]);
        }
    }
}

void join_neighbours(const Problem& problem, const ZeroTime& tasks, std::span<const bool> allowed, bool moves_free, Relays& relays) {
    constexpr Int SEVERAL = -1, NOWHERE = -2;  // in place of the group of all producers, or of all consumers
    auto& group = relays.group;
    const auto common = [&](Int before, Int k) { return before == NOWHERE || before == k ? k : SEVERAL; };
    for (const Int z : problem.order) {
        const Int own = group[z], m = problem.m;
        if (!tasks.candidate[z] || relays.size[own] > 1) continue;
        Int before = NOWHERE, after = NOWHERE, implied = 0;
        Int least_in = INT64_MAX, most_in = NONE, least_out = INT64_MAX, most_out = NONE;
        for (Int r = problem.in_start[z]; r < problem.in_start[z + 1]; ++r) {
            const Int p = problem.in_source[r], payload = problem.in_payload[r];
            before = common(before, group[p]);
            implied = std::max(implied, add(tasks.release[p], tasks.least[p]));
            least_in = std::min(least_in, payload);
            most_in = std::max(most_in, payload);
        }
        for (Int e = problem.out_start[z]; e < problem.out_start[z + 1]; ++e) {
            after = common(after, group[problem.edge_target[e]]);
            least_out = std::min(least_out, problem.payload[e]);
            most_out = std::max(most_out, problem.payload[e]);
        }
        bool early = tasks.release[z] <= implied;
        const bool late = after != NOWHERE && tasks.deadline[z] == INT64_MAX;
        Int target = SEVERAL;
        if (before == after || after == NOWHERE) target = before;
        else if (before == NOWHERE) target = after;
        if (target < 0 || !(early || late)) {
            target = SEVERAL;
            if (moves_free && before >= 0 && after != NOWHERE && early && least_in >= most_out) {
                target = before;
            } else if (moves_free && after >= 0 && before != NOWHERE && late && most_in <= least_out) {
                target = after;
                early = false;
            }
        }
        if (target < 0) continue;
        bool fits = true;
        for (Int d = 0; d < m; ++d) fits = fits && (!allowed[target * m + d] || allowed[own * m + d]);
        if (!fits) continue;
        --relays.size[own];
        ++relays.size[target];
        group[z] = target;
        relays.when[z] = early ? 1 : 2;
    }
}

}  // namespace engine
