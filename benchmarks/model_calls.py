"""Measure the time to state a model of 10,000 tasks and 20,000 edges call by call, and to compile it.

    python benchmarks/model_calls.py

The instance (seed 0) has 10,000 tasks with a time on each of two device types, four devices each, and an output.
Two edges lead to each task, on average, from the previous 50 tasks. Times are medians of 5 runs in seconds:

    devices, tasks  `Model.add_device`, `Model.add_task`
    edges           `Model.add_edge`
    compile         `Model.problem`
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import placeopt as po

TASKS, EDGES, REACH, RUNS = 10_000, 20_000, 50, 5


def main() -> None:
    """Print the median times."""
    rng = np.random.default_rng(0)
    times = rng.integers(1, 10, TASKS).tolist()
    targets = rng.integers(1, TASKS, 2 * EDGES).tolist()
    steps = rng.integers(1, REACH + 1, 2 * EDGES).tolist()
    pairs = dict.fromkeys((i - step, i) for i, step in zip(targets, steps, strict=True) if step <= i)
    edges = list(pairs)[:EDGES]
    assert len(edges) == EDGES
    found = [measured(times, edges) for _ in range(RUNS)]
    for what, each in zip(("devices, tasks", "edges", "compile"), zip(*found, strict=True), strict=True):
        print(f"{what:15} {statistics.median(each):.2f} s")


def measured(times: list[int], edges: list[tuple[int, int]]) -> tuple[float, float, float]:
    """The seconds of each part of one run."""
    begin = time.perf_counter()
    m = po.Model("large", resolution="1 us", links={"default": {"bandwidth": "1 GB/s"}})
    gpu, cpu = m.add_device("gpu", count=4), m.add_device("cpu", count=4)
    tasks = [
        m.add_task(f"t{i}", time={gpu: f"{duration} ms", cpu: f"{10 * duration} ms"}, output="3 MB")
        for i, duration in enumerate(times)
    ]
    added = time.perf_counter()
    for i, j in edges:
        m.add_edge(tasks[i], tasks[j])
    joined = time.perf_counter()
    m.problem()
    return added - begin, joined - added, time.perf_counter() - joined


if __name__ == "__main__":
    main()
