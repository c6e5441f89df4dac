"""The clusters of passes: tasks that a restored schedule always keeps on one device."""

from __future__ import annotations

import numpy as np
import pytest
from reducible_problems import reducible_problem

from placeopt.model.building import build_problem, with_changes
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import PASSES, Chain, apply_passes
from placeopt.passes.rebuilding import followed


def chain_graph(n: int, **rest: object) -> Problem:
    """n tasks in a chain on three devices."""
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=["d0", "d1", "d2"],
        duration=np.ones((n, 3)),
        edges=[(i, i + 1) for i in range(n - 1)],
        payload=np.arange(n - 1, 0, -1),
        byte_ticks_num=np.ones((3, 3)),
        **rest,  # type: ignore[arg-type]
    )


def random_schedule(problem: Problem, rng: np.random.Generator) -> Schedule:
    """Each group on a device that may run it, tasks one after another."""
    allowed = problem.group_feasible()
    home = np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in allowed], dtype=np.int64)
    start = np.empty(problem.n_tasks, dtype=np.int64)
    start[problem.order] = np.arange(problem.n_tasks) * 1000
    return Schedule(home[problem.group], start)


FEW = "giph-groups:tasks=2"
NAMES = [[FEW if name == "giph-groups" else name] for name in PASSES]


@pytest.mark.parametrize("names", [*NAMES, list(PASSES), ["coplace", "fuse", FEW]], ids=lambda names: "+".join(names))
def test_no_restored_schedule_splits_a_cluster(names: list[str]) -> None:
    changed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        drawn = reducible_problem(rng)
        backward = np.where(rng.random(drawn.n_tasks) < 0.3, 0, np.arange(drawn.n_tasks))
        problem = with_changes(drawn, forward=backward)
        chain = apply_passes(problem, names)
        clusters = chain.clusters()
        assert clusters is not None
        numbers, first = np.unique(clusters, return_index=True)
        assert numbers.tolist() == list(range(len(numbers)))
        assert (np.diff(first) > 0).all()
        assert (clusters[np.unique(problem.group, return_index=True)[1]][problem.group] == clusters).all()
        changed += bool(chain.steps)
        if chain.problem.group_feasible().any(axis=1).all():
            for _ in range(2):
                device = chain.restore(random_schedule(chain.problem, rng)).device
                assert (device[first][clusters] == device).all()
    assert changed


def test_clusters_are_no_coarser_than_the_reduced_groups() -> None:
    for names in (["coplace"], ["coplace", "fuse"], ["celeritas-fusion:range=2,colocation=unite"]):
        chain = apply_passes(chain_graph(7), names)
        assert len(np.unique(chain.clusters())) == chain.problem.n_groups


def test_labels_join_clusters() -> None:
    chain = apply_passes(chain_graph(6), ["celeritas-fusion:range=2"])
    found = chain.clusters()
    assert found is not None
    assert found.tolist() == [0, 0, 1, 1, 2, 2]
    joined = chain.clusters(np.array([0, 1, 0]))
    assert joined is not None
    assert joined.tolist() == [0, 0, 1, 1, 0, 0]


def test_without_passes_the_groups_are_the_clusters() -> None:
    found = Chain(chain_graph(4, group=[7, 3, 7, 1])).clusters()
    assert found is not None
    assert found.tolist() == [0, 1, 0, 2]


def test_a_group_follows_its_first_task() -> None:
    chain = apply_passes(chain_graph(6, group=[0, 1, 2, 3, 4, 0]), ["celeritas-fusion:range=2"])
    found = chain.clusters()
    assert found is not None
    assert found.tolist() == [0, 0, 1, 1, 2, 0]


def test_leaders_of_two_reductions() -> None:
    one, other = np.array([0, 0, 1, -1]), np.array([-1, 0])
    for first, second, both in ((one, other, [-1, -1, 0, -1]), (None, other, [-1, 0]), (one, None, [0, 0, 1, -1])):
        found = followed(first, second)
        assert found is not None
        assert found.tolist() == both
    assert followed(None, None) is None
