"""Claims of solvers held against what the verifier says; a disagreement is an internal error that can be reproduced.

    INFEASIBLE       the solver's own schedule, and those of heuristics, are verified: one that is feasible refutes it
    a bound          no verified schedule is better
    OPTIMAL          the verified schedule has the value that is its own bound
    exact passes     a restored schedule is feasible and has the objective that it has in the reduced problem

The error carries a problem document (`InternalError.dump`) with a key `x-disagreement` that tells of the run: `placeopt
solve` takes it as it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placeopt.bounding.heuristics import heuristic_schedules
from placeopt.errors import InternalError
from placeopt.io.formats.problems import problem_document
from placeopt.io.plan import plan_document
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import Chain
from placeopt.simulation import retime
from placeopt.solver import Answer, Options, Settings, Termination
from placeopt.verifier import Report, verify


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What was asked of a solver."""

    problem: Problem
    solver: str
    settings: Settings
    options: Options
    passes: Sequence[str]
    """The passes asked for: names, with settings."""
    bound_time: float | None
    versions: Mapping[str, str]

    def disagreement(self, claim: str, schedule: Schedule | None = None) -> InternalError:
        """The error to raise, with a dump; `schedule` refutes the claim."""
        problem = self.problem
        print_ = problem.fingerprint()
        message = (
            f"{claim} (problem {problem.name or 'without a name'}, fingerprint {print_}, solver {self.solver}, "
            f"seed {self.options.seed}); please report this with the problem"
        )
        run: dict[str, Any] = {
            "message": message,
            "fingerprint": print_,
            "reproduce": f"placeopt solve THIS_FILE {self.arguments()}",
            "solver": self.solver,
            "settings": self.settings.model_dump(mode="json"),
            "seed": self.options.seed,
            "time_limit": self.options.time_limit,
            "gap_limit": self.options.gap_limit,
            "workers": self.options.workers,
            "strict": self.options.strict,
            "bound_time": self.bound_time,
            "passes": list(self.passes),
            "versions": dict(self.versions),
            "plan": None if schedule is None else plan_document(problem, schedule),
            "initial": None if self.options.initial is None else _plan_of_any(problem, self.options.initial),
        }
        return InternalError(message, {**problem_document(problem), "x-disagreement": run})

    def arguments(self) -> str:
        """The command line's options for the same run, but for an initial plan."""
        options = self.options
        words = ["--solver", self.solver, "--seed", str(options.seed), "--workers", str(options.workers)]
        words += ["--time-limit", "none" if options.time_limit is None else f"{options.time_limit:g}"]
        if options.gap_limit is not None:
            words += ["--gap", f"{options.gap_limit:g}"]
        if self.bound_time is not None:
            words += ["--bound-time", f"{self.bound_time:g}"]
        if options.strict:
            words.append("--strict")
        for key, value in self.settings.model_dump(mode="json", exclude_defaults=True).items():
            words += ["--set", f"{key}={value}"]
        for name in self.passes:
            words += ["--pass", name]
        return shlex.join(words if self.passes else [*words, "--no-passes"])


def _plan_of_any(problem: Problem, schedule: Schedule) -> dict[str, Any] | None:
    """A plan of a schedule that may place tasks on devices that do not exist: None then."""
    inside = ((schedule.device >= 0) & (schedule.device < problem.n_devices)).all()
    return plan_document(problem, schedule) if inside else None


def judged(problem: Problem, schedule: Schedule) -> tuple[Schedule, Report]:
    """The schedule re-timed to its earliest starts, and what the verifier says.

    Starting earlier can make more memory live at a time under the `peak` model; where that breaks a capacity
    or makes the objective worse, the solver's own times stand.
    """
    own = verify(problem, schedule)
    if own.objective is None:  # a task without a device that may run it: nothing to re-time
        return schedule, own
    earliest = retime(problem, schedule)
    report = verify(problem, earliest)
    if own.feasible and (not report.feasible or (report.objective or ()) > own.objective):
        return schedule, own
    return earliest, report


def restored(run: Run, chain: Chain, schedule: Schedule) -> tuple[Schedule | None, Report]:
    """A schedule of the reduced problem as one of the original, judged; None if it cannot be mapped back.

    Raises
    ------
    InternalError
        If an exact pass does not keep the schedule's feasibility and objective.
    """
    schedule, report = judged(chain.problem, schedule)
    if not chain.steps or report.objective is None:
        return (None if chain.steps else schedule), report
    original = chain.restore(schedule)
    if report.feasible and chain.exact and not _kept(run.problem, original, report):
        raise _broken(run, chain, schedule, report)
    return judged(run.problem, original)


def _kept(problem: Problem, schedule: Schedule, report: Report) -> bool:
    found = verify(problem, schedule)
    return found.feasible and found.objective == report.objective


def _broken(run: Run, chain: Chain, schedule: Schedule, report: Report) -> InternalError:
    """Which pass it was."""
    restorations = list(chain.restorations(schedule))
    for step, halfway in zip(reversed(chain.steps), restorations[1:], strict=True):
        if not _kept(step.before, halfway, report):
            found = verify(step.before, halfway)
            rules = ", ".join(dict.fromkeys(violation.rule.value for violation in found.violations))
            said = f"breaks the rules {rules}" if rules else f"has {_text(found.objective)}"
            claim = f"pass {step.name} restores a schedule with {_text(report.objective)} as one that {said}"
            return run.disagreement(claim, restorations[-1])
    return run.disagreement("the passes lose the objective on the way back", restorations[-1])


def _text(values: Sequence[Value] | None) -> str:
    return "none" if values is None else ", ".join(map(str, values))


def check_infeasible(run: Run, source: str, own: Schedule | None) -> None:
    """Look for a feasible schedule of a problem that is said to have none: the solver's own, or a heuristic's.

    Raises
    ------
    InternalError
        If there is one.
    """
    for found, schedule in _attempts(run, own):
        schedule, report = judged(run.problem, schedule)
        if report.feasible:
            claim = f"{source} claims that the problem is infeasible, and the verifier accepts a schedule of {found}"
            raise run.disagreement(claim, schedule)


def _attempts(run: Run, own: Schedule | None) -> Iterator[tuple[str, Schedule]]:
    if own is not None:
        yield run.solver, own
    yield from heuristic_schedules(run.problem, run.options.seed)


def check_values(run: Run, answer: Answer, bound: Value | None, source: str | None, judgement: Judgement) -> None:
    """Hold the bound, and the claim to be optimal, against a verified schedule.

    Raises
    ------
    InternalError
        If they contradict it.
    """
    schedule, report = judgement
    if report is None or not report.feasible or report.objective is None:
        return
    value = report.objective[0]
    if bound is not None and bound > value:
        raise run.disagreement(
            f"{source} claims the bound {bound}, and the verifier accepts a schedule with {value}", schedule
        )
    if answer.termination is Termination.OPTIMAL and answer.bound != value:
        raise run.disagreement(
            f"{run.solver} claims to be optimal with the bound {answer.bound}, and the verifier finds {value}", schedule
        )


Judgement = tuple[Schedule | None, Report | None]
"""A schedule and what the verifier says of it; None without one."""
