"""Decide whether a set of constraints is satisfiable: by a verified schedule, a proof, or neither in time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placeopt.allocation.plans import place_schedule
from placeopt.bounding.quick import prove_infeasible
from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.pipeline import solve
from placeopt.protocol import Clock, Options, Termination
from placeopt.protocol.registry import default_solver, find_solver
from placeopt.simulation import retime, simulate
from placeopt.studies.explanation.constraints import Change, System
from placeopt.verifier import Rule, verify

if TYPE_CHECKING:
    from placeopt.studies.explanation._model import Model

_REMEMBERED, _REPAIRED = 50, 3
"""Number of stored schedules, and of those that are repaired if none is valid."""

_PLACING = 0.05
"""Share of the remaining time for the offsets of one schedule."""

_LONGEST = 2.0
"""Seconds for the offsets of one schedule at most."""

_MODELLING = 0.25
"""Share of the time of a question for each model; the rest is for the exact solver."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The oracle's answer."""

    feasible: bool | None  # whether the constraints are satisfiable; None if undecided
    schedule: Schedule | None = None  # a verified schedule, if feasible
    reason: str = ""  # why they conflict, as a sentence if the proof is short, else the origin of the proof
    core: tuple[int, ...] = ()  # a conflicting subset, if infeasible


class Oracle:
    """Decides whether constraints are satisfiable, the cheapest method first.

    1. A quick proof of infeasibility by counting (`placeopt.bounding.quick`).
    2. A schedule found earlier for other constraints, unchanged or repaired.
    3. The schedule of a fast heuristic.
    4. A model of the placement only (`Model`): no placement means no schedule.
    5. A model of placement and times, if it is small.
    6. The exact solver, until its first schedule or its proof.

    A schedule counts only if the verifier accepts it.
    """

    def __init__(
        self, system: System, clock: Clock, *, solver: str, seed: int, workers: int | None,
        should_stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.system, self.clock, self._should_stop = system, clock, should_stop
        self._solver, self._seed, self._workers = solver, seed, workers
        self._schedules: list[Schedule] = []
        self._models: dict[bool, Model | None] = {}

    @property
    def over(self) -> bool:
        """Whether the time limit is reached, or the caller has requested a stop."""
        return self.clock.over or self._should_stop()

    def decide(
        self,
        active: Collection[int],
        changed: Mapping[int, Change] | None = None,
        *,
        share: float = 1.0,
        modelled: bool = True,
    ) -> Verdict:
        """Decide whether the `active` constraints, some of them `changed`, are satisfiable.

        `share` is the share of the remaining time that may be used, at least one second. `modelled=False` excludes the
        models of this package.
        """
        if self.over:
            return Verdict(None)
        problem = self.system.relaxed(active, changed)
        proof = prove_infeasible(problem)
        if proof is not None:
            return Verdict(False, reason=proof.reason, core=tuple(sorted(active)))
        for schedule in self._cheap(problem):
            placed = self.addressed(problem, schedule)
            if placed is not None:
                return self._found(placed)
        if modelled and not changed:
            for timed in (False, True):
                verdict = self._model_verdict(problem, active, timed, share)
                if verdict.feasible is not None:
                    return verdict
        result = solve(
            problem,
            self._solver,
            gap_limit=1.0,  # any schedule suffices
            consolidate=0,
            time_limit=self.seconds(share),
            seed=self._seed,
            workers=self._workers,
            should_stop=self._should_stop,
        )
        if result.feasible:
            return self._found(result.schedule)
        if result.termination is Termination.INFEASIBLE:
            return Verdict(False, reason=f"proved by {self._solver}", core=tuple(sorted(active)))
        return Verdict(None)

    def core(self, active: Collection[int], *, share: float) -> tuple[int, ...]:
        """Return a conflicting subset of conflicting constraints: the core of a model, else all of them."""
        for timed in (False, True):
            model = self.model(timed=timed)
            found = None if model is None or self.over else model.core(active, self.seconds(share))
            if found is not None and found.core is not None:
                return found.core
        return tuple(sorted(active))

    def model(self, *, timed: bool) -> Model | None:
        """Return the model of the system, built once; None if it is too large."""
        if timed not in self._models:
            from placeopt.studies.explanation._model import Model

            fits = Model.fits(self.system, timed=timed)
            self._models[timed] = Model(self.system, timed=timed, should_stop=self._should_stop) if fits else None
        return self._models[timed]

    def _model_verdict(self, problem: Problem, active: Collection[int], timed: bool, share: float) -> Verdict:
        model = self.model(timed=timed)
        if model is None or self.over:
            return Verdict(None)
        found = model.core(active, self.seconds(share * _MODELLING))
        if found.core is not None:
            what = "the placement and the times" if timed else "the placement"
            return Verdict(False, reason=f"proved on a model of {what}", core=found.core)
        if found.device is not None:
            if found.start is None:
                schedule = simulate(problem, found.device)
            else:
                schedule = retime(problem, Schedule(found.device, found.start))
            placed = self.addressed(problem, schedule)
            if placed is not None:
                return self._found(placed)
        return Verdict(None)

    def addressed(self, problem: Problem, schedule: Schedule) -> Schedule | None:
        """Return the schedule if the verifier accepts it, with offsets if the problem asks for them; else None.

        Unlimited memory gets offsets of the least height that is found.
        """
        if problem.alignment is None and schedule.offsets is not None:
            schedule = replace(schedule, offsets=None)
        broken = {violation.rule for violation in verify(problem, schedule).violations}
        if broken == {Rule.ADDRESS}:
            seconds = min(self.seconds(_PLACING), _LONGEST)
            placed, _ = place_schedule(
                problem, schedule, time_limit=seconds, seed=self._seed, should_stop=lambda: self.over
            )
            return None if placed is None or not verify(problem, placed).feasible else placed
        return None if broken else schedule

    def _cheap(self, problem: Problem) -> Iterator[Schedule]:
        """Return candidate schedules: those found earlier, the latest of them repaired, and the heuristic's."""
        yield from self._schedules
        for schedule in self._schedules[:_REPAIRED]:
            near = repaired(problem, schedule)
            if near is not None:
                yield near
        heuristic = find_solver(default_solver(problem))
        answer = heuristic.solve(
            problem, Options(seed=self._seed, should_stop=self._should_stop), heuristic.settings_type()
        )
        if answer.schedule is not None:
            yield retime(problem, answer.schedule)

    def _found(self, schedule: Schedule | None) -> Verdict:
        assert schedule is not None
        if not any(schedule is known for known in self._schedules):
            self._schedules = [schedule, *self._schedules[: _REMEMBERED - 1]]
        return Verdict(True, schedule)

    def seconds(self, share: float) -> float:
        """Return the time for a question: a share of the remaining time, at least one second if available."""
        left = self.clock.remaining
        assert left is not None
        return max(min(1.0, left), left * share, 0.01)


def repaired(problem: Problem, schedule: Schedule) -> Schedule | None:
    """Repair a schedule for slightly different constraints; None if that fails.

    Groups move to allowed devices with enough memory, and the order of tasks is kept. Separations, times and live
    memory are not considered; the verifier checks them. O(g m) per moved group.
    """
    allowed = problem.group_feasible()
    first = np.unique(problem.group, return_index=True)[1]
    memory = problem.memory if problem.memory_model == "sum" else problem.resident
    need = by_index(np.add, problem.group, memory, problem.n_groups)
    place = schedule.device[first].copy()
    astray = ~allowed[np.arange(problem.n_groups), place]
    used = by_index(np.add, place[~astray], need[~astray], problem.n_devices)
    for group in np.flatnonzero(astray)[np.argsort(-need[astray], kind="stable")].tolist():
        open_to = np.flatnonzero(allowed[group])
        if len(open_to) == 0:
            return None
        place[group] = open_to[np.argmax(problem.capacity[open_to] - used[open_to])]
        used[place[group]] += need[group]
    for device in np.flatnonzero(used > problem.capacity).tolist():
        if not _relieved(problem, allowed, need, place, used, device):
            return None
    return retime(problem, Schedule(place[problem.group], schedule.start))


def _relieved(problem: Problem, allowed: Bool, need: Int, place: Int, used: Int, device: int) -> bool:
    """Move groups off a device until its capacity suffices; False if no other device has enough memory."""
    while used[device] > problem.capacity[device]:
        excess = used[device] - problem.capacity[device]
        room = np.where(np.arange(problem.n_devices) == device, -1, problem.capacity - used)
        here = np.flatnonzero((place == device) & (need > 0))
        best = np.where(allowed[here], room, -1)
        movable = here[best.max(axis=1, initial=-1) >= need[here]]
        if len(movable) == 0:
            return False
        # The smallest group that is large enough, else the largest.
        enough = movable[need[movable] >= excess]
        group = int(enough[np.argmin(need[enough])] if len(enough) else movable[np.argmax(need[movable])])
        target = int(np.argmax(np.where(allowed[group], room, -1)))
        place[group] = target
        used[device] -= need[group]
        used[target] += need[group]
    return True
