"""The ends of each device class, and whether transfers between classes take time."""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem


def class_ends(problem: Problem) -> tuple[Int, Int]:
    """Return the first and the last device (k,) of each class, which differ unless the class has one device."""
    label = problem.device_class
    last = problem.n_devices - 1 - np.unique(label[::-1], return_index=True)[1]
    return np.unique(label, return_index=True)[1], last


def moves_freely(problem: Problem) -> bool:
    """Return whether no transfer takes time, as in shops."""
    first, last = class_ends(problem)
    most = int(problem.payload.max(initial=0))
    return problem.n_edges == 0 or not problem.transfer(most, first[:, None], last[None, :]).any()
