"""Message passing on batched graphs, with PyTorch alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from placeopt.learning.networks.batch import Batch, Levels


def feed_forward(*sizes: int) -> nn.Sequential:
    """Linear layers with ReLU between them, with PyTorch's initial weights."""
    layers: list[nn.Module] = []
    for inner, outer in pairwise(sizes):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def mean_into(messages: Tensor, receiver: Tensor, size: int) -> Tensor:
    """(size, d) mean of the messages that each node receives; 0 without messages."""
    total = messages.new_zeros((size, messages.shape[1])).index_add(0, receiver, messages)
    count = messages.new_zeros(size).index_add(0, receiver, messages.new_ones(len(receiver)))
    return total / count.clamp(min=1).unsqueeze(1)


class Messages(nn.Module):  # type: ignore[misc,unused-ignore]
    """A message function h1 and an aggregation function h2 of one direction: h2(mean of h1([e_v | x_vu])).

    Hu et al. 2023, equation 1 and table 5, with one linear layer and ReLU each. Departures from the formula: it has a
    sum, section 5 and the released code the mean.
    """

    def __init__(self, nodes: int, edges: int, out: int) -> None:
        super().__init__()
        self.message = nn.Linear(nodes + edges, nodes + edges)
        self.update = nn.Linear(nodes + edges, out)
        self._nodes = nodes

    def edge_part(self, edges: Tensor) -> Tensor:
        """The part of h1 that depends on edge features only, with the bias."""
        weight = self.message.weight[:, self._nodes :]
        return torch.addmm(self.message.bias, edges, weight.t())

    def node_part(self) -> Tensor:
        """The weights of h1 for the embedding of the sender, transposed."""
        return self.message.weight[:, : self._nodes].t()

    def topological(self, start: Tensor, edges: Tensor, levels: Levels) -> Tensor:
        """(N, out) embeddings if each node waits for all nodes that send to it; `start` (N, out) is added."""
        of_edges, of_nodes = self.edge_part(edges[levels.edge]), self.node_part()
        start = start[levels.node]
        found = start.clone()
        empty = torch.relu(self.update.bias)
        for (low, high), (first, last) in zip(pairwise(levels.node_bounds), pairwise(levels.edge_bounds), strict=True):
            if first == last:
                found[low:high] = start[low:high] + empty
                continue
            sent = found.index_select(0, levels.sender[first:last])
            messages = torch.relu(torch.addmm(of_edges[first:last], sent, of_nodes))
            gathered = mean_into(messages, levels.receiver[first:last], high - low)
            found[low:high] = torch.relu(self.update(gathered)) + start[low:high]
        return found[levels.rank]

    def once(self, senders: Tensor, edges: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """(N, out) one synchronous step from embeddings `senders` (N, nodes)."""
        messages = torch.relu(torch.addmm(self.edge_part(edges), senders[source], self.node_part()))
        return torch.relu(self.update(mean_into(messages, target, len(senders))))


def repeated(
    batch: Batch,
    start: Tensor,
    ways: Sequence[Callable[[Tensor, Tensor, Tensor], Tensor]],
    steps: int,
    *,
    zero_ends: bool,
) -> Tensor:
    """(N, 2 d) embeddings after synchronous steps along the edges and against them; `start` (N, d) is added.

    Each of the two `ways` maps embeddings, senders and receivers to what all nodes receive. With `zero_ends`, the last
    node receives nothing along the edges, and the first node nothing against them.
    """
    found = []
    ends = (batch.source, batch.target, batch.offset[1:] - 1), (batch.target, batch.source, batch.offset[:-1])
    for way, (source, target, end) in zip(ways, ends, strict=True):
        embedding = start
        for _ in range(steps):
            received = way(embedding, source, target)
            if zero_ends:
                received = received.index_fill(0, torch.from_numpy(end).to(received.device), 0.0)
            embedding = start + received
        found.append(embedding)
    return torch.cat(found, dim=1)


def with_edge_means(batch: Batch, *, incoming: bool) -> Tensor:
    """(N, f + g) node features, and the mean features of the edges that leave (or enter) each node."""
    ends = batch.target if incoming else batch.source
    return torch.cat([batch.nodes, mean_into(batch.edges, ends, batch.n_nodes)], dim=1)
