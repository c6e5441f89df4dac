"""The base class of policies, and the state that they receive: a placement, its execution, and the possible moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from placeopt.model.arrays import Bool, Float, Int, freeze
from placeopt.model.problem import Problem, group_memory, group_separation
from placeopt.policies.simulator import Run, Simulator


@dataclass(frozen=True, slots=True)
class Step:
    """A move, the observed makespan after it in ticks, whether the policy kept it, and the observed value."""

    task: int
    device: int
    makespan: int
    kept: bool
    value: float


class Space:
    """The moves of a problem: each moves a task, with its colocation group, to a feasible device with enough memory."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.memory, self.feasible = group_memory(problem), problem.group_feasible()
        self.apart_start, self.apart = group_separation(problem)
        self.group: list[int] = problem.group.tolist()
        order = np.argsort(problem.group, kind="stable")
        first = np.searchsorted(problem.group[order], np.arange(1, problem.n_groups))
        self.members = np.split(order, first)

    def options(self, device: Int, task: int) -> Int:
        """The devices, sorted, on which a task may be, given the rest of a placement (n,); includes its current one."""
        k = self.group[task]
        allowed = self.feasible[k].copy()
        if self.memory[k]:
            room = self.problem.capacity.copy()
            np.subtract.at(room, device, self.problem.memory)
            allowed &= self.memory[k] <= room
        for rival in self.apart[self.apart_start[k] : self.apart_start[k + 1]].tolist():
            allowed[device[self.members[rival][0]]] = False
        allowed[device[task]] = True
        return np.flatnonzero(allowed)

    def table(self, device: Int) -> Bool:
        """(g, m), whether each colocation group may be on each device, as `options` returns them for one task."""
        problem = self.problem
        home = np.empty(problem.n_groups, dtype=np.int64)
        home[problem.group] = device
        room = problem.capacity.copy()
        np.subtract.at(room, device, problem.memory)
        allowed: Bool = self.feasible & ((self.memory[:, None] <= room) | (self.memory[:, None] == 0))
        allowed[np.repeat(np.arange(problem.n_groups), np.diff(self.apart_start)), home[self.apart]] = False
        allowed[np.arange(problem.n_groups), home] = True
        return allowed

    def moved(self, device: Int, task: int, to: int) -> Int:
        """The placement (n,) after a move."""
        placement = device.copy()
        placement[self.members[self.group[task]]] = to
        placement.flags.writeable = False
        return placement


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The state of a search."""

    problem: Problem
    device: Int
    """(n,) the current placement."""
    run: Run
    """Its execution: starts, ends and transfers in ticks, with noise if the episode has noise, and its value."""
    step: int
    steps: int
    """Number of moves made, and number of moves of the episode."""
    best: float
    """The least value observed so far."""
    history: tuple[Step, ...]
    """The moves so far."""
    _space: Space
    _simulator: Simulator
    _memo: dict[Any, Any] = field(default_factory=dict)

    def after(self, device: Int, run: Run, best: float, made: Step) -> State:
        """The state after one step; if the execution is the same, so are its cached results."""
        history = (*self.history, made)
        memo = self._memo if run is self.run else {}
        space, simulator = self._space, self._simulator
        return State(self.problem, device, run, self.step + 1, self.steps, best, history, space, simulator, memo)

    @property
    def makespan(self) -> int:
        """The observed makespan of the current placement in ticks."""
        return self.run.makespan

    @property
    def value(self) -> float:
        """The observed value of the current placement under the objective of the episode: by default the makespan."""
        return self.run.value

    @property
    def only_makespan(self) -> bool:
        """Whether the objective is the makespan alone."""
        return self._simulator.valuation.weights.keys() == {"makespan"}

    def options(self, task: int) -> Int:
        """The devices, sorted, to which the task may move; includes its current one."""
        found: Int = self._once(("options", task), lambda: self._space.options(self.device, task))
        return found

    def finish_times(self, task: int) -> Int:
        """The end of the task in ticks on each of its `options` if it started when its last input arrives.

        This is the earliest finish time (EFT) of GiPH: inputs arrive as in the current placement, and other tasks on
        the device are ignored. Costs one estimate per device, once per placement.
        """
        return self._once(("finish", task), lambda: self._finish_times(task))  # type: ignore[no-any-return]

    def gains(self, task: int) -> Float:
        """Estimated decrease of the value for each of `options`, from data of the task and its neighbours.

        Total cost, communication, energy and relocation count exactly, except that a transfer with several consumers
        counts for each. The makespan counts as the decrease of the task's finish time, for tasks of the critical path
        or if it is the whole objective. Maximum load and memory balance are left out. Costs as many estimates as
        `finish_times`, once per placement.
        """
        return self._once(("gains", task), lambda: self._gains(task))  # type: ignore[no-any-return]

    def evaluate(self, task: int, device: int) -> float:
        """The value after a move. Costs one execution, which the move itself then does not repeat."""
        return self.look(task, device)[1].value

    def look(self, task: int, device: int) -> tuple[Int, Run]:
        """The placement after a move, and its execution."""

        def execute() -> tuple[Int, Run]:
            placement = self._space.moved(self.device, task, device)
            return placement, self._simulator.run(placement)

        if device == self.device[task]:
            return self.device, self.run
        return self._once(("run", self._space.group[task], device), execute)  # type: ignore[no-any-return]

    def critical_path(self) -> list[int]:
        """The critical path, first to last: each task starts when an input arrives or its device becomes free."""
        found: list[int] = self._once("path", lambda: self._simulator.critical_path(self.device, self.run))
        return found

    def _once(self, key: Any, work: Callable[[], Any]) -> Any:
        if key not in self._memo:
            self._memo[key] = found = work()
            freeze(found)
        return self._memo[key]

    def _finish_times(self, task: int) -> Int:
        problem, devices = self.problem, self.options(task)
        self._simulator.ledger.estimates += len(devices)
        ready = np.full(len(devices), problem.release[task])
        edges = problem.in_edge[problem.in_start[task] : problem.in_start[task + 1]]
        if len(edges):
            producers = problem.edge_source[edges]
            moving = problem.transfer(problem.payload[edges, None], self.device[producers, None], devices)
            moving[problem.group[producers] == problem.group[task]] = 0
            ready = np.maximum(ready, (self.run.end[producers, None] + moving).max(axis=0))
        finish: Int = ready + problem.duration[task, devices]
        return finish

    def _gains(self, task: int) -> Float:
        valuation, options = self._simulator.valuation, self.options(task)
        gains: Float = np.zeros(len(options))
        weight = valuation.weights.get("makespan", 0.0)
        if weight and (self.only_makespan or task in self.critical_path()):
            gains += weight * (self.run.end[task] - self.finish_times(task))
        else:
            self._simulator.ledger.estimates += len(options)
        if not self.only_makespan:
            local = valuation.local(self.device, self._space.members[self._space.group[task]], options)
            gains += local[options == self.device[task]] - local
        return gains


class Policy(ABC):
    """A search policy, to be run by `placeopt.policies.run_episode`; one object may run several episodes.

    GiPH (Hu et al. 2023, section 4.1) states the Markov decision process: states are feasible placements, an action
    moves one task, and the reward is the decrease of the makespan, or of another objective's value.
    """

    name: str

    def begin(self, problem: Problem, steps: int, rng: Generator) -> None:
        """Prepare for an episode with the given number of steps; all random numbers must come from `rng`."""
        self.problem, self.steps, self.rng = problem, steps, rng

    @abstractmethod
    def move(self, state: State) -> tuple[int, int]:
        """A task and one of `state.options(task)`; its current device leaves the placement unchanged."""

    def keep(self, before: State, after: State) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the search continues from the new placement, always by default as in GiPH, or from the previous one.

        Reverting costs no execution.
        """
        return True
