"""BIL: best imaginary level, list scheduling by the shortest time from a task to the end of the schedule.

H. Oh, S. Ha, Euro-Par 1996, doi:10.1007/BFb0024750. The paper's symbols: E(i, p) the duration of node i on processor p;
BIL(i, p) its best imaginary level, the time from its start on p to the end if every node has its best processor to
itself; BIM the makespan that results; k nodes are ready, P processors.

    BIL(i, p)  = E(i, p) + max over consumers j of min over q of (BIL(j, q) + transfer from p to q, 0 if p = q)
    BIM(i, p)  = earliest start of i on p, after all tasks there + BIL(i, p)
    BIM*(i, p) = BIM(i, p) + E(i, p) max(k / P - 1, 0)

The priority of a node is its k-th smallest BIM, because others may take the best k - 1 processors, or its largest if
there are fewer than k. The node with the highest priority goes to the processor with the least BIM*. On a chain of
tasks the schedule is optimal, as the paper proves: BIM is then the makespan. Release times, and limits on the devices
of a task, break the proof.

The paper's transfers do not depend on the processors; the proof also holds if they do. If k >= P, the priority of a
ready task is the maximum over p of max(arrival of data on p, p free) + BIL(i, p), where only the time at which p is
free changes. So a heap for each device by BIL, and one by the maximum of arrival + BIL, give the largest priority: it
belongs to the head of one of them.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- Ties go by index. The paper compares the (k-1)-th smallest BIM next, and of devices it prefers the one where the other
  ready nodes lose most.
- On devices that may not run a node its duration and BIM are infinite.
"""

from __future__ import annotations

from placeopt import engine
from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, filled, heuristic_info


class Bil(Constructive):
    name = "bil"
    info = heuristic_info(
        summary="list scheduling by best imaginary levels (Oh and Ha 1996)",
        family="list scheduling",
        guarantee="optimal on a chain of tasks without release times, groups, separation and limits on memory",
        complexity="O(n m² + e m k + n m log n) for k kinds of links",
        citation=bibtex("oh1996bil"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        return lambda groups: filled(problem, groups, engine.place_by_imaginary_level, insertion=False)
