"""A discrete-event simulator in plain Python: queues, ports and events as objects, nothing fast.

The oracle of test_simulation.py. It shares no code with placeopt beyond reading the Problem.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from link_lanes import lanes

from placeopt.model.problem import Problem

END, READY = 0, 1


@dataclass(order=True)
class Event:
    """Something that happens at a tick: ends come before arrivals, then the lower task."""

    tick: int
    kind: int
    task: int


@dataclass
class Device:
    """A processor with its two ports and the tasks that are ready to run on it."""

    running: int | None = None
    queue: list[int] = field(default_factory=list)
    send_free: int = 0
    receive_free: int = 0


@dataclass
class Outcome:
    """Start of every task that ran, start of every transfer by (producer, edges served), end of the last task."""

    start: dict[int, int] = field(default_factory=dict)
    moves: dict[int, int] = field(default_factory=dict)
    makespan: int = 0


def transfer_ticks(problem: Problem, edge: int, source: int, target: int) -> int:
    """Ticks of an edge's transfer, in exact fractions."""
    if source == target:
        return 0
    rate = Fraction(int(problem.byte_ticks_num[source, target]), int(problem.byte_ticks_den[source, target]))
    return int(problem.latency[source, target]) + ceil(int(problem.payload[edge]) * rate)


def edges_of(problem: Problem) -> list[tuple[int, int]]:
    """(producer, consumer) of every edge."""
    return [(int(a), int(b)) for a, b in zip(problem.edge_source, problem.edge_target, strict=True)]


class Simulation:
    """One execution of a placement."""

    def __init__(
        self,
        problem: Problem,
        placement: Sequence[int],
        discipline: str = "fifo",
        numbers: Sequence[float] | None = None,
    ) -> None:
        self.problem = problem
        self.placement = [int(d) for d in placement]
        self.discipline = discipline
        self.numbers = [] if numbers is None else [float(value) for value in numbers]
        self.edges = edges_of(problem)
        self.devices = [Device() for _ in range(problem.n_devices)]
        self.missing = {i: sum(target == i for _, target in self.edges) for i in range(problem.n_tasks)}
        self.ready_at = {i: int(problem.release[i]) for i in self.missing}
        self.events: list[Event] = []
        self.link_free: dict[int, int] = {}
        self.outcome = Outcome()
        self.sequences: dict[int, list[int]] = {d: [] for d in range(problem.n_devices)}
        if discipline == "order":
            rank = {int(i): position for position, i in enumerate(problem.order)}
            for i in sorted(self.missing, key=lambda i: (self.numbers[i], rank[i])):
                self.sequences[self.placement[i]].append(i)

    def run(self) -> Outcome | None:
        """What happened, or None if the devices waited for each other for ever."""
        for i, count in self.missing.items():
            if count == 0:
                heapq.heappush(self.events, Event(self.ready_at[i], READY, i))
        while self.events:
            event = heapq.heappop(self.events)
            if event.kind == END:
                self.end(event.task, event.tick)
            else:
                self.devices[self.placement[event.task]].queue.append(event.task)
            if self.discipline != "priority":
                self.next_task(self.placement[event.task], event.tick)
            elif not self.events or self.events[0].tick != event.tick:
                for d in range(len(self.devices)):
                    self.next_task(d, event.tick)
        return self.outcome if len(self.outcome.start) == self.problem.n_tasks else None

    def end(self, task: int, tick: int) -> None:
        """Free the device and send the task's data on its way."""
        source = self.placement[task]
        self.devices[source].running = None
        self.outcome.makespan = max(self.outcome.makespan, tick)
        served: dict[int, int] = {}
        for edge, (producer, consumer) in enumerate(self.edges):
            if producer != task:
                continue
            target = self.placement[consumer]
            if source == target:
                arrival = tick
            elif self.problem.contention == "none" and self.problem.shared_links is None:
                arrival = tick + transfer_ticks(self.problem, edge, source, target)
            elif self.problem.shared[edge] and target in served:
                arrival = served[target]
            else:
                arrival = self.send(edge, source, target, tick)
                if self.problem.shared[edge]:
                    served[target] = arrival
            self.ready_at[consumer] = max(self.ready_at[consumer], arrival)
            self.missing[consumer] -= 1
            if self.missing[consumer] == 0:
                heapq.heappush(self.events, Event(self.ready_at[consumer], READY, consumer))

    def send(self, edge: int, source: int, target: int, tick: int) -> int:
        """Book both ports and the shared links, and return the arrival."""
        sender, receiver = self.devices[source], self.devices[target]
        ways = lanes(self.problem, source, target)
        start = max([tick, *(self.link_free.get(way, 0) for way in ways)])
        if self.problem.contention != "none":
            start = max(start, sender.send_free, receiver.receive_free)
        ticks = transfer_ticks(self.problem, edge, source, target)
        self.link_free |= dict.fromkeys(ways, start + ticks)
        sender.send_free = receiver.receive_free = start + ticks
        if self.problem.contention == "half_duplex":  # each device has one port for both directions
            sender.receive_free = receiver.send_free = start + ticks
        self.outcome.moves[edge] = start
        return start + ticks

    def next_task(self, d: int, tick: int) -> None:
        """Start a task if the device is idle and has one that may go."""
        device = self.devices[d]
        if device.running is not None or not device.queue:
            return
        choose: dict[str, Callable[[], int]] = {
            "fifo": lambda: device.queue[0],
            "priority": lambda: max(device.queue, key=lambda i: (self.numbers[i], -i)),
            "order": lambda: self.sequences[d][0],
        }
        task = choose[self.discipline]()
        if task not in device.queue:
            return
        device.queue.remove(task)
        if self.discipline == "order":
            self.sequences[d].pop(0)
        device.running = task
        self.outcome.start[task] = tick
        heapq.heappush(self.events, Event(tick + int(self.problem.duration[task, d]), END, task))


def simulate(
    problem: Problem, placement: Sequence[int], discipline: str = "fifo", numbers: Sequence[float] | None = None
) -> Outcome | None:
    """What happens when the placement runs; `numbers` are the priorities or the order."""
    return Simulation(problem, placement, discipline, numbers).run()
