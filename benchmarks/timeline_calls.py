"""Measure calls of the engine's timeline from Python.

    python benchmarks/timeline_calls.py

The instance is `layered_problem(3000, 8)`, seed 0, without and with port contention. `heuristic` is a list heuristic in
Python that places the tasks in topological order where they end first (docs/new-solver.md); `engine` is `mct`, which
is the same in C++. Times are medians of 9 runs; a call is one of `can_run`, `earliest` and `place`.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from placeopt_solvers.list_scheduling.custom import ListHeuristic, Timeline
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import with_changes
from placeopt.model.problem import Contention, Problem
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver

RUNS = 9


class EarliestEnd(ListHeuristic):
    """Tasks in topological order, each where it ends first."""

    name = "earliest-end"
    info = po.Info(summary="each task where it ends first", guarantee="none", complexity="O((n + e) m)")

    def place_tasks(self, line: Timeline, problem: Problem, settings: Any) -> int | None:  # noqa: ARG002
        for task in problem.order.tolist():
            able = [device for device in range(problem.n_devices) if line.can_run(task, device)]
            if not able:
                return int(task)
            ends = {device: line.earliest(task, device) + int(problem.duration[task, device]) for device in able}
            line.place(task, min(ends, key=ends.__getitem__))
        return None


def seconds(solver: Any, problem: Problem) -> float:
    """Median seconds of a solve without the pipeline."""
    found = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        solver.solve(problem, Options(), solver.settings_type())
        found.append(time.perf_counter() - begin)
    return statistics.median(found)


def main() -> None:
    """Print the table."""
    table = Table(title="3,000 tasks on 8 devices")
    for header in ("contention", "heuristic, ms", "engine, ms", "us each call"):
        table.add_column(header, justify="right")
    contentions: tuple[Contention, ...] = ("none", "port")
    for contention in contentions:
        problem = with_changes(layered_problem(3000, 8), contention=contention)
        python, engine = (seconds(solver, problem) for solver in (EarliestEnd(), find_solver("mct")))
        calls = problem.n_tasks * (2 * problem.n_devices + 1)
        table.add_row(contention, f"{1e3 * python:.1f}", f"{1e3 * engine:.1f}", f"{1e6 * python / calls:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
