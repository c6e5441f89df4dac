"""Forward-operator-based placement: where memory is sufficient, backward tasks follow their forward tasks.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast device placement of machine
learning graphs. SoCC 2020, doi:10.1145/3419111.3421302, section 3.3: "When memory is sufficient (i.e., one device could
run the entire model), Baechi considers only forward operators for placement and thereafter co-places each
corresponding backward (gradient) operators on the same respective device as their forward counterparts." Where it is
not, forward and backward tasks become one group, and nothing is left out.

How it is done here:

- Memory is sufficient if one device has room for everything that all tasks need (as under the `sum` memory model),
  whether or not it may run them all.
- First the groups of each backward task and its forward task are united, where they may be (`placeopt.passes.uniting`);
  a pair that must be apart stays as it is. So each task that follows has one group, of which a forward task is left.
- What comes after backward tasks and shares a group with a task that does not (updates of weights) follows as well.
- The reduced problem has the other tasks and the edges between them, on devices that all of their group may run on. The
  first that is left of each group holds the memory of those that follow, their relocation and their separation. It
  holds memory for the whole run, and an output that one of them needs is held so too, which is cautious under `peak`.
  Their durations, release times and deadlines do not count.
- Restored schedules keep the order of the tasks that were placed; those that follow come behind on their devices, by
  falling bottom level (`placeopt.model.levels`), and all are timed anew.

Departure from the paper: Baechi leaves unsaid when backward operators run; TensorFlow decided it.

O((n + e) m).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.graph import path_lengths
from placeopt.model.levels import bottom_levels, comparable
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.passes.coplace import backward_tasks
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import at_odds, edges_of, projected_transfers, rebuilt
from placeopt.passes.uniting import Unions, keeps_groups, regrouped, united
from placeopt.simulation import retime
from placeopt.solver.citations import BAECHI


class Forward:
    """Leaves backward tasks to follow their forward tasks, where one device has memory for everything."""

    name: ClassVar[str] = "forward"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "places forward tasks only, backward ones follow; groups of both where memory is scarce"
    gives_up: ClassVar[str] = "placements that part them, and what backward tasks take while others are placed"
    citation: ClassVar[str] = BAECHI

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the forward tasks, or with backward tasks in their groups."""
        backward = backward_tasks(problem)
        if len(backward) == 0 or at_odds(problem):
            return None
        groups = united(problem, problem.group[problem.forward[backward]], problem.group[backward])
        if int(problem.capacity.max()) < int(problem.memory.sum()):
            return regrouped(problem, groups)
        follows = _followers(problem, groups.parent[problem.group])
        return _without(problem, groups, follows) if follows.any() else regrouped(problem, groups)


def _followers(problem: Problem, group: Int) -> Bool:
    """(n,) whether a backward task, or one behind some, has a task in its group (n,) that is neither."""
    backward = np.zeros(problem.n_tasks, dtype=np.int64)
    some = backward_tasks(problem)
    backward[some[group[problem.forward[some]] == group[some]]] = 1
    behind = path_lengths(problem.order, problem.out_start, problem.edge_target, backward)
    late = (backward > 0) | (behind > 0)
    leads = np.zeros(problem.n_tasks, dtype=np.bool_)
    leads[group[~late]] = True
    return np.asarray(late & leads[group])


def _without(problem: Problem, groups: Unions, follows: Bool) -> Reduction:
    """The problem without the tasks that follow."""
    group = groups.parent[problem.group]
    kept, behind = np.flatnonzero(~follows), np.flatnonzero(follows)
    lead = np.full(problem.n_tasks, problem.n_tasks)  # by group, the first task that is left
    np.minimum.at(lead, group[kept], kept)
    leader = np.where(follows, lead[group], np.arange(problem.n_tasks))
    resident, output = problem.resident.copy(), problem.output.copy()
    np.add.at(resident, leader[behind], problem.memory[behind])
    relocation = problem.relocation.copy()
    np.add.at(relocation, leader[behind], problem.relocation[behind])
    edges = edges_of(problem)
    held = np.unique(edges.source[follows[edges.target]])  # until someone has it who is not there any more
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
        device = np.empty(problem.n_tasks, dtype=np.int64)
        device[kept] = schedule.device
        device = device[leader]
        start = np.empty(problem.n_tasks, dtype=np.int64)
        start[kept] = schedule.start
        in_turn = behind[np.argsort(-comparable(bottom_levels(problem))[behind], kind="stable")]
        start[in_turn] = makespan(reduced, schedule) + np.arange(len(behind))
        return retime(problem, Schedule(device, start))

    def project(schedule: Schedule) -> Schedule | None:
        if not keeps_groups(group, schedule.device):
            return None
        device = schedule.device[kept]
        transfers = projected_transfers(problem, schedule, reduced, device, origin)
        return Schedule(device, schedule.start[kept], transfers)

    return Reduction(reduced, restore, project, f"{len(behind)} tasks follow their forward tasks")
