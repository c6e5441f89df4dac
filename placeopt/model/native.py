"""Problems as the native engine sees them: checked once, without copies of their arrays."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from placeopt import engine
from placeopt.model.problem import Problem

_known: WeakKeyDictionary[Problem, engine.Problem] = WeakKeyDictionary()


def native(problem: Problem) -> engine.Problem:
    """Return the problem for functions of `placeopt.engine`."""
    found = _known.get(problem)
    if found is None:
        found = _known[problem] = engine.Problem(problem)
    return found
