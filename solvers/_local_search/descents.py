"""The walker of iterated local search and its descents; see `local_search.py`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from placeopt.model.problem import Problem

from .search import Cooling, Search

SHARES = (26, 14, 22, 12, 16, 10)
"""Percentages of the kinds of moves, as `placeopt_solvers._local_search.proposals` lists them."""

DESCENT = 40_000
"""Moves of a descent."""

KICKS = (3, 8, 2, 20)
"""Moves of a perturbation, one size after the other."""

descender = partial(Search, shares=SHARES)
"""A walker of local search."""


def descents(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - as other searches' coolings
    """Perturbations and descents of a worker that has `rounds` moves."""
    yield Cooling(min(DESCENT, rounds), 0.0, 0.0)
    for at in range(rounds // DESCENT):
        yield Cooling(KICKS[(at + number) % len(KICKS)], math.inf, math.inf)
        yield Cooling(DESCENT, 0.0, 0.0, onward=True)
