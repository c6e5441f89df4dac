"""Find the least makespan of a fork by deciding makespans, from the lower bound upwards.

Each pair of devices of the source and the sink has its own lower bound. The pair with the least one is next, so the
least of all bounds is a lower bound of the problem at any time. The decided makespan lies a step above the bound. The
step doubles when there is no such schedule, and halves when there is one.
"""

from __future__ import annotations

import heapq
import math

from placeopt.engine import StoppedError
from placeopt.errors import InternalError
from placeopt.model.objective import simplified
from placeopt.protocol import Termination

from ..._runs.solve_run import SolveRun
from ..._runs.validity import valid_forms
from .model import Model
from .shape import Fork, placed, placements


def solve_fork(
    run: SolveRun, fork: Fork, least: int, most: int, *, workers: int, seconds: float | None, work: float | None
) -> Termination | None:
    """Offer an optimal schedule and its bound to a run; return how it ends, None if a limit is reached before.

    Parameters
    ----------
    least, most
        A lower bound of the makespan, and a makespan that some schedule does not exceed if there are any.
    seconds, work
        Limits of the time, and of CP-SAT's deterministic time; None for no limit.
    """
    cases = ((ends, placed(fork, *ends)) for ends in placements(fork))
    left = [(max(least, case.least), at, ends, 1) for at, (ends, case) in enumerate(cases) if case is not None]
    heapq.heapify(left)
    until = math.inf if seconds is None else run.clock.elapsed + seconds

    def stopped() -> bool:
        return run.stopped() or run.clock.elapsed >= until or (work is not None and work <= 0)

    while left:
        low, at, ends, step = left[0]
        if run.best.values is not None:
            most = int(run.best.values[0] / fork.weight) - 1
            run.best.raise_bound(simplified(min(low, most + 1) * fork.weight))
            reached = run.first_level_reached(run.best.bound)
            if reached is not None:
                return reached
        if low > most:
            break
        makespan = min(low + step - 1, most)
        case = placed(fork, *ends)
        assert case is not None
        try:
            model = Model(case, makespan, stopped)
        except StoppedError:
            return None
        outcome = model.solve(
            seconds=None if until == math.inf else max(until - run.clock.elapsed, 0.0),
            work=work,
            seed=run.options.seed,
            workers=workers,
            should_stop=run.options.should_stop,
        )
        work = None if work is None else work - outcome.work
        run.stats["decisions"] = run.stats.get("decisions", 0) + 1
        if outcome.solved:
            found = next(valid_forms(fork.problem, model.schedule(outcome.solver.value)), None)
            if found is None or not run.best.offer(found):
                raise InternalError(f"cp-sat: a wrong schedule of a fork (problem {fork.problem.fingerprint()})")
            heapq.heapreplace(left, (low, at, ends, max(step // 2, 1)))
        elif outcome.status == "INFEASIBLE":
            heapq.heapreplace(left, (makespan + 1, at, ends, 2 * step))
        else:
            return None
    return Termination.INFEASIBLE
