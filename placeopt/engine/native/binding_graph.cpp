// Graphs, reductions and quick bounds: functions of plain arrays.
#include "bindings.hpp"
#include "graph.hpp"
#include "quick_bounds.hpp"
#include "unions.hpp"
#include "zero_time.hpp"

namespace engine {

namespace {

using Flags = std::span<const bool>;

struct Links {
    Ints start, target;
};

// The successors of n nodes.
Links links(nb::handle start, nb::handle target) {
    const Links found{array<Int>("start", start, {ANY_LENGTH}), array<Int>("target", target, {ANY_LENGTH})};
    if (found.start.empty()) throw Wrong("start: no entry; expected one more than nodes");
    check_starts("start", found.start, static_cast<Int>(found.target.size()));
    check_range("target", found.target, 0, static_cast<Int>(found.start.size()) - 2);
    return found;
}

template <class T>
Array<T> longest(nb::handle order, nb::handle start, nb::handle target, nb::handle work, nb::handle transfer, nb::handle before) {
    const Links graph = links(start, target);
    const Int n = static_cast<Int>(graph.start.size()) - 1;
    const auto turn = array<Int>("order", order, {ANY_LENGTH});
    const auto works = array<T>("work", work, {n});
    const auto given = array<T>("before", before, {n});
    std::span<const T> ways;
    if (!transfer.is_none()) ways = array<T>("transfer", transfer, {static_cast<Int>(graph.target.size())});
    check_range("order", turn, 0, n - 1);
    std::vector<T> found(given.begin(), given.end());
    raise_paths<T>(turn, graph.start, graph.target, works, ways, found);
    return moved(std::move(found), {n});
}

// Arguments (n,) of the rules for zero-time tasks.
ZeroTime zero_time(const Problem& p, nb::handle candidate, nb::handle free, nb::handle least, nb::handle release,
                   nb::handle deadline) {
    const auto copied = [&](const char* name, nb::handle given) {
        const auto values = array<Int>(name, given, {p.n});
        check_range(name, values, 0, INT64_MAX);
        return std::vector<Int>(values.begin(), values.end());
    };
    ZeroTime tasks{array<bool>("candidate", candidate, {p.n}), array<bool>("free", free, {p.n}),
                   array<Int>("least", least, {p.n}), copied("release", release), copied("deadline", deadline), {}};
    check_range("least", tasks.least, 0, NEVER - 1);
    tasks.representative.resize(p.n);
    std::iota(tasks.representative.begin(), tasks.representative.end(), Int{0});
    return tasks;
}

nb::tuple results(ZeroTime&& tasks) {
    return nb::make_tuple(moved_all(std::move(tasks.representative)), moved_all(std::move(tasks.release)),
                          moved_all(std::move(tasks.deadline)));
}

struct BoundUnions {
    Unions value;
};

}  // namespace

void bind_graph(nb::module_& module) {
    module.def(
        "topological_order",
        [](nb::handle start, nb::handle target) {
            const Links graph = links(start, target);
            return moved_all(topological_order(graph.start, graph.target));
        },
        "start"_a, "target"_a,
        nb::sig("def topological_order(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return a topological order of the nodes, first in first out, with successors target[start[i]:start[i + 1]]; shorter "
        "than the graph if there is a cycle.");
    module.def(
        "last_ready_first",
        [](const BoundProblem& problem, nb::handle preference) {
            const Problem& p = of(problem);
            const auto preferred = array<Int>("preference", preference, {p.n});
            check_range("preference", preferred, 0, p.n - 1);
            std::vector<bool> listed(p.n, false);
            for (const Int i : preferred) listed[i] = true;
            if (std::count(listed.begin(), listed.end(), false)) throw Wrong("preference: expected each task once");
            return moved_all(last_ready_first(p, preferred));
        },
        "problem"_a, "preference"_a,
        nb::sig("def last_ready_first(problem: Problem, preference: numpy.typing.NDArray[numpy.int64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the topological order (n,) in which the task that became ready last comes first; tasks that become ready "
        "together come as in `preference` (n,).");
    module.def(
        "raise_paths", longest<Int>, "order"_a, "start"_a, "target"_a, "work"_a, "transfer"_a.none(), "before"_a,
        nb::sig("def raise_paths(order: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], "
                "target: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.int64], "
                "transfer: numpy.typing.NDArray[numpy.int64] | None, before: numpy.typing.NDArray[numpy.int64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the longest path (n,) that ends just before each node, at least `before` (n,), over work (n,) and transfer "
        "(e,), None for none; `order` is topological.");
    module.def(
        "raise_float_paths", longest<double>, "order"_a, "start"_a, "target"_a, "work"_a, "transfer"_a.none(), "before"_a,
        nb::sig("def raise_float_paths(order: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], "
                "target: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.float64], "
                "transfer: numpy.typing.NDArray[numpy.float64] | None, before: numpy.typing.NDArray[numpy.float64]) "
                "-> numpy.typing.NDArray[numpy.float64]"),
        "Return the same for floating-point weights.");
    module.def(
        "components",
        [](nb::handle left, nb::handle right, Int nodes) {
            const auto a = array<Int>("left", left, {ANY_LENGTH});
            const auto b = array<Int>("right", right, {static_cast<Int>(a.size())});
            check_range("left", a, 0, nodes - 1);
            check_range("right", b, 0, nodes - 1);
            return moved_all(components(a, b, nodes));
        },
        "left"_a, "right"_a, "nodes"_a,
        nb::sig("def components(left: numpy.typing.NDArray[numpy.int64], right: numpy.typing.NDArray[numpy.int64], "
                "nodes: int) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the smallest member of the component of each node, for edges between left[k] and right[k].");
    module.def(
        "siblings",
        [](nb::handle start, nb::handle target) {
            const Links graph = links(start, target);
            return moved_all(siblings(graph.start, graph.target));
        },
        "start"_a, "target"_a,
        nb::sig("def siblings(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return labels that two nodes share if and only if they have the same set of predecessors.");
    module.def(
        "latest_ends",
        [](const BoundProblem& problem, nb::handle least, nb::handle end) {
            const Problem& p = of(problem);
            const auto ticks = array<Int>("least", least, {p.n}), ends = array<Int>("end", end, {p.n});
            check_range("least", ticks, 0, NEVER - 1);
            return moved_all(latest_ends(p, ticks, ends));
        },
        "problem"_a, "least"_a, "end"_a,
        nb::sig("def latest_ends(problem: Problem, least: numpy.typing.NDArray[numpy.int64], "
                "end: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the latest ends (n,) of tasks of at least `least` (n,) ticks that meet the deadlines `end` (n,).");
    module.def(
        "not_implied",
        [](const BoundProblem& problem, nb::handle level, nb::handle required, nb::handle covers, nb::handle removable,
           bool triangle, Int budget, Stop& stop) {
            const Problem& p = of(problem);
            const Implied rule{array<Int>("level", level, {p.n}), array<Int>("required", required, {p.e}),
                               array<Int>("covers", covers, {p.e}), array<bool>("removable", removable, {p.e}), triangle, budget};
            std::vector<char> alive;
            {
                const nb::gil_scoped_release unlocked;
                alive = not_implied(p, rule, stop);
            }
            return moved_flags(alive);
        },
        "problem"_a, "level"_a, "required"_a, "covers"_a, "removable"_a, "triangle"_a, "budget"_a, "stop"_a,
        nb::sig("def not_implied(problem: Problem, level: numpy.typing.NDArray[numpy.int64], "
                "required: numpy.typing.NDArray[numpy.int64], covers: numpy.typing.NDArray[numpy.int64], "
                "removable: numpy.typing.NDArray[numpy.bool_], triangle: bool, budget: int, stop: Stop) "
                "-> numpy.typing.NDArray[numpy.bool_]"),
        "Return the edges (e,) that remain after those that paths over others imply (placeopt.passes.dominated_edges).");

    module.def(
        "join_producers",
        [](const BoundProblem& problem, nb::handle candidate, nb::handle free, nb::handle least, nb::handle release,
           nb::handle deadline, nb::handle sharing) {
            const Problem& p = of(problem);
            ZeroTime tasks = zero_time(p, candidate, free, least, release, deadline);
            const auto shared = array<bool>("sharing", sharing, {p.n});
            join_producers(p, tasks, {shared.begin(), shared.end()});
            return results(std::move(tasks));
        },
        "problem"_a, "candidate"_a, "free"_a, "least"_a, "release"_a, "deadline"_a, "sharing"_a,
        nb::sig("def join_producers(problem: Problem, candidate: numpy.typing.NDArray[numpy.bool_], "
                "free: numpy.typing.NDArray[numpy.bool_], least: numpy.typing.NDArray[numpy.int64], "
                "release: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64], "
                "sharing: numpy.typing.NDArray[numpy.bool_]) -> tuple[numpy.typing.NDArray[numpy.int64], "
                "numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
        "Return the representative, the release time and the deadline (n,) of each task after candidates have joined their "
        "producers (placeopt.passes.zero_time); -1 represents a task that is removed.");
    module.def(
        "join_consumers",
        [](const BoundProblem& problem, nb::handle candidate, nb::handle free, nb::handle least, nb::handle release,
           nb::handle deadline) {
            const Problem& p = of(problem);
            ZeroTime tasks = zero_time(p, candidate, free, least, release, deadline);
            join_consumers(p, tasks);
            return results(std::move(tasks));
        },
        "problem"_a, "candidate"_a, "free"_a, "least"_a, "release"_a, "deadline"_a,
        nb::sig("def join_consumers(problem: Problem, candidate: numpy.typing.NDArray[numpy.bool_], "
                "free: numpy.typing.NDArray[numpy.bool_], least: numpy.typing.NDArray[numpy.int64], "
                "release: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64]) "
                "-> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], "
                "numpy.typing.NDArray[numpy.int64]]"),
        "Return the same after candidates have joined their consumers.");
    module.def(
        "join_neighbours",
        [](const BoundProblem& problem, nb::handle candidate, nb::handle least, nb::handle deadline, nb::handle allowed,
           bool moves_free) {
            const Problem& p = of(problem);
            const nb::object release = nb::cast(moved_all(std::vector<Int>(p.release.begin(), p.release.end())));
            const ZeroTime tasks = zero_time(p, candidate, candidate, least, release, deadline);
            const auto devices = array<bool>("allowed", allowed, {p.g, p.m});
            Relays found{{p.group.begin(), p.group.end()}, std::vector<Int>(p.g), std::vector<Int>(p.n)};
            for (const Int k : p.group) ++found.size[k];
            join_neighbours(p, tasks, devices, moves_free, found);
            return nb::make_tuple(moved_all(std::move(found.group)), moved_all(std::move(found.when)));
        },
        "problem"_a, "candidate"_a, "least"_a, "deadline"_a, "allowed"_a, "moves_free"_a,
        nb::sig("def join_neighbours(problem: Problem, candidate: numpy.typing.NDArray[numpy.bool_], "
                "least: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64], "
                "allowed: numpy.typing.NDArray[numpy.bool_], moves_free: bool) "
                "-> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
        "Return the group (n,) of each task after single zero-time tasks have moved into a neighbour's group, and when those "
        "that moved run (n,): 1 when the last producer ends, 2 when the first consumer starts; 0 for the others.");

    nb::class_<BoundUnions>(module, "Unions", R"(Colocation groups in a union-find structure; a union is represented by its smallest group.

`feasible` (g, m) are the devices of each group, `memory` (g,) and `capacity` (m,) bytes. The groups left[k] and right[k]
must be apart.)")
        .def(
            "__init__",
            [](BoundUnions* self, nb::handle feasible, nb::handle memory, nb::handle capacity, nb::handle left, nb::handle right) {
                const auto bytes = array<Int>("memory", memory, {ANY_LENGTH}), room = array<Int>("capacity", capacity, {ANY_LENGTH});
                const Int g = static_cast<Int>(bytes.size());
                const auto devices = array<bool>("feasible", feasible, {g, static_cast<Int>(room.size())});
                const auto a = array<Int>("left", left, {ANY_LENGTH}), b = array<Int>("right", right, {static_cast<Int>(a.size())});
                check_range("memory", bytes, 0, INT64_MAX);
                check_range("left", a, 0, g - 1);
                check_range("right", b, 0, g - 1);
                new (self) BoundUnions{Unions({devices.begin(), devices.end()}, bytes, room, a, b)};
            },
            "feasible"_a, "memory"_a, "capacity"_a, "left"_a, "right"_a,
            nb::sig("def __init__(self, feasible: numpy.typing.NDArray[numpy.bool_], memory: numpy.typing.NDArray[numpy.int64], "
                    "capacity: numpy.typing.NDArray[numpy.int64], left: numpy.typing.NDArray[numpy.int64], "
                    "right: numpy.typing.NDArray[numpy.int64]) -> None"))
        .def_prop_ro(
            "parent",
            [](BoundUnions& self) {
                self.value.flatten();
                return moved_all(std::vector<Int>(self.value.parent()));
            },
            nb::sig("def parent(self) -> numpy.typing.NDArray[numpy.int64]"), nb::rv_policy::automatic, "(g,) the representative of each group's union.")
        .def_prop_ro(
            "feasible",
            [](BoundUnions& self) {
                Unions& unions = self.value;
                auto* held = new bool[unions.groups() * unions.devices()];
                nb::capsule owner(held, [](void* pointer) noexcept { delete[] static_cast<bool*>(pointer); });
                for (Int k = 0; k < unions.groups(); ++k)
                    for (Int d = 0; d < unions.devices(); ++d) held[k * unions.devices() + d] = unions.feasible(unions.find(k), d);
                const std::size_t sizes[] = {static_cast<std::size_t>(unions.groups()), static_cast<std::size_t>(unions.devices())};
                return Array<bool>(held, 2, sizes, owner);
            },
            nb::sig("def feasible(self) -> numpy.typing.NDArray[numpy.bool_]"), nb::rv_policy::automatic,
            "(g, m), whether every task of each group's union may run on the device.")
        .def(
            "unite",
            [](BoundUnions& self, nb::handle left, nb::handle right) {
                Unions& unions = self.value;
                const auto a = array<Int>("left", left, {ANY_LENGTH}), b = array<Int>("right", right, {static_cast<Int>(a.size())});
                check_range("left", a, 0, unions.groups() - 1);
                check_range("right", b, 0, unions.groups() - 1);
                unite_pairs(unions, a, b);
            },
            "left"_a, "right"_a,
            nb::sig("def unite(self, left: numpy.typing.NDArray[numpy.int64], right: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Unite the groups left[k] and right[k] in turn, where allowed: some device may run both and has the memory, and "
            "they need not be apart.")
        .def(
            "join",
            [](BoundUnions& self, Int left, Int right) {
                Unions& unions = self.value;
                const Int g = unions.groups();
                if (left < 0 || left >= g || right < 0 || right >= g) throw Wrong("group: expected 0 to " + std::to_string(g - 1));
                const Int a = unions.find(left), b = unions.find(right);
                if (a == b) return true;
                if (!unions.may_unite(a, b)) return false;
                unions.unite(a, b);
                return true;
            },
            "left"_a, "right"_a, "Unite two groups if that is allowed; return whether they are united.")
        .def(
            "unite_clusters",
            [](BoundUnions& self, nb::handle order, nb::handle group, nb::handle first) {
                const auto groups = array<Int>("group", group, {ANY_LENGTH});
                const Int n = static_cast<Int>(groups.size());
                const auto turn = array<Int>("order", order, {n});
                const auto starts = array<bool>("first", first, {n});
                check_range("order", turn, 0, n - 1);
                check_range("group", groups, 0, self.value.groups() - 1);
                std::vector<char> found(starts.begin(), starts.end());
                unite_clusters(self.value, turn, groups, found);
                return moved_flags(found);
            },
            "order"_a, "group"_a, "first"_a,
            nb::sig("def unite_clusters(self, order: numpy.typing.NDArray[numpy.int64], "
                    "group: numpy.typing.NDArray[numpy.int64], first: numpy.typing.NDArray[numpy.bool_]) "
                    "-> numpy.typing.NDArray[numpy.bool_]"),
            "Unite all groups (n,) that meet between two positions with `first` (n,) of an order (n,); where that is not "
            "allowed, the cluster is split. Return `first` with these cuts.")
        .def(
            "unite_meeting",
            [](BoundUnions& self, nb::handle capacity, nb::handle work, double most, double growth, nb::handle order,
               nb::handle group, nb::handle several, nb::handle first) {
                Unions& unions = self.value;
                const auto groups = array<Int>("group", group, {ANY_LENGTH});
                const Int n = static_cast<Int>(groups.size()), g = unions.groups();
                const auto turn = array<Int>("order", order, {n});
                const auto starts = array<bool>("first", first, {n}), chosen = array<bool>("several", several, {g});
                const auto works = array<double>("work", work, {g});
                unions.set_capacity(array<Int>("capacity", capacity, {unions.devices()}));
                check_range("order", turn, 0, n - 1);
                check_range("group", groups, 0, g - 1);
                return unite_meeting(unions, {works.begin(), works.end()}, most, growth, turn, groups, chosen, starts);
            },
            "capacity"_a, "work"_a, "most"_a, "growth"_a, "order"_a, "group"_a, "several"_a, "first"_a,
            nb::sig("def unite_meeting(self, capacity: numpy.typing.NDArray[numpy.int64], "
                    "work: numpy.typing.NDArray[numpy.float64], most: float, growth: float, "
                    "order: numpy.typing.NDArray[numpy.int64], group: numpy.typing.NDArray[numpy.int64], "
                    "several: numpy.typing.NDArray[numpy.bool_], first: numpy.typing.NDArray[numpy.bool_]) -> bool"),
            "Unite the groups that `several` (g,) selects where they meet between two positions with `first` (n,), for devices "
            "of `capacity` (m,) bytes. A union has at most `most` of the work (g,), or `growth` times the work of its largest "
            "group. Return whether some groups that meet could not be united.")
        .def(
            "first_positions",
            [](BoundUnions& self, nb::handle order, nb::handle group, nb::handle memory, nb::handle apart_start,
               nb::handle apart, Int longest, Int most) {
                const Unions& unions = self.value;
                const auto groups = array<Int>("group", group, {ANY_LENGTH});
                const Int n = static_cast<Int>(groups.size());
                const auto turn = array<Int>("order", order, {n}), bytes = array<Int>("memory", memory, {n});
                const auto starts = array<Int>("apart_start", apart_start, {unions.groups() + 1});
                const auto others = array<Int>("apart", apart, {ANY_LENGTH});
                check_range("order", turn, 0, n - 1);
                check_range("group", groups, 0, unions.groups() - 1);
                check_range("memory", bytes, 0, INT64_MAX);
                check_starts("apart_start", starts, static_cast<Int>(others.size()));
                check_range("apart", others, 0, unions.groups() - 1);
                return moved_all(first_positions(unions, turn, groups, bytes, starts, others, longest, most));
            },
            "order"_a, "group"_a, "memory"_a, "apart_start"_a, "apart"_a, "longest"_a, "most"_a,
            nb::sig("def first_positions(self, order: numpy.typing.NDArray[numpy.int64], "
                    "group: numpy.typing.NDArray[numpy.int64], memory: numpy.typing.NDArray[numpy.int64], "
                    "apart_start: numpy.typing.NDArray[numpy.int64], apart: numpy.typing.NDArray[numpy.int64], longest: int, "
                    "most: int) -> numpy.typing.NDArray[numpy.int64]"),
            "Return the first position (n + 1,) from which all tasks before a position of the order (n,) may be one cluster: "
            "of at most `longest` tasks and `most` bytes of memory (n,) that one device may run, without groups that must be "
            "apart, those of group k at apart[apart_start[k]:apart_start[k + 1]]. A larger task is a cluster by itself.");
    module.def(
        "least_cuts",
        [](nb::handle start, nb::handle source, nb::handle weight, nb::handle low, Stop& stop) {
            const auto lows = array<Int>("low", low, {ANY_LENGTH});
            if (lows.empty()) throw Wrong("low: no entry; expected one more than nodes");
            const Int n = static_cast<Int>(lows.size()) - 1;
            const auto starts = array<Int>("start", start, {n + 1}), sources = array<Int>("source", source, {ANY_LENGTH});
            const auto weights = array<Int>("weight", weight, {static_cast<Int>(sources.size())});
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                check_starts("start", starts, static_cast<Int>(sources.size()));
                check_range("source", sources, 0, n - 1);
                check_range("weight", weights, 0, NEVER - 1);
                check_range("low", lows, 0, n);
                found = least_cuts(starts, sources, weights, lows, stop);
            }
            return moved_all(std::move(found));
        },
        "start"_a, "source"_a, "weight"_a, "low"_a, "stop"_a,
        nb::sig("def least_cuts(start: numpy.typing.NDArray[numpy.int64], source: numpy.typing.NDArray[numpy.int64], "
                "weight: numpy.typing.NDArray[numpy.int64], low: numpy.typing.NDArray[numpy.int64], stop: Stop) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the last cut (n + 1,) before each position such that the edges between clusters weigh least; source[start[j]:"
        "start[j + 1]] lead to the node at position j, and `low` (n + 1,) are the first positions of its cluster.");

    module.def(
        "earliest_heads",
        [](nb::handle edges, nb::handle links, nb::handle tasks, Int most, Int budget, nb::handle release, Stop& stop) {
            const nb::tuple in = parts("edges", edges, 3), between = parts("links", links, 4), of = parts("tasks", tasks, 9);
            ClassGraph g;
            g.order = array<Int>("order", in[0], {ANY_LENGTH});
            const Int n = static_cast<Int>(g.order.size());
            g.start = array<Int>("start", in[1], {n + 1});
            g.producer = array<Int>("producer", in[2], {ANY_LENGTH});
            const Int e = static_cast<Int>(g.producer.size());
            g.capacity = array<Int>("capacity", of[0], {ANY_LENGTH});
            const Int k = static_cast<Int>(g.capacity.size());
            g.latency = array<Int>("latency", between[0], {k, k});
            g.num = array<Int>("num", between[1], {k, k});
            g.den = array<Int>("den", between[2], {k, k});
            g.linked = array<bool>("linked", between[3], {k, k});
            g.duration = array<Int>("duration", of[1], {n, k});
            g.busy = array<Int>("busy", of[2], {n, k});
            g.allowed = array<bool>("allowed", of[3], {n, k});
            g.group = array<Int>("group", of[4], {n});
            g.group_memory = array<Int>("group_memory", of[5], {ANY_LENGTH});
            g.payload = array<Int>("payload", of[6], {e});
            g.together = array<bool>("together", of[7], {e});
            g.apart = array<bool>("apart", of[8], {e});
            const auto earliest = array<Int>("release", release, {n});
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                check_range("order", g.order, 0, n - 1);
                check_starts("start", g.start, e);
                check_range("producer", g.producer, 0, n - 1);
                if (e > 0) check_range("latency", g.latency, 0, NEVER - 1);
                check_range("num", g.num, 0, INT64_MAX);
                check_range("den", g.den, 1, INT64_MAX);
                for (std::size_t link = 0; link < g.num.size(); ++link)
                    if (g.num[link] > (NEVER - 1) / g.den[link]) throw Wrong("num: expected a product with den below 2^62");
                check_range("duration", g.duration, 0, NEVER_BOUND);
                check_range("busy", g.busy, 0, NEVER_BOUND);
                check_range("group", g.group, 0, static_cast<Int>(g.group_memory.size()) - 1);
                check_range("group_memory", g.group_memory, 0, INT64_MAX);
                check_range("payload", g.payload, 0, INT64_MAX);
                check_range("release", earliest, 0, NEVER_BOUND);
                found = earliest_heads(g, most, budget, earliest, stop);
            }
            return moved(std::move(found), {n, k});
        },
        "edges"_a, "links"_a, "tasks"_a, "most"_a, "budget"_a, "release"_a, "stop"_a,
        nb::sig("def earliest_heads(edges: tuple[numpy.typing.NDArray[numpy.int64], ...], "
                "links: tuple[numpy.typing.NDArray[numpy.generic], ...], tasks: tuple[numpy.typing.NDArray[numpy.generic], ...], "
                "most: int, budget: int, release: numpy.typing.NDArray[numpy.int64], stop: Stop) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the heads (n, k) of placeopt.bounding.quick.paths, from release times (n,), 2^61 where not allowed. `edges` are "
        "order (n,), start (n + 1,) and producer (e,); `links` latency, num, den and linked (k, k); `tasks` capacity "
        "(k,), duration, busy and allowed (n, k), group (n,), group_memory (g,), payload, together and apart (e,). Once stopped, "
        "the heads are weaker.");
    module.def(
        "best_window",
        [](nb::handle by_tail, nb::handle rank, nb::handle head, nb::handle tail, nb::handle weight, Int scale) {
            const auto order = array<Int>("by_tail", by_tail, {ANY_LENGTH});
            const Int n = static_cast<Int>(order.size());
            const auto position = array<Int>("rank", rank, {n}), heads = array<Int>("head", head, {n});
            const auto tails = array<Int>("tail", tail, {n}), weights = array<Int>("weight", weight, {n});
            const nb::gil_scoped_release unlocked;
            check_range("by_tail", order, 0, n - 1);
            check_range("rank", position, 0, n - 1);
            return best_window(order, position, heads, tails, weights, scale);
        },
        "by_tail"_a, "rank"_a, "head"_a, "tail"_a, "weight"_a, "scale"_a,
        nb::sig("def best_window(by_tail: numpy.typing.NDArray[numpy.int64], rank: numpy.typing.NDArray[numpy.int64], "
                "head: numpy.typing.NDArray[numpy.int64], tail: numpy.typing.NDArray[numpy.int64], "
                "weight: numpy.typing.NDArray[numpy.int64], scale: int) -> tuple[int, int]"),
        "Return the largest scale (R + Q) + weight of {head >= R, tail >= Q} over all heads R and tails Q (n,). `by_tail` is "
        "the order of decreasing tails, `rank` the position of each task by increasing heads. The second "
        "number is a task whose tail is that Q, -1 without tasks.");
    module.def(
        "best_spread",
        [](nb::handle order, nb::handle near, nb::handle duration, nb::handle far, Int level, Int count) {
            const auto turn = array<Int>("order", order, {ANY_LENGTH});
            const Int n = static_cast<Int>(turn.size());
            const auto ends = array<Int>("near", near, {n}), ticks = array<Int>("duration", duration, {n});
            const auto others = array<Int>("far", far, {n});
            if (count < 1) throw Wrong("count: " + std::to_string(count) + "; expected at least 1");
            const nb::gil_scoped_release unlocked;
            check_range("order", turn, 0, n - 1);
            return best_spread(turn, ends, ticks, others, level, count);
        },
        "order"_a, "near"_a, "duration"_a, "far"_a, "level"_a, "count"_a,
        nb::sig("def best_spread(order: numpy.typing.NDArray[numpy.int64], near: numpy.typing.NDArray[numpy.int64], "
                "duration: numpy.typing.NDArray[numpy.int64], far: numpy.typing.NDArray[numpy.int64], level: int, count: int) "
                "-> int"),
        "Return the largest sum of durations, `count` smallest near ends and `count` smallest far ends (n,) over the tasks with "
        "far >= level, in the order of decreasing near: all prefixes with at least `count` tasks; -2^62 without one.");
    module.def(
        "best_interval",
        [](nb::handle starts, nb::handle ends, nb::handle head, nb::handle duration, nb::handle tail, nb::handle allowed,
           nb::handle price, nb::handle worth, Int scale, Int memory_worth, Int least, Int too_long, Stop& stop) {
            const auto from = array<Int>("starts", starts, {ANY_LENGTH}), to = array<Int>("ends", ends, {ANY_LENGTH});
            const auto prices = array<Int>("price", price, {ANY_LENGTH});
            const Int k = static_cast<Int>(prices.size());
            const Priced tasks{array<Int>("head", head, {ANY_LENGTH, k}),   array<Int>("duration", duration, {ANY_LENGTH, k}),
                               array<Int>("tail", tail, {ANY_LENGTH, k}),   array<bool>("allowed", allowed, {ANY_LENGTH, k}),
                               prices, array<Int>("worth", worth, {ANY_LENGTH, k}), scale, memory_worth};
            const std::size_t cells = tasks.head.size();
            if (tasks.duration.size() != cells || tasks.tail.size() != cells || tasks.allowed.size() != cells ||
                tasks.worth.size() != cells)
                throw Wrong("head, duration, tail, allowed, worth: expected the same shape");
            if (scale < 1) throw Wrong("scale: " + std::to_string(scale) + "; expected at least 1");
            const nb::gil_scoped_release unlocked;
            check_range("starts", from, 0, NEVER_BOUND);
            check_range("ends", to, 0, NEVER_BOUND);
            for (const Ints each : {tasks.head, tasks.duration, tasks.tail}) check_range("head, duration, tail", each, 0, NEVER_BOUND);
            return best_interval(from, to, tasks, least, too_long, stop);
        },
        "starts"_a, "ends"_a, "head"_a, "duration"_a, "tail"_a, "allowed"_a, "price"_a, "worth"_a, "scale"_a,
        "memory_worth"_a, "least"_a, "too_long"_a, "stop"_a,
        nb::sig("def best_interval(starts: numpy.typing.NDArray[numpy.int64], ends: numpy.typing.NDArray[numpy.int64], "
                "head: numpy.typing.NDArray[numpy.int64], duration: numpy.typing.NDArray[numpy.int64], "
                "tail: numpy.typing.NDArray[numpy.int64], allowed: numpy.typing.NDArray[numpy.bool_], "
                "price: numpy.typing.NDArray[numpy.int64], worth: numpy.typing.NDArray[numpy.int64], scale: int, "
                "memory_worth: int, least: int, too_long: int, stop: Stop) -> int"),
        "Return the largest bound by energetic reasoning (placeopt.bounding.energetic) over the starts and the ascending ends of "
        "intervals, beyond a makespan of `least`, or 0; matrices are (n, k).");
}

}  // namespace engine
