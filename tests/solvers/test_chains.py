"""chains: optima of random chains, bounds of beams, heterogeneous devices and links, and what it refuses."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from pipelines import PERIOD

import placeopt as po
from placeopt.protocol import Termination


def random_chain(
    seed: int, *, unlike: bool = False, layers: tuple[int, int] = (1, 6), devices: tuple[int, int] = (1, 4)
) -> po.Problem:
    """A chain with any rules of one stage per device; `unlike` links differ between three classes of devices."""
    draw = random.Random(seed)
    n, m = draw.randint(*layers), draw.randint(*devices)
    back = draw.randint(0, n) if draw.random() < 0.4 else 0
    tasks = n + back
    edges = [(i, i + 1) for i in range(n - 1)] + [(n + i + 1, n + i) for i in range(back - 1)]
    if draw.random() < 0.8:
        edges += [(i, n + i) for i in range(back)]
    forward = [*range(n), *range(back)]
    kinds = [draw.randrange(draw.randint(1, 3)) for _ in range(m)]
    rules: dict[str, Any] = {
        "overlap": [draw.random() < 0.4] * m,
        "full_duplex": draw.random() < 0.4,
        "free_transfers": [draw.random() < 0.15 for _ in range(m)] if draw.random() < 0.3 else False,
        "segments": 1,
        "launch": draw.choice([0, 0, 3]),
        "gradient": [draw.choice([0, 3, 8]) for _ in range(tasks)],
        "multicast": draw.random() < 0.6,
        "replicas": draw.choice([1, 1, 2, 3]),
        "in_flight": draw.choice(["none", "inference", "gpipe", "1f1b", "1f1b"]),
        "microbatches": draw.randint(1, 4),
        "recompute": draw.random() < 0.3,
    }
    base = [[draw.randint(0, 9) for _ in range(3)] for _ in range(tasks)]
    unequal = draw.random() < 0.7
    output = [draw.randint(0, draw.choice([0, 2, 6, 30])) for _ in range(tasks)]
    latency = [[draw.randint(0, 3) for _ in range(3)] for _ in range(3)]
    return po.build_problem(
        task_names=[f"t{i}" for i in range(tasks)],
        device_names=[f"d{d}" for d in range(m)],
        duration=[[row[kind * unequal] for kind in kinds] for row in base],
        feasible=[[kind != 2 or draw.random() < 0.9 for kind in kinds] for _ in range(tasks)] if unequal else None,
        edges=edges,
        payload=[output[a] for a, _ in edges],
        latency=[[latency[a][b] if unlike and c != d else 0 for d, b in enumerate(kinds)] for c, a in enumerate(kinds)],
        byte_ticks_num=[[1 + (unlike and a != b) for b in kinds] for a in kinds],
        resident=[draw.randint(0, 4) for _ in range(tasks)],
        output=output,
        capacity=[draw.choice([10**6, draw.randint(5, 60)])] * m,
        forward=forward,
        group=forward,
        objective=PERIOD,
        pipeline=rules,
    )


def chain(durations: Any, **rules: Any) -> po.Problem:
    """A chain of layers with durations (n, m) and outputs of one byte."""
    table = np.asarray(durations)
    n, m = table.shape
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=table,
        edges=[(i, i + 1) for i in range(n - 1)],
        payload=[1] * (n - 1),
        byte_ticks_num=[[0] * m] * m,
        objective=PERIOD,
        pipeline={"segments": 1, **rules},
    )


def answer(problem: po.Problem, solver: str = "chains", **settings: Any) -> tuple[str, Any]:
    result = po.solve(problem, solver, **settings)
    return result.termination.value, result.objective


@pytest.mark.parametrize("seed", range(60))
class TestOptima:
    def test_equal_brute_force(self, seed: int) -> None:
        assert answer(random_chain(seed)) == answer(random_chain(seed), "brute-force")

    def test_equal_brute_force_with_unlike_links(self, seed: int) -> None:
        problem = random_chain(seed, unlike=True)
        assert answer(problem) == answer(problem, "brute-force")


@pytest.mark.parametrize("seed", range(20))
def test_equals_ideals_on_longer_chains(seed: int) -> None:
    problem = random_chain(seed, layers=(5, 16), devices=(4, 8))
    assert answer(problem) == answer(problem, "ideals")


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("unlike", [False, True])
def test_bounds_of_beams_are_valid(seed: int, *, unlike: bool) -> None:
    problem = random_chain(seed, unlike=unlike)
    exact = po.solve(problem, "chains")
    beam = po.solve(problem, "chains", vectors=1, width=2)
    if exact.objective is None:
        assert beam.objective is None
    elif beam.objective is not None:
        assert beam.bound is None or beam.bound <= exact.objective <= beam.objective
        assert (beam.termination is not Termination.OPTIMAL) or beam.objective == exact.objective


class TestUnlikeDevices:
    def test_layers_alike_are_counted(self) -> None:
        draw = random.Random(1)
        ticks = [draw.randint(100, 1000) for _ in range(12)]
        found = po.solve(chain([ticks] * 100), "chains", vectors=1, width=64)
        least = min(p for t in ticks for p in range(t, 101 * t, t) if sum(p // each for each in ticks) >= 100)
        assert found.objective == found.bound == least

    def test_a_beam_reaches_the_table(self) -> None:
        rng = np.random.default_rng(3)
        problem = chain(rng.integers(50, 150, 40)[:, None] // np.array([1, 2, 3, 5, 7, 9])[None, :])
        table = po.solve(problem, "chains")
        beam = po.solve(problem, "chains", vectors=1)
        assert table.termination is beam.termination is Termination.OPTIMAL
        assert table.objective == beam.objective


def test_teams_share_a_long_layer() -> None:
    found = po.solve(chain([[8, 8, 8], [4, 4, 4]], replicas=2), "chains")
    assert found.objective == 4
    assert found.schedule.stages.leader.tolist() == [0, 0, 2]


class TestRefusals:
    def test_a_skip_connection_is_not_a_chain(self) -> None:
        problem = po.build_problem(
            task_names="abc", device_names=["d"], duration=[[1]] * 3, edges=[(0, 1), (1, 2), (0, 2)],
            payload=[1, 1, 1], objective=PERIOD, pipeline={"segments": 1},
        )  # fmt: skip
        found = po.solve(problem, "chains")
        assert found.termination is Termination.FAILED
        assert "do not form a chain" in found.message

    def test_two_chains_are_not_a_chain(self) -> None:
        problem = po.build_problem(
            task_names="ab", device_names=["d"], duration=[[1]] * 2, objective=PERIOD, pipeline={"segments": 1}
        )
        assert po.solve(problem, "chains").termination is Termination.FAILED

    def test_several_stages_per_device_have_no_bound(self) -> None:
        found = po.solve(chain([[1, 2], [2, 1], [1, 2]], segments=2), "chains")
        assert found.termination is Termination.COMPLETED
        assert "several stages" in found.message
