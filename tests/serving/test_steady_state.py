"""The simulated steady state of plans of serving problems."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import placeopt as po
from placeopt.serving.plan import ServingPlan
from placeopt.serving.problem import TOKEN
from tests.support.commandline import run
from tests.support.random_serving import random_serving

ROOT = Path(__file__).parents[2]
PROBLEM = po.build_serving(
    layers=2, node_names=["a", "b", "c"], kind=[0, 0, 1], rate=np.array([[[2, 1]], [[4, 1]]]) * TOKEN
)
PLAN = ServingPlan(
    np.array([0, 0, 1]), np.array([1, 1, 2]), np.array([[-1, 0], [-1, 1], [0, 2], [1, 2], [2, -1]]),
    np.array([2, 2, 2, 2, 4]) * TOKEN,
)  # fmt: skip


def test_two_replicas_before_a_fast_node() -> None:
    """A token takes 0.5 s on a or b and 0.25 s on c, which two tokens reach 0.25 s apart."""
    found = po.simulate_serving(PROBLEM, PLAN, tokens=400)
    assert found.rate == pytest.approx(4 * TOKEN, rel=0.01)
    assert found.waiting <= 1


@pytest.mark.parametrize("seed", range(40))
def test_plans_reach_their_rate(seed: int) -> None:
    problem = random_serving(seed, most_nodes=8, most_layers=8)
    plan = po.solve_serving(problem, time_limit=0.2, workers=1).plan
    if plan is not None and plan.rate:
        found = po.simulate_serving(problem, plan, tokens=4_000)
        assert found.rate == pytest.approx(plan.rate, rel=0.01)
        assert found.waiting < 10


def test_unsound_plans_and_arguments() -> None:
    with pytest.raises(po.UsageError, match=r"the plan cannot be simulated: .* carries"):
        po.simulate_serving(replace(PROBLEM, link=PROBLEM.link // 2**50), PLAN)
    with pytest.raises(po.UsageError, match="it passes no tokens"):
        po.simulate_serving(PROBLEM, replace(PLAN, flow=PLAN.flow * 0))
    with pytest.raises(po.UsageError, match="tokens is 0"):
        po.simulate_serving(PROBLEM, PLAN, tokens=0)


def test_command() -> None:
    folder = ROOT / "problems" / "serving"
    paths = folder / "llama-70b-24.yaml", folder / "plans" / "llama-70b-24.json"
    assert "steady state: 2,110.32 tokens/s, 100.0% of the plan" in run("simulate", *paths).out
    assert json.loads(run("simulate", *paths, "--json").out)["tokens_per_second"] == pytest.approx(2_110, rel=1e-3)
    assert "--noise does not apply to serving problems" in run("simulate", *paths, "--noise", "0.1").err
