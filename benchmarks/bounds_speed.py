"""Measure the time of each lower bound on 36,000 tasks.

    python benchmarks/bounds_speed.py [TASKS]

The table lists seconds, the median of 5 runs. The graphs are random (seed 0): each
task has about two producers among the previous 200 tasks, durations of 5 to 2000 ticks, and payloads of 1 to 1000
bytes.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placeopt.bounding.quick import bounds, paths, prove_infeasible
from placeopt.bounding.quick.classes import Subset, classes_of, subsets
from placeopt.bounding.quick.jackson import head_load_tail
from placeopt.bounding.quick.loads import best_price_bound, candidate_prices, pigeonhole, sharing_of
from placeopt.bounding.quick.transfers import TransferCost, unavoidable_cost
from placeopt.model.building import build_problem
from placeopt.model.metrics import ccr, measure, shape
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule

RUNS = 5


def layered(n_tasks: int, n_devices: int, n_classes: int) -> Problem:
    """A random graph on `n_devices` devices of `n_classes` device classes; each pair of classes has its own links."""
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(1, n_tasks), 2)
    sources = rng.integers(np.maximum(targets - 200, 0), targets)
    edges = np.unique(np.stack((sources, targets), axis=1), axis=0)
    kind = np.arange(n_devices) * n_classes // n_devices
    base = rng.integers(10, 1000, (n_tasks, 1))
    links = np.ix_(kind, kind)
    return build_problem(
        task_names=[f"t{i}" for i in range(n_tasks)],
        device_names=[f"d{d}" for d in range(n_devices)],
        duration=np.ceil(base * rng.uniform(0.5, 2, (n_tasks, n_classes))).astype(np.int64)[:, kind],
        edges=edges,
        payload=rng.integers(1, 1000, len(edges)),
        latency=rng.integers(1, 50, (n_classes, n_classes))[links],
        byte_ticks_num=rng.integers(1, 20, (n_classes, n_classes))[links],
        byte_ticks_den=rng.integers(50, 99, (n_classes, n_classes))[links],
        resident=rng.integers(1, 1000, n_tasks),
    )


def median(run: Callable[[], object]) -> float:
    """Median seconds of RUNS runs after a warm-up run."""
    run()
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def steps(problem: Problem) -> dict[str, Callable[[], object]]:
    """The measured functions by name."""
    classes = classes_of(problem)
    *_, everything = subsets(classes)
    found = paths.windows(classes)
    sharing = sharing_of(classes, everything, classes.duration, loads=True)
    priced: list[tuple[Subset, list]] = [(everything, candidate_prices(sharing))]
    tariff = TransferCost(classes.latency, classes.num, classes.den)
    capacity = np.full(problem.n_devices, 2 * int(problem.resident.sum()) // problem.n_devices)
    limited = classes_of(replace(problem, capacity=capacity))
    schedule = Schedule(np.arange(problem.n_tasks) % problem.n_devices, np.arange(problem.n_tasks) * 10)
    return {
        "classes": lambda: classes_of(problem),
        "critical-path": lambda: paths.critical_path(classes, paths.windows(classes)),
        "critical-path, memory": lambda: paths.critical_path(limited, paths.windows(limited)),
        "load": lambda: best_price_bound(sharing),
        "load, memory": lambda: best_price_bound(sharing_of(limited, everything, limited.duration, loads=True)),
        "jackson, without heads": lambda: head_load_tail(classes, found, priced),
        "packing": lambda: pigeonhole(classes.duration.min(axis=1), problem.n_devices),
        "transfers": lambda: unavoidable_cost(classes, tariff),
        "all bounds": lambda: bounds(replace(problem)),  # they are computed once for each problem
        "prove_infeasible": lambda: prove_infeasible(replace(problem, capacity=capacity)),
        "measure": lambda: measure(problem, schedule),
        "shape, ccr": lambda: (shape(problem), ccr(problem)),
    }


def main() -> None:
    """Print the table."""
    n_tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 36_000
    cases = {"4 devices": (4, 4), "60, 2 classes": (60, 2), "60 classes": (60, 60)}
    columns = []
    for n_devices, n_classes in cases.values():
        problem = layered(n_tasks, n_devices, n_classes)
        assert (problem.capacity == UNLIMITED).all()
        columns.append({name: median(run) for name, run in steps(problem).items()})
    print(f"{n_tasks:,} tasks, {problem.n_edges:,} edges; seconds, median of {RUNS}\n")
    print(f"{'':28}" + "".join(f"{name:>17}" for name in cases))
    for name in columns[0]:
        print(f"{name:28}" + "".join(f"{column[name]:17.4f}" for column in columns))


if __name__ == "__main__":
    main()
