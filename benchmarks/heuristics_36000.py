"""Measure the time of heuristics on graphs of 36,000 tasks and more, from the compiled problem to the schedule.

    python benchmarks/heuristics_36000.py [SOLVER ...]

The instances have 4 and 60 devices without memory limits:

- layered: `layered_problem(36_000, m)` with seed 0, CCR 1, about 72,000 edges, and as many device types as devices.
- transformer: the Transformer of 41,515 tasks (see placeopt/generate/transformer.py) on identical devices with 10
  TFLOP/s and links of 12 GB/s.

The table lists seconds of CPU time on one thread, the median of RUNS runs after a warm-up run, and the makespan
divided by that of heft. The last line is heft on 1,000,000 tasks and 8 devices.
"""

from __future__ import annotations

import statistics
import sys
import time

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.problem import Problem
from placeopt.model.schedule import makespan
from placeopt.simulation import retime
from placeopt.solver import Options
from placeopt.solver.registry import find_solver

RUNS = 5
SOLVERS = (
    "heft", "cpop", "peft", "etf", "m-etf", "m-sct", "celeritas", "order-place", "m-topo", "heuristic-g", "fcp", "flb",
    "dsc", "lc",
)  # fmt: skip
TRANSFORMER = {"layers": 12, "heads": 64, "width": 4096, "ff_width": 16384, "split_heads": True, "training": True}


def transformer(devices: int) -> Problem:
    """The Transformer on identical devices."""
    network = network_document("custom", devices=devices, memory_bandwidth="900 GB/s", overhead="5 us")
    return po.compile(model_document("transformer", **TRANSFORMER) | network)


def measured(name: str, problem: Problem, runs: int = RUNS) -> tuple[float, int | None]:
    """Median CPU seconds of a solver, and the makespan of its schedule."""
    solver = find_solver(name)
    settings = solver.settings_type()
    seconds = []
    answer = solver.solve(problem, Options(), settings)
    for _ in range(runs):
        begin = time.thread_time()
        answer = solver.solve(problem, Options(), settings)
        seconds.append(time.thread_time() - begin)
    schedule = answer.schedule
    return statistics.median(seconds), None if schedule is None else makespan(problem, retime(problem, schedule))


def main() -> None:
    """Measure and print the tables."""
    names = sys.argv[1:] or list(SOLVERS)
    problems = {
        f"{graph}, {m}": problem
        for m in (4, 60)
        for graph, problem in (("layered", layered_problem(36_000, m, ccr=1.0)), ("transformer", transformer(m)))
    }
    table = Table(title="CPU seconds, and makespan / makespan of heft")
    table.add_column("solver")
    for key, problem in problems.items():
        table.add_column(f"{key} devices\n{problem.n_tasks:,} tasks\n{problem.n_edges:,} edges", justify="right")
    reference = {key: measured("heft", problem, 1)[1] for key, problem in problems.items()}
    for name in names:
        cells = []
        for key, problem in problems.items():
            seconds, length = measured(name, problem)
            compared = "-" if length is None else f"{length / (reference[key] or 1):.2f}"
            cells.append(f"{seconds:.3f}  x{compared}")
        table.add_row(name, *cells)
    console = Console(width=120)
    console.print(table)
    seconds, _ = measured("heft", layered_problem(1_000_000, 8, ccr=1.0))
    console.print(f"heft, 1,000,000 tasks on 8 devices: {seconds:.3f} s")


if __name__ == "__main__":
    main()
