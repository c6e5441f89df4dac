"""The tasks of a spec by name, those of them that state a key, and the parts of a spec that checks read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.compiler.scales import Scales
from placeopt.io.spec import Spec, TaskSpec


class Tasks(dict[str, TaskSpec]):
    """All tasks by name, in the order of the document; complete before a property or `stating` is first used."""

    def stating(self, *keys: str) -> Iterator[tuple[int, str, TaskSpec]]:
        """Yield index, name and entry of the tasks that state one of these keys; large files leave out most keys."""
        if not self._stated.isdisjoint(keys):
            for row, (name, task) in enumerate(self.items()):
                if not task.model_fields_set.isdisjoint(keys):
                    yield row, name, task

    @cached_property
    def number(self) -> dict[str, int]:
        """The index of each task by name."""
        return dict(zip(self, range(len(self)), strict=True))

    @cached_property
    def _stated(self) -> frozenset[str]:
        """The keys that some task states."""
        return frozenset[str]().union(*map(attrgetter("model_fields_set"), self.values()))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a spec that most checks read."""

    spec: Spec
    tasks: Tasks
    index: DeviceIndex
    scales: Scales
    gaps: Gaps
    issues: Issues
