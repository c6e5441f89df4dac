"""Heights against all orders, bounds, the verifier, and arguments."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.allocation.bounds import height_bound
from placeopt.allocation.problem import components, sections_of
from placeopt.allocation.solving import _Part, _Solve
from placeopt.engine import Stop, first_fit, fit_buffers, lower_height
from tests.support.brute_force_allocation import least_height, planted_buffers, random_buffers


@pytest.mark.parametrize("seed", range(250))
def test_least_heights(seed: int) -> None:
    problem = random_buffers(seed)
    best = least_height(problem)
    found = po.allocate(problem, workers=1)
    assert (found.height, found.bound) == (best, best)
    assert po.allocate(problem, capacity=best, workers=1).fits is True
    assert po.allocate(problem, capacity=best - 1, workers=1).fits is False


@pytest.mark.parametrize("seed", range(100))
def test_no_search_refutes_a_capacity_that_suffices(seed: int) -> None:
    """Rectangles that divide a larger one; searches that stop early prove nothing."""
    problem, height = planted_buffers(seed)
    sections = sections_of(problem)
    for k in range(3):
        order = np.random.default_rng(k).permutation(len(problem)).astype(np.int64)
        how, _, units = fit_buffers(sections, order, height // sections.unit, 2_000, Stop())
        assert how in ("found", "limit")
        if how == "found":
            assert po.verify_allocation(problem, units * sections.unit, capacity=height).feasible


def test_the_same_seed_gives_the_same_offsets() -> None:
    problem, _ = planted_buffers(3)
    first, second = (po.allocate(problem, seed=1, workers=1, time_limit=20) for _ in range(2))
    assert first.offset is not None
    assert second.offset is not None
    assert first.offset.tolist() == second.offset.tolist()


def test_relabelled_buffers_and_reversed_time_keep_the_height() -> None:
    problem = random_buffers(17)
    turn = np.random.default_rng(0).permutation(len(problem))
    other = po.build_buffers(
        lower=-problem.upper[turn], upper=-problem.lower[turn], size=problem.size[turn],
        alignment=problem.alignment[turn], fixed=[problem.fixed[k] for k in turn.tolist()],
    )  # fmt: skip
    assert po.allocate(other, workers=1).height == po.allocate(problem, workers=1).height


@pytest.mark.parametrize(
    ("arrays", "height", "source"),
    [
        ({"lower": [0, 1], "upper": [2, 3], "size": [5, 7]}, 12, "live"),
        ({"lower": [0, 2], "upper": [2, 3], "size": [5, 7]}, 7, "live"),
        ({"lower": [0, 0], "upper": [1, 1], "size": [3, 4], "alignment": [8, 8]}, 11, "alignment"),
        ({"lower": [0, 0], "upper": [1, 1], "size": [3, 9], "fixed": [8, None]}, 12, "live"),
        ({"lower": [0], "upper": [1], "size": [3], "fixed": [100]}, 103, "fixed"),
        ({"lower": [0, 0], "upper": [1, 1], "size": [2**60, 2**59 - 1]}, 3 * 2**59 - 1, "live"),
        ({"lower": [], "upper": [], "size": []}, 0, "live"),
    ],
)  # fmt: skip
def test_bounds(arrays: dict[str, Any], height: int, source: str) -> None:
    bound = height_bound(po.build_buffers(**arrays))
    assert (bound.height, bound.source) == (height, source)


def test_a_bound_by_search() -> None:
    """b and c cannot both lie next to a; no live sum exceeds 3."""
    problem = po.build_buffers(lower=[0, 2, 1, 3, 0], upper=[2, 4, 3, 5, 1], size=[1, 1, 2, 2, 2])
    found = po.allocate(problem, workers=1)
    assert found.height == found.bound == least_height(problem)


def test_parts_share_no_time() -> None:
    problem = po.build_buffers(lower=[4, 0, 1, 6], upper=[6, 3, 4, 9], size=[1, 1, 1, 1])
    assert [part.tolist() for part in components(problem)] == [[1, 2], [0], [3]]


def test_a_stop_returns_what_was_found() -> None:
    problem, _ = planted_buffers(5)
    found = po.allocate(problem, should_stop=lambda: True)
    assert found.offset is not None
    assert found.height is not None
    assert found.height >= found.bound


class TestVerifier:
    def test_each_rule(self) -> None:
        problem = po.build_buffers(
            lower=[0, 1, 5], upper=[3, 4, 6], size=[10, 10, 10], alignment=[1, 4, 1], fixed=[None, None, 7]
        )
        report = po.verify_allocation(problem, [0, 9, -1], capacity=15)
        assert [rule for rule, _ in report.violations] == ["alignment", "capacity", "offset", "fixed", "overlap"]
        assert (report.feasible, report.height) == (False, 19)
        assert po.verify_allocation(problem, [0, 12, 7], capacity=22).feasible

    @pytest.mark.parametrize("seed", range(60))
    def test_every_overlap_is_found(self, seed: int) -> None:
        problem, rng = random_buffers(seed), random.Random(seed)
        n = len(problem)
        offset = [rng.randrange(20) for _ in range(n)]
        lower, upper, size = problem.lower.tolist(), problem.upper.tolist(), problem.size.tolist()
        pairs = sum(
            max(lower[a], lower[b]) < min(upper[a], upper[b])
            and max(offset[a], offset[b]) < min(offset[a] + size[a], offset[b] + size[b])
            for a in range(n)
            for b in range(a)
        )  # fmt: skip
        rules = [rule for rule, _ in po.verify_allocation(problem, offset).violations]
        assert rules.count("overlap") == pairs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": [0]}, r"size\[0\] is 0"),
        ({"size": [2**60 + 1]}, r"size\[0\]"),
        ({"upper": [0]}, r"upper\[0\] is 0 and lower\[0\] is 0"),
        ({"alignment": [0]}, r"alignment\[0\] is 0"),
        ({"fixed": [3], "alignment": [2]}, r"fixed\[0\] is 3; expected a multiple of its alignment, 2"),
        ({"fixed": [1, 2]}, "fixed: 2 entries; expected 1"),
        ({"capacity": -1}, "capacity is -1"),
        ({"time_limit": -1}, "time_limit"),
        ({"problem": 3, "lower": None, "upper": None, "size": None}, "problem is a int; expected Buffers"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(po.UsageError, match=message):
        po.allocate(**({"lower": [0], "upper": [1], "size": [1]} | arguments))


def test_given_offsets_must_not_overlap() -> None:
    with pytest.raises(po.UsageError, match="fixed: 0 and 1 are live together"):
        po.allocate(lower=[0, 0], upper=[1, 1], size=[4, 4], fixed=[0, 3])


def test_plots(tmp_path: Path) -> None:
    found = po.allocate(lower=[0, 1], upper=[2, 3], size=[5, 6])
    found.plot(tmp_path / "memory.svg", title="two buffers")
    assert "two buffers" in (tmp_path / "memory.svg").read_text()
    with pytest.raises(po.UsageError, match=r"expected one of \.png"):
        found.plot(tmp_path / "memory.txt")
    with pytest.raises(po.UsageError, match="no offsets were found"):
        replace(found, offset=None).plot()


def test_moves_lower_the_height_of_many() -> None:
    """Long and short lifetimes, for which first fit in sorted orders is not best; the best is kept and verified."""
    rng = random.Random(0)
    begin = [rng.randrange(3000) for _ in range(1200)]
    life = [rng.choice([rng.randint(1, 40), rng.randint(1, 40), rng.randint(40, 1500)]) for _ in range(1200)]
    size = [64 * int(2 ** rng.uniform(2, 14)) for _ in range(1200)]
    fixed = [65536 if k == 7 else None for k in range(1200)]
    changed: tuple[dict[str, Any], ...] = ({}, {"fixed": fixed, "alignment": [128] * 1200})
    for changes in changed:
        upper = [b + n for b, n in zip(begin, life, strict=True)]
        problem = po.build_buffers(lower=begin, upper=upper, size=size, **changes)
        part = _Part(_Solve(problem, None, 60, 0, 1, lambda: False), np.arange(1200))
        part.place_first()
        first, part._goal = part.height, part.bound.height
        assert first > part.bound.height
        part._lower(0, 3000, time.monotonic() + 20)
        assert part.bound.height <= part.height < first
        assert po.verify_allocation(problem, part.offset, capacity=part.height).feasible


def test_moves_go_on_with_a_nearer_goal() -> None:
    """No goal is reached: the least height of these buffers is above the target."""
    rng = random.Random(1)
    begin = [rng.randrange(40) for _ in range(60)]
    problem = po.build_buffers(
        lower=begin, upper=[b + rng.randint(5, 30) for b in begin], size=[rng.randint(50, 99) for _ in begin]
    )
    sections = sections_of(problem)
    offset = first_fit(sections, np.arange(60), Stop())
    heights = []
    for most in (1_000, 100_000, 100_000):
        found = lower_height(sections, offset, 1, 0, most, Stop())
        assert po.verify_allocation(problem, found * sections.unit).feasible
        heights.append(int((found + sections.size).max()))
    assert heights[0] >= heights[1] == heights[2] >= height_bound(problem).height // sections.unit


def test_no_moves_where_no_offset_is_lower() -> None:
    """The only buffer to place must lie above a given one, so the target is out of reach."""
    problem = po.build_buffers(lower=[0, 0], upper=[2, 2], size=[4, 4], fixed=[2, None])
    offset = lower_height(sections_of(problem), np.array([1, 3]), 1, 0, 100, Stop())
    assert offset.tolist() == [1, 3]
