"""Lower bounds of the makespan from parts of the graph that are solved alone.

**Definitions.** A schedule runs task w on a device of class D(w). H[w, c] is a *head*: in every schedule with D(w) = c,
w starts at H[w, c] or later. Q[w, c] is a *tail*: the makespan is at least Q[w, c] after the end of w. p[w, c] is the
duration. The quick bounds give the first heads and tails (`placeopt.bounding.quick.paths`). With deadlines, "every
schedule" means those that end by the horizon of `placeopt.bounding.quick.deadlines`; one of them is optimal. Let S be a
set of tasks that contains v and some of its ancestors, and R the least head of the tasks of S on any class. The *part
before v on c* of S

- contains the tasks of S, the edges between them, and their groups, separations, memory and ports, without deadlines;
- releases w at H[w, d] - R on a device of class d;
- allows v only on the devices of class c.

**Claim: heads.** Let B be a lower bound of the makespan of that part. In every schedule with D(v) = c, v ends at R + B
or later. Hence H[v, c] may be raised to R + B - p[v, c]. If the part is infeasible, no schedule has D(v) = c.

Proof. Delete all tasks outside S and their transfers, and shift the rest to start R earlier. No task of S starts before
its head, so none starts before 0 or its release. Precedences, feasibility, groups and separations within S hold as in
the whole. Each device and port does a part of what it did, in the same times. A device holds the memory of fewer tasks,
and under `peak`, the output of a task is freed when the last consumer has it, which is not later with fewer consumers.
A shared output that is sent to a device for several consumers is sent there at the same time for those in S. So what is
left is a schedule of the part. It ends with v, because all other tasks of S are ancestors of v: end(v) - R >= B. ∎

S need not contain all tasks between two tasks; every choice is valid. An interval (all tasks between u and v) is the
part where S holds the descendants of u; heads as releases make it stronger, and admit several entries.

**Claim: tails.** The tails of a problem are the heads of its mirror: edges and links reversed, without releases and
deadlines, without ports, and with only the memory that is held for the whole run (`mirror`).

Proof. Reverse the time of a schedule, from its makespan to 0. A transfer that arrived by the start of its consumer
starts in the mirror once the consumer has ended, and arrives by the start of the producer, after as many ticks. All
other rules of the mirror are independent of the direction. ∎

**Claim: the bound.** The makespan is at least the maximum over the tasks v of the minimum over the classes c of H[v, c]
+ p[v, c] + Q[v, c]. With a known schedule of makespan U, classes where this sum is at least U are closed for v: no
schedule below U uses them. What is then proved holds for all schedules below U, so the bound is the minimum with U.

This is the longest path over arcs between tasks and classes: heads are raised in topological order, each from a part
whose releases are the raised heads of earlier tasks. Thus delays of successive parts add up along the graph, although
each part is small. A head that is not raised stays valid. So none is raised on a class c where it hardly matters: if
every class would get the data of v from another class no later than from c, a later end on c delays no consumer.

    passes     parts as problems, and the mirror; heads of all tasks, by small parts that CP-SAT solves
    packing    a bound for colocation groups
    search     both directions, anchors first, then passes with parts of growing size
"""

from __future__ import annotations

from placeopt.proving.intervals.search import Search, available

__all__ = ["Search", "available"]
