"""What models that are cut into the segments of a schedule share: which segments write and read their tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from placeopt.model.segments import Segments


class Part(Protocol):
    """The part of a model that is a segment."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Its tasks by name."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs of the model and the tensors of other segments that it reads."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The tensors that other segments read, and outputs of the model."""


class CutModel(ABC):
    """A model that is cut into the segments of a schedule."""

    segments: Segments
    """The segments of the schedule, in topological order."""
    submodels: Sequence[Part]
    """The part of the model that each segment is."""

    @property
    @abstractmethod
    def results(self) -> frozenset[str]:
        """The outputs of the model by name."""

    @abstractmethod
    def size(self, tensor: str) -> int:
        """Return the bytes of a tensor that one segment writes and others read."""

    @cached_property
    def writer(self) -> dict[str, int]:
        """The segment that writes each tensor that other segments read, and each output that a node computes."""
        return {name: k for k, submodel in enumerate(self.submodels) for name in submodel.outputs}

    @cached_property
    def readers(self) -> dict[str, tuple[int, ...]]:
        """The segments that read each input of the model and each tensor of another segment."""
        found: dict[str, list[int]] = {}
        for k, submodel in enumerate(self.submodels):
            for name in submodel.inputs:
                found.setdefault(name, []).append(k)
        return {name: tuple(segments) for name, segments in found.items()}

    @property
    def crossing(self) -> tuple[str, ...]:
        """The tensors that one segment writes and others read."""
        return tuple(name for name in self.writer if name in self.readers)
