"""Import scientific workflows in WfFormat, the JSON format of WfCommons.

Tainã Coleman, Henri Casanova, Loïc Pottier, Manav Kaushik, Ewa Deelman, Rafael Ferreira da Silva: WfCommons: A
framework for enabling scientific workflow research and development, Future Generation Computer Systems 128, 2022,
doi:10.1016/j.future.2021.09.043. Versions 1.5 and 1.6 of the schema (https://github.com/wfcommons/WfFormat) are read:

- `workflow.specification`: `tasks` with `parents`, `children`, `inputFiles`, `outputFiles`; `files` with sizes;
- `workflow.execution`: `tasks` with run times, memory and machines; `machines` with cores, CPU speed and memory.

An edge moves the files that its consumer reads and its producer writes. If all consumers of a producer read the same
files, one transfer serves all of them on a device; otherwise each edge has a transfer of its own. Files lie on disks
and need no memory. The memory of a task is occupied while it runs.

A machine is a device with cores, on which several tasks run at once and share its memory and its disk: files between
them move at no cost. A task needs the cores that its run used, or else those that its CPU utilisation amounts to. A run
time was measured on the machine of its task; on other machines, it is scaled by the ratio of the CPU speeds.

The recorded run is a plan: `machines` and `executedAt` of its tasks state where and when each one started.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.json_file import JsonFile
from placeopt.bridges.importers.task_graph import Place, Task, TaskGraph, seconds_text
from placeopt.bridges.networks import network_of
from placeopt.errors import DocumentError, UsageError, counted, visible
from placeopt.io.compiler import compile_spec
from placeopt.io.files import StrPath
from placeopt.io.plan import plan_document
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.model.units import shown, size_text, time_text
from placeopt.simulation import retime
from placeopt.verifier import verify

NAME = "wfformat"
VERSIONS = ("1.5", "1.6")
BANDWIDTH = "125 MB/s"
"""Bandwidth between machines, which the format does not state: 1 Gbit/s."""
WORKERS = 4
"""Number of machines unless the file states them."""
RESOLUTION = "1 us"

_MHZ = 10**6
_SPECIFICATION, _EXECUTION = ("workflow", "specification"), ("workflow", "execution")


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    return b'"schemaVersion"' in sample.json and b'"workflow"' in sample.json


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in this format.

    Raises a DocumentError if the file cannot be read or is not valid; it lists every issue with its position.
    """
    file = JsonFile(path, "an object with name, schemaVersion and workflow")
    version = file.data.get("schemaVersion")
    if version not in VERSIONS:
        hint = "; WfFormat's wfcommons-migrate-instance.py converts older files" if isinstance(version, str) else ""
        stated = "is missing" if version is None else f"{shown(version)} is not supported"
        file.issues.clear()
        file.add(f"schemaVersion {stated}; expected {' or '.join(VERSIONS)}{hint}", "schemaVersion")
        file.fail()
    return _Reader(file).imported(options)


@dataclass(slots=True)
class _Machine:
    cores: int
    speed: Fraction | None
    """MHz."""
    memory: int | None


@dataclass(slots=True)
class _Run:
    """The measured run of a task."""

    seconds: Fraction | None
    memory: int | None
    cores: int
    machine: str | None
    start: Fraction | None
    """Seconds since 1970."""


@dataclass(slots=True)
class _Node:
    """A task of the specification."""

    row: int
    name: str
    inputs: dict[str, int]
    outputs: dict[str, int]
    parents: dict[str, Place] = field(default_factory=dict)


class _Reader:
    """Converts one file to a problem, and collects its issues and notes."""

    def __init__(self, file: JsonFile) -> None:
        self._file = file
        self._notes: list[str] = []
        workflow = file.mapping(file.data.get("workflow"), "workflow")
        specification = file.mapping(workflow.get("specification"), *_SPECIFICATION)
        execution = file.mapping(workflow.get("execution"), *_EXECUTION)
        if not specification:
            file.add("specification is missing; expected tasks and files", "workflow")
        self._machines = self._read_machines(execution.get("machines"))
        self._nodes = self._read_nodes(specification.get("tasks"))
        self._sizes = self._read_files(specification.get("files"))
        self._runs = self._read_runs(execution.get("tasks"))
        where = (*_EXECUTION, "makespanInSeconds")
        self._makespan = file.number(execution.get("makespanInSeconds"), "a time", *where)

    def imported(self, options: ImportOptions) -> Imported:
        """The problem; raises a DocumentError that lists every issue."""
        payloads = self._payloads()
        slowest = min((m.speed for m in self._machines.values() if m.speed), default=None)
        network = self._network(options, slowest)
        tasks = {name: self._task(name, slowest) for name in self._nodes}
        self._set_cores(tasks, network, own=options.network is None)
        self._join(tasks, payloads)
        self._file.check()
        name = self._file.data.get("name")
        graph = TaskGraph(
            options.name or (name if isinstance(name, str) and name else Path(self._file.name).stem),
            f"{Path(self._file.name).name}, a workflow in WfFormat {self._file.data['schemaVersion']}",
            tasks,
            memory_model="peak" if any(run.memory for run in self._runs.values()) else None,
            edge_places={(p, name): place for name, node in self._nodes.items() for p, place in node.parents.items()},
        )
        self._count_runs()
        if self._makespan:
            self._notes.append(f"the recorded run took {seconds_text(self._makespan)}")
        if options.plan and options.network is not None:
            raise UsageError("--plan-out needs the machines on which the tasks ran; leave out --devices")
        run = self._recorded() if options.plan else None
        found = graph.imported(network, options.resolution or RESOLUTION, self._file.issue, self._notes)
        if run is None:
            return found
        plan, notes = recorded_plan(found.document, run)
        return replace(found, plan=plan, notes=(*found.notes, *notes))

    def _recorded(self) -> RecordedRun:
        """The machines and starts of the tasks; raises a DocumentError if no task has a known machine."""
        machines = {number: run.machine for number, run in self._runs.items() if run.machine in self._machines}
        if not self._machines or (not machines and len(self._machines) > 1):
            message = "no task records a machine of the file, so the run is not a plan"
            raise DocumentError([self._file.issue(message, (*_EXECUTION, "tasks"))])
        slowest = min(self._machines, key=lambda name: self._machines[name].speed or math.inf)
        if len(self._machines) > 1 and len(machines) < len(self._nodes):
            lost = counted(len(self._nodes) - len(machines), "task")
            self._notes.append(f"{lost} without one known machine; the plan runs them on {slowest}")
        return RecordedRun(
            {number: machines.get(number) or slowest for number in self._nodes},
            {number: run.start for number, run in self._runs.items() if run.start is not None},
        )

    def _read_machines(self, value: Any) -> dict[str, _Machine]:
        file, machines = self._file, dict[str, _Machine]()
        for row, entry in enumerate(file.list(value, *_EXECUTION, "machines")):
            path = (*_EXECUTION, "machines", row)
            data = file.mapping(entry, *path)
            name = file.text(data.get("nodeName"), *path, "nodeName")
            cpu = file.mapping(data.get("cpu"), *path, "cpu")
            cores = file.number(cpu.get("coreCount"), "a number of cores", *path, "cpu", "coreCount")
            speed = file.number(cpu.get("speedInMHz"), "a speed in MHz", *path, "cpu", "speedInMHz")
            memory = file.number(data.get("memoryInBytes"), "a number of bytes", *path, "memoryInBytes")
            if cores is not None and cores.denominator != 1:
                file.add(f"{float(cores)} is not a whole number of cores", *path, "cpu", "coreCount")
            if name in machines:
                file.add(f"machine {shown(name)} is stated twice", *path, "nodeName")
            elif name is not None:
                machines[name] = _Machine(int(cores or 1), speed or None, None if memory is None else int(memory))
        return machines

    def _read_nodes(self, value: Any) -> dict[str, _Node]:
        file, nodes = self._file, dict[str, _Node]()
        children: list[tuple[str, str, Place]] = []
        for row, entry in enumerate(file.list(value, *_SPECIFICATION, "tasks")):
            path = (*_SPECIFICATION, "tasks", row)
            data = file.mapping(entry, *path)
            number = file.text(data.get("id"), *path, "id")
            inputs, outputs, parents, following = (
                file.texts(data.get(key), *path, key) for key in ("inputFiles", "outputFiles", "parents", "children")
            )
            if number is None:
                continue
            if number in nodes:
                file.add(f"task {shown(number)} is stated twice", *path, "id")
                continue
            name = data.get("name")
            node = _Node(row, name if isinstance(name, str) and name else number, inputs, outputs)
            node.parents = {parent: (*path, "parents", k) for parent, k in parents.items()}
            nodes[number] = node
            children += [(number, child, (*path, "children", k)) for child, k in following.items()]
        if not nodes:
            file.add("tasks is missing; expected a list of tasks", *_SPECIFICATION)
        one_sided = 0
        for parent, child, place in children:
            if child not in nodes:
                file.issues.append(file.issue(f"no task has the id {shown(child)}", place))
            elif parent not in nodes[child].parents:
                nodes[child].parents[parent] = place
                one_sided += 1
        for node in nodes.values():
            for parent, place in node.parents.items():
                if parent not in nodes:
                    file.issues.append(file.issue(f"no task has the id {shown(parent)}", place))
        self._count(one_sided, "edge", "stated by the producer only")
        return nodes

    def _read_files(self, value: Any) -> dict[str, int]:
        file, sizes, twice = self._file, dict[str, int](), 0
        for row, entry in enumerate(file.list(value, *_SPECIFICATION, "files")):
            path = (*_SPECIFICATION, "files", row)
            data = file.mapping(entry, *path)
            name = file.text(data.get("id"), *path, "id")
            size = file.number(data.get("sizeInBytes"), "a number of bytes", *path, "sizeInBytes")
            if name is None or size is None:
                continue
            twice += name in sizes
            sizes.setdefault(name, math.ceil(size))
        self._count(twice, "file", "listed again; the first size counts")
        return sizes

    def _read_runs(self, value: Any) -> dict[str, _Run]:
        file, runs, guessed = self._file, dict[str, _Run](), 0
        for row, entry in enumerate(file.list(value, *_EXECUTION, "tasks")):
            path = (*_EXECUTION, "tasks", row)
            data = file.mapping(entry, *path)
            number = file.text(data.get("id"), *path, "id")
            seconds = file.number(data.get("runtimeInSeconds"), "a run time", *path, "runtimeInSeconds")
            memory = file.number(data.get("memoryInBytes"), "a number of bytes", *path, "memoryInBytes")
            cores = file.number(data.get("coreCount"), "a number of cores", *path, "coreCount")
            percent = file.number(data.get("avgCPU"), "a CPU utilisation", *path, "avgCPU")
            used = data.get("machines", data.get("machine"))
            names = file.texts([used] if isinstance(used, str) else used, *path, "machines")
            machine = next(iter(names)) if len(names) == 1 else None
            if number is None:
                continue
            if number not in self._nodes:
                file.add(f"no task of the specification has the id {shown(number)}", *path, "id")
            elif number in runs:
                file.add(f"the run of task {shown(number)} is stated twice", *path, "id")
            else:
                busy = round(percent / 100) if percent is not None else 1
                guessed += not cores and busy > 1
                runs[number] = _Run(
                    seconds,
                    None if memory is None else math.ceil(memory),
                    max(math.ceil(cores) if cores else busy, 1),
                    machine,
                    _seconds(data.get("executedAt")),
                )
        self._count(guessed, "task", "without coreCount; the number of cores is its avgCPU / 100, rounded")
        return runs

    def _payloads(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """The files that move along each edge, by consumer and producer; adds edges of files to the parents."""
        producers: dict[str, list[str]] = {}
        for number, node in self._nodes.items():
            for name in node.outputs:
                producers.setdefault(name, []).append(number)
        payloads: dict[str, dict[str, tuple[str, ...]]] = {}
        outside: dict[str, None] = {}
        added = ambiguous = 0
        for number, node in self._nodes.items():
            moved: dict[str, tuple[str, ...]] = dict.fromkeys(node.parents, ())
            for name, k in node.inputs.items():
                writers = [writer for writer in producers.get(name, ()) if writer != number]
                if not writers:
                    if name not in producers:
                        outside[name] = None
                    continue
                stated = [writer for writer in writers if writer in node.parents]
                if not stated and len(writers) > 1:
                    ambiguous += 1
                    continue
                if not stated:
                    added += 1
                    node.parents[writers[0]] = (*_SPECIFICATION, "tasks", node.row, "inputFiles", k)
                writer = (stated or writers)[0]
                moved[writer] = (*moved.get(writer, ()), name)
            payloads[number] = moved
        self._count(added, "edge", "stated by files only")
        self._count(
            ambiguous, "input file", "written by several tasks, none of them a parent of the reader; cost nothing"
        )
        if outside:
            total = size_text(sum(self._sizes.get(name, 0) for name in outside))
            self._count(len(outside), "input file", f"written by no task ({total}); reading them costs nothing")
        used = {name: None for node in self._nodes.values() for name in (*node.inputs, *node.outputs)}
        self._count(sum(name not in self._sizes for name in used), "file", "without a size; counted as 0 bytes")
        self._count(sum(self._sizes.get(name) == 0 for name in used), "file", "of size 0")
        return payloads

    def _task(self, number: str, slowest: Fraction | None) -> Task:
        node = self._nodes[number]
        run = self._runs.get(number)
        seconds, keys = Fraction(0), dict[str, Any](op=node.name)
        if run is not None:
            machine = None if run.machine is None else self._machines.get(run.machine)
            speed = None if machine is None else machine.speed
            seconds = (run.seconds or Fraction(0)) * (speed / slowest if speed and slowest else 1)
            if run.memory:
                keys["memory"] = {"scratch": run.memory}
        return Task(seconds, (*_SPECIFICATION, "tasks", node.row), keys=keys)

    def _set_cores(self, tasks: Mapping[str, Task], network: Mapping[str, Any], *, own: bool) -> None:
        """Set the cores of tasks that used several, where the devices have cores."""
        several = {number: run for number, run in self._runs.items() if run.cores > 1}
        devices = network.get("devices")
        entries = devices.values() if isinstance(devices, Mapping) else ()
        if not any(isinstance(entry, Mapping) and entry.get("cores") for entry in entries):
            most = max((run.cores for run in several.values()), default=1)
            what = f"that used more than one core (up to {most}); each has a device without cores for itself"
            self._count(len(several), "task", what)
            return
        largest = max((machine.cores for machine in self._machines.values()), default=1)
        fewer = 0
        for number, run in several.items():
            machine = self._machines.get(run.machine or "")
            limit = machine.cores if machine is not None and machine.cores > 1 else largest
            fewer += own and run.cores > limit
            tasks[number].keys["cores"] = min(run.cores, limit) if own else run.cores
        self._count(fewer, "task", "that used more cores than its machine has; counted as all of its cores")

    def _join(self, tasks: dict[str, Task], payloads: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Set the edges of the tasks, with a shared output where all consumers read the same files."""
        read: dict[str, set[tuple[str, ...]]] = {}
        for moved in payloads.values():
            for producer, files in moved.items():
                read.setdefault(producer, set()).add(files)
        for producer, sets in read.items():
            if len(sets) == 1 and producer in tasks and (size := self._bytes(*sets)):
                task = tasks[producer]
                task.keys["output"] = size
                task.keys["memory"] = {**task.keys.get("memory", {}), "output": 0}
        for number, moved in payloads.items():
            for producer, files in moved.items():
                shared = producer in tasks and "output" in tasks[producer].keys
                tasks[number].after[producer] = None if shared else self._bytes(files)

    def _bytes(self, files: tuple[str, ...]) -> int:
        return sum(self._sizes.get(name, 0) for name in files)

    def _network(self, options: ImportOptions, slowest: Fraction | None) -> dict[str, Any]:
        if options.network is not None:
            network, notes = network_of(options.network)
            self._notes += notes
            if len({machine.speed or slowest for machine in self._machines.values()}) > 1:
                self._notes.append("run times are scaled by CPU speeds to those of the slowest machine in the file")
            return network
        if not self._machines:
            self._notes.append(
                f"the file states no machines; the problem has {WORKERS} identical ones, joined by {BANDWIDTH}"
            )
            return {"devices": {"worker": {"count": WORKERS}}, "links": {"default": {"bandwidth": BANDWIDTH}}}
        scaled = len({machine.speed or slowest for machine in self._machines.values()}) > 1
        devices: dict[str, Any] = {}
        for name, machine in self._machines.items():
            device: dict[str, Any] = {}
            if machine.cores > 1:
                device["cores"] = machine.cores
            if machine.memory is not None:
                device["memory"] = machine.memory
            if scaled:
                device["speed"] = f"{int((machine.speed or slowest or Fraction(1)) * _MHZ)} FLOP/s"
            devices[name] = device
        if scaled:
            self._notes.append("run times are scaled by the CPU speeds of the machines; a cycle counts as one FLOP")
        if len(devices) == 1:
            return {"devices": devices}
        self._notes.append(f"the file states no bandwidth; machines are joined by {BANDWIDTH}")
        return {"devices": devices, "links": {"default": {"bandwidth": BANDWIDTH}}}

    def _count_runs(self) -> None:
        """Note what the measured runs lack."""
        runs = list(self._runs.values())
        missing = len(self._nodes) - sum(run.seconds is not None for run in runs)
        self._count(missing, "task", "without a run time; counted as 0 s")
        self._count(sum(run.seconds == 0 for run in runs), "task", "with a run time of 0 s")
        if len(self._machines) > 1:
            unknown = sum(run.machine not in self._machines for run in runs)
            self._count(unknown, "run", "without one known machine; taken to be measured on the slowest")

    def _count(self, number: int, noun: str, what: str) -> None:
        if number:
            self._notes.append(f"{counted(number, noun)} {what}")


def _seconds(text: Any) -> Fraction | None:
    """Seconds since 1970 of a time in ISO 8601, in UTC unless it states a zone; None if it is not one."""
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return Fraction(since // timedelta(microseconds=1), 10**6)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The device on which each task ran, and the starts of tasks in seconds, as far as they are recorded."""

    devices: Mapping[str, str]
    starts: Mapping[str, Fraction]


def recorded_plan(document: dict[str, Any], run: RecordedRun) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the plan of a run on the problem of a document, and notes about what was not recorded or does not fit.

    A task without a recorded start follows its producers. Recorded times that break the problem, because tasks need
    more cores than there are or data is late, are replaced by simulated ones in the same order.

    Raises a UsageError if the simulated plan breaks the problem, too: the memory of a device does not suffice.
    """
    problem = compile_spec(document)
    schedule, notes = _recorded(problem, run), []
    if missing := problem.n_tasks - len(run.starts):
        notes.append(f"{counted(missing, 'task')} without a recorded start, placed after their producers")
    broken = verify(problem, schedule).violations
    if broken or missing:
        schedule = retime(problem, schedule)
        why = "not all starts are recorded"
        if broken and not missing:
            why = f"the recorded starts break {counted(len(broken), 'rule')} of the problem ({broken[0].message})"
        notes.append(f"{why}; the plan has the recorded order with simulated times")
    if broken := verify(problem, schedule).violations:
        raise UsageError(
            f"the recorded run is not a plan of this problem: {visible(broken[0].message, 400)}; import without "
            "--plan-out, or with --devices of your own"
        )
    notes.append(f"the plan of the recorded run takes {time_text(makespan(problem, schedule), problem.resolution)}")
    return plan_document(problem, schedule), tuple(notes)


def _recorded(problem: Problem, run: RecordedRun) -> Schedule:
    """The recorded starts, each task on its machine."""
    n, index = problem.n_tasks, {name: d for d, name in enumerate(problem.device_names)}
    device = [index[run.devices[task]] for task in problem.task_names]
    ticks = [int(problem.duration[i, d]) for i, d in enumerate(device)]
    first = min(run.starts.values(), default=Fraction(0))
    start = [0] * n
    before: list[list[int]] = [[] for _ in range(n)]
    for source, target in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        before[target].append(source)
    for i in problem.order.tolist():
        recorded = run.starts.get(problem.task_names[i])
        if recorded is None:
            start[i] = max((start[j] + ticks[j] for j in before[i]), default=0)
        else:
            start[i] = round((recorded - first) / problem.resolution)
    return Schedule(np.array(device, dtype=np.int64), np.array(start, dtype=np.int64))
