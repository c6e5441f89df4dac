"""Measure the time of the verifier on 36,000 tasks.

    python benchmarks/verify_36000.py

The instance is a random layered graph, seed 0: 360 layers of 100 tasks, 1 to 5 producers for each task in the three
previous layers, about 107,000 edges, and a shared output for every second producer. The schedule lists tasks in index
order, each on the device that is free first, with transfers in first-in-first-out order. It must pass the
verification of its claimed objective. `all at 0` has the same placement and transfers with every task at tick 0,
which gives close to the maximum number of violations; it is measured in one run. Times are in milliseconds, for valid
schedules the median of 5 runs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from placeopt.model.building import build_problem
from placeopt.model.problem import Contention, MemoryModel, Problem
from placeopt.model.schedule import Schedule, Transfers
from placeopt.verifier import Report, verify

LAYERS, WIDTH, REACH = 360, 100, 3
RUNS = 5


def layered(n_devices: int) -> Problem:
    """The instance; durations of 1 to 2 us on each device, payloads up to 4 MiB, links of 10 to 40 GB/s."""
    random_of = np.random.default_rng(0)
    n = LAYERS * WIDTH
    edges: list[tuple[int, int]] = []
    for task in range(WIDTH, n):
        layer = task // WIDTH
        first = max(0, layer - REACH) * WIDTH
        producers = random_of.integers(first, layer * WIDTH, size=random_of.integers(1, 6))
        edges.extend((int(producer), task) for producer in sorted(set(producers.tolist())))
    outputs = random_of.integers(0, 4 << 20, size=n)
    shape = (n_devices, n_devices)
    return build_problem(
        task_names=[f"t{task}" for task in range(n)],
        device_names=[f"d{device}" for device in range(n_devices)],
        duration=random_of.integers(1_000, 2_000, size=(n, n_devices)),
        edges=edges,
        payload=[int(outputs[producer]) for producer, _ in edges],
        shared=[producer % 2 == 0 for producer, _ in edges],
        resident=random_of.integers(0, 1 << 20, size=n),
        output=outputs,
        scratch=random_of.integers(0, 1 << 20, size=n),
        capacity=np.full(n_devices, 1 << 40),
        latency=random_of.integers(10, 1_000, size=shape),
        byte_ticks_num=np.ones(shape, dtype=np.int64),
        byte_ticks_den=random_of.integers(10, 41, size=shape),
    )


def serial(problem: Problem) -> Schedule:
    """Each task in index order on the device that is free first, as early as its data and the ports allow."""
    n, m = problem.n_tasks, problem.n_devices
    port = problem.contention == "port"
    producers: list[list[int]] = [[] for _ in range(n)]
    for edge, consumer in enumerate(problem.edge_target.tolist()):
        producers[consumer].append(edge)
    source, shared, payload = problem.edge_source.tolist(), problem.shared.tolist(), problem.payload.tolist()
    free, sends, receives = [0] * m, [0] * m, [0] * m
    device, start, end = [0] * n, [0] * n, [0] * n
    arrivals: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int]] = []
    for task in range(n):
        d = free.index(min(free))
        ready = free[d]
        for edge in producers[task]:
            producer = source[edge]
            a, sent = device[producer], end[producer]
            if a == d:
                ready = max(ready, sent)
                continue
            key = (producer, d) if shared[edge] else (-1 - edge, d)
            if key not in arrivals:
                ticks = int(problem.latency[a, d]) - (-payload[edge] // int(problem.byte_ticks_den[a, d]))
                if port:
                    sent = max(sent, sends[a], receives[d])
                    sends[a] = receives[d] = sent + ticks
                    rows.append((edge, sent))
                arrivals[key] = sent + ticks
            ready = max(ready, arrivals[key])
        device[task], start[task] = d, ready
        end[task] = free[d] = ready + int(problem.duration[task, d])
    if not port:
        return Schedule(np.array(device), np.array(start))
    edges, starts = zip(*rows, strict=True)
    return Schedule(np.array(device), np.array(start), Transfers(np.array(edges), np.array(starts)))


def timed(check: Callable[[], Report], runs: int) -> tuple[float, Report]:
    """Median milliseconds of a verification, and its report."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        report = check()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times), report


def main() -> None:
    """Print the table."""
    table = Table(title=f"verify, {LAYERS * WIDTH:,} tasks, median of {RUNS} runs")
    for column in ("devices", "contention", "memory", "edges", "transfers", "ms", "ms, all at 0", "violations"):
        table.add_column(column, justify="right")
    contentions: tuple[Contention, ...] = ("none", "port")
    models: tuple[MemoryModel, ...] = ("sum", "peak")
    for n_devices in (4, 60):
        instance = layered(n_devices)
        for contention in contentions:
            schedule = serial(replace(instance, contention=contention))
            together = replace(schedule, start=np.zeros_like(schedule.start))
            for model in models:
                problem = replace(instance, contention=contention, memory_model=model)
                claim = verify(problem, schedule).objective
                good, report = timed(partial(verify, problem, schedule, claim), RUNS)
                assert report.feasible, report.violations[:3]
                bad, broken = timed(partial(verify, problem, together), 1)
                table.add_row(
                    str(n_devices),
                    contention,
                    model,
                    f"{problem.n_edges:,}",
                    f"{len(schedule.transfers.edge):,}" if schedule.transfers else "-",
                    f"{good:.0f}",
                    f"{bad:.0f}",
                    f"{len(broken.violations):,}",
                )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
