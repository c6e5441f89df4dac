"""Files of unknown format, options and results of imports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from placeopt.errors import UsageError, alternatives, counted, listing, visible
from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_file, read_start
from placeopt.model.memory import shortage
from placeopt.model.problem import Problem
from placeopt.model.units import is_whole

OBJECTIVES = ("makespan", "period")
"""Objectives of imported problems."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import. None, or an empty mapping, is the default of the format.

    Every format takes `name` and `resolution`. `Importer.takes` lists the others that a format takes.
    """

    name: str | None = None
    """Name of the problem. Default: the name of the file, or of the model in it."""
    resolution: str | None = None
    """Length of a tick, such as `10 ns`."""
    network: Mapping[str, Any] | StrPath | None = None
    """The devices and links, as `placeopt.bridges.networks.network_of` takes them."""
    batch: int | None = None
    """Batch size."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Values of named dimensions, such as {"seq": 128}."""
    level: str | None = None
    """Granularity of the tasks."""
    precision: str | None = None
    """Number format of the computation, such as `fp16`."""
    context: int | None = None
    """Number of tokens in the context of a language model."""
    phase: str | None = None
    """Phase of a language model: `prefill` or `decode`."""
    tensor_parallel: tuple[int, ...] = ()
    """How many devices may run a layer of a language model together: a mode of each task for each number."""
    objective: str | None = None
    """Objective of the problem: `makespan` or `period`."""
    target: str | None = None
    """The runtime that must be able to execute every plan, by the name of its format of export."""
    serve: bool | None = None
    """Whether a language model becomes a serving problem: its layers are divided among the devices for the most tokens
    per second."""
    addresses: str | None = None
    """Alignment of addresses, such as `64 B`: plans state offsets, and tasks state which outputs may share bytes."""
    plan: bool | None = None
    """Whether the run that the file records is read as a plan."""

    def __post_init__(self) -> None:
        if self.name is not None and not self.name.strip():
            raise UsageError("the name of the problem is empty; expected a name")
        if self.objective is not None and self.objective not in OBJECTIVES:
            wrong = visible(str(self.objective))
            raise UsageError(f"{wrong} is not an objective of an import{alternatives(wrong, OBJECTIVES)}")
        if any(not is_whole(degree) or degree < 1 for degree in self.tensor_parallel):
            stated = ", ".join(map(str, self.tensor_parallel))
            raise UsageError(f"tensor_parallel is {stated}; expected numbers of devices such as 1, 2, 4")

    @property
    def pipelined(self) -> bool:
        """Whether the problem is a pipeline."""
        return self.objective == "period"


@dataclass(frozen=True, slots=True, repr=False)
class Imported:
    """The result of an import."""

    document: dict[str, Any]
    """The problem document, for `placeopt.compile`."""
    notes: tuple[str, ...] = ()
    """What was guessed, dropped or missing: one sentence each."""
    plan: dict[str, Any] | None = field(default=None, kw_only=True)
    """The plan of the recorded run, if the options request it."""

    def __repr__(self) -> str:
        name = visible(str(self.document.get("name", "")), 40)
        tasks, notes = counted(len(self.document.get("tasks", ())), "task"), counted(len(self.notes), "note")
        return f"<{type(self).__name__}{' ' * bool(name)}{name}: {tasks}, {notes}>"


def check_precision(precision: str | None, known: Collection[str]) -> None:
    """Reject a number format that an importer does not know."""
    if precision is not None and precision not in known:
        formats = listing(list(known), 20)
        raise UsageError(f"precision {visible(precision)} is not a number format of this import; known are {formats}")


def too_large(problem: Problem) -> Iterator[str]:
    """State that the devices have too little memory for all tasks, and what helps."""
    lacking = shortage(problem)
    if lacking is not None:
        yield (
            f"no plan is feasible: {lacking}; more or larger devices, memory tiers, or weights in fewer bits (such as "
            "`--precision int8` with a config.json) help; `placeopt explain` and `placeopt whatif` state how much"
        )


_START = 2**16


class Sample:
    """A file whose format is recognised; reading it raises a DocumentError if it cannot be read."""

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)

    @property
    def suffix(self) -> str:
        """The ending of the name, in lower case: `.json`."""
        return self.path.suffix.lower()

    @cached_property
    def start(self) -> bytes:
        """The first 64 KiB."""
        with reading(self.path):
            return read_start(self.path, _START)

    @cached_property
    def json(self) -> bytes:
        """The whole file if it begins like a JSON object, else nothing: JSON objects state their keys in any order."""
        begins = self.start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
        with reading(self.path):
            return read_file(self.path) if begins else b""
