"""Ready lists and gaps as plain as their definitions, to compare heuristics with; and small problems for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from placeopt.model.building import build_problem
from placeopt.model.problem import Problem


def problem(durations: list[list[int]], edges: list[tuple[int, int]] | None = None, **rest: Any) -> Problem:
    m = len(durations[0])
    values: dict[str, Any] = {"byte_ticks_num": np.ones((m, m), dtype=np.int64)}
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.array(durations),
        edges=edges or [],
        **values | rest,
    )


def random_problem(seed: int, *, like: bool, tight: bool = False) -> Problem:
    """Up to 24 tasks on 2 to 5 devices; `like`: devices and links all alike, `tight`: memory, groups, release times."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 25)), int(rng.integers(2, 6))
    density = rng.choice([0.05, 0.15, 0.4])
    edges = [(a, b) for b in range(n) for a in range(b) if rng.random() < density]
    ticks = rng.integers(int(rng.integers(0, 2)), int(rng.choice([3, 9])), (n, 1 if like else m))
    rest: dict[str, Any] = {}
    if not like:
        rest["byte_ticks_num"] = rng.integers(0, 3, (m, m))
        rest["latency"] = rng.integers(0, 5, (m, m))
    if tight:
        sizes = rng.integers(0, 6, n)
        rest["resident"] = sizes
        rest["capacity"] = np.full(m, int(sizes.sum() * 1.7) // m + 6)
        rest["group"] = np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), np.arange(n) + 3)
        rest["release"] = rng.integers(0, 12, n) * (rng.random(n) < 0.4)
        rest["feasible"] = rng.random((n, m)) < 0.9
    durations = np.broadcast_to(ticks, (n, m)).tolist()
    return problem(durations, edges, payload=rng.integers(0, int(rng.choice([2, 12])), len(edges)), **rest)


class Reference:
    """Ready tasks placed one by one, by a rule that examines every pair in every step; as slow as the definitions."""

    def __init__(self, case: Problem, *, insertion: bool = False, batches: bool = False) -> None:
        self.case, self.insertion, self.batches = case, insertion, batches
        self.batch: set[int] = set()
        self.device: dict[int, int] = {}
        self.start: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.free = [0] * case.n_devices
        self.duration, self.release = case.duration.tolist(), case.release.tolist()
        self.group, self.allowed = case.group.tolist(), case.group_feasible().tolist()
        self.memory = np.bincount(case.group, case.memory, case.n_groups).astype(int).tolist()
        self.room = case.capacity.tolist()
        self.home: dict[int, int] = {}
        self.producers: list[list[tuple[int, int]]] = [[] for _ in range(case.n_tasks)]
        for u, i, payload in zip(
            case.edge_source.tolist(), case.edge_target.tolist(), case.payload.tolist(), strict=True
        ):
            self.producers[i].append((u, payload))

    def ready(self) -> list[int]:
        """The tasks whose producers are placed; with batches those that were ready when the last batch was done."""
        left = [i for i in range(self.case.n_tasks) if i not in self.device]
        ready = [i for i in left if all(u in self.device for u, _ in self.producers[i])]
        if not self.batches:
            return ready
        if not any(i in self.batch and self.devices(i) for i in ready):
            self.batch = set(ready)
        return [i for i in ready if i in self.batch]

    def arrival(self, i: int, d: int) -> int:
        times = [self.end[u] + int(self.case.transfer(payload, self.device[u], d)) for u, payload in self.producers[i]]
        return max([self.release[i], *times])

    def gaps(self, d: int) -> list[tuple[int, int]]:
        """The idle intervals of a device before its last task."""
        placed = sorted((self.start[i], self.end[i]) for i in self.device if self.device[i] == d)
        ends = [0, *(end for _, end in placed)]
        return [(end, start) for end, (start, _) in zip(ends, placed, strict=False) if start > end]

    def begin(self, i: int, d: int) -> int:
        arrival, ticks = self.arrival(i, d), self.duration[i][d]
        if self.insertion:
            if ticks == 0 and (
                arrival == 0 or any(self.device[u] == d and self.end[u] == arrival for u, _ in self.producers[i])
            ):
                return arrival
            for start, end in self.gaps(d):
                if max(start, arrival) + ticks <= end:
                    return max(start, arrival)
        return max(arrival, self.free[d])

    def effective(self, i: int, d: int) -> int:
        """The start, as much later as the task takes longer there than on the fastest device that may run it."""
        ticks = [self.duration[i][other] for other in range(self.case.n_devices) if self.case.feasible[i, other]]
        return self.begin(i, d) + int(self.duration[i][d] - min(ticks))

    def finish(self, i: int, d: int) -> int:
        return self.begin(i, d) + int(self.duration[i][d])

    def devices(self, i: int) -> list[int]:
        """The devices that can take the task, given the tasks placed."""
        g = self.group[i]
        if g in self.home:
            return [self.home[g]]
        return [d for d, room in enumerate(self.room) if self.allowed[g][d] and self.memory[g] <= room]

    def last_message(self, i: int) -> tuple[int, int]:
        """When the last message reaches the farthest other device, not before the release, and whence it comes."""
        others = range(self.case.n_devices)
        last, device = -1, -1
        for u, payload in self.producers[i]:
            tick = self.end[u] + max(int(self.case.transfer(payload, self.device[u], d)) for d in others)
            if tick > last:
                last, device = tick, self.device[u]
        return max(last, self.release[i]), device

    def put(self, i: int, d: int) -> None:
        g = self.group[i]
        if g not in self.home:
            self.home[g] = d
            self.room[d] -= self.memory[g]
        self.start[i], self.end[i], self.device[i] = self.begin(i, d), self.finish(i, d), d
        self.free[d] = max(self.free[d], self.end[i])

    def run(self, choose: Callable[[Reference], tuple[int, int]]) -> tuple[list[int], list[int]] | None:
        """Devices and starts; None where some task finds no device."""
        while len(self.device) < self.case.n_tasks:
            if not any(self.devices(i) for i in self.ready()):
                return None
            self.put(*choose(self))
        tasks = range(self.case.n_tasks)
        return [self.device[i] for i in tasks], [self.start[i] for i in tasks]

    def pairs(self) -> list[tuple[int, int]]:
        return [(i, d) for i in self.ready() for d in self.devices(i)]


def by_end(state: Reference) -> tuple[int, int]:
    return min(state.pairs(), key=lambda pair: (state.finish(*pair), *pair))


def by_latest_end(state: Reference) -> tuple[int, int]:
    ends = {i: sorted((state.finish(i, d), d) for d in state.devices(i)) for i in state.ready()}
    i = min((i for i in ends if ends[i]), key=lambda i: (-ends[i][0][0], i))
    return i, ends[i][0][1]


def by_gap(state: Reference) -> tuple[int, int]:
    ends = {i: sorted((state.finish(i, d), d) for d in state.devices(i)) for i in state.ready()}

    def order(i: int) -> tuple[int, int, int]:
        if len(ends[i]) == 1:
            return 0, ends[i][0][0], i
        return 1, ends[i][0][0] - ends[i][1][0], i

    i = min((i for i in ends if ends[i]), key=order)
    return i, ends[i][0][1]
