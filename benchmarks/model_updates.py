"""Measure the time from a changed duration to a verified schedule, as in a service that plans again every second.

    python benchmarks/model_updates.py

The instance (seed 0) has 300 tasks with times on two GPUs and four CPUs, and two producers each among the previous 20
tasks. `local-search` solves it for 2 s. Then 50 times, the times of one random task change: `Model.update`, and
`Model.solve` with one worker and 20 ms for `local-search`, which starts from the last schedule. The script prints the
median and the longest time in milliseconds of update and solve together, compilation and verification included. It
checks that no schedule is worse than the last one with the new times, and prints how many are better.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import placeopt as po

TASKS, REACH, UPDATES, SECONDS = 300, 20, 50, 0.02


def main() -> None:
    """Print the times."""
    rng = np.random.default_rng(0)
    m = po.Model("service", resolution="1 us", links={"default": {"bandwidth": "1 GB/s"}})
    gpu, cpu = m.add_device("gpu", count=2), m.add_device("cpu", count=4)
    tasks: list[Any] = []
    for i in range(TASKS):
        times = {gpu: f"{rng.integers(1, 10)} ms", cpu: f"{rng.integers(10, 90)} ms"}
        producers = sorted({int(rng.integers(max(0, i - REACH), i)) for _ in range(2)}) if i else []
        after = [tasks[j] for j in producers]
        tasks.append(m.add_task(f"t{i}", time=times, output=f"{rng.integers(1, 10)} MB", after=after))
    last = m.solve("local-search", time_limit=2, workers=1)
    seconds, better = [], 0
    for _ in range(UPDATES):
        task = tasks[rng.integers(TASKS)]
        begin = time.perf_counter()
        m.update(task, time={gpu: f"{rng.integers(1, 10)} ms", cpu: f"{rng.integers(10, 90)} ms"})
        found = m.solve("local-search", time_limit=SECONDS, workers=1)
        seconds.append(time.perf_counter() - begin)
        assert found.feasible
        assert last.schedule is not None
        assert found.values is not None
        old = po.evaluate(found.problem, po.retime(found.problem, last.schedule))
        assert found.values <= old
        better += found.values < old
        last = found
    print(
        f"{1e3 * statistics.median(seconds):.1f} ms, at most {1e3 * max(seconds):.1f} ms; {better} of {UPDATES} better"
    )


if __name__ == "__main__":
    main()
