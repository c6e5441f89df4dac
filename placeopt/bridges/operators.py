"""Operators of a model with their costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from placeopt.bridges.documents import after_entry


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
