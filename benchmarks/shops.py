"""Solve flexible job shops, and compare the schedules with the best known ones.

    python benchmarks/shops.py [NAME ...] [--seconds 10] [--solver auto ...] [--workers 2] [--seed 0]

The shops are files `fjsp/NAME.json` of the folder that PLACEOPT_DATA names, all by default: times of operations by
machine, and pairs of operations in order. `fjsp/best_known.json` has the best known lower and upper bounds. Transfers
take no time. A row states makespan and bound, the deviation of the makespan from the best known upper bound, whether
the optimum is proved, the seconds, and the members of `auto` that found the schedule and proved the bound.
`benchmarks/pyjobshop_gaps.py` compares with PyJobShop on the same shops.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import placeopt as po

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[2] / "shared" / "data"))
FOLDER = DATA / "fjsp"


def job_shop(path: Path) -> dict[str, Any]:
    """The document of a job shop in JSON: times of operations by machine, and pairs of operations in order."""
    shop = json.loads(path.read_text())
    tasks: dict[str, dict[str, Any]] = {}
    for k, times in enumerate(shop["durations"]):
        tasks[f"o{k}"] = {"time": {f"m{d}": time for d, time in times.items()}, "after": []}
    for a, b in shop["precedences"]:
        tasks[f"o{b}"]["after"].append(f"o{a}")
    machines = sorted({int(d) for times in shop["durations"] for d in times})
    return {"placeopt": 1, "name": path.stem, "devices": {f"m{d}": {} for d in machines}, "tasks": tasks}


def best_known() -> dict[str, int]:
    """The best known makespan of each shop."""
    values = json.loads((FOLDER / "best_known.json").read_text())["values"]
    return {name: bounds["upper_bound"] for name, bounds in values.items() if bounds["upper_bound"] is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of each solve")
    parser.add_argument("--solver", nargs="+", default=["auto"], help="solvers, one table for each")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not (FOLDER / "best_known.json").is_file():
        sys.exit(f"{FOLDER} has no best_known.json; PLACEOPT_DATA names the folder above fjsp")
    known = best_known()
    names = given.names or sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "best_known")
    for solver in given.solver:
        table = Table(
            "shop", "tasks", "machines", "makespan", "bound", "deviation", "proved", "seconds", "found by", "bound by"
        )
        deviations, proved = [], 0
        for name in names:
            problem = po.compile(job_shop(FOLDER / f"{name}.json"))
            begun = time.perf_counter()
            result = po.solve(problem, solver, time_limit=given.seconds, workers=given.workers, seed=given.seed)
            seconds = time.perf_counter() - begun
            span, optimal = result.makespan, result.termination.value == "optimal"
            proved += optimal
            away = None if span is None or name not in known else span / known[name] - 1
            deviations += [] if away is None else [away]
            table.add_row(
                name,
                str(problem.n_tasks),
                str(problem.n_devices),
                str(span),
                str(result.bound),
                "" if away is None else f"{away:.2%}",
                "yes" if optimal else "",
                f"{seconds:.1f}",
                str(result.stats.get("found by", "")),
                result.bound_source,
            )
        Console(width=120).print(table)
        print(
            f"{solver}, {given.seconds:g} s, {given.workers} workers: {proved} of {len(names)} proved; deviation from "
            f"the best known makespan {statistics.median(deviations):.2%} in the median, "
            f"{statistics.mean(deviations):.2%} in the mean, {max(deviations):.2%} at most"
        )


if __name__ == "__main__":
    main()
