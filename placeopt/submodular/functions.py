"""What a set function is to the maximisers (`placeopt.submodular.families` has some that are common).

The ground set is 0, 1, ..., size - 1. A function is evaluated along a growing set: `start` gives the state of the empty
set, `add` grows it by one element, `gains` asks for many marginal gains at once. A state belongs to whoever asked for
it; the function itself never changes.

What is *claimed* of a function decides what a maximiser may do with it and which guarantee it states
(`placeopt.submodular.checks` looks for counterexamples):

    submodular      gains never grow along a growing set: f(S + e) - f(S) >= f(T + e) - f(T) for S in T, e not in T
    monotone        no gain is negative
    path_free       f(S) does not depend on the order in which S was put together, as a set function's must not

A gain must be the same float whichever elements are asked for with it, as it is where every element's arithmetic is
its own: `greedy` asks for all at once and `lazy_greedy` for a few, and both must see the same.

A function on *sequences* (path_free = False) is written just the same; "S in T" then means that the sequence T
continues S. Submodular is meant so too.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

from placeopt.model.arrays import Float, Int

State = TypeVar("State")
Seen = TypeVar("Seen", contravariant=True)


@runtime_checkable
class SetFunction(Protocol[State]):
    """A function of subsets of {0, ..., size - 1}, zero or more at the empty set."""

    size: int
    submodular: bool
    monotone: bool
    path_free: bool

    def start(self) -> State:
        """The state of the empty set."""

    def copy(self, state: State) -> State:
        """A state that may go on by itself."""

    def value(self, state: State) -> float:
        """f of the state's set."""

    def gains(self, state: State, elements: Int) -> Float:
        """(k,) f(S + e) - f(S) for each of the `elements` (k,), none of them in S; k may be 0."""

    def add(self, state: State, element: int) -> None:
        """Put an element that is not in the state's set into it."""


@runtime_checkable
class Refreshing(Protocol[Seen]):
    """A function that is not submodular, but can tell whose gains may have grown: enough for laziness to be sound."""

    def raised(self, state: Seen, element: int) -> Int:
        """(k,) The elements whose gain may be larger than before `element`, the last one, was added."""


@runtime_checkable
class Local(Protocol[Seen]):
    """A function that can tell whose gains an element changes at all: laziness then leaves the others alone."""

    def changed(self, state: Seen, element: int) -> Int:
        """(k,) The elements whose gain may be another float than before `element`, the last one, was added."""


AnySetFunction = SetFunction[Any]
