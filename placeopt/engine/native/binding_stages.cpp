// Stages of pipelines: the dynamic program over sets of nodes.
#include "bindings.hpp"
#include "stages.hpp"

namespace engine {

namespace {

constexpr Int MOST = INT64_MAX;

// Reads attributes of a Python object as checked arrays.
struct Fields {
    nb::handle of;

    Ints ints(const char* name, Shape shape, Int least = 0, Int most = MOST) const {
        const Ints found = array<Int>(name, of.attr(name), shape);
        check_range(name, found, least, most);
        return found;
    }
    Flags flags(const char* name, Shape shape) const { return array<bool>(name, of.attr(name), shape); }
    Int number(const char* name, Int least) const {
        const Int found = nb::cast<Int>(of.attr(name));
        if (found < least) throw Wrong(std::string(name) + ": " + std::to_string(found) + "; expected at least " + std::to_string(least));
        return found;
    }
    bool flag(const char* name) const { return nb::cast<bool>(of.attr(name)); }
    // `count` lists NAME of numbers below `below`; their bounds are NAME_start.
    Rows rows(const char* name, Int count, Int below) const {
        const std::string bounds = std::string(name) + "_start";
        const Rows found{ints(bounds.c_str(), {count + 1}), ints(name, {ANY_LENGTH}, 0, below - 1)};
        check_starts(bounds.c_str(), found.start, static_cast<Int>(found.item.size()));
        return found;
    }
    // Ratios num / den whose products are below 2^62.
    std::pair<Ints, Ints> ratios(const char* num, const char* den, Shape shape) const {
        const Ints nums = ints(num, shape), dens = ints(den, shape, 1);
        for (std::size_t k = 0; k < nums.size(); ++k)
            if (nums[k] > (NEVER - 1) / dens[k]) throw Wrong(std::string(num) + ": expected a product with its denominator below 2^62");
        return {nums, dens};
    }
    Tracks tracks(Int devices) const {
        const auto [num, den] = ratios("ring_num", "ring_den", {devices});
        return {ints("mode", {devices}, 0, 3), flags("free", {devices}), ints("ring_latency", {devices}), num, den};
    }
};

NodeCosts node_costs(nb::handle given) {
    const Fields of{given};
    NodeCosts found;
    found.capacity = of.ints("capacity", {ANY_LENGTH});
    found.fixed = of.ints("fixed", {ANY_LENGTH});
    found.producer = array<Int>("producer", given.attr("producer"), {ANY_LENGTH});
    const Int c = static_cast<Int>(found.capacity.size()), k = static_cast<Int>(found.fixed.size());
    const Int x = static_cast<Int>(found.producer.size());
    check_range("producer", found.producer, 0, k - 1);
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
    found.payload = of.ints("payload", {x}, 0, NEVER - 1);
    found.apart = of.rows("apart", k, k);
    found.size = of.ints("size", {c}, 1);
    found.launch = of.ints("launch", {c});
    found.tracks = of.tracks(c);
    Int states = 1;
    for (const Int size : found.size) states = multiply(states, add(size, 1));
    found.room = array<double>("room", given.attr("room"), {states});
    found.replicas = of.number("replicas", 1);
    found.in_flight = of.number("in_flight", 0);
    found.recompute = of.flag("recompute");
    return found;
}

NodeSets node_sets(nb::handle given, Int nodes) {
    const Fields of{given};
    NodeSets found;
    found.start = of.ints("start", {ANY_LENGTH});
    const Int s = static_cast<Int>(found.start.size()) - 1;
    if (s < 1 || s > INT32_MAX) throw Wrong("start: expected the bounds of one set or more");
    found.bits = array<std::uint64_t>("bits", given.attr("bits"), {s, std::max((nodes + 63) / 64, Int{1})});
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
    const NodeCosts cost = node_costs(costs);
    const NodeSets set = node_sets(sets, static_cast<Int>(cost.fixed.size()));
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

}  // namespace

void bind_stages(nb::module_& module) {
    module.def(
        "divide_sets", divide_node_sets, "sets"_a, "costs"_a, "below"_a, "stop"_a,
        nb::sig("def divide_sets(sets: object, costs: object, below: int, stop: Stop) "
                "-> tuple[int, numpy.typing.NDArray[numpy.int64]] | None"),
        "Return the least period of stages below a period, and these stages (t, 4), the first one first; None if there are "
        "none.\n\n"
        "Each stage has the set of last nodes that it extends, its class, the number of its devices, and whether they compute "
        "outputs again. `sets` and `costs` are those of placeopt_solvers.pipelines._shared.ideals. Raises StoppedError.");
}

}  // namespace engine
