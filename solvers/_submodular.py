"""What submodular-g and submodular-gi share: a placement by maximising their function, then HEFT's order on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from placeopt.ir import UNLIMITED, Int, Problem
from placeopt.metrics import carbonari_jct
from placeopt.schedule import Schedule
from placeopt.solver import Answer, Clock, Options, Termination
from placeopt.submodular import continuous_greedy, local_search, stochastic_greedy
from placeopt.submodular.guarantees import Guarantee, greedy_guarantee
from placeopt.submodular.placement import Form, PlacementModel, PlacementSettings, time_capacity

from ._construction import Built, Constructed, as_answer, best_of, constructed, overflow, with_homes
from ._heft import by_rank, upward_ranks
from ._placement import Groups
from ._timeline import make_timeline


class SubmodularSettings(PlacementSettings):
    """What both solvers understand."""

    cap: str = "total"
    """The time capacity i_cap of every device, such as "100 s"; "total": the sum of every task's longest duration,
    with which load hardly counts beside parallel work; "search": several, halved from total on down to what the
    longest task and an even share of the work take, and the shortest schedule taken."""

    maximiser: Literal["lazy", "standard", "stochastic", "local-search", "continuous"] = "lazy"
    """Standard greedy; lazily, with the same outcome; on a random sample in each round; local search from standard
    greedy on; continuous greedy, which needs a monotone submodular function (parallelism=false, load=false,
    memory=unlimited). The last three are for small problems."""

    epsilon: float = Field(default=0.1, gt=0, lt=1)
    """Of stochastic greedy and local search: how much of the value may be lost."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a maximiser returned: a home for each group (g,), the room left (m,), and a group that found no device."""

    home: Int
    room: Int
    stuck: int | None
    cap: float
    value: float
    bound: float | None
    evaluations: int
    guarantee: Guarantee


@dataclass(slots=True)
class Maximising:
    """A heuristic in the sense of `_construction`; `found` is what it found last."""

    problem: Problem
    options: Options
    form: Form
    settings: SubmodularSettings
    found: Found | None = None

    def built(self, groups: Groups) -> Built:
        """The placement of the groups that have no home, and the order of all tasks."""
        found = self.found = self._maximised(groups)
        line = make_timeline(self.problem, groups)
        if found.stuck is not None:
            return Built(line._replace(home=found.home, room=found.room), found.stuck)
        return by_rank(self.problem, upward_ranks(self.problem))(with_homes(groups, found.home))

    def _maximised(self, groups: Groups) -> Found:
        problem, settings = self.problem, self.settings
        model = PlacementModel(problem, self.form, settings, groups.home, groups.feasible)
        cap = time_capacity(problem, settings.cap)
        allowed = model.independence()
        if settings.maximiser in ("lazy", "standard"):
            placed = model.place_all(lazy=settings.maximiser == "lazy")
            stuck = None if placed.stuck is None else int(problem.group[placed.stuck])
            value = float(placed.values[-1]) if len(placed.values) else 0.0
            guarantee = greedy_guarantee(model, allowed)
            return Found(placed.home, placed.room, stuck, cap, value, None, placed.evaluations, guarantee)
        if settings.maximiser == "stochastic":
            best = stochastic_greedy(model, allowed, epsilon=settings.epsilon, seed=self.options.seed, fill=True)
        elif settings.maximiser == "local-search":
            best = local_search(model, allowed, epsilon=settings.epsilon, fill=True)
        else:
            best = continuous_greedy(model, allowed, seed=self.options.seed, fill=True)
        state = allowed.start()
        for element in best.elements.tolist():
            allowed.add(state, element)
        left = np.flatnonzero(state.topology.device[problem.order] < 0)
        stuck = int(problem.group[problem.order[left[0]]]) if len(left) else None
        room = problem.capacity - state.used
        return Found(state.home, room, stuck, cap, best.value, best.bound, best.evaluations, best.guarantee)


def answered(problem: Problem, options: Options, form: Form, settings: SubmodularSettings) -> Answer:
    """The shortest schedule of those with the time capacities asked for."""
    clock = Clock(options.time_limit)
    unlimited = settings.memory == "unlimited"
    ground = replace(problem, capacity=np.full_like(problem.capacity, UNLIMITED)) if unlimited else problem
    ways: list[Maximising] = []
    schedules: list[Constructed] = []
    for cap in capacities(problem, settings.cap):
        if ways and (clock.over or options.should_stop()):
            break
        ways.append(Maximising(ground, options, form, settings.model_copy(update={"cap": cap})))
        schedules.append(constructed(ground, ways[-1].built))
    best = best_of(ground, schedules)
    stats = told(problem, best.schedule, ways[schedules.index(best)].found)
    if unlimited and best.schedule is not None and (over := overflow(problem, best.schedule)):
        note = f"memory = unlimited: {over} over capacity"
        if options.strict:
            return Answer(Termination.FAILED, message=note, stats=stats)
        best = replace(best, note=note)
    return replace(as_answer(problem, best), stats=stats)


def capacities(problem: Problem, cap: str) -> Iterator[str]:
    """The time capacities to try, in ticks or as they were given."""
    if cap != "search":
        yield cap
        return
    shortest = np.where(problem.feasible, problem.duration, np.iinfo(np.int64).max).min(axis=1, initial=0)
    least = max(int(shortest.max(initial=1)), int(shortest.sum()) // max(problem.n_devices, 1), 1)
    ticks = int(time_capacity(problem, "total"))
    while ticks > least:
        yield str(ticks)
        ticks //= 2
    yield str(least)


def told(problem: Problem, schedule: Schedule | None, found: Found | None) -> dict[str, Any]:
    """Numbers for reports; the paper's job completion time is no makespan, and named so."""
    if found is None:
        return {}
    stats: dict[str, Any] = {
        "value": found.value, "cap": found.cap, "evaluations": found.evaluations, "guarantee": found.guarantee.text,
    }  # fmt: skip
    if found.bound is not None:
        stats["value_bound"] = found.bound
    if schedule is not None:
        stats["carbonari_jct"] = carbonari_jct(problem, schedule.device)
    return stats
