"""The policy networks of GiPH and of its variants: a score for each node of a graph.

Hu et al. 2023, sections 4.2.2 and 4.2.3, appendix B.6, tables 4 and 5. A network is a `torch.nn.Module` whose
`forward` maps a `Batch` to one score for each choice. Details that the paper leaves open follow the released code
(github.com/uidmice/placement-rl, `placement_agent.py`): the mean of messages, embeddings that start from the
transformed features, one transformation for both directions, PyTorch's initial weights.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from placeopt.learning.networks.batch import Batch
from placeopt.learning.networks.compiled import EMBEDDING, HIDDEN
from placeopt.learning.networks.layers import Messages, feed_forward, mean_into, repeated, with_edge_means


class Scored(nn.Module):  # type: ignore[misc,unused-ignore]
    """Base class: an embedding of each node, and the score function of section 4.2.3."""

    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.score = feed_forward(embedding, HIDDEN, 1)

    def embed(self, batch: Batch) -> Tensor:
        """(N, d) embeddings of all nodes."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Tensor:
        """(N,) scores of all nodes."""
        scores: Tensor = self.score(self.embed(batch))
        return scores.squeeze(1)


class Giph(Scored):
    """GiPH: message passing along the edges and against them, in topological order (equation 1).

    Parameters
    ----------
    nodes, edges
        Numbers of features.
    one_way
        Whether the second direction follows the edges too, with messages from nodes that were not visited yet: a fault
        of the released code.
    """

    def __init__(self, nodes: int, edges: int, *, one_way: bool = False) -> None:
        super().__init__(2 * EMBEDDING)
        self.one_way = one_way
        self.transform = feed_forward(nodes, nodes, EMBEDDING)
        self.along = Messages(EMBEDDING, edges, EMBEDDING)
        self.against = Messages(EMBEDDING, edges, EMBEDDING)

    def embed(self, batch: Batch) -> Tensor:
        return self.both_ways(batch, batch.nodes, batch.edges)

    def both_ways(self, batch: Batch, nodes: Tensor, edges: Tensor) -> Tensor:
        """(N, d) embeddings from these features."""
        start = self.transform(nodes)
        along = self.along.topological(start, edges, batch.forward)
        levels = batch.pulled_backward if self.one_way else batch.backward
        return torch.cat([along, self.against.topological(start, edges, levels)], dim=1)


class GiphSteps(Giph):
    """GiPH-k: k synchronous steps of message passing in both directions (equation 4).

    As in the released code, t = 0, ..., k - 1. The paper states t = 0, ..., k, which would be k + 1 steps.

    Parameters
    ----------
    steps
        k; the paper has 3 and 5.
    zero_ends
        Whether the last node receives nothing along the edges, and the first node nothing against them: a fault of the
        released code.
    """

    def __init__(self, nodes: int, edges: int, *, steps: int, zero_ends: bool = False) -> None:
        super().__init__(nodes, edges)
        self.steps, self.zero_ends = steps, zero_ends

    def both_ways(self, batch: Batch, nodes: Tensor, edges: Tensor) -> Tensor:
        ways = [
            lambda found, source, target, way=way: way.once(found, edges, source, target)
            for way in (self.along, self.against)
        ]
        return repeated(batch, self.transform(nodes), ways, self.steps, zero_ends=self.zero_ends)


class GiphNoEdges(Giph):
    """GiPH-NE: message passing without edge features; nodes have the mean features of their out-edges instead.

    Table 5: no transformation of the features, messages of the size of the features, embeddings of size 5. Equation 1
    then adds features of size 8 to embeddings of size 5. As in the released code, the embeddings start from transformed
    features of size 5 therefore. The released code also averages in-edges, not out-edges (`incoming`).
    """

    def __init__(self, nodes: int, edges: int, *, incoming: bool = False, one_way: bool = False) -> None:
        super().__init__(nodes + edges, 0, one_way=one_way)
        self.incoming = incoming

    def embed(self, batch: Batch) -> Tensor:
        return self.both_ways(batch, with_edge_means(batch, incoming=self.incoming), batch.edges[:, :0])


class GiphPolicyOnly(Scored):
    """GiPH-NE-Pol: the features of GiPH-NE go directly into the score function."""

    def __init__(self, nodes: int, edges: int, *, incoming: bool = False) -> None:
        super().__init__(nodes + edges)
        self.incoming = incoming

    def embed(self, batch: Batch) -> Tensor:
        return with_edge_means(batch, incoming=self.incoming)


class GraphSage(Scored):
    """GraphSAGE-NE: the features of GiPH-NE and three GraphSAGE layers with mean aggregation along the edges.

    W. Hamilton, R. Ying, J. Leskovec: Inductive representation learning on large graphs, NeurIPS 2017, algorithm 1:
    h_u = W_self h_u + W_mean mean(h_v). As in the released code, ReLU follows all layers but the last, and embeddings
    are not scaled to length 1.
    """

    def __init__(self, nodes: int, edges: int, *, incoming: bool = False) -> None:
        super().__init__(2 * EMBEDDING)
        self.incoming = incoming
        sizes = (nodes + edges, HIDDEN, HIDDEN, 2 * EMBEDDING)
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.mean = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(sizes))

    def embed(self, batch: Batch) -> Tensor:
        found = with_edge_means(batch, incoming=self.incoming)
        for place, (own, mean) in enumerate(zip(self.own, self.mean, strict=True)):
            if place:
                found = torch.relu(found)
            found = own(found) + mean(mean_into(found[batch.source], batch.target, batch.n_nodes))
        return found
