"""Searches in the slots of a pool while the portfolio runs on this machine.

Each slot runs short searches, one after the other. The problem is sent to each worker once. Between two searches, the
slots exchange schedules: what a search finds is the start of others.

On a large graph, searches come in rounds. In a round of lists, each slot continues randomised list scheduling
(`randomised`) from the noise of the best such schedule. In a round of ranges, the slots improve disjoint ranges of the
incumbent, and the results are joined (`_ranges`). The kind with the larger gain in its last round comes next; if
neither had any, they alternate.

Otherwise, each slot has a schedule of its own, and searches from it with different solvers and seeds, as islands do (R.
Tanese: Distributed genetic algorithms, ICGA 1989). Half of the slots begin with a randomised list schedule, the others
with the incumbent. A slot continues from the incumbent if its search had no gain, or its schedule is much longer.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np

from placeopt.model.arrays import Float
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.protocol import Answer, Options, unsupported
from placeopt.protocol.pool import Lanes, Pool, Shared
from placeopt.protocol.registry import find_solver
from placeopt.protocol.remote import Solve, shared_problem, shared_schedule, submitted

from .._constructive.construction import construct_with_repair
from .._constructive.priorities import mean_costs, optimistic_costs, ready_order
from .._constructive.sequences import Penalties, insert_tasks
from .._runs.solve_run import SolveRun
from .._runs.validity import valid, valid_forms
from ..search._intervals.moves import change_of, improved_range, joined, ranges
from ..search._intervals.state import State
from ..search._intervals.sweep import swept

SEARCHES = ("annealing", "lns", "local-search")
"""Solvers that take turns."""

SECONDS, LEAST = 5.0, 0.3
"""Time limit of a search, and the seconds below which none starts."""

PER_SLOT = 0.03
"""Seconds of a search for each slot, if that is more: ten times what it takes to submit a job."""

ARRIVAL = 0.4
"""Seconds before the end at which searches end, so that their schedules arrive in time."""

LARGE = 6_000
"""Tasks above which ranges are improved: a search of the whole graph has too few moves per task."""

FAR = 0.01
"""Part of the incumbent's value by which a slot's own schedule may be worse."""

LATE = 1.5
"""Multiple of the time limit after which a round does not wait for more results."""

OTHER = 10_000
"""The first seed after that of the run."""


Part = tuple[int, int]
"""A range [first, last) of positions."""

WHOLE: Part = 0, 0
"""Stands for the whole sequence."""

KINDS = ("lists", "ranges")
"""Kinds of rounds."""


@dataclass(slots=True)
class Held:
    """A schedule with its value, and where it is in the pool."""

    schedule: Schedule
    values: tuple[Value, ...]
    shared: Shared | None = None


@dataclass(slots=True)
class Round:
    """Searches that start together; `waiting` are the parts not yet submitted, `running` those of slots.

    A part is a range of the state's sequence, WHOLE in a round of lists.
    """

    kind: str
    state: State
    start: Shared | None
    due: float
    waiting: list[Part]
    running: dict[int, Part] = field(default_factory=dict)
    found: list[tuple[Part, Answer]] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether all its searches have ended, or it is late."""
        return time.monotonic() > self.due or not (self.waiting or self.running)


class Restarts:
    """A context manager that cancels its searches in the end.

    `submit` states the incumbent and starts the searches, `collect` offers what they found; the portfolio calls both
    between two turns. The exchange between slots does not wait for that.
    """

    def __init__(self, problem: Problem, pool: Pool, seed: int) -> None:
        self._problem, self._pool, self._seed = problem, pool, seed
        self._seeds: Iterator[int] = count(seed + OTHER)
        solvers = [solver for solver in map(find_solver, SEARCHES) if unsupported(solver.info, problem) is None]
        self._searches: list[Solve] = [partial(solver.solve, settings=solver.settings_type()) for solver in solvers]
        self._by_range = problem.n_tasks > LARGE and not problem.contends and swept(problem)
        self._random = problem.n_tasks * problem.n_devices <= MOST
        self._gains = {kind: math.inf for kind in KINDS if kind != "lists" or self._random}
        self._steps: tuple[float, tuple[int, ...]] = math.inf, ()
        self._lock = threading.Lock()
        self._best: Held | None = None
        self._own: dict[int, Held] = {}
        self._turns: dict[int, int] = {}
        self._found: list[Schedule] = []
        self._end: float | None = None
        self._sent: Shared | None = None
        self._round: Round | None = None
        self._rounds = 0
        self._lanes: Lanes[Answer] | None = None

    def __enter__(self) -> Restarts:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lanes is not None:
            self._lanes.__exit__()

    def submit(self, start: Schedule, remaining: float | None) -> None:
        """State the incumbent of this machine and the remaining seconds; start the searches at the first call."""
        with self._lock:
            self._end = None if remaining is None else time.monotonic() + remaining
            if self._best is None or start is not self._best.schedule:
                self._keep(start)
        if self._lanes is None and (self._searches or self._by_range):
            self._lanes = Lanes(self._pool, self._next, self._collect)
            self._lanes.__enter__()

    def collect(self, offer: Callable[[Schedule], None]) -> None:
        """Offer the schedules that the searches found and that were the best then."""
        if self._lanes is not None:
            self._lanes.check()
        with self._lock:
            found, self._found = self._found, []
        for schedule in found:
            offer(schedule)

    def _keep(self, schedule: Schedule) -> bool:
        """Keep a schedule that is better than the best; return whether it is."""
        values = evaluate(self._problem, schedule)
        if self._best is not None and values >= self._best.values:
            return False
        self._best = Held(schedule, values)
        return True

    # The following methods run in the thread of the lanes.

    def _next(self, lane: int) -> Future[Answer] | None:
        """Submit the next search of a slot; None if it must wait."""
        if self._round is not None and self._round.over:
            self._join(self._round)
        with self._lock:
            best, end = self._best, self._end
        seconds = max(SECONDS, PER_SLOT * self._pool.slots())
        if end is not None:
            seconds = min(seconds, end - time.monotonic() - ARRIVAL)
        if best is None or seconds < LEAST:
            return None
        if self._by_range:
            return self._next_part(lane, best, seconds, end)
        turn = self._turns.get(lane, 0)
        self._turns[lane] = turn + 1
        if turn == 0 and lane % 2 and self._random:
            return self._submitted(randomised, seconds, None)
        if not self._searches:
            return None
        own = self._own.get(lane, best)
        far = float(own.values[0]) > (1 + FAR) * float(best.values[0])
        return self._submitted(
            self._searches[(lane + turn) % len(self._searches)], seconds, self._shared(best if far else own)
        )

    def _next_part(self, lane: int, best: Held, seconds: float, end: float | None) -> Future[Answer] | None:
        """Submit a part of the present round; None if the slot must wait for the next round."""
        if self._round is None:
            self._round = self._new_round(best, seconds, end)
        if not self._round.waiting:
            return None
        part = self._round.waiting.pop()
        self._round.running[lane] = part
        if self._round.kind == "lists":
            return self._submitted(partial(randomised, steps=self._steps[1]), seconds, None)
        return self._submitted(partial(improved_range, first=part[0], last=part[1]), seconds, self._round.start)

    def _new_round(self, best: Held, seconds: float, end: float | None) -> Round:
        slots, due = self._pool.slots(), time.monotonic() + LATE * seconds
        kinds, gain = list(self._gains), max(self._gains.values())
        kind = (
            kinds[self._rounds % len(kinds)] if gain == 0 else next(each for each in kinds if self._gains[each] == gain)
        )
        chosen = [WHOLE] if kind == "lists" else ranges(self._problem.n_tasks, slots, self._rounds)
        self._rounds += 1
        return Round(
            kind,
            State(self._problem, best.schedule),
            None if kind == "lists" else self._shared(best),
            due if end is None else min(due, end - ARRIVAL / 2),
            [chosen[k % len(chosen)] for k in range(slots)][::-1],
        )

    def _submitted(self, search: Solve, seconds: float, start: Shared | None) -> Future[Answer]:
        if self._sent is None:
            self._sent = shared_problem(self._pool, self._problem)
        return submitted(self._pool, search, self._sent, Options(time_limit=seconds, seed=next(self._seeds)), start)

    def _shared(self, held: Held) -> Shared:
        if held.shared is None:
            held.shared = shared_schedule(self._pool, held.schedule)
        return held.shared

    def _collect(self, lane: int, answer: Answer | None) -> None:
        """Receive the answer of a slot's search."""
        schedule = None if answer is None else answer.schedule
        if answer is not None and "steps" in answer.stats:
            self._steps = min(self._steps, (self._span(answer), answer.stats["steps"]))
        round_ = self._round
        part = None if round_ is None else round_.running.pop(lane, None)
        if round_ is not None and part is not None:
            if answer is not None and schedule is not None:
                round_.found.append((part, answer))
            if round_.over:
                self._join(round_)
            return
        for form in () if schedule is None else valid_forms(self._problem, schedule):
            self._offer(form)
            values = evaluate(self._problem, form)
            if lane not in self._own or values < self._own[lane].values:
                self._own[lane] = Held(form, values)
                return
        self._own.pop(lane, None)  # no gain: the slot continues from the incumbent

    def _join(self, round_: Round) -> None:
        """End a round: join its results, the shortest schedule first."""
        self._round = None
        found: dict[Part, Schedule] = {}  # several slots may have worked on the same part
        for part, answer in sorted(round_.found, key=lambda each: self._span(each[1])):
            assert answer.schedule is not None
            found.setdefault(part, answer.schedule)
        if round_.kind == "lists":
            schedule = found.get(WHOLE, round_.state.schedule)
        else:
            changes = [change_of(round_.state, *part, schedule) for part, schedule in found.items()]
            schedule = joined(round_.state, changes).schedule
        self._gains[round_.kind] = max(round_.state.span - makespan(self._problem, schedule), 0)
        for form in valid_forms(self._problem, schedule):
            self._offer(form)

    def _span(self, answer: Answer) -> float:
        """Return the makespan of an answer's schedule."""
        return math.inf if answer.schedule is None else makespan(self._problem, answer.schedule)

    def _offer(self, schedule: Schedule) -> None:
        with self._lock:
            if self._keep(schedule):
                self._found.append(schedule)


RANK, COST, PART = (-3.5, -2.0), (-2.0, -0.7), (-2.0, 0.0)
"""Exponents of 10, drawn uniformly: noise of a rank as a part of it, noise of a cost as a part of the mean duration,
and the share of tasks that a sample changes."""

MOST = 20_000_000
"""Largest number of (task, device) pairs: a sample of more takes seconds and gigabytes."""


def randomised(problem: Problem, options: Options, *, steps: tuple[int, ...] = ()) -> Answer:
    """Return the best schedule of as many samples as the time limit allows; the first sample always ends.

    Small changes of PEFT's ranks and optimistic costs, which are estimates, give other schedules, of which some are
    better: biased sampling of priority rules (J. Bresina: Heuristic-biased stochastic sampling, AAAI 1996). Here each
    sample changes the ranks and costs of the best so far, for all tasks or for a random part of them, as a (1+1)
    evolution strategy does.

    `steps` are the seeds of the changes after which the search continues. They stand for ranks and costs, which would
    be megabytes. `Answer.stats` has those of the best schedule as `steps`.
    """
    run = SolveRun(problem, options)
    rng = np.random.default_rng(options.seed)
    estimates = optimistic_costs(problem)
    rank, table = mean_costs(problem, estimates), estimates.astype(np.float64)
    for step in steps:
        rank, table = _changed(problem, rank, table, step)
    run.stats["steps"] = steps
    if steps:
        schedule = _listed(problem, rank, table)
        if schedule is not None:
            run.best.offer(schedule)
    while True:
        step = int(rng.integers(2**62))
        ranks, costs = _changed(problem, rank, table, step)
        schedule = _listed(problem, ranks, costs)
        if schedule is not None and run.best.offer(schedule):
            rank, table = ranks, costs
            run.stats["steps"] += (step,)
        reason = run.stop_reason()
        if reason is not None:
            return run.ended(reason)


def _changed(problem: Problem, rank: Float, table: Float, seed: int) -> tuple[Float, Float]:
    """Return ranks (n,) and optimistic costs (n, m) with the noise of a seed."""
    rng = np.random.default_rng(seed)
    share, spread, noise = (10.0 ** rng.uniform(*each) for each in (PART, RANK, COST))
    chosen = np.flatnonzero(rng.random(problem.n_tasks) < share)
    ranks, costs = rank.copy(), table.copy()
    ranks[chosen] *= 1 + spread * rng.standard_normal(len(chosen))
    costs[chosen] += float(problem.duration.mean()) * noise * rng.standard_normal((len(chosen), problem.n_devices))
    return ranks, costs


def _listed(problem: Problem, rank: Float, table: Float) -> Schedule | None:
    """Return the schedule of PEFT with ranks (n,) and optimistic costs (n, m), if it is valid."""
    sequence = ready_order(problem, rank)
    penalties = Penalties(np.arange(problem.n_tasks), np.rint(np.maximum(table, 0)).astype(np.int64))
    found = construct_with_repair(problem, lambda groups: insert_tasks(problem, groups, sequence, penalties)).schedule
    return found if found is not None and valid(problem, found) else None
