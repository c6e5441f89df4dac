"""Large neighbourhood search: stretch after stretch of the best schedule so far is solved anew.

P. Shaw: Using constraint programming and local search methods to solve vehicle routing problems, CP 1998, LNCS 1520,
doi:10.1007/3-540-49481-2_30; the choice of kinds and sizes by success is that of P. Laborie and D. Godard:
Self-adapting large neighborhood search: application to single-mode scheduling problems, MISTA 2007, in its spirit.

Time is counted in work that is the same on every machine (CP-SAT's deterministic time, variables of models, tasks
decoded), at rates that make it about seconds: so one worker does the same for the same seed, however fast it is.
Several workers solve as many stretches that do not overlap at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule

from ..._local_search.search import makespan_bound
from ..._runs.validity import valid
from .model import Found, Part, Stretch, changed, part_of, solved
from .neighbourhoods import FEWEST, Chooser, Kind
from .state import State

EACH, LONGER, LONGEST = 0.04, 1 / 25, 6.0
"""Deterministic time for a stretch; how much more for each in vain since the last gain, in parts; times that, at most.
"""

SOLVING, MODELLING, DECODING, ALWAYS = 8.0, 1.5e-4, 1e-6, 0.012
"""Seconds, about, of a unit of deterministic time, a variable of a model, a task or edge decoded, any stretch."""

GROWTH, SHRINKAGE = 1.05, 0.95
"""Of the size of a kind: when even what was tried before is solved to the end in vain; when it is not solved."""

FORGETTING, CURIOSITY = 0.9, 0.4
"""How much of a kind's rate is kept at each try; share of stretches whose kind is drawn whatever the rates."""

POLL = 0.05
"""Seconds between two looks at whether to stop while workers are busy."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A stretch that was tried and what it gave; `part` and `found` are None where it could not gain anything."""

    kind: Kind
    stretch: Stretch
    part: Part | None
    found: Found | None
    seconds: float


class Search:
    """The loop.

    Attributes
    ----------
    state
        The best schedule so far; while it is sought, one as short.
    spent
        Work so far, about seconds of one core.
    tried, vain
        Stretches tried in all, and since the last that gained something.
    complete
        Whether the whole problem was one stretch, solved to the end: there is nothing else to try.
    """

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
        self.state = State(problem, schedule)
        self.chooser = Chooser(problem, seed)
        self.spent = 0.0
        self.tried = 0
        self.vain = 0
        self.complete = False

    def run(self, seconds: float, bound: int) -> None:
        """Go on for about so much work, or until the makespan is down to a bound."""
        limit = self.spent + seconds
        if self.workers == 1:
            while self._wanted(limit, bound):
                self._take(self._tried(*self._next([]), self.tried, self.stopped))
            return
        halt = threading.Event()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while self._wanted(limit, bound):
                    chosen: list[tuple[Kind, Stretch]] = []
                    for _ in range(self.workers):
                        chosen.append(self._next([stretch for _, stretch in chosen]))
                    running = [
                        pool.submit(self._tried, kind, stretch, self.tried + k, halt.is_set)
                        for k, (kind, stretch) in enumerate(chosen)
                    ]
                    while wait(running, POLL).not_done:
                        if self.stopped():
                            halt.set()
                    for each in running:
                        self._take(each.result())
            finally:
                halt.set()

    def _wanted(self, limit: float, bound: int) -> bool:
        return self.spent < limit and self.state.span > bound and not self.complete and not self.stopped()

    def _next(self, busy: list[Stretch]) -> tuple[Kind, Stretch]:
        """The kind and the stretch to try next, apart from those that others work on if that can be had."""
        kinds, random = self.chooser.kinds, self.chooser.random
        for _ in range(8):
            if random.random() < CURIOSITY:
                kind = kinds[int(random.integers(len(kinds)))]
            else:
                kind = max(kinds, key=lambda each: each.rate)
            stretch = self.chooser.stretch(self.state, kind)
            if all(stretch.last <= other.first or other.last <= stretch.first for other in busy):
                break
        return kind, stretch

    def _tried(self, kind: Kind, stretch: Stretch, number: int, stopped: Callable[[], bool]) -> Trial:
        """Solve a stretch of the present state."""
        state = self.state
        part = part_of(state, stretch)
        seconds = ALWAYS + (self.problem.n_tasks + self.problem.n_edges) * DECODING
        if _hopeless(part):
            return Trial(kind, stretch, None, None, seconds)
        found = solved(part, state, EACH * min(1 + LONGER * self.vain, LONGEST), self.seed + number, stopped)
        return Trial(kind, stretch, part, found, seconds + found.work * SOLVING + found.size * MODELLING)

    def _take(self, trial: Trial) -> None:
        """Learn from a trial, and take what it found if that is no worse."""
        self.tried += 1
        self.spent += trial.seconds
        kind, stretch, before = trial.kind, trial.stretch, self.state
        gain = self._gain(trial)
        kind.tried += 1
        kind.gains += gain > 0
        kind.ticks += gain
        kind.seconds += trial.seconds
        share = gain / max(before.span, 1) / trial.seconds
        news = max(1 - FORGETTING, 1 / kind.tried)
        kind.rate = share if kind.tried == 1 else (1 - news) * kind.rate + news * share
        n, proved = self.problem.n_tasks, trial.found is None or trial.found.proved
        self.vain = 0 if gain > 0 else self.vain + 1
        if gain > 0:
            self.chooser.succeeded(before, stretch)
        else:
            if not proved:
                kind.size = max(kind.size * SHRINKAGE, min(FEWEST, n))
            elif self.chooser.failures_of(before, stretch) >= 1:
                kind.size = min(kind.size * GROWTH, n)
            self.chooser.failed(before, stretch)
            self.complete = proved and len(stretch.free) == n and bool(stretch.free.all())

    def _gain(self, trial: Trial) -> int:
        """Ticks by which the schedule became shorter."""
        before, part, found = self.state, trial.part, trial.found
        if part is None or found is None or found.device is None or found.start is None:
            return 0
        here, now = before.device[part.tasks], before.start[part.tasks] - part.origin
        if np.array_equal(found.device, here) and np.array_equal(found.start, now):
            return 0  # what it had already
        after = changed(before, part, trial.stretch, found)
        span = int((after.start + self.problem.duration[np.arange(self.problem.n_tasks), after.device]).max())
        if span > before.span or not valid(self.problem, after):
            return 0
        self.state = State(self.problem, after)
        if span < before.span:
            self.on_better(after)
        return before.span - span


def _hopeless(part: Part) -> bool:
    """Whether the tasks do not even fit between heads and tails of the devices in less than their present span."""
    problem = part.problem
    least = int(np.where(problem.feasible, problem.duration, problem.duration.max()).min(axis=1).sum())
    room = part.span - 1 - part.head.min(axis=0) - part.tail.min(axis=0)
    return least > int(np.maximum(room, 0).sum())


def improve(
    problem: Problem,
    schedule: Schedule,
    seconds: float,
    seed: int,
    stopped: Callable[[], bool],
    on_better: Callable[[Schedule], None],
    workers: int = 1,
) -> Schedule:
    """A valid schedule that is no longer than the given valid one, after about `seconds` of deterministic work.

    `on_better` gets every shorter one. One worker does the same for the same seed, unless `stopped` ends it early.
    """
    search = Search(problem, schedule, seed, stopped, on_better, workers)
    search.run(seconds, makespan_bound(problem))
    return search.state.schedule
