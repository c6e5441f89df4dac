"""Arcs between the cuts: bounds and schedules of block problems, by the devices of their ends and their memory.

An arc of a block belongs to a pair of device classes of its cuts, and to a kind: both cuts on one device, or on two.
Where memory can bind, an arc is a set of *boxes*, each for ranges of the bytes that the block places on some devices
(`labels`). The first box of an arc contains all amounts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from placeopt.bounding.quick.classes import classes_of
from placeopt.bounding.quick.paths import critical_path, windows
from placeopt.model.arrays import Bool
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, makespan

from .._runs.device_classes import class_members
from .blocks import part_of
from .cuts import Block

NEVER = 1 << 60
"""Length of an arc that no schedule has; the sum of two does not overflow."""

SMALL = 0.01
"""Ranges of bytes below this share of the capacity are divided at the bytes of the known schedule, others halved."""


@dataclass(slots=True, eq=False)
class BlockProblem:
    """A block problem with pinned ends, shared by all boxes with the same fingerprint.

    Attributes
    ----------
    lower, upper
        Proved lower bound, and makespan of the schedule, in ticks.
    seconds
        Planned seconds of the last attempt to solve it; 0 before the first.
    """

    problem: Problem
    lower: int
    upper: int = NEVER
    schedule: Schedule | None = None
    seconds: float = 0.0

    def offer(self, schedule: Schedule) -> None:
        """Keep a feasible schedule if it is better."""
        value = makespan(self.problem, schedule)
        if value < self.upper:
            self.schedule = schedule
            self.upper = value  # last, since other threads use the schedule if there is a length


@dataclass(slots=True, eq=False)
class Box:
    """The schedules of a block whose ends run on given devices and hold amounts of memory in given ranges.

    Attributes
    ----------
    start, end
        Classes of the devices of the first and the last cut; 0 for a missing cut.
    devices
        Examples of these devices, -1 for a missing cut; equal if both cuts run on one device.
    low, high
        Least and largest bytes of the block on devices whose memory can bind; 0 and the capacity where left out. The
        bytes of the first cut belong to the block before.
    lower
        A lower bound of the length in ticks, known before the block problem is built.
    exact
        Whether `lower` is the length: the block consists of its cuts, which no constraint restricts.
    """

    start: int
    end: int
    devices: tuple[int, int]
    low: dict[int, int]
    high: dict[int, int]
    lower: int
    exact: bool = False
    problem: BlockProblem | None = None

    @property
    def same(self) -> bool:
        """Whether both ends run on one device."""
        return self.devices[0] == self.devices[1] or self.devices[1] < 0

    @property
    def length(self) -> int:
        """The best known lower bound in ticks."""
        return self.lower if self.problem is None else max(self.lower, min(self.problem.lower, NEVER))

    @property
    def upper(self) -> int:
        """The length of the best known schedule."""
        if self.exact:
            return self.lower
        return NEVER if self.problem is None else self.problem.upper

    @property
    def solved(self) -> bool:
        """Whether its optimum is known, or that it has no schedule."""
        return self.length >= min(self.upper, NEVER)


def _pairs(start: list[int], end: list[int]) -> list[tuple[int, int]]:
    """Return example devices of the arcs between two classes: the same device, and two."""
    if start[0] == end[0]:
        return [(start[0], end[0]), *((start[0], other) for other in end[1:2])]
    return [(start[0], end[0])]


def _free(problem: Problem) -> bool:
    """Return whether two cuts can run on any of their devices, one after the other and the only edge between them.

    Memory under `sum` is a resource of the path.
    """
    held = int(problem.memory.sum())
    return (
        problem.n_edges <= 1
        and problem.n_groups == problem.n_tasks
        and not len(problem.separation)
        and bool((problem.deadline == UNLIMITED).all())
        and (problem.memory_model == "sum" or held <= int(problem.capacity.min()))
    )


class Arcs:
    """All boxes of one block."""

    def __init__(self, problem: Problem, block: Block, bounded: Bool) -> None:
        """Make one box for each arc, with quick bounds; `bounded` (m,) is whether a device's memory can bind."""
        self._inner = block.inner
        self.part = part_of(problem, block)
        self.bounded = bounded
        self.boxes: list[Box] = []
        devices = class_members(problem)
        starts = devices if block.first >= 0 else [[-1]]
        self._ends = devices if block.last >= 0 else [[-1]]
        self.memory = self.part.problem.memory.copy()
        if self.part.first >= 0:
            self.memory[self.part.first] = 0  # it belongs to the block before
        for a, start in enumerate(starts):
            if start[0] < 0 or problem.feasible[block.first, start[0]]:
                self._add_from(a, start)

    def _add_from(self, a: int, start: list[int]) -> None:
        """Add a box for each arc that begins on a class, bounded by the earliest start of the last cut."""
        part, problem = self.part, self.part.problem
        exact = not len(self._inner) and _free(problem)
        head, label = None, None
        if part.last >= 0 and not exact:
            pinned = part.pinned(start[0], -1, problem.capacity)
            head, label = windows(classes_of(pinned)).head[part.last], pinned.device_class
        for b, end in enumerate(self._ends):
            for x, y in _pairs(start, end):
                lower = 0
                if part.last >= 0:
                    if not problem.feasible[part.last, y]:
                        continue
                    earliest = int(problem.release[part.last])
                    if head is not None and label is not None:
                        earliest = int(head[label[y]])
                    elif problem.n_edges:
                        earliest = int(problem.transfer(problem.payload[0], x, y))
                    lower = int(min(earliest + int(problem.duration[part.last, y]), NEVER))
                low = {y: int(self.memory[part.last])} if part.last >= 0 and self.bounded[y] else {}
                self.boxes.append(Box(a, b, (x, y), low, {}, lower, exact))

    def build(self, box: Box, known: dict[str, BlockProblem]) -> None:
        """Build the block problem of a box; `known` are those of all blocks by fingerprint."""
        part = self.part
        capacity = part.problem.capacity.copy()
        for d, high in box.high.items():
            carried = int(part.problem.memory[part.first]) if d == box.devices[0] else 0
            capacity[d] = min(int(capacity[d]), high + carried)
        problem = part.pinned(*box.devices, capacity)
        found = known.get(problem.fingerprint())
        if found is None:
            found = known[problem.fingerprint()] = BlockProblem(problem, NEVER)
            if problem.group_feasible().any(axis=1).all():
                classes = classes_of(problem)
                found.lower = min(critical_path(classes, windows(classes))[0], NEVER)
        box.problem = found

    def held(self, box: Box, device: int) -> int:
        """Return the bytes of the known schedule of a box on a device."""
        if box.exact:
            return box.low.get(device, 0)
        assert box.problem is not None
        assert box.problem.schedule is not None
        return int(self.memory[box.problem.schedule.device == device].sum())

    def split(self, box: Box, device: int) -> None:
        """Divide the range of a box on a device, so that the known schedule is in the upper half."""
        held, low = self.held(box, device), box.low.get(device, 0)
        at = (low + held) // 2 if held - low > SMALL * int(self.part.problem.capacity[device]) else held - 1
        assert low <= at < held
        fewer = replace(box, high={**box.high, device: at}, lower=box.length, problem=None)
        self.boxes.append(fewer)
        box.low = {**box.low, device: at + 1}
