"""Model the addresses of buffers in CP-SAT: rectangles of ticks and bytes that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.schedule import BUFFERS, Offsets

from ..._runs.exact_run import TooLargeError, aligned_memory
from .base import Literal
from .limits import LARGEST
from .memory import Buffer, Memory
from .timing import Interval, Variable


class Addresses:
    """The constraint that buffers of a device lie apart while they are live, and within its memory.

    Variables: o[i, k], the offset of buffer k of task i in steps of the alignment, shared by all devices; p[i, d],
    whether the output of a task that takes no time on device d is live at all. On devices whose memory is larger than
    all buffers, offsets are not modelled. `magnitude` is the largest number in the rows, `area` the largest sum of
    bytes times ticks, in units.
    """

    def __init__(self, memory: Memory, alignment: int, horizon: int) -> None:
        self.memory, self.problem, self.step = memory, memory.problem, alignment
        self.placement, self.base = memory.placement, memory.base
        self.unit = math.gcd(memory.unit, alignment)
        self._offset: dict[tuple[int, str], Variable] = {}
        total = int(aligned_memory(self.problem).sum())
        self.magnitude = total // self.unit
        self.area = self.magnitude * horizon
        if self.magnitude >= LARGEST:
            raise TooLargeError(f"the {total} bytes of all aligned buffers")
        for d, buffers in memory.live.items():
            self._lie_apart(d, min(total, int(self.problem.capacity[d])), [*buffers, *self._resident(d, horizon)])

    def _resident(self, d: int, horizon: int) -> list[Buffer]:
        cp, found = self.base.cp, []
        for i in np.flatnonzero(self.problem.resident).tolist():
            x = self.placement.at[self.placement.group[i]].get(d)
            if x is not None:
                whole = cp.new_optional_fixed_size_interval_var(0, max(horizon, 1), x, "")
                found.append(Buffer(i, "resident", whole, x))
        return found

    def _lie_apart(self, d: int, top: int, buffers: list[Buffer]) -> None:
        cp, ticks, places = self.base.cp, list[Interval](), list[Interval]()
        for each in buffers:
            size = int(getattr(self.problem, each.kind)[each.task])
            offset = self._offset_of(each)
            present = self._live(each, d)
            cp.add(offset <= (top - size) // self.step).only_enforce_if(present)
            begin = self.step // self.unit * offset
            ticks.append(each.interval)
            places.append(cp.new_optional_fixed_size_interval_var(begin, size // self.unit, present, ""))
        cp.add_no_overlap_2d(ticks, places)

    def _offset_of(self, buffer: Buffer) -> Variable:
        """The offset of a buffer; without a hint, since schedules to start from may have none."""
        key = buffer.task, buffer.kind
        if key not in self._offset:
            self._offset[key] = self.base.cp.new_int_var(0, self.magnitude * self.unit // self.step, "")
        return self._offset[key]

    def _live(self, buffer: Buffer, d: int) -> Literal:
        """The literal that a buffer is on a device and live at some tick."""
        if buffer.length is None or self.problem.duration[buffer.task, d]:
            return buffer.present
        cp, i = self.base.cp, buffer.task
        live = self.base.literal(lambda view: view.device[i] == d and view.release[i] > view.start[i])
        cp.add_implication(live, buffer.present)
        cp.add(buffer.length == 0).only_enforce_if(buffer.present, ~live)
        return live

    def offsets(self, read: Callable[[Literal], int], device: Int) -> Offsets:
        """Return the offsets of a solution; on devices without modelled ones, one buffer lies on another."""
        found = {kind: np.zeros(self.problem.n_tasks, dtype=np.int64) for kind in BUFFERS}
        top = np.zeros(self.problem.n_devices, dtype=np.int64)
        for i, d in enumerate(device.tolist()):
            for kind in BUFFERS:
                if d not in self.memory.live:
                    found[kind][i] = top[d]
                    top[d] += -(-int(getattr(self.problem, kind)[i]) // self.step) * self.step
                elif (i, kind) in self._offset:
                    found[kind][i] = self.step * read(self._offset[i, kind])
        return Offsets(**found)
