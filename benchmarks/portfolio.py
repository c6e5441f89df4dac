"""Measure the solver auto on real and random graphs: certified gaps, and the improvement over heft.

    python benchmarks/portfolio.py [--time-limit 60] [--workers 2] [--seeds 20] [SET...]

All sets run unless some are named:

    dnn        the layer graphs of Tarnawski et al. (NeurIPS 2020), which are not part of placeopt; PLACEOPT_DATA names
               the folder that contains dnn/*.json
    problems   problems/*.yaml
    balanced   `layered_problem(n, 4, seed=s, ccr=1.0, device_types=1)`, n = 300 and 1,000, seeds 0 to --seeds - 1
    narrow     as balanced, with 4 tasks per layer, which is the number of devices: transfers are hard to hide
    dear       as balanced, with 1,000 tasks, CCR 10 and 8 tasks per layer: transfers take longer than tasks
    giph       `random_document(100, 8, seed=s, data=10, delay=2)`, graphs and networks of GiPH (Hu et al., MLSys
               2023) with a CCR of about 2 (transfers / work, counting all edges), the same seeds
    large      `layered_problem(36000, 6, seed=0, ccr=c, device_types=1, width=w)`: c = 10 without a width, and with
               12, 24 and 48 tasks per layer

A set with one seed has one line per problem. With several seeds, a line contains the mean gap, the worst gap, and the
mean reduction of the makespan relative to heft. Seconds include solving and verifying.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.random_graphs import random_document

PROBLEMS = Path(__file__).parents[1] / "problems"
DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[2] / "shared" / "data"))

Case = tuple[str, list[Callable[[], po.Problem]]]
"""A name, and functions that create its problems."""


def dnn(_: int) -> Iterator[Case]:
    """Layer graphs of real networks."""
    for path in sorted((DATA / "dnn").glob("*.json")):
        yield path.stem, [lambda path=path: po.compile(po.read_dnn_partitioning(path))]


def problems(_: int) -> Iterator[Case]:
    """The problems of placeopt."""
    for path in sorted(PROBLEMS.glob("*.yaml")):
        yield path.stem, [lambda path=path: po.load(path)]


def layered(name: str, tasks: int, devices: int, seeds: int, **options: float) -> Case:
    """Layered graphs, one for each seed."""
    return name, [
        lambda seed=seed: layered_problem(tasks, devices, seed=seed, device_types=1, **options) for seed in range(seeds)
    ]


def balanced(seeds: int) -> Iterator[Case]:
    """CCR 1 on identical devices."""
    for tasks in (300, 1000):
        yield layered(f"balanced, {tasks:,} tasks", tasks, 4, seeds, ccr=1.0)


def narrow(seeds: int) -> Iterator[Case]:
    """As many tasks per layer as devices."""
    for tasks in (300, 1000):
        yield layered(f"narrow, {tasks:,} tasks", tasks, 4, seeds, ccr=1.0, width=4)


def dear(seeds: int) -> Iterator[Case]:
    """Transfers that take longer than tasks."""
    yield layered("expensive transfers, 1,000 tasks", 1000, 4, seeds, ccr=10.0, width=8)


def giph(seeds: int) -> Iterator[Case]:
    """Graphs and networks of GiPH."""
    makers = [
        lambda seed=seed: po.compile(random_document(100, 8, seed=seed, data=10, delay=2)) for seed in range(seeds)
    ]
    yield "giph, 100 tasks", makers


def large(_: int) -> Iterator[Case]:
    """36,000 tasks on six devices."""
    yield layered("36,000 tasks, ccr 10", 36_000, 6, 1, ccr=10.0)
    for width in (12, 24, 48):
        yield layered(f"36,000 tasks, ccr 10, width {width}", 36_000, 6, 1, ccr=10.0, width=width)


SETS = {each.__name__: each for each in (dnn, problems, balanced, narrow, dear, giph, large)}


def main() -> None:
    """Solve the sets and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sets if name not in SETS]
    if unknown:
        parser.error(f"no such set: {unknown[0]}; known are {', '.join(SETS)}")
    table = Table(title=f"auto, {arguments.time_limit:g} s, {arguments.workers} workers; makespans in ms")
    headers = ("problem", "schedule", "bound", "gap", "worst gap", "below heft", "found by", "bound by", "seconds")
    for header in headers:
        table.add_column(header, justify="left" if header in ("problem", "found by", "bound by") else "right")
    for name in arguments.sets or SETS:
        for label, makers in SETS[name](arguments.seeds):
            table.add_row(label, *solved(makers, arguments.time_limit, arguments.workers))
    Console(width=150).print(table)


def solved(makers: list[Callable[[], po.Problem]], time_limit: float, workers: int) -> tuple[str, ...]:
    """The cells of a line: means over its problems."""
    results, below, seconds = [], [], []
    for make in makers:
        problem = make()
        begin = time.perf_counter()
        results.append(po.solve(problem, "auto", time_limit=time_limit, workers=workers))
        seconds.append(time.perf_counter() - begin)
        heft = po.solve(problem, "heft")
        if heft.feasible and results[-1].makespan:
            below.append(1 - results[-1].makespan / heft.makespan)
    unit = float(results[0].resolution) * 1000
    gaps = [1.0 if result.gap is None else result.gap for result in results]
    return (
        f"{mean(float(result.objective or 0) for result in results) * unit:,.3f}",
        f"{mean(float(result.bound or 0) for result in results) * unit:,.3f}",
        f"{mean(gaps):.2%}",
        f"{max(gaps):.2%}",
        f"{mean(below):.1%}" if below else "",
        ", ".join(sorted({result.stats["found by"] for result in results})),
        ", ".join(sorted({result.bound_source or "" for result in results})),
        f"{mean(seconds):.1f}",
    )


if __name__ == "__main__":
    main()
