"""Measure the extensions of submodular placement: memory, communication, and large problems.

    python benchmarks/submodular_extensions.py [extensions] [speed]

Both sections run unless some are named. All results but times are deterministic; the layered graphs have seed 0. CPU
time is that of one thread, from the compiled problem to the schedule: one run, with the code compiled by a small
problem before. `papers/carbonari.py` has the tables of the paper.

extensions  the effect of the settings `memory` and `communication` with scarce memory or expensive transfers: memory
            violations, makespan, and the gap to the best bound that `placeopt.bounds` proves in BOUND_SECONDS.
speed       36,000 tasks and more on 60 devices.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from carbonari_graphs import FILES
from heuristics_36000 import transformer
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.memory import used_memory
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.protocol import Options, checked_settings
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime

RUNS = 5
BOUND_SECONDS = 10.0
MIB = 1 << 20

Variant = tuple[str, str, dict[str, Any]]
"""Label, solver and settings."""
AS_PUBLISHED = {"memory": "unlimited"}
BOTH = {"memory": "step", "communication": True}
VARIANTS: tuple[Variant, ...] = (
    ("heuristic-g", "heuristic-g", {}),
    ("submodular-g, model of the paper", "submodular-g", AS_PUBLISHED),
    ("    both", "submodular-g", BOTH),
    ("submodular-gi, model of the paper", "submodular-gi", AS_PUBLISHED),
    ("    memory", "submodular-gi", {"memory": "step"}),
    ("    communication", "submodular-gi", AS_PUBLISHED | {"communication": True}),
    ("    both", "submodular-gi", BOTH),
    ("    both, cap=total", "submodular-gi", BOTH | {"cap": "total"}),
    ("    model of the paper, cap=search", "submodular-gi", AS_PUBLISHED | {"cap": "search"}),
)
LARGE: tuple[Variant, ...] = (
    ("heuristic-g", "heuristic-g", {}),
    ("submodular-g", "submodular-g", {}),
    ("submodular-gi", "submodular-gi", {}),
    ("    both, cap=total", "submodular-gi", BOTH | {"cap": "total"}),
)
BAECHI = network_document("v100x4", bandwidth="5.701 GB/s", latency="134 us")


def main() -> None:
    """Measure and print the sections that the arguments name."""
    sections: dict[str, Callable[[Console], None]] = {
        "extensions": extensions,
        "speed": speed,
    }
    names = sys.argv[1:] or list(sections)
    unknown = [name for name in names if name not in sections]
    if unknown:
        sys.exit(f"unknown section {unknown[0]}; expected {', '.join(sections)}")
    console = Console(width=170)
    for name in names:
        sections[name](console)


def placed(
    problem: Problem, name: str, settings: dict[str, Any], runs: int = RUNS, *, warm: bool = True
) -> tuple[float, Schedule | None]:
    """Median CPU seconds of a solver, and its schedule after re-timing."""
    solver = find_solver(name)
    chosen = checked_settings(name, solver.settings_type, settings)
    seconds = []
    if warm:
        answer = solver.solve(problem, Options(), chosen)
    for _ in range(runs):
        begin = time.thread_time()
        answer = solver.solve(problem, Options(), chosen)
        seconds.append(time.thread_time() - begin)
    schedule = answer.schedule
    return statistics.median(seconds or [0.0]), None if schedule is None else retime(problem, schedule)


def hard_problems() -> Iterator[tuple[str, Problem]]:
    """Problems with scarce memory, expensive communication, or both, with their titles."""
    for name in ("vgg19-tight", "resnet50-tight", "inception-tight"):
        yield f"{name}\nmemory", po.load(FILES / f"{name}.yaml")
    for batch, what in ((256, "memory, communication"), (32, "communication")):
        document = model_document("inception_v3", training=True, batch=batch) | BAECHI
        yield f"inception-v3 training,\nbatch {batch}, 4 V100\n{what}", po.compile(document)
    document = model_document("lstm_nmt", training=True, batch=64, layers=4, width=1024) | BAECHI
    yield "lstm_nmt training,\nbatch 64, 4 V100\ncommunication", po.compile(document)
    yield "gnmt\ncommunication", po.load(FILES / "gnmt.yaml")
    yield "layered, 2,000 tasks,\n8 devices, CCR 10\ncommunication", layered_problem(2000, 8, ccr=10.0)
    yield (
        "layered, 2,000 tasks,\n8 devices, CCR 10,\n90 % full\nmemory, communication",
        layered_problem(2000, 8, ccr=10.0, tightness=0.9),
    )


def extensions(console: Console) -> None:
    """Effect of the settings on problems that violate the assumptions of the paper."""
    table = Table(title=f"scarce memory and expensive transfers; bounds after {BOUND_SECONDS:g} s")
    for header in ("problem", "solver"):
        table.add_column(header)
    for header in ("feasible", "MiB over", "makespan, ms", "/ -gi, paper", "/ heft", "bound, ms", "gap"):
        table.add_column(header, justify="right")
    for title, problem in hard_problems():
        bound = float(po.bounds(problem, time_limit=BOUND_SECONDS, workers=1)[0].value)
        tick = float(problem.resolution) * 1000
        reference = [
            po.solve(problem, "submodular-gi", **AS_PUBLISHED).makespan,
            po.solve(problem, "heft").makespan,
        ]
        for index, (label, name, settings) in enumerate(VARIANTS):
            result = po.solve(problem, name, **settings)
            first, last = index == 0, index == len(VARIANTS) - 1
            cells = [title if first else "", label]
            if result.schedule is None or result.makespan is None:
                table.add_row(*cells, "none", *[""] * 6, end_section=last)
                continue
            over = np.maximum(used_memory(problem, result.schedule) - problem.capacity, 0)
            table.add_row(
                *cells,
                "yes" if result.feasible else "no",
                f"{over.sum() / MIB:,.1f}",
                f"{result.makespan * tick:,.3f}",
                *(ratio(result.makespan, other) for other in reference),
                f"{bound * tick:,.3f}" if first else "",
                f"{(result.makespan - bound) / result.makespan * 100:.1f} %" if result.feasible else "",
                end_section=last,
            )
    console.print(table)


def ratio(length: int, other: int | None) -> str:
    """The ratio of two makespans."""
    return "-" if not other else f"x {length / other:.3f}"


def speed(console: Console) -> None:
    """CPU time of large problems."""
    problems = {"layered": layered_problem(36_000, 60, ccr=1.0), "transformer": transformer(60)}
    table = Table(title="CPU seconds of one thread, and makespan / makespan of heuristic-g; 60 devices")
    table.add_column("solver")
    for name, problem in problems.items():
        table.add_column(f"{name}\n{problem.n_tasks:,} tasks\n{problem.n_edges:,} edges", justify="right")
    reference = {}
    tiny = layered_problem(1000, 60, ccr=1.0)
    for label, name, settings in LARGE:
        cells = []
        placed(tiny, name, settings, 0)  # loads the solver
        for key, problem in problems.items():
            seconds, schedule = placed(problem, name, settings, 1, warm=False)
            length = None if schedule is None else makespan(problem, schedule)
            reference.setdefault(key, length)
            cells.append(f"{seconds:.3f}  {'none' if length is None else ratio(length, reference[key])}")
        table.add_row(label, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
