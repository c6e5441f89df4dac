"""Buffers as the engine takes them: sections of time, amounts in a common unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placeopt.allocation.problem import Buffers
from placeopt.model.arrays import Int


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """Buffers by section; amounts in units.

    Only times matter at which a set of live buffers is included in no other. They are numbered in order; a buffer is
    live in the sections [first, last). All amounts are multiples of the unit, all offsets of `grain` units.
    """

    first: Int
    last: Int
    size: Int
    alignment: Int
    fixed: Int  # NONE for buffers to place
    unit: int
    grain: int


NONE = -1


def sections_of(problem: Buffers) -> Sections:
    """Return the sections of a problem with at least one buffer."""
    times, place = np.unique(np.concatenate([problem.lower, problem.upper]), return_inverse=True)
    n = len(problem)
    begins, ends = np.zeros((2, len(times)), dtype=np.bool_)
    begins[place[:n]], ends[place[n:]] = True, True
    # A section begins where a buffer begins after another one ended, or at the first time.
    number = np.zeros(len(times), dtype=np.int64)  # of the section of buffers that begin at a time
    current, ended = -1, True
    for at in range(len(times)):
        ended = ended or bool(ends[at])
        if begins[at]:
            current += ended
            ended = False
        number[at] = current
    after = np.concatenate([[-1], number[:-1]]) + 1  # of the section that follows those before a time
    fixed = [NONE if offset is None else offset for offset in problem.fixed]
    aligned = problem.alignment.tolist()
    unit = math.gcd(*problem.size.tolist(), *(a for a in aligned if a > 1), *(offset for offset in fixed if offset > 0))
    steps = np.array([max(a // unit, 1) for a in aligned], dtype=np.int64)
    given = np.array([offset if offset < 0 else offset // unit for offset in fixed], dtype=np.int64)
    grain = math.gcd(*steps.tolist(), *(given[given > 0].tolist()))
    return Sections(
        first=number[place[:n]], last=after[place[n:]], size=problem.size // unit, alignment=steps, fixed=given,
        unit=unit, grain=grain,
    )  # fmt: skip


def components(problem: Buffers) -> list[Int]:
    """Return sets of buffers that share no time with those of other sets, in the order of their begin."""
    if not len(problem):
        return []
    order = np.argsort(problem.lower, kind="stable")
    reached = np.maximum.accumulate(problem.upper[order])
    borders = np.flatnonzero(problem.lower[order][1:] >= reached[:-1]) + 1
    return np.split(order, borders)
