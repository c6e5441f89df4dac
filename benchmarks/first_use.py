"""Measure the first use on a machine: time limits and schedules while kernels are compiled.

    python benchmarks/first_use.py [--quick]

Each run is a separate process with two workers and seed 0, once with an empty kernel cache and once with a full one
(`placeopt warm`). `seconds` is the time of `placeopt.solve`, including verification and bounds. `compiling` is the
part of it in which plain Python replaces kernels that are being compiled. The instances are problems/inception.yaml
for the searches, and `layered_problem(20_000, 4, ccr=1)` for heft. The second table measures a running process: the
median of 5 solves without the pipeline, after three warm-up solves. `--quick` skips limits above 1 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

INCEPTION = Path(__file__).parent.parent / "problems" / "inception.yaml"
SOLVERS = ("auto", "annealing", "lns", "local-search", "wba", "submodular-g")
LIMITS = (1.0, 5.0, 20.0)
RUNNING = (("heft", 300, 4), ("heft", 3_000, 4), ("etf", 3_000, 4), ("m-sct", 300, 4), ("m-sct", 1_000, 4))
AWAIT = 60.0
"""Maximum seconds to wait for kernels in a running process."""


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only limits of 1 s")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(running() if asked.child == ["running"] else solved(*asked.child)))
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        full = Path(folder) / "full"
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "placeopt", "warm"], check=True, env=environment(full))
        print(f"all kernels: {time.perf_counter() - begun:.1f} s on {os.cpu_count()} cores")
        table = Table(title="empty cache | full cache")
        for header in ("solver", "limit", "seconds", "compiling", "makespan, ms", "seconds", "makespan, ms"):
            table.add_column(header, justify="left" if header == "solver" else "right")
        jobs = [(solver, limit) for solver in SOLVERS for limit in (LIMITS[:1] if asked.quick else LIMITS)]
        for number, (solver, limit) in enumerate([*jobs, ("heft", 0.0)]):
            cold = child(Path(folder) / str(number), solver, str(limit))
            warm = child(full, solver, str(limit))
            table.add_row(
                solver, f"{limit:g} s" if limit else "20,000 tasks", f"{cold['seconds']:.2f}",
                f"{cold['compiling']:.2f}", cold["makespan"], f"{warm['seconds']:.2f}", warm["makespan"],
            )  # fmt: skip
        Console(width=120).print(table)
        speeds = Table(title="a running process, milliseconds")
        for header in ("solver", "tasks", "devices", "first solve", "later solves"):
            speeds.add_column(header, justify="left" if header == "solver" else "right")
        for row in child(full, "running")["rows"]:
            speeds.add_row(*row)
        Console(width=120).print(speeds)


def environment(cache: Path) -> dict[str, str]:
    """The environment with `cache` as the folder for kernels."""
    return os.environ | {"NUMBA_CACHE_DIR": str(cache)}


def child(cache: Path, *arguments: str) -> dict[str, object]:
    """The report of a separate process."""
    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(command, check=True, env=environment(cache), stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def solved(solver: str, limit: str) -> dict[str, object]:
    """Report of one solve."""
    import placeopt as po
    from placeopt.generate.layered_graphs import layered_problem

    problem = po.load(INCEPTION) if float(limit) else layered_problem(20_000, 4, ccr=1.0)
    begun = time.perf_counter()
    result = po.solve(problem, solver, time_limit=float(limit) or None, workers=2)
    found = "none" if result.makespan is None else f"{result.makespan * result.resolution * 1e3:,.4f}"
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "compiling": result.wall_time.compiling, "makespan": found}


def running() -> dict[str, object]:
    """Report of successive solves without the pipeline."""
    from placeopt.generate.layered_graphs import layered_problem
    from placeopt.kernels import compilation
    from placeopt.solver import Options
    from placeopt.solver.registry import find_solver

    rows = []
    for name, tasks, devices in RUNNING:
        problem, solver = layered_problem(tasks, devices, ccr=1.0), find_solver(name)
        times = []
        for number in range(8):
            begun = time.perf_counter()
            solver.solve(problem, Options(), solver.settings_type())
            times.append(time.perf_counter() - begun)
            if number < 3:
                compilation.wait(AWAIT)
        rows.append(
            (name, f"{tasks:,}", str(devices), f"{times[0] * 1e3:.1f}", f"{statistics.median(times[3:]) * 1e3:.1f}")
        )
    return {"rows": rows}


if __name__ == "__main__":
    main()
