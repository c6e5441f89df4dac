"""Settings, solution and statistics of the linear program of favourite children, for sct-lp and m-sct."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import Field

from placeopt.bounding.sct.favourites import THRESHOLD, Favourites, favourites_of
from placeopt.bounding.sct.program import SctProgram, program_of
from placeopt.bounding.sct.ratios import Ratios, ratios_of
from placeopt.bounding.sct.solution import ROUNDS, TOLERANCE, Solution, solution_of
from placeopt.model.problem import Problem
from placeopt.model.units import time_text
from placeopt.protocol import Options, Settings


class SctSettings(Settings):
    """Settings of the linear program."""

    tolerance: float = Field(default=TOLERANCE, gt=0, le=1)
    """Relative gap at which the linear program counts as solved."""
    threshold: float = Field(default=THRESHOLD, gt=0, le=1)
    """An edge joins favourites if x = 1 - y is below this: 0.1 in Baechi, 0.5 in the proofs of the ratios."""
    rounds: int = Field(default=ROUNDS, ge=1)
    """Maximum number of rounds of the regret game, which solves large programs."""
    integral: bool = False
    """Whether x must be 0 or 1, as in Hanen and Munier: solved by CP-SAT within the time limit. false: relaxed."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The linear program of a problem, solved and rounded."""

    program: SctProgram
    solution: Solution
    favourites: Favourites
    ratios: Ratios
    """Ratios of the papers, which state them for favourites with x below 1/2."""
    rounded: Ratios
    """Ratios at the threshold of the settings."""

    def stats(self, problem: Problem) -> dict[str, Any]:
        """Return statistics for reports; times in ticks."""
        found, ratios = self.solution, self.ratios
        names = problem.task_names
        return {
            "lp_value": found.value,
            "lp_bound": float(found.bound),
            "lp_gap": found.gap,
            "lp_method": found.method,
            "lp_rounds": found.rounds,
            "lp_tasks": found.tasks,
            "lp_edges": found.edges,
            "rho": _number(ratios.rho),
            "sct_assumption": ratios.assumption,
            "ratio_etf": _number(ratios.etf),
            "ratio_sct_infinite": _number(ratios.sct_infinite),
            "ratio_sct": _number(ratios.sct),
            "ratio_m_sct": _number(ratios.m_sct),
            "ratio_sct_infinite_at_threshold": _number(self.rounded.sct_infinite),
            "ratio_sct_at_threshold": _number(self.rounded.sct),
            "ratio_m_sct_at_threshold": _number(self.rounded.m_sct),
            "favourites": len(self.favourites.pairs),
            "favourite_pairs": [[names[i], names[j]] for i, j in self.favourites.pairs.tolist()],
        }

    def text(self, problem: Problem, proved: bool = True) -> str:
        """Return the statistics as one line of text; `proved` is whether the ratios hold for the schedule."""
        found, ratios, rounded = self.solution, self.ratios, self.rounded
        what = "integer" if found.method == "cp-sat" else "linear"
        parts = [
            f"{what} program {time_text(found.value, problem.resolution)} in mean durations "
            + (f"(proved to {found.gap:.0e})" if found.gap else "(exactly)"),
            f"favourite pairs: {len(self.favourites.pairs):,}",
            "rho infinite" if ratios.rho is None else f"rho {float(ratios.rho):.3g}",
            f"SCT assumption (rho <= 1) {'holds' if ratios.assumption else 'fails'}",
        ]
        named = (("ETF", ratios.etf), ("SCT", rounded.sct), ("m-SCT", rounded.m_sct))
        if proved and ratios.sct is not None:
            shown = [f"{name} {float(ratio):.4g}" for name, ratio in named if ratio is not None]
            parts.append(f"makespan at most this multiple of the optimum: {', '.join(shown)}")
            if rounded.sct != ratios.sct:
                parts.append(f"m-SCT {float(ratios.sct):.4g} with threshold=0.5, as the papers prove")
        elif proved and ratios.m_sct is not None:
            parts.append(
                f"theorem 1 of Baechi {float(ratios.m_sct):.4g} with threshold=0.5, if only full devices close"
            )
        return ", ".join(parts)


def relaxed(problem: Problem, options: Options, settings: SctSettings) -> Relaxed:
    """Solve and round the linear program of a problem; if stopped early, return the best solution so far."""
    program = program_of(problem)
    solution = None
    if settings.integral:
        from placeopt.bounding.sct.solution import integral_solution

        solution = integral_solution(
            program,
            time_limit=options.time_limit,
            seed=options.seed,
            workers=options.workers,
            should_stop=options.should_stop,
        )
    whole = solution is not None
    if solution is None:
        solution = solution_of(
            program, tolerance=settings.tolerance, rounds=settings.rounds, should_stop=options.should_stop
        )
    return Relaxed(
        program=program,
        solution=solution,
        favourites=favourites_of(program, solution, settings.threshold, settle=not whole),
        ratios=ratios_of(problem),
        rounded=ratios_of(problem, settings.threshold),
    )


def _number(ratio: Fraction | None) -> float | None:
    return None if ratio is None else float(ratio)
