"""Measure how many random forks, joins and fork-joins are proved optimal, and how fast.

    python benchmarks/forks.py [--kinds fork join fork-join] [--tasks 21 30] [--devices 2 4] [--ccr 0.1 1 2 10]
                               [--scale 1] [--seeds 0 1 2 3 4] [--solver auto] [--limit 10] [--workers 2]
                               [--set KEY=VALUE]

The instances are `placeopt generate fork`: durations from 1 to 10 ticks, identical devices, and transfers scaled to the
CCR, the sum of all transfer times over that of all durations. With `--scale 10` durations are multiples of 10 ticks,
so that short transfers are rounded less. By default there are 240 instances. The kinds out-tree and in-tree are solved
by the general model. Seconds are wall time of `placeopt.solve` in one process, CPU seconds are those of all threads.
Each instance that is not proved is named. `--set forks=false --solver cp-sat` measures the general model alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import product
from typing import Any

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.forks import KINDS, fork_document


def main() -> None:
    """Solve all instances and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=["fork", "join", "fork-join"], choices=list(KINDS))
    parser.add_argument("--tasks", type=int, nargs="+", default=[21, 30])
    parser.add_argument("--devices", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--ccr", type=float, nargs="+", default=[0.1, 1.0, 2.0, 10.0])
    parser.add_argument("--scale", type=int, default=1, help="ticks per unit of the durations")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the solver")
    asked = parser.parse_args()
    settings: dict[str, Any] = dict(pair.split("=", 1) for pair in asked.set)
    console = Console()
    table = Table(title=f"forks, scale {asked.scale}, {asked.solver}, {asked.limit:g} s, {asked.workers} workers")
    for header in ("kind", "instances", "proved", "median s", "largest s", "CPU s"):
        table.add_column(header, justify="right")
    everything: list[tuple[bool, float, float]] = []
    for kind in asked.kinds:
        runs: list[tuple[bool, float, float]] = []
        for n, m, ccr, seed in product(asked.tasks, asked.devices, asked.ccr, asked.seeds):
            problem = po.compile(fork_document(n, m, kind=kind, ccr=ccr, scale=asked.scale, seed=seed))
            begin, used = time.perf_counter(), time.process_time()
            result = po.solve(problem, asked.solver, time_limit=asked.limit, workers=asked.workers, **settings)
            proved = result.termination is po.Termination.OPTIMAL
            runs.append((proved, time.perf_counter() - begin, time.process_time() - used))
            if not proved:
                console.print(f"open: {problem.name}, CCR {ccr:g}: {result.objective}, bound {result.bound}")
        everything += runs
        table.add_row(kind, *_row(runs))
    table.add_row("all", *_row(everything))
    console.print(table)


def _row(runs: list[tuple[bool, float, float]]) -> list[str]:
    proved, seconds, used = zip(*runs, strict=True)
    times = [f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}", f"{sum(used):.1f}"]
    return [str(len(runs)), str(sum(proved)), *times]


if __name__ == "__main__":
    main()
