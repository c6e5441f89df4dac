"""Changed clusters: gains, and plans that load few layers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import placeopt as po
from placeopt.serving.changes import loaded_layers
from placeopt.serving.plan import ServingPlan
from tests.support.brute_force_serving import best_rate
from tests.support.commandline import run
from tests.support.random_serving import random_serving

FILE = """
placeopt: 1
name: small
devices:
  fast: {count: 2}
  slow: {count: 3}
links: {default: {bandwidth: 1 Gbps}}
serving: {layers: 6, activation: 16 KiB, rates: {fast: [100, 60, 30], slow: [50, 20]}}
"""


@pytest.mark.parametrize("seed", range(40, 52))
def test_gains_contain_those_of_the_best_plans(seed: int) -> None:
    problem = random_serving(seed, most_nodes=3, most_layers=4)
    before = best_rate(problem)
    found = po.whatif_serving(problem, time_limit=1, workers=1)
    assert found[0].change == "none"
    assert any(each.change.endswith("more") for each in found)
    for each in found:
        after = best_rate(each.result.problem)
        if before:
            assert each.least is not None
            assert each.least <= after / before - 1 + 1e-9
        if each.most is not None:
            assert after / before - 1 <= each.most + 1e-9


def test_one_node_more_is_like_its_kind() -> None:
    problem = po.build_serving(
        layers=2, node_names=["a", "b", "a+1"], kind=[0, 1, 0], rate=[[[5, 3]], [[9, 1]]],
        link=[[0, 7, 4], [6, 0, 8], [4, 8, 0]],
    )  # fmt: skip
    changed = {each.change: each.result.problem for each in po.whatif_serving(problem, time_limit=0.2)}
    more = changed["one kind0 more"]
    assert more.node_names == ("a", "b", "a+1", "a+2")
    assert more.kind.tolist() == [0, 1, 0, 0]
    assert more.link[3].tolist() == [7, 7, 4, 0]
    assert more.link[:, 3].tolist() == [7, 6, 4, 0]
    assert changed["one kind1 less"].node_names == ("a", "a+1")
    faster = changed["links 2 times as fast"]
    assert faster.link[0].tolist() == [0, 14, 8]


@pytest.mark.parametrize("seed", range(30))
def test_plans_after_a_change_are_sound_and_ordered(seed: int) -> None:
    before = random_serving(seed)
    plan = po.solve_serving(before, time_limit=0.3, workers=1).plan
    if plan is None or before.n_nodes == 1:
        return
    kept = np.arange(1, before.n_nodes)
    problem = before.part(kept)
    found, result = po.replace_serving(problem, before, plan, time_limit=0.6, workers=1)
    now = np.stack([plan.begin, plan.end], axis=1)[kept]
    for each in found:
        report = po.verify_serving(problem, each.plan)
        assert report.feasible
        assert report.rate == each.plan.rate <= result.bound
        assert each.loaded == loaded_layers(now, each.plan)
    assert [each.loaded for each in found] == sorted({each.loaded for each in found})
    assert [each.plan.rate for each in found] == sorted({each.plan.rate for each in found})
    assert max((each.plan.rate for each in found), default=0) >= result.rate


def test_a_solved_plan_goes_to_the_nodes_that_hold_its_layers() -> None:
    """Of four nodes alike, the first is lost: the others hold the layers of the best plan already, in another order."""
    before = po.build_serving(layers=3, node_names=list("abcd"), kind=[0] * 4, rate=[[[9]]])
    edges = np.array([[-1, 3], [3, 2], [2, 1], [1, -1]])
    held = ServingPlan(np.array([0, 2, 1, 0]), np.array([1, 3, 2, 1]), edges, np.full(4, 9))
    assert po.verify_serving(before, held).feasible
    found, result = po.replace_serving(before.part(np.array([1, 2, 3])), before, held, time_limit=2)
    assert [(each.loaded, each.plan.rate) for each in found] == [(0, 9)]
    assert result.bound == 9


def test_a_node_that_holds_less_now_begins_without_layers() -> None:
    before = po.build_serving(layers=3, node_names=list("ab"), kind=[0, 1], rate=[[[9, 9, 9]], [[9, 9, 0]]])
    held = ServingPlan(np.array([0, 0]), np.array([3, 0]), np.array([[-1, 0], [0, -1]]), np.full(2, 9))
    changed = po.build_serving(layers=3, node_names=list("ab"), kind=[0, 1], rate=[[[9, 0]], [[9, 9]]])
    found, _ = po.replace_serving(changed, before, held, time_limit=1)
    assert [(each.loaded, each.rate) for each in found] == [(2, 9)]


def test_commands(tmp_path: Path) -> None:
    problem, plan, after = tmp_path / "p.yaml", tmp_path / "plan.json", tmp_path / "after.yaml"
    problem.write_text(FILE)
    after.write_text("devices: {fast: {count: 1}, slow: {count: 3}}")
    assert run("solve", problem, "-t", "2s", "--out", plan).code == 0
    gains = run("whatif", problem, "-t", "1s")
    assert gains.code == 0
    assert "one fast more" in gains.out
    data = json.loads(run("whatif", problem, "-t", "1s", "--json").out)
    assert data[0]["change"] == "none"
    new = tmp_path / "new.json"
    replaced = run("replace", problem, plan, "--devices", after, "-t", "2s", "--out", new)
    assert replaced.code == 0
    assert "layers to load" in replaced.out
    assert json.loads(new.read_text())["nodes"].keys() <= {"fast0", "slow0", "slow1", "slow2"}
    assert run("replace", problem, plan, "--devices", plan).code == 2
    after.write_text("devices: {slow: {count: 3}}")  # the rates of the lost kind remain in the problem file
    assert "layers to load" in run("replace", problem, plan, "--devices", after, "-t", "2s").out
    assert "does not apply to serving problems" in run("whatif", problem, "-c", "devices").err
    after.write_text("devices: {slow: {count: 1}}")
    none = run("replace", problem, plan, "--devices", after, "-t", "1s")
    assert none.code == 1
    assert "the nodes hold at most" in none.out
    wrong = run("replace", problem, plan, "--devices", "l4:2")
    assert wrong.err == (
        "placeopt: --devices l4:2: nodes of the same name keep their layers, so that serving problems need a file with "
        "devices\n"
    )
    missed = run("solve", problem, "-t", "1s", "--require-gap", "0")
    assert missed.code == ("the gap is not at most 0.00%" in missed.err)
    assert "--bandwidth-factor does not apply" in run("whatif", problem, "--bandwidth-factor", "10").err
