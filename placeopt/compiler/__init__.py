"""From a spec to a problem: names resolved, units gone, every mistake reported at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.compiler.devices import DeviceIndex
from placeopt.compiler.durations import DurationTable, check_operations, feasibility
from placeopt.compiler.edges import check_range, edge_arrays
from placeopt.compiler.groups import check_groups, colocation_labels, separation_pairs
from placeopt.compiler.issues import Issues
from placeopt.compiler.links import link_arrays
from placeopt.compiler.scales import Scales
from placeopt.document import Document, read_document
from placeopt.errors import DocumentError, Issue, SpecError, UsageError, listing
from placeopt.ir import NANO, UNLIMITED, Bool, Int, Objective, Problem, Term, build_problem
from placeopt.spec import GraphFile, Spec, TaskSpec
from placeopt.validation import validate

__all__ = ["compile_document", "compile_spec", "load", "read_spec"]


def load(path: str | Path) -> Problem:
    """The problem in a spec file (YAML, or JSON if its name ends in .json).

    Raises
    ------
    SpecError
        If the file, or a graph file it names, is wrong; lists every issue.
    """
    with _collection_paused():
        return compile_document(_read(path))


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector: it would walk a growing heap of plain data again and again in vain.

    Reading 36,000 tasks takes a third of the time without it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def compile_spec(spec: Spec | dict[str, Any], *, folder: str | Path = ".") -> Problem:
    """The problem of a spec made in code; `folder` is where its graph file is looked for.

    Raises
    ------
    SpecError
        If the spec is wrong; lists every issue.
    UsageError
        If it is neither a Spec nor a dict.
    """
    if isinstance(spec, Spec):
        return _Compilation(spec, Document(spec.model_dump(by_alias=True)), (), Path(folder)).problem()
    if not isinstance(spec, dict):
        raise UsageError(f"compile takes a Spec or a dict, got {type(spec).__name__}; use load for a file")
    return compile_document(Document(spec), folder=folder)


def compile_document(document: Document, *, folder: str | Path | None = None) -> Problem:
    """The problem of a document; see `load`."""
    checked = validate(document, Spec)
    if checked.model is None:
        raise SpecError(_in_file_order(checked.issues))
    if folder is None:
        folder = Path(document.file).parent if document.file else Path()
    return _Compilation(checked.model, document, checked.issues, Path(folder)).problem()


def read_spec(path: str | Path) -> Spec:
    """The spec in a file, short forms widened, names not yet resolved."""
    checked = validate(_read(path), Spec)
    if checked.model is None or checked.issues:
        raise SpecError(_in_file_order(checked.issues))
    return checked.model


def _read(path: str | Path) -> Document:
    try:
        return read_document(path)
    except DocumentError as error:
        raise SpecError(error.issues) from None


def _in_file_order(issues: Sequence[Issue]) -> list[Issue]:
    files = list(dict.fromkeys(issue.file for issue in issues))
    return sorted(issues, key=lambda issue: (files.index(issue.file), issue.line or 0, issue.column or 0))


class _Compilation:
    """One spec on its way to a problem.

    What was found broken in the document is missing from `spec`; checks that would stumble over the hole are left
    out, so that one mistake is reported once.
    """

    def __init__(self, spec: Spec, document: Document, issues: Sequence[Issue], folder: Path) -> None:
        self.spec = spec
        graph_document, graph, graph_issues = self._graph(document, folder)
        self.issues = Issues(document, graph_document)
        for issue in [*issues, *graph_issues]:
            self.issues.keep(issue)
        self.tasks: dict[str, TaskSpec] = {}
        self.operations = dict(spec.operations)
        if graph is not None:
            self.operations = {**graph.operations, **self.operations}
            self.tasks.update(graph.tasks)
        for name, task in spec.tasks.items():
            if name in self.tasks:
                self.issues.add(
                    f'duplicate name "{name}": the graph file has this task too', ("tasks", name), at_key=True
                )
            self.tasks[name] = task
        if spec.graph is None and "tasks" not in document.data:
            self.issues.add("tasks is missing, and so is a graph file with tasks", ())

    def _graph(self, document: Document, folder: Path) -> tuple[Document | None, GraphFile | None, Sequence[Issue]]:
        if self.spec.graph is None:
            return None, None, ()
        try:
            graph_document = read_document(folder / self.spec.graph.file)
        except DocumentError as error:
            return None, None, [self._at_graph_key(document, issue) for issue in error.issues]
        checked = validate(graph_document, GraphFile)
        return graph_document, checked.model, checked.issues

    @staticmethod
    def _at_graph_key(document: Document, issue: Issue) -> Issue:
        """An issue with a graph file as a whole belongs to the line that names the file."""
        return issue if issue.line else document.issue(f"{issue.file} {issue.message}", ("graph", "file"))

    def problem(self) -> Problem:
        """The compiled problem, or every issue as a SpecError."""
        spec, tasks, issues = self.spec, self.tasks, self.issues
        index = DeviceIndex(spec.devices)
        for pool, name in index.duplicates:
            issues.add(f'duplicate name "{name}": two devices are called so', ("devices", pool), at_key=True)
        scales = Scales(self._resolution(), spec.units, issues)
        edges = edge_arrays(tasks, scales, issues)
        allowed = feasibility(tasks, index, issues)
        check_operations(tasks, self.operations, issues)
        links = link_arrays(spec.links, index, scales, issues)
        labels = colocation_labels(tasks)
        separation = separation_pairs(tasks, labels, issues)
        power = [
            (0, 1) if device.spec.power is None else scales.power(device.spec.power, ("devices", device.pool, "power"))
            for device in index.devices
        ]
        self._check_objective(index)

        unsound = issues.about("tasks")
        decisive = {"devices", "operations", "units", "resolution", "graph"}
        table = DurationTable(index, scales, allowed, issues)
        if not decisive & issues.sections():
            table.fill(tasks, self.operations, unsound)
            self._check_feasible(index, allowed, table, unsound)

        resident, output, scratch = self._memory(scales)
        capacity = np.array(
            [
                UNLIMITED
                if device.spec.memory is None
                else scales.capacity(device.spec.memory, ("devices", device.pool, "memory"))
                for device in index.devices
            ],
            dtype=np.int64,
        )
        if not len(issues):
            check_range(edges, links, table.duration, issues)
        if not len(issues):
            amounts = resident if spec.memory_model == "peak" else resident + output + scratch
            check_groups(tasks, labels, table.feasible, amounts, capacity, index, issues)
        if len(issues):
            raise SpecError(_in_file_order(issues.found))
        return build_problem(
            name=spec.name,
            description=spec.description,
            resolution=scales.resolution,
            task_names=list(tasks),
            device_names=[device.name for device in index.devices],
            device_types=[device.type for device in index.devices],
            duration=table.duration,
            feasible=table.feasible,
            resident=resident,
            output=output,
            scratch=scratch,
            capacity=capacity,
            edges=edges.pairs,
            payload=edges.payload,
            shared=edges.shared,
            latency=links.latency,
            byte_ticks_num=links.byte_ticks_num,
            byte_ticks_den=links.byte_ticks_den,
            byte_energy_num=links.byte_energy_num,
            byte_energy_den=links.byte_energy_den,
            power_num=np.array([num for num, _ in power], dtype=np.int64),
            power_den=np.array([den for _, den in power], dtype=np.int64),
            group=labels,
            separation=separation,
            objective=Objective(
                tuple(tuple(Term(metric, weight) for metric, weight in level.items()) for level in spec.objective)
            ),
            contention=spec.contention,
            memory_model=spec.memory_model,
        )

    def _resolution(self) -> Fraction:
        quantity = self.spec.resolution
        if isinstance(quantity, int) or quantity.bare or quantity.value == 0:
            self.issues.add("a tick needs a length with a unit, such as 1 us", ("resolution",))
            return Fraction(1, NANO)
        return quantity.value

    def _check_objective(self, index: DeviceIndex) -> None:
        for place, level in enumerate(self.spec.objective):
            if not any(level.values()):
                self.issues.add("an objective needs a metric with a positive weight", ("objective", place))
            links = [self.spec.links.default, *self.spec.links.overrides]
            powered = any(device.spec.power is not None for device in index.devices)
            if "energy" in level and not powered and all(link.energy is None for link in links):
                self.issues.add(
                    "energy needs the power of devices or the energy of links; neither is stated", ("objective", place)
                )

    def _check_feasible(self, index: DeviceIndex, allowed: Bool, table: DurationTable, unsound: set[str]) -> None:
        names = list(self.tasks)
        for row in np.flatnonzero(~table.feasible.any(axis=1)):
            name = names[row]
            if name in unsound or name in self.issues.about("tasks"):
                continue
            task = self.tasks[name]
            if not allowed[row].any():
                asked = [key for key in ("devices", "requires", "pin") if getattr(task, key)]
                self.issues.add(f"no device satisfies its {' and '.join(asked)}", ("tasks", name, asked[0]))
                continue
            places = [index.devices[d].name for d in np.flatnonzero(allowed[row])]
            what, given = "it", task.time
            if given is None and task.op is not None:
                what, given = f"operation {task.op}", self.operations.get(task.op)
            self.issues.add(
                f"no device can run it: {what} has durations for {listing(list(given or ()))}, "
                f"and its devices are {listing(places)}",
                ("tasks", name),
            )

    def _memory(self, scales: Scales) -> tuple[Int, Int, Int]:
        """(n,) resident, output and scratch bytes."""
        amounts = np.zeros((3, len(self.tasks)), dtype=np.int64)
        for row, (name, task) in enumerate(self.tasks.items()):
            memory = task.memory
            if memory is not None:
                path = ("tasks", name, "memory")
                if memory.resident is not None:
                    amounts[0, row] = scales.size(memory.resident, (*path, "resident"))
                if memory.output is not None:
                    amounts[1, row] = scales.size(memory.output, (*path, "output"))
                if memory.scratch is not None:
                    amounts[2, row] = scales.size(memory.scratch, (*path, "scratch"))
            if task.output is not None and (memory is None or memory.output is None):
                amounts[1, row] = scales.size(task.output, ("tasks", name, "output"))
        return amounts[0], amounts[1], amounts[2]
