"""Read the traces of ONNX Runtime and of torch.profiler as measurements of operators.

Both are JSON in the Chrome trace event format. A complete event (`"ph": "X"`) has a start `ts` and a duration `dur` in
microseconds. Times are converted to whole nanoseconds, so that nesting is decided exactly.

Traces contain times only, although ONNX Runtime also states sizes: the sizes of an imported model come from the model,
and are exact. Neither format states the batch size.

ONNX Runtime writes an array of events. Each execution of a node is an event `<name>_kernel_time` of category `Node`.
The nodes inside of control flow (`If`, `Loop`, `Scan`) run during the event of their node and are part of its time. If
a GPU was profiled, events of category `Kernel` follow the event of the node that launched them. A run of the session is
an event `model_run`.

Kineto, the library behind torch.profiler, writes an object with `traceEvents`. Operators are the innermost annotations
(`record_function`), or the outermost operations of PyTorch, such as `aten::addmm`, if there are none. If the trace
contains work of a GPU, the time of an operator is that of the GPU work that it launched: a launch and its kernels share
a correlation number. A step of `profiler.step()` is a run.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from placeopt.bridges.profiling.measurements import Measurements, Runs, fixed
from placeopt.errors import DocumentError, Issue, counted, in_file_order, listing
from placeopt.io.document import Document, collection_paused, parse_document, reading
from placeopt.io.files import StrPath, largest, read_file, text_of
from placeopt.model.arrays import Float
from placeopt.model.units import excerpt

_GZIP = b"\x1f\x8b"
_KERNEL_TIME = "_kernel_time"
_DEVICE_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_STEP = re.compile(r"ProfilerStep#\d+")
_LONGEST = 10**15
"""Largest time stamp or duration in microseconds: 30 years."""

_EXPECTED = {
    "name": "a name", "ts": "a number of microseconds", "dur": "a number of microseconds", "args": "a mapping",
}  # fmt: skip

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """A complete event; times in nanoseconds."""

    category: str
    name: str
    thread: str
    start: int
    duration: int
    args: Mapping[str, Any]

    @property
    def end(self) -> int:
        return self.start + self.duration


def is_trace(content: bytes) -> bool:
    """Whether the content of a file is JSON, perhaps compressed by gzip, instead of CSV."""
    return content.startswith(_GZIP) or _json_start(content) in (b"[", b"{")


def trace_of(content: bytes, file: str, batch: int, device: str | None = None) -> Measurements:
    """Read the content of a trace of either format; see `read_onnxruntime_profile` and `read_kineto_trace`."""
    content = _unpacked(content, file)
    if _json_start(content) == b"[":
        return _onnxruntime(_document(content, file), file, batch, device)
    return _kineto(_document(content, file), file, batch, device)


def read_onnxruntime_profile(path: StrPath, batch: int = 1, *, device: str | None = None) -> Measurements:
    """Read a profile of ONNX Runtime (`SessionOptions.enable_profiling`) as times of the nodes of the model.

    Parameters
    ----------
    batch
        Batch size of the profiled runs, which the profile does not state.
    device
        The device of a problem on which the session ran; by default, the times apply to every device.

    Raises
    ------
    DocumentError
        If the file cannot be read or is not such a profile; lists every issue with its position.
    """
    return _onnxruntime(_trace(path), str(path), batch, device)


def read_kineto_trace(path: StrPath, batch: int = 1, *, device: str | None = None) -> Measurements:
    """Read a trace of torch.profiler (`export_chrome_trace`), perhaps compressed by gzip, as times of operators.

    See `read_onnxruntime_profile` for the parameters and errors.
    """
    return _kineto(_trace(path), str(path), batch, device)


def _onnxruntime(document: Document, file: str, batch: int, device: str | None) -> Measurements:
    if not isinstance(document.data, list):
        raise _refused(document, "is not a profile of ONNX Runtime; expected a list of events")
    events = _events(document, document.data, (), {"Node", "Kernel", "Session"})
    threads: dict[str, list[_Event]] = {}
    nodes: dict[str, _Event] = {}
    on_gpu: Counter[int] = Counter()
    for event in events:
        if event.category == "Node" and event.name.removesuffix(_KERNEL_TIME) not in ("", event.name):
            threads.setdefault(event.thread, []).append(event)
            nodes[event.name] = event
        elif event.category == "Kernel" and (parent := nodes.get(str(event.args.get("parent_name")))) is not None:
            on_gpu[id(parent)] += event.duration
    executed = [event for found in threads.values() for event, depth, _ in _nested(found) if depth == 0]
    if not executed:
        raise _refused(document, "has no kernel times; expected a profile of at least one run of a session")
    executed.sort(key=lambda event: event.start)
    duration = [on_gpu.get(id(event), event.duration) for event in executed]
    providers = Counter(str(event.args["provider"]) for event in executed if "provider" in event.args)
    notes = []
    if len(providers) > 1:
        shares = [f"{name} ({number:,})" for name, number in providers.most_common()]
        notes.append(f"{file}: nodes ran on several execution providers: {listing(shares)}")
    return Measurements.of(
        [(event.name.removesuffix(_KERNEL_TIME), device) for event in executed],
        np.full(len(executed), batch),
        _seconds(duration),
        file=file,
        runs=_runs([event for event in events if event.name == "model_run"], executed, duration, batch),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of operators in a Kineto trace, and the steps of the profiler; both in order of their starts."""

    executed: Sequence[_Event]
    duration: Sequence[int]
    """Nanoseconds of each call."""
    steps: Sequence[_Event]
    around: Sequence[str]
    """Annotations that contain others."""
    annotated: bool
    """Whether the calls are annotations, not operations of PyTorch."""

    def runs(self, batch: int) -> tuple[Runs, ...]:
        """The steps as whole runs."""
        return _runs(self.steps, self.executed, self.duration, batch)


def kineto_calls(document: Document) -> Calls:
    """Return the calls of operators in a Kineto trace; raises a DocumentError that lists every issue."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("traceEvents"), list):
        raise _refused(document, "is not a trace of torch.profiler; expected a mapping with the list traceEvents")
    events = _events(document, data["traceEvents"], ("traceEvents",), None)
    by_step: dict[bool, list[_Event]] = {True: [], False: []}
    for event in events:
        if event.category == "user_annotation":
            by_step[_STEP.fullmatch(event.name) is not None].append(event)
    annotated = bool(by_step[False])
    candidates = by_step[False] or [event for event in events if event.category == "cpu_op"]
    if not candidates:
        raise _refused(document, "has no operators; expected record_function annotations or operations of PyTorch")
    of_thread: dict[str, list[_Event]] = {}
    for event in candidates:
        of_thread.setdefault(event.thread, []).append(event)
    found = [each for events in of_thread.values() for each in _nested(events)]
    around = dict.fromkeys(event.name for event, _, contains in found if contains) if annotated else {}
    executed = [event for event, depth, _ in found if (event.name not in around if annotated else depth == 0)]
    executed.sort(key=lambda event: event.start)
    duration = [event.duration for event in executed]
    if any(event.category in _DEVICE_WORK for event in events):
        duration = _device_time(executed, events)
    return Calls(executed, duration, sorted(by_step[True], key=lambda step: step.start), list(around), annotated)


def _kineto(document: Document, file: str, batch: int, device: str | None) -> Measurements:
    calls = kineto_calls(document)
    notes = []
    if calls.around:
        number = counted(len(calls.around), "annotation")
        notes.append(f"{file}: {number} around others: not operators: {listing(calls.around, 5)}")
    if not calls.annotated:
        notes.append(
            f"{file}: no annotations; the operators are operations of PyTorch, each with the mean of all its calls"
        )
    return Measurements.of(
        [(event.name if calls.annotated else _operation(event.name), device) for event in calls.executed],
        np.full(len(calls.executed), batch),
        _seconds(calls.duration),
        file=file,
        runs=calls.runs(batch),
        notes=tuple(notes),
    )


def _operation(name: str) -> str:
    """Return `relu` for `aten::relu_`: the name without its library and the mark of the variant in place."""
    name = name.rpartition("::")[2]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def _device_time(operators: Sequence[_Event], events: Sequence[_Event]) -> list[int]:
    """Return the time of the GPU work that each operator launched, in nanoseconds.

    An operator without GPU work, such as a view, takes no time on the GPU.
    """
    work: Counter[Any] = Counter()
    launches: dict[str, list[tuple[int, Any]]] = {}
    for event in events:
        number = event.args.get("correlation")
        if not isinstance(number, int | str):
            continue
        if event.category in _DEVICE_WORK:
            work[number] += event.duration
        else:
            launches.setdefault(event.thread, []).append((event.start, number))
    time = [0] * len(operators)
    places: dict[str, list[int]] = {}
    for place, event in enumerate(operators):
        places.setdefault(event.thread, []).append(place)
    for thread, launched in launches.items():
        own = places.get(thread, [])
        starts = np.array([operators[place].start for place in own], dtype=np.int64)
        for start, number in launched:
            found = int(np.searchsorted(starts, start, side="right")) - 1
            if found >= 0 and start < operators[own[found]].end:
                time[own[found]] += work.pop(number, 0)
    return time


def _nested(events: Sequence[_Event]) -> Iterator[tuple[_Event, int, bool]]:
    """Return each event of one thread with its depth below other events, and whether it contains others.

    Events of one thread that overlap are nested. ONNX Runtime truncates starts and durations to microseconds. Therefore
    an event without duration at the start of another precedes it, and an event ends at the latest with its parent.
    """
    order = sorted(events, key=lambda event: (event.start, event.duration > 0, -event.duration))
    depth = [0] * len(order)
    contains = [False] * len(order)
    stack: list[tuple[int, int]] = []  # the end and the place of each event that has not ended
    for place, event in enumerate(order):
        while stack and stack[-1][0] <= event.start:
            stack.pop()
        depth[place] = len(stack)
        end = event.end
        if stack:
            around, parent = stack[-1]
            contains[parent] = True
            end = min(end, around)
        stack.append((end, place))
    return zip(order, depth, contains, strict=True)


def _runs(runs: Sequence[_Event], operators: Sequence[_Event], duration: Sequence[int], batch: int) -> tuple[Runs, ...]:
    """Return the runs with the sum of the operators that start in each; nothing if runs overlap.

    `operators` are in order of their starts.
    """
    runs = sorted(runs, key=lambda run: run.start)
    if not runs or any(run.end > after.start for run, after in pairwise(runs)):
        return ()
    starts = np.array([operator.start for operator in operators], dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(np.array(duration, dtype=np.int64))])
    first = np.searchsorted(starts, [run.start for run in runs])
    last = np.searchsorted(starts, [run.end for run in runs])
    inside = before[last] - before[first]
    return (Runs(batch, fixed(_seconds([run.duration for run in runs])), fixed(_seconds(inside))),)


def _seconds(nanoseconds: Any) -> Float:
    return np.array(nanoseconds, dtype=np.float64) / 10**9


def _events(
    document: Document, listed: Sequence[Any], place: Place, categories: frozenset[str] | set[str] | None
) -> list[_Event]:
    """Return the complete events of some categories, or of all; raises a DocumentError that lists every issue."""
    events: list[_Event] = []
    issues: list[Issue] = []
    with collection_paused():
        for number, event in enumerate(listed):
            if not isinstance(event, dict):
                issues.append(document.issue(f"{excerpt(event)} is not an event; expected a mapping", (*place, number)))
                continue
            category = event.get("cat")
            if event.get("ph") != "X" or not isinstance(category, str):
                continue
            if categories is not None and category not in categories:
                continue
            name, args = event.get("name"), event.get("args") or {}
            start, duration = _nanoseconds(event.get("ts")), _nanoseconds(event.get("dur"))
            if name and isinstance(name, str) and isinstance(args, dict) and start is not None and duration is not None:
                thread = f"{event.get('pid')}/{event.get('tid')}"
                events.append(_Event(category, name, thread, start, duration, args))
                continue
            valid = {"name": isinstance(name, str) and name, "args": isinstance(args, dict)}
            valid |= {"ts": start is not None, "dur": duration is not None}
            for key in (key for key in _EXPECTED if not valid[key]):
                found = excerpt(event[key]) if key in event else f"{key} is missing"
                issues.append(document.issue(f"{found}; expected {_EXPECTED[key]}", (*place, number, key)))
    if issues:
        raise DocumentError(in_file_order(issues))
    return events


def _nanoseconds(microseconds: object) -> int | None:
    """Microseconds as whole nanoseconds; None if they are not a valid time."""
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    return round(microseconds * 1000) if 0 <= microseconds <= _LONGEST else None


def _trace(path: StrPath) -> Document:
    with reading(path):
        content = read_file(path)
    return _document(_unpacked(content, str(path)), str(path))


def _unpacked(content: bytes, file: str) -> bytes:
    """Return the content without the compression by gzip, up to the size limit of files."""
    if not content.startswith(_GZIP):
        return content
    limit = largest()
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            found = packed.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DocumentError([Issue(f"is not valid gzip data: {error}", (), file)]) from None
    if len(found) > limit:
        raise DocumentError([Issue(f"has more than {limit:,} bytes when it is unpacked, the size limit", (), file)])
    return found


def _document(content: bytes, file: str) -> Document:
    with reading(file):
        text = text_of(content)
    try:
        return parse_document(text, file=file, json_format=True)
    except DocumentError as error:
        if not text.rstrip().endswith(("]", "}")):
            raise DocumentError([
                *error.issues,
                Issue("ends early; expected the end of a trace, which end_profiling() of a session writes", (), file),
            ]) from None  # fmt: skip
        raise


def _json_start(content: bytes) -> bytes:
    return content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def _refused(document: Document, message: str) -> DocumentError:
    return DocumentError([document.issue(message, ())])
