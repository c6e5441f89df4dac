"""Compare searches on irregular graphs of 3,000 tasks and more: makespans after the same CPU time.

    python benchmarks/window_search.py [--tasks 3000 10000 36000] [--devices 60] [--seconds 10 30]

The instances are `irregular_problem(n, 60, seed=0)`. Each search starts from the schedule of PEFT and runs on one
thread for the given CPU time, without compiling: those of the solvers `annealing` and `local-search`, and the search in
windows (`placeopt_solvers._local_search.windows`). The table lists the makespan in ticks, its excess over the quick
lower bounds, and the states evaluated per second of CPU time.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence

from placeopt_solvers._local_search.search import Coolings, MakeWalker, makespan_bound, rounds_in
from placeopt_solvers._local_search.strategies import annealer, coolings, descender, descents
from placeopt_solvers._local_search.windows import WindowSearch
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan

Search = Callable[[Problem, Schedule, float], tuple[Schedule, int]]
"""Returns the schedule after some seconds of CPU time, and how many states were evaluated."""

MANY = 10**9
"""Moves of a search whose number is not limited."""


def until(seconds: float) -> Callable[[], bool]:
    """Return a function that says whether these seconds of CPU time have passed."""
    end = time.process_time() + seconds
    return lambda: time.process_time() >= end


def walked(make: MakeWalker, cooled: Coolings) -> Search:
    """The search of a solver."""

    def search(problem: Problem, start: Schedule, seconds: float) -> tuple[Schedule, int]:
        walker = make(problem, start, 0, makespan_bound(problem))
        stopped = until(seconds)
        for cooling in cooled(problem, 0, max(rounds_in(problem, seconds), 1)):
            if not cooling.onward:
                walker.state.return_to_best()
            if not walker.cool(cooling, -math.inf, stopped, lambda: None):
                break
        found = walker.best()
        assert found is not None
        return found, walker.evaluated

    return search


def slid(problem: Problem, start: Schedule, seconds: float) -> tuple[Schedule, int]:
    """The search in windows."""
    search = WindowSearch(problem, start, 0, MANY)
    stopped = until(seconds)
    while not stopped():
        search.step(stopped, MANY)
    return search.best(), search.evaluated


SEARCHES: dict[str, Search] = {
    "annealing": walked(annealer, coolings),
    "local-search": walked(descender, descents),
    "windows": slid,
}


def main() -> None:
    """Run all searches and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[3_000, 10_000, 36_000])
    parser.add_argument("--devices", type=int, default=60)
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 30.0])
    asked = parser.parse_args()
    compare(asked.tasks, asked.devices, asked.seconds)


def compare(sizes: Sequence[int], devices: int, limits: Sequence[float]) -> None:
    """Print the makespans of all searches on graphs of some sizes after some seconds of CPU time."""
    table = Table(title="makespans of searches from the schedule of PEFT")
    for header in ("tasks", "search", "seconds", "makespan", "above the bound", "evaluated per second"):
        table.add_column(header, justify="right")
    for tasks in sizes:
        problem = irregular_problem(tasks, devices, seed=0)
        start, bound = po.solve(problem, "peft").schedule, makespan_bound(problem)
        assert start is not None
        rows = [("peft", 0.0, start, 0)]
        for name, search in SEARCHES.items():
            rows += [(name, seconds, *search(problem, start, seconds)) for seconds in limits]
        for name, seconds, found, evaluated in rows:
            span = makespan(problem, found)
            rate = f"{evaluated / seconds:,.0f}" if seconds else ""
            excess = f"{100 * (span - bound) / bound:.1f}%"
            table.add_row(f"{tasks:,}", name, f"{seconds:g}" if seconds else "", f"{span:,}", excess, rate)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
