"""The experiments of GiPH's paper: what is reported of kept results, which here are random numbers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.generate.random_graphs import random_document

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHAPES = {"episodes": (21,), "rnn": (3,), "moves": (40,)}
"""The axes of a result after its problems."""
DIRECT = {"changes", "relocation_and_energy", "total_cost", "seconds"}
"""Parts that run additional searches."""


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("torch", "safetensors"):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install 'placeopt[torch]'")
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(BENCHMARKS / "papers")


@pytest.fixture(autouse=True)
def _random_results(benchmarks: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Few problems in place of the test sets, and random results in place of kept ones."""
    runs, results = import_module("giph_runs"), import_module("giph_results")
    rng = np.random.default_rng(0)
    small = [po.compile(random_document(n, 3, seed=n)) for n in (12, 40, 160)]
    monkeypatch.setattr(results, "test_problems", lambda _, count: tuple(small[k % 3] for k in range(count)))

    def result(_: Any, __: Callable[[], np.ndarray], kind: str, *key: Any) -> np.ndarray:
        count = next((each for each in key if isinstance(each, int)), 1)
        values: np.ndarray = rng.uniform(1e6, 2e6, (count, *SHAPES.get(kind, ())))
        return values

    monkeypatch.setattr(results.Results, "draw", lambda *_: None)
    monkeypatch.setattr(runs.Store, "result", result)
    monkeypatch.setattr(runs.Store, "curve", lambda *_: [(5 * k, 2 - k / 100) for k in range(41)])
    monkeypatch.setattr(runs.Store, "seconds", lambda *_: {"seconds": 30.0, "steps": 10_000})


def test_the_texts_of_kept_claims_are_those_of_the_command(tmp_path: Path) -> None:
    """No claim is dropped or added, and no text of the paper is changed."""
    giph, reports, measurements = (import_module(name) for name in ("giph", "reports", "measurements"))
    records = reports.load_records(giph.GIPH)
    for item in giph.GIPH.items:
        if item.name not in records or DIRECT & {*item.run.keywords["parts"]}:
            continue
        words = records[item.name].command.split()
        seeds, cases = (int(words[words.index(name) + 1]) for name in ("--seeds", "--cases"))
        values = measurements.Measurements(tmp_path, version="test")
        report = item.run(reports.Workplace(values, None, seeds, cases, None))
        assert texts(report) == texts(records[item.name].report), item.name


def texts(report: Any) -> list[Any]:
    """The parts of a report that do not depend on results."""
    return [
        [(claim.text, claim.paper) for claim in block.claims]
        or (block.kind, block.file, block.title, block.headers[:1])
        for block in report
        if block.kind != "text"
    ]


def test_every_part_reports_on_random_results(tmp_path: Path) -> None:
    giph, reports, measurements = (import_module(name) for name in ("giph", "reports", "measurements"))
    values = measurements.Measurements(tmp_path, version="test")
    for item in giph.GIPH.items:
        if item.run is not None and not DIRECT & {*item.run.keywords["parts"]}:
            report = item.run(reports.Workplace(values, None, 2, 12, None))
            assert report, item.name
