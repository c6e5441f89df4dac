"""Problems with equal devices, for the heuristics of Baechi."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem


def equal_devices(
    durations: list[int] | Int, m: int, edges: list[tuple[int, int]], payload: Any, **rest: Any
) -> Problem:
    """Tasks of these durations on m equal devices; a tick moves a byte."""
    ticks = np.asarray(durations)
    return build_problem(
        task_names=[f"t{i}" for i in range(len(ticks))],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.repeat(ticks[:, None], m, axis=1),
        edges=edges,
        payload=payload,
        **{"byte_ticks_num": 1 - np.eye(m, dtype=np.int64), **rest},
    )
