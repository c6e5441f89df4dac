"""sct-lp: the linear program of Small Communication Times, with its favourite pairs, ratios, and a lower bound.

C. Hanen, A. Munier: An approximation algorithm for scheduling dependent tasks on m processors with small communication
delays. Discrete Applied Mathematics 108 (2001) 239-257, doi:10.1016/S0166-218X(00)00179-7 (first at IEEE ETFA 1995,
section 3.2), as B. Jeon et al.: Baechi: Fast device placement of machine learning graphs. SoCC 2020,
doi:10.1145/3419111.3421302, section 2.4, equation 2, relaxes and rounds it. `placeopt.bounding.sct` states
the formulas.

Departures from the papers: those of the program of `m-sct`, in means over devices and links
(`placeopt.bounding.sct.program`). In the papers the program is a step of a heuristic; here its own schedule and bound
are the answer.

The program assumes an unlimited number of devices. So the answer has a schedule only if there are enough devices:
each chain of favourites gets its own device, in order of its first task, and every task starts when its data arrives.
That is SCT for an unlimited number of devices, within (2 + 2 rho) / (2 + rho) of the optimum if the SCT assumption
holds and x is rounded at 1/2; at Baechi's 0.1 within (1 + rho) / (1 + rho / 10). Otherwise the answer has no schedule;
`m-sct` constructs one from the same favourites.

The bound is that of a program of the same form, shortened so that every schedule satisfies it
(`placeopt.bounding.sct`). The paper's value is a bound only with equal devices and rho <= 1.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.bounding.quick import narrowed_classes
from placeopt.bounding.sct.bound import sct_bound
from placeopt.bounding.sct.favourites import Favourites
from placeopt.model.arrays import Int, by_index
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness
from placeopt.model.units import time_text
from placeopt.protocol import Answer, Info, Options, Termination
from placeopt.protocol.citations import bibtex
from placeopt.simulation import retime

from .._constructive.groups import grouped
from .._constructive.sct import SctSettings, relaxed


class SctLpSettings(SctSettings):
    """Settings of sct-lp."""

    certify: bool = True
    """Whether the shortened program is solved, too, for a bound of the makespan."""


class SctLp:
    """Solves the program; has a schedule only if every chain of favourites can have its own device."""

    name: ClassVar[str] = "sct-lp"
    info: ClassVar[Info] = Info(
        summary="the linear program of Small Communication Times: favourite children, ratios, a certified bound",
        family="relaxations",
        guarantee="a bound of the makespan; with enough devices, where the ratio of m-sct holds, a schedule within "
        "(2 + 2 rho) / (2 + rho)",
        complexity="O(n + e) per round, a few hundred rounds",
        citation=bibtex("jeon2020baechi", "hanen2001approximation"),
    )
    settings_type: ClassVar[type[SctLpSettings]] = SctLpSettings

    def solve(self, problem: Problem, options: Options, settings: SctLpSettings) -> Answer:
        """Return the results of the program."""
        if problem.n_tasks == 0 or problem.n_devices == 0:
            nothing = np.zeros(0, dtype=np.int64)
            return Answer(Termination.COMPLETED, Schedule(nothing, nothing) if problem.n_tasks == 0 else None)
        found = relaxed(problem, options, settings)
        stats, notes = found.stats(problem), [found.text(problem)]
        bound = None
        if settings.certify and not options.should_stop():
            bound, proof = sct_bound(
                narrowed_classes(problem), tolerance=settings.tolerance, should_stop=options.should_stop
            )
            stats |= {"bound_gap": proof.gap, "bound_method": proof.method}
        chain, count = _chains(found.favourites, problem.order)
        stats["chains"] = count
        placed = _own_devices(problem, chain, count)
        if placed is None:
            notes.append(f"no schedule: {_obstacle(problem, count)}; m-sct makes one")
        schedule = None if placed is None else Schedule(placed, np.ceil(found.solution.start).astype(np.int64))
        if schedule is not None and (late := lateness(problem, retime(problem, schedule))):
            notes.append(f"some task misses its deadline by {time_text(late, problem.resolution)}")
        stopped = options.should_stop()
        return Answer(
            Termination.INTERRUPTED if stopped else Termination.COMPLETED,
            schedule,
            bound=bound,
            message="; ".join(notes),
            stats=stats,
        )


def _obstacle(problem: Problem, count: int) -> str:
    """Return why not each of `count` chains of favourites has its own device."""
    if count > problem.n_devices:
        return f"favourites form {count:,} chains, which need a device each, and there are {problem.n_devices}"
    return "feasibility, memory, groups or separation prevent that each chain of favourites has its own device"


def _chains(favourites: Favourites, order: Int) -> tuple[Int, int]:
    """Return the chain (n,) of each task, numbered in the topological order of first tasks, and their number."""
    count, number, parent = 0, [-1] * len(order), favourites.parent.tolist()
    for i in order.tolist():
        number[i] = count if parent[i] < 0 else number[parent[i]]
        count += parent[i] < 0
    return np.array(number, dtype=np.int64), count


def _own_devices(problem: Problem, chain: Int, count: int) -> Int | None:
    """Return the device (n,) of each task if each chain has its own; None if that is infeasible."""
    if count > problem.n_devices:
        return None
    groups = grouped(problem)
    home = np.full(problem.n_groups, -1, dtype=np.int64)
    home[problem.group] = chain
    held = by_index(np.add, home, groups.memory, problem.n_devices)
    apart = problem.group[problem.separation]
    fits = (
        (home[problem.group] == chain).all()
        and groups.feasible[np.arange(problem.n_groups), home].all()
        and (held <= problem.capacity).all()
        and (home[apart[:, 0]] != home[apart[:, 1]]).all()
    )
    return chain if fits else None
