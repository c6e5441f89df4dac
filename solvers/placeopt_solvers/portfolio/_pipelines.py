"""The portfolio for pipelines: solvers take turns, each from the best schedule of those before it.

`dpl` finds a first division into stages, `chains` and `ideals` prove the best one where their conditions hold, and
`stage-search` and CP-SAT improve it and prove bounds. All of them minimise the period. If the objective counts more
than that, the rest of the time goes to a local search of the whole objective.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from placeopt.model.building import simplest
from placeopt.model.problem import Problem
from placeopt.model.stages import rules
from placeopt.protocol import Answer, Options, Termination, unsupported
from placeopt.protocol.registry import find_solver
from placeopt.proving.bound_prover import BoundProver

from ..pipelines._search.whole_objective import improve
from ..pipelines._shared.assessment import first_level_bound, started
from ._standings import PortfolioRun


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters of the portfolio for pipelines; shares are of the time limit."""

    planned: float = 60.0  # seconds to plan for without a time limit
    dividing: float = 0.3  # share of dpl, and of chains
    proving: float = 0.5  # share of ideals
    small: int = 60  # groups up to which CP-SAT runs before `ideals` and the search
    large: int = 3_000  # groups above which `ideals` and CP-SAT do not run
    exact: float = 0.2  # share of a turn of CP-SAT
    exact_first: float = 0.4  # the same, if it runs first
    searching: float = 0.2  # share of a turn of the search
    searching_large: float = 0.8  # the same above `large` groups, where only long turns cool slowly enough
    rest: float = 0.5  # with one worker, share of all turns; the rest is for bounds
    unit: float = 2.0  # seconds of a unit of CP-SAT's deterministic time
    whole: float = 0.4  # share that is kept for the search of the whole objective


TUNING = Tuning()

COUNTED = ("cp-sat", "stage-search")
"""Members whose turns end by their work if they have one worker, so that the clock does not affect the schedule."""


class PipelineRun(PortfolioRun):
    """One solve of a pipeline."""

    def __init__(self, problem: Problem, options: Options, prover: BoundProver | None) -> None:
        super().__init__(problem, options, prover, TUNING.planned)
        self.single = problem.objective.single == "period"
        self.alone = simplest(problem)
        self.alone_proved = False  # whether a member proved the best period

    def answer(self) -> Answer:
        """Return the best schedule and bound of all members, and why the run ended."""
        initial = self.options.initial
        given = None if initial is None else started(self.problem, initial)
        if given is not None:
            self.offer(given, "initial")
        self._turn("dpl", TUNING.dividing)
        self._turn("chains", TUNING.dividing)
        if not self.stop_reason():
            with self.prover or nullcontext():
                self._continue()
        return self.concluded()

    def _continue(self) -> None:
        """Run the exact members, then searches and CP-SAT in turns, then the bounds that no prover proves."""
        groups = self.problem.n_groups
        if self.problem.rules:  # only CP-SAT supports them
            self._exact(1.0)
        elif groups <= TUNING.small:
            self._exact(TUNING.exact_first)
        if rules(self.problem).contiguous and groups <= TUNING.large:
            self._turn("ideals", TUNING.proving)
        searching = TUNING.searching if groups <= TUNING.large else TUNING.searching_large
        while not self._searched():
            self._turn("stage-search", searching, self.options.seed + self.turns)
            self.turns += 1
            if groups <= TUNING.large:
                self._exact(TUNING.exact)
        if not self.single and self.best.schedule is not None:
            with self.best.turn("whole objective"):
                offer = partial(self.offer, name="whole objective")
                improve(self.problem, self.best.schedule, self.options.seed, self.stopped, offer)
        if self.prover is None:
            self._bound()

    def _searched(self) -> bool:
        """Return whether the turns of the search end."""
        if self.stop_reason() or self.alone_proved:
            return True
        if self.single and self.options.workers > 1 and self.clock.limit is not None:
            return False
        share = TUNING.rest if self.single else TUNING.rest - TUNING.whole / 2
        return self.worked >= share * self.span

    def _exact(self, share: float) -> None:
        """Run CP-SAT."""
        settings: dict[str, Any] = {"hint": self.best.schedule is None}
        if self.options.workers == 1:
            settings["work"] = share * self.span / TUNING.unit
        self._turn("cp-sat", share, **settings)

    def _turn(self, name: str, share: float, seed: int | None = None, **settings: Any) -> None:
        """Run a member on the period alone, from the best schedule so far."""
        solver = find_solver(name)
        if self.stop_reason() or unsupported(solver.info, self.alone) is not None:
            return
        seconds, remaining = share * self.span, self.clock.remaining
        limit: float | None = seconds if remaining is None else min(seconds, remaining)
        if self.options.workers == 1 and name in COUNTED:
            limit = remaining
        options = replace(
            self.options,
            time_limit=limit,
            nominal_limit=seconds,
            seed=self.options.seed if seed is None else seed,
            workers=self.threads,
            initial=self.best.schedule,
            on_progress=self.best.progress_callback(name) if self.single else None,
            pool=None,
        )
        with self.best.turn(name):
            answer = solver.solve(self.alone, options, solver.settings_type(**settings))
            if answer.schedule is not None:
                self.offer(answer.schedule, name)
            if answer.bound is not None and self.best.schedule is not None:
                self.best.raise_bound(first_level_bound(self.problem, int(answer.bound)), name)
        self.worked += seconds if name in COUNTED else 0.0
        self.note_end(answer)
        self.alone_proved = self.alone_proved or answer.termination is Termination.OPTIMAL

    def _bound(self) -> None:
        """Prove slow bounds in the remaining time."""
        values, remaining = self.best.values, self.clock.remaining
        if values is None or self.stop_reason():
            return
        self.prove((1 - TUNING.rest) * self.span if remaining is None else remaining, values[0])
