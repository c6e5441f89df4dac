"""The cheapest nodes for a rate, against all numbers of nodes with all intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import placeopt as po
from placeopt.serving.problem import TOKEN, Serving
from tests.support.brute_force_serving import best_rate
from tests.support.commandline import run
from tests.support.random_serving import random_serving

FILE = """
placeopt: 1
name: offers
devices:
  big: {count: 2, price: 3.00}
  small: {count: 4, price: 0.75}
serving: {layers: 4, activation: 16 KiB, rates: {big: [200, 100, 60, 50], small: [60, 25]}, demand: 48}
"""


def least_price(problem: Serving, rate: int) -> int:
    """The least price of nodes that pass the rate, by trying all numbers of them."""
    assert problem.price is not None
    found = []
    for counts in product(*(range(count + 1) for count in problem.counts.tolist())):
        of_kind = [np.flatnonzero(problem.kind == kind)[:count] for kind, count in enumerate(counts)]
        nodes = np.sort(np.concatenate(of_kind))
        if len(nodes) and best_rate(problem.part(nodes)) >= rate:
            found.append(int(np.array(counts) @ problem.price))
    return min(found)


@pytest.mark.parametrize("seed", range(30))
def test_prices_agree_with_all_choices(seed: int) -> None:
    problem, rng = random_serving(seed, most_nodes=4, most_layers=4), np.random.default_rng(seed)
    problem = replace(problem, price=rng.integers(0, 10, len(problem.kind_names)) * 10**6)
    top = best_rate(problem)
    if not top:
        return
    rate = max(int(top * rng.uniform(0.3, 1)), 1)
    found, least = po.cheapest_serving(problem, rate, time_limit=2, workers=1), least_price(problem, rate)
    assert found.bound <= least
    assert found.price is not None
    assert found.price >= least
    assert found.result.rate >= rate
    if (problem.link == problem.link[0, 0]).all():
        assert found.price == least


def test_no_nodes_are_enough() -> None:
    problem = po.build_serving(layers=2, node_names=["a"], kind=[0], rate=[[[9, 5]]], price=[3])
    with pytest.raises(po.UsageError, match=r"no plan passes 0\.00 tokens/s with these nodes"):
        po.cheapest_serving(problem, 6)
    assert po.cheapest_serving(problem, 5).price == 3
    with pytest.raises(po.UsageError, match="rate is None; expected a whole number"):
        po.cheapest_serving(problem)
    with pytest.raises(po.UsageError, match="the problem has no prices"):
        po.cheapest_serving(replace(problem, price=None), 5)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "offers.yaml"
    path.write_text(FILE)
    assert po.load_serving(path).demand == 48 * TOKEN
    solved = run("solve", path, "-t", "5s")
    assert solved.code == 0
    assert "price  3.00 an hour, at least 3.00 for 48.00 tokens/s" in solved.out  # one big node, or four small ones
    data = json.loads(run("solve", path, "-t", "5s", "--json").out)
    assert (data["price"], data["price_bound"], data["demand"]) == (3, 3, 48)
    path.write_text(FILE.replace(", demand: 48", ""))
    assert "9.00 an hour; " in run("solve", path, "-t", "2s").out
    for change, message in (
        (("price: 3.00", ""), "big: lacks a price; expected one, as other devices have one"),
        (("demand: 48", "demand: 0"), "expected more than 0, and at most 10^9 tokens/s"),
        (("demand: 48", "demand: 900"), "no plan passes 900.00 tokens/s with these nodes"),
    ):
        path.write_text(FILE.replace(*change))
        assert message in run("solve", path).err
