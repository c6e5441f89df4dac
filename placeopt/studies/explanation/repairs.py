"""Find for each constraint of a conflict the smallest change that makes the problem feasible."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.allocation.plans import plan_buffers
from placeopt.allocation.solving import allocate
from placeopt.allocation.views import fullest_text, unaligned
from placeopt.errors import counted, listing, visible
from placeopt.model.arrays import Int
from placeopt.model.buffers import memory_heights
from placeopt.model.modes import place_text
from placeopt.model.objective import METRICS, UNITS
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.model.units import TIME, exact_size, parse, time_text
from placeopt.simulation import simulate
from placeopt.studies.explanation.constraints import CAPACITIES, RESTRICTIONS, Constraint, System
from placeopt.studies.explanation.oracle import Oracle, Verdict
from placeopt.views.facts import amount_text

_SHARE = 0.2
"""Share of the remaining time that one question may use."""


@dataclass(frozen=True, slots=True, eq=False)
class Repair:
    """A change of one constraint that makes the problem feasible, or if not `whole`, resolves at least this conflict.

    Attributes
    ----------
    text
        The change as a clause.
    amount
        The new amount (bytes, ticks of a deadline or release time, or as the file states it), if there is one.
    least
        Whether no smaller change suffices, or whether `devices` is complete.
    devices
        Names of the devices on which the task could be instead.
    whole
        Whether the change makes the whole problem feasible; if not, another conflict remains. None: undecided.
    schedule
        A verified schedule of the changed problem (or set).
    detail
        With addresses, what fills the memory in this schedule; else empty.
    """

    text: str
    amount: int | float | None
    least: bool
    devices: tuple[str, ...]
    whole: bool | None
    schedule: Schedule
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain data."""
        return {
            "text": self.text, "amount": self.amount, "least": self.least, "devices": list(self.devices),
            "whole": self.whole, "detail": self.detail,
        }  # fmt: skip


def repair_of(system: System, oracle: Oracle, number: int, members: Collection[int], needed: Verdict) -> Repair | None:
    """Return the smallest change of one member that makes the problem feasible; None if none is found in time.

    `needed` holds a schedule for the other members.
    """
    everything = range(len(system.constraints))
    free = oracle.decide([other for other in everything if other != number], share=_SHARE)
    whole = free.feasible
    active = tuple(everything) if whole else tuple(members)
    witness = free.schedule if whole else needed.schedule
    if witness is None:
        return None
    constraint = system.constraints[number]
    search = _Search(system, oracle, number, active, whole, witness)
    if constraint.kind in RESTRICTIONS:
        return search.other_devices()
    if constraint.kind == "addresses":
        return search.other_alignment()
    if constraint.amount is not None:
        return search.other_amount()
    return search.left_out()


class _Search:
    """The search for the smallest change of one constraint, given a schedule that satisfies all others."""

    def __init__(
        self,
        system: System,
        oracle: Oracle,
        number: int,
        active: tuple[int, ...],
        whole: bool | None,
        witness: Schedule,
    ) -> None:
        self.system, self.oracle, self.number, self.active, self.whole = system, oracle, number, active, whole
        self.witness = witness
        self.constraint: Constraint = system.constraints[number]
        self.task = 0 if self.constraint.task is None else self.constraint.task

    def left_out(self) -> Repair:
        """Drop the label, the limit of a pipeline, or a window in which devices are unavailable."""
        if self.constraint.window is not None:
            return self._mend("if available then", self.witness, least=False)
        if self.constraint.task is None:
            text = "without this limit" if self.constraint.kind == "stages" else "if it keeps those of one run"
            return self._mend(text, self.witness, least=False)
        problem = self.system.problem
        name, device = visible(problem.task_names[self.task]), place_text(problem, int(self.witness.device[self.task]))
        text = f"without label {visible(self.constraint.label)}, task {name} can be on {device}"
        return self._mend(text, self.witness, devices=(device,), least=False)

    def other_devices(self) -> Repair:
        """Find all devices on which the task could be instead, each tried separately."""
        problem, allowed = self.system.problem, self.constraint.allowed
        assert allowed is not None
        own = int(self.witness.device[self.task])
        found, complete = [own], True
        for d in np.flatnonzero(self.system.runnable[self.task] & ~allowed).tolist():
            if d != own:
                alone = np.arange(problem.n_devices) == d
                verdict = self.oracle.decide(self.active, {self.number: alone}, share=_SHARE)
                complete &= verdict.feasible is not None
                found += [d] * (verdict.feasible is True)
        names = tuple(place_text(problem, d) for d in sorted(found))
        feature = f" does not require {visible(self.constraint.label)} and" if self.constraint.label else ""
        verb = "is" if self.constraint.kind in ("placement", "pin") else "may also run"
        one = "one of " if len(names) > 1 else ""
        text = f"if the task{feature} {verb} on {one}{listing(names, 6)}" + ("" if complete else ", possibly others")
        return self._mend(text, self.witness, devices=names, least=complete)

    def other_alignment(self) -> Repair:
        """Find the largest divisor of the alignment that suffices; otherwise, bytes that are only counted do."""
        stated, sure = self.constraint.amount or 1, True
        for step in _smaller_divisors(stated):
            verdict = self.oracle.decide(self.active, {self.number: step}, share=_SHARE)
            if verdict.schedule is not None:
                text = f"with the alignment {exact_size(step)}" + ("" if sure else " (a larger one may suffice)")
                return self._mend(text, verdict.schedule, amount=step, least=sure)
            sure &= verdict.feasible is False
        shared = ", and outputs that may share bytes count as none" if self.system.problem.layout is not None else ""
        return self._mend(f"without addresses, if bytes are only counted{shared}", self.witness, least=sure)

    def other_amount(self) -> Repair:
        """Find the sufficient amount nearest to the stated one by bisection between a bound and a schedule's need.

        Release times are negated, so that a smaller amount is always harder.
        """
        constraint = self.constraint
        assert constraint.amount is not None
        sign = -1 if constraint.kind == "release" else 1
        need = self._need()
        rest = self.system.relaxed([number for number in self.active if number != self.number])
        schedule = self._lowest(rest, self.witness)
        best = sign * need(schedule)
        bound, placed = self._bound()
        if placed is not None:
            found = self.oracle.addressed(rest, simulate(rest, placed))
            if found is not None and sign * need(found) < best:
                best, schedule = sign * need(found), found
        stated = sign * constraint.amount + 1
        least = stated if bound is None else max(stated, sign * bound)
        probe = least  # the bound itself usually suffices
        sure = True
        while least < best and sure:
            verdict = self.oracle.decide(self.active, {self.number: sign * probe}, share=_SHARE)
            if verdict.schedule is not None:
                schedule = self._lowest(rest, verdict.schedule)
                best = min(probe, sign * need(schedule))
            elif verdict.feasible is False:
                least = probe + 1
            else:
                sure = False
            probe = (least + best) // 2
        amount = sign * best
        repair = self._mend(self._amount_text(amount, sure), schedule, amount=self._stated(amount), least=sure)
        memory = constraint.kind == "memory" and rest.alignment is not None
        return replace(repair, detail=self._filling(rest, schedule)) if memory else repair

    def _lowest(self, rest: Problem, schedule: Schedule) -> Schedule:
        """Return the schedule with offsets for unlimited memory if memory is searched, else as it is."""
        if self.constraint.kind != "memory" or rest.alignment is None:
            return schedule
        found = self.oracle.addressed(rest, replace(schedule, offsets=None))
        return schedule if found is None or self._height(found) > self._height(schedule) else found

    def _height(self, schedule: Schedule) -> int:
        """Return what a device of the constraint needs in bytes at most, up to the end of its topmost buffer."""
        heights = memory_heights(self.system.problem, schedule)
        assert heights is not None
        return int(heights[self.system.pools[self.constraint.label]].max())

    def _filling(self, rest: Problem, schedule: Schedule) -> str:
        """State what is live when the device with the least room holds most, and what the alignment costs."""
        heights = memory_heights(rest, schedule)
        d = max(self.system.pools[self.constraint.label], key=lambda d: 0 if heights is None else heights[d])
        found = allocate(plan_buffers(rest, schedule, d), time_limit=self.oracle.seconds(_SHARE))
        text = f"then {visible(rest.device_names[d])} holds up to "
        text += fullest_text(found.problem, lambda tick: _time(tick, rest.resolution))
        free = unaligned(found, time_limit=self.oracle.seconds(_SHARE))
        if free is None or free.height is None or free.height >= self._height(schedule):
            return text
        return f"{text}; without alignment, this schedule fits in {exact_size(free.height)}"

    def _need(self) -> Callable[[Schedule], int]:
        """Return a function that computes the amount that a schedule needs."""
        constraint = self.constraint
        if constraint.kind == "limit":
            metric = METRICS[constraint.label]  # type: ignore[index]
            return lambda schedule: metric(self.system.problem, schedule)
        if constraint.kind in CAPACITIES:
            rest = self.system.relaxed([number for number in self.active if number != self.number])
            if constraint.kind == "memory" and rest.alignment is not None:
                return self._height
            return lambda schedule: self.system.needed(constraint, rest, schedule)
        if constraint.kind == "release":
            return lambda schedule: int(schedule.start[self.task])
        ticks = self.system.ticks[self.task]
        return lambda schedule: int(schedule.start[self.task] + ticks[schedule.device[self.task]])

    def _bound(self) -> tuple[int | None, Int | None]:
        """Return a bound: no better amount suffices; and a placement that may suffice with little more."""
        deadlines = any(self.system.constraints[number].kind == "deadline" for number in self.active)
        timed = self.constraint.kind not in CAPACITIES or deadlines
        model = None if self.constraint.kind == "limit" else self.oracle.model(timed=timed)
        if model is None or self.oracle.over:
            return None, None
        return model.least(self.number, self.active, self.oracle.seconds(_SHARE))

    def _stated(self, amount: int) -> int | float:
        """Return an amount as the file states it."""
        if self.constraint.kind == "limit":
            value = Fraction(amount, UNITS.get(self.constraint.label, 1))
            return value.numerator if value.denominator == 1 else float(value)
        if not self.constraint.resources:
            return amount
        assert self.system.resources is not None
        return self.system.resources.stated(self.constraint.resources[0], amount)

    def _amount_text(self, amount: int, sure: bool) -> str:
        constraint, resolution = self.constraint, self.system.problem.resolution
        assert constraint.amount is not None
        more = abs(amount - constraint.amount)
        if constraint.kind in ("resource", "budget"):
            text = f"with {self._stated(amount):.10g} of {visible(constraint.label)}, {self._stated(more):.10g} more"
        elif constraint.kind == "cores":
            text = f"with {counted(amount, 'core')}, {more} more"
        elif constraint.kind in ("memory", "pool"):
            text = f"with {exact_size(amount)}, {exact_size(more)} more"
        elif constraint.kind == "limit":
            sizes = [amount_text(each, constraint.label, resolution, ticks=False) for each in (amount, more)]
            text = f"with the limit {sizes[0]}, {sizes[1]} more"
        elif constraint.kind == "deadline":
            text = f"with the deadline {_time(amount, resolution)}, {_time(more, resolution)} later"
        else:
            text = f"with the release time {_time(amount, resolution)}, {_time(more, resolution)} earlier"
        return text + (" (the minimum)" if sure else " (less may suffice)")

    def _mend(
        self,
        text: str,
        schedule: Schedule,
        *,
        least: bool,
        amount: int | float | None = None,
        devices: tuple[str, ...] = (),
    ) -> Repair:
        return Repair(text, amount, least, devices, self.whole, schedule)


def _smaller_divisors(number: int) -> list[int]:
    """Return the divisors of a number below it, the largest first."""
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return sorted({*small, *(number // k for k in small)} - {number}, reverse=True)


def _time(ticks: int, resolution: Fraction) -> str:
    """Format ticks, with the exact number if the text is rounded."""
    text = time_text(ticks, resolution)
    return text if parse(text, TIME).value == ticks * resolution else f"{text} ({ticks:,} ticks)"
