"""Measure simulations per second: 36,000 tasks, and 40 tasks.

    python benchmarks/simulate_speed.py

The instances are random tasks in topological order, seed 0. Each task has up to two producers among the previous
2,000 tasks (36,000 tasks, about 72,000 edges) or among all previous tasks (40 tasks). Durations are 1 to 999 ticks on
each of 4 devices, payloads up to 1 MB (half of them shared), links 1,000 bytes per tick with a latency of 10 ticks.
The placement is uniformly random, so that three of four edges transfer data. A simulation uses one thread and
includes everything from the placement to the makespan, with transfer ticks. Rates are medians of 15 rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Contention, Problem
from placeopt.simulation import Evaluator, make_evaluator, retime, simulate, simulate_noisy

LARGE, SMALL, DEVICES, REACH, ROUNDS = 36_000, 40, 4, 2_000, 15
LOOP = 10_000


def instance(n: int, contention: Contention) -> tuple[Problem, Int]:
    """The problem of n tasks and its placement."""
    random_of = np.random.default_rng(0)
    consumers = np.repeat(np.arange(1, n), 2)
    first = np.maximum(0, consumers - REACH)
    edges = np.unique(np.stack((random_of.integers(first, consumers), consumers), axis=1), axis=0)
    output = random_of.integers(1, 10**6, size=n)
    links = (DEVICES, DEVICES)
    problem = build_problem(
        task_names=[f"t{task}" for task in range(n)],
        device_names=[f"d{device}" for device in range(DEVICES)],
        duration=random_of.integers(1, 1000, size=(n, DEVICES)),
        edges=edges,
        payload=output[edges[:, 0]],
        shared=edges[:, 0] % 2 == 0,
        latency=np.full(links, 10),
        byte_ticks_num=np.ones(links, dtype=np.int64),
        byte_ticks_den=np.full(links, 1000),
        contention=contention,
    )
    return problem, random_of.integers(0, DEVICES, size=n)


def walk(evaluator: Evaluator, device: Int, rounds: int) -> int:
    """Best makespan of a walk that moves one task at a time, as a local search would."""
    best = evaluator(device)
    for step in range(rounds):
        device[step % len(device)] = (device[step % len(device)] + 1) % DEVICES
        best = min(best, evaluator(device))
    return best


def rate(call: Callable[[], object], simulations: int = 1) -> float:
    """Simulations per second, the median of ROUNDS rounds after a warm-up round."""
    call()
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return simulations / statistics.median(seconds)


def main() -> None:
    """Print the table."""
    table = Table(title=f"simulations per second, median of {ROUNDS} rounds")
    for column in ("tasks", "contention", "function", "per second", "ms each", "target per second"):
        table.add_column(column, justify="right")

    def add(n: int, contention: str, what: str, per_second: float, target: str = "-") -> None:
        table.add_row(f"{n:,}", contention, what, f"{per_second:,.0f}", f"{1e3 / per_second:.4f}", target)

    contentions: tuple[Contention, ...] = ("none", "port")
    for contention in contentions:
        targets = ("200", "100,000") if contention == "none" else ("-", "-")
        problem, device = instance(LARGE, contention)
        evaluator = make_evaluator(problem)
        add(LARGE, contention, "evaluator, fifo", rate(partial(evaluator, device)), targets[0])
        fifo = partial(simulate, problem, device)
        schedule = fifo()
        start = schedule.start
        add(LARGE, contention, "simulate, fifo", rate(fifo))
        add(LARGE, contention, "simulate, priority", rate(partial(fifo, discipline="priority", priority=-start)))
        add(LARGE, contention, "simulate, order", rate(partial(fifo, discipline="order", order=start)))
        add(LARGE, contention, "retime", rate(partial(retime, problem, schedule)))
        noisy = partial(simulate_noisy, noise=0.2, seed=0)
        add(LARGE, contention, "noisy runs", rate(partial(noisy, problem, device, runs=10), 10))
        problem, device = instance(SMALL, contention)
        evaluator = make_evaluator(problem)
        add(SMALL, contention, "evaluator, fifo", rate(partial(walk, evaluator, device, LOOP), LOOP), targets[1])
        add(SMALL, contention, "noisy runs", rate(partial(noisy, problem, device, runs=1000), 1000))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
