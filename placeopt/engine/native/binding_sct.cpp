// The linear program of Small Communication Times.
#include "bindings.hpp"
#include "sct.hpp"

namespace engine {

namespace {

// The n + 1 bounds of the lanes or edges out of each task, and where they lead.
void check_lanes(Ints start, Ints target) {
    check_starts("start", start, static_cast<Int>(target.size()));
    check_range("target", target, 0, static_cast<Int>(start.size()) - 2);
}

Board board_of(nb::handle given) {
    const nb::tuple of = parts("board", given, 9);
    Board board;
    board.length = array<double>("length", of[0], {ANY_LENGTH});
    board.target = array<Int>("target", of[6], {ANY_LENGTH});
    const Int n = static_cast<Int>(board.length.size()), a = static_cast<Int>(board.target.size());
    board.start = array<Int>("start", of[1], {n + 1});
    board.out_start = array<Int>("out_start", of[2], {n});
    board.out_end = array<Int>("out_end", of[3], {n});
    board.in_start = array<Int>("in_start", of[4], {n + 1});
    board.in_lane = array<Int>("in_lane", of[5], {ANY_LENGTH});
    board.ticks = array<double>("ticks", of[7], {a});
    board.relief = array<double>("relief", of[8], {a});
    check_lanes(board.start, board.target);
    check_starts("in_start", board.in_start, static_cast<Int>(board.in_lane.size()));
    check_range("in_lane", board.in_lane, 0, a - 1);
    for (Int i = 0; i < n; ++i)
        if (board.out_start[i] < board.start[i] || board.out_end[i] > board.start[i + 1])
            throw Wrong("out_start, out_end: task " + std::to_string(i) + "; expected lanes out of it");
    return board;
}

GameState state_of(nb::handle given, Int lanes) {
    const nb::tuple of = parts("state", given, 6);
    GameState state;
    const auto copy = [&](std::vector<double>& into, const char* name, int place) {
        const auto values = array<double>(name, of[place], {lanes});
        into.assign(values.begin(), values.end());
    };
    copy(state.regret, "regret", 0);
    copy(state.choice, "choice", 1);
    copy(state.share_regret, "share_regret", 2);
    copy(state.share, "share", 3);
    copy(state.mean_flow, "mean_flow", 4);
    copy(state.mean_share, "mean_share", 5);
    return state;
}

}  // namespace

void bind_sct(nb::module_& module) {
    module.def(
        "edge_paths",
        [](nb::handle source, nb::handle target, nb::handle ticks, Int nodes, bool backwards) {
            const auto from = array<Int>("source", source, {ANY_LENGTH});
            const Int e = static_cast<Int>(from.size());
            const auto to = array<Int>("target", target, {e});
            const auto weights = array<double>("ticks", ticks, {e});
            if (nodes < 0) throw Wrong("nodes: " + std::to_string(nodes) + "; expected at least 0");
            check_range("source", from, 0, nodes - 1);
            check_range("target", to, 0, nodes - 1);
            return moved_all(edge_paths(from, to, weights, nodes, backwards));
        },
        "source"_a, "target"_a, "ticks"_a, "nodes"_a, "backwards"_a = false,
        nb::sig("def edge_paths(source: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], "
                "ticks: numpy.typing.NDArray[numpy.float64], nodes: int, backwards: bool = False) "
                "-> numpy.typing.NDArray[numpy.float64]"),
        "Return the longest path (nodes,) to each node, or `backwards` from it, over edges (e,) in the order of their sources; "
        "nodes are in topological order.");
    module.def(
        "choose_rivals",
        [](nb::handle start, nb::handle edge, nb::handle ticks, nb::handle delay) {
            const auto delays = array<Int>("delay", delay, {ANY_LENGTH});
            const Int e = static_cast<Int>(delays.size());
            const auto edges = array<Int>("edge", edge, {ANY_LENGTH}), starts = array<Int>("start", start, {ANY_LENGTH});
            const auto others = array<Int>("ticks", ticks, {e});
            if (starts.empty()) throw Wrong("start: no entry; expected one more than tasks");
            check_starts("start", starts, static_cast<Int>(edges.size()));
            check_range("edge", edges, 0, e - 1);
            return moved_all(choose_rivals(starts, edges, others, delays));
        },
        "start"_a, "edge"_a, "ticks"_a, "delay"_a,
        nb::sig("def choose_rivals(start: numpy.typing.NDArray[numpy.int64], edge: numpy.typing.NDArray[numpy.int64], "
                "ticks: numpy.typing.NDArray[numpy.int64], delay: numpy.typing.NDArray[numpy.int64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the delay (e,) that the other members of an edge's set of rivals allow, -1 outside of sets. "
        "edge[start[i]:start[i + 1]] are the edges of task i, the longest `ticks` (e,) first. Sets of 2, 3, 4, 6, 8, 12, ... "
        "edges and of all edges are tried; the one is chosen whose `delay` (e,) one favourite hides least.");
    module.def(
        "raise_favourites",
        [](nb::handle order, nb::handle source, nb::handle target, nb::handle out_rival, nb::handle in_rival, nb::handle room,
           nb::handle space, nb::handle y) {
            const auto turn = array<Int>("order", order, {ANY_LENGTH});
            const auto given = array<double>("y", y, {ANY_LENGTH});
            const Int e = static_cast<Int>(given.size());
            const Rivals rivals{array<Int>("source", source, {e}), array<Int>("target", target, {e}),
                                array<bool>("out_rival", out_rival, {e}), array<bool>("in_rival", in_rival, {e})};
            const auto rooms = array<double>("room", room, {ANY_LENGTH});
            const Int n = static_cast<Int>(rooms.size());
            const auto spaces = array<double>("space", space, {n});
            check_range("order", turn, 0, e - 1);
            check_range("source", rivals.source, 0, n - 1);
            check_range("target", rivals.target, 0, n - 1);
            std::vector<double> found(given.begin(), given.end());
            raise_favourites(turn, rivals, {rooms.begin(), rooms.end()}, {spaces.begin(), spaces.end()}, found);
            return moved_all(std::move(found));
        },
        "order"_a, "source"_a, "target"_a, "out_rival"_a, "in_rival"_a, "room"_a, "space"_a, "y"_a,
        nb::sig("def raise_favourites(order: numpy.typing.NDArray[numpy.int64], source: numpy.typing.NDArray[numpy.int64], "
                "target: numpy.typing.NDArray[numpy.int64], out_rival: numpy.typing.NDArray[numpy.bool_], "
                "in_rival: numpy.typing.NDArray[numpy.bool_], room: numpy.typing.NDArray[numpy.float64], "
                "space: numpy.typing.NDArray[numpy.float64], y: numpy.typing.NDArray[numpy.float64]) "
                "-> numpy.typing.NDArray[numpy.float64]"),
        "Return y (e,), raised edge by edge in an order as far as `room` (n,) of the producers and `space` (n,) of the consumers "
        "allow.");
    module.def(
        "play_rounds",
        [](nb::handle board, nb::handle state, Int first, Int last, Stop& stop) {
            const Board on = board_of(board);
            if (first < 1) throw Wrong("first: " + std::to_string(first) + "; expected at least 1");
            const Int lanes = static_cast<Int>(on.target.size());
            GameState play = state_of(state, lanes);
            Int rounds = 0;
            {
                const nb::gil_scoped_release unlocked;
                rounds = play_rounds(on, play, first, last, stop);
            }
            const auto all = [](std::vector<double>& values) { return moved_all(std::move(values)); };
            return nb::make_tuple(nb::make_tuple(all(play.regret), all(play.choice), all(play.share_regret), all(play.share),
                                                 all(play.mean_flow), all(play.mean_share)),
                                  rounds);
        },
        "board"_a, "state"_a, "first"_a, "last"_a, "stop"_a,
        nb::sig("def play_rounds(board: tuple[numpy.typing.NDArray[numpy.generic], ...], "
                "state: tuple[numpy.typing.NDArray[numpy.float64], ...], first: int, last: int, stop: Stop) "
                "-> tuple[tuple[numpy.typing.NDArray[numpy.float64], ...], int]"),
        "Return the state after the rounds `first` to `last`, and how many were played.\n\n"
        "Board and state are those of placeopt.bounding.sct.game. Once stopped, the averages are those of the rounds before.");
    module.def(
        "split_flow",
        [](nb::handle start, nb::handle target, nb::handle flow, Int whole) {
            const auto starts = array<Int>("start", start, {ANY_LENGTH}), targets = array<Int>("target", target, {ANY_LENGTH});
            const auto flows = array<double>("flow", flow, {static_cast<Int>(targets.size())});
            if (starts.empty()) throw Wrong("start: no entry; expected one more than tasks");
            if (whole < 0 || whole > Int{1} << 53) throw Wrong("whole: " + std::to_string(whole) + "; expected 0 to 2^53");
            check_lanes(starts, targets);
            for (std::size_t i = 0; i + 1 < starts.size(); ++i)
                for (Int x = starts[i]; x < starts[i + 1]; ++x)
                    if (targets[x] <= static_cast<Int>(i))
                        throw Wrong("target: entry " + std::to_string(x) + " is " + std::to_string(targets[x]) + "; expected a task after " + std::to_string(i));
            for (std::size_t x = 0; x < flows.size(); ++x)
                if (!(flows[x] >= 0.0)) throw Wrong("flow: entry " + std::to_string(x) + " is " + std::to_string(flows[x]) + "; expected at least 0");
            return moved_all(split_flow(starts, targets, flows, whole));
        },
        "start"_a, "target"_a, "flow"_a, "whole"_a,
        nb::sig("def split_flow(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], "
                "flow: numpy.typing.NDArray[numpy.float64], whole: int) -> numpy.typing.NDArray[numpy.int64]"),
        "Return `whole` divided over the lanes in proportion to `flow` (a,), as integers (a,) that are conserved at every task.");
    module.def(
        "fill_shares",
        [](nb::handle start, nb::handle target, nb::handle length, nb::handle fixed, nb::handle hidden, nb::handle weight,
           nb::handle rival, nb::handle limit, Stop& stop) {
            Side side;
            side.length = array<double>("length", length, {ANY_LENGTH});
            side.target = array<Int>("target", target, {ANY_LENGTH});
            const Int n = static_cast<Int>(side.length.size()), e = static_cast<Int>(side.target.size());
            side.start = array<Int>("start", start, {n + 1});
            side.fixed = array<double>("fixed", fixed, {e});
            side.hidden = array<double>("hidden", hidden, {e});
            side.weight = array<double>("weight", weight, {e});
            side.rival = array<bool>("rival", rival, {e});
            side.limit = array<double>("limit", limit, {e});
            check_lanes(side.start, side.target);
            Filled found;
            {
                const nb::gil_scoped_release unlocked;
                found = fill_shares(side, stop);
            }
            return nb::make_tuple(moved_all(std::move(found.own)), moved_all(std::move(found.value)));
        },
        "start"_a, "target"_a, "length"_a, "fixed"_a, "hidden"_a, "weight"_a, "rival"_a, "limit"_a, "stop"_a,
        nb::sig("def fill_shares(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], "
                "length: numpy.typing.NDArray[numpy.float64], fixed: numpy.typing.NDArray[numpy.float64], "
                "hidden: numpy.typing.NDArray[numpy.float64], weight: numpy.typing.NDArray[numpy.float64], "
                "rival: numpy.typing.NDArray[numpy.bool_], limit: numpy.typing.NDArray[numpy.float64], stop: Stop) "
                "-> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]"),
        "Return the y (e,) that the best shares of the producers allow under limits (e,) of the consumers, and the longest path "
        "(n,) from each task, its length included.");
}

}  // namespace engine
