"""Searches that a learned policy guides: many in lockstep, or one as a policy of `placeopt.policies`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator

from placeopt.engine import StoppedError
from placeopt.errors import UsageError
from placeopt.learning.graphs.views import Moment, Observation, View
from placeopt.learning.networks.compiled import CompiledGiph
from placeopt.learning.networks.variants import Network
from placeopt.model.arrays import Float, Int
from placeopt.model.problem import Objective, Problem
from placeopt.policies.episode import Episode, Record, prepare
from placeopt.policies.state import Policy, State, Step

if TYPE_CHECKING:
    import torch
    from torch import nn

TOGETHER = 64
"""Number of searches that a network guides at the same time."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch on one thread: with these small matrices, threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


MakeView = Callable[..., View]


class Search:
    """A search from a placement (n,): the placement, its execution and the record of an episode.

    The policy and the noise have separate streams of random numbers, as in `placeopt.policies.run_episode`. With
    `patience`, it ends after this many moves in a row without a better value. Raises a UsageError for the reasons of
    `run_episode`.
    """

    def __init__(
        self,
        problem: Problem,
        device: Int,
        make_view: MakeView,
        *,
        steps: int,
        noise: float = 0.0,
        seed: int = 0,
        objective: Objective | None = None,
        patience: int | None = None,
    ) -> None:
        self.first, self.simulator, self.rng = prepare(problem, device, steps, noise, seed, objective, 1, patience)
        self.steps, self.patience = steps, patience
        self.history: list[Step] = []
        self.view = make_view(problem, self.first, rng=self.rng)
        self._record = Record(self.simulator, self.first)
        self.run = self.start = self._record.run
        self._compiled: tuple[Network, CompiledGiph] | None = None

    @property
    def active(self) -> bool:
        """Whether moves are left."""
        return len(self.history) < self.steps and self._record.since != self.patience

    @property
    def expected(self) -> float:
        """The value without noise of the placement with the least observed value."""
        return self._record.expected

    def advance(self, choice: int) -> float:
        """Make the move of a choice; return how much the value decreases."""
        task, device = self.view.decode(choice)
        before = self.run.value
        changed = int(self.view.device[task]) != device
        self.view.move(task, device)
        if changed:
            self.run = self.simulator.run(self.view.device)
        self._record.observe(self.view.device, self.run)
        self.history.append(Step(task, device, self.run.makespan, kept=True, value=self.run.value))
        self._record.add(self.run.value)
        gain = float(before - self.run.value)
        if self.view.period is not None and len(self.history) % self.view.period == 0:
            self.view.place(self.first)
            self.run = self.start
        return gain

    def compiled(self, network: Network) -> CompiledGiph:
        """The compiled network, whose weights must not change during the search."""
        if self._compiled is None or self._compiled[0] is not network:
            self._compiled = network, compiled_network(network)
        return self._compiled[1]

    def episode(self, policy: str) -> Episode:
        """The record of the search."""
        return self._record.episode(policy, self.history)


class Decision(NamedTuple):
    """A choice in a search."""

    view: View
    moment: Moment | Observation
    choice: int
    """What the network chose."""
    gain: float
    """Decrease of the value."""

    @property
    def observation(self) -> Observation:
        """What the network observed, once the search is over; computed again, as graphs need much memory."""
        return self.view.recall(self.moment)


def guide(
    searches: Sequence[Search],
    network: Network,
    device: torch.device | str = "cpu",
    *,
    record: bool = False,
    should_stop: Callable[[], bool] | None = None,
) -> list[list[Decision]]:
    """Run searches to their ends; with `record`, return the decisions of each.

    The choices of a search depend on its own random numbers only, not on the other searches.

    Raises a StoppedError if `should_stop`, called before each move, returns True.
    """
    decisions: list[list[Decision]] = [[] for _ in searches]
    for low in range(0, len(searches), TOGETHER):
        group = range(low, min(low + TOGETHER, len(searches)))
        while active := [place for place in group if searches[place].active]:
            if should_stop is not None and should_stop():
                raise StoppedError
            made = step([searches[place] for place in active], network, device)
            if record:
                for place, decision in zip(active, made, strict=True):
                    decisions[place].append(decision)
    return decisions


def step(searches: Sequence[Search], network: Network, device: torch.device | str = "cpu") -> list[Decision]:
    """Make one move in each search; return the decisions.

    GiPH's own network runs compiled on a CPU (`CompiledGiph`), one search after the other. Other networks run in
    PyTorch, all searches in one batch.
    """
    observations = [search.view.observe(search.run) for search in searches]
    if compilable(network, device):
        rows = [
            each.compiled(network).log_probabilities(seen) for each, seen in zip(searches, observations, strict=True)
        ]
    else:
        rows = _log_probabilities(observations, network, device)
    made = []
    for search, observation, row in zip(searches, observations, rows, strict=True):
        choice = drawn(row[: len(observation.allowed)], search.rng)
        moment = search.view.remember(observation, search.run)
        made.append(Decision(search.view, moment, choice, search.advance(choice)))
    return made


def compilable(network: Network, device: torch.device | str = "cpu") -> bool:
    """Whether `step` runs a network compiled, so that lockstep gains nothing and PyTorch is not needed."""
    if isinstance(network, Mapping):
        return True
    import torch

    from placeopt.learning.networks.giph import Giph

    return torch.device(device).type == "cpu" and type(network) is Giph and not network.one_way


def compiled_network(network: Network) -> CompiledGiph:
    """The compiled version of a `compilable` network, for one search."""
    if not isinstance(network, Mapping):
        network = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    return CompiledGiph(network)


def _log_probabilities(
    observations: Sequence[Observation], network: nn.Module, device: torch.device | str
) -> list[Float]:
    import torch

    from placeopt.learning.networks.batch import Batch

    with one_thread(), torch.inference_mode():
        batch = Batch(observations, device)
        return list(batch.log_probabilities(network(batch)).double().cpu().numpy())


def drawn(logs: Float, rng: Generator) -> int:
    """Draw an index by its log-probability.

    Raises a UsageError if the log-probabilities are undefined, because the scores of the network exceed the range of
    floats.
    """
    total = np.cumsum(np.exp(logs))
    if not np.isfinite(total[-1]):
        raise UsageError("the network's scores are not finite: its weights are too large; train with a smaller rate")
    place = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
    return min(place, int(np.flatnonzero(np.isfinite(logs))[-1]))


class LearnedPolicy(Policy):
    """A trained network as a policy of `placeopt.policies`.

    Unlike a `Search`, an episode of this policy never starts again: Placeto goes on from its last placement.

    Parameters
    ----------
    name
        Name of the policy.
    network
        The network: a score for each choice of the view.
    make_view
        Creates a view from a problem and a placement; such as `GpNetView`.
    """

    def __init__(self, name: str, network: Network, make_view: MakeView, device: torch.device | str = "cpu") -> None:
        self.name, self.network, self._make_view, self._device = name, network, make_view, device

    def begin(self, problem: Problem, steps: int, rng: Generator) -> None:
        """Forget the previous episode."""
        super().begin(problem, steps, rng)
        self._view: View | None = None
        self._compiled = compiled_network(self.network) if compilable(self.network, self._device) else None

    def move(self, state: State) -> tuple[int, int]:
        """Draw a move by its score."""
        if self._view is None:
            self._view = self._make_view(self.problem, state.device, rng=self.rng)
        self._view.place(state.device)
        observation = self._view.observe(state.run)
        if self._compiled is not None:
            logs = self._compiled.log_probabilities(observation)
        else:
            logs = _log_probabilities([observation], self.network, self._device)[0]
        task, device = self._view.decode(drawn(logs, self.rng))
        self._view.move(task, device)
        return task, device
