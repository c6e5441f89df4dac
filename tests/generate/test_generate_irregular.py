"""Irregular layered graphs: work and data over decades, layers of random width."""

from typing import Any

import numpy as np
import pytest

from placeopt.errors import UsageError
from placeopt.generate.irregular_graphs import irregular_document, irregular_problem
from placeopt.io.compiler import compile_spec


@pytest.mark.parametrize("options", [{}, {"tasks": 300, "devices": 5, "seed": 3, "ccr": 10.0, "reach": 1}])
def test_irregular_document_and_problem_are_the_same(options: dict[str, Any]) -> None:
    assert irregular_problem(**options).fingerprint() == compile_spec(irregular_document(**options)).fingerprint()


def test_work_and_data_span_three_decades() -> None:
    problem = irregular_problem(10_000, 8)
    work = problem.duration[:, 0]
    assert 10 <= work.min() <= 11
    assert 9_900 < work.max() <= 10_000
    # One third of log-uniform numbers over three decades lies in each decade.
    assert np.histogram(work, [0, 100, 1000, 10_001])[0] / 10_000 == pytest.approx([1 / 3] * 3, abs=0.02)
    assert problem.payload.max() / problem.payload.min() > 500
    transfer = problem.transfer(problem.payload, 0, 1)
    assert transfer.mean() == pytest.approx(problem.duration.mean(), rel=0.01)
    assert (problem.duration[:, 0] >= problem.duration[:, 3]).all()
    assert problem.duration[:, 0].sum() / problem.duration[:, 7].sum() == pytest.approx(1.75, rel=0.01)


def test_layers_have_about_the_stated_width_and_edges() -> None:
    problem = irregular_problem(10_000, 2, width=20, in_degree=2.5, reach=1)
    depth = np.zeros(10_000, dtype=np.int64)  # edges are sorted by producer, so depths of producers are known
    for source, target in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        depth[target] = max(depth[target], depth[source] + 1)
    width = np.bincount(depth)
    assert width.mean() == pytest.approx(20, rel=0.1)
    assert 9 <= width[:-1].min() <= 12
    assert 28 <= width.max() <= 31
    assert problem.n_edges / 10_000 == pytest.approx(2.5, rel=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 0}, "tasks: 0 is not valid"),
        ({"width": 0.5}, "width: 0.5 is not valid"),
        ({"in_degree": 0.9}, "in_degree: 0.9 is not valid"),
        ({"decades": 10}, "decades: 10 is not valid"),
        ({"depth": 1}, "irregular has no option depth"),
    ],
)
def test_irregular_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        irregular_document(**options)
