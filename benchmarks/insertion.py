"""Compare variants of heuristics for independent tasks: with and without gaps (`insertion`), and batches (`batches`).

    python benchmarks/insertion.py [--part quality|speed] [--save FILE]

quality     The geometric mean of the makespan over GRAPHS graphs of each kind (seeds from 0), as a multiple of the
            variant without gaps and batches. Layered graphs have 60 tasks and 4 devices of unlike speed, without
            latency. In trees of 60 tasks, each task but the first has one predecessor, of the eight tasks before it.
            Random graphs have 60 tasks and 8 devices (placeopt/generate/random_graphs.py).
speed       CPU seconds on layered graphs of 36,000 tasks, the median of five runs on one thread, and the makespan as a
            multiple of heft's.

`--save FILE` writes all makespans of the part quality to a JSON file, to compare them with other programs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.random_graphs import random_document
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import makespan
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver

GRAPHS = 100
RUNS = 5
READY = ("min-min", "max-min", "duplex", "sufferage")
ORDERED = ("mct", "met", "olb")
VARIANTS = ((False, False), (False, True), (True, False), (True, True))
"""Values of `insertion` and `batches`; solvers in ORDERED have only the former."""


def variants(solver: str) -> Iterator[dict[str, bool]]:
    """Yield the settings of a solver, the one without gaps and batches first."""
    for insertion, batches in VARIANTS:
        if solver in READY:
            yield {"insertion": insertion, "batches": batches}
        elif not batches:
            yield {"insertion": insertion}


def graphs() -> dict[str, list[Problem]]:
    """The problems of each kind."""
    kinds: dict[str, list[Problem]] = {}
    for ccr in (0.2, 1.0, 5.0):
        kinds[f"layered, CCR {ccr:g}"] = [
            layered_problem(60, 4, ccr=ccr, seed=seed, duration=(100_000, 1_000_000), latency=0)
            for seed in range(GRAPHS)
        ]
    for ccr in (0.2, 1.0, 5.0):
        each = kinds[f"layered, CCR {ccr:g}"]
        kinds[f"with ports, CCR {ccr:g}"] = [replace(problem, contention="port") for problem in each]
    kinds["trees, CCR 5"] = [tree(seed, 5.0) for seed in range(GRAPHS)]
    kinds["random"] = [po.compile(random_document(60, 8, seed=seed)) for seed in range(GRAPHS)]
    return kinds


def tree(seed: int, ccr: float, n: int = 60, m: int = 4) -> Problem:
    """A random tree from the root down, on devices whose durations are not related."""
    rng = np.random.default_rng(seed)
    duration = np.rint(rng.integers(100, 1000, (n, 1)) * rng.uniform(0.5, 1.5, (n, m))).astype(np.int64)
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=duration,
        edges=[(int(rng.integers(max(0, i - 8), i)), i) for i in range(1, n)],
        payload=np.rint(rng.integers(100, 1000, n - 1) * ccr).astype(np.int64),
        byte_ticks_num=1 - np.eye(m, dtype=np.int64),
    )


def length(solver: str, problem: Problem, settings: dict[str, bool]) -> int:
    """The makespan of a variant."""
    chosen = find_solver(solver)
    schedule = chosen.solve(problem, Options(), chosen.settings_type(**settings)).schedule
    assert schedule is not None
    return makespan(problem, schedule)


def quality(console: Console, file: Path | None) -> None:
    """Print the mean makespans of all variants."""
    kinds = graphs()
    table = Table("solver", "settings", *kinds, title="makespan / makespan without gaps and batches")
    saved: dict[str, dict[str, list[int]]] = {}
    for solver in READY + ORDERED:
        first: dict[str, np.ndarray] = {}
        for settings in variants(solver):
            cells = []
            for kind, problems in kinds.items():
                found = [length(solver, problem, settings) for problem in problems]
                saved.setdefault(f"{solver} {settings}", {})[kind] = found
                logs = np.log(found)
                cells.append(f"{np.exp((logs - first.setdefault(kind, logs)).mean()):.3f}")
            table.add_row(solver, ", ".join(key for key, value in settings.items() if value) or "neither", *cells)
    console.print(table)
    if file is not None:
        file.write_text(json.dumps(saved), encoding="utf-8")


def speed(console: Console) -> None:
    """Print the CPU seconds of all variants."""
    table = Table("solver", "settings", "4 devices", "60 devices", title="CPU seconds, makespan / makespan of heft")
    problems = [layered_problem(36_000, m, ccr=1.0) for m in (4, 60)]
    reference = [length("heft", problem, {}) for problem in problems]
    for solver in READY + ORDERED:
        for settings in variants(solver):
            cells = []
            for problem, least in zip(problems, reference, strict=True):
                length(solver, problem, settings)  # compiles
                seconds, ticks = [], 0
                for _ in range(RUNS):
                    begin = time.thread_time()
                    ticks = length(solver, problem, settings)
                    seconds.append(time.thread_time() - begin)
                cells.append(f"{statistics.median(seconds):.3f}  x{ticks / least:.2f}")
            table.add_row(solver, ", ".join(key for key, value in settings.items() if value) or "neither", *cells)
    console.print(table)


def main() -> None:
    """Run one part or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["quality", "speed"])
    parser.add_argument("--save", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    console = Console(width=160)
    if arguments.part != "speed":
        quality(console, arguments.save)
    if arguments.part != "quality":
        speed(console)


if __name__ == "__main__":
    main()
