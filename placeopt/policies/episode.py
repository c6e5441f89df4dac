"""Episodes: a policy moves one task per step, from a given placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from placeopt.errors import UsageError, visible
from placeopt.model.arrays import Int, by_index, freeze
from placeopt.model.problem import Objective, Problem, group_memory
from placeopt.policies.simulator import Run, Simulator
from placeopt.policies.state import Policy, Space, State, Step
from placeopt.policies.values import Values
from placeopt.simulation.run import checked_placement

TRIES = 10_000
"""Maximum number of draws of `random_placement`."""


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """The result of an episode of s steps; arrays have one entry for the start and one for each step.

    Values are those of the objective, by default makespans in ticks.
    """

    policy: str
    """Name of the policy."""
    current: Values
    """(s + 1,) observed value of the current placement."""
    best: Values
    """(s + 1,) least value observed so far."""
    expected: Values
    """(s + 1,) value without noise of the placement with the value `best`."""
    evaluations: Int
    estimates: Int
    """(s + 1,) cost so far (`placeopt.policies.Ledger`)."""
    device: Int
    """(n,) the placement with the least observed value."""
    history: tuple[Step, ...]
    """The moves."""

    def __post_init__(self) -> None:
        freeze(self.current, self.best, self.expected, self.evaluations, self.estimates, self.device)


class Record:
    """The best placement of a search so far, and the entries of its `Episode`.

    It begins with the execution of a placement. `since` is the number of placements since the best one.
    """

    def __init__(self, simulator: Simulator, placement: Int) -> None:
        self._simulator, self.run = simulator, simulator.run(placement)
        self.best, self.kept, self.since = self.run.value, placement, 0
        self.expected = simulator.expected(placement)
        self._rows: list[tuple[float, float, float, int, int]] = []
        self.add(self.run.value)

    def __len__(self) -> int:
        return len(self._rows)

    def observe(self, placement: Int, run: Run) -> bool:
        """Keep a placement if its value is the least so far; return whether it is."""
        self.since += 1
        better = run.value < self.best
        if better:
            self.best, self.kept, self.since = run.value, placement.copy(), 0
            self.expected = self._simulator.expected(placement)
        return better

    def add(self, value: float) -> None:
        """Add an entry with the value of the current placement."""
        ledger = self._simulator.ledger
        self._rows.append((value, self.best, self.expected, ledger.evaluations, ledger.estimates))

    def episode(self, policy: str, history: Sequence[Step] = ()) -> Episode:
        """The episode of a policy with these moves."""
        current, best, expected, evaluations, estimates = zip(*self._rows, strict=True)
        array = self._simulator.valuation.array
        costs = np.array(evaluations, dtype=np.int64), np.array(estimates, dtype=np.int64)
        return Episode(policy, array(current), array(best), array(expected), *costs, self.kept, tuple(history))


def run_episode(
    problem: Problem,
    policy: Policy,
    device: Sequence[int] | Int,
    *,
    steps: int,
    noise: float = 0.0,
    seed: int = 0,
    objective: Objective | None = None,
    repeats: int = 1,
    patience: int | None = None,
) -> Episode:
    """Run a policy from a placement (n,), whose execution counts as the first evaluation.

    The episode minimises the makespan or, if given, another `objective`: a weighted sum of metrics. The objective of
    the problem has no effect.

    The policy and the noise have separate streams of random numbers, so the choices of a policy do not depend on the
    noise except through the states.

    With `repeats`, each observed value is the mean of this number of executions, all of which count. The released code
    of GiPH has three for the baseline random-task-eft, and one for all other searches.

    With `patience`, the episode ends after this many steps in a row without a better observed value. Section 6 of
    GiPH's paper names the stopping criterion as an open question; its searches make all steps.

    Raises
    ------
    UsageError
        If `device` is not a placement, `steps`, `noise`, `repeats` or `patience` is out of range, a move is not among
        the options of its task, or the objective has several levels, the metric `period`, or, with memory model `peak`,
        `memory_balance`.
    """
    placement, simulator, rng = prepare(problem, device, steps, noise, seed, objective, repeats, patience)
    space = Space(problem)
    policy.begin(problem, steps, rng)
    record = Record(simulator, placement)
    state = State(problem, placement, record.run, 0, steps, record.best, (), space, simulator)
    for _ in range(steps):
        if record.since == patience:
            break
        task, to = _checked(policy, state)
        moved, run = state.look(task, to)
        record.observe(moved, run)
        made = Step(task, to, run.makespan, kept=True, value=run.value)
        after = state.after(moved, run, record.best, made)
        if moved is state.device or policy.keep(state, after):
            state = after
        else:
            state = state.after(state.device, state.run, record.best, replace(made, kept=False))
        record.add(state.value)
    return record.episode(policy.name, state.history)


def sample_placements(
    problem: Problem,
    device: Sequence[int] | Int,
    *,
    steps: int,
    noise: float = 0.0,
    seed: int = 0,
    objective: Objective | None = None,
    repeats: int = 1,
) -> Episode:
    """Execute a random placement in each step: the baseline "random placement sampling" of GiPH.

    Raises
    ------
    UsageError
        For the reasons of `run_episode` and `random_placement`.
    """
    first, simulator, rng = prepare(problem, device, steps, noise, seed, objective, repeats)
    record = Record(simulator, first)
    for _ in range(steps):
        placement = random_placement(problem, rng)
        run = simulator.run(placement)
        record.observe(placement, run)
        record.add(run.value)
    return record.episode("random")


def random_placement(problem: Problem, rng: Generator) -> Int:
    """Draw a placement (n,) uniformly from the feasible ones, by rejection.

    Raises
    ------
    UsageError
        If no device can run a task with its colocation group, or TRIES draws exceed the memory of a device or violate
        separation.
    """
    feasible, memory = problem.group_feasible(), group_memory(problem)
    if (stuck := np.flatnonzero(~feasible.any(axis=1))).size:
        task = problem.task_names[int(np.flatnonzero(problem.group == stuck[0])[0])]
        raise UsageError(f"no device can run task {visible(task)} with its colocation group")
    options = [np.flatnonzero(row) for row in feasible]
    left, right = problem.group[problem.separation].T if len(problem.separation) else (np.empty(0, np.int64),) * 2
    for _ in range(TRIES):
        home = np.array([devices[rng.integers(len(devices))] for devices in options], dtype=np.int64)
        used = by_index(np.add, home, memory, problem.n_devices)
        if (used <= problem.capacity).all() and (home[left] != home[right]).all():
            device = home[problem.group]
            device.flags.writeable = False
            return device
    raise UsageError(
        f"none of {TRIES} random placements satisfies memory limits and separation; start from a schedule of the "
        "solver random instead, which constructs such placements"
    )


def prepare(
    problem: Problem,
    device: Sequence[int] | Int,
    steps: int,
    noise: float,
    seed: int,
    objective: Objective | None,
    repeats: int = 1,
    patience: int | None = None,
) -> tuple[Int, Simulator, Generator]:
    """The checked first placement, a simulator for `steps` more placements, and random numbers for the search."""
    if problem.n_tasks == 0:
        raise UsageError("a problem without tasks has nothing to move")
    if steps < 0:
        raise UsageError(f"steps: {steps} is negative; expected an integer from 0 up")
    if repeats < 1:
        raise UsageError(f"repeats: {repeats} is out of range; expected an integer from 1 up")
    if patience is not None and patience < 1:
        raise UsageError(f"patience: {patience} is out of range; expected an integer from 1 up")
    if not 0 <= noise < 1:
        raise UsageError(f"noise: {noise} is out of range; expected a share from 0 to less than 1")
    placement = checked_placement(problem, device)
    placement.flags.writeable = False
    for_policy, for_noise = np.random.default_rng(seed).spawn(2)
    return placement, Simulator(problem, noise, for_noise, objective, repeats), for_policy


def _checked(policy: Policy, state: State) -> tuple[int, int]:
    task, to = (int(index) for index in policy.move(state))
    if not 0 <= task < state.problem.n_tasks:
        raise UsageError(f"policy {policy.name}: no task {task}; expected 0 to {state.problem.n_tasks - 1}")
    if to not in state.options(task).tolist():
        names = state.problem.device_names
        where = names[to] if 0 <= to < len(names) else f"device {to}"
        raise UsageError(
            f"policy {policy.name}: {state.problem.task_names[task]} may not move to {where}; "
            f"expected one of {', '.join(names[d] for d in state.options(task))}"
        )
    return task, to
