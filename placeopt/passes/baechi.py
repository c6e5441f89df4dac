"""The graph optimisations of Baechi: forward-operator-based placement, co-placement, operator fusion.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast device placement of machine
learning graphs. SoCC 2020, doi:10.1145/3419111.3421302, sections 3.2 and 3.3.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.building import by_first_appearance
from placeopt.model.graph import components, path_lengths
from placeopt.model.levels import bottom_levels, comparable
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.passes.contraction import clusters, contraction, keeps_groups, regrouped, united
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import contradictory, edges_of, projected_transfers, rebuilt
from placeopt.protocol.citations import bibtex
from placeopt.simulation import retime


class Coplace:
    """Unites the groups of a producer and its only consumer, and of a backward task and its forward task.

    Section 3.2: "If the output of an operator is only used by its next operator, we place both operators on the same
    device", and "Baechi co-places each backward operator on the same device as its respectively-matched forward
    operator".

    Departures from the paper:

    - Groups are formed before placement; Baechi forms them while it places operators.
    - Two groups are not united if a separation forbids it, or if no device may run the union or has enough memory for
      it. Pairs are tried in order: backward tasks by index, then producers in topological order (`m-topo`). A chain
      that is too long for a device is thus cut where the device is full.
    - A producer with several edges to its only consumer counts as well.

    O((n + e) m), plus the time for separated pairs.
    """

    name: ClassVar[str] = "coplace"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "unites the groups of a producer and its only consumer, and of backward and forward tasks"
    gives_up: ClassVar[str] = "placements that separate them; the united groups may not fit into memory"
    citation: ClassVar[str] = bibtex("jeon2020baechi")

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with larger groups."""
        if problem.n_tasks == 0 or contradictory(problem):
            return None
        producer = single_producers(problem)
        consumer = problem.edge_target[problem.out_start[producer]]
        backward = backward_tasks(problem)
        left = problem.group[np.concatenate((problem.forward[backward], consumer))]
        right = problem.group[np.concatenate((backward, producer))]
        return regrouped(problem, united(problem, left, right))


def backward_tasks(problem: Problem) -> Int:
    """The backward tasks, by index."""
    return np.flatnonzero(problem.forward != np.arange(problem.n_tasks))


def single_producers(problem: Problem) -> Int:
    """The tasks with exactly one consumer, in topological order."""
    source, target = problem.edge_source, problem.edge_target
    fresh = np.ones(problem.n_edges, dtype=np.bool_)  # edges to a different consumer than the previous edge
    fresh[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    consumers = np.bincount(source[fresh], minlength=problem.n_tasks)
    return np.asarray(problem.order[consumers[problem.order] == 1])


class Forward:
    """Removes backward tasks, which follow their forward tasks, if one device has enough memory for all tasks.

    Section 3.3: "When memory is sufficient (i.e., one device could run the entire model), Baechi considers only forward
    operators for placement and thereafter co-places each corresponding backward (gradient) operators on the same
    respective device as their forward counterparts." If memory is not sufficient, forward and backward tasks become one
    group and all tasks stay.

    Details:

    - Memory is sufficient if one device has enough for all tasks, counted as under `sum`, even if it may not run all of
      them.
    - The groups of each backward task and its forward task are united first, where allowed (`passes.contraction`).
    - A successor of backward tasks, such as a weight update, is removed too if its group keeps a task.
    - The other tasks keep the edges between them and may use the devices that their whole group may use. The first kept
      task of a group takes over the memory, relocation and separation of the removed ones. It holds this memory for the
      whole run, as well as outputs that removed tasks consume: this is conservative under `peak`. Durations, release
      times and deadlines of removed tasks are ignored.
    - A restored schedule keeps the order of the placed tasks. The removed tasks follow on their devices by decreasing
      bottom level (`placeopt.model.levels`), and the whole schedule is re-timed.

    Departure: the paper leaves the order of backward operators to TensorFlow. O((n + e) m).
    """

    name: ClassVar[str] = "forward"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "places only forward tasks, backward tasks follow; groups of both if memory is scarce"
    gives_up: ClassVar[str] = "placements that separate them; the time of backward tasks during placement"
    citation: ClassVar[str] = bibtex("jeon2020baechi")

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the forward tasks, or with backward tasks in the groups of their forward tasks."""
        backward = backward_tasks(problem)
        if len(backward) == 0 or contradictory(problem):
            return None
        groups = united(problem, problem.group[problem.forward[backward]], problem.group[backward])
        if int(problem.capacity.max()) < int(problem.memory.sum()):
            return regrouped(problem, groups)
        follows = _followers(problem, groups.parent[problem.group])
        return _without(problem, groups, follows) if follows.any() else regrouped(problem, groups)


def _followers(problem: Problem, group: Int) -> Bool:
    """(n,), whether the task is backward or after a backward task, and its group (n,) has a task that is neither."""
    backward = np.zeros(problem.n_tasks, dtype=np.int64)
    some = backward_tasks(problem)
    backward[some[group[problem.forward[some]] == group[some]]] = 1
    behind = path_lengths(problem.order, problem.out_start, problem.edge_target, backward)
    late = (backward > 0) | (behind > 0)
    leads = np.zeros(problem.n_tasks, dtype=np.bool_)
    leads[group[~late]] = True
    return np.asarray(late & leads[group])


def _without(problem: Problem, groups: engine.Unions, follows: Bool) -> Reduction:
    """The problem without the tasks that follow others."""
    group = groups.parent[problem.group]
    kept, behind = np.flatnonzero(~follows), np.flatnonzero(follows)
    n = problem.n_tasks
    leader = np.where(follows, by_index(np.minimum, group[kept], kept, n, n)[group], np.arange(n))
    resident, output = problem.resident.copy(), problem.output.copy()
    np.add.at(resident, leader[behind], problem.memory[behind])
    relocation = problem.relocation.copy()
    np.add.at(relocation, leader[behind], problem.relocation[behind])
    edges = edges_of(problem)
    held = np.unique(edges.source[follows[edges.target]])  # outputs with removed consumers
    resident[held] += output[held]
    output[held] = 0
    edges = edges.kept(~(follows[edges.source] | follows[edges.target]))
    reduced, origin = rebuilt(
        problem,
        tasks=kept,
        edges=edges,
        feasible=groups.feasible[group],
        resident=resident,
        relocation=relocation,
        output=output,
        group=group,
        separation=leader[problem.separation],
    )

    def restore(schedule: Schedule) -> Schedule:
        device, start = np.empty((2, problem.n_tasks), dtype=np.int64)
        device[kept], start[kept] = schedule.device, schedule.start
        in_turn = behind[np.argsort(-comparable(bottom_levels(problem))[behind], kind="stable")]
        start[in_turn] = makespan(reduced, schedule) + np.arange(len(behind))
        return retime(problem, Schedule(device[leader], start))

    def project(schedule: Schedule) -> Schedule | None:
        if not keeps_groups(group, schedule.device):
            return None
        device = schedule.device[kept]
        transfers = projected_transfers(problem, schedule, reduced, device, origin)
        return Schedule(device, schedule.start[kept], transfers)

    explanation = f"{len(behind)} tasks follow their forward tasks"
    return Reduction(reduced, restore, project, explanation, np.searchsorted(kept, leader))


class Fuse:
    """Fuses tasks of one group that an edge connects, if this cannot create a cycle.

    Section 3.3 and figure 5: the ends of an edge are fused if the source has an out-degree of at most 1 or the
    destination an in-degree of at most 1, because no second path then connects them (figures 5d and 5e). This is
    repeated on the resulting graph until nothing changes. `placeopt.passes.contraction` defines the fused task.

    All edges of one kind are contracted at once: first those whose source has no other consumer; when none is left,
    those whose destination has no other producer. The result is the same as one by one. Edges of the first kind form
    trees. Contracting one of them keeps the out-degree of all other sources, because the task that is fused brings no
    other consumers. The second kind is symmetric. Parallel edges count as one.

    O((n + e) log e) per round; few rounds if the fused tasks form chains and trees.
    """

    name: ClassVar[str] = "fuse"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "fuses connected tasks of a group if one has no other consumer or no other producer"
    gives_up: ClassVar[str] = "schedules that run other tasks in between, or start consumers before the fused task ends"
    citation: ClassVar[str] = bibtex("jeon2020baechi")

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the fused tasks."""
        if problem.n_tasks == 0 or contradictory(problem):
            return None
        label = fused(problem)
        if int(label.max()) + 1 == problem.n_tasks:
            return None
        return contraction(problem, clusters(label, problem.order))


def fused(problem: Problem) -> Int:
    """(n,) the cluster of each task, in order of first appearance."""
    n = problem.n_tasks
    label, group = np.arange(n), problem.group
    source, target = problem.edge_source, problem.edge_target
    while True:
        pairs = np.unique(source * n + target)
        source, target = pairs // n, pairs % n
        together = group[source] == group[target]
        chosen = together & (np.bincount(source, minlength=n)[source] == 1)
        if not chosen.any():
            chosen = together & (np.bincount(target, minlength=n)[target] == 1)
        if not chosen.any():
            return by_first_appearance(label)
        joined, _ = components(n, source[chosen], target[chosen])
        into = np.unique(joined, return_index=True)[1][joined]  # the first task represents its component
        label, source, target = into[label], into[source], into[target]
        source, target = source[source != target], target[source != target]
