"""Leave out tasks that hang on a pipeline and take no time, and place them afterwards.

Constants and results without work make many sets of last stages, because nothing fixes their place. A pipeline without
them has a period that is at most that of the whole, since each placement of the whole is one of the rest with no larger
loads and no more memory. So its least period is a lower bound, and if the tasks can be added to its placement without
increasing the period, that is optimal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.stages import backward, forward_in_training, rules
from placeopt.passes.rebuilding import edges_of, rebuilt
from placeopt.simulation.pipelines import stage_numbers

from .ideals import Division


def without_hanging(problem: Problem) -> tuple[Problem, Int] | None:
    """Return the problem without hanging tasks that take no time, and the indices of the others; None if none hang.

    Tasks of training, of groups and of separations stay. Where outputs may be computed again, those without producers
    stay too: their consumers would lose the input that a device keeps instead of an output.
    """
    n, source, target = problem.n_tasks, problem.edge_source, problem.edge_target
    free = (problem.duration == 0).all(axis=1) & (np.bincount(problem.group)[problem.group] == 1)
    free &= ~backward(problem) & ~forward_in_training(problem)
    free[problem.separation.reshape(-1)] = False
    stays = np.ones(n, dtype=np.bool_)
    while True:
        there = stays[source] & stays[target]
        hanging = np.bincount(source[there], minlength=n) == 0
        if not rules(problem).recompute:
            hanging |= np.bincount(target[there], minlength=n) == 0
        hanging &= free & stays
        if not hanging.any():
            break
        stays &= ~hanging
    kept = np.flatnonzero(stays)
    if len(kept) in (0, n):
        return None
    return rebuilt(problem, edges=edges_of(problem).kept(there), tasks=kept)[0], kept


def with_hanging(problem: Problem, kept: Int, division: Division | None) -> Division | None:
    """Return a division of the whole: each further task joins the first stage after it, or the last one before it."""
    if division is None:
        return None
    device = np.full(problem.n_tasks, -1, dtype=np.int64)
    number = device.copy()
    device[kept], number[kept] = division.device, division.stages.number
    source, target = problem.edge_source, problem.edge_target
    for forwards in (True, False):
        for i in (problem.order if forwards else problem.order[::-1]).tolist():
            if device[i] >= 0:
                continue
            near = source[target == i] if forwards else target[source == i]
            near = near[device[near] >= 0]
            if len(near):
                at = near[number[near].argmax() if forwards else number[near].argmin()]
                device[i], number[i] = device[at], number[at]
    if (device < 0).any() or not problem.feasible[np.arange(problem.n_tasks), device].all():
        return None
    found = stage_numbers(problem, device)
    return None if found is None else replace(division, device=device, stages=replace(division.stages, number=found))
