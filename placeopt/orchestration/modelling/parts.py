"""Parts of a model: objects that stand for their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from placeopt.errors import visible
from placeopt.io.formats.documents import to_yaml
from placeopt.io.scalars import Named
from placeopt.io.spec import pool_names

K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


class Entries(Protocol[K_co, V_co]):
    """A mapping that is only read, so that one with fewer types of keys is accepted too."""

    def items(self) -> Iterable[tuple[K_co, V_co]]: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Part(Named):
    """A part of a model. It may be used wherever a document has the name of such a part."""

    model: object
    """The model that it is a part of."""
    entry: Any
    """What the model states about it, as in a document."""

    def __repr__(self) -> str:
        stated = to_yaml({self.name: self.entry}, ascii_only=True).strip()
        return f"<{type(self).__name__} {visible(stated, 200)}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Task(Part):
    """A task of a model."""

    kind: ClassVar[str] = "task"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Device(Part):
    """A device of a model, or several with a `count`: all of them, where a document may name several."""

    kind: ClassVar[str] = "device"

    @property
    def members(self) -> tuple[Device, ...]:
        """The single devices: core0 and core1 for `core` with a count of 2, the device itself without a count."""
        count = self.entry.get("count")
        if count is None:
            return (self,)
        single = {key: value for key, value in self.entry.items() if key != "count"}
        return tuple(Device(name, self.model, single) for name in pool_names(self.name, int(count)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Operation(Part):
    """An operation of a model, whose durations tasks share."""

    kind: ClassVar[str] = "operation"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resource(Part):
    """A renewable resource or a budget of a model, which tasks use."""

    kind: ClassVar[str] = "resource"
