"""The layout of memory: outputs that may take the bytes of other outputs, and bytes that no buffer may take.

An output *shares* the bytes of the output of one of its producers, its base, if both tasks are on one device and it
begins `at` bytes after the beginning of its base. It then takes no bytes of its own, and those of the base stay
allocated until neither needs them. A *view* only reads these bytes. Any other sharing output *overwrites* them, so at
its start no other task may need what lies there.

Problems count the bytes of outputs that may share as 0: at any time, a device holds at least the counted bytes,
whichever outputs share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.errors import UsageError, visible
from placeopt.model.arrays import Int, freeze, whole_numbers
from placeopt.model.rules import Timeless, joined_windows


@dataclass(frozen=True, slots=True, eq=False)
class Layout(Timeless):
    """Which outputs may share bytes, and which bytes of the devices are reserved.

    Attributes
    ----------
    output
        (n,) bytes of each output, also of those that may share.
    task, base, at, view
        (k,) output `task` may share the bytes of output `base` from byte `at` on; `view` is 1 if it only reads them. A
        task has at most one view.
        The rows are sorted by task and base.
    row
        (m + 1,) the reserved regions of device d are row[d] .. row[d + 1].
    begin, end
        (r,) bytes of each region. A device's regions are in order, and no two of them touch.
    """

    output: Int
    task: Int
    base: Int
    at: Int
    view: Int
    row: Int
    begin: Int
    end: Int

    @property
    def counted(self) -> Int:
        """(n,) the bytes of outputs that share no others."""
        found = self.output.copy()
        found[self.task] = 0
        return found

    def rows(self, where: slice = slice(None)) -> list[tuple[int, int, int, bool]]:
        """Return the rows: task, base, at, view."""
        columns = [column[where].tolist() for column in (self.task, self.base, self.at, self.view > 0)]
        return list(zip(*columns, strict=True))

    def of(self, task: int) -> list[tuple[int, int, int, bool]]:
        """Return the rows of a task."""
        return self.rows(slice(*np.searchsorted(self.task, (task, task + 1)).tolist()))

    def sets(self) -> list[list[int]]:
        """Return the tasks of each set of outputs that may share bytes, directly or by way of others."""
        found: dict[int, list[int]] = {}
        for task, base, _, _ in self.rows():
            one, other = found.setdefault(task, [task]), found.setdefault(base, [base])
            if one is not other:
                one += other
                found.update((each, one) for each in other)
        return [members for first, members in found.items() if members[0] == first]

    def reserved(self, d: int) -> list[tuple[int, int]]:
        """Return the reserved regions of a device: begin and end."""
        where = slice(self.row[d], self.row[d + 1])
        return list(zip(self.begin[where].tolist(), self.end[where].tolist(), strict=True))

    @property
    def total(self) -> Int:
        """(m,) reserved bytes of each device."""
        return np.diff(np.concatenate([[0], np.cumsum(self.end - self.begin)])[self.row])

    def top(self, d: int, alignment: int = 1) -> int:
        """Return the end of the last reserved region of a device, rounded up to a multiple of the alignment."""
        last = int(self.end[self.row[d + 1] - 1]) if self.row[d + 1] > self.row[d] else 0
        return -(-last // alignment) * alignment

    def counts(self) -> dict[str, int]:
        """The number of tasks."""
        return {"tasks": len(self.output)}

    def kinds(self, field: str) -> tuple[str, ...]:
        """None: it only matters for addresses."""
        return ()

    def columns(self, d: int) -> tuple[Any, ...]:
        """The reserved regions of a device."""
        return tuple(self.reserved(d))

    def device_keys(self, d: int) -> dict[str, Any]:
        """The reserved regions of a device."""
        found = [{"from": begin, "to": end} for begin, end in self.reserved(d)]
        return {"reserved": found} if found else {}

    def part(self, tasks: Int, devices: Int) -> Layout | None:
        """Return the layout of some tasks and devices, by their ascending indices; None if it is a plain one."""
        place = np.full(len(self.output), -1, dtype=np.int64)
        place[tasks] = np.arange(len(tasks))
        shares = [(place[i], place[j], at, view) for i, j, at, view in self.rows() if min(place[i], place[j]) >= 0]
        return build_layout(self.output[tasks], shares, [self.reserved(d) for d in devices.tolist()])


def build_layout(
    output: Any, shares: Iterable[tuple[int, int, int, bool]] = (), reserved: Sequence[Iterable[tuple[int, int]]] = ()
) -> Layout | None:
    """Build a layout from the bytes of all n outputs, rows (task, base, at, view), and the regions of all m devices.

    Regions may be in any order, overlap and touch; those that do become one. Returns None without shares and regions.

    Raises
    ------
    UsageError
        If a row or a region contains something else than whole numbers in range, two rows have the same task and base,
        a task has two views, an overwriting output does not begin at byte 0, an output does not lie within its base, or
        a region does not end after its begin.
    """
    sizes = whole_numbers("output", output, None, "tasks")
    table = sorted((int(task), int(base), int(at), bool(view)) for task, base, at, view in shares)
    seen: dict[int, list[tuple[int, bool]]] = {}
    for task, base, at, view in table:
        whole_numbers("shares", [task, base], (2,), "task, base", most=len(sizes) - 1)
        if at < 0 or at + sizes[task] > sizes[base]:
            raise UsageError(
                f"shares: output {task} with {sizes[task]} B does not lie within the {sizes[base]} B of output {base} "
                f"from byte {at} on"
            )
        if at and not view:
            raise UsageError(f"shares: output {task} overwrites from byte {at} on; expected 0, or a view")
        rows = seen.setdefault(task, [])
        if any(other == base or (view and viewed) for other, viewed in rows):
            raise UsageError(f"shares: output {task} has two rows with output {base}, or two views; expected one")
        rows.append((base, view))
    row, begin, end = joined_windows("reserved", reserved)
    if not table and not begin:
        return None
    columns = [np.array(column, dtype=np.int64) for column in (zip(*table, strict=True) if table else ((),) * 4)]
    arrays = [sizes.copy(), *columns, *(np.array(part, dtype=np.int64) for part in (row, begin, end))]
    freeze(*arrays)
    return Layout(*arrays)


def checked_layout(
    layout: Layout | None, source: Int, target: Int, capacity: Int, tasks: Sequence[str], alignment: int | None
) -> Layout | None:
    """Return a layout after checking it against the n tasks, e edges and m devices of its problem."""
    if layout is None:
        return None
    if (
        not isinstance(layout, Layout)
        or len(layout.output) != len(tasks)
        or len(layout.row) not in (1, len(capacity) + 1)
    ):
        raise UsageError(f"layout is not one of {len(tasks)} tasks and {len(capacity)} devices; use build_layout")
    if alignment is None:
        raise UsageError("layout: expected an alignment, which asks for addresses")
    edges = set(zip(source.tolist(), target.tolist(), strict=True))
    for task, base, at, _ in layout.rows():
        if at % alignment:
            raise UsageError(
                f"layout: view {visible(tasks[task])} begins at byte {at}; expected a multiple of {alignment}"
            )
        if (base, task) not in edges:
            raise UsageError(f"layout: {visible(tasks[base])} is not a producer of {visible(tasks[task])}")
    if len(layout.row) == 1:  # no device has a region
        return build_layout(layout.output, layout.rows(), [()] * len(capacity))
    for d, room in enumerate(capacity.tolist()):
        for low, high in layout.reserved(d):
            if high > room:
                raise UsageError(f"layout: region ({low}, {high}) of device {d} ends above its {room} B")
    return layout
