"""Write certificates: proofs of lower bounds that `placeopt.verifier.certificates` checks without this code.

A certificate prefers claims that are checked by computing. The bound of a result is proved again, in this order:

1. by a quick bound of each metric of the objective's first level (`leaves`);
2. if the makespan alone is the objective, by the work within an interval, or a tree of cases (`refutation`) for few
   tasks;
3. or by blocks, if tasks cut the graph (`series`): a claim about a block is a quick bound, a tree, or relies on the
   engine that solved the block;
4. else the certificate says which engine or which bound proved it, and relies on that.

Every claim is checked before it is written, so that a certificate states no more than its claims prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

from placeopt.model.objective import Value
from placeopt.model.problem import Metric, Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.protocol import Clock
from placeopt.proving.certificates.leaves import NOTHING, Claim, accepted, interval_claim, quick_claims
from placeopt.proving.certificates.refutation import refutation_claim
from placeopt.proving.certificates.series import series_claim
from placeopt.verifier.certificates import FORMAT, Scene, model_of

__all__ = ["certificate"]

SOME = 1000
"""Tasks up to which work within intervals is tried."""

FEW, ALONE = 60, 0.4
"""Tasks up to which all cases of the whole problem are tried, and the share of the time for that."""


def certificate(
    problem: Problem,
    bound: Value,
    source: str,
    schedule: Schedule | None,
    *,
    time_limit: float | None,
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    """A certificate of a lower bound of the first level of the objective.

    Parameters
    ----------
    source
        What proved the bound, for claims that rely on it.
    schedule
        A known schedule; claims about blocks are searched with it.
    time_limit
        Seconds for trees of cases, and for solving blocks again.
    should_stop
        Polled regularly; once true, what has no proof yet relies on what proved it.
    """
    level = problem.objective.levels[0]
    trusted: Claim = {"claim": "engine", "engine": source, "value": number(bound)}
    proof = trusted if bound > 0 else terms([dict(NOTHING) for _ in level])
    if bound > 0:
        found = [best_claim(alone(problem, term), term.metric) for term in level]
        total = sum((term.weight * claim["value"] for term, claim in zip(level, found, strict=True)), Fraction(0))
        if total >= bound:
            proof = terms(found)
        elif len(level) == 1 and level[0].metric == "makespan" and level[0].weight > 0:
            ticks = ceil(Fraction(bound) / level[0].weight)
            known, clock = found[0], Clock(time_limit)
            makespan = _makespan_claim(alone(problem, level[0]), ticks, known, schedule, clock, should_stop)
            proof = terms([makespan or {**trusted, "value": ticks}])
    return {
        "placeopt_certificate": FORMAT,
        "problem": problem.fingerprint(),
        "objective": str(Objective((level,))),
        "bound": number(bound),
        "proof": proof,
    }


def _makespan_claim(
    problem: Problem,
    ticks: int,
    known: Claim,
    schedule: Schedule | None,
    clock: Clock,
    should_stop: Callable[[], bool],
) -> Claim | None:
    """A claim about the makespan beyond a known one, which takes time to find; None if none is found."""
    if problem.n_tasks <= SOME:
        claim = interval_claim(problem, ticks, known)
        if claim is not None and accepted(Scene(model_of(problem)), "makespan", claim):
            return claim
    if problem.n_tasks <= FEW:
        part = Clock(None if clock.remaining is None else ALONE * clock.remaining)
        found = refutation_claim(model_of(problem), problem.task_names, ticks, lambda: part.over or should_stop())
        if found is not None:
            return found
    return series_claim(problem, ticks, schedule, clock, should_stop)


def terms(claims: Iterable[Claim]) -> Claim:
    return {"claim": "terms", "terms": list(claims)}


def number(value: Value) -> int | str:
    """An exact number for JSON."""
    return value if isinstance(value, int) else str(value)


def alone(problem: Problem, term: Term) -> Problem:
    """The problem with one metric as its objective."""
    objective = Objective(((Term(term.metric),),))
    return problem if problem.objective == objective else replace(problem, objective=objective)


def best_claim(problem: Problem, metric: Metric) -> Claim:
    """The largest quick bound of a metric whose claim the checker accepts."""
    scene = Scene(model_of(problem))
    for claim in quick_claims(problem, metric):
        if accepted(scene, metric, claim):
            return claim
    return dict(NOTHING)
