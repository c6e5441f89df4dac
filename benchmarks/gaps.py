"""Measure the gaps that a solver proves on the problems in problems/ and on real DNN graphs.

    python benchmarks/gaps.py [--solver cp-sat] [--time-limit 60] [--set KEY=VALUE] [FILE...]

Without files, the instances are problems/*.yaml and the layer graphs of Tarnawski et al. (NeurIPS 2020, format
`dnn-partitioning`), those of dnn-throughput as pipelines. The latter are not part of placeopt; PLACEOPT_DATA names the
folder that contains dnn/*.json and dnn-throughput/*.json. Objectives are makespans or periods in ms. The solver uses
seed 0 and all cores. Seconds include reading, solving and verifying one file in this process. Problems that the solver
does not support are left out.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.protocol.registry import solvers_for

PROBLEMS = Path(__file__).parents[1] / "problems"
DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[2] / "shared" / "data"))


def load(path: Path) -> po.Problem:
    """The problem in a problem file, or in a file of the format dnn-partitioning."""
    if DATA not in path.parents:
        return po.load(path)
    objective = "period" if path.parent.name == "dnn-throughput" else "makespan"
    return po.compile(po.read_dnn_partitioning(path, objective=objective))


def main() -> None:
    """Solve each problem and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--solver", default="cp-sat")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    arguments = parser.parse_args()
    data = [path for folder in ("dnn", "dnn-throughput") for path in sorted((DATA / folder).glob("*.json"))]
    files = arguments.files or [*sorted(PROBLEMS.glob("*.yaml")), *data]
    settings = dict(pair.split("=", 1) for pair in arguments.sets)
    table = Table(title=f"{arguments.solver}, {arguments.time_limit:g} s each; times in ms")
    for header in ("problem", "tasks", "objective", "bound", "gap", "bound by", "termination", "seconds"):
        table.add_column(header, justify="left" if header in ("problem", "bound by", "termination") else "right")
    for path in files:
        begin = time.perf_counter()
        problem = load(path)
        if arguments.solver not in solvers_for(problem):
            continue
        result = po.solve(problem, arguments.solver, time_limit=arguments.time_limit, **settings)
        seconds = time.perf_counter() - begin
        unit = float(problem.resolution) * 1000
        table.add_row(
            problem.name or path.stem,
            str(problem.n_tasks),
            "none" if result.objective is None else f"{float(result.objective) * unit:,.4f}",
            "none" if result.bound is None else f"{float(result.bound) * unit:,.4f}",
            "none" if result.gap is None else f"{result.gap:.2%}",
            result.bound_source or "",
            result.termination.value,
            f"{seconds:.1f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
