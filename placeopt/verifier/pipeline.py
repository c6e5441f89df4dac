"""Recompute a pipeline: what every run takes of each device, the period, the memory, and whether runs fit together.

Each device has up to three tracks; each operation takes the ticks of some of them. Without overlap and full duplex
there is one track for everything. Full duplex has one for sending and one for receiving, and computing takes both.
With overlap, computing has a separate track. Synchronising replicas sends and receives at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from placeopt.model.pipeline import UNBOUNDED, Pipeline
from placeopt.model.schedule import Stages
from placeopt.verifier.view import View, used_memory


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a run, on the device that serves the first run."""

    device: int
    tracks: tuple[str, ...]
    begin: int
    ticks: int
    name: str
    task: int | None = None
    edge: int | None = None


class PipelineView:
    """A pipeline whose tasks all have devices that may run them.

    `leader` is each device's leader, and `number` the stage of each task, None if the schedule states none. If stages
    are free, those of a device are one stage in each direction, regardless of the stated numbers. `senders` holds, for
    each thing that is sent, the edges of its transfers. `sent` and `received` are the ticks at which the data of a
    transfer begins to leave and to arrive.
    """

    def __init__(self, view: View) -> None:
        problem = view.problem
        assert problem.pipeline is not None
        self.view, self.problem, self.pipeline = view, problem, problem.pipeline
        self.device = view.device.tolist()
        self.stages = sound_stages(view)
        own = list(range(problem.n_devices))
        self.leader = own if self.stages is None else self.stages.leader.tolist()
        self.team = Counter(self.leader)
        self.again = (
            [False] * len(own) if self.stages is None else [each != 0 for each in self.stages.recompute.tolist()]
        )
        self.backward = [forward != i for i, forward in enumerate(problem.forward.tolist())]
        self.number = self._number()
        self.trained = {forward for i, forward in enumerate(problem.forward.tolist()) if forward != i}
        self.source, self.target = problem.edge_source.tolist(), problem.edge_target.tolist()
        self.senders = self._senders()
        self.received = {edge: int(view.sent[edge]) for group in self.senders for edge in group}
        self.sent = dict(self.received)
        table = view.schedule.transfers
        if table is not None and table.sent is not None and table.edge.shape == table.sent.shape:
            for edge, begin in reversed(list(zip(table.edge.tolist(), table.sent.tolist(), strict=True))):
                if edge in self.sent:
                    self.sent[edge] = begin
        self.operations = list(self._operations())
        busy: Counter[tuple[int, str, int]] = Counter()
        for each in self.operations:
            for machine in self.machines(each.device):
                for track in each.tracks:
                    busy[machine, track, max(self.team[each.device], 1)] += each.ticks
        self.period = max((-(-ticks // team) for (_, _, team), ticks in busy.items()), default=0)

    def machines(self, device: int) -> tuple[int, ...]:
        """The machines whose tracks the operations of a device take."""
        return (device,) if self.pipeline.machines is None else self.pipeline.machines[device]

    def _senders(self) -> list[list[int]]:
        groups: dict[tuple[bool, int], list[int]] = defaultdict(list)
        for edge, carrier in enumerate(self.view.carrier.tolist()):
            if edge == carrier:
                together = self.pipeline.multicast and bool(self.problem.shared[edge])
                groups[together, self.source[edge] if together else edge].append(edge)
        return list(groups.values())

    def send_ticks(self, group: list[int]) -> int:
        """Ticks for which a sender is busy: as long as the slowest transfer takes."""
        return max(int(self.view.ticks[edge]) for edge in group)

    def _operations(self) -> Iterator[Operation]:
        view = self.view
        for i, d in enumerate(self.device):
            ticks = int(view.duration[i])
            yield Operation(d, tracks(self.pipeline, d, "compute"), int(view.start[i]), ticks, view.task(i), task=i)
        yield from self._launches()
        for group in self.senders:
            edge = group[0]
            d, begin = self.device[self.source[edge]], min(self.sent[each] for each in group)
            way = tracks(self.pipeline, d, "send")
            yield Operation(d, way, begin, self.send_ticks(group), f"sending {view.edge(edge)}", edge=edge)
            for each in group:
                d, ticks = self.device[self.target[each]], int(view.ticks[each])
                way = tracks(self.pipeline, d, "receive")
                yield Operation(d, way, self.received[each], ticks, f"receiving {view.edge(each)}", edge=each)
        for d, ticks in self.synchronised().items():
            assert self.stages is not None
            way, begin = tracks(self.pipeline, d, "synchronise"), int(self.stages.synchronise[d])
            yield Operation(d, way, begin, ticks, f"the synchronisation of {self.problem.device_names[d]}")

    def _number(self) -> list[int] | None:
        if self.stages is None or counts_stages(self.pipeline):
            return None if self.stages is None else self.stages.number.tolist()
        return [2 * d + backward for d, backward in zip(self.device, self.backward, strict=True)]

    def _launches(self) -> Iterator[Operation]:
        """The launch of each stage, before its first task; the first backward stage also computes outputs again."""
        if self.number is None:
            return
        first: dict[int, int] = {}
        for i, label in enumerate(self.number):
            if label not in first or self.view.start[i] < self.view.start[first[label]]:
                first[label] = i
        redone: Counter[int] = Counter()
        for i in self.trained:
            if self.again[self.device[i]]:
                redone[self.device[i]] += int(self.view.duration[i])
        for label, i in sorted(first.items()):
            d = self.device[i]
            ticks = int(self.pipeline.launch[d])
            here = [other for other, task in first.items() if self.device[task] == d]
            behind = [other for other in here if self.backward[first[other]]]
            if label == (min(behind) if behind else max(here)):
                ticks += redone[d]
            if ticks:
                begin, way = int(self.view.start[i]) - ticks, tracks(self.pipeline, d, "compute")
                yield Operation(d, way, begin, ticks, f"the launch of stage {label}", task=i)

    def synchronised(self) -> dict[int, int]:
        """Ticks in which each leader with replicas synchronises gradients, if it takes any."""
        problem, found = self.problem, {}
        for d, r in sorted(self.team.items()):
            held = sum(int(self.pipeline.gradient[i]) for i, where in enumerate(self.device) if where == d)
            if r == 1 or held == 0 or self.pipeline.free_transfers[d]:
                continue
            moved, team = -(-2 * (r - 1) * held // r), [k for k, leader in enumerate(self.leader) if leader == d]
            ways = []
            for a in team:
                for b in team:
                    num, den = int(problem.byte_ticks_num[a, b]), int(problem.byte_ticks_den[a, b])
                    if a != b:
                        ways.append(int(problem.latency[a, b]) - (-moved * num // den))
            if max(ways):
                found[d] = max(ways)
        return found

    def memory(self) -> list[int]:
        """Bytes that each device needs for the runs under way; a replica needs what its leader does."""
        problem, pipeline, m = self.problem, self.pipeline, self.problem.n_devices
        kept = [{"inference": 2, "gpipe": pipeline.microbatches}.get(pipeline.in_flight, 1)] * m
        if pipeline.in_flight == "1f1b" and self.number is not None:
            forward = {d: self.number[i] for i, d in enumerate(self.device) if not self.backward[i]}
            for d, label in forward.items():
                later = sum(self.team[other] for other, at in forward.items() if at >= label)
                kept[d] = -(-later // max(self.team[d], 1))
        need, consumers = [0] * m, set(self.target)
        for i, d in enumerate(self.device):
            stored = not self.backward[i] and not (self.again[d] and i in consumers and i in self.trained)
            runs = kept[d] if stored else 1
            need[d] += int(problem.resident[i]) + int(problem.scratch[i]) + runs * int(problem.output[i])
        carrier = self.view.carrier.tolist()
        arriving = {carrier[e] for e, j in enumerate(self.target) if carrier[e] >= 0 and j in self.trained}
        for edge in sorted(arriving):
            d = self.device[self.target[edge]]
            need[d] += kept[d] * int(problem.payload[edge]) if self.again[d] else 0
        return [need[self.leader[d]] for d in range(m)]


def tracks(pipeline: Pipeline, device: int, kind: str) -> tuple[str, ...]:
    """The tracks of a device that an operation takes; kind is compute, send, receive or synchronise."""
    overlap, duplex = bool(pipeline.overlap[device]), bool(pipeline.full_duplex[device])
    if kind == "compute" and overlap:
        return ("computing",)
    if kind != "compute" and pipeline.free_transfers[device]:
        return ()
    if not duplex:
        return ("ports",) if overlap else ("device",)
    return {"send": ("sending",), "receive": ("receiving",)}.get(kind, ("sending", "receiving"))


def counts_stages(pipeline: Pipeline) -> bool:
    """Whether a pipeline limits the stages of devices, or they cost time or memory."""
    return bool((pipeline.segments != UNBOUNDED).any() or pipeline.launch.any()) or pipeline.in_flight == "1f1b"


def sound_stages(view: View) -> Stages | None:
    """The stages of a schedule, if their arrays have the right lengths and the leaders exist; else None."""
    stages, m = view.schedule.stages, view.problem.n_devices
    if stages is None or stages.number.shape != (view.problem.n_tasks,):
        return None
    if any(array.shape != (m,) for array in (stages.leader, stages.recompute, stages.synchronise)):
        return None
    return stages if bool(((stages.leader >= 0) & (stages.leader < m)).all()) else None


def needed_memory(view: View) -> list[tuple[int, int]]:
    """For each device, the bytes that it needs and the first tick at which it needs them."""
    if view.problem.pipeline is None or not view.runs.all():
        return used_memory(view)
    return [(used, 0) for used in PipelineView(view).memory()]
