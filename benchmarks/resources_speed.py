"""Measure heft and annealing on graphs whose tasks share renewable resources.

    python benchmarks/resources_speed.py

The instances are `placeopt.generate.layered_graphs.layered_problem` on 3 devices (as many columns as a task with three
modes has) with seed 0, CCR 1 and three device types. There are four renewable resources. The first three have the
capacity 10, the fourth 1. With seed 0, each task uses each of them with probability 0.5, 1 to 5 units on each device,
or 1 of the fourth. A budget allows nine tenths of what all tasks use of it on average, 0 to 10 units on each device.
One thread. Times are CPU times; those of heft are medians of 5 runs, from the compiled problem to the schedule.
Annealing runs for 200,000 moves, and counts the states that it evaluates.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from placeopt_solvers.search._anytime import SearchSettings
from rich.console import Console
from rich.table import Table

from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import with_changes
from placeopt.model.problem import Problem
from placeopt.model.resources import build_resources
from placeopt.model.schedule import makespan
from placeopt.protocol import Options, Settings
from placeopt.protocol.registry import find_solver

RUNS, MOVES = 5, 200_000
HEFT_TASKS, SEARCH_TASKS = (1_000, 10_000), (100, 300, 1_000)


def shared_problem(n: int, m: int = 3, seed: int = 0) -> Problem:
    """Return the problem of n tasks that the module describes."""
    rng = np.random.default_rng(seed)
    limits = {"power": 10, "bandwidth": 10, "licenses": 10, "operator": 1}
    uses: dict[int, dict[str, list[int]]] = {}
    for i in range(n):
        drawn = {name: rng.integers(1, 1 + (most + 1) // 2, m).tolist() for name, most in limits.items()}
        uses[i] = {name: amounts for name, amounts in drawn.items() if rng.random() < 0.5}
        uses[i]["cost"] = rng.integers(0, 11, m).tolist()
    problem = layered_problem(n, m, ccr=1.0, device_types=m, seed=0)
    resources = build_resources(n, m, renewable=limits, budgets={"cost": 9 * n // 2}, uses=uses)
    return with_changes(problem, resources=resources)


def main() -> None:
    """Measure and print the tables."""
    console = Console()
    heft, annealing = find_solver("heft"), find_solver("annealing")
    table = Table(title=f"heft with 4 renewable resources and a budget, median of {RUNS} runs")
    for header in ("tasks", "devices", "milliseconds", "makespan"):
        table.add_column(header, justify="right")
    for tasks in HEFT_TASKS:
        problem, seconds = shared_problem(tasks), []
        for _ in range(RUNS):
            begin = time.process_time()
            answer = heft.solve(problem, Options(), Settings())
            seconds.append(time.process_time() - begin)
        assert answer.schedule is not None
        span = makespan(problem, answer.schedule)
        table.add_row(f"{tasks:,}", "3", f"{1000 * statistics.median(seconds):.1f}", f"{span:,}")
    console.print(table)
    table = Table(title=f"annealing with 4 renewable resources and a budget, {MOVES:,} moves")
    for header in ("tasks", "devices", "states per second", "makespan"):
        table.add_column(header, justify="right")
    for tasks in SEARCH_TASKS:
        problem = shared_problem(tasks)
        begin = time.process_time()
        answer = annealing.solve(problem, Options(), SearchSettings(rounds=MOVES))
        rate = answer.stats["evaluated"] / (time.process_time() - begin)
        assert answer.schedule is not None
        table.add_row(f"{tasks:,}", "3", f"{rate:,.0f}", f"{makespan(problem, answer.schedule):,}")
    console.print(table)


if __name__ == "__main__":
    main()
