// Stages of pipelines: the dynamic program over sets of nodes, and the search.
#include <memory>

#include "fields.hpp"

namespace engine {

namespace {

NodeCosts node_costs(Fields& of) {
    NodeCosts found;
    found.capacity = of.ints("capacity", {ANY_LENGTH});
    found.fixed = of.ints("fixed", {ANY_LENGTH});
    const Int c = static_cast<Int>(found.capacity.size()), k = static_cast<Int>(found.fixed.size());
    found.producer = of.ints("producer", {ANY_LENGTH}, 0, k - 1);
    const Int x = static_cast<Int>(found.producer.size());
    found.computing = of.ints("computing", {k, c});
    found.again = of.ints("again", {k, c});
    found.forbidden = of.flags("forbidden", {k, c});
    found.kept = of.ints("kept", {k});
    found.source = of.ints("source", {k});
    found.gradient = of.ints("gradient", {k});
    found.least = of.ints("least", {k});
    found.directions = of.flags("directions", {k, 2});
    found.incident = of.rows("incident", k, x);
    found.consumer = of.rows("consumer", x, k);
    found.entering = of.rows("entering", x, k);
    found.ticks = of.ints("ticks", {x}, 0, NEVER - 1);
    found.payload = of.ints("payload", {x});
    found.apart = of.rows("apart", k, k);
    found.size = of.ints("size", {c}, 1);
    found.launch = of.ints("launch", {c});
    found.tracks = of.tracks(c);
    Int states = 1;
    for (const Int size : found.size) states = multiply(states, add(size, 1));
    found.room = of.entries<double>("room", {states});
    found.replicas = of.number("replicas", 1);
    found.in_flight = of.number("in_flight", 0);
    found.recompute = of.flag("recompute");
    return found;
}

NodeSets node_sets(Fields& of, Int nodes) {
    NodeSets found;
    found.start = of.ints("start", {ANY_LENGTH});
    const Int s = static_cast<Int>(found.start.size()) - 1;
    if (s < 1 || s > INT32_MAX) throw Wrong("start: expected the bounds of one set or more");
    found.bits = of.entries<std::uint64_t>("bits", {s, std::max((nodes + 63) / 64, Int{1})});
    found.node = of.ints("node", {ANY_LENGTH}, 0, nodes - 1);
    const Int e = static_cast<Int>(found.node.size());
    check_starts("start", found.start, e);
    found.result = of.ints("result", {e}, 0, s - 1);
    for (Int set = 0; set < s; ++set)
        for (Int at = found.start[set]; at < found.start[set + 1]; ++at)
            if (found.result[at] <= set)
                throw Wrong("result: entry " + std::to_string(at) + " is " + std::to_string(found.result[at]) +
                            "; expected a set after " + std::to_string(set));
    return found;
}

nb::object divide_node_sets(nb::handle sets, nb::handle costs, Int below, Stop& stop) {
    Fields of_costs(costs), of_sets(sets);
    const NodeCosts cost = node_costs(of_costs);
    const NodeSets set = node_sets(of_sets, static_cast<Int>(cost.fixed.size()));
    ChosenStages found;
    {
        const nb::gil_scoped_release unlocked;
        found = divide_sets(set, cost, below, stop);
    }
    if (found.period == NEVER) return nb::none();
    std::vector<Int> rows;
    for (const ChosenStage& stage : found.stages) rows.insert(rows.end(), {stage.begin, stage.label, stage.devices, stage.again});
    return nb::make_tuple(found.period, moved(std::move(rows), {static_cast<Int>(found.stages.size()), 4}));
}

StageUnits stage_units(Fields& of) {
    StageUnits found;
    found.fixed = of.ints("fixed", {ANY_LENGTH});
    found.capacity = of.ints("capacity", {ANY_LENGTH});
    const Int k = found.k = static_cast<Int>(found.fixed.size()), m = found.m = static_cast<Int>(found.capacity.size());
    if (k == 0 || m == 0) throw Wrong("units: no units or no devices; expected at least one of both");
    found.producer = of.ints("producer", {ANY_LENGTH}, 0, k - 1);
    const Int x = found.x = static_cast<Int>(found.producer.size());
    found.computing = of.ints("computing", {k, m});
    found.again = of.ints("again", {k, m});
    found.allowed = of.flags("allowed", {k, m});
    found.kept = of.ints("kept", {k});
    found.source = of.ints("source", {k});
    found.gradient = of.ints("gradient", {k});
    found.tasks = of.ints("tasks", {k, 2});
    found.before = of.rows("before", k, k);
    found.after = of.rows("after", k, k);
    found.apart = of.rows("apart", k, k);
    found.touched = of.rows("touched", k, x);
    found.payload = of.ints("payload", {x});
    found.consumer = of.rows("consumer", x, k);
    for (Int item = 0; item < x; ++item)
        if (found.consumer[item].empty()) throw Wrong("consumer_start: item " + std::to_string(item) + " has no consumer; expected one");
    found.entering = of.ints("entering", {static_cast<Int>(found.consumer.item.size())}, 0, 1);
    found.latency = of.ints("latency", {m, m});
    std::tie(found.num, found.den) = of.ratios("num", "den", {m, m});
    found.launch = of.ints("launch", {m});
    found.segments = of.ints("segments", {m});
    found.label = of.ints("label", {m});
    found.tracks = of.tracks(m);
    found.replicas = of.number("replicas", 1);
    found.in_flight = of.number("in_flight", 0);
    found.multicast = of.flag("multicast");
    found.recompute = of.flag("recompute");
    found.ordered = of.flag("ordered");
    return found;
}

nb::object divide_unit_order(nb::handle of_units, nb::handle of_line, nb::handle of_order, Int below, Stop& stop) {
    Fields units_fields(of_units), line_fields(of_line), order_fields(of_order);
    const StageUnits units = stage_units(units_fields);
    DeviceLine line;
    line.device = line_fields.ints("device", {ANY_LENGTH}, 0, units.m - 1);
    line.used = line_fields.ints("used", {ANY_LENGTH}, 0, units.m);
    const Int classes = line.classes(), states = line.states();
    if (classes == 0 || states == 0) throw Wrong("device, used: no entry; expected at least one of both");
    line.then = line_fields.ints("then", {states, classes, ANY_LENGTH}, NONE, states - 1);
    line.teams = static_cast<Int>(line.then.size()) / (states * classes);
    if (line.teams == 0) throw Wrong("then: no team; expected at least one device");
    UnitOrder order;
    order.order = order_fields.ints("order", {units.k}, 0, units.k - 1);
    order.rank = order_fields.ints("rank", {units.k}, 0, units.k - 1);
    for (Int at = 0; at < units.k; ++at)
        if (order.rank[order.order[at]] != at)
            throw Wrong("rank: entry " + std::to_string(order.order[at]) + " is " + std::to_string(order.rank[order.order[at]]) +
                        "; expected the position " + std::to_string(at));
    order.part = order_fields.ints("part", {units.k}, 0, 62);
    order.cut = order_fields.ints("cut", {ANY_LENGTH}, 0, units.k);
    const Int cuts = static_cast<Int>(order.cut.size());
    for (Int at = 0; at < cuts; ++at)
        if (order.cut[at] != (at == 0 ? 0 : at == cuts - 1 ? units.k : order.cut[at]) || (at > 0 && order.cut[at] <= order.cut[at - 1]))
            throw Wrong("cut: entry " + std::to_string(at) + " is " + std::to_string(order.cut[at]) + "; expected positions from 0 to " +
                        std::to_string(units.k) + ", ascending");
    if (cuts < 2) throw Wrong("cut: expected both ends of the order");
    DivisionTable found;
    {
        const nb::gil_scoped_release unlocked;
        found = divide_order(units, line, order, below, stop);
    }
    return nb::make_tuple(moved(std::move(found.value), {cuts, states}), moved(std::move(found.origin), {cuts, states}),
                          moved(std::move(found.move), {cuts, states}));
}

struct BoundStageSearch {
    Fields fields;
    StageUnits units;
    std::unique_ptr<StageSearch> value;

    BoundStageSearch(nb::handle of, nb::handle place, nb::handle home, nb::handle leader, nb::handle again, Int seed,
                     Int squares, Int scale, Stop& stop)
        : fields(of), units(stage_units(fields)) {
        const auto copied = [](const char* name, nb::handle given, Int length, Int most) {
            const Ints found = array<Int>(name, given, {length});
            check_range(name, found, 0, most);
            return std::vector<Int>(found.begin(), found.end());
        };
        StageSearch::Placement start{{}, copied("home", home, ANY_LENGTH, units.m - 1),
                                     copied("leader", leader, units.m, units.m - 1), copied("again", again, units.m, 1)};
        start.place = copied("place", place, units.k, static_cast<Int>(start.home.size()) - 1);
        if (seed < 0) throw Wrong("seed: " + std::to_string(seed) + "; expected at least 0");
        if (squares < 0 || squares > 30) throw Wrong("squares: " + std::to_string(squares) + "; expected 0 to 30");
        if (scale < 1) throw Wrong("scale: " + std::to_string(scale) + "; expected at least 1");
        const nb::gil_scoped_release unlocked;
        value = std::make_unique<StageSearch>(units, std::move(start), seed, squares, static_cast<double>(scale), stop);
    }
};

}  // namespace

// Single steps, and what they change.
struct StageSearch::Steps {
    StageSearch& search;

    bool propose() { return search.propose(); }
    void undo() { search.undo(); }
    bool rearrange() { return search.rearrange(); }
    void restore() { search.restore(); }
    bool valid(Int unit) const {
        return search.allowed(unit, search.now.place[unit]) && (!search.units_.ordered || search.in_order(unit));
    }
    std::vector<Int> sums() const {
        std::vector<Int> found(search.team_);
        found.insert(found.end(), search.consumers_.begin(), search.consumers_.end());
        found.insert(found.end(), search.entering_.begin(), search.entering_.end());
        for (const auto& each : search.filled_) found.insert(found.end(), each.begin(), each.end());
        for (const Load& each : search.load_)
            found.insert(found.end(), {each.again, each.entering, each.fixed, each.kept, each.source, each.gradient, each.tasks[0], each.tasks[1]});
        return found;
    }
    std::vector<Int> ticks() const {
        std::vector<Int> found;
        for (const Load& each : search.load_) found.insert(found.end(), {each.busy, each.sent, each.received});
        return found;
    }
};

void bind_stages(nb::module_& module) {
    module.def(
        "divide_sets", divide_node_sets, "sets"_a, "costs"_a, "below"_a, "stop"_a,
        nb::sig("def divide_sets(sets: object, costs: object, below: int, stop: Stop) "
                "-> tuple[int, numpy.typing.NDArray[numpy.int64]] | None"),
        "Return the least period of stages below a period, and these stages (t, 4), the first one first; None if there are "
        "none.\n\n"
        "Each stage has the set of last nodes that it extends, its class, the number of its devices, and whether they compute "
        "outputs again. `sets` and `costs` are those of placeopt_solvers.pipelines._shared.ideals. Raises StoppedError.");

    module.def(
        "divide_order", divide_unit_order, "units"_a, "line"_a, "order"_a, "below"_a, "stop"_a,
        nb::sig("def divide_order(units: object, line: object, order: object, below: int, stop: Stop) -> "
                "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
        "Return the best stages from each cut of an order on, for each state of the devices: (b, q) the least period, the cut where "
        "the first of these stages ends, and its move (team * classes + class) * 2 + whether it computes outputs again.\n\n"
        "Arguments are those of placeopt_solvers.pipelines._search.division. Raises StoppedError.");

    using Vector = std::vector<Int>;
    const auto ints = [](StageSearch::Placement StageSearch::*which, Vector StageSearch::Placement::*member) {
        return [which, member](nb::handle_t<BoundStageSearch> self) {
            const Vector& values = (*nb::cast<BoundStageSearch&>(self).value).*which.*member;
            return view(values, self, {static_cast<Int>(values.size())});
        };
    };
    using Search = StageSearch;
    using Placement = StageSearch::Placement;
    nb::class_<BoundStageSearch>(module, "StageSearch", R"(A placement of the units of a pipeline, evaluated incrementally.

A place is a stage that may be empty, or a device if stages are not limited. `units` are those of
placeopt_solvers.pipelines._search.units. Arrays are read-only views.)")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, Int, Int, Int, Stop&>(), "units"_a, "place"_a,
             "home"_a, "leader"_a, "again"_a, "seed"_a, "squares"_a, "scale"_a, "stop"_a,
             nb::sig("def __init__(self, units: object, place: numpy.typing.NDArray[numpy.int64], "
                     "home: numpy.typing.NDArray[numpy.int64], leader: numpy.typing.NDArray[numpy.int64], "
                     "again: numpy.typing.NDArray[numpy.int64], seed: int, squares: int, scale: int, stop: Stop) -> None"),
             "Start from the place (k,) of each unit, the device (l,) of each place, the leader (m,) of each device's team, and "
             "1 for devices (m,) that compute outputs again.\n\n"
             "The cost is the norm with the power 2^squares, of loads divided by `scale` ticks.")
        .def(
            "anneal",
            [](BoundStageSearch& self, Int begin, Int end, Int rounds, double hot, double cold, Stop& stop) {
                if (begin < 0 || end > rounds) throw Wrong("begin, end: expected 0 to rounds");
                const nb::gil_scoped_release unlocked;
                self.value->anneal(begin, end, rounds, hot, cold, stop);
            },
            "begin"_a, "end"_a, "rounds"_a, "hot"_a, "cold"_a, "stop"_a,
            "Try the moves `begin` to `end` of a cooling of `rounds` moves, whose temperature falls from `hot` to `cold`.\n\n"
            "Raises StoppedError; then only the best placement remains valid.")
        .def("assess", [](BoundStageSearch& self) { return self.value->assess(); }, "Return the cost; set `period` and `over`.")
        .def("propose", [](BoundStageSearch& self) { return Search::Steps{*self.value}.propose(); },
             "Move random units; return whether the result satisfies all but memory.")
        .def("undo", [](BoundStageSearch& self) { Search::Steps{*self.value}.undo(); }, "Undo the last proposal.")
        .def("rearrange", [](BoundStageSearch& self) { return Search::Steps{*self.value}.rearrange(); },
             "Change devices, teams or recomputation at random; return whether anything changed.")
        .def("restore", [](BoundStageSearch& self) { Search::Steps{*self.value}.restore(); }, "Undo the last rearrangement.")
        .def(
            "valid",
            [](BoundStageSearch& self, Int unit) {
                if (unit < 0 || unit >= self.units.k) throw Wrong("unit: " + std::to_string(unit) + "; expected a unit");
                return Search::Steps{*self.value}.valid(unit);
            },
            "unit"_a, "Return whether a unit may be where it is, memory aside.")
        .def_prop_ro(
            "sums",
            [](BoundStageSearch& self) {
                Vector found = Search::Steps{*self.value}.sums();
                const Int count = static_cast<Int>(found.size());
                return moved(std::move(found), {count});
            },
            nb::sig("def sums(self) -> numpy.typing.NDArray[numpy.int64]"), nb::rv_policy::automatic,
            "All that is kept of teams, items, places and devices, apart from `load`.")
        .def_prop_ro(
            "load", [](BoundStageSearch& self) { return moved(Search::Steps{*self.value}.ticks(), {self.units.m, 3}); },
            nb::sig("def load(self) -> numpy.typing.NDArray[numpy.int64]"), nb::rv_policy::automatic,
            "(m, 3) ticks of each device: computing, sent, received.")
        .def_prop_rw(
            "weight", [](const BoundStageSearch& self) { return self.value->weight; },
            [](BoundStageSearch& self, double weight) { self.value->set_weight(weight); },
            "Weight of memory above the capacities. Setting it assesses the state.")
        .def_prop_ro("period", [](const BoundStageSearch& self) { return self.value->period; }, "Period as last assessed.")
        .def_prop_ro("over", [](const BoundStageSearch& self) { return self.value->over; },
                     "Bytes above the capacities as last assessed.")
        .def_prop_ro("known", [](const BoundStageSearch& self) { return self.value->known; },
                     "Whether there is a best placement, whose memory suffices.")
        .def_prop_ro("best_period", [](const BoundStageSearch& self) { return self.value->best_period; }, "Its period.")
        .def_prop_ro("place", ints(&Search::now, &Placement::place), "(k,) the place of each unit.")
        .def_prop_ro("home", ints(&Search::now, &Placement::home), "(l,) the device of each place.")
        .def_prop_ro("leader", ints(&Search::now, &Placement::leader), "(m,) the leader of each device's team.")
        .def_prop_ro("again", ints(&Search::now, &Placement::again), "(m,) 1 for devices that compute outputs again.")
        .def_prop_ro("best_place", ints(&Search::best, &Placement::place), "(k,) places of the best placement.")
        .def_prop_ro("best_home", ints(&Search::best, &Placement::home), "(l,) its devices of places.")
        .def_prop_ro("best_leader", ints(&Search::best, &Placement::leader), "(m,) its leaders.")
        .def_prop_ro("best_again", ints(&Search::best, &Placement::again), "(m,) its recomputation.");
}

}  // namespace engine
