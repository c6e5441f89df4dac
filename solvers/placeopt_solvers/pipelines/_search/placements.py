"""From divisions and states of a search to placements with stages, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.memory import pipeline_memory
from placeopt.model.period import loads
from placeopt.model.pipeline import UNBOUNDED
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Stages
from placeopt.model.stages import backward, rules
from placeopt.simulation.pipelines import periodic_schedule

from .._shared.assessment import accepted, permitted
from .._shared.contraction import Nodes, contracted
from .division import Division
from .units import Units, finest_units

REPEATS = 2
"""Places of a device whose number of stages is not limited, in a pipeline where stages count."""


class View(NamedTuple):
    """A problem as units; `nodes` is None if stages are free."""

    problem: Problem
    nodes: Nodes | None
    unit: Int  # (n,) unit of each task
    units: Units


class Point(NamedTuple):
    """A placement with stages, its period, whether its memory suffices, and the place (k,) of each unit.

    Places are numbers of stages, or devices if stages are free.
    """

    period: int
    fits: bool
    place: Int
    device: Int
    stages: Stages

    def better(self, other: Point | None) -> bool:
        """Whether its memory suffices, and its period is less than that of another one, if that fits, too."""
        return self.fits and (other is None or not other.fits or self.period < other.period)


def view_of(problem: Problem) -> View:
    """Return a problem as units."""
    nodes = contracted(problem) if rules(problem).numbered else None
    return View(problem, nodes, problem.group if nodes is None else nodes.node, finest_units(problem, nodes))


def divided_point(view: View, division: Division) -> Point | None:
    """Return the placement of a division, None if it is not valid, memory aside."""
    m, k = view.problem.n_devices, len(view.units.fixed)
    home, number, leader = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64), np.arange(m)
    again = np.zeros(m, dtype=np.int64)
    for stage, (members, team, redone) in enumerate(division.stages):
        home[members], number[members] = team[0], stage
        leader[team], again[team[0]] = team[0], int(redone)
    return _point(view, home, number, len(division.stages), leader, again)


def state_point(view: View, state: engine.StageSearch) -> Point | None:
    """Return the placement of the best state of a search, None if it is not valid, memory aside."""
    home = state.best_home[state.best_place]
    used = np.bincount(home, minlength=len(state.leader)) > 0
    return _point(
        view, home, state.best_place.copy(), len(state.home), state.best_leader.copy(), state.best_again * used
    )


def given_point(view: View, schedule: Schedule) -> Point | None:
    """Return the placement of a given schedule, None if it is not permitted, or its stages are not those of units."""
    problem, m = view.problem, view.problem.n_devices
    stages = accepted(problem, schedule)
    if stages is None:
        return None
    ahead = ~backward(problem)
    home, number = np.zeros((2, len(view.units.fixed)), dtype=np.int64)
    home[view.unit] = schedule.device
    forward, number[view.unit[ahead]] = np.unique(stages.number[ahead], return_inverse=True)
    if view.nodes is None:
        number, count = home.copy(), m
    else:
        count = len(forward)
    used = np.bincount(home, minlength=m) > 0
    point = _point(view, home, number, count, stages.leader.copy(), stages.recompute * used)
    return point if point is not None and permitted(problem, point.device, point.stages) else None


def _point(view: View, home: Int, number: Int, count: int, leader: Int, again: Int) -> Point | None:
    found = staged(view, home, number, count, leader, again)
    if found is None:
        return None
    fits = bool((pipeline_memory(view.problem, *found) <= view.problem.capacity).all())
    value = int(loads(view.problem, *found).periods.max(initial=0))
    return Point(value, fits, home if view.nodes is None else number, *found)


def staged(view: View, home: Int, number: Int, count: int, leader: Int, again: Int) -> tuple[Int, Stages] | None:
    """Return the devices and stages of tasks, None if an edge leads to an earlier stage.

    `home` and `number` (k,) are the device and the stage, 0..count - 1, of each unit.
    """
    problem = view.problem
    device, ahead, m = home[view.unit], number[view.unit], problem.n_devices
    if view.nodes is None:
        ahead, count = device, m
    behind = 2 * count - 1 - ahead if view.nodes is not None and view.nodes.opposite else count + ahead
    label = np.where(backward(problem), behind, ahead)
    if view.nodes is not None:
        if (label[problem.edge_source] > label[problem.edge_target]).any():
            return None
        label = np.unique(label, return_inverse=True)[1].astype(np.int64)
    return device, Stages(label, leader, again, np.zeros(m, dtype=np.int64))


def schedule_of(view: View, point: Point) -> Schedule:
    """Return the periodic schedule of a placement."""
    return periodic_schedule(view.problem, point.device, point.stages)


def new_state(view: View, point: Point, seed: int, squares: int, stop: engine.Stop) -> engine.StageSearch:
    """Return a search that starts from a placement; its cost is the norm with the power 2^squares."""
    device = np.zeros(len(view.units.fixed), dtype=np.int64)
    device[view.unit] = point.device
    homes = np.arange(view.problem.n_devices)
    place, homes = (device, homes) if view.nodes is None else _places(view.problem, device, point.place)
    leader, again, scale = point.stages.leader, point.stages.recompute, max(point.period, 1)
    return engine.StageSearch(view.units, place, homes, leader, again, seed % (2**31 - 2), squares, scale, stop)


def _places(problem: Problem, device: Int, stage: Int) -> tuple[Int, Int]:
    """(k,) the place of each unit, and (l,) the device of each place, for the devices and stages (k,) of the units.

    Stages keep their order. Idle devices come between them, evenly; behind them, further places of devices that may
    have several stages.
    """
    m, limit = problem.n_devices, rules(problem).segments
    most = np.where(limit == UNBOUNDED, REPEATS, np.minimum(limit, m)).tolist()
    label, place = np.unique(stage, return_inverse=True)
    owner = np.zeros(len(label), dtype=np.int64)
    owner[place.reshape(-1)] = device
    line = owner.tolist()
    idle = [d for d in range(m) if d not in line]
    homes: list[int] = []
    at = []
    for position, d in enumerate(line):
        at.append(len(homes))
        begin, end = (each * len(idle) // len(line) for each in (position, position + 1))
        homes += [d, *idle[begin:end]]
    for number in range(1, max(most)):
        homes += [d for d in range(m) if line.count(d) <= number < most[d]]
    return np.array(at, dtype=np.int64)[place.reshape(-1)], np.array(homes, dtype=np.int64)
