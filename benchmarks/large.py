"""Measure schedules of large graphs: makespans, certified gaps, moves, memory, and what workers on a cluster add.

    python benchmarks/large.py [schedules] [models] [moves] [memory] [workers] [--limit 60] [--reach 3]
        [--seeds 1]

All parts run unless some are named.

    schedules  `irregular`, 3,000, 10,000 and 36,000 tasks on 60 devices, and 36,000 on 6 devices at CCR 10: the whole
               command `placeopt solve FILE --time-limit` in a fresh process with 2 workers, beside the best of the
               classic list schedulers
    models     the same 3,000 tasks at CCR 5 with ports, with live memory, with groups and separation: forward-backward,
               multilevel and annealing, 20 s each with one worker
    moves      evaluated moves per second and makespans of searches by moves (`window_search.py`)
    memory     a million tasks on 64 devices, from the file to the plan (`large_memory.py`)
    workers    10,000 tasks on 60 devices with 8 local Dask workers, and with one process (`clusters.py solve`)

The limit includes reading the file: the command gets what remains after START seconds. Machines are noisy:
quote medians of several runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import clusters
import large_memory
import numpy as np
import window_search
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.irregular_graphs import irregular_document, irregular_problem
from placeopt.model.building import with_changes
from placeopt.model.problem import Problem

PARTS = ("schedules", "models", "moves", "memory", "workers")

INSTANCES = ((3000, 60, 1.0), (10_000, 60, 1.0), (36_000, 60, 1.0), (36_000, 6, 10.0))
"""Tasks, devices and CCR."""

CLASSIC = ("heft", "peft", "cpop", "etf", "min-min", "max-min", "sufferage", "lookahead-heft", "dsc")

START = 4.0
"""Seconds of the limit for imports, reading, verifying and writing."""

console = Console(width=150)


def schedules(limit: float, seeds: int, reaches: list[int]) -> None:
    """Print makespans and gaps of the whole command, and those of the best classic list scheduler."""
    table = Table("tasks", "devices", "CCR", "reach", "classic", "auto", "gain", "bound", "gap", "command")
    for tasks, devices, ccr in INSTANCES:
        for reach in reaches:
            runs = []
            for seed in range(seeds):
                options = {"tasks": tasks, "devices": devices, "ccr": ccr, "reach": reach, "seed": seed}
                classic, name = best_classic(irregular_problem(**options))
                found, seconds = solved(irregular_document(**options), limit)
                runs.append((found["objective"] / classic, found, classic, name, seconds))
            _, found, classic, name, seconds = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
            value, bound = found["objective"], found["bound"]
            table.add_row(
                f"{tasks:,}", str(devices), f"{ccr:g}", str(reach), f"{classic:,} ({name})", f"{value:,.0f}",
                f"{1 - value / classic:.1%}", f"{bound:,.0f}", f"{value / bound - 1:.2%}", f"{seconds:.1f} s",
            )  # fmt: skip
    console.print(table)


def best_classic(problem: Problem) -> tuple[int, str]:
    """Return the shortest makespan of the classic list schedulers, in ticks, and its solver."""
    return min((int(po.solve(problem, name).objective), name) for name in CLASSIC)


def solved(document: dict, limit: float) -> tuple[dict, float]:
    """Return the JSON of `placeopt solve`, with objective and bound in ticks, and the seconds of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        path.write_text(json.dumps(document))
        begun = time.monotonic()
        words = [
            "solve",
            str(path),
            "--solver",
            "auto",
            "--time-limit",
            f"{limit - START:g}s",
            "--workers",
            "2",
            "--json",
        ]
        text = subprocess.run([sys.executable, "-m", "placeopt", *words], capture_output=True, text=True, check=True)
        return json.loads(text.stdout), time.monotonic() - begun


def models(limit: float, seeds: int) -> None:
    """Print makespans under other models of contention, memory and groups."""
    table = Table("model", "heft", "annealing", "forward-backward", "multilevel", "auto")
    for name, problem in variants(irregular_problem(3000, 8, ccr=5.0)).items():
        start = po.solve(problem, "heft")
        row = [name, f"{start.objective:,}"]
        for solver in ("annealing", "forward-backward", "multilevel", "auto"):
            runs = [
                po.solve(problem, solver, time_limit=limit / 3, workers=1, seed=seed, initial=start.schedule).objective
                for seed in range(seeds)
            ]
            row.append(f"{median(runs):,.0f} ({1 - median(runs) / start.objective:.1%})")
        table.add_row(*row)
    console.print(table)


def variants(problem: Problem) -> dict[str, Problem]:
    """Return a problem under other models, with memory for about 1.3 times what its tasks need."""
    random = np.random.default_rng(0)
    n, m = problem.n_tasks, problem.n_devices
    resident, output = random.integers(1, 100, n), random.integers(1, 100, n)
    group = np.arange(n)
    group[1:][random.random(n - 1) < 0.1] -= 1  # some tasks share the device of the task before
    apart = random.choice(n, (200, 2), replace=False) if n >= 400 else np.empty((0, 2), dtype=np.int64)
    apart = apart[group[apart[:, 0]] != group[apart[:, 1]]]
    tight = with_changes(problem, resident=resident, capacity=np.full(m, int(1.3 * resident.sum() / m)))
    live = with_changes(
        problem,
        resident=resident,
        output=output,
        capacity=np.full(m, int(1.3 * resident.sum() / m)),
        memory_model="peak",
    )
    return {
        "no contention": problem,
        "ports": replace(problem, contention="port"),
        "memory (sum)": tight,
        "memory (peak)": live,
        "groups, separation": with_changes(problem, group=group, separation=apart),
    }


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of the whole command")
    parser.add_argument("--reach", type=int, nargs="+", default=[3], help="layers back from which producers are drawn")
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    for part in asked.part or PARTS:
        console.rule(part)
        if part == "schedules":
            schedules(asked.limit, asked.seeds, asked.reach)
        elif part == "models":
            models(asked.limit, asked.seeds)
        elif part == "moves":
            window_search.compare((3000, 10_000, 36_000), 60, (10.0, 30.0))
        elif part == "memory":
            large_memory.memory()
        else:
            clusters.solve(console, 8, round(asked.limit), {})


if __name__ == "__main__":
    main()
