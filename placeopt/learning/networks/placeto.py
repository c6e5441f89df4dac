"""The network of Placeto, whose view is in `placeopt.learning.graphs.placeto`.

Sizes as in Hu et al. 2023 (GiPH), appendix B.6, tables 4 and 5. Messages are summed, as in the released code of GiPH;
its section 5 states a mean, for GiPH or for both.

The network has one output for each device, so it fits networks with the number of devices it was trained for.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from placeopt.learning.graphs.placeto import FEATURES, check_devices
from placeopt.learning.graphs.views import Relatives
from placeopt.learning.networks.batch import Batch
from placeopt.learning.networks.layers import feed_forward, repeated

STEPS = 8
"""Steps of message passing."""
HIDDEN = 32
"""Hidden units of the policy."""


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
        ways = [
            lambda found, source, target, way=way: way(found[source], target, batch.n_nodes)
            for way in (self.along, self.against)
        ]
        embedding = repeated(batch, self.transform(batch.nodes), ways, STEPS, zero_ends=self.zero_ends)
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
