"""Check bounds, exact solvers and metrics with amounts up to the documented limits, against exact arithmetic.

    python benchmarks/limits.py [PART ...] [--each 20000] [--seed 0]

The problems come from tests/support/large_amounts.py: one to five tasks on one to three devices, with all constraints,
memory tiers, all contention models, both memory models and every metric. Sums of ticks, bytes and nanojoules have up to
60 bits. The optimum is that of tests/support/brute_force.py and brute_force_pipelines.py, in Python integers. The parts
are

    metrics     the quick bounds, proofs of infeasibility, the verifier and the evaluation of each metric
    slow        `energetic`, `destructive`, `sct-lp`, `intervals` and the relaxations
    scarce      `lagrangian`, on devices that do not hold all tasks
    exact       `brute-force`, `cp-sat`, `milp` and `series`, with and without the exact passes and hints, in turn
    heuristics  `auto`, `annealing`, `lns`, `memetic`, heuristics and `sct-lp`: no result may contradict the optimum
    pipelines   the bounds and the exact solvers of the period; up to 100 placements, drawn for a slow bound in turn

Each part runs until each bound, solver or metric was tried on `--each` problems. Refused are problems that a solver
calls too large, and not proved are those that it does not solve to optimality; both are tried as well. Wrong is a bound
above the optimum, a claim that the optimum contradicts, a value that is not an exact number, a warning, or an
exception. Each is printed with its seed, and the exit code is 1. Ctrl-C ends the run with the counts so far; `--seed`
with the next seed goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.bounding import quick
from placeopt.bounding.borders import Borders, highest_refuted
from placeopt.bounding.borders.configurations import Configurations
from placeopt.bounding.destructive import destructive_bound
from placeopt.bounding.energetic import energetic_bound
from placeopt.bounding.lagrangian import lagrangian_bound
from placeopt.bounding.relaxation import relaxed_bounds
from placeopt.bounding.sct.bound import sct_bound
from placeopt.model.objective import Value, evaluate, is_exact
from placeopt.model.problem import Objective, Problem, Term
from placeopt.protocol import Clock
from placeopt.proving.intervals import Search
from placeopt.proving.pipelines import period_bounds
from placeopt.verifier import verify

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from brute_force import METRICS, optimum
from brute_force_pipelines import least_period
from large_amounts import large_pipeline, large_problem

LIMIT = 20.0
"""Seconds for a solver."""

SHORT = 0.5
"""Seconds for searches, and for bounds of the period without solvers: what does not come early seldom comes at all."""

EXACT = ("brute-force", "cp-sat", "milp", "series")
HEURISTICS = ("auto", "annealing", "lns", "memetic", "heft", "m-sct", "simple-placer", "sct-lp")
PIPELINES = ("brute-force", "cp-sat", "milp", "ideals", "chains", "dpl", "auto")

Best = tuple[tuple[Value, ...], object] | None
"""The optimum, None of an infeasible problem, and a schedule that has it."""

Check = Iterator[tuple[str, str | None]]
"""What was tried, and what is wrong with it."""

Needed = Callable[[str], bool]
"""Whether something has not been tried often enough."""


def above(value: object, best: Value | None) -> str | None:
    """What is wrong with a lower bound, given the optimum; None of an infeasible problem says nothing."""
    if not is_exact(value):
        return f"{value!r} is not an exact number"
    return f"{value} is above the optimum {best}" if best is not None and value > best else None


SEVERAL = Objective(((Term("makespan", Fraction(2, 3)), Term("energy"), Term("total_cost", Fraction(5))),))


def metrics(seed: int, needed: Needed) -> Check:
    """The quick bounds, and the value of an optimal schedule, under one metric or a weighted sum."""
    objectives = [Objective(), *(Objective(((Term(metric),),)) for metric in METRICS), SEVERAL]
    objective = objectives[seed % len(objectives)]
    makespan, name = objective.single == "makespan", objective.single or "a weighted sum"
    if not any(map(needed, ["swapping", "ports"] if makespan else [f"evaluation of {name}"])):
        return
    problem = large_problem(seed, objective, bound=makespan)
    found = optimum(problem)
    proof = quick.prove_infeasible(problem)
    bounds = quick.bounds(problem)
    if found is None:
        return
    best, schedule = found
    yield "feasible problems", None if proof is None else f"said to be infeasible: {proof.reason}"
    for bound in bounds:
        yield bound.name, above(bound.value, best[0])
    values = {"the verifier": verify(problem, schedule).objective, "evaluation": evaluate(problem, schedule)}
    for who, value in values.items():
        exact = value is not None and all(map(is_exact, value))
        yield f"{who} of {name}", None if exact and value == best else f"{who} has {value!r}, expected {best}"


def slow(seed: int, needed: Needed) -> Check:
    """The slow bounds of the makespan, and the relaxations under any metric."""
    problem = large_problem(seed, Objective() if seed % 4 else None)
    found = optimum(problem)
    if found is None:
        return
    best = found[0][0]
    if problem.objective.single == "makespan" and problem.objective.levels[0][0].weight == 1:
        assert isinstance(best, int)
        yield "energetic", above(energetic_bound(problem, 0, lambda: False).value, best)
        yield "destructive", above(destructive_bound(problem, 0, known=None, seconds=1.0).value, best)
        yield "sct-lp", above(sct_bound(quick.narrowed_classes(problem))[0], best)
        if needed("intervals"):
            proved: list[int] = []
            # Propagation over huge domains may take CP-SAT longer than its deterministic limit.
            clock = Clock(LIMIT)
            Search(problem, known=None, on_bound=proved.append, should_stop=lambda: clock.over).run(1)
            yield "intervals", next(filter(None, (above(each, best) for each in proved)), None)
    if needed("relaxation-lp") or needed("relaxation-mip"):
        relaxed: dict[str, quick.Bound] = {}
        relaxed_bounds(
            problem, known=None, time_limit=LIMIT, workers=1, on_bound=lambda bound: relaxed.update({bound.name: bound})
        )
        for name, bound in relaxed.items():
            yield name, above(bound.value, best)


def scarce(seed: int, needed: Needed) -> Check:
    """The bound of paths and prices, which needs scarce memory."""
    problem = large_problem(seed, Objective(), scarce=needed("lagrangian"))
    priced = lagrangian_bound(problem, None, lambda: False)
    found = None if priced is None else optimum(problem)
    if priced is not None and found is not None:
        yield "lagrangian", above(priced.value, found[0][0])


def exact(seed: int, needed: Needed) -> Check:
    """The exact solvers."""
    problem = large_problem(seed, Objective() if seed % 2 else None)
    yield from solved(problem, EXACT, seed, optimum(problem), needed)


def heuristics(seed: int, needed: Needed) -> Check:
    """Solvers that prove no optimum on their own; their results contain bounds."""
    problem = large_problem(seed, Objective() if seed % 2 else None)
    yield from solved(problem, HEURISTICS, seed, optimum(problem), needed, SHORT)


SLOW = ("borders", "configurations", "division", "ideals", "cp-sat")
"""Slow bounds of the period, the rarest first."""


def pipelines(seed: int, needed: Needed) -> Check:
    """The bounds and the solvers of the period; the pipeline is drawn for a slow bound that lacks trials."""
    lacking = [name for name in SLOW if needed(f"{name} of the period")]
    bound = lacking[seed % len(lacking)] if lacking else None
    problem = large_pipeline(seed, bound)
    best = least_period(problem)
    if best is not None:
        proved = list(quick.bounds(problem))
        if bound == "configurations":  # alone, since others often prove as much before it
            proved.append(quick.Bound(bound, configurations_bound(problem), "", 0.0))
        elif bound is not None:
            named: set[str] = set()

            def add(bound: quick.Bound) -> None:
                proved.append(bound)
                named.add(bound.name)

            exact = bound in ("ideals", "cp-sat")
            clock = Clock(LIMIT if exact else SHORT)
            period_bounds(problem, clock, 1, None, add, lambda: bound in named and not exact, exact=exact)
        for name in dict.fromkeys(bound.name for bound in proved):
            wrong = (above(each.value, best) for each in proved if each.name == name)
            yield f"{name} of the period", next(filter(None, wrong), None)
    found: Best = None if best is None else ((best,), None)
    for name, what in solved(problem, PIPELINES, seed, found, lambda name: needed(f"{name}, period")):
        yield f"{name}, period", what


def configurations_bound(problem: Problem) -> int:
    """The bound of the sets of groups that devices hold, without others."""
    borders = Borders(quick.narrowed_classes(problem))
    sets = Configurations(borders, 1, lambda: False)
    return highest_refuted(lambda period: sets.refute(period, SHORT), 0, None, lambda: False, borders.most)


def solved(
    problem: Problem, names: tuple[str, ...], seed: int, found: Best, needed: Needed, limit: float = LIMIT
) -> Check:
    """The results of solvers, given the optimum, None if there is none."""
    for name in filter(needed, names):
        passes: tuple[str, ...] | None = None if seed % 3 else ()
        settings = {"hint": False} if name in ("cp-sat", "milp") and seed % 5 < 3 else {}
        try:
            result = po.solve(problem, name, time_limit=limit, workers=1, seed=seed, passes=passes, **settings)
        except po.UnsupportedError:
            continue
        if result.termination is po.Termination.INTERRUPTED:
            raise KeyboardInterrupt
        yield from judged(name, result, None if found is None else found[0])


def judged(name: str, result: po.Result, best: tuple[Value, ...] | None) -> Check:
    """What is wrong with a result, given the optimum; what is not proved counts apart, too."""
    termination, values = result.termination, result.values
    what = None
    if result.bound is not None and (wrong := above(result.bound, None if best is None else best[0])):
        what = f"bound {wrong} ({result.bound_source})"
    elif termination is po.Termination.INFEASIBLE:
        what = None if best is None else f"infeasible, expected {best}"
    elif termination is po.Termination.OPTIMAL:
        what = None if values == best else f"optimal with {values}, expected {best}"
    elif result.feasible and best is None:
        what = f"{values}, expected no schedule"
    elif result.feasible and values is not None and best is not None and values < best:
        what = f"{values}, expected at least {best}"
    elif "too large" in result.message:
        yield f"{name} (refused)", None
    else:
        yield f"{name} (not proved)", None
    yield name, what


PARTS: dict[str, Callable[[int, Needed], Check]] = {
    "metrics": metrics, "slow": slow, "scarce": scarce, "exact": exact, "heuristics": heuristics,
    "pipelines": pipelines,
}  # fmt: skip

OPTIONAL = ("trivial", "(refused)", "(not proved)")
"""Counts that need not reach the number asked for."""


def run(part: str, each: int, first: int) -> tuple[Counter[str], Counter[str], int]:
    """Try seeds until everything was tried often enough: how often, how often it was wrong, and the number of seeds."""
    tried: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    seed, begun = first, time.monotonic()
    while True:
        try:
            for name, what in PARTS[part](seed, lambda name: tried[name] < each):
                tried[name] += 1
                if what is not None:
                    wrong[name] += 1
                    print(f"{part}, seed {seed}: {name}: {what}", flush=True)
        except KeyboardInterrupt:
            print(f"{part}: stopped before seed {seed}", file=sys.stderr)
            return tried, wrong, seed - first
        except Exception as error:  # noqa: BLE001 - an exception is what this looks for
            wrong["exceptions"] += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"{part}, seed {seed}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})", flush=True)
        seed += 1
        counted = [count for name, count in tried.items() if not any(what in name for what in OPTIONAL)]
        if seed - first >= each and min(counted, default=each) >= each:
            return tried, wrong, seed - first
        if (seed - first) % 1000 == 0:
            counts = ", ".join(f"{name} {count}" for name, count in sorted(tried.items()))
            print(f"{part}: {seed - first} problems, {time.monotonic() - begun:.0f} s: {counts}", file=sys.stderr)


def main() -> None:
    """Run the parts and print what was tried how often."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help="all by default")
    parser.add_argument("--each", type=int, default=20_000, help="problems for each bound, solver and metric")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem; each further problem adds 1")
    asked = parser.parse_args()
    warnings.simplefilter("error")
    table = Table(title=f"amounts at the limits, from seed {asked.seed}")
    for header in ("part", "tried", "problems", "wrong"):
        table.add_column(header, justify="left" if header in ("part", "tried") else "right")
    failed = 0
    for part in asked.parts or PARTS:
        tried, wrong, seeds = run(part, asked.each, asked.seed)
        table.add_row(part, "", f"{seeds:,}", "", style="bold")
        for name in sorted(tried | wrong):
            table.add_row("", name, f"{tried[name]:,}", str(wrong[name]))
        failed += wrong.total()
    Console().print(table)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
