// Clusters of tasks, and their mapping to devices.
#include "bindings.hpp"
#include "clustering.hpp"

namespace engine {

namespace {

void check_weights(Ints work, Ints transfer) {
    check_range("work", work, 0, NEVER - 1);
    check_range("transfer", transfer, 0, NEVER - 1);
    Int total = 0;
    for (const Ints each : {work, transfer})
        for (const Int ticks : each) total = add(total, ticks);
    if (total >= NEVER) throw Overflow();
}

}  // namespace

void bind_clustering(nb::module_& module) {
    module.def(
        "dominant_sequence_clusters",
        [](const BoundProblem& problem, nb::handle work, nb::handle transfer, nb::handle blevel, Stop& stop) {
            const Problem& p = of(problem);
            const auto works = array<Int>("work", work, {p.n}), transfers = array<Int>("transfer", transfer, {p.e});
            const auto levels = array<Int>("blevel", blevel, {p.n});
            Clustering found;
            {
                const nb::gil_scoped_release unlocked;
                check_weights(works, transfers);
                check_range("blevel", levels, 0, NEVER - 1);
                found = dominant_sequence_clusters(p, works, transfers, levels, stop);
            }
            return nb::make_tuple(moved(std::move(found.cluster), {p.n}), moved(std::move(found.start), {p.n}));
        },
        "problem"_a, "work"_a, "transfer"_a, "blevel"_a, "stop"_a,
        nb::sig("def dominant_sequence_clusters(problem: Problem, work: numpy.typing.NDArray[numpy.int64], "
                "transfer: numpy.typing.NDArray[numpy.int64], blevel: numpy.typing.NDArray[numpy.int64], stop: Stop) "
                "-> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
        "Return the cluster (n,) and the start (n,) of each task by DSC, for work (n,), transfer (e,), and the longest path "
        "blevel (n,) from each task.");
    module.def(
        "linear_clusters",
        [](const BoundProblem& problem, nb::handle work, nb::handle transfer, Stop& stop) {
            const Problem& p = of(problem);
            const auto works = array<Int>("work", work, {p.n}), transfers = array<Int>("transfer", transfer, {p.e});
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                check_weights(works, transfers);
                found = linear_clusters(p, works, transfers, stop);
            }
            return moved(std::move(found), {p.n});
        },
        "problem"_a, "work"_a, "transfer"_a, "stop"_a,
        nb::sig("def linear_clusters(problem: Problem, work: numpy.typing.NDArray[numpy.int64], "
                "transfer: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the path (n,) of each task in linear clustering, for work (n,) and transfer (e,); longer paths first.");
    module.def(
        "greedy_matching",
        [](nb::handle source, nb::handle target, Int nodes) {
            const auto sources = array<Int>("source", source, {ANY_LENGTH});
            const auto targets = array<Int>("target", target, {static_cast<Int>(sources.size())});
            check_range("source", sources, 0, nodes - 1);
            check_range("target", targets, 0, nodes - 1);
            std::vector<Int> found = greedy_matching(sources, targets, nodes);
            const Int count = static_cast<Int>(found.size());
            return moved(std::move(found), {count});
        },
        "source"_a, "target"_a, "nodes"_a,
        nb::sig("def greedy_matching(source: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], "
                "nodes: int) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the edges of a greedy matching of nodes 0 to nodes - 1: in turn, each edge of which both ends are free.");
    module.def(
        "map_clusters",
        [](BoundTimeline& timeline, nb::handle members, nb::handle start, nb::handle cluster, nb::handle turn,
           nb::handle work, bool wrap, Stop& stop) {
            Line& line = timeline.line;
            const Int g = line.problem.g;
            const auto starts = array<Int>("start", start, {ANY_LENGTH});
            if (starts.empty()) throw Wrong("start: no entry; expected one more than clusters");
            const Int count = static_cast<Int>(starts.size()) - 1;
            const Mapping mapping{array<Int>("members", members, {g}), starts, array<Int>("cluster", cluster, {g}),
                                  array<Int>("turn", turn, {count}), array<Int>("work", work, {g, line.problem.m}), wrap};
            Mapped found;
            {
                const nb::gil_scoped_release unlocked;
                check_range("members", mapping.members, 0, g - 1);
                check_starts("start", starts, g);
                check_range("turn", mapping.turn, 0, count - 1);
                check_range("work", mapping.work, 0, NEVER - 1);
                found = map_clusters(line, mapping, stop);
            }
            return nb::make_tuple(found.stuck, found.splits);
        },
        "timeline"_a, "members"_a, "start"_a, "cluster"_a, "turn"_a, "work"_a, "wrap"_a, "stop"_a,
        nb::sig("def map_clusters(timeline: Timeline, members: numpy.typing.NDArray[numpy.int64], "
                "start: numpy.typing.NDArray[numpy.int64], cluster: numpy.typing.NDArray[numpy.int64], "
                "turn: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.int64], wrap: bool, stop: Stop) "
                "-> tuple[int, int]"),
        "Assign a home to every group by clusters: members[start[c]:start[c + 1]] are the groups of cluster c, `cluster` (g,) "
        "that of each group, `turn` (c,) the order of mapping and `work` (g, m) the ticks of groups. Return -1 or the group "
        "that no device can take, and the number of clusters that no device could take whole.");
    module.def(
        "keep_parts",
        [](BoundTimeline& timeline, nb::handle sequence, nb::handle wanted, nb::handle start, nb::handle neighbours,
           nb::handle weight, nb::handle work, Stop& stop) {
            Line& line = timeline.line;
            const Int g = line.problem.g, m = line.problem.m;
            const auto turn = array<Int>("sequence", sequence, {g}), devices = array<Int>("wanted", wanted, {g});
            const auto starts = array<Int>("start", start, {g + 1}), near = array<Int>("neighbours", neighbours, {ANY_LENGTH});
            const Int edges = static_cast<Int>(near.size());
            const auto weights = array<Int>("weight", weight, {edges}), works = array<Int>("work", work, {g, m});
            const nb::gil_scoped_release unlocked;
            check_range("sequence", turn, 0, g - 1);
            check_range("wanted", devices, 0, m - 1);
            check_starts("start", starts, edges);
            check_range("neighbours", near, 0, g - 1);
            check_range("weight", weights, 0, NEVER - 1);
            check_range("work", works, 0, NEVER - 1);
            return keep_parts(line, turn, devices, starts, near, weights, works, stop);
        },
        "timeline"_a, "sequence"_a, "wanted"_a, "start"_a, "neighbours"_a, "weight"_a, "work"_a, "stop"_a,
        nb::sig("def keep_parts(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                "wanted: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], "
                "neighbours: numpy.typing.NDArray[numpy.int64], weight: numpy.typing.NDArray[numpy.int64], "
                "work: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
        "Assign each group to the device `wanted` (g,) if that can take it, the others where most weight of their edges to "
        "placed groups leads: neighbours[start[k]:start[k + 1]] of group k. Return -1 or the group that no device takes.");
}

}  // namespace engine
