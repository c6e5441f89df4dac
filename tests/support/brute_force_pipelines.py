"""The least period of small pipelines by trying everything: the oracle that other tests compare with.

Like `brute_force.py`, it reads a problem's primary arrays only and computes everything again, in Python integers. It
tries every placement, every order of the stages, all teams of replicas, and all devices that compute outputs again.
Fit for a few hundred placements.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from brute_force import placements, rounded_up, within

from placeopt.model.pipeline import OF_DEVICES
from placeopt.model.problem import Problem

Kind = tuple[int, bool]
"""A device, and whether a stage of it is a backward one."""


def least_period(problem: Problem) -> int | None:
    """The least period in ticks, None if nothing is feasible."""
    assert problem.pipeline is not None
    best: int | None = None
    mates = _mates(problem)
    for device in placements(problem):
        runs = _Runs(problem, device)
        if best is not None and runs.least >= best:
            continue
        for leaders, again in product(runs.teams(mates), list(runs.recomputed())):
            for stages in runs.lines:
                period = runs.period(leaders, again, stages)
                if (best is None or period < best) and within(problem, runs.memory(leaders, again, stages)):
                    best = period
    return best


def _mates(problem: Problem) -> list[list[int]]:
    """The devices with which each device may be in a team: swapping the two changes nothing."""
    devices = range(problem.n_devices)
    columns = [problem.duration, problem.feasible, problem.capacity[None]]
    columns += [getattr(problem.pipeline, name)[None] for name in OF_DEVICES]
    values = [[row for table in columns for row in table[:, d].tolist()] for d in devices]
    links = [table.tolist() for table in (problem.latency, problem.byte_ticks_num, problem.byte_ticks_den)]

    def alike(a: int, b: int) -> bool:
        swapped = [b if d == a else a if d == b else d for d in devices]
        pairs = [(c, d) for c in devices for d in devices if c != d]
        return values[a] == values[b] and all(
            link[c][d] == link[swapped[c]][swapped[d]] for link in links for c, d in pairs
        )

    return [[b for b in devices if alike(a, b)] for a in devices]


class _Runs:
    """What a run takes of each device under one placement."""

    def __init__(self, problem: Problem, device: tuple[int, ...]) -> None:
        assert problem.pipeline is not None
        self.problem, self.rules, self.device = problem, problem.pipeline, device
        self.devices = range(problem.n_devices)
        self.backward = [forward != i for i, forward in enumerate(problem.forward.tolist())]
        self.trained = {forward for i, forward in enumerate(problem.forward.tolist()) if forward != i}
        self.edges = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
        self.computing, self.redone, self.gradient, self.sent, self.received = (
            [0 for _ in self.devices] for _ in range(5)
        )
        for i, d in enumerate(device):
            self.computing[d] += int(problem.duration[i, d])
            self.redone[d] += int(problem.duration[i, d]) if i in self.trained else 0
            self.gradient[d] += int(self.rules.gradient[i])
        self.entering: dict[tuple[int, ...], int] = {}  # bytes of each transfer to a forward task in training
        arriving: dict[tuple[int, ...], int] = {}
        leaving: dict[tuple[int, ...], int] = {}
        for e, (i, j) in enumerate(self.edges):
            a, b = device[i], device[j]
            if a == b:
                continue
            ticks, shared = self._way(a, b, int(problem.payload[e])), bool(problem.shared[e])
            transfer = (b, i) if shared else (b, i, e)
            sending = (a, i) if shared and self.rules.multicast else (a, *transfer)
            arriving[transfer] = ticks
            leaving[sending] = max(ticks, leaving.get(sending, 0))
            if j in self.trained:
                self.entering[transfer] = int(problem.payload[e])
        for total, parts in ((self.sent, leaving), (self.received, arriving)):
            for (d, *_), ticks in parts.items():
                total[d] += 0 if self.rules.free_transfers[d] else ticks
        self.least = max(-(-self._load(d, 0, 0) // self.rules.replicas) for d in self.devices)
        self.lines = self._lines()

    def _way(self, a: int, b: int, payload: int) -> int:
        """Ticks of a transfer."""
        num, den = self.problem.byte_ticks_num[a, b], self.problem.byte_ticks_den[a, b]
        return int(self.problem.latency[a, b]) + rounded_up(payload, num, den)

    def _load(self, d: int, more: int, synchronised: int) -> int:
        """The load of a device that computes for some ticks more, and synchronises its gradients."""
        busy, sent, received = self.computing[d] + more, self.sent[d], self.received[d]
        moving = (max(sent, received) if self.rules.full_duplex[d] else sent + received) + synchronised
        return max(busy, moving) if self.rules.overlap[d] else busy + moving

    def _lines(self) -> set[tuple[Kind, ...]]:
        """The stages in their order, as kinds; only their sets where orders and numbers of stages mean nothing.

        Tasks are appended in every order that the edges allow; a stage ends where the next task has another kind.
        """
        kinds, n = list(zip(self.device, self.backward, strict=True)), len(self.device)
        if not self.rules.numbered:
            return {tuple(sorted(set(kinds)))}
        before = [{a for a, b in self.edges if b == i} for i in range(n)]
        begun: set[tuple[frozenset[int], tuple[Kind, ...]]] = {(frozenset(), ())}
        for _ in range(n):
            begun = {
                (done | {i}, line if line[-1:] == (kinds[i],) else (*line, kinds[i]))
                for done, line in begun
                for i in range(n)
                if i not in done and before[i] <= done
            }
            begun = {
                (done, line) for done, line in begun
                if all(line.count(kind) <= self.rules.segments[kind[0]] for kind in line)
            }  # fmt: skip
        return {line for _, line in begun}

    def teams(self, mates: list[list[int]]) -> Iterator[tuple[int, ...]]:
        """The leader of each device, for all sizes of teams."""
        used, seen = set(self.device), set()
        for leaders in product(*([d] if d in used else [d, *used & set(mates[d])] for d in self.devices)):
            sizes = tuple(map(leaders.count, self.devices))
            if max(sizes) <= self.rules.replicas and sizes not in seen:
                seen.add(sizes)
                yield leaders

    def recomputed(self) -> Iterator[tuple[bool, ...]]:
        """Whether each device computes outputs again."""
        able = {self.device[i] for i in self.trained} if self.rules.recompute else set()
        return product(*((False, True) if d in able else (False,) for d in self.devices))

    def period(self, leaders: tuple[int, ...], again: tuple[bool, ...], line: tuple[Kind, ...]) -> int:
        """The largest load of a device, divided by the size of its team."""
        most, stages = 0, [d for d, _ in line]
        for d in set(self.device):
            team = [each for each in self.devices if leaders[each] == d]
            more = stages.count(d) * int(self.rules.launch[d]) + (self.redone[d] if again[d] else 0)
            moved, ring = rounded_up(self.gradient[d], 2 * (len(team) - 1), len(team)), 0
            if moved and not self.rules.free_transfers[d]:
                ring = max(self._way(a, b, moved) for a in team for b in team if a != b)
            most = max(most, -(-self._load(d, more, ring) // len(team)))
        return most

    def memory(self, leaders: tuple[int, ...], again: tuple[bool, ...], line: tuple[Kind, ...]) -> list[int]:
        """Bytes of each device; those of a replica are in its leader's row."""
        forward = [d for d, backward in line if not backward]
        kept = [{"inference": 2, "gpipe": self.rules.microbatches}.get(self.rules.in_flight, 1)] * len(self.devices)
        if self.rules.in_flight == "1f1b":
            for place, d in enumerate(forward):
                kept[d] = rounded_up(sum(map(leaders.count, forward[place:])), 1, leaders.count(d))
        need, led = [0 for _ in self.devices], {j for _, j in self.edges}
        for i, d in enumerate(self.device):
            stored = not self.backward[i] and not (again[d] and i in self.trained and i in led)
            fixed, output = (int(self.problem.resident[i] + self.problem.scratch[i]), int(self.problem.output[i]))
            need[d] += fixed + (kept[d] if stored else 1) * output
        for (d, *_), payload in self.entering.items():
            need[d] += kept[d] * payload if again[d] else 0
        return need
