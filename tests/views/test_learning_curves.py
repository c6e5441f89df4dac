"""Learning curves: reading them, and pictures of several trainings."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import run

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'placeopt[plots]'")

from placeopt.errors import DocumentError
from placeopt.views.plots.curves import Curve, draw_curves, read_curve

TEXT = "episode,ratio,mean_return\n0,1.8,\n5,1.4,0.1\n10,1.5,0.2\n"


def curve(folder: Path, text: str = TEXT) -> Path:
    folder.mkdir()
    (folder / "curve.csv").write_text(text)
    return folder / "curve.csv"


def test_a_curve_is_named_like_its_folder(tmp_path: Path) -> None:
    assert read_curve(curve(tmp_path / "giph-3")) == Curve("giph-3", ((0, 1.8), (5, 1.4), (10, 1.5)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a learning curve; expected the file curve.csv"),
        ("a,b\n1,2\n", "is not a learning curve"),
        ("episode,ratio\n", "has no point"),
        ("episode,ratio\n0,1.5\nx,1\n", r"curve\.csv:3: expected a number of episodes and a ratio"),
        ("episode,ratio\n0\n", r"curve\.csv:2: expected a number"),
        ("episode,ratio\n0,nan\n", r"curve\.csv:2: expected a number"),
        ("episode,ratio\n-1,1\n", r"curve\.csv:2: expected a number"),
        ("episode,ratio\n" + 200_000 * "9" + ",1\n", r"curve\.csv:2: expected a number"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read_curve(curve(tmp_path / "run", text))


def test_the_best_point_of_each_curve_is_marked() -> None:
    curves = [Curve("a", ((0, 2.0), (5, 1.25), (10, 1.5))), Curve("b", ((0, 1.75),))]
    picture = draw_curves(curves, title="two trainings")
    (axes,) = picture.axes
    marks = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"]
    assert marks == [[[5.0, 1.25]], [[0.0, 1.75]]]
    texts = [text.get_text() for legend in picture.legends for text in legend.get_texts()]
    assert texts == ["a: best 1.2500 after 5 episodes", "b: best 1.7500 after 0 episodes"]


def test_plot_draws_the_curves_of_several_trainings(tmp_path: Path) -> None:
    files = [curve(tmp_path / name) for name in ("one", "two", "three")]
    done = run("plot", *files, "--out", tmp_path / "curves.svg")
    assert done.code == 0, done.err
    assert "<svg" in (tmp_path / "curves.svg").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("curve.csv", "--kind", "gantt"), "--kind gantt does not draw learning curves (.csv); expected curve"),
        (("curve.csv", "--solver", "heft"), "--problem and --solver select from results"),
        (("problem.yaml", "--kind", "curve"), "--kind curve draws learning curves, the files curve.csv of `train`"),
        (("problem.yaml", "a.json", "b.json"), "expected at most one PLAN, got 2: a.json, b.json"),
        (("curve.csv", "curve.svg"), "curve.svg: no such file"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("curve.csv").write_text(TEXT)
    done = run("plot", *options, "--out", "out.png")
    assert done.code == 2
    assert message in done.err
