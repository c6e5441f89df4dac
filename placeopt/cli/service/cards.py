"""The answers of the API: facts of problems, jobs and solvers, with their schemas."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from placeopt.errors import Issue, UsageError, path_text
from placeopt.model.modes import own_devices
from placeopt.model.problem import Problem
from placeopt.protocol import Solver
from placeopt.protocol.registry import Setting, find_solver, settings_of, solver_names
from placeopt.views.facts import problem_line
from placeopt.views.page.summaries import kind_of

ISSUES = 100
"""Issues of a spec that an answer lists at most."""


class Card(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class IssueCard(Card):
    """An error in a spec."""

    message: str
    path: str
    """The place in the document, such as tasks.conv2.memory."""
    line: int | None
    """Counted from 1; null if the whole spec is meant."""
    column: int | None


class Fault(Card):
    """Why a request is refused, or why a job failed."""

    error: str
    issues: list[IssueCard] = []
    """All errors of a spec, the first 100."""


class ProblemCard(Card):
    """A problem."""

    name: str
    summary: str
    tasks: int
    devices: int
    objective: str
    kind: str
    """What values of the objective's first level are: ticks, bytes, nanojoules, ..."""
    resolution: float
    """Seconds of a tick."""


class Checked(Card):
    """What is wrong with a spec, and who can solve it."""

    issues: list[IssueCard]
    """Empty if the spec is valid."""
    problem: ProblemCard | None
    """Null if the spec is not valid."""
    solvers: list[str]
    """The solvers that support the problem."""


State = Literal["queued", "running", "ended", "failed", "cancelled"]


class JobCard(Card):
    """A job."""

    id: str
    """A secret: a client that knows it can read and cancel the job."""
    state: State
    """`ended`: there is a result, also after a time limit or a cancelled search. `failed`: `error` says why.
    `cancelled`: it was cancelled before it ran."""
    position: int | None
    """Number of jobs that run before this one, while it is queued."""
    problem: ProblemCard
    solver: str
    time_limit: float
    """Seconds."""
    seed: int
    elapsed: float | None
    """Seconds that the solver took, or since the job began to run."""
    objective: float | None
    """The best value so far, of the objective's first level in its own unit, ticks for times."""
    bound: float | None
    """The best proved lower bound so far."""
    gap: float | None
    termination: str | None
    """Why the solver stopped: optimal, infeasible, completed, time_limit, interrupted or failed."""
    feasible: bool | None
    """Whether the schedule is verified as feasible; null without one."""
    message: str
    error: str | None


class Event(Card):
    """The data of an event of the stream, except the last one, `finished`, which has the job."""

    elapsed: float
    """Seconds since the solver started."""
    objective: float | None
    bound: float | None


class SolverCard(Card):
    """A solver."""

    name: str
    summary: str
    family: str
    guarantee: str
    exact: bool
    anytime: bool
    settings: list[Setting]
    """Those that are numbers or choices, as query parameters: one that takes any text may be the name of a file."""


class Example(Card):
    """An example of a problem."""

    name: str
    description: str


def issue_card(issue: Issue) -> IssueCard:
    """Return an issue as plain data."""
    return IssueCard(message=issue.message, path=path_text(issue.path), line=issue.line, column=issue.column)


def problem_card(problem: Problem) -> ProblemCard:
    """Return the facts of a problem."""
    return ProblemCard(
        name=problem.name,
        summary=problem_line(problem),
        tasks=problem.n_tasks,
        devices=len(own_devices(problem)),
        objective=str(problem.objective),
        kind=kind_of(problem.objective.leading_metric),
        resolution=float(problem.resolution),
    )


@cache
def solver_cards() -> dict[str, SolverCard]:
    """Return all solvers that can be loaded, by name."""
    found = {}
    for name in solver_names():
        try:
            solver = find_solver(name)
        except UsageError:  # a library is missing
            continue
        found[name] = _solver_card(solver)
    return found


def _solver_card(solver: Solver) -> SolverCard:
    info, fields = solver.info, solver.settings_type.model_fields
    settings = [each for each in settings_of(solver.settings_type) if not _takes_text(fields[each.name].annotation)]
    return SolverCard(
        name=solver.name, summary=info.summary, family=info.family, guarantee=info.guarantee, exact=info.exact,
        anytime=info.anytime, settings=settings,
    )  # fmt: skip


def _takes_text(kind: Any) -> bool:
    return kind is str or any(_takes_text(part) for part in getattr(kind, "__args__", ()))
