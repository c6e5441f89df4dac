"""Measure how many published optima an exact solver proves, and how fast.

    python benchmarks/optimal_143.py [FILE] [--solver milp] [--most-tasks 7] [--set engine=scip]

The instances are 143 graphs of up to 11 tasks on 1, 2 or 4 identical processors with proven optimal makespans
(P | prec, c_ij | Cmax). The file contains one JSON object per line: name, processors, optimum, weights, and edges
[u, v, c], where c is the transfer time between different processors. The graphs are not part of placeopt: pass the
file, or set PLACEOPT_DATA to the folder that contains optimal/p2-p4.jsonl. By default, the solver is cp-sat, and all
graphs are used. The limit is 30 s each, with all cores and seed 0. Seconds are wall time in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import placeopt as po

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main() -> None:
    """Solve all graphs and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=DATA / "optimal" / "p2-p4.jsonl")
    parser.add_argument("--solver", default="cp-sat")
    parser.add_argument("--most-tasks", type=int, default=sys.maxsize, help="skip graphs with more tasks")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the solver")
    asked = parser.parse_args()
    path, settings = asked.file, dict(pair.split("=", 1) for pair in asked.set)
    if not path.exists():
        sys.exit(f"{path}: no such file; pass the file with the graphs, or set PLACEOPT_DATA")
    rows: dict[int, list[tuple[bool, bool, float]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        graph = json.loads(line)
        n, m = len(graph["weights"]), graph["processors"]
        if n > asked.most_tasks:
            continue
        problem = po.build_problem(
            task_names=[f"t{i}" for i in range(n)],
            device_names=[f"p{d}" for d in range(m)],
            duration=np.repeat(np.array(graph["weights"])[:, None], m, axis=1),
            edges=[(a, b) for a, b, _ in graph["edges"]],
            payload=[c for _, _, c in graph["edges"]],
            byte_ticks_num=np.ones((m, m), dtype=np.int64),
        )
        begin = time.perf_counter()
        result = po.solve(problem, asked.solver, time_limit=30, **settings)
        equal, proved = result.objective == graph["optimum"], result.termination is po.Termination.OPTIMAL
        rows[m].append((equal, proved, time.perf_counter() - begin))
    table = Table(title=f"graphs with published optima, {asked.solver}")
    for header in ("processors", "graphs", "equal", "proved", "seconds", "slowest"):
        table.add_column(header, justify="right")
    everything = [run for graphs in rows.values() for run in graphs]
    if not everything:
        sys.exit(f"{path}: no graph has {asked.most_tasks} tasks or fewer")
    for label, runs in [*sorted(rows.items()), ("all", everything)]:
        equal, proved, seconds = zip(*runs, strict=True)
        counts = [str(len(runs)), str(sum(equal)), str(sum(proved))]
        table.add_row(str(label), *counts, f"{sum(seconds):.2f}", f"{max(seconds):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
