"""Measure `chains` on 1,000 layers and 64 devices.

    python benchmarks/pipeline_chains.py [SECONDS]

Times of layers are random between 0.5 and 2 ms at speed 1 (or alike, 1 ms), in ticks of 1 ns; outputs take 1 to 19 us.
Seed 0. The devices have four classes of 16, eight classes of 8, or 64 unlike speeds, uniform between 1 and 10 (seed 7).
Each problem is solved for at most SECONDS (60 by default). Times are CPU seconds without building the problem; the gap
is that between the period and its bound.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import placeopt as po
from placeopt.model.objective import evaluate
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver

LAYERS = 1_000
FOUR = [(1.0, 16), (2.0, 16), (3.0, 16), (5.0, 16)]
EIGHT = [(1.0, 8), (1.6, 8), (2.4, 8), (3.1, 8), (4.8, 8), (7.8, 8), (12.0, 8), (15.6, 8)]
UNLIKE = [(speed, 1) for speed in np.random.default_rng(7).uniform(1, 10, 64).tolist()]

CASES: dict[str, dict[str, Any]] = {
    "4 x 16": {"classes": FOUR},
    "4 x 16, teams of 16": {"classes": FOUR, "replicas": 16},
    "4 x 16, training, 1f1b, tight memory, teams of 4": {
        "classes": FOUR, "replicas": 4, "training": True, "memory": 6_000,
    },
    "8 x 8": {"classes": EIGHT},
    "8 x 8, teams of 8": {"classes": EIGHT, "replicas": 8},
    "8 x 8, layers alike, teams of 8": {"classes": EIGHT, "replicas": 8, "alike": True},
    "8 x 8, training, 1f1b, tight memory, teams of 8": {
        "classes": EIGHT, "replicas": 8, "training": True, "memory": 8_000,
    },
    "64 unlike": {"classes": UNLIKE},
    "64 unlike, free transfers": {"classes": UNLIKE, "bandwidth": 0},
    "64 unlike, transfers 100 times as long": {"classes": UNLIKE, "bandwidth": 100_000},
    "64 unlike, layers alike": {"classes": UNLIKE, "alike": True},
    "64 unlike, tight memory": {"classes": UNLIKE, "memory": 1_800},
}  # fmt: skip


def instance(
    classes: list[tuple[float, int]],
    *,
    replicas: int = 1,
    training: bool = False,
    memory: int = 10**9,
    alike: bool = False,
    bandwidth: int = 1_000,
) -> po.Problem:
    """A chain; `bandwidth` is in ticks per byte."""
    rng = np.random.default_rng(0)
    n, speed = LAYERS, np.array([speed for speed, count in classes for _ in range(count)])
    base = np.full(n, 10**6) if alike else rng.integers(500_000, 2_000_000, n)
    ticks = np.ceil(base[:, None] / speed[None, :]).astype(np.int64)
    resident = np.full(n, 100) if alike else rng.integers(50, 150, n)
    output = np.full(n, 10) if alike else rng.integers(1, 20, n)
    edges, forward = [(i, i + 1) for i in range(n - 1)], list(range(n))
    if training:
        ticks, resident = np.concatenate((ticks, 2 * ticks)), np.concatenate((resident, 0 * resident))
        output = np.concatenate((output, output))
        edges += [(n + i + 1, n + i) for i in range(n - 1)] + [(i, n + i) for i in range(n)]
        forward *= 2
    return po.build_problem(
        task_names=[f"t{i}" for i in range(len(ticks))],
        device_names=[f"d{d}" for d in range(len(speed))],
        duration=ticks, edges=edges, payload=[int(output[a]) for a, _ in edges], shared=[True] * len(edges),
        byte_ticks_num=np.full((len(speed), len(speed)), bandwidth), resident=resident, output=output,
        capacity=[memory] * len(speed), forward=forward, group=forward if training else None,
        objective=po.Objective(((po.Term("period"),),)),
        pipeline={
            "segments": 1, "replicas": replicas, "in_flight": "1f1b" if training else "none",
            "gradient": resident if training else 0,
        },
    )  # fmt: skip


def main() -> None:
    """Print a line for each case."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    solver = find_solver("chains")
    for name, case in CASES.items():
        problem = instance(**case)
        start = time.process_time()
        answer = solver.solve(problem, Options(time_limit=seconds), solver.settings_type())
        taken = time.process_time() - start
        period = None if answer.schedule is None else evaluate(problem, answer.schedule)[0]
        gap = "" if period is None or answer.bound is None else f"gap {float(1 - answer.bound / period):.3%}"
        print(f"{name:50} {answer.termination.value:11} {period} {gap} {taken:.2f} s", flush=True)


if __name__ == "__main__":
    main()
