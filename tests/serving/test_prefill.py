"""Separate prefill: routes, transfer of the KV cache, and the time to the first token, also of mixed prefill."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.serving.changes import loaded_layers
from placeopt.serving.plan import ServingPlan
from placeopt.serving.prefill import prompt_time, quick, transfers
from placeopt.serving.problem import SECOND, TOKEN, UNLIMITED, Prompts, Serving, Steps, build_serving
from placeopt.serving.rates import Hardware, LayerCosts, Requests, interval_steps, prompt_times, with_phases
from tests.support.brute_force_serving import best_rate_of_phases, best_rate_of_routes
from tests.support.commandline import run
from tests.support.random_serving import random_prefill

DOCUMENT: dict[str, Any] = {
    "placeopt": 1, "devices": {"gpu": {"memory": "10 GB", "memory_bandwidth": "100 GB/s", "speed": "10 TFLOPS",
                                       "count": 3, "price": 1}},
    "links": {"default": {"bandwidth": "10 GB/s", "latency": "5 ms"}},
    "serving": {"layers": 2, "weights": "1 GB", "cache": "1 MB", "flops": "10 GFLOP", "activation": "1 KB",
                "context": 1000, "prompt": 500, "prefill": "separate"},
}  # fmt: skip


def small(transfer: int = UNLIMITED, limit: int | None = None, names: str = "ab") -> Serving:
    """One layer on nodes that are alike. A prompt takes 0.5 s and leaves 10 bytes. An answer has 4 tokens. A step takes
    1 s, and 0.1 s more for each of at most 8 requests."""
    v = len(names)
    phase = np.array([[[1], [0]]])  # prefill, and not decoding
    steps = Steps(
        UNLIMITED * phase + 8 * (1 - phase), SECOND * (1 - phase), SECOND // 10 * (1 - phase), 0 * phase, 0 * phase,
        np.zeros((v, v), dtype=np.int64), *np.zeros((2, v), dtype=np.int64),
    )  # fmt: skip
    prompts = Prompts(
        6, 4, np.array([[[SECOND // 2]]]), limit, separate=True, cache=np.array([10]),
        transfer=np.full((v, v), transfer),
    )  # fmt: skip
    rate = TOKEN * (8 * phase + 8 * (1 - phase))
    return build_serving(layers=2, node_names=list(names), kind=[0] * v, rate=rate, steps=steps, prompts=prompts)


def solved(problem: Serving, seconds: float = 0.5) -> tuple[po.ServingResult, ServingPlan]:
    result = po.solve_serving(problem, time_limit=seconds, workers=1)
    assert result.plan is not None
    return result, result.plan


def test_two_nodes() -> None:
    """8 requests get a token every 1.8 s, 4.44 tokens/s. Prefill passes 4 / 0.5 = 8. The first token takes 2.3 s."""
    result = po.solve_serving(small(), time_limit=60, gap_limit=0.02)
    plan = result.plan
    assert plan is not None
    assert result.rate == pytest.approx(8 / 1.8 * TOKEN, rel=1e-6)
    assert result.bound == pytest.approx(result.rate, rel=0.02)
    assert sorted(zip(plan.begin.tolist(), plan.end.tolist(), strict=True)) == [(0, 1), (1, 2)]
    assert result.report is not None
    assert result.report.first_token == SECOND * 23 // 10
    assert result.to_dict()["seconds_to_first_token"] == 2.3
    assert po.simulate_serving(result.problem, plan).rate == pytest.approx(result.rate, rel=1e-3)


def test_a_link_that_limits() -> None:
    """10 bytes of each request at 10 bytes/s: a request each second, 4 tokens/s; the first one takes 1 s more."""
    result, plan = solved(small(10))
    assert result.rate == 4 * TOKEN
    assert result.report is not None
    assert result.report.first_token == SECOND * 15 // 10 + plan.token_time
    assert po.simulate_serving(result.problem, plan).rate == pytest.approx(4 * TOKEN, rel=0.01)
    slower = replace(result.problem, prompts=replace(small(9).prompts))
    report = po.verify_serving(slower, plan)
    assert [rule for rule, _ in report.violations] == ["transfer"]
    assert "10 bytes/s of the KV cache, its link carries 9" in report.violations[0][1]
    assert po.solve_serving(small(0), time_limit=0.2).plan is None


def test_a_limit_of_the_first_token() -> None:
    """In 2 s, 1.5 s are left for a step: 5 requests. In 1.5 s, no step is done."""
    result, plan = solved(small(limit=2 * SECOND))
    assert result.rate == pytest.approx(5 / 1.5 * TOKEN, rel=1e-6)
    assert po.verify_serving(small(), plan).first_token == 2 * SECOND
    report = po.verify_serving(small(limit=2 * SECOND - 1), plan)
    assert [rule for rule, _ in report.violations] == ["first token"]
    assert "after 2 s; allowed are 1.999999999999 s" in report.violations[0][1]
    none = po.solve_serving(small(limit=SECOND * 3 // 2), time_limit=0.5)
    assert none.plan is None
    assert none.bound == 0


def test_rules_of_routes() -> None:
    problem = small(10)
    plan = solved(problem)[1]
    ((nodes, rate),) = plan.routes
    first = nodes[0]
    border, beyond = plan.end.copy(), plan.begin.copy()
    border[first], beyond[first] = 2, 1
    changes = {
        "routes have 0.000000 tokens/s, the flow 4.000000": replace(plan, routes=()),
        "routes have 3.999999 tokens/s": replace(plan, routes=((nodes, rate - 1),)),
        "unknown node 7": replace(plan, routes=((nodes, rate), ((7,), 1))),
        "expected more than 0": replace(plan, routes=((nodes, rate + 1), (nodes, -1))),
        "cannot hold the layers 0 to 1": replace(plan, end=border),
        "does not continue after the coordinator": replace(plan, begin=beyond, end=border),
    }
    for message, wrong in changes.items():
        report = po.verify_serving(problem, wrong)
        assert message in str(report.violations), report
        assert report.first_token is None


def test_tokens_of_several_senders_come_from_the_coordinator() -> None:
    edges, flow = np.array([[-1, 0], [-1, 1], [0, 2], [1, 2], [2, -1]]), np.array([2, 2, 2, 2, 4]) * TOKEN
    routes = (((0, 2), 2 * TOKEN), ((1, 2), 2 * TOKEN))
    plan = ServingPlan(np.array([0, 0, 1]), np.array([1, 1, 2]), edges, flow, 1, SECOND * 9 // 5, routes)
    problem = small(names="abc")
    assert po.verify_serving(problem, plan).feasible
    slow = replace(problem, entry=np.array([9, 9, 3]) * TOKEN)
    report = po.verify_serving(slow, plan)
    assert [rule for rule, _ in report.violations] == ["link"]
    assert "its link from the coordinator carries 3.000000" in report.violations[0][1]


def test_nodes_that_compute_what_is_left() -> None:
    """Of layers 0 to 2, node 0 computes two and node 1 one; nodes 2 and 3 decode one and two."""
    cache = np.array([1, 10, 100])
    prompts = Prompts(1, 1, np.ones((1, 3, 3), dtype=np.int64), None, True, cache, np.ones((4, 4), dtype=np.int64))
    problem = build_serving(layers=6, node_names=list("abcd"), kind=[0] * 4, rate=[[[1, 1, 1]]], prompts=prompts)
    begin, end = np.array([0, 0, 3, 3]), np.array([2, 3, 4, 6])
    plan = ServingPlan(begin, end, np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert transfers(problem, prompts, plan, (0, 1, 2, 3)) == [(0, 2, 1), (0, 3, 10), (1, 3, 100)]
    now = np.array([[3, 5], [0, 3], [3, 6], [0, 3]])  # the same weights serve for both phases
    assert loaded_layers(now, plan, 3) == 0


@pytest.mark.parametrize("seed", range(24))
def test_rates_alone_against_all_routes(seed: int) -> None:
    problem = random_prefill(seed)
    assert problem.prompts is not None
    problem = replace(problem, steps=None, prompts=replace(problem.prompts, limit=None))
    best, result = best_rate_of_routes(problem), po.solve_serving(problem, time_limit=0.2, workers=1)
    assert result.rate - 5 <= best <= result.bound + 5  # the linear program does not round


@pytest.mark.parametrize("seed", range(100, 124))
def test_bounds_hold_for_all_groups(seed: int) -> None:
    """Bounds are at least the best rate without transfers, and no plan takes longer than the search says."""
    problem = random_prefill(seed)
    assert problem.prompts is not None
    unlimited = replace(problem, prompts=replace(problem.prompts, limit=None))
    result = po.solve_serving(unlimited, time_limit=0.2, workers=1)
    assert best_rate_of_phases(unlimited) <= result.bound + 2 * problem.n_nodes + 2
    if result.plan is not None and result.rate:
        assert result.report is not None
        first = result.report.first_token
        assert first is not None
        assert first <= prompt_time(unlimited, problem.prompts, result.plan) + result.plan.token_time
        for limit in (first, first - 1):
            limited = replace(problem, prompts=replace(problem.prompts, limit=limit))
            assert po.verify_serving(limited, result.plan).feasible == (limit == first)
            again = po.solve_serving(limited, time_limit=0.1, workers=1)
            assert again.report is None or (again.report.first_token or 0) <= limit
            assert again.bound >= result.rate or limit < first


def test_times_of_prompts() -> None:
    """Three layers of 20 bytes: two are read in 0.4 s, and work for a prompt of 3 tokens takes 3 * 2 / 6 = 1 s."""
    layers, hardware = [LayerCosts(20, 1, 1)] * 3, Hardware(100, Fraction(6), Fraction(100), Fraction(0))
    requests = Requests(5, 3, separate=True)
    times = prompt_times(layers, hardware, requests)
    assert times.tolist() == [[SECOND // 2, SECOND, SECOND * 3 // 2]]
    table = with_phases(np.concatenate([interval_steps(layers, hardware, requests), times[None]]), 2)
    assert table.shape == (7, 6, 3)
    assert table[0, 1].tolist() == [4 * TOKEN, 2 * TOKEN, 0]  # from the second layer: no more than two are left
    assert table[1:6, 0, 0].tolist() == [UNLIMITED, 0, 0, 0, 0]
    assert (table[:6, 3] == interval_steps(layers, hardware, Requests(5))[:, 0]).all()
    assert prompt_times(layers, replace(hardware, memory=42), requests)[0].tolist() == [SECOND // 2, 0, 0]


def test_mixed_prefill() -> None:
    """The first token takes as long as any other, and the prompt: 1 GFLOP * 500 / 10 TFLOPS for each of two layers."""
    serving = {**DOCUMENT["serving"], "prefill": "mixed", "flops": "1 GFLOP"}
    problem = po.load_serving({**DOCUMENT, "links": {}, "serving": serving})
    result, plan = solved(problem)
    assert result.report is not None
    assert result.report.first_token == SECOND // 10 + plan.token_time
    limited = po.load_serving({**DOCUMENT, "links": {}, "serving": {**serving, "time_to_first_token": "150 ms"}})
    sooner, quicker = solved(limited)
    assert quicker.token_time <= SECOND // 20
    assert sooner.rate <= result.bound
    assert not po.verify_serving(limited, replace(quicker, groups=plan.groups, period=plan.period)).feasible
    none = {**serving, "time_to_first_token": "100 ms"}
    assert po.solve_serving(po.load_serving({**DOCUMENT, "links": {}, "serving": none}), time_limit=0.2).plan is None


def test_files() -> None:
    problem = po.load_serving({**DOCUMENT, "serving": {**DOCUMENT["serving"], "time_to_first_token": "3 s"}})
    prompts = problem.prompts
    assert prompts is not None
    assert (problem.layers, problem.prefill_layers, problem.runs, prompts.limit) == (4, 2, (2, 2), 3 * SECOND)
    assert prompts.cache is not None
    assert prompts.cache.tolist() == [500 * 10**6] * 2
    assert prompts.transfer is not None
    assert prompts.transfer[0, 1] == 10**10
    assert problem.link[0, 1] == problem.prefill_link[0, 1] == 10**7 * TOKEN
    assert prompts.time[0].tolist() == [[SECOND // 2, SECOND], [SECOND // 2, 0]]
    assert not quick(replace(problem, prompts=replace(prompts, limit=SECOND - 1))).rate[0, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": 0}, "serving.prefill: there is no prompt; expected its tokens as prompt"),
        ({"prompt": 0, "prefill": "mixed", "time_to_first_token": "1 s"}, "first_token: there is no prompt"),
        ({"prompt": 1000}, "expected fewer tokens than context"),
        ({"rates": {"gpu": [3]}}, "measured rates say nothing of prompts; expected devices with computed ones alone"),
        ({"time_to_first_token": "0 s"}, "expected more than 0"),
        ({"time_to_first_tokn": "1 s"}, "did you mean time_to_first_token?"),
        ({"prefill": "separat"}, "separate"),
    ],
)
def test_errors(change: dict[str, object], message: str) -> None:
    with pytest.raises(po.SpecError) as caught:
        po.load_serving({**DOCUMENT, "serving": {**DOCUMENT["serving"], **change}})
    assert message in str(caught.value)


def test_commands(tmp_path: Path) -> None:
    path, plan, after = tmp_path / "p.json", tmp_path / "plan.json", tmp_path / "after.yaml"
    path.write_text(json.dumps(DOCUMENT))
    shown = run("solve", path, "-t", "1s", "--out", plan, "--plot", tmp_path / "layers.png")
    assert shown.code == 0
    assert "2 layers for prefill, and again for decoding," in " ".join(shown.out.split())
    assert "first token" in shown.out
    assert " prefill " in shown.out
    assert " decode " in shown.out
    assert "the first one after" in " ".join(run("verify", path, plan).out.split())
    assert "seconds_to_first_token" in run("verify", path, plan, "--json").out
    assert "steady state" in run("simulate", path, plan).out
    assert "one gpu more" in run("whatif", path, "-t", "0.5s").out
    for to in ("vllm", "petals", "helix", "llama.cpp"):
        assert "prefill is separate" in run("export", path, plan, "--to", to).err
    after.write_text(json.dumps({"devices": {"gpu": {**DOCUMENT["devices"]["gpu"], "count": 2}}}))
    assert "layers to load" in run("replace", path, plan, "--devices", after, "-t", "1s").out
    demanded = {**DOCUMENT, "serving": {**DOCUMENT["serving"], "demand": 10}}
    (tmp_path / "demand.json").write_text(json.dumps(demanded))
    assert "an hour, at least 2.00" in run("solve", tmp_path / "demand.json", "-t", "2s").out


def test_plan_files(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for seed in range(8):
        problem = random_prefill(seed)
        plan = po.solve_serving(problem, time_limit=0.1, workers=1).plan
        if plan is not None and plan.rate:
            po.write_serving_plan(path, problem, plan)
            read = po.read_serving_plan(path, problem)
            assert read.routes == plan.routes
            assert po.verify_serving(problem, read) == po.verify_serving(problem, plan)
    problem, stated = small(), '{"placeopt_plan": 1, "nodes": {"a": {"layers": [0, 1], "from": {}}}}'
    path.write_text(stated)
    with pytest.raises(po.PlanError, match="phase is missing; expected prefill or decode"):
        po.read_serving_plan(path, problem)
    path.write_text(stated.replace('"from": {}', '"phase": "decode"'))
    assert po.read_serving_plan(path, problem).begin.tolist() == [1, 0]
    with pytest.raises(po.PlanError, match="prefill is not separate in the problem"):
        po.read_serving_plan(path, replace(problem, prompts=None))


def test_rates_alone_are_not_simulated() -> None:
    problem = replace(small(), steps=None)
    with pytest.raises(po.UsageError, match="nodes have rates alone, which say nothing of prompts"):
        po.simulate_serving(problem, solved(problem)[1])
