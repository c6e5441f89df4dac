"""Rules of execution that a problem may have, each a field of `Problem` that is None without it.

Code that cuts, joins, scales, compares, hashes, checks or writes problems calls the methods of all rules of a problem
(`Problem.stated`) and names none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TypeVar

from placeopt.errors import UsageError
from placeopt.model.arrays import Bool, Int, Record, whole_numbers

Some = TypeVar("Some", bound="Rule")


class Rule(Record):
    """Base class of rules, for n tasks and m devices. A default is valid for each rule that does not override it."""

    __slots__ = ()

    def kinds(self, field: str) -> tuple[str, ...]:
        """The names of the rule in `Problem.rules`, as the value of a field."""
        return (field,)

    def hashed(self, field: str) -> dict[str, Any]:
        """What the fingerprint of a problem contains of it."""
        return {f"{field}_{name}": value for name, value in self.parts().items()}

    def counts(self) -> dict[str, int]:
        """The numbers of tasks and devices that it is for, where it depends on them."""
        raise NotImplementedError

    def columns(self, d: int) -> tuple[Any, ...]:
        """What a device class depends on."""
        raise NotImplementedError

    def part(self, tasks: Int, devices: Int) -> Any:
        """The rule for some tasks and devices, by their indices; None if it no longer restricts anything."""
        raise NotImplementedError

    def merged(self, sequence: Int, first: Int) -> Any:
        """The rule for clusters of tasks: those of `sequence` from each entry of `first` on, one after another.

        Unless it says otherwise, a rule about devices stays the same, and clusters keep no other: the schedule of their
        tasks is re-timed.
        """
        return None if "tasks" in self.counts() else self

    def kept(self, device: Int, start: Int, end: Int) -> bool:
        """Whether tasks (n,) on devices keep it, as far as it is about neither memory nor transfers."""
        raise NotImplementedError

    def divided(self, unit: int) -> Any:
        """The rule in ticks of `unit` ticks, which divides `times`; None if times do not scale under it."""
        return None

    def times(self) -> tuple[Int, ...]:
        """Ticks on which starts of tasks depend."""
        return ()

    def first_starts(self, device: Int, ticks: Int) -> Int | int:
        """(n,) ticks before which tasks that take `ticks` (n,) on devices (n,) cannot start, or one for all."""
        return 0

    def over(self) -> int:
        """The tick from which it closes no device."""
        return 0

    def delays(self, feasible: Bool) -> Int | int:
        """(n,) ticks that it adds before each task at most, on the devices (n, m) that may run it, or one for all."""
        return 0

    def closed(self, device: Int, start: Int, end: Int) -> tuple[str, Int, Int, Int] | None:
        """Times in which it keeps devices from running tasks, those of `kept`: a word, devices, begins, ends."""
        return None

    def task_keys(self, i: int) -> dict[str, Any]:
        """Keys of a task in a document."""
        return {}

    def device_keys(self, d: int) -> dict[str, Any]:
        """Keys of a device in a document."""
        return {}


class Timeless(Rule):
    """Base class of rules that contain no times of tasks, but transfers, memory, or runs that follow each other."""

    __slots__ = ()

    def kept(self, device: Int, start: Int, end: Int) -> bool:
        """True: it is not about times of tasks."""
        return True

    def divided(self, unit: int) -> Self:
        """The same."""
        return self


def check_rule(name: str, given: Any, kind: type[Some], **expected: int) -> None:
    """Reject an argument of `build_problem` that is not None, and not of this kind and for these tasks and devices."""
    if given is None:
        return
    one = not name.endswith("s")
    if not isinstance(given, kind):
        maker = f"build_{kind.__module__.rpartition('.')[2]} makes {'it' if one else 'them'}"
        raise UsageError(f"{name} is a {type(given).__name__}; expected {kind.__name__}, as {maker}")
    if (counts := given.counts()) != (wanted := {axis: expected[axis] for axis in counts}):
        size = " and ".join(f"{count} {axis}" for axis, count in counts.items())
        right = " and ".join(map(str, wanted.values()))
        raise UsageError(f"{name}: {'it is' if one else 'they are'} for {size}; expected {right}")


def joined_windows(name: str, given: Iterable[Iterable[tuple[int, int]]]) -> tuple[list[int], list[int], list[int]]:
    """Row, begins and ends of the windows of each device, in order; those that overlap or touch become one."""
    row, begin, end = [0], list[int](), list[int]()
    for d, windows in enumerate(given):
        pairs = []
        for k, window in enumerate(windows):
            low, high = whole_numbers(f"{name}[{d}][{k}]", window, (2,), "begin, end").tolist()
            if high <= low:
                raise UsageError(f"{name}[{d}][{k}] is ({low}, {high}); expected an end after the begin")
            pairs.append((low, high))
        for low, high in sorted(pairs):
            if len(end) > row[-1] and low <= end[-1]:
                end[-1] = max(end[-1], high)
            else:
                begin.append(low)
                end.append(high)
        row.append(len(begin))
    return row, begin, end
