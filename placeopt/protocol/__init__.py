"""The protocol that all solvers implement, built-in or third-party.

A solver takes a `Problem` and `Options` and returns an `Answer`. It never prints, and never raises for limits or
infeasibility. The pipeline re-times its schedule, and the verifier decides whether it is feasible.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, get_args, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError

from placeopt.errors import UsageError, listing, meaning, suggestion
from placeopt.model.arrays import Int
from placeopt.model.objective import Value
from placeopt.model.problem import DELAYS, KINDS, Contention, MemoryModel, Metric, Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol.pool import Pool

ALL_METRICS: tuple[Metric, ...] = tuple(metric for metric in get_args(Metric) if metric != "period")
"""All metrics of one run."""

PLACED: tuple[Metric, ...] = tuple(metric for metric in ALL_METRICS if metric not in ("tardiness", "devices"))
"""The metrics that local search evaluates step by step: neither ends of single tasks nor numbers of devices."""


RULES: Mapping[str, str] = KINDS
"""What messages call the rules that not all solvers support, by their names in `Problem.rules`."""

RETIMED = tuple(DELAYS)
"""The rules that only cause delays. A solver that ignores them still gives a valid schedule, because it is re-timed."""

BOOKED = (*RETIMED, "budgets")
"""The rules that the timeline of the engine keeps, and with it each solver that builds its schedules there."""


class Termination(enum.StrEnum):
    """Why a solver stopped, regardless of whether it has a schedule."""

    OPTIMAL = "optimal"  # the schedule is proved optimal
    INFEASIBLE = "infeasible"  # it is proved that no schedule exists
    COMPLETED = "completed"  # the algorithm ended, or the gap limit was reached
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"  # the caller asked it to stop
    FAILED = "failed"  # no schedule found, or an error; the message says why


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress report: best value and proven lower bound of the objective's first level."""

    elapsed: float
    """Seconds since the solver started."""
    objective: Value | None = None
    bound: Value | None = None
    message: str = ""
    schedule: Schedule | None = field(default=None, repr=False, compare=False)
    """The schedule with this value, of the problem that the solver was given; None if it is not stated.

    `placeopt.solve` keeps it for `placeopt.Job.incumbent` and passes reports on without it.
    """


class Announcer:
    """Reports the progress of several threads to one callback, one call at a time.

    Each report states the best objective and bound so far and a time not before that of the last report, even if a
    slower thread reports late. The callback may read `latest`, report itself, or run another solver.

    Attributes
    ----------
    latest
        The last report.
    """

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._lock = threading.RLock()
        self.latest = Progress(0.0)

    def __call__(self, progress: Progress) -> None:
        """Report progress, merged with the last report."""
        with self._lock:
            last = self.latest
            objectives = [each.objective for each in (last, progress) if each.objective is not None]
            best = min(objectives, default=None)
            bounds = [each.bound for each in (last, progress) if each.bound is not None]
            self.latest = Progress(
                elapsed=max(last.elapsed, progress.elapsed),
                objective=best,
                bound=max(bounds, default=None),
                message=progress.message,
                schedule=(progress.schedule if progress.objective == best else None) or last.schedule,
            )
            if self._on_progress is not None:
                self._on_progress(self.latest)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run that are common to all solvers.

    Attributes
    ----------
    time_limit
        Seconds; None for no limit.
    nominal_limit
        The caller's limit before the time of passes is subtracted. None: the same as `time_limit`.
    seed
        The same seed with one worker gives the same answer.
    workers
        Number of threads that the solver may use.
    gap_limit
        Stop once (objective - bound) / objective is at most this; None: only if proved optimal.
    initial
        A schedule for a warm start.
    strict
        Whether a heuristic fails instead of returning a schedule that exceeds a device's memory.
    on_progress
        Called with every new incumbent or bound, perhaps from another thread. `placeopt.solve` passes a thread-safe
        callback (`Announcer`).
    should_stop
        Called regularly; once true, the solver returns its best schedule as INTERRUPTED.
    pool
        Slots on other machines that the solver may use, too.
    """

    time_limit: float | None = None
    nominal_limit: float | None = None
    seed: int = 0
    workers: int = 1
    gap_limit: float | None = None
    initial: Schedule | None = None
    strict: bool = False
    on_progress: Callable[[Progress], None] | None = None
    should_stop: Callable[[], bool] = field(default=lambda: False)
    pool: Pool | None = None

    @property
    def planned_seconds(self) -> float | None:
        """Seconds for planning work, equal in every run, unlike `time_limit`. None for no limit."""
        return self.time_limit if self.nominal_limit is None else self.nominal_limit


class Clock:
    """Measures the time of a solver against its limit."""

    def __init__(self, limit: float | None) -> None:
        self._start = time.monotonic()
        self.limit = limit

    def __repr__(self) -> str:
        return f"<Clock: {self.elapsed:.3f} s of {'no limit' if self.limit is None else f'{self.limit:g} s'}>"

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def remaining(self) -> float | None:
        """Remaining seconds, at least 0; None without a limit."""
        return None if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def over(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and self.elapsed >= self.limit


@dataclass(frozen=True, slots=True, eq=False)
class BlockBound:
    """A lower bound of the time between the ends of two cuts."""

    block: int
    """The number of the block."""
    start: int
    end: int
    """Devices of its first and its last cut, -1 for a missing one."""
    problem: Problem
    """The block as a problem: the first cut takes no time, and both run on these devices only."""
    ticks: int | None
    """The bound of its makespan; None if it has no schedule."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks between cuts, by tasks, and bounds that are better than their critical paths."""

    cuts: tuple[int, ...]
    inner: tuple[tuple[int, ...], ...]
    bounds: tuple[BlockBound, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a solver.

    Attributes
    ----------
    termination
        Why it stopped.
    schedule
        The best schedule found, or None. The pipeline re-times it to the earliest starts in its order, so that solvers
        with a simpler execution model may return their own times.
    bound
        A proven lower bound of the objective's first level, or None.
    message
        An error or a note for users.
    stats
        Statistics of the algorithm for reports (nodes, iterations, rho).
    bound_source
        The method that proved the bound, if not the solver.
    varies_by
        Why another run with the same seed may give another schedule: "clock" or "threads"; empty if it cannot. An
        answer that was stopped by the time limit or the caller always varies by the clock.
    clusters
        (n,) the cluster of each task, numbered from 0, of a solver that places clusters as a whole; None without a
        schedule. All tasks of a cluster are on one device, so a cluster that the solver had to split counts as its
        parts; if the solver had to place colocation groups one by one, these are the clusters.
    blocks
        What a solver that cuts the graph proved about its blocks; else None.
    """

    termination: Termination
    schedule: Schedule | None = None
    bound: Value | None = None
    message: str = ""
    stats: Mapping[str, Any] = field(default_factory=dict)
    bound_source: str = ""
    varies_by: str = ""
    clusters: Int | None = field(default=None, compare=False)
    blocks: Blocks | None = field(default=None, compare=False)


class Settings(BaseModel):
    """Base class of the settings of a solver or a pass: typed and validated, each field with a description."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


Some = TypeVar("Some", bound=Settings)


def checked_settings(
    owner: str, kind: type[Some], values: Mapping[str, Any], keywords: Mapping[str, str] | None = None
) -> Some:
    """Validate the settings of `owner`; values may be text from a command line.

    `keywords` maps names that an unknown setting may have to the arguments of the calling function that they mean.

    Raises
    ------
    UsageError
        If settings are unknown or values are not valid; lists every one.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        fields = kind.model_fields
        problems = []
        for detail in error.errors(include_url=False):
            name = str(detail["loc"][0]) if detail["loc"] else ""
            if detail["type"] == "extra_forbidden":
                meant = (keywords or {}).get(name)
                hint = meaning([meant]) if meant else suggestion(name, [*fields, *(keywords or {}).values()])
                hint = hint or f"; it has {listing(list(fields)) if fields else 'no settings'}"
                problems.append(f'{owner} has no setting "{name}"{hint}')
            else:
                problems.append(f"{owner}: setting {name} = {detail['input']}: {detail['msg'].lower()}")
        raise UsageError("\n".join(problems)) from None


@dataclass(frozen=True, slots=True)
class Info:
    """Properties and capabilities of a solver, shown by `placeopt solvers`.

    Attributes
    ----------
    summary
        One line.
    family
        Heading of its list: "exact", "list scheduling", "clustering", ...
    guarantee
        What is proved about its answers ("optimal", "none", a ratio).
    complexity
        Running time for n tasks, e edges and m devices.
    citation
        BibTeX of the implemented paper; may be empty.
    exact
        Whether it proves optimality and infeasibility, given time.
    anytime
        Whether it improves until a limit stops it (it then respects `time_limit`).
    warm_start
        Whether it uses `Options.initial`.
    metrics, contentions, memory_models
        Supported features; other problems are rejected before the solver runs.
    rules
        Further rules that are supported, by their names in `RULES`; `RETIMED` for solvers of which only the times of
        schedules depend on them.
    combined
        Whether weighted sums and lexicographic lists of its metrics are supported too.
    bounding
        Whether it proves slow bounds itself; none are then proved in parallel.
    distributed
        Whether it uses `Options.pool`.
    clusters
        Whether it places clusters of tasks as a whole, and its answers state them.
    addresses
        Whether it finds offsets itself if a problem has an alignment, and perhaps a layout. It gets such a problem
        after it solved the one that counts bytes, and may rely on the offsets of `Options.initial`. Other solvers only
        get the latter.
    """

    summary: str
    guarantee: str
    complexity: str
    citation: str = ""
    family: str = "other"
    exact: bool = False
    anytime: bool = False
    warm_start: bool = False
    metrics: tuple[Metric, ...] = ("makespan",)
    contentions: tuple[Contention, ...] = ("none", "port", "half_duplex")
    memory_models: tuple[MemoryModel, ...] = ("sum", "peak")
    rules: tuple[str, ...] = ()
    combined: bool = False
    bounding: bool = False
    distributed: bool = False
    clusters: bool = False
    addresses: bool = False

    def __repr__(self) -> str:
        return f"<Info: {self.summary}; guarantee {self.guarantee}>"


@runtime_checkable
class Solver(Protocol):
    """A solver; register its class under the entry point group `placeopt.solvers`."""

    name: ClassVar[str]
    info: ClassVar[Info]

    @property
    def settings_type(self) -> type[Settings]:
        """The class of the settings; solvers define it as a class variable."""
        ...

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:
        """Solve the problem; `settings` is an instance of `settings_type`."""
        ...


def unsupported(info: Info, problem: Problem) -> str | None:
    """The first property of the problem that a solver with this info does not support, as a clause; else None."""
    objective = problem.objective
    if objective.single is None and not info.combined:
        return f"the combined objective {objective}"
    missing = [metric for metric in objective.metrics if metric not in info.metrics]
    if missing:
        return f"objective {missing[0]}"
    if problem.contention not in info.contentions:
        return f"contention {problem.contention}"
    if problem.memory_model not in info.memory_models:
        return f"memory model {problem.memory_model}"
    return next((RULES[rule] for rule in problem.rules if rule not in info.rules), None)
