"""Assess placements of pipelines (feasibility and period), and find those that exact solvers start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.bounding.quick import best_bound
from placeopt.engine import StoppedError
from placeopt.model.arrays import Int
from placeopt.model.building import with_changes
from placeopt.model.memory import pipeline_memory
from placeopt.model.objective import Value, simplified
from placeopt.model.period import loads
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule, Stages
from placeopt.model.stages import backward, rules, trivial_stages
from placeopt.protocol import Answer, Info, Termination
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers

from ..._runs.solve_run import SolveRun
from .contraction import Nodes, contracted, orders
from .ideals import INFINITE, Division, costs_of, divided, sets_along
from .machines import divided_by_machines


def pipeline_info(*, summary: str, complexity: str, citation: str, guarantee: str = "none", **more: Any) -> Info:
    """Return the description of a solver of pipelines only; `more` are further fields of it."""
    return Info(
        summary, guarantee, complexity, citation, "pipelines", anytime=True, metrics=("period",),
        contentions=("none",), memory_models=("sum",), **more,
    )  # fmt: skip


def divisions(problem: Problem, stopped: Callable[[], bool]) -> Iterator[Division]:
    """Yield the best divisions of some orders of the tasks into contiguous stages, until `stopped` is true."""
    nodes = contracted(problem)
    slowest = nodes if nodes.exact else contracted(problem, optimistic=False)
    if rules(problem).machines is not None:
        yield from _by_machines(problem, slowest, stopped)
        return
    costs = costs_of(problem, slowest)
    for order in orders(slowest):
        try:
            division = divided(problem, slowest, costs, sets_along(order), INFINITE, stopped)
        except StoppedError:
            return
        if division is not None and permitted(problem, division.device, division.stages):
            yield division


def _by_machines(problem: Problem, nodes: Nodes, stopped: Callable[[], bool]) -> Iterator[Division]:
    for order in orders(nodes):
        try:
            found = divided_by_machines(problem, nodes, order, stopped)
        except StoppedError:
            return
        if found is not None:
            device, number = found
            stages = replace(trivial_stages(problem, device), number=number)
            if permitted(problem, device, stages):
                yield Division(0, device, stages)


def accepted(problem: Problem, schedule: Schedule) -> Stages | None:
    """Return the stages of a given schedule; None if its placement or they are not permitted.

    Memory is not checked.
    """
    device, stages = schedule.device, schedule.stages
    n, m = problem.n_tasks, problem.n_devices
    if device.shape != (n,) or ((device < 0) | (device >= m)).any():
        return None
    if stages is None:
        stages = trivial_stages(problem, device)
        if rules(problem).numbered:
            number = stage_numbers(problem, device)
            if number is None:
                return None
            stages = Stages(number, stages.leader, stages.recompute, stages.synchronise)
    return stages if permitted(problem, device, stages) else None


def started(problem: Problem, schedule: Schedule) -> Schedule | None:
    """Return the periodic schedule of a given schedule's placement and stages; None if they are not feasible."""
    stages = accepted(problem, schedule)
    if stages is None or assessed(problem, schedule.device, stages) is None:
        return None
    return periodic_schedule(problem, schedule.device, stages)


def permitted(problem: Problem, device: np.ndarray, stages: Stages) -> bool:
    """Return whether a placement and its stages satisfy all rules except memory and budgets."""
    pipeline, n, m = rules(problem), problem.n_tasks, problem.n_devices
    leader = stages.leader
    if stages.number.shape != (n,) or leader.shape != (m,) or stages.recompute.shape != (m,):
        return False
    if ((leader < 0) | (leader >= m)).any():
        return False
    home = np.full(problem.n_groups, -1, dtype=np.int64)
    home[problem.group] = device
    replica = np.flatnonzero(leader != np.arange(m))
    left, right = problem.separation.T
    if not (
        problem.feasible[np.arange(n), device].all()
        and (home[problem.group] == device).all()
        and (device[left] != device[right]).all()
        and sound_machines(problem, device)
        and (leader[leader] == leader).all()
        and (problem.device_class == problem.device_class[leader]).all()
        and not np.isin(replica, device).any()
        and (np.bincount(leader, minlength=m) <= pipeline.replicas).all()
        and (pipeline.recompute or not stages.recompute.any())
    ):
        return False
    if not pipeline.numbered:
        return True
    number, kind = stages.number, device + m * backward(problem)
    both = np.unique(np.stack((number, kind), axis=1), axis=0)
    return bool(
        len(np.unique(both[:, 0])) == len(both)
        and (number[problem.edge_source] <= number[problem.edge_target]).all()
        and (np.bincount(both[:, 1], minlength=2 * m) <= np.tile(pipeline.segments, 2)).all()
    )


def sound_machines(problem: Problem, device: Int) -> bool:
    """Return whether devices with tasks share machines only if those of one include those of the other."""
    used = np.bincount(device, minlength=problem.n_devices) > 0
    return not used[rules(problem).conflicts].all(axis=1).any()


def assessed(problem: Problem, device: Int, stages: Stages) -> int | None:
    """Return the period of a placement that satisfies all other rules, None if memory or a budget does not suffice."""
    if (pipeline_memory(problem, device, stages) > problem.capacity).any() or not problem.within_budgets(device):
        return None
    return int(loads(problem, device, stages).periods.max(initial=0))


def teams(problem: Problem, device: Int) -> Iterator[Int]:
    """Yield leaders (m,) for every number of replicas of each used device, from idle devices of its class."""
    most = rules(problem).replicas
    used = np.unique(device).tolist()
    label = problem.device_class.tolist()
    idle: dict[int, list[int]] = {}
    for d in range(problem.n_devices):
        if d not in used:
            idle.setdefault(label[d], []).append(d)
    leader = np.arange(problem.n_devices)

    def choose(place: int) -> Iterator[Int]:
        if place == len(used):
            yield leader.copy()
            return
        d = used[place]
        free = idle.get(label[d], [])
        taken: list[int] = []
        while True:
            yield from choose(place + 1)
            if not free or len(taken) + 1 >= most:
                break
            replica = free.pop()
            leader[replica] = d
            taken.append(replica)
        for replica in reversed(taken):
            leader[replica] = replica
            free.append(replica)

    yield from choose(0)


def numberings(problem: Problem, device: Int) -> Iterator[Int]:
    """Yield numbers of stages (n,) within the limits of the devices, of every useful order of stages.

    A stage takes all tasks of a device and direction that depend on no other tasks any more. A stage that leaves some
    of them to a later one gains nothing: taken earlier, they only let other tasks be taken earlier too.
    """
    pipeline, n, m = rules(problem), problem.n_tasks, problem.n_devices
    kind = (device + m * backward(problem)).tolist()
    limit = np.tile(pipeline.segments, 2).tolist()
    number = np.full(n, -1, dtype=np.int64)
    used = [0] * (2 * m)
    producers = [
        problem.edge_source[problem.in_edge[a:b]].tolist()
        for a, b in zip(problem.in_start, problem.in_start[1:], strict=False)
    ]
    order = problem.order.tolist()

    def extend(stage: int, left: int) -> Iterator[Int]:
        if left == 0:
            yield number.copy()
            return
        ready = {kind[i] for i in order if number[i] < 0 and all(number[p] >= 0 for p in producers[i])}
        for c in sorted(ready):
            if used[c] >= limit[c]:
                continue
            taken = []
            for i in order:
                if number[i] < 0 and kind[i] == c and all(number[p] >= 0 for p in producers[i]):
                    number[i] = stage
                    taken.append(i)
            used[c] += 1
            yield from extend(stage + 1, left - len(taken))
            used[c] -= 1
            number[taken] = -1

    yield from extend(0, n)


def proved_period(run: SolveRun, least: int) -> Answer:
    """Return the answer of a run whose incumbent has the least period.

    Where the objective counts more than the period, its bound is that of the period and the quick bounds of the others.
    """
    run.best.raise_bound(first_level_bound(run.problem, least))
    if run.problem.objective.single == "period":
        return run.ended(Termination.OPTIMAL)
    return run.ended(run.first_level_reached(run.best.bound) or Termination.COMPLETED)


def first_level_bound(problem: Problem, least: int) -> Value:
    """Return the bound of the objective's first level that follows from a lower bound of the period."""
    total = Fraction(0)
    for term in problem.objective.levels[0]:
        if term.metric == "period":
            total += term.weight * least
        else:
            alone = with_changes(problem, objective=Objective(((Term(term.metric),),)))
            total += term.weight * best_bound(alone).value
    return simplified(total)
