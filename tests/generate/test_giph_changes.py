"""Changing networks: golden numbers of the released code, and the sequence of the paper."""

from __future__ import annotations

import hashlib
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.generate.giph.released import DeviceNetwork, problem_document, released_network

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from giph_changes import adaptivity_graphs, paper_changes, released_changes


def digest(networks: list[DeviceNetwork]) -> str:
    """The first digits of a hash of the hardware types of all devices of all networks."""
    types = [[sorted(kinds) for kinds in network.hardware] for network in networks]
    return hashlib.sha256(repr(types).encode()).hexdigest()[:16]


def counts(networks: list[DeviceNetwork]) -> list[int]:
    return [sum(map(bool, network.hardware)) for network in networks]


def test_cycle_is_the_last_version_of_the_released_code() -> None:
    networks = released_changes("cycle")
    assert counts(networks) == [20, *[18, 14, 16, 20] * 5]
    assert digest(networks) == "d8f1d8cd7336ccef"
    speeds = [5.293312807, 4.692349251, 5.383794949, 4.500764385, 4.946117219]
    assert networks[-1].speed[:5].tolist() == pytest.approx(speeds, abs=1e-9)


def test_single_is_the_first_version_of_the_released_code_with_slow_new_devices() -> None:
    networks = released_changes("single")
    assert counts(networks) == [*range(20, 10, -1), *range(10, 21)]
    assert digest(networks) == "534b2fef0933b9e2"
    speeds = [0.200356311, 0.204362314, 5.341393836, 0.188016227, 0.20000541]
    assert networks[-1].speed[:5].tolist() == pytest.approx(speeds, abs=1e-9)


def test_an_unknown_version_is_reported() -> None:
    unknown: Any = "cycles"
    with pytest.raises(UsageError, match='version: "cycles" is unknown; did you mean cycle'):
        released_changes(unknown)


@pytest.mark.parametrize("seed", range(5))
def test_in_the_paper_new_devices_are_slower_and_types_always_supported(seed: int) -> None:
    networks, slower = paper_changes(seed)
    assert counts(networks) == [20, *[18, 16, 18, 20] * 5]
    assert slower[:3] == [0, 0, 0]
    assert slower[4] == 4
    first = networks[0]
    for network, new in zip(networks, slower, strict=True):
        assert {kind for kinds in network.hardware for kind in kinds} == set(range(5))
        there = np.array([bool(kinds) for kinds in network.hardware])
        assert (network.delay == network.delay.T).all()
        assert (network.speed[there] != first.speed[there]).sum() == new
    changed = networks[-1].speed != first.speed
    assert networks[-1].speed[changed].mean() < 0.7 * first.speed.mean()
    links = changed[:, None] & ~np.eye(20, dtype=bool)
    assert networks[-1].delay[links].mean() > 1.5 * first.delay[links].mean()


def test_devices_that_stay_are_unchanged() -> None:
    networks, _ = paper_changes(3)
    for before, after in pairwise(networks):
        stay = [d for d in range(20) if before.hardware[d] and after.hardware[d]]
        assert (before.speed[stay] == after.speed[stay]).all()
        assert (before.delay[np.ix_(stay, stay)] == after.delay[np.ix_(stay, stay)]).all()
        assert [before.hardware[d] for d in stay] == [after.hardware[d] for d in stay]


def test_lost_devices_are_not_in_the_document() -> None:
    networks = released_changes("cycle")
    graph = adaptivity_graphs()[0]
    problems = [po.compile(problem_document("changing", graph, network.document())) for network in networks[:3]]
    assert [problem.n_devices for problem in problems] == [20, 18, 14]
    assert set(problems[2].device_names) < set(problems[1].device_names) < set(problems[0].device_names)
    assert len(adaptivity_graphs()) == 10


def test_the_first_network_is_the_released_one() -> None:
    assert released_changes("single")[0].document() == released_network(1).document()


def test_idle_devices_change_nothing() -> None:
    networks, _ = paper_changes(seed=2, changes=2)
    graph = adaptivity_graphs()[0]
    left, every = (
        po.compile(problem_document("idle", graph, networks[-1].document(idle=idle))) for idle in (False, True)
    )
    able = every.feasible.any(axis=0)
    assert (left.n_devices, every.n_devices) == (16, 20)
    assert [name for name, can in zip(every.device_names, able, strict=True) if can] == list(left.device_names)
    assert (every.duration[:, able] == left.duration).all()
    assert (every.latency[able][:, able] == left.latency).all()
