"""Placeto, the rival of GiPH that places one task after the other: its view of a search, and its network.

R. Addanki, S. B. Venkatakrishnan, S. Gupta, H. Mao, M. Alizadeh: Placeto: Learning generalizable device placement
algorithms for distributed machine learning, 2019, arXiv:1906.08879; sizes and features as in Hu et al. 2023 (GiPH),
appendix B.6 and B.7, tables 4 and 5. An episode visits each task once, in random order, and chooses its device, which
may be the current one. It has |V| steps; a longer search then starts again from its first placement (section 5).

Choices where the paper of GiPH is not clear, as in its released code: the feature "average output data bytes" is the
largest output of a task, and messages are summed; section 5 states a mean, for GiPH or for both.

The network has one output for each device, so it fits networks with the number of devices it was trained for.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from placeopt.errors import UsageError
from placeopt.learning.graphs.views import Observation, Relatives, View, scaled
from placeopt.learning.networks.batch import Batch
from placeopt.learning.networks.layers import feed_forward
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.policies.simulator import Run

FEATURES = 5
"""Mean duration, largest output, current device, whether the task is placed now, whether it was placed before."""
STEPS = 8
"""Steps of message passing."""
HIDDEN = 32
"""Hidden units of the policy."""


class PlacetoView(View):
    """Nodes are tasks, and a choice is a device for the next task of a random order."""

    def __init__(self, problem: Problem, device: Int, **rest: object) -> None:
        super().__init__(problem, device, **rest)  # type: ignore[arg-type]
        self.period = problem.n_tasks
        counts = np.maximum(problem.feasible.sum(axis=1), 1)
        output = np.zeros(problem.n_tasks)
        np.maximum.at(output, problem.edge_source, problem.payload.astype(np.float64))
        self._fixed = scaled(np.stack([problem.duration.sum(axis=1) / counts, output]))
        self._reachable = reachable(problem)
        self._order = np.empty(0, dtype=np.int64)
        self._none = np.zeros(problem.n_tasks, dtype=np.int64)

    def observe(self, run: Run) -> Observation:  # noqa: ARG002 - Placeto does not observe the execution
        problem, place = self.problem, self.moves % self.problem.n_tasks
        if place == 0 and len(self._order) != problem.n_tasks * (self.moves // problem.n_tasks + 1):
            self._order = np.concatenate((self._order, self.rng.permutation(problem.n_tasks)))
        task = int(self._order[self.moves])
        position = 2 * self.device / max(problem.n_devices - 1, 1) - 1
        now, done = np.zeros((2, problem.n_tasks))
        now[task] = 1.0
        done[self._order[self.moves - place : self.moves]] = 1.0
        nodes = np.stack([*self._fixed, position, now, done]).T.astype(np.float32)
        i, j = problem.edge_source, problem.edge_target
        before, after = self._reachable[:, task], self._reachable[task]
        beside = ~(before | after)
        beside[task] = False
        relatives = Relatives(*(np.flatnonzero(each) for each in (before, after, beside)))
        allowed = np.zeros(problem.n_devices, dtype=np.bool_)
        allowed[self.space.options(self.device, task)] = True
        edges = np.empty((len(i), 0), dtype=np.float32)
        return Observation(nodes, edges, i, j, self._none, self._none, allowed, task, relatives)

    def decode(self, choice: int) -> tuple[int, int]:
        return int(self._order[self.moves]), choice


def check_devices(trained: int, found: int) -> None:
    """Raise UsageError if a network for `trained` devices cannot place tasks on `found` devices."""
    if trained != found:
        raise UsageError(
            f"placeto was trained for {trained} devices, but the problem has {found}; train it on problems with {found}"
        )


def reachable(problem: Problem) -> Bool:
    """(n, n), whether a path leads from the task of the row to that of the column."""
    found = np.zeros((problem.n_tasks, problem.n_tasks), dtype=np.bool_)
    for i in problem.order[::-1].tolist():
        for j in problem.edge_target[problem.out_start[i] : problem.out_start[i + 1]].tolist():
            found[i] |= found[j]
            found[i, j] = True
    return found


class SumInto(nn.Module):  # type: ignore[misc,unused-ignore]
    """g(sum of f(x)) over the messages that each node receives, with two-layer networks f and g."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.before = feed_forward(size, size, size)
        self.after = feed_forward(size, size, size)

    def forward(self, senders: Tensor, receiver: Tensor, size: int) -> Tensor:
        """(size, d), from one embedding for each message."""
        messages = torch.relu(self.before(senders))
        total = messages.new_zeros((size, messages.shape[1])).index_add(0, receiver, messages)
        return torch.relu(self.after(total))


class Placeto(nn.Module):  # type: ignore[misc,unused-ignore]
    """The network of Placeto: two-way message passing, pooling over the relatives of a task, a score for each device.

    Departures of the released code of GiPH, not followed here: it pools over the direct predecessors and successors,
    not over all tasks that reach the task or are reachable; and it sets the embeddings of the wrong ends to zero
    (`zero_ends`).
    """

    def __init__(self, devices: int, *, zero_ends: bool = False) -> None:
        super().__init__()
        self.devices, self.zero_ends = devices, zero_ends
        self.transform = feed_forward(FEATURES, FEATURES, FEATURES)
        self.along, self.against = SumInto(FEATURES), SumInto(FEATURES)
        self.pools = nn.ModuleList(SumInto(2 * FEATURES) for _ in Relatives._fields)
        self.policy = feed_forward(8 * FEATURES, HIDDEN, devices)

    def forward(self, batch: Batch) -> Tensor:
        """(B m,) scores of the devices for each graph."""
        for each in batch.observations:
            check_devices(self.devices, len(each.allowed))
        start: Tensor = self.transform(batch.nodes)
        n = batch.n_nodes
        embeddings = []
        for messages, source, target, end in (
            (self.along, batch.source, batch.target, batch.offset[1:] - 1),
            (self.against, batch.target, batch.source, batch.offset[:-1]),
        ):
            found = start
            for _ in range(STEPS):
                received = messages(found[source], target, n)
                if self.zero_ends:
                    received = received.index_fill(0, torch.from_numpy(end).to(received.device), 0.0)
                found = start + received
            embeddings.append(found)
        embedding = torch.cat(embeddings, dim=1)
        offset = batch.offset
        current = torch.tensor([o.current + at for o, at in zip(batch.observations, offset[:-1], strict=True)])
        parts = []
        for place, pool in enumerate(self.pools):
            sets = [o.relatives[place] for o in batch.observations if o.relatives is not None]
            member = np.concatenate([each + low for each, (low, _) in zip(sets, pairwise(offset), strict=True)])
            graph = np.repeat(np.arange(len(sets)), [len(each) for each in sets])
            to = batch.device
            parts.append(pool(embedding[torch.from_numpy(member).to(to)], torch.from_numpy(graph).to(to), len(sets)))
        parts.append(embedding[current.to(batch.device)])
        scores: Tensor = self.policy(torch.cat(parts, dim=1))
        return scores.flatten()
