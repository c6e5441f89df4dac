#include "timeline.hpp"

namespace engine {

void Budgets::check() const {
    check_starts("budgets.row", row, static_cast<Int>(budget.size()));
    check_range("budgets.resource", budget, 0, static_cast<Int>(left.size()) - 1);
    check_range("budgets.amount", amount, 0, NEVER);
}

void Groups::check(const Problem& problem) const {
    const Int g = problem.g, m = problem.m;
    check_range("memory", memory, 0, INT64_MAX);
    check_starts("apart_start", apart_start, static_cast<Int>(apart.size()));
    check_range("apart", apart, 0, g - 1);
    check_range("home", home, NONE, m - 1);
    if (!live.on) return;
    const Int leaves = live.leaves;
    if (leaves < 1 || (leaves & (leaves - 1)) != 0 || leaves > INT64_MAX / 16 / std::max<Int>(m, 1))
        throw Wrong("live.leaves: " + std::to_string(leaves) + "; expected a power of two");
    check_starts("live.row", live.row, static_cast<Int>(live.first.size()));
    check_range("live.first", live.first, 0, leaves - 1);
    check_range("live.last", live.last, 0, leaves - 1);
    check_range("live.output", live.output, 0, INT64_MAX);
    check_range("live.scratch", live.scratch, 0, INT64_MAX);
    check_range("live.peak", live.peak, 0, INT64_MAX);
    for (std::size_t k = 0; k < live.first.size(); ++k)
        if (live.last[k] < live.first[k])
            throw Wrong("live.last: entry " + std::to_string(k) + " is " + std::to_string(live.last[k]) +
                        "; expected at least live.first, " + std::to_string(live.first[k]));
}

Line::Line(const Problem& of, const Groups& parts, bool use_gaps, bool recording)
    : problem(of),
      groups(parts),
      insertion(use_gaps),
      record(recording),
      home(parts.home.begin(), parts.home.end()),
      room(parts.room.begin(), parts.room.end()),
      device(of.n, NONE),
      start(of.n, 0),
      end(of.n, 0),
      free(of.m, 0),
      first(of.m, NEVER),
      ready(of.m, 0),
      gaps(of.m),
      longest(of.m, 0),
      latest(of.m, 0),
      arrival(of.m, 0),
      stays(of.sets_up() ? of.m : 0),
      usage(of.resources),
      left(parts.budgets.left.begin(), parts.budgets.left.end()) {
    open_gaps();
    if (of.ports.any()) {
        ports.assign(of.ports.count(), 0);
        sent.assign(of.n * of.m, NONE);
        moves.assign(of.e, NONE);
        inputs.resize(of.e);
        std::iota(inputs.begin(), inputs.end(), Int{0});
    }
    if (parts.live.on) {
        trees.assign(2 * of.m * parts.live.leaves, 0);
        for (Int k = 0; k < of.g; ++k)
            if (home[k] >= 0) profile(home[k]).count(parts.live, k, 1);
    }
}

void Line::assign_group(Int k, Int d) {
    home[k] = d;
    room[d] = subtract(room[d], groups.memory[k]);
    spend(k, d, 1);
    if (groups.live.on) profile(d).count(groups.live, k, 1);
}

void Line::release_group(Int k) {
    const Int d = home[k];
    home[k] = NONE;
    room[d] = add(room[d], groups.memory[k]);
    spend(k, d, -1);
    if (groups.live.on) profile(d).count(groups.live, k, -1);
}

void Line::remove() {
    const Placement placed = placements.back();
    placements.pop_back();
    const Int i = placed.task;
    if (usage.any()) usage.count(need(i, device[i]), start[i], end[i], -1);
    if (problem.sets_up(device[i]))
        std::erase_if(stays[problem.station(device[i])], [i](const Stay& stay) { return stay.task == i; });
    for (; gap_changes.size() > placed.gap_changes; gap_changes.pop_back()) {
        const GapChange& change = gap_changes.back();
        auto& all = gaps[change.device];
        const auto at = all.begin() + change.gap;
        if (change.count == 0) all.insert(at, change.before);
        else *at = change.before;
        if (change.count == 2) all.erase(all.begin() + change.gap + 1);
    }
    for (; changes.size() > placed.changes; changes.pop_back()) *changes.back().cell = changes.back().before;
    if (placed.homed) release_group(problem.group[placed.task]);
}

void Line::clear() {
    std::copy(groups.home.begin(), groups.home.end(), home.begin());
    std::copy(groups.room.begin(), groups.room.end(), room.begin());
    std::copy(groups.budgets.left.begin(), groups.budgets.left.end(), left.begin());
    usage.clear();
    for (auto& each : stays) each.clear();
    std::fill(free.begin(), free.end(), 0);
    std::fill(first.begin(), first.end(), NEVER);
    open_gaps();
}

void Line::open_gaps() {
    const Unavailability& windows = problem.unavailable;
    for (Int d = 0; d < problem.m; ++d) {
        auto& each = gaps[d];
        each.assign(1, {0, NEVER});
        longest[d] = latest[d] = 0;
        if (!windows.any()) continue;
        for (Int w = windows.row[d]; w < windows.row[d + 1]; ++w) {
            if (const Int length = windows.begin[w] - each.back().start; length > 0) {
                each.back().end = latest[d] = windows.begin[w];
                longest[d] = std::max(longest[d], length);
                each.push_back({windows.end[w], NEVER});
            } else {
                each.back().start = windows.end[w];
            }
        }
    }
}

void Line::check_next(Int i) const {
    const auto wrong = [&](const std::string& expected) {
        throw Wrong("task: " + std::to_string(i) + "; expected " + expected);
    };
    if (i < 0 || i >= problem.n) wrong("0 to " + std::to_string(problem.n - 1));
    if (device[i] != NONE) wrong("a task that is not placed");
    for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r)
        if (const Int u = problem.in_source[r]; device[u] == NONE)
            wrong("its producer " + std::to_string(u) + " to be placed before");
}

void Line::check_sequence(Ints sequence) const {
    // This order was checked with the problem.
    if (sequence.data() == problem.order.data() && std::all_of(device.begin(), device.end(), [](Int d) { return d == NONE; })) return;
    std::vector<bool> listed(problem.n, false);
    for (std::size_t k = 0; k < sequence.size(); ++k) {
        const Int i = sequence[k];
        const auto wrong = [&](const std::string& expected) {
            throw Wrong("sequence: entry " + std::to_string(k) + " is " + std::to_string(i) + "; expected " + expected);
        };
        if (i < 0 || i >= problem.n) wrong("a task, below " + std::to_string(problem.n));
        if (listed[i] || device[i] != NONE) wrong("each task once");
        for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
            const Int u = problem.in_source[r];
            if (!listed[u] && device[u] == NONE) wrong("its producer " + std::to_string(u) + " before it");
        }
        listed[i] = true;
    }
}

}  // namespace engine
