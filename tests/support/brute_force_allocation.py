"""The least height of a few buffers: every order, each at the least offset above all overlapping buffers before it.

Let all buffers sink in the order of offsets: then each buffer lies at the least allowed offset above the overlapping
ones before it. So one of the orders finds the least height.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from placeopt.allocation.problem import Buffers, build_buffers


def least_height(problem: Buffers) -> int:
    """The least height over all orders of the buffers that have no given offset."""
    n = len(problem)
    lower, upper, size = problem.lower.tolist(), problem.upper.tolist(), problem.size.tolist()
    step = problem.alignment.tolist()
    given = [(k, offset) for k, offset in enumerate(problem.fixed) if offset is not None]
    together = [[lower[a] < upper[b] and lower[b] < upper[a] for b in range(n)] for a in range(n)]

    def lowest(b: int, offset: int) -> int:
        found = -(-offset // step[b]) * step[b]
        for k, low in sorted(given, key=lambda pair: pair[1]):
            if together[b][k] and found < low + size[k] and low < found + size[b]:
                return lowest(b, low + size[k])
        return found

    @cache
    def best(placed: frozenset[tuple[int, int]]) -> int:
        done = {b for b, _ in placed}
        rest = [b for b in range(n) if b not in done and problem.fixed[b] is None]
        if not rest:
            return max((low + size[b] for b, low in placed), default=0)
        found = []
        for b in rest:
            above = max((low + size[d] for d, low in placed if together[b][d]), default=0)
            found.append(best(placed | {(b, lowest(b, above))}))
        return min(found)

    return max([best(frozenset()), *(low + size[k] for k, low in given)])


def random_buffers(seed: int, most: int = 7) -> Buffers:
    """A few buffers: tight, sparse, aligned or with given offsets."""
    rng = random.Random(seed)
    n, horizon = rng.randint(1, most), rng.choice([3, 6, 12])
    scale = rng.choice([1, 1, 7, 2**40])
    sizes = [rng.randint(1, rng.choice([3, 10, 100])) * scale for _ in range(n)]
    lower = [rng.randrange(horizon) for _ in range(n)]
    upper = [begin + rng.randint(1, horizon) for begin in lower]
    alignment = None
    if rng.random() < 0.4:
        alignment = [rng.choice([1, 2, 4, 6, 16]) * rng.choice([1, scale]) for _ in range(n)]
        if rng.random() < 0.4:
            alignment = [rng.choice([4, 8, 16])] * n
    fixed: list[Any] = [None] * n
    if rng.random() < 0.4:
        for _ in range(rng.randint(1, 2)):
            k = rng.randrange(n)
            a = alignment[k] if alignment else 1
            low = rng.randint(0, 12) * scale // a * a
            others = [j for j in range(n) if fixed[j] is not None and j != k]
            if not any(
                lower[j] < upper[k] and lower[k] < upper[j] and fixed[j] < low + sizes[k] and low < fixed[j] + sizes[j]
                for j in others
            ):
                fixed[k] = low
    return build_buffers(lower=lower, upper=upper, size=sizes, alignment=alignment, fixed=fixed)


def planted_buffers(seed: int) -> tuple[Buffers, int]:
    """Rectangles that divide a larger one, some left out, aligned or given; and a height that suffices."""
    rng = random.Random(seed)
    length, height = rng.choice([(8, 8), (12, 12), (20, 12), (10, 30)])
    found = [(0, length, 0, height)]
    for _ in range(rng.randint(8, 40)):
        k = rng.randrange(len(found))
        begin, end, low, high = found[k]
        if rng.random() < 0.5 and end - begin > 1:
            middle = rng.randint(begin + 1, end - 1)
            found[k] = (begin, middle, low, high)
            found.append((middle, end, low, high))
        elif high - low > 1:
            middle = rng.randint(low + 1, high - 1)
            found[k] = (begin, end, low, middle)
            found.append((begin, end, middle, high))
    left_out = rng.choice([0, 0, 0.1, 0.3])
    found = [each for each in found if rng.random() >= left_out] or found[:1]
    aligned, given = rng.random() < 0.5, rng.random() < 0.4
    alignment = [rng.choice([a for a in (1, 2, 3, 4) if each[2] % a == 0]) if aligned else 1 for each in found]
    fixed = [each[2] if given and rng.random() < 0.15 else None for each in found]
    problem = build_buffers(
        lower=[each[0] for each in found], upper=[each[1] for each in found],
        size=[each[3] - each[2] for each in found], alignment=alignment, fixed=fixed,
    )  # fmt: skip
    return problem, height
