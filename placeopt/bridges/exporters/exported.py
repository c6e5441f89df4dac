"""The arguments and the result of an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placeopt.bridges.importers.imported import Imported
from placeopt.errors import UsageError, listing
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A verified plan to export, and the options of the export."""

    problem: Problem
    schedule: Schedule
    model: Path | None = None
    """The model from which the problem was imported; None if it is not given."""
    batch: int | None = None
    """Size of the first dimension of the inputs of the model; by default as at the import."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes of named dimensions of the model; by default as at the import."""
    few_segments: bool = False
    """Whether segments are not cut at transfers, so that there are fewer of them (`placeopt.model.segments`)."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """Devices of the runtime by name or type of device, such as execution providers of ONNX Runtime; other devices have
    a default."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The document of the problem, for formats that read one of its sections `x-...`."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    text: str
    """The content of the file; for formats that write a folder, a summary for the terminal."""
    notes: tuple[str, ...] = ()
    """What the format cannot express: one sentence each."""


def stage_notes(problem: Problem, schedule: Schedule, runtime: str) -> tuple[str, ...]:
    """Return notes about replicas and recomputation, which the format of a runtime cannot express."""
    stages = schedule.stages
    if stages is None:
        return ()
    names = problem.device_names
    replicas = [names[d] for d, leader in enumerate(stages.leader.tolist()) if d != leader]
    again = [names[d] for d, flag in enumerate(stages.recompute.tolist()) if flag]
    notes = []
    if replicas:
        notes.append(
            f"{runtime} has no replicas of single stages, so {listing(replicas)} would do nothing, and the period of "
            "the plan is not reached"
        )
    if again:
        notes.append(f"the format does not state that the stages on {listing(again)} compute outputs again")
    return tuple(notes)


def document_of(imported: Imported) -> Mapping[str, Any]:
    """Return the document of an imported model.

    Raises
    ------
    UsageError
        If the argument is something else.
    """
    if not isinstance(imported, Imported):
        raise UsageError(f"imported is a {type(imported).__name__}; expected the result of po.from_torch")
    return imported.document
