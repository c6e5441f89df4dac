"""Apply passes in order, and map schedules through all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from placeopt.errors import UsageError, listing
from placeopt.model.arrays import Int
from placeopt.model.graph import components
from placeopt.model.problem import Problem, check_problem
from placeopt.model.schedule import Schedule
from placeopt.passes.catalog import find_pass, pass_settings, pass_text
from placeopt.passes.protocol import Pass, Reduction
from placeopt.passes.rebuilding import followed

WORTHWHILE = 100
"""Exact passes are repeated as long as a round makes the problem smaller by at least one part in this many."""


COUNTED = frozenset(("tardiness", "price", "devices"))
"""Metrics that exact passes do not keep."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a problem; `choices` counts pairs of a group and a device that may run it."""

    tasks: int
    edges: int
    groups: int
    devices: int
    choices: int


@dataclass(frozen=True, slots=True)
class Applied:
    """Summary of the passes that changed a problem.

    `names` are in order of first application, each with its non-default settings, as `find_pass` accepts them. `exact`
    states whether all of them keep the optimum. `before` and `after` are the sizes of the original and the reduced
    problem. `settings` holds all settings of the passes that have any, by the entry in `names`.
    """

    names: tuple[str, ...]
    exact: bool
    before: Size
    after: Size
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        kept = "" if self.exact else ", the optimum may be lost"
        return f"<Applied: {listing(self.names)}, {_change(self.before, self.after)}{kept}>"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return asdict(self) | {"names": list(self.names)}


def _change(before: Size, after: Size) -> str:
    return f"{before.tasks:,} -> {after.tasks:,} tasks, {before.groups:,} -> {after.groups:,} groups"


def size_of(problem: Problem) -> Size:
    """The size of a problem."""
    choices = int(problem.group_feasible().sum())
    return Size(problem.n_tasks, problem.n_edges, problem.n_groups, problem.n_devices, choices)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One application of a pass to the problem `before`."""

    applied: Pass
    before: Problem
    reduction: Reduction

    @property
    def name(self) -> str:
        """The pass with its non-default settings."""
        return pass_text(self.applied)

    @property
    def exact(self) -> bool:
        """Whether the pass keeps the optimum."""
        return self.applied.exact


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The passes that changed a problem, in order."""

    original: Problem  # before all passes
    steps: tuple[Step, ...] = ()  # one for each application of a pass

    def __repr__(self) -> str:
        return f"<Chain: {listing(self.names)}, {_change(size_of(self.original), size_of(self.problem))}>"

    @property
    def problem(self) -> Problem:
        """The problem after all passes."""
        return self.steps[-1].reduction.problem if self.steps else self.original

    @property
    def exact(self) -> bool:
        """Whether every pass applied keeps the optimum."""
        return all(step.exact for step in self.steps)

    @property
    def names(self) -> tuple[str, ...]:
        """The applied passes, each once, in order of first application."""
        return tuple(dict.fromkeys(step.name for step in self.steps))

    @property
    def applied(self) -> Applied:
        """A summary of the chain without the problems."""
        settings = {step.name: chosen for step in self.steps if (chosen := pass_settings(step.applied))}
        return Applied(self.names, self.exact, size_of(self.original), size_of(self.problem), settings)

    @property
    def inexact(self) -> tuple[str, ...]:
        """The applied passes that may lose the optimum."""
        return tuple(dict.fromkeys(step.name for step in self.steps if not step.exact))

    def restore(self, schedule: Schedule) -> Schedule:
        """Map a schedule of `problem` to the original; it must place every task on a device that may run it."""
        return list(self.restorations(schedule))[-1]

    def restorations(self, schedule: Schedule) -> Iterator[Schedule]:
        """The schedule in `problem`, then in the problem before each step, last step first."""
        yield schedule
        for step in reversed(self.steps):
            schedule = step.reduction.restore(schedule)
            yield schedule

    def clusters(self, label: Int | None = None) -> Int | None:
        """The clusters (n,) of the original's tasks, numbered in order of first appearance; None if a pass has none.

        All tasks of a cluster get one device from `restore`. Two tasks share a cluster if they are of one colocation
        group, or if their devices are those of tasks of one group of `problem`, or of tasks with one `label` (n',). A
        pass has none if it does not state the leaders of its reduction.
        """
        leader: Int | None = None
        for step in self.steps:
            if step.reduction.leader is None and step.reduction.problem.task_names != step.before.task_names:
                return None
            leader = followed(leader, step.reduction.leader)
        if leader is None:
            leader = np.arange(self.original.n_tasks)
        led = np.flatnonzero(leader >= 0)
        joined = [(np.arange(len(leader)), self.original.group)]
        joined += [(led, labels[leader[led]]) for labels in (self.problem.group, label) if labels is not None]
        first = [tasks[_first_alike(labels)] for tasks, labels in joined]
        left = np.concatenate([tasks for tasks, _ in joined])
        return components(len(leader), left, np.concatenate(first))[0]

    def project(self, schedule: Schedule) -> Schedule | None:
        """Map a schedule of the original to `problem`; None if it has no counterpart or uses an infeasible device."""
        projected: Schedule | None = schedule
        for step in self.steps:
            if projected is None or not _placed(step.before, projected):
                return None
            projected = step.reduction.project(projected)
        return projected


def found_passes(wanted: Iterable[str | Pass] | str | Pass) -> tuple[Pass, ...]:
    """Return passes, given as objects or by name; a single pass needs no list."""
    if isinstance(wanted, str | Pass):
        return (find_pass(wanted),)
    if not isinstance(wanted, Iterable):
        raise UsageError(f"passes is {wanted!r}; expected a list of passes or of their names")
    return tuple(map(find_pass, wanted))


def apply_passes(problem: Problem, passes: Iterable[str | Pass] | str | Pass) -> Chain:
    """Apply passes, given as objects or by name, in order; adjacent exact passes are repeated while that is worthwhile.

    No pass applies to a pipeline: they do not know its stages and replicas. No exact pass applies if devices are
    unavailable for a time, or with resources, where a task may start later than what it waits for allows, or if the
    objective counts what single tasks add (`COUNTED`).

    Raises
    ------
    UsageError
        If a pass or one of its settings is unknown.
    """
    check_problem("apply_passes", problem)
    found = found_passes(passes)
    steps: list[Step] = []
    if problem.pipeline is not None:
        return Chain(problem)
    if set(problem.rules) - {"tiers"} or COUNTED.intersection(problem.objective.metrics):
        found = tuple(each for each in found if not each.exact)
    for exact, block in groupby(found, key=lambda each: each.exact):
        problem = (_exhausted if exact else _once)(problem, list(block), steps)
    original = steps[0].before if steps else problem
    return Chain(original, tuple(steps))


def _once(problem: Problem, passes: Sequence[Pass], steps: list[Step]) -> Problem:
    for each in passes:
        reduction = each.apply(problem)
        if reduction is not None:
            steps.append(Step(each, problem, reduction))
            problem = reduction.problem
    return problem


def _exhausted(problem: Problem, passes: Sequence[Pass], steps: list[Step]) -> Problem:
    while True:
        before, after = problem, _once(problem, passes, steps)
        if (_weight(before) - _weight(after)) * WORTHWHILE < _weight(before) or after is before:
            return after
        problem = after


def _weight(problem: Problem) -> int:
    """The size that decides whether another round is worthwhile."""
    return problem.n_tasks + problem.n_edges + problem.n_groups + int(problem.feasible.sum())


def _first_alike(labels: Int) -> Int:
    """(k,) the first place with the same label as each place."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])


def _placed(problem: Problem, schedule: Schedule) -> bool:
    """Whether every task is on a device that may run it."""
    device = schedule.device
    if not device.shape == schedule.start.shape == (problem.n_tasks,):
        return False
    exists = ((device >= 0) & (device < problem.n_devices)).all()
    return bool(exists and problem.feasible[np.arange(problem.n_tasks), device].all())
