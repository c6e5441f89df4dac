// Executions of placements, and random placements.
#include "bindings.hpp"
#include "sampling.hpp"

namespace engine {

namespace {

std::vector<Int> copied(Ints values) { return {values.begin(), values.end()}; }

// In place: NumPy arrays may refer to the entries.
void overwrite(std::vector<Int>& values, Ints given) { std::copy(given.begin(), given.end(), values.begin()); }

// Bytes of tasks whose sum does not overflow; only read with memory tiers.
Ints checked_memory(const Problem& p, nb::handle given) { return ranged("memory", given, p.n, 0, INT64_MAX); }

struct BoundSimulation {
    nb::object problem, memory;
    Simulation value;

    BoundSimulation(nb::handle of, nb::handle bytes)
        : problem(nb::borrow(of)), memory(nb::borrow(bytes)),
          value(nb::cast<const BoundProblem&>(of).value, checked_memory(nb::cast<const BoundProblem&>(of).value, bytes)) {}

    const Problem& of() const { return nb::cast<const BoundProblem&>(problem).value; }

    // A rank by order is a position on the device of each task.
    void check_order() const {
        std::vector<Int> tasks(of().m);
        for (const Int d : value.device) ++tasks[d];
        for (Int i = 0; i < of().n; ++i)
            if (const Int position = value.rank[i]; position < 0 || position >= tasks[value.device[i]])
                throw Wrong("rank: entry " + std::to_string(i) + " is " + std::to_string(position) + "; expected a position on its device");
    }
};

struct BoundSampler {
    BoundGroups groups;
    nb::object deadline, memory;
    Sampler value;

    BoundSampler(nb::handle problem, nb::handle parts, nb::handle due, nb::handle bytes, Int seed)
        : groups(problem, parts), deadline(nb::borrow(due)), memory(nb::borrow(bytes)),
          value(of(), groups.value, ranged("deadline", due, of().n, 0, INT64_MAX), checked_memory(of(), bytes), checked_seed(seed)) {}

    // Draws need a device for each group.
    void check_drawable() const {
        for (Int k = 0; k < of().g; ++k) {
            bool any = false;
            for (Int d = 0; d < of().m; ++d) any |= groups.value.feasible[k * of().m + d];
            if (!any) throw Wrong("feasible: group " + std::to_string(k) + " has no device; expected at least one");
        }
    }

    const Problem& of() const { return nb::cast<const BoundProblem&>(groups.problem).value; }
    void check_task(Int i) const {
        if (i < 0 || i >= of().n) throw Wrong("task: " + std::to_string(i) + "; expected 0 to " + std::to_string(of().n - 1));
    }
    void check_device(Int d) const {
        if (d < 0 || d >= of().m) throw Wrong("device: " + std::to_string(d) + "; expected 0 to " + std::to_string(of().m - 1));
    }
};

void not_negative(const char* name, Int value) {
    if (value < 0) throw Wrong(std::string(name) + ": " + std::to_string(value) + "; expected at least 0");
}

}  // namespace

void bind_simulation(nb::module_& module) {
    nb::class_<BoundSimulation>(module, "Simulation", R"(Executions of placements of a problem; one at a time.

Ticks are those of the current placement, until `set_ticks` replaces them; times are those of the last execution. Arrays are
read-only views.)")
        .def(nb::init<nb::handle, nb::handle>(), "problem"_a, "memory"_a,
             nb::sig("def __init__(self, problem: Problem, memory: numpy.typing.NDArray[numpy.int64]) -> None"))
        .def(
            "place",
            [](BoundSimulation& self, nb::handle device) {
                const Problem& p = self.of();
                const auto devices = ranged("device", device, p.n, 0, p.m - 1);
                const nb::gil_scoped_release unlocked;
                self.value.place(devices);
            },
            "device"_a, nb::sig("def place(self, device: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Take a placement (n,) and compute its ticks.")
        .def(
            "set_ticks",
            [](BoundSimulation& self, nb::handle tasks, nb::handle edges) {
                overwrite(self.value.task_ticks, ranged("task_ticks", tasks, self.of().n, 0, NEVER - 1));
                overwrite(self.value.edge_ticks, ranged("edge_ticks", edges, self.of().e, 0, NEVER - 1));
            },
            "task_ticks"_a, "edge_ticks"_a,
            nb::sig("def set_ticks(self, task_ticks: numpy.typing.NDArray[numpy.int64], "
                    "edge_ticks: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Replace the ticks of tasks (n,) and of transfers (e,).")
        .def(
            "set_rank",
            [](BoundSimulation& self, nb::handle rank) { overwrite(self.value.rank, array<Int>("rank", rank, {self.of().n})); },
            "rank"_a, nb::sig("def set_rank(self, rank: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Set the rank (n,) of tasks: by priority, the smallest goes first; by order, the position on the device.")
        .def(
            "run",
            [](BoundSimulation& self, Int discipline, Stop& stop) {
                if (discipline < 0 || discipline > 2) throw Wrong("discipline: " + std::to_string(discipline) + "; expected 0 to 2");
                const auto chosen = static_cast<Discipline>(discipline);
                if (chosen == Discipline::order) self.check_order();
                const nb::gil_scoped_release unlocked;
                return self.value.run(chosen, stop);
            },
            "discipline"_a, "stop"_a,
            "Execute the placement first in first out (0), by priority (1) or in order (2); return the makespan in ticks.\n\n"
            "In an order with a circular wait, tasks that never start have the start -1.")
        .def(
            "makespan",
            [](BoundSimulation& self, nb::handle device, Stop& stop) {
                const Problem& p = self.of();
                const auto devices = ranged("device", device, p.n, 0, p.m - 1);
                const nb::gil_scoped_release unlocked;
                return self.value.makespan(devices, stop);
            },
            "device"_a, "stop"_a,
            nb::sig("def makespan(self, device: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
            "Return the makespan in ticks of another placement (n,), first in first out.")
        .def(
            "replay",
            [](BoundSimulation& self, nb::handle nodes, nb::handle representative, Stop& stop) {
                const Problem& p = self.of();
                const auto listed = array<Int>("nodes", nodes, {ANY_LENGTH});
                check_range("nodes", listed, 0, p.n + p.e - 1);
                const auto moves = ranged("representative", representative, p.e, -1, p.e - 1);
                const nb::gil_scoped_release unlocked;
                return self.value.replay(listed, moves, stop);
            },
            "nodes"_a, "representative"_a, "stop"_a,
            nb::sig("def replay(self, nodes: numpy.typing.NDArray[numpy.int64], "
                    "representative: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int"),
            "Execute tasks i and transfers n + edge in the order of `nodes`; return the makespan in ticks.\n\n"
            "`representative` (e,) is the edge that stands for each one's transfer, -1 for edges that use no port.")
        .def_prop_ro("device", viewed<BoundSimulation>(&Simulation::device), "(n,) the placement.")
        .def_prop_ro("task_ticks", viewed<BoundSimulation>(&Simulation::task_ticks), "(n,) ticks of each task.")
        .def_prop_ro("edge_ticks", viewed<BoundSimulation>(&Simulation::edge_ticks), "(e,) ticks of each edge's transfer, 0 on one device.")
        .def_prop_ro("rank", viewed<BoundSimulation>(&Simulation::rank), "(n,) rank of each task.")
        .def_prop_ro("start", viewed<BoundSimulation>(&Simulation::start), "(n,) start of each task.")
        .def_prop_ro("moves", viewed<BoundSimulation>(&Simulation::moves), "(e,) with ports: start of each edge's transfer, or -1.");

    module.def(
        "raise_keys",
        [](const BoundProblem& problem, nb::handle representative, nb::handle task_start, nb::handle task_end,
           nb::handle move_start, nb::handle move_end) {
            const Problem& p = problem.value;
            const auto moves = ranged("representative", representative, p.e, -1, p.e - 1);
            auto a = copied(array<Int>("task_start", task_start, {p.n})), b = copied(array<Int>("task_end", task_end, {p.n}));
            auto c = copied(array<Int>("move_start", move_start, {p.e})), d = copied(array<Int>("move_end", move_end, {p.e}));
            raise_keys(p, moves, a, b, c, d);
            return nb::make_tuple(moved_all(std::move(a)), moved_all(std::move(b)), moved_all(std::move(c)), moved_all(std::move(d)));
        },
        "problem"_a, "representative"_a, "task_start"_a, "task_end"_a, "move_start"_a, "move_end"_a,
        nb::sig("def raise_keys(problem: Problem, representative: numpy.typing.NDArray[numpy.int64], "
                "task_start: numpy.typing.NDArray[numpy.int64], task_end: numpy.typing.NDArray[numpy.int64], "
                "move_start: numpy.typing.NDArray[numpy.int64], move_end: numpy.typing.NDArray[numpy.int64]) -> "
                "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], "
                "numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
        "Return the keys (start, end) of tasks (n,) and transfers (e,), raised so that none is below a predecessor's.");

    module.def(
        "critical_path",
        [](const BoundProblem& problem, nb::handle start, nb::handle end, nb::handle edge_ticks, nb::handle before) {
            const Problem& p = problem.value;
            if (p.n == 0) throw Wrong("problem: has no task; expected at least one");
            return moved_all(critical_path(p, array<Int>("start", start, {p.n}), array<Int>("end", end, {p.n}),
                                            array<Int>("edge_ticks", edge_ticks, {p.e}), ranged("before", before, p.n, -1, p.n - 1)));
        },
        "problem"_a, "start"_a, "end"_a, "edge_ticks"_a, "before"_a,
        nb::sig("def critical_path(problem: Problem, start: numpy.typing.NDArray[numpy.int64], "
                "end: numpy.typing.NDArray[numpy.int64], edge_ticks: numpy.typing.NDArray[numpy.int64], "
                "before: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the critical path, first to last, of an execution; `before` (n,) is the task before each on its device.");

    module.def(
        "execute_runs",
        [](nb::handle sequence, nb::handle lap, nb::handle ticks, nb::handle device, nb::handle tracks, nb::handle in_start,
           nb::handle before, nb::handle lag, nb::handle member_start, nb::handle member, bool together, Int runs, Int window,
           Stop& stop) {
            Operations ops;
            ops.together = together;
            ops.ticks = array<Int>("ticks", ticks, {ANY_LENGTH});
            const Int k = static_cast<Int>(ops.ticks.size());
            check_range("ticks", ops.ticks, 0, NEVER - 1);
            ops.member = array<Int>("member", member, {ANY_LENGTH});
            const Int members = static_cast<Int>(ops.member.size());
            check_range("member", ops.member, 0, members - 1);
            ops.member_start = array<Int>("member_start", member_start, {ANY_LENGTH});
            check_starts("member_start", ops.member_start, members);
            const Int m = static_cast<Int>(ops.member_start.size()) - 1;
            ops.sequence = array<Int>("sequence", sequence, {ANY_LENGTH});
            check_range("sequence", ops.sequence, 0, k - 1);
            if (window < 1) throw Wrong("window: " + std::to_string(window) + "; expected at least 1");
            ops.lap = ranged("lap", lap, k, 0, window - 1);
            ops.device = ranged("device", device, k, 0, m - 1);
            for (Int o = 0; o < k; ++o)
                if (ops.member_start[ops.device[o]] == ops.member_start[ops.device[o] + 1])
                    throw Wrong("device: entry " + std::to_string(o) + " leads no team; expected a leader");
            ops.tracks = array<Int>("tracks", tracks, {k, 2});
            check_range("tracks", ops.tracks, -1, TRACKS - 1);
            ops.in_start = array<Int>("in_start", in_start, {k + 1});
            ops.before = array<Int>("before", before, {ANY_LENGTH});
            const Int pairs = static_cast<Int>(ops.before.size());
            check_range("before", ops.before, 0, k - 1);
            check_starts("in_start", ops.in_start, pairs);
            ops.lag = ranged("lag", lag, pairs, -NEVER, NEVER);
            not_negative("runs", runs);
            if (runs >= NEVER || window > NEVER / std::max(k, Int{1})) throw Wrong("runs: too many");
            std::vector<Int> ends;
            {
                const nb::gil_scoped_release unlocked;
                ends = execute_runs(ops, runs, window, stop);
            }
            return moved_all(std::move(ends));
        },
        "sequence"_a, "lap"_a, "ticks"_a, "device"_a, "tracks"_a, "in_start"_a, "before"_a, "lag"_a, "member_start"_a, "member"_a,
        "together"_a, "runs"_a, "window"_a, "stop"_a,
        nb::sig("def execute_runs(sequence: numpy.typing.NDArray[numpy.int64], lap: numpy.typing.NDArray[numpy.int64], "
                "ticks: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64], "
                "tracks: numpy.typing.NDArray[numpy.int64], in_start: numpy.typing.NDArray[numpy.int64], "
                "before: numpy.typing.NDArray[numpy.int64], lag: numpy.typing.NDArray[numpy.int64], "
                "member_start: numpy.typing.NDArray[numpy.int64], member: numpy.typing.NDArray[numpy.int64], together: bool, "
                "runs: int, window: int, stop: Stop) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the end of each run of a pipeline; arguments as in placeopt.simulation.pipelines.");

    nb::class_<BoundSampler>(module, "Sampler", R"(Random placements of groups, and moves of random tasks to where they end first.

The best placement has the least lateness, then the least makespan, first in first out. Arrays are read-only views.)")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, Int>(), "problem"_a, "groups"_a, "deadline"_a, "memory"_a, "seed"_a,
             nb::sig("def __init__(self, problem: Problem, groups: object, deadline: numpy.typing.NDArray[numpy.int64], "
                     "memory: numpy.typing.NDArray[numpy.int64], seed: int) -> None"))
        .def(
            "draw_home",
            [](BoundSampler& self, Int tries) {
                not_negative("tries", tries);
                self.check_drawable();
                const nb::gil_scoped_release unlocked;
                return self.value.draw_home(tries);
            },
            "tries"_a, "Draw a placement of the groups that keeps memory and separation; return whether one of `tries` does.")
        .def(
            "mix_home",
            [](BoundSampler& self, Int changes) {
                not_negative("changes", changes);
                if (changes > 0 && self.of().g == 0) throw Wrong("changes: there is no group");
                self.check_drawable();
                const nb::gil_scoped_release unlocked;
                self.value.mix_home(changes);
            },
            "changes"_a, "Change `home` at random; each change keeps all rules and is as likely as its inverse.")
        .def(
            "set_home",
            [](BoundSampler& self, nb::handle home) {
                overwrite(self.value.home, ranged("home", home, self.of().g, 0, self.of().m - 1));
            },
            "home"_a, nb::sig("def set_home(self, home: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Set a placement (g,) that keeps all rules.")
        .def(
            "start_from",
            [](BoundSampler& self, nb::handle home, nb::handle room, Int moves, Stop& stop) {
                not_negative("moves", moves);
                const auto homes = ranged("home", home, self.of().g, 0, self.of().m - 1);
                const auto left = array<Int>("room", room, {self.of().m});
                const nb::gil_scoped_release unlocked;
                self.value.start_from(homes, left, moves, stop);
            },
            "home"_a, "room"_a, "moves"_a, "stop"_a,
            nb::sig("def start_from(self, home: numpy.typing.NDArray[numpy.int64], room: numpy.typing.NDArray[numpy.int64], "
                    "moves: int, stop: Stop) -> None"),
            "Continue with `moves` moves from a placement (g,) that leaves this room (m,).")
        .def(
            "sample",
            [](BoundSampler& self, Int count, Int steps, Int tries, Stop& stop) {
                not_negative("count", count);
                not_negative("steps", steps);
                not_negative("tries", tries);
                if (count > 0 && self.of().n == 0) throw Wrong("count: there is no task");
                self.check_drawable();
                const nb::gil_scoped_release unlocked;
                return self.value.sample(count, steps, tries, stop);
            },
            "count"_a, "steps"_a, "tries"_a, "stop"_a,
            "Try placements, each drawn one followed by `steps` moves, and keep the best; return how many were tried.")
        .def(
            "finish",
            [](const BoundSampler& self, Int i, Int d) {
                self.check_task(i);
                self.check_device(d);
                return self.value.finish(i, d);
            },
            "task"_a, "device"_a, "Return the tick at which a task would end on a device if it started with its last input.")
        .def(
            "relocate",
            [](BoundSampler& self) {
                if (self.of().n == 0) throw Wrong("problem: has no task; expected at least one");
                return self.value.relocate();
            },
            "Move a random task, with its group, to the device where it ends first; return whether the device changes.")
        .def_prop_ro(
            "value",
            [](const BoundSampler& self) -> nb::object {
                if (!self.value.known) return nb::none();
                return nb::make_tuple(self.value.late, self.value.span);
            },
            nb::sig("def value(self, /) -> tuple[int, int] | None"), "The lateness and the makespan of the best placement in ticks.")
        .def("forget_best", [](BoundSampler& self) { self.value.known = false; }, "Let the next placement be the best.")
        .def_prop_ro("home", viewed<BoundSampler>(&Sampler::home), "(g,) the device of each group.")
        .def_prop_ro("device", viewed<BoundSampler>(&Sampler::device), "(n,) the current placement.")
        .def_prop_ro("best", viewed<BoundSampler>(&Sampler::best), "(n,) the best placement.");
}

}  // namespace engine
