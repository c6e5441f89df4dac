"""Model the addresses of buffers in CP-SAT: rectangles of ticks and bytes that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.schedule import BUFFERS, Offsets

from ..._runs.exact_run import TooLargeError, aligned_memory, reserved_top
from .base import Literal
from .limits import LARGEST
from .memory import Buffer, Memory
from .sharing import Sharing
from .timing import Interval, Variable


class Addresses:
    """The constraint that buffers of a device lie apart while they are live, and within its memory.

    Variables: o[i, k], the offset of buffer k of task i in steps of the alignment, shared by all devices; p[i, d],
    whether the output of a task that takes no time on device d is live at all. On devices whose memory is larger than
    all buffers, offsets are not modelled. `Sharing` models outputs that may share bytes. `magnitude` is the largest
    number in the rows, `area` the largest sum of bytes times ticks, in units.
    """

    def __init__(self, memory: Memory, alignment: int, horizon: int) -> None:
        self.memory, self.problem, self.step = memory, memory.problem, alignment
        self.placement, self.base = memory.placement, memory.base
        layout = self.problem.layout
        sizes = [] if layout is None else [*layout.output.tolist(), *layout.begin.tolist(), *layout.end.tolist()]
        self.unit = math.gcd(memory.unit, alignment, *sizes)
        self._offset: dict[tuple[int, str], Variable] = {}
        tops = [reserved_top(self.problem, d) for d in range(self.problem.n_devices)]
        total = int(aligned_memory(self.problem).sum()) + max(tops)
        self.magnitude = total // self.unit
        self.area = self.magnitude * horizon
        if self.magnitude >= LARGEST:
            raise TooLargeError(f"the {total} bytes of all aligned buffers")
        self.sharing = None
        if layout is not None and len(layout.task) and memory.live:
            assert memory.timing is not None
            self.sharing = Sharing(memory, memory.timing, layout)
        for d, buffers in memory.live.items():
            buffers = [*self._stored(d, buffers), *self._resident(d, horizon)]
            self._lie_apart(d, min(total, int(self.problem.capacity[d])), max(horizon, 1), buffers)

    def _stored(self, d: int, buffers: list[Buffer]) -> list[Buffer]:
        """Return the buffers, those of outputs that may share bytes as long as these are needed."""
        if self.sharing is None:
            return buffers
        cp, timing = self.base.cp, self.sharing.timing
        found = [each for each in buffers if each.kind != "output" or each.task not in self.sharing.needed]
        for i, end in self.sharing.needed.items():
            x = self.placement.at[self.placement.group[i]].get(d)
            if x is not None:
                alone, length = self.sharing.alone(i, x), cp.new_int_var(0, timing.horizon, "")
                live = cp.new_optional_interval_var(timing.starts[i], length, end, alone, "")
                found.append(Buffer(i, "output", live, alone, length))
        return found

    def _resident(self, d: int, horizon: int) -> list[Buffer]:
        cp, found = self.base.cp, []
        for i in np.flatnonzero(self.problem.resident).tolist():
            x = self.placement.at[self.placement.group[i]].get(d)
            if x is not None:
                whole = cp.new_optional_fixed_size_interval_var(0, max(horizon, 1), x, "")
                found.append(Buffer(i, "resident", whole, x))
        return found

    def _lie_apart(self, d: int, top: int, horizon: int, buffers: list[Buffer]) -> None:
        cp, ticks, places = self.base.cp, list[Interval](), list[Interval]()
        for low, high in () if self.problem.layout is None else self.problem.layout.reserved(d):
            ticks.append(cp.new_fixed_size_interval_var(0, horizon, ""))
            places.append(cp.new_fixed_size_interval_var(low // self.unit, (high - low) // self.unit, ""))
        for each in buffers:
            size = int(self.problem.buffer_bytes(each.kind)[each.task])
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
        top = [reserved_top(self.problem, d) for d in range(self.problem.n_devices)]
        base: dict[int, tuple[int, int]] = {}
        for literal, (task, other, at, _) in () if self.sharing is None else self.sharing.shares:
            if read(literal):
                base[task] = other, at
        for i in self.problem.order.tolist():
            d = int(device[i])
            for kind in BUFFERS:
                if kind == "output" and i in base and d in self.memory.live:
                    found[kind][i] = found[kind][base[i][0]] + base[i][1]
                elif d not in self.memory.live:
                    found[kind][i] = top[d]
                    top[d] += -(-int(self.problem.buffer_bytes(kind)[i]) // self.step) * self.step
                elif (i, kind) in self._offset:
                    found[kind][i] = self.step * read(self._offset[i, kind])
        return Offsets(**found)
