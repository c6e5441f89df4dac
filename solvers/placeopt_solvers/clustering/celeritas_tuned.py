"""Celeritas with tuned parameters: a grid search over the fusion and the placer by simulated makespan.

Celeritas (H. Xu, Y. Liao, H. Xie, P. Zhou, 2022, arXiv:2208.00184) fixes R = 200 and M = 0.25 "empirically" (section
5.1.3), fuses in CPD-TOPO order, and places with Algorithm 2. No value is best for all graphs, and one run takes
milliseconds. This solver runs `celeritas` for each combination of

- the order: cpd-topo, dfs-topo, m-topo;
- the treatment of colocation groups: first, unite (`placeopt.passes.celeritas_fusion`; keep was never better than R = 1
  on the graphs of `benchmarks/celeritas_models.py`);
- R: 200, 100, 50, 20, 10, 5, 2, 1; M: 0.25, 0.5, 0.1, 0.05;
- the placer: Adjusting Placement, Order-Place;
- the execution of the placement: in the order of the clusters, as `celeritas`; first in, first out; by decreasing
  bottom level (`placeopt.simulate`). The paper leaves the execution to TensorFlow, which starts tasks as they become
  ready. The setting `execution` restricts it, for a runtime that does the same;

and returns the schedule with the least makespan on the original graph. The paper's values come first, so that with
default settings the result is never longer than that of `celeritas`. Then R changes fastest, M slowest. Of equal
schedules the first is returned. Combinations that lead to the same fusion are tried once: R at least the number of
tasks, M without capacities, groups of one task, equal orders. R = 1 is tried once for each order.

Departures from the paper: its parameters, its order and its placer are only the first of these combinations, and tasks
may start in other orders. The others are those of `celeritas`.

A schedule that overfills devices (best effort, see `celeritas`) loses against any other. Missed deadlines count before
the makespan. The first combination always runs; the time limit is checked before each other one.

O(k (n (R + m) + e log e + n log n)) for k combinations, at most 171.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Literal, get_args

import numpy as np
from pydantic import Field

from placeopt.model.levels import ORDERS, OrderName
from placeopt.model.problem import Problem
from placeopt.passes.celeritas_fusion import CeleritasFusion, Colocation, memory_limit
from placeopt.protocol import Answer, Clock, Options, Progress, Settings, Termination

from .._constructive.construction import as_answer, heuristic_info
from ._coarse import Attempt, Execution, clusters_of, place_coarse
from ._placers import adjusting_placer, order_placer

RANGES = (200, 100, 50, 20, 10, 5, 2, 1)
SHARES = (0.25, 0.5, 0.1, 0.05)
COLOCATIONS: tuple[Colocation, ...] = ("first", "unite")
"""The values of R, of M and of the treatment of groups, the paper's first."""


EXECUTIONS = {
    "": "",
    "clusters": "in the order of the clusters",
    "fifo": "first in, first out",
    "priority": "by decreasing bottom level",
}
"""The executions of a placement in words."""


class TunedSettings(Settings):
    """Settings of the search."""

    combinations: int | None = Field(default=None, ge=1)
    """Number of combinations to try at most; by default all that fit into the time limit."""
    execution: Execution | Literal["best"] = "best"
    """How placements are executed: clusters, in the order of the clusters; fifo, first in, first out; priority, by
    decreasing bottom level; best, in all three ways, of which the best counts."""


class CeleritasTuned:
    name = "celeritas-tuned"
    info = heuristic_info(
        summary="celeritas with the order, R, M, groups, placer and execution of the least simulated makespan",
        guarantee="never worse than celeritas, with default settings; may overfill devices, and reports it",
        complexity="O(k (n (R + m) + e log e + n log n)) for at most 171 combinations k",
        family="fusion",
        citation=CeleritasFusion.citation,
        clusters=True,
        anytime=True,
    )
    settings_type = TunedSettings

    def solve(self, problem: Problem, options: Options, settings: TunedSettings) -> Answer:
        """Return the best schedule; FAILED if no combination finds a placement and the options are strict."""
        clock = Clock(options.time_limit)
        executions = get_args(Execution) if settings.execution == "best" else (settings.execution,)
        best: tuple[Attempt, dict[str, object], CeleritasFusion] | None = None
        termination, tried = Termination.COMPLETED, 0
        for fusion in combinations(problem):
            if best is not None:
                if tried == settings.combinations:
                    break
                if options.should_stop():
                    termination = Termination.INTERRUPTED
                    break
                if clock.over:
                    termination = Termination.TIME_LIMIT
                    break
            tried += 1
            placers = adjusting_placer(fusion.order), order_placer(fusion.order)
            attempt, stats = place_coarse(problem, options, fusion, *placers, executions=executions)
            if best is None or attempt.badness < best[0].badness:
                best = attempt, stats, fusion
                missing, over, late, span = attempt.badness
                if options.on_progress is not None and not (missing or over or late):
                    schedule = as_answer(problem, attempt.found).schedule
                    options.on_progress(Progress(clock.elapsed, objective=span, schedule=schedule))
        assert best is not None
        attempt, stats, fusion = best
        answer = as_answer(problem, attempt.found)
        chosen = fusion.model_dump() | {"placement": attempt.placer}
        values = ", ".join(f"{key}={value}" for key, value in chosen.items())
        what = f"celeritas with {values}, executed {EXECUTIONS[attempt.execution]}: the best of {tried} combinations"
        notes = [what] if answer.schedule is not None else []
        return Answer(
            answer.termination if answer.schedule is None else termination,
            answer.schedule,
            message="; ".join([*notes, answer.message] if answer.message else notes),
            stats=stats | chosen | {"execution": attempt.execution, "combinations": tried},
            clusters=clusters_of(problem, attempt),
        )


def combinations(problem: Problem) -> Iterator[CeleritasFusion]:
    """Yield the fusions to try, the paper's first; those with the same clusters as an earlier one are left out."""
    orders: dict[OrderName, bytes] = {name: ORDERS[name](problem).tobytes() for name in get_args(OrderName)}
    grouped = bool((np.bincount(problem.group) > 1).any())
    seen = set()
    for share, order, colocation, longest in product(SHARES, orders, COLOCATIONS, RANGES):
        most = memory_limit(problem, share) if problem.n_tasks else 0
        # R = 1 leaves all tasks alone, with the groups as they are.
        fused = (min(longest, problem.n_tasks), most, colocation if grouped else "") if longest > 1 else ()
        key = orders[order], fused
        if key not in seen:
            seen.add(key)
            yield CeleritasFusion(range=longest, memory=share, order=order, colocation=colocation)
