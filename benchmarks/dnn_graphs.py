"""How close to optimal a solver gets on real DNN graphs with tight memory.

    python benchmarks/dnn_graphs.py [--solver cp-sat] [--time-limit 60] [--set KEY=VALUE] [FILE...]

Instances: layer graphs of Tarnawski et al. (NeurIPS 2020) in the format `dnn-partitioning`, which do not come with
placeopt: give files, or set PLACEOPT_DATA to the folder that holds dnn/*.json. Objective (makespan) and bound are in
the files' own unit, milliseconds. Seed 0, all cores; seconds are those of reading, solving and verifying one file in
this process, the first one with the imports that it needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import placeopt as po

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main() -> None:
    """Solve each graph and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--solver", default="cp-sat")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    arguments = parser.parse_args()
    files = arguments.files or sorted((DATA / "dnn").glob("*.json"))
    if not files:
        sys.exit(f"{DATA / 'dnn'}: no files there; give some, or set PLACEOPT_DATA")
    settings = dict(pair.split("=", 1) for pair in arguments.sets)
    title = f"DNN graphs, {arguments.solver}, {arguments.time_limit:g} s each; times in ms"
    table = Table(title=title)
    for header in ("graph", "tasks", "objective", "bound", "gap", "bound by", "stopped", "seconds"):
        table.add_column(header, justify="left" if header in ("graph", "bound by", "stopped") else "right")
    for path in files:
        begin = time.perf_counter()
        problem = po.compile(po.read_dnn_partitioning(path))
        result = po.solve(problem, arguments.solver, time_limit=arguments.time_limit, **settings)
        seconds = time.perf_counter() - begin
        unit = float(problem.resolution) * 1000
        table.add_row(
            problem.name,
            str(problem.n_tasks),
            "none" if result.objective is None else f"{float(result.objective) * unit:.4f}",
            "none" if result.bound is None else f"{float(result.bound) * unit:.4f}",
            "none" if result.gap is None else f"{result.gap:.2%}",
            result.bound_source or "",
            result.termination.value,
            f"{seconds:.2f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
