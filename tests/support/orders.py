"""Problems with addresses on one device, and whether some order of the tasks has offsets.

On one device, the order decides which buffers are live together: waiting does not help. So trying all orders with a
complete search for offsets is exact.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import placeopt as po


def random_problem(seed: int, most: int = 6) -> po.Problem:
    """A few tasks on one device whose memory is about as large as the least peak of the live bytes, or a bit larger."""
    rng = random.Random(seed)
    n = rng.randint(3, most)
    scale = rng.choice([1, 1, 64])
    arrays = {
        "task_names": [f"t{i}" for i in range(n)],
        "device_names": ["mcu"],
        "duration": [[rng.randint(1, 4)] for _ in range(n)],
        "edges": [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.35],
        "output": [rng.randint(1, 12) * scale for _ in range(n)],
        "scratch": [rng.choice([0, rng.randint(1, 9)]) for _ in range(n)],
        "resident": [rng.choice([0, 0, rng.randint(1, 5)]) for _ in range(n)],
        "memory_model": "peak",
    }
    free = po.build_problem(**arrays)  # type: ignore[arg-type]
    least = min(int(po.measure(free, schedule).peak_memory[0]) for schedule in schedules(free))
    capacity = [least + rng.choice([-1, 0, 0, 1, 2, 3, 5]) * rng.choice([1, scale])]
    return po.build_problem(**arrays, capacity=capacity, alignment=rng.choice([1, 1, 2, 4, 8]))  # type: ignore[arg-type]


def tight_problem(seed: int) -> po.Problem:
    """6 to 12 tasks on one device, whose memory is the peak of HEFT's schedule."""
    rng = random.Random(seed)
    n = rng.randint(6, 12)
    arrays = {
        "task_names": [f"t{i}" for i in range(n)],
        "device_names": ["mcu"],
        "duration": [[rng.randint(1, 4)] for _ in range(n)],
        "edges": [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.3],
        "output": [rng.randint(1, 20) for _ in range(n)],
        "scratch": [rng.choice([0, rng.randint(1, 9)]) for _ in range(n)],
        "memory_model": "peak",
    }
    first = po.solve(po.build_problem(**arrays), "heft", workers=1)  # type: ignore[arg-type]
    capacity = [first.devices[0].memory]
    return po.build_problem(**arrays, capacity=capacity, alignment=rng.choice([1, 4, 8]))  # type: ignore[arg-type]


def schedules(problem: po.Problem) -> Iterator[po.Schedule]:
    """The schedule of each order of the tasks of a problem with one device."""
    n = problem.n_tasks
    needs = [set(problem.edge_source[problem.edge_target == i].tolist()) for i in range(n)]

    def orders(done: list[int]) -> Iterator[list[int]]:
        if len(done) == n:
            yield done
        for i in range(n):
            if i not in done and needs[i] <= set(done):
                yield from orders([*done, i])

    for order in orders([]):
        start, tick = [0] * n, 0
        for i in order:
            start[i] = tick
            tick += int(problem.duration[i, 0])
        yield po.Schedule([0] * n, start)  # type: ignore[arg-type]


def has_plan(problem: po.Problem) -> bool:
    """Whether some order has offsets."""
    for schedule in schedules(problem):
        fits = [each.fits for each in po.allocate_plan(problem, schedule, workers=1).values()]
        assert None not in fits
        if all(fits):
            return True
    return False
