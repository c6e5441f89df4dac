"""Record what heuristics return on many problems, and compare it after a change of the code.

    python benchmarks/recorded_runs.py record FILE [SOLVER ...]
    python benchmarks/recorded_runs.py compare FILE

Each run is one heuristic with default settings on one problem, without presolve. The record holds its termination, its
makespan, and a hash of the message, the device and the start of every task, and of every transfer. `compare` runs the
same pairs again, prints each difference, and exits with 1 if there is one.

There are 150 problems: those of problems/ that are about the makespan, layered graphs of 300 and 2,000 tasks, graphs of
24 tasks with all constraints (tests/support/constrained_problems.py), and one to five tasks with amounts up to the
documented limits (tests/support/large_amounts.py). They cover all contention models, both memory models, scarce memory,
memory tiers, groups, separation, release times and deadlines.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import with_changes
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import makespan
from placeopt.solver import Answer, Options
from placeopt.solver.registry import find_solver

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

SOLVERS = (
    "heft", "peft", "cpop", "mct", "met", "olb", "bil", "hbmct", "lookahead-heft", "m-topo",
    "etf", "m-etf", "m-sct", "gdl", "fcp", "flb", "wba", "min-min", "max-min", "duplex", "sufferage",
    "heuristic-g", "simple-placer", "topo-fill", "single", "celeritas", "order-place", "dsc", "lc",
)  # fmt: skip
CONTENTIONS = ("none", "port", "half_duplex")
MEMORY_MODELS = ("sum", "peak")


def problems() -> Iterator[tuple[str, Problem]]:
    """Yield each problem with its name."""
    from constrained_problems import constrained
    from large_amounts import large_problem

    for path in sorted((ROOT / "problems").glob("*.yaml")):
        problem = po.load(path)
        if problem.pipeline is None:
            yield f"problems/{path.name}", problem
    for seed in range(6):
        yield f"layered 300, seed {seed}", layered_problem(300, 4, ccr=1.0, seed=seed)
    yield "layered 2000 x 8", layered_problem(2000, 8, ccr=1.0, device_types=2)
    yield "layered 2000 x 8 in 3 layers", layered_problem(2000, 8, layers=3)
    for contention in CONTENTIONS:
        for model in MEMORY_MODELS:
            drawn = layered_problem(300, 4, ccr=1.0, tightness=0.8, seed=7)
            nothing = np.zeros(300, dtype=np.int64)
            held = {"resident": nothing, "output": drawn.resident} if model == "peak" else {}
            for room in (2, 12) if model == "peak" else (1,):
                changes = {**held, "capacity": drawn.capacity // room, "contention": contention, "memory_model": model}
                yield f"layered {contention} {model} / {room}", with_changes(drawn, **changes)
            for seed in range(8):
                problem = constrained(seed, contention=contention, memory_model=model)
                yield f"constrained {contention} {model} {seed}", problem
                if seed < 2:
                    due = np.arange(20, 20 + 8 * problem.n_tasks, 8)
                    yield f"constrained {contention} {model} {seed} due", with_changes(problem, deadline=due)
    for seed in range(64):
        yield f"large amounts {seed}", large_problem(seed, Objective(), bound=seed % 4 == 0)


def outcome(problem: Problem, answer: Answer) -> dict[str, Any]:
    """Return what the record holds of an answer."""
    digest = hashlib.sha256(answer.message.encode())
    found = answer.schedule
    if found is not None:
        digest.update(found.device.tobytes() + found.start.tobytes())
        if found.transfers is not None:
            digest.update(found.transfers.edge.tobytes() + found.transfers.start.tobytes())
    length = None if found is None else makespan(problem, found)
    return {"termination": answer.termination.name, "makespan": length, "hash": digest.hexdigest()[:16]}


def run(names: list[str]) -> dict[str, dict[str, Any]]:
    """Run each heuristic on each problem."""
    found = {}
    for title, problem in problems():
        for name in names:
            solver = find_solver(name)
            answer = solver.solve(problem, Options(), solver.settings_type())
            found[f"{name} | {title}"] = outcome(problem, answer)
    return found


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("solvers", nargs="*", help=f"by default {', '.join(SOLVERS)}")
    arguments = parser.parse_args()
    console = Console()
    if arguments.what == "record":
        found = run(arguments.solvers or list(SOLVERS))
        arguments.file.write_text(json.dumps(found, indent=0) + "\n")
        console.print(f"{len(found)} runs on {len({key.split(' | ')[1] for key in found})} problems recorded")
        return 0
    before = json.loads(arguments.file.read_text())
    names = arguments.solvers or list(dict.fromkeys(key.split(" | ")[0] for key in before))
    after = run(names)
    before = {key: value for key, value in before.items() if key.split(" | ")[0] in names}
    different = [key for key in before | after if before.get(key) != after.get(key)]
    for key in different:
        console.print(f"{key}: {before.get(key)} before, {after.get(key)} now")
    console.print(f"{len(after)} runs, {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
