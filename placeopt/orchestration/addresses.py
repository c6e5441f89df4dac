"""Solve problems with addresses: a schedule whose memory is counted in bytes first, then offsets for its buffers.

The problem that only counts bytes is a relaxation: its lower bounds hold, and if it is infeasible, so is the problem
with addresses. Outputs that may share bytes count as 0; reserved bytes are not in the counted memory. If no offsets are
found for a schedule, the problem is solved again with less memory of the devices that lack it, so that fewer bytes are
live at a time. The cuts double until offsets are found. Cuts with which the solver finds no schedule are halved towards
the largest ones for which it found one.

A solver that models addresses (`Info.addresses`) gets the remaining time for the problem itself, to improve the plan,
to prove that it is optimal, or that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.allocation.plans import place_schedule
from placeopt.allocation.solving import Allocation
from placeopt.errors import InternalError, counted, listing, visible
from placeopt.model.arrays import Int
from placeopt.model.memory import peak_memory
from placeopt.model.metrics import device_uses
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.model.units import size_text
from placeopt.orchestration.result import Result
from placeopt.passes.rebuilding import rebuilt
from placeopt.protocol import Clock, Solver, Termination
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
    """Bytes (m,) by which the counted memory of each device is less: those to try, and what is known of others."""

    tried: Int
    failed: Int  # the largest with a schedule, but without offsets
    lost: Int | None = None  # the least without a schedule

    def deepen(self, lacking: Mapping[int, Allocation], counted: Int) -> bool:
        """Cut more from devices without offsets; return whether there is anything left to try.

        (m,) bytes were counted on each device.
        """
        self.failed = self.tried
        if self.lost is not None:
            return self._halve()
        self.tried = self.tried.copy()
        for d, each in lacking.items():
            assert each.capacity is not None
            # At least one byte less than what was counted, and what alignments and gaps are known to take.
            least = max(each.capacity - int(counted[d]) + 1, each.bound - each.live, 2 * int(self.tried[d]))
            self.tried[d] = min(least, each.capacity)
        return not np.array_equal(self.tried, self.failed)

    def relax(self) -> bool:
        """Cut less, as there was no schedule; return whether there is anything left to try."""
        self.lost = self.tried
        return self._halve()

    def _halve(self) -> bool:
        assert self.lost is not None
        self.tried = (self.failed + self.lost) // 2
        return not np.array_equal(self.tried, self.failed)


class Addressing:
    """One solve of a problem that has an alignment.

    `solve` solves a problem without addresses, or one with them if the solver models them. The time limit in seconds is
    for all schedules and offsets; without one, the offsets of a schedule have LONGEST seconds.
    """

    def __init__(
        self,
        problem: Problem,
        solve: Callable[..., Result],
        time_limit: float | None,
        should_stop: Callable[[], bool],
    ) -> None:
        self.problem, self._solve, self._should_stop = problem, solve, should_stop
        self._clock = Clock(time_limit)
        self._tries, self._timed = 0, False
        none = np.zeros(problem.n_devices, dtype=np.int64)
        self._reserved = none if problem.layout is None else problem.layout.total
        self._lacking: dict[int, Allocation] = {}  # devices without offsets for the first schedule

    def result(self, solver: Solver, gap_limit: float | None, *, passes: Any, initial: Any, on_progress: Any) -> Result:
        """Return the verified result; only the first schedule starts from the initial one and is reported on."""
        result = self._by_counting(passes, {"initial": initial, "on_progress": on_progress})
        proved = result.termination in (Termination.OPTIMAL, Termination.INFEASIBLE)
        close = gap_limit is not None and result.gap is not None and result.gap <= gap_limit
        if proved or close or result.consolidation is not None or not solver.info.addresses or self._over():
            return result
        exact = self._solve(
            self.problem, time_limit=self._part(1.0), should_stop=self._should_stop, passes=(), on_progress=None,
            initial=result.schedule if result.feasible else None,
        )  # fmt: skip
        exact = replace(exact, wall_time=replace(exact.wall_time, solve=self._clock.elapsed))
        if exact.termination is Termination.INFEASIBLE:
            return exact
        if not exact.feasible:
            ended = exact.termination if exact.termination in ENDED else result.termination
            return replace(result, termination=ended, varies_by=result.varies_by or exact.varies_by)
        return _with_bound(exact, result)

    def _by_counting(self, passes: Any, first: Mapping[str, Any]) -> Result:
        """Return the result of schedules for counted memory, each with a search for offsets."""
        cuts, more = _Cuts(self._reserved, self._reserved), True
        start: Result | None = None
        while more and self._tries < TRIES and not (self._tries and self._over()):
            given = {"initial": None, "on_progress": None} if self._tries else first
            found = self._solve(
                counting(self.problem, cuts.tried), time_limit=self._part(SHARE), should_stop=self._should_stop,
                passes=passes, **given,
            )  # fmt: skip
            self._tries += 1
            if start is None:
                start = replace(found, problem=self.problem)
                if not found.feasible:
                    return start if found.schedule is None else _verified(start, found.schedule)
            if found.schedule is None or not found.feasible:
                more = cuts.relax()
                continue
            limit = self._part(0.5)
            placed, offsets = place_schedule(
                self.problem, found.schedule, time_limit=LONGEST if limit is None else min(limit, LONGEST),
                seed=found.seed, workers=1, should_stop=self._should_stop,
            )  # fmt: skip
            if placed is not None:
                return self._accepted(start, found, placed)
            missed = {d: each for d, each in offsets.items() if each.offset is None}
            self._lacking = self._lacking or missed
            self._timed |= any(each.fits is None for each in missed.values())
            more = cuts.deepen(missed, peak_memory(self.problem, found.schedule))
        assert start is not None
        return self._refused(start)

    def _over(self) -> bool:
        return self._clock.over or self._should_stop()

    def _part(self, share: float) -> float | None:
        """Seconds of the remaining time; a solver that gets almost none ends by itself."""
        return None if self._clock.remaining is None else max(share * self._clock.remaining, 1e-3)

    def _accepted(self, start: Result, found: Result, schedule: Schedule) -> Result:
        """The result of a schedule with offsets; only the first solve had all memory, so only its bound holds."""
        result = _verified(replace(found, problem=self.problem), schedule)
        if not result.feasible:
            raise InternalError(f"a plan with addresses is not verified: {result.violations[0]}")
        result = replace(
            result, devices=device_uses(self.problem, schedule),
            wall_time=replace(result.wall_time, solve=self._clock.elapsed),
        )  # fmt: skip
        if self._tries == 1:
            return result
        note = f"offsets were found for schedule {self._tries}, with less memory counted"
        ended = result.termination if result.termination in ENDED else Termination.COMPLETED
        result = replace(
            result, termination=ended, bound=None, progress=(), varies_by=start.varies_by or result.varies_by,
            message="; ".join(filter(None, (result.message, note))),
        )  # fmt: skip
        return _with_bound(result, start)

    def _refused(self, start: Result) -> Result:
        """The result without a schedule."""
        lacking = [
            f"{size_text(each.bound)} of {visible(self.problem.device_names[d])}, which has {size_text(capacity)}"
            for d, each in self._lacking.items()
            if (capacity := each.capacity) is not None
        ]
        note = (
            f"no offsets were found for {counted(self._tries, 'schedule')}; the first needs at least "
            f"{listing(lacking)}; it is not proved that there are none"
        )
        missed = Termination.TIME_LIMIT if self._clock.over else Termination.FAILED
        ended = Termination.INTERRUPTED if self._should_stop() else missed
        return replace(
            start, schedule=None, feasible=None, violations=(), values=None, makespan=None, devices=(), clusters=None,
            consolidation=None, termination=ended, message="; ".join(filter(None, (start.message, note))),
            wall_time=replace(start.wall_time, solve=self._clock.elapsed),
            varies_by=start.varies_by or ("clock" if self._timed or ended in ENDED else ""),
        )  # fmt: skip


def counting(problem: Problem, cuts: Int | int = 0) -> Problem:
    """The problem without addresses, and with less memory by `cuts` (m,) bytes."""
    capacity = np.where(problem.capacity == UNLIMITED, UNLIMITED, problem.capacity - cuts)
    return rebuilt(problem, capacity=capacity, alignment=None, layout=None)[0]


def _verified(result: Result, schedule: Schedule) -> Result:
    """The result with another schedule, and what the verifier finds."""
    report = verify(result.problem, schedule)
    return replace(result, schedule=schedule, feasible=report.feasible, violations=report.violations)


def _with_bound(result: Result, other: Result) -> Result:
    """The result with the bound of another solve if that is better; optimal if the bound is its objective."""
    if other.bound is not None and (result.bound is None or other.bound > result.bound):
        result = replace(result, bound=other.bound, bound_source=other.bound_source)
    optimal = result.bound is not None and result.values == (result.bound,)
    return replace(result, termination=Termination.OPTIMAL) if optimal else result
