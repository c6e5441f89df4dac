"""A written problem is read as an equal one, or it is an error that says what a file cannot state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import small_problem
from constrained_problems import constrained
from large_amounts import large_pipeline, large_problem
from learned_problems import random_problem
from pipelines import random_case, random_pipeline, training_pipeline, unlike_pipeline
from reducible_problems import reducible_problem
from trainable_problems import trainable_problem

import placeopt as po
from placeopt.passes import PASSES

PROBLEMS = sorted((Path(__file__).parents[2] / "problems").glob("*.yaml"))
DESCRIPTIVE = {"rounding", "efficiency"}
"""What a problem states about the document it was compiled from."""
Make = Callable[[int], po.Problem]


def unequal(one: po.Problem, other: po.Problem) -> list[str]:
    """The fields in which two problems differ."""

    def same(name: str) -> bool:
        a, b = getattr(one, name), getattr(other, name)
        return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b

    return [field.name for field in fields(po.Problem) if field.name not in DESCRIPTIVE and not same(field.name)]


def plain(**changes: Any) -> po.Problem:
    """Three tasks on two devices."""
    arguments: dict[str, Any] = {"task_names": list("abc"), "device_names": ["x", "y"], "duration": np.ones((3, 2))}
    return po.build_problem(**{**arguments, "edges": [(0, 1), (1, 2)], **changes})


def objective(*levels: dict[Any, Any]) -> po.Objective:
    return po.Objective(tuple(tuple(po.Term(*term) for term in level.items()) for level in levels))


PERIOD = objective({"period": 1})
MAKERS: dict[str, Make] = {
    "constrained": constrained,
    "small": lambda seed: small_problem(np.random.default_rng(seed)),
    "large": large_problem,
    "large with bounds": lambda seed: large_problem(seed, bound=True),
    "large pipeline": large_pipeline,
    "reducible": lambda seed: reducible_problem(np.random.default_rng(seed)),
    "learned": random_problem,
    "trainable": lambda seed: trainable_problem(np.random.default_rng(seed)),
    "pipeline": random_pipeline,
    "unlike pipeline": unlike_pipeline,
    "pipeline with memory": lambda seed: random_case(seed)[0],
}


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_every_problem_of_the_repository(path: Path, suffix: str, tmp_path: Path) -> None:
    problem, written = po.load(path), tmp_path / f"again.{suffix}"
    po.write_problem(problem, written)
    again = po.load(written)
    assert unequal(problem, again) == []
    assert again.fingerprint() == problem.fingerprint()
    assert again.to_document() == problem.to_document()


def is_kept(problem: po.Problem) -> bool:
    """Whether the document is the same problem; if not, making or compiling it is an error."""
    try:
        again = po.compile(problem.to_document())
    except (po.SpecError, po.UsageError):
        return False
    assert unequal(problem, again) == []
    assert again.fingerprint() == problem.fingerprint()
    return True


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_random_problems(make: Make) -> None:
    """Some have weights such as 4/3, or contradict themselves; the others must be the same."""
    assert sum(is_kept(make(seed)) for seed in range(60)) >= 30


@pytest.mark.parametrize("name", PASSES)
def test_problems_after_passes(name: str) -> None:
    makers = (constrained, training_problem) if name == "forward" else (constrained, MAKERS["reducible"])
    problems = [po.apply_passes(make(seed), [name]).problem for make in makers for seed in range(10)]
    assert sum(map(is_kept, problems)) >= 10


@pytest.mark.parametrize(
    "document",
    [
        {"devices": {"x": {"cores": 2}, "y": {"cores": 4}}, "tasks": {"a": {"time": {"x": 2, "y": 2}, "cores": 3}}},
        {"resources": {"r": 2}, "tasks": {"a": {"time": 2, "uses": {"r": {"x": 3, "y": 1}}}}},
        {"budgets": {"r": 2}, "tasks": {"a": {"time": 2, "uses": {"r": {"x": 3, "y": 1}}}, "b": {"time": 1}}},
        {"tasks": {"a": {"time": 1}, "b": {"time": 1, "price": 0}}, "objective": "price"},
        {"devices": {"x": {"price": 0}}, "tasks": {"a": {"time": 1}}, "objective": ["makespan", "price"]},
    ],
    ids=["too few cores", "too little of a resource", "too small a budget", "free task", "free device"],
)
def test_amounts_on_devices_that_cannot_run_a_task_and_prices_of_nothing(document: dict[str, Any]) -> None:
    assert is_kept(po.compile({"placeopt": 1, "devices": {"x": {}, "y": {}}, **document}))


def training_problem(_seed: int) -> po.Problem:
    return training_pipeline()


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_the_source_and_sections_of_others_are_kept(suffix: str, tmp_path: Path) -> None:
    stated = {"source": "a model", "x-mine": {"a": [1, 2.5, 1e-9, "yes", None, True], "b": {}}, "x-none": None}
    written = tmp_path / f"again.{suffix}"
    tasks = {"t": {"time": 1}}
    po.write_problem(po.compile({"placeopt": 1, "devices": {"d": {}}, "tasks": tasks, **stated}), written)
    assert po.load(written).provenance == stated
    assert po.load(written).fingerprint() == plain_task().fingerprint()


def plain_task() -> po.Problem:
    return po.compile({"placeopt": 1, "devices": {"d": {}}, "tasks": {"t": {"time": 1}}})


@pytest.mark.parametrize("section", [{1, 2}, float("nan"), {"a": object()}])
def test_sections_that_are_no_plain_data_are_an_error(section: Any, tmp_path: Path) -> None:
    problem = po.compile({**plain_task().to_document(), "x-mine": section})
    with pytest.raises(po.UsageError, match="the section x-mine is not plain data"):
        po.write_problem(problem, tmp_path / "p.json")


@pytest.mark.parametrize("suffix", ["json", "yaml", "JSON", "txt"])
def test_names_are_kept(suffix: str, tmp_path: Path) -> None:
    names = [
        "yes",
        "1.0",
        "a: b",
        "-",
        "*",
        'quote"',
        "line\nbreak",
        "\u00e9\U0001f600",
        " space ",
        "#",
        "{x}",
        "0x1f",
        "~",
    ]
    problem = po.build_problem(
        name="on", description="two\nlines: #", task_names=names, device_names=names[::-1],
        device_types=names, duration=np.arange(169).reshape(13, 13), edges=[(0, 1), (1, 2)],
    )  # fmt: skip
    path = tmp_path / f"problem.{suffix}"
    po.write_problem(problem, path)
    assert unequal(problem, po.load(path)) == []
    assert path.read_text().startswith("{") == (suffix.lower() == "json")


def test_numbers_stay_exact(tmp_path: Path) -> None:
    """Beyond the precision of floats, with ratios that no decimal states."""
    problem = plain(
        duration=np.full((3, 2), 2**58 + 1), resident=[2**57 + 1, 0, 0], output=[1, 2, 3], capacity=[2**59 + 1, 2**60],
        payload=[2**50 + 1, 7], byte_ticks_num=[[9, 5], [1, 9]], byte_ticks_den=[[9, 7], [2**55 + 1, 9]],
        power_num=[1, 0], power_den=[7, 1], byte_energy_num=[[0, 1], [10, 0]], byte_energy_den=[[1, 3], [6, 1]],
        objective=objective({"energy": 0.1, "makespan": 2**60}, {"communication": 1e-7}),
        resolution=Fraction(60, 2**40),
    )  # fmt: skip
    path = tmp_path / "problem.yaml"
    po.write_problem(problem, path)
    assert unequal(problem, po.load(path)) == []


def test_ratios_are_stored_in_lowest_terms() -> None:
    problem = plain(
        byte_ticks_num=[[3, 2], [0, 3]], byte_ticks_den=[[1, 4], [5, 1]], power_num=[6, 0], power_den=[4, 9],
        tiers=po.build_tiers([1, 1], [[(5, 6, 4)], []]),
    )  # fmt: skip
    assert (problem.byte_ticks_num.tolist(), problem.byte_ticks_den.tolist()) == ([[0, 1], [0, 0]], [[1, 2], [1, 1]])
    assert (problem.power_num.tolist(), problem.power_den.tolist()) == ([3, 0], [2, 1])
    assert problem.tiers is not None
    assert problem.tiers.further(0) == [(5, 3, 2)]


def test_energy_without_power_is_kept() -> None:
    assert is_kept(plain(objective=objective({"energy": 1})))


def test_relocation_that_nothing_costs_is_kept() -> None:
    large = {"resident": [2**58] * 3, "byte_ticks_num": [[0, 99], [99, 0]]}
    assert is_kept(plain(**large, objective=objective({"relocation": 1}), runs_before_next_change=3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": [(0, 1), (1, 2), (0, 1)]}, "several edges lead from a to b; expected one"),
        ({"resolution": Fraction(1, 3)}, "the resolution of 1/3 s is not a decimal number"),
        (
            {"objective": objective({"makespan": Fraction(1, 3)})},
            "the weight of makespan is 1/3, which is not a decimal",
        ),
        ({"objective": objective({"makespan": Fraction(10**400, 3)})}, "the weight of makespan is 1000"),
        (
            {"objective": po.Objective(((po.Term("makespan"), po.Term("makespan", 2)),))},
            "a level of the objective contains makespan twice; expected it once",
        ),
        (
            {"runs_before_next_change": Fraction(1, 3)},
            "runs_before_next_change is 1/3, which is not a decimal number",
        ),
        (
            {"byte_ticks_num": [[0, 7], [1, 0]], "byte_ticks_den": [[1, 2**59], [1, 1]]},
            f"the bandwidth from x is the ratio {2**59}/7, which has more than 60 digits",
        ),
        (
            {"power_num": [1, 2**60], "power_den": [1, 3]},
            "the power of y is the ratio .*, which has more than 60 digits",
        ),
        (
            {"forward": [0, 1, 0], "objective": PERIOD, "pipeline": {"segments": 1}},
            "c is not colocated with its forward task a, though the stages of a device are limited",
        ),
    ],
)
def test_what_a_file_cannot_state(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    problem = plain(**changes)
    for write in (lambda: problem.to_document(), lambda: po.write_problem(problem, tmp_path / "problem.json")):
        with pytest.raises(po.UsageError, match=f"^a problem file cannot state this problem: {message}"):
            write()
    assert not list(tmp_path.iterdir())


def test_a_problem_that_no_file_may_state(tmp_path: Path) -> None:
    problem = plain(deadline=[5, 0, 5], release=[0, 0, 9])
    with pytest.raises(po.SpecError, match=r"tasks\.b\.deadline: .*\ntasks\.c\.deadline: "):
        po.write_problem(problem, tmp_path / "problem.yaml")
    assert not list(tmp_path.iterdir())


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(po.UsageError, match=r"write_problem takes a Problem, got str; placeopt\.load makes one"):
        po.write_problem("problem.yaml", plain())  # type: ignore[arg-type]
    with pytest.raises(po.UsageError, match="the path of a file is a NoneType"):
        po.write_problem(plain(), None)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="missing"):
        po.write_problem(plain(), tmp_path / "missing" / "problem.yaml")
