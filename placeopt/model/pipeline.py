"""The rules of pipelines: how devices, transfers and memory serve runs that follow each other without end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Bool, Int, choice, flags, freeze, whole_numbers
from placeopt.model.rules import Timeless

InFlight = Literal["none", "inference", "1f1b", "gpipe"]

UNBOUNDED = int(np.iinfo(np.int64).max)
"""Number of stages of a device without a limit."""

OF_DEVICES = ("overlap", "full_duplex", "free_transfers", "segments", "launch")
"""Names of the arrays with one value per device."""


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline(Timeless):
    """How runs that follow each other share the devices; `placeopt.model.period` defines the metric `period`.

    Attributes
    ----------
    overlap
        (m,), whether the device computes while it sends and receives.
    full_duplex
        (m,), whether it sends while it receives.
    free_transfers
        (m,), whether its transfers take none of its time, such as those of a CPU whose memory the others read.
    segments
        (m,) most stages of the device, forward and backward ones counted apart; UNBOUNDED without a limit.
    launch
        (m,) ticks to start each of its stages in each run.
    gradient
        (n,) bytes of each task that replicas of its stage synchronise in each run.
    multicast
        Whether a device sends an output once, regardless of the number of devices that receive it.
    replicas
        Most devices of a team: devices of one class that run the same tasks, each for every r-th run.
    in_flight
        Which outputs are kept for runs under way (`placeopt.model.period.kept_runs`).
    microbatches
        Runs that a device keeps under `gpipe`.
    recompute
        Whether a device may discard outputs of forward tasks and compute them again for the backward tasks.
    machines
        (m,) the machines that each device occupies, numbered 0, 1, ..., as teams and modes of devices do; None if each
        is its own. The machines of two devices with tasks are apart, or those of one include those of the other:
        otherwise loads within the period would not suffice for a schedule.
    """

    overlap: Bool
    full_duplex: Bool
    free_transfers: Bool
    segments: Int
    launch: Int
    gradient: Int
    multicast: bool = False
    replicas: int = 1
    in_flight: InFlight = "none"
    microbatches: int = 1
    recompute: bool = False
    machines: tuple[tuple[int, ...], ...] | None = None

    @property
    def numbered(self) -> bool:
        """Whether a schedule must number the stages: their number on a device is limited, costs time or memory."""
        return bool((self.segments != UNBOUNDED).any() or self.launch.any()) or self.in_flight == "1f1b"

    @property
    def runs_kept(self) -> int:
        """Number of runs for which outputs are kept; 0 under 1f1b, which counts stages."""
        return {"none": 1, "inference": 2, "1f1b": 0}.get(self.in_flight, self.microbatches)

    @property
    def contiguous(self) -> bool:
        """Whether every device has at most one stage, or one forward and one backward stage."""
        return bool((self.segments == 1).all())

    @property
    def occupied(self) -> Bool:
        """(m, q), whether each device occupies each of q machines."""
        assert self.machines is not None
        found = np.zeros((len(self.machines), 1 + max(map(max, self.machines), default=-1)), dtype=np.bool_)
        for d, machines in enumerate(self.machines):
            found[d, list(machines)] = True
        return found

    @property
    def conflicts(self) -> Int:
        """(k, 2) pairs of devices that may not both have tasks, because of their machines."""
        if self.machines is None:
            return np.empty((0, 2), dtype=np.int64)
        on = self.occupied.astype(np.int64)
        common, size = on @ on.T, on.sum(axis=1)
        return np.argwhere(np.triu((common > 0) & (common < np.minimum.outer(size, size))))

    def counts(self) -> dict[str, int]:
        """The numbers of tasks and devices."""
        return {"tasks": len(self.gradient), "devices": len(self.launch)}

    def kinds(self, field: str) -> tuple[str, ...]:
        """Machines, where several devices occupy one."""
        return () if self.machines is None else ("machines",)

    def hashed(self, field: str) -> dict[str, Any]:
        """What the fingerprint of a problem contains of it."""
        return {name: value for name, value in self.parts().items() if name != "machines" or value is not None}

    def task_keys(self, i: int) -> dict[str, Any]:
        """What holds for a task."""
        return {"gradient": int(self.gradient[i])}

    def device_keys(self, d: int) -> dict[str, Any]:
        """What holds for a device."""
        stages: dict[str, Any] = {
            "overlap": bool(self.overlap[d]),
            "duplex": "full" if self.full_duplex[d] else "half",
            "transfers": "free" if self.free_transfers[d] else "counted",
            "launch": int(self.launch[d]),
        }
        if self.machines is not None:
            stages["machines"] = list(self.machines[d])
        if self.segments[d] != UNBOUNDED:
            stages["segments"] = int(self.segments[d])
        return {"pipeline": stages}

    def part(self, tasks: Int, devices: Int) -> Pipeline:
        """The rules of some tasks on some devices, by their indices."""
        columns = {name: getattr(self, name)[devices] for name in OF_DEVICES}
        machines = None if self.machines is None else tuple(self.machines[d] for d in devices.tolist())
        return replace(self, gradient=self.gradient[tasks], machines=machines, **columns)

    def columns(self, d: int) -> tuple[int, ...]:
        """The values of one device; no two devices are alike where they share machines."""
        alike = () if self.machines is None else (d,)
        return (*(int(getattr(self, name)[d]) for name in OF_DEVICES), *alike)


def build_pipeline(
    n: int,
    m: int,
    *,
    overlap: Any = None,
    full_duplex: Any = None,
    free_transfers: Any = None,
    segments: Any = None,
    launch: Any = None,
    gradient: Any = None,
    multicast: bool = False,
    replicas: int = 1,
    in_flight: InFlight = "none",
    microbatches: int = 1,
    recompute: bool = False,
    machines: Sequence[Sequence[int]] | None = None,
) -> Pipeline:
    """Build the rules for n tasks and m devices; arrays are read-only, and each accepts one value for all.

    Raises a UsageError if an array has the wrong shape, a value is out of range, `1f1b` lacks the limit of one stage
    per device, or `machines` are combined with what they do not support.
    """
    choice("in_flight", in_flight, get_args(InFlight))
    for name, value in (("replicas", replicas), ("microbatches", microbatches)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise UsageError(f"{name} is {value!r}; expected a whole number, at least 1")

    def each(what: str, values: Any, size: int, default: int, least: int) -> Int:
        given = values if values is None or np.ndim(values) else np.full(size, values)
        return whole_numbers(what, given, (size,), "tasks" if size == n else "devices", default=default, least=least)

    def each_flag(what: str, values: Any) -> Bool:
        given = values if values is None or np.ndim(values) else np.full(m, values)
        return flags(what, given, (m,), "devices", default=False)

    found = Pipeline(
        overlap=each_flag("overlap", overlap),
        full_duplex=each_flag("full_duplex", full_duplex),
        free_transfers=each_flag("free_transfers", free_transfers),
        segments=each("segments", segments, m, UNBOUNDED, 1),
        launch=each("launch", launch, m, 0, 0),
        gradient=each("gradient", gradient, n, 0, 0),
        multicast=bool(multicast),
        replicas=int(replicas),
        in_flight=in_flight,
        microbatches=int(microbatches),
        recompute=bool(recompute),
        machines=None if machines is None else _numbered(machines),
    )
    if found.machines is not None and (why := _unsupported(found, m)):
        raise UsageError(f"machines: {why}")
    if in_flight == "1f1b" and not found.contiguous:
        raise UsageError("in_flight is 1f1b, which counts the stages after each one; expected segments of 1 everywhere")
    freeze(*found.parts().values())
    return found


def _numbered(machines: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The machines, numbered 0, 1, ... in their order; negative numbers stay."""
    number = {q: k for k, q in enumerate(sorted({int(q) for each in machines for q in each if q >= 0}))}
    return tuple(tuple(sorted({number.get(int(q), int(q)) for q in each})) for each in machines)


def _unsupported(pipeline: Pipeline, m: int) -> str:
    """What the machines of m devices contradict; empty if nothing."""
    machines = pipeline.machines
    if machines is None or len(machines) != m or not all(each and each[0] >= 0 for each in machines):
        return f"expected {m} collections of whole numbers, none empty"
    if pipeline.replicas > 1 or pipeline.recompute:
        return "expected one replica and no recompute"
    if len({*zip(pipeline.overlap.tolist(), pipeline.full_duplex.tolist(), strict=True)}) > 1:
        return "expected the same overlap and full_duplex for all devices"
    if pipeline.full_duplex.any() and not pipeline.overlap.all():
        return "full_duplex needs overlap"
    return ""
