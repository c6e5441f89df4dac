"""Run cp-sat: the start, the model, and one level of the objective after the other; see `cp_sat.py`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from placeopt.bounding.lagrangian import lagrangian_bound
from placeopt.bounding.quick import best_bound
from placeopt.engine import StoppedError
from placeopt.model.objective import Value, simplified
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Options, Termination

from ..._runs.device_classes import moves_freely
from ..._runs.exact_run import ExactRun, ExactSettings, Level, LevelOutcome, TooLargeError, relabelled
from ..._runs.solve_run import sufficient
from ..._runs.time_scaling import solve_coarsened
from ..._series.run import solved_as_blocks
from ..._starts.warm_start import best_start, improved_start, quickly_improved
from .._forks.shape import fork_of
from .identical_devices import pools
from .limits import limits, model_size

if TYPE_CHECKING:
    from .base import Expression

SEARCHED = 40
"""Tasks from which on a search improves the start; smaller problems are mostly solved sooner."""

LONG = 10.0
"""Seconds of the time limit from which on a search improves the start; below, the proof needs all of them."""

SHARE, PACE, LONGEST = 0.1, 5e-3, 4.0
"""Part of the time limit for it, its seconds for each task at most, and its seconds at most."""

IDLE = 4
"""Turns of this search without a gain after which it ends."""

EARLY, EARLY_SIZE = 0.5, 5_000
"""Seconds in which CP-SAT may prove the optimum before the search begins, and literals, intervals and rows of its model
at most. Many problems of this size are proved in a tenth of a second."""

BLOCKS = 0.7
"""Share of the time limit for blocks, where single tasks cut the graph."""

PROBED = 6_000
"""Variables above which presolve does not probe: probing large models finds almost nothing."""

FIXED = 0.5
"""Share of tasks with one device from which on sequences decide on the makespan, rather than loads."""

SECOND = (2, 3)
"""Threads with which CP-SAT runs a search of the whole model without a linear relaxation only if asked to."""

FORKS = 0.8, 60.0
"""Part of the time limit for the model of forks, and its seconds without a limit."""

AT_LIMIT = 0.9
"""Share of the time limit after which the time limit is the reason why CP-SAT ended."""


class CpSatSettings(ExactSettings):
    """Settings of cp-sat."""

    pool: bool = True
    """Model identical devices with free transfers between them as one that runs several tasks at once."""
    forks: bool = True
    """Model forks, joins and fork-joins as independent tasks, for each pair of devices of the source and the sink."""
    linearization_level: Literal[0, 1, 2] | None = None
    """How much of the model the linear relaxation contains: 0 nothing, 2 everything; None chooses by the objective."""
    deterministic: bool = False
    """Give the same answer for any number of workers: the strategies take turns on one thread, which is slower."""
    work: float | None = Field(default=None, gt=0)
    """Limit of CP-SAT's deterministic time for each level of the objective; a unit takes a few seconds. With one worker
    the answer then does not depend on the clock."""
    max_size: int = 1_000_000
    """Literals, intervals and rows above which no model is built; a million take about 2 GB."""


def solved(problem: Problem, options: Options, settings: CpSatSettings) -> Answer:
    """Return the best schedule found and the bound proved within the limits, for a problem that has tasks."""
    return solve_coarsened(problem, options, lambda problem, options: CpSatRun(problem, options, settings).answer())


class CpSatRun(ExactRun["Expression"]):
    """One solve."""

    def __init__(self, problem: Problem, options: Options, settings: CpSatSettings) -> None:
        super().__init__(problem, options, "cp-sat", "CP-SAT")
        if problem.alignment is not None:  # schedules of heuristics and of other models have no offsets
            settings = settings.model_copy(update=dict.fromkeys(("hint", "series", "pool", "forks"), False))
        self.settings = settings
        if self.threads > 1:
            self.varies_by = "threads"

    def answer(self) -> Answer:
        """Return the best schedule and bound, and why the run ended."""
        start = self.options.initial
        if self.problem.alignment is None:
            start = best_start(self.problem, start, self.settings.hint, self.stopped)
        least = best_bound(self.problem).value
        if start is not None:
            self.best.offer(start, "start")
            least = max(least, self._priced())
            self.best.raise_bound(least)  # only now: bounds of an infeasible problem mean nothing
        ended = self.first_level_reached(least) or self.stop_reason()
        if ended is None and start is not None and self.settings.hint:
            enough = sufficient(self.problem, float(least))
            found = quickly_improved(self.problem, start, self.options.seed, self.stopped, enough)
            if found is not None and self.best.offer(found, "search"):
                ended = self.first_level_reached(least) or self.stop_reason()
        if ended is not None:
            return self.ended(ended)
        if not self.problem.group_feasible().any(axis=1).all():
            return self.ended(Termination.INFEASIBLE, "some task or group has no device that may run it")
        ended = solved_as_blocks(self, solved, self.settings, BLOCKS)
        if ended is not None:
            return self.ended(ended)
        self.pools = pools(self.problem, self.settings.pool)
        size, most = model_size(self.pools.problem), self.settings.max_size
        if size > most:
            return self.refusal(
                f"too large for an exact model: about {size:,} literals, intervals and rows, where max_size allows "
                f"{most:,} (a million take about 2 GB): set max_size higher, or use heft, which has no such limit"
            )
        ended = self._solve_fork(least)
        if ended is not None:
            return self.ended(ended)
        least = least if self.best.bound is None else max(least, self.best.bound)
        seconds = self._searching()
        if seconds is not None:
            start = self.best.schedule
            ended = self._try_early() if size <= EARLY_SIZE else None
            if ended is not None:
                return self.ended(ended)
            least = least if self.best.bound is None else max(least, self.best.bound)
            if self._search(start, seconds, least):
                ended = self.first_level_reached(least)
                if ended is not None:
                    return self.ended(ended)
        from .model import Model  # loads OR-Tools

        try:
            known = limits(self.problem, self.best.values[0] if self.best.values else None)
            if not known.allowed.any(axis=1).all():
                return self.ended(Termination.INFEASIBLE, "some task or group has no device with enough memory")
            self.model = Model(
                self.pools.problem, self.pools.limits(known), self.settings.symmetry, self.stopped, self.pools.slots
            )
        except TooLargeError as error:
            return self.refusal(
                f"too large for an exact model: {error} exceeds 64-bit sums; a coarser resolution would help"
            )
        except StoppedError:
            return self.ended(self.stop_reason() or Termination.TIME_LIMIT)
        first = self.model.levels[0]
        self.model.base.cp.add(first.expression >= math.ceil(least / first.step))
        return self.ended(self.descend(self.model.levels))

    def _priced(self) -> Value:
        """The bound with prices of scarce memory and budgets, 0 without one."""
        weight = self.problem.objective.levels[0][0].weight
        if self.problem.objective.single != "makespan" or self.problem.pipeline is not None:
            return 0
        found = lagrangian_bound(self.problem, None, self.stopped)
        return 0 if found is None else simplified(weight * found.value)

    def _solve_fork(self, least: Value) -> Termination | None:
        """Return how the run ends if the problem is a fork, a join or a fork-join that is solved within the limits."""
        fork = fork_of(self.problem) if self.settings.forks else None
        if fork is None or fork.size > self.settings.max_size:
            return None
        try:
            most = limits(self.problem, self.best.values[0] if self.best.values else None).horizon
        except TooLargeError:
            return None
        from .._forks.search import solve_fork  # loads OR-Tools

        (share, longest), remaining, work = FORKS, self.clock.remaining, self.settings.work
        ended = solve_fork(
            self,
            fork,
            math.ceil(least / fork.weight),
            most,
            workers=self.threads,
            seconds=longest if remaining is None else remaining * (share if work is None else 1.0),
            work=None if work is None else work * share,
        )
        if ended is None and work is None:
            self.varies_by = "clock"
        return self.no_solution(0, self.engine) if ended is Termination.INFEASIBLE else ended

    def _searching(self) -> float | None:
        """Return the seconds of a search for a better start; None without one, where a proof is likely to be quick."""
        limit = self.options.planned_seconds
        makespans = any(term.metric == "makespan" for term in self.problem.objective.levels[0])
        able = self.best.schedule is not None and self.settings.hint and not self.problem.limits
        if not able or not makespans or self.problem.n_tasks < SEARCHED or (limit is not None and limit < LONG):
            return None
        longest = min(LONGEST, PACE * self.problem.n_tasks)
        return longest if limit is None else min(longest, limit * SHARE)

    def _try_early(self) -> Termination | None:
        """Run CP-SAT for a moment from the start as it is; return how the run ends, None to continue.

        With one worker or a limit of work this is left out: the clock would decide on the answer.
        """
        if self.options.workers == 1 or self.settings.deterministic or self.settings.work is not None:
            return None
        remaining = self.clock.remaining
        seconds = EARLY if remaining is None else min(EARLY, remaining)
        options = replace(
            self.options, time_limit=seconds, nominal_limit=seconds, initial=self.best.schedule, on_progress=None
        )
        settings = self.settings.model_copy(update=dict.fromkeys(("hint", "series", "forks"), False))
        answer = CpSatRun(self.problem, options, settings).answer()
        if answer.schedule is not None:
            self.best.offer(answer.schedule)
        if answer.bound is not None:
            self.best.raise_bound(answer.bound)
        if answer.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
            self.stats.update(answer.stats)
            return answer.termination
        return self.first_level_reached(self.best.bound) or self.stop_reason()

    def _search(self, start: Schedule | None, seconds: float, least: Value) -> bool:
        """Return whether a search improved the best schedule. It finds more from `start` than from one of CP-SAT."""
        assert start is not None  # `_searching`
        enough = sufficient(self.problem, float(least))
        found = improved_start(
            self.problem,
            start,
            seconds,
            self.options.seed,
            self.stopped,
            enough=enough,
            workers=self.threads,
            idle=IDLE,
        )
        return found is not None and self.best.offer(found, "search")

    def limit(self, level: Level[Expression], value: int) -> None:
        """Require a level to be at most a value, in its steps."""
        self.model.base.cp.add(level.expression <= value)

    def minimise(self, depth: int, level: Level[Expression]) -> LevelOutcome:
        """Minimise a level."""
        start = None if self.best.schedule is None else self.pools.pooled(self.best.schedule)
        if start is not None and self.settings.symmetry:
            start = relabelled(self.pools.problem, start)
        parameters: dict[str, object] = {
            **self._strategies(depth),
            "interleave_search": self.settings.deterministic,
        }
        if self.model.base.size > PROBED:
            parameters["cp_model_probing_level"] = 0
        if self.settings.work is not None:
            parameters["max_deterministic_time"] = self.settings.work
        if self.options.gap_limit is not None:
            parameters["relative_gap_limit"] = self.options.gap_limit
        outcome = self.model.minimise(
            level,
            start,
            lambda schedule: self.found(self.pools.spread(schedule), depth),
            on_bound=lambda bound: self.best.raise_bound(level.value(bound)) if depth == 0 else None,
            seconds=self.clock.remaining,
            seed=self.options.seed,
            # On several threads, turns give equally good schedules in any order.
            workers=self.threads,
            should_stop=self.options.should_stop,
            parameters=parameters,
        )
        for name, amount in (("branches", outcome.branches), ("conflicts", outcome.conflicts)):
            self.stats[name] = self.stats.get(name, 0) + amount
        self.stats["variables"] = self.model.base.size
        if outcome.status == "MODEL_INVALID":
            raise self.contradiction(f"CP-SAT rejects the model: {self.model.base.cp.validate()}")
        return LevelOutcome(outcome.status == "INFEASIBLE", outcome.bound, lambda: self._why(outcome.stopped))

    @property
    def threads(self) -> int:
        """Return the number of threads of each search."""
        return 1 if self.settings.deterministic else self.options.workers

    def _strategies(self, depth: int) -> dict[str, object]:
        """Return the parameters of CP-SAT's searches that were fastest in measurements.

        Proofs of makespans are fastest without a linear relaxation, those of the costs of transfers with a full one.
        The level counts for one worker. CP-SAT chooses the levels of several, and runs a search of the whole model
        without a relaxation only from four workers on. With two or three, that search replaces another one.

        Where no transfer takes time and most tasks have one device, as in job shops, literals for pairs of tasks on a
        device decide.
        """
        metrics = {term.metric for term in self.problem.objective.levels[depth]}
        level = self.settings.linearization_level
        if level is None:
            level = 0 if "makespan" in metrics else 2 if metrics & {"total_cost", "energy"} else 1
        parameters: dict[str, object] = {"linearization_level": level}
        if level == 0 and self.threads in SECOND and not self.model.large:
            parameters |= {"extra_subsolvers": ["no_lp"], "num_full_subsolvers": 2}
        if metrics == {"makespan"} and moves_freely(self.problem):
            fixed = self.problem.feasible.sum(axis=1) == 1
            parameters["use_strong_propagation_in_disjunctive"] = bool(fixed.mean() >= FIXED)
        return parameters

    def _why(self, stopped: bool) -> Termination:
        """Return why CP-SAT ended, if it did so without a proof."""
        limit = self.options.time_limit
        if stopped:
            return Termination.INTERRUPTED
        # Without a limit of work, only its time limit ends CP-SAT then, sometimes a little early.
        if limit is not None and (self.settings.work is None or self.clock.elapsed > limit * AT_LIMIT):
            return Termination.TIME_LIMIT
        if self.best.schedule is None:
            self.message = "CP-SAT ended without a schedule or a proof"
            return Termination.FAILED
        return Termination.COMPLETED
