"""The heuristics of the portfolio, with passes and limits of size.

Each was measured alone. On networks with tight memory heft is rarely the best, and the best one differs between graphs.
Ready lists over all pairs of a task and a device, and passes that join tasks, win if memory is tight or transfers are
expensive; `single` wins if no transfer pays off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Options
from placeopt.proving.heuristics import heuristic_schedule

from .._runs.validity import valid_forms
from .._starts.segments import segmented

SHARE = 0.05
"""Share of the time limit that the estimate of a heuristic may take; heuristics with larger estimates do not run."""

WIDE = 3000
"""Tasks from which the number of ready ones decides the time of heuristics that compare all pairs."""

ALWAYS = 2
"""Heuristics that always run."""


@dataclass(frozen=True, slots=True)
class Member:
    """A heuristic after passes.

    `rate` are microseconds of an edge or a task, and a device. With `pairs`, each step compares all pairs of a ready
    task and a device, so large graphs take longer.
    """

    solver: str
    rate: float = 0.08
    passes: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    pairs: bool = False

    @property
    def name(self) -> str:
        """The name in reports, such as "heft behind coplace" or "celeritas:placement=best"."""
        chosen = ",".join(f"{key}={value}" for key, value in self.settings)
        name = f"{self.solver}:{chosen}" if chosen else self.solver
        return f"{name} behind {', '.join(self.passes)}" if self.passes else name

    def seconds(self, problem: Problem) -> float:
        """Estimate its seconds from the size of the problem."""
        steps = float(problem.n_tasks + problem.n_edges) * problem.n_devices
        return steps * self.rate * 1e-6 * (max(1.0, problem.n_tasks / WIDE) if self.pairs else 1.0)


UNITING = "celeritas-fusion:colocation=unite"
"""The coarse graph of the other treatments of groups is too fine, or only an estimate."""

MEMBERS = (
    Member("heft"),
    Member("single"),
    Member("etf"),
    Member("peft"),
    Member("m-etf"),
    Member("lookahead-heft", 0.3),
    Member("heuristic-g"),
    Member("flb"),
    Member("celeritas", settings=(("placement", "best"),)),
    Member("celeritas", settings=(("placement", "best"), ("colocation", "unite"))),
    Member("heft", passes=("coplace",)),
    Member("flb", passes=("coplace",)),
    Member("etf", passes=("coplace",)),
    Member("fcp"),
    Member("cpop"),
    Member("dsc"),
    Member("heft", passes=(UNITING,)),
    Member("celeritas", passes=(UNITING,), settings=(("placement", "best"), ("colocation", "unite"))),
    Member("m-sct", 0.6),
    Member("hbmct", 0.3, pairs=True),
    Member("gdl", 0.3, pairs=True),
    Member("bil", 0.3, pairs=True),
    Member("sufferage", 0.3, pairs=True),
    Member("max-min", 0.3, pairs=True),
    Member("gdl", 0.3, (UNITING,), pairs=True),
    Member("wba", 0.3, (UNITING,), pairs=True),
)
"""In the order in which they run."""


def affordable(problem: Problem, limit: float) -> tuple[Member, ...]:
    """Return the members that fit into a time limit, by the size of the problem."""
    return tuple(member for at, member in enumerate(MEMBERS) if at < ALWAYS or member.seconds(problem) <= SHARE * limit)


def schedules(member: Member, problem: Problem, seed: int) -> Iterator[Schedule]:
    """Yield the schedule of a member if it is valid, with recomputed times if possible."""
    schedule = heuristic_schedule(member.solver, problem, Options(seed=seed), member.passes, **dict(member.settings))
    if schedule is not None:
        yield from islice(valid_forms(problem, schedule), 1)


def segments(problem: Problem) -> Iterator[Schedule]:
    """Yield valid schedules of consecutive segments."""
    for schedule in segmented(problem):
        yield from islice(valid_forms(problem, schedule), 1)
