"""Write schedules as traces for ui.perfetto.dev and chrome://tracing.

The files use the JSON object format of the Trace Event Format (Google,
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), with

    metadata events (M)   names and order of processes and threads
    complete events (X)   tasks, one thread per device, those of teams on that of each member; under port contention
                          also transfers, on one thread for the sending and one for the receiving port of each device,
                          or for its only port
    flow events (s, f)    transfers: from a producer to its consumers on other devices; under port contention from the
                          producer to the sending port, then to the receiving port, then to every consumer served
    counter events (C)    live bytes on each device, and what is in use of renewable resources, in separate processes

The trace of a pipeline shows its first runs until three periods of the steady state are complete: one thread with the
periods, and for each device one thread for each of its tracks (`placeopt.simulation.pipelines`). Its memory does not
vary over time, so there are no counters.

Viewers have further requirements. Slices of one thread never overlap (google/perfetto issues 928 and 4280), so tasks
that overlap, on a parallel device or in an infeasible schedule, are put on additional threads. Process 0 means the
kernel (issue 394), so processes count from 1. A flow binds to the slice that was opened last on its thread at its time
(flow_tracker.cc), so flow events follow their slice with the same time stamp, and the file is sorted by time. Arrows
are still drawn from the end of one slice to the start of the next. Text is unescaped UTF-8. SQL queries in Perfetto 55
return the slices, times, flows and counters of the schedule, with one exception: of slices of one thread that start
together, Perfetto opens the longest first, so arrows of a task may start at a slice of zero length.

The format counts microseconds and viewers keep nanoseconds. Ticks of whole nanoseconds are written exactly. For finer
ticks, starts and ends are rounded down, so that slices do not overlap; the arguments of each slice hold exact ticks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.io.files import StrPath, write_whole
from placeopt.model.memory import freed_at, memory_profile
from placeopt.model.modes import homes, memory_capacity, own_devices, task_label
from placeopt.model.period import sends
from placeopt.model.ports import channels, ports_of
from placeopt.model.problem import Problem
from placeopt.model.resource_use import device_resources, lanes, occupied_devices, use_over_time
from placeopt.model.schedule import Schedule, check_schedule, durations, edge_ticks, edge_transfers, makespan
from placeopt.model.stages import rules
from placeopt.simulation.steady import KINDS, runs_of, steady_periods
from placeopt.views.facts import task_traffic

NANO = 10**9
SCHEDULE, MEMORY, RESOURCES = 1, 2, 3
"""Process numbers of the trace; viewers treat process 0 as the kernel."""

STEADY = 3
"""Periods of the steady state of a pipeline."""
MOST_SLICES = 1_000_000
"""Maximum number of tasks in the trace of a pipeline, in all runs together; at least one run is written."""

_TASK, _SEND, _RECEIVE = range(3)


@dataclass(slots=True)
class _Slice:
    """A complete event, times in nanoseconds, with the flow events that are bound to it."""

    start: int
    end: int
    rank: tuple[int, int]  # order of slices with equal times: a producer, its transfers, a consumer
    thread: int
    label: str  # name and category, as JSON
    args: str
    flows: list[str]  # without their time and thread


def trace_text(problem: Problem, schedule: Schedule) -> str:
    """Return the trace of a schedule as JSON, one event per line; O((n + e) log(n + e)).

    A transfer to a consumer that starts before its producer (in an infeasible schedule) has no arrow.
    """
    other: dict[str, Any] = {
        "problem": problem.name,
        "fingerprint": problem.fingerprint(),
        "resolution": f"{problem.resolution} s per tick",
        "exact": "yes"
        if (problem.resolution * NANO).denominator == 1
        else "no: times are rounded down to nanoseconds; the arguments hold exact ticks",
    }
    periods = None if problem.pipeline is None else steady_periods(problem, schedule)
    if periods is None:
        tracks = _Tracks(problem, schedule)
        other["makespan_ticks"] = makespan(problem, schedule)
        events = [*tracks.names(), *tracks.slices(), *_counters(problem, schedule), *_uses(problem, schedule)]
    else:
        runs = max(1, min(periods + STEADY, MOST_SLICES // max(problem.n_tasks, 1)))
        many = _Runs(problem, schedule, runs, periods)
        other |= {
            "latency_ticks": makespan(problem, schedule),
            "period_ticks": many.period,
            "runs": runs,
            "steady_state": f"from period {periods + 1} on" if periods < runs else "after the runs shown here",
        }
        events = [*many.names(), *many.slices()]
    return _document(other, events)


def write_trace(path: StrPath, problem: Problem, schedule: Schedule) -> None:
    """Write the trace of a schedule; an existing file is replaced completely or not at all.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    check_schedule("write_trace", problem, schedule)
    write_whole(path, trace_text(problem, schedule))


@dataclass(frozen=True, slots=True)
class Span:
    """A slice of a trace; times in seconds."""

    name: str
    start: float
    end: float
    args: Mapping[str, Any]


def write_spans(path: StrPath, processes: Mapping[str, Mapping[str, Sequence[Span]]], other: Mapping[str, Any]) -> None:
    """Write spans as a trace, by name of the process and the thread; processes are one above the other.

    Raises an OSError if the file cannot be written.
    """
    titles = list(processes)
    tracks = [(process, name) for process, threads in enumerate(processes.values(), start=1) for name in threads]
    spans = [
        (int(span.start * NANO), int(max(span.start, span.end) * NANO), track, span)
        for track, (process, name) in enumerate(tracks)
        for span in processes[titles[process - 1]][name]
    ]
    spans.sort(key=lambda each: each[:3])
    found = lanes((track, start, end) for start, end, track, _ in spans)
    used = sorted({*found, *((track, 0) for track in range(len(tracks)))})
    number = {lane: count for count, lane in enumerate(used, start=len(processes) + 1)}
    events = [event for count, title in enumerate(titles, 1) for event in _named("process", count, None, title, count)]
    for (track, lane), count in number.items():
        process, name = tracks[track]
        events += _named("thread", process, count, _lane_name(name, lane), count)
    for (start, end, track, span), taken in zip(spans, found, strict=True):
        place = f'"pid":{tracks[track][0]},"tid":{number[taken]},"ts":{_micro(start)},"dur":{_micro(end - start)}'
        label = f'"name":{_json(span.name)},"cat":"span"'
        events.append(f'{{"ph":"X",{label},{place},"args":{_json(dict(span.args))}}}')
    write_whole(path, _document(dict(other), events))


class _Threads:
    """The slices of a process, on threads by number; slices that overlap go on additional threads."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._position = np.argsort(problem.order).tolist()
        self._all: list[_Slice] = []
        self._lanes: list[tuple[int, int]] = []
        self._parallel: set[int] = set()  # threads whose slices may overlap

    def _finish(self, threads: Iterable[int]) -> None:
        """Sort the slices, and number the threads from the second one on; these `threads` exist even if empty."""
        self._all.sort(key=lambda each: (each.start, each.end, each.rank))
        found = lanes((each.thread, each.start, each.end) for each in self._all)
        self._lanes = sorted({*found, *((thread, 0) for thread in threads)})
        number = {lane: count for count, lane in enumerate(self._lanes, start=SCHEDULE + 1)}
        for each, lane in zip(self._all, found, strict=True):
            each.thread = number[lane]

    def _names(self, title: str, name: Callable[[int], str]) -> Iterator[str]:
        """Return the metadata events: names and order of processes and threads."""
        yield from _named("process", SCHEDULE, None, f"{title} of {self._problem.name or 'problem'}", 1)
        for count, (thread, lane) in enumerate(self._lanes, start=SCHEDULE + 1):
            text = f"{name(thread)} {lane + 1}" if lane and thread in self._parallel else _lane_name(name(thread), lane)
            yield from _named("thread", SCHEDULE, count, text, count)

    def slices(self) -> Iterator[str]:
        """Return the complete events by time, each followed by its flow events."""
        for each in self._all:
            place = f'"pid":{SCHEDULE},"tid":{each.thread},"ts":{_micro(each.start)}'
            yield f'{{"ph":"X",{each.label},{place},"dur":{_micro(each.end - each.start)},"args":{{{each.args}}}}}'
            for flow in each.flows:
                yield f"{{{flow},{place}}}"


class _Tracks(_Threads):
    """The threads of a schedule: tasks of each device and, under contention, its ports; channels of shared links."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        super().__init__(problem)
        self._device = homes(problem)[schedule.device].tolist()
        # What is added to the name of a device for each of its threads.
        self._added = [""]
        if schedule.transfers is not None:
            self._added += [" transfers"] if problem.contention == "half_duplex" else [" sends", " receives"]
        self._per_device = len(self._added)
        self._parallel = {int(d) * self._per_device for d in np.flatnonzero(problem.parallel)}
        self._tasks = self._make_tasks(schedule)
        self._all = [*self._tasks, *self._make_members(schedule), *self._make_flows(schedule)]
        self._channels = [] if schedule.transfers is None else [name for name, _ in channels(problem)]
        first = self._per_device * problem.n_devices
        own = [d * self._per_device + kind for d in own_devices(problem) for kind in range(self._per_device)]
        self._finish([*own, *range(first, first + len(self._channels))])

    def names(self) -> Iterator[str]:
        """Return the metadata events."""
        yield from self._names("schedule", self._name)
        yield from _named("process", MEMORY, None, "memory", 2)
        if self._problem.resources is not None:
            yield from _named("process", RESOURCES, None, "resources", 3)

    def _name(self, thread: int) -> str:
        device, kind = divmod(thread, self._per_device)
        if device >= self._problem.n_devices:
            return self._channels[thread - self._per_device * self._problem.n_devices]
        return self._problem.device_names[device] + self._added[kind]

    def _make_tasks(self, schedule: Schedule) -> list[_Slice]:
        problem = self._problem
        ticks = durations(problem, schedule.device).tolist()
        sent, received = task_traffic(problem, schedule.device)
        labels = [task_label(problem, i, d) for i, d in enumerate(schedule.device.tolist())]
        columns = zip(
            labels, self._device, schedule.start.tolist(), ticks, problem.resident.tolist(),
            problem.output.tolist(), problem.scratch.tolist(), sent.tolist(), received.tolist(), self._position,
            strict=True,
        )  # fmt: skip
        return [
            _Slice(
                _nano(problem, start), _nano(problem, start + took), (position, _TASK), device * self._per_device,
                f'"name":{_json(name)},"cat":"task"',
                f'"start_ticks":{start},"duration_ticks":{took},"resident_bytes":{resident},"output_bytes":{output},'
                f'"scratch_bytes":{scratch},"sent_bytes":{out},"received_bytes":{into}',
                [],
            )
            for name, device, start, took, resident, output, scratch, out, into, position in columns
        ]  # fmt: skip

    def _make_members(self, schedule: Schedule) -> Iterator[_Slice]:
        """Yield the slices of teams on further members, without flows: the first one has the inputs and outputs."""
        task, device = occupied_devices(self._problem, schedule)
        for i, d in zip(task.tolist(), device.tolist(), strict=True):
            if d != self._device[i]:
                yield replace(self._tasks[i], thread=d * self._per_device, flows=[])

    def _make_flows(self, schedule: Schedule) -> list[_Slice]:
        """Bind the flows of all transfers to their slices; return the slices of transfers, if any."""
        problem = self._problem
        carriers = edge_transfers(problem, schedule.device).tolist()
        sources, targets = problem.edge_source.tolist(), problem.edge_target.tolist()
        received = self._make_transfers(schedule, sources, targets, carriers)
        flow = problem.n_edges * 2 + 1  # above the numbers that transfers use
        for edge, carrier in enumerate(carriers):
            if carrier < 0 or self._device[sources[edge]] == self._device[targets[edge]]:
                continue
            sender = (
                self._tasks[sources[edge]] if schedule.transfers is None else received.get(carrier, [None, None])[1]
            )
            if sender is not None:
                _bind(sender, self._tasks[targets[edge]], flow + edge)
        return [each for slices in received.values() for each in slices]

    def _make_transfers(
        self, schedule: Schedule, sources: list[int], targets: list[int], carriers: list[int]
    ) -> dict[int, list[_Slice]]:
        """Return the slices of each scheduled transfer, by edge: on the two ports, then on channels of shared links."""
        problem, table = self._problem, schedule.transfers
        made: dict[int, list[_Slice]] = {}
        if table is None:
            return made
        ticks, m = edge_ticks(problem, schedule.device).tolist(), problem.n_devices
        for edge, start in zip(table.edge.tolist(), table.start.tolist(), strict=True):
            if carriers[edge] != edge or edge in made:  # a superfluous row, which the verifier reports
                continue
            source, target = sources[edge], targets[edge]
            name = _json(f"{problem.task_names[source]} -> {problem.task_names[target]}")
            args = (
                f'"start_ticks":{start},"duration_ticks":{ticks[edge]},"payload_bytes":{int(problem.payload[edge])},'
                f'"from":{_json(problem.device_names[self._device[source]])},'
                f'"to":{_json(problem.device_names[self._device[target]])}'
            )
            times = _nano(problem, start), _nano(problem, start + ticks[edge])
            send, receive = (
                _Slice(
                    *times, (self._position[source], kind),
                    self._device[task] * self._per_device + min(kind, self._per_device - 1),
                    f'"name":{name},"cat":"transfer"', args, [],
                )
                for kind, task in ((_SEND, source), (_RECEIVE, target))
            )  # fmt: skip
            _bind(self._tasks[source], send, 2 * edge + 1)
            _bind(send, receive, 2 * edge + 2)
            made[edge] = [send, receive]
            made[edge] += [
                _Slice(
                    *times, (self._position[source], _SEND), self._per_device * m + port - 2 * m,
                    f'"name":{name},"cat":"transfer"', args, [],
                )
                for port in ports_of(problem, self._device[source], self._device[target])
                if port >= 2 * m
            ]  # fmt: skip
        return made


_TRACK_NAMES = (
    ("", "", ""),
    ("", " receives", ""),
    ("", " transfers", ""),
    ("", " sends", " receives"),
)
"""What is added to the name of a device for its tracks, by overlap and full duplex."""
_FREE_TRACK = 3
_PERIODS = -1


class _Runs(_Threads):
    """The slices of the first runs of a pipeline."""

    def __init__(self, problem: Problem, schedule: Schedule, runs: int, steady: int) -> None:
        found = runs_of(problem, schedule, runs)
        assert found is not None
        super().__init__(problem)
        self.period = found.period
        pipeline = rules(problem)
        self._mode = (2 * pipeline.overlap + pipeline.full_duplex).tolist()
        ticks = self.period * problem.resolution
        for k in range(runs):
            name = f"period {k + 1}" + (", steady" if k >= steady else "")
            begin, end = int(k * ticks * NANO), int((k + 1) * ticks * NANO)
            self._all.append(_Slice(begin, end, (-1, 0), _PERIODS, f'"name":{_json(name)},"cat":"period"', "", []))
        slices: dict[tuple[int, int, int], _Slice] = {}
        columns = zip(
            found.kind.tolist(), found.device.tolist(), found.run.tolist(), found.start.tolist(), found.end.tolist(),
            found.tracks[:, 0].tolist(), found.task.tolist(), found.edge.tolist(), strict=True,
        )  # fmt: skip
        for kind, device, run, start, end, track, task, edge in columns:
            thread = device * (_FREE_TRACK + 1) + (track if track >= 0 else _FREE_TRACK)
            rank = (self._position[task] if task >= 0 else problem.n_tasks, (1, 0, 2, 3, 4)[kind])
            made = _Slice(
                _nano(problem, start), _nano(problem, end), rank, thread, self._label(kind, task, edge, schedule),
                f'"run":{run + 1},"start_ticks":{start},"duration_ticks":{end - start}', [],
            )  # fmt: skip
            self._all.append(made)
            slices[kind, run, edge if edge >= 0 else task] = made
        self._bind(schedule, slices, runs)
        self._finish(range(0, problem.n_devices * (_FREE_TRACK + 1), _FREE_TRACK + 1))

    def names(self) -> Iterator[str]:
        """Return the metadata events."""
        return self._names("pipeline", self._name)

    def _name(self, thread: int) -> str:
        if thread == _PERIODS:
            return "periods"
        device, track = divmod(thread, _FREE_TRACK + 1)
        added = " transfers without load" if track == _FREE_TRACK else _TRACK_NAMES[self._mode[device]][track]
        return self._problem.device_names[device] + added

    def _label(self, kind: int, task: int, edge: int, schedule: Schedule) -> str:
        problem, what = self._problem, KINDS[kind]
        name = "synchronise replicas" if task < 0 else problem.task_names[task]
        if what == "launch":
            name = "launch of a stage"
            if schedule.stages is not None and schedule.stages.recompute[schedule.device[task]]:
                name = "launch of a stage, forward tasks again"
        elif what == "send":
            name = f"send {name}"
        elif what == "receive":
            name = f"receive {name} for {problem.task_names[int(problem.edge_target[edge])]}"
        return f'"name":{_json(name)},"cat":"{what}"'

    def _bind(self, schedule: Schedule, slices: dict[tuple[int, int, int], _Slice], runs: int) -> None:
        """Add arrows from producers to sends, to receives, to consumers."""
        problem = self._problem
        edges, _, place = sends(problem, schedule.device)
        carriers = edge_transfers(problem, schedule.device).tolist()
        task, send, receive = KINDS.index("task"), KINDS.index("send"), KINDS.index("receive")
        count = 0
        for run in range(runs):
            pairs = [
                (slices[task, run, int(problem.edge_source[edge])], slices[send, run, edge]) for edge in edges.tolist()
            ]
            for edge, carrier in enumerate(carriers):
                if carrier < 0:
                    continue
                arrived = slices[receive, run, carrier]
                if carrier == edge:
                    pairs.append((slices[send, run, int(edges[place[edge]])], arrived))
                pairs.append((arrived, slices[task, run, int(problem.edge_target[edge])]))
            for source, target in pairs:
                count += 1
                _bind(source, target, count)


def _bind(source: _Slice, target: _Slice, number: int) -> None:
    """Add an arrow between two slices, unless it would point back in time."""
    if (source.start, source.end, source.rank) < (target.start, target.end, target.rank):
        source.flows.append(f'"ph":"s","id":{number},"name":"data","cat":"data"')
        target.flows.append(f'"ph":"f","bp":"e","id":{number},"name":"data","cat":"data"')


def _counters(problem: Problem, schedule: Schedule) -> Iterator[str]:
    """Return the live bytes on each device."""
    freed = freed_at(problem, schedule)
    for d in own_devices(problem):
        (ticks, live), capacity = memory_profile(problem, schedule, d, freed), memory_capacity(problem, d)
        title = f"{problem.device_names[d]} (capacity {'unlimited' if capacity is None else f'{capacity} bytes'})"
        yield from _counter(problem, title, MEMORY, "bytes", ticks.tolist(), live.tolist())


def _uses(problem: Problem, schedule: Schedule) -> Iterator[str]:
    """Return what is in use of each renewable resource."""
    resources, hidden = problem.resources, device_resources(problem)
    for r in [] if resources is None else np.flatnonzero(resources.renewable).tolist():
        if resources is None or r in hidden:
            continue
        ticks, used = use_over_time(problem, schedule, r)
        title = f"{resources.names[r]} (capacity {resources.text(r, int(resources.capacity[r]))})"
        amounts = [resources.stated(r, amount) for amount in used.tolist()]
        yield from _counter(problem, title, RESOURCES, "used", ticks.tolist(), amounts)


def _counter(
    problem: Problem, title: str, process: int, what: str, ticks: list[int], amounts: Sequence[float]
) -> Iterator[str]:
    """Return counter events: an amount at each change."""
    label = f'"ph":"C","name":{_json(title)},"pid":{process},"tid":{process}'
    moments = {_nano(problem, tick): amount for tick, amount in zip(ticks, amounts, strict=True)}
    for moment, amount in moments.items():
        yield f'{{{label},"ts":{_micro(moment)},"args":{{"{what}":{_json(amount)}}}}}'


def _document(other: dict[str, Any], events: Sequence[str]) -> str:
    body = ",\n".join(events)
    return f'{{"displayTimeUnit":"ms","otherData":{_json(other)},"traceEvents":[\n{body}\n]}}\n'


def _named(what: str, process: int, thread: int | None, name: str, order: int) -> Iterable[str]:
    place: dict[str, Any] = {"ph": "M", "pid": process, **({} if thread is None else {"tid": thread})}
    yield _json({**place, "name": f"{what}_name", "args": {"name": name}})
    yield _json({**place, "name": f"{what}_sort_index", "args": {"sort_index": order}})


def _lane_name(name: str, lane: int) -> str:
    return f"{name}, overlapping {lane}" if lane else name


def _json(value: Any) -> str:
    """Return JSON with unescaped text, because Perfetto (v55) rejects escaped surrogate pairs.

    Lone surrogates, which UTF-8 cannot encode, become question marks.
    """
    return json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()


def _nano(problem: Problem, ticks: int) -> int:
    """Return ticks as nanoseconds, rounded down."""
    return ticks * problem.resolution.numerator * NANO // problem.resolution.denominator


def _micro(nano: int) -> str:
    """Return nanoseconds as exact microseconds: a JSON number with up to three decimals."""
    whole, rest = divmod(abs(nano), 1000)
    text = f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
    return f"-{text}" if nano < 0 else text
