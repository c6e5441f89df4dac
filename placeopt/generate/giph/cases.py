"""Sets of cases: task graphs, device networks, and the problems that they form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, overload

from placeopt.generate.networks import Document


class Documents(Sequence[Document]):
    """Documents of a function for each of some arguments, generated when first read; callers must not change them."""

    def __init__(self, make: Callable[..., Document], arguments: Iterable[tuple[Any, ...]]) -> None:
        self._make, self._arguments = make, tuple(arguments)
        self._made: dict[int, Document] = {}

    def __len__(self) -> int:
        return len(self._arguments)

    @overload
    def __getitem__(self, place: int) -> Document: ...

    @overload
    def __getitem__(self, place: slice) -> Documents: ...

    def __getitem__(self, place: int | slice) -> Document | Documents:
        if isinstance(place, slice):
            return Documents(self._make, self._arguments[place])
        index = range(len(self))[place]
        if index not in self._made:
            self._made[index] = self._make(*self._arguments[index])
        return self._made[index]


@dataclass(frozen=True, slots=True, eq=False)
class CaseSet:
    """Task graphs and device networks, and which of them form problems."""

    name: str
    """For example "giph-multiple-test"."""
    graphs: Sequence[Document]
    networks: Sequence[Document]
    """Documents with `tasks`, and documents with `devices` and `links`."""
    joined: Callable[[str, Document, Document], Document]
    """Combines the name of a problem, a graph and a network into a problem document."""
    matches: tuple[tuple[int, int], ...] | None = None
    """(graph, network) of each problem, if a graph does not belong on all networks; None: all pairs."""
    passes: tuple[str, ...] = ()
    """Passes that the experiment applies to a problem before it searches."""

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return (graph, network) of each problem, in the order of the released code: network by network."""
        if self.matches is not None:
            return self.matches
        return tuple((graph, network) for network, graph in product(range(len(self.networks)), range(len(self.graphs))))

    def document(self, graph: int, network: int) -> Document:
        """Return the problem document of a graph on a network."""
        several = len(self.networks) > 1 and self.matches is None
        name = f"{self.name}-{graph}" + (f"-{network}" if several else "")
        return self.joined(name, self.graphs[graph], self.networks[network])


class Sets(NamedTuple):
    """A training set, a set on which the best weights are chosen, and a test set; no graph is in two of them."""

    train: CaseSet
    validation: CaseSet
    test: CaseSet
