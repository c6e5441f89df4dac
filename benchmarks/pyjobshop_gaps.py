"""Compare cp-sat with PyJobShop, a library for scheduling problems, on problems that both can state.

    python benchmarks/pyjobshop_gaps.py [FILE ...] [--limit 10] [--workers 2] [--solver cp-sat] [--seeds 10]

PyJobShop (https://pyjobshop.org, Leon Lan and Joost Berkhout) is not part of placeopt: `pip install pyjobshop`. Without
files, the problems are the projects in rcpsp/*.rcp (format `psplib`) and flexible job shops in fjsp/*.json, as far as
the folder that PLACEOPT_DATA names contains them, and generated problems with the seeds 0, 1, ...: 30 to 48 tasks, a
slow machine with 8 cores, two faster ones that run one task at a time at a price, 2 licences, and a budget of two
thirds of the least price without the slow machine. Files are problem files, files that `placeopt import` reads, or
shops in a folder `fjsp`.

Both solvers get the same integer data, the same limit and the same number of threads, and run one after the other on
each problem; the verifier checks both schedules. A row states the objective, the gap (objective - bound) / objective
with the solver's own bound, and the wall time of each, with the construction of its model. Both use CP-SAT of OR-Tools.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from shops import DATA, job_shop

import placeopt as po
from placeopt.bridges.importers.registry import import_file, recognised
from placeopt.model.problem import UNLIMITED, Problem

try:
    import pyjobshop
except ImportError:
    sys.exit("benchmarks/pyjobshop_gaps.py needs PyJobShop, which is not installed: pip install pyjobshop")

SHOPS = ("mk01", "mk04", "mk06", "mk10", "la16_edata", "la27_rdata", "la38_edata", "mt10x", "seti5x", "yfjs01")


def generated(seed: int) -> dict[str, Any]:
    """The document of a random problem with cores, licences and a budget."""
    draw = random.Random(seed)
    n = 30 + 2 * seed
    tasks: dict[str, dict[str, Any]] = {}
    fastest = 0
    for k in range(n):
        work = draw.randint(10, 99)
        cost = {"a": draw.randint(1, 9), "b": draw.randint(1, 9), "host": 0}
        tasks[f"t{k}"] = {
            "time": {"host": 2 * work, "a": work, "b": work + draw.randint(-9, 9)},
            "cores": draw.randint(1, 4),
            "uses": {"price": cost} | ({"licence": 1} if draw.random() < 0.3 else {}),
            "after": sorted({f"t{draw.randrange(max(k - 12, 0), k)}" for _ in range(draw.randint(0, 3)) if k}),
        }
        fastest += min(cost["a"], cost["b"])
    return {
        "placeopt": 1,
        "name": f"generated-{seed}",
        "devices": {"host": {"cores": 8}, "a": {}, "b": {}},
        "resources": {"licence": 2},
        "budgets": {"price": 2 * fastest // 3},
        "tasks": tasks,
    }


def problems(files: Sequence[Path], seeds: int) -> Iterator[Problem]:
    """The problems of files, or else those that are known."""
    for path in files:
        if path.parent.name == "fjsp":
            yield po.compile(job_shop(path))
        else:
            yield po.load(path) if recognised(path) is None else po.compile(import_file(path).document)
    if files:
        return
    projects, shops = sorted((DATA / "rcpsp").glob("*.rcp")), [DATA / "fjsp" / f"{name}.json" for name in SHOPS]
    shops = [path for path in shops if path.is_file()]
    for paths, what in ((projects, "projects in rcpsp"), (shops, "job shops in fjsp")):
        if not paths:
            print(f"{DATA} has no {what}; PLACEOPT_DATA names the folder above", file=sys.stderr)
    yield from (po.compile(import_file(path).document) for path in projects)
    yield from (po.compile(job_shop(path)) for path in shops)
    yield from (po.compile(generated(seed)) for seed in range(seeds))


def model_of(problem: Problem) -> pyjobshop.Model:
    """The same problem in PyJobShop: a mode for each device of a task."""
    transfers = problem.latency.any() or (problem.payload.any() and problem.byte_ticks_num.any())
    placement = len(problem.separation) or len(np.unique(problem.group)) < problem.n_tasks
    limits = (problem.capacity != UNLIMITED).any() or problem.unavailable is not None
    if transfers or placement or limits or problem.objective.single != "makespan":
        what = "transfers that take time, groups of tasks, memory capacities, windows or another objective"
        sys.exit(f"{problem.name} has {what}, which this script does not state in PyJobShop")
    model, resources = pyjobshop.Model(), problem.resources
    machines: list[Any] = [
        None if resources is not None and resources.parallel[d] else model.add_machine(name=name)
        for d, name in enumerate(problem.device_names)
    ]
    shared: list[Any] = []
    for r in range(0 if resources is None else len(resources.names)):
        add = model.add_renewable if resources.renewable[r] else model.add_consumable
        shared.append(add(int(resources.capacity[r]), name=resources.names[r]))
    tasks = []
    for i, name in enumerate(problem.task_names):
        late = {} if problem.deadline[i] == UNLIMITED else {"latest_end": int(problem.deadline[i])}
        tasks.append(model.add_task(name=name, earliest_start=int(problem.release[i]), **late))
        for d in np.flatnonzero(problem.feasible[i]).tolist():
            duration = int(problem.duration[i, d])
            used = [] if resources is None else resources.used(i, d)
            # A task of no duration uses nothing at one time.
            used = [(r, amount) for r, amount in used if duration or not resources.renewable[r]]
            needs = [(shared[r], amount) for r, amount in used]
            if machines[d] is not None:
                needs.append((machines[d], 0))
            model.add_mode(
                tasks[i], [need for need, _ in needs], duration, [amount for _, amount in needs], name=str(d)
            )
    for a, b in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        model.add_end_before_start(tasks[a], tasks[b])
    model.set_objective(weight_makespan=1)
    return model


class Outcome:
    """What a solver reached on one problem."""

    def __init__(self, problem: Problem, schedule: po.Schedule | None, bound: float, seconds: float) -> None:
        self.seconds = seconds
        self.objective: int | None = None
        self.bound = bound
        if schedule is not None:
            report = po.verify(problem, schedule)
            if report.violations:
                sys.exit(f"{problem.name}: {report.violations[0].message}")
            self.objective = int((schedule.start + problem.duration[range(problem.n_tasks), schedule.device]).max())

    @property
    def gap(self) -> float:
        """The gap by the solver's own bound; 1 without a schedule."""
        return 1.0 if self.objective is None else (self.objective - self.bound) / max(self.objective, 1)

    def no_worse(self, other: Outcome) -> bool:
        """Whether the schedule is at least as good."""
        return other.objective is None or (self.objective is not None and self.objective <= other.objective)

    def cells(self) -> list[str]:
        """The objective, gap and seconds."""
        return ["-" if self.objective is None else str(self.objective), f"{self.gap:.1%}", f"{self.seconds:.1f}"]


def ours(problem: Problem, solver: str, limit: float, workers: int) -> Outcome:
    """The result of placeopt."""
    begin = time.perf_counter()
    found = po.solve(problem, solver, time_limit=limit, workers=workers)
    bound = 0 if found.bound is None else Fraction(found.bound)
    return Outcome(problem, found.schedule, float(bound), time.perf_counter() - begin)


def theirs(problem: Problem, limit: float, workers: int) -> Outcome:
    """The result of PyJobShop."""
    begin = time.perf_counter()
    model = model_of(problem)
    found = model.solve(time_limit=limit, display=False, num_workers=workers)
    seconds, schedule = time.perf_counter() - begin, None
    if found.best.tasks:
        device = [int(model.modes[task.mode].name) for task in found.best.tasks]
        start = [task.start for task in found.best.tasks]
        schedule = po.Schedule(np.array(device, dtype=np.int64), np.array(start, dtype=np.int64))
    return Outcome(problem, schedule, found.lower_bound, seconds)


def main() -> None:
    """Solve all problems by both, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--solver", default="cp-sat")
    parser.add_argument("--seeds", type=int, default=10, help="number of generated problems")
    asked = parser.parse_args()
    table = Table(title=f"{asked.solver} and PyJobShop, {asked.limit:g} s, {asked.workers} workers")
    for header in ("problem", "tasks", asked.solver, "gap", "s", "PyJobShop", "gap", "s"):
        table.add_column(header, justify="left" if header == "problem" else "right")
    pairs: list[tuple[Outcome, Outcome]] = []
    for problem in problems(asked.files, asked.seeds):
        first = ours(problem, asked.solver, asked.limit, asked.workers)
        second = theirs(problem, asked.limit, asked.workers)
        pairs.append((first, second))
        table.add_row(problem.name, str(problem.n_tasks), *first.cells(), *second.cells())
        print(problem.name, *first.cells(), *second.cells(), file=sys.stderr, flush=True)
    count = len(pairs)
    if not count:
        sys.exit("there are no problems to solve")
    good, better = sum(a.no_worse(b) for a, b in pairs), sum(not b.no_worse(a) for a, b in pairs)
    gaps = sum(a.gap <= b.gap + 1e-9 for a, b in pairs)
    proved = [sum(each.gap <= 0 for each in side) for side in zip(*pairs, strict=True)]
    seconds = [sum(each.seconds for each in side) for side in zip(*pairs, strict=True)]
    console = Console()
    console.print(table)
    console.print(f"schedules of {asked.solver}: at least as good in {good} of {count}, better in {better}")
    console.print(f"gap of {asked.solver}: no larger in {gaps} of {count}")
    console.print(f"proved: {proved[0]} and {proved[1]}; seconds: {seconds[0]:.0f} and {seconds[1]:.0f}")


if __name__ == "__main__":
    main()
