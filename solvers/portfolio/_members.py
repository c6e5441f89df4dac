"""The heuristics of the portfolio: which are tried, behind which passes, and for which sizes.

What they pay was measured one by one: on tight networks the best is hardly ever heft, and on each graph another. The
ready lists that look at all pairs of a task and a device, and the passes that unite tasks, win where memory is tight or
transfers are dear; `single` wins where no transfer pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placeopt.bounding.heuristics import heuristic_schedule
from placeopt.errors import UsageError
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime
from placeopt.solver import Options

from .._runs.validity import valid
from .._starts.segments import segmented

STEP, MOST = 1e-6, 0.4
"""Seconds of a step in plain Python (an edge or a task, and a device), and the most that a heuristic that has compiled
code takes in it."""

SHARE = 0.05
"""Of the time limit that a heuristic may take by estimate; others are left out. The first two are tried always."""

ALWAYS = 2


@dataclass(frozen=True, slots=True)
class Member:
    """A heuristic behind passes; `rate` are microseconds of a step in compiled code, None without any."""

    solver: str
    rate: float | None = 0.1
    passes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As reports have it: heft behind coplace."""
        return f"{self.solver} behind {', '.join(self.passes)}" if self.passes else self.solver

    def seconds(self, problem: Problem) -> float:
        """What it takes, estimated from the size alone."""
        steps = float(problem.n_tasks + problem.n_edges) * problem.n_devices
        if self.rate is None:  # pairs of ready tasks and devices again and again
            return steps * STEP * max(1.0, problem.n_tasks / 300)
        return min(steps * STEP, MOST) + steps * self.rate * 1e-6


MEMBERS = (
    Member("heft"),
    Member("single"),
    Member("etf"),
    Member("peft"),
    Member("m-etf"),
    Member("lookahead-heft"),
    Member("heuristic-g"),
    Member("flb"),
    Member("celeritas", 0.4),
    Member("heft", passes=("coplace",)),
    Member("flb", passes=("coplace",)),
    Member("etf", passes=("coplace",)),
    Member("fcp"),
    Member("cpop"),
    Member("dsc", 2.0),
    Member("heft", passes=("celeritas-fusion",)),
    Member("celeritas", passes=("celeritas-fusion",)),
    Member("m-sct", 5.0),
    Member("hbmct", None),
    Member("gdl", None),
    Member("bil", None),
    Member("sufferage", None),
    Member("max-min", None),
    Member("gdl", None, ("celeritas-fusion",)),
    Member("wba", None, ("celeritas-fusion",)),
)
"""In the order in which they are tried."""


def affordable(problem: Problem, limit: float) -> tuple[Member, ...]:
    """Those that a time limit has room for, by size alone."""
    return tuple(member for at, member in enumerate(MEMBERS) if at < ALWAYS or member.seconds(problem) <= SHARE * limit)


def schedules(member: Member, problem: Problem, seed: int) -> Iterator[Schedule]:
    """What a member finds, re-timed or as it is, as far as it is valid."""
    yield from _checked(problem, heuristic_schedule(member.solver, problem, Options(seed=seed), member.passes))


def segments(problem: Problem) -> Iterator[Schedule]:
    """Consecutive pieces of the graph, a device each."""
    for schedule in segmented(problem):
        yield from _checked(problem, schedule)


def _checked(problem: Problem, schedule: Schedule | None) -> Iterator[Schedule]:
    if schedule is None:
        return
    try:
        again = retime(problem, schedule)
    except UsageError:  # no placement of this problem
        return
    for each in (again, schedule):
        if valid(problem, each):
            yield each
            return
