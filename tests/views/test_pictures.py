"""The pictures of the documentation: their script draws all of them, and they state the figures of the pages."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from commandline import run
from documents import examples

pytest.importorskip("matplotlib", reason="pictures are not tested: pip install 'placeopt[plots]'")

from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_pages"))

from page_pictures import FOLDER, PICTURES, encoded  # noqa: E402

FIGURES = (
    ("README.md", r"makespan = ([\d.]+ ms)", "inception-gantt", "makespan {}, "),
    ("README.md", r"bound  +([\d.]+ ms)", "inception-gantt", "lower bound {}"),
    ("docs/tutorial.md", r"objective +makespan = ([\d.]+ ms)", "tutorial-gantt", "makespan {}, "),
    ("docs/tutorial.md", r"complete after (30\.[\d.]+ ms)", "tutorial-gantt", "lower bound {}"),
    ("docs/pipelines.md", r"period = ([\d.]+ ms)", "four-stages-gantt", "period {} "),
    ("docs/pipelines.md", r"latency +([\d.]+ s) ", "four-stages-gantt", "latency {} "),
    ("docs/pipelines.md", r"period ([\d.]+ ms) with contiguous stages", "stages", "period {} "),
    ("docs/pipelines.md", r"([\d.]+ ms) if a GPU has two", "stages", "period {} "),
    ("docs/serving.md", r"rate +([\d,.]+ tokens/s)", "serving", "{} on 24"),
    ("docs/spec.md", r"sum counts (\d+ GiB)", "memory-models", "sum counts {}"),
    ("docs/spec.md", r"peak at most (\d+ GiB)", "memory-models", "peak counts {}"),
    ("docs/compare.md", r"on (\d+) random graphs", "profile", "{} problems"),
    ("docs/runtimes.md", r"import to split: (\d+) tasks", "split", "{} tasks"),
    ("docs/runtimes.md", r"become (\d+) segments", "split", "{} segments"),
    ("docs/pareto.md", r"one of them is at most ([\d.]+%) worse", "pareto", "at most {} worse"),
    ("docs/whatif.md", r"no faster network\s+gains more than ([\d.]+%)", "whatif", "network gains at most {}"),
    ("docs/whatif.md", r"twice as fast gain ([\d.]+%)", "whatif", "twice as fast gains {}"),
    ("docs/whatif.md", r"at least ([\d.]+%) are proved", "whatif", "at least {} over"),
)
"""Page, figure of its text, picture, and the same figure in the texts of the picture."""


def description(name: str) -> str:
    with Image.open(FOLDER / f"{name}.png") as picture:
        return str(picture.info["Description"])


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_as_its_script_draws_it(name: str) -> None:
    if name == "split":
        pytest.importorskip("onnx", reason="onnx is not installed: pip install 'placeopt[onnx]'")
    with Image.open(io.BytesIO(encoded(PICTURES[name]()))) as drawn:
        assert drawn.info["Description"] == description(name), f"run python docs/_pages/page_pictures.py {name}"
    assert (FOLDER / f"{name}.png").stat().st_size < 60_000


def test_every_picture_has_a_script_and_a_page() -> None:
    elsewhere = ("giph", "baechi", "celeritas", "service.")  # drawn by benchmarks and service_picture.py
    assert {path.stem for path in FOLDER.glob("*.png") if not path.name.startswith(elsewhere)} == set(PICTURES)
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
    assert [name for name in PICTURES if f"images/{name}.png)" not in pages] == []


@pytest.mark.parametrize(("page", "pattern", "name", "text"), FIGURES)
def test_a_picture_states_the_figures_of_its_page(page: str, pattern: str, name: str, text: str) -> None:
    found = re.search(pattern, (ROOT / page).read_text(encoding="utf-8"))
    assert found is not None, f"{page} does not state {pattern}"
    assert text.format(found[1]) in description(name)


def test_the_tutorial_shows_the_tasks_of_its_plan(tmp_path: Path) -> None:
    page = ROOT / "docs" / "tutorial.md"
    problem, plan = tmp_path / "car.yaml", tmp_path / "plan.json"
    problem.write_text(next(each.text for each in examples(page) if each.file == problem.name), encoding="utf-8")
    shown = re.search(r"^    task .*?(?=^$)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown is not None
    table = re.sub("^    ", "", shown[0], flags=re.MULTILINE)
    assert len(table.splitlines()) == 12
    done = run("solve", problem, "--solver", "cp-sat", "--workers", "1", "--out", plan, "--tasks")
    assert done.out.endswith(table)
    assert run("verify", problem, plan, "--tasks").out.endswith(table)
    assert "parts_left" not in run("verify", problem, plan).out
