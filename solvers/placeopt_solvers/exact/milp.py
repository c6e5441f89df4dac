"""milp: an exact solver that states the whole problem as a mixed-integer linear program, for HiGHS or SCIP.

It is an independent check of `cp-sat` on small problems, whose model it does not share, and a reference to learn from.
The disjunctions are those of A. S. Manne, On the job-shop scheduling problem, Operations Research 8 (1960),
doi:10.1287/opre.8.2.219. With big M their relaxation is weak: expect proofs up to about ten tasks, and `cp-sat` to be
faster.

Indices: tasks i, j, u, v; colocation groups g(i); devices a, b, d; edges e = (u, v); moves q, r, the transfers that a
placement may need. p[i, d] is the duration of i on d, c[e, a, b] the time of a transfer, H the horizon. Times are
in units of their greatest common divisor, so that an optimal schedule with integer times exists (`_milp.timing`).

Placement (`_milp.placement`), for each group g, h, and pairs of groups that an edge joins:

    sum_d x[g, d] = 1                                         x binary, for each d on which the group may run
    x[g, d] + x[h, d] <= 1                                    g and h contain a separated pair
    sum_b z[g, h, a, b] = x[g, a]                             z = x[g, a] x[h, b], 0 <= z <= 1
    sum_a z[g, h, a, b] = x[h, b]
    y[g, h] = sum_d z[g, h, d, d]                             on the same device
    y[g, h] >= x[g, d] + x[h, d] - 1                          instead, without an edge between them

Transfers (`_milp.placement`): an edge that is not shared moves as z says; the shared output of u moves from a to b once

    w[u, a, b] >= z[g(u), g(v), a, b]                         for each consumer v, a != b

Times (`_milp.timing`), with s[i] the start and t[i] = s[i] + sum_d p[i, d] x[g(i), d] the end:

    s[i] >= release[i], t[i] <= deadline[i]
    s[v] >= t[u] + sum_(a != b) c[e, a, b] z[g(u), g(v), a, b]
    s[j] >= t[i] - M (1 - o[i, j])                            o binary, for i, j without a path between them
    o[i, j] + o[j, i] >= y[g(i), g(j)]

Under port contention each move q has a start s[q] >= t[u] and an end t[q] = s[q] + sum c w, and

    s[v] >= t[q]                                              for a shared output to b: - M (1 - x[g(v), b])
    s[r] >= t[q] - M (1 - f[q, r])                            f binary
    f[q, r] + f[r, q] >= w[q leaves a] + w[r leaves a] - 1    for each device a; likewise for receiving, each channel of
                                                              a shared link, and under `half_duplex` for one that leaves
                                                              and one that arrives

In each row, M is the latest end on the right less the earliest start on the left: the largest violation of the order
by two times within their windows.

Memory (`_milp.memory`): under `sum` a knapsack for each device. Under `peak` the live outputs are counted where memory
rises, at the start of each task; the formulation needs no grid of time:

    r[i] >= t[i], arrivals on other devices, t[v] - M (1 - y[g(i), g(v)])                 when i's output is released
    y[g(i), g(j)] <= L[i, j] + A[i, j] + R[i, j]              A, R binary, 0 <= L <= 1
    s[i] >= s[j] + 1 - M (1 - A[i, j])                        i starts later
    s[j] >= r[i] - M (1 - R[i, j])                            i is released by then
    resident on d + sum_i output[i] L[i, j] + own of j <= capacity[d] + M (1 - x[g(j), d])

Resources (`_milp.resources`): budgets are rows. What is in use of a renewable resource rises at the start of tasks, so
a row for each task j counts what the others use then, with o and A as above.

The objective is minimised level by level, each with the values of the levels before as limits: C >= t[i] for the
makespan, sums of p x and c w for costs, a maximum of loads, and B >= used[d] / capacity[d] in whole parts per million.

Floating point. Engines accept rows and integers that are off by about 1e-6, so a problem with large numbers or long
schedules is refused (`_milp.model`). Only the placement and the rounded times of a solution are used, then re-timed and
evaluated in integers. The objective is an integer, but C is not an integer column, because engines would then round
their bounds up themselves. A bound is the engine's bound less a tenth, rounded up (`_milp.run.proved`). "Optimal" means
that it equals the exact value of the incumbent. Floating point allows no more; `cp-sat` computes in integers and is
more reliable. The bound of the linear relaxation is computed in integers from the dual values and needs no tolerance
(`LinearProgram.safe_dual_bound`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import ALL_METRICS, BOOKED, Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex

from .._runs.solve_run import nothing_to_place
from .._series.run import solved_as_blocks
from .._starts.warm_start import best_start
from ..pipelines._exact.engines import Limits, Outcome, run_milp, run_relaxation
from ..pipelines._exact.run import PeriodRun
from ._milp.settings import MilpSettings

if TYPE_CHECKING:
    from .._runs.linear import Linear
    from ..pipelines._exact.system import System


BLOCKS = 0.7
"""Share of the time limit for blocks, where single tasks cut the graph."""


class Milp:
    """Proves optimality and infeasibility of small problems; anytime."""

    name: ClassVar[str] = "milp"
    info: ClassVar[Info] = Info(
        summary="exact, for small problems: a mixed-integer program with HiGHS or SCIP; a check of cp-sat",
        family="exact",
        guarantee="optimal",
        complexity="exponential; O(n^2 m + e m^2) columns and rows, O(e^2 m) more with ports",
        citation=bibtex("manne1960job"),
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=(*ALL_METRICS, "period"),
        combined=True,
        rules=tuple(rule for rule in (*BOOKED, "machines", "limits") if rule != "tiers"),
        distributed=True,
    )
    settings_type: ClassVar[type[Settings]] = MilpSettings

    def solve(self, problem: Problem, options: Options, settings: MilpSettings) -> Answer:
        """Return the best schedule found and the bound proved within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        if problem.pipeline is not None:
            return solved_pipeline(problem, options, settings)
        from ._milp.run import MilpRun  # loads OR-Tools

        run = MilpRun(problem, options, settings)
        start = best_start(problem, options.initial, settings.hint, run.stopped)
        if start is not None:
            run.best.offer(start, "start")
        stopped = run.stop_reason()
        if stopped is not None:
            return run.ended(stopped)
        if not problem.group_feasible().any(axis=1).all():
            return run.ended(Termination.INFEASIBLE, "some task or group has no device that may run it")
        ended = None if settings.relaxation else solved_as_blocks(run, self.solve, settings, BLOCKS)
        return run.answer() if ended is None else run.ended(ended)


def solved_pipeline(problem: Problem, options: Options, settings: MilpSettings) -> Answer:
    """Return the best placement found and the bound proved within the limits."""

    def minimised(system: System, period: Linear, limits: Limits, hint: Mapping[int, int]) -> Outcome:  # noqa: ARG001
        if settings.relaxation:
            return run_relaxation(system, period, limits)
        return run_milp(system, period, options, limits, settings.engine)

    run = PeriodRun(problem, options)
    return run.answer(
        "milp", minimised, exact=False, most=settings.max_size, starts=settings.hint, symmetry=settings.symmetry
    )
