"""Nodes that share the requests in flight: groups of requests, their plans, bounds and rules."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.serving.bounds import InFlight
from placeopt.serving.in_flight import best_groups, best_rates, best_rates_of_groups, grouped, step_requests
from placeopt.serving.plan import ServingPlan
from placeopt.serving.problem import SECOND, TOKEN, Serving, Steps, build_serving
from placeopt.serving.request_bounds import ALL, TimeBounds
from tests.support.brute_force_serving import best_rate_of_groups
from tests.support.commandline import run
from tests.support.random_serving import random_requests

DOCUMENT: dict[str, Any] = {
    "placeopt": 1, "devices": {"gpu": {"memory": "10 GB", "memory_bandwidth": "100 GB/s", "speed": "10 TFLOPS",
                                       "count": 2}},
    "links": {"default": {"bandwidth": "10 GB/s", "latency": "5 ms"}},
    "serving": {"layers": 2, "weights": "5 GB", "cache": "1 MB", "flops": "1 GFLOP", "activation": "1 KB",
                "context": 1000},
}  # fmt: skip


def chain_of_two(**limits: int) -> Serving:
    """Two nodes that hold one layer each; a step takes 1 s and 0.1 s more for each request, and there is room for 8."""
    table = np.array([[[1, 0]]])
    steps = Steps(
        8 * table, SECOND * table, SECOND // 10 * table, 0 * table, 0 * table,
        np.zeros((2, 2), dtype=np.int64), *np.zeros((2, 2), dtype=np.int64), **limits,
    )  # fmt: skip
    return build_serving(layers=2, node_names=["a", "b"], kind=[0, 0], rate=4 * TOKEN * table, steps=steps)


def test_a_chain_of_two_nodes() -> None:
    """Two groups of 4: a step takes 1.4 s, so that 4 requests get a token every 1.4 s. A node alone: 8 every 1.8 s."""
    problem = chain_of_two()
    result = po.solve_serving(problem, time_limit=60, gap_limit=5e-4)
    assert result.plan is not None
    assert result.plan.groups == 2
    assert result.plan.requests == 8
    assert result.rate == pytest.approx(4 * TOKEN / 1.4, rel=1e-6)
    assert result.bound == pytest.approx(result.rate, rel=1e-3)
    state = po.simulate_serving(problem, result.plan)
    assert state.rate == pytest.approx(result.rate, rel=1e-3)


def test_one_request_at_a_time() -> None:
    result = po.solve_serving(chain_of_two(requests=1), time_limit=60, gap_limit=5e-4)
    assert result.rate == pytest.approx(TOKEN / 2.2, rel=1e-6)
    assert result.bound == pytest.approx(result.rate, rel=1e-3)


def test_a_limit_of_the_time_between_tokens() -> None:
    """In 2.4 s, two groups of 2 pass: steps of 1.2 s."""
    result = po.solve_serving(chain_of_two(token_time=SECOND * 12 // 5), time_limit=2)
    assert result.plan is not None
    assert result.plan.token_time <= SECOND * 12 // 5
    assert result.rate == pytest.approx(2 * TOKEN / 1.2, rel=1e-6)
    none = po.solve_serving(chain_of_two(token_time=SECOND * 2), time_limit=2)
    assert none.plan is None
    assert none.bound == 0


@pytest.mark.parametrize("seed", range(24))
def test_bounds_hold_for_all_plans(seed: int) -> None:
    problem = random_requests(seed, most_nodes=2 + seed % 2, most_layers=3)
    best = best_rate_of_groups(problem)
    result = po.solve_serving(problem, time_limit=0.3, workers=1)
    assert result.rate <= result.bound
    assert best <= result.bound + 2 * problem.n_nodes  # rates are rounded down
    if problem.link.min() == problem.link.max():  # groups that are alike are the best ones
        assert result.rate <= best + 1 or problem.steps is None or problem.steps.requests is not None


@pytest.mark.parametrize("seed", range(300, 306))
def test_small_problems_are_solved(seed: int) -> None:
    problem = random_requests(seed, most_nodes=2, most_layers=3, links=False)
    result = po.solve_serving(problem, time_limit=1.5, workers=1)
    assert result.rate >= 0.98 * best_rate_of_groups(problem)


@pytest.mark.parametrize("seed", range(20))
def test_simulated_groups_reach_the_rate(seed: int) -> None:
    problem = random_requests(seed + 500, most_nodes=5, most_layers=6)
    plan = po.solve_serving(problem, time_limit=0.2, workers=1).plan
    if plan is not None and plan.rate:
        # Groups of one or two requests, in unequal shares of nodes, cannot all be as large as on average.
        assert po.simulate_serving(problem, plan, tokens=4_000).rate >= 0.9 * plan.rate


@pytest.mark.parametrize("seed", range(30))
def test_no_plan_passes_more_than_the_bound_of_its_times(seed: int) -> None:
    """Plans of random intervals are within the bound of the times and groups that they have."""
    problem, rng = random_requests(seed + 900, most_nodes=5, most_layers=6), np.random.default_rng(seed)
    bounds = TimeBounds(problem)
    for _ in range(10):
        begin = rng.integers(0, problem.layers, problem.n_nodes)
        end = np.minimum(begin + rng.integers(0, problem.most + 1, problem.n_nodes), problem.layers)
        plan = best_groups(problem, begin, end)
        if plan.rate:
            assert po.verify_serving(problem, plan).feasible
            for low, high, groups in ((0.9, 1.1, ALL), (1, 1, (plan.groups, plan.groups)), (0.5, np.inf, ALL)):
                found = bounds.bound(plan.token_time * low, plan.token_time * high, groups, 0, 1e-3)
                assert plan.rate <= found.bound
                assert plan.rate <= bounds.by_patterns(found, 0, 1e-3, lambda: False).bound


@pytest.mark.parametrize("seed", range(20))
def test_rates_that_are_worth_their_requests(seed: int) -> None:
    """The best rates are better than 2,000 others."""
    rng = np.random.default_rng(seed)
    a, b, c, d = (rng.uniform(0, 2, 1) * SECOND * (rng.random() < 0.8) for _ in range(4))
    a = a + c
    limit, worth, period = rng.uniform(0.1, 0.4) * TOKEN, np.array([rng.uniform(0.1, 6) * SECOND]), SECOND * 1.5
    flows, per = np.linspace(0, limit, 2_000), TOKEN * SECOND
    for best, taken in (
        (best_rates((a, b, c, d), np.array([limit]), worth), lambda flow: step_requests((a, b, c, d), flow)),
        (
            best_rates_of_groups((a, b, c, d), np.array([limit]), worth, period),
            lambda flow: np.maximum(a + b * flow * period / per, c + d * flow * period / per) * flow / per,
        ),
    ):
        values = worth * flows / per - taken(flows)
        assert worth * best / per - taken(best) >= np.nanmax(values) - 1e-6


def test_requests_of_patterns_are_those_of_steps() -> None:
    one = np.array([[SECOND]])
    times = one, one // 10, one * 0, one * 0
    in_flight = InFlight(times, np.array([SECOND / 2]), np.inf, 100.0, 1.0)
    # At 2 tokens/s, steps for b = 2 (1 + b / 10) requests: 2.5, and 1 on the link.
    assert in_flight.taken(0, np.array([[2.0 * TOKEN]]))[0, 0] == pytest.approx(3.5)
    assert in_flight.number(TOKEN) == 100


def changed(plan: ServingPlan, **values: int) -> ServingPlan:
    """A plan with other groups."""
    return replace(plan, **values)


def test_rules_of_groups() -> None:
    problem = chain_of_two()
    plan = po.solve_serving(problem, time_limit=0.5).plan
    assert plan is not None
    messages = {
        "a needs": changed(plan, period=plan.period // 2, groups=4),
        "keeps the tokens of": changed(plan, period=plan.period * 2),
        "a token needs": changed(plan, groups=1),
        "expected at least one group": changed(plan, groups=0),
    }
    for message, wrong in messages.items():
        report = po.verify_serving(problem, wrong)
        assert any(rule == "requests" and message in text for rule, text in report.violations), report
    limited = replace(problem, steps=replace(problem.steps, requests=7, token_time=SECOND, batch=3))
    text = str(po.verify_serving(limited, plan).violations)
    assert "8 requests are in flight; allowed are 7" in text
    assert "allowed are 1 s" in text
    assert "4 requests in a step; allowed are 3" in text


@pytest.mark.parametrize("period", [0, -1, float("nan"), 0.5])
def test_a_period_is_a_whole_number_of_at_least_one(period: float) -> None:
    problem = chain_of_two()
    plan = po.solve_serving(problem, time_limit=1).plan
    assert plan is not None
    wrong = replace(plan, period=period)  # type: ignore[arg-type]
    if isinstance(period, int):
        assert not po.verify_serving(problem, wrong).feasible
    else:
        with pytest.raises(po.UsageError, match="period"):
            po.verify_serving(problem, wrong)


@pytest.mark.parametrize("prefill", ["mixed", "separate"])
def test_no_node_holds_layers_whose_prompt_takes_too_long(prefill: str) -> None:
    """60,000 tokens of a prompt take 1,200 s on both layers, and 600 s on one, which a time in ps can state."""
    serving = {**DOCUMENT["serving"], "context": 60_300, "prompt": 60_000, "prefill": prefill, "weights": "1 GB",
               "cache": "1 kB", "flops": "100 GFLOP"}  # fmt: skip
    problem = po.load_serving({**DOCUMENT, "serving": serving})
    holds = problem.rate[0, 0] > 0
    assert holds.tolist() == [True, False][: len(holds)]


def test_many_fast_nodes_together_pass_more_than_one_may() -> None:
    problem = po.load_serving({
        "placeopt": 1, "devices": {"d": {"count": 3}}, "links": {"default": {"bandwidth": "1 GB/s"}},
        "serving": {"layers": 1, "activation": "8 B", "rates": {"d": [4e8]}},
    })  # fmt: skip
    result = po.solve_serving(problem, time_limit=1)
    assert result.rate == result.bound == 3 * 4 * 10**8 * TOKEN


def test_files_state_times_and_limits() -> None:
    serving = {**DOCUMENT["serving"], "requests": 2, "time_per_token": "1 s", "batch": 2,
               "coordinator": {"bandwidth": "1 GB/s", "latency": "1 ms"}}  # fmt: skip
    problem = po.load_serving({**DOCUMENT, "serving": serving})
    steps = problem.steps
    assert steps is not None
    assert (steps.requests, steps.token_time, steps.batch) == (2, SECOND, 2)
    assert steps.delay[0, 1] == SECOND // 200
    assert steps.entry_delay[0] == steps.exit_delay[1] == SECOND // 1000
    assert steps.room[0, 0].tolist() == [5]  # 5 GB next to the weights, 1 GB for each request
    assert steps.reading[0, 0, 0] == SECOND // 20


def test_plan_files_keep_groups(tmp_path: Path) -> None:
    problem = po.load_serving(DOCUMENT)
    plan = po.solve_serving(problem, time_limit=0.5).plan
    assert plan is not None
    po.write_serving_plan(tmp_path / "plan.json", problem, plan)
    read = po.read_serving_plan(tmp_path / "plan.json", problem)
    assert (read.groups, read.period) == (plan.groups, plan.period)
    assert po.verify_serving(problem, read).feasible
    (tmp_path / "plan.json").write_text((tmp_path / "plan.json").read_text().replace('"period"', '"perod"'))
    with pytest.raises(po.PlanError, match="did you mean period"):
        po.read_serving_plan(tmp_path / "plan.json", problem)


def test_commands_show_requests(tmp_path: Path) -> None:
    path, plan = tmp_path / "two.json", tmp_path / "plan.json"
    path.write_text(json.dumps(DOCUMENT))
    out = run("solve", path, "--time-limit", "1s", "--out", plan).out
    assert "in flight" in out
    assert "requests a step" in out
    assert "in flight" in run("verify", path, plan).out
    assert "steady state" in run("simulate", path, plan).out
    assert json.loads(run("solve", path, "--time-limit", "1s", "--json").out)["requests"] > 0


def test_layers_without_room() -> None:
    devices = {"gpu": {**DOCUMENT["devices"]["gpu"], "memory": "5 GB"}}
    with pytest.raises(po.SpecError, match="its weights and one request need"):
        po.load_serving({**DOCUMENT, "devices": devices})


def test_measured_devices_hold_all_requests() -> None:
    """A device with measured rates takes no time and no memory for requests."""
    serving = {**DOCUMENT["serving"], "rates": {"fast": [100, 50]}}
    devices = {**DOCUMENT["devices"], "fast": {}}
    problem = po.load_serving({**DOCUMENT, "devices": devices, "serving": serving})
    for groups in (1, 2):
        plan = grouped(problem, np.array([0, 0, 0]), np.array([0, 0, 2]), groups, SECOND)
        assert plan.rate == pytest.approx(50 * TOKEN, rel=1e-6)
        assert po.verify_serving(problem, plan).feasible
    result = po.solve_serving(problem, time_limit=1)
    assert result.rate >= 50 * TOKEN
    assert result.report is not None
    assert result.report.feasible


def test_changes_and_offers() -> None:
    document = {**DOCUMENT, "devices": {"gpu": {**DOCUMENT["devices"]["gpu"], "price": 1, "count": 6}}}
    problem = po.load_serving(document)
    whole = po.solve_serving(problem, time_limit=1)
    asked = whole.rate // 3
    found = po.cheapest_serving(problem, asked, time_limit=3)
    assert found.price is not None
    assert found.bound <= found.price
    assert found.result.rate >= asked
    assert Fraction(found.price, 10**6) <= 6
    assert whole.plan is not None
    lost = problem.part(np.arange(5))
    plans, _ = po.replace_serving(lost, problem, whole.plan, time_limit=2)
    assert plans
    assert all(po.verify_serving(lost, each.plan).feasible for each in plans)
