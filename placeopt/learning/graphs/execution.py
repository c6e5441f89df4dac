"""Two features of an execution that GiPH does not have: critical tasks, and finish times by insertion.

GiPH's start-time potential ignores which tasks decide the makespan and whether a device is busy. Both are known from
the execution.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.learning.graphs.gpnet import GpNet, Tables
from placeopt.model.arrays import Float, Int
from placeopt.policies.critical import CriticalPaths
from placeopt.policies.simulator import Run


@kernel(allocates=False)
def write_insertion(
    tables: Tables, duration: Int, start: Int, end: Int, head: Int, following: Int, potential: Float, gain: Float
) -> None:
    """Write for each node how much later its task ends if it moves there, into the first sufficient gap.

    The other tasks keep their times. Inputs arrive as the start-time potential says.
    """
    for i in range(len(start)):
        for node in range(tables.first[i], tables.first[i + 1]):
            d = tables.device[node]
            ticks = duration[i, d]
            ready = potential[node] + start[i]
            j = head[d]
            while j >= 0:
                if j != i:
                    if start[j] - ready >= ticks:
                        break
                    ready = max(ready, end[j])
                j = following[j]
            gain[node] = ready + ticks - end[i]


class Execution:
    """Computes both features for the nodes of a gpNet."""

    def __init__(self, net: GpNet, steps: int = 1) -> None:
        problem = net.problem
        self._net, self._duration = net, problem.duration
        self._critical = CriticalPaths(problem, steps)
        steps *= net.n_nodes * (1 + problem.n_tasks // problem.n_devices)
        self._insert = write_insertion.select(steps, chunked=True)

    def features(self, device: Int, run: Run, potential: Float) -> tuple[Float, Float]:
        """(N,) each: 1 for critical tasks and -1 for others; the ticks by which the task would end later.

        Parameters
        ----------
        device
            (n,) the placement.
        potential
            (N,) start-time potential of each node.
        """
        net = self._net
        links = self._critical.links(device, run.start, run.end)
        gain, critical = np.empty(net.n_nodes), np.full(len(device), -1.0)
        self._insert(net.tables, self._duration, run.start, run.end, links.head, links.following, potential, gain)
        critical[self._critical.path(run.start, run.end, run.edge_ticks, links.before)] = 1.0
        return critical[net.task], gain
