"""A priority queue of many elements that is asked for a batch at a time.

It keeps sorted runs, in the manner of log-structured merge trees: what is pushed together becomes a run, and runs of
similar length are merged. So there are O(log n) runs, and all work is done by NumPy on whole arrays: a heap of Python
objects takes a microsecond for each element and hundreds of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Float, Int


@dataclass(slots=True)
class _Run:
    serial: int
    elements: Int
    keys: Float  # minus the bounds, rising
    at: int = 0

    def __len__(self) -> int:
        return len(self.keys) - self.at


class Runs:
    """Elements of {0, ..., size - 1}, each with a bound and at most once."""

    def __init__(self, size: int) -> None:
        self._runs: list[_Run] = []
        self._serial = 0
        # The run in which an element's entry counts; entries of it in other runs are dead.
        self._home = np.full(size, -1, dtype=np.int64)

    def push(self, elements: Int, bounds: Float) -> None:
        """Put elements (k,), all different, into the queue; entries that they have are forgotten."""
        if len(elements) == 0:
            return
        self._append(elements, -bounds)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            later, earlier = self._runs.pop(), self._runs.pop()
            parts = [(run.elements[run.at :], run.keys[run.at :], run.serial) for run in (earlier, later)]
            living = [self._home[elements] == serial for elements, _, serial in parts]
            merged = np.concatenate([part[0][alive] for part, alive in zip(parts, living, strict=True)])
            keys = np.concatenate([part[1][alive] for part, alive in zip(parts, living, strict=True)])
            self._append(merged, keys)

    def pop(self, count: int, floor: float) -> tuple[Int, Float]:
        """About the `count` elements of the largest bounds, of those with `floor` or more, and their bounds.

        No element that is left has a larger bound than one that is returned; nothing is returned only if nothing is
        left with `floor` or more.
        """
        while True:
            self._runs = [run for run in self._runs if len(run)]
            heads = [run for run in self._runs if run.keys[run.at] <= -floor]
            if not heads:
                return np.empty(0, dtype=np.int64), np.empty(0)
            windows = [run.keys[run.at : run.at + count] for run in heads]
            limit = -floor
            if sum(map(len, windows)) > count:
                limit = min(limit, np.partition(np.concatenate(windows), count - 1)[count - 1])
            elements, keys = [], []
            for run, window in zip(heads, windows, strict=True):
                taken = int(np.searchsorted(window, limit, side="right"))
                found, end = run.elements[run.at : run.at + taken], run.at + taken
                alive = self._home[found] == run.serial
                elements.append(found[alive])
                keys.append(window[:taken][alive])
                run.at = end
            if any(map(len, elements)):
                return np.concatenate(elements), -np.concatenate(keys)

    def _append(self, elements: Int, keys: Float) -> None:
        order = np.argsort(keys, kind="stable")
        self._home[elements] = self._serial
        self._runs.append(_Run(self._serial, elements[order], keys[order]))
        self._serial += 1
