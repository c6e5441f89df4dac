"""Device networks and their union with a task graph."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

from placeopt.errors import UsageError
from placeopt.generate.arguments import parameter_notes
from placeopt.generate.forks import fork
from placeopt.generate.giph.released import released_document, released_graph, released_network
from placeopt.generate.irregular_graphs import irregular
from placeopt.generate.layered_graphs import LARGEST, layered
from placeopt.generate.networks import NETWORKS, combine, network_document, wireless
from placeopt.generate.random_graphs import random_document, random_network, random_tasks
from placeopt.io.compiler import compile_spec

TASKS = {"tasks": {"t0": {"flops": 10**9}, "t1": {"flops": 10**9, "after": {"t0": 10**6}}}}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_plain_data_and_compiles(name: str) -> None:
    network = network_document(name)
    assert list(network) == ["devices", "links"]
    assert json.loads(json.dumps(network)) == network
    problem = compile_spec(combine(TASKS, network))
    assert (problem.duration > 0).all()
    assert ((problem.latency > 0) | (problem.byte_ticks_num > 0)).sum() == problem.n_devices * (problem.n_devices - 1)


# Carbonari et al. 2017, section 4; the small network has one GPU (tables 1 and 5).
@pytest.mark.parametrize(("name", "cores", "gpus"), [("small", 2, 1), ("medium", 20, 10), ("large", 40, 20)])
def test_the_physical_networks_of_carbonari(name: str, cores: int, gpus: int) -> None:
    problem = compile_spec(combine(TASKS, network_document(name)))
    assert problem.device_types == ("cpu",) * cores + ("gpu",) * gpus
    assert problem.device_class.tolist() == [0] * cores + [1] * gpus


def test_links_between_cores_are_not_the_bus() -> None:
    problem = compile_spec(combine(TASKS, network_document("small"), resolution="1 us"))
    # 1 MB at 10 GB/s and 1 us between cores; at 12 GB/s and 10 us over PCIe.
    assert problem.transfer(10**6, 0, 1) == 101
    assert problem.transfer(10**6, 0, 2) == 94


def test_the_testbed_of_celeritas() -> None:
    # Xu et al. 2022, section 6.2.1: four V100 with 32 GB each.
    problem = compile_spec(combine(TASKS, network_document("v100x4"), resolution="1 us"))
    assert problem.device_names == ("gpu0", "gpu1", "gpu2", "gpu3")
    assert problem.capacity.tolist() == [32 * 2**30] * 4
    # 1 GFLOP at 14 TFLOP/s is 71.4 us, and 5 us to launch.
    assert problem.duration[0].tolist() == [77] * 4
    assert set(problem.device_class.tolist()) == {0}


def test_the_host_joins_the_gpus_on_request() -> None:
    problem = compile_spec(combine(TASKS, network_document("v100x4", host=True, gpus=2)))
    assert problem.device_names == ("host", "gpu0", "gpu1")
    assert problem.device_types == ("cpu", "gpu", "gpu")


def test_edge_devices_have_the_types_of_giph() -> None:
    network = network_document("edge", nano=1, tx2=0, desktop=2)
    assert [(name, device["type"], device["count"]) for name, device in network["devices"].items()] == [
        ("nano-", "A", 1),
        ("desktop-", "C", 2),
    ]


# GiPH, appendix B.4: 60 exp(-d / 100) Mb/s.
@pytest.mark.parametrize(("distance", "bandwidth"), [(0, "60 Mb/s"), (100, "22.07 Mb/s"), (400.0, "1.099 Mb/s")])
def test_radio_bandwidth_decays_with_distance(distance: float, bandwidth: str) -> None:
    assert wireless(distance) == bandwidth
    assert network_document("edge", distance=distance)["links"]["default"]["bandwidth"] == bandwidth


def test_options_replace_the_numbers() -> None:
    network = network_document("small", cores=3, gpu_memory="40 GiB", cpu_power=None, bandwidth="25 GB/s")
    assert network["devices"]["core"]["count"] == 3
    assert "power" not in network["devices"]["core"]
    assert network["devices"]["gpu"]["memory"] == "40 GiB"
    assert network["links"]["default"] == {"bandwidth": "25 GB/s", "latency": "10 us"}


def test_a_custom_network() -> None:
    network = network_document("custom", devices=2, type="npu", memory="8 GiB", speed="1 TFLOP/s", features=["int8"])
    assert network["devices"] == {
        "npu": {"type": "npu", "count": 2, "memory": "8 GiB", "speed": "1 TFLOP/s", "features": ["int8"]}
    }


def test_a_network_without_gpus_or_without_cores() -> None:
    assert list(network_document("small", gpus=0)["devices"]) == ["core"]
    only_gpus = network_document("small", cores=0)
    assert list(only_gpus["devices"]) == ["gpu"]
    assert "overrides" not in only_gpus["links"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("v100", {}, r'network: "v100" is unknown; expected one of small, .*; did you mean v100x4\?'),
        ("small", {"gpu_memry": "1 GiB"}, r"network small has no option gpu_memry; did you mean gpu_memory\?"),
        ("small", {"cores": -1}, "cores: -1 is not valid; expected a whole number of at least 0"),
        ("small", {"cores": 0, "gpus": 0}, "cores, gpus: both are 0; expected at least one device"),
        ("v100x4", {"gpus": 0}, "gpus: 0 is not valid; expected a whole number of at least 1"),
        ("v100x4", {"gpus": 2.0}, r"gpus: 2\.0 is not valid"),
        ("v100x4", {"gpus": True}, "gpus: true is not valid"),
        ("v100x4", {"gpu_memory": "32 GB/s"}, r'memory: "32 GB/s" is a bandwidth; expected an amount of memory'),
        ("custom", {"speed": "0 FLOP/s"}, r'speed: "0 FLOP/s" is zero; expected a speed'),
        ("custom", {"devices": 0}, "devices: 0 is not valid"),
        ("edge", {"distance": -1}, r"distance: -1 is out of range; expected metres from 0 to 2000"),
        ("edge", {"distance": float("nan")}, "distance: nan is out of range"),
        ("edge", {"nano": 0, "tx2": 0, "desktop": 0}, "nano, tx2, desktop: all are 0"),
        ("edge", {"tx2": -3}, "tx2: -3 is not valid"),
    ],
)
def test_options_that_make_no_sense(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        network_document(name, **options)


def test_combine_orders_sections_as_people_read_them() -> None:
    tasks = {"operations": {"conv": "1 ms"}, "tasks": {"a": {"op": "conv"}}, "name": "net"}
    document = combine(tasks, network_document("small"), description="Both.", objective="makespan")
    assert list(document) == [
        "placeopt", "name", "description", "objective", "operations", "devices", "links", "tasks",
    ]  # fmt: skip
    assert (document["placeopt"], document["name"]) == (1, "net")


def test_combine_leaves_its_parts_alone() -> None:
    tasks, network = {"tasks": {"a": {"time": 1}}}, network_document("small")
    combine(tasks, network, name="x")
    assert (list(tasks), list(network)) == (["tasks"], ["devices", "links"])


def test_combine_takes_a_graph_file_for_tasks() -> None:
    assert combine({"graph": {"file": "net.json"}}, network_document("small"))["graph"] == {"file": "net.json"}


def test_combine_refuses_contradictions_unless_the_header_settles_them() -> None:
    tasks, network = TASKS | {"resolution": "1 ms"}, network_document("small") | {"resolution": "1 us"}
    with pytest.raises(UsageError, match=r'resolution: "1 ms" with the tasks and "1 us" with the devices'):
        combine(tasks, network)
    assert combine(tasks, network, resolution="1 s")["resolution"] == "1 s"
    assert combine(tasks, network | {"resolution": "1 ms"})["resolution"] == "1 ms"


def test_combine_needs_tasks_and_devices() -> None:
    with pytest.raises(UsageError, match="tasks: the document has no such section; it has devices, links"):
        combine(network_document("small"), network_document("small"))
    with pytest.raises(UsageError, match="devices: the document has no such section; it has tasks"):
        combine(TASKS, TASKS)


@pytest.mark.parametrize(
    "function",
    [
        *NETWORKS.values(), random_document, random_tasks, random_network, layered, irregular, fork, released_document,
        released_graph, released_network,
    ],
)  # fmt: skip
def test_every_option_is_described(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    named = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    notes = parameter_notes(function)
    assert [name for name in named if not notes.get(name)] == []
    assert set(notes) <= {*named, "options"}


def test_the_largest_graph_is_stated() -> None:
    for function in (layered, irregular):
        assert parameter_notes(function)["tasks"] == f"Number of tasks, at most {LARGEST:,}."
        with pytest.raises(UsageError, match=f"tasks: {LARGEST + 1} is out of range; expected at most {LARGEST}"):
            function(LARGEST + 1)
