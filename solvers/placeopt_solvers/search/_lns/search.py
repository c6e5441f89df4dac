"""The loop of large neighbourhood search: one neighbourhood of the best schedule after the other is optimised.

`placeopt_solvers.search.lns` gives the sources. Time is measured in work that is the same on every machine (CP-SAT's
deterministic time, variables of models, tasks decoded), scaled to about seconds. So with one worker the same seed gives
the same result on any machine. Several workers optimise neighbourhoods that do not overlap at the same time.

There are three kinds of neighbourhoods, each with a size that adapts:

    time       consecutive tasks of the sequence, on all devices
    devices    the tasks of two devices among consecutive ones
    critical   a connected cluster around a task of the critical path: its neighbours in the graph and on its device

Several neighbourhoods are drawn, and the one with the fewest failures per task is used.

A neighbourhood is optimised for the makespan and then for the lateness: the sum over its tasks of the
ticks by which the longest path through them comes too near to the present makespan (`Tuning.near`). In a schedule with
several critical paths, as those of shops with balanced loads, one neighbourhood removes some of them and the next one
the others, where no single one shortens the schedule.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import ALL_METRICS

from ..._runs.exact_run import Level, TooLargeError
from ..._runs.validity import valid
from ...exact._cp_sat.limits import LARGEST, Limits
from .._intervals.state import State
from .._intervals.subproblem import Neighbourhood, Subproblem, changed, subproblem_of

if TYPE_CHECKING:
    from ...exact._cp_sat.base import Expression
    from ...exact._cp_sat.model import Model


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters; `benchmarks/gaps.py --solver lns` measures their effect."""

    share: float = 0.85  # of the time limit for which one worker plans work; it ends by its work, not by the clock
    start: float = 0.8  # seconds of it before the search: loading OR-Tools
    reading: float = 2e-5  # seconds of it before the search per task and edge: heuristics
    least: float = 0.3  # least share of the time limit for the search
    limit: float = 0.04  # deterministic time for a neighbourhood
    growth: float = 1 / 25  # its relative increase per failure since the last gain
    longest: float = 6.0  # its largest factor
    per_work: float = 8.0  # seconds of a unit of deterministic time
    per_variable: float = 1.5e-4  # seconds of a variable of a model
    per_step: float = 1e-6  # seconds of a task or edge decoded
    per_trial: float = 0.012  # seconds of any trial
    larger: float = 1.05  # factor of the size of a kind after a repeated failure that was solved to the end
    smaller: float = 0.95  # factor of the size of a kind after a neighbourhood that was not solved to the end
    memory: float = 0.9  # weight of a kind's former rate at each trial
    exploration: float = 0.4  # share of neighbourhoods whose kind is drawn at random
    fewest: int = 6  # least number of free tasks
    first_size: Mapping[str, int] = field(default_factory=lambda: {"time": 25, "devices": 30, "critical": 20})
    span: int = 240  # largest number of tasks in a neighbourhood, fixed ones included: the size of the model
    drawn: int = 3  # neighbourhoods drawn, of which one is tried
    idle: int = 3  # identical idle devices in a subproblem at most: each needs a literal per task
    near: float = 0.003  # share of the makespan by which the path through a task may be shorter and is still late


TUNING = Tuning()


POLL = 0.05
"""Seconds between two checks whether to stop while several workers are busy."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A neighbourhood and its result; `sub` and `found` are None if no gain was possible."""

    kind: Kind
    area: Neighbourhood
    sub: Subproblem | None
    found: Solution | None
    seconds: float


class Search:
    """The loop."""

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        seed: int,
        stopped: Callable[[], bool],
        on_better: Callable[[Schedule], None],
        workers: int = 1,
    ) -> None:
        self.problem, self.seed, self.workers = problem, seed, workers
        self.stopped, self.on_better = stopped, on_better
        self.state = State(problem, schedule)  # the best schedule so far, or another of the same makespan
        self.chooser = Chooser(problem, seed)
        self.spent = 0.0  # work so far, in seconds of one core
        self.tried = 0  # trials
        self.failed = 0  # trials since the last gain
        self.complete = False  # whether the whole problem was one neighbourhood, solved to optimality

    def go_to(self, schedule: Schedule) -> None:
        """Continue from another valid schedule."""
        self.state = State(self.problem, schedule)

    def run(self, seconds: float, bound: float) -> None:
        """Continue for about `seconds` of work, or until the makespan is at most a bound."""
        limit = self.spent + seconds
        if self.workers == 1:
            while self._wanted(limit, bound):
                self._take(self._tried(*self._next([]), self.tried, self.stopped))
            return
        halt = threading.Event()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while self._wanted(limit, bound):
                    chosen: list[tuple[Kind, Neighbourhood]] = []
                    for _ in range(self.workers):
                        chosen.append(self._next([area for _, area in chosen]))
                    running = [
                        pool.submit(self._tried, kind, area, self.tried + k, halt.is_set)
                        for k, (kind, area) in enumerate(chosen)
                    ]
                    while wait(running, POLL).not_done:
                        if self.stopped():
                            halt.set()
                    for each in running:
                        self._take(each.result())
            finally:
                halt.set()

    def _wanted(self, limit: float, bound: float) -> bool:
        return self.spent < limit and self.state.span > bound and not self.complete and not self.stopped()

    def _next(self, busy: list[Neighbourhood]) -> tuple[Kind, Neighbourhood]:
        """Return the kind and the neighbourhood to try next, if possible disjoint from those being tried."""
        kinds, random = self.chooser.kinds, self.chooser.random
        for _ in range(8):
            if random.random() < TUNING.exploration:
                kind = kinds[int(random.integers(len(kinds)))]
            else:
                kind = max(kinds, key=lambda each: each.rate)
            area = self.chooser.draw(self.state, kind)
            if all(area.last <= other.first or other.last <= area.first for other in busy):
                break
        return kind, area

    def _tried(self, kind: Kind, area: Neighbourhood, number: int, stopped: Callable[[], bool]) -> Trial:
        """Optimise a neighbourhood of the current state."""
        state = self.state
        sub = subproblem_of(state, area, TUNING.idle)
        seconds = TUNING.per_trial + (self.problem.n_tasks + self.problem.n_edges) * TUNING.per_step
        if _hopeless(sub):
            return Trial(kind, area, None, None, seconds)
        limit = TUNING.limit * min(1 + TUNING.growth * self.failed, TUNING.longest)
        found = solved(sub, state, limit, self.seed + number, stopped)
        seconds = seconds + found.work * TUNING.per_work + found.size * TUNING.per_variable
        return Trial(kind, area, sub, found, seconds)

    def _take(self, trial: Trial) -> None:
        """Update the statistics, and accept the result of a trial unless it is worse."""
        self.tried += 1
        self.spent += trial.seconds
        kind, area, before = trial.kind, trial.area, self.state
        gain = self._gain(trial)
        kind.tried += 1
        kind.ticks += gain
        kind.seconds += trial.seconds
        share = gain / max(before.span, 1) / trial.seconds
        weight = max(1 - TUNING.memory, 1 / kind.tried)
        kind.rate = share if kind.tried == 1 else (1 - weight) * kind.rate + weight * share
        n, proved = self.problem.n_tasks, trial.found is None or trial.found.proved
        self.failed = 0 if gain > 0 else self.failed + 1
        if gain > 0:
            self.chooser.succeeded(before, area)
        else:
            if not proved:
                kind.size = max(kind.size * TUNING.smaller, min(TUNING.fewest, n))
            elif self.chooser.failures_of(before, area) >= 1:
                kind.size = min(kind.size * TUNING.larger, n)
            self.chooser.failed(before, area)
            self.complete = proved and len(area.free) == n and bool(area.free.all())

    def _gain(self, trial: Trial) -> int:
        """Return the ticks by which a trial shortens the schedule."""
        before, sub, found = self.state, trial.sub, trial.found
        if sub is None or found is None or found.device is None or found.start is None:
            return 0
        here, now = before.device[sub.tasks], before.start[sub.tasks] - sub.origin
        if np.array_equal(found.device, here) and np.array_equal(found.start, now):
            return 0  # unchanged
        after = changed(before, sub, trial.area, found.device, found.start)
        span = int((after.start + self.problem.duration[np.arange(self.problem.n_tasks), after.device]).max())
        if span > before.span or not valid(self.problem, after):
            return 0
        self.state = State(self.problem, after)
        if span < before.span:
            self.on_better(after)
        return before.span - span


def _hopeless(sub: Subproblem) -> bool:
    """Return whether the loads show that the tasks cannot take less than their current makespan."""
    problem = sub.problem
    least = int(np.where(problem.feasible, problem.duration, problem.duration.max()).min(axis=1).sum())
    room = sub.span - 1 - sub.head.min(axis=0) - sub.tail.min(axis=0)
    return least > int(np.maximum(room, 0).sum())


FAST: dict[str, object] = {
    "cp_model_presolve": False,
    "linearization_level": 0,
    "symmetry_level": 0,
    "use_precedences_in_disjunctive_constraint": False,
}
"""Parameters of CP-SAT for small scheduling models: faster, with equal results. Presolve has risks
(`placeopt.bounding.engines.cp_sat`) and no benefit here."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The result for a subproblem, in its own ticks."""

    device: Int | None  # (k,); None without a schedule that is short enough
    start: Int | None  # (k,)
    proved: bool  # whether no shorter schedule exists
    work: float  # deterministic time of CP-SAT
    size: int  # variables of the model


def solved(sub: Subproblem, state: State, limit: float, seed: int, stopped: Callable[[], bool]) -> Solution:
    """Minimise the makespan of a subproblem and then its lateness, within a deterministic time."""
    from ...exact._cp_sat.model import Model  # loads OR-Tools

    problem, horizon = sub.problem, sub.span
    limits = Limits(
        horizon=horizon, allowed=sub.allowed, head=sub.head, tail=sub.tail, largest=dict.fromkeys(ALL_METRICS, horizon)
    )
    try:
        model = Model(problem, limits, False, lambda: False)
    except TooLargeError:
        return Solution(None, None, False, 0.0, 0)
    cp, timing = model.base.cp, model.timing
    assert timing is not None
    now = state.device[sub.tasks]
    for d in range(problem.n_devices):
        for i, j in pairwise(np.flatnonzero(~sub.free & (now == d)).tolist()):
            cp.add(timing.starts[j] >= timing.ends[i])
    for i in np.flatnonzero((sub.late <= horizon).any(axis=1)).tolist():
        for d, x in model.placement.at[int(problem.group[i])].items():
            if sub.late[i, d] <= horizon:
                cp.add(timing.ends[i] <= int(sub.late[i, d])).only_enforce_if(x)
    start = state.start[sub.tasks] - sub.origin
    found: list[Schedule] = []
    outcome = model.minimise(
        _with_lateness(model, sub, math.ceil(TUNING.near * state.span), now, start),
        Schedule(now, start),
        found.append,
        seconds=None,
        seed=seed % 2**31,
        workers=1,
        should_stop=stopped,
        parameters={**FAST, "max_deterministic_time": limit},
    )
    proved = outcome.status in ("OPTIMAL", "INFEASIBLE")
    device, starts = (found[-1].device, found[-1].start) if found else (None, None)
    return Solution(device, starts, proved, outcome.work, model.base.size)


def _with_lateness(model: Model, sub: Subproblem, window: int, device: Int, start: Int) -> Level[Expression]:
    """Return the objective, with the lateness within `window` ticks of the present makespan as a second one.

    `device` and `start` (k,) are those of the hint. If the sums would exceed 64 bits, the makespan is the only one.
    """
    from ...exact._cp_sat.model import added

    assert model.timing is not None
    cp, due, makespan = model.base.cp, sub.span - window, model.levels[0]
    weight = window * len(device)
    most = weight * (sub.span + 1)
    if most >= LARGEST:
        return makespan
    model.magnitude = max(model.magnitude, most)
    each = np.arange(len(device))
    hints = start + sub.problem.duration[each, device] + sub.tail[each, device] - due
    lateness = [cp.new_int_var(0, window, "") for _ in hints]
    for i, (late, hint) in enumerate(zip(lateness, hints.tolist(), strict=True)):
        cp.add_hint(late, max(hint, 0))
        for d, x in model.placement.at[int(sub.problem.group[i])].items():
            cp.add(model.timing.ends[i] + int(sub.tail[i, d]) <= due + late).only_enforce_if(x)
    return replace(makespan, expression=added([weight * makespan.expression, *lateness]))


Name = Literal["time", "devices", "critical"]


@dataclass(slots=True)
class Kind:
    """A kind of neighbourhoods and its success."""

    name: Name
    size: float  # free tasks of the next neighbourhood
    tried: int = 0
    ticks: int = 0  # gained in total
    seconds: float = 0.0  # spent in total
    rate: float = math.inf  # recent gain per second, as a share of the makespan; infinite before the first trial


class Chooser:
    """Draws neighbourhoods."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.random = np.random.default_rng([seed, 7])
        self.failures = np.zeros(problem.n_tasks, dtype=np.int64)
        names: list[Name] = ["time", "devices", "critical"] if problem.n_devices > 2 else ["time", "critical"]
        self.kinds = [Kind(name, min(TUNING.first_size[name], problem.n_tasks)) for name in names]

    def draw(self, state: State, kind: Kind) -> Neighbourhood:
        """Return a neighbourhood of a kind, one with few failures."""
        drawn = [self._drawn(state, kind) for _ in range(TUNING.drawn)]
        return min(drawn, key=lambda found: self.failures_of(state, found))

    def failed(self, state: State, area: Neighbourhood) -> None:
        """Count a failure."""
        self.failures[state.sequence[area.first : area.last][area.free]] += 1

    def succeeded(self, state: State, area: Neighbourhood) -> None:
        """Forget failures of the tasks of a neighbourhood that changed, and of as many on both sides."""
        length = area.last - area.first
        self.failures[state.sequence[max(area.first - length, 0) : area.last + length]] = 0

    def failures_of(self, state: State, area: Neighbourhood) -> float:
        """Return the mean number of failures of the free tasks."""
        tasks = state.sequence[area.first : area.last][area.free]
        return float(self.failures[tasks].mean()) if len(tasks) else float("inf")

    def _drawn(self, state: State, kind: Kind) -> Neighbourhood:
        n, size = self.problem.n_tasks, min(int(kind.size), self.problem.n_tasks)
        if kind.name == "critical":
            return self._cluster(state, size)
        if kind.name == "time":
            first, last = self._first(size)
            return Neighbourhood(first, last, np.ones(last - first, dtype=np.bool_))
        m = self.problem.n_devices
        length = min(size * m // 2, TUNING.span, n)
        first, last = self._first(length)
        pair = self.random.choice(m, 2, replace=False)
        return Neighbourhood(first, last, np.isin(state.device[state.sequence[first:last]], pair))

    def _first(self, length: int) -> tuple[int, int]:
        """Return a random interval of positions, cut off at the ends of the sequence."""
        n = self.problem.n_tasks
        first = int(self.random.integers(-(length // 2), n - length + length // 2 + 1))
        return max(first, 0), min(first + length, n)

    def _cluster(self, state: State, size: int) -> Neighbourhood:
        """Return tasks reached in random order from one of the critical path, within the largest interval."""
        problem, random = self.problem, self.random
        seed = int(random.choice(state.critical))
        low = max(int(state.position[seed]) - TUNING.span // 2, 0)
        high = min(low + TUNING.span, problem.n_tasks)
        taken, border = {seed}, [seed]
        while border and len(taken) < size:
            k = int(random.integers(len(border)))
            border[k], border[-1] = border[-1], border[k]
            for j in state.neighbours(border.pop()).tolist():
                if j not in taken and low <= state.position[j] < high and len(taken) < size:
                    taken.add(j)
                    border.append(j)
        positions: Int = np.sort(state.position[list(taken)])
        first, last = int(positions[0]), int(positions[-1]) + 1
        free = np.zeros(last - first, dtype=np.bool_)
        free[positions - first] = True
        return Neighbourhood(first, last, free)
