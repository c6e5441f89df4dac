"""What a solve returns: why it stopped, the verified schedule, the objective, the certified gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from placeopt.ir import UNLIMITED, Problem
from placeopt.objective import Value, loads
from placeopt.schedule import Schedule
from placeopt.solver import Progress, Termination

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from placeopt.frames import Rows, Unit
    from placeopt.passes import Applied
    from placeopt.pictures.canvas import Picture
    from placeopt.verifier import Violation


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a schedule asks of one device."""

    name: str
    type: str
    tasks: int
    busy: int
    """Ticks of computing."""
    memory: int
    """Bytes, under the problem's memory model."""
    capacity: int | None
    """Bytes; None if unlimited."""


@dataclass(frozen=True, slots=True)
class WallTime:
    """Seconds spent on each stage; None where a stage was not this call's."""

    load: float | None = None
    build: float | None = None
    solve: float | None = None
    compiling: float | None = None
    """The part of `solve` in which kernels were being compiled, and plain Python ran in their place."""
    verify: float | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a problem.

    `termination` says why the solver stopped; `feasible` is what the verifier says of the schedule, None without one.
    `objective`, `bound` and `gap` are those of the objective's first level; absent is None.
    """

    problem: Problem
    solver: str
    termination: Termination
    schedule: Schedule | None
    feasible: bool | None
    violations: tuple[Violation, ...]
    values: tuple[Value, ...] | None
    """The objective, one value a level."""
    bound: Value | None
    bound_source: str | None
    makespan: int | None
    seed: int
    settings: Mapping[str, Any]
    message: str
    stats: Mapping[str, Any]
    wall_time: WallTime
    versions: Mapping[str, str]
    devices: tuple[DeviceUse, ...] = field(default=())
    passes: Applied | None = None
    """What passes did to the problem before the solver saw it."""
    progress: tuple[Progress, ...] = ()
    """Every incumbent and bound that the solver told of, in order; none behind passes that may lose the optimum."""
    varies_by: str = ""
    """Why another run with the same seed may give another schedule: "clock" or "threads"; empty if it may not."""

    @property
    def objective(self) -> Value | None:
        """Value of the objective's first level, in its own unit (ticks for makespan)."""
        return self.values[0] if self.values else None

    @property
    def gap(self) -> float | None:
        """(objective - bound) / objective: the schedule is at most this much above the optimum, as a share of it."""
        return relative_gap(self.objective, self.bound) if self.feasible else None

    @property
    def repeatable(self) -> bool:
        """Whether the same problem, settings, seed and workers give this schedule again."""
        return not self.varies_by

    @property
    def placement(self) -> dict[str, str] | None:
        """The name of each task's device by the task's name; None without a schedule."""
        if self.schedule is None:
            return None
        devices = self.problem.device_names
        chosen = self.schedule.device.tolist()
        return {name: devices[d] for name, d in zip(self.problem.task_names, chosen, strict=True)}

    def __repr__(self) -> str:
        from placeopt.wording import result_text

        return result_text(self)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from placeopt.wording import result_html

        return result_html(self)

    def summary(self) -> str:
        """What `placeopt solve` prints: the problem, the objective and its gap, the devices, the verdict."""
        from placeopt.wording import result_summary

        return result_summary(self)

    def to_frame(self, rows: Rows = "tasks", *, unit: Unit = "tick") -> pd.DataFrame:
        """The schedule as a pandas data frame; without rows if there is no schedule.

        Parameters
        ----------
        rows
            "tasks": task, device, type (of the device), start, end, duration, ready (when its last input is there, and
            its release time over), memory (bytes that it counts for under the `sum` model: resident + output + scratch,
            which follow), received (bytes that come from other devices for it).
            "devices": device, type, tasks, busy, memory (bytes, under the problem's memory model), capacity (bytes).
            "transfers": producer, consumer, sender, receiver, start, end, duration, payload (bytes), serves (how many
            consumers there; the first of them is named).
        unit
            Of all times: "tick" (whole numbers), or "s", "ms", "us", "ns" (floats).

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        UsageError
            If there are no such rows, or no such unit.
        """
        from placeopt.frames import result_frame

        return result_frame(self, rows, unit)

    def plot(self, kind: str = "gantt", path: str | PathLike[str] | None = None, *, title: str = "") -> Picture:
        """A picture, a matplotlib Figure that notebooks show: "gantt", "memory", "graph" or "convergence".

        With a path it is written there too, as PNG, SVG or PDF by its suffix.

        Raises
        ------
        UsageError
            If there is no such kind or format, it needs a schedule and there is none, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        from placeopt.pictures import checked_file, draw_result

        if path is not None:
            checked_file(path)
        picture = draw_result(self, kind, title=title)
        if path is not None:
            picture.write(path)
        return picture

    @property
    def fingerprint(self) -> str:
        """Hash of the problem."""
        return self.problem.fingerprint()

    @property
    def resolution(self) -> float:
        """Seconds per tick."""
        return float(self.problem.resolution)

    def to_dict(self, *, plan: bool = True) -> dict[str, Any]:
        """The result as plain data, ready for JSON; `plan=False` leaves out placement and starts."""
        problem, schedule = self.problem, self.schedule
        document: dict[str, Any] = {
            "problem": problem.name,
            "fingerprint": self.fingerprint,
            "solver": self.solver,
            "settings": dict(self.settings),
            "seed": self.seed,
            "repeatable": self.repeatable,
            "varies_by": self.varies_by or None,
            "termination": self.termination.value,
            "feasible": self.feasible,
            "violations": [
                {"rule": violation.rule.value, "message": violation.message} for violation in self.violations
            ],
            "objective": number(self.objective),
            "objective_levels": None if self.values is None else [number(value) for value in self.values],
            "objective_name": str(problem.objective),
            "bound": number(self.bound),
            "gap": self.gap,
            "bound_source": self.bound_source,
            "resolution": self.resolution,
            "rounding": None if problem.rounding is None else problem.rounding.to_dict(),
            "makespan": self.makespan,
            "message": self.message,
            "wall_time": {
                "load": self.wall_time.load,
                "build": self.wall_time.build,
                "solve": self.wall_time.solve,
                "compiling": self.wall_time.compiling,
                "verify": self.wall_time.verify,
                "bound": self.wall_time.bound,
            },
            "devices": [
                {
                    "name": use.name,
                    "type": use.type,
                    "tasks": use.tasks,
                    "busy": use.busy,
                    "memory": use.memory,
                    "capacity": use.capacity,
                }
                for use in self.devices
            ],
            "passes": None if self.passes is None else self.passes.to_dict(),
            "stats": dict(self.stats),
            "versions": dict(self.versions),
        }
        if plan:
            document["placement"] = self.placement
            document["start"] = (
                None if schedule is None else dict(zip(problem.task_names, schedule.start.tolist(), strict=True))
            )
        return document


def relative_gap(objective: Value | None, bound: Value | None) -> float | None:
    """(objective - bound) / objective; 0 when both are 0, None when either is unknown."""
    if objective is None or bound is None:
        return None
    if objective == 0:
        return 0.0
    return float((objective - bound) / Fraction(objective))


def number(value: Value | None) -> int | float | None:
    """A value for JSON."""
    return value if value is None or isinstance(value, int) else float(value)


def device_uses(problem: Problem, schedule: Schedule) -> tuple[DeviceUse, ...]:
    """What a schedule asks of each device."""
    import numpy as np

    from placeopt.memory import used_memory

    tasks = np.bincount(schedule.device, minlength=problem.n_devices).tolist()
    busy = loads(problem, schedule.device).tolist()
    memory = used_memory(problem, schedule).tolist()
    return tuple(
        DeviceUse(
            name=problem.device_names[d],
            type=problem.device_types[d],
            tasks=tasks[d],
            busy=busy[d],
            memory=memory[d],
            capacity=None if problem.capacity[d] == UNLIMITED else int(problem.capacity[d]),
        )
        for d in range(problem.n_devices)
    )
