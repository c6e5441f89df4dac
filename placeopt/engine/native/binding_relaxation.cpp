// Cuts of the relaxation.
#include "bindings.hpp"
#include "relaxation.hpp"

namespace engine {

namespace {

// The graph of a number of pairs.
GroupGraph graph_of(nb::handle start, nb::handle neighbour, nb::handle pair, Int pairs) {
    GroupGraph graph{array<Int>("start", start, {ANY_LENGTH}), array<Int>("neighbour", neighbour, {ANY_LENGTH}), {}};
    const Int all = static_cast<Int>(graph.neighbour.size());
    graph.pair = array<Int>("pair", pair, {all});
    if (graph.start.empty()) throw Wrong("start: no entry; expected one more than groups");
    check_starts("start", graph.start, all);
    check_range("neighbour", graph.neighbour, 0, static_cast<Int>(graph.start.size()) - 2);
    check_range("pair", graph.pair, 0, pairs - 1);
    return graph;
}

}  // namespace

void bind_relaxation(nb::module_& module) {
    module.def(
        "grow_trees",
        [](nb::handle start, nb::handle neighbour, nb::handle pair, nb::handle ends, nb::handle appeal, nb::handle outside,
           nb::handle memory, Int limit, Int most, Stop& stop) {
            Point point;
            point.ends = array<double>("ends", ends, {ANY_LENGTH});
            const Int pairs = static_cast<Int>(point.ends.size());
            point.appeal = array<double>("appeal", appeal, {pairs});
            const GroupGraph graph = graph_of(start, neighbour, pair, pairs);
            const Int groups = static_cast<Int>(graph.start.size()) - 1;
            point.outside = array<double>("outside", outside, {groups});
            const auto bytes = array<Int>("memory", memory, {groups});
            check_range("memory", bytes, 0, INT64_MAX);
            Trees found;
            {
                const nb::gil_scoped_release unlocked;
                found = grow_trees(graph, point, bytes, limit, most, stop);
            }
            return nb::make_tuple(moved_all(std::move(found.start)), moved_all(std::move(found.member)),
                                  moved_all(std::move(found.parent)), moved_all(std::move(found.via)),
                                  moved_all(std::move(found.value)));
        },
        "start"_a, "neighbour"_a, "pair"_a, "ends"_a, "appeal"_a, "outside"_a, "memory"_a, "limit"_a, "most"_a, "stop"_a,
        nb::sig("def grow_trees(start: numpy.typing.NDArray[numpy.int64], neighbour: numpy.typing.NDArray[numpy.int64], "
                "pair: numpy.typing.NDArray[numpy.int64], ends: numpy.typing.NDArray[numpy.float64], "
                "appeal: numpy.typing.NDArray[numpy.float64], outside: numpy.typing.NDArray[numpy.float64], "
                "memory: numpy.typing.NDArray[numpy.int64], limit: int, most: int, stop: Stop) "
                "-> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], "
                "numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]"),
        "Return a tree of at most `most` groups from each group that needs more than `limit` bytes of memory (g,), without "
        "dispensable leaves.\n\n"
        "The neighbours of group g are at start[g]:start[g + 1]. Trees grow along the pairs with the fewest `ends` (q,), ties by "
        "the largest `appeal` (q,), and are abandoned at a value of 2; a leaf costs `outside` (g,). The result: bounds (g + 1,) "
        "of trees; their members, the position of the parent of each in its tree or -1, and the pair to it; and the value (g,) "
        "of the cover of each tree (placeopt.bounding.relaxation.covers).");
    module.def(
        "shortest_detours",
        [](nb::handle start, nb::handle neighbour, nb::handle pair, nb::handle low, nb::handle high, nb::handle moved, nb::handle pairs,
           nb::handle limit, Int most, Stop& stop) {
            const auto lengths = array<double>("moved", moved, {ANY_LENGTH});
            const Int count = static_cast<Int>(lengths.size());
            const Ends ends{array<Int>("low", low, {count}), array<Int>("high", high, {count})};
            const GroupGraph graph = graph_of(start, neighbour, pair, count);
            const Int groups = static_cast<Int>(graph.start.size()) - 1;
            const auto asked = array<Int>("pairs", pairs, {ANY_LENGTH});
            const auto limits = array<double>("limit", limit, {static_cast<Int>(asked.size())});
            check_range("low", ends.low, 0, groups - 1);
            check_range("high", ends.high, 0, groups - 1);
            check_range("pairs", asked, 0, count - 1);
            Detours found;
            {
                const nb::gil_scoped_release unlocked;
                found = shortest_detours(graph, ends, lengths, asked, limits, most, stop);
            }
            return nb::make_tuple(moved_all(std::move(found.start)), moved_all(std::move(found.around)),
                                  moved_all(std::move(found.length)));
        },
        "start"_a, "neighbour"_a, "pair"_a, "low"_a, "high"_a, "moved"_a, "pairs"_a, "limit"_a, "most"_a, "stop"_a,
        nb::sig("def shortest_detours(start: numpy.typing.NDArray[numpy.int64], neighbour: numpy.typing.NDArray[numpy.int64], "
                "pair: numpy.typing.NDArray[numpy.int64], low: numpy.typing.NDArray[numpy.int64], "
                "high: numpy.typing.NDArray[numpy.int64], moved: numpy.typing.NDArray[numpy.float64], "
                "pairs: numpy.typing.NDArray[numpy.int64], limit: numpy.typing.NDArray[numpy.float64], most: int, stop: Stop) "
                "-> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], "
                "numpy.typing.NDArray[numpy.float64]]"),
        "Return the shortest path between the groups `low` and `high` (q,) of each pair of `pairs` (p,) that avoids this pair, of "
        "lengths `moved` (q,).\n\n"
        "Only if it is shorter than `limit` (p,) and has at most `most` pairs. The result: bounds (p + 1,) of paths, their pairs, "
        "and the length (p,) of each.");
}

}  // namespace engine
