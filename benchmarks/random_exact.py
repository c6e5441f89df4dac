"""Measure the gaps of cp-sat on random balanced graphs, with and without the warm start of a heuristic.

    python benchmarks/random_exact.py [--tasks 100 200 300] [--seeds 0 1] [--limit 60] [--duration 1 20] [--types 1]
                                      [--workers 2] [--no-hint-from 200]

The instances are `placeopt generate layered` with 4 devices of one speed (`--types 4` for four speeds), CCR 1, links
with a latency of 1 tick, and durations from 1 to 20 ticks. `--duration 100 1000` selects the default range of the
generator, where a proof requires a precision of one tick in ten thousand. Each instance is solved by the command
`placeopt solve FILE --solver cp-sat` in a separate process; seconds are its wall time, including the start of Python.
Instances with at least `--no-hint-from` tasks are also solved with `--set hint=false`: without HEFT, annealing and
hints. Gap = (objective - bound) / objective.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from placeopt.generate.layered_graphs import layered_document


def solved(path: Path, limit: float, workers: int, hint: bool) -> tuple[dict[str, Any], float]:
    """The output of the command, and its wall time in seconds."""
    command = [sys.executable, "-m", "placeopt", "solve", str(path), "--solver", "cp-sat", "--json"]
    command += ["--time-limit", f"{limit}s", "--workers", str(workers), "--set", f"hint={str(hint).lower()}"]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout), time.perf_counter() - begin


def main() -> None:
    """Solve all instances and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 200, 300])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds")
    parser.add_argument("--duration", type=int, nargs=2, default=[1, 20], metavar=("LEAST", "MOST"), help="ticks")
    parser.add_argument("--types", type=int, default=1, help="number of different speeds of the 4 devices")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-hint-from", type=int, default=200, help="least number of tasks for runs without hints")
    asked = parser.parse_args()
    low, high = asked.duration
    table = Table(title=f"cp-sat on balanced graphs, 4 devices, CCR 1, durations {low}-{high}, {asked.limit:g} s")
    for header in ("tasks", "seed", "hint", "objective", "bound", "gap", "proved", "seconds"):
        table.add_column(header, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for tasks in asked.tasks:
            for seed in asked.seeds:
                path = Path(folder) / f"{tasks}-{seed}.json"
                document = layered_document(
                    tasks, 4, seed=seed, ccr=1.0, device_types=asked.types, duration=(low, high), latency=1
                )
                path.write_text(json.dumps(document))
                for hint in (True, False)[: 1 + (tasks >= asked.no_hint_from)]:
                    found, seconds = solved(path, asked.limit, asked.workers, hint)
                    gap = "" if found["gap"] is None else f"{found['gap']:.2%}"
                    proved = "yes" if found["termination"] == "optimal" else "no"
                    values = [str(found[key]) for key in ("objective", "bound")]
                    table.add_row(
                        str(tasks), str(seed), "yes" if hint else "no", *values, gap, proved, f"{seconds:.1f}"
                    )
    Console().print(table)


if __name__ == "__main__":
    main()
