// Local searches.
#include <memory>
#include <utility>

#include "bindings.hpp"
#include "local_search.hpp"

namespace engine {

// A proposal changes the state; then it is evaluated, and accepted, or undone (after `rewind`, if its times were kept).
struct LocalSearch::Steps {
    LocalSearch& search;

    Int propose(Int kind) {
        fixed() = search.fixed_;
        return search.propose(kind);
    }
    double evaluate(Int first, double limit) { return search.decode(first, limit); }
    void accept(double value) {
        search.cost = value;
        search.accept();
    }
    void undo() {
        search.undo();
        search.fixed_ = fixed();
    }
    void rewind(Int first) { search.rewind(first); }
    const std::vector<Int>& look_ahead() {
        search.look_ahead();
        return search.after_;
    }
    const std::vector<Int>& find_critical() {
        search.find_critical();
        return search.critical_;
    }
    const std::vector<Int>& position() const { return search.position_; }
    const std::vector<Int>& load() const { return search.load_; }
    const std::vector<Int>& room() const { return search.room_; }
    Int known() const { return search.known_; }
    Int last() const { return search.last_; }
    Int timed() const { return search.timed_; }
    Int moved() const { return static_cast<Int>(search.moved_.size()); }

private:
    double& fixed() { return search.proposed_; }
};

namespace {

struct BoundSearch : Owning<std::unique_ptr<LocalSearch>> {
    SearchProblem problem;

    BoundSearch(nb::handle of, Int seed) {
        SearchProblem& p = problem;
        const auto ints = [&](const char* name, Shape shape, Int least = 0, Int most = INT64_MAX) {
            const Ints found = keep<Int>(name, of.attr(name), shape);
            check_range(name, found, least, most);
            return found;
        };
        const auto flag = [&](const char* name) { return nb::cast<bool>(of.attr(name)); };
        p.capacity = ints("capacity", {ANY_LENGTH});
        p.release = ints("release", {ANY_LENGTH}, 0, NEVER - 1);
        p.source = ints("source", {ANY_LENGTH}, 0, static_cast<Int>(p.release.size()) - 1);
        p.memory = ints("memory", {ANY_LENGTH});
        const Int n = p.n = static_cast<Int>(p.release.size()), m = p.m = static_cast<Int>(p.capacity.size());
        const Int e = p.e = static_cast<Int>(p.source.size()), g = p.g = static_cast<Int>(p.memory.size());
        if (n == 0 || m == 0) throw Wrong("instance: no tasks or no devices; expected at least one of both");
        p.group = ints("group", {n}, 0, g - 1);
        p.member_start = ints("member_start", {g + 1});
        p.member = ints("member", {n}, 0, n - 1);
        check_starts("member_start", p.member_start, n);
        for (Int k = 0; k < g; ++k)
            if (p.member_start[k] == p.member_start[k + 1]) throw Wrong("member_start: group " + std::to_string(k) + " has no task");
        p.duration = ints("duration", {n, m}, 0, NEVER - 1);
        p.deadline = ints("deadline", {n});
        p.tail = ints("tail", {n});
        p.in_start = ints("in_start", {n + 1});
        p.out_start = ints("out_start", {n + 1});
        check_starts("in_start", p.in_start, e);
        check_starts("out_start", p.out_start, e);
        p.payload = ints("payload", {e});
        p.shared = keep<bool>("shared", of.attr("shared"), {e});
        p.target = ints("target", {e}, 0, n - 1);
        p.slot = ints("slot", {e}, 0, e - 1);
        for (Int u = 0; u < n; ++u)
            for (Int k = p.out_start[u]; k < p.out_start[u + 1]; ++k)
                if (p.source[p.slot[k]] != u) throw Wrong("slot: entry " + std::to_string(k) + " is not an in-edge from task " + std::to_string(u));
        for (Int i = 0; i < n; ++i)
            for (Int k = p.in_start[i]; k < p.in_start[i + 1]; ++k) {
                const auto *first = &p.target[0] + p.out_start[p.source[k]], *last = &p.target[0] + p.out_start[p.source[k] + 1];
                if (std::find(first, last, i) == last) throw Wrong("source: in-edge " + std::to_string(k) + " is not among the out-edges");
            }
        p.latency = ints("latency", {m, m}, 0, e > 0 ? NEVER - 1 : INT64_MAX);
        p.num = ints("byte_ticks_num", {m, m});
        p.den = ints("byte_ticks_den", {m, m}, 1);
        p.energy_num = ints("byte_energy_num", {m, m});
        p.energy_den = ints("byte_energy_den", {m, m}, 1);
        const auto check_ratios = [](const char* name, Ints nums, Ints dens) {
            for (std::size_t k = 0; k < nums.size(); ++k)
                if (nums[k] > (NEVER - 1) / dens[k]) throw Wrong(std::string(name) + ": expected a product with its denominator below 2^62");
        };
        check_ratios("byte_ticks_num", p.num, p.den);
        check_ratios("byte_energy_num", p.energy_num, p.energy_den);
        p.label = ints("label", {m});
        for (const Int label : p.label) p.classes = std::max(p.classes, label < m ? label + 1 : 0);
        check_range("label", p.label, 0, p.classes - 1);
        p.table = ints("table", {ANY_LENGTH, ANY_LENGTH, ANY_LENGTH}, 0, NEVER - 1);
        const Int payloads = static_cast<Int>(p.table.size()) / (p.classes * p.classes);
        if (payloads * p.classes * p.classes != static_cast<Int>(p.table.size())) throw Wrong("table: expected the classes of `label`");
        p.kind = ints("kind", {e}, 0, p.table.empty() ? INT64_MAX : payloads - 1);
        p.feasible = keep<bool>("feasible", of.attr("feasible"), {g, m});
        p.apart_start = ints("apart_start", {g + 1});
        p.apart = ints("apart", {ANY_LENGTH}, 0, g - 1);
        check_starts("apart_start", p.apart_start, static_cast<Int>(p.apart.size()));
        p.resident = ints("resident", {n});
        p.output = ints("output", {n});
        p.scratch = ints("scratch", {n});
        const nb::object tiers = of.attr("tiers");
        p.tier_end = keep<Int>("tiers.end", tiers.attr("end"), {ANY_LENGTH, ANY_LENGTH});
        p.tiers = static_cast<Int>(p.tier_end.size()) / m;
        if (p.tiers > 0) {
            p.tier_end = keep<Int>("tiers.end", tiers.attr("end"), {m, p.tiers});
            p.tier_num = keep<Int>("tiers.num", tiers.attr("num"), {m, p.tiers});
            p.tier_den = keep<Int>("tiers.den", tiers.attr("den"), {m, p.tiers});
            check_range("tiers.end", p.tier_end, 0, INT64_MAX);
            check_range("tiers.num", p.tier_num, 0, INT64_MAX);
            check_range("tiers.den", p.tier_den, 1, INT64_MAX);
            check_ratios("tiers.num", p.tier_num, p.tier_den);
        }
        p.charge = keep<double>("charge", of.attr("charge"), {n, m});
        const auto weight = array<double>("weight", of.attr("weight"), {5}), price = array<double>("price", of.attr("price"), {3});
        std::copy(weight.begin(), weight.end(), p.weight.begin());
        std::copy(price.begin(), price.end(), p.price.begin());
        p.bound = nb::cast<Int>(of.attr("bound"));
        p.half_duplex = flag("half_duplex");
        p.ports = flag("port");
        p.due = flag("due");
        p.peak = flag("peak");
        p.timed = flag("timed");
        p.priced = flag("priced");
        if (seed < 0) throw Wrong("seed: " + std::to_string(seed) + "; expected at least 0");
        value = std::make_unique<LocalSearch>(p, seed);
    }

    void check_shares(Ints shares) const {
        check_range("shares", shares, 0, 100);
        if (shares[5] != 100) throw Wrong("shares: the last is " + std::to_string(shares[5]) + "; expected 100");
    }
};

}  // namespace

void bind_local_search(nb::module_& module) {
    const auto ints = [](std::vector<Int> LocalSearch::*member) {
        return [member](nb::handle_t<BoundSearch> self) {
            const auto& values = (*nb::cast<BoundSearch&>(self).value).*member;
            return view(values, self, {static_cast<Int>(values.size())});
        };
    };
    const auto number = [](double LocalSearch::*member) { return [member](const BoundSearch& self) { return (*self.value).*member; }; };
    nb::class_<BoundSearch>(module, "LocalSearch", R"(An order of the tasks and a device for each group, evaluated incrementally.

The schedule starts every task, in the order, as soon as its device, its release and its data allow. `instance` are the
arrays of placeopt_solvers._local_search.instance. Arrays are read-only views.)")
        .def(nb::init<nb::handle, Int>(), "instance"_a, "seed"_a, nb::sig("def __init__(self, instance: object, seed: int) -> None"))
        .def(
            "load",
            [](BoundSearch& self, nb::handle order, nb::handle home) {
                const SearchProblem& p = self.problem;
                const auto tasks = array<Int>("order", order, {p.n}), devices = array<Int>("home", home, {p.g});
                check_range("order", tasks, 0, p.n - 1);
                check_range("home", devices, 0, p.m - 1);
                std::vector<bool> listed(p.n, false);
                for (const Int i : tasks) {
                    if (listed[i]) throw Wrong("order: task " + std::to_string(i) + " twice; expected each task once");
                    for (Int k = p.in_start[i]; k < p.in_start[i + 1]; ++k)
                        if (!listed[p.source[k]])
                            throw Wrong("order: task " + std::to_string(i) + "; expected its producer " + std::to_string(p.source[k]) + " before it");
                    listed[i] = true;
                }
                self.value->load(tasks, devices);
            },
            "order"_a, "home"_a,
            nb::sig("def load(self, order: numpy.typing.NDArray[numpy.int64], home: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Continue from a topological order (n,) and the devices (g,) of groups.")
        .def("return_to_best", [](BoundSearch& self) { self.value->return_to_best(); },
             "Continue from the best state so far, if there is one.")
        .def("set_penalties", [](BoundSearch& self, double late, double overfull) { self.value->set_penalties(late, overfull); },
             "late"_a, "overfull"_a, "Change the penalties of a tick of lateness and of a byte above the capacity.")
        .def(
            "walk",
            [](BoundSearch& self, nb::handle shares, Int begin, Int end, Int rounds, double hot, double cold, double enough,
               Stop& stop) {
                const auto kinds = array<Int>("shares", shares, {6});
                self.check_shares(kinds);
                if (begin < 0 || end > rounds) throw Wrong("begin, end: expected 0 to rounds");
                const nb::gil_scoped_release unlocked;
                return self.value->walk(kinds, begin, end, rounds, hot, cold, enough, stop);
            },
            "shares"_a, "begin"_a, "end"_a, "rounds"_a, "hot"_a, "cold"_a, "enough"_a, "stop"_a,
            nb::sig("def walk(self, shares: numpy.typing.NDArray[numpy.int64], begin: int, end: int, rounds: int, hot: float, "
                    "cold: float, enough: float, stop: Stop) -> int"),
            "Try the moves `begin` to `end` of a walk of `rounds` moves; return how many were evaluated.\n\n"
            "Temperatures fall from `hot` to `cold` along it. A temperature of 0 accepts moves that do not increase the cost; an "
            "infinite one accepts every move. `shares` (6,) are the cumulative percentages of the kinds of moves. At a cost of "
            "`enough` the walk ends.")
        .def(
            "tabu",
            [](BoundSearch& self, nb::handle shares, Int begin, Int rounds, Int candidates, Int tenure, double enough, Stop& stop) {
                const auto kinds = array<Int>("shares", shares, {6});
                self.check_shares(kinds);
                if (tenure < 0 || tenure >= (Int{1} << 30)) throw Wrong("tenure: " + std::to_string(tenure) + "; expected 0 to below 2^30");
                const nb::gil_scoped_release unlocked;
                return self.value->tabu(kinds, begin, rounds, candidates, tenure, enough, stop);
            },
            "shares"_a, "begin"_a, "rounds"_a, "candidates"_a, "tenure"_a, "enough"_a, "stop"_a,
            nb::sig("def tabu(self, shares: numpy.typing.NDArray[numpy.int64], begin: int, rounds: int, candidates: int, "
                    "tenure: int, enough: float, stop: Stop) -> int"),
            "Run rounds of tabu search, numbered from `begin`; return how many states were evaluated.\n\n"
            "Each makes the best of some candidates, and forbids undoing it for `tenure` to 2 `tenure` rounds.")
        .def(
            "propose",
            [](BoundSearch& self, Int kind) {
                if (kind < 0 || kind > 5) throw Wrong("kind: " + std::to_string(kind) + "; expected 0 to 5");
                return LocalSearch::Steps{*self.value}.propose(kind);
            },
            "kind"_a,
            "Change the state by a random move, swap, shift, run, cluster or exchange (0 to 5); return the first position whose "
            "times change, n if none.")
        .def(
            "evaluate",
            [](BoundSearch& self, Int first, double limit) {
                if (first < 0 || first > self.problem.n) throw Wrong("first: expected what `propose` returned");
                return LocalSearch::Steps{*self.value}.evaluate(first, limit);
            },
            "first"_a, "limit"_a, "Return the cost after a proposal, infinite if it is over the limit.")
        .def("accept", [](BoundSearch& self, double value) { LocalSearch::Steps{*self.value}.accept(value); }, "value"_a,
             "Keep the last proposal, whose cost is `value`.")
        .def("rewind", [](BoundSearch& self, Int first) { LocalSearch::Steps{*self.value}.rewind(std::max(first, Int{0})); },
             "first"_a, "Restore the times before the last evaluation, if it was within its limit; comes before `undo`.")
        .def("undo", [](BoundSearch& self) { LocalSearch::Steps{*self.value}.undo(); }, "Undo the last proposal.")
        .def(
            "look_ahead",
            [](BoundSearch& self) {
                std::vector<Int> found = LocalSearch::Steps{*self.value}.look_ahead();
                return moved(std::move(found), {self.problem.n});
            },
            nb::sig("def look_ahead(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Return the ticks (n,) from each task's end to the end of the last task, a lower bound with ports.")
        .def(
            "find_critical",
            [](BoundSearch& self) {
                auto found = LocalSearch::Steps{*self.value}.find_critical();
                const Int count = static_cast<Int>(found.size());
                return moved(std::move(found), {count});
            },
            nb::sig("def find_critical(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Return the tasks of a critical path, from the last one; none if these are all tasks.")
        .def_prop_ro(
            "counts",
            [](BoundSearch& self) {
                const LocalSearch::Steps steps{*self.value};
                return nb::make_tuple(steps.known(), steps.last(), steps.timed(), steps.moved());
            },
            nb::sig("def counts(self) -> tuple[int, int, int, int]"),
            "The position from which what follows is known, the last position of the last proposal, the position at which the "
            "last evaluation stopped, and the number of groups that moved.")
        .def_prop_ro(
            "sums",
            [](BoundSearch& self) {
                const LocalSearch::Steps steps{*self.value};
                std::vector<Int> found;
                for (const auto* each : {&steps.position(), &steps.load(), &steps.room()}) found.insert(found.end(), each->begin(), each->end());
                const Int count = static_cast<Int>(found.size());
                return moved(std::move(found), {count});
            },
            nb::sig("def sums(self) -> numpy.typing.NDArray[numpy.int64]"), nb::rv_policy::automatic,
            "(n + 2 m,) positions of tasks in the order, and the load and the room of devices.")
        .def("time_all", [](BoundSearch& self) { self.value->time_all(); },
             "Time all tasks, also where the cost does not depend on times.")
        .def(
            "take_news",
            [](BoundSearch& self) { return std::exchange(self.value->news, false); },
            "Return whether a better best state was found since the last call.")
        .def_prop_ro("cost", number(&LocalSearch::cost), "Cost of the state.")
        .def_prop_ro("guide", number(&LocalSearch::guide), "Part of the last evaluation that only guides the search.")
        .def_prop_ro("penalty", number(&LocalSearch::penalty), "Part of the last evaluation that penalises violated constraints.")
        .def_prop_ro("held", number(&LocalSearch::held), "Cost of the best feasible state, infinite without one.")
        .def_prop_ro("order", ints(&LocalSearch::order), "(n,) the tasks in a topological order.")
        .def_prop_ro("home", ints(&LocalSearch::home), "(g,) the device of each group.")
        .def_prop_ro("best_order", ints(&LocalSearch::best_order), "(n,) the order of the best feasible state.")
        .def_prop_ro("best_home", ints(&LocalSearch::best_home), "(g,) its devices.")
        .def_prop_ro("device", ints(&LocalSearch::device), "(n,) the device of each task.")
        .def_prop_ro("ticks", ints(&LocalSearch::ticks), "(n,) ticks of each task on its device.")
        .def_prop_ro("end", ints(&LocalSearch::end), "(n,) end of each task.")
        .def_prop_ro("delay", ints(&LocalSearch::delay), "(e,) ticks of each in-edge's transfer.")
        .def_prop_ro("arrive", ints(&LocalSearch::arrive), "(e,) arrival of each in-edge's data; empty without ports.");
}

}  // namespace engine
