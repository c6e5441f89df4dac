"""A problem stated in Python, part by part.

A model is a problem document under construction. Each call states a part of it, which the spec validates at once; the
whole is compiled like a file. Issues name the line of the caller that stated the part.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

import numpy as np
from pydantic import Field, ValidationError

from placeopt.errors import Issue, SpecError, UsageError, counted, suggestion, visible
from placeopt.io.compiler import compile_document
from placeopt.io.document import Document, Files
from placeopt.io.files import StrPath, write_whole
from placeopt.io.formats.documents import document_text
from placeopt.io.scalars import Version, name_text
from placeopt.io.spec import Devices, Spec
from placeopt.io.syntax import Path
from placeopt.io.validation import validate
from placeopt.model.documents import number
from placeopt.model.problem import Metric, Problem, check_problem
from placeopt.model.schedule import Schedule
from placeopt.model.units import exact, shown
from placeopt.orchestration.jobs import Job
from placeopt.orchestration.jobs import start as start_problem
from placeopt.orchestration.modelling.keys import (
    Amount,
    DeviceKeys,
    LinkKeys,
    ModeKeys,
    Number,
    PoolKeys,
    ProblemKeys,
    SharedLinkKeys,
    TaskKeys,
)
from placeopt.orchestration.modelling.parts import Device, Entries, Operation, Part, Resource, Task
from placeopt.orchestration.pipeline import solve as solve_problem
from placeopt.orchestration.result import Result
from placeopt.orchestration.run import schedule_for
from placeopt.protocol.registry import find_solver

P = ParamSpec("P")
R = TypeVar("R", bound=Result | Job)

_Place = tuple[str, int]
"""The file and the line of a caller."""


class _Sections(Spec):
    """Some sections of a problem."""

    placeopt: Version = 1
    devices: Devices = Field(default_factory=dict)


@dataclass(slots=True)
class _Stated(Document):
    """A document made by calls. The place of an issue is the call that stated the longest part of its path."""

    places: Mapping[Path, _Place] = field(default_factory=dict)

    def issue(self, message: str, path: Sequence[str | int], *, at_key: bool = False) -> Issue:
        found = Document.issue(self, message, path, at_key=at_key)
        file, line = _place(self.places, found.path)
        return replace(found, file=file, line=line)


def _place(places: Mapping[Path, _Place], path: Path) -> _Place:
    """The place of the longest part of a path that has one."""
    return next(places[path[:length]] for length in range(len(path), -1, -1) if path[:length] in places)


def _caller() -> _Place:
    """The place of the call that led into this module."""
    frame = sys._getframe()
    while frame.f_globals is globals() and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _of_model(function: Callable[Concatenate[Problem, P], R]) -> Callable[Concatenate[Model, P], R]:
    """A method that solves the compiled model with the arguments of a function of problems."""

    @wraps(function)
    def method(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        problem = self.problem()
        start = self._start(problem, args[0] if args else kwargs.get("solver"), kwargs)
        if start is not None:
            kwargs["initial"] = start
        self._last = found = function(problem, *args, **kwargs)
        return found

    return method


class Model:
    """A problem under construction: devices, links, tasks and edges are added one by one.

        m = po.Model("video", resolution="1 us")
        cpu = m.add_device("cpu", count=2)
        gpu = m.add_device("gpu", memory="16 GiB")
        m.add_link(cpu, gpu, bandwidth="12 GB/s", latency="10 us")
        frame = m.add_task("frame", time={cpu: "4 ms"}, output="3 MB")
        detect = m.add_task("detect", time={cpu: "90 ms", gpu: "6 ms"}, memory="2 GiB", after=frame)
        m.minimize("makespan")
        result = m.solve("cp-sat", time_limit=10)

    Keyword arguments are the keys of a problem file, with the same meaning (docs/spec.md). The object that a method
    returns may be used wherever a key needs the name of this part, and so may its name.

    Each method that states something raises a SpecError at once if a key is not valid, if the name of a new part is in
    use, or if a task to extend is unknown; it lists every issue. Unknown names and what depends on several parts are
    checked when the model is compiled. Both name the file and the line of the call.

    Parameters
    ----------
    name
        Short name, for use in tables.
    folder, files
        Which files the model may name, as in `placeopt.compile`; by default none.
    **keys
        Top-level keys of a problem file, such as `resolution`, `units`, `contention` and `memory_model`.

    Raises
    ------
    SpecError
        If a key is not valid; lists every issue.
    """

    def __init__(
        self,
        name: str = "",
        /,
        *,
        folder: StrPath | None = None,
        files: Files | None = None,
        **keys: Unpack[ProblemKeys],
    ) -> None:
        self._folder, self._files = folder, files
        self._document: dict[str, Any] = {"placeopt": 1}
        self._places: dict[Path, _Place] = {}
        self._problem: Problem | None = None
        self._last: Result | Job | None = None
        if name:
            self.set(name=name)
        self.set(**keys)

    @classmethod
    def from_problem(cls, problem: Problem) -> Self:
        """Return the model of a compiled problem, in ticks and bytes (`Problem.to_document`).

        Raises
        ------
        UsageError
            If a document cannot state a part of the problem, such as parallel edges.
        """
        check_problem("Model.from_problem", problem)
        return cls.from_document(problem.to_document())

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], *, folder: StrPath | None = None, files: Files | None = None
    ) -> Self:
        """Return the model of a problem document: plain data with the keys of a problem file.

        Raises
        ------
        UsageError
            If it is not a mapping.
        SpecError
            If a key is not valid; lists every issue.
        """
        if not isinstance(document, Mapping):
            raise UsageError(f"Model.from_document takes a mapping, got {type(document).__name__}")
        model = cls(folder=folder, files=files)
        model.set(**document)
        return model

    def __repr__(self) -> str:
        name = f" {visible(str(self._document['name']))}" if self._document.get("name") else ""
        tasks, devices = (self._document.get(key, {}) for key in ("tasks", "devices"))
        producers = [(entry or {}).get("after", ()) for entry in tasks.values()]
        edges = sum(len(after) if isinstance(after, dict | list | tuple) else 1 for after in producers)
        counts = (
            counted(len(tasks), "task"),
            counted(edges, "edge"),
            counted(sum(int((entry or {}).get("count") or 1) for entry in devices.values()), "device"),
        )
        return f"<Model{name}: {', '.join(counts)}>"

    def set(self, **keys: Unpack[ProblemKeys]) -> None:
        """State top-level keys of a problem file, such as `links`, `placement`, `current`, `limits` or `pipeline`.

        A key that was set before is replaced, unless parts were added to it.
        """
        place = _caller()
        _, stated = self._checked((), keys, place)
        for key in stated:
            first = next((path for path in self._places if len(path) > 1 and path[0] == key), None)
            if first is not None:
                message = f"has parts that were added at {_text(self._places[first])}; set it before them"
                raise SpecError([Issue(message, (key,), *place)])
        self._document |= stated
        self._places |= {(key,): place for key in stated}

    def minimize(self, *levels: Metric | Entries[Metric, Number]) -> None:
        """State the objective: a metric, a weighted sum of metrics, or several of these in lexicographic order."""
        self.set(objective=levels[0] if len(levels) == 1 else levels)

    def device(self, name: str, /) -> Device:
        """Return the device with a name, for models of documents. Raises a SpecError if there is none."""
        return Device(name, self, self._holder(("devices", name), _caller()))

    def task(self, name: str, /) -> Task:
        """Return the task with a name, for models of documents. Raises a SpecError if there is none."""
        return Task(name, self, self._holder(("tasks", name), _caller()))

    def add_device(self, name: str, /, **keys: Unpack[DeviceKeys]) -> Device:
        """Add a device, or `count` identical ones."""
        return Device(*self._add(("devices", name), keys))

    def add_link(
        self, first: Device | str, second: Device | str, /, *, one_way: bool = False, **keys: Unpack[LinkKeys]
    ) -> None:
        """State the links between two devices, keys or types, in both directions unless `one_way`.

        Later links take precedence. Omitted keys remain unchanged. `set(links={"default": ...})` states all others.
        """
        place = _caller()
        ends = {"from": first, "to": second} if one_way else {"between": [first, second]}
        others = len(self._document.get("links", {}).get("overrides", ()))
        path, (stated,) = self._checked(("links", "overrides"), [{**ends, **keys}], place, others)
        self._holder(path, place).append(stated)
        self._places[*path, others] = place

    def add_shared_link(self, name: str, /, **keys: Unpack[SharedLinkKeys]) -> None:
        """Add a link that several pairs of devices use, one transfer at a time."""
        self._add(("links", "shared", name), keys)

    def add_pool(self, name: str, /, **keys: Unpack[PoolKeys]) -> None:
        """Add memory that several devices share."""
        self._add(("pools", name), keys)

    def add_resource(self, name: str, capacity: Number, /) -> Resource:
        """Add a renewable resource: its capacity limits what running tasks use at one time."""
        return Resource(*self._add(("resources", name), capacity))

    def add_budget(self, name: str, capacity: Number, /) -> Resource:
        """Add a budget: its capacity limits what all tasks use in all."""
        return Resource(*self._add(("budgets", name), capacity))

    def add_operation(self, name: str, time: Amount | Entries[Device | str, Amount], /) -> Operation:
        """Add an operation: a duration for all devices, or by device, of all tasks with this `op`."""
        return Operation(*self._add(("operations", name), time))

    def add_task(self, name: str, /, **keys: Unpack[TaskKeys]) -> Task:
        """Add a task."""
        return Task(*self._add(("tasks", name), keys))

    def add_mode(self, task: Task | str, name: str, /, **keys: Unpack[ModeKeys]) -> None:
        """Add a way to run a task, of which the schedule chooses one."""
        self._add(("tasks", task, "modes", name), keys)

    def add_edge(self, producer: Task | str, consumer: Task | str, /, payload: Amount | None = None) -> None:
        """Add an edge, with its own payload or the `output` of the producer. The consumer must have been added."""
        self._add(("tasks", consumer, "after", producer), payload)

    def colocate(self, label: str, /, *tasks: Task | str) -> None:
        """Add tasks to a colocation group: all tasks with this label run on the same device."""
        self._label("colocate", label, tasks)

    def separate(self, label: str, /, *tasks: Task | str) -> None:
        """Add tasks to a separation group: all tasks with this label run on pairwise different devices."""
        self._label("separate", label, tasks)

    @overload
    def update(self, part: Task, /, **keys: Unpack[TaskKeys]) -> None: ...
    @overload
    def update(self, part: Device, /, **keys: Unpack[DeviceKeys]) -> None: ...
    def update(self, part: Task | Device, /, **keys: Any) -> None:
        """State other values for some keys of a task or a device; None removes what was stated, where a key allows it.

        The next `solve` starts from the last result, if its solver supports that.

        Raises
        ------
        SpecError
            If a key is not valid.
        UsageError
            If the part is not the object of a task or a device.
        """
        if not isinstance(part, Task | Device):
            raise UsageError(f"Model.update takes the object of a task or a device, got {type(part).__name__}")
        place = _caller()
        path, stated = self._checked((f"{part.kind}s", part), keys, place)
        self._holder(path, place).update(stated)
        self._places |= {(*path, key): place for key in stated}

    def update_edge(self, producer: Task | str, consumer: Task | str, /, payload: Amount | None) -> None:
        """State another payload of an edge, None for the `output` of the producer.

        Raises
        ------
        SpecError
            If the payload is not an amount of data, or there is no such edge.
        """
        place = _caller()
        path, stated = self._checked(("tasks", consumer, "after", producer), payload, place)
        producers = self._holder(path[:-1], place)
        if path[-1] not in producers:
            raise SpecError([Issue(f"unknown edge from {shown(path[-1])}; add it first", path[:-1], *place)])
        producers[path[-1]] = stated
        self._places[path] = place

    def to_document(self) -> dict[str, Any]:
        """Return a copy of the model as a problem document, with keys in the order of the spec."""
        stated: dict[str, Any] = self._plain(self._document)
        return {key: stated[key] for key in Spec.model_fields if key in stated} | stated

    def problem(self) -> Problem:
        """Return the compiled problem. It is compiled once for each state of the model.

        Raises
        ------
        SpecError
            If the model is not valid; lists every issue, with the lines that stated its parts.
        """
        if self._problem is None:
            document = _Stated(self._document, places={(): _caller(), **self._places})
            self._problem = compile_document(document, folder=self._folder, files=self._files)
        return self._problem

    def write(self, path: StrPath) -> None:
        """Write the model to a problem file, with its units: JSON if the name ends in .json, else YAML.

        Raises
        ------
        SpecError
            If the model is not valid; lists every issue.
        UsageError
            If a number is a `Fraction` without an exact decimal.
        OSError
            If the file cannot be written.
        """
        self.problem()
        write_whole(path, document_text(_writable(self.to_document()), path))

    solve = _of_model(solve_problem)  # type: ignore[arg-type]  # its first argument may have a name
    """Solve the model: `placeopt.solve` with the compiled problem, whose arguments and errors it has.

    If the model has changed since it was solved, but not its tasks and devices, the last result is the default of
    `initial`, for solvers that support warm starts.
    """

    start = _of_model(start_problem)  # type: ignore[arg-type]
    """Start to solve the model: `placeopt.start` with the compiled problem, whose arguments and errors it has.

    The default of `initial` is that of `solve`, or the incumbent of a job that still runs.
    """

    def _start(self, problem: Problem, solver: Any, options: Mapping[str, Any]) -> Result | Schedule | None:
        """The last result or incumbent, if the model has changed since but not its tasks and devices."""
        last, names = self._last, attrgetter("task_names", "device_names")
        if last is None or last.problem is problem or "initial" in options or solver is None:
            return None
        if names(last.problem) != names(problem) or not find_solver(solver).info.warm_start:
            return None
        if isinstance(last, Job):
            return last.result or schedule_for(problem, last.problem, last.incumbent())
        return last

    def _add(self, path: tuple[Any, ...], value: Any) -> tuple[str, Self, Any]:
        """State a new part at a path; return its name, this model and what is stated."""
        place = _caller()
        path, stated = self._checked(path, value, place)
        *outer, name = path
        holder = self._holder(outer, place)
        if name in holder:
            first = _place(self._places, path)
            raise SpecError([Issue(f"is stated already, at {_text(first)}; expected it once", path, *place)])
        holder[name] = stated
        self._places[path] = place
        return str(name), self, stated

    def _label(self, key: str, label: str, tasks: Sequence[Task | str]) -> None:
        """Add a label of a group to the entries of tasks."""
        place = _caller()
        checked = [self._checked(("tasks", task, key), [label], place) for task in tasks]
        entries = [self._holder(path[:2], place) for path, _ in checked]
        for entry, (path, (name,)) in zip(entries, checked, strict=True):
            self._places[path] = place
            labels = entry.get(key, [])
            labels = labels if isinstance(labels, list) else [labels]
            entry[key] = labels if name in labels else [*labels, name]

    def _holder(self, path: Sequence[Any], place: _Place) -> Any:
        """The mapping or the list at a path of the document, which is created where it is missing or a short form."""
        holder: Any = self._document
        for depth, key in enumerate(path):
            inner = holder.get(key)
            if depth == 1 and path[0] in ("tasks", "devices") and key not in holder:
                hint = suggestion(key, holder) or "; add it first"
                raise SpecError([Issue(f"unknown {path[0][:-1]} {shown(key)}{hint}", (path[0],), *place)])
            if inner is None:
                inner = [] if (path[0], key) == ("links", "overrides") else {}
            elif not isinstance(inner, dict | list) or (depth == 2 and key == "after" and isinstance(inner, list)):
                inner = dict.fromkeys(map(str, inner if isinstance(inner, list) else [inner]))
            holder[key] = inner
            holder = inner
        return holder

    def _checked(self, path: tuple[Any, ...], value: Any, place: _Place, shift: int = 0) -> tuple[Path, Any]:
        """Return a path and the value stated there as plain data, if the spec allows them.

        The place in a list that is stated at the path is `shift` less than that in the document.
        """
        self._problem = None
        known: Path = ()
        try:
            known = tuple(self._key(key) for key in path)
            stated = self._plain(value)
        except ValueError as error:
            raise SpecError([Issue(str(error), known, *place)]) from None
        try:
            _Sections.model_validate(_nested(path, value))
        except ValidationError as error:
            document = _Stated(_nested(known, stated), places={(): place})
            names = {repr(key): key.name for key in path if isinstance(key, Part)}  # as pydantic states them
            issues = validate(document, _Sections).issues or [
                document.issue(str(detail["ctx"]["error"]), [names.get(str(key), key) for key in detail["loc"]])
                for detail in error.errors()
                if isinstance(detail["input"], Part) and "error" in detail.get("ctx", ())
            ]
            if issues:
                raise SpecError([_shifted(issue, len(path), shift) for issue in issues]) from None
        return known, stated

    def _key(self, value: Any) -> Any:
        """A name as text; anything else unchanged."""
        if isinstance(value, Part) and value.model is not self:
            raise ValueError(f"{value.kind} {shown(value.name)} is a part of another model; expected one of this model")
        if not isinstance(value, Hashable):
            raise ValueError(f"{shown(value)} is not a name; expected text")
        return name_text(value)

    def _plain(self, value: Any) -> Any:
        """A copy of a value with the names of parts instead of the parts."""
        if isinstance(value, Part):
            return self._key(value)
        if isinstance(value, dict | Mapping):
            named = {self._key(key): self._plain(inner) for key, inner in value.items()}
            if len(named) < len(value):
                twice = next(name for name, count in Counter(map(self._key, value)).items() if count > 1)
                raise ValueError(f"{shown(twice)} is stated twice, as an object and as text")
            return named
        if isinstance(value, list | tuple):
            return [self._plain(inner) for inner in value]
        if isinstance(value, Set):
            raise ValueError("a set has no order; expected a list")
        return value.item() if isinstance(value, np.generic) else value


def _nested(path: Iterable[Any], value: Any) -> Any:
    """A value under the keys of a path; sections of other tools, which the spec does not describe, are left out."""
    for key in reversed(tuple(path)):
        value = {key: value}
    return {key: part for key, part in value.items() if not str(key).startswith("x-")}


def _shifted(issue: Issue, depth: int, shift: int) -> Issue:
    """An issue whose path has another place in the list at a depth."""
    path = tuple(part + shift if k == depth and isinstance(part, int) else part for k, part in enumerate(issue.path))
    return replace(issue, path=path)


def _text(place: _Place) -> str:
    return f"{visible(place[0], 1000)}:{place[1]}"


def _writable(value: Any) -> Any:
    """Plain data with fractions as numbers."""
    if isinstance(value, dict):
        return {key: _writable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_writable(inner) for inner in value]
    if isinstance(value, Fraction | Decimal):
        found = number(exact(value))
        if exact(found) != exact(value):
            raise UsageError(f"{value} cannot be written exactly; expected a decimal number")
        return found
    return value
