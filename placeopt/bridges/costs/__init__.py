"""Costs of operators: FLOP and bytes of memory traffic, from which a roofline model gives durations.

`formulas` has functions of sizes that all importers share. `onnx_rules` has a rule for each operator of ONNX, and
`aten_rules` for those of PyTorch.

A multiplication and an addition are two FLOP. Papers on neural networks usually count multiply-adds, which are half.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an operator."""

    flops: int
    """A multiplication and an addition are two FLOP."""
    traffic: int
    """Bytes read and written."""
    guessed: bool = False
    """Whether no rule covers the operator, or a size that its rule needs is unknown."""
    view_of: int | None = None
    """In PyTorch, the tensor argument whose memory the result shares, by position among these; a view costs nothing."""
