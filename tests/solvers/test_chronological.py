"""Makespans decided by appending tasks to identical devices: the oracle's optimum, valid bounds, and the portfolio."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.exact import _chronological
from placeopt_solvers.exact._chronological import chronological

import placeopt as po
from placeopt import engine
from placeopt.generate.forks import KINDS, fork_document
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.schedule import Schedule, makespan

NODES = 1 << 40


def identical(rng: np.random.Generator, n: int, edges: list[tuple[int, int]], m: int, **rest: Any) -> Problem:
    """Tasks on identical devices; short durations, so that many tasks are alike."""
    duration = rng.integers(int(rng.integers(0, 2)), int(rng.choice([2, 4, 9])), (n, 1))
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.broadcast_to(duration, (n, m)),
        edges=edges,
        payload=rng.integers(0, int(rng.choice([2, 6, 15])), len(edges)),
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
        **rest,
    )


def decided(problem: Problem, high: int, nodes: int = NODES) -> tuple[int, Schedule | None]:
    """The bound and the best schedule of fewer than `high` ticks of a search to its end."""
    bounds: list[int] = [0]
    found: list[Schedule] = []
    search = chronological(problem, 0, high)
    assert search is not None
    search.run(nodes, found.append, bounds.append, lambda: False)
    assert bounds == sorted(bounds)
    return bounds[-1], found[-1] if found else None


def _next(left: list[bool]) -> bool:
    """Take the last entry; True if none is left."""
    return not left or left.pop()


class TestOptimum:
    @pytest.mark.parametrize("kind", ["random", *KINDS])
    def test_equals_the_oracles(self, kind: str) -> None:
        rng = np.random.default_rng(7)
        for case in range(25):
            n, m = int(rng.integers(3, 6)), int(rng.integers(2, 4))
            if kind == "random":
                edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.4]
            else:
                edges = KINDS[kind](n, rng)
            problem = identical(rng, n, edges, m)
            best = optimum(problem)
            assert best is not None
            least = int(best[0][0])
            bound, schedule = decided(problem, least + int(rng.integers(1, 9)))
            assert schedule is not None
            assert valid(problem, schedule), f"case {case}"
            assert bound == makespan(problem, schedule) == least, f"case {case}"
            assert decided(problem, least) == (least, None), f"case {case}"

    def test_of_parallel_edges_the_longest_counts(self) -> None:
        # Two successors of one task would have to share its device; two edges to one successor need no more than one.
        for payload in ([4, 7, 0], [7, 4, 0]):
            problem = build_problem(
                task_names=["a", "b", "c"],
                device_names=["x", "y"],
                duration=np.full((3, 2), 4),
                edges=[(0, 2), (0, 2), (1, 2)],
                payload=payload,
                byte_ticks_num=np.ones((2, 2), dtype=np.int64),
            )
            assert decided(problem, 9)[0] == 8

    @pytest.mark.parametrize("kind", ["in-tree", "out-tree"])
    def test_trees_of_30_tasks_are_proved(self, kind: str) -> None:
        for devices in (2, 3, 4):
            problem = po.compile(fork_document(30, devices, kind=kind, seed=1))
            heft = po.solve(problem, "heft").objective
            assert isinstance(heft, int)
            bound, schedule = decided(problem, heft + 1)
            assert schedule is not None
            assert makespan(problem, schedule) == bound

    def test_few_nodes_and_few_states_give_bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = po.compile(fork_document(30, 3, kind="in-tree", seed=0))
        least, _ = decided(problem, 100)
        monkeypatch.setattr(_chronological, "STATES", 10)
        bounds = [decided(problem, 100, nodes)[0] for nodes in (0, 1, 100, 10_000)]
        assert bounds[0] == 0 < bounds[-1]
        assert max(bounds) <= least


class TestOtherConstraints:
    def test_bounds_hold_and_wrong_schedules_are_not_offered(self) -> None:
        rng = np.random.default_rng(3)
        ended = 0
        for case in range(40):
            n = int(rng.integers(3, 6))
            problem = identical(
                rng,
                n,
                [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.4],
                2,
                resident=rng.integers(0, 3, n),
                capacity=np.full(2, n),
                release=np.where(rng.random(n) < 0.2, 3, 0),
                contention=str(rng.choice(["none", "port"])),
            )
            best = optimum(problem)
            if best is None:
                continue
            bound, schedule = decided(problem, int(best[0][0]) + 3)
            assert bound <= best[0][0], f"case {case}"
            assert schedule is None or evaluate(problem, schedule)[0] >= best[0][0], f"case {case}"
            ended += schedule is None
        assert ended

    def test_it_is_for_identical_devices_and_the_makespan(self) -> None:
        def search(**rest: Any) -> object:
            given: dict[str, Any] = {
                "duration": np.ones((3, 2), dtype=np.int64),
                "edges": [(0, 1)],
                "payload": [5],
            } | rest
            names: dict[str, Any] = {"task_names": ["a", "b", "c"], "device_names": ["x", "y"]}
            return chronological(build_problem(**names, byte_ticks_num=np.ones((2, 2), dtype=np.int64), **given), 0, 9)

        assert search() is not None
        assert search(duration=np.array([[1, 2]] * 3)) is None
        assert search(feasible=np.array([[True, False]] * 3)) is None
        assert search(capacity=np.array([5, UNLIMITED])) is None
        assert search(objective=Objective(((Term("makespan"), Term("communication")),))) is None
        assert search(duration=np.full((3, 2), 1 << 50)) is None

    def test_a_stop_ends_it(self) -> None:
        problem = po.compile(fork_document(30, 4, kind="out-tree"))
        schedules: list[Schedule] = []
        bounds: list[int] = []
        for polls in (1, 3):
            search, left = chronological(problem, 0, 1 << 30), [False] * (polls - 1)
            assert search is not None
            search.run(NODES, schedules.append, bounds.append, partial(_next, left))
            assert not search.ended


def test_auto_proves_a_tree_by_it() -> None:
    problem = po.compile(fork_document(30, 4, kind="in-tree", seed=1))
    result = po.solve(problem, "auto", time_limit=30, workers=1)
    assert (result.termination, result.bound_source) == (po.Termination.OPTIMAL, "chronological")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"devices": 0}, "devices: 0; expected 1 to 64"),
        ({"duration": np.array([1, -1])}, "duration: entry 1 is -1"),
        ({"duration": np.ones(65, np.int64), "start": np.zeros(66, np.int64)}, "65 tasks; expected at most 64"),
        ({"start": np.array([0, 2, 1])}, "start: entry 2 is 1"),
        ({"target": np.array([2])}, "target: entry 0 is 2"),
        ({"target": np.array([0])}, "the edges form a cycle"),
        ({"transfer": np.array([-1])}, "transfer: entry 0 is -1"),
        ({"states": -1}, "states: -1"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(wrong: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {
        "devices": 2,
        "duration": np.array([1, 1]),
        "start": np.array([0, 1, 1]),
        "target": np.array([1]),
        "transfer": np.array([1]),
        "states": 10,
    }
    search = engine.Chronological(**right)
    assert search.search(2, 100, engine.Stop(lambda: False, None)) is True
    with pytest.raises(po.UsageError, match=message):
        engine.Chronological(**right | wrong)
    with pytest.raises(po.UsageError, match="makespan: 3; expected 0 to 2"):
        search.search(3, 100, engine.Stop(lambda: False, None))
