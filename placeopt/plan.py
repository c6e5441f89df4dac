"""Plan files: a schedule with names instead of numbers, for other tools to read and people to edit.

    {
      "placeopt_plan": 1,
      "problem": "five-node",
      "fingerprint": "0f3c...",
      "objective": [15],
      "tasks": {"n1": {"device": "core0", "start": 0}, ...},
      "transfers": [{"producer": "n1", "consumer": "n2", "start": 4}, ...]
    }

Starts are ticks. `transfers` is there only under port contention. YAML with the same keys is read too.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from placeopt.document import Document, read_document
from placeopt.errors import DocumentError, Issue, PlanError, listing, suggestion
from placeopt.ir import Int, Problem
from placeopt.objective import Value
from placeopt.schedule import Schedule, Transfers, edge_transfers
from placeopt.validation import validate


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class _PlacedTask(_Model):
    device: str
    start: int = Field(ge=-(2**62), le=2**62)


class _StartedTransfer(_Model):
    producer: str
    consumer: str
    start: int = Field(ge=-(2**62), le=2**62)


class PlanFile(_Model):
    """The contents of a plan file."""

    placeopt_plan: Literal[1]
    problem: str = ""
    fingerprint: str | None = None
    solver: str | None = None
    objective: list[int | float] | None = None
    tasks: dict[str, _PlacedTask]
    transfers: list[_StartedTransfer] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule read from a file, and what the file claims about it."""

    schedule: Schedule
    claim: tuple[Value, ...] | None
    """The objective that the file states, one value a level; None if it states none."""
    fingerprint: str | None
    """Of the problem that the plan was made for; None if the file does not say."""


def plan_document(
    problem: Problem, schedule: Schedule, *, solver: str | None = None, objective: Sequence[Value] | None = None
) -> dict[str, Any]:
    """The plan file of a schedule, as plain data."""
    document: dict[str, Any] = {
        "placeopt_plan": 1,
        "problem": problem.name,
        "fingerprint": problem.fingerprint(),
    }
    if solver is not None:
        document["solver"] = solver
    if objective is not None:
        document["objective"] = [value if isinstance(value, int) else float(value) for value in objective]
    devices, starts = schedule.device.tolist(), schedule.start.tolist()
    document["tasks"] = {
        name: {"device": problem.device_names[device], "start": start}
        for name, device, start in zip(problem.task_names, devices, starts, strict=True)
    }
    if schedule.transfers is not None:
        document["transfers"] = [
            {
                "producer": problem.task_names[problem.edge_source[edge]],
                "consumer": problem.task_names[problem.edge_target[edge]],
                "start": start,
            }
            for edge, start in zip(schedule.transfers.edge.tolist(), schedule.transfers.start.tolist(), strict=True)
        ]
    return document


def write_plan(path: str | Path, document: dict[str, Any]) -> None:
    """Write a plan file; a file that was there before is replaced whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    text = json.dumps(document, indent=1) + "\n"
    target = Path(path)
    if target.exists() and not target.is_file():  # a pipe or a device
        target.write_text(text, encoding="utf-8")
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except OSError:
        os.unlink(temporary)
        raise


def read_plan(path: str | Path, problem: Problem) -> Plan:
    """The plan in a file, for a problem.

    A task placed on a device that the problem forbids, or started too early, is no error here: the verifier says so.

    Raises
    ------
    PlanError
        If the file is no plan, or names tasks, devices or edges that the problem does not have; lists every issue.
    """
    try:
        document = read_document(path)
    except DocumentError as error:
        raise PlanError(error.issues) from None
    checked = validate(document, PlanFile)
    if checked.model is None or checked.issues:
        raise PlanError(checked.issues)
    return _resolve(checked.model, document, problem)


def _resolve(plan: PlanFile, document: Document, problem: Problem) -> Plan:
    issues: list[Issue] = []
    task_of = {name: row for row, name in enumerate(problem.task_names)}
    device_of = {name: d for d, name in enumerate(problem.device_names)}
    device: Int = np.full(problem.n_tasks, -1, dtype=np.int64)
    start: Int = np.zeros(problem.n_tasks, dtype=np.int64)

    def unknown(what: str, name: str, known: Sequence[str], path: tuple[str | int, ...], at_key: bool) -> None:
        near = suggestion(name, known) if len(known) < 5000 else ""
        hint = near or f"; known are {listing(known)}"
        issues.append(document.issue(f'the problem has no {what} "{name}"{hint}', path, at_key=at_key))

    for name, placed in plan.tasks.items():
        row = task_of.get(name)
        if row is None:
            unknown("task", name, problem.task_names, ("tasks", name), at_key=True)
            continue
        place = device_of.get(placed.device)
        if place is None:
            unknown("device", placed.device, problem.device_names, ("tasks", name, "device"), at_key=False)
            continue
        device[row], start[row] = place, placed.start
    missing = [name for name in problem.task_names if name not in plan.tasks]
    if missing:
        issues.append(
            document.issue(f"{len(missing)} of the problem's tasks are missing: {listing(missing)}", ("tasks",))
        )
    transfers = None
    if plan.transfers is not None and not issues:
        transfers = _transfers(plan.transfers, document, problem, device, issues)
    if issues:
        raise PlanError(issues)
    claim = None if plan.objective is None else tuple(_exact(value) for value in plan.objective)
    return Plan(Schedule(device, start, transfers), claim, plan.fingerprint)


def _transfers(
    rows: Sequence[_StartedTransfer], document: Document, problem: Problem, device: Int, issues: list[Issue]
) -> Transfers:
    edge_of = {
        (problem.task_names[a], problem.task_names[b]): edge
        for edge, (a, b) in enumerate(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
    }
    stands_for = edge_transfers(problem, device)
    edges: list[int] = []
    starts: list[int] = []
    for place, row in enumerate(rows):
        edge = edge_of.get((row.producer, row.consumer))
        if edge is None:
            message = f"the problem has no edge {row.producer} -> {row.consumer}"
            issues.append(document.issue(message, ("transfers", place)))
            continue
        # Any consumer that a shared transfer serves may name it; one that never moves stays for the verifier to find.
        edges.append(int(stands_for[edge]) if stands_for[edge] >= 0 else edge)
    return Transfers(np.array(edges, dtype=np.int64), np.array(starts, dtype=np.int64))


def _exact(value: int | float) -> Value:
    if isinstance(value, int):
        return value
    return int(value) if value.is_integer() else Fraction(value)
