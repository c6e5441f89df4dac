"""Check a certificate, and let a second engine decide the claims that it trusts.

The checker (`placeopt.verifier.certificates`) runs no solver. Here, each trusted claim becomes a problem whose metric
is limited to less than the claim states. A solver with another engine then searches a schedule: `milp` for claims that
CP-SAT proved, `cp-sat` for all others. If there is none, the claim is *confirmed*. A schedule refutes the claim. Claims
about equal problems are decided once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np

from placeopt.errors import CertificateError, DocumentError, UsageError, visible
from placeopt.io.document import parse_document
from placeopt.io.files import LONGEST_PATH, UnreadableError, read_text
from placeopt.io.validation import KINDS
from placeopt.model.arrays import checked_call, checked_number
from placeopt.model.problem import BUSY, UNLIMITED, Objective, Problem, Term, check_problem
from placeopt.orchestration.pipeline import solve
from placeopt.passes.rebuilding import edges_of, rebuilt
from placeopt.protocol import Clock, Termination, unsupported
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.verifier.certificates import Checked, Leaf, examined
from placeopt.verifier.certificates.model import Model

SECOND = ("cp-sat", "milp")
"""Solvers that decide claims again, the first one that does not share the engine."""

CP_SAT = frozenset(
    {"CP-SAT", "cp-sat", "series", "intervals", "division", "configurations", "relaxation-mip", "auto", "destructive"}
)
"""Names of what relies on CP-SAT, at least in part."""


def check_certificate(
    problem: Problem,
    certificate: Mapping[str, Any] | str | PathLike[str],
    *,
    recheck: float | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Checked:
    """Check a certificate, a document or the path of a file, and return what it proves.

    Parameters
    ----------
    recheck
        Seconds for a second engine to decide the claims that are trusted; None to leave them as they are.
    should_stop
        Polled regularly; once true, further claims are not decided.

    Raises
    ------
    CertificateError
        If a claim does not prove its value, a second engine refutes it, or the certificate is of another problem or
        format.
    UsageError
        If the file cannot be read, is not JSON, or an argument is wrong.
    """
    check_problem("check_certificate", problem)
    checked_number("recheck", recheck, positive=True)
    checked_call("should_stop", should_stop)
    checked, leaves = examined(problem, _read(certificate) if isinstance(certificate, str | PathLike) else certificate)
    if recheck is None or checked.complete:
        return checked
    second, trusted = _Second(problem, checked.infeasible, Clock(recheck), should_stop or (lambda: False)), {}
    order = sorted(range(len(leaves)), key=lambda at: leaves[at].trusted.tasks)
    for at, left in zip(order, range(len(leaves), 0, -1), strict=True):
        trusted[at] = replace(leaves[at].trusted, confirmed=second.decided(leaves[at], left))
    return replace(checked, trusted=tuple(trusted[at] for at in range(len(leaves))), rechecked=True)


def _read(path: str | PathLike[str]) -> Any:
    name = visible(str(path), LONGEST_PATH)
    try:
        document = parse_document(read_text(path), file=name, json_format=True)
        if document.faults:
            raise DocumentError(list(document.faults))
    except UnreadableError as error:
        raise UsageError(f"certificate {name}: {error}") from None
    except DocumentError as error:
        raise UsageError(f"certificate {error.issues[0]}") from None
    kinds = [kind for key, kind in KINDS.items() if isinstance(document.data, dict) and key in document.data]
    if "certificate" not in kinds:
        why = f"looks like a {kinds[0]} file" if kinds else "placeopt_certificate is missing"
        raise UsageError(f"certificate {name}: {why}; expected a file of `solve --certificate`")
    return document.data


class _Second:
    """Decides trusted claims; the time is shared equally among those that are left."""

    def __init__(self, problem: Problem, infeasible: bool, clock: Clock, should_stop: Callable[[], bool]) -> None:
        self.problem, self.infeasible, self.clock, self.should_stop = problem, infeasible, clock, should_stop
        self.known: dict[tuple[str, str], str | None] = {}

    def decided(self, leaf: Leaf, left: int) -> str | None:
        """The solver that confirms a claim; None if none does in its share of the time. Raises if one refutes it."""
        stated = claimed(self.problem, leaf, self.infeasible)
        solver = _other_engine(leaf.trusted.engine, stated)
        remaining = self.clock.remaining
        assert remaining is not None
        if solver is None or remaining <= 0 or self.should_stop():
            return None
        key = solver, stated.fingerprint()
        if key not in self.known:
            self.known[key] = solver if self._confirms(leaf, stated, solver, remaining / left) else None
        return self.known[key]

    def _confirms(self, leaf: Leaf, stated: Problem, solver: str, seconds: float) -> bool:
        # With one worker, no bounds of other engines are proved in parallel.
        result = solve(stated, solver, time_limit=seconds, workers=1, consolidate=0, should_stop=self.should_stop)
        value = leaf.trusted.value
        if result.termination is Termination.INFEASIBLE:
            return True
        whole = self.infeasible and not any(leaf.model.cuts)  # then any schedule refutes the claim
        if result.feasible and result.objective is not None and (whole or result.objective < value):
            raise CertificateError(
                f"{leaf.trusted.where}: {leaf.trusted.engine} claims at least {value}, but {solver} finds a schedule "
                f"with {stated.objective} = {result.objective}"
            )
        source = result.bound_source or solver
        if whole or source == leaf.trusted.engine or (source in CP_SAT and leaf.trusted.engine in CP_SAT):
            return False
        return result.bound is not None and result.bound >= value


def _other_engine(engine: str, problem: Problem) -> str | None:
    """The solver that decides a claim again."""
    for name in SECOND:
        shared = name == engine or (name == "cp-sat" and engine in CP_SAT)
        if not shared and name in solver_names() and unsupported(find_solver(name).info, problem) is None:
            return name
    return None


def claimed(problem: Problem, leaf: Leaf, infeasible: bool) -> Problem:
    """A problem without a schedule if a trusted claim is right; if it has one, the claim is wrong.

    A claim of infeasibility about the whole problem needs no limit. A limit of a sum of metrics cannot be stated:
    the claim is then about the optimum of the problem.
    """
    model, value = leaf.model, leaf.trusted.value
    if leaf.metric is None:
        return replace(problem, objective=Objective((problem.objective.levels[0],)))
    objective = Objective(((Term(leaf.metric),),))
    if any(model.cuts):
        stated = block_problem(problem, model, deadlines=not infeasible)
    elif not infeasible:
        stated = replace(problem, objective=objective)
    elif not model.begins:  # with its deadlines; any schedule refutes the claim
        return replace(problem, objective=objective)
    else:  # a metric that exceeds its limit
        never = np.full_like(problem.deadline, UNLIMITED)
        stated = replace(problem, objective=objective, deadline=never, limits=())
    most = int(value) - 1
    if most < 0 or stated.pipeline is not None:
        return stated
    if leaf.metric == "makespan":  # deadlines, which solvers use best
        return replace(stated, deadline=np.minimum(stated.deadline, most))
    kept = [(metric, each) for metric, each in stated.limits if metric != leaf.metric]
    return replace(stated, limits=(*kept, (leaf.metric, most)))


def block_problem(problem: Problem, model: Model, *, deadlines: bool) -> Problem:
    """A block with its cuts on their devices: the first cut takes no time, and times begin at its end."""
    first, tasks = model.cuts[0], np.array(model.tasks, dtype=np.int64)
    inside = np.zeros(problem.n_tasks, dtype=np.bool_)
    inside[tasks] = True
    feasible, duration = problem.feasible.copy(), problem.duration.copy()
    for task, device in (cut for cut in model.cuts if cut is not None):
        kept = feasible[task, device]
        feasible[task] = False
        feasible[task, device] = kept
    if first is not None:
        duration[first[0]] = 0
    never, nothing = np.full_like(problem.deadline, UNLIMITED), np.zeros_like(problem.release)
    edges = edges_of(problem)
    found, _ = rebuilt(
        replace(problem, tiers=None, consolidate=Fraction(0)),
        objective=Objective(),
        tasks=tasks,
        edges=edges.kept(inside[edges.source] & inside[edges.target]),
        feasible=feasible,
        duration=np.where(feasible, duration, 0),
        separation=problem.separation[inside[problem.separation].all(axis=1)],
        release=problem.release if first is None else nothing,
        deadline=problem.deadline if first is None and deadlines else never,
        limits=(), alignment=None, layout=None, **BUSY,
    )  # fmt: skip
    return replace(found, task_names=tuple(map(str, range(found.n_tasks))), name="", description="")
