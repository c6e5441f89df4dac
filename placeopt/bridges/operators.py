"""Operators of a model with their costs, and problem documents of imported models and graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def problem_document(
    tasks: Mapping[str, Mapping[str, Any]],
    network: Mapping[str, Any],
    *,
    name: str,
    source: str,
    description: str = "",
    resolution: str | None = None,
    memory_model: str | None = None,
    addresses: str | None = None,
    pipeline: Mapping[str, Any] | None = None,
    consolidate: str | None = None,
) -> dict[str, Any]:
    """Return the document of a problem on a network, a mapping with `devices` and perhaps `links`.

    With the rules of a `pipeline`, the objective is `period`. `addresses` is the alignment of offsets, such as `64 B`.
    """
    stated = {"description": description, "source": source, "resolution": resolution, "consolidate": consolidate}
    document: dict[str, Any] = {"placeopt": 1, "name": name}
    document |= {key: text for key, text in stated.items() if text}
    document |= network
    if memory_model is not None:
        document["memory_model"] = memory_model
    if addresses is not None:
        document["addresses"] = {"alignment": addresses}
    if pipeline is not None:
        document |= {"objective": "period", "pipeline": dict(pipeline)}
    document["tasks"] = dict(tasks)
    return document


def pipeline_rules(*, training: bool = False) -> dict[str, Any]:
    """Return the section `pipeline` of an imported model: contiguous stages, as runtimes execute them."""
    return {"stages": "contiguous", "in_flight": "1f1b" if training else "inference"}


def after_entry(producers: Mapping[str, int | None]) -> list[str] | dict[str, int | None]:
    """Return the key `after` of a task for its producers with their payloads in bytes; None for all of their output."""
    plain = all(payload is None for payload in producers.values())
    return list(producers) if plain else dict(producers)


@dataclass(slots=True)
class Operator:
    """An operator of a model, which becomes a task; all amounts are whole bytes or FLOP."""

    name: str
    op: str
    """The kind of operator, such as `Conv`."""
    flops: int = 0
    """Work. A multiplication and an addition are two FLOP."""
    traffic: int = 0
    """Memory traffic: bytes of all inputs, weights and outputs."""
    output: int = 0
    """Bytes of all outputs."""
    resident: int = 0
    """Bytes of weights."""
    scratch: int = 0
    """Bytes of workspace."""
    precision: str | None = None
    """Number format of the work, such as `fp16`."""
    after: dict[str, int | None] = field(default_factory=dict)
    """Producers, each with the bytes that move along the edge; None if they are all outputs of the producer."""
    guessed: bool = False
    """Whether no rule of costs covers the operator, so that `flops` is 0 and only the traffic counts."""
    keys: dict[str, Any] = field(default_factory=dict)
    """Further keys of the task, such as `colocate` or `backward_of`."""
    shares: dict[str, Any] = field(default_factory=dict)
    """The keys `in_place` and `view` of the task in a problem with addresses."""

    def task(self) -> dict[str, Any]:
        """The task of a problem document."""
        task: dict[str, Any] = {"op": self.op, "flops": self.flops, "bytes": self.traffic}
        if not self.flops:
            del task["flops"]
        elif self.precision is not None:
            task["precision"] = self.precision
        if self.output:
            task["output"] = self.output
        memory = {key: amount for key in ("resident", "scratch") if (amount := getattr(self, key))}
        if memory:
            task["memory"] = memory
        if self.after:
            task["after"] = after_entry(self.after)
        return task | self.keys
