"""Shared by submodular-g and submodular-gi: a placement that maximises their function, then HEFT's order on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from placeopt import engine
from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.model.metrics import carbonari_jct
from placeopt.model.native import native
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Clock, Options, Termination
from placeopt.submodular import continuous_greedy, local_search, stochastic_greedy
from placeopt.submodular.placement import Form, PlacementModel, PlacementSettings, time_capacity
from placeopt.submodular.results import Guarantee, greedy_guarantee

from .._constructive.construction import (
    Construction,
    Constructive,
    PartialSchedule,
    as_answer,
    best_of,
    construct_by_sum,
    overflow,
)
from .._constructive.groups import Groups, with_homes
from .._constructive.priorities import upward_ranks
from .._constructive.sequences import by_rank

LEAST_SHARE = 16
"""The search of time capacities ends at the mean duration divided by this."""


class SubmodularSettings(PlacementSettings):
    """Settings of both solvers."""

    cap: str = "auto"
    """The time capacity i_cap of every device, such as "100 s" (bare numbers are ticks). "total": the sum of all tasks'
    longest durations; load and transfers then count little compared with parallel work. "search": total, then the sum
    of all tasks' shortest durations, halved down to a sixteenth of their mean. Each is tried with the load counted
    (unless load=false) and without, and with communication=true also without communication; the shortest schedule is
    the answer. "auto": search with communication=true, because i_cap decides the cost of a transfer; else total."""

    maximiser: Literal["lazy", "standard", "stochastic", "local-search", "continuous"] = "lazy"
    """standard: standard greedy; lazy: the same result in less time; stochastic: greedy on a random sample in each
    round; local-search: from the result of standard greedy; continuous: continuous greedy. The last two need
    submodular-g with parallelism=false, load=false, memory=unlimited: only then the value does not depend on the order
    of placement. The last three are for small problems."""

    epsilon: float = Field(default=0.1, gt=0, lt=1)
    """Share of the value that stochastic greedy and local search may lose."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a maximiser: the home of each group (g,), the bytes left (m,), and a group that no device can take."""

    home: Int
    room: Int
    stuck: int | None
    cap: float
    load: bool
    communication: bool
    value: float
    bound: float | None
    evaluations: int
    guarantee: Guarantee


@dataclass(slots=True)
class Maximising:
    """The heuristic with fixed settings; `found` is its last result.

    `ground` is the problem whose rules are kept: without capacities if memory = unlimited.
    """

    problem: Problem
    ground: Problem
    should_stop: Callable[[], bool]
    seed: int
    form: Form
    settings: SubmodularSettings
    found: Found | None = None

    def build(self, groups: Groups) -> PartialSchedule:
        """Place the groups without a home, and order all tasks."""
        found = self.found = self._maximised(groups)
        if found.stuck is not None:
            line = engine.Timeline(native(self.ground), with_homes(groups, found.home))
            return PartialSchedule(line, found.stuck)
        return by_rank(self.ground, upward_ranks(self.ground))(with_homes(groups, found.home))

    def _maximised(self, groups: Groups) -> Found:
        problem, settings = self.problem, self.settings
        model = PlacementModel(problem, self.form, settings, groups.home, groups.feasible)
        way = time_capacity(problem, settings.cap), settings.load, settings.communication
        allowed = model.independence()
        if settings.maximiser == "continuous" and not (model.submodular and model.monotone and allowed.matroid):
            raise UsageError(
                "maximiser = continuous needs a monotone submodular function and a matroid: submodular-g with "
                "parallelism=false, load=false and memory=unlimited, a cap of at least half the longest duration, and "
                "no groups or separation; lazy, standard and stochastic work with any function"
            )
        if settings.maximiser == "local-search" and not model.path_free:
            raise UsageError(
                "maximiser = local-search needs a function whose value does not depend on the order of placement: "
                "submodular-g with parallelism=false, load=false and memory=unlimited, and a cap of at least half the "
                "longest duration; lazy, standard and stochastic work with any function"
            )
        if settings.maximiser in ("lazy", "standard"):
            placed = model.place_all(lazy=settings.maximiser == "lazy", should_stop=self.should_stop)
            if placed.stopped:
                raise engine.StoppedError
            stuck = None if placed.stuck is None else int(problem.group[placed.stuck])
            value = float(placed.values[-1]) if len(placed.values) else 0.0
            guarantee = greedy_guarantee(model, allowed)
            return Found(placed.home, placed.room, stuck, *way, value, None, placed.evaluations, guarantee)
        if settings.maximiser == "stochastic":
            best = stochastic_greedy(model, allowed, epsilon=settings.epsilon, seed=self.seed, fill=True)
        elif settings.maximiser == "local-search":
            best = local_search(model, allowed, epsilon=settings.epsilon, fill=True)
        else:
            best = continuous_greedy(model, allowed, seed=self.seed, fill=True)
        state = allowed.start()
        for element in best.elements.tolist():
            allowed.add(state, element)
        left = np.flatnonzero(state.device[problem.order] < 0)
        stuck = int(problem.group[problem.order[left[0]]]) if len(left) else None
        room = problem.capacity - state.used
        return Found(state.home, room, stuck, *way, best.value, best.bound, best.evaluations, best.guarantee)


class SubmodularSolver(Constructive):
    """Base class of the two solvers, which differ in the form of the function."""

    form: ClassVar[Form]
    settings_type = SubmodularSettings

    def solve(self, problem: Problem, options: Options, settings: SubmodularSettings) -> Answer:
        """Return the shortest schedule over the time capacities of the settings, or FAILED if none fits into memory."""
        clock = Clock(options.time_limit)
        unlimited = settings.memory == "unlimited"
        ground = replace(problem, capacity=np.full_like(problem.capacity, UNLIMITED)) if unlimited else problem
        ways: list[Maximising] = []
        schedules: list[Construction] = []

        def should_stop() -> bool:
            return clock.over or options.should_stop()

        for trial in trials(problem, settings):
            way = Maximising(problem, ground, should_stop, options.seed, self.form, trial)
            try:
                if ways and should_stop():
                    break
                schedules.append(construct_by_sum(ground, way.build))
            except engine.StoppedError:
                break
            ways.append(way)
        if not ways:
            stopped = Termination.TIME_LIMIT if clock.over else Termination.INTERRUPTED
            return Answer(stopped, message="stopped before all tasks were placed")
        best = best_of(ground, schedules)
        stats = statistics(problem, best.schedule, ways[schedules.index(best)].found)
        if unlimited and best.schedule is not None and (over := overflow(problem, best.schedule)):
            note = f"memory = unlimited: {over} over capacity"
            if options.strict:
                return Answer(Termination.FAILED, message=note, stats=stats)
            best = replace(best, note=note)
        return replace(as_answer(problem, best), stats=stats)


def trials(problem: Problem, settings: SubmodularSettings) -> Iterator[SubmodularSettings]:
    """Yield the settings to try, with the time capacity in ticks if it is searched."""
    if settings.cap != "search" and not (settings.cap == "auto" and settings.communication):
        yield settings.model_copy(update={"cap": "total"}) if settings.cap == "auto" else settings
        return
    shortest = np.where(problem.feasible, problem.duration, UNLIMITED).min(axis=1)
    work = int(shortest.sum())
    caps = [time_capacity(problem, "total")]
    halvings = (LEAST_SHARE * problem.n_tasks).bit_length()
    caps += [work / 2**k for k in range(halvings)]
    ways = [(load, settings.communication) for load in ((True, False) if settings.load else (False,))]
    if settings.communication:
        ways.append((settings.load, False))
    for cap in caps:
        for load, communication in ways:
            update = {"cap": str(max(int(cap), 1)), "load": load, "communication": communication}
            yield settings.model_copy(update=update)


def statistics(problem: Problem, schedule: Schedule | None, found: Found | None) -> dict[str, Any]:
    """Return statistics for reports; the paper's job completion time has its own name, as it is not the makespan."""
    if found is None:
        return {}
    stats: dict[str, Any] = {
        "value": found.value,
        "cap": found.cap,
        "load": found.load,
        "communication": found.communication,
        "evaluations": found.evaluations,
        "guarantee": found.guarantee.text,
    }
    if found.bound is not None:
        stats["value_bound"] = found.bound
    if schedule is not None:
        stats["carbonari_jct"] = carbonari_jct(problem, schedule.device)
    return stats
