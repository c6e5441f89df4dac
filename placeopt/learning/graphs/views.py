"""What a policy network observes of a search, and what its choices mean.

A view belongs to one search. `observe` turns the current placement and its execution into an `Observation`: a graph
with features, and the allowed choices. `decode` turns a choice into a move.

Features are those of GiPH (Hu et al. 2023, appendix B.7). Each is scaled to [-1, 1] over the graph, at every step, as
in the released code (github.com/uidmice/placement-rl); the paper states no scaling. A feature with one value is 0.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from placeopt.learning.graphs.gpnet import GpNet
from placeopt.learning.graphs.traits import Traits, fitted_traits
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.policies.critical import CriticalPaths
from placeopt.policies.simulator import Run
from placeopt.policies.state import Space

Single = NDArray[np.float32]
Potential = Literal["paper", "released", "none"]
"""The start-time potential: as in the paper; 0 for pivots and entry tasks, as in the released code; or left out."""


class Relatives(NamedTuple):
    """The sets of tasks over which Placeto pools, for one task."""

    ancestors: Int
    descendants: Int
    parallel: Int


class Observation(NamedTuple):
    """The state of a search, as a network receives it. N nodes, E edges, c choices."""

    nodes: Single  # (N, f) features in [-1, 1]
    edges: Single  # (E, g) features in [-1, 1]
    source: Int  # (E,)
    target: Int  # (E,)
    depth: Int  # (N,) level from the entry nodes
    height: Int  # (N,) level from the exit nodes
    allowed: Bool  # (c,) the choices, of which at least one is allowed
    current: int = -1  # Placeto: the node that is placed
    relatives: Relatives | None = None


def scaled(values: Float) -> Float:
    """Scale each row to [-1, 1]; a row with one value becomes 0."""
    if not values.size:  # a graph without edges
        return values
    low, high = values.min(axis=-1, keepdims=True), values.max(axis=-1, keepdims=True)
    width = high - low
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(width > 0, 2 * (values - low) / width - 1, 0.0)


class Moment(NamedTuple):
    """A state of a search from which a gpNet can be observed again: a thousandth of the memory."""

    device: Int
    run: Run
    allowed: Bool


class View:
    """Base class of views: the placement of one search.

    Parameters
    ----------
    device
        (n,) the first placement.
    rng
        Random numbers of the view: Placeto draws the order of tasks.
    space, traits
        The moves of the problem, and work and speed; by default computed from the problem.
    potential
        The start-time potential among the features.
    freeze_masks, mask_tasks
        Faults of the released code (`placeopt.learning.networks.variants.Fault`).
    """

    more: ClassVar[int] = 0
    """Number of features of a node in addition to those of the paper."""
    period: int | None = None
    """Number of moves after which the search starts again from its first placement; None: never."""

    def __init__(
        self,
        problem: Problem,
        device: Int,
        *,
        rng: Generator,
        space: Space | None = None,
        traits: Traits | None = None,
        potential: Potential = "paper",
        freeze_masks: bool = False,
        mask_tasks: bool = True,
    ) -> None:
        self.problem, self.device, self.rng = problem, device.copy(), rng
        self.space = Space(problem) if space is None else space
        self.traits = fitted_traits(problem) if traits is None else traits
        self.traits.check(problem)
        self.potential, self.freeze_masks, self.mask_tasks = potential, freeze_masks, mask_tasks
        self.moves = 0
        self.last: int | None = None
        """The task that moved last."""
        self._limited = bool((problem.capacity != UNLIMITED).any() or len(problem.separation))

    def move(self, task: int, device: int) -> None:
        """Record a move of a task with its colocation group."""
        self._put(self.space.members[self.space.group[task]], device)
        self.last = task
        self.moves += 1

    def place(self, device: Int) -> None:
        """Replace the placement (n,)."""
        for i in np.flatnonzero(device != self.device).tolist():
            self._put(np.array([i]), int(device[i]))

    def _put(self, tasks: Int, device: int) -> None:
        self.device[tasks] = device

    def observe(self, run: Run) -> Observation:
        """The observation of the current placement and its execution."""
        raise NotImplementedError

    def decode(self, choice: int) -> tuple[int, int]:
        """The task and the device of a choice."""
        raise NotImplementedError

    def remember(self, seen: Observation, run: Run) -> Moment | Observation:  # noqa: ARG002 - for subclasses
        """What `recall` needs to return an observation again, before the next move."""
        return seen

    def recall(self, moment: Moment | Observation) -> Observation:
        """The observation of a moment; the search must be over, as the placement of the view changes."""
        assert isinstance(moment, Observation)
        return moment


class GpNetView(View):
    """Nodes are all pairs of a task and a device, and a choice is a node.

    Node features: work C_i, speed SP_k, duration w_ik, start-time potential. Edge features: bytes B_ij, inverse
    bandwidth 1 / BW_kl, latency DL_kl, transfer time c_ij,kl. The paper has BW_kl, which is infinite on one device; the
    released code has its inverse.

    Moves that change nothing, and moves of the task that moved last and of its colocation group, are masked (section
    4.2.3). If no other move exists, one that changes nothing is allowed.
    """

    def __init__(self, problem: Problem, device: Int, **rest: Any) -> None:
        super().__init__(problem, device, **rest)
        self.net = GpNet(problem, device)
        task, on = self.net.task, self.net.device
        fixed = [self.traits.work[task], self.traits.speed[on], problem.duration[task, on].astype(np.float64)]
        if self.potential != "none":
            fixed.append(np.zeros(self.net.n_nodes))
        self._nodes = scaled(np.stack(fixed)).T.astype(np.float32)
        self._entry = (np.diff(problem.in_start) == 0)[task]
        self._allowed: Bool | None = None

    def _put(self, tasks: Int, device: int) -> None:
        super()._put(tasks, device)
        self.net.move(tasks, device)

    def observe(self, run: Run) -> Observation:
        return self._observation(run, self._mask())

    def remember(self, seen: Observation, run: Run) -> Moment | Observation:
        return Moment(self.device.copy(), run, seen.allowed)

    def recall(self, moment: Moment | Observation) -> Observation:
        assert isinstance(moment, Moment)
        self.place(moment.device)
        return self._observation(moment.run, moment.allowed)

    def _observation(self, run: Run, allowed: Bool) -> Observation:
        net = self.net
        nodes = self._features(run, net.potential(run.start, run.end))
        edges = scaled(net.data).T.astype(np.float32)
        return Observation(nodes, edges, net.source.copy(), net.target.copy(), net.depth, net.height, allowed)

    def _features(self, run: Run, potential: Float) -> Single:  # noqa: ARG002 - for subclasses
        """(N, f) features of the nodes, from an execution and their start-time potential."""
        if self.potential == "none":
            return self._nodes
        if self.potential == "released":
            potential = potential.copy()
            potential[self.net.pivot] = 0.0
            potential[self._entry] = 0.0
        nodes = self._nodes.copy()
        nodes[:, 3] = scaled(potential)
        return nodes

    def _mask(self) -> Bool:
        if self.freeze_masks and self.moves > self.problem.n_tasks and self._allowed is not None:
            return self._allowed
        net = self.net
        allowed = self._possible()
        allowed[net.pivot] = False
        if self.last is not None:
            first = net.first
            for i in self.space.members[self.space.group[self.last]].tolist():
                allowed[first[i] : first[i + 1]] = False
        if not allowed.any():
            allowed[net.pivot[0]] = True
        self._allowed = allowed
        return allowed

    def _possible(self) -> Bool:
        """(N,) the nodes that memory, colocation and separation allow."""
        net, problem = self.net, self.problem
        if not self._limited and problem.n_groups == problem.n_tasks:
            return np.ones(net.n_nodes, dtype=np.bool_)
        return self.space.table(self.device)[problem.group[net.task], net.device]

    def decode(self, choice: int) -> tuple[int, int]:
        return int(self.net.task[choice]), int(self.net.device[choice])


class ExecutionView(GpNetView):
    """gpNet with two more features of nodes: whether the task is critical, and its end by insertion; not in the paper.

    See `Execution`.
    """

    more = 2

    def __init__(self, problem: Problem, device: Int, **rest: Any) -> None:
        super().__init__(problem, device, **rest)
        self._execution = Execution(self.net)

    def _features(self, run: Run, potential: Float) -> Single:
        critical, later = self._execution.features(self.device, run, potential)
        columns = np.stack([critical, scaled(later)]).T.astype(np.float32)
        return np.concatenate([super()._features(run, potential), columns], axis=1)


class TaskView(GpNetView):
    """Nodes are tasks, and a choice is a task, which moves to the device with the earliest finish time (EFT).

    The variant without gpNet (section 5, "GiPH task selection + EFT device selection"; `get_cardinal_graph` in the
    released code). Node features: work, speed and duration on the current device, and the least start-time potential of
    the devices. Edge features: those of the current placement. The task that moved last is masked with its colocation
    group if other tasks exist and `mask_tasks` is true; the released code has no masks here.

    The finish time is the last arrival of an input plus the duration, as in `State.finish_times`; ties go to the device
    with the lowest index.
    """

    remember, recall = View.remember, View.recall

    def observe(self, run: Run) -> Observation:
        net, problem = self.net, self.problem
        first, pivot = net.first, net.pivot
        potential = net.potential(run.start, run.end)
        ticks = problem.duration[net.task, net.device]
        finish = np.where(self._possible(), potential + run.start[net.task] + ticks, np.inf)
        self._best = np.array([low + int(finish[low:high].argmin()) for low, high in pairwise(first.tolist())])
        rows = [self.traits.work, self.traits.speed[self.device], ticks[pivot].astype(np.float64)]
        if self.potential != "none":
            rows.append(np.minimum.reduceat(potential, first[:-1]))
            if self.potential == "released":
                rows[-1][np.diff(problem.in_start) == 0] = 0.0
        i, j = problem.edge_source, problem.edge_target
        edges = net.data[:, net.block[:-1] + pivot[j] - first[j]]
        allowed = np.ones(problem.n_tasks, dtype=np.bool_)
        if self.last is not None and self.mask_tasks:
            allowed[self.space.members[self.space.group[self.last]]] = False
            if not allowed.any():
                allowed[self.last] = True
        return Observation(
            scaled(np.stack(rows)).T.astype(np.float32),
            (scaled(edges) if len(i) else edges).T.astype(np.float32),
            i, j, net.depth[pivot], net.height[pivot], allowed,
        )  # fmt: skip

    def decode(self, choice: int) -> tuple[int, int]:
        return choice, int(self.net.device[self._best[choice]])


class Execution:
    """Computes two features that GiPH does not have: critical tasks, and finish times by insertion.

    GiPH's start-time potential ignores which tasks decide the makespan and whether a device is busy.
    """

    def __init__(self, net: GpNet) -> None:
        self._net, self._critical = net, CriticalPaths(net.problem)

    def features(self, device: Int, run: Run, potential: Float) -> tuple[Float, Float]:
        """(N,) each: 1 for critical tasks and -1 for others; the ticks by which the task would end later.

        `device` (n,) is the placement, and `potential` (N,) the start-time potential of each node.
        """
        net = self._net
        links = self._critical.links(device, run.start, run.end)
        gain, critical = net.insertion(potential, run.start, run.end, links), np.full(len(device), -1.0)
        critical[self._critical.path(run.start, run.end, run.edge_ticks, links.before)] = 1.0
        return critical[net.task], gain
