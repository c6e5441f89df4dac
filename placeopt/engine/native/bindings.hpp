// What Python holds of the engine: checked arguments, and the arrays that they refer to.
//
// A binding converts and checks its arguments, releases Python's lock, and calls an algorithm. Each file binding_NAME.cpp
// adds the functions of one family to the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "algorithms.hpp"
#include "arrays.hpp"

namespace engine {

using namespace nb::literals;

// A C++ object with spans, and the arrays that it refers to.
template <class T>
struct Owning {
    T value;
    std::vector<nb::object> arrays;

    template <class Entry>
    std::span<const Entry> keep(const char* name, nb::handle given, Shape shape) {
        const auto found = array<Entry>(name, given, shape);
        arrays.push_back(nb::borrow(given));
        return found;
    }
    // The attribute `tiers`, which is None if there are none.
    Tiers keep_tiers(nb::handle of, Int m) {
        const nb::object given = of.attr("tiers");
        if (given.is_none()) return {};
        Tiers found;
        found.end = keep<Int>("tiers.end", given.attr("end"), {m, ANY_LENGTH});
        found.t = m == 0 ? 0 : static_cast<Int>(found.end.size()) / m;
        found.num = keep<Int>("tiers.byte_ticks_num", given.attr("byte_ticks_num"), {m, found.t});
        found.den = keep<Int>("tiers.byte_ticks_den", given.attr("byte_ticks_den"), {m, found.t});
        return found;
    }
    // The attribute `unavailable`, which is None if there are none.
    Unavailability keep_unavailability(nb::handle of, Int m) {
        const nb::object given = of.attr("unavailable");
        if (given.is_none()) return {};
        Unavailability found;
        found.row = keep<Int>("unavailable.row", given.attr("row"), {m + 1});
        found.begin = keep<Int>("unavailable.begin", given.attr("begin"), {ANY_LENGTH});
        found.end = keep<Int>("unavailable.end", given.attr("end"), {static_cast<Int>(found.begin.size())});
        return found;
    }
    // The attribute `setups`, which is None if there are none.
    Setups keep_setups(nb::handle of, Int n, Int m) {
        const nb::object given = of.attr("setups");
        if (given.is_none()) return {};
        Setups found;
        found.families = static_cast<Int>(nb::len(nb::object(given.attr("names")))) + 1;
        found.family = keep<Int>("setups.family", given.attr("family"), {n});
        found.initial = keep<Int>("setups.initial", given.attr("initial"), {m});
        found.kind = keep<Int>("setups.kind", given.attr("kind"), {m});
        found.ticks = keep<Int>("setups.ticks", given.attr("ticks"), {ANY_LENGTH, found.families, found.families});
        found.station = keep<Int>("setups.station", given.attr("station"), {m});
        return found;
    }
    // The attributes `contention`, and `shared_links`, which is None if there are none.
    Ports keep_ports(nb::handle of, Int m) {
        const auto contention = nb::cast<std::string>(nb::str(of.attr("contention")));
        if (contention != "none" && contention != "port" && contention != "half_duplex")
            throw Wrong("contention: " + contention + "; expected none, port or half_duplex");
        Ports found{m, contention == "half_duplex" ? 0 : m, contention != "none", {}};
        const nb::object given = of.attr("shared_links");
        if (given.is_none()) return found;
        SharedLinks& links = found.links;
        links.label = keep<Int>("shared_links.label", given.attr("label"), {m});
        for (const Int each : links.label) links.labels = std::max(links.labels, each < m ? each + 1 : 0);
        links.row = keep<Int>("shared_links.row", given.attr("row"), {links.labels * links.labels + 1});
        links.channel = keep<Int>("shared_links.channel", given.attr("channel"), {ANY_LENGTH});
        links.channels = static_cast<Int>(nb::len(nb::object(given.attr("channels"))));
        return found;
    }
    // The attribute `resources`, which is None if there are none.
    Resources keep_resources(nb::handle of, Int n, Int m) {
        const nb::object given = of.attr("resources");
        if (given.is_none()) return {};
        Resources found;
        found.need = keep<Int>("resources.need", given.attr("need"), {n, m});
        found.row = keep<Int>("resources.row", given.attr("row"), {ANY_LENGTH});
        if (found.row.size() < 2) throw Wrong("resources.row: expected at least 2 entries");
        found.resource = keep<Int>("resources.resource", given.attr("resource"), {ANY_LENGTH});
        found.amount = keep<Int>("resources.amount", given.attr("amount"), {static_cast<Int>(found.resource.size())});
        found.capacity = keep<Int>("resources.capacity", given.attr("capacity"), {ANY_LENGTH});
        found.renewable = keep<bool>("resources.renewable", given.attr("renewable"), {static_cast<Int>(found.capacity.size())});
        found.parallel = keep<bool>("resources.parallel", given.attr("parallel"), {m});
        return found;
    }
    // Checks the rules of a problem.
    void keep_rules(ExecutionRules& rules, nb::handle of, Int n, Int m) {
        rules.tiers = keep_tiers(of, m);
        rules.unavailable = keep_unavailability(of, m);
        rules.setups = keep_setups(of, n, m);
        rules.resources = keep_resources(of, n, m);
        rules.ports = keep_ports(of, m);
        rules.check_rules(m);
    }
    // The attribute `budgets`, which is None if there are none.
    Budgets keep_budgets(nb::handle of, Int g, Int m) {
        const nb::object given = of.attr("budgets");
        if (given.is_none()) return {};
        Budgets found;
        found.row = keep<Int>("budgets.row", given.attr("row"), {g * m + 1});
        found.budget = keep<Int>("budgets.resource", given.attr("resource"), {ANY_LENGTH});
        found.amount = keep<Int>("budgets.amount", given.attr("amount"), {static_cast<Int>(found.budget.size())});
        found.left = keep<Int>("budgets.left", given.attr("left"), {ANY_LENGTH});
        found.check();
        return found;
    }
};

struct BoundProblem : Owning<Problem> {
    explicit BoundProblem(nb::handle of) {
        const auto ints = [&](const char* name, Shape shape) { return keep<Int>(name, of.attr(name), shape); };
        Problem& p = value;
        p.release = ints("release", {ANY_LENGTH});
        p.capacity = ints("capacity", {ANY_LENGTH});
        p.edge_source = ints("edge_source", {ANY_LENGTH});
        const Int n = p.n = static_cast<Int>(p.release.size()), m = p.m = static_cast<Int>(p.capacity.size());
        const Int e = p.e = static_cast<Int>(p.edge_source.size());
        p.duration = ints("duration", {n, m});
        p.edge_target = ints("edge_target", {e});
        p.payload = ints("payload", {e});
        p.shared = keep<bool>("shared", of.attr("shared"), {e});
        p.group = ints("group", {n});
        for (const Int k : p.group) p.g = std::max(p.g, k < n ? k + 1 : 0);
        p.out_start = ints("out_start", {n + 1});
        p.in_start = ints("in_start", {n + 1});
        p.in_edge = ints("in_edge", {e});
        p.order = ints("order", {n});
        p.latency = ints("latency", {m, m});
        p.num = ints("byte_ticks_num", {m, m});
        p.den = ints("byte_ticks_den", {m, m});
        keep_rules(p, of, n, m);
        p.prepare();
    }
};

struct BoundGroups : Owning<Groups> {
    nb::object problem;

    BoundGroups(nb::handle of, nb::handle groups) : problem(nb::borrow(of)) {
        const Problem& p = nb::cast<const BoundProblem&>(of).value;
        Groups& found = value;
        const auto ints = [&](const char* name, Shape shape) { return keep<Int>(name, groups.attr(name), shape); };
        found.memory = ints("memory", {p.g});
        found.feasible = keep<bool>("feasible", groups.attr("feasible"), {p.g, p.m});
        found.apart_start = ints("apart_start", {p.g + 1});
        found.apart = ints("apart", {ANY_LENGTH});
        found.home = ints("home", {p.g});
        found.room = ints("room", {p.m});
        const nb::object live = groups.attr("live");
        if (nb::cast<bool>(live.attr("on"))) {
            Live& held = found.live;
            held.on = true;
            held.leaves = nb::cast<Int>(live.attr("leaves"));
            held.row = keep<Int>("live.row", live.attr("row"), {p.g + 1});
            held.first = keep<Int>("live.first", live.attr("first"), {ANY_LENGTH});
            const Int rows = static_cast<Int>(held.first.size());
            held.last = keep<Int>("live.last", live.attr("last"), {rows});
            held.output = keep<Int>("live.output", live.attr("output"), {rows});
            held.scratch = keep<Int>("live.scratch", live.attr("scratch"), {rows});
            held.peak = keep<Int>("live.peak", live.attr("peak"), {p.g});
        }
        found.budgets = keep_budgets(groups, p.g, p.m);
        found.check(p);
    }
};

struct BoundTimeline {
    BoundGroups groups;
    Line line;

    BoundTimeline(nb::handle problem, nb::handle parts, bool insertion, bool record)
        : groups(problem, parts), line(nb::cast<const BoundProblem&>(problem).value, groups.value, insertion, record) {}

    void check_task(Int i) const {
        if (i < 0 || i >= line.problem.n)
            throw Wrong("task: " + std::to_string(i) + "; expected 0 to " + std::to_string(line.problem.n - 1));
    }
    void check_device(Int d) const {
        if (d < 0 || d >= line.problem.m)
            throw Wrong("device: " + std::to_string(d) + "; expected 0 to " + std::to_string(line.problem.m - 1));
    }
};

inline const Problem& of(const BoundProblem& bound) { return bound.value; }

inline Int checked_seed(Int seed) {
    if (seed < 0) throw Wrong("seed: " + std::to_string(seed) + "; expected at least 0");
    return seed;
}

// The arrays of a tuple.
inline nb::tuple parts(const char* name, nb::handle given, std::size_t count) {
    if (!nb::isinstance<nb::tuple>(given) || nb::len(given) != count)
        throw Wrong(std::string(name) + ": expected a tuple of " + std::to_string(count) + " arrays");
    return nb::borrow<nb::tuple>(given);
}

// A property: a view of a vector of `value` in what Python holds.
template <class Bound, class T, class Value>
auto viewed(std::vector<T> Value::*member) {
    return [member](nb::handle_t<Bound> self) {
        const auto& values = nb::cast<Bound&>(self).value.*member;
        return view(values, self, {static_cast<Int>(values.size())});
    };
}

void bind_timeline(nb::module_& module);
void bind_lists(nb::module_& module);
void bind_ranks(nb::module_& module);
void bind_ready(nb::module_& module);
void bind_live_memory(nb::module_& module);
void bind_chronological(nb::module_& module);
void bind_clustering(nb::module_& module);
void bind_passes(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_local_search(nb::module_& module);
void bind_windows(nb::module_& module);
void bind_critical(nb::module_& module);
void bind_simulation(nb::module_& module);
void bind_chains(nb::module_& module);
void bind_learning(nb::module_& module);
void bind_submodular(nb::module_& module);
void bind_destructive(nb::module_& module);
void bind_frontier(nb::module_& module);
void bind_relaxation(nb::module_& module);
void bind_sct(nb::module_& module);
void bind_stages(nb::module_& module);
void bind_serving(nb::module_& module);
void bind_allocation(nb::module_& module);

}  // namespace engine
