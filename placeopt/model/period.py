"""The metric `period`: the time between two results, if runs follow each other without end.

Every run executes all tasks on the same devices. The period is the largest load of a device, divided by the number of
devices of its team, in ticks, rounded up. The load of a device is, for one run,

    computing + sent + received + synchronised                  the default
    computing + max(sent, received) + synchronised              full_duplex
    max(computing, sent + received + synchronised)              overlap
    max(computing, max(sent, received) + synchronised)          overlap and full_duplex

`computing` includes the launch of each stage and what is computed again. A transfer takes the same ticks on both sides,
latency included, but not at the same time: the receiver may start later than the sender (the data waits in memory). So
devices never wait for each other in the steady state, and the period is reached: a schedule with that period always
exists (`placeopt.simulation.pipelines`). J. Tarnawski, A. Phanishayee, N. Devanur, D. Mahajan, F. Nina Paravecino:
Efficient algorithms for device placement of DNN graph operators, NeurIPS 2020, section 3, define this load; their CPU
has `free_transfers`, and their outputs are sent once (`multicast`).

Devices may occupy several machines, as teams do. Then the period is the largest load of a machine: that of all its
devices together, and separately for computing, sending and receiving where these overlap.

The r devices of a team serve the runs in turn. If their tasks have gradients of w bytes, a ring all-reduce moves
2 (r - 1) / r w bytes over the slowest link of the team (D. Narayanan et al.: PipeDream, SOSP 2019, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Int, by_index
from placeopt.model.memory import per_device
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Stages, durations, edge_ticks, edge_transfers
from placeopt.model.stages import forward_in_training, rules


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """What one run takes of each device, in ticks; zero for replicas."""

    computing: Int
    launching: Int
    recomputing: Int
    """(m,) ticks of the tasks, of starting the stages, and of forward tasks that are computed again."""
    sent: Int
    received: Int
    synchronised: Int
    """(m,) ticks of transfers, and of synchronising the replicas."""
    team: Int
    """(m,) number of devices that run the tasks of the device; 0 for replicas."""
    total: Int
    """(m,) the load of the device."""
    machines: Int
    """(q,) the load of each machine; `total` where each device is its own machine."""
    busiest: Int
    """(m,) the largest load of a machine that the device occupies."""

    @property
    def periods(self) -> Int:
        """(m,) the least period that each device allows."""
        return -(-self.busiest // np.maximum(self.team, 1))


def sends(problem: Problem, device: Int) -> tuple[Int, Int, Int]:
    """What devices send: (s,) an edge that stands for each, (s,) ticks, and (e,) the place of each edge's or -1."""
    carrier = edge_transfers(problem, device)
    ticks = edge_ticks(problem, device)
    if rules(problem).multicast:
        key = np.where(problem.shared, problem.edge_source, problem.n_tasks + np.arange(problem.n_edges))
    else:
        key = carrier
    moving = np.flatnonzero(carrier >= 0)
    place = np.full(problem.n_edges, -1, dtype=np.int64)
    _, first, inverse = np.unique(key[moving], return_index=True, return_inverse=True)
    place[moving] = inverse
    longest = by_index(np.maximum, inverse, ticks[moving], len(first))
    return moving[first], longest, place


def loads(problem: Problem, device: Int, stages: Stages | None = None) -> Loads:
    """What one run takes of each device under a placement."""
    pipeline = rules(problem)
    m = problem.n_devices
    team = np.ones(m, dtype=np.int64)
    launching, recomputing, synchronised = np.zeros((3, m), dtype=np.int64)
    computing = per_device(problem, device, durations(problem, device))
    if stages is not None:
        team = np.bincount(stages.leader, minlength=m)
        _, first = np.unique(stages.number, return_index=True)
        launching = np.bincount(device[first], minlength=m) * pipeline.launch
        again = durations(problem, device) * (forward_in_training(problem) & (stages.recompute[device] != 0))
        recomputing = per_device(problem, device, again)
        synchronised = synchronisation(problem, device, stages)
    edge, ticks, _ = sends(problem, device)
    sent = by_index(np.add, device[problem.edge_source[edge]], ticks, m)
    transfers = np.flatnonzero(edge_transfers(problem, device) == np.arange(problem.n_edges))
    received = by_index(np.add, device[problem.edge_target[transfers]], edge_ticks(problem, device)[transfers], m)
    sent[pipeline.free_transfers] = 0
    received[pipeline.free_transfers] = 0
    busy = computing + launching + recomputing
    before = np.where(pipeline.overlap, 0, busy)
    ways = [np.where(pipeline.full_duplex, way, sent + received) for way in (sent, received)]
    tracks = [busy, *(before + way + synchronised for way in ways)]
    total = machines = busiest = np.maximum.reduce(tracks)
    if pipeline.machines is not None:
        on = pipeline.occupied
        machines = np.maximum.reduce([track @ on for track in tracks])
        busiest = np.where(on, machines, 0).max(axis=1)
    return Loads(computing, launching, recomputing, sent, received, synchronised, team, total, machines, busiest)


def synchronisation(problem: Problem, device: Int, stages: Stages) -> Int:
    """(m,) ticks in which each device with replicas synchronises the gradients of its tasks."""
    pipeline = rules(problem)
    found = np.zeros(problem.n_devices, dtype=np.int64)
    amount = per_device(problem, device, pipeline.gradient)
    for d in np.flatnonzero((np.bincount(stages.leader, minlength=len(found)) > 1) & (amount > 0)).tolist():
        if not pipeline.free_transfers[d]:
            found[d] = ring_ticks(problem, np.flatnonzero(stages.leader == d), int(amount[d]))
    return found


def ring_ticks(problem: Problem, team: Int, gradient: int) -> int:
    """Ticks in which the devices of a team synchronise gradients; 0 for one device."""
    r = len(team)
    if r < 2 or gradient == 0:
        return 0
    a, b = np.nonzero(~np.eye(r, dtype=np.bool_))
    return int(problem.transfer(-(-2 * (r - 1) * gradient // r), team[a], team[b]).max())


def period(problem: Problem, schedule: Schedule) -> int:
    """Ticks between two results; 0 without tasks."""
    return int(loads(problem, schedule.device, schedule.stages).periods.max(initial=0))
