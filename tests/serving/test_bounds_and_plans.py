"""Plans and bounds of serving problems, against all intervals with a largest flow, and on known clusters."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt import engine
from placeopt.serving.blocks import BlockPlanner
from placeopt.serving.bounds import PatternBound, find_groups, kind_groups, layer_classes, rate_without_crossing
from placeopt.serving.covers import NEVER, CountedCover, Cover, Way
from placeopt.serving.exact import STEPS, solve_exactly
from placeopt.serving.flow import best_flow
from placeopt.serving.plan import without_idle
from placeopt.serving.problem import TOKEN, UNLIMITED, Serving, build_serving
from placeopt.serving.sites import find_sites
from placeopt.serving.stages import StagePlanner, exact_numbers, least_numbers
from placeopt.serving.views import result_facts
from tests.support.brute_force_serving import best_rate, coverage, largest_flow
from tests.support.random_serving import random_serving


def published(name: str) -> Serving:
    """A cluster whose rates Helix published with its MILP (Mei et al., ASPLOS 2025, artifact)."""
    folder = os.environ.get("PLACEOPT_DATA")
    path = Path(folder or "", "serving", f"{name}.json")
    if folder is None or not path.exists():
        pytest.skip("PLACEOPT_DATA does not name a folder with serving/")
    return cluster(json.loads(path.read_text()))


def cluster(data: dict[str, Any]) -> Serving:
    """The problem of a published cluster."""
    kinds = sorted(data["rates_tokens_per_s"])
    rate = np.zeros((len(kinds), 1, max(len(rates) for rates in data["rates_tokens_per_s"].values())), dtype=np.int64)
    for t, kind in enumerate(kinds):
        for count, tokens in data["rates_tokens_per_s"][kind].items():
            rate[t, 0, int(count) - 1] = int(tokens * TOKEN)
    links, v = data["link_tokens_per_s"], len(data["nodes"])
    link = np.full((v, v), int(links["default"] * TOKEN))
    for a, b, tokens in links["others"]:
        link[a, b] = link[b, a] = int(tokens * TOKEN)
    return build_serving(
        layers=data["layers"], node_names=[f"n{k}" for k in range(v)], kind=[kinds.index(k) for k in data["nodes"]],
        rate=rate, kind_names=kinds, link=link, name=data["name"],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_plans_and_bounds_agree_with_all_intervals(seed: int) -> None:
    problem = random_serving(seed, most_nodes=4, most_layers=5)
    best = best_rate(problem)
    result = po.solve_serving(problem, time_limit=0.5, workers=1)
    assert result.rate <= best <= result.bound
    if result.plan is not None:
        assert result.report is not None
        assert result.report.feasible
        assert result.report.largest


@pytest.mark.parametrize("seed", range(200))
def test_the_largest_flow_is_that_of_the_reference(seed: int) -> None:
    problem = random_serving(seed)
    rng = np.random.default_rng(seed)
    begin = rng.integers(0, problem.layers, problem.n_nodes)
    end = np.minimum(begin + rng.integers(0, problem.most + 1, problem.n_nodes), problem.layers)
    plan = best_flow(problem, begin, end)
    kept = tuple(zip(plan.begin.tolist(), plan.end.tolist(), strict=True))
    expected = largest_flow(problem, kept)
    assert plan.rate == expected <= coverage(problem, kept)
    report = po.verify_serving(problem, plan)
    assert report.feasible
    assert report.largest
    if (problem.link == UNLIMITED).all() and (problem.entry == UNLIMITED).all() and problem.partial:
        assert expected == coverage(problem, kept)


@pytest.mark.parametrize("seed", range(60, 90))
def test_the_model_of_all_plans_finds_the_best_one(seed: int) -> None:
    problem = random_serving(seed, most_nodes=4, most_layers=5)
    best, upper = best_rate(problem), 400 * TOKEN
    intervals, bound = solve_exactly(problem, upper, None, 60, 0, 1, lambda: False)
    assert intervals is not None
    unit, v = upper // STEPS + 1, problem.n_nodes
    assert best <= bound <= best + v * (v + 2) * unit  # each capacity is rounded up by less than a unit
    assert best - v * (v + 2) * unit <= best_flow(problem, *intervals).rate <= best


def test_nodes_without_tokens_are_idle() -> None:
    problem = build_serving(layers=2, node_names=["a", "b"], kind=[0, 0], rate=[[[9, 9]]], exit=[0, 9])
    plan = best_flow(problem, np.array([0, 0]), np.array([2, 2]))
    kept = without_idle(plan)
    assert kept.end.tolist() == [0, 2]
    assert po.verify_serving(problem, kept).rate == plan.rate == 9


def test_crossings_refute_no_rate_that_a_plan_passes() -> None:
    tried = only = 0
    for seed in range(400):
        problem = random_serving(10_000 + seed, most_nodes=4, most_layers=5)
        sites = find_sites(problem)
        if sites.number == 1 or not (best := best_rate(problem)):
            continue
        if best > rate_without_crossing(problem, sites, best, lambda: False):
            tried += 1
            patterns = PatternBound(layer_classes(problem), find_groups(problem, sites), sites.fastest)
            assert patterns.refuted(best, 1) is None
            above = best * 102 // 100 + 1
            only += patterns.refuted(above) is None and patterns.refuted(above, 1) is not None
    assert tried >= 10
    assert only >= 1


def test_a_cluster_in_one_site_is_solved_to_a_thousandth() -> None:
    """4 A100, 8 L4, 12 T4: published 1,289.56 tokens/s after 600 s, with a bound of 78,062."""
    result = po.solve_serving(published("single-24-llama70b"), time_limit=60)
    assert result.rate >= 2045.64 * TOKEN
    assert result.gap is not None
    assert result.gap <= 1e-3


def test_a_cluster_in_three_sites_is_solved_with_its_slow_links() -> None:
    """The same nodes in three sites: published 1,212.18 tokens/s after 45 minutes, with a bound of 46,521."""
    result = po.solve_serving(published("distributed-24-llama70b"), time_limit=300)
    assert result.sites.number == 3
    assert result.rate >= 1754.38 * TOKEN
    assert result.bound <= 1754.6 * TOKEN
    assert result.bound_source == "crossings"


def test_covers_are_those_of_all_choices() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        ways = [Way(int(rng.integers(2)), k, int(rng.integers(1, 9)), int(rng.integers(1, 20))) for k in range(1, 5)]
        limits, target = [2, 1], int(rng.integers(1, 16))
        cover = Cover(ways, limits, target)
        choices = [(a, b, c) for a in [None, *ways] for b in [None, *ways] for c in [None, *ways]]
        kept = [
            [way for way in choice if way is not None]
            for choice in choices
            if all(sum(way is not None and way.group == g for way in choice) <= limits[g] for g in (0, 1))
        ]
        costs = [sum(way.cost for way in some) for some in kept if sum(way.size for way in some) >= target]
        assert int(cover.least[target]) == min(costs, default=NEVER)
        if costs:
            nodes = cover.nodes(target)
            assert all(sum(n for (g, *_), n in nodes.items() if g == group) <= limits[group] for group in (0, 1))
        counted = CountedCover(ways, target, 3)
        pairs = [a.cost + b.cost for a in ways for b in ways if a.size + b.size >= target]
        assert counted.cost(2) == min(pairs, default=NEVER)


def test_numbers_of_nodes() -> None:
    assert set(least_numbers([5, 3], [2, 9], 9)) == {(2, 0), (0, 3), (1, 2)}
    assert set(exact_numbers([5, 3], [2, 9], 9, 3)) == {(0, 3), (1, 2), (2, 1)}
    assert list(least_numbers([0, 3], [2, 2], 9)) == []


def test_unlike_layers() -> None:
    """The first layer is heavy: node 0 holds it alone, and the others follow."""
    rate = np.zeros((2, 3, 2), dtype=np.int64)
    rate[0] = [[10, 0], [10, 10], [10, 0]]
    rate[1] = [[0, 0], [12, 11], [12, 0]]
    problem = build_serving(layers=3, node_names=["a", "b"], kind=[0, 1], rate=rate * TOKEN)
    result = po.solve_serving(problem, time_limit=5)
    assert result.rate == 10 * TOKEN
    assert result.bound <= 10 * TOKEN * 1.001


def test_stages_of_runs_of_layers_that_are_alike() -> None:
    """A first layer that only the fast node holds, six alike, and a last one; in one site, and in two."""
    rate = np.zeros((2, 8, 4), dtype=np.int64)
    for begin in range(8):
        for k in range(1, min(4, 8 - begin) + 1):
            heavy = (begin == 0) + 2 * (begin + k == 8)
            rate[0, begin, k - 1] = 120 // (k + heavy)
            rate[1, begin, k - 1] = 0 if heavy % 2 else 60 // (k + heavy)
    link = np.full((6, 6), UNLIMITED)
    for slow in (False, True):
        if slow:
            link[:3, 3:] = link[3:, :3] = 9
        problem = build_serving(
            layers=8, node_names=list("abcdef"), kind=[0, 1, 1, 0, 1, 1], rate=rate, link=link, runs=(1, 6, 1)
        )
        sites = find_sites(problem)
        assert sites.number == 1 + slow
        patterns = PatternBound(layer_classes(problem), find_groups(problem, sites), sites.fastest)
        members = tuple(range(sites.number))
        planner = StagePlanner(problem, sites, members, patterns, 0, 1, lambda: False)
        wanted = 8 if slow else 30
        stages = planner.stages(wanted, 20)
        assert stages is not None
        assert [sum(stage.counts[r] for stage in stages) for r in range(3)] == [1, 6, 1]
        assert best_flow(problem, *planner.intervals(stages)).rate >= wanted
    kinds = PatternBound(layer_classes(problem), kind_groups(problem), sites.fastest)
    blocks = BlockPlanner(problem, sites, (), kinds, 0, 1, lambda: False)
    stages = blocks.stages(8, 20)
    assert stages is not None
    assert [sum(stage.counts[r] for stage in stages) for r in range(3)] == [1, 6, 1]
    assert best_flow(problem, *blocks.intervals(stages)).rate >= 8


@pytest.mark.parametrize(("slow", "wanted"), [(15, 480), (30, 640)])
def test_slow_links_do_not_limit_blocks(slow: int, wanted: int) -> None:
    """36 nodes in three sites: the flow of stages is at least the rate that they were made for."""
    site = np.arange(36) % 3
    link = np.where(site[:, None] == site[None, :], UNLIMITED, slow)
    rate = np.zeros((2, 1, 4), dtype=np.int64)
    rate[0, 0] = [400, 190, 110, 60]
    rate[1, 0, :2] = [150, 60]
    problem = build_serving(
        layers=12, node_names=[f"n{n}" for n in range(36)], kind=np.arange(36) // 18, rate=rate, link=link
    )
    sites = find_sites(problem)
    patterns = PatternBound(layer_classes(problem), kind_groups(problem), sites.fastest)
    planner = BlockPlanner(problem, sites, (), patterns, 0, 1, lambda: False)
    patterns.bound(1e-2)
    stages = planner.stages(wanted, 20)
    assert stages is not None
    assert sum(sum(stage.counts) for stage in stages) == 12
    assert best_flow(problem, *planner.intervals(stages)).rate >= wanted


@pytest.mark.parametrize("alike", [True, False])
def test_stages_are_arranged_for_slow_links(alike: bool) -> None:
    """Two stages, each in its own site, pass 1 over each link; with a node of each site in both, all that nodes
    pass."""
    rate = np.full((2, 1 if alike else 2, 1), 10)
    rate[1] = 11
    site = np.array([0, 0, 1, 1])
    link = np.where(site[:, None] == site[None, :], UNLIMITED, 1)
    problem = build_serving(layers=2, node_names=list("abcd"), kind=[0, 1, 1, 0], rate=rate, link=link)
    begin = np.array([0, 0, 1, 1])
    assert best_flow(problem, begin, begin + 1).rate == 4
    found, end, reached = engine.arrange_stages(problem, site, begin, begin + 1, 21, 2_000, 0, engine.Stop())
    assert reached == best_flow(problem, found, end).rate == 21
    assert sorted(found[:2].tolist()) == sorted(found[2:].tolist()) == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_arranged_stages_pass_no_less(seed: int) -> None:
    """Stages of random nodes, also of layers that differ: the flow is that of the intervals, and never falls."""
    problem, rng = random_serving(seed, most_nodes=12, most_layers=6), np.random.default_rng(seed)
    borders = np.array([0, *sorted(rng.choice(np.arange(1, 6), 2, replace=False)), 6]).clip(max=problem.layers)
    place = rng.integers(0, 4, problem.n_nodes)
    begin, end = (np.where(place < 3, borders[np.minimum(place, 2) + k], 0) for k in (0, 1))
    fits = end - begin <= problem.most
    begin, end = np.where(fits, begin, 0), np.where(fits, end, 0)
    before = best_flow(problem, begin, end).rate
    given = (problem, find_sites(problem).of_node, begin, end, max(2 * before, TOKEN), 300, seed, engine.Stop())
    new_begin, new_end, reached = engine.arrange_stages(*given)
    assert reached == best_flow(problem, new_begin, new_end).rate >= before
    again = engine.arrange_stages(*given)
    assert again[2] == reached
    assert again[0].tolist() == new_begin.tolist()


@pytest.mark.parametrize("alike", [True, False])
def test_many_nodes_in_sites_with_slow_links(alike: bool) -> None:
    site = np.arange(66) % 3
    rate = np.zeros((2, 1 if alike else 12, 4), dtype=np.int64)
    rate[0], rate[1, :, :2] = [400, 190, 110, 60], [150, 60]
    if not alike:
        rate[:, 0] //= 2
    problem = build_serving(
        layers=12, node_names=[f"n{n}" for n in range(66)], kind=np.arange(66) // 33, rate=rate * TOKEN,
        link=np.where(site[:, None] == site[None, :], UNLIMITED, 20 * TOKEN), runs=None if alike else (1, 11),
    )  # fmt: skip
    result = po.solve_serving(problem, time_limit=4, workers=1)
    assert result.sites.number == 3
    assert result.report is not None
    assert result.report.feasible
    assert result.rate >= 0.8 * result.bound


def test_kinds_with_equal_rates_are_one() -> None:
    problem = build_serving(
        layers=3, node_names=list("abc"), kind=[0, 1, 2], rate=[[[9, 5]], [[8, 5]], [[9, 5]]], price=[1, 2, 3]
    )
    merged = problem.with_merged_kinds()
    assert merged.kind.tolist() == [0, 1, 0]
    assert merged.rate.tolist() == [[[9, 5]], [[8, 5]]]
    assert po.solve_serving(problem, time_limit=1).problem is problem


def test_runs_add_up() -> None:
    with pytest.raises(po.UsageError, match=r"runs is \[1, 2\]; expected numbers of layers that add up to 4"):
        build_serving(layers=4, node_names=["a"], kind=[0], rate=[[[1]]], runs=[1, 2])


def test_nodes_that_cannot_hold_all_layers() -> None:
    problem = build_serving(layers=9, node_names=["a", "b"], kind=[0, 0], rate=[[[5, 4, 3]]])
    result = po.solve_serving(problem, time_limit=2)
    assert result.plan is None
    assert result.bound == 0
    assert dict(result_facts(result))["rate"] == "no plan exists: the nodes hold at most 6 of 9 layers"


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = random_serving(12)
    first, second = (po.solve_serving(problem, time_limit=5, workers=1, seed=3) for _ in range(2))
    assert (first.rate, first.bound) == (second.rate, second.bound)
