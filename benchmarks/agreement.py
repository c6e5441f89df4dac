"""Check whether brute-force, cp-sat and milp agree on random problems that combine all constraints.

    python benchmarks/agreement.py [--problems 1000] [--seed 0] [--engine highs] [--modes]

The problems come from `small_problem` in tests/support/brute_force.py: up to five tasks on three devices, with
infeasible devices, groups, separation, capacities, shared outputs, different links, all contention models, both memory
models, every metric, weighted sums and lists. Two thirds of them have release times and deadlines, half of them
resources, budgets and parallel devices, some unavailable devices, setup times, shared links and limits of metrics. With
`--modes`, they are documents with modes and teams from tests/support/brute_force_modes.py, and the optimum is that of
the document. The solvers run without the pipeline and without a warm start, so that only their own model proves their
claims. The verifier checks each schedule, and no quick bound may be above the optimum. Each solver has one worker and a
limit of 60 s. A disagreement is printed together with the complete problem, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from placeopt.bounding import quick
from placeopt.errors import SpecError
from placeopt.io.compiler import compile_spec
from placeopt.model.building import with_changes
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.orchestration.settings import read_settings
from placeopt.protocol import Answer, Options, Termination, unsupported
from placeopt.protocol.registry import find_solver
from placeopt.verifier import verify

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from brute_force import METRICS, optimum, small_problem, with_resources, with_setups, with_shared_links, with_windows
from brute_force_modes import best_value, random_document

LIMIT = 60.0


def disagreement(problem: Problem, answer: Answer, best: tuple[Any, ...] | None) -> str | None:
    """The error in an answer, given the optimum (None: infeasible); None if the answer is correct."""
    if best is None:
        return None if answer.termination is Termination.INFEASIBLE else f"{answer.termination}, expected infeasible"
    if answer.termination is not Termination.OPTIMAL or answer.schedule is None:
        return f"{answer.termination} ({answer.message}), expected optimal with {best}"
    report = verify(problem, answer.schedule)
    if not report.feasible or report.objective != best:
        return f"{report.objective}, feasible: {report.feasible}; expected {best}"
    return None if answer.bound == best[0] else f"bound {answer.bound}, expected {best[0]}"


def drawn(seed: int) -> Problem:
    """A small problem with further constraints, in turn."""
    rng = np.random.default_rng(seed)
    problem = small_problem(rng, times=seed % 3 > 0)
    if problem.n_tasks and seed % 2:
        problem = with_resources(problem, rng)
    if problem.n_tasks and seed % 5 == 1:
        problem = with_windows(problem, rng)
    if problem.n_devices and seed % 5 == 2:
        problem = with_shared_links(problem, rng)
    if problem.n_tasks and seed // 2 % 3 == 1:
        problem = with_setups(problem, rng)
    if seed % 7 == 1:
        problem = with_changes(problem, objective=Objective(((Term(METRICS[seed % 3 - 3]),),)))
    if problem.n_tasks and seed % 11 == 1:
        problem = with_changes(problem, limits=[("total_cost", int(rng.integers(1, 12)) * problem.n_tasks)])
    return problem


def drawn_with_modes(seed: int) -> tuple[Problem | None, tuple[Any, ...] | None]:
    """A small problem with modes, None if the compiler finds that it is infeasible, and the optimum."""
    document = random_document(np.random.default_rng(seed))
    best = best_value(document)
    try:
        return compile_spec(document), None if best is None else (best,)
    except SpecError:
        return None, None if best is None else (best,)


def features(problem: Problem) -> list[str]:
    """The names of the constraints in a problem."""
    sizes = np.bincount(problem.group)
    found = {
        "feasibility": not problem.feasible.all(),
        "capacity": bool((problem.capacity != UNLIMITED).any()),
        "groups": bool((sizes > 1).any()),
        "separation": bool(len(problem.separation)),
        "release times": bool(problem.release.any()),
        "deadlines": bool((problem.deadline != UNLIMITED).any()),
        "shared outputs": bool(problem.shared.any()),
        "zero durations": bool((problem.duration[problem.feasible] == 0).any()),
        "resources": "resources" in problem.rules,
        "budgets": "budgets" in problem.rules,
        "parallel devices": "parallel" in problem.rules,
        "unavailable devices": "unavailable" in problem.rules,
        "setup times": problem.setups is not None,
        "shared links": problem.shared_links is not None,
        "limits": bool(problem.limits),
        "modes": problem.has_modes,
        "equal devices": len(np.unique(problem.device_class)) < problem.n_devices,
        f"contention {problem.contention}": True,
        f"memory {problem.memory_model}": True,
        "weighted or listed objective": problem.objective.single is None,
    }
    return [name for name, present in found.items() if present]


def dump(problem: Problem) -> str:
    """All fields of a problem as Python code."""
    return "\n".join(f"    {field.name} = {_text(getattr(problem, field.name))}" for field in fields(problem))


def _text(value: Any) -> str:
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def main() -> None:
    """Generate the problems, run the solvers and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem; each further problem adds 1")
    parser.add_argument("--engine", choices=("highs", "scip"), default="highs")
    parser.add_argument("--modes", action="store_true", help="problems with modes and teams")
    asked = parser.parse_args()
    settings: dict[str, dict[str, Any]] = {
        "brute-force": {},
        "cp-sat": {"hint": False},
        "milp": {"hint": False, "engine": asked.engine},
    }
    seconds: Counter[str] = Counter()
    slowest: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for seed in range(asked.seed, asked.seed + asked.problems):
        begun = time.perf_counter()
        if asked.modes:
            problem, best = drawn_with_modes(seed)
        else:
            problem = drawn(seed)
            found = optimum(problem)
            best = None if found is None else found[0]
        seconds["plain Python"] += time.perf_counter() - begun
        if problem is None:
            seen["infeasible for the compiler"] += 1
            wrong["compiler"] += best is not None
            continue
        seen.update(["feasible"] if best is not None else ["infeasible"])
        seen.update(features(problem))
        for bound in quick.bounds(problem) if best is not None else ():
            if bound.value > best[0]:
                wrong[bound.name] += 1
                print(f"seed {seed}: {bound.name}: {bound.value}, where the optimum is {best[0]}\n{dump(problem)}")
        for name, values in settings.items():
            solver = find_solver(name)
            if unsupported(solver.info, problem) is not None:
                continue
            begun = time.perf_counter()
            options = Options(time_limit=LIMIT, seed=seed, workers=1)
            answer = solver.solve(problem, options, read_settings(solver, values))
            taken = time.perf_counter() - begun
            seconds[name] += taken
            slowest[name] = max(slowest[name], taken)
            if "more than the limit" in answer.message:
                continue  # brute-force refuses it
            tried[name] += 1
            what = disagreement(problem, answer, best)
            if what is not None:
                wrong[name] += 1
                print(f"seed {seed}: {name}: {what}\n{dump(problem)}")
    table = Table(title=f"{asked.problems} random problems from seed {asked.seed}, milp with {asked.engine}")
    for header in ("solver", "agrees", "seconds", "slowest"):
        table.add_column(header, justify="left" if header == "solver" else "right")
    table.add_row("plain Python", "", f"{seconds['plain Python']:.1f}", "")
    for name in settings:
        agrees = f"{tried[name] - wrong[name]} of {tried[name]}"
        table.add_row(name, agrees, f"{seconds[name]:.1f}", f"{slowest[name]:.2f}")
    console = Console()
    console.print(table)
    console.print("problems with: " + ", ".join(f"{name} {count}" for name, count in seen.most_common()))
    print(f"bounds above the optimum: {sum(count for name, count in wrong.items() if name not in settings)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
