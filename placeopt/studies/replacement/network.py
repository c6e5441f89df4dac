"""Build the problem of a changed network from the old problem and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.errors import SpecError, UsageError, in_file_order
from placeopt.io.compiler import Compilation, begin_compilation, document_of
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.document import Document, Files, NamedFiles
from placeopt.io.files import StrPath
from placeopt.io.plan import read_plan
from placeopt.io.spec import CurrentSpec, NetworkFile, Spec
from placeopt.io.validation import validate
from placeopt.model.arrays import Int, checked_number
from placeopt.model.building import with_changes
from placeopt.model.objective import GONE, IN_TICKS, relocation_ticks, shared_out
from placeopt.model.problem import Metric, Objective, Problem, Term
from placeopt.model.schedule import Schedule

FEWEST = 1e-6
"""Minimum number of runs of a placement; relocation is weighted by its inverse, which must not become too large."""

Source = StrPath | Mapping[str, Any] | Spec
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
    return begin_compilation(document_of(problem), files=files)


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
