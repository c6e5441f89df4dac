"""Write profiles as fragments of a spec, and merge them into problems.

A profile file is a fragment of a problem file: `tasks` with durations and memory, and `links` with a bandwidth and a
latency. `apply_profile` merges it into a problem: each task takes the entry with its name, else the one with its `op`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from placeopt.bridges.profiling.estimates import DIGITS, Estimate, Profile, TransferModel
from placeopt.errors import SpecError, UsageError, listing
from placeopt.io.compiler import compile_spec, document_of
from placeopt.io.document import Document, NamedFiles
from placeopt.io.files import check_input
from placeopt.io.spec import ANY, GraphFile, LinksSpec, Spec, Tasks
from placeopt.io.validation import valid
from placeopt.model.units import TIME, QuantityError, parse, seconds_text


class ProfileFile(GraphFile):
    """The format of a profile file."""

    tasks: Tasks = Field(default_factory=dict)
    """Duration, memory and perhaps output of each measured operator."""
    links: LinksSpec | None = None
    """Fitted bandwidth and latency."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A problem merged with a profile, and statistics of the merge."""

    document: dict[str, Any]
    by_name: int
    """Number of tasks that took the entry with their name."""
    by_op: int
    """Number of tasks that took the entry with their `op`."""
    left: tuple[str, ...]
    """Unchanged tasks, without measurements."""
    unused: tuple[str, ...]
    """Operators that match no task."""
    restricted: tuple[str, ...]
    """Tasks stated by `flops` or `bytes` before, which now run only on the devices where they were measured."""
    estimated: tuple[str, ...]
    """Tasks stated by `flops` or `bytes` before, which keep the times by work on devices without measurements."""
    uniform: tuple[str, ...]
    """Types of devices that now have the same times, since the profile states no device; empty for a single type."""
    unused_share: float | None = None
    """Share of these operators in the time of all operators of the profile; None if it is zero or not stated."""


def profile_document(profile: Profile | None, transfers: TransferModel | None = None) -> dict[str, Any]:
    """Return the profile file of fitted operators and transfers, as plain data.

    A task's `time` is by device if the measurements state devices. Its memory, if measured, is the largest of all
    devices; measured `bytes` include the output, which is therefore subtracted.
    """
    document: dict[str, Any] = {"placeopt": 1}
    if profile is not None:
        document["description"] = f"Operators at batch size {profile.batch}."
        document["source"] = f"Measured: {profile.file}" if profile.file else "Measured."
    if transfers is not None:
        document["links"] = {"default": transfers.link()}
    if profile is not None:
        of_operator: dict[str, list[Estimate]] = {}
        for estimate in profile.estimates:
            of_operator.setdefault(estimate.operator, []).append(estimate)
        document["tasks"] = {operator: _task(found) for operator, found in of_operator.items()}
    return document


def _task(estimates: Sequence[Estimate]) -> dict[str, Any]:
    """Return the task entry of an operator measured on one or several devices."""
    times = {estimate.device: seconds_text(estimate.best.seconds, DIGITS) for estimate in estimates}
    task: dict[str, Any] = {"time": times.get(None, times)}
    amounts = [whole_bytes(e.best.bytes) for e in estimates if e.best.bytes is not None]
    if not amounts:
        return task
    memory = max(amounts)
    outputs = [e.best.output_bytes for e in estimates if e.best.output_bytes is not None]
    if outputs:
        output = whole_bytes(max(outputs))
        task["output"] = f"{output} B"
        task["memory"] = {"resident": f"{max(0, memory - output)} B"}
    else:
        task["memory"] = {"resident": f"{memory} B", "output": "0 B"}
    return task


def whole_bytes(amount: float) -> int:
    """Return bytes rounded up, except for the noise of doubles."""
    near = round(amount)
    return near if abs(amount - near) <= 1e-12 * max(1.0, amount) else math.ceil(amount)


def read_profile(path: str | Path) -> dict[str, Any]:
    """Read a profile file as plain data; raises a SpecError that lists every issue."""
    document = document_of(path)
    if isinstance(document.data, dict) and "devices" in document.data:
        raise SpecError(
            [document.issue("this looks like a problem file, expected a profile", ("devices",), at_key=True)]
        )
    return _checked(document, ProfileFile)


def self_contained(path: str | Path, out: Path | None = None) -> dict[str, Any]:
    """Read a problem or a graph file as plain data, including the tasks of a problem's graph file.

    Names of plan files, in `placement` and `current`, become relative to `out`, the file to be written, if it is known.

    Raises a SpecError if a file is not valid; it lists every issue.
    """
    problem = document_of(path)
    whole = isinstance(problem.data, dict) and "devices" in problem.data
    data = _checked(problem, Spec if whole else GraphFile)
    graph, named = data.pop("graph", None), NamedFiles.of(problem)
    if graph is not None:
        inner = _checked(document_of(named.path(graph["file"])), GraphFile)
        for section in ("operations", "tasks"):
            merged = {**(inner.get(section) or {}), **(data.get(section) or {})}
            if merged:
                data[section] = merged
    for owner in (data, data.get("current")):
        placement = owner.get("placement") if isinstance(owner, dict) else None
        if isinstance(owner, dict) and isinstance(placement, dict) and list(placement) == ["file"]:
            plan = named.path(str(placement["file"]))
            check_input(plan)  # because it is read with the problem
            if out is not None:
                owner["placement"] = {"file": os.path.relpath(plan, out.parent)}
    return data


def apply_profile(problem: Mapping[str, Any], profile: Mapping[str, Any]) -> Applied:
    """Merge a profile into a problem that contains its tasks (see `self_contained`); both are plain data.

    A task's duration and memory are replaced if the profile has them, and its output if the profile has one. Durations
    by device replace only those of the same devices. `flops`, `bytes` and `precision` are removed; the durations that
    they state on other devices are written out. The default link is replaced, overrides are kept.

    Raises
    ------
    UsageError
        If the problem has no tasks, or none of the operators of the profile matches one.
    """
    tasks, known = problem.get("tasks") or {}, profile.get("tasks") or {}
    operations = problem.get("operations") or {}
    if not tasks:
        raise UsageError("the problem has no tasks to apply a profile to")
    merged: dict[str, Any] = {}
    names, ops = 0, 0
    left: list[str] = []
    restricted: list[str] = []
    estimated: list[str] = []
    everywhere = False
    rooflines = Rooflines(problem)
    used: dict[str, None] = {}
    for name, written in tasks.items():
        task = written or {}
        op = None if task.get("op") is None else str(task["op"])
        key = next((each for each in (str(name), op) if each in known), None)
        if key is None:
            left.append(name)
            merged[name] = written
            continue
        used[key] = None
        names, ops = names + (key == str(name)), ops + (key != str(name))
        time = (known[key] or {}).get("time")
        stated: Any = operations.get(op)
        if any(given in task for given in WORK):
            stated = rooflines.beside(str(name), map(str, time)) if isinstance(time, dict) else None
            if isinstance(time, dict):
                (estimated if stated else restricted).append(name)
        everywhere |= time is not None and not isinstance(time, dict)
        merged[name] = _merged(task, known[key] or {}, stated)
    links = (profile.get("links") or {}).get("default")
    if known and not used:
        raise UsageError(
            f"the profile has operators {listing(list(known))}, and no task has such a name or op; "
            f"tasks are {listing(list(tasks))}"
        )
    document = dict(problem)
    if links:
        stated = dict(problem.get("links") or {})
        document["links"] = {**stated, "default": {**(stated.get("default") or {}), **links}}
    document["tasks"] = merged
    unused = tuple(operator for operator in known if operator not in used)
    share = _share(known, unused)
    types = [str((device or {}).get("type", key)) for key, device in (problem.get("devices") or {}).items()]
    uniform = tuple(dict.fromkeys(types)) if everywhere and len(set(types)) > 1 else ()
    return Applied(
        _in_order(document), names, ops, tuple(left), unused, tuple(restricted), tuple(estimated), uniform, share
    )


def _share(entries: Mapping[str, Any], some: Sequence[str]) -> float | None:
    """Return the share of some entries of a profile in the time of all; None if it is zero or not stated.

    The time of an entry with times by device is the longest.
    """
    seconds: dict[str, float] = {}
    for name, entry in entries.items():
        time = (entry or {}).get("time")
        try:
            found = [
                parse(each, TIME) for each in (time.values() if isinstance(time, dict) else [time] if time else [])
            ]
        except QuantityError:
            return None
        if any(each.bare for each in found):
            return None
        seconds[name] = max((float(each.value) for each in found), default=0.0)
    part, whole = sum(seconds[name] for name in some), sum(seconds.values())
    return part / whole if part else None


def _merged(task: Mapping[str, Any], measured: Mapping[str, Any], other: Any) -> dict[str, Any]:
    """Return a task merged with its measurements.

    `other` are the durations of its op or by its work, or None; a `time` of the task has precedence.
    """
    kept, found = dict(task), dict(measured)
    time = found.pop("time", None)
    if time is None:  # a profile written by hand may state only memory
        return {**kept, **found}
    stated = kept.pop("time", other)
    for key in (*WORK, "precision"):
        kept.pop(key, None)
    if isinstance(time, dict) and stated:
        time = {**(stated if isinstance(stated, dict) else {ANY: stated}), **time}
    operator = {"op": kept.pop("op")} if "op" in kept else {}
    return {**operator, "time": time, **kept, **found}


def _in_order(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with its tasks last."""
    last = ("links", "tasks", "placement", "objective")
    first = [key for key in document if key not in last]
    return {key: document[key] for key in [*first, *(key for key in last if key in document)]}


def _checked(document: Document, model: type[Spec] | type[GraphFile]) -> dict[str, Any]:
    """Return a copy of the data of a document after validation."""
    valid(document, model)
    return dict(document.data)


WORK = ("flops", "bytes")
"""Keys that state the duration of a task by its work."""


class Rooflines:
    """The durations of the tasks of a problem by pool of devices, computed on first use.

    A problem that cannot be compiled, such as one without devices, has none.
    """

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self._problem = problem
        self._found: dict[str, dict[str, str]] | None = None

    def beside(self, task: str, measured: Iterable[str]) -> dict[str, str]:
        """Return the durations of a task on the pools that no measured device, pool or type covers."""
        if self._found is None:
            self._found = self._durations()
        covered = set(measured)
        return {
            pool: time
            for pool, time in self._found.get(task, {}).items()
            if ANY not in covered and pool not in covered and self._type(pool) not in covered
        }

    def _type(self, pool: str) -> str:
        return str((self._problem["devices"][pool] or {}).get("type", pool))

    def _durations(self) -> dict[str, dict[str, str]]:
        document = {key: value for key, value in self._problem.items() if key not in ("placement", "current")}
        try:
            compiled = compile_spec(document)
        except SpecError:
            return {}
        tasks = {str(name): task or {} for name, task in document["tasks"].items()}
        names = {name: d for d, name in enumerate(compiled.device_names)}
        pools = {str(pool): names.get(str(pool), names.get(f"{pool}0")) for pool in document["devices"]}
        first = {pool: d for pool, d in pools.items() if d is not None}
        tick = float(compiled.resolution)
        return {
            name: {
                pool: seconds_text(int(compiled.duration[row, d]) * tick, DIGITS)
                for pool, d in first.items()
                if compiled.feasible[row, d]
            }
            for row, name in enumerate(compiled.task_names)
            if any(key in tasks[name] for key in WORK)
        }
