"""The verdicts of GiPH's benchmark, from numbers whose intervals are known."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from giph_paper import COMPILED, TABLE_7, below_random, faster, timed_cells
from giph_sets import student

GRID = np.linspace(0, 2, 7)


def curve(*values: float) -> np.ndarray:
    """The same SLRs at the points of GRID in two trainings and three cases."""
    return np.tile(np.array(values), (2, 3, 1))


@pytest.mark.parametrize(
    ("last", "ours", "verdict"),
    [
        (1.9, "6.0 times", "direction"),
        (1.7, "3.0 times", "same"),
        (1.55, "2.0 times", "direction"),
        (1.4, "1.0 times", "reversed"),
        (1.0, "not reached", "reversed"),
    ],
)
def test_a_speed_is_compared_with_the_maximum_of_the_paper(last: float, ours: str, verdict: str) -> None:
    found = faster("placeto", curve(2.0, 1.8, 1.6, 1.5, 1.45, 1.42, 1.4), np.full((2, 3), last), GRID)
    assert (found.ours, found.verdict) == (ours, verdict)


@pytest.mark.parametrize(
    ("share", "ours", "verdict"),
    [
        (0.35, "35.0 % ± 0.0 %", "direction"),
        (0.304, "30.4 % ± 0.0 %", "same"),
        (0.20, "20.0 % ± 0.0 %", "direction"),
        (0.00, "0.0 % ± 0.0 %", "open"),
        (-0.10, "-10.0 % ± 0.0 %", "reversed"),
    ],
)
def test_only_the_maximum_of_the_paper_is_the_same(share: float, ours: str, verdict: str) -> None:
    found = below_random(np.full((2, 3), 2 * (1 - share)), np.full(3, 2.0))
    assert (found.ours, found.verdict) == (ours, verdict)


@pytest.mark.parametrize(
    ("count", "quantile"), [(2, 12.706), (3, 4.303), (4, 3.182), (6, 2.571), (10, 2.262), (30, 2.045), (150, 1.96)]
)
def test_quantiles_of_student(count: int, quantile: float) -> None:
    assert student(count) == pytest.approx(quantile, rel=0.01)


def test_seconds_are_compared_by_their_ratio_to_those_of_giph() -> None:
    as_published = {name: (train / 100, run / 100) for name, (train, run) in TABLE_7.items()}
    cells = timed_cells(as_published)
    assert len(cells) == 14
    assert {cell.verdict for cell in cells} == {"same"}
    faster_giph = as_published | {"giph": (0.0001, 0.0001)}
    cells = timed_cells(faster_giph)
    assert {(cell.verdict, cell.reason) for cell in cells} == {("reversed", COMPILED)}
    assert cells[0].ours == "0.0001, 6 of 6 are slower"
    assert cells[1].paper == "0.145 (x 0.26)"


def test_a_search_stops_when_its_best_value_stays() -> None:
    for library in ("torch", "safetensors"):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install 'placeopt[torch]'")
    from giph_further import stops

    rows = curve(3.0, 2.0, 2.0, 2.0, 1.0)
    assert np.unique(stops(rows, 1)).tolist() == [2]
    assert np.unique(stops(rows, 2)).tolist() == [3]
    assert np.unique(stops(rows, 3)).tolist() == [4]
