"""The command benchmarks/papers: records, measured values, verdicts, and the page made from them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(BENCHMARKS / "papers")


@pytest.fixture
def claims() -> ModuleType:
    return import_module("claims")


@pytest.fixture
def reports() -> ModuleType:
    return import_module("reports")


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        (1.08, 1.04, "same"),
        (1.50, 1.10, "direction"),
        (1.03, 1.0005, "open"),
        (1.03, 0.95, "reversed"),
        (0.92, 0.90, "same"),
        (1.0, 1.0, "same"),
    ],
)
def test_ratios_are_compared_in_size_and_direction(claims: ModuleType, paper: float, ours: float, verdict: str) -> None:
    assert claims.ratio_verdict(paper, ours) == verdict


def test_claims_about_several_cases(claims: ModuleType) -> None:
    found = [claims.holds("c", "yes", zip("ab", each, strict=True)) for each in ((1, 1), (1, 0), (0, 0))]
    assert [(each.verdict, each.ours) for each in found] == [
        ("same", "2 of 2: a; b"),
        ("in part", "1 of 2: a"),
        ("reversed", "0 of 2: none"),
    ]


def test_records_are_kept_in_the_order_of_the_paper(reports: ModuleType, claims: ModuleType, tmp_path: Path) -> None:
    items = tuple(reports.Item(name, name, None) for name in ("table-1", "table-2"))
    paper = reports.Paper("p", "P", "A. Author", "Conditions.", items)
    for name in ("table-2", "table-1"):
        report = reports.Report()
        report.claims("cells", [claims.Claim("c", "1", "2", "open", "why")])
        report.table("values", ("a", "b"), [(1, "x|y")])
        report.text("A text.")
        report.picture("p.png", "a picture")
        reports.save_record(paper, name, reports.Record("abc", f"python benchmarks/papers p {name}", report), tmp_path)
    records = reports.load_records("p", tmp_path)
    assert list(records) == ["table-1", "table-2"]
    assert records["table-1"].report == report
    assert records["table-1"].report.counted == "1 open"
    page = import_module("page").page([paper], tmp_path)
    assert "| c | 1 | 2 | open: why |" in page
    assert r"| 1 | x\|y |" in page
    assert "![a picture](images/p.png)" in page
    assert "[P](#p) | 2 |" in page


def test_values_are_measured_once_for_each_version_of_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measurements = import_module("measurements")
    calls = []

    def compute() -> int:
        calls.append(1)
        return len(calls)

    kept = measurements.Measurements(tmp_path)
    assert [kept.value(compute, "key", 1), kept.value(compute, "key", 1), kept.value(compute, "key", 2)] == [1, 1, 2]
    monkeypatch.setattr(measurements, "code_version", lambda: "another")
    assert measurements.Measurements(tmp_path, reuse=True).value(compute, "key", 1) == 1
    assert kept.value(compute, "key", 1) == 3


def test_every_item_is_measured_or_says_why_not() -> None:
    for name in ("baechi", "celeritas", "giph", "carbonari"):
        paper = getattr(import_module(name), name.upper())
        assert len({item.name for item in paper.items}) == len(paper.items)
        for item in paper.items:
            assert (item.run is None) == bool(item.why), f"{name} {item.name}"
            assert (item.run is None) == (not item.duration), f"{name} {item.name}"


def test_the_page_is_made_from_the_records() -> None:
    page = import_module("page")
    papers = [getattr(import_module(name), name.upper()) for name in ("baechi", "celeritas", "giph", "carbonari")]
    assert page.PAGE.read_text(encoding="utf-8") == page.page(papers), "run python benchmarks/papers --page"
    for paper in papers:
        records = import_module("reports").load_records(paper.name)
        assert set(records) == {item.name for item in paper.items if item.run is not None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["celeritos"], 'unknown paper "celeritos"; did you mean "celeritas"?'),
        (["giph", "table-99"], 'unknown item "table-99"; did you mean "table-'),
    ],
)
def test_unknown_names_are_rejected(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["papers", *arguments])
    with pytest.raises(SystemExit, match="2"):
        run_path(str(BENCHMARKS / "papers"), run_name="__main__")
    assert message in capsys.readouterr().err


def test_cells_of_step_times(claims: ModuleType) -> None:
    cell = import_module("celeritas").step_cell
    assert cell("c", (None, 2.0), (None, 1.0)).verdict == "same"
    assert cell("c", (None, 2.0), (3.0, 1.0)).verdict == "reversed"
    assert cell("c", (3.0, 2.0), (None, 1.0)).verdict == "reversed"
    assert cell("c", (3.0, 2.0), (3.0, None)).verdict == "not comparable"
    assert cell("c", (3.0, 2.0), (1.4, 1.0)) == claims.Claim("c", "3.000 (x 1.50)", "1.400 (x 1.40)", "same")


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name == "pictures" or name.startswith("placeopt.views.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "argv", ["papers", "baechi", "figure-1", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit, match="1"):
        run_path(str(BENCHMARKS / "papers"), run_name="__main__")
    assert "placeopt[plots]" in " ".join(capsys.readouterr().out.split())
