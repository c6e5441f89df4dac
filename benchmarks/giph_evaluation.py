"""Run GiPH's evaluation (Hu et al. 2023, section 5, Figures 4, 5, 7 and 9): SLR of policies against search steps.

    python benchmarks/giph_evaluation.py [steps] [others] [costs] [optimum] [--cases 150] [--images FOLDER]
    python benchmarks/giph_evaluation.py steps --denominator shortest        # SLR as in the released code

All parts run unless some are named. Every policy makes 2 |V| steps from the same uniformly random placement. The SLR
is the makespan of the best placement so far divided by the length of the critical path at the least durations
(section 5); for the other denominator, see `giph_sets.py`, which also has the problems. With noise, the best placement
is the one with the least observed makespan, and its SLR is computed without noise, which estimates its mean. The least
observed SLR is listed as well; the paper reports it, and it is biased downwards. Intervals are 95 % confidence
intervals; differences are paired by problem.

steps       SLR against search steps, with one network and with ten unseen ones, with and without 20 % noise; SLR
            against depth; for comparison, the schedules of constructive heuristics, without noise.
others      The other sets without noise: the released split of ten networks, networks of 15 to 24 devices, deep
            learning graphs, and the case study.
costs       SLR at equal numbers of executed placements and of computed finish times. Cheaper policies restart from
            other random placements until they have used the same amount.
optimum     SLR of the solver auto with SECONDS for each problem.
"""

from __future__ import annotations

import argparse
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from giph_sets import DENOMINATORS, TITLES, denominator, interval, problems
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.model.metrics import shape
from placeopt.model.problem import Problem
from placeopt.policies import POLICIES, Episode, random_placement, run_episode, sample_placements
from placeopt.protocol import Termination

SEARCHES = ("random", *POLICIES)
REFERENCE = "random-task-eft"
HEURISTICS = ("heft", "lookahead-heft", "peft", "cpop", "gdl", "min-min")
GRID = np.linspace(0, 2, 41)
"""Steps per task at which curves are drawn."""
DEPTHS = (0, 15, 18, 26, 34, 100)
"""Borders of the intervals of depth."""

OTHERS = ("giph-multiple", "giph-sizes", "enas", "traffic")
SET = "giph-unseen"
"""The set of the parts costs and optimum."""

SECONDS = 4.0
"""Time limit of the solver auto."""

console = Console(width=150)


def searched(problem: Problem, name: str, device: np.ndarray, steps: int, noise: float, seed: int) -> Episode:
    """An episode of a policy, or of random placements."""
    if name == "random":
        return sample_placements(problem, device, steps=steps, noise=noise, seed=seed)
    return run_episode(problem, POLICIES[name](), device, steps=steps, noise=noise, seed=seed)


def first_placement(problem: Problem, index: int) -> np.ndarray:
    """The random placement that all policies start from."""
    return random_placement(problem, np.random.default_rng([7, index]))


@cache
def constructed(name: str, problem: Problem) -> int:
    """The makespan of the schedule of a heuristic."""
    makespan = po.solve(problem, name).makespan
    assert makespan is not None
    return makespan


class Course:
    """The results of all policies on a set: for each policy, an array with one row per problem."""

    def __init__(self, kind: str, noise: float, cases: int, path: str) -> None:
        self.title = TITLES[kind] + (f", noise {noise:g}" if noise else "")
        self.slr: dict[str, np.ndarray] = {}
        self.observed: dict[str, np.ndarray] = {}
        self.cost: dict[str, np.ndarray] = {}
        drawn = problems(kind, cases)
        self.tasks = np.array([problem.n_tasks for problem in drawn])
        self.depth = np.array([shape(problem).depth for problem in drawn])
        least = np.array([denominator(problem, path) for problem in drawn])
        for name in SEARCHES:
            rows, observed, costs = [], [], []
            for index, problem in enumerate(drawn):
                n = problem.n_tasks
                found = searched(problem, name, first_placement(problem, index), 2 * n, noise, index)
                rows.append(found.expected[np.floor(GRID * n + 1e-9).astype(int)] / least[index])
                observed.append(found.best[-1] / least[index])
                costs.append((found.evaluations[-1] / n, found.estimates[-1] / n))
            self.slr[name], self.observed[name] = np.array(rows), np.array(observed)
            self.cost[name] = np.array(costs)
        for name in HEURISTICS:
            self.slr[name] = np.array([constructed(name, problem) for problem in drawn])[:, None] / least[:, None]

    def print(self) -> None:
        """Print the table."""
        table = Table(title=f"{self.title}: {len(self.tasks)} problems, {self.tasks.mean():.1f} tasks on average")
        for header in ("search", "SLR after |V|/2", "|V|", "2 |V| steps", "vs. task-eft", "better/equal/worse",
                       "observed", "executed", "estimates"):  # fmt: skip
            table.add_column(header, justify="left" if header == "search" else "right", no_wrap=True)
        reference = self.slr[REFERENCE][:, -1]
        for name, rows in self.slr.items():
            last = rows[:, -1]
            mean, half = interval(last)
            gap, gap_half = interval(last - reference)
            wins = [100 * np.mean(sign) for sign in (last < reference, last == reference, last > reference)]
            search = name in self.cost
            table.add_row(
                name,
                f"{rows[:, 10].mean():.3f}" if search else "",
                f"{rows[:, 20].mean():.3f}" if search else "",
                f"{mean:.3f} ± {half:.3f}",
                "" if name == REFERENCE else f"{gap:+.3f} ± {gap_half:.3f}",
                "" if name == REFERENCE else " / ".join(f"{share:.0f}" for share in wins) + " %",
                f"{self.observed[name].mean():.3f}" if search else "",
                f"{self.cost[name][:, 0].mean():.2f}" if search else "",
                f"{self.cost[name][:, 1].mean():.1f}" if search else "",
            )
        console.print(table)

    def print_depths(self) -> None:
        """Print the SLR by depth, as in Figure 5 of the paper."""
        table = Table(title=f"{self.title}: final SLR by depth of the graph (mean, standard deviation)")
        table.add_column("search")
        bins = [(low, high) for low, high in pairwise(DEPTHS) if self._within(low, high).any()]
        for low, high in bins:
            chosen = self._within(low, high)
            depths = self.depth[chosen]
            table.add_column(f"{depths.min()}-{depths.max()} ({chosen.sum()})", justify="right")
        for name in (*SEARCHES, "heft"):
            cells = [self.slr[name][self._within(low, high), -1] for low, high in bins]
            table.add_row(name, *(f"{values.mean():.2f} ({values.std():.2f})" for values in cells))
        console.print(table)

    def _within(self, low: int, high: int) -> np.ndarray:
        return (self.depth >= low) & (self.depth < high)


def spent(problem: Problem, name: str, index: int, budget: int, what: str, noise: float) -> int:
    """The makespan of a policy with `budget` `evaluations` or `estimates` (`what`); it restarts until they are used."""
    rng = np.random.default_rng([7, index])
    used, best, expected = 0, None, 0
    round_ = 0
    while used < budget:
        device = random_placement(problem, rng)
        found = searched(problem, name, device, 2 * problem.n_tasks, noise, index + 100_000 * round_)
        cost = used + getattr(found, what)
        last = int(np.searchsorted(cost, budget, side="right")) - 1
        if last >= 0 and (best is None or found.best[last] < best):
            best, expected = int(found.best[last]), int(found.expected[last])
        used, round_ = int(cost[-1]), round_ + 1
    return expected


def print_costs(cases: int, noise: float, path: str) -> None:
    """Print the SLR at equal costs: those of `annealing` and of `annealing-2` on the same problem."""
    drawn = problems(SET, cases)
    table = Table(title=f"{TITLES[SET]}, noise {noise:g}: SLR at equal costs, {cases} problems")
    for header in (
        "cost of",
        "measured in",
        "cost/|V|",
        "this policy",
        REFERENCE,
        "greedy",
        "random",
        "vs. task-eft",
    ):
        table.add_column(header, justify="left" if header in ("cost of", "measured in") else "right")
    for name, what in (("annealing", "evaluations"), ("annealing-2", "evaluations"), ("annealing-2", "estimates"),
                       ("annealing", "estimates")):  # fmt: skip
        own, others, shares = [], {REFERENCE: [], "random-task-greedy": [], "random": []}, []
        for index, problem in enumerate(drawn):
            found = searched(problem, name, first_placement(problem, index), 2 * problem.n_tasks, noise, index)
            budget, least = int(getattr(found, what)[-1]), denominator(problem, path)
            own.append(found.expected[-1] / least)
            shares.append(budget / problem.n_tasks)
            for other, values in others.items():
                if what == "evaluations" or other == REFERENCE:
                    values.append(spent(problem, other, index, budget, what, noise) / least)
        gap, half = interval(np.array(own) - np.array(others[REFERENCE]))
        means = [f"{np.mean(values):.3f}" if values else "" for values in others.values()]
        kind = "placements executed" if what == "evaluations" else "finish times"
        table.add_row(name, kind, f"{np.mean(shares):.1f}", f"{np.mean(own):.3f}", *means, f"{gap:+.3f} ± {half:.3f}")
    console.print(table)


def print_optimum(cases: int, path: str) -> None:
    """Print the SLR of `auto`, and the number of schedules that it proves optimal."""
    slr, others, proved = [], [], 0
    for index, problem in enumerate(problems(SET, cases)):
        result = po.solve(problem, "auto", time_limit=SECONDS, workers=1)
        assert result.makespan is not None
        least = denominator(problem, path)
        slr.append(result.makespan / least)
        start = first_placement(problem, index)
        found = searched(problem, "annealing", start, 2 * problem.n_tasks, 0.0, index).best[-1]
        others.append((constructed("heft", problem) / least, found / least))
        proved += result.termination is Termination.OPTIMAL
    mean, half = interval(np.array(slr))
    heft, annealing = np.mean(others, axis=0)
    console.print(
        f"{TITLES[SET]}: auto, {SECONDS:g} s, {mean:.3f} ± {half:.3f}, proved optimal {proved} of {cases}; "
        f"heft {heft:.3f}, annealing after 2 |V| steps {annealing:.3f}"
    )


def main() -> None:
    """Run the parts, print the tables and draw the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="steps, others, costs, optimum")
    parser.add_argument("--cases", type=int, default=150, help="number of problems of each set")
    parser.add_argument("--denominator", choices=DENOMINATORS, default="longest", help="path of the SLR")
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="folder for the figures; no figures by default")
    arguments = parser.parse_args()
    cases, path = arguments.cases, arguments.denominator
    parts = arguments.parts or ["steps", "others", "costs", "optimum"]
    if "steps" in parts:
        courses = []
        for noise, kind in ((0.0, "giph-single"), (0.0, SET), (0.2, "giph-single"), (0.2, SET)):
            courses.append(Course(kind, noise, cases, path))
            courses[-1].print()
        courses[1].print_depths()
        if arguments.images is not None:
            from giph_figures import draw_depths, draw_steps

            draw_steps(courses, GRID).write(arguments.images / "giph-steps.png")
            draw_depths(courses[1], DEPTHS).write(arguments.images / "giph-depth.png")
    if "others" in parts:
        for kind in OTHERS:
            Course(kind, 0.0, cases, path).print()
    if "costs" in parts:
        for noise in (0.0, 0.2):
            print_costs(cases // 3, noise, path)
    if "optimum" in parts:
        print_optimum(cases // 3, path)


if __name__ == "__main__":
    main()
