"""The network of the RNN placer: its input, the choice of a device for each task in turn, and its training."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor, nn

from placeopt.errors import UsageError
from placeopt.learning.graphs.traits import Traits
from placeopt.learning.search import one_thread
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import Problem


@dataclass(frozen=True, slots=True)
class RnnSettings:
    """Parameters of the RNN placer.

    Attributes
    ----------
    hidden
        Size of the states of all LSTMs.
    batch
        Number of placements for each update.
    updates
        Maximum number of updates.
    patience
        Number of updates without a better placement after which training ends; None: training does not end early.
    learning_rate
        Learning rate of Adam.
    clip
        Maximum norm of the gradient; None: no limit.
    scale, temperature
        C and T of the logits C tanh(z / T).
    freeze_attention
        Whether the weights of the attention keep their initial values: a fault of the released code.

    Raises
    ------
    UsageError
        If a number is out of range.
    """

    hidden: int = 64
    batch: int = 4
    updates: int = 100
    patience: int | None = 25
    learning_rate: float = 0.01
    clip: float | None = 1.0
    scale: float = 5.0
    temperature: float = 10.0
    freeze_attention: bool = False

    def __post_init__(self) -> None:
        for name in ("hidden", "batch", "updates", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name}: {value} is too few; expected at least 1")
        for name in ("learning_rate", "clip", "scale", "temperature"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"{name}: {value} is not positive and finite")


@dataclass(frozen=True, slots=True, eq=False)
class TaskSequence:
    """The tasks of a problem in topological order, as the network receives them.

    Attributes
    ----------
    order
        (n,) the tasks.
    features
        (n, f) input of each position.
    allowed
        (n, m), the devices on which the task may be, with its colocation group.
    leader
        (n,) position of the first task of the same colocation group.
    """

    order: Int
    features: Float
    allowed: Bool
    leader: Int


def sequence_of(problem: Problem, traits: Traits) -> TaskSequence:
    """The tasks of a problem as a sequence; the columns of the features are type, work, bytes, consumers."""
    traits.check(problem)
    n, order = problem.n_tasks, problem.order
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    kind = np.unique(problem.feasible, axis=0, return_inverse=True)[1].reshape(n)
    kinds = np.eye(int(kind.max()) + 1)[kind]
    work = traits.work / (traits.work.max() or 1.0)
    source, target = problem.edge_source, problem.edge_target
    rank = np.arange(problem.n_edges) - problem.out_start[source]
    sizes = np.zeros((n, int(np.diff(problem.out_start).max())))
    sizes[source, rank] = problem.payload / (problem.payload.max(initial=0) or 1)
    consumers = np.zeros((n, n))
    consumers[source, position[target]] = 1.0
    features = np.concatenate((kinds, work[:, None], sizes, consumers), axis=1)[order]
    group = problem.group[order]
    first = np.full(problem.n_groups, n)
    np.minimum.at(first, group, np.arange(n))
    return TaskSequence(order, features, problem.group_feasible()[group], first[group])


class RnnPlacer(nn.Module):  # type: ignore[misc,unused-ignore]
    """A sequence-to-sequence model with attention (A. Mirhoseini et al., ICLR 2018, section 2, "Placer").

    A bidirectional LSTM reads the sequence. An LSTM then chooses a device for each task. Its input is the device of the
    previous task, one-hot; its first state is the last one of the encoder along the sequence. It attends to all outputs
    of the encoder (D. Bahdanau, K. Cho, Y. Bengio, ICLR 2015): with outputs o_j and state h_i,

        a_i = softmax_j v tanh(W1 o_j + W2 h_i),    z_i = W [sum_j a_ij o_j | h_i] + b,    logits_i = C tanh(z_i / T).

    Devices that are not allowed have probability 0. The first task of a colocation group chooses for all.

    Parameters
    ----------
    features, devices
        Sizes f and m of the input and of the output.
    hidden
        Size of each state.
    scale, temperature
        C and T.
    """

    def __init__(self, features: int, devices: int, hidden: int, scale: float, temperature: float) -> None:
        super().__init__()
        self.devices, self.hidden, self.scale, self.temperature = devices, hidden, scale, temperature
        self.encoder = nn.LSTM(features, hidden, bidirectional=True)
        self.decoder = nn.LSTMCell(devices, hidden)
        self.attention = nn.ModuleDict(
            {
                "output": nn.Linear(2 * hidden, hidden, bias=False),
                "state": nn.Linear(hidden, hidden, bias=False),
                "score": nn.Linear(hidden, 1, bias=False),
            }
        )
        self.choice = nn.Linear(3 * hidden, devices)
        nn.init.zeros_(self.choice.bias)

    def forward(
        self, tasks: TaskSequence, count: int, generator: Generator | None = None, chosen: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw `count` placements, or compute the probabilities of `chosen` ones (count, n).

        Returns the devices (count, n) in the order of the sequence, and the log-probability of each placement (count,).
        """
        outputs, (state, cell) = self.encoder(torch.as_tensor(tasks.features, dtype=self.choice.weight.dtype))
        forbidden = torch.as_tensor(~tasks.allowed)
        keys = self.attention["output"](outputs)
        h, c = (last[0].expand(count, -1) for last in (state, cell))
        before = outputs.new_zeros((count, self.devices))
        total = outputs.new_zeros(count)
        placed: list[Tensor] = []
        for i, leader in enumerate(tasks.leader.tolist()):
            h, c = self.decoder(before, (h, c))
            score = self.attention["score"](torch.tanh(keys + self.attention["state"](h).unsqueeze(1))).squeeze(2)
            context = score.softmax(dim=1) @ outputs
            z = self.choice(torch.cat((context, h), dim=1))
            logits = self.scale * torch.tanh(z / self.temperature)
            if not bool(torch.isfinite(logits).all()):
                raise UsageError("the RNN placer's logits are not finite; expected a smaller learning rate or scale")
            logs = logits.masked_fill(forbidden[i], -torch.inf).log_softmax(dim=1)
            if chosen is not None:
                device = chosen[:, i]
            elif leader < i:
                device = placed[leader]
            else:
                device = torch.multinomial(logs.detach().exp(), 1, generator=generator).squeeze(1)
            if leader == i:
                total = total + logs.gather(1, device.unsqueeze(1)).squeeze(1)
            placed.append(device)
            before = nn.functional.one_hot(device, self.devices).to(outputs.dtype)
        return torch.stack(placed, dim=1), total


class RnnTrainer:
    """Draws placements and trains the network that drew them by REINFORCE, with Adam; all random numbers are seeded."""

    def __init__(self, tasks: TaskSequence, settings: RnnSettings, seed: int) -> None:
        self.tasks, self.settings = tasks, settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            shape = tasks.features.shape[1], tasks.allowed.shape[1]
            self.network = RnnPlacer(*shape, settings.hidden, settings.scale, settings.temperature)
        self._generator = torch.Generator().manual_seed(seed)
        self.network.attention.requires_grad_(not settings.freeze_attention)
        self._trained = [each for each in self.network.parameters() if each.requires_grad]
        self._adam = torch.optim.Adam(self._trained, lr=settings.learning_rate)

    @one_thread()
    def draw(self, count: int) -> list[Int]:
        """Draw `count` placements, (n,) each."""
        chosen, self._logs = self.network(self.tasks, count, self._generator)
        placements = np.empty(chosen.shape, dtype=np.int64)
        placements[:, self.tasks.order] = chosen.numpy()
        placements.flags.writeable = False
        return list(placements)

    @one_thread()
    def learn(self, advantages: Float) -> None:
        """Make the latest placements more likely in proportion to their advantages, one for each."""
        loss = -(torch.as_tensor(advantages, dtype=self._logs.dtype) * self._logs).mean()
        self._adam.zero_grad()
        loss.backward()
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self._trained, self.settings.clip)
        self._adam.step()
