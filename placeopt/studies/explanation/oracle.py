"""Whether some of the constraints can hold together: a verified schedule, a proof, or neither in time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placeopt.bounding.quick import prove_infeasible
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime, simulate
from placeopt.solver import Clock, Options, Termination
from placeopt.solver.registry import find_solver
from placeopt.solving.pipeline import solve
from placeopt.studies.explanation.constraints import Change, System
from placeopt.studies.explanation.repair import repaired
from placeopt.verifier import verify

if TYPE_CHECKING:
    from placeopt.studies.explanation._model import Model

HEURISTIC = "heft"
_REMEMBERED, _REPAIRED = 50, 3
"""Schedules that are kept, and those among them that are made to fit when none does."""


_MODELLING = 0.25
"""Part of the time for a question that each model may take; the rest is the exact solver's."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the oracle found.

    Attributes
    ----------
    feasible
        Whether the constraints can hold together; None if undecided.
    schedule
        A verified schedule that keeps them, if feasible.
    reason
        Why they cannot, as a sentence, where there is a short proof; else who proved it.
    core
        A part of them that cannot hold together already, if infeasible.
    """

    feasible: bool | None
    schedule: Schedule | None = None
    reason: str = ""
    core: tuple[int, ...] = ()


class Oracle:
    """Decides whether constraints can hold together, the cheapest argument first.

    1. A quick proof of infeasibility by counting (`placeopt.bounding.quick`).
    2. A schedule found before for other constraints, as it is or repaired.
    3. HEFT's schedule.
    4. The placement alone (`Model`): without one there is no schedule, and with one there is where times do not matter.
    5. The placement and the times, where that model is small.
    6. The exact solver, until its first schedule or its proof.

    A schedule counts only if the verifier accepts it.
    """

    def __init__(
        self,
        system: System,
        clock: Clock,
        *,
        solver: str,
        seed: int,
        workers: int | None,
        should_stop: Callable[[], bool],
    ) -> None:
        self.system, self.clock, self._should_stop = system, clock, should_stop
        self._solver, self._seed, self._workers = solver, seed, workers
        self._schedules: list[Schedule] = []
        self._models: dict[bool, Model | None] = {}

    @property
    def over(self) -> bool:
        """Whether the time is over, or the caller wants no more."""
        return self.clock.over or self._should_stop()

    def decide(
        self,
        active: Collection[int],
        changed: Mapping[int, Change] | None = None,
        *,
        share: float = 1.0,
        modelled: bool = True,
    ) -> Verdict:
        """Whether the `active` constraints, some of them `changed`, can hold together.

        `share` is the part of the time left that may be spent, though a second at least. Without `modelled` the models
        of this package have no say.
        """
        if self.over:
            return Verdict(None)
        problem = self.system.relaxed(active, changed)
        proof = prove_infeasible(problem)
        if proof is not None:
            return Verdict(False, reason=proof.reason, core=tuple(sorted(active)))
        for schedule in self._cheap(problem):
            if verify(problem, schedule).feasible:
                return self._found(schedule)
        if modelled and not changed:
            for timed in (False, True):
                verdict = self._model_verdict(problem, active, timed, share)
                if verdict.feasible is not None:
                    return verdict
        result = solve(
            problem,
            self._solver,
            gap_limit=1.0,  # any schedule will do
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
        """A part of constraints known not to hold together that cannot either: what the models find, else all."""
        for timed in (False, True):
            model = self.model(timed=timed)
            found = None if model is None or self.over else model.core(active, self.seconds(share))
            if found is not None and found.core is not None:
                return found.core
        return tuple(sorted(active))

    def model(self, *, timed: bool) -> Model | None:
        """The model of the system, built once; None if it would be too large."""
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
            schedule = (
                simulate(problem, found.device)
                if found.start is None
                else retime(problem, Schedule(found.device, found.start))
            )
            if verify(problem, schedule).feasible:
                return self._found(schedule)
        return Verdict(None)

    def _cheap(self, problem: Problem) -> Iterator[Schedule]:
        """Schedules worth a look: those found before, the latest of them made to fit, that of the heuristic."""
        yield from self._schedules
        for schedule in self._schedules[:_REPAIRED]:
            near = repaired(problem, schedule)
            if near is not None:
                yield near
        heuristic = find_solver(HEURISTIC)
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
        """Seconds for a question that may take a share of the time left: a second at least, if there is one."""
        left = self.clock.remaining
        assert left is not None
        return max(min(1.0, left), left * share, 0.01)
