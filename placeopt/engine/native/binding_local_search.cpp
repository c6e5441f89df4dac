// Local searches.
#include <utility>

#include "bound_instance.hpp"

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

struct BoundSearch {
    BoundInstance instance;
    LocalSearch value;

    BoundSearch(nb::handle of, Int seed) : instance(of), value(instance.value, checked_seed(seed)) {}

    void check_shares(Ints shares) const {
        check_range("shares", shares, 0, 100);
        if (shares[5] != 100) throw Wrong("shares: the last is " + std::to_string(shares[5]) + "; expected 100");
    }
};

}  // namespace

void bind_local_search(nb::module_& module) {
    const auto number = [](double LocalSearch::*member) { return [member](const BoundSearch& self) { return self.value.*member; }; };
    nb::class_<BoundSearch>(module, "LocalSearch", R"(An order of the tasks and a device for each group, evaluated incrementally.

The schedule starts every task, in the order, as soon as its device, its release and its data allow. `instance` are the
arrays of placeopt_solvers._local_search.instance. Arrays are read-only views.)")
        .def(nb::init<nb::handle, Int>(), "instance"_a, "seed"_a, nb::sig("def __init__(self, instance: object, seed: int) -> None"))
        .def(
            "load",
            [](BoundSearch& self, nb::handle order, nb::handle home) {
                const SearchProblem& p = self.instance.value;
                const auto tasks = self.instance.order(order), devices = array<Int>("home", home, {p.g});
                check_range("home", devices, 0, p.m - 1);
                self.value.load(tasks, devices);
            },
            "order"_a, "home"_a,
            nb::sig("def load(self, order: numpy.typing.NDArray[numpy.int64], home: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Continue from a topological order (n,) and the devices (g,) of groups.")
        .def("return_to_best", [](BoundSearch& self) { self.value.return_to_best(); },
             "Continue from the best state so far, if there is one.")
        .def("set_penalties", [](BoundSearch& self, double late, double overfull) { self.value.set_penalties(late, overfull); },
             "late"_a, "overfull"_a, "Change the penalties of a tick of lateness and of a byte above the capacity.")
        .def(
            "walk",
            [](BoundSearch& self, nb::handle shares, Int begin, Int end, Int rounds, double hot, double cold, double enough,
               Stop& stop) {
                const auto kinds = array<Int>("shares", shares, {6});
                self.check_shares(kinds);
                if (begin < 0 || end > rounds) throw Wrong("begin, end: expected 0 to rounds");
                const nb::gil_scoped_release unlocked;
                return self.value.walk(kinds, begin, end, rounds, hot, cold, enough, stop);
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
                return self.value.tabu(kinds, begin, rounds, candidates, tenure, enough, stop);
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
                return LocalSearch::Steps{self.value}.propose(kind);
            },
            "kind"_a,
            "Change the state by a random move, swap, shift, run, cluster or exchange (0 to 5); return the first position whose "
            "times change, n if none.")
        .def(
            "evaluate",
            [](BoundSearch& self, Int first, double limit) {
                if (first < 0 || first > self.instance.value.n) throw Wrong("first: expected what `propose` returned");
                return LocalSearch::Steps{self.value}.evaluate(first, limit);
            },
            "first"_a, "limit"_a, "Return the cost after a proposal, infinite if it is over the limit.")
        .def("accept", [](BoundSearch& self, double value) { LocalSearch::Steps{self.value}.accept(value); }, "value"_a,
             "Keep the last proposal, whose cost is `value`.")
        .def("rewind", [](BoundSearch& self, Int first) { LocalSearch::Steps{self.value}.rewind(std::max(first, Int{0})); },
             "first"_a, "Restore the times before the last evaluation, if it was within its limit; comes before `undo`.")
        .def("undo", [](BoundSearch& self) { LocalSearch::Steps{self.value}.undo(); }, "Undo the last proposal.")
        .def(
            "look_ahead",
            [](BoundSearch& self) {
                std::vector<Int> found = LocalSearch::Steps{self.value}.look_ahead();
                return moved(std::move(found), {self.instance.value.n});
            },
            nb::sig("def look_ahead(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Return the ticks (n,) from each task's end to the end of the last task, a lower bound with ports.")
        .def(
            "find_critical",
            [](BoundSearch& self) {
                auto found = LocalSearch::Steps{self.value}.find_critical();
                const Int count = static_cast<Int>(found.size());
                return moved(std::move(found), {count});
            },
            nb::sig("def find_critical(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Return the tasks of a critical path, from the last one; none if these are all tasks.")
        .def_prop_ro(
            "counts",
            [](BoundSearch& self) {
                const LocalSearch::Steps steps{self.value};
                return nb::make_tuple(steps.known(), steps.last(), steps.timed(), steps.moved());
            },
            nb::sig("def counts(self) -> tuple[int, int, int, int]"),
            "The position from which what follows is known, the last position of the last proposal, the position at which the "
            "last evaluation stopped, and the number of groups that moved.")
        .def_prop_ro(
            "sums",
            [](BoundSearch& self) {
                const LocalSearch::Steps steps{self.value};
                std::vector<Int> found;
                for (const auto* each : {&steps.position(), &steps.load(), &steps.room()}) found.insert(found.end(), each->begin(), each->end());
                const Int count = static_cast<Int>(found.size());
                return moved(std::move(found), {count});
            },
            nb::sig("def sums(self) -> numpy.typing.NDArray[numpy.int64]"), nb::rv_policy::automatic,
            "(n + 2 m,) positions of tasks in the order, and the load and the room of devices.")
        .def("time_all", [](BoundSearch& self) { self.value.time_all(); },
             "Time all tasks, also where the cost does not depend on times.")
        .def(
            "take_news",
            [](BoundSearch& self) { return std::exchange(self.value.news, false); },
            "Return whether a better best state was found since the last call.")
        .def_prop_ro("cost", number(&LocalSearch::cost), "Cost of the state.")
        .def_prop_ro("guide", number(&LocalSearch::guide), "Part of the last evaluation that only guides the search.")
        .def_prop_ro("penalty", number(&LocalSearch::penalty), "Part of the last evaluation that penalises violated constraints.")
        .def_prop_ro("held", number(&LocalSearch::held), "Cost of the best feasible state, infinite without one.")
        .def_prop_ro("order", viewed<BoundSearch>(&LocalSearch::order), "(n,) the tasks in a topological order.")
        .def_prop_ro("home", viewed<BoundSearch>(&LocalSearch::home), "(g,) the device of each group.")
        .def_prop_ro("best_order", viewed<BoundSearch>(&LocalSearch::best_order), "(n,) the order of the best feasible state.")
        .def_prop_ro("best_home", viewed<BoundSearch>(&LocalSearch::best_home), "(g,) its devices.")
        .def_prop_ro("device", viewed<BoundSearch>(&LocalSearch::device), "(n,) the device of each task.")
        .def_prop_ro("ticks", viewed<BoundSearch>(&LocalSearch::ticks), "(n,) ticks of each task on its device.")
        .def_prop_ro("end", viewed<BoundSearch>(&LocalSearch::end), "(n,) end of each task.")
        .def_prop_ro("delay", viewed<BoundSearch>(&LocalSearch::delay), "(e,) ticks of each in-edge's transfer.")
        .def_prop_ro("arrive", viewed<BoundSearch>(&LocalSearch::arrive), "(e,) arrival of each in-edge's data; empty without ports.");
}

}  // namespace engine
