// Heuristics that choose the next task among the ready ones.
#include "bindings.hpp"
#include "ready_lists.hpp"

namespace engine {

namespace {

// Checks that the entries are each task once.
void check_permutation(const char* name, Ints tasks) {
    const Int n = static_cast<Int>(tasks.size());
    check_range(name, tasks, 0, n - 1);
    std::vector<bool> listed(n, false);
    for (Int k = 0; k < n; ++k) {
        if (listed[tasks[k]])
            throw Wrong(std::string(name) + ": entry " + std::to_string(k) + " is " + std::to_string(tasks[k]) +
                        "; expected each task once");
        listed[tasks[k]] = true;
    }
}

// Nothing may be placed: heuristics place all tasks. With `closing`, devices close.
void begin(Line& line, bool closing = false) {
    if (std::any_of(line.device.begin(), line.device.end(), [](Int d) { return d != NONE; }))
        throw Wrong("timeline: holds tasks; expected an empty one");
    line.closed.assign(closing ? line.problem.m : 0, false);
}

}  // namespace

void bind_ready(nb::module_& module) {
    module.def(
        "place_pairs",
        [](BoundTimeline& timeline, nb::handle sequence, nb::handle work, bool batches, bool closing, Stop& stop) {
            Line& line = timeline.line;
            const Problem& problem = line.problem;
            const auto tasks = array<Int>("sequence", sequence, {problem.n});
            const auto ticks = array<Int>("work", work, {problem.n, problem.m});
            const nb::gil_scoped_release unlocked;
            check_permutation("sequence", tasks);
            check_range("work", ticks, 0, NEVER - 1);
            if (line.insertion && ticks.data() != problem.duration.data())
                for (std::size_t k = 0; k < ticks.size(); ++k)
                    if (ticks[k] != problem.duration[k]) throw Wrong("work: expected the durations, with insertion");
            begin(line, closing);
            return place_pairs(line, tasks, ticks, batches, stop);
        },
        "timeline"_a, "sequence"_a, "work"_a, "batches"_a, "closing"_a, "stop"_a,
        nb::sig("def place_pairs(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                "work: numpy.typing.NDArray[numpy.int64], batches: bool, closing: bool, stop: Stop) -> int"),
        "Place the pair of a ready task and a device with the least start plus work (n, m), until none is left; ties go by "
        "`sequence` (n,), then by device. With `batches`, all ready tasks come before those that become ready meanwhile; with "
        "`closing`, a device without room for a task that is chosen for it takes no further groups. Return -1 or the first "
        "ready task that no device can take.");
    module.def(
        "place_neediest",
        [](BoundTimeline& timeline, bool by_gap, bool batches, Stop& stop) {
            const nb::gil_scoped_release unlocked;
            begin(timeline.line);
            return place_neediest(timeline.line, by_gap, batches, stop);
        },
        "timeline"_a, "by_gap"_a, "batches"_a, "stop"_a,
        "Place the ready task with the latest earliest end, or with the widest gap to the second, where it ends first; "
        "return -1 or the first ready task that no device can take.");
    module.def(
        "place_favourites",
        [](BoundTimeline& timeline, nb::handle sequence, nb::handle work, nb::handle parent, bool urgent_first, bool closing,
           Stop& stop) {
            Line& line = timeline.line;
            const Problem& problem = line.problem;
            const auto tasks = array<Int>("sequence", sequence, {problem.n});
            const auto ticks = array<Int>("work", work, {problem.n, problem.m});
            const auto parents = array<Int>("parent", parent, {problem.n});
            const nb::gil_scoped_release unlocked;
            check_permutation("sequence", tasks);
            check_range("work", ticks, 0, NEVER - 1);
            check_range("parent", parents, NONE, problem.n - 1);
            if (line.insertion) throw Wrong("timeline: uses gaps; expected insertion=False");
            begin(line, closing);
            return place_favourites(line, tasks, ticks, parents, urgent_first, stop);
        },
        "timeline"_a, "sequence"_a, "work"_a, "parent"_a, "urgent_first"_a, "closing"_a, "stop"_a,
        nb::sig("def place_favourites(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                "work: numpy.typing.NDArray[numpy.int64], parent: numpy.typing.NDArray[numpy.int64], urgent_first: bool, "
                "closing: bool, stop: Stop) -> int"),
        "Place all tasks as m-SCT, with the favourite parent (n,) of each task, -1 for none; the rest is as for "
        "`place_pairs`.");
    module.def(
        "place_by_clock",
        [](BoundTimeline& timeline, nb::handle sequence, nb::handle child, bool closing, Stop& stop) {
            Line& line = timeline.line;
            const Int n = line.problem.n;
            const auto tasks = array<Int>("sequence", sequence, {n}), children = array<Int>("child", child, {n});
            const nb::gil_scoped_release unlocked;
            check_permutation("sequence", tasks);
            check_range("child", children, NONE, n - 1);
            if (line.insertion) throw Wrong("timeline: uses gaps; expected insertion=False");
            begin(line, closing);
            return place_by_clock(line, tasks, children, stop);
        },
        "timeline"_a, "sequence"_a, "child"_a, "closing"_a, "stop"_a,
        nb::sig("def place_by_clock(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                "child: numpy.typing.NDArray[numpy.int64], closing: bool, stop: Stop) -> int"),
        "Place all tasks as Baechi's released m-SCT, with the favourite child (n,) of each task, -1 for none; the rest is as "
        "for `place_pairs`.");
    module.def(
        "place_by_level",
        [](BoundTimeline& timeline, nb::handle median, nb::handle level, nb::handle heaviest, Stop& stop) {
            Line& line = timeline.line;
            const Problem& problem = line.problem;
            const auto medians = array<Int>("median", median, {problem.n}), levels = array<Int>("level", level, {problem.n});
            const auto edges = array<Int>("heaviest", heaviest, {problem.n});
            const nb::gil_scoped_release unlocked;
            check_range("median", medians, 0, NEVER - 1);
            check_range("level", levels, 0, NEVER - 1);
            check_range("heaviest", edges, NONE, problem.e - 1);
            begin(line);
            return place_by_level(line, medians, levels, edges, stop);
        },
        "timeline"_a, "median"_a, "level"_a, "heaviest"_a, "stop"_a,
        nb::sig("def place_by_level(timeline: Timeline, median: numpy.typing.NDArray[numpy.int64], "
                "level: numpy.typing.NDArray[numpy.int64], heaviest: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
        "Place all tasks as GDL, with the median duration (n,), the static level (n,) and the out-edge with most data (n,) of "
        "each task, -1 for exits; return -1 or the task that no device can take.");
    for (const bool typed : {false, true})
        module.def(
            typed ? "place_by_type" : "place_on_two",
            [typed](BoundTimeline& timeline, nb::handle sequence, nb::handle detour, Stop& stop) {
                Line& line = timeline.line;
                const auto tasks = array<Int>("sequence", sequence, {line.problem.n});
                const auto ticks = array<Int>("detour", detour, {line.problem.n, line.problem.m});
                const nb::gil_scoped_release unlocked;
                check_permutation("sequence", tasks);
                check_range("detour", ticks, 0, NEVER - 1);
                if (line.insertion) throw Wrong("timeline: uses gaps; expected insertion=False");
                begin(line);
                if (!typed) line.check_sequence(tasks);
                return (typed ? place_by_type : place_on_two)(line, tasks, ticks, stop);
            },
            "timeline"_a, "sequence"_a, "detour"_a, "stop"_a,
            nb::sig(typed ? "def place_by_type(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                            "detour: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"
                          : "def place_on_two(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                            "detour: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
            typed ? "Place all tasks as FLB; a start counts as later by detour (n, m), and ties go by `sequence` (n,). Return "
                    "-1 or the first ready task that no device can take."
                  : "Place the tasks in turn as FCP; a device counts as idle later by detour (n, m). Return -1 or the task "
                    "with the lowest index that no device can take.");
    module.def(
        "draw_pairs",
        [](BoundTimeline& timeline, nb::handle chance, double alpha, Stop& stop) {
            Line& line = timeline.line;
            const auto chances = array<double>("chance", chance, {line.problem.n});
            const nb::gil_scoped_release unlocked;
            for (const double each : chances)
                if (!(each >= 0 && each < 1)) throw Wrong("chance: " + std::to_string(each) + "; expected 0 to below 1");
            if (!(alpha >= 0 && alpha <= 1)) throw Wrong("alpha: " + std::to_string(alpha) + "; expected 0 to 1");
            begin(line);
            return draw_pairs(line, chances, alpha, stop);
        },
        "timeline"_a, "chance"_a, "alpha"_a, "stop"_a,
        nb::sig("def draw_pairs(timeline: Timeline, chance: numpy.typing.NDArray[numpy.float64], alpha: float, stop: Stop) "
                "-> int"),
        "Place all tasks as WBA, with a random number (n,) for each step and the share alpha of the range of increases; "
        "return -1 or the task that no device can take.");
    module.def(
        "fixed_levels",
        [](const BoundTimeline& timeline, nb::handle median, nb::handle level, nb::handle heaviest, Stop& stop) {
            const Problem& p = timeline.line.problem;
            const auto medians = array<Int>("median", median, {p.n}), levels = array<Int>("level", level, {p.n});
            const auto edges = array<Int>("heaviest", heaviest, {p.n});
            check_range("median", medians, 0, NEVER - 1);
            check_range("level", levels, 0, NEVER - 1);
            check_range("heaviest", edges, NONE, p.e - 1);
            return moved(fixed_levels(timeline.line, medians, levels, edges, stop), {p.n, p.m});
        },
        "timeline"_a, "median"_a, "level"_a, "heaviest"_a, "stop"_a,
        nb::sig("def fixed_levels(timeline: Timeline, median: numpy.typing.NDArray[numpy.int64], "
                "level: numpy.typing.NDArray[numpy.int64], heaviest: numpy.typing.NDArray[numpy.int64], stop: Stop) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the part (n, m) of GDL's levels that never changes; the arguments are those of `place_by_level`.");
    module.def(
        "imaginary_levels",
        [](const BoundTimeline& timeline, Stop& stop) {
            const Problem& p = timeline.line.problem;
            return moved(imaginary_levels(timeline.line, stop), {p.n, p.m});
        },
        "timeline"_a, "stop"_a,
        nb::sig("def imaginary_levels(timeline: Timeline, stop: Stop) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the best imaginary levels (n, m) of BIL in ticks.");
    module.def(
        "place_by_imaginary_level",
        [](BoundTimeline& timeline, Stop& stop) {
            const nb::gil_scoped_release unlocked;
            begin(timeline.line);
            return place_by_imaginary_level(timeline.line, stop);
        },
        "timeline"_a, "stop"_a, "Place all tasks as BIL; return -1 or the task that no device can take.");
}

}  // namespace engine
