"""A claim about the period of a pipeline with contiguous stages: a path cannot be divided among the devices.

No edge leads to a stage with a lower number, and a device has one stage of forward tasks at most. So each device runs
consecutive forward tasks of a path, with their groups. The checker tries all divisions of the path into such intervals,
the last one first, by the place that is reached and the number of devices of each class that are left.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import prod

from placeopt.errors import CertificateError
from placeopt.verifier.certificates.devices import charge
from placeopt.verifier.certificates.model import Model
from placeopt.verifier.certificates.said import Said

LARGEST = 10_000_000
"""Intervals that are tried at most."""


def divided(said: Said) -> int:
    """No division of a path of forward tasks into an interval for each device has loads below the value."""
    model, value = said.model, said.number("value")
    pipeline, tasks = model.problem.pipeline, said.path()
    assert pipeline is not None  # the metric is the period
    if pipeline.replicas > 1 or not pipeline.contiguous:
        return 0
    if any(model.problem.forward[model.tasks[i]] != model.tasks[i] for i in tasks):
        raise CertificateError(f"{said.where}.path contains a backward task")
    groups = list(dict.fromkeys(model.group[i] for i in tasks))
    if sum(model.group[i] != model.group[j] for i, j in pairwise(tasks)) != len(groups) - 1:
        raise CertificateError(f"{said.where}.path leaves a group and returns to it")
    if prod(number + 1 for number in model.devices.size) * (len(groups) * model.k) ** 2 > LARGEST:
        raise CertificateError(f"{said.where}: a path of {len(groups):,} groups has too many divisions")
    return value if value and not _divides(model, groups, value - 1) else 0


def _divides(model: Model, groups: list[int], most: int) -> bool:
    """Whether some division has no load above a limit."""
    problem, classes, links = model.problem, range(model.k), model.devices.links
    pipeline = problem.pipeline
    assert pipeline is not None
    free = pipeline.multicast or bool((pipeline.overlap | pipeline.full_duplex | pipeline.free_transfers).any())
    work = [[sum(model.duration[i][c] for i in model.members[g]) for c in classes] for g in groups]
    tasks = [[model.tasks[i] for i in model.members[g]] for g in groups]
    kept = [sum(int(problem.output[task]) for task in each if problem.forward[task] == task) for each in tasks]

    @cache
    def moved(at: int, other: int, own: int, neighbour: int) -> int:
        """Ticks of the transfers with a neighbour for a device whose interval ends at a place, the other one there."""
        out, into = links[own][neighbour], links[neighbour][own]
        if free or out is None or into is None:
            return 0
        g, h = groups[at], groups[other]
        sent, received = _outputs(model, g, h), _outputs(model, h, g)
        return sum(charge(out, each) for each in sent) + sum(charge(into, each) for each in received)

    @cache
    def reached(end: int, left: tuple[int, ...], c: int, after: int) -> bool:
        """Whether the groups before a place can be divided, the last ones on class c, which sends to class `after`.

        Outputs of forward tasks are kept for as many runs, unless they may be computed again.
        """
        runs = pipeline.runs_kept or sum(model.devices.size) - sum(left)
        load, held = 0 if end == len(groups) else moved(end - 1, end, c, after), 0
        for start in range(end - 1, -1, -1):
            g = groups[start]
            load, held = load + work[start][c], held + model.group_memory[g]
            held += 0 if pipeline.recompute else (runs - 1) * kept[start]
            if load > most or held > model.devices.capacity[c] or not model.fits[g][c]:
                return False
            if start == 0:
                return True
            for a in classes:
                fits = left[a] and load + moved(start, start - 1, c, a) <= most
                if fits and reached(start, less(left, a), a, c):
                    return True
        return False

    return any(reached(len(groups), less(tuple(model.devices.size), c), c, c) for c in classes)


def less(left: tuple[int, ...], c: int) -> tuple[int, ...]:
    """One device of a class less."""
    return tuple(number - (a == c) for a, number in enumerate(left))


def _outputs(model: Model, g: int, h: int) -> list[int]:
    """The bytes of transfers from a group to another one: shared edges of a task need one."""
    edges = [edge for i in model.members[g] for edge in model.outs[i] if model.group[edge.target] == h]
    return list({edge.source if edge.shared else ~at: edge.payload for at, edge in enumerate(edges)}.values())
