// The Python module placeopt.engine._core: it converts and checks arguments, releases Python's lock, and calls the
// algorithms.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "algorithms.hpp"
#include "arrays.hpp"

using namespace nb::literals;

namespace engine {

namespace {

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
        if (const nb::object tiers = of.attr("tiers"); !tiers.is_none()) {
            p.tier_end = keep<Int>("tiers.end", tiers.attr("end"), {m, ANY_LENGTH});
            p.t = m == 0 ? 0 : static_cast<Int>(p.tier_end.size()) / m;
            p.tier_num = keep<Int>("tiers.byte_ticks_num", tiers.attr("byte_ticks_num"), {m, p.t});
            p.tier_den = keep<Int>("tiers.byte_ticks_den", tiers.attr("byte_ticks_den"), {m, p.t});
        }
        const auto contention = nb::cast<std::string>(nb::str(of.attr("contention")));
        if (contention == "port") p.contention = Contention::port;
        else if (contention == "half_duplex") p.contention = Contention::half_duplex;
        else if (contention != "none") throw Wrong("contention: " + contention + "; expected none, port or half_duplex");
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

// Asks Python whether a loop must end. Only the main thread runs handlers of signals.
Stop make_stop(nb::object should_stop, std::optional<double> seconds) {
    return Stop(
        [should_stop = std::move(should_stop)] {
            nb::gil_scoped_acquire locked;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            return !should_stop.is_none() && nb::cast<bool>(should_stop());
        },
        seconds);
}

const Problem& of(const BoundProblem& bound) { return bound.value; }

void raise_usage_error(const char* what) {
    nb::object type = nb::module_::import_("placeopt.errors").attr("UsageError");
    PyErr_SetString(type.ptr(), what);
}

}  // namespace

NB_MODULE(_core, module) {
    module.doc() = "Loops in C++ over the arrays of a problem. They can be stopped, and run without Python's lock.";

    nb::exception<Stopped>(module, "StoppedError");
    nb::register_exception_translator([](const std::exception_ptr& raised, void*) {
        try {
            std::rethrow_exception(raised);
        } catch (const Wrong& error) {
            raise_usage_error(error.what());
        } catch (const Overflow& error) {
            raise_usage_error((std::string(error.what()) + "; use larger units of time or memory").c_str());
        }
    });

    nb::class_<Stop>(module, "Stop", "Whether loops must end: at a signal, once `should_stop` is true, or after `seconds`.")
        .def(
            "__init__",
            [](Stop* self, nb::object should_stop, std::optional<double> seconds) {
                new (self) Stop(make_stop(std::move(should_stop), seconds));
            },
            "should_stop"_a = nb::none(), "seconds"_a = nb::none(),
            nb::sig("def __init__(self, should_stop: collections.abc.Callable[[], bool] | None = None, "
                    "seconds: float | None = None) -> None"));

    nb::class_<BoundProblem>(module, "Problem", "The checked arrays of a problem; they must not change while it exists.")
        .def(nb::init<nb::handle>(), "problem"_a,
             "Check the arrays; raises a UsageError that names the first wrong one. `model.native` keeps the result.")
        .def_prop_ro("n", [](const BoundProblem& self) { return self.value.n; }, "Number of tasks.")
        .def_prop_ro("m", [](const BoundProblem& self) { return self.value.m; }, "Number of devices.");

    const auto ints = [](std::vector<Int> Line::*member) {
        return [member](nb::handle_t<BoundTimeline> self) {
            const auto& values = nb::cast<BoundTimeline&>(self).line.*member;
            return view(values, self, {static_cast<Int>(values.size())});
        };
    };
    nb::class_<BoundTimeline>(module, "Timeline", R"(A schedule under construction.

Tasks are placed in a topological order. Each starts as early as its data, its device and, under port contention, the
ports allow. With `insertion` it may use a gap between other tasks. The first task of a colocation group decides for the
group, whose memory is reserved at once. With `record`, placements can be taken back. Arrays are read-only views.)")
        .def(nb::init<nb::handle, nb::handle, bool, bool>(), "problem"_a, "groups"_a, "insertion"_a = true,
             "record"_a = false,
             nb::sig("def __init__(self, problem: Problem, groups: object, insertion: bool = True, record: bool = False) "
                     "-> None"))
        .def_prop_ro("home", ints(&Line::home), "(g,) device of each group, -1 for groups without a home.")
        .def_prop_ro("room", ints(&Line::room), "(m,) bytes left on each device; under live memory beyond resident ones.")
        .def_prop_ro("device", ints(&Line::device), "(n,) device of each task, -1 before it is placed.")
        .def_prop_ro("start", ints(&Line::start), "(n,) start of each placed task.")
        .def_prop_ro("end", ints(&Line::end), "(n,) end of each placed task.")
        .def_prop_ro("free", ints(&Line::free), "(m,) end of the last task of each device.")
        .def_prop_ro("moves", ints(&Line::moves), "(e,) start of each edge's transfer, -1 without a separate one; empty "
                                                  "without port contention.")
        .def_prop_ro(
            "trees",
            [](nb::handle_t<BoundTimeline> self) {
                const Line& line = nb::cast<BoundTimeline&>(self).line;
                const bool on = line.groups.live.on;
                return view(line.trees, self, {on ? line.problem.m : 0, on ? 2 * line.groups.live.leaves : 0});
            },
            "(m, 2 leaves) the profile of each device under live memory, otherwise empty.")
        .def_prop_ro("placed", [](const BoundTimeline& self) { return self.line.placements.size(); },
                     "Number of placements that can be taken back: a mark for `resume`.")
        .def(
            "can_run",
            [](BoundTimeline& self, Int task, Int device) {
                self.check_task(task);
                self.check_device(device);
                return with_rules(self.line, [&](auto& timeline) { return timeline.can_run(task, device); });
            },
            "task"_a, "device"_a,
            "Return whether a device can take a task: by its memory and its group, and apart from others.")
        .def(
            "earliest",
            [](BoundTimeline& self, Int task, Int device) {
                self.line.check_next(task);
                self.check_device(device);
                return with_rules(self.line, [&](auto& timeline) {
                    return timeline.slot(task, device, timeline.ready_time(task, device)).start;
                });
            },
            "task"_a, "device"_a, "Return the earliest start of a task whose producers are placed.")
        .def(
            "place",
            [](BoundTimeline& self, Int task, Int device) {
                self.line.check_next(task);
                self.check_device(device);
                return with_rules(self.line, [&](auto& timeline) {
                    if (!timeline.can_run(task, device))
                        throw Wrong("device: " + std::to_string(device) + " cannot take task " + std::to_string(task) +
                                    "; expected one for which can_run is true");
                    timeline.place(task, device);
                    return self.line.start[task];
                });
            },
            "task"_a, "device"_a, "Place a task at its earliest start, and return that.")
        .def(
            "resume",
            [](BoundTimeline& self, Int placed) {
                Line& line = self.line;
                if (!line.record) throw Wrong("resume: the timeline does not record; expected record=True");
                const Int count = static_cast<Int>(line.placements.size());
                if (placed < 0 || placed > count)
                    throw Wrong("placed: " + std::to_string(placed) + "; expected 0 to " + std::to_string(count));
                while (static_cast<Int>(line.placements.size()) > placed) line.remove();
            },
            "placed"_a, "Take back placements, the latest first, until so many are left.");

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

    module.def(
        "longest_paths",
        [](const BoundProblem& problem, nb::handle work, nb::handle transfer, bool backwards, nb::object before) {
            const Problem& p = of(problem);
            const auto works = array<double>("work", work, {p.n}), transfers = array<double>("transfer", transfer, {p.e});
            std::vector<double> found(p.n, 0.0);
            if (!before.is_none()) {
                const auto given = array<double>("before", before, {p.n});
                found.assign(given.begin(), given.end());
            }
            {
                const nb::gil_scoped_release unlocked;
                longest_paths(p, works, transfers, backwards, found);
            }
            return moved(std::move(found), {p.n});
        },
        "problem"_a, "work"_a, "transfer"_a, "backwards"_a, "before"_a = nb::none(),
        nb::sig("def longest_paths(problem: Problem, work: numpy.typing.NDArray[numpy.float64], "
                "transfer: numpy.typing.NDArray[numpy.float64], backwards: bool, "
                "before: numpy.typing.NDArray[numpy.float64] | None = None) -> numpy.typing.NDArray[numpy.float64]"),
        "Return the longest path (n,) that ends just before each task, at least `before` (n,), over work (n,) and "
        "transfer (e,); with `backwards` the longest path that begins just after it.");
    module.def(
        "tied_depths",
        [](const BoundProblem& problem, nb::handle rank) {
            const Problem& p = of(problem);
            const auto ranks = array<double>("rank", rank, {p.n});
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                found = tied_depths(p, ranks);
            }
            return moved(std::move(found), {p.n});
        },
        "problem"_a, "rank"_a,
        nb::sig("def tied_depths(problem: Problem, rank: numpy.typing.NDArray[numpy.float64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the most tasks (n,) of equal rank (n,) that precede each task on a path of such tasks.");
    module.def(
        "highest_first",
        [](const BoundProblem& problem, nb::handle preference) {
            const Problem& p = of(problem);
            const auto preferred = array<Int>("preference", preference, {p.n});
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                check_range("preference", preferred, 0, p.n - 1);
                std::vector<Int> rank(p.n, NONE);
                for (Int k = 0; k < p.n; ++k) rank[preferred[k]] = k;
                if (std::count(rank.begin(), rank.end(), NONE)) throw Wrong("preference: expected each task once");
                found = highest_first(p, preferred, rank);
            }
            return moved(std::move(found), {p.n});
        },
        "problem"_a, "preference"_a,
        nb::sig("def highest_first(problem: Problem, preference: numpy.typing.NDArray[numpy.int64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the tasks (n,) in the order in which the ready task that comes first in `preference` (n,) comes next.");
    module.def(
        "optimistic_costs",
        [](const BoundProblem& problem, nb::handle feasible, nb::handle transfer, Stop& stop) {
            const Problem& p = of(problem);
            const auto allowed = array<bool>("feasible", feasible, {p.n, p.m});
            const auto transfers = array<Int>("transfer", transfer, {p.e});
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                check_range("transfer", transfers, 0, NEVER - 1);
                found = optimistic_costs(p, allowed, transfers, stop);
            }
            return moved(std::move(found), {p.n, p.m});
        },
        "problem"_a, "feasible"_a, "transfer"_a, "stop"_a,
        nb::sig("def optimistic_costs(problem: Problem, feasible: numpy.typing.NDArray[numpy.bool_], "
                "transfer: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the optimistic cost table (n, m) of PEFT in ticks, for the mean ticks (e,) of each edge.");
    module.def(
        "longest_path",
        [](const BoundProblem& problem, Int first, nb::handle behind) {
            const Problem& p = of(problem);
            if (first < 0 || first >= p.n) throw Wrong("first: " + std::to_string(first) + "; expected a task");
            std::vector<Int> path = longest_path(p, first, array<double>("behind", behind, {p.e}));
            const Int length = static_cast<Int>(path.size());
            return moved(std::move(path), {length});
        },
        "problem"_a, "first"_a, "behind"_a,
        nb::sig("def longest_path(problem: Problem, first: int, behind: numpy.typing.NDArray[numpy.float64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the tasks of the path from `first` along the out-edges with the largest `behind` (e,).");
}

}  // namespace engine
