"""Measure the lower bound from refuted makespans.

    python benchmarks/destructive_bounds.py [--limit 10] [--only TEXT]
    python benchmarks/destructive_bounds.py --optima 200 [--limit 10]

The instances are irregular graphs (`placeopt generate irregular`, seed 0) and files in problems/. For each, the table
lists the best quick bound, the bound `destructive` without probing and in full, the gain over the quick bound, and the
CPU seconds of both phases. The limit is in seconds.

With `--optima`, the bounds of random problems are compared with the optima that `cp-sat` proves within 4 s: 10 to 21
tasks, 2 to 5 devices, 4 tasks per layer, CCR 0.5, 1, 3 or 8. Seeds are 0, 1, ...; those with an odd seed are irregular
with work over 1.5 decades, the others layered with a memory tightness of 0.3, 0.6 or 0.9.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt import engine
from placeopt.bounding.destructive import destructive_bound, largest, propagation
from placeopt.bounding.quick import best_bound, narrowed_classes
from placeopt.bounding.quick.paths import windows
from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.problem import Problem
from placeopt.passes import EXACT_PASSES, apply_passes
from placeopt.protocol import Termination

PROBLEMS = Path(__file__).parents[1] / "problems"
FILES = ("heft-10", "peft-10", "gnmt", "inception-medium", "inception-tight", "resnet50-medium", "resnet50-tight")
SHAPES = (
    (1000, 20, 3, 1.0), (1000, 20, 3, 5.0), (1000, 20, 3, 10.0), (3000, 60, 1, 1.0), (3000, 60, 2, 1.0),
    (3000, 60, 3, 1.0), (3000, 60, 3, 5.0), (3000, 60, 3, 10.0), (10000, 60, 1, 1.0), (10000, 60, 3, 1.0),
    (10000, 60, 3, 10.0), (36000, 60, 1, 1.0), (36000, 60, 2, 1.0), (36000, 60, 3, 1.0), (36000, 60, 3, 10.0),
    (36000, 6, 3, 10.0),
)  # fmt: skip
"""Tasks, devices, reach, CCR."""


def instances() -> dict[str, Callable[[], Problem]]:
    """The problems by name."""
    found: dict[str, Callable[[], Problem]] = {name: partial(po.load, PROBLEMS / f"{name}.yaml") for name in FILES}
    for tasks, devices, reach, ccr in SHAPES:
        name = f"{tasks:,} x {devices}, reach {reach}, CCR {ccr:g}"
        found[name] = partial(irregular_problem, tasks, devices, reach=reach, ccr=ccr)
    return found


def compare(count: int, limit: float) -> None:
    """Print how the bounds of random problems compare with their optima."""
    optima = 0
    tight, share = np.zeros(2, dtype=np.int64), np.zeros(2)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        tasks, devices = int(rng.integers(10, 22)), int(rng.integers(2, 6))
        ccr, tightness = float(rng.choice([0.5, 1, 3, 8])), float(rng.choice([0.3, 0.6, 0.9]))
        if seed % 2:
            problem = irregular_problem(tasks, devices, width=4, decades=1.5, ccr=ccr, seed=seed)
        else:
            problem = layered_problem(tasks, devices, width=4, ccr=ccr, tightness=tightness, seed=seed)
        result = po.solve(problem, "cp-sat", time_limit=4, workers=1)
        if result.termination is not Termination.OPTIMAL:
            continue
        optimum, quick = int(result.objective), int(best_bound(problem).value)
        found = np.array([quick, max(quick, int(destructive_bound(problem, quick, seconds=limit).value))])
        assert (found <= optimum).all()
        optima += 1
        tight += found == optimum
        share += found / optimum
    for name, equal, mean in zip(("best quick bound", "destructive"), tight, share / max(optima, 1), strict=True):
        print(f"{name}: the optimum of {equal} of {optima} problems, on average {mean:.1%} of it")


def main() -> None:
    """Bound all instances and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=float, default=10.0, help="seconds")
    parser.add_argument("--only", default="", metavar="TEXT", help="only instances whose names contain it")
    parser.add_argument("--optima", type=int, metavar="COUNT", help="compare with the optima of random problems")
    asked = parser.parse_args()
    if asked.optima:
        compare(asked.optima, asked.limit)
        return
    table = Table(title=f"at most {asked.limit:g} s each")
    for header in ("instance", "quick", "without probing", "destructive", "gain", "CPU s"):
        table.add_column(header, justify="left" if header == "instance" else "right")
    for name, read in instances().items():
        if asked.only not in name:
            continue
        problem = apply_passes(read(), EXACT_PASSES).problem
        quick = int(best_bound(problem).value)
        begun = time.process_time()
        value = max(quick, int(destructive_bound(problem, quick, seconds=asked.limit).value))
        seconds = time.process_time() - begun
        classes = narrowed_classes(problem)
        plain = largest(propagation(classes, windows(classes)), quick, None, engine.Stop(), (0,))
        cells = f"{quick:,}", f"{plain:,}", f"{value:,}", f"{value / quick - 1:.2%}", f"{seconds:.1f}"
        table.add_row(name, *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
