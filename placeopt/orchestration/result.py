"""The result of a solve: termination, verified schedule, objective, lower bound and gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from placeopt.errors import UsageError, counted, visible
from placeopt.io.plan import write_plan
from placeopt.model.arrays import Int, checked_call, checked_number
from placeopt.model.metrics import DeviceUse, device_uses
from placeopt.model.notebook import facts_table, framed, grid_table, note
from placeopt.model.objective import Value
from placeopt.model.period import period
from placeopt.model.problem import Problem, document_facts
from placeopt.model.resource_use import stated_uses, use_facts
from placeopt.model.schedule import Schedule, makespan
from placeopt.model.stage_use import stage_uses
from placeopt.model.units import size_text
from placeopt.protocol import Progress, Termination
from placeopt.views.facts import (
    DEVICE_HEADERS,
    MEANING,
    SHOWN,
    Grid,
    amount_text,
    applied_text,
    device_cells,
    pipeline_facts,
    problem_line,
    stage_grid,
    unit_metric,
    value_text,
    verdict_text,
)

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from placeopt.orchestration.consolidation import Consolidation
    from placeopt.passes import Applied
    from placeopt.verifier import Violation
    from placeopt.verifier.certificates import Checked
    from placeopt.views.frames import Rows, Unit
    from placeopt.views.plots.canvas import Picture


MEMBERS = 6
"""Members of a portfolio to show, best first."""

CERTIFYING = 10.0
"""Seconds for a certificate, unless stated otherwise."""

LARGE = 10**7
"""Pairs of a task and a device from which on the memory of the process is shown, and bounds run in parallel."""

VARYING = {
    "clock": "no: the time limit ended the run, so another run may find another schedule",
    "threads": "no: several threads searched; with --workers 1, the same seed gives the same schedule",
}
"""Texts for `Result.varies_by`."""

STOPPED = "no: the run was stopped, so another run may find another schedule"


@dataclass(frozen=True, slots=True)
class WallTime:
    """Seconds spent on each stage; None for a stage that was not part of the call."""

    load: float | None = None
    build: float | None = None
    solve: float | None = None
    verify: float | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The verified result of one solver on one problem. Absent values are None.

    Attributes
    ----------
    problem
        The problem as given, before passes.
    solver
        The name of the solver.
    termination
        Why the solver stopped.
    schedule
        The best schedule, re-timed; None if there is none.
    feasible
        Whether the verifier accepts the schedule; None without a schedule.
    violations
        Every rule that the schedule violates.
    values
        The objective of the schedule, one value per level.
    bound
        The best proven lower bound of the objective's first level.
    bound_source
        The name of its source: a bound of `placeopt.bounds`, or a solver.
    makespan
        Ticks.
    seed, settings
        As used by the solver.
    message
        Remarks of the solver for people.
    stats
        Numbers that the algorithm reports, such as nodes or iterations.
    wall_time
        Seconds of each stage.
    versions
        Versions of Python, placeopt and its engines.
    devices
        Tasks, busy time and memory of each device.
    passes
        What passes did to the problem before the solver ran.
    progress
        Every incumbent and lower bound that the solver reported, in order; empty behind passes that may lose the
        optimum.
    varies_by
        Why another run with the same seed may give another schedule: "clock" or "threads"; empty if it cannot.
    clusters
        (n,) the cluster of each task, numbered from 0, if the solver or passes that may lose the optimum placed
        clusters as a whole, and state them. Tasks of one cluster are on one device.
    consolidation
        How the schedule was made simpler after the solver, at most by the share that `consolidate` allows; else None.
    checked
        What a certificate of the bound, or of infeasibility, proves, once one was checked (`placeopt solve
        --certificate`); else None.
    process_memory
        Bytes of main memory that the process, or one that it started, held at most from its start to the end of the
        solve (peak resident set size); None if the system does not report it. It has nothing to do with `devices`.
    """

    problem: Problem
    solver: str
    termination: Termination
    schedule: Schedule | None
    feasible: bool | None
    violations: tuple[Violation, ...]
    values: tuple[Value, ...] | None
    bound: Value | None
    bound_source: str | None
    makespan: int | None
    seed: int
    settings: Mapping[str, Any]
    message: str
    stats: Mapping[str, Any]
    wall_time: WallTime
    versions: Mapping[str, str]
    devices: tuple[DeviceUse, ...] = field(default=())
    passes: Applied | None = None
    progress: tuple[Progress, ...] = ()
    varies_by: str = ""
    clusters: Int | None = field(default=None, compare=False)
    process_memory: int | None = field(default=None, compare=False)
    consolidation: Consolidation | None = None
    checked: Checked | None = None

    @property
    def objective(self) -> Value | None:
        """Value of the objective's first level, in its own unit (ticks for makespan)."""
        return self.values[0] if self.values else None

    @property
    def gap(self) -> float | None:
        """(objective - bound) / objective: no schedule is better by a larger share; None if not feasible."""
        return relative_gap(self.objective, self.bound) if self.feasible else None

    @property
    def period(self) -> int | None:
        """Ticks between two results of a pipeline; None for other problems and without a schedule."""
        if self.problem.pipeline is None or self.schedule is None or self.makespan is None:
            return None
        return period(self.problem, self.schedule)

    @property
    def repeatable(self) -> bool:
        """Whether another run with the same problem, settings, seed and workers gives the same schedule."""
        return not self.varies_by

    @property
    def placement(self) -> dict[str, str] | None:
        """The device of each task, by name; None without a schedule."""
        if self.schedule is None:
            return None
        devices = self.problem.device_names
        chosen = self.schedule.device.tolist()
        return {name: devices[d] for name, d in zip(self.problem.task_names, chosen, strict=True)}

    def __repr__(self) -> str:
        return _text(self)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return _html(self)

    def summary(self) -> str:
        """The text that `placeopt solve` prints: problem, objective, gap, devices, verdict."""
        return _summary(self)

    def to_frame(self, rows: Rows = "tasks", *, unit: Unit = "tick") -> pd.DataFrame:
        """Return the schedule as a pandas data frame; it has no rows without a schedule.

        Parameters
        ----------
        rows
            "tasks": task, device (gpu0+gpu1 for a team), mode (if tasks of the problem have modes), type (of the
            device), start, end, duration, ready (the later of its release time and the arrival of its last input),
            memory (bytes under the `sum` model: the sum of resident, output and scratch, which follow), received (bytes
            received from other devices).
            "devices": device, type, tasks, busy, memory (bytes, under the problem's memory model), capacity (bytes),
            swap (time of swapping before the first task, with memory tiers).
            "transfers": producer, consumer, sender, receiver, start, end, duration, payload (bytes), serves (number of
            consumers on the receiving device; the first one is named).
        unit
            The unit of all times: "tick" (integers), or "s", "ms", "us", "ns" (floats).

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        UsageError
            If `rows` or `unit` is another text.
        """
        from placeopt.views.frames import result_frame

        return result_frame(self.problem, self.solver, self.schedule, self.devices, rows, unit)

    def plot(self, kind: str = "gantt", path: str | PathLike[str] | None = None, *, title: str = "") -> Picture:
        """Draw a matplotlib Figure: "gantt", "memory", "graph" or "convergence".

        With a path, also write it to that file, as PNG, SVG or PDF by its suffix.

        Raises
        ------
        UsageError
            If the kind or the format is unknown, a schedule is missing, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        from placeopt.views.plots import SCHEDULE_KINDS, checked_kind, drawn

        checked_kind(kind, (*SCHEDULE_KINDS, "convergence"))
        return drawn(lambda: _picture(self, kind, title), path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schedule to a plan file (JSON), which `placeopt.read_plan` and the command line read.

        An existing file is replaced as a whole or not at all.

        Raises
        ------
        UsageError
            If there is no schedule.
        OSError
            If the file cannot be written.
        """
        write_plan(path, self)

    def certificate(
        self, *, time_limit: float | None = CERTIFYING, should_stop: Callable[[], bool] | None = None
    ) -> dict[str, Any]:
        """A proof of the bound, or that no schedule is feasible, which `placeopt.check_certificate` checks by itself.

        It is plain data for JSON. It is searched again, for at most `time_limit` seconds, or until `should_stop`
        returns true: the more time, the less of it relies on an engine.

        Raises
        ------
        UsageError
            If the result has neither a bound nor a proof of infeasibility, or an argument is wrong.
        """
        from placeopt.proving.certificates import certificate, infeasibility

        checked_number("time_limit", time_limit, positive=True)
        checked_call("should_stop", should_stop)
        stop = should_stop or (lambda: False)
        if self.termination is Termination.INFEASIBLE:
            return infeasibility(self.problem, self.solver, time_limit=time_limit, should_stop=stop)
        if self.bound is None or self.bound_source is None:
            raise UsageError(f"the result of {self.solver} has no lower bound to certify")
        schedule = self.schedule if self.feasible else None
        return certificate(
            self.problem, self.bound, self.bound_source, schedule, time_limit=time_limit, should_stop=stop
        )  # fmt: skip

    @property
    def fingerprint(self) -> str:
        """Hash of the problem."""
        return self.problem.fingerprint()

    @property
    def resolution(self) -> float:
        """Seconds per tick."""
        return float(self.problem.resolution)

    def to_dict(self, *, plan: bool = True) -> dict[str, Any]:
        """Return the result as plain data for JSON; `plan=False` omits placement and starts."""
        problem, schedule = self.problem, self.schedule
        document: dict[str, Any] = {
            "problem": problem.name,
            "fingerprint": self.fingerprint,
            "solver": self.solver,
            "settings": dict(self.settings),
            "seed": self.seed,
            "repeatable": self.repeatable,
            "varies_by": self.varies_by or None,
            "termination": self.termination.value,
            "feasible": self.feasible,
            "violations": [
                {"rule": violation.rule.value, "message": violation.message} for violation in self.violations
            ],
            "objective": number(self.objective),
            "objective_levels": None if self.values is None else [number(value) for value in self.values],
            "objective_name": str(problem.objective),
            "bound": number(self.bound),
            "gap": self.gap,
            "bound_source": self.bound_source,
            "resolution": self.resolution,
            "rounding": None if problem.rounding is None else problem.rounding.to_dict(),
            "efficiency": [found.to_dict() for found in problem.efficiency],
            "notes": list(problem.notes),
            "makespan": self.makespan,
            "pipeline": None if self.period is None else pipeline_data(problem, schedule),
            "message": self.message,
            "wall_time": asdict(self.wall_time),
            "process_memory": self.process_memory,
            "devices": [asdict(use) for use in self.devices],
            "resources": []
            if schedule is None or self.values is None
            else [use.to_dict() for use in stated_uses(problem, schedule)],
            "passes": None if self.passes is None else self.passes.to_dict(),
            "consolidation": None if self.consolidation is None else self.consolidation.to_dict(),
            "certificate": None if self.checked is None else self.checked.to_dict(),
            "stats": dict(self.stats),
            "versions": dict(self.versions),
        }
        if plan:
            document["placement"] = self.placement
            document["start"] = (
                None if schedule is None else dict(zip(problem.task_names, schedule.start.tolist(), strict=True))
            )
        return document


def pipeline_data(problem: Problem, schedule: Schedule | None) -> dict[str, Any] | None:
    """The period, the latency, the results per second and the stages of a pipeline; None for other problems."""
    if problem.pipeline is None or schedule is None:
        return None
    ticks = period(problem, schedule)
    return {
        "period": ticks,
        "latency": makespan(problem, schedule),
        "throughput": float(1 / (ticks * problem.resolution)) if ticks else None,
        "stages": [use.to_dict() for use in stage_uses(problem, schedule)],
    }


def relative_gap(objective: Value | None, bound: Value | None) -> float | None:
    """(objective - bound) / objective; 0 if both are 0, None if one is unknown."""
    if objective is None or bound is None:
        return None
    if objective == 0:
        return 0.0
    return float((objective - bound) / Fraction(objective))


def number(value: Value | None) -> int | float | None:
    """A value for JSON."""
    return value if value is None or isinstance(value, int) else float(value)


def with_schedule(result: Result, schedule: Schedule, values: tuple[Value, ...], makespan: int | None) -> Result:
    """The result with another schedule, which the verifier found feasible."""
    return replace(
        result,
        schedule=schedule,
        feasible=True,
        violations=(),
        values=values,
        makespan=makespan,
        devices=device_uses(result.problem, schedule),
    )


def result_facts(result: Result) -> list[tuple[str, str]]:
    """Labels and texts of the result: termination, passes, objective, bound, gap."""
    problem = result.problem
    metric = unit_metric(problem.objective)
    seconds = result.wall_time.solve or 0.0
    facts = [("termination", f"{MEANING[result.termination]} ({result.solver}, {seconds:.2f} s)")]
    if result.message:
        facts.append(("", result.message))
    if result.process_memory is not None and problem.n_tasks * problem.n_devices >= LARGE:
        facts.append(("memory", f"the process used {size_text(result.process_memory)} at most"))
    if result.varies_by:
        stopped = result.varies_by == "clock" and result.termination is Termination.INTERRUPTED
        facts.append(("repeatable", STOPPED if stopped else VARYING[result.varies_by]))
    if result.passes is not None and result.passes.names:
        facts.append(("passes", applied_text(result.passes)))
    if result.objective is not None:
        facts.append(("objective", f"{problem.objective} = {value_text(result.objective, problem, metric)}"))
        for level, value in enumerate((result.values or ())[1:], start=1):
            facts.append(("", f"then {value_text(value, problem, problem.objective.levels[level][0].metric)}"))
    if result.consolidation is not None and result.consolidation.before.devices > 1:
        facts.append(("consolidated", str(result.consolidation)))
    if result.period is not None and result.schedule is not None:
        facts += [(label, f"{value} {note}") for label, value, note in pipeline_facts(problem, result.schedule)]
    if result.schedule is not None and result.values is not None:
        used = use_facts(problem, result.schedule)
        facts += [("" if k else "resources", f"{name}: {part}, {text}") for k, (name, part, text) in enumerate(used)]
    facts += _portfolio_facts(result)
    if result.bound is not None:
        facts.append(("bound", f"{value_text(result.bound, problem, metric)}, proved by {result.bound_source}"))
    if result.gap is not None:
        proved = ", the schedule is optimal" if result.gap <= 0 and len(problem.objective.levels) == 1 else ""
        facts.append(("gap", f"{result.gap:.2%}{proved}"))
    if result.checked is not None:
        facts.append(("certificate", str(result.checked)))
    return facts + document_facts(problem)


def _portfolio_facts(result: Result) -> list[tuple[str, str]]:
    """The member of a portfolio that found the schedule, and the best values of all members."""
    if not result.stats.get("found by"):
        return []
    metric, resolution = unit_metric(result.problem.objective), result.problem.resolution
    entries = [entry for entry in result.stats.get("members", ()) if entry["value"] is not None]
    shown = [
        f"{entry['name']} {amount_text(entry['value'], metric, resolution, ticks=False)} in {entry['seconds']:.2f} s"
        for entry in sorted(entries, key=lambda entry: float(entry["value"]))[:MEMBERS]
    ]
    more = len(entries) - len(shown)
    shown += [f"{more} more in --json"] if more > 0 else []
    return [("found by", visible(str(result.stats["found by"]))), ("members", "; ".join(shown))]


def verdict_lines(result: Result) -> list[str]:
    """The verdict of the verifier, with the first violations."""
    lines = [verdict_text(result.feasible, len(result.violations))]
    lines += map(str, result.violations[:SHOWN])
    if len(result.violations) > SHOWN:
        lines.append(f"and {len(result.violations) - SHOWN:,} more")
    return lines


def _picture(result: Result, kind: str, title: str) -> Picture:
    from placeopt.views.plots import draw_schedule

    problem, bound = result.problem, result.bound
    infeasible = " (infeasible)" if result.feasible is False else ""
    title = title or f"{problem.name or 'problem'}, by {result.solver}{infeasible}"
    if kind != "convergence":
        in_ticks = bound is not None and problem.objective.leading_metric in ("makespan", "period")
        return draw_schedule(problem, result.schedule, kind, title=title, bound=float(bound or 0) if in_ticks else None)
    from placeopt.views.plots.convergence import course_of, draw_convergence

    reported = [(point.elapsed, point.objective, point.bound) for point in result.progress]
    end = (result.wall_time.solve or 0.0, result.objective if result.feasible else None, bound)
    objective = str(problem.objective)
    course = course_of(problem.name, result.solver, reported, end, objective=objective, resolution=result.resolution)
    return draw_convergence([course], title=title)


def _text(result: Result) -> str:
    """The text of `repr`."""
    words = [result.termination.value]
    if result.objective is not None:
        metric = unit_metric(result.problem.objective)
        words.append(f"{result.problem.objective} {value_text(result.objective, result.problem, metric, ticks=False)}")
    if result.gap is not None:
        words.append(f"gap {result.gap:.2%}")
    words.append({None: "no schedule", True: "feasible", False: "not feasible"}[result.feasible])
    return f"<Result of {result.solver} on {visible(result.problem.name) or 'problem'}: {', '.join(words)}>"


def _summary(result: Result) -> str:
    """The text of `print`."""
    facts = result_facts(result)
    wide = max(len(label) for label, _ in facts)
    lines = [problem_line(result.problem), *(f"{label:<{wide}}  {text}".rstrip() for label, text in facts)]
    if result.devices:
        grid = device_grid(result)
        lines += grid.lines()
    return "\n".join([*lines, *verdict_lines(result)])


def _html(result: Result) -> str:
    """The HTML of notebooks."""
    parts = [facts_table(result_facts(result))]
    if result.devices:
        grid = device_grid(result)
        order = list(range(len(grid.rows)))
        if result.period is None:
            order.sort(key=lambda d: -result.devices[d].busy)
        parts.append(grid_table(grid.headers, [grid.rows[k] for k in sorted(order[:SHOWN])], left=grid.left))
        if len(order) > SHOWN:
            less = "" if result.period is not None else " that are less busy"
            parts.append(note(f"and {counted(len(order) - SHOWN, 'device')}{less}"))
    return framed(problem_line(result.problem), *parts, *map(note, verdict_lines(result)))


def device_grid(result: Result) -> Grid:
    """The table of devices; for a pipeline, that of its stages."""
    if result.period is not None and result.schedule is not None:
        return stage_grid(result.problem, result.schedule)
    cells = (device_cells(use, result.makespan or 0, result.problem.resolution) for use in result.devices)
    return Grid(DEVICE_HEADERS, tuple(cells), left=2)
