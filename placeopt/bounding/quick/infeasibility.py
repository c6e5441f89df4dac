"""Quick proofs that a problem has no feasible schedule. If none is found, the problem may still be infeasible.

The first proof that succeeds is reported, in this order:

1. a task without a feasible device, a group without a common one, a group with a separated pair inside;
2. a group that needs more memory than any of its devices has; a budget that does not suffice for the least amounts;
3. pairwise separated tasks without a device for each (bipartite matching, P. Hall 1935);
4. groups confined to some devices (`Subset`) that together need more memory than these have;
5. groups confined to some devices that cannot be packed into them: a device holds at most floor(capacity / s) groups of
   at least s bytes; and, for equal capacities, the bound L2 of S. Martello and P. Toth, "Lower bounds and reduction
   procedures for the bin packing problem", Discrete Applied Mathematics 28 (1990), doi:10.1016/0166-218X(90)90094-S:
   groups above half a capacity have one device each, which limits the space for the others;
6. a deadline that a task cannot meet on any device (`placeopt.bounding.quick.deadlines`);
7. 3 to 5 again, with only the devices on which groups can meet their deadlines;
8. work between release times and deadlines that exceeds the time of the devices it is confined to, or of a resource.

Under `peak` a device holds at least the `resident` bytes of all its tasks for the whole run, plus what any one of them
needs while it runs. Only this is used, so the proofs hold for every order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import Classes, Subset, by_group, classes_of, group_text, subsets
from placeopt.bounding.quick.deadlines import narrowed
from placeopt.bounding.quick.jackson import head_load_tail, priced_subsets
from placeopt.bounding.quick.resources import exceeded_budgets, scarcest
from placeopt.errors import counted, listing
from placeopt.model.arrays import Int
from placeopt.model.memory import shortage
from placeopt.model.modes import place_text
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.units import size_text

CLIQUES, CLIQUE = 64, 256
"""Maximum number of cliques of the separation graph, and of groups in one."""


@dataclass(frozen=True, slots=True)
class Infeasibility:
    """A proof of infeasibility: a sentence with names and amounts."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def prove_infeasible(problem: Problem) -> Infeasibility | None:
    """A proof that the problem has no feasible schedule; None if no quick one is found."""
    if problem.n_tasks == 0:
        return None
    if problem.n_devices == 0:
        return Infeasibility("there are tasks but no devices")
    reason = next(_proofs(problem), None)
    return None if reason is None else Infeasibility(reason)


def _proofs(problem: Problem) -> Iterator[str]:
    yield from _devices(problem)
    classes = classes_of(problem)
    yield from _sizes(classes)
    yield from exceeded_budgets(classes)
    yield from _confined(classes)
    within = narrowed(classes)
    if within is None:
        return
    if within.late is not None:
        yield within.late
        return
    if (within.classes.allowed != classes.allowed).any():
        for reason in _confined(within.classes):
            yield f"if all deadlines are met, {reason}"
    value, subset, tasks = head_load_tail(within.classes, within.found, priced_subsets(within.classes))
    if value > within.horizon:
        narrower = (within.classes.allowed != classes.allowed)[subset.groups].any()
        yield (
            f"the {counted(tasks, 'task')} that can only run on {classes.names(subset.members)} "
            f"{'if all deadlines are met ' if narrower else ''}"
            f"{'has' if tasks == 1 else 'have'} too little time "
            "between their release times and their deadlines, or those of their successors"
        )
    use = scarcest(within.classes, within.found)
    if use is not None and use.ticks > within.horizon:
        yield (
            f"tasks use more of {use.name} than there is between their release times and their deadlines, or those of "
            "their successors"
        )


def _confined(classes: Classes) -> Iterator[str]:
    """Proofs about groups confined to too few or too small devices."""
    yield from _separations(classes)
    for subset in subsets(classes):
        if (classes.capacity[subset.members] != UNLIMITED).all():
            yield from _total(classes, subset)
            yield from _packing(classes, subset)


def _devices(problem: Problem) -> Iterator[str]:
    """Tasks and groups without a device, groups with a separated pair inside."""
    for task in np.flatnonzero(~problem.feasible.any(axis=1)).tolist():
        yield f"task {problem.task_names[task]} has no feasible device"
    common = by_group(problem, problem.feasible, np.logical_and).any(axis=1)
    for group in np.flatnonzero(~common).tolist():
        yield f"{group_text(problem, group)} has no device that is feasible for all of its tasks"
    for task, other in problem.separation.tolist():
        if problem.group[task] == problem.group[other]:
            names = problem.task_names
            yield f"tasks {names[task]} and {names[other]} must be on the same device and on different ones"


def _sizes(classes: Classes) -> Iterator[str]:
    """Groups that need more memory than any of their devices has."""
    problem = classes.problem
    feasible = by_group(problem, problem.feasible[:, classes.leader], np.logical_and)
    fits = feasible & (classes.need <= classes.capacity)
    for group in np.flatnonzero(~fits.any(axis=1)).tolist():
        need = int(classes.need[group][feasible[group]].min())
        room = int(classes.capacity[feasible[group]].max())
        yield (
            f"{group_text(problem, group)} needs {size_text(need)} of memory, more than the {size_text(room)} "
            f"of the largest device that may run it ({classes.names(feasible[group])})"
        )


def _separations(classes: Classes) -> Iterator[str]:
    """Proofs about cliques of separated groups without a device for each."""
    problem, usable = classes.problem, classes.allowed[:, classes.problem.device_class]
    first = np.unique(problem.group, return_index=True)[1]
    for clique, _ in crowded_cliques(classes):
        tasks = listing([problem.task_names[i] for i in first[clique]], 4)
        devices = listing([place_text(problem, d) for d in np.flatnonzero(usable[clique].any(axis=0)).tolist()])
        yield (
            f"{len(clique)} tasks ({tasks}) must be on different devices, "
            f"but the devices that they fit on ({devices}) do not allow this"
        )


def crowded_cliques(classes: Classes) -> Iterator[tuple[list[int], list[int]]]:
    """Cliques of separated groups without a device for each, and groups of the clique that fit on too few devices."""
    problem = classes.problem
    usable = classes.allowed[:, problem.device_class]
    near: dict[int, set[int]] = {}
    for task, other in problem.group[problem.separation].tolist():
        near.setdefault(task, set()).add(other)
        near.setdefault(other, set()).add(task)
    # Groups with few devices first, then those with many separations: their cliques are hard to place.
    ranked = sorted(near, key=lambda g: (int(usable[g].sum()), -len(near[g]), g))
    for start in ranked[:CLIQUES]:
        clique = [start]
        for group in ranked:
            if len(clique) < CLIQUE and all(group in near[other] for other in clique):
                clique.append(group)
        crowd = _crowd([np.flatnonzero(usable[group]).tolist() for group in clique])
        if crowd:
            yield clique, [clique[who] for who in crowd]


def _crowd(choices: list[list[int]]) -> list[int]:
    """Those who have fewer devices than they are; none if all can have distinct devices, by augmenting paths."""
    owner: dict[int, int] = {}

    def place(who: int, tried: set[int]) -> bool:
        for device in choices[who]:
            if device not in tried:
                tried.add(device)
                if device not in owner or place(owner[device], tried):
                    owner[device] = who
                    return True
        return False

    for who in range(len(choices)):
        tried: set[int] = set()
        if not place(who, tried):
            return [who, *(owner[device] for device in sorted(tried))]
    return []


def _total(classes: Classes, subset: Subset) -> Iterator[str]:
    """More memory needed than the devices of a subset have together."""
    problem = classes.problem
    inside = subset.groups[problem.group]
    # The device that runs the task holds these bytes in addition to all resident bytes.
    lone = int(classes.lone_need[inside].max(initial=0))
    need = int(classes.memory[inside].sum()) + lone
    room = sum(int(classes.capacity[c]) * int(classes.size[c]) for c in np.flatnonzero(subset.members))
    if need > room:
        tasks = int(inside.sum())
        yield (shortage(problem) if tasks == problem.n_tasks and subset.members.all() else None) or (
            f"the {counted(tasks, 'task')} that only fit{'s' if tasks == 1 else ''} on {classes.names(subset.members)} "
            f"need{'s' if tasks == 1 else ''} {size_text(need)} of memory together, more than the {size_text(room)} "
            "available"
        )


def _packing(classes: Classes, subset: Subset) -> Iterator[str]:
    """Groups that cannot be packed into the devices of a subset."""
    sizes = np.sort(classes.group_memory[subset.groups])[::-1]
    sizes = sizes[sizes > 0]
    if len(sizes) == 0:
        return
    capacity, count = classes.capacity[subset.members], classes.size[subset.members]
    places = np.zeros(len(sizes), dtype=np.int64)
    for room, devices in zip(capacity.tolist(), count.tolist(), strict=True):
        places += np.minimum(room // sizes, len(sizes)) * devices
    names = classes.names(subset.members)
    for at in np.flatnonzero(places < np.arange(1, len(sizes) + 1))[:1].tolist():
        yield (
            f"{at + 1} groups of {size_text(int(sizes[at]))} or more only fit on {names}, "
            f"which have room for {int(places[at])} of that size"
        )
    if (capacity == capacity[0]).all():
        needed = _bins(sizes, int(capacity[0]))
        if needed > int(count.sum()):
            yield (
                f"the groups that only fit on {names} cannot be packed into {int(count.sum())} devices of "
                f"{size_text(int(capacity[0]))}: they need at least {needed}"
            )


def _bins(sizes: Int, capacity: int) -> int:
    """L2: a lower bound of the number of bins for items of decreasing size, none above the capacity."""
    held = np.append(0, np.cumsum(sizes))  # held[i]: total of the i largest
    half = int((2 * sizes > capacity).sum())  # no two of these share a bin
    least = np.unique(sizes[half:])
    if len(least) == 0:
        return half
    # Items that are too large to share a bin with `least`.
    full = np.minimum(np.searchsorted(-sizes, least - capacity, side="left"), half)
    upto = np.searchsorted(-sizes, -least, side="right")
    spare = (half - full) * capacity - (held[half] - held[full])
    rest = held[upto] - held[half] - spare
    return half + max(0, int((-(-rest // capacity)).max()))
