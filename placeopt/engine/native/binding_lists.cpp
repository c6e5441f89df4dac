// Heuristics that fill a timeline.
#include "bindings.hpp"

namespace engine {

void bind_lists(nb::module_& module) {
    module.def(
        "insert_tasks",
        [](BoundTimeline& timeline, nb::handle sequence, nb::handle row, nb::handle ticks, Stop& stop) {
            Line& line = timeline.line;
            const Int m = line.problem.m;
            const auto tasks = array<Int>("sequence", sequence, {ANY_LENGTH});
            const Penalties penalties{array<Int>("row", row, {line.problem.n}), array<Int>("ticks", ticks, {ANY_LENGTH, m})};
            const nb::gil_scoped_release unlocked;
            line.check_sequence(tasks);
            if (m > 0) check_range("row", penalties.row, 0, static_cast<Int>(penalties.ticks.size()) / m - 1);
            check_range("ticks", penalties.ticks, 0, NEVER - 1);
            return insert_tasks(line, tasks, penalties, stop);
        },
        "timeline"_a, "sequence"_a, "row"_a, "ticks"_a, "stop"_a,
        nb::sig("def insert_tasks(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                "row: numpy.typing.NDArray[numpy.int64], ticks: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
        "Place the tasks in turn where they end first, plus ticks[row[task], device]; return -1 or the task that no device "
        "can take.");
    module.def(
        "list_tasks",
        [](BoundTimeline& timeline, nb::handle sequence, Int measure, Stop& stop) {
            const auto tasks = array<Int>("sequence", sequence, {ANY_LENGTH});
            if (measure < 0 || measure > 3) throw Wrong("measure: " + std::to_string(measure) + "; expected 0 to 3");
            const nb::gil_scoped_release unlocked;
            timeline.line.check_sequence(tasks);
            return list_tasks(timeline.line, tasks, static_cast<Measure>(measure), stop);
        },
        "timeline"_a, "sequence"_a, "measure"_a, "stop"_a,
        nb::sig("def list_tasks(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], measure: int, stop: Stop) "
                "-> int"),
        "Place the tasks in turn on the device with the least measure: 0 their end, 1 their duration, 2 the end of the "
        "tasks there, 3 its index; return -1 or the task that no device can take.");
    module.def(
        "fill_devices",
        [](BoundTimeline& timeline, nb::handle sequence, nb::handle weight, nb::handle share, Stop& stop) {
            const Problem& problem = timeline.line.problem;
            const auto tasks = array<Int>("sequence", sequence, {ANY_LENGTH});
            const auto weights = array<Int>("weight", weight, {problem.g});
            const auto shares = array<Int>("share", share, {problem.m});
            const nb::gil_scoped_release unlocked;
            timeline.line.check_sequence(tasks);
            return fill_devices(timeline.line, tasks, weights, {shares.begin(), shares.end()}, stop);
        },
        "timeline"_a, "sequence"_a, "weight"_a, "share"_a, "stop"_a,
        nb::sig("def fill_devices(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                "weight: numpy.typing.NDArray[numpy.int64], share: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
        "Append the tasks in turn to the first device until it is full or holds its share (m,) of the weight (g,) of "
        "groups, then to the next; return -1 or the task that no device can take.");
    module.def(
        "look_ahead",
        [](BoundTimeline& timeline, nb::handle sequence, Stop& stop) {
            const auto tasks = array<Int>("sequence", sequence, {ANY_LENGTH});
            const nb::gil_scoped_release unlocked;
            timeline.line.check_sequence(tasks);
            return look_ahead(timeline.line, tasks, stop);
        },
        "timeline"_a, "sequence"_a, "stop"_a,
        nb::sig("def look_ahead(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
        "Place the tasks in turn where the last of their consumers ends first; return -1 or the task that no device can "
        "take.");

    for (const bool adjusting : {false, true})
        module.def(
            adjusting ? "adjust_in_order" : "fill_in_order",
            [adjusting](BoundTimeline& timeline, nb::handle sequence, bool overfill, Stop& stop) {
                const auto tasks = array<Int>("sequence", sequence, {ANY_LENGTH});
                const nb::gil_scoped_release unlocked;
                timeline.line.check_sequence(tasks);
                return (adjusting ? adjust_in_order : fill_in_order)(timeline.line, tasks, overfill, stop);
            },
            "timeline"_a, "sequence"_a, "overfill"_a, "stop"_a,
            nb::sig(adjusting ? "def adjust_in_order(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                                "overfill: bool, stop: Stop) -> int"
                              : "def fill_in_order(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                                "overfill: bool, stop: Stop) -> int"),
            adjusting ? "Place the tasks in turn by Celeritas's Adjusting Placement; return -1 or the task that no device "
                        "can take. With `overfill`, it goes to the device with the most memory left."
                      : "Append the tasks in turn by Celeritas's Order-Place; the rest is as for `adjust_in_order`.");

    module.def(
        "balance_batches",
        [](BoundTimeline& timeline, nb::handle sequence, nb::handle bounds, Stop& stop) {
            const Line& line = timeline.line;
            const Problem& problem = line.problem;
            const auto tasks = array<Int>("sequence", sequence, {ANY_LENGTH});
            const auto parts = array<Int>("bounds", bounds, {ANY_LENGTH});
            if (parts.empty()) throw Wrong("bounds: no entry; expected the first position of each batch, and the end");
            if (line.record) throw Wrong("timeline: records placements, which batches do not; expected record=False");
            const nb::gil_scoped_release unlocked;
            line.check_sequence(tasks);
            check_starts("bounds", parts, static_cast<Int>(tasks.size()));
            std::vector<Int> batch(problem.n, NONE);
            for (Int k = 0; k + 1 < static_cast<Int>(parts.size()); ++k)
                for (Int at = parts[k]; at < parts[k + 1]; ++at) {
                    batch[tasks[at]] = k;
                    for (Int r = problem.in_start[tasks[at]]; r < problem.in_start[tasks[at] + 1]; ++r)
                        if (batch[problem.in_source[r]] == k)
                            throw Wrong("bounds: batch " + std::to_string(k) + " has task " + std::to_string(tasks[at]) +
                                        " and its producer; expected independent tasks");
                }
            return balance_batches(timeline.line, tasks, parts, stop);
        },
        "timeline"_a, "sequence"_a, "bounds"_a, "stop"_a,
        nb::sig("def balance_batches(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], "
                "bounds: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
        "Place batches of independent tasks in turn, each balanced over the devices; return -1 or the task that no device "
        "can take.");
}

}  // namespace engine
