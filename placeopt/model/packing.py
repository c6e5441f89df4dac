"""Problems as bytes, to send them to other processes and machines."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import fields

import numpy as np

from placeopt.model.problem import Problem


def pack(problem: Problem) -> bytes:
    """Convert a problem to bytes."""
    return zlib.compress(pickle.dumps(problem, protocol=pickle.HIGHEST_PROTOCOL), level=1)


def unpack(packed: bytes) -> Problem:
    """Return the packed problem; its arrays are read-only."""
    problem = pickle.loads(zlib.decompress(packed))
    assert isinstance(problem, Problem)
    for each in fields(problem):
        value = getattr(problem, each.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return problem
