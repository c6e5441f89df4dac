"""The textbook: the whole problem as a mixed-integer programme, for HiGHS or SCIP.

An independent check of `cp-sat` on small cases, with which it shares no line of its model, and a reference to learn
from. The disjunctions are those of A. S. Manne, On the job-shop scheduling problem, Operations Research 8 (1960),
doi:10.1287/opre.8.2.219. With big M their relaxation is weak: expect proofs up to about ten tasks, and `cp-sat` to be
faster.

Indices: tasks i, j, u, v; colocation groups g(i); devices a, b, d; edges e = (u, v); moves q, r, the transfers that a
placement may need. p[i, d] is the duration of i on d, c[e, a, b] the time of a transfer, H the horizon. Times are
in units of their greatest common divisor, so that every one of an optimal schedule is whole (`_milp_times`).

Where (`_milp_placement`), for each group g, h, and pairs of groups that an edge joins:

    sum_d x[g, d] = 1                                         x binary, there where the group may run on d
    x[g, d] + x[h, d] <= 1                                    g and h hold a separated pair
    sum_b z[g, h, a, b] = x[g, a]                             z = x[g, a] x[h, b], 0 <= z <= 1
    sum_a z[g, h, a, b] = x[h, b]
    y[g, h] = sum_d z[g, h, d, d]                             on the same device; without an edge between them
    y[g, h] >= x[g, d] + x[h, d] - 1                          this is enough

What moves (`_milp_moves`): an edge of its own as z says; the shared output of u from a to b, once for all

    w[u, a, b] >= z[g(u), g(v), a, b]                         for each consumer v, a != b

When (`_milp_timing`), with s[i] the start and t[i] = s[i] + sum_d p[i, d] x[g(i), d] the end:

    s[i] >= release[i], t[i] <= deadline[i]
    s[v] >= t[u] + sum_(a != b) c[e, a, b] z[g(u), g(v), a, b]
    s[j] >= t[i] - M (1 - o[i, j])                            o binary, for i, j that no path orders
    o[i, j] + o[j, i] >= y[g(i), g(j)]

Under port contention each move q has a start and an end of its own, t[u] <= s[q], t[q] = s[q] + sum c w, and

    s[v] >= t[q]                                              for a shared output to b: - M (1 - x[g(v), b])
    s[r] >= t[q] - M (1 - f[q, r])                            f binary
    f[q, r] + f[r, q] >= w[q leaves a] + w[r leaves a] - 1    for each device a; the same for reaching b

M is in each row the latest end on the right less the earliest start on the left: the most by which two times within
their windows can be in the wrong order.

Memory (`_milp_memory`): under `sum` a knapsack for each device. Under `peak` the live outputs are counted where memory
rises, at the start of each task; the formulation needs no grid of time:

    r[i] >= t[i], the arrivals at consumers elsewhere, t[v] - M (1 - y[g(i), g(v)])       when i's output is let go
    y[g(i), g(j)] <= L[i, j] + A[i, j] + R[i, j]              A, R binary, 0 <= L <= 1
    s[i] >= s[j] + 1 - M (1 - A[i, j])                        i starts later
    s[j] >= r[i] - M (1 - R[i, j])                            i is let go by then
    resident on d + sum_i output[i] L[i, j] + own of j <= capacity[d] + M (1 - x[g(j), d])

The objective is minimised level by level, each with the values of those before it as limits: C >= t[i] for the
makespan, sums of p x and c w for costs, a maximum of loads, and B >= used[d] / capacity[d] in whole parts per million.

Floating point. Engines let a row fail and a whole number be off by some 1e-6, so a problem with large numbers or long
schedules is refused: see `_milp_model`. Of a solution only the placement and the rounded times are
taken, then re-timed and evaluated in integers. The objective is whole, though C is no whole column, for engines would
round their bounds up themselves; a bound is what the engine reports less a tenth, rounded up (`_milp_engine.proved`),
and "optimal" means that this is the exact value of a schedule held. That is as much as floating point can give: cp-sat,
which counts in integers, is the one to trust. The bound of the linear relaxation needs no tolerance: it is worked out
from the dual values in whole numbers (`_milp_linear.Programme.certified`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

from placeopt.errors import InternalError
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.simulation import retime
from placeopt.solver import ALL_METRICS, Answer, Info, Options, Settings, Termination

from .._runs.solve_run import ExactRun, nothing_to_place
from .._runs.validity import valid
from .._starts.warm_start import best_start

if TYPE_CHECKING:
    from ._milp.engine import Limits, Outcome
    from ._milp.model import Level, Model

CHEAP = 20_000
"""Columns and rows up to which the linear relaxation is solved on its own first."""

OVERDUE = 1.0
"""Seconds after which an engine that does not keep its time limit is stopped by force."""


class MilpSettings(Settings):
    """Settings of milp."""

    engine: Literal["highs", "scip"] = "highs"
    """Who solves the programme; both come with OR-Tools."""
    relaxation: bool = False
    """Only solve the linear relaxation: a bound, beside the schedule that the run starts from."""
    hint: bool = True
    """Start from the best schedule of the heuristics."""
    symmetry: bool = True
    """Break the symmetry between interchangeable devices."""
    max_size: int = 200_000
    """Columns, rows and products above which no programme is built."""


class Milp:
    """Proves optimality and infeasibility of small problems; anytime."""

    name: ClassVar[str] = "milp"
    info: ClassVar[Info] = Info(
        summary="exact, for small problems: a mixed-integer programme with HiGHS or SCIP; a check of cp-sat",
        family="exact",
        guarantee="optimal",
        complexity="exponential; O(n^2 m + e m^2) columns and rows, O(e^2 m) more with ports",
        citation="""@article{manne1960job,
  author  = {Alan S. Manne},
  title   = {On the Job-Shop Scheduling Problem},
  journal = {Operations Research},
  volume  = {8},
  number  = {2},
  pages   = {219--223},
  year    = {1960},
  doi     = {10.1287/opre.8.2.219}
}""",
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[Settings]] = MilpSettings

    def solve(self, problem: Problem, options: Options, settings: MilpSettings) -> Answer:
        """The best schedule found and the bound proved within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        return _Run(problem, options, settings).answer()


class _Run(ExactRun):
    """One solve: what it has, and the steps to better."""

    def __init__(self, problem: Problem, options: Options, settings: MilpSettings) -> None:
        super().__init__(problem, options)
        self.settings = settings

    def answer(self) -> Answer:
        """The best schedule and bound, and why there is no better."""
        start = best_start(self.problem, self.options.initial, self.settings.hint)
        if start is not None:
            self.best.offer(start, "start")
        halted = self.halted()
        if halted is not None:
            return self.ended(halted)
        allowed = self.problem.group_feasible()
        if not allowed.any(axis=1).all():
            return self.ended(Termination.INFEASIBLE, "some task or group has no device that may run it")
        from placeopt.bounding.engines.process import EngineError

        from ._milp.linear import BuildStoppedError
        from ._milp.model import Model, TooLargeError, model_size
        from ._milp.times import times_of

        times = times_of(self.problem, allowed, self.best.values[0] if self.best.values else None)
        size, most = model_size(self.problem, times.after), self.settings.max_size
        if size > most:
            return self.refusal(
                f"too large for a mixed-integer programme: about {size:,} columns, rows and products, where max_size "
                f"allows {most:,}; cp-sat goes further"
            )
        try:
            model = Model(self.problem, allowed, times, self.settings.symmetry, lambda: self.halted() is not None)
            self.stats.update(columns=len(model.programme.columns), rows=len(model.programme.rows))
            ended = self._relax(model)
            return self.ended(self._descend(model) if ended is None else ended)
        except TooLargeError as error:
            return self.refusal(
                f"the numbers are not safe in floating point: {error}; a coarser resolution would help, and cp-sat "
                "counts in integers"
            )
        except BuildStoppedError:
            return self.ended(self.halted() or Termination.TIME_LIMIT)
        except EngineError as error:
            return self.refusal(str(error))

    def _relax(self, model: Model) -> Termination | None:
        """Bound the first level by the linear relaxation; why to stop, None to go on."""
        from ._milp.engine import relaxed

        if not self.settings.relaxation and self.stats["columns"] + self.stats["rows"] > CHEAP:
            return None
        level, programme = model.levels[0], model.programme
        found = relaxed(programme.proto(level.expression, relaxed=True), self._limits())
        if found.status == "infeasible" and self.settings.relaxation:  # else the engine is asked too
            self._no_solution(0, "GLOP")
            return Termination.INFEASIBLE
        if found.duals is not None:
            bound = programme.certified(level.expression, found.duals)
            self.stats["lp_bound"] = float(level.value(bound))
            if self._raise_bound(level, math.ceil(bound)) and len(model.levels) == 1:
                return Termination.OPTIMAL
        halted = self.halted()
        if halted is None and self.settings.relaxation:
            self.message = "only the linear relaxation was solved: a bound, and the schedule that the run started from"
            return Termination.COMPLETED
        return halted

    def _raise_bound(self, level: Level, bound: int) -> bool:
        """Take a bound of the first level; whether the schedule held reaches it."""
        self.best.raise_bound(level.value(bound))
        return self.best.values is not None and self.best.values[0] == self.best.bound

    def _descend(self, model: Model) -> Termination:
        """Minimise one level after the other."""
        exact = True
        for depth, level in enumerate(model.levels):
            halted = self.halted()
            if halted is not None:
                return halted
            outcome = self._minimise(model, depth, level)
            if outcome.status == "infeasible":
                self._no_solution(depth, self.settings.engine)
                return Termination.INFEASIBLE
            if self.best.values is None:
                return self._why(outcome)
            value = level.scaled(self.best.values[depth])
            bound = self._bound(level, outcome, depth)
            if bound > value:
                raise InternalError(
                    f"milp: {self.settings.engine} proves {level.value(bound)} for level {depth + 1}, where a "
                    f"schedule has {level.value(value)} (problem {self.problem.fingerprint()}, seed "
                    f"{self.options.seed})"
                )
            if bound < value:
                limit = self.options.gap_limit
                if limit is None or value - bound > limit * value:
                    return self._why(outcome)
                exact = False
            model.programme.at_least(value, level.expression)
        return Termination.OPTIMAL if exact else Termination.COMPLETED

    def _minimise(self, model: Model, depth: int, level: Level) -> Outcome:
        from ._milp.engine import minimised, proved

        def on_bound(reported: float) -> None:
            if depth == 0 and math.isfinite(reported):
                self.best.raise_bound(level.value(proved(reported)))

        hint = None if self.best.schedule is None else model.hint(self.best.schedule)
        outcome = minimised(
            model.programme.proto(level.expression),
            self.settings.engine,
            hint,
            self._limits(),
            lambda values: self._found(model, values, depth),
            on_bound,
        )
        if outcome.values is not None:
            self._found(model, outcome.values, depth)
        self.stats["nodes"] = self.stats.get("nodes", 0) + outcome.nodes
        return outcome

    def _bound(self, level: Level, outcome: Outcome, depth: int) -> int:
        """The bound proved for a level, in its own steps."""
        from ._milp.engine import proved

        found = 0 if outcome.bound is None else proved(outcome.bound)
        if depth == 0:
            self.best.raise_bound(level.value(found))
            assert self.best.bound is not None
            return level.scaled(self.best.bound)
        return found

    def _found(self, model: Model, values: list[float], depth: int) -> None:
        """Take a solution: its schedule, or that with the earliest starts in its order if that is valid and better."""
        schedule = model.schedule(values)
        candidates = [each for each in (retime(self.problem, schedule), schedule) if valid(self.problem, each)]
        if candidates:
            best = min(candidates, key=lambda each: evaluate(self.problem, each))
            self.best.offer(best, f"level {depth + 1}" if depth else "")

    def _no_solution(self, depth: int, engine: str) -> None:
        """Nothing satisfies the programme: right only if no schedule is known."""
        if self.best.schedule is not None:
            raise InternalError(
                f"milp: {engine} says that level {depth + 1} has no solution, and there is a schedule (problem "
                f"{self.problem.fingerprint()}, seed {self.options.seed})"
            )

    def _limits(self) -> Limits:
        from ._milp.engine import Limits

        limit, clock = self.options.time_limit, self.clock
        return Limits(
            seconds=clock.remaining,
            gap=self.options.gap_limit,
            seed=self.options.seed,
            workers=self.options.workers,
            should_stop=lambda: self.options.should_stop() or (limit is not None and clock.elapsed > limit + OVERDUE),
        )

    def _why(self, outcome: Outcome) -> Termination:
        """Why an engine ended without a proof."""
        halted = self.halted()
        if halted is not None:
            return halted
        if outcome.stopped:
            return Termination.INTERRUPTED
        self.message = f"{self.settings.engine} ended without a proof: {outcome.message or outcome.status}"
        return Termination.FAILED if self.best.schedule is None else Termination.COMPLETED
