"""REINFORCE: training of a policy network on searches.

R. J. Williams: Simple statistical gradient-following algorithms for connectionist reinforcement learning, Machine
Learning 8 (1992), doi:10.1007/BF00992696; as in Hu et al. 2023 (GiPH), section 5 and appendix B.7. An episode draws a
problem, starts from a random placement and makes two moves for each task. The reward r_t is the decrease of the
objective's value. At the end, the weights move along

    sum over t of gamma^t * grad log pi(a_t | s_t) * (G_t - b_t),   G_t = sum over t' >= t of gamma^(t' - t) r_t',

with the mean b_t of the rewards before t as the baseline.

Departures and choices:

- Section 4.1 of the paper writes the reward with the opposite sign; its text rewards an improvement.
- As the weights do not change during an episode, all its states go through the network in one batch at its end. The
  gradient is the same as with one pass for each step.
- Rewards are divided by the mean value of the evaluation's first placements, the same for all problems. Adam does not
  depend on the scale of the gradient, except that it would not be far above its epsilon of 1e-8 in other units.
- `batch` episodes may share an update, with the mean of their gradients.
- With `peers`, that many episodes of an update start from the same placement of the same problem. The baseline is then
  the mean of their returns G_t at step t, and advantages are divided by their standard deviation: W. Kool, H. van Hoof,
  M. Welling, "Buy 4 REINFORCE samples, get a baseline for free!", ICLR 2019 workshop; Z. Shao et al., "DeepSeekMath",
  2024, arXiv:2402.03300, section 4.1 (the deviation). The factor gamma^t is left out. Not in the paper of GiPH.
- The best weights by the evaluation are kept. With noise, the evaluation counts the values without noise of the best
  placements, as the least observed value favours lucky executions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from placeopt.engine import StoppedError
from placeopt.errors import UsageError, counted, visible
from placeopt.learning.graphs.views import Observation
from placeopt.learning.networks.batch import Batch
from placeopt.learning.networks.variants import Agent
from placeopt.learning.search import Decision, Search, guide, one_thread
from placeopt.learning.training.settings import Settings as Settings
from placeopt.model.arrays import Float, Int
from placeopt.model.metrics import critical_path
from placeopt.model.problem import Objective, Problem
from placeopt.policies.episode import random_placement

EDGES = 400_000
"""Edges of a batch in the gradient; larger episodes are divided, which does not change the gradient."""


class Problems(Protocol):
    """A set of problems: `len` and indexing."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Problem: ...


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the learning curve."""

    episode: int
    """Number of episodes before."""
    ratio: float
    """Mean over the evaluation's problems of the best value found, divided by the `reference` of the problem."""


@dataclass(slots=True)
class Progress:
    """The state of training, from which it can go on."""

    rng: Generator
    """The random numbers that draw problems, placements and seeds."""
    episode: int = 0
    """Number of episodes so far."""
    curve: list[Point] = field(default_factory=list)
    """The evaluations."""
    returns: list[float] = field(default_factory=list)
    """The undiscounted return of each episode: the decrease of the value, divided by that of the first placement."""
    best: dict[str, Tensor] = field(default_factory=dict)
    """The weights with the best evaluation."""

    @property
    def best_point(self) -> Point | None:
        """The best evaluation, the earliest if several are equal."""
        return min(self.curve, key=lambda point: point.ratio, default=None)


class Trainer:
    """Trains an agent on a set of problems, and evaluates it on another.

    Parameters
    ----------
    train, evaluation
        Problems to train on, drawn with replacement, and to evaluate on, drawn without.
    objective
        What to minimise; None: the makespan.
    device
        Device of PyTorch.

    Raises
    ------
    UsageError
        If a set is empty, a problem has no task or no random placement, the objective is 0 for all first placements, or
        the network is compiled.
    """

    def __init__(
        self,
        agent: Agent,
        train: Problems,
        evaluation: Problems,
        settings: Settings | None = None,
        *,
        objective: Objective | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.agent, self.train_set, self.objective, self.device = agent, train, objective, device
        self.settings = Settings() if settings is None else settings
        for name, problems in (("train", train), ("evaluation", evaluation)):
            if not len(problems):
                raise UsageError(f"{name}: no problems; expected at least one")
        self.network = agent.module.to(device)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=self.settings.rate)
        case_rng = np.random.default_rng([self.settings.seed, 1])
        chosen = case_rng.choice(len(evaluation), min(self.settings.cases, len(evaluation)), replace=False)
        self._cases = [evaluation[index] for index in np.sort(chosen).tolist()]
        self._starts = [_random_start(problem, case_rng) for problem in self._cases]
        self._scale = float(np.mean([self._search(*case, 0).run.value for case in self._pairs()]))
        if not self._scale:
            metric = "makespan" if objective is None else objective
            raise UsageError(
                f"objective: {metric} is 0 for the random first placements of the evaluation, so there is nothing to "
                "learn; expected problems with the data for it, or another seed"
            )
        self._leaked: list[Decision] = []
        self._should_stop: Callable[[], bool] | None = None
        self.progress = Progress(np.random.default_rng([self.settings.seed, 0]))

    @property
    def features(self) -> tuple[int, int]:
        """Numbers of features of a node and of an edge."""
        search = self._search(*self._pairs()[0], 0)
        observation = search.view.observe(search.run)
        return observation.nodes.shape[1], observation.edges.shape[1]

    @one_thread()
    def run(
        self,
        report: Callable[[Progress], bool | None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Progress:
        """Train until the number of episodes is reached, or until `report`, called after each update, returns True.

        If `should_stop`, called before each move, returns True, the unfinished update or evaluation is dropped. `run`
        goes on with it when called again.

        Raises a UsageError if weights, gradients or scores become infinite or undefined.
        """
        progress = self.progress
        self._should_stop = should_stop
        with suppress(StoppedError):
            self._evaluate_if_due()
            while progress.episode < self.settings.episodes:
                self._update()
                self._evaluate_if_due()
                if report is not None and report(progress):
                    break
        return progress

    def _pairs(self) -> Sequence[tuple[Problem, Int]]:
        return list(zip(self._cases, self._starts, strict=True))

    def _search(self, problem: Problem, device: Int, seed: int) -> Search:
        steps = max(1, round(self.settings.steps * problem.n_tasks))
        noise, objective = self.settings.noise, self.objective
        return Search(problem, device, self.agent.make_view, steps=steps, noise=noise, seed=seed, objective=objective)

    def _update(self) -> None:
        """Run episodes and move the weights along the policy gradient."""
        progress, rng, settings = self.progress, self.progress.rng, self.settings
        before = rng.bit_generator.state
        searches: list[Search] = []
        try:
            while len(searches) < settings.batch:
                if self._should_stop is not None and self._should_stop():
                    raise StoppedError
                problem = self.train_set[int(rng.integers(len(self.train_set)))]
                device = _random_start(problem, rng)
                searches += [self._search(problem, device, int(rng.integers(2**31))) for _ in range(settings.peers)]
            found = guide(searches, self.network, self.device, record=True, should_stop=self._should_stop)
        except StoppedError:
            rng.bit_generator.state = before
            raise
        self.optimiser.zero_grad()
        for low in range(0, len(searches), settings.peers):
            period = searches[low].view.period
            group = [self._leaking(period, decisions) for decisions in found[low : low + settings.peers]]
            gains = [np.array([step.gain for step in decisions]) / self._scale for decisions in group]
            for decisions, factors in zip(group, policy_factors(gains, settings, period), strict=True):
                self._add_gradient(decisions, factors / len(searches))
        self.optimiser.step()
        progress.episode += len(searches)
        moments = [each for state in self.optimiser.state.values() for each in state.values()]
        if not all(bool(torch.isfinite(each).all()) for each in (*self.network.parameters(), *moments)):
            raise UsageError(
                f"training diverged after {counted(progress.episode, 'episode')}: weights or gradients are not finite; "
                f"train with a rate below {self.settings.rate:g}"
            )
        progress.returns += [
            sum(step.gain for step in decisions) / (search.start.value or 1.0)
            for search, decisions in zip(searches, found, strict=True)
        ]

    def _leaking(self, period: int | None, decisions: list[Decision]) -> list[Decision]:
        """The decisions of an update, which are those of the episode unless the fault `placeto-returns` is on."""
        if "placeto-returns" not in self.settings.faults or period is None:
            return decisions
        kept = self._leaked + decisions[:period]
        self._leaked = decisions[period:]
        return kept

    def _add_gradient(self, decisions: Sequence[Decision], factors: Float) -> None:
        """Add the gradient of an episode: the sum of factor * grad log pi(a_t | s_t), to be maximised."""
        low = 0
        while low < len(decisions):
            seen: list[Observation] = []
            edges = 0
            while low + len(seen) < len(decisions) and edges < EDGES:
                seen.append(decisions[low + len(seen)].observation)
                edges += max(len(seen[-1].source), 1)
            high = low + len(seen)
            batch = Batch(seen, self.device)
            logs = batch.log_probabilities(self.network(batch))
            choice = torch.tensor([step.choice for step in decisions[low:high]], device=logs.device)
            chosen = logs.gather(1, choice.unsqueeze(1)).squeeze(1)
            factor = torch.as_tensor(factors[low:high], dtype=logs.dtype, device=logs.device)
            (-(chosen * factor).sum()).backward()
            low = high

    def _evaluate_if_due(self) -> None:
        """Evaluate at the start, each time that `every` episodes have passed, and at the end."""
        done, curve, settings = self.progress.episode, self.progress.curve, self.settings
        last = curve[-1].episode if curve else -1
        if done // settings.every > last // settings.every or last < done >= settings.episodes:
            self._evaluate()

    def _evaluate(self) -> None:
        """Add a point to the learning curve; keep the weights if they are the best so far."""
        progress = self.progress
        searches = [self._search(*case, seed) for seed, case in enumerate(self._pairs())]
        guide(searches, self.network, self.device, should_stop=self._should_stop)
        ratio = float(np.mean([search.expected / self._reference(search) for search in searches]))
        best = progress.best_point
        if best is None or ratio < best.ratio:
            progress.best = {name: value.detach().cpu().clone() for name, value in self.network.state_dict().items()}
        progress.curve.append(Point(progress.episode, ratio))
        if "repeated-cases" in self.settings.faults:
            progress.rng = np.random.default_rng([self.settings.seed, 0])

    def _reference(self, search: Search) -> float:
        """The value that a best value is compared with."""
        if self.objective is None:
            return critical_path(search.view.problem) or 1.0
        return search.start.value or 1.0


def _random_start(problem: Problem, rng: Generator) -> Int:
    """A random first placement; the error names the problem."""
    try:
        return random_placement(problem, rng)
    except UsageError as error:
        name = f"problem {visible(problem.name)}" if problem.name else f"a problem of {problem.n_tasks:,} tasks"
        reason = str(error).partition(";")[0]  # the advice after it is about searches
        raise UsageError(f"{name} cannot be trained or evaluated on: {reason}") from None


def policy_factors(gains: Sequence[Float], settings: Settings, period: int | None) -> list[Float]:
    """The factors of grad log pi(a_t | s_t) in episodes with these rewards, which are peers if there are several.

    A search that starts again, as Placeto's, has an episode for each `period`.
    """
    faults, gamma = settings.faults, settings.gamma
    if "placeto-returns" in faults:
        parts, returns = [[each] for each in gains], [[discounted(each[::-1], gamma)] for each in gains]
    else:
        cuts = np.arange(period or len(gains[0]), len(gains[0]), period or 1)
        parts = [np.split(each, cuts) for each in gains]
        returns = [[discounted(part, gamma) for part in each] for each in parts]
    if len(gains) > 1:
        total = np.stack([np.concatenate(each) for each in returns])
        advantage = total - total.mean(axis=0)
        return list(advantage / (advantage.std() or 1.0))
    late = "late-baseline" in faults
    advantages = [total - baselines(part, late=late) for part, total in zip(parts[0], returns[0], strict=True)]
    if "undiscounted" not in faults:
        advantages = [each * gamma ** np.arange(len(each)) for each in advantages]
    return [np.concatenate(advantages)]


def discounted(gains: Float, gamma: float) -> Float:
    """(T,) returns: G_t = r_t + gamma * G_(t+1)."""
    returns, following = np.empty(len(gains)), 0.0
    for t in range(len(gains) - 1, -1, -1):
        following = gains[t] + gamma * following
        returns[t] = following
    return returns


def baselines(gains: Float, *, late: bool = False) -> Float:
    """(T,) mean of the rewards before t, 0 at first; if `late`, of those up to t."""
    count = np.arange(1, len(gains) + 1)
    means: Float = np.cumsum(gains) / count
    return means if late else np.concatenate(([0.0], means[:-1]))
