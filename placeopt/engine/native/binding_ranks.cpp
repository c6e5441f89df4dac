// Ranks and orders of tasks.
#include "bindings.hpp"

namespace engine {

void bind_ranks(nb::module_& module) {
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
