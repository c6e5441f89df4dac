"""The worked examples of Baechi's paper: figures 1, 3, 4 and 6.

B. Jeon et al., SoCC 2020, doi:10.1145/3419111.3421302. The graph of figure 1 is also in `dummy_graphs.py` of
https://github.com/chiragcshetty/BaechiPyTorch; the edges of figure 2 are inferred from the text of figures 4 and 6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.memory import used_memory
from placeopt.model.problem import Problem
from placeopt.passes import apply_passes


def example(names: str, duration: list[int], edges: list[tuple[int, int]], ticks: int, m: int, **rest: Any) -> Problem:
    return build_problem(
        task_names=names.split(),
        device_names=[f"device-{d + 1}" for d in range(m)],
        duration=np.repeat(np.array(duration)[:, None], m, axis=1),
        edges=edges,
        payload=np.full(len(edges), ticks),
        byte_ticks_num=1 - np.eye(m, dtype=np.int64),
        **rest,
    )


def figure_1(room: int) -> Problem:
    edges = [(0, 1), (0, 4), (1, 2), (2, 3), (4, 5), (5, 3)]
    memory = {"resident": np.array([1, 2, 2, 1, 1, 1]), "capacity": np.full(2, room)}
    return example("t0 t1 t2 t3 t4 t5", [1, 3, 3, 1, 3, 1], edges, 1, 2, **memory)


def test_figure_1_sct_takes_8_with_more_memory_than_there_is() -> None:
    found = po.solve(figure_1(8), "sct-lp")
    assert found.makespan == 8
    assert found.schedule is not None
    assert used_memory(figure_1(8), found.schedule).max() > 4
    assert po.solve(figure_1(8), "m-sct").makespan == 8


@pytest.mark.parametrize(("settings", "makespan"), [({}, 9), ({"urgent_first": False}, 11)])
def test_figure_1_m_sct_takes_9_within_4_units(settings: dict[str, bool], makespan: int) -> None:
    """t2 does not fit on d0 with t0 and t1. Before t5, the favourite child of t4, d1 takes t2, whose data is there."""
    found = po.solve(figure_1(4), "m-sct", **settings)
    assert found.feasible
    assert found.makespan == makespan


def test_figure_3_co_placement_avoids_all_transfers() -> None:
    """The paper gives no times: here transfers are longer than tasks, as it says."""
    edges = [(0, 2), (1, 2), (2, 4), (3, 4)]
    case = example("op_in perm Transpose Shape Reshape", [4, 1, 4, 1, 4], edges, 10, 3)
    apart, together = po.solve(case, "m-etf", passes=[]), po.solve(case, "m-etf", passes=["coplace"])
    assert apart.schedule is not None
    assert together.schedule is not None
    assert apart.schedule.device[[0, 1, 3]].tolist() == [0, 1, 2]
    assert len(set(together.schedule.device.tolist())) == 1
    assert (apart.makespan, together.makespan) == (19, 14)


def test_figure_4_fusion_creates_no_cycle() -> None:
    """Weight and ApplyGrad must not become one task: Grad is between them."""
    names, edges = "Weight Grad ApplyGrad Step UpdateStep", [(0, 1), (0, 2), (1, 2), (3, 4), (2, 4)]
    fused = apply_passes(example(names, [1] * 5, edges, 1, 2, group=np.array([0, 1, 0, 2, 2])), ["fuse"]).problem
    assert fused.task_names == ("Weight", "Grad", "ApplyGrad", "Step +1")
    assert fused.n_groups == 3


@pytest.mark.parametrize(("passes", "device", "makespan"), [([], [0, 1, 1], 4), (["fuse"], [0, 0, 0], 3)])
def test_figure_6_fusion_avoids_a_transfer(passes: list[str], device: list[int], makespan: int) -> None:
    """Grad and Step start at once on two devices, and UpdateStep must be with Step, unless both are one task."""
    case = example("Grad Step UpdateStep", [1] * 3, [(0, 2), (1, 2)], 2, 2, group=np.array([0, 1, 1]))
    found = po.solve(case, "m-etf", passes=passes)
    assert found.schedule is not None
    assert found.schedule.device.tolist() == device
    assert found.makespan == makespan
