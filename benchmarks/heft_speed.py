"""Measure the time of heft on large graphs, from the compiled problem to the schedule.

    python benchmarks/heft_speed.py

The instances are `placeopt.generate.layered_graphs.layered_problem` with seed 0, CCR 1, and as many device types as
devices. The solver uses one thread. Times are medians of 5 runs.
"""

from __future__ import annotations

import statistics
import time

from rich.console import Console
from rich.table import Table

from placeopt.generate.layered_graphs import layered_problem
from placeopt.protocol import Options, Settings
from placeopt.protocol.registry import find_solver

RUNS = 5
SIZES = ((36_000, 4), (36_000, 60), (1_000_000, 8))


def main() -> None:
    """Measure and print the table."""
    solver = find_solver("heft")
    solver.solve(layered_problem(50_000, 8), Options(), Settings())
    table = Table(title=f"heft, seconds, median of {RUNS} runs")
    for header in ("tasks", "edges", "devices", "seconds", "tasks per second"):
        table.add_column(header, justify="right")
    for tasks, devices in SIZES:
        problem = layered_problem(tasks, devices, ccr=1.0)
        seconds = []
        for _ in range(RUNS):
            begin = time.perf_counter()
            solver.solve(problem, Options(), Settings())
            seconds.append(time.perf_counter() - begin)
        median = statistics.median(seconds)
        table.add_row(f"{tasks:,}", f"{problem.n_edges:,}", str(devices), f"{median:.3f}", f"{tasks / median:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
