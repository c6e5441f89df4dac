"""The released generator of GiPH: golden numbers of the released code, and the sets of its experiments.

The golden numbers were computed by the released code itself (https://github.com/uidmice/placement-rl, env/utils.py).
"""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.generate.giph.cases import Documents
from placeopt.generate.giph.released import released_document, released_graph, released_network
from placeopt.generate.giph.sets import SETS


def digest(values: object) -> str:
    """The first digits of a hash of all numbers, each with its shortest exact decimal."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def test_graph_is_that_of_the_released_code() -> None:
    graph = released_graph(0, v=10, alpha=0.1, connection=0.1)
    assert (len(graph.work), len(graph.edges)) == (35, 89)
    assert graph.work[:3].tolist() == [101.95254015709298, 104.11053504286576, 113.89006955136502]
    assert graph.hardware[:12] == (0, 3, 3, 4, 0, 2, 0, 1, 1, 0, 0, 0)
    assert graph.edges[:6] == ((0, 1), (0, 19), (0, 28), (0, 32), (1, 14), (1, 17))
    assert graph.data[:3].tolist() == [85.52731805394455, 87.86329446720214, 94.74900682643856]
    assert digest(graph.work.tolist()) == "4791ec163d9ee6a2"
    assert digest(list(graph.hardware)) == "15a1e59822ca6178"
    assert digest(list(graph.edges)) == "16b7489b2dc35b1b"
    assert digest(graph.data.tolist()) == "ad9a73e0d1a142d4"


def test_graph_with_wide_levels_is_that_of_the_released_code() -> None:
    graph = released_graph(25, v=15, alpha=0.3, connection=0.2, compute_heterogeneity=0.2, data_heterogeneity=0.2)
    assert (len(graph.work), len(graph.edges)) == (24, 68)
    assert digest(graph.work.tolist()) == "3118a670885e209c"
    assert digest(list(graph.hardware)) == "b179c822d7e902bc"
    assert digest(list(graph.edges)) == "df799f129efb815e"
    assert digest(graph.data.tolist()) == "9d7fd131297e6434"


def test_network_is_that_of_the_released_code() -> None:
    network = released_network(0)
    assert network.speed[:3].tolist() == [3.159971207602868, 5.558820424300508, 4.633211633358979]
    assert network.delay[0, 1] == network.delay[1, 0] == 19.57236684465528
    assert network.inverse_bandwidth[0, 1] == 0.0137940497025444
    assert network.hardware[:4] == ((1, 3), (4,), (1,), (2,))
    assert digest(network.delay.tolist()) == "257d7480b8626273"
    assert digest(network.inverse_bandwidth.tolist()) == "53ae7e1feeff85d9"
    assert digest(network.speed.tolist()) == "004a66a8ca8f3250"
    assert digest(list(network.hardware)) == "8c3edcd7bd8d357f"


def test_network_with_a_type_that_no_device_drew_is_that_of_the_released_code() -> None:
    network = released_network(26)
    assert network.hardware[4] == (1, 4, 2)  # type 2 was given to four devices after the others
    assert digest(network.delay.tolist()) == "93ec7da73d1b5999"
    assert digest(network.inverse_bandwidth.tolist()) == "11d106f7ecf2d9d2"
    assert digest(network.speed.tolist()) == "a1e0b7be04583232"
    assert digest(list(network.hardware)) == "7a950ccf2d1671f3"


def test_a_generator_does_not_change_the_global_random_numbers() -> None:
    def states() -> str:
        return repr((np.random.get_state(), random.getstate()))  # noqa: NPY002

    before = states()
    released_document(2)
    assert states() == before


def test_document_rounds_times_by_less_than_a_ten_millionth_of_a_second() -> None:
    graph, network = released_graph(3, v=15), released_network(4)
    problem = po.compile(released_document(3, network_seed=4, v=15))
    assert (problem.n_tasks, problem.n_devices) == (len(graph.work), 20)
    exact = graph.work[:, None] / network.speed
    assert np.abs(problem.duration * 1e-9 - exact)[problem.feasible].max() < 1e-7
    supported = np.array([[kind in found for found in network.hardware] for kind in graph.hardware])
    assert (problem.feasible == supported).all()
    edges = {(u, v): amount for (u, v), amount in zip(graph.edges, graph.data.tolist(), strict=True)}
    devices, apart = np.arange(20), ~np.eye(20, dtype=bool)
    edge_ends = zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)
    for (u, v), payload in zip(edge_ends, problem.payload.tolist(), strict=True):
        takes = network.delay + edges.pop((u, v)) * network.inverse_bandwidth
        found = problem.transfer(payload, devices[:, None], devices)
        assert np.abs(found * 1e-9 - takes)[apart].max() < 1e-7
    assert not edges


def test_sets_have_the_released_sizes() -> None:
    sizes = {name: [(len(s.graphs), len(s.networks)) for s in SETS[name]()] for name in SETS if name.startswith("giph")}
    assert sizes == {
        "giph-single": [(300, 1), (60, 1), (300, 1)],
        "giph-multiple": [(120, 10), (60, 10), (120, 10)],
        "giph-unseen": [(120, 10), (60, 5), (120, 10)],
        "giph-sizes": [(180, 150), (60, 20), (120, 100)],
    }


def test_statistics_of_the_released_test_set() -> None:
    """Figures measured on the released generator."""
    test = SETS["giph-multiple"]().test
    tasks = [len(graph["tasks"]) for graph in test.graphs]
    assert (min(tasks), max(tasks), sum(tasks)) == (14, 47, 3442)  # 28.7 on average
    problems = [po.compile(test.document(*pair)) for pair in test.pairs()[::40]]
    durations = np.concatenate([problem.duration[problem.feasible] for problem in problems]) / 1e9
    assert 11.4 < durations.min() < 12
    assert 38 < durations.max() < 40
    devices = np.concatenate([problem.feasible.sum(axis=1) for problem in problems])
    assert devices.min() == 2
    assert 5.1 < devices.mean() < 5.6


def test_order_of_a_set_is_that_of_the_released_code() -> None:
    train, _, test = SETS["giph-multiple"]()
    seeds = [(alpha, v, p) for alpha in (0.1, 0.2, 0.3) for v in (10, 15) for p in (0.1, 0.2) for _ in range(10)]
    for place in (0, 13, 119):
        alpha, v, p = seeds[place]
        expected = released_graph(25 + place % 10, v=v, alpha=alpha, connection=p).document()
        assert test.graphs[place] == expected
    assert test.pairs()[:2] == ((0, 0), (1, 0))
    assert test.pairs()[120] == (0, 1)
    assert train.networks[3] == test.networks[3] == released_network(3).document()
    sizes = SETS["giph-sizes"]().train.networks
    assert [len(sizes[place]["devices"]) for place in (0, 14, 15, 149)] == [15, 15, 16, 24]


def test_unseen_networks_differ_from_those_of_training() -> None:
    train, _, test = SETS["giph-unseen"]()
    released = SETS["giph-multiple"]().test
    assert all(network not in train.networks for network in test.networks)
    assert list(test.graphs) == list(released.graphs)


def test_documents_are_generated_once_and_only_when_read() -> None:
    made: list[int] = []

    def make(index: int) -> dict[str, Any]:
        made.append(index)
        return {"index": index}

    documents = Documents(make, zip(range(4)))
    assert documents[-1] is documents[3]
    assert made == [3]
    assert [document["index"] for document in documents[1:3]] == [1, 2]
    with pytest.raises(IndexError, match="out of range"):
        documents[4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"v": 0}, "v: 0 is not valid; expected a whole number of at least 1"),
        ({"alpha": 0}, "alpha: 0 is not valid; expected a number above 0"),
        ({"seed": 2**32}, "seed: 4294967296 is too large; expected at most 4294967295"),
        ({"network_seed": -1}, "network_seed: -1 is not valid"),
        ({"speed_heterogeneity": 2}, "speed_heterogeneity: 2 is not valid; expected less than 2"),
        ({"devices": 4, "seed": 1}, "support: 0.2 leaves hardware type 0 without a device"),
        ({"connexion": 0.1}, "giph has no option connexion; did you mean connection"),
        ({"suport": 0.1}, "giph has no option suport; did you mean support"),
        ({"depth": 0.1}, "giph has no option depth; known are v, alpha, connection, types, compute, data,"),
    ],
)
def test_wrong_options_are_reported(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        released_document(**options)
