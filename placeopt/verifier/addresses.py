"""The rule `address`: where buffers lie in the memory of their devices.

Of a task, the `resident` bytes are live during the whole schedule, `scratch` in [start, end) and `output` in [start,
freed), as for the rule `memory`. A buffer of 0 bytes, or one that is live at no tick, may lie anywhere.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.model.problem import UNLIMITED
from placeopt.verifier.report import Rule, Violation
from placeopt.verifier.view import View, freed_ticks


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A buffer of a task: bytes [low, high) of its device from tick `begin` to before tick `end`."""

    task: int
    name: str
    low: int
    high: int
    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.name} at [{self.low}, {self.high})"


def address(view: View) -> Iterator[Violation]:
    """address: if the problem has an alignment a, each buffer of s bytes has an offset o with 0 <= o, o + s <= capacity
    and o = 0 mod a, and [o, o + s) and [o', o' + s') do not overlap for buffers of a device that are live at one tick.

    Of overlaps, each buffer is reported with one that begins no later: the one with which it shares most bytes. The
    amount is the number of these bytes, or of those outside the memory.
    """
    alignment, offsets = view.problem.alignment, view.schedule.offsets
    if alignment is None:
        if offsets is not None:
            yield Violation(Rule.ADDRESS, "the schedule has offsets, but the problem asks for no addresses")
        return
    if offsets is None:
        yield Violation(Rule.ADDRESS, "the schedule has no offsets; the problem asks for those of all buffers")
        return
    shape = (view.problem.n_tasks,)
    for kind in ("resident", "output", "scratch"):
        if (found := getattr(offsets, kind).shape) != shape:
            yield Violation(Rule.ADDRESS, f"the offsets of {kind} have shape {found}; expected {shape}")
            return
    for device, buffers in enumerate(_buffers(view)):
        name, capacity = view.problem.device_names[device], int(view.problem.capacity[device])
        for each in buffers:
            task, where = each.task, f"{each} of {name}"
            if each.low < 0:
                message = f"{where} begins before offset 0: {-each.low} bytes outside"
                yield Violation(Rule.ADDRESS, message, task=task, device=device, amount=-each.low)
            if capacity != UNLIMITED and each.high > capacity:
                over = each.high - capacity
                message = f"{where} ends above its {capacity} bytes: {over} too many"
                yield Violation(Rule.ADDRESS, message, task=task, device=device, amount=over)
            if each.low % alignment:
                message = f"{where} does not begin at a multiple of {alignment}"
                yield Violation(Rule.ADDRESS, message, task=task, device=device)
        for late, other in _overlaps(buffers):
            shared = _shared(late, other)
            message = f"{late} and {other} of {name} are both live at tick {late.begin}: {shared} bytes overlap"
            task, other_task = late.task, other.task
            yield Violation(Rule.ADDRESS, message, task=task, other_task=other_task, device=device, amount=shared)


def _buffers(view: View) -> list[list[_Buffer]]:
    """The buffers of each device that are live at some tick."""
    problem, offsets = view.problem, view.schedule.offsets
    assert offsets is not None
    freed, tasks = freed_ticks(view), np.flatnonzero(view.placed).tolist()
    first = min([0, *(int(view.start[task]) for task in tasks)])
    last = max([1, *(int(freed[task]) for task in tasks)])
    found: list[list[_Buffer]] = [[] for _ in range(problem.n_devices)]
    for task in tasks:
        start, end = int(view.start[task]), int(view.end[task])
        lives = {"resident": (first, last), "output": (start, int(freed[task])), "scratch": (start, end)}
        for kind, (begin, until) in lives.items():
            size, low = int(getattr(problem, kind)[task]), int(getattr(offsets, kind)[task])
            if size and begin < until:
                buffer = _Buffer(task, f"the {kind} of {view.task(task)}", low, low + size, begin, until)
                found[int(view.device[task])].append(buffer)
    return found


def _shared(one: _Buffer, other: _Buffer) -> int:
    """The number of addresses that are in both; not positive if none is."""
    return min(one.high, other.high) - max(one.low, other.low)


def _overlaps(buffers: list[_Buffer]) -> Iterator[tuple[_Buffer, _Buffer]]:
    """Each buffer that overlaps one that began no later and is still live, with the one that shares most with it.

    A sweep over the ticks, where ends come before begins. While all live buffers lie apart, only the neighbours of a
    new one can overlap it.
    """
    events = [(buffer.end, 0, buffer.low, k) for k, buffer in enumerate(buffers)]
    events += [(buffer.begin, 1, buffer.low, k) for k, buffer in enumerate(buffers)]
    live: list[tuple[int, int]] = []  # by offset
    apart = True
    for _, begins, low, k in sorted(events):
        place = bisect_left(live, (low, k))
        if not begins:
            del live[place]
            continue
        near = live[max(place - 1, 0) : place + 1]
        if not apart or any(_shared(buffers[k], buffers[other]) > 0 for _, other in near):
            apart = False
            shared = [(_shared(buffers[k], buffers[other]), -other) for _, other in live]
            most, worst = max(shared, default=(0, 0))
            if most > 0:
                yield buffers[k], buffers[-worst]
        insort(live, (low, k))
