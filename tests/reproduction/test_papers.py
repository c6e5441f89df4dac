"""The command benchmarks/papers: records, measured values, verdicts, and the page made from them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import Any

import pytest
from sources import written

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


def papers() -> list[Any]:
    """The four papers."""
    return [getattr(import_module(name), name.upper()) for name in ("baechi", "celeritas", "giph", "carbonari")]


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


@pytest.fixture
def kept(reports: ModuleType, claims: ModuleType, tmp_path: Path) -> tuple[Any, list[Path]]:
    """A paper with two reports, and the folders that these are in."""
    paper = reports.Paper(
        "p", "P", "A. Author", "See [a page](page.md).",
        (
            reports.Item("table-1", "First", None, why="unknown"),
            reports.Item("table-2", "Second", len, "1 second"),
            reports.Item("table-3", "Third", len, "2 hours", kept="takes 2 hours"),
            reports.Item("table-4", "Fourth", len, "3 hours", kept="takes 3 hours"),
        ),
    )  # fmt: skip
    folders = [tmp_path / "records", tmp_path / "kept"]
    report = reports.Report()
    report.claims("cells", [claims.Claim("c", "1", "2", "open", "why")])
    report.table("values", ("a", "b"), [(1, "x|y")])
    report.text("A text, see [here](page.md).")
    report.picture("p.png", "a picture")
    for item, day in ((paper.items[2], "2026-01-02"), (paper.items[1], "")):
        record = reports.Record(f"python -m benchmarks.papers p {item.name}", ["a.b.c", "d.e.f"], report, day)
        reports.save_record(paper, item, record, folders)
    return paper, folders


def test_pages_are_made_from_records_in_the_order_of_the_paper(kept: tuple[Any, list[Path]], tmp_path: Path) -> None:
    paper, folders = kept
    records = import_module("reports").load_records(paper, folders)
    assert list(records) == ["table-2", "table-3"]
    assert records["table-3"].report.counted == "1 open"
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")) == [
        "kept/p/table-3.json",
        "records/p/table-2.json",
    ]
    index, page = import_module("page").pages([paper], folders).values()
    assert "| [P](pages/p.md) | 2 of 3 | 2 |" in index
    assert "See [a page](../../../docs/page.md)." in page
    assert "| c | 1 | 2 | open: why |" in page
    assert r"| 1 | x\|y |" in page
    assert "see [here](../../../docs/page.md)" in page
    assert "![a picture](../../../docs/images/p.png)" in page
    assert "Kept on 2026-01-02: takes 2 hours. Measured with placeopt a, solvers b, benchmarks c; reported with" in page
    assert page.count("Kept on") == 1
    assert "*Not measured*: unknown." in page
    assert "*Not measured yet*: takes 3 hours." in page


def test_a_record_that_was_changed_by_hand_is_rejected(reports: ModuleType, kept: tuple[Any, list[Path]]) -> None:
    paper, folders = kept
    path = reports.record_path(paper, paper.items[2], folders)
    path.write_text(path.read_text(encoding="utf-8").replace('"open"', '"same"'), encoding="utf-8")
    with pytest.raises(reports.ChangedRecordError, match=r"table-3\.json was changed by hand"):
        reports.load_records(paper, folders)


def test_values_are_measured_once_for_each_version_of_the_code(tmp_path: Path) -> None:
    measurements = import_module("measurements")
    calls = []

    def compute() -> int:
        calls.append(1)
        return len(calls)

    first = measurements.Measurements(tmp_path, version="p.s.b")
    assert [first.value(compute, "key", 1), first.value(compute, "key", 1), first.value(compute, "key", 2)] == [1, 1, 2]
    assert first.used == {"p.s.b"}
    benchmarks = measurements.Measurements(tmp_path, version="p.s.other")
    assert benchmarks.value(compute, "key", 1) == 1
    assert benchmarks.used == {"p.s.other", "p.s.b"}
    reused = measurements.Measurements(tmp_path, version="p.other.b", reuse=True)
    assert reused.value(compute, "key", 1) == 1
    assert reused.used == {"p.other.b", "p.s.b"}
    again = measurements.Measurements(tmp_path, version="p.other.b")
    assert again.value(compute, "key", 1) == 3
    assert again.used == {"p.other.b"}


def test_every_item_is_measured_or_says_why_not() -> None:
    for paper in papers():
        assert len({item.name for item in paper.items}) == len(paper.items)
        for item in paper.items:
            assert (item.run is None) == bool(item.why), f"{paper.name} {item.name}"
            assert (item.run is None) == (not item.duration), f"{paper.name} {item.name}"
            assert not (item.kept and item.why), f"{paper.name} {item.name}"


def test_pages_are_made_from_the_records() -> None:
    for path, text in import_module("page").pages(papers()).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python -m benchmarks.papers --page"


def test_every_record_is_that_of_an_item(reports: ModuleType) -> None:
    expected = {reports.record_path(paper, item): item for paper in papers() for item in paper.items}
    for folder in reports.FOLDERS:
        for path in folder.rglob("*.json"):
            assert path in expected, f"{path} is the record of no item"
    missing = [path.name for path, item in expected.items() if item.run and not item.kept and not path.exists()]
    assert not missing, "run python -m benchmarks.papers --short"


def test_every_record_has_the_version_of_a_commit(reports: ModuleType) -> None:
    shallow = git("rev-parse", "--is-shallow-repository")
    if shallow != "false":
        pytest.skip("the Git history is absent or shallow, so versions of the code cannot be looked up")
    # Reports in the tree of the benchmarks do not make values invalid: only the code of the product counts.
    product = import_module("measurements").product
    known = {product(each) for each in import_module("measurements").versions(git("log", "--format=%H").split())}
    for paper in papers():
        for name, record in reports.load_records(paper).items():
            assert record.code, f"{paper.name} {name}"
            assert set(map(product, record.code)) <= known, f"{paper.name} {name}: not the code of any commit"


def test_every_claim_is_a_text_of_the_benchmarks(reports: ModuleType) -> None:
    for paper in papers():
        for name, record in reports.load_records(paper).items():
            for block in record.report:
                texts = [] if block.kind == "text" else [block.title]
                texts += [text for claim in block.claims for text in (claim.text, claim.reason)]
                strange = [text for text in texts if text and not written(text)]
                assert not strange, f"{paper.name} {name}: no benchmark writes this"


def test_invented_claims_are_noticed() -> None:
    assert written("GiPH below random-task-eft")
    assert written("figure 4, giph-unseen, noise 0.2")
    for text in ("GiPH is the best search", "giph : the best", "VGG-19: much better"):
        assert not written(text)


@pytest.mark.parametrize(
    ("paper", "item"),
    [("baechi", "figure-1"), ("baechi", "figure-3"), ("baechi", "figure-4"), ("baechi", "figure-6"),
     ("carbonari", "appendix")],
)  # fmt: skip
def test_short_items_repeat_exactly(reports: ModuleType, paper: str, item: str, tmp_path: Path) -> None:
    if item == "figure-1":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'placeopt[plots]'")
    (found,) = (each for each in papers() if each.name == paper)
    (chosen,) = (each for each in found.items if each.name == item)
    values = import_module("measurements").Measurements(tmp_path, version="test")
    assert chosen.run(reports.Workplace(values, tmp_path, 3, 150, None)) == reports.load_records(found)[item].report


def git(*words: str) -> str:
    """The output of a Git command; empty if it fails."""
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def test_changes_that_are_not_committed_have_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    measurements = import_module("measurements")
    monkeypatch.setattr(measurements, "_git", lambda *_, **__: " M placeopt/a.py\n M solvers/b.py\n")
    with pytest.raises(measurements.UncommittedError, match=r"placeopt/a\.py and 1 more changed since the last commit"):
        measurements.code_version.__wrapped__()


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


def test_nothing_is_measured_with_changes_that_are_not_committed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measurements = import_module("measurements")

    def changed() -> str:
        raise measurements.UncommittedError("placeopt/a.py changed since the last commit")

    monkeypatch.setattr(measurements, "code_version", changed)
    monkeypatch.setattr(sys, "argv", ["papers", "baechi", "figure-3"])
    with pytest.raises(SystemExit, match="2"):
        run_path(str(BENCHMARKS / "papers"), run_name="__main__")
    assert "a.py changed since the last commit; commit first, or use --draft" in " ".join(
        capsys.readouterr().err.split()
    )


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
    monkeypatch.setattr(sys, "argv", ["papers", "baechi", "figure-1", "--draft", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit, match="1"):
        run_path(str(BENCHMARKS / "papers"), run_name="__main__")
    assert "placeopt[plots]" in " ".join(capsys.readouterr().out.split())
