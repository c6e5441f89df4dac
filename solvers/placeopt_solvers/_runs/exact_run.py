"""Run cp-sat and milp level by level, and compute the values of a schedule for hints; their models are separate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.memory import freed_at, swap_times, used_memory
from placeopt.model.objective import METRICS, Value, simplified
from placeopt.model.problem import UNLIMITED, Metric, Problem, devices_by_class
from placeopt.model.schedule import BUFFERS, Schedule, Transfers, arrivals, durations, edge_ticks
from placeopt.protocol import Options, Settings, Termination

from .solve_run import SolveRun, gap_reached

E = TypeVar("E")


class ExactSettings(Settings):
    """Settings that cp-sat and milp share."""

    hint: bool = True
    """Start from the best schedule of fast heuristics."""
    symmetry: bool = True
    """Break the symmetry between interchangeable devices."""
    series: bool = True
    """Where single tasks cut the graph, solve the blocks between them first, each with the cuts on given devices."""


class TooLargeError(Exception):
    """The numbers of a problem are too large for an engine; the message names them."""


@dataclass(frozen=True, slots=True)
class View:
    """A schedule as plain lists, from which the value of every variable of a model follows."""

    device: list[int]  # of each task
    start: list[int]  # tick of each task
    end: list[int]  # tick of each task
    release: list[int]  # tick at which each task's output is released
    home: list[int]  # device of each colocation group
    sent: list[int]  # tick at which each edge's data leaves; the producer's end if it does not move
    arrival: list[int]  # tick at which each edge's data arrives; the producer's end if it does not move
    used: list[int]  # bytes that count against the capacity of each device
    swap: list[int]  # ticks for which each device swaps
    metrics: dict[str, int]  # the metrics of the objective, and the makespan


def view(problem: Problem, schedule: Schedule) -> View:
    """Return the view of a valid schedule."""
    metrics = dict.fromkeys(("makespan", *counted(problem)))
    arrival = arrivals(problem, schedule)
    return View(
        device=schedule.device.tolist(),
        start=schedule.start.tolist(),
        end=(schedule.start + durations(problem, schedule.device)).tolist(),
        release=freed_at(problem, schedule).tolist(),
        home=_homes(problem, schedule).tolist(),
        sent=(arrival - edge_ticks(problem, schedule.device)).tolist(),
        arrival=arrival.tolist(),
        used=used_memory(problem, schedule).tolist(),
        swap=swap_times(problem, schedule.device).tolist(),
        metrics={metric: METRICS[metric](problem, schedule) for metric in metrics},
    )


def group_order(problem: Problem) -> list[int]:
    """Return the groups in the order in which their first tasks appear in `Problem.order`."""
    return list(dict.fromkeys(problem.group[problem.order].tolist()))


def relabelled(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the same schedule, with the devices of each class first used in their order.

    Symmetry breaking keeps exactly these: the k-th device of a class may run a group only if an earlier group, in
    `group_order`, runs on the (k-1)-th. That is valid because devices of a class are interchangeable.
    """
    used = list(dict.fromkeys(_homes(problem, schedule)[group_order(problem)].tolist()))
    new = np.arange(problem.n_devices)
    for devices in devices_by_class(problem):
        first_used = [d for d in used if d in devices]
        new[first_used + [d for d in devices if d not in first_used]] = devices
    return Schedule(new[schedule.device], schedule.start, schedule.transfers)


def counted(problem: Problem) -> tuple[Metric, ...]:
    """Return the metrics of the objective and of the limits."""
    return tuple(dict.fromkeys((*problem.objective.metrics, *dict(problem.limits))))


def bounded_devices(problem: Problem) -> list[int]:
    """Return devices whose capacity can matter: for `memory_balance` all limited ones, else those that can overflow."""
    limited = np.flatnonzero(problem.capacity != UNLIMITED).tolist()
    if "memory_balance" in counted(problem):
        return limited
    memory = aligned_memory(problem)
    return [
        d for d in limited if memory[problem.feasible[:, d]].sum() + reserved_top(problem, d) > int(problem.capacity[d])
    ]


def reserved_top(problem: Problem, d: int) -> int:
    """Return the first aligned byte of a device after its last reserved one."""
    return 0 if problem.layout is None else problem.layout.top(d, problem.alignment or 1)


def aligned_memory(problem: Problem) -> Any:
    """Return the bytes (n,) of each task as Python integers, its buffers rounded up to the alignment."""
    step, parts = problem.alignment or 1, [problem.buffer_bytes(kind) for kind in BUFFERS]
    return sum((-(-part.astype(object) // step) * step for part in parts), np.zeros(problem.n_tasks, dtype=object))


def needs_times(problem: Problem) -> bool:
    """Return whether memory, a deadline or the objective depends on times, not only on the placement."""
    if {"makespan", "tardiness"}.intersection(counted(problem)) or bool((problem.deadline != UNLIMITED).any()):
        return True
    return problem.memory_model == "peak" and bool(bounded_devices(problem))


def transfers_of(start: Mapping[int, int]) -> Transfers:
    """Return transfers from the start of each edge's transfer."""
    edges = sorted(start)
    return Transfers(np.array(edges, dtype=np.int64), np.array([start[e] for e in edges], dtype=np.int64))


def _homes(problem: Problem, schedule: Schedule) -> Int:
    home = np.zeros(problem.n_groups, dtype=np.int64)
    home[problem.group] = schedule.device
    return home


@dataclass(frozen=True, slots=True)
class Level(Generic[E]):
    """One level of the objective in steps of `step`, as an expression of a model with integer values."""

    expression: E
    step: Fraction

    def scaled(self, value: Value) -> int:
        """Return the number of steps in a value of the level."""
        return int(value / self.step)

    def value(self, scaled: int | Fraction) -> Value:
        """Return the value of a number of steps."""
        return simplified(scaled * self.step)


@dataclass(frozen=True, slots=True)
class LevelOutcome:
    """How the minimisation of one level ended."""

    infeasible: bool  # whether the engine finds that there are no solutions
    bound: int | None  # a lower bound of the level in its steps
    reason: Callable[[], Termination]  # returns why the run ends if the gap limit is not reached


class ExactRun(SolveRun, ABC, Generic[E]):
    """A run that minimises the objective level by level, each with the values of the levels before as limits."""

    def __init__(self, problem: Problem, options: Options, name: str, engine: str) -> None:
        super().__init__(problem, options)
        self.name, self.engine = name, engine

    @abstractmethod
    def minimise(self, depth: int, level: Level[E]) -> LevelOutcome:
        """Minimise a level and offer the schedules found; raise the bound of the incumbent at the first level."""

    @abstractmethod
    def limit(self, level: Level[E], value: int) -> None:
        """Require a level to be at most a value, in its steps."""

    def descend(self, levels: Sequence[Level[E]]) -> Termination:
        """Minimise one level after the other."""
        optimal = True
        for depth, level in enumerate(levels):
            stopped = self.stop_reason()
            if stopped is not None:
                return stopped
            outcome = self.minimise(depth, level)
            if outcome.infeasible:
                return self.no_solution(depth, self.engine)
            if self.best.values is None or outcome.bound is None:
                return outcome.reason()
            value, bound = level.scaled(self.best.values[depth]), outcome.bound
            if bound > value:
                raise self.contradiction(
                    f"{self.engine} proves {level.value(bound)} for level {depth + 1}, where a schedule has "
                    f"{level.value(value)}"
                )
            reached = gap_reached(value, bound, self.options.gap_limit)
            if reached is None:
                return outcome.reason()
            optimal &= reached is Termination.OPTIMAL
            self.limit(level, value)
        return Termination.OPTIMAL if optimal else Termination.COMPLETED

    def no_solution(self, depth: int, engine: str) -> Termination:
        """Return INFEASIBLE, which is right only if no schedule is known."""
        if self.best.schedule is not None:
            raise self.contradiction(f"{engine} finds no solution of level {depth + 1}, although a schedule is known")
        return Termination.INFEASIBLE

    def found(self, schedule: Schedule, depth: int) -> None:
        """Offer a schedule found at a level."""
        self.best.offer(schedule, f"level {depth + 1}" if depth else "")
