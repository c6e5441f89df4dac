"""Task graphs with times and data, as workflows and graph files state them, and the problem documents made of them.

The times of such files hold on one device class. On a network whose devices differ in `speed`, they hold for the
slowest device, and faster devices need less time in proportion. On any other network, every device needs the same time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from placeopt.bridges.importers.imported import Imported, ImportOptions, too_large
from placeopt.bridges.networks import network_of
from placeopt.bridges.operators import after_entry, problem_document
from placeopt.errors import DocumentError, Issue, SpecError, in_file_order, path_text
from placeopt.io.compiler import compile_spec

Place = tuple[str | int, ...] | int | None
"""A position in a file: a path, a line, or unknown."""

FINEST = 12
"""Maximum number of decimals of a time in seconds."""
NANOSECONDS = 9
"""Decimals in seconds of a nanosecond, the tick of graphs whose times are not stated directly."""

_PROBE = 10**15
"""FLOP of the task that measures the speed of devices."""

PROCESSORS = 4
"""Number of devices unless the file or the caller states them."""


@dataclass(slots=True)
class Task:
    """A task of a graph."""

    seconds: Fraction | None
    """Time on the slowest device; None if `keys` states the durations."""
    place: Place = None
    """Position in the file, for messages."""
    after: dict[str, int | None] = field(default_factory=dict)
    """Producers, each with the bytes that move along the edge; None if they are the `output` of the producer."""
    keys: dict[str, Any] = field(default_factory=dict)
    """Further keys of the task in the document."""


@dataclass(slots=True)
class TaskGraph:
    """The tasks of a file by name."""

    name: str
    source: str
    """Origin of the graph, for readers."""
    tasks: dict[str, Task]
    description: str = ""
    memory_model: str | None = None
    edge_places: dict[tuple[str, str], Place] = field(default_factory=dict)
    """Positions of edges (producer, consumer) in the file, for messages."""

    def imported(
        self,
        network: Mapping[str, Any],
        resolution: str,
        issue: Callable[[str, Place], Issue],
        notes: Iterable[str] = (),
    ) -> Imported:
        """Return the problem document on a network, after compiling it once.

        `issue` makes an issue of a message and a position in the file.

        Raises a DocumentError if the document does not compile, for example because of a cycle; it lists every issue
        with its position.
        """
        speed = slowest_speed(network)
        document = problem_document(
            {name: _entry(task, speed) for name, task in self.tasks.items()},
            network,
            name=self.name,
            source=self.source,
            description=self.description,
            resolution=resolution,
            memory_model=self.memory_model,
        )
        try:
            problem = compile_spec(document)
        except SpecError as error:
            raise DocumentError(in_file_order(self._located(each, issue) for each in error.issues)) from None
        return Imported(document, (*too_large(problem), *notes))

    def _located(self, found: Issue, issue: Callable[[str, Place], Issue]) -> Issue:
        """An issue of the document at its position in the file."""
        section, *rest = found.path or ("",)
        if section != "tasks" or not rest:
            return issue(f"{path_text(found.path)}: {found.message}" if found.path else found.message, None)
        name = str(rest[0])
        task = self.tasks[name]
        place = task.place
        if len(rest) > 2 and rest[1] == "after":
            producer = list(task.after)[rest[2]] if isinstance(rest[2], int) else rest[2]
            place = self.edge_places.get((producer, name), place)
        return issue(f"task {path_text([name])}: {found.message}", place)


def _entry(task: Task, speed: int | None) -> dict[str, Any]:
    entry: dict[str, Any]
    if task.seconds is None:
        entry = {}
    elif speed is None:
        entry = {"time": seconds_text(task.seconds)}
    else:
        entry = {"flops": math.ceil(task.seconds * speed)}
    entry |= task.keys
    if task.after:
        entry["after"] = after_entry(task.after)
    return entry


def slowest_speed(network: Mapping[str, Any]) -> int | None:
    """Return the FLOP per second of the slowest device, rounded down; None unless devices differ in `speed`."""
    tasks = {"one": {"flops": 1}, "many": {"flops": _PROBE}}
    try:
        problem = compile_spec({"placeopt": 1, **network, "tasks": tasks})
    except SpecError:  # a device without a speed; other mistakes are reported with the whole document
        return None
    ticks = problem.duration[1] - problem.duration[0] + 1  # without the overhead of the devices
    if int(ticks.min()) == int(ticks.max()):
        return None
    rate = _PROBE / (int(ticks.max()) * problem.resolution)
    # The probe took whole ticks: the stated speed is probably the next whole number.
    whole = round(rate)
    return whole if -(-_PROBE // (whole * problem.resolution)) == ticks.max() else int(rate)


def seconds_text(seconds: Fraction) -> str:
    """Return a time as a decimal with the unit s, to the nearest picosecond."""
    whole, rest = divmod(round(seconds * 10**FINEST), 10**FINEST)
    digits = f"{rest:0{FINEST}}".rstrip("0")
    return f"{whole}.{digits} s" if digits else f"{whole} s"


def decimals(times: Iterable[Fraction]) -> int:
    """Return the least number of decimals, a multiple of 3 up to FINEST, that states all times in seconds exactly."""
    least = 0
    for time in times:
        while least < FINEST and (time * 10**least).denominator != 1:
            least += 3
    return least


TICKS = {0: "1 s", 3: "1 ms", 6: "1 us", 9: "1 ns", 12: "0.001 ns"}
"""The resolution for each number of decimals."""
BANDWIDTHS = {0: "1 B/s", 3: "1 kB/s", 6: "1 MB/s", 9: "1 GB/s", 12: "1 TB/s"}
"""The bandwidth that moves one byte in such a tick."""


def costs_text(exponent: int) -> str:
    """Return the description of a graph whose payloads are communication costs, with decimals of a tick in seconds."""
    return f"Payloads are communication costs: they hold for links of {BANDWIDTHS[exponent]}."


def timed_network(
    options: ImportOptions, exponent: int, processors: int | None, notes: list[str], *, costs: bool
) -> tuple[dict[str, Any], int]:
    """Return the network of a graph whose tasks have times, and the number of decimals of a tick in seconds.

    Parameters
    ----------
    exponent
        Decimals of the times in seconds.
    processors
        Number of processors in the file, if it states one.
    notes
        Notes are added here.
    costs
        Whether payloads are communication costs: one byte for each tick.
    """
    if options.network is None:
        network: dict[str, Any] = {"devices": {"processor": {"count": processors or PROCESSORS}}}
        if processors is None:
            notes.append(f"the problem has {PROCESSORS} identical processors; edit `devices`, or state --devices")
    else:
        network, more = network_of(options.network)
        notes += more
        if slowest_speed(network) is not None:
            notes.append("times hold for the slowest device; faster ones need less time in proportion to their speed")
            exponent = max(exponent, min(exponent + 3, NANOSECONDS))
        if "links" in network:  # whose latencies would take whole ticks
            exponent = max(exponent, NANOSECONDS)
    if costs and "links" not in network:
        network["links"] = {"default": {"bandwidth": BANDWIDTHS[exponent]}}
    elif costs:
        notes.append(f"communication costs hold for links of {BANDWIDTHS[exponent]}; other links change them")
    return network, exponent
