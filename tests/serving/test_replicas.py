"""Several complete copies of the model: plans, bounds, rules, files and commands."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.serving.chains import best_chain
from placeopt.serving.flow import best_flow
from placeopt.serving.in_flight import sustained
from placeopt.serving.plan import Replicas, total_rate
from placeopt.serving.problem import SECOND, TOKEN, Serving, Steps, build_serving
from placeopt.serving.request_bounds import ALL, TimeBounds
from placeopt.serving.result import ReplicatedResult
from placeopt.serving.sites import one_site
from tests.support.brute_force_serving import best_rate_of_replicas
from tests.support.commandline import run
from tests.support.random_serving import random_requests

DOCUMENT: dict[str, Any] = {
    "placeopt": 1, "name": "fleet",
    "devices": {"big": {"memory": "40 GB", "memory_bandwidth": "1000 GB/s", "speed": "100 TFLOPS", "count": 2},
                "small": {"memory": "12 GB", "memory_bandwidth": "100 GB/s", "speed": "10 TFLOPS", "count": 4}},
    "links": {"default": {"bandwidth": "1 GB/s"}},
    "serving": {"layers": 8, "weights": "4 GB", "cache": "100 kB", "flops": "4 GFLOP", "activation": "8 KB",
                "context": 1000, "replicas": 3},
}  # fmt: skip


def after(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


def two_nodes(replicas: int) -> Serving:
    """A step of a takes 1 s for up to 4 requests, one of b takes 10 s for up to 10; each holds both layers."""
    table = np.array([[[1, 1]], [[1, 1]]])
    room, fixed = np.array([[[4, 4]], [[10, 10]]]), np.array([[[SECOND] * 2], [[10 * SECOND] * 2]])
    steps = Steps(room, fixed, 0 * table, 0 * table, 0 * table, *(np.zeros((2, 2), dtype=np.int64) for _ in range(1)),
                  *np.zeros((2, 2), dtype=np.int64))  # fmt: skip
    return build_serving(
        layers=2, node_names=["a", "b"], kind=[0, 1], rate=np.array([[[4, 4]], [[1, 1]]]) * TOKEN, steps=steps,
        replicas=replicas,
    )  # fmt: skip


def test_unlike_nodes_have_replicas_of_their_own() -> None:
    """Together, both take part in steps of 10 s or leave b idle: 4 tokens/s. Alone, b adds a token a second."""
    result = po.replicated_serving(two_nodes(2), time_limit=2)
    assert result.rate == 5 * TOKEN
    assert repr(result) == "<ReplicatedResult of a serving problem: 5.00 tokens/s, at most 5.00 tokens/s, gap 0.00%>"
    assert [each.nodes.tolist() for each in result.replicas] == [[0], [1]]
    assert result.bound == pytest.approx(result.rate, rel=1e-3)
    assert po.replicated_serving(two_nodes(1), time_limit=1).rate == 4 * TOKEN


@pytest.mark.parametrize("seed", range(40))
def test_no_replicas_pass_more_than_the_bound(seed: int) -> None:
    problem = random_requests(seed)
    problem = replace(problem, replicas=min(1 + seed % 3, problem.n_nodes))
    bound, _, prices = TimeBounds(problem.with_merged_kinds()).of_replicas(
        problem.replicas, after(1.0 if seed < 10 else 0.2)
    )
    # The reference does not round rates down to those of nodes and links.
    assert best_rate_of_replicas(problem) <= bound + 2 * problem.n_nodes + 2
    assert (prices >= 0).all()
    if seed < 10:
        result = po.replicated_serving(problem, time_limit=0.2, workers=1)
        assert po.verify_replicas(problem, result.replicas).feasible
        assert result.rate == total_rate(result.replicas) <= result.bound


@pytest.mark.parametrize("devices", [{"t4": 12}, {"a100-40gb": 6, "t4": 8}])
def test_a_replica_needs_nodes_for_all_layers(devices: dict[str, int]) -> None:
    """Twelve T4 hold the model once, and eight not at all: they are no part of a larger number of replicas."""
    serving = {"layers": 80, "weights": "1712 MB", "cache": "4 KiB", "flops": "1712 MFLOP", "activation": "16 KiB"}
    given = {name: {"like": name, "count": count} for name, count in devices.items()}
    problem = po.load_serving({"placeopt": 1, "devices": given, "serving": {**serving, "replicas": 4}})
    bounds = TimeBounds(problem)
    bound, by, prices = bounds.of_replicas(4, after(60.0))  # it ends by itself, in about 4 s
    assert by == "divisions"
    assert bound <= float(prices @ problem.counts) * (1 + 1e-6)
    one, least = 0, bounds.shortest()
    while (found := bounds.bound(least, 1.1 * least, ALL, 0, 1e-4)).bound > one or least < 1e12:
        one, least = max(one, found.bound), 1.1 * least
    assert bound < 1.05 * one
    result = po.replicated_serving(problem, time_limit=2)
    assert 0.7 * bound < result.rate <= result.bound


def test_a_chain_of_equal_nodes_is_no_worse_than_equal_parts() -> None:
    problem = po.load_serving(DOCUMENT).part([2, 3, 4, 5])
    found = best_chain(problem, np.arange(4), one_site(problem))
    assert found is not None
    cuts = np.arange(5) * 2
    equal = sustained(problem, best_flow(problem, cuts[:-1], cuts[1:]))
    assert sustained(problem, best_flow(problem, *found[1:])).rate >= equal.rate > 0


def test_a_chain_without_enough_memory() -> None:
    problem = po.load_serving(DOCUMENT)
    assert best_chain(problem, np.array([2, 3]), one_site(problem)) is None


@pytest.fixture(scope="module")
def solved() -> tuple[Serving, Replicas]:
    problem = po.load_serving(DOCUMENT)
    result = po.replicated_serving(problem, time_limit=2)
    assert len(result.replicas) > 1
    return problem, result.replicas


def test_rules(solved: tuple[Serving, Replicas]) -> None:
    problem, replicas = solved
    rules = {rule for rule, _ in po.verify_replicas(replace(problem, replicas=1), replicas).violations}
    assert rules == {"replica"}
    twice = po.verify_replicas(problem, (*replicas[:-1], replicas[0]))
    assert ("replica", f"{problem.node_names[int(replicas[0].nodes[0])]} is in two replicas, or twice in one") in (
        twice.violations
    )
    first = replicas[0]
    faster = first._replace(plan=replace(first.plan, flow=first.plan.flow * 2))
    broken = po.verify_replicas(problem, (faster, *replicas[1:]))
    assert not broken.feasible
    assert all(message.startswith("replica 0: ") for _, message in broken.violations)
    slower = replicas[1]._replace(plan=replace(replicas[1].plan, period=replicas[1].plan.period * 2))
    assert any("replica 1: " in message for _, message in po.verify_replicas(problem, (first, slower)).violations)
    assert po.verify_replicas(problem, ()).rate == 0


def test_plan_files(solved: tuple[Serving, Replicas], tmp_path: Path) -> None:
    problem, replicas = solved
    path = tmp_path / "plan.json"
    po.write_replicas(path, problem, replicas)
    read = po.read_replicas(path, problem)
    assert [each.nodes.tolist() for each in read] == [each.nodes.tolist() for each in replicas]
    assert po.verify_replicas(problem, read).rate == total_rate(replicas)
    with pytest.raises(po.PlanError, match="expected the plan of one, without this key"):
        po.read_serving_plan(path, problem)
    document = json.loads(path.read_text())
    moved = document["replicas"][0]["nodes"].popitem()
    document["replicas"][1]["nodes"][moved[0]] = moved[1]
    path.write_text(json.dumps(document))
    with pytest.raises(po.PlanError, match="expected nodes of this replica"):
        po.read_replicas(path, problem)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": {}}, "expected it in each of the replicas"),
        ({"groups": 1}, "expected it in each of the replicas"),
        ({"tokens_per_second": 1e6}, "tokens/s; expected the same"),
        ({"replicas": [{"groups": 1, "period": 1}]}, "a replica without nodes"),
    ],
)
def test_plan_files_that_contradict_themselves(
    change: dict[str, object], message: str, solved: tuple[Serving, Replicas], tmp_path: Path
) -> None:
    problem, replicas = solved
    path = tmp_path / "plan.json"
    po.write_replicas(path, problem, replicas)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(po.PlanError, match=message):
        po.read_replicas(path, problem)


def test_a_limit_of_requests_is_part_of_the_bound() -> None:
    """With one request in each replica, no replica passes more than one of the big nodes for this request."""
    document = {**DOCUMENT, "serving": {**DOCUMENT["serving"], "requests": 1}}
    problem = po.load_serving(document)
    one = po.solve_serving(problem.part([0]), time_limit=1)
    assert po.replicated_serving(problem, time_limit=1).bound < 1.15 * 3 * one.bound


@pytest.mark.parametrize(
    ("serving", "message"),
    [
        ({"rates": {"big": [100, 50]}}, "expected 1 with rates"),
        ({"demand": 10}, "expected 1 with demand"),
        ({"prompt": 10, "prefill": "separate"}, "expected 1 where prefill is separate"),
        ({"replicas": 0}, "replicas"),
    ],
)
def test_files_that_allow_no_replicas(serving: dict[str, object], message: str) -> None:
    with pytest.raises(po.SpecError, match=message):
        po.load_serving({**DOCUMENT, "serving": {**DOCUMENT["serving"], **serving}})


def test_changes_of_replicas() -> None:
    """Without b, the other replica is left; a further b joins the first one, if the search finds that."""
    problem = two_nodes(2)
    found = {each.change: each for each in po.whatif_serving(problem, time_limit=2, gap_limit=0.01, workers=1)}
    rates = {change: each.result.rate for change, each in found.items()}
    assert rates.pop(f"one {problem.kind_names[1]} more") in (5 * TOKEN, 6 * TOKEN)
    assert rates == {
        "none": 5 * TOKEN, f"one {problem.kind_names[0]} less": TOKEN, f"one {problem.kind_names[1]} less": 4 * TOKEN,
        f"one {problem.kind_names[0]} more": 8 * TOKEN,
    }  # fmt: skip
    for each in found.values():
        assert isinstance(each.result, ReplicatedResult)
        assert len(each.result.replicas) <= 2
        assert each.least is not None
        assert each.most is not None
        assert each.least <= each.result.rate / (5 * TOKEN) - 1 <= each.most


def test_a_search_begins_with_known_replicas() -> None:
    problem = two_nodes(2)
    known = po.replicated_serving(problem, time_limit=1).replicas
    assert po.replicated_serving(problem, time_limit=0.001, start=known).rate == 5 * TOKEN
    broken = (known[0]._replace(nodes=known[1].nodes), known[1])
    assert po.replicated_serving(problem, time_limit=1, start=broken).rate == 5 * TOKEN


def test_replicas_without_lost_nodes_stay() -> None:
    devices = {**DOCUMENT["devices"], "small": {**DOCUMENT["devices"]["small"], "count": 6}}
    problem = po.load_serving({**DOCUMENT, "devices": devices})
    replicas = po.replicated_serving(problem, time_limit=2, workers=1).replicas
    assert len(replicas) > 1
    lost = int(replicas[-1].nodes[0])
    left = replace(problem.part(np.delete(np.arange(problem.n_nodes), lost)), replicas=problem.replicas)
    found, result = po.replace_serving(left, problem, replicas, time_limit=2, workers=1)
    assert found[0].loaded == 0
    assert found[0].rate == total_rate(replicas[:-1])
    assert [each.loaded for each in found] == sorted(each.loaded for each in found)
    assert found[0].rate < found[-1].rate
    assert found[-1].rate >= result.rate
    for each in found:
        report = po.verify_replicas(left, each.replicas)
        assert report.feasible
        assert report.rate == each.rate <= result.bound
    with pytest.raises(po.UsageError, match=r"there are \d+ replicas; expected one"):
        _ = found[-1].plan


def test_functions_for_one_replica() -> None:
    with pytest.raises(po.UsageError, match="allows 3 replicas"):
        po.solve_serving(po.load_serving(DOCUMENT), time_limit=1)
    measured = build_serving(layers=1, node_names=["a"], kind=[0], rate=[[[TOKEN]]])
    with pytest.raises(po.UsageError, match="all rates are measured"):
        po.replicated_serving(measured, time_limit=1)


def test_commands(tmp_path: Path) -> None:
    path, plan, picture = tmp_path / "fleet.json", tmp_path / "plan.json", tmp_path / "layers.svg"
    path.write_text(json.dumps(DOCUMENT))
    out = run("solve", path, "--time-limit", "2s", "--out", plan, "--plot", picture).out
    assert "replicas" in out
    assert "of nodes, gap" in out
    assert picture.exists()
    assert "replicas" in run("verify", path, plan).out
    assert "100.0% of the plan" in run("simulate", path, plan).out
    assert run("export", path, plan, "--to", "petals").out.count("run_server") == 6
    refused = run("export", path, plan, "--to", "helix")
    assert refused.code == 2
    assert "a solution has one replica" in refused.err
    assert "one " in run("whatif", path, "--time-limit", "300ms").out
    after = tmp_path / "after.json"
    after.write_text(
        json.dumps({"devices": {**DOCUMENT["devices"], "small": {**DOCUMENT["devices"]["small"], "count": 3}}})
    )
    new = tmp_path / "new.json"
    assert "layers to load" in run("replace", path, plan, "--devices", after, "--time-limit", "2s", "--out", new).out
    assert json.loads(new.read_text())["replicas"]
    stated = json.loads(run("solve", path, "--time-limit", "1s", "--json").out)
    assert len(stated["plan"]["replicas"]) > 1
