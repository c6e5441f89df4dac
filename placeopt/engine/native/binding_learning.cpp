// What learned searches observe.
#include "bindings.hpp"
#include "gpnet.hpp"

namespace engine {

namespace {

// The arrays that a gpNet refers to, checked.
struct NetArrays : Owning<int> {
    Ints first, device, block, pivot;

    NetArrays(const Problem& p, nb::handle firsts, nb::handle devices, nb::handle blocks, nb::handle pivots) {
        device = keep<Int>("device", devices, {ANY_LENGTH});
        check_range("device", device, 0, p.m - 1);
        first = keep<Int>("first", firsts, {p.n + 1});
        check_starts("first", first, static_cast<Int>(device.size()));
        block = keep<Int>("block", blocks, {p.e + 1});
        check_starts("block", block, block.back());
        for (Int k = 0; k < p.e; ++k) {
            const Int i = p.edge_source[k], j = p.edge_target[k];
            const Int edges = first[i + 1] - first[i] + first[j + 1] - first[j] - 1;
            if (block[k + 1] - block[k] != edges)
                throw Wrong("block: edge " + std::to_string(k) + " has " + std::to_string(block[k + 1] - block[k]) +
                            " entries; expected " + std::to_string(edges));
        }
        pivot = keep<Int>("pivot", pivots, {p.n});
        for (Int i = 0; i < p.n; ++i) check_node("pivot", i, pivot[i]);
    }

    void check_node(const char* name, Int i, Int node) const {
        if (node < first[i] || node >= first[i + 1])
            throw Wrong(std::string(name) + ": node " + std::to_string(node) + "; expected one of task " + std::to_string(i));
    }
};

struct BoundNet {
    nb::object problem;
    NetArrays arrays;
    GpNet value;

    BoundNet(nb::handle of_problem, nb::handle first, nb::handle device, nb::handle block, nb::handle pivot)
        : problem(nb::borrow(of_problem)), arrays(of(), first, device, block, pivot),
          value(of(), arrays.first, arrays.device, arrays.block, arrays.pivot) {}

    const Problem& of() const { return nb::cast<const BoundProblem&>(problem).value; }
    Int nodes() const { return static_cast<Int>(arrays.device.size()); }
};

}  // namespace

void bind_learning(nb::module_& module) {
    nb::class_<BoundNet>(module, "GpNet", "The gpNet of a placement, as in placeopt.learning.graphs.gpnet. Arrays are read-only views.")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(), "problem"_a, "first"_a, "device"_a, "block"_a, "pivot"_a,
             nb::sig("def __init__(self, problem: Problem, first: numpy.typing.NDArray[numpy.int64], "
                     "device: numpy.typing.NDArray[numpy.int64], block: numpy.typing.NDArray[numpy.int64], "
                     "pivot: numpy.typing.NDArray[numpy.int64]) -> None"))
        .def(
            "move",
            [](BoundNet& self, nb::handle tasks, nb::handle nodes) {
                const auto moved_tasks = array<Int>("tasks", tasks, {ANY_LENGTH});
                check_range("tasks", moved_tasks, 0, self.of().n - 1);
                const auto to = array<Int>("nodes", nodes, {static_cast<Int>(moved_tasks.size())});
                for (std::size_t place = 0; place < to.size(); ++place) self.arrays.check_node("nodes", moved_tasks[place], to[place]);
                self.value.move(moved_tasks, to);
            },
            "tasks"_a, "nodes"_a,
            nb::sig("def move(self, tasks: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Move tasks to other nodes of theirs.")
        .def(
            "potential",
            [](const BoundNet& self, nb::handle start, nb::handle end) {
                const Int n = self.of().n;
                return moved(self.value.potential(array<Int>("start", start, {n}), array<Int>("end", end, {n})), {self.nodes()});
            },
            "start"_a, "end"_a,
            nb::sig("def potential(self, start: numpy.typing.NDArray[numpy.int64], end: numpy.typing.NDArray[numpy.int64]) -> "
                    "numpy.typing.NDArray[numpy.float64]"),
            "Return the start-time potential (N,) of nodes in ticks.")
        .def(
            "insertion",
            [](const BoundNet& self, nb::handle potential, nb::handle start, nb::handle end, nb::handle head, nb::handle following,
               Stop& stop) {
                const Int n = self.of().n;
                return moved(self.value.insertion(array<double>("potential", potential, {self.nodes()}), array<Int>("start", start, {n}),
                                                  array<Int>("end", end, {n}), ranged("head", head, self.of().m, -1, n - 1),
                                                  ranged("following", following, n, -1, n - 1), stop),
                             {self.nodes()});
            },
            "potential"_a, "start"_a, "end"_a, "head"_a, "following"_a, "stop"_a,
            nb::sig("def insertion(self, potential: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], "
                    "end: numpy.typing.NDArray[numpy.int64], head: numpy.typing.NDArray[numpy.int64], "
                    "following: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.float64]"),
            "Return the ticks (N,) by which tasks would end later at each node, in the first sufficient gap of its device.\n\n"
            "`head` (m,) is the first task of each device, `following` (n,) the next one on the same device, -1 for none.")
        .def_prop_ro("pivot", viewed<BoundNet>(&GpNet::pivot), "(n,) the node of each task.")
        .def_prop_ro("source", viewed<BoundNet>(&GpNet::source), "(E,) of each edge.")
        .def_prop_ro("target", viewed<BoundNet>(&GpNet::target), "(E,) of each edge.")
        .def_prop_ro(
            "data",
            [](nb::handle_t<BoundNet> self) {
                const auto& net = nb::cast<BoundNet&>(self).value;
                return view(net.data, self, {4, static_cast<Int>(net.source.size())});
            },
            "(4, E) bytes, ticks per byte, latency and transfer ticks of each edge.");

    module.def(
        "pass_messages",
        [](nb::handle node, nb::handle node_bounds, nb::handle edge, nb::handle edge_bounds, nb::handle sender, nb::handle receiver,
           nb::handle data, nb::tuple weights, nb::handle start) {
            const auto nodes = array<Int>("node", node, {ANY_LENGTH}), edges = array<Int>("edge", edge, {ANY_LENGTH});
            const Int n = static_cast<Int>(nodes.size()), e = static_cast<Int>(edges.size());
            const auto bounds = array<Int>("node_bounds", node_bounds, {ANY_LENGTH});
            if (bounds.empty()) throw Wrong("node_bounds: no entry; expected one more than levels");
            check_range("node", nodes, 0, n - 1);
            check_range("edge", edges, 0, e - 1);
            check_starts("node_bounds", bounds, n);
            const Levels levels{nodes, bounds, edges, array<Int>("edge_bounds", edge_bounds, {static_cast<Int>(bounds.size())})};
            check_starts("edge_bounds", levels.edge_bounds, e);
            if (weights.size() != 4) throw Wrong("weights: expected message, its bias, update, its bias");
            const auto message_bias = array<double>("message_bias", weights[1], {ANY_LENGTH});
            const auto update_bias = array<double>("update_bias", weights[3], {ANY_LENGTH});
            const Int h = static_cast<Int>(message_bias.size()), o = static_cast<Int>(update_bias.size());
            const auto features = array<double>("data", data, {e, ANY_LENGTH});
            const auto message = array<double>("message", weights[0], {h, ANY_LENGTH});
            const Int g = e == 0 ? 0 : static_cast<Int>(features.size()) / e;
            if (e > 0 && static_cast<Int>(message.size()) != h * (o + g)) throw Wrong("message: expected one column for each feature");
            const MessageWeights given{message, message_bias, array<double>("update", weights[2], {o, h}), update_bias};
            const auto first = array<double>("start", start, {n, o});
            std::vector<double> found(first.begin(), first.end());
            pass_messages(levels, ranged("sender", sender, e, 0, n - 1), ranged("receiver", receiver, e, 0, n - 1), features, given, found);
            return moved(std::move(found), {n, o});
        },
        "node"_a, "node_bounds"_a, "edge"_a, "edge_bounds"_a, "sender"_a, "receiver"_a, "data"_a, "weights"_a, "start"_a,
        nb::sig("def pass_messages(node: numpy.typing.NDArray[numpy.int64], node_bounds: numpy.typing.NDArray[numpy.int64], "
                "edge: numpy.typing.NDArray[numpy.int64], edge_bounds: numpy.typing.NDArray[numpy.int64], "
                "sender: numpy.typing.NDArray[numpy.int64], receiver: numpy.typing.NDArray[numpy.int64], "
                "data: numpy.typing.NDArray[numpy.float64], weights: tuple[numpy.typing.NDArray[numpy.float64], ...], start: numpy.typing.NDArray[numpy.float64]) -> "
                "numpy.typing.NDArray[numpy.float64]"),
        "Return the embeddings (N, o) of GiPH's message passing, from the features `start` (N, o), level by level.\n\n"
        "Levels are `node` (N,) and `edge` (E,) with their bounds; `data` (E, g); `weights` are message (h, o + g), its bias (h,), "
        "update (o, h) and its bias (o,).");
}

}  // namespace engine
