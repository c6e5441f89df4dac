"""The problems of the project: they compile, and their headers are correct."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import placeopt as po
from placeopt.bounding.quick import best_bound
from placeopt.generate.models import model_document
from placeopt.io.compiler import compile_spec, read_spec
from placeopt.io.spec import BestKnown
from placeopt.model.problem import UNLIMITED
from placeopt.verifier import Rule

FOLDER = Path(__file__).parents[1] / "problems"
FILES = sorted(FOLDER.glob("*.yaml"))
PROVED_FAST = (
    "edge-perception",
    "five-node",
    "heft-10",
    "peft-10",
    "sensor-fusion",
    "sensor-fusion-later",
    "vgg19",
    "vgg19-tight",
)
GNMT = {"layers": 8, "width": 1024, "bidirectional": True, "batch": 128, "source_length": 25, "target_length": 25}


def best_known(path: Path) -> BestKnown:
    found = read_spec(path).best_known
    assert found is not None, f"{path.name} does not say what is known of it"
    return found


def test_documented_problems_exist() -> None:
    sizes = [
        f"{model}{network}" for model in ("vgg19", "resnet50", "inception") for network in ("", "-medium", "-tight")
    ]
    small = ("edge-perception", "five-node", "heft-10", "peft-10", "sensor-fusion", "sensor-fusion-later")
    assert {path.stem for path in FILES} == {*small, "gnmt", *sizes}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_headers_state_valid_best_values_and_bounds(path: Path) -> None:
    """The best known value is that of a stored plan; the bound is at least the quick bounds."""
    problem, known = po.load(path), best_known(path)
    spec = read_spec(path)
    assert problem.name == path.stem
    assert spec.source
    assert spec.description
    plan = po.read_plan(FOLDER / "plans" / f"{path.stem}.json", problem)
    assert plan.fingerprint == problem.fingerprint(), "the plan was made for another version of the problem"
    report = po.verify(problem, plan.schedule, plan.claim)
    assert report.feasible, report.violations
    assert [float(value) for value in report.objective or ()] == [known.objective]
    assert known.bound is not None
    assert best_bound(problem).value <= known.bound <= known.objective


@pytest.mark.parametrize("name", PROVED_FAST)
def test_known_optima_are_proved(name: str) -> None:
    path = FOLDER / f"{name}.yaml"
    result = po.solve(po.load(path), "cp-sat", time_limit=60)
    assert result.termination is po.Termination.OPTIMAL
    proved = [float(value) for value in (result.objective, result.bound) if value is not None]
    assert proved == [best_known(path).objective, best_known(path).bound]


def test_heft_reproduces_its_paper() -> None:
    """Topcuoglu, Hariri, Wu 2002, figure 3: a makespan of 80; the optimum is 73."""
    assert po.solve(po.load(FOLDER / "heft-10.yaml"), "heft").objective == 80


def test_constraints_of_edge_perception_are_binding() -> None:
    """Without the deadlines, release times or fixed placement, the perception ends earlier."""
    path = FOLDER / "edge-perception.yaml"
    problem, optimum = po.load(path), best_known(path).objective
    free = read_spec(path).model_copy(update={"placement": {}})
    relaxed = (
        replace(problem, deadline=np.full(problem.n_tasks, UNLIMITED)),
        replace(problem, release=np.zeros(problem.n_tasks, dtype=np.int64)),
        compile_spec(free, folder=FOLDER),
    )
    for other in relaxed:
        result = po.solve(other, "cp-sat", time_limit=60)
        assert result.termination is po.Termination.OPTIMAL
        assert result.objective is not None
        assert result.objective < optimum
    schedule = po.solve(relaxed[0], "heft").schedule
    assert schedule is not None
    assert {violation.rule for violation in po.verify(problem, schedule).violations} == {Rule.DEADLINE}


@pytest.mark.parametrize(
    ("file", "model", "options"),
    [
        ("vgg19", "vgg19", {}),
        ("resnet50", "resnet50", {}),
        ("inception-v3", "inception_v3", {}),
        ("gnmt", "lstm_nmt", GNMT),
    ],
)
def test_graph_files_equal_the_generator_output(file: str, model: str, options: dict[str, object]) -> None:
    committed = json.loads((FOLDER / "graphs" / f"{file}.json").read_text())
    assert committed == model_document(model, **options)
