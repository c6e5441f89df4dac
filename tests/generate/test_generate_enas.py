"""GiPH's deep learning graphs: cells, unrolled graphs with their costs, and the sets."""

from __future__ import annotations

import numpy as np
import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.generate.giph.enas import VOCABULARY, WIDTH, Cell, cell_tasks, drawn_cell
from placeopt.generate.giph.sets import SETS
from placeopt.passes import apply_passes

SMALL = Cell((None, 0, 1, 0), ("tanh", "relu", "identity", "sigmoid"))
"""0 -> 1 -> 2 and 0 -> 3: nodes 1 and 2 are a chain, and 2 and 3 are loose ends."""

BEST_CELL = Cell(
    (None, 0, 1, 1, 2, 2, 5, 1, 6, 8, 8, 8),
    tuple(("tanh", "relu", "identity", "sigmoid")[k] for k in (0, 0, 1, 2, 0, 0, 1, 1, 0, 1, 1, 1)),
)
"""The cell in the released scripts of ENAS."""


def test_chains_of_nodes_are_fused() -> None:
    assert SMALL.operators() == [[0], [1, 2], [3]]
    assert SMALL.loose_ends() == [2, 3]
    assert Cell((None, 0, 1), ("tanh",) * 3).operators() == [[0, 1, 2]]


def test_the_best_cell_of_enas_has_nine_operators_and_a_mean() -> None:
    assert BEST_CELL.operators() == [[0, 1], [2], [3], [4], [5, 6, 8], [7], [9], [10], [11]]
    assert BEST_CELL.loose_ends() == [3, 4, 7, 9, 10, 11]


def test_operators_and_costs_of_an_unrolled_cell() -> None:
    tasks = cell_tasks(SMALL, steps=2, batch=3)["tasks"]
    steps = [[f"step{t}/{name}" for name in ("node1", "node2-3", "node4", "mean", "output")] for t in (1, 2)]
    assert list(tasks) == ["embedding", *steps[0], *steps[1], "loss"]
    values = 3 * WIDTH
    # The first node reads the word and the last output by two matrices each for W and V; the last output is external.
    assert tasks["step1/node1"]["flops"] == values * (2 * 4 * WIDTH + 5 + 4 + 3)
    assert tasks["step1/node1"]["bytes"] == 4 * (3 * values + 4 * WIDTH * WIDTH)
    assert tasks["step1/node2-3"]["flops"] == values * (2 * 4 * WIDTH + (1 + 4 + 3) + (0 + 4 + 3))
    assert tasks["step1/mean"]["flops"] == 2 * values
    assert tasks["step1/output"]["flops"] == 3 * VOCABULARY * (2 * WIDTH + 5 + 2)
    assert tasks["step2/node1"]["after"] == {"embedding": 4 * values, "step1/mean": None}
    assert tasks["loss"]["after"] == ["step1/output", "step2/output"]
    assert all(not {"memory", "colocate"} & set(task) for task in tasks.values())


@pytest.mark.parametrize(("steps", "batch", "message"), [(0, 1, "steps: 0"), (1, 0, "batch: 0")])
def test_sizes_are_checked(steps: int, batch: int, message: str) -> None:
    with pytest.raises(UsageError, match=f"{message} is not valid; expected a whole number of at least 1"):
        cell_tasks(SMALL, steps, batch)


def test_drawn_cells_have_ten_operators_per_step() -> None:
    rng = np.random.default_rng(0)
    cells = [drawn_cell(rng) for _ in range(5)]
    assert len(set(cells)) == 5
    for cell in cells:
        tasks = cell_tasks(cell, steps=3, batch=2)["tasks"]
        assert len(tasks) == 3 * 10 + 2
        assert sum(len(chain) for chain in cell.operators()) == len(cell.reads) == 12


def test_sets_are_those_of_the_paper() -> None:
    train, _, test = SETS["enas"]()
    sizes = [[len(graph["tasks"]) for graph in cases.graphs] for cases in (train, test)]
    assert [len(each) for each in sizes] == [150, 150]
    assert (min(sizes[0] + sizes[1]), max(sizes[0] + sizes[1])) == (202, 302)
    designs = [{tuple(graph["tasks"])[1:11] for graph in cases.graphs} for cases in (train, test)]
    assert designs[0] == designs[1]
    assert len(designs[0]) > 5  # names show the structure of a cell, not its activations
    assert [len(cases.networks[0]["devices"]) for cases in (train, test)] == [8, 8]
    assert list(SETS["enas"]().test.graphs[:3]) == list(test.graphs[:3])


def test_a_problem_is_merged_into_forty_groups() -> None:
    test = SETS["enas"]().test
    problem = po.compile(test.document(*test.pairs()[70]))
    reduced = apply_passes(problem, test.passes).problem
    assert (problem.n_devices, reduced.n_tasks) == (8, 40)
    assert reduced.duration.sum() == problem.duration.sum()
