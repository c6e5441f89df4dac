"""What a solver is: the protocol that every algorithm implements, ours or a third party's.

A solver takes a `Problem` and `Options` and returns an `Answer`. It never prints, never raises
for limits or infeasibility, and never claims feasibility: the verifier judges its schedule, and
the pipeline re-times it first.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError

from placeopt.errors import UsageError, listing, meaning, suggestion
from placeopt.model.objective import Value
from placeopt.model.problem import Contention, MemoryModel, Metric, Problem
from placeopt.model.schedule import Schedule

ALL_METRICS: tuple[Metric, ...] = (
    "makespan",
    "total_cost",
    "max_load",
    "communication",
    "energy",
    "memory_balance",
    "relocation",
)


class Termination(enum.StrEnum):
    """Why a solver stopped; what it holds is another question."""

    OPTIMAL = "optimal"  # the schedule is proved to be as good as any
    INFEASIBLE = "infeasible"  # proved that no schedule exists
    COMPLETED = "completed"  # ran to its own end, or reached the wanted gap
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"  # the caller asked it to stop
    FAILED = "failed"  # gave up without a schedule, or broke; the message says why


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot for whoever watches: best value and proven bound of the objective's first level."""

    elapsed: float
    """Seconds since the solver started."""
    objective: Value | None = None
    bound: Value | None = None
    message: str = ""


class Announcer:
    """Reports the progress of several threads to one callback, one call at a time.

    Each report has the best objective and the best bound so far, and a time no earlier than that of the report before:
    what comes late, from a slower thread, does not take anything back. Nothing else is done while the callback runs, so
    it may ask for `latest`, report itself, or run another solver.

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
        """Report it, together with what is known by now."""
        with self._lock:
            last = self.latest
            objectives = [each.objective for each in (last, progress) if each.objective is not None]
            bounds = [each.bound for each in (last, progress) if each.bound is not None]
            self.latest = Progress(
                elapsed=max(last.elapsed, progress.elapsed),
                objective=min(objectives, default=None),
                bound=max(bounds, default=None),
                message=progress.message,
            )
            if self._on_progress is not None:
                self._on_progress(self.latest)


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller wants of a run, whichever solver it is.

    Attributes
    ----------
    time_limit
        Seconds, None for no limit.
    nominal_limit
        The limit as the caller gave it, before passes took their part of it. None: the same as `time_limit`.
    seed
        Same seed and one worker, same answer.
    workers
        Threads that the solver may use.
    gap_limit
        Stop once (objective - bound) / objective is at most this; None: only when proved optimal.
    initial
        A schedule to start from or to hint.
    strict
        Whether a heuristic that would overfill a device for want of anything better fails instead.
    on_progress
        Called with every new incumbent or bound, perhaps from another thread. `placeopt.solve` gives a solver one that
        several threads may call at a time (`Announcer`).
    should_stop
        Asked now and then; once true, the solver returns the best it holds as INTERRUPTED.
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

    @property
    def planned_seconds(self) -> float | None:
        """Seconds to plan work for: the same in every run, which `time_limit` is not. None for no limit."""
        return self.time_limit if self.nominal_limit is None else self.nominal_limit


class Clock:
    """Measures a solver's time against its limit."""

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
        """Seconds left, never negative; None without a limit."""
        return None if self.limit is None else max(0.0, self.limit - self.elapsed)

    @property
    def over(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and self.elapsed >= self.limit


@dataclass(frozen=True, slots=True)
class Answer:
    """What a solver returns.

    Attributes
    ----------
    termination
        Why it stopped.
    schedule
        The best schedule it holds, None if none. The pipeline re-times it to the earliest starts in its
        order, so solvers that think in a simpler execution model may return their own times.
    bound
        A proven lower bound of the objective's first level; None without one.
    message
        For people: what went wrong or is worth knowing.
    stats
        Numbers of the algorithm's own, for reports (nodes, iterations, rho).
    bound_source
        Who proved the bound, if not the solver itself.
    varies_by
        Why another run with the same seed may give another schedule: "clock" or "threads"; empty if it may
        not. An answer that ended by the time limit or was interrupted varies by the clock in any case.
    """

    termination: Termination
    schedule: Schedule | None = None
    bound: Value | None = None
    message: str = ""
    stats: Mapping[str, Any] = field(default_factory=dict)
    bound_source: str = ""
    varies_by: str = ""


class Settings(BaseModel):
    """Base of the settings of a solver's or a pass's own: typed, checked, each field with a description."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


Some = TypeVar("Some", bound=Settings)


def checked_settings(
    owner: str, kind: type[Some], values: Mapping[str, Any], keywords: Mapping[str, str] | None = None
) -> Some:
    """The settings of `owner`, checked; values may be text, as on the command line.

    `keywords` maps other names to what they mean: the arguments of the function that takes the settings.

    Raises
    ------
    UsageError
        For an unknown setting or a value of the wrong kind; lists every one.
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
    """What a solver is and can do, declared once and shown by `placeopt solvers`.

    Attributes
    ----------
    summary
        One line.
    family
        What it is listed under: "exact", "list scheduling", "clustering", ...
    guarantee
        What is proved of its answers ("optimal", "none", a ratio).
    complexity
        In n tasks, e edges, m devices.
    citation
        BibTeX of the paper it implements, empty for folklore.
    exact
        Whether it proves optimality and infeasibility, given time.
    anytime
        Whether it goes on improving until a limit stops it (it then respects `time_limit`).
    warm_start
        Whether it makes use of `Options.initial`.
    metrics, contentions, memory_models
        What it supports; a problem that asks for more is refused before the solver sees it.
    combined
        Whether weighted sums and lexicographic lists of its metrics are supported too.
    bounding
        Whether it sees to bounds that take their time itself: none are proved beside it.
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
    contentions: tuple[Contention, ...] = ("none", "port")
    memory_models: tuple[MemoryModel, ...] = ("sum", "peak")
    combined: bool = False
    bounding: bool = False

    def __repr__(self) -> str:
        return f"<Info: {self.summary}; guarantee {self.guarantee}>"


@runtime_checkable
class Solver(Protocol):
    """An algorithm; register its class under the entry point group `placeopt.solvers`."""

    name: ClassVar[str]
    info: ClassVar[Info]

    @property
    def settings_type(self) -> type[Settings]:
        """The class of its settings; a class variable of a solver."""
        ...

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:
        """The algorithm's answer; `settings` is an instance of `settings_type`."""
        ...


def unsupported(info: Info, problem: Problem) -> str | None:
    """The first property of the problem that a solver with this info cannot handle, as a clause; None if it can."""
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
    return None
