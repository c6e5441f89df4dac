"""Problems, placements and observations for the tests of learned search."""

from __future__ import annotations

import numpy as np

import placeopt as po
from placeopt.generate.random_graphs import random_document
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.policies import random_placement


def random_problem(seed: int, tasks: int = 14, devices: int = 6, **rest: float) -> Problem:
    """A random problem with placement constraints, so that tasks have different numbers of devices."""
    options = {"alpha": 0.4, "connection": 0.3, "hardware": 3, "requirement": 0.7, "support": 0.5, "delay": 5.0} | rest
    return po.compile(random_document(tasks, devices, seed=seed, **options))


def placement(problem: Problem, seed: int = 0) -> np.ndarray:
    """A random placement (n,) that can be written."""
    return random_placement(problem, np.random.default_rng(seed)).copy()


def built(duration: object, edges: object = (), **rest: object) -> Problem:
    """A problem with tasks and devices named by number."""
    n, m = np.shape(duration)
    names = {"task_names": [f"t{i}" for i in range(n)], "device_names": [f"d{d}" for d in range(m)]}
    return build_problem(duration=duration, edges=edges, **names, **rest)  # type: ignore[arg-type]
