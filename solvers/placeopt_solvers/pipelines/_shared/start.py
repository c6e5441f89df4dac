"""Find placements of pipelines that exact solvers start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Stages
from placeopt.model.stages import backward, rules, trivial_stages
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers

from .assessment import assessed
from .contraction import contracted, orders
from .ideals import INFINITE, Division, StoppedError, costs_of, divided, sets_along


def divisions(problem: Problem, stopped: Callable[[], bool]) -> Iterator[Division]:
    """Yield the best divisions of some orders of the tasks into contiguous stages, until `stopped` is true."""
    nodes = contracted(problem)
    slowest = nodes if nodes.exact else contracted(problem, optimistic=False)
    costs = costs_of(problem, slowest)
    for order in orders(slowest):
        try:
            division = divided(problem, slowest, costs, sets_along(order), INFINITE, stopped)
        except StoppedError:
            return
        if division is not None and permitted(problem, division.device, division.stages):
            yield division


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
    """Return whether a placement and its stages satisfy all rules except memory."""
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
