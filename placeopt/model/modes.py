"""What reports show of a problem with modes and teams: the devices of the document, their tasks, memory and modes."""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.resources import POOL

PRIME = "'"
"""What distinguishes the names of devices of the compiled problem for one device and mode."""


def own_devices(problem: Problem) -> list[int]:
    """The devices that are neither modes nor teams of others."""
    members = problem.members
    return [d for d in range(problem.n_devices) if members is None or members[d] == (d,)]


def homes(problem: Problem) -> Int:
    """(m,) the device that stands for each one in reports: itself, or the first member of a mode or a team."""
    members = problem.members
    return np.arange(problem.n_devices) if members is None else np.array([team[0] for team in members], dtype=np.int64)


def mode_of(problem: Problem, d: int) -> str | None:
    """The mode that a device of the compiled problem represents: "int4" of "gpu0: int4"; None for other devices."""
    members = problem.members
    if members is None or members[d] == (d,):
        return None
    return problem.device_names[d].removeprefix(f"{team_name(problem, d)}: ")


def team_name(problem: Problem, d: int) -> str:
    """The devices of the document that a device occupies: "gpu0", or "gpu0+gpu1" for a team."""
    members = problem.members
    return "+".join(problem.device_names[each] for each in ((d,) if members is None else members[d]))


def place_text(problem: Problem, d: int) -> str:
    """A device of the compiled problem for messages: "gpu0", or "gpu0+gpu1 in mode split"."""
    mode = mode_of(problem, d)
    return problem.device_names[d] if mode is None else f"{team_name(problem, d)} in mode {mode.rstrip(PRIME)}"


def task_label(problem: Problem, i: int, d: int) -> str:
    """The name of a task, and the mode in which it runs on a device: "conv (int4)"."""
    mode = mode_of(problem, d)
    return problem.task_names[i] if mode is None else f"{problem.task_names[i]} ({mode})"


def tasks_by_device(problem: Problem) -> dict[int, Bool]:
    """(n,) whether each task may run on a device, itself or in a mode or a team, by device of the document."""
    found = {d: problem.feasible[:, d].copy() for d in own_devices(problem)}
    for d, team in enumerate(problem.members or ()):
        for each in team:
            found[each] |= problem.feasible[:, d]
    return found


def memory_budget(problem: Problem, d: int) -> int | None:
    """The budget that is the memory of a device of modes and teams; None if it is unlimited, or not used by them."""
    resources, name = problem.resources, POOL + problem.device_names[d]
    known = resources is not None and problem.has_modes and name in resources.names
    return resources.names.index(name) if resources is not None and known else None


def memory_capacity(problem: Problem, d: int) -> int | None:
    """Bytes of a device, or of the smallest member of a mode or a team; None if unlimited."""
    if problem.members is not None and problem.members[d] != (d,):
        return min(
            (size for each in problem.members[d] if (size := memory_capacity(problem, each)) is not None), default=None
        )
    budget = memory_budget(problem, d)
    if budget is not None and problem.resources is not None:
        return int(problem.resources.capacity[budget])
    return None if problem.capacity[d] == UNLIMITED else int(problem.capacity[d])


def own_classes(problem: Problem) -> list[list[int]]:
    """The devices of each device class, in order of first appearance, without modes and teams.

    A device that has modes is a class of its own.
    """
    members, own = problem.members, own_devices(problem)
    occupied = {each for d, team in enumerate(members or ()) if team != (d,) for each in team}
    classes: dict[int, list[int]] = {}
    for d in own:
        classes.setdefault(-1 - d if d in occupied else int(problem.device_class[d]), []).append(d)
    return list(classes.values())


def modes_by_device(problem: Problem) -> dict[int, list[str]]:
    """The names of the modes in which tasks may run, by device of the document."""
    found: dict[int, dict[str, None]] = {d: {} for d in own_devices(problem)}
    able: Bool = np.asarray(problem.feasible.any(axis=0))
    for d, team in enumerate(problem.members or ()):
        if (mode := mode_of(problem, d)) is not None and able[d]:
            for each in team:
                found[each][mode] = None
    return {d: list(names) for d, names in found.items()}
