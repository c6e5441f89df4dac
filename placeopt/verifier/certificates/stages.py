"""A claim about the period of a pipeline with contiguous stages: a path cannot be divided among the devices.

No edge leads to a stage with a lower number, and a device has one stage of forward tasks at most. So each device runs
consecutive forward tasks of a path, with their groups. The checker tries all divisions of the path into such intervals,
the last one first, by the place that is reached and the number of devices of each class that are used.
"""

from __future__ import annotations

from itertools import pairwise

from placeopt.errors import CertificateError
from placeopt.verifier.certificates.model import Edge, Model, charge
from placeopt.verifier.certificates.scene import Said

Moves = list[list[list[int]]]
"""Ticks of the transfers between two groups: for the first or the second one, by its class and that of the other."""

LARGEST = 10_000_000
"""Intervals that are tried at most."""


def divided(said: Said) -> int:
    """No division of a path of forward tasks into an interval for each device has loads below the value."""
    model, value = said.model, said.number("value")
    pipeline, tasks = model.problem.pipeline, said.path("path")
    assert pipeline is not None  # the metric is the period
    if pipeline.replicas > 1 or not pipeline.contiguous or not tasks:
        return 0
    if any(model.problem.forward[model.tasks[i]] != model.tasks[i] for i in tasks):
        raise CertificateError(f"{said.where}.path contains a backward task")
    groups = list(dict.fromkeys(model.group[i] for i in tasks))
    if sum(model.group[i] != model.group[j] for i, j in pairwise(tasks)) != len(groups) - 1:
        raise CertificateError(f"{said.where}.path leaves a group and returns to it")
    states, size = 1, len(groups)
    for number in model.devices.size:
        states *= number + 1
    if states * (size * model.k) ** 2 > LARGEST:
        raise CertificateError(f"{said.where}: a path of {size:,} groups has too many divisions")
    return value if value and not _divides(model, groups, value - 1) else 0


def _divides(model: Model, groups: list[int], most: int) -> bool:
    """Whether some division has no load above a limit."""
    size, pipeline, number = len(groups), model.problem.pipeline, model.devices.size
    assert pipeline is not None
    moves: list[Moves | None] = [None] * (size + 1)
    exempt = pipeline.overlap | pipeline.full_duplex | pipeline.free_transfers
    if not pipeline.multicast and not exempt.any():
        moves[1:size] = [_boundary(model, g, h) for g, h in pairwise(groups)]
    # By the number of devices of each class that have an interval, the class of the next one, and that of the last one.
    reached: dict[tuple[tuple[int, ...], int, int], set[int]] = {}
    for c in range(model.k):
        reached[tuple(int(a == c) for a in range(model.k)), c, -1] = {size}
    while reached:
        following: dict[tuple[tuple[int, ...], int, int], set[int]] = {}
        for (used, c, after), places in reached.items():
            kept = pipeline.runs_kept or sum(used)
            found = {each for at in places for each in _intervals(model, groups, at, c, most, moves[at], after, kept)}
            if any(start == 0 for start, _ in found):
                return True
            for a in range(model.k):
                starts = {start for start, load in found if load + _moved(moves[start], 1, c, a) <= most}
                if starts and used[a] < number[a]:
                    now = (*used[:a], used[a] + 1, *used[a + 1 :])
                    following.setdefault((now, a, c), set()).update(starts)
        reached = following
    return False


def _intervals(
    model: Model, groups: list[int], place: int, c: int, most: int, moves: Moves | None, after: int, kept: int
) -> list[tuple[int, int]]:
    """The starts of intervals before a place that a device of a class runs within a limit, with their loads.

    It sends to a device of class `after`, and keeps the outputs of forward tasks for as many runs, unless it may
    compute them again.
    """
    problem, room, found = model.problem, model.devices.capacity[c], list[tuple[int, int]]()
    assert problem.pipeline is not None
    more = 0 if problem.pipeline.recompute else kept - 1
    load, held = _moved(moves, 0, c, after), 0
    for start in range(place - 1, -1, -1):
        g = groups[start]
        load, held = load + sum(model.duration[i][c] for i in model.members[g]), held + model.group_memory[g]
        tasks = [model.tasks[i] for i in model.members[g]]
        held += more * sum(int(problem.output[task]) for task in tasks if problem.forward[task] == task)
        if load > most or not model.fits[g][c] or (room is not None and held > room):
            break
        found.append((start, load))
    return found


def _moved(moves: Moves | None, side: int, own: int, other: int) -> int:
    return 0 if moves is None or other < 0 else moves[side][own][other]


def _boundary(model: Model, g: int, h: int) -> Moves:
    """The ticks of transfers between two groups on different devices: for the first one and the second one, by class.

    Two devices of a class with one device have none: no schedule has them.
    """
    links, ahead, back = model.devices.links, _outputs(model, g, h), _outputs(model, h, g)

    def ticks(sent: list[int], received: list[int], own: int, other: int) -> int:
        out, into = links[own][other], links[other][own]
        if out is None or into is None:
            return 0
        return sum(charge(out, each) for each in sent) + sum(charge(into, each) for each in received)

    classes = range(model.k)
    return [
        [[ticks(sent, received, own, other) for other in classes] for own in classes]
        for sent, received in ((ahead, back), (back, ahead))
    ]


def _outputs(model: Model, g: int, h: int) -> list[int]:
    """The bytes of transfers from a group to another one: shared edges of a task need one."""
    found, shared = list[int](), dict[int, Edge]()
    for i in model.members[g]:
        for edge in model.outs[i]:
            if model.group[edge.target] == h and edge.shared:
                shared.setdefault(i, edge)
            elif model.group[edge.target] == h:
                found.append(edge.payload)
    return [*found, *(edge.payload for edge in shared.values())]
