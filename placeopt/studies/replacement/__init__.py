"""Move an existing plan to a changed network at minimum cost.

Devices may be removed, added or changed. Tasks stay on their devices unless moving them pays off: the objective
includes the cost of moving, divided by the runs until the next change (`placeopt.model.objective`). The answer is
never worse than keeping every task that can stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from placeopt.bounding.quick.classes import by_group
from placeopt.errors import InternalError, SpecError, UsageError, counted, in_file_order
from placeopt.io.compiler import Compilation, begin_compilation, document_of
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.document import Document, Files, NamedFiles
from placeopt.io.files import StrPath
from placeopt.io.plan import read_plan
from placeopt.io.spec import CurrentSpec, NetworkFile, Spec
from placeopt.io.validation import validate
from placeopt.model.arrays import Bool, Int, checked_number
from placeopt.model.building import simplest, with_changes
from placeopt.model.objective import GONE, IN_TICKS, METRICS, Value, relocation_ticks, shared_out, simplified
from placeopt.model.period import period
from placeopt.model.problem import Metric, Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.orchestration.pipeline import solve
from placeopt.orchestration.result import Result, number, with_schedule
from placeopt.protocol import Termination
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime
from placeopt.verifier import verify

FEWEST = 1e-6
"""Minimum number of runs of a placement; relocation is weighted by its inverse, which must not become too large."""

Source = StrPath | Mapping[str, Any] | Spec | Document
"""A problem file, or a document made in code."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A problem on a changed network."""

    problem: Problem  # the tasks on the present devices; relocation is part of its objective
    current: Int  # (n,) the device of each task; GONE for a new task or a removed device
    moved: Int  # (n,) bytes that move with each task
    before: tuple[str, ...]  # names of the old devices
    where: Mapping[str, str]  # the old device of each task that had one, by names
    start: Int | None  # (n,) start ticks in the old plan, if known


def changed_problem(
    problem: Source | Problem,
    plan: StrPath | Schedule | Mapping[str, str],
    devices: StrPath | Mapping[str, Any] | Problem,
    runs: float | Fraction | None = None,
    files: Files | None = None,
) -> Changed:
    """Return the problem of a changed network; see `placeopt.studies.replacement.replace`."""
    if runs is not None:
        checked_number("runs", float(runs), positive=True)
        if runs < FEWEST:
            raise UsageError(f"runs is {runs}; expected at least {FEWEST}: with fewer, moving a task never pays off")
        runs = Fraction(str(runs))
    if isinstance(problem, Problem) and isinstance(devices, Problem):
        return _on_problem(problem, devices, plan, runs)
    if isinstance(problem, Problem) or isinstance(devices, Problem):
        raise UsageError(
            "replace: a compiled problem has no durations on other devices; expected two documents, or two compiled "
            "problems"
        )
    return _on_network(_opened(problem, files), devices, plan, runs)


def _opened(problem: Source, files: Files | None) -> Compilation:
    """Start the compilation of a problem."""
    if isinstance(problem, Spec):
        document = Document(problem.model_dump(by_alias=True, warnings=False))
        return Compilation(problem, document, (), NamedFiles.of(document, allowed=files))
    return begin_compilation(problem if isinstance(problem, Document) else document_of(problem), files=files)


def _on_network(
    before: Compilation,
    network: StrPath | Mapping[str, Any],
    plan: StrPath | Schedule | Mapping[str, str],
    runs: Fraction | None,
) -> Changed:
    """Return the tasks of one document on the devices of another, with relocation from their present devices."""
    old = before.problem()
    where, start = _where(plan, old)
    document = document_of(network)
    keys = document.data if isinstance(document.data, dict) else {}
    section = next((key for key in ("tasks", "graph") if key in keys), None)
    if section is not None and "placeopt_plan" not in keys:
        message = "this looks like a problem or graph file, expected a file with devices, and perhaps links"
        raise SpecError([document.issue(message, (section,), at_key=True)])
    checked = validate(document, NetworkFile)
    if checked.model is None:
        raise SpecError(in_file_order(checked.issues))
    spec, now = before.spec, checked.model
    present = DeviceIndex(now.devices, Issues(Document({})), complete=False).devices
    names = {device.name for device in present}
    current: dict[str, Any] = {"placement": {task: device for task, device in where.items() if device in names}}
    if runs is not None:
        current["runs_before_next_change"] = runs
    objective = with_relocation(
        Objective(tuple(tuple(Term(metric, weight) for metric, weight in level.items()) for level in spec.objective))
    )
    changed = spec.model_copy(
        update={
            "operations": {**spec.operations, **now.operations},
            "devices": now.devices,
            "links": spec.links if now.links is None else now.links,
            "current": (spec.current or CurrentSpec()).model_copy(update=current),
            "objective": [{term.metric: term.weight for term in level} for level in objective.levels],
        }
    )
    former = DeviceIndex(spec.devices, Issues(Document({}))).references
    after = Compilation(changed, before.document, checked.issues, before.named, network=document, former=former)
    problem = after.problem()
    return Changed(problem, _places(problem, where), after.current.moved, old.device_names, where, start)


def _on_problem(
    before: Problem, after: Problem, plan: StrPath | Schedule | Mapping[str, str], runs: Fraction | None
) -> Changed:
    """Return a compiled problem with relocation from the devices in another one; resident memory moves."""
    if before.task_names != after.task_names:
        raise UsageError("replace: the changed problem has different tasks; expected the same tasks on other devices")
    where, start = _where(plan, before)
    current = _places(after, where)
    startup = np.zeros((after.n_tasks, after.n_devices), dtype=np.int64)
    links = after.latency, after.byte_ticks_num, after.byte_ticks_den
    served = after.runs_before_next_change if runs is None else runs
    stated = with_relocation(shared_out(after.objective, 1 / after.runs_before_next_change))
    problem = with_changes(
        after,
        relocation=relocation_ticks(current, after.resident, startup, *links),
        runs_before_next_change=served,
        objective=shared_out(stated, served),
    )
    return Changed(problem, current, after.resident, before.device_names, where, start)


def with_relocation(objective: Objective) -> Objective:
    """Add relocation to the first level of an objective, weighted like the times there, unless it is already included.

    If that level contains metrics that are not times, this is a UsageError.
    """
    if "relocation" in objective.metrics:
        return objective
    first, *others = objective.levels
    strange = [term.metric for term in first if term.metric not in IN_TICKS]
    if strange:
        raise UsageError(
            f"replace: relocation is a time, but {strange[0]} is not; state the weight of relocation in the objective "
            f"of the problem, such as {{{strange[0]}: 1, relocation: 0.5}}"
        )
    moving: Metric = "relocation"
    weight = max(term.weight for term in first)
    return Objective(((*first, Term(moving, weight)), *others))


def _where(plan: StrPath | Schedule | Mapping[str, str], problem: Problem) -> tuple[dict[str, str], Int | None]:
    """Return the device of each task by names, and all starts (n,) if they are known."""
    if isinstance(plan, Mapping):
        named = (("task", list(plan), problem.task_names), ("device", list(plan.values()), problem.device_names))
        for what, names, known in named:
            wrong = next((name for name in names if name not in known), None)
            if wrong is not None:
                raise UsageError(f'replace: the problem has no {what} "{wrong}", which the placement names')
        return dict(plan), None
    schedule = plan if isinstance(plan, Schedule) else read_plan(plan, problem).schedule
    wrong_size = len(schedule.device) != problem.n_tasks or len(schedule.start) != problem.n_tasks
    if wrong_size or (schedule.device < 0).any() or (schedule.device >= problem.n_devices).any():
        raise UsageError("replace: the schedule does not fit this problem; expected a device for each of its tasks")
    homes = [problem.device_names[d] for d in schedule.device.tolist()]
    return dict(zip(problem.task_names, homes, strict=True)), schedule.start


def _places(problem: Problem, where: Mapping[str, str]) -> Int:
    place = {name: d for d, name in enumerate(problem.device_names)}
    return np.array([place.get(where.get(task, ""), GONE) for task in problem.task_names], dtype=np.int64)


__all__ = ["Move", "Replacement", "Stay", "changed_problem", "replace", "replaced"]

Why = Literal["new", "gone", "barred", "chosen"]


@dataclass(frozen=True, slots=True)
class Move:
    """A task that changes its device."""

    task: str
    source: str | None
    target: str
    """Names of the task and of the devices; source is None for a new task."""
    bytes: int
    """Bytes sent over the link; 0 if the old device no longer exists."""
    ticks: int
    """Duration of the move, including startup."""
    why: Why
    """new: the task had no device. gone: its device was removed. barred: its device may no longer run it or a task of
    its group. chosen: moving pays off."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A plan on a changed network.

    Attributes
    ----------
    problem
        The tasks on the present devices, with relocation as part of the objective.
    result
        The verified result.
    before
        The old device of each task that had one, by names.
    gone, new
        Devices that were removed, and devices that were added.
    moves
        The tasks that change their device, in the problem's order; empty without a schedule.
    stay
        The alternative that moves only the tasks that cannot stay.
    """

    problem: Problem
    result: Result
    before: Mapping[str, str]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    moves: tuple[Move, ...]
    stay: Stay

    def __repr__(self) -> str:
        return f"<Replacement: {counted(len(self.moves), 'move')}, {self.result!r}>"

    @property
    def relocation(self) -> int | None:
        """Ticks of all moves in sequence; None without a schedule."""
        return None if self.result.schedule is None else sum(move.ticks for move in self.moves)

    @property
    def saved(self) -> Fraction | int | None:
        """Reduction of the objective's first level compared with staying; None if either is unknown."""
        ours, theirs = self.result.objective, self.stay.values
        return None if ours is None or theirs is None or not self.result.feasible else theirs[0] - ours

    @property
    def run_ticks(self) -> tuple[int | None, int | None]:
        """Ticks that each run adds, with the moves and when staying: the makespan, or the period of a pipeline."""
        stay = self.stay
        if self.problem.pipeline is None:
            return self.result.makespan, stay.makespan
        return self.result.period, None if stay.schedule is None else period(self.problem, stay.schedule)

    @property
    def pays_after(self) -> int | None:
        """Number of runs after which a shorter run has paid for the chosen moves; None if never or unknown."""
        ours, theirs = self.run_ticks
        if ours is None or theirs is None or self.stay.schedule is None:
            return None
        shorter = theirs - ours
        dearer = (self.relocation or 0) - METRICS["relocation"](self.problem, self.stay.schedule)
        if dearer <= 0:
            return 0 if shorter >= 0 else None
        return -(-dearer // shorter) if shorter > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the result and the moves as plain data, ready for JSON."""
        stay = self.stay
        return self.result.to_dict() | {
            "runs_before_next_change": number(simplified(self.problem.runs_before_next_change)),
            "relocation": self.relocation,
            "devices_gone": list(self.gone),
            "devices_new": list(self.new),
            "moves": [
                {"task": m.task, "from": m.source, "to": m.target, "bytes": m.bytes, "ticks": m.ticks, "why": m.why}
                for m in self.moves
            ],
            "stay": {
                "feasible": stay.schedule is not None,
                "reason": stay.reason,
                "forced": [self.problem.task_names[i] for i in stay.forced],
                "objective": None if stay.values is None else number(stay.values[0]),
                "objective_levels": None if stay.values is None else [number(value) for value in stay.values],
                "makespan": stay.makespan,
            },
            "saved": number(self.saved),
            "pays_after": self.pays_after,
        }


def replace(
    problem: Source | Problem,
    plan: StrPath | Schedule | Mapping[str, str],
    devices: StrPath | Mapping[str, Any] | Problem,
    *,
    solver: str = "auto",
    runs: float | Fraction | None = None,
    files: Files | None = None,
    **options: Any,
) -> Replacement:
    """Move a plan to a changed network at minimum cost.

    Parameters
    ----------
    problem
        The problem of the plan: a file, a document or a Spec. A compiled Problem requires that `devices` is a Problem
        too, since it does not contain durations on other devices.
    plan
        A plan file, a schedule, or a mapping from task names to device names; tasks missing in the mapping are new.
    devices
        The present devices, with `links` and `operations` where these changed: a file or a document. Devices of the
        same name are the same device. Or a Problem with the same tasks; then the resident memory of a task is moved.
    solver
        A solver that supports the objective including relocation. A solver with warm start starts from staying.
    runs
        Number of runs that the new placement serves; by default as the problem states, or one.
    files
        Which files the problem's document may name, as in `placeopt.load`. By default "any" if it is a file, "none"
        if it was made in code.
    **options
        Options of `placeopt.solve`: time_limit, gap_limit, seed, workers, passes, bound_time, on_progress,
        should_stop, and settings of the solver.

    Raises
    ------
    SpecError
        If a document is wrong, or a task has no device on the changed network; lists every issue.
    PlanError
        If the plan file is wrong.
    UsageError
        If an argument is invalid.
    UnsupportedError
        If the solver does not support the objective.
    """
    find_solver(solver)
    return replaced(changed_problem(problem, plan, devices, runs, files), solver, **options)


def replaced(changed: Changed, solver: str, **options: Any) -> Replacement:
    """Solve a changed problem; see `replace`."""
    problem = changed.problem
    stay = staying(problem, changed.current, changed.start)
    initial = stay.schedule if find_solver(solver).info.warm_start else None
    result = _never_worse(solve(problem, solver, initial=initial, consolidate=0, **options), stay)
    return Replacement(
        problem=problem,
        result=result,
        before=changed.where,
        gone=tuple(name for name in changed.before if name not in problem.device_names),
        new=tuple(name for name in problem.device_names if name not in changed.before),
        moves=_moves(changed, stay, result.schedule),
        stay=stay,
    )


def _never_worse(result: Result, stay: Stay) -> Result:
    """Return the result, with the schedule that stays unless the solver's schedule is better."""
    if stay.schedule is None or stay.values is None:
        return result
    if result.feasible and result.values is not None and result.values < stay.values:
        return result
    alike = bool(result.feasible) and result.values == stay.values
    if not alike and result.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
        claim = f"{result.solver} claims that the changed problem is {result.termination.value}"
        raise InternalError(f"{claim}, but leaving the tasks on their devices is feasible and better")
    note = "" if alike else f"{result.solver} found nothing better than moving only the tasks that cannot stay"
    message = "; ".join(part for part in (result.message, note) if part)
    return with_schedule(with_(result, message=message), stay.schedule, stay.values, stay.makespan)


def _moves(changed: Changed, stay: Stay, schedule: Schedule | None) -> tuple[Move, ...]:
    problem, where, forced = changed.problem, changed.where, frozenset(stay.forced)
    found = []
    for i, d in enumerate([] if schedule is None else schedule.device.tolist()):
        source = int(changed.current[i])
        if source == d:
            continue
        name = problem.task_names[i]
        why: Why = "chosen"
        if source == GONE:
            why = "gone" if name in where else "new"
        elif i in forced:
            why = "barred"
        moved = 0 if source == GONE else int(changed.moved[i])
        found.append(Move(name, where.get(name), problem.device_names[d], moved, int(problem.relocation[i, d]), why))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Stay:
    """The best known schedule that moves only the tasks that cannot stay, with its value in each level and makespan."""

    forced: tuple[int, ...]  # tasks that are new, or whose device is gone or may no longer run them or their group
    schedule: Schedule | None = None
    values: tuple[Value, ...] | None = None
    makespan: int | None = None
    reason: str = ""  # why there is no schedule


def staying(problem: Problem, current: Int, start: Int | None) -> Stay:
    """Return the better schedule of a fast heuristic and, if no task must move, of the old order given by `start` (n,).

    The heuristic places the tasks that cannot stay. `current` (n,) is the device of each task, or GONE.
    """
    kept = _kept(problem, current)
    free = np.asarray(~kept.any(axis=1))
    forced = tuple(np.flatnonzero(free).tolist())
    narrowed = with_changes(simplest(problem), feasible=np.where(free[:, None], problem.feasible, kept))
    found = solve(narrowed)
    candidates = [found.schedule]
    if start is not None and not forced:
        candidates.insert(0, retime(problem, Schedule(current, start)))
    best, reason = Stay(forced), found.message
    for schedule in candidates:
        report = None if schedule is None else verify(problem, schedule)
        if report is not None and report.violations:
            reason = reason or report.violations[0].message
        elif report is not None and (best.values is None or (report.objective or ()) < best.values):
            best = Stay(forced, schedule, report.objective, report.makespan)
    return best if best.schedule is not None else Stay(forced, reason=reason or "no such schedule was found")


def _kept(problem: Problem, current: Int) -> Bool:
    """Return (n, m) whether the task can stay on the device with its whole group; no device if it cannot stay."""
    kept = np.zeros((problem.n_tasks, problem.n_devices), dtype=np.bool_)
    here = np.flatnonzero(current != GONE)
    kept[here, current[here]] = problem.feasible[here, current[here]]
    return np.asarray(by_group(problem, kept, np.logical_and)[problem.group])
