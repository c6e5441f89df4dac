"""Arcs between the cuts: bounds and schedules of block problems, by the devices of their ends and their memory.

An arc of a block belongs to a pair of device classes of its cuts, and to a kind: both cuts on one device, or on two.
Where memory can bind, an arc is a set of *boxes*, each for ranges of the bytes that the block places on some devices
(`labels`). The first box of an arc contains all amounts. A *priced* block problem of an arc adds a price to its bytes
(`prices`). Schedules of all these problems are schedules of the arc.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import numpy as np

from placeopt.bounding.quick.classes import classes_of
from placeopt.bounding.quick.paths import critical_path, windows
from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.memory import fits
from placeopt.model.objective import evaluate
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term, devices_by_class
from placeopt.model.schedule import Schedule, makespan
from placeopt.passes.rebuilding import rebuilt

from .._runs.validity import valid_forms
from .blocks import part_of
from .cuts import Block

NEVER = 1 << 61
"""Length of an arc that no schedule has; the sum of two does not overflow."""

PRICED = Objective(((Term("makespan"), Term("relocation")),))
"""Objective of priced block problems: their prices are costs of relocation."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A known schedule of an arc."""

    ticks: int
    """Its length."""
    held: Int
    """(m,) bytes that it adds to each device; the bytes of the first cut belong to the block before."""
    schedule: Schedule | None
    """None if the block has no tasks between its cuts."""


@dataclass(slots=True, eq=False)
class BlockProblem:
    """A block problem with pinned ends, shared by all boxes and prices with the same fingerprint.

    Attributes
    ----------
    lower, upper
        Proved lower bound, and objective of the schedule: its makespan in ticks, and the prices.
    equal
        The arcs that the schedules belong to.
    seconds
        Planned seconds of the last attempt to solve it; 0 before the first.
    attempts
        Number of attempts to bound or solve it.
    improved
        Whether a search has improved the schedule.
    """

    problem: Problem
    lower: int
    equal: EqualArcs
    upper: int = NEVER
    schedule: Schedule | None = None
    seconds: float = 0.0
    attempts: int = 0
    improved: bool = False

    @property
    def priced(self) -> bool:
        """Whether its objective contains prices."""
        return self.problem.objective == PRICED

    @property
    def solved(self) -> bool:
        """Whether its optimum is known, or that it has no schedule."""
        return self.lower >= min(self.upper, NEVER)

    def offer(self, schedule: Schedule) -> None:
        """Keep a feasible schedule if it is better."""
        self.equal.offer(self.problem, schedule)
        value = int(evaluate(self.problem, schedule)[0])
        if value < self.upper:
            self.schedule = schedule
            self.upper = value  # last, since other threads use the schedule if there is a length


class EqualArcs:
    """Block problems of equal arcs, and their known schedules.

    No schedule is as long as another one and has as many bytes on each device whose memory can bind.
    """

    def __init__(self, memory: Int, bounded: Bool) -> None:
        self.memory, self.bounded = memory, bounded
        self.problems: dict[str, BlockProblem] = {}  # by fingerprint
        self.known: list[Known] = []
        self._lock = threading.Lock()

    def problem(self, problem: Problem, charge: Int | None = None) -> BlockProblem:
        """Return a block problem, with quick bounds if it is new.

        `charge` (n, m) are ticks that its objective adds for each task on each device.
        """
        key = problem.fingerprint()
        found = self.problems.get(key)
        if found is None:
            found = self.problems[key] = BlockProblem(problem, NEVER, self)
            if problem.group_feasible().any(axis=1).all():
                classes = classes_of(problem if charge is None else inflated(problem, charge))
                found.lower = min(critical_path(classes, windows(classes))[0], NEVER)
        return found

    def share(self, found: BlockProblem) -> None:
        """Give a block problem without prices the bounds of those with as much memory, and the best schedule that fits.

        Its problem differs from theirs in capacities only, so each of its schedules is one of theirs.
        """
        problem = found.problem
        for other in list(self.problems.values()):
            if not other.priced and (other.problem.capacity >= problem.capacity).all():
                found.lower = max(found.lower, other.lower)
        for known in self.known:
            if known.ticks >= found.upper:
                return
            if known.schedule is not None and fits(problem, known.schedule):
                found.offer(known.schedule)
                return

    def offer(self, problem: Problem, schedule: Schedule) -> None:
        """Keep a feasible schedule unless another one dominates it."""
        held = by_index(np.add, schedule.device, self.memory, problem.n_devices)
        self.keep(Known(makespan(problem, schedule), held, schedule))

    def keep(self, new: Known) -> None:
        """Keep a known schedule unless another one dominates it."""
        with self._lock:
            if not any(self._dominates(old, new) for old in self.known):
                kept = [old for old in self.known if not self._dominates(new, old)]
                self.known = sorted([*kept, new], key=lambda known: known.ticks)

    def _dominates(self, a: Known, b: Known) -> bool:
        return a.ticks <= b.ticks and bool((a.held <= b.held)[self.bounded].all())


@dataclass(slots=True, eq=False)
class Arc:
    """The schedules of a block whose ends run on given devices."""

    start: int
    end: int
    """Classes of the devices of the first and the last cut; 0 for a missing cut."""
    devices: tuple[int, int]
    """Examples of these devices, -1 for a missing cut; equal if both cuts run on one device."""
    lower: int
    """A lower bound of the length in ticks, known before any block problem is built."""
    exact: bool = False
    """Whether `lower` is the length: the block consists of its cuts, which no constraint restricts."""
    equal: EqualArcs | None = None
    """Block problems and known schedules, shared by equal arcs; None before a block problem is built."""
    whole: BlockProblem | None = None
    """The block problem without prices and limits; None before it is built."""
    priced: dict[tuple[int, ...], BlockProblem] = field(default_factory=dict)
    """Block problems by prices."""

    @property
    def same(self) -> bool:
        """Whether both ends run on one device."""
        return self.devices[0] == self.devices[1] or self.devices[1] < 0

    @property
    def length(self) -> int:
        """The best known lower bound in ticks."""
        return self.lower if self.whole is None else max(self.lower, min(self.whole.lower, NEVER))

    @property
    def known(self) -> list[Known]:
        """The known schedules, the shortest first."""
        return [] if self.equal is None else self.equal.known


@dataclass(slots=True, eq=False)
class Box:
    """The schedules of an arc that hold amounts of memory in given ranges.

    Attributes
    ----------
    low, high
        Least and largest bytes of the block on devices whose memory can bind; 0 and the capacity where left out. The
        bytes of the first cut belong to the block before.
    lower
        A lower bound of the length in ticks, known before the block problem is built.
    """

    arc: Arc
    low: dict[int, int]
    high: dict[int, int]
    lower: int
    problem: BlockProblem | None = None

    @property
    def start(self) -> int:
        """Class of the device of the first cut."""
        return self.arc.start

    @property
    def end(self) -> int:
        """Class of the device of the last cut."""
        return self.arc.end

    @property
    def devices(self) -> tuple[int, int]:
        """Examples of the devices of the cuts."""
        return self.arc.devices

    @property
    def exact(self) -> bool:
        """Whether `lower` is the length."""
        return self.arc.exact

    @property
    def same(self) -> bool:
        """Whether both ends run on one device."""
        return self.arc.same

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


EqualByProblem = dict[tuple[str, bool], EqualArcs]
"""Equal arcs, by the fingerprint of their block problem without prices and limits, and whether it has no first cut."""


def inflated(problem: Problem, charge: Int) -> Problem:
    """Return a problem whose tasks take longer by the ticks (n, m) that they are charged.

    **Claim.** Its least makespan is at most the least makespan plus charges of the problem. Proof. Sort the tasks and
    transfers of a schedule by start, then by end, then topologically. Let each begin later by the charges of all tasks
    before it. What ended before another one began still does: it comes before that in the order, which therefore moves
    by at least its charge more. So the result is a schedule of the longer tasks, and ends later by at most the sum of
    the charges. ∎ Deadlines are left out.
    """
    never = np.full_like(problem.deadline, UNLIMITED)
    return rebuilt(problem, duration=np.where(problem.feasible, problem.duration + charge, 0), deadline=never)[0]


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


def _swapped(label: Int, ends: list[int], examples: tuple[int, int]) -> Int:
    """Return devices (m,) that interchange, within device classes, each of two ends with an example if possible."""
    order = np.arange(len(label))
    fixed: set[int] = set()
    for d, example in zip(ends, examples, strict=True):
        if d >= 0 and label[d] == label[example] and d not in fixed and example not in order[sorted(fixed)]:
            at = int(np.flatnonzero(order == example)[0])
            order[[d, at]] = order[[at, d]]
            fixed.add(d)
    return order


class Arcs:
    """All arcs of one block, and their boxes.

    The arc `free` has no devices for the cuts. Its bounds hold for all arcs.
    """

    def __init__(self, problem: Problem, block: Block, bounded: Bool) -> None:
        """Make one box for each arc, with quick bounds; `bounded` (m,) is whether a device's memory can bind."""
        self._inner = block.inner
        self.part = part_of(problem, block)
        self.bounded = bounded
        self.arcs: list[Arc] = []
        self.free = Arc(-1, -1, (-1, -1), 0, exact=not len(block.inner) and _free(self.part.problem))
        self._spread: dict[int, Known] = {}  # by identity
        self.boxes: list[Box] = []
        devices = devices_by_class(problem)
        starts = devices if block.first >= 0 else [[-1]]
        self._ends = devices if block.last >= 0 else [[-1]]
        self.memory = self.part.problem.memory.copy()
        if self.part.first >= 0:
            self.memory[self.part.first] = 0  # it belongs to the block before
        for a, start in enumerate(starts):
            if start[0] < 0 or problem.feasible[block.first, start[0]]:
                self._add_from(a, start)

    def _add_from(self, a: int, start: list[int]) -> None:
        """Add each arc that begins on a class, bounded by the earliest start of the last cut."""
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
                arc = Arc(a, b, (x, y), lower, exact)
                held = np.zeros(problem.n_devices, dtype=np.int64)
                if part.last >= 0:
                    held[y] = self.memory[part.last]
                if exact:
                    arc.equal = EqualArcs(self.memory, self.bounded)
                    arc.equal.keep(Known(lower, held, None))
                self.arcs.append(arc)
                low = {y: int(held[y])} if part.last >= 0 and self.bounded[y] else {}
                self.boxes.append(Box(arc, low, {}, lower))

    def build(self, box: Box, known: EqualByProblem) -> None:
        """Build the block problem of a box; `known` are those of all blocks."""
        part = self.part
        whole = self.whole(box.arc, known)
        capacity = part.problem.capacity.copy()
        for d, high in box.high.items():
            carried = int(part.problem.memory[part.first]) if d == box.devices[0] else 0
            capacity[d] = min(int(capacity[d]), high + carried)
        box.problem = whole if not box.high else whole.equal.problem(part.pinned(*box.devices, capacity))

    def whole(self, arc: Arc, known: EqualByProblem) -> BlockProblem:
        """Return the block problem of an arc without prices and limits."""
        if arc.whole is None:
            problem = self.part.pinned(*arc.devices, self.part.problem.capacity)
            key = problem.fingerprint(), self.part.first < 0
            arc.equal = known.setdefault(key, EqualArcs(self.memory, self.bounded))
            arc.whole = arc.equal.problem(problem)
        return arc.whole

    def price(self, arc: Arc, prices: tuple[int, ...], charge: Int, known: EqualByProblem) -> BlockProblem:
        """Return the block problem of an arc with prices, for which each task is charged ticks (n, m) by its device."""
        if prices not in arc.priced:
            whole = self.whole(arc, known)
            charge = np.where(whole.problem.feasible, charge, 0)
            problem = rebuilt(whole.problem, relocation=charge, objective=PRICED)[0]
            found = arc.priced[prices] = whole.equal.problem(problem, charge)
            found.lower = max(found.lower, whole.lower)
            for each in whole.equal.known:
                if each.schedule is not None:
                    found.offer(each.schedule)
        return arc.priced[prices]

    def spread(self, known: EqualByProblem) -> None:
        """Move the ends of the known schedules of the block with free ends to the devices of each arc."""
        first, last = self.part.first, self.part.last
        for each in self.free.known:
            if id(each) in self._spread or each.schedule is None:
                continue
            self._spread[id(each)] = each
            ends = [int(each.schedule.device[cut]) if cut >= 0 else -1 for cut in (first, last)]
            for arc in self.arcs:
                device = _swapped(self.part.problem.device_class, ends, arc.devices)[each.schedule.device]
                for cut, example in zip((first, last), arc.devices, strict=True):
                    if cut >= 0:
                        device[cut] = example
                whole = self.whole(arc, known)
                for form in valid_forms(whole.problem, replace(each.schedule, device=device)):
                    whole.offer(form)

    def held(self, box: Box, device: int) -> int:
        """Return the bytes of the known schedule of a box on a device."""
        if box.exact:
            return box.low.get(device, 0)
        assert box.problem is not None
        assert box.problem.schedule is not None
        return int(self.memory[box.problem.schedule.device == device].sum())

    def split(self, box: Box, device: int) -> None:
        """Divide the range of a box on a device below the bytes of the known schedule.

        If no schedule with fewer bytes is short enough, one solve shows this; halves of the range need several.
        """
        at = self.held(box, device) - 1
        assert box.low.get(device, 0) <= at
        fewer = replace(box, high={**box.high, device: at}, lower=box.length, problem=None)
        self.boxes.append(fewer)
        box.low = {**box.low, device: at + 1}
