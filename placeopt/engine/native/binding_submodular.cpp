// Greedy placement after Carbonari et al. 2017.
#include "bindings.hpp"
#include "submodular.hpp"

namespace engine {

namespace {

struct BoundRules : Owning<PlacementRules> {
    nb::object problem;

    BoundRules(nb::handle of_problem, nb::handle of) : problem(nb::borrow(of_problem)) {
        const Problem& p = nb::cast<const BoundProblem&>(of_problem).value;
        PlacementRules& r = value;
        r.problem = &p;
        const auto ints = [&](const char* name, Shape shape, Int least, Int most) {
            const Ints found = keep<Int>(name, of.attr(name), shape);
            check_range(name, found, least, most);
            return found;
        };
        const auto floats = [&](const char* name, Shape shape) { return keep<double>(name, of.attr(name), shape); };
        const auto flag = [&](const char* name) { return nb::cast<bool>(of.attr(name)); };
        r.cost = floats("cost", {p.m, p.n});
        r.cap = floats("cap", {p.m});
        r.memory = ints("memory", {p.g}, 0, INT64_MAX);
        r.member_start = ints("member_start", {p.g + 1}, 0, p.n);
        check_starts("member_start", r.member_start, p.n);
        r.member = ints("member", {p.n}, 0, p.n - 1);
        r.apart_start = ints("apart_start", {p.g + 1}, 0, INT64_MAX);
        r.apart = ints("apart", {ANY_LENGTH}, 0, p.g - 1);
        check_starts("apart_start", r.apart_start, static_cast<Int>(r.apart.size()));
        r.tier_end = ints("tier_end", {p.m, ANY_LENGTH}, 0, INT64_MAX);
        r.tiers = p.m == 0 ? 0 : static_cast<Int>(r.tier_end.size()) / p.m;
        r.tier_ticks = floats("tier_ticks", {p.m, r.tiers});
        r.largest_input = ints("largest_input", {p.n}, NONE, p.e - 1);
        r.largest_output = ints("largest_output", {p.n}, NONE, p.e - 1);
        r.curve = ints("curve", {p.m}, 0, 2);
        r.piece_end = floats("piece_end", {p.m, ANY_LENGTH});
        r.pieces = p.m == 0 ? 0 : static_cast<Int>(r.piece_end.size()) / p.m;
        r.piece_slope = floats("piece_slope", {p.m, r.pieces});
        r.key = keep<Int>("key", of.attr("key"), {p.n});
        r.inside = flag("inside");
        r.parallelism = flag("parallelism");
        r.load = flag("load");
        r.communication = flag("communication");
        const Int fullness = nb::cast<Int>(of.attr("fullness"));
        if (fullness < 0 || fullness > 2) throw Wrong("fullness: " + std::to_string(fullness) + "; expected 0 to 2");
        r.fullness = static_cast<Fullness>(fullness);
        r.knee = nb::cast<double>(of.attr("knee"));
        r.balance = nb::cast<double>(of.attr("balance"));
    }
};

struct BoundPlacement {
    nb::object rules;
    Placement value;

    BoundPlacement(nb::handle of, nb::handle home) : rules(nb::borrow(of)), value(checked(of), homes(of, home)) {}

    static const PlacementRules& checked(nb::handle of) { return nb::cast<const BoundRules&>(of).value; }
    static Ints homes(nb::handle of, nb::handle given) {
        const Problem& p = *checked(of).problem;
        const auto found = array<Int>("home", given, {p.g});
        check_range("home", found, NONE, p.m - 1);
        return found;
    }
    const Problem& of() const { return *checked(rules).problem; }

    // Pairs u m + i.
    Ints pairs(nb::handle given) const {
        const auto found = array<Int>("elements", given, {ANY_LENGTH});
        check_range("elements", found, 0, of().n * of().m - 1);
        return found;
    }
    // Without parallelism, continuous greedy places a task several times.
    void check_pair(Int u, Int i, bool again) const {
        if (u < 0 || u >= of().n) throw Wrong("task: " + std::to_string(u) + "; expected 0 to " + std::to_string(of().n - 1));
        if (!again && value.topology.device[u] >= 0) throw Wrong("task: " + std::to_string(u) + "; expected one that is not placed");
        if (i < 0 || i >= of().m) throw Wrong("device: " + std::to_string(i) + "; expected 0 to " + std::to_string(of().m - 1));
    }
};

}  // namespace

void bind_submodular(nb::module_& module) {
    nb::class_<BoundRules>(module, "PlacementRules", "The checked arrays of placeopt.submodular.placement.model.Model.")
        .def(nb::init<nb::handle, nb::handle>(), "problem"_a, "model"_a, nb::sig("def __init__(self, problem: Problem, model: object) -> None"));

    nb::class_<BoundPlacement>(module, "Placement", R"(A growing placement of tasks, with the benefits of Carbonari et al. 2017.

`home` (g,) are the devices of groups that are placed already, whose memory is reserved; -1 for the others. Arrays are read-only
views.)")
        .def(nb::init<nb::handle, nb::handle>(), "rules"_a, "home"_a,
             nb::sig("def __init__(self, rules: PlacementRules, home: numpy.typing.NDArray[numpy.int64]) -> None"))
        .def("copy", [](const BoundPlacement& self) { return BoundPlacement(self); }, "Return an independent copy.")
        .def(
            "gains",
            [](const BoundPlacement& self, nb::handle elements) {
                const auto pairs = self.pairs(elements);
                std::vector<double> found;
                for (const Int pair : pairs) found.push_back(self.value.gain(pair / self.of().m, pair % self.of().m));
                return moved(std::move(found), {static_cast<Int>(pairs.size())});
            },
            "elements"_a,
            nb::sig("def gains(self, elements: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.float64]"),
            "Return the increase of f by each of the pairs u m + i; minus infinity where not feasible.")
        .def(
            "open",
            [](const BoundPlacement& self, nb::handle elements) {
                const auto pairs = self.pairs(elements);
                std::vector<char> found;
                for (const Int pair : pairs) {
                    const Int u = pair / self.of().m;
                    found.push_back(self.value.topology.device[u] < 0 && self.value.can_host(u, pair % self.of().m));
                }
                return moved_flags(found);
            },
            "elements"_a,
            nb::sig("def open(self, elements: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.bool_]"),
            "Return whether each of the pairs u m + i can be placed.")
        .def(
            "place",
            [](BoundPlacement& self, Int u, Int i) {
                self.check_pair(u, i, !BoundPlacement::checked(self.rules).parallelism);
                const nb::gil_scoped_release unlocked;
                self.value.place(u, i);
            },
            "task"_a, "device"_a, "Place a task.")
        .def(
            "occupy",
            [](BoundPlacement& self, Int u, Int i) {
                self.check_pair(u, i, true);
                self.value.occupy(u, i);
            },
            "task"_a, "device"_a, "Place a task without computing benefits, as far as `open` requires.")
        .def(
            "place_all",
            [](BoundPlacement& self, nb::handle kind, bool lazy, Stop& stop) {
                const auto kinds = array<Int>("kind", kind, {self.of().m});
                check_range("kind", kinds, 0, self.of().m - 1);
                for (const Int d : self.value.topology.device)
                    if (d >= 0) throw Wrong("place_all: some tasks are placed already; expected none");
                Rounds rounds;
                {
                    const nb::gil_scoped_release unlocked;
                    rounds = place_all(self.value, kinds, lazy, stop);
                }
                const Int count = static_cast<Int>(rounds.task.size());
                return nb::make_tuple(moved(std::move(rounds.task), {count}), moved(std::move(rounds.device), {count}),
                                      moved(std::move(rounds.value), {count}), rounds.evaluations, rounds.stopped);
            },
            "kind"_a, "lazy"_a, "stop"_a,
            nb::sig("def place_all(self, kind: numpy.typing.NDArray[numpy.int64], lazy: bool, stop: Stop) -> "
                    "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], "
                    "numpy.typing.NDArray[numpy.float64], int, bool]"),
            "Place all tasks by greedy; return the task and the device of each round, f after it, the number of pairs evaluated, and "
            "whether it was stopped.\n\nOf several empty devices of one `kind` (m,), only the first is evaluated.")
        .def_prop_ro("value", [](const BoundPlacement& self) { return self.value.value(); }, "f of the placement.")
        .def_prop_ro(
            "device",
            [](nb::handle_t<BoundPlacement> self) {
                const auto& values = nb::cast<BoundPlacement&>(self).value.topology.device;
                return view(values, self, {static_cast<Int>(values.size())});
            },
            "(n,) device of each task, -1 if it is not placed.")
        .def_prop_ro("home", viewed<BoundPlacement>(&Placement::home), "(g,) device of each group, -1 without.")
        .def_prop_ro("used", viewed<BoundPlacement>(&Placement::used), "(m,) bytes on each device, those reserved for groups included.")
        .def_prop_ro(
            "benefit", viewed<BoundPlacement>(&Placement::benefit),
            "(m,) sum of the benefits on each device.")
        .def_prop_ro(
            "fetched",
            [](nb::handle_t<BoundPlacement> self) {
                const auto& placement = nb::cast<BoundPlacement&>(self);
                return view(placement.value.fetched, self, {placement.of().m, static_cast<Int>(placement.value.home.size())});
            },
            "(m, g) ticks of transfers of the unplaced tasks of each group, for each device.")
        .def_prop_ro(
            "parallel",
            [](nb::handle_t<BoundPlacement> self) {
                const auto& placement = nb::cast<BoundPlacement&>(self);
                return view(placement.value.topology.parallel, self, {placement.of().m, placement.of().n});
            },
            "(m, n) number of tasks on each device parallel to each unplaced task.")
        .def_prop_ro("compared", [](const BoundPlacement& self) { return self.value.topology.compared; },
                     "Dependents of placed tasks whose lost dependencies were computed.");
}

}  // namespace engine
