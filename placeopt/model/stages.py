"""The stages of a pipeline: directions of tasks, and the runs for which a stage keeps its outputs."""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.pipeline import Pipeline
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages


def rules(problem: Problem) -> Pipeline:
    """The pipeline of a problem that has one."""
    assert problem.pipeline is not None
    return problem.pipeline


def backward(problem: Problem) -> Bool:
    """(n,), whether each task is a backward task."""
    return np.asarray(problem.forward != np.arange(problem.n_tasks))


def forward_in_training(problem: Problem) -> Bool:
    """(n,), whether each task is the forward task of a backward task."""
    found = np.zeros(problem.n_tasks, dtype=np.bool_)
    found[problem.forward[backward(problem)]] = True
    return found


def trivial_stages(problem: Problem, device: Int) -> Stages:
    """Stages without replicas: one for each device and direction, which may not be a valid numbering."""
    m = problem.n_devices
    number = device + m * backward(problem)
    return Stages(number, np.arange(m), np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64))


def kept_runs(problem: Problem, device: Int, stages: Stages | None = None) -> Int:
    """(m,) number of runs for which each device keeps the outputs of its forward tasks.

    none
        1: those of one run.
    inference
        2: while one run's outputs are sent, the next run computes.
    gpipe
        All microbatches (Huang et al. 2019).
    1f1b
        Stage s of S, counted from 1, keeps S - s + 1 runs. With teams, those that the stages from s on have under
        way, divided by the devices of s (PipeDream, SOSP 2019, section 3.2: the optimal number of minibatches).
    """
    pipeline = rules(problem)
    kept = np.full(problem.n_devices, pipeline.runs_kept or 1)
    if pipeline.runs_kept:
        return kept
    stages = trivial_stages(problem, device) if stages is None else stages
    ahead = np.flatnonzero(~backward(problem))
    ahead = ahead[np.argsort(stages.number[ahead], kind="stable")]
    _, first = np.unique(device[ahead], return_index=True)
    line = device[ahead[np.sort(first)]]  # devices in the order of their forward stages
    team = np.bincount(stages.leader, minlength=problem.n_devices)[line]
    kept[line] = -(-np.cumsum(team[::-1])[::-1] // team)
    return kept
