"""What would mend an infeasible problem: one constraint at a time, the least other value with which all can hold."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.errors import listing, visible
from placeopt.model.memory import used_memory
from placeopt.model.schedule import Schedule
from placeopt.model.units import MEMORY, TIME, parse, size_text, time_text
from placeopt.studies.explanation.constraints import RESTRICTIONS, Constraint, System
from placeopt.studies.explanation.oracle import Oracle, Verdict

_SHARE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Mend:
    """A change of one constraint after which all constraints can hold, or, if not `whole`, those of the set.

    Attributes
    ----------
    text
        The change, as a clause for people.
    amount
        The new amount (bytes, or ticks of a deadline or release time) where there is one.
    least
        Whether no smaller change of the amount would do, or whether `devices` are all that would do.
    devices
        Names of the devices that the task could be on instead, each alone.
    whole
        Whether the whole problem is feasible then; if not, another contradiction remains beside this one.
    schedule
        A verified schedule of the mended problem (or set).
    """

    text: str
    amount: int | None
    least: bool
    devices: tuple[str, ...]
    whole: bool
    schedule: Schedule


def mend(system: System, oracle: Oracle, number: int, members: Collection[int], needed: Verdict) -> Mend | None:
    """The least change of one member of a minimal set that mends the problem; None if none is found in time.

    `needed` holds a schedule of the set without the member.
    """
    everything = range(len(system.constraints))
    free = oracle.decide([other for other in everything if other != number], share=_SHARE)
    whole = free.feasible is True
    active = tuple(everything) if whole else tuple(members)
    witness = free.schedule if whole else needed.schedule
    if witness is None:
        return None
    constraint = system.constraints[number]
    search = _Search(system, oracle, number, active, whole, witness)
    if constraint.kind in RESTRICTIONS:
        return search.other_devices()
    if constraint.amount is not None:
        return search.other_amount()
    return search.left_out()


class _Search:
    """The search for the least change of one constraint, with a schedule that keeps all others."""

    def __init__(
        self, system: System, oracle: Oracle, number: int, active: tuple[int, ...], whole: bool, witness: Schedule
    ) -> None:
        self.system, self.oracle, self.number, self.active, self.whole = system, oracle, number, active, whole
        self.witness = witness
        self.constraint: Constraint = system.constraints[number]
        self.task = 0 if self.constraint.task is None else self.constraint.task

    def left_out(self) -> Mend:
        """Without the label."""
        name = visible(self.system.problem.task_names[self.task])
        device = self._device(self.witness)
        text = f"without label {visible(self.constraint.label)}, task {name} can be on {device}"
        return self._mend(text, self.witness, devices=(device,), least=False)

    def other_devices(self) -> Mend:
        """All devices that the task could be on instead, each tried alone."""
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
        names = tuple(problem.device_names[d] for d in sorted(found))
        feature = f" does not require {visible(self.constraint.label)} and" if self.constraint.label else ""
        verb = "is" if self.constraint.kind in ("placement", "pin") else "may also run"
        one = "one of " if len(names) > 1 else ""
        text = f"if the task{feature} {verb} on {one}{listing(names, 6)}" + ("" if complete else ", perhaps others")
        return self._mend(text, self.witness, devices=names, least=complete)

    def other_amount(self) -> Mend:
        """The amount that is nearest to the stated one, between what is proved not to do and what a schedule needs.

        Everything is turned so that less is harder: a release time counts as its negative.
        """
        constraint = self.constraint
        assert constraint.amount is not None
        sign = -1 if constraint.kind == "release" else 1
        need = self._need()
        best, schedule = sign * need(self.witness), self.witness
        stated, bound = sign * constraint.amount + 1, self._bound()
        least = stated if bound is None else max(stated, sign * bound)
        probe = least  # the bound is mostly what will do
        sure = True
        while least < best and sure:
            verdict = self.oracle.decide(self.active, {self.number: sign * probe}, share=_SHARE)
            if verdict.schedule is not None:
                best, schedule = min(probe, sign * need(verdict.schedule)), verdict.schedule
            elif verdict.feasible is False:
                least = probe + 1
            else:
                sure = False
            probe = (least + best) // 2
        amount = sign * best
        return self._mend(self._amount_text(amount, sure), schedule, amount=amount, least=sure)

    def _need(self) -> Callable[[Schedule], int]:
        """What a schedule would have wanted the constraint's amount to be."""
        constraint = self.constraint
        if constraint.kind == "memory":
            pool = self.system.pools[constraint.label]
            unlimited = self.system.relaxed(())
            return lambda schedule: int(used_memory(unlimited, schedule)[pool].max())
        if constraint.kind == "release":
            return lambda schedule: int(schedule.start[self.task])
        ticks = self.system.ticks[self.task]
        return lambda schedule: int(schedule.start[self.task] + ticks[schedule.device[self.task]])

    def _bound(self) -> int | None:
        """No better amount than this will do; None if nothing is known."""
        timed = self.constraint.kind != "memory" or self._has_deadlines()
        model = self.oracle.model(timed=timed)
        if model is None or self.oracle.over:
            return None
        return model.least(self.number, self.active, self.oracle.seconds(_SHARE))

    def _has_deadlines(self) -> bool:
        return any(self.system.constraints[number].kind == "deadline" for number in self.active)

    def _amount_text(self, amount: int, sure: bool) -> str:
        constraint, resolution = self.constraint, self.system.problem.resolution
        assert constraint.amount is not None
        more = abs(amount - constraint.amount)
        if constraint.kind == "memory":
            text = f"with {_bytes(amount)}, {_bytes(more)} more"
        elif constraint.kind == "deadline":
            text = f"with the deadline {_time(amount, resolution)}, {_time(more, resolution)} later"
        else:
            text = f"with the release time {_time(amount, resolution)}, {_time(more, resolution)} earlier"
        return text + (" (the least that will do)" if sure else " (perhaps less will do)")

    def _device(self, schedule: Schedule) -> str:
        return self.system.problem.device_names[int(schedule.device[self.task])]

    def _mend(
        self,
        text: str,
        schedule: Schedule,
        *,
        least: bool,
        amount: int | None = None,
        devices: tuple[str, ...] = (),
    ) -> Mend:
        return Mend(text, amount, least, devices, self.whole, schedule)


def _bytes(amount: int) -> str:
    """Bytes for people, with the exact number where the text is rounded."""
    text = size_text(amount)
    return text if parse(text, MEMORY).value == amount else f"{text} ({amount:,} B)"


def _time(ticks: int, resolution: Fraction) -> str:
    """Ticks for people, with the exact number where the text is rounded."""
    text = time_text(ticks, resolution)
    return text if parse(text, TIME).value == ticks * resolution else f"{text} ({ticks:,} ticks)"
