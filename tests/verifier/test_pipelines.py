"""Periods, memory and the rules of pipelines, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

import placeopt as po

PERIOD = po.Objective(((po.Term("period"),),))


def loop(**rules: Any) -> po.Problem:
    """Tasks a (4 ticks), b (6), c (2) of a path that leaves x and returns to it: 3 bytes to b, 5 bytes to c.

    A byte takes a tick. Device z equals y.
    """
    return (
        po.build_problem(
            task_names=["a", "b", "c"],
            device_names=["x", "y", "z"],
            duration=[[4, 6, 6], [6, 6, 6], [2, 2, 2]],
            edges=[(0, 1), (1, 2)],
            payload=[3, 5],
            byte_ticks_num=np.ones((3, 3), dtype=int),
            resident=[10, 20, 30],
            output=[3, 5, 0],
            gradient=None,
            objective=PERIOD,
            pipeline=rules,
        )
        if False
        else _loop(rules)
    )


def _loop(rules: dict[str, Any]) -> po.Problem:
    return po.build_problem(
        task_names=["a", "b", "c"],
        device_names=["x", "y", "z"],
        duration=[[4, 6, 6], [6, 6, 6], [2, 2, 2]],
        edges=[(0, 1), (1, 2)],
        payload=[3, 5],
        byte_ticks_num=np.ones((3, 3), dtype=int),
        resident=[10, 20, 30],
        output=[3, 5, 0],
        objective=PERIOD,
        pipeline=rules,
    )
