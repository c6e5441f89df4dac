"""Operators of a model with their costs, and the problem document made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placeopt.bridges.documents import after_entry, problem_document
from placeopt.errors import SpecError, counted, listing
from placeopt.io.compiler import compile_spec


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


@dataclass(slots=True)
class OperatorGraph:
    """The operators of a model in topological order."""

    name: str
    source: str
    """Origin of the model, for readers."""
    operators: list[Operator]
    description: str = ""

    def document(self, network: Mapping[str, Any], resolution: str | None = None) -> dict[str, Any]:
        """Return the problem document on a network, a mapping with `devices` and perhaps `links`.

        Outputs are activations, which are freed after their last use. Therefore the memory model is `peak`.
        """
        return problem_document(
            {operator.name: operator.task() for operator in self.operators},
            network,
            name=self.name,
            source=self.source,
            description=self.description,
            resolution=resolution,
            memory_model="peak",
        )

    def notes(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """State which operators were guessed, and their largest share of the time on a device of the document.

        The share is left out if the document does not compile, for example because a device states no speed.
        """
        guessed = np.array([operator.guessed for operator in self.operators], dtype=np.bool_)
        if not guessed.any():
            return ()
        kinds = listing(list(dict.fromkeys(each.op for each in self.operators if each.guessed)))
        note = f"no rule covers {counted(int(guessed.sum()), 'operator')} ({kinds}): only memory traffic counts"
        try:
            problem = compile_spec(dict(document))
        except SpecError:
            return (note,)
        total = problem.duration.sum(axis=0)
        share = problem.duration[guessed].sum(axis=0) / np.maximum(total, 1)
        d = int(share.argmax())
        return (f"{note}, which takes {share[d]:.1%} of the time of all operators on {problem.device_names[d]}",)
