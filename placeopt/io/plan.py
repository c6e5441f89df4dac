"""Plan files: a schedule with names instead of numbers, for other tools to read and people to edit.

    {
      "placeopt_plan": 1,
      "problem": "five-node",
      "fingerprint": "0f3c...",
      "objective": [15],
      "tasks": {"n1": {"device": "core0", "start": 0}, ...},
      "transfers": [{"producer": "n1", "consumer": "n2", "start": 4}, ...]
    }

A problem with addresses has `"offset": {"resident": 0, "output": 4096}` at each task: bytes of its buffers.

Starts are ticks. `transfers` is there only under port contention and in pipelines. YAML with the same keys is read too.

A pipeline has more keys:

      "tasks": {"n1": {"device": "gpu0", "start": 0, "stage": 0}, ...},
      "transfers": [{"producer": "n1", "consumer": "n2", "start": 5, "sent": 4}, ...],
      "replicas": {"gpu0": ["gpu1"]},
      "recompute": ["gpu0"],
      "synchronise": {"gpu0": 9}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from json.encoder import encode_basestring_ascii
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from placeopt.errors import (
    DocumentError,
    Issue,
    PlanError,
    Search,
    UsageError,
    counted,
    in_file_order,
    listing,
    meaning,
    visible,
)
from placeopt.io.document import Document, read_document
from placeopt.io.files import StrPath, write_whole
from placeopt.io.scalars import Version, Whole
from placeopt.io.validation import validate
from placeopt.model.arrays import Int
from placeopt.model.objective import Value, simplified
from placeopt.model.problem import Problem, check_problem
from placeopt.model.schedule import BUFFERS, Offsets, Schedule, Stages, Transfers, check_schedule, edge_transfers
from placeopt.model.stages import trivial_stages
from placeopt.model.units import exact, is_number, shown

_LATEST = 2**62


def _exact(value: Any) -> Value:
    """A number as stated: 15, 0.7, or "22/7" where no decimal is exact."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,400}/[1-9][0-9]{0,400}", value):
        return simplified(Fraction(value))
    if not is_number(value):
        raise ValueError(f"expected a number, got {shown(value)}")
    return simplified(exact(value))


def _written(value: Value) -> int | float | str:
    """A number that `_exact` reads as the same value."""
    if isinstance(value, int):
        return value
    near = float(value)
    return near if _exact(near) == value else f"{value.numerator}/{value.denominator}"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True, arbitrary_types_allowed=True)


Tick = Annotated[Whole, Field(ge=-_LATEST, le=_LATEST)]


class _TaskOffsets(_Model):
    resident: Tick | None = None
    output: Tick | None = None
    scratch: Tick | None = None


class _PlacedTask(_Model):
    device: str
    start: Tick
    stage: Tick | None = None
    offset: _TaskOffsets | None = None


class _StartedTransfer(_Model):
    producer: str
    consumer: str
    start: Tick
    sent: Tick | None = None


class PlanFile(_Model):
    """The contents of a plan file."""

    placeopt_plan: Version
    problem: str = ""
    fingerprint: str | None = None
    solver: str | None = None
    objective: list[Annotated[Value, PlainValidator(_exact)]] | None = None
    tasks: dict[str, _PlacedTask]
    transfers: list[_StartedTransfer] | None = None
    replicas: dict[str, list[str]] | None = None
    recompute: list[str] | None = None
    synchronise: dict[str, Tick] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule read from a file, and what the file claims about it."""

    schedule: Schedule
    claim: tuple[Value, ...] | None
    """The objective that the file states, one value a level; None if it states none."""
    fingerprint: str | None
    """Of the problem that the plan was made for; None if the file does not say."""

    def __repr__(self) -> str:
        claim = "no objective" if self.claim is None else f"objective {', then '.join(map(str, self.claim))}"
        return f"<Plan of {counted(self.schedule.device.size, 'task')}: {claim}, fingerprint {self.fingerprint}>"


def plan_document(
    problem: Problem, schedule: Schedule, *, solver: str | None = None, objective: Sequence[Value] | None = None
) -> dict[str, Any]:
    """The plan file of a schedule as plain data, with names instead of indices; starts are ticks."""
    check_schedule("plan_document", problem, schedule)
    document = _heading(problem, solver, objective)
    devices, starts = schedule.device.tolist(), schedule.start.tolist()
    document["tasks"] = {
        name: {"device": problem.device_names[device], "start": start}
        for name, device, start in zip(problem.task_names, devices, starts, strict=True)
    }
    document |= _transfer_rows(problem, schedule)
    for name, offset in _offset_keys(problem, schedule):
        document["tasks"][name]["offset"] = offset
    if schedule.stages is not None:
        for entry, stage in zip(document["tasks"].values(), schedule.stages.number.tolist(), strict=True):
            entry["stage"] = stage
        document |= _team_keys(problem, schedule.stages)
    return document


def _heading(problem: Problem, solver: str | None, objective: Sequence[Value] | None) -> dict[str, Any]:
    """The keys before the tasks."""
    heading = {"placeopt_plan": 1, "problem": problem.name, "fingerprint": problem.fingerprint()}
    if solver is not None:
        heading["solver"] = solver
    if objective is not None:
        heading["objective"] = [_written(value) for value in objective]
    return heading


def _transfer_rows(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    """The key `transfers`, if the schedule has a table of them."""
    table = schedule.transfers
    if table is None:
        return {}
    rows: list[dict[str, Any]] = [
        {
            "producer": problem.task_names[problem.edge_source[edge]],
            "consumer": problem.task_names[problem.edge_target[edge]],
            "start": start,
        }
        for edge, start in zip(table.edge.tolist(), table.start.tolist(), strict=True)
    ]
    for row, sent in zip(rows, [] if table.sent is None else table.sent.tolist(), strict=False):
        row["sent"] = sent
    return {"transfers": rows}


def _offset_keys(problem: Problem, schedule: Schedule) -> Iterator[tuple[str, dict[str, int]]]:
    """The key `offset` of each task that has buffers, if the schedule has offsets."""
    if schedule.offsets is None:
        return
    places = {kind: getattr(schedule.offsets, kind).tolist() for kind in BUFFERS}
    for i, name in enumerate(problem.task_names):
        kinds = [kind for kind in BUFFERS if problem.buffer_bytes(kind)[i]]
        if kinds:
            yield name, {kind: places[kind][i] for kind in kinds}


def _team_keys(problem: Problem, stages: Stages) -> dict[str, Any]:
    """The keys for replicas and recomputation."""
    names, leader = problem.device_names, stages.leader.tolist()
    replicas: dict[str, list[str]] = {}
    for d, other in enumerate(leader):
        if d != other:
            replicas.setdefault(names[other], []).append(names[d])
    keys: dict[str, Any] = {}
    if replicas:
        keys["replicas"] = replicas
        keys["synchronise"] = {name: int(stages.synchronise[names.index(name)]) for name in replicas}
    if stages.recompute.any():
        keys["recompute"] = [names[d] for d in np.flatnonzero(stages.recompute).tolist()]
    return keys


class Planned(Protocol):
    """What `write_plan` needs of a `placeopt.Result`."""

    @property
    def problem(self) -> Problem: ...
    @property
    def schedule(self) -> Schedule | None: ...
    @property
    def solver(self) -> str: ...
    @property
    def values(self) -> tuple[Value, ...] | None: ...


def write_plan(path: StrPath, plan: Planned | Mapping[str, Any]) -> None:
    """Write a plan file; an existing file is replaced as a whole or not at all.

    Parameters
    ----------
    plan
        A `Result` with a schedule, or a document of `plan_document`.

    Raises
    ------
    UsageError
        If it is neither, or a document that `read_plan` would not read, or the result has no schedule.
    OSError
        If the file cannot be written.
    """
    if not isinstance(plan, Mapping):
        if not all(hasattr(plan, name) for name in ("problem", "schedule", "solver", "values")):
            what = type(plan).__name__
            raise UsageError(f"write_plan: the plan is a {what}; expected a Result, or a document of plan_document")
        if plan.schedule is None:
            raise UsageError(f"write_plan: the result of {plan.solver} has no schedule to write")
        write_whole(path, _result_text(plan.problem, plan.schedule, plan.solver, plan.values))
    else:
        checked = validate(Document(dict(plan)), PlanFile)
        if checked.issues:
            raise UsageError(f"write_plan: the document is not a plan: {checked.issues[0]}")
        try:
            text = _text(plan)
        except TypeError as error:  # such as numbers of NumPy
            raise UsageError(f"write_plan: the document cannot be written as JSON: {error}") from None
        write_whole(path, text)


def _result_text(problem: Problem, schedule: Schedule, solver: str, objective: Sequence[Value] | None) -> str:
    """The text of a plan file, the same as of its document; a million tasks take a tenth of the time."""
    if schedule.stages is not None or schedule.offsets is not None:
        return _text(plan_document(problem, schedule, solver=solver, objective=objective))
    check_schedule("write_plan", problem, schedule)
    on = [f'{{"device": {json.dumps(name)}, "start": ' for name in problem.device_names]
    names = map(encode_basestring_ascii, problem.task_names)
    rows = zip(names, schedule.device.tolist(), schedule.start.tolist(), strict=True)
    lines = [f"{name}: {on[device]}{start}}}" for name, device, start in rows]
    document = _heading(problem, solver, objective) | {"tasks": {}} | _transfer_rows(problem, schedule)
    return _text(document, lines)


def _text(plan: Mapping[str, Any], tasks: Sequence[str] = ()) -> str:
    """The text of a plan file, with one task or transfer per line; `tasks` are lines of tasks outside the document."""
    lines = []
    for key, value in plan.items():
        entries = list(tasks) if key == "tasks" else []
        if key == "tasks" and isinstance(value, Mapping):
            entries += [json.dumps({name: entry})[1:-1] for name, entry in value.items()]
        elif key == "transfers" and isinstance(value, list):
            entries = [json.dumps(row) for row in value]
        if entries:
            opening, closing = "{}" if key == "tasks" else "[]"
            text = ",\n  ".join(entries)
            lines.append(f" {json.dumps(key)}: {opening}\n  {text}\n {closing}")
        else:
            lines.append(f" {json.dumps({key: value})[1:-1]}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_plan(path: StrPath, problem: Problem) -> Plan:
    """The plan in a file, for a problem.

    A task placed on a device that the problem forbids, or started too early, is no error here: the verifier says so.

    Raises
    ------
    PlanError
        If the file is no plan, or names tasks, devices or edges that the problem does not have; lists every issue.
    """
    check_problem("read_plan", problem)
    try:
        document = read_document(path)
    except DocumentError as error:
        raise PlanError(error.issues) from None
    checked = validate(document, PlanFile)
    if checked.model is None:
        raise PlanError(in_file_order(checked.issues))
    reader = _Reader(checked.model, document, problem, list(checked.issues))
    schedule = reader.schedule()
    if reader.issues:
        raise PlanError(in_file_order(reader.issues))
    claim = checked.model.objective
    return Plan(schedule, None if claim is None else tuple(claim), checked.model.fingerprint)


class _Reader:
    """Looks up the names of a plan in its problem, and collects what is wrong."""

    def __init__(self, plan: PlanFile, document: Document, problem: Problem, issues: list[Issue]) -> None:
        self._plan, self._document, self._problem = plan, document, problem
        self.issues = issues
        self._search = Search()

    def schedule(self) -> Schedule:
        """The schedule, as far as it has no issues."""
        plan, problem = self._plan, self._problem
        tasks = {name: row for row, name in enumerate(problem.task_names)}
        devices = {name: d for d, name in enumerate(problem.device_names)}
        seen = {str(issue.path[1]) for issue in self.issues if issue.path[:1] == ("tasks",) and len(issue.path) > 1}
        device: Int = np.zeros(problem.n_tasks, dtype=np.int64)
        start: Int = np.zeros(problem.n_tasks, dtype=np.int64)
        if len(plan.tasks) > 1 and problem.n_tasks and not any(name in tasks for name in plan.tasks):
            of = f" of {shown(plan.problem)}" if plan.problem else ""
            ours = listing(problem.task_names)
            self._add(f"this plan{of} is for another problem: none of its tasks is among {ours}", ("tasks",))
            return Schedule(device, start)
        for name, placed in plan.tasks.items():
            if name not in tasks:
                seen.update(self._unknown("task", name, problem.task_names, ("tasks", name), at_key=True))
                continue
            seen.add(name)
            if placed.device not in devices:
                self._unknown("device", placed.device, problem.device_names, ("tasks", name, "device"))
                continue
            device[tasks[name]], start[tasks[name]] = devices[placed.device], placed.start
        missing = [name for name in problem.task_names if name not in seen]
        if missing and not any(issue.path == ("tasks",) for issue in self.issues):
            what = "a task of the problem is" if len(missing) == 1 else f"{len(missing)} tasks of the problem are"
            self._add(f"{what} missing: {listing(missing)}", ("tasks",))
        transfers = None if plan.transfers is None else self._transfers(plan.transfers, device)
        return Schedule(device, start, transfers, self._stages(device), self._offsets())

    def _offsets(self) -> Offsets | None:
        """The offsets of all buffers; None if the plan has none, but the tasks have bytes or need no addresses."""
        plan, problem = self._plan, self._problem
        needless = problem.alignment is not None and not any(problem.buffer_bytes(kind).any() for kind in BUFFERS)
        if self.issues or (not needless and all(task.offset is None for task in plan.tasks.values())):
            return None
        found = {kind: np.zeros(problem.n_tasks, dtype=np.int64) for kind in BUFFERS}
        for i, name in enumerate(problem.task_names):
            if (task := plan.tasks.get(name)) is None:
                continue
            for kind in BUFFERS:
                size, offset = int(problem.buffer_bytes(kind)[i]), getattr(task.offset, kind, None)
                if offset is not None:
                    found[kind][i] = offset
                elif size:
                    message = f"the {kind} of the task, {size} B, has no offset, which other buffers have"
                    self._add(message, ("tasks", name, "offset"))
        return Offsets(**found)

    def _stages(self, device: Int) -> Stages | None:
        """The stages of a pipeline; None if the plan has none."""
        plan, problem = self._plan, self._problem
        numbered = [name for name, task in plan.tasks.items() if task.stage is not None]
        if not numbered and not plan.replicas and not plan.recompute:
            return None
        names = {name: d for d, name in enumerate(problem.device_names)}
        trivial = trivial_stages(problem, device)
        number, leader, recompute, synchronise = (
            array.copy() for array in (trivial.number, trivial.leader, trivial.recompute, trivial.synchronise)
        )
        if numbered:
            for i, name in enumerate(problem.task_names):
                task = plan.tasks.get(name)
                if task is not None and task.stage is None:
                    self._add("the task has no stage, which other tasks have", ("tasks", name))
                elif task is not None and task.stage is not None:
                    number[i] = task.stage

        def find(name: str, path: tuple[str | int, ...], *, at_key: bool = False) -> int | None:
            if name not in names:
                self._unknown("device", name, problem.device_names, path, at_key=at_key)
            return names.get(name)

        served: dict[str, str] = {}
        for name, others in (plan.replicas or {}).items():
            first = find(name, ("replicas", name), at_key=True)
            for place, other in enumerate(others):
                path = ("replicas", name, place)
                if (replica := find(other, path)) is None:
                    continue
                if other == name or other in served:
                    mine, what = visible(other), visible(served.get(other, name))
                    self._add(f"{mine} already runs the tasks of {what}; expected another device", path)
                    continue
                served[other] = name
                if first is not None:
                    leader[replica] = first
        for place, name in enumerate(plan.recompute or []):
            if (d := find(name, ("recompute", place))) is not None:
                recompute[d] = 1
        for name, tick in (plan.synchronise or {}).items():
            if (d := find(name, ("synchronise", name), at_key=True)) is not None:
                synchronise[d] = tick
        return Stages(number, leader, recompute, synchronise)

    def _transfers(self, rows: Sequence[_StartedTransfer], device: Int) -> Transfers:
        problem = self._problem
        ends = zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)
        edge_of = {(problem.task_names[a], problem.task_names[b]): edge for edge, (a, b) in enumerate(ends)}
        stands_for = edge_transfers(problem, device)
        edges, starts, sent = [], [], []
        for place, row in enumerate(rows):
            edge = edge_of.get((row.producer, row.consumer))
            if edge is None:
                message = f"the problem has no edge {visible(row.producer)} -> {visible(row.consumer)}"
                self._add(message, ("transfers", place))
                continue
            # Any consumer that a shared transfer serves may name it; one that never moves the verifier will find.
            edges.append(int(stands_for[edge]) if stands_for[edge] >= 0 else edge)
            starts.append(row.start)
            sent.append(row.start if row.sent is None else row.sent)
        stated = any(row.sent is not None for row in rows)
        arrays = (np.array(each, dtype=np.int64) for each in ((edges, starts, sent) if stated else (edges, starts)))
        return Transfers(*arrays)

    def _unknown(
        self, what: str, name: str, known: Sequence[str], path: tuple[str | int, ...], *, at_key: bool = False
    ) -> tuple[str, ...]:
        """Report a name that the problem does not know; returns what was probably meant."""
        near = self._search.near_misses(what, name, known)
        hint = meaning(near) or f"; known are {listing(known)}"
        self._add(f"the problem has no {what} {shown(name)}{hint}", path, at_key=at_key)
        return near

    def _add(self, message: str, path: tuple[str | int, ...], *, at_key: bool = False) -> None:
        self.issues.append(self._document.issue(message, path, at_key=at_key))
