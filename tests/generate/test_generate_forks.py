"""Random forks, joins, fork-joins and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.generate.forks import KINDS, fork_document


def degrees(problem: po.Problem) -> tuple[list[int], list[int]]:
    return np.diff(problem.in_start).tolist(), np.diff(problem.out_start).tolist()


@pytest.mark.parametrize("n", [3, 4, 21])
def test_the_kinds_have_their_shapes(n: int) -> None:
    found = {kind: degrees(po.compile(fork_document(n, kind=kind))) for kind in KINDS}
    ones = [1] * (n - 1)
    assert found["fork"] == ([0, *ones], [n - 1] + [0] * (n - 1))
    assert found["join"] == ([0] * (n - 1) + [n - 1], [*ones, 0])
    assert found["fork-join"] == ([0, *ones[1:], n - 2], [n - 2, *ones[1:], 0])
    assert found["out-tree"][0] == [0, *ones]
    assert found["in-tree"][1] == [*ones, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_transfers_are_scaled_to_the_ccr(kind: str) -> None:
    for ccr in (0.0, 0.5, 10.0):
        problem = po.compile(fork_document(30, 3, kind=kind, ccr=ccr, scale=100, seed=1))
        work = int(problem.duration[:, 0].sum())
        moved = int(problem.transfer(problem.payload, 0, 1).sum())
        assert moved == pytest.approx(ccr * work, rel=0.01)
        assert set((problem.duration[:, 0] // 100).tolist()) <= set(range(1, 11))
        assert not (problem.duration % 100).any()
        assert len(set(problem.device_class.tolist())) == 1


def test_the_same_seed_gives_the_same_document() -> None:
    assert fork_document(seed=3) == fork_document(seed=3) != fork_document(seed=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "forkjoin"}, 'kind: "?forkjoin"? is unknown; did you mean fork-join'),
        ({"kind": 3}, "kind: 3 is unknown; known are fork, join"),
        ({"tasks": 2}, "tasks: 2 is not valid; expected a whole number of at least 3"),
        ({"ccr": -1}, "ccr: -1 is not valid"),
        ({"scale": 0}, "scale: 0 is not valid"),
        ({"weight": (0, 3)}, "weight"),
        ({"depth": 3}, "fork has no option depth"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fork_document(**options)
