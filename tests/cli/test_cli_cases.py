"""`placeopt generate giph` and `placeopt generate cases`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import run

import placeopt as po
from placeopt.generate.giph.released import released_document
from placeopt.generate.giph.sets import DESCRIPTIONS, SETS, case_document


def test_a_random_problem_is_written(tmp_path: Path) -> None:
    path = tmp_path / "giph.json"
    done = run("generate", "giph", "--set", "seed=3", "--set", "v=15", "--set", "network_seed=4", "-o", path)
    assert done.code == 0
    assert json.loads(path.read_text()) == released_document(3, v=15, network_seed=4)
    assert "compute_heterogeneity = 0.4" in run("generate", "giph", "--options").out


def test_sets_are_listed_with_their_sizes() -> None:
    lines = run("generate", "cases").out.splitlines()
    assert [line.split()[0] for line in lines] == list(SETS) == list(DESCRIPTIONS)
    assert "1,200 + 600 + 1,200" in lines[1]


def test_one_problem_of_a_set(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    assert run("generate", "cases", "giph-unseen", "--split", "train", "--index", "121", "-o", path).code == 0
    problem = po.load(path)
    assert problem.name == "giph-unseen-train-1-1"
    assert problem.fingerprint() == po.compile(case_document("giph-unseen", "train", 121)).fingerprint()
    assert run("generate", "cases", "giph-unseen", "--split", "train", "-i", "121").out == path.read_text()


def test_a_sample_in_a_folder(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder, seed in zip(folders, (1, 1, 2), strict=True):
        done = run("generate", "cases", "traffic", "--folder", folder, "--sample", "4", "--seed", str(seed))
        assert (done.code, done.out) == (0, f"4 problems of traffic-test in {folder}\n")
    names = [sorted(path.name for path in folder.iterdir()) for folder in folders]
    assert names[0] == names[1] != names[2]
    assert len(names[0]) == 4
    for path in folders[0].iterdir():
        assert po.load(path).name == path.stem
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()


def test_a_whole_set_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "enas"
    assert run("generate", "cases", "enas", "--split", "train", "--folder", folder).code == 0
    assert len(list(folder.iterdir())) == 150


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("giph --set v=0", "v: 0 is not valid; expected a whole number of at least 1"),
        ("giph --set depth=3", "giph has no option depth"),
        ("cases giph-singel --index 0", 'set: "giph-singel" is unknown; expected one of giph-single,'),
        ("cases enas --split tests --index 0", 'split: "tests" is unknown; expected train or validation or test'),
        ("cases enas --index 150", "index: 150 is out of range; enas-test has the problems 0 to 149"),
        ("cases enas --index -1", "index: -1 is out of range"),
        ("cases enas", "--index and --folder: neither is given; expected one of them"),
        ("cases enas --index 1 --folder new", "--index and --folder: both are given; expected one of them"),
        ("cases enas --index 1 --sample 2", "--sample needs --folder"),
        ("cases enas --folder new --out x.json", "--out needs --index"),
        ("cases enas --folder new --sample 151", "sample: 151 is more than the 150 problems of enas-test"),
        ("cases enas --folder new --sample 0", "sample: 0 is not valid; expected a whole number of at least 1"),
        ("cases enas --folder new --sample 1 --seed -1", "seed: -1 is not valid"),
        ("cases enas --folder missing/new", "there is no folder missing"),
    ],
)
def test_wrong_usage(arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("generate", *arguments.split())
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())
    assert not list(tmp_path.iterdir())
