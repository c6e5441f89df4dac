"""Solve problems with addresses: a schedule whose memory is counted in bytes first, then offsets for its buffers.

The problem that only counts bytes is a relaxation: its lower bounds hold, and if it is infeasible, so is the problem
with addresses. If no offsets are found for a schedule, the problem is solved again with less memory of the devices that
lack it, so that fewer bytes are live at a time. The cuts double until offsets are found. Cuts with which the solver
finds no schedule are halved towards the largest ones for which it found one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.allocation.plans import allocate_plan, plan_offsets
from placeopt.allocation.solving import Allocation
from placeopt.errors import InternalError, listing, visible
from placeopt.model.arrays import Int
from placeopt.model.metrics import device_uses
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.model.units import size_text
from placeopt.orchestration.result import Result
from placeopt.passes.rebuilding import rebuilt
from placeopt.protocol import Clock, Termination
from placeopt.verifier import verify

TRIES = 16
"""Schedules that are tried at most."""

SHARE = 2 / 3
"""Part of the remaining time for a schedule; half of what is left then is for its offsets."""

LONGEST = 10.0
"""Seconds for the offsets of a schedule at most."""

ENDED = (Termination.TIME_LIMIT, Termination.INTERRUPTED)


@dataclass(slots=True, eq=False)
class _Cuts:
    """Bytes by which the counted memory of each device is less: those to try, and what is known of smaller ones."""

    tried: Int
    failed: Int  # the largest with a schedule, but without offsets
    lost: Int | None = None  # the least without a schedule

    def deepen(self, lacking: Mapping[int, Allocation]) -> bool:
        """Cut more from devices without offsets; return whether there is anything left to try."""
        self.failed = self.tried
        if self.lost is not None:
            return self._halve()
        deeper = self.tried.copy()
        for d, each in lacking.items():
            assert each.capacity is not None
            # At least one byte less than what was live, and what alignments and gaps are known to take.
            least = each.capacity - each.live + 1
            deeper[d] = min(max(least, each.bound - each.live, 2 * int(self.tried[d])), each.capacity)
        self.tried = deeper
        return bool((self.tried != self.failed).any())

    def relax(self) -> bool:
        """Cut less, as there was no schedule; return whether there is anything left to try."""
        self.lost = self.tried
        return self._halve()

    def _halve(self) -> bool:
        assert self.lost is not None
        self.tried = (self.failed + self.lost) // 2
        return not np.array_equal(self.tried, self.failed)


def solve_with_addresses(
    problem: Problem,
    solve: Callable[..., Result],
    *,
    time_limit: float | None,
    should_stop: Callable[[], bool],
    first: Mapping[str, Any],
    **options: Any,
) -> Result:
    """Solve a problem that has an alignment; `solve` is that of the pipeline, for problems without one.

    Parameters
    ----------
    time_limit
        Seconds for all schedules and offsets; None for no limit, with LONGEST seconds for the offsets of a schedule.
    first
        Options of the first call only, which has no less memory: what is reported and started from.
    **options
        Options of each call.
    """
    clock = Clock(time_limit)
    cuts = _Cuts(np.zeros(problem.n_devices, dtype=np.int64), np.zeros(problem.n_devices, dtype=np.int64))
    best: Result | None = None
    lacking: dict[int, Allocation] = {}
    more, timed, tries = True, False, 0
    while more and tries < TRIES and not (tries and (clock.over or should_stop())):
        counted = _counted(problem, cuts.tried)
        found = solve(
            counted, time_limit=_part(clock, SHARE), should_stop=should_stop, **options, **({} if tries else first)
        )
        tries += 1
        if best is None:
            best = replace(found, problem=problem)
            if found.schedule is None or not found.feasible:
                return best if found.schedule is None else _verified(best, found.schedule)
        if found.schedule is None or not found.feasible:
            more = found.termination is not Termination.INTERRUPTED and cuts.relax()
            continue
        limit = _part(clock, 0.5)
        placed = allocate_plan(
            problem, found.schedule, time_limit=LONGEST if limit is None else min(limit, LONGEST),
            seed=best.seed, workers=1, should_stop=should_stop,
        )  # fmt: skip
        missed = {d: each for d, each in placed.items() if each.offset is None}
        if not missed:
            schedule = replace(found.schedule, offsets=plan_offsets(problem, found.schedule, placed))
            return _accepted(best, found, schedule, tries, clock)
        lacking, timed = lacking or missed, timed or any(each.fits is None for each in missed.values())
        more = cuts.deepen(missed)
    assert best is not None
    missed_all = Termination.TIME_LIMIT if clock.over else Termination.FAILED
    ended = Termination.INTERRUPTED if should_stop() else missed_all
    varies = best.varies_by or ("clock" if timed or ended in ENDED else "")
    return replace(_refused(best, lacking, tries, clock), termination=ended, varies_by=varies)


def _part(clock: Clock, share: float) -> float | None:
    """Seconds of the remaining time; a solver that gets almost none ends by itself."""
    return None if clock.remaining is None else max(share * clock.remaining, 1e-3)


def _counted(problem: Problem, cuts: Int) -> Problem:
    """The problem without addresses and with less memory."""
    capacity = np.where(problem.capacity == UNLIMITED, UNLIMITED, problem.capacity - cuts)
    return rebuilt(problem, capacity=capacity, alignment=None)[0]


def _verified(result: Result, schedule: Schedule) -> Result:
    """The result with another schedule, and what the verifier finds."""
    report = verify(result.problem, schedule)
    return replace(
        result, schedule=schedule, feasible=report.feasible, violations=report.violations,
        devices=device_uses(result.problem, schedule),
    )  # fmt: skip


def _accepted(best: Result, found: Result, schedule: Schedule, tries: int, clock: Clock) -> Result:
    """The result of a schedule with offsets; its bound is that of the first solve, which had all memory."""
    result = _verified(replace(found, problem=best.problem), schedule)
    if not result.feasible:
        raise InternalError(f"a plan with addresses is not verified: {result.violations[0]}")
    result = replace(result, wall_time=replace(result.wall_time, solve=clock.elapsed))
    if tries == 1:
        return result
    proved = best.bound is not None and result.values == (best.bound,)
    termination = result.termination
    if termination not in ENDED or proved:
        termination = Termination.OPTIMAL if proved else Termination.COMPLETED
    note = f"offsets were found for schedule {tries}, with less memory counted"
    return replace(
        result, termination=termination, bound=best.bound, bound_source=best.bound_source, progress=(),
        message="; ".join(filter(None, (result.message, note))), varies_by=best.varies_by or result.varies_by,
    )  # fmt: skip


def _refused(best: Result, lacking: Mapping[int, Allocation], tries: int, clock: Clock) -> Result:
    """The result without a schedule; `lacking` are devices that have no offsets for the first schedule."""
    names = best.problem.device_names
    devices = [
        f"{visible(names[d])} has {size_text(each.capacity or 0)}, needs at least {size_text(each.bound)}"
        for d, each in lacking.items()
    ]
    what = "1 schedule" if tries == 1 else f"{tries} schedules"
    note = f"no offsets were found for {what} ({listing(devices)}); that there are none is not proved"
    return replace(
        best, schedule=None, feasible=None, violations=(), values=None, makespan=None, devices=(), clusters=None,
        consolidation=None, message="; ".join(filter(None, (best.message, note))),
        wall_time=replace(best.wall_time, solve=clock.elapsed),
    )  # fmt: skip
