"""Consolidate a schedule: use fewer devices, segments and transfers, at most a stated share worse.

A schedule that is optimal in the model may spread a graph over devices for less than the model's own error. Every
segment and every transfer has a cost when the plan runs, and a plan on one device needs no runtime for several.

Search for a schedule with fewer `Pieces`, compared as a tuple: devices, then segments (`placeopt.model.segments`, in
the order of each device), then transfers. Each level of the objective may get worse by the stated share of its value.
Every accepted schedule is verified.

1. Fewer devices: all tasks on one device; then devices are dropped while that succeeds, the least busy one first. Their
   groups go to one other device, or HEFT places all tasks on the remaining devices.
2. Fewer segments and transfers: the groups of a segment move to a neighbour's device, the shortest segment first.

The number of candidates is limited by the size of the problem, so that the result is repeatable unless the caller stops
the search. The number of devices is proved to be least if one device is enough, or if lower bounds above the limit
exist for each choice of one device less. Segments and transfers are not proved to be least.

The search runs in a thread: a candidate for a large graph takes a second, but a caller who stops it waits for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np

from placeopt.bounding.quick import best_bound, prove_infeasible
from placeopt.errors import UsageError, counted
from placeopt.model.arrays import Bool, Int, checked_share
from placeopt.model.building import with_changes
from placeopt.model.modes import homes
from placeopt.model.objective import Value, evaluate, moved_edges
from placeopt.model.problem import CONSOLIDATE, Problem
from placeopt.model.resource_use import occupied_devices
from placeopt.model.schedule import Schedule, durations
from placeopt.model.segments import cut_segments
from placeopt.protocol import Options, unsupported
from placeopt.protocol.registry import find_solver
from placeopt.simulation import simulate
from placeopt.verifier import verify

EFFORT = 2 * 10**6
"""Largest number of tasks and edges in all candidates together."""

CHOICES = 300
"""Largest number of choices of devices for which bounds are computed."""

POLL = 0.05
"""Seconds between two calls of `should_stop`."""


class Pieces(NamedTuple):
    """What a plan is made of. Smaller tuples are simpler plans."""

    devices: int
    """Devices that run a task."""
    segments: int
    """Parts that a device runs without waiting for another device in between."""
    transfers: int
    """Transfers between devices."""


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What a consolidation changed.

    Attributes
    ----------
    share
        The share by which each level of the objective could get worse.
    before, after
        The pieces of both schedules.
    values
        The objective of the schedule before, one value per level.
    increase
        By how much the first level is worse, as a share of its value before.
    fewest
        Whether no schedule within the share uses fewer devices, by a proof.
    stopped
        Whether the time limit or the caller ended the search, so that another run may find another schedule.
    """

    share: Fraction
    before: Pieces
    after: Pieces
    values: tuple[Value, ...]
    increase: float
    fewest: bool
    stopped: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "share": float(self.share),
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "objective_before": [float(value) if isinstance(value, Fraction) else value for value in self.values],
            "increase": self.increase,
            "fewest_devices_proved": self.fewest,
            "stopped": self.stopped,
        }

    def __str__(self) -> str:
        changes = [
            f"{counted(new, name[:-1])} instead of {old:,}"
            for name, old, new in zip(Pieces._fields, self.before, self.after, strict=True)
            if old != new
        ]
        within = f"within {100 * float(self.share):.3g}% of the objective"
        worse = f"{100 * abs(self.increase):.2g}% {'worse' if self.increase > 0 else 'better'}"
        parts = [f"{', '.join(changes)}: {worse if self.increase else 'not worse'}" if changes else ""]
        parts[0] = parts[0] or f"no simpler schedule found {within}"
        if self.fewest and self.after.devices > 1:
            parts.append(f"no schedule {within} has fewer devices")
        if self.stopped:
            parts.append("the search was stopped before its end")
        return "; ".join(parts)


def pieces(problem: Problem, schedule: Schedule) -> Pieces:
    """Count the devices, segments and transfers of a schedule; modes of a device are one device."""
    segments = cut_segments(problem, schedule, keep_order=True)
    edges, home = moved_edges(problem, schedule.device), homes(problem)[schedule.device]
    moved = home[problem.edge_source[edges]] != home[problem.edge_target[edges]]
    return Pieces(len(np.unique(occupied_devices(problem, schedule)[1])), len(segments), int(moved.sum()))


def consolidate(
    problem: Problem,
    schedule: Schedule,
    share: Fraction | float = CONSOLIDATE,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[Schedule, Consolidation]:
    """Return a simpler schedule whose value is at most `share` worse on each level, and what changed.

    The schedule itself is returned if no simpler one is found, or if the share is 0, which means in all places that
    nothing is to be changed. Pipelines are not supported: their stages are pieces that the objective `period` already
    divides.

    Parameters
    ----------
    should_stop
        Called every 50 ms; once it returns True, the simplest schedule so far is returned.

    Raises
    ------
    UsageError
        If the schedule is not feasible, the share is not from 0 to 1, or the problem is a pipeline.
    """
    share = checked_share("share", share)
    if problem.pipeline is not None:
        raise UsageError("consolidate does not support pipelines; state `stages: contiguous` for one piece a stage")
    report = verify(problem, schedule)
    if not report.feasible or report.objective is None:
        raise UsageError("consolidate takes a feasible schedule; this one violates rules, see `verify`")
    search = _Search(problem, schedule, report.objective, share)
    before = search.best[1]
    if share and before.devices > 1:
        search.run(should_stop)
    found, after = search.best
    value, now = report.objective[0], evaluate(problem, found)[0]
    increase = float((now - value) / Fraction(value)) if value else 0.0
    fewest = after.devices <= 1 or (search.fewest and not search.stopped)
    return found, Consolidation(share, before, after, report.objective, increase, fewest, search.stopped)


class _Search:
    """The best schedule so far with its pieces, and the candidates that are left to try."""

    def __init__(self, problem: Problem, schedule: Schedule, values: tuple[Value, ...], share: Fraction) -> None:
        self.problem = problem
        self.limits = tuple(value + value * share for value in values)
        self.best = schedule, pieces(problem, schedule)
        self.left = EFFORT // max(problem.n_tasks + problem.n_edges, 1)
        self.able = problem.group_feasible()
        self.fewest = self.stopped = False
        self._stop = Event()

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Search in a thread, until it ends or the caller stops it."""
        failures: list[BaseException] = []

        def search() -> None:
            try:
                self.fewer_devices()
                self.fewer_segments()
                self.fewest = self._needs(self.best[1].devices)
            except BaseException as error:  # noqa: BLE001  raised by the caller's thread below
                failures.append(error)

        thread = Thread(target=copy_context().run, args=(search,), name="consolidation", daemon=True)
        self.stopped = should_stop()
        if not self.stopped:
            thread.start()
        try:
            while thread.is_alive() and not self.stopped:
                thread.join(POLL)
                self.stopped = thread.is_alive() and should_stop()
        finally:
            self._stop.set()
        for error in failures:
            raise error

    @property
    def ended(self) -> bool:
        """Whether the search is to end."""
        return self.left <= 0 or self._stop.is_set()

    def accepts(self, device: Int) -> bool:
        """Whether a placement, in the order of the best schedule, is simpler and within the limits; keep it if so."""
        if self.ended:
            return False
        return self.takes(simulate(self.problem, device, discipline="order", order=self.best[0].start))

    def takes(self, schedule: Schedule) -> bool:
        """Whether a schedule is simpler and within the limits; keep it if so."""
        self.left -= 1
        values = evaluate(self.problem, schedule)
        if any(value > limit for value, limit in zip(values, self.limits, strict=True)):
            return False
        found = pieces(self.problem, schedule)
        if found >= self.best[1] or not verify(self.problem, schedule).feasible:
            return False
        self.best = schedule, found
        return True

    def fewer_devices(self) -> None:
        """Try one device, then drop devices one by one."""
        _, first = np.unique(self.problem.device_class, return_index=True)
        for d in sorted(first.tolist()):
            if self.able[:, d].all() and self.accepts(np.full(self.problem.n_tasks, d)):
                return
        while self.best[1].devices > 2 and any(map(self._drops, self._by_load())):
            pass

    def _by_load(self) -> list[int]:
        """The used devices, the least busy one first."""
        device = self.best[0].device
        busy = np.bincount(device, durations(self.problem, device), self.problem.n_devices)
        return sorted(set(device.tolist()), key=lambda d: (busy[d], d))

    def _drops(self, dropped: int) -> bool:
        """Whether the schedule can do without a device."""
        device, group = self.best[0].device, self.problem.group
        moving = np.unique(group[device == dropped])
        rest = [d for d in self._by_load() if d != dropped]
        for d in rest:
            if self.able[moving, d].all() and self.accepts(np.where(device == dropped, d, device)):
                return True
        return self._replaced(rest)

    def _replaced(self, devices: list[int]) -> bool:
        """Whether HEFT finds a schedule within the limits on these devices."""
        heft, within = find_solver("heft"), _within(self.problem, devices)
        if within is None or self.ended or unsupported(heft.info, within) is not None:
            return False
        found = heft.solve(within, Options(), heft.settings_type())
        return found.schedule is not None and self.takes(found.schedule)

    def fewer_segments(self) -> None:
        """Move segments to the devices of their neighbours, until none can move."""
        if self.best[1].devices == 1:
            return
        while any(self.accepts(device) for device in self._moves()):
            pass

    def _moves(self) -> Iterator[Int]:
        """Placements that differ from the best one by a segment, with the groups of its tasks."""
        problem, device = self.problem, self.best[0].device
        segments = cut_segments(problem, self.best[0], keep_order=True)
        ticks = np.bincount(segments.member, durations(problem, device), len(segments))
        source, target = segments.member[problem.edge_source], segments.member[problem.edge_target]
        this, other = np.concatenate((source, target)), np.concatenate((target, source))
        near = np.unique(this * problem.n_devices + segments.device[other])
        first = np.searchsorted(near, np.arange(len(segments) + 1) * problem.n_devices)
        for k in np.argsort(ticks, kind="stable").tolist():
            if self.ended:
                return
            groups = np.unique(problem.group[segments.tasks(k)])
            for d in (near[first[k] : first[k + 1]] % problem.n_devices).tolist():
                if d != segments.device[k] and self.able[groups, d].all():
                    moving = np.zeros(problem.n_groups, dtype=np.bool_)
                    moving[groups] = True
                    yield np.where(moving[problem.group], d, device)

    def _needs(self, devices: int) -> bool:
        """Whether each choice of one device less has a lower bound above the limit, or no schedule."""
        if self.problem.has_modes:  # the choices are of modes and teams, not of devices
            return devices <= 1
        problem, classes = self.problem, range(int(self.problem.device_class.max(initial=-1)) + 1)
        members = [np.flatnonzero(problem.device_class == c).tolist() for c in classes]
        if devices <= 1 or len(members) > CHOICES:
            return devices <= 1
        choices = list(islice(_choices([len(each) for each in members], devices - 1), CHOICES + 1))
        if len(choices) > CHOICES or len(choices) * problem.n_tasks * problem.n_devices > EFFORT:
            return False
        for counts in choices:
            chosen = [d for count, each in zip(counts, members, strict=True) for d in each[:count]]
            within = _within(problem, chosen)
            if self._stop.is_set():
                return False
            if within is not None and prove_infeasible(within) is None and best_bound(within).value <= self.limits[0]:
                return False
        return True


def _within(problem: Problem, devices: list[int]) -> Problem | None:
    """The problem with some of its devices only; None if a group can run on none of them."""
    usable: Bool = np.zeros(problem.n_devices, dtype=np.bool_)
    usable[devices] = True
    feasible = problem.feasible & usable
    if not feasible.any(axis=1).all():
        return None
    return with_changes(problem, feasible=feasible, duration=np.where(feasible, problem.duration, 0))


def _choices(sizes: list[int], total: int) -> Iterator[tuple[int, ...]]:
    """The numbers of devices of each class, for all choices of `total` devices; classes have these sizes."""
    if not sizes:
        yield ()
        return
    first, *others = sizes
    for count in range(max(0, total - sum(others)), min(first, total) + 1):
        for rest in _choices(others, total - count):
            yield (count, *rest)
