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
    from placeopt.passes import Applied
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

    @property
    def objective(self) -> Value | None:
        """Value of the objective's first level, in its own unit (ticks for makespan)."""
        return self.values[0] if self.values else None

    @property
    def gap(self) -> float | None:
        """(objective - bound) / objective: the schedule is at most this much above the optimum, as a share of it."""
        return relative_gap(self.objective, self.bound) if self.feasible else None

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
            "makespan": self.makespan,
            "message": self.message,
            "wall_time": {
                "load": self.wall_time.load,
                "build": self.wall_time.build,
                "solve": self.wall_time.solve,
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
            names, devices = problem.task_names, problem.device_names
            document["placement"] = (
                None
                if schedule is None
                else {name: devices[d] for name, d in zip(names, schedule.device.tolist(), strict=True)}
            )
            document["start"] = None if schedule is None else dict(zip(names, schedule.start.tolist(), strict=True))
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
