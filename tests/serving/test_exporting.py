"""Plans of serving problems for runtimes."""

from __future__ import annotations

import configparser
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import placeopt as po
from placeopt.serving.plan import ServingPlan
from tests.support.commandline import run

ROOT = Path(__file__).parents[2]
PROBLEM = po.build_serving(layers=6, node_names=list("abc"), kind=[0, 0, 1], rate=[[[9, 9, 9, 9]], [[4, 4, 0, 0]]])
CHAIN = ServingPlan(np.array([0, 0, 4]), np.array([4, 0, 6]), np.array([[-1, 0], [0, 2], [2, -1]]), np.full(3, 4))
OVERLAP = ServingPlan(
    np.array([0, 2, 0]), np.array([3, 6, 0]), np.array([[-1, 0], [0, 1], [1, -1]]), np.full(3, 9)
)  # fmt: skip


def test_a_chain() -> None:
    assert po.verify_serving(PROBLEM, CHAIN).feasible
    vllm = po.export_serving(PROBLEM, CHAIN, "vllm").splitlines()
    assert vllm[0] == "# 0.0 tokens/s: a layers 0 to 3, c layers 4 to 5"
    assert vllm[1].startswith("VLLM_PP_LAYER_PARTITION=4,2 vllm serve MODEL --pipeline-parallel-size 2")
    llama = po.export_serving(PROBLEM, CHAIN, "llama.cpp").splitlines()[1]
    assert "--rpc a:50052,c:50052 -ngl 7 --split-mode layer -ts 4,3" in llama  # the output is the seventh layer


def test_gpus_that_share_layers() -> None:
    shared, mixed = replace(PROBLEM, degree=(2, 2)), replace(PROBLEM, degree=(2, 4))
    assert "--tensor-parallel-size 2 --pipeline-parallel-size 2" in po.export_serving(shared, CHAIN, "vllm")
    assert (
        "--tensor_parallel_devices cuda:0 cuda:1 --initial" in po.export_serving(mixed, CHAIN, "petals").splitlines()[1]
    )
    with pytest.raises(po.UsageError, match="a is 2 GPUs and c is 4, but all stages share layers"):
        po.export_serving(mixed, CHAIN, "vllm")
    with pytest.raises(po.UsageError, match="a is several GPUs that share layers, but a server is one GPU"):
        po.export_serving(mixed, CHAIN, "llama.cpp")


def test_helix_reads_the_layers_of_each_node() -> None:
    parser = configparser.ConfigParser()
    parser.read_string(po.export_serving(PROBLEM, OVERLAP, "helix"))
    assert parser["Settings"]["offset"] == "2"
    layers = {key: json.loads(value) for key, value in parser["Solution"].items()}
    assert layers == {"compute_node_2": [0, 1, 2], "compute_node_3": [2, 3, 4, 5], "compute_node_4": []}


def test_overlapping_intervals_and_replicas() -> None:
    assert po.verify_serving(PROBLEM, OVERLAP).feasible
    petals = po.export_serving(PROBLEM, OVERLAP, "petals").splitlines()
    assert petals[0] == "# a"
    assert "--block_indices 0:3 " in petals[1]
    assert "--block_indices 2:6 " in petals[3]
    with pytest.raises(po.UsageError, match="--to vllm: b begins before the last layer of the node before it"):
        po.export_serving(PROBLEM, OVERLAP, "vllm")
    edges = np.array([[-1, 0], [-1, 1], [0, 2], [1, 2], [2, -1]])
    replicas = ServingPlan(np.array([0, 0, 4]), np.array([4, 4, 6]), edges, np.array([2, 2, 2, 2, 4]))
    assert po.verify_serving(PROBLEM, replicas).feasible
    with pytest.raises(po.UsageError, match=r"--to llama\.cpp: c has several neighbours"):
        po.export_serving(PROBLEM, replicas, "llama.cpp")
    with pytest.raises(po.UsageError, match="unknown format exo of a serving plan"):
        po.export_serving(PROBLEM, replicas, "exo")


def test_two_chains() -> None:
    problem = po.build_serving(layers=2, node_names=list("ab"), kind=[0, 0], rate=[[[9, 9]]])
    result = po.solve_serving(problem, time_limit=1)
    assert result.plan is not None
    assert po.export_serving(problem, result.plan, "vllm").count("vllm serve") == 2


def test_the_context_of_requests() -> None:
    """In llama.cpp, requests share the context; measured rates state no requests, and no context unless it is given."""
    problem = po.load_serving({
        "placeopt": 1,
        "devices": {"l4": {"like": "l4", "count": 2}},
        "links": {"default": {"bandwidth": "10 Gbps"}},
        "serving": {
            "layers": 40, "weights": "1 GB", "cache": "4 KiB", "flops": "1 GFLOP", "activation": "16 KiB",
            "context": 2000, "requests": 12, "partial": False,
        },
    })  # fmt: skip
    plan = po.solve_serving(problem, time_limit=1).plan
    assert plan is not None
    assert plan.groups > 1
    *comments, llama = po.export_serving(problem, plan, "llama.cpp").splitlines()
    assert llama.endswith(f" -c {plan.requests * 2000} --parallel {plan.requests}")
    assert comments[1:] == [
        f"# The plan has {plan.groups} groups of requests, so that several nodes compute at the same time.",
        "# llama.cpp computes one group at a time: expect fewer tokens/s than stated above.",
    ]
    assert f" --max-model-len 2000 --max-num-seqs {plan.requests}" in po.export_serving(problem, plan, "vllm")
    measured = replace(PROBLEM, context=2000)
    assert po.export_serving(measured, CHAIN, "vllm").endswith("--max-model-len 2000\n")
    assert "--parallel" not in po.export_serving(measured, CHAIN, "llama.cpp")
    assert "--max-model-len" not in po.export_serving(PROBLEM, CHAIN, "vllm")


def test_command(tmp_path: Path) -> None:
    folder = ROOT / "problems" / "serving"
    arguments = ("export", folder / "llama-70b-24.yaml", folder / "plans" / "llama-70b-24.json")
    out = tmp_path / "solution.ini"
    assert run(*arguments, "--to", "helix", "--out", out).code == 0
    assert out.read_text().count("compute_node_") == 24
    assert "--block_indices" in run(*arguments, "--to", "petals").out
    assert "--to vllm" in run(*arguments, "--to", "vllm").err
    assert "--model does not apply to serving problems" in run(*arguments, "--to", "petals", "--model", out).err
