"""Regression tests of the placement models and their solvers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.submodular import greedy
from placeopt.submodular.placement import PlacementModel

BITS = 60
"""Bits per word of the bit sets of dependencies."""

FIVE_NODE = Path(__file__).parents[2] / "problems" / "five-node.yaml"


def graph(n: int, edges: Int, m: int = 2) -> Problem:
    names = [f"t{i}" for i in range(n)], [f"d{i}" for i in range(m)]
    return build_problem(
        task_names=names[0], device_names=names[1], duration=np.ones((n, m), dtype=np.int64), edges=edges
    )


def parallel_to(problem: Problem, device: Int, j: int) -> Int:
    """(m,) placed tasks on each device with the dependencies of j, in the topology of the placed tasks and j."""
    depends: dict[int, set[int]] = {}
    for u in problem.order.tolist():
        producers = problem.edge_source[problem.in_edge[problem.in_start[u] : problem.in_start[u + 1]]].tolist()
        depends[u] = set().union(*({q} if device[q] >= 0 or q == j else depends[q] for q in producers))
    alike = [d for x, d in enumerate(device.tolist()) if d >= 0 and depends[x] == depends[j]]
    return np.bincount(np.array(alike, dtype=np.int64), minlength=problem.n_devices)


@pytest.mark.parametrize("density", [0.1, 0.4, 1.0])
def test_bit_sets_of_several_words(density: float) -> None:
    rng = np.random.default_rng(int(100 * density))
    layer = np.arange(3 * (BITS + 10)) // (BITS + 10)
    linked = (layer[:, None] + 1 == layer) & (rng.random((len(layer), len(layer))) < density)
    problem = graph(len(layer), np.argwhere(linked))
    state = PlacementModel(problem, "inside").start()
    order = rng.permutation(problem.n_tasks)
    for k, v in enumerate(order.tolist()):
        if k % 40 == 0:
            for j in rng.choice(order[k:], 8).tolist():
                assert state.parallel[:, j].tolist() == parallel_to(problem, state.device, j).tolist()
        state.place(v, int(rng.integers(2)))


def test_placing_sources_checks_no_dependents() -> None:
    """Placing a source once took O(producers of its consumers): minutes for 2,000 sources with 2,000 consumers."""
    state = PlacementModel(
        graph(80, np.argwhere((np.arange(80)[:, None] < 40) & (np.arange(80) >= 40))), "inside"
    ).start()
    for v in range(40):
        state.place(v, v % 2)
    assert state.compared == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # These once gave infinite benefits: a wrong message about full devices, or a traceback.
        ({"cap": "1e-310 s"}, r"setting cap: 1e-310 s is out of range; expected one tick \(1 s\) to"),
        ({"cap": "1e300 s"}, "setting cap: 1e300 s is out of range"),
        ({"tiers": "1 at 1e-300 B/s"}, '"1e-300 B/s" is too slow for swapping'),
        ({"maximiser": "local-search"}, "maximiser = local-search needs a function whose value does not depend"),
        (
            {"maximiser": "continuous", "parallelism": False, "load": False, "memory": "unlimited", "cap": "2 s"},
            "a cap of at least half the longest duration",
        ),
    ],
)
def test_settings_out_of_range(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        po.solve(po.load(FIVE_NODE), "submodular-g", **settings)


def test_devices_of_one_class_with_different_feasible_groups() -> None:
    # The second device was once skipped as equivalent to the first, although only it may run the shorter task.
    problem = build_problem(task_names=["a", "b"], device_names=["x", "y"], duration=np.array([[5, 5], [3, 3]]))
    model = PlacementModel(problem, "inside", feasible=np.array([[True, True], [False, True]]))
    for lazy in (True, False):
        placed = model.place_all(lazy=lazy)
        assert (2 * placed.task + placed.device).tolist() == [3, 0]
    assert greedy(model, model.independence(), fill=True).elements.tolist() == [3, 0]
