"""Measure the states per second that a search evaluates, compared with a complete timing of each state.

    python benchmarks/search_speed.py [--tasks 40 300 36000] [--rounds 9]

The instances are `layered_document(n, 4, seed=0, ccr=1)` (6 devices from 10,000 tasks), without contention and with
ports. The start is the schedule of HEFT. The search evaluates a state after each move of annealing, at a temperature
of half the mean task duration, for a tenth of a second on one thread; each round starts from HEFT again. `windows` is
the search in windows (`placeopt_solvers._local_search.windows`), which continues from its last state. `complete`
recomputes the sums of the same state and times every task. `simulated` is an `Evaluator` of `placeopt.simulation`,
which uses a placement without an order. Rates are medians per second of CPU time.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from placeopt_solvers._local_search.search import Walker, makespan_bound
from placeopt_solvers._local_search.strategies import annealer
from placeopt_solvers._local_search.windows import WindowSearch
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt import engine
from placeopt.generate.layered_graphs import layered_document
from placeopt.model.problem import Contention, Problem
from placeopt.simulation import make_evaluator

PART = 0.1
"""Approximate seconds of one measurement."""


def instance(tasks: int, contention: Contention) -> Problem:
    """The layered graph with `tasks` tasks."""
    document = layered_document(tasks, 4 if tasks < 10_000 else 6, seed=0, ccr=1.0)
    return replace(po.compile(document), contention=contention)


def rate(function: Callable[[int], int], rounds: int) -> float:
    """Median evaluations per second of CPU time; `function` takes the requested number and returns the real one."""
    function(10)  # loads or compiles
    count, seconds = 10, 0.0
    while seconds < PART:
        count *= 2
        begin = time.process_time()
        function(count)
        seconds = time.process_time() - begin
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        made = function(count)
        found.append(made / (time.process_time() - begin))
    return statistics.median(found)


def walked(search: Walker, start: po.Schedule, count: int) -> int:
    """Evaluate about `count` states, beginning at `start`; return their number."""
    search.go_to(start)
    warm = 0.5 * search.value / search.problem.n_tasks
    return search.step(count, warm, warm, -math.inf, engine.Stop())


def slid(search: WindowSearch, count: int) -> int:
    """Try about `count` moves in windows; return how many states were evaluated."""
    before = search.evaluated
    end = search.tried + count
    while search.tried < end:
        search.step(lambda: False, end - search.tried)
    return search.evaluated - before


def decoded(search: Walker, count: int) -> int:
    """Time the complete state `count` times; return `count`."""
    for _ in range(count):
        search.state.time_all()
    return count


def simulated(problem: Problem, start: po.Schedule, count: int) -> int:
    """Simulate the placement `count` times; return `count`."""
    evaluator, device = make_evaluator(problem), np.array(start.device)
    for _ in range(count):
        evaluator(device)
    return count


def main() -> None:
    """Measure all and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[40, 300, 36_000])
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    table = Table(title="evaluated states per second")
    for header in ("tasks", "edges", "contention", "search", "windows", "complete", "simulated"):
        table.add_column(header, justify="right")
    for tasks in asked.tasks:
        for contention in ("none", "port"):
            problem = instance(tasks, contention)
            start = po.solve(problem, "heft").schedule
            assert start is not None
            search = annealer(problem, start, 0, makespan_bound(problem))
            simulated(problem, start, 1)
            windows = WindowSearch(problem, start, 0, 10**9) if contention == "none" else None
            rates = [
                rate(lambda count, s=search, at=start: walked(s, at, count), asked.rounds),
                None if windows is None else rate(lambda count, s=windows: slid(s, count), asked.rounds),
                rate(lambda count, s=search: decoded(s, count), asked.rounds),
                rate(lambda count, p=problem, at=start: simulated(p, at, count), asked.rounds),
            ]
            texts = ("" if value is None else f"{value:,.0f}" for value in rates)
            table.add_row(f"{tasks:,}", f"{problem.n_edges:,}", contention, *texts)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
