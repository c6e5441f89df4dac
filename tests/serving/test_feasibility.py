"""Why a serving problem has no plan."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import placeopt as po
from placeopt.serving.feasibility import shortage
from placeopt.serving.problem import Serving
from tests.support.brute_force_serving import coverage
from tests.support.commandline import run
from tests.support.random_serving import random_serving

DEVICE = {"speed": "1 TFLOP/s", "memory_bandwidth": "1 TB/s"}


def document(*memory: str, **serving: Any) -> dict[str, Any]:
    """Four layers with 1 GiB of weights and 100 MiB for a request, on nodes with the stated memory."""
    stated = {"layers": 4, "weights": "1 GiB", "cache": "1 MiB", "flops": "1 GFLOP", "activation": "1 KiB"}
    return {
        "placeopt": 1,
        "devices": {f"d{k}": {"memory": each, **DEVICE} for k, each in enumerate(memory)},
        "serving": {**stated, "context": 100, **serving},
    }


def holds_all(problem: Serving) -> bool:
    """Whether some intervals of the nodes contain all layers."""
    choices = [
        [(0, 0)] + [
            (begin, end)
            for begin in range(problem.layers)
            for end in range(begin + 1, problem.layers + 1)
            if problem.rate_of(int(kind), begin, end)
        ]
        for kind in problem.kind
    ]  # fmt: skip
    return any(coverage(problem, intervals) for intervals in product(*choices))


def test_a_shortage_is_stated_if_and_only_if_the_layers_do_not_fit() -> None:
    problems = [random_serving(seed, most_nodes=3) for seed in range(150)]
    fits = [holds_all(problem) for problem in problems]
    assert [shortage(problem) is None for problem in problems] == fits
    assert 20 < sum(fits) < 130


@pytest.mark.parametrize(
    ("memory", "serving", "expected"),
    [
        (("3 GiB", "1200 MiB"), {}, "the layers need 4.391 GiB for their weights and one request, and all nodes have"),
        (("3 GiB", "3 GiB"), {"reserve": "1 GiB"}, "and all nodes have 4 GiB that are not reserved"),
        (
            ("2 GiB", "2 GiB"),
            {"layers": [{"tables": "1 TiB"}, {"count": 3}]},
            "layer 0 needs 1.001 TiB for its weights",
        ),
        (("1900 MiB",) * 3, {}, "the nodes hold at most 3 of 4 layers"),
        (
            ("3260 MiB", "2300 MiB"),
            {"layers": [{"count": 3}, {"weights": "2 GiB"}]},
            "the nodes, in any order, hold at most the first 3 of 4 layers",
        ),
        (("6 GiB",), {"prompt": 50, "prefill": "separate"}, "the layers, for prefill and again for decoding, need 8."),
    ],
)
def test_reasons(memory: tuple[str, ...], serving: dict[str, Any], expected: str) -> None:
    problem = po.load_serving(document(*memory, **serving))
    result = po.solve_serving(problem, time_limit=1)
    assert result.plan is None
    assert result.bound == 0
    assert result.message.startswith("no plan exists: ")
    assert expected in result.message
    assert result.to_dict()["message"] == result.message


def test_gpus_that_share_layers_have_the_memory_of_all() -> None:
    shared = {"tensor_parallel": {"d0": {"degree": 4, "bandwidth": "10 GB/s"}}}
    assert shortage(po.load_serving(document("1100 MiB", **shared))) is not None
    assert shortage(po.load_serving(document("1125 MiB", **shared))) is None


def test_measured_nodes_have_no_known_memory() -> None:
    problem = po.load_serving(document("1200 MiB", "1 MiB", rates={"d1": [5, 4]}))
    assert shortage(problem) == "the nodes hold at most 3 of 4 layers"


def test_replicas_and_prices() -> None:
    problem = po.load_serving(document("2 GiB", "2 GiB", replicas=2))
    assert "all nodes have 4 GiB" in po.replicated_serving(problem, time_limit=1).message
    priced = document("2 GiB", "2 GiB", demand=1)
    for device in priced["devices"].values():
        device["price"] = 1
    with pytest.raises(po.UsageError, match=r"no plan passes 1\.00 tokens/s with these nodes: the layers need 4\.391"):
        po.cheapest_serving(po.load_serving(priced), time_limit=1)


def test_commands(tmp_path: Path) -> None:
    path = tmp_path / "serving.json"
    path.write_text(json.dumps(document("2 GiB", "2 GiB")))
    solved = run("solve", path, "-t", "1s", "--json")
    assert solved.code == 1
    assert json.loads(solved.out)["message"].endswith("and all nodes have 4 GiB")
    assert "note: no plan exists: the layers need 4.391 GiB" in run("whatif", path, "-t", "1s").err
