"""Measure the time of heuristics on graphs of 36,000 tasks and more, from the compiled problem to the schedule.

    python benchmarks/heuristics_36000.py [peak] [SOLVER ...]

The instances have 4 and 60 devices without memory limits:

- layered: `layered_problem(36_000, m)` with seed 0, CCR 1, about 72,000 edges, and as many device types as devices.
- transformer: the Transformer of 41,515 tasks (see placeopt/generate/transformer.py) on identical devices with 10
  TFLOP/s and links of 12 GB/s.

The table lists seconds of CPU time on one thread, the median of RUNS runs after a warm-up run, and the makespan
divided by that of heft. The last line is heft on 1,000,000 tasks and 8 devices.

With `peak`, the layered graph on 4 devices has outputs and capacities, and the memory model `peak`:

- none: no capacities.
- enough: each device has 30% of the memory of all tasks, so they fit under `sum`, too.
- scarce: all devices together have twice the live memory of one device that runs all tasks breadth first, 1.3% of the
  memory of all tasks.

The makespans are multiples of those without capacities. The last lines are for 1,000,000 tasks and 8 devices.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.memory import peak_memory, used_memory
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime

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
    if schedule is None:
        return statistics.median(seconds), None
    if problem.memory_model == "peak":  # tasks may wait for memory
        assert (used_memory(problem, schedule) <= problem.capacity).all()
        return statistics.median(seconds), makespan(problem, schedule)
    return statistics.median(seconds), makespan(problem, retime(problem, schedule))


def with_outputs(tasks: int, devices: int) -> dict[str, Problem]:
    """The layered graph with outputs under the memory model `peak`, and with capacities."""
    drawn = layered_problem(tasks, devices, ccr=1.0, tightness=1.0)
    nothing = np.zeros(tasks, dtype=np.int64)
    problem = replace(drawn, memory_model="peak", resident=nothing, scratch=nothing, output=drawn.memory)
    ticks, start = problem.duration[problem.order, 0], nothing.copy()
    start[problem.order] = np.cumsum(ticks) - ticks
    live = int(peak_memory(problem, Schedule(nothing, start))[0])
    room = {"none": UNLIMITED, "enough": 3 * int(problem.memory.sum()) // 10, "scarce": 2 * live // devices}
    return {name: replace(problem, capacity=np.full(devices, each)) for name, each in room.items()}


def peak_table(names: list[str], tasks: int, devices: int, runs: int) -> Table:
    """The table under the memory model `peak`."""
    table = Table(title=f"memory model peak, {tasks:,} tasks, {devices} devices: CPU seconds, and makespan / first one")
    problems = with_outputs(tasks, devices)
    for header in ("solver", *problems):
        table.add_column(header, justify="left" if header == "solver" else "right")
    for name in names:
        found = [measured(name, problem, runs) for problem in problems.values()]
        reference = found[0][1] or 1
        cells = (f"{spent:.3f}  " + ("-" if end is None else f"x{end / reference:.2f}") for spent, end in found)
        table.add_row(name, *cells)
    return table


def main() -> None:
    """Measure and print the tables."""
    names = [word for word in sys.argv[1:] if word != "peak"] or list(SOLVERS)
    console = Console(width=120)
    if "peak" in sys.argv:
        console.print(peak_table(names, 36_000, 4, RUNS))
        console.print(peak_table(["heft", "m-etf", "m-topo"], 1_000_000, 8, 1))
        return
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
    console.print(table)
    seconds, _ = measured("heft", layered_problem(1_000_000, 8, ccr=1.0))
    console.print(f"heft, 1,000,000 tasks on 8 devices: {seconds:.3f} s")


if __name__ == "__main__":
    main()
