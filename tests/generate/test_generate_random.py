"""Random problems: GiPH's appendix B.2 and layered graphs."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from placeopt.errors import UsageError
from placeopt.generate.layered_graphs import layered, layered_document, layered_problem
from placeopt.generate.random_graphs import random_document, random_network, random_tasks
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import UNLIMITED

SIZES = [1, 2, 3, 4, 5, 17, 100]


def depths(tasks: dict[str, Any]) -> dict[str, int]:
    """Tasks on the longest path that ends in each task; fails if a producer comes after its consumer."""
    depth: dict[str, int] = {}
    for name, task in tasks.items():
        depth[name] = 1 + max((depth[producer] for producer in task.get("after", ())), default=0)
    return depth


def edges(tasks: dict[str, Any]) -> list[tuple[str, str]]:
    return [(producer, name) for name, task in tasks.items() for producer in task.get("after", ())]


def only_plain_types(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and only_plain_types(item) for key, item in value.items())
    if isinstance(value, list):
        return all(only_plain_types(item) for item in value)
    return type(value) in (str, int, float, bool)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [1e-6, 0.5, 1.0, 2.0, 1e6])
@pytest.mark.parametrize("n", SIZES)
def test_single_entry_single_exit_acyclic_and_exactly_n_tasks(n: int, alpha: float, seed: int) -> None:
    tasks = random_tasks(n, alpha=alpha, connection=0.1, seed=seed)["tasks"]
    assert list(tasks) == [f"t{k}" for k in range(n)]
    depths(tasks)
    producers, consumers = {u for u, _ in edges(tasks)}, {v for _, v in edges(tasks)}
    assert set(tasks) - consumers == {"t0"}
    assert set(tasks) - producers == {f"t{n - 1}"}


def test_alpha_at_its_extremes_is_a_chain_or_a_fan() -> None:
    chain = random_tasks(50, alpha=1e-6, connection=0)["tasks"]
    assert edges(chain) == [(f"t{k}", f"t{k + 1}") for k in range(49)]
    fan = random_tasks(50, alpha=1e6, connection=0)["tasks"]
    assert max(depths(fan).values()) == 3
    assert len(edges(fan)) == 2 * 48


@pytest.mark.parametrize(("n", "alpha"), [(100, 1.0), (100, 0.5), (100, 2.0), (60, 1.3)])
def test_mean_depth_is_root_of_n_over_alpha(n: int, alpha: float) -> None:
    found = [max(depths(random_tasks(n, alpha=alpha, seed=seed)["tasks"]).values()) for seed in range(300)]
    mean = math.sqrt(n) / alpha
    half = min(mean / 2, mean - 3)
    # Uniform over [mean - half, mean + half]: four standard errors of the mean of 300.
    assert abs(statistics.mean(found) - mean) < 4 * half / math.sqrt(3 * 300) + 0.05
    assert math.floor(mean - half) <= min(found) < mean - half / 2
    assert mean + half / 2 < max(found) <= math.ceil(mean + half)
    # n / depth is the mean width: alpha sqrt(n), up to the spread of depths (a factor of at most ln 3).
    assert 0.95 < statistics.mean(n / depth for depth in found) / (alpha * math.sqrt(n)) < 1.15


@pytest.mark.parametrize("reach", [1, 2])
def test_edges_lead_down_at_most_reach_levels(reach: int) -> None:
    tasks = random_tasks(100, connection=0.5, reach=reach)["tasks"]
    level = depths(tasks)
    assert {level[v] - level[u] for u, v in edges(tasks)} == set(range(1, reach + 1))


def test_amounts_lie_in_their_ranges_and_fill_them() -> None:
    tasks = random_tasks(
        400, connection=0.05, compute=50, compute_heterogeneity=0.2, data=80, data_heterogeneity=0.5,
        memory=10, memory_heterogeneity=1.0,
    )["tasks"]  # fmt: skip
    payloads = [size for task in tasks.values() for size in task.get("after", {}).values()]
    for values, low, high in [
        ([task["flops"] for task in tasks.values()], 40_000, 60_000),
        (payloads, 40_000, 120_000),
        ([task["memory"] for task in tasks.values()], 0, 20_000),
    ]:
        assert low <= min(values) < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < max(values) <= high
        assert statistics.mean(values) == pytest.approx((low + high) / 2, rel=0.1)


def test_without_heterogeneity_all_are_equal() -> None:
    document = random_document(
        10, 3, compute_heterogeneity=0, data_heterogeneity=0, speed_heterogeneity=0, bandwidth_heterogeneity=0, delay=0
    )
    problem = compile_spec(document)
    # w = C / SP = 100 / 10 and c = DL + B / BW = 0 + 100 / 10 seconds, in ticks of 1 ms.
    assert set(problem.duration.ravel().tolist()) == {10_000}
    assert set(problem.transfer(problem.payload, 0, 1).tolist()) == {10_000}
    assert set(problem.device_class.tolist()) == {0}


@pytest.mark.parametrize("symmetric", [True, False])
def test_networks_lie_in_their_ranges(symmetric: bool) -> None:
    m = 12
    network = random_network(
        m, speed=20, speed_heterogeneity=0.1, bandwidth=5, bandwidth_heterogeneity=1, delay=2, symmetric=symmetric
    )
    speeds = [float(device["speed"].removesuffix(" kFLOP/s")) for device in network["devices"].values()]
    overrides = network["links"]["overrides"]
    assert len(speeds) == m
    assert all(18 <= speed <= 22 for speed in speeds)
    assert len(overrides) == m * (m - 1) // (2 if symmetric else 1)
    assert all(0.005 <= float(link["bandwidth"].removesuffix(" kB/s")) <= 10 for link in overrides)
    assert all(0 <= float(link["latency"].removesuffix(" s")) <= 4 for link in overrides)
    problem = compile_spec(random_tasks(2) | network | {"placeopt": 1, "resolution": "1 ms"})
    assert np.array_equal(problem.latency, problem.latency.T) is symmetric


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("support", [0.0, 0.3, 1.0])
def test_every_required_kind_is_supported(support: float, seed: int) -> None:
    document = random_document(30, 3, hardware=5, requirement=0.9, support=support, seed=seed)
    problem = compile_spec(document)
    assert problem.feasible.any(axis=1).all()
    if support == 1:
        assert problem.feasible.all()


def test_requirement_probability() -> None:
    tasks = random_tasks(1000, hardware=4, requirement=0.25, reach=1)["tasks"]
    kinds = [task["requires"] for task in tasks.values() if "requires" in task]
    assert 200 < len(kinds) < 300
    assert {kind for (kind,) in kinds} == {"hw0", "hw1", "hw2", "hw3"}
    assert not any("requires" in task for task in random_tasks(50, hardware=0, requirement=1)["tasks"].values())


@pytest.mark.parametrize("tightness", [0.5, 0.9, 1.0])
def test_tightness_of_memory(tightness: float) -> None:
    problem = compile_spec(random_document(100, 4, memory=50, tightness=tightness))
    found = problem.memory.sum() / problem.capacity.sum()
    assert tightness - 0.02 < found <= tightness
    assert (compile_spec(random_document(5, 4, memory=50)).capacity == UNLIMITED).all()


def test_capacity_leaves_room_for_a_feasible_placement() -> None:
    # All tasks need the one device that supports hw0, so it must hold them all.
    document = random_document(10, 4, hardware=1, requirement=1, support=0, memory=50, tightness=1.0)
    problem = compile_spec(document)
    assert problem.feasible.sum(axis=1).tolist() == [1] * 10
    assert problem.capacity[0] == problem.memory.sum()


def test_one_device_has_no_links() -> None:
    assert list(random_network(1)) == ["devices"]
    assert compile_spec(random_document(1, 1)).n_devices == 1


def test_graph_and_network_have_seeds_of_their_own() -> None:
    first, second = random_document(seed=1, network_seed=7), random_document(seed=2, network_seed=7)
    assert first["tasks"] != second["tasks"]
    assert (first["devices"], first["links"]) == (second["devices"], second["links"])
    assert random_document(seed=1)["tasks"] == first["tasks"] == random_tasks(seed=1)["tasks"]
    assert random_document(seed=7)["devices"] == first["devices"] == random_network(seed=7)["devices"]


def test_options_of_one_kind_leave_the_others_alone() -> None:
    plain, varied = random_tasks(40), random_tasks(40, compute_heterogeneity=1, hardware=3, memory=5)
    assert edges(plain["tasks"]) == edges(varied["tasks"])
    assert [task.get("after") for task in plain["tasks"].values()] == [
        task.get("after") for task in varied["tasks"].values()
    ]


MAKERS: list[Callable[..., dict[str, Any]]] = [
    lambda seed: random_document(seed=seed, hardware=2, memory=5, tightness=0.8),
    lambda seed: layered_document(100, 3, tightness=0.8, seed=seed),
]


@pytest.mark.parametrize("make", MAKERS)
def test_documents_are_plain_reproducible_and_differ_by_seed(make: Callable[..., dict[str, Any]]) -> None:
    document = make(seed=3)
    assert only_plain_types(document)
    assert json.loads(json.dumps(document)) == document
    assert make(seed=3) == document
    assert make(seed=4)["tasks"] != document["tasks"]
    assert make(seed=4)["devices"] != document["devices"]


def test_documents_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import json; from placeopt.generate.layered_graphs import *; from placeopt.generate.random_graphs import *;"
        "print(json.dumps([random_document(hardware=3, memory=5, tightness=0.8), layered_document(50)]))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 0}, "tasks: 0 is not valid; expected a whole number of at least 1"),
        ({"tasks": 2.5}, r"tasks: 2\.5 is not valid"),
        ({"devices": 0}, "devices: 0 is not valid"),
        ({"alpha": 0}, "alpha: 0 is not valid; expected a number above 0"),
        ({"alpha": math.inf}, "alpha: inf is not valid"),
        ({"alpha": "1"}, 'alpha: "1" is not valid'),
        ({"connection": 1.5}, r"connection: 1\.5 is not valid; expected a number of at least 0 and at most 1"),
        ({"connection": math.nan}, "connection: nan is not valid"),
        ({"reach": 0}, "reach: 0 is not valid"),
        ({"compute": -1}, "compute: -1 is not valid; expected a number of at least 0"),
        ({"compute_heterogeneity": -0.1}, r"compute_heterogeneity: -0\.1 is not valid"),
        ({"data_heterogeneity": 1.1}, r"data_heterogeneity: 1\.1 is not valid"),
        ({"memory_heterogeneity": True}, "memory_heterogeneity: true is not valid"),
        ({"hardware": -1}, "hardware: -1 is not valid"),
        ({"requirement": 2}, "requirement: 2 is not valid"),
        ({"support": -1}, "support: -1 is not valid"),
        ({"speed": 0}, "speed: 0 is not valid; expected a number above 0"),
        ({"speed_heterogeneity": 2}, "speed_heterogeneity: 2 is not valid"),
        ({"bandwidth": 0}, "bandwidth: 0 is not valid"),
        ({"delay": -1}, "delay: -1 is not valid"),
        ({"memory": 5, "tightness": 0}, "tightness: 0 is not valid; expected a number above 0 and at most 1"),
        ({"tightness": 0.5}, "tightness: the tasks need no memory"),
        ({"seed": -1}, "seed: -1 is not valid"),
        ({"alhpa": 1}, r"random has no option alhpa; did you mean alpha\?"),
        ({"zzz": 1}, "random has no option zzz; known are tasks, devices, alpha, "),
    ],
)
def test_random_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        random_document(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tightness": 0.9, "ccr": 1.0},
        {"layers": 7, "in_degree": (2, 6), "reach": 3},
        {"width": 4, "in_degree": 9, "device_types": 2},
        {"tasks": 1, "devices": 1},
        {"tasks": 5, "layers": 1},
        {"tasks": 5, "layers": 5, "latency": 0},
    ],
)
def test_layered_document_and_problem_are_the_same(options: dict[str, Any]) -> None:
    made, compiled = layered_problem(**options), compile_spec(layered_document(**options))
    assert made.rounding is None
    assert compiled.rounding is not None
    for field in fields(made):
        if field.name == "rounding":  # a document's times; a problem made in code has none
            continue
        left, right = getattr(made, field.name), getattr(compiled, field.name)
        assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right, field.name
    assert made.fingerprint() == compiled.fingerprint()


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"tasks": 10, "layers": 3}, [3, 3, 4]),
        ({"tasks": 10, "width": 4}, [4, 4, 2]),
        ({"tasks": 10, "width": 99}, [10]),
        ({"tasks": 9}, [3, 3, 3]),
        ({"tasks": 1}, [1]),
    ],
)
def test_layer_sizes(options: dict[str, Any], sizes: list[int]) -> None:
    level = depths(layered_document(**options)["tasks"])
    assert [list(level.values()).count(k + 1) for k in range(len(sizes))] == sizes
    assert list(level.values()) == sorted(level.values())


@pytest.mark.parametrize("reach", [1, 3])
def test_in_degrees_and_reach(reach: int) -> None:
    tasks = layered_document(600, width=10, in_degree=(2, 5), reach=reach)["tasks"]
    level = depths(tasks)
    degrees = [len(task["after"]) for name, task in tasks.items() if level[name] > 1]
    assert set(degrees) == {2, 3, 4, 5}
    assert {level[v] - level[u] for u, v in edges(tasks)} == set(range(1, reach + 1))


def test_in_degree_is_cut_to_what_is_there() -> None:
    tasks = layered_document(12, width=3, in_degree=50)["tasks"]
    assert [len(task.get("after", ())) for task in tasks.values()] == [0] * 3 + [3] * 9


def test_producers_are_drawn_uniformly() -> None:
    problem = layered_problem(20_000, width=5, in_degree=2)
    pairs = (problem.edge_source % 5).reshape(-1)
    counts = np.bincount(pairs, minlength=5) / len(pairs)
    assert np.abs(counts - 0.2).max() < 0.01


@pytest.mark.parametrize("ccr", [0.05, 1.0, 10.0])
def test_communication_to_computation_ratio(ccr: float) -> None:
    problem = layered_problem(2000, ccr=ccr)
    found = problem.transfer(problem.payload, 0, 1).mean() / problem.duration.mean()
    assert found == pytest.approx(ccr, rel=0.03)


def test_layered_ranges_and_types() -> None:
    problem = layered_problem(3000, 6, duration=(10, 20), payload=(5, 9), speed_heterogeneity=0, tightness=0.7)
    assert (problem.duration.min(), problem.duration.max()) == (10, 20)
    assert (problem.payload.min(), problem.payload.max()) == (5, 9)
    assert problem.memory.sum() / problem.capacity.sum() == pytest.approx(0.7, rel=1e-3)
    mixed = layered(10, 6, device_types=3)
    assert len(set(mixed.speed.tolist())) == 3
    assert mixed.problem().device_class.tolist() == [0, 0, 1, 1, 2, 2]


def test_full_memory_still_fits_on_least_loaded_devices() -> None:
    problem = layered_problem(40, 7, memory=(1, 1000), tightness=1.0)
    load = [0] * 7
    for amount in problem.memory.tolist():
        load[load.index(min(load))] += amount
    assert max(load) <= problem.capacity[0]


def test_a_layered_graph_of_many_tasks() -> None:
    problem = layered_problem(100_000, 8, layers=50)
    assert (problem.n_tasks, problem.n_devices) == (100_000, 8)
    assert np.array_equal(np.diff(problem.in_start) == 0, np.arange(100_000) < 2000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 0}, "tasks: 0 is not valid"),
        ({"layers": 3, "width": 3}, "layers, width: 3 and 3 are both given; expected at most one of them"),
        ({"tasks": 3, "layers": 4}, "layers: 4 is more than the 3 tasks"),
        ({"width": 0}, "width: 0 is not valid"),
        ({"in_degree": 0}, "in_degree: 0 is not valid"),
        ({"in_degree": (3, 2)}, "in_degree: 3 to 2 is not a range; expected the smaller end first"),
        ({"in_degree": 1.5}, r"in_degree: 1\.5 is not a range"),
        ({"reach": 0}, "reach: 0 is not valid"),
        ({"duration": (-1, 2)}, "duration: -1 is not valid"),
        ({"payload": (1,)}, r"payload: \(1,\) is not a range; expected its two ends"),
        ({"ccr": 0.0001}, r"ccr: 0\.0001 is not valid; expected a number of at least 0\.0"),
        ({"speed_heterogeneity": 1.5}, r"speed_heterogeneity: 1\.5 is not valid"),
        ({"device_types": 9}, "device_types: 9 is more than the 8 devices"),
        ({"bandwidth": 0}, "bandwidth: 0 is not valid"),
        ({"latency": -1}, "latency: -1 is not valid"),
        ({"tightness": 1.5}, r"tightness: 1\.5 is not valid; expected a number above 0 and at most 1"),
        ({"memory": (0, 5), "tightness": 0.5}, "memory: 0 is not valid; expected a whole number of at least 1"),
    ],
)
def test_layered_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        layered_document(**options)
