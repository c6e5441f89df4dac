"""The verdicts of Celeritas's benchmark, from step times that are known."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(BENCHMARKS / "papers")


@pytest.fixture
def celeritas() -> ModuleType:
    return import_module("celeritas")


@pytest.mark.parametrize(
    ("other", "ours", "verdict"),
    [
        (2.8, "64.3 % shorter", "same"),
        (1.5, "33.3 % shorter", "direction"),
        (1.0, "0.0 % longer", "open"),
        (0.8, "25.0 % longer", "reversed"),
        (None, "out of memory", "not comparable"),
    ],
)
def test_tensor_holography_is_compared_with_m_topo(
    celeritas: ModuleType, other: float | None, ours: str, verdict: str
) -> None:
    """Section 6.5.2: 65.1 % faster than m-TOPO, and 1 second slower than DFS-TOPO."""
    found, _ = celeritas.holography_cells({"celeritas": 1.0, "m-topo": other, "dfs-topo": 1.0})
    assert (found.paper, found.ours, found.verdict) == ("65.1 % shorter", ours, verdict)


@pytest.mark.parametrize(("dfs", "verdict"), [(0.99, "same"), (0.9, "direction"), (1.1, "reversed")])
def test_tensor_holography_is_compared_with_dfs_topo(celeritas: ModuleType, dfs: float, verdict: str) -> None:
    _, found = celeritas.holography_cells({"celeritas": 1.0, "m-topo": 2.0, "dfs-topo": dfs})
    assert (found.paper, found.verdict) == ("+1 s", verdict)


def test_a_row_of_table_3_has_the_speed_up_over_the_best_baseline(celeritas: ModuleType) -> None:
    """Order-Place is not a baseline."""
    steps = {"metis": 3.0, "m-topo": None, "m-etf": 4.0, "m-sct": 5.0, "order-place": 1.9, "celeritas": 2.0}
    found = {("lstm_nmt", method): {"step": seconds} for method, seconds in steps.items()}
    speed_up, learned, reference = celeritas.further_cells(found, "lstm_nmt")
    assert (speed_up.paper, speed_up.ours, speed_up.verdict) == ("11.0 % shorter", "33.3 % shorter", "direction")
    assert (learned.verdict, reference.verdict) == ("not comparable", "not comparable")
    row = celeritas.step_cells(found, "lstm_nmt", "step")
    assert [cell.text for cell in row] == [f"lstm_nmt: {method}" for method in celeritas.MEASURED[:-1]]
    assert row[1].verdict == "same"
    assert row[-1].verdict == "reversed"


def test_items_that_measure_seconds_are_kept(celeritas: ModuleType) -> None:
    kept = [item.name for item in celeritas.CELERITAS.items if item.kept]
    assert kept == ["table-4", "table-5", "figure-5", "everything"]
