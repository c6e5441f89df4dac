"""Durations that a problem states by work, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from placeopt.bridges.profiling.estimates import DIGITS
from placeopt.errors import SpecError
from placeopt.io.compiler import compile_spec
from placeopt.io.spec import ANY
from placeopt.model.units import seconds_text

WORK = ("flops", "bytes")
"""Keys that state the duration of a task by its work."""


class Rooflines:
    """The durations of the tasks of a problem by pool of devices, computed on first use.

    A problem that cannot be compiled, such as one without devices, has none.
    """

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self._problem = problem
        self._found: dict[str, dict[str, str]] | None = None

    def beside(self, task: str, measured: Iterable[str]) -> dict[str, str]:
        """Return the durations of a task on the pools that no measured device, pool or type covers."""
        if self._found is None:
            self._found = self._durations()
        covered = set(measured)
        return {
            pool: time
            for pool, time in self._found.get(task, {}).items()
            if ANY not in covered and pool not in covered and self._type(pool) not in covered
        }

    def _type(self, pool: str) -> str:
        return str((self._problem["devices"][pool] or {}).get("type", pool))

    def _durations(self) -> dict[str, dict[str, str]]:
        document = {key: value for key, value in self._problem.items() if key not in ("placement", "current")}
        try:
            compiled = compile_spec(document)
        except SpecError:
            return {}
        tasks = {str(name): task or {} for name, task in document["tasks"].items()}
        names = {name: d for d, name in enumerate(compiled.device_names)}
        pools = {str(pool): names.get(str(pool), names.get(f"{pool}0")) for pool in document["devices"]}
        first = {pool: d for pool, d in pools.items() if d is not None}
        tick = float(compiled.resolution)
        return {
            name: {
                pool: seconds_text(int(compiled.duration[row, d]) * tick, DIGITS)
                for pool, d in first.items()
                if compiled.feasible[row, d]
            }
            for row, name in enumerate(compiled.task_names)
            if any(key in tasks[name] for key in WORK)
        }
