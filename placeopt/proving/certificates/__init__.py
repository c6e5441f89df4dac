"""Write proofs of lower bounds and of infeasibility that `placeopt.verifier.certificates` checks without this code.

A certificate prefers claims that are checked by computing. The bound of a result is proved again, in this order:

1. by a quick bound of each metric of the objective's first level (`leaves`);
2. if the makespan alone is the objective, by the work within an interval, by paths with prices or a flow (`paths`), by
   a chain of decisions (`chains`), or by a tree of cases (`refutation`) for few tasks; a tree also proves a sum of
   metrics with a makespan;
3. or by blocks, if tasks cut the graph (`series`): a claim about a block is a quick bound, a tree, or relies on the
   engine that solved the block;
4. else the certificate says which engine or which bound proved it, and relies on that.

That no schedule is feasible is proved by a quick proof of infeasibility, by a tree of cases, or by a metric that
exceeds its limit.

Every claim is checked before it is written, so that a certificate states no more than its claims prove.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from placeopt.bounding.quick import prove_infeasible
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Metric, Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.protocol import Clock
from placeopt.proving.certificates.chains import ends_claim, pairs_claim
from placeopt.proving.certificates.leaves import NOTHING, Claim, best_claim, infeasible_claim, interval_claim, relying
from placeopt.proving.certificates.paths import machines_claim, path_claim, stages_claim
from placeopt.proving.certificates.refutation import FEW, LARGE, due_claim, refutation_claim
from placeopt.proving.certificates.series import series_claim
from placeopt.verifier.certificates import FORMAT, INFEASIBLE, check_claim, exact
from placeopt.verifier.certificates.claims import below
from placeopt.verifier.certificates.model import Model, model_of, timely
from placeopt.verifier.certificates.refutation import LARGEST

__all__ = ["certificate", "infeasibility"]

SOME = 1000
"""Tasks up to which work within intervals is tried."""

ALONE, CHAINED = 0.4, 0.25
"""Shares of the time for trees of cases of the whole problem, and for chains of decisions before them."""

FIRST = 300
"""Cases at most of a tree that is tried before these chains."""


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
    model = model_of(problem)
    found = [best_claim(alone(problem, term), term.metric, model) or dict(NOTHING) for term in level]
    total = sum((term.weight * claim["value"] for term, claim in zip(level, found, strict=True)), Fraction(0))
    if total >= bound:
        proof = terms(found)
    elif len(level) == 1 and level[0].metric == "makespan":
        ticks, clock = ceil(Fraction(bound) / level[0].weight), Clock(time_limit)
        search = MakespanClaims(alone(problem, level[0]), ticks, model, clock, should_stop)
        claim = search.found(schedule)
        proof = terms([claim or relying(model, "makespan", ticks, source)])
    elif len(level) == 1 and level[0].metric == "period":
        ticks = ceil(Fraction(bound) / level[0].weight)
        claim = stages_claim(problem, ticks, model) or machines_claim(problem, ticks, model, time_limit, should_stop)
        proof = terms([claim or relying(model, "period", ticks, source)])
    else:
        proof = _sum_claim(model, bound, Clock(time_limit), should_stop) or relying(
            model, _level(problem), bound, source
        )
    return _document(problem, bound, proof)


def _sum_claim(model: Model, bound: Value, clock: Clock, should_stop: Callable[[], bool]) -> Claim | None:
    """A tree of cases for a level that adds up metrics with a makespan; None if there is none or none is found."""
    problem, level = model.problem, model.problem.objective.levels[0]
    if problem.n_tasks > FEW or not any(term.metric == "makespan" and term.weight for term in level):
        return None
    limit, names = below(level, Fraction(bound), check_claim), problem.task_names
    return refutation_claim(model, names, bound, lambda: clock.over or should_stop(), limit_of=limit)


def infeasibility(
    problem: Problem, source: str, *, time_limit: float | None, should_stop: Callable[[], bool]
) -> dict[str, Any]:
    """A certificate that no schedule is feasible, which `source` proved; see `certificate`."""
    model, end = timely(problem)
    clock = Clock(time_limit)
    proof = infeasible_claim(problem, model, end + 1)
    if proof is None and problem.pipeline is None:
        proof = MakespanClaims(_unlimited(problem, "makespan"), end + 1, model, clock, should_stop).found(None)
    if proof is None and (broken := _broken_limit(problem, clock, should_stop)) is not None:
        proof = {**broken, "value": end + 1}
    if proof is None:
        source = source if prove_infeasible(problem) is None else "a quick proof"
        proof = relying(model, "makespan", end + 1, source)
    return _document(problem, INFEASIBLE, proof)


def _unlimited(problem: Problem, metric: Metric) -> Problem:
    """The problem without deadlines and limits, with one metric as its objective."""
    return alone(replace(problem, limits=(), deadline=np.full_like(problem.deadline, UNLIMITED)), Term(metric))


def _broken_limit(problem: Problem, clock: Clock, should_stop: Callable[[], bool]) -> Claim | None:
    """A claim that a metric exceeds its limit."""
    model = model_of(problem)
    for metric, most in problem.limits:
        only = _unlimited(problem, metric)
        claim = best_claim(only, metric, model, most + 1)
        if claim is None and metric == "makespan":
            claim = MakespanClaims(only, most + 1, model, clock, should_stop).found(None)
        if claim is not None:
            return {"claim": "limit", "metric": metric, "proof": claim}
    return None


def _level(problem: Problem) -> str:
    """The first level of the objective, as certificates state it."""
    return str(Objective((problem.objective.levels[0],)))


def _document(problem: Problem, bound: Value | str, proof: Claim) -> dict[str, Any]:
    return {
        "placeopt_certificate": FORMAT,
        "problem": problem.fingerprint(),
        "objective": _level(problem),
        "bound": bound if isinstance(bound, str) else exact(bound),
        "proof": proof,
    }


@dataclass(frozen=True, slots=True)
class MakespanClaims:
    """Searches, within limits, for a claim that the makespan is at least some ticks."""

    problem: Problem
    ticks: int
    model: Model
    clock: Clock
    should_stop: Callable[[], bool]

    def found(self, schedule: Schedule | None) -> Claim | None:
        """A claim; None if none is found."""
        problem, ticks, n = self.problem, self.ticks, self.problem.n_tasks
        over = self._over(ALONE)
        claim = due_claim(self.model, problem, ticks)
        claim = claim or (interval_claim(problem, ticks, self.model, over) if n <= SOME else None)
        claim = claim or path_claim(problem, ticks, self.model, over)
        if claim is None and n <= FEW:
            claim = refutation_claim(self.model, problem.task_names, ticks, self._over(CHAINED), FIRST)
            claim = claim or self._chain()
            claim = claim or refutation_claim(self.model, problem.task_names, ticks, self._over(ALONE))
        claim = claim or series_claim(problem, ticks, self.model, schedule, self.clock, self.should_stop)
        if claim is None and FEW < n <= SOME:
            claim = self._chain()
        if claim is None and FEW < n <= LARGEST and not self.should_stop():
            claim = refutation_claim(self.model, problem.task_names, ticks, self._over(1), LARGE)
        return claim

    def _chain(self) -> Claim | None:
        """A claim by a chain of decisions; None if none is found."""
        claim = ends_claim(self.problem, self.ticks, self.model, self._over(CHAINED))
        return claim or pairs_claim(self.problem, self.ticks, self.model, self._over(CHAINED))

    def _over(self, share: float) -> Callable[[], bool]:
        """A call that is true once a share of the remaining time is over."""
        part = Clock(None if self.clock.remaining is None else share * self.clock.remaining)
        return lambda: part.over or self.should_stop()


def terms(claims: list[Claim]) -> Claim:
    """The claim about a level, from those about its metrics."""
    return {"claim": "terms", "terms": claims}


def alone(problem: Problem, term: Term) -> Problem:
    """The problem with one metric as its objective."""
    objective = Objective(((Term(term.metric),),))
    return problem if problem.objective == objective else replace(problem, objective=objective)
