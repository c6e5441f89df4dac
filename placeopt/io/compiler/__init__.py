"""Compile a spec to a problem: resolve names, convert units, and report all issues at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.errors import DocumentError, Issue, SpecError, UsageError, in_file_order, listing
from placeopt.io.compiler.checks import TaskMemory, check_groups, check_windows
from placeopt.io.compiler.durations import DurationTable, feasibility, time_windows
from placeopt.io.compiler.figures import completed_devices, completed_links
from placeopt.io.compiler.issues import Gaps, Issues, NoIssues
from placeopt.io.compiler.layouts import memory_layout, stated_alignment
from placeopt.io.compiler.modes import Modes, check_modes, inherit_modes, unrestricted
from placeopt.io.compiler.network import DeviceIndex, link_arrays, memory_tiers, shared_links, unavailable_windows
from placeopt.io.compiler.pipelines import pipeline_rules, together
from placeopt.io.compiler.placement import Current, FixedPlacement
from placeopt.io.compiler.prices import due_dates, metric_limits, prices
from placeopt.io.compiler.relations import colocation_labels, edge_arrays, forward_tasks, separation_pairs
from placeopt.io.compiler.resources import shared_resources
from placeopt.io.compiler.scales import Scales
from placeopt.io.compiler.setups import setup_times
from placeopt.io.compiler.tasks import Parts, Tasks
from placeopt.io.document import (
    Document,
    Files,
    NamedFiles,
    collection_paused,
    is_serving,
    parse_document,
    read_document,
)
from placeopt.io.files import StrPath, size_limit
from placeopt.io.spec import GraphFile, Spec
from placeopt.io.validation import valid, validate
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import build_problem
from placeopt.model.objective import shared_out
from placeopt.model.problem import CATALOGUE, NANO, UNLIMITED, Objective, Problem, Term
from placeopt.model.ranges import first_excess
from placeopt.model.resources import Resources
from placeopt.model.units import is_whole, shown

_SHORTEST, _LONGEST = Fraction(1, 10**18), 10**6  # seconds per tick

__all__ = [
    "Compilation", "begin_compilation", "compile_document", "compile_spec", "document_of", "load", "loads", "read_spec",
]  # fmt: skip


def load(path: StrPath, *, files: Files = "any", max_bytes: int | None = None) -> Problem:
    """Load the problem in a spec file (YAML, or JSON if the file name ends in .json).

    Parameters
    ----------
    files
        Which files the spec may name (a graph file, plan files): "any", "beside" (in its folder or below), or "none".
    max_bytes
        Size limit of a file, instead of 32 MiB for YAML and 512 MiB for JSON.

    Raises
    ------
    SpecError
        If the file, or a file that it names, is not valid; lists every issue.
    UsageError
        If an argument is not valid.
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"load takes a path, got {type(path).__name__}; placeopt.compile takes documents made in code")
    with size_limit(max_bytes), collection_paused():
        return compile_document(document_of(path), files=files)


def loads(text: str, *, folder: StrPath | None = None, files: Files | None = None) -> Problem:
    """Load the problem in a text: JSON if it begins with a JSON object, else YAML.

    Parameters
    ----------
    folder, files
        The files that the text may name, as in `compile`: by default none.

    Raises
    ------
    SpecError
        If the text is not valid; lists every issue, with line and column.
    UsageError
        If an argument is not valid.
    """
    if not isinstance(text, str):
        raise UsageError(f"loads takes a text, got {type(text).__name__}; placeopt.load takes the path of a file")
    with collection_paused():
        try:
            document = parse_document(text)
        except DocumentError as error:
            raise SpecError(error.issues) from None
        return compile_document(document, folder=folder, files=files)


def compile_spec(spec: Spec | dict[str, Any], *, folder: StrPath | None = None, files: Files | None = None) -> Problem:
    """Compile a spec made in code.

    Parameters
    ----------
    folder
        The folder that file names in the spec are relative to; the current one by default.
    files
        Which files the spec may name, as in `load`. "beside" by default if `folder` is given, else "none".

    Raises
    ------
    SpecError
        If the spec is not valid; lists every issue.
    UsageError
        If it is neither a Spec nor a dict, has the same name as text and as a number, or an argument is not valid.
    """
    if isinstance(spec, Spec):
        document = Document(spec.model_dump(by_alias=True, warnings=False))  # only for the places of issues
        return Compilation(spec, document, (), NamedFiles.of(document, folder, files)).problem()
    if not isinstance(spec, dict):
        hint = "its document is one" if hasattr(spec, "document") else "use load for a file"
        raise UsageError(f"compile takes a Spec or a dict, got {type(spec).__name__}; {hint}")
    return compile_document(document_of(spec), folder=folder, files=files)


def document_of(source: StrPath | Mapping[str, Any]) -> Document:
    """Return the document of a file, or one made in code.

    Raises a SpecError if the file cannot be read, and a UsageError if the source is neither, or a document made in code
    has the same name as text and as a number.
    """
    if isinstance(source, Mapping):
        return Document({key: _with_text_keys(key, value) for key, value in source.items()})
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        hint = "; its method to_document() returns it" if hasattr(source, "to_document") else ""
        raise UsageError(f"expected the path of a problem file or its document, got {kind}{hint}")
    try:
        return read_document(source)
    except DocumentError as error:
        raise SpecError(error.issues) from None


def _with_text_keys(section: object, entries: Any) -> Any:
    """Return a section with names as text; in code, names may be whole numbers."""
    if not isinstance(entries, dict) or all(isinstance(name, str) for name in entries):
        return entries
    named = {str(name) if is_whole(name) and abs(name) < 10**100 else name: entry for name, entry in entries.items()}
    if len(named) != len(entries):
        raise UsageError(f"two names in {section} are written in the same way, as text and as a number")
    return named


def compile_document(document: Document, *, folder: StrPath | None = None, files: Files | None = None) -> Problem:
    """Compile a document; see `load`, and `NamedFiles.of` for the files that it may name."""
    with collection_paused():
        return begin_compilation(document, folder=folder, files=files).problem()


def begin_compilation(document: Document, *, folder: StrPath | None = None, files: Files | None = None) -> Compilation:
    """Return the compilation of a document, for callers that also need its names and positions; see `load`."""
    if is_serving(document):
        takers = "solve, verify, simulate, export, whatif and replace take it, and placeopt.load_serving"
        message = f"this is a serving problem; expected tasks ({takers})"
        raise SpecError([document.issue(message, ("serving",), at_key=True)])
    named = NamedFiles.of(document, folder, files)
    checked = validate(document, Spec)
    if checked.model is None:
        raise SpecError(in_file_order(checked.issues))
    return Compilation(checked.model, document, checked.issues, named)


def read_spec(path: StrPath) -> Spec:
    """Read the spec in a file, with short forms expanded and names not resolved."""
    return valid(document_of(path), Spec)


class Compilation:
    """Compiles one spec to a problem.

    Faulty parts of the document are missing from `spec`. Checks that depend on them are skipped, so that each error is
    reported once. `spec` contains the figures of the catalogue. If the devices were replaced, `network` is the document
    of the new ones, and `former` contains the names, pools and types of the old ones; references to these are ignored.
    `modes` and `resources` are those of the compiled problem.
    """

    modes: Modes | None = None
    resources: Resources | None = None
    _limited = True

    def __init__(
        self,
        spec: Spec,
        document: Document,
        issues: Sequence[Issue],
        named: NamedFiles,
        *,
        network: Document | None = None,
        former: frozenset[str] = frozenset(),
    ) -> None:
        self.document, self.named, self._former = document, named, former
        self.spec = spec
        graph_document, graph, graph_issues = self._graph(document)
        self.issues = Issues(document, graph_document, network)
        for issue in [*issues, *graph_issues]:
            self.issues.keep(issue)
        self.gaps = Gaps.left_by(self.issues, graph_missing=spec.graph is not None and graph is None)
        figures = {
            "devices": completed_devices(spec.devices, self.issues),
            "links": completed_links(spec.links, self.issues),
        }
        self.spec = spec.model_copy(update=figures)
        self.tasks = Tasks()
        self.operations = dict(spec.operations)
        if graph is not None:
            self.operations = {**graph.operations, **self.operations}
            self.tasks.update(graph.tasks)
        for name in spec.tasks if self.tasks else ():
            if name in self.tasks:
                message = f"duplicate name {shown(name)}: the graph file has this task too"
                self.issues.add(message, ("tasks", name), at_key=True)
        self.tasks.update(spec.tasks)
        inherit_modes(self.tasks, spec, self.operations, self.gaps, self.issues)
        if not self.gaps.tasks and "tasks" not in document.data and "graph" not in document.data:
            self.issues.add("tasks is missing, and so is a graph file with tasks", ())
        self.placement = FixedPlacement(spec.placement, named, self.issues, "placement")
        self.current = Current(spec.current, named, self.issues)

    def _graph(self, document: Document) -> tuple[Document | None, GraphFile | None, Sequence[Issue]]:
        if self.spec.graph is None:
            return None, None, ()
        name, key = self.spec.graph.file, ("graph", "file")
        try:
            graph_document = self.named.read(name)
        except DocumentError as error:
            # Issues with the whole file are reported at the line that names it.
            whole = [document.issue(f"{issue.file}: {issue.message}", key) for issue in error.issues if not issue.line]
            return None, None, whole or error.issues
        if document.file is not None and os.path.realpath(self.named.path(name)) == os.path.realpath(document.file):
            return None, None, [document.issue("is this same file; expected another one, with tasks", key)]
        checked = validate(graph_document, GraphFile)
        return graph_document, checked.model, checked.issues

    def _provenance(self, index: DeviceIndex) -> dict[str, Any]:
        """Return the source, the sections `x-...`, and the devices of the catalogue by name of device.

        A document that states the figures of its devices keeps only their names in the catalogue, in that section.
        """
        found: dict[str, Any] = {"source": self.spec.source} if self.spec.source else {}
        found |= {key: value for key, value in self.document.data.items() if str(key).startswith("x-")}
        stated = found.pop(CATALOGUE, None)
        known = stated if isinstance(stated, Mapping) and not index.replaced else {}
        likes = {device.name: device.spec.like or known.get(device.name) for device in index.devices}
        likes = {name: like for name, like in likes.items() if like is not None}
        return found | ({CATALOGUE: likes} if likes else {})

    def unrestricted(self) -> Compilation:
        """Return the compilation of a spec that is already compiled, without what excludes devices for a task.

        That is `devices`, `requires`, `pin`, `separate`, `placement`, and too small resources, which its problem lacks.
        A mode with a team is also one without a team.
        """
        found = copy(self)
        found.issues, found._limited = NoIssues(Document({})), False
        found.tasks = Tasks({name: unrestricted(task) for name, task in self.tasks.items()})
        found.placement = FixedPlacement({}, self.named, found.issues, "placement")
        return found

    def problem(self) -> Problem:
        """Return the compiled problem; raises a SpecError that lists every issue."""
        spec, tasks, issues, gaps = self.spec, self.tasks, self.issues, self.gaps
        index = DeviceIndex(spec.devices, issues, complete=not gaps.devices, former=self._former)
        resolution = self._resolution()
        scales = Scales(resolution, spec.units, issues, sound=not gaps.scales and not issues.touch("resolution"))
        parts = Parts(spec, tasks, index, scales, gaps, issues)
        power, capacity = self._devices(index, scales)
        unavailable = unavailable_windows(spec, index, scales, issues)
        links = link_arrays(spec.links, index, scales, issues)
        shared = shared_links(spec, index, issues)
        self._check_objective()
        edges = edge_arrays(tasks, scales, gaps, issues)
        memory = self._memory(tasks, scales)
        labels = colocation_labels(tasks)
        forward = forward_tasks(tasks, gaps, issues)
        labels = together(spec, labels, forward)
        separation = separation_pairs(tasks, labels, len(index), issues)
        allowed = feasibility(tasks, index, gaps, issues)
        table = DurationTable(index, scales, allowed, gaps, issues)
        table.fill(tasks, self.operations, spec.precision)
        modes, rooms, of_modes, contention = None, capacity, None, spec.contention
        if check_modes(spec, tasks, issues):
            self.modes = modes = Modes(parts, table, self.operations, spec.precision, links)
            modes.check(spec, rooms)
            edges, shared, contention = modes.edges(edges), modes.shared_links(shared, contention), "none"
            index, table, links, power = modes.index, modes.table, modes.links(), modes.power(power)
            of_modes, allowed = self._memory(modes.tasks, scales), modes.allowed(allowed)
            capacity, unavailable = modes.capacity(capacity), modes.unavailable(unavailable)
        tiers = memory_tiers(spec, capacity, index, scales, issues)
        capacity = capacity if tiers is None else tiers.capacity
        of_file, parts = parts, replace(parts, index=index)
        known = not (gaps.devices or gaps.operations or issues.touch("devices") or issues.touch("operations"))
        if known:
            self._check_feasible(index, allowed, table)
        fixed = self.placement.devices(tasks, index, gaps)
        fixed, single = (fixed, fixed) if modes is None else modes.restrict(fixed)
        feasible = table.feasible if known else np.ones_like(allowed)
        self.placement.check(parts, fixed, self.operations, allowed, feasible)
        self.placement.check_groups(parts, fixed, labels, separation, feasible)
        table.restrict(single)
        relocation = self.current.relocation(parts, memory.resident, links)
        pipeline = pipeline_rules(parts, forward, memory.resident, None if modes is None else modes.members)
        kept = (forward == np.arange(len(tasks))) * (0 if pipeline is None else pipeline.runs_kept - 1)
        cells = table.duration, table.feasible
        resources = shared_resources(of_file, modes, memory, of_modes, rooms, *cells, kept, limited=self._limited)
        self.resources = resources
        release, deadline = time_windows(tasks, scales)
        check_windows(parts, release, deadline, table if known else None)

        due, due_weight = due_dates(tasks, scales)
        limits = metric_limits(spec, scales, issues)
        alignment = stated_alignment(spec, scales, issues)
        layout = memory_layout(of_file, memory.output, rooms, alignment)
        duration = table.finished()
        members: list[tuple[int, ...]] = [(d,) for d in range(len(index))] if modes is None else modes.members
        setups = setup_times(parts, members, duration, table.feasible)
        price = prices(of_file, members, duration, table.feasible)
        if len(issues):
            raise issues.error()
        objective = Objective(
            tuple(tuple(Term(metric, weight) for metric, weight in level.items()) for level in spec.objective)
        )
        problem = build_problem(
            name=spec.name,
            description=spec.description,
            resolution=resolution,
            task_names=list(tasks),
            device_names=[device.name for device in index.devices],
            device_types=[device.type for device in index.devices],
            duration=duration,
            feasible=table.feasible,
            **memory._asdict(),
            release=release,
            deadline=deadline,
            due=due,
            due_weight=due_weight,
            price=price,
            capacity=capacity,
            edges=edges.pairs,
            payload=edges.payload,
            shared=edges.shared,
            **links._asdict(),
            power_num=np.array([num for num, _ in power], dtype=np.int64),
            power_den=np.array([den for _, den in power], dtype=np.int64),
            group=labels,
            separation=separation if modes is None else (),  # with modes, they are budgets
            forward=forward,
            pipeline=pipeline,
            relocation=relocation,
            runs_before_next_change=self.current.runs,
            objective=shared_out(objective, self.current.runs),
            contention=contention,
            memory_model=spec.memory_model,
            alignment=alignment,
            layout=layout,
            tiers=tiers,
            unavailable=unavailable,
            setups=setups,
            shared_links=shared,
            resources=resources if self._limited else None,
            limits=limits,
            consolidate=spec.consolidate,
            rounding=scales.rounding,
            efficiency=table.efficiency(),
            notes=scales.notes if modes is None else (*scales.notes, *modes.notes),
            provenance=self._provenance(of_file.index),
        )
        excess = first_excess(problem)
        if excess is not None:
            issues.add(excess.message, (excess.section,))
        else:
            # Pipelines support no other memory model.
            memory = memory if layout is None else memory._replace(output=layout.counted)
            check_groups(parts, labels, table, memory, capacity, hint=pipeline is None)
        if len(issues):
            raise issues.error()
        return problem

    def _resolution(self) -> Fraction:
        quantity, path = self.spec.resolution, ("resolution",)
        if not isinstance(quantity, int) and not quantity.bare and _SHORTEST <= quantity.value <= _LONGEST:
            return quantity.value
        self.issues.add(
            f"{self.issues.written(path)} is not a tick length; expected a time with a unit, 1e-18 s to 1e6 s", path
        )
        return Fraction(1, NANO)

    def _devices(self, index: DeviceIndex, scales: Scales) -> tuple[list[tuple[int, int]], Int]:
        """Power as (num, den) of each device, and (m,) capacities; unused rates are checked too."""
        power: list[tuple[int, int]] = []
        capacity = np.full(len(index), UNLIMITED, dtype=np.int64)
        for d, device in enumerate(index.devices):
            stated, path = device.spec, ("devices", device.pool)
            if stated.memory is not None:
                capacity[d] = scales.capacity(stated.memory, (*path, "memory"))
            for speed, precision in {speed: precision for precision, speed in (stated.speed or {}).items()}.items():
                scales.speed(speed, (*path, "speed", precision))
            if stated.memory_bandwidth is not None:
                scales.bandwidth(stated.memory_bandwidth, (*path, "memory_bandwidth"))
            if stated.overhead is not None:
                scales.ticks(stated.overhead, (*path, "overhead"), counts=False)
            power.append((0, 1) if stated.power is None else scales.power(stated.power, (*path, "power")))
        return power, capacity

    def _check_objective(self) -> None:
        spec, issues = self.spec, self.issues
        energetic = [device.power for device in spec.devices.values()]
        energetic += [link.energy for link in (spec.links.default, *spec.links.overrides)]
        for place, level in enumerate(spec.objective):
            path = ("objective", place)
            if not any(level.values()) and not issues.touch("objective"):
                issues.add("an objective needs a metric with a positive weight", path)
            if level in spec.objective[:place]:
                issues.add("the same as an earlier level, so that it decides nothing; leave it out", path)
            stated = any(amount is not None for amount in energetic) or issues.touch("devices") or issues.touch("links")
            if "energy" in level and not stated:
                issues.add("energy needs the power of devices or the energy of links; neither is stated", path)
            if "price" in level and not self._priced():
                issues.add("price needs the price of devices or of tasks; neither is stated", path)
            if "tardiness" in level and next(self.tasks.stating("due"), None) is None and not issues.touch("tasks"):
                issues.add("tardiness needs due dates of tasks; none is stated", path)
            if "relocation" in level and spec.current is None and not self.gaps.current:
                issues.add("relocation needs the section current, which states the current placement", path)

    def _priced(self) -> bool:
        """Whether a price is stated, or its place has an issue."""
        stated = any(device.price is not None for device in self.spec.devices.values())
        stated = stated or next(self.tasks.stating("price"), None) is not None
        return stated or self.issues.touch("devices") or self.issues.touch("tasks")

    def _check_feasible(self, index: DeviceIndex, allowed: Bool, table: DurationTable) -> None:
        names = list(self.tasks)
        for row in np.flatnonzero(~table.feasible.any(axis=1)):
            name = names[row]
            task = self.tasks[name]
            if self.issues.touch("tasks", name) or task.modes:  # each mode reports its own issues
                continue
            if not allowed[row].any():
                asked = [key for key in ("devices", "requires", "pin") if getattr(task, key)]
                self.issues.add(f"no device satisfies its {' and '.join(asked)}", ("tasks", name, asked[0]))
                continue
            places = [index.devices[d].name for d in np.flatnonzero(allowed[row])]
            what, given = "it", task.time
            if given is None and task.op is not None:
                what, given = f"operation {shown(task.op)}", self.operations[task.op]
            message = (
                f"no device can run it: {what} has durations for {listing(list(given or ()))}, "
                f"and its devices are {listing(places)}"
            )
            hiding = next((word for word in given or () if index.hidden(word)), None)
            if hiding is not None:
                message += f"; {shown(hiding)} is the name of a device and refers to that device only"
            self.issues.add(message, ("tasks", name))

    def _memory(self, tasks: Tasks, scales: Scales) -> TaskMemory:
        """Return the memory of tasks, as stated by `memory` or `output`."""
        amounts = np.zeros((3, len(tasks)), dtype=np.int64)
        for row, name, task in tasks.stating("memory", "output"):
            memory = task.memory
            for column, key in enumerate(TaskMemory._fields if memory is not None else ()):
                if (stated := getattr(memory, key)) is not None:
                    amounts[column, row] = scales.size(stated, ("tasks", name, "memory", key))
            if task.output is not None and (memory is None or memory.output is None):
                amounts[1, row] = scales.size(task.output, ("tasks", name, "output"))
        return TaskMemory(*amounts)
