"""Check whether all solvers of pipelines, the verifier and an execution of 1,000 runs agree on random pipelines.

    python benchmarks/pipeline_agreement.py [--problems 2000] [--seed 0] [--runs 1000]

The problems come from `random_pipeline` and `unlike_pipeline` in tests/support/pipelines.py, in turn: up to seven tasks
on four devices, with contiguous, limited and free stages, replicas with gradients, overlap, full duplex, free
transfers, multicast, launches, recomputation, inference and training, 1F1B and GPipe, and memory that binds. Brute
force enumerates all placements. `cp-sat`, `milp` (without a start) and `auto` must prove its period. `ideals`, `chains`
and `dpl` must prove it, or their bound and schedule must be on the right side of it. Each schedule is verified and
executed: the mean time between two results must be the period. Disagreements are printed with the complete problem, and
the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from agreement import dump
from rich.console import Console
from rich.table import Table

import placeopt as po

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from pipelines import random_pipeline, unlike_pipeline

SETTINGS: dict[str, dict[str, Any]] = {
    "cp-sat": {"hint": False}, "milp": {"hint": False}, "auto": {}, "ideals": {}, "chains": {}, "dpl": {},
}  # fmt: skip
EXACT = {"cp-sat", "milp", "auto"}


def disagreement(name: str, result: po.Result, best: po.Result, runs: int) -> str | None:
    """The error in a result, given that of brute force; None if there is none."""
    value, bound = result.objective, result.bound
    if name in EXACT and (result.termination, value) != (best.termination, best.objective):
        return f"{result.termination} with {value}; expected {best.termination} with {best.objective}"
    if best.objective is None:
        return None if value is None else f"{value}; expected no schedule"
    if result.termination is po.Termination.INFEASIBLE or (bound is not None and bound > best.objective):
        return f"{result.termination}, bound {bound}; expected a schedule with {best.objective}"
    if result.schedule is None:
        return None
    if not result.feasible or value is None or value < best.objective:
        return f"{value}, feasible: {result.feasible}; expected at least {best.objective}"
    mean = po.run_pipeline(result.problem, result.schedule, runs).mean
    return None if value - 1 < mean <= value or value == 0 else f"{mean:.3f} ticks between results, expected {value}"


def features(problem: po.Problem) -> list[str]:
    """The names of the rules in a pipeline."""
    rules = problem.pipeline
    assert rules is not None
    found = {
        "contiguous stages": rules.contiguous,
        "replicas": rules.replicas > 1,
        "overlap": rules.overlap.any(),
        "full duplex": rules.full_duplex.any(),
        "free transfers": rules.free_transfers.any(),
        "multicast": rules.multicast,
        "launches": rules.launch.any(),
        "recomputation": rules.recompute,
        f"in flight: {rules.in_flight}": True,
        "training": (problem.forward != range(problem.n_tasks)).any(),
        "memory below a million": (problem.capacity < 10**6).any(),
    }
    return [name for name, present in found.items() if present]


def main() -> None:
    """Generate the problems, run the solvers and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first pair of problems")
    parser.add_argument("--runs", type=int, default=1000)
    asked = parser.parse_args()
    seconds: Counter[str] = Counter()
    proved: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for number in range(asked.problems):
        make, seed = (random_pipeline, unlike_pipeline)[number % 2], asked.seed + number // 2
        problem = make(seed)
        best = po.solve(problem, "brute-force", workers=1)
        seen.update(["infeasible" if best.objective is None else "feasible", *features(problem)])
        for name, settings in {"brute-force": {}, **SETTINGS}.items():
            begun = time.perf_counter()
            result = po.solve(problem, name, workers=1, passes=(), **settings)
            seconds[name] += time.perf_counter() - begun
            proved[name] += result.termination in (po.Termination.OPTIMAL, po.Termination.INFEASIBLE)
            what = disagreement(name, result, best, asked.runs)
            if what is not None:
                wrong[name] += 1
                print(f"{make.__name__}({seed}): {name}: {what}\n{dump(problem)}")
    table = Table(title=f"{asked.problems} random pipelines from seed {asked.seed}, {asked.runs} runs executed")
    for header in ("solver", "agrees", "proved", "seconds"):
        table.add_column(header, justify="left" if header == "solver" else "right")
    for name in ("brute-force", *SETTINGS):
        table.add_row(name, str(asked.problems - wrong[name]), str(proved[name]), f"{seconds[name]:.1f}")
    console = Console()
    console.print(table)
    console.print("problems with: " + ", ".join(f"{name} {count}" for name, count in seen.most_common()))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
