"""The use of devices by the stages of a pipeline, for tables and pictures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Int, by_index
from placeopt.model.memory import used_memory
from placeopt.model.modes import memory_capacity
from placeopt.model.period import loads
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule
from placeopt.model.stages import kept_runs, rules, trivial_stages


@dataclass(frozen=True, slots=True)
class StageUse:
    """What one run takes of a team of devices that serve the same stages. Ticks and bytes.

    Attributes
    ----------
    stages
        Numbers of its stages, from 1 in the order of the forward stages. A backward stage has the number of the stage
        of its forward tasks. Empty if the pipeline has no stages, only devices.
    devices
        Names of the devices: the first one, and its replicas.
    tasks
        Number of tasks.
    computing, launching, recomputing
        Ticks of the tasks, of starting the stages, and of forward tasks that are computed again.
    sent, received, synchronised
        Ticks of transfers that count in the load, and of synchronising the replicas.
    load
        Ticks of all of it, as `placeopt.model.period` combines them.
    idle
        The share of each period in which a device of the team has no load.
    memory, capacity
        Bytes that each device needs, and those that it has; None if unlimited.
    kept
        Number of runs for which outputs of forward tasks are kept.
    """

    stages: tuple[int, ...]
    devices: tuple[str, ...]
    tasks: int
    computing: int
    launching: int
    recomputing: int
    sent: int
    received: int
    synchronised: int
    load: int
    idle: float
    memory: int
    capacity: int | None
    kept: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self) | {"stages": list(self.stages), "devices": list(self.devices)}


def stage_ranks(problem: Problem, schedule: Schedule) -> Int:
    """(n,) number of the stage of each task, from 0; that of the forward task for a backward task.

    Without numbered stages, tasks are in one stage for each device.
    """
    ahead = problem.forward
    if schedule.stages is None or not rules(problem).numbered:
        return np.unique(schedule.device[ahead], return_inverse=True)[1].astype(np.int64)
    return np.unique(schedule.stages.number[ahead], return_inverse=True)[1].astype(np.int64)


def stage_names(problem: Problem, schedule: Schedule) -> list[str]:
    """The names of the numbers of `stage_ranks`: stage 1, stage 2, ..., or names of devices without numbered stages."""
    if schedule.stages is None or not rules(problem).numbered:
        return [problem.device_names[d] for d in np.unique(schedule.device[problem.forward]).tolist()]
    return [f"stage {k}" for k in range(1, len(np.unique(schedule.stages.number[problem.forward])) + 1)]


def launch_text(problem: Problem, schedule: Schedule) -> str:
    """What the launches of stages take time for, in words."""
    again = schedule.stages is not None and bool(schedule.stages.recompute.any())
    return ", ".join(["launches"] * bool(rules(problem).launch.any()) + ["computes again"] * again)


def teams(problem: Problem, schedule: Schedule) -> list[list[int]]:
    """The devices with tasks, in the order of their first stages; each a list with its replicas after it."""
    rank = stage_ranks(problem, schedule)
    first = by_index(np.minimum, schedule.device, rank, problem.n_devices, problem.n_tasks)
    used = np.unique(schedule.device)
    leader = np.arange(problem.n_devices) if schedule.stages is None else schedule.stages.leader
    return [
        [d, *(r for r in np.flatnonzero(leader == d).tolist() if r != d)]
        for d in used[np.argsort(first[used], kind="stable")].tolist()
    ]


def idle_devices(problem: Problem, schedule: Schedule) -> list[int]:
    """The devices without tasks, which are not replicas; of those that share machines, one for each unused machine."""
    busy = {d for team in teams(problem, schedule) for d in team}
    machines = rules(problem).machines
    if machines is None:
        return [d for d in range(problem.n_devices) if d not in busy]
    used = {q for d in busy for q in machines[d]}
    alone = {each[0]: d for d, each in reversed(list(enumerate(machines))) if len(each) == 1}
    return sorted(d for q, d in alone.items() if q not in used)


def idle_share(problem: Problem, schedule: Schedule) -> tuple[float, int]:
    """The share of the time of all devices, or of all machines, in which they have no load; and their number."""
    load = loads(problem, schedule.device, schedule.stages)
    period = int(load.periods.max(initial=0))
    if rules(problem).machines is not None:
        return 1 - float(load.machines.sum()) / (period * len(load.machines)), len(load.machines)
    idle = sum(use.idle * len(use.devices) for use in stage_uses(problem, schedule))
    return (idle + len(idle_devices(problem, schedule))) / problem.n_devices, problem.n_devices


def stage_uses(problem: Problem, schedule: Schedule) -> tuple[StageUse, ...]:
    """Compute the use of all devices of a pipeline that have tasks, in the order of their first stages.

    Raises
    ------
    UsageError
        If the problem is not a pipeline.
    """
    check_schedule("stage_uses", problem, schedule)
    if problem.pipeline is None:
        raise UsageError(f"stage_uses takes a pipeline; the objective {problem.objective} does not contain period")
    numbered = schedule.stages is not None and rules(problem).numbered
    rank = stage_ranks(problem, schedule)
    load = loads(problem, schedule.device, schedule.stages)
    period = int(load.periods.max(initial=0))
    memory = used_memory(problem, schedule)
    kept = kept_runs(problem, schedule.device, schedule.stages or trivial_stages(problem, schedule.device))
    counts = np.bincount(schedule.device, minlength=problem.n_devices)
    found = []
    for team in teams(problem, schedule):
        d = team[0]
        found.append(
            StageUse(
                stages=tuple((np.unique(rank[schedule.device == d]) + 1).tolist()) if numbered else (),
                devices=tuple(problem.device_names[each] for each in team),
                tasks=int(counts[d]),
                computing=int(load.computing[d]),
                launching=int(load.launching[d]),
                recomputing=int(load.recomputing[d]),
                sent=int(load.sent[d]),
                received=int(load.received[d]),
                synchronised=int(load.synchronised[d]),
                load=int(load.total[d]),
                idle=1 - int(load.total[d]) / (period * len(team)) if period else 0.0,
                memory=int(memory[d]),
                capacity=memory_capacity(problem, d),
                kept=int(kept[d]),
            )
        )
    return tuple(found)
