"""Record what heuristics, searches and bounds return on many problems, and compare it after a change of the code.

    python benchmarks/recorded_runs.py record FILE [NAME ...]
    python benchmarks/recorded_runs.py compare FILE [NAME ...]

Each run is one solver or bound on one problem, without presolve. Heuristics have default settings, searches a number of
moves and one worker. The record holds the termination, the objective, and a hash of the message, the device and the
start of every task, and of every transfer; of a bound its value and its reason. `compare` runs the same pairs again,
prints each difference, and exits with 1 if there is one.

There are 157 problems: those of problems/ that are about the makespan, layered graphs of 300 and 2,000 tasks, graphs of
24 tasks with all constraints (tests/support/constrained_problems.py), and one to five tasks with amounts up to the
documented limits (tests/support/large_amounts.py). They cover all contention models, both memory models, scarce memory,
memory tiers, groups, separation, release times and deadlines. Solvers of pipelines run on 120 random pipelines
(tests/support/pipelines.py).
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
from placeopt.bounding import quick
from placeopt.bounding.destructive import destructive_bound
from placeopt.bounding.energetic import energetic_bound
from placeopt.bounding.sct.bound import sct_bound
from placeopt.errors import PlaceoptError
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import with_changes
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem
from placeopt.protocol import Answer, Options
from placeopt.protocol.registry import find_solver

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

HEURISTICS = (
    "heft", "peft", "cpop", "mct", "met", "olb", "bil", "hbmct", "lookahead-heft", "m-topo",
    "etf", "m-etf", "m-sct", "gdl", "fcp", "flb", "wba", "min-min", "max-min", "duplex", "sufferage",
    "heuristic-g", "simple-placer", "topo-fill", "single", "celeritas", "order-place", "dsc", "lc", "metis",
    "submodular-g", "submodular-gi", "random",
)  # fmt: skip
SEARCHES: dict[str, dict[str, Any]] = {
    "annealing": {"rounds": 3000}, "local-search": {"rounds": 3000}, "tabu": {"rounds": 60},
    "forward-backward": {"patience": 1}, "random-task-eft": {"steps": 40, "restarts": 1},
    "giph": {"steps": 20, "restarts": 1, "searches": 1},
}  # fmt: skip
LARGE: dict[str, dict[str, Any]] = {"windows": {"patience": 1}, "multilevel": {"patience": 1}}
PIPELINES: dict[str, dict[str, Any]] = {"chains": {}, "ideals": {}, "dpl": {}, "stage-search": {"moves": 3000}}
SETTINGS = {**{name: {} for name in HEURISTICS}, **SEARCHES, **LARGE, **PIPELINES}
LIMITS = {"random-task-eft": 300, "giph": 30, "tabu": 300, "local-search": 300, "windows": 300, "multilevel": 300}
BOUNDS = ("quick", "infeasibility", "energetic", "destructive", "sct")
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


def pipelines() -> Iterator[tuple[str, Problem]]:
    """Yield each pipeline with its name."""
    from pipelines import random_pipeline, unlike_pipeline

    for path in sorted((ROOT / "problems").glob("*.yaml")):
        problem = po.load(path)
        if problem.pipeline is not None:
            yield f"problems/{path.name}", problem
    for seed in range(60):
        yield f"random pipeline {seed}", random_pipeline(seed)
        yield f"unlike pipeline {seed}", unlike_pipeline(seed)


def outcome(problem: Problem, answer: Answer) -> dict[str, Any]:
    """Return what the record holds of an answer."""
    digest = hashlib.sha256(answer.message.encode())
    found = answer.schedule
    if found is not None:
        digest.update(found.device.tobytes() + found.start.tobytes())
        if found.transfers is not None:
            digest.update(found.transfers.edge.tobytes() + found.transfers.start.tobytes())
    value = None if found is None else [str(each) for each in evaluate(problem, found)]
    hashed = digest.hexdigest()[:16]
    return {"termination": answer.termination.name, "objective": value, "bound": str(answer.bound), "hash": hashed}


def solved(name: str, problem: Problem) -> dict[str, Any]:
    """Run a solver; the record of a problem that it does not support, or that it refuses, is the reason."""
    solver = find_solver(name)
    try:
        answer = solver.solve(problem, Options(), solver.settings_type(**SETTINGS[name]))
    except PlaceoptError as error:
        return {"refused": str(error)}
    return outcome(problem, answer)


def bounded(name: str, problem: Problem) -> Any:
    """Return what the record holds of a bound."""
    if name == "infeasibility":
        proof = quick.prove_infeasible(problem)
        return None if proof is None else proof.reason
    try:
        if name == "quick":
            return sorted([each.name, str(each.value), each.explanation] for each in quick.bounds(problem))
        if name == "sct":
            return str(sct_bound(quick.narrowed_classes(problem))[0])
        bound = energetic_bound(problem, 0) if name == "energetic" else destructive_bound(problem, 0, seconds=None)
    except PlaceoptError as error:
        return {"refused": str(error)}
    return [str(bound.value), bound.explanation]


def suits(name: str, problem: Problem) -> bool:
    """Whether a run of this name is recorded for a problem."""
    if name in BOUNDS:
        if name in ("quick", "infeasibility"):
            return True
        return problem.n_tasks <= 24 and quick.prove_infeasible(problem) is None
    info = find_solver(name).info
    if problem.contention not in info.contentions or problem.memory_model not in info.memory_models:
        return False
    if not set(problem.rules) <= set(info.rules):
        return False
    return problem.n_tasks <= LIMITS.get(name, problem.n_tasks)


def run(names: list[str]) -> dict[str, Any]:
    """Run each solver and bound on each problem."""
    found: dict[str, Any] = {}
    for title, problem in problems():
        for name in names:
            if name not in PIPELINES and suits(name, problem):
                found[f"{name} | {title}"] = bounded(name, problem) if name in BOUNDS else solved(name, problem)
    for title, problem in pipelines():
        for name in filter(PIPELINES.__contains__, names):
            found[f"{name} | {title}"] = solved(name, problem)
    return found


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("names", nargs="*", help=f"by default {', '.join((*SETTINGS, *BOUNDS))}")
    arguments = parser.parse_args()
    console = Console()
    if arguments.what == "record":
        found = run(arguments.names or [*SETTINGS, *BOUNDS])
        arguments.file.write_text(json.dumps(found, indent=0) + "\n")
        console.print(f"{len(found)} runs on {len({key.split(' | ')[1] for key in found})} problems recorded")
        return 0
    before = json.loads(arguments.file.read_text())
    names = arguments.names or list(dict.fromkeys(key.split(" | ")[0] for key in before))
    after = run(names)
    before = {key: value for key, value in before.items() if key.split(" | ")[0] in names}
    different = [key for key in before | after if before.get(key) != after.get(key)]
    for key in different:
        console.print(f"{key}: {before.get(key)} before, {after.get(key)} now")
    console.print(f"{len(after)} runs, {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
