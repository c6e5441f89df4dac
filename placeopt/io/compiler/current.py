"""Where tasks are now, and what moving each of them to each device costs."""

from __future__ import annotations

import numpy as np

from placeopt.io.compiler.devices import DeviceIndex
from placeopt.io.compiler.durations import by_device
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.links import LinkArrays
from placeopt.io.compiler.placement import WrittenPlacement
from placeopt.io.compiler.scales import LARGEST, Scales
from placeopt.io.document import NamedFiles
from placeopt.io.spec import CurrentSpec, MigrationSpec, TaskSpec
from placeopt.io.syntax import Path as Place
from placeopt.model.arrays import Int
from placeopt.model.relocation import relocation_ticks


class Current:
    """The section `current` of a spec, with the `migration` of its tasks, which says nothing without it."""

    def __init__(self, section: CurrentSpec | None, named: NamedFiles, issues: Issues) -> None:
        self._stated = section is not None
        self._section = section or CurrentSpec()
        self.runs = self._section.runs_before_next_change
        self._placement = WrittenPlacement(self._section.placement, named, issues, "current", "placement")
        self._issues = issues
        self.moved: Int = np.zeros(0, dtype=np.int64)
        """(n,) bytes that move with each task, once `relocation` has looked."""

    def relocation(
        self,
        tasks: dict[str, TaskSpec],
        resident: Int,
        index: DeviceIndex,
        links: LinkArrays,
        scales: Scales,
        gaps: Gaps,
    ) -> Int | None:
        """(n, m) ticks of relocation, None where the spec has no such section; `resident` (n,) bytes of each task."""
        current = self._placement.devices(tasks, index, gaps, past=True)
        moved = self.moved = resident.copy()
        if not self._stated and all(task.migration is None for task in tasks.values()):
            return None
        startup = np.zeros((len(tasks), len(index)), dtype=np.int64)
        # The section's `bytes` and `startup` each hold for the tasks that do not state their own.
        stated: list[tuple[slice, MigrationSpec | None, Place]] = [
            (slice(None), self._section.migration, ("current", "migration"))
        ]
        stated += [
            (slice(row, row + 1), task.migration, ("tasks", name, "migration"))
            for row, (name, task) in enumerate(tasks.items())
            if task.migration is not None
        ]
        for rows, migration, path in stated:
            if migration is not None and migration.bytes is not None:
                moved[rows] = scales.size(migration.bytes, (*path, "bytes"))
            if migration is not None and migration.startup is not None:
                startup[rows], _ = by_device(migration.startup, index, scales, (*path, "startup"), lenient=True)
        if not self._stated or gaps.scales:
            return None
        slowest = float((links.byte_ticks_num / links.byte_ticks_den).max(initial=0))
        moving = float(moved.astype(np.float64).sum()) * slowest + len(tasks) * float(1 + links.latency.max(initial=0))
        total = moving + float(startup.max(axis=1, initial=0).astype(np.float64).sum())
        if total > LARGEST:
            self._issues.add(
                f"the relocation of all tasks adds up to {total:.2g} ticks, more than 2^60; use a coarser resolution",
                ("current",),
            )
            return None
        return relocation_ticks(current, moved, startup, links.latency, links.byte_ticks_num, links.byte_ticks_den)
