"""Compare the claims of a solver with what the verifier finds; a contradiction is an internal error.

    infeasible       no schedule of the solver or of a heuristic is feasible
    a lower bound    it is an exact number, and no verified schedule is better
    optimal          the verifier accepts the schedule, and it has the value of the solver's own bound
    both             of a solver of another package: no heuristic finds a better schedule either
    exact passes     a schedule mapped back is feasible and has the same objective as in the reduced problem

The error carries a problem document (`InternalError.dump`) that `placeopt solve` accepts. Its key `x-disagreement`
describes the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placeopt.bounding.quick import Bound
from placeopt.errors import InternalError
from placeopt.model.objective import EXACT, Value, is_exact
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.run import Run
from placeopt.passes import Chain
from placeopt.protocol import Answer, Termination
from placeopt.protocol.registry import origin_of
from placeopt.proving.heuristics import heuristic_schedules
from placeopt.simulation import retime
from placeopt.verifier import Report, verify


def retimed_and_verified(problem: Problem, schedule: Schedule) -> tuple[Schedule, Report]:
    """Re-time a schedule to its earliest starts and verify it.

    Under the `peak` model, earlier starts can need more memory at a time. The solver's own times stay where earlier
    ones break a capacity or make the objective worse.
    """
    own = verify(problem, schedule)
    if own.objective is None:  # a task without a device that may run it: nothing to re-time
        return schedule, own
    earliest = retime(problem, schedule)
    if schedule.transfers is None and earliest.transfers is None and np.array_equal(earliest.start, schedule.start):
        return schedule, own
    report = verify(problem, earliest)
    if own.feasible and (not report.feasible or (report.objective or ()) > own.objective):
        return schedule, own
    return earliest, report


def mapped_back(run: Run, chain: Chain, schedule: Schedule) -> tuple[Schedule | None, Report]:
    """Map a schedule of the reduced problem back and verify it; None if it cannot be mapped back.

    Raises an InternalError if an exact pass does not keep the schedule's feasibility and objective.
    """
    schedule, report = retimed_and_verified(chain.problem, schedule)
    if not chain.steps or report.objective is None:
        return (None if chain.steps else schedule), report
    original = chain.restore(schedule)
    if report.feasible and chain.exact and not _kept(run.problem, original, report):
        raise _broken(run, chain, schedule, report)
    return retimed_and_verified(run.problem, original)


def _kept(problem: Problem, schedule: Schedule, report: Report) -> bool:
    found = verify(problem, schedule)
    return found.feasible and found.objective == report.objective


def _broken(run: Run, chain: Chain, schedule: Schedule, report: Report) -> InternalError:
    """The error, which names the first pass that changes feasibility or value on the way back."""
    restorations = list(chain.restorations(schedule))
    for step, halfway in zip(reversed(chain.steps), restorations[1:], strict=True):
        if not _kept(step.before, halfway, report):
            found = verify(step.before, halfway)
            rules = ", ".join(dict.fromkeys(violation.rule.value for violation in found.violations))
            said = f"breaks the rules {rules}" if rules else f"has {_text(found.objective)}"
            claim = f"pass {step.name} restores a schedule with {_text(report.objective)} as one that {said}"
            return run.disagreement(claim, restorations[-1], of_solver=False)
    lost = "the passes lose the objective on the way back"
    return run.disagreement(lost, restorations[-1], of_solver=False)


def _text(values: Sequence[Value] | None) -> str:
    return "none" if values is None else ", ".join(map(str, values))


def check_infeasible(run: Run, source: str, own: Schedule | None) -> None:
    """Search for a feasible schedule of a problem claimed to be infeasible: the solver's own, or a heuristic's.

    Raises an InternalError if there is one.
    """
    for found, schedule in _attempts(run, own):
        schedule, report = retimed_and_verified(run.problem, schedule)
        if report.feasible:
            claim = f"{source} claims that the problem is infeasible, and the verifier accepts a schedule of {found}"
            raise run.disagreement(claim, schedule, of_solver=source == run.solver.name)


def check_by_heuristics(run: Run, source: str, answer: Answer, report: Report | None) -> None:
    """Search for a schedule that refutes a bound, or a claim to be optimal, of a solver that placeopt does not know.

    Raises an InternalError if a heuristic finds one.
    """
    optimal = report.objective if answer.termination is Termination.OPTIMAL and report is not None else None
    if origin_of(run.solver) is None or (answer.bound is None and optimal is None):
        return
    for name, schedule in heuristic_schedules(run.problem, run.options.seed):
        schedule, found = retimed_and_verified(run.problem, schedule)
        if not found.feasible or found.objective is None:
            continue
        if optimal is not None and found.objective < optimal:
            claim = f"claims to be optimal with {_text(optimal)}"
        elif answer.bound is not None and found.objective[0] < answer.bound:
            claim = f"claims the bound {answer.bound}"
        else:
            continue
        claim = f"{answer.bound_source or source} {claim}, and the verifier accepts a schedule of {name} with"
        own = source == run.solver.name and not answer.bound_source
        raise run.disagreement(f"{claim} {_text(found.objective)}", schedule, of_solver=own)


def _attempts(run: Run, own: Schedule | None) -> Iterator[tuple[str, Schedule]]:
    if own is not None:
        yield run.solver.name, own
    yield from heuristic_schedules(run.problem, run.options.seed)


def check_claims(run: Run, answer: Answer, schedule: Schedule | None, report: Report | None) -> None:
    """Check that a solver's bound is an exact number, and that an optimal schedule is feasible.

    Raises an InternalError if not.
    """
    if answer.bound is not None and not is_exact(answer.bound):
        raise run.disagreement(f"{run.solver.name} states the bound {answer.bound!r}; {EXACT}", schedule)
    if answer.termination is not Termination.OPTIMAL or (report is not None and report.feasible):
        return
    claim = f"{run.solver.name} claims to be optimal"
    if report is None:
        raise run.disagreement(f"{claim} without a schedule")
    first = report.violations[0].message
    written = None if report.objective is None else schedule  # no plan file has a device that does not exist
    raise run.disagreement(f"{claim}, and the verifier rejects its schedule: {first}", written)


def check_bound(
    run: Run, answer: Answer, bound: Bound | None, schedule: Schedule | None, report: Report | None
) -> None:
    """Compare the lower bound, and a claim of optimality, with a verified schedule.

    Raises an InternalError if the schedule contradicts them.
    """
    if report is None or not report.feasible or report.objective is None:
        return
    value = report.objective[0]
    if bound is not None and bound.value > value:
        claim = f"{bound.name} claims the bound {bound.value}, and the verifier accepts a schedule with {value}"
        raise run.disagreement(claim, schedule, of_solver=bound.name == run.solver.name)
    if answer.termination is Termination.OPTIMAL and answer.bound != value:
        claim = f"{run.solver.name} claims to be optimal with the bound {answer.bound}, and the verifier finds {value}"
        raise run.disagreement(claim, schedule)
