"""Slow lower bounds of the period: by hand, against brute force, and on published graphs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pipelines import PERIOD, random_pipeline, unlike_pipeline
from typer.testing import CliRunner

import placeopt as po
from placeopt.bounding.borders import Borders, frontier, highest_refuted
from placeopt.bounding.borders.configurations import Configurations, _Sets
from placeopt.bounding.borders.division import divides
from placeopt.bounding.borders.network import Network, items_of
from placeopt.bounding.quick import best_bound, narrowed_classes
from placeopt.cli.app import app
from placeopt.model.building import with_changes
from placeopt.model.objective import evaluate
from placeopt.proving.portfolio import bounds

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "dnn-throughput"


def chain(durations: list[int], payload: int, devices: int = 2, **changes: Any) -> po.Problem:
    """Tasks that follow each other; a byte takes a tick."""
    n = len(durations)
    arrays: dict[str, Any] = {
        "task_names": [f"t{i}" for i in range(n)],
        "device_names": [f"d{d}" for d in range(devices)],
        "duration": [[ticks] * devices for ticks in durations],
        "edges": [(i, i + 1) for i in range(n - 1)],
        "payload": [payload] * (n - 1),
        "byte_ticks_num": np.ones((devices, devices)),
        "objective": PERIOD,
        "pipeline": {},
    }
    return po.build_problem(**(arrays | changes))


def refutes(borders: Borders, period: int, branches: int = 1, rounds: int = 1) -> bool:
    """Whether the ideal division of the amounts for a period takes longer."""
    shares = borders.shares(period, branches, rounds)
    return shares is None or shares.load() > period


def border_bound(problem: po.Problem, branches: int = 1) -> int:
    """The best bound of borders, without a known schedule."""
    borders, least = Borders(narrowed_classes(problem)), int(best_bound(problem).value)
    return highest_refuted(
        lambda period: refutes(borders, period, branches), least, None, lambda: False, borders.most
    )  # fmt: skip


def best_period(problem: po.Problem) -> int | None:
    """The least period of all placements; None if there are none."""
    result = po.solve(problem, "brute-force", workers=1)
    if result.schedule is None:
        assert result.termination is po.Termination.INFEASIBLE
        return None
    assert result.termination is po.Termination.OPTIMAL
    return int(evaluate(problem, result.schedule)[0])


def test_a_set_of_groups_pays_for_the_items_at_its_border() -> None:
    """Task 0 sends one output to 1 and 2, and separate data to 3 and 4."""
    problem = po.build_problem(
        task_names=[f"t{i}" for i in range(5)],
        device_names=["x", "y"],
        duration=[[1, 1]] * 5,
        edges=[(0, 1), (0, 2), (0, 3), (0, 4)],
        payload=[3, 3, 5, 7],
        shared=[True, True, False, False],
        byte_ticks_num=np.ones((2, 2)),
        objective=PERIOD,
        pipeline={},
    )
    items = items_of(problem)
    network = Network(5, items, items.payload)
    for members, border in (([0], 15), ([0, 1], 15), ([0, 1, 2], 12), ([1, 2], 3), ([1], 3), ([2, 3, 4], 15)):
        found = np.zeros(5, dtype=np.bool_)
        found[members] = True
        assert network.border(found) == border
    assert network.border(np.ones(5, dtype=np.bool_)) == 0
    # With a worth of 4 each, {0, 1, 2} is worth 12 and costs 12; {0, .., 4} is worth 20. Without 4, {0, .., 3}: 16 - 7.
    worth, first = np.full(5, 4), np.arange(5) == 0
    value, found = network.most(first, np.zeros(5, dtype=np.bool_), 1, worth)
    assert (value, bool(found.all())) == (20, True)
    value, found = network.most(first, np.arange(5) == 4, 1, worth)
    assert (value, found.tolist()) == (9, [True, True, True, True, False])


def test_a_chain_must_be_cut() -> None:
    """Work of 16 on two devices; a cut costs 2 on both sides: two halves take 8 + 2, one device 16.

    Within 9, {t0, t1} takes 4 + 4 + 2 = 10 and no pair fits, so that four tasks need four devices.
    """
    problem = chain([4, 4, 4, 4], 2)
    assert best_bound(problem).value == 8
    assert border_bound(problem, 16) == best_period(problem) == 10


@pytest.mark.parametrize(
    ("rules", "least"),
    [
        # Apart, each task takes 6 + 4; within 9, no device can run both, nor one of them.
        ({}, 10),
        # Sent and received count 4 / 2 at least, so that 6 + 2 fits; in truth, each device sends or receives 4.
        ({"full_duplex": True}, 8),
        # A device computes for 6 while it moves 4.
        ({"overlap": True}, 6),
        # One stage, launched once: 6 + 4 + 3.
        ({"launch": 3}, 13),
        # Transfers take no time of the devices.
        ({"free_transfers": True}, 6),
        # Two replicas of one stage take 12 / 2.
        ({"replicas": 2}, 6),
        # They synchronise 2 (2 - 1) / 2 of 3 + 3 bytes: (12 + 6) / 2.
        ({"replicas": 2, "gradient": [3, 3]}, 9),
    ],
)
def test_rules_of_two_tasks(rules: dict[str, Any], least: int) -> None:
    problem = chain([6, 6], 4, pipeline=rules)
    assert border_bound(problem, 8) == least
    assert least <= (best_period(problem) or 0)


def test_transfers_beside_computing_count_alone() -> None:
    """Apart, the tasks take 4 and move 9; together, they take 8."""
    problem = chain([4, 4], 9, pipeline={"overlap": True})
    assert best_bound(problem).value == 4
    assert border_bound(problem, 8) == best_period(problem) == 8


def test_memory_limits_sets() -> None:
    """A device holds one task: 3 + 5 for the ends of the chain, 3 + 5 + 5 between them."""
    problem = chain([3, 3, 3], 5, devices=3, resident=[2] * 3, capacity=[3] * 3)
    assert border_bound(problem, 8) == best_period(problem) == 13


def test_separated_tasks_do_not_share_a_set() -> None:
    """Three tasks, the first and the last apart: 3 + 5 for one of them, 6 + 5 for the others."""
    problem = chain([3, 3, 3], 5, separation=[(0, 2)])
    assert border_bound(problem, 8) == best_period(problem) == 11


def test_the_fastest_link_counts() -> None:
    """Two tasks on unlike devices, one of which computes and moves twice as fast."""
    problem = chain([4, 4], 6, duration=[[4, 2], [4, 2]], byte_ticks_num=np.array([[1, 1], [2, 1]]))
    found = border_bound(problem, 8)
    assert best_bound(problem).value < found <= (best_period(problem) or 0) == 4


def test_whole_groups_are_divided() -> None:
    """9, 9, 4, 4, 4 on two devices: 15 each if divided ideally; 9 + 4 + 4 and 9 + 4 is the best."""
    problem = chain([9, 9, 4, 4, 4], 0)
    assert {bound.name: bound.value for bound in bounds(problem)} == {"load": 15, "packing": 13}
    sharing = Borders(narrowed_classes(problem)).plain
    never: Callable[[], bool] = lambda: False  # noqa: E731
    assert divides(sharing, 16, seconds=None, workers=1, should_stop=never) is False
    assert divides(sharing, 17, seconds=None, workers=1, should_stop=never) is True
    found = {bound.name: bound for bound in bounds(problem, time_limit=20, blocks=False)}
    assert found["division"].value == 17
    assert "work of 30 ns, however whole groups are divided" in found["division"].explanation


def test_sets_that_devices_hold() -> None:
    """The same: within 16, a device holds 9 and one 4, or three 4; within 17, devices hold 9, 4, 4 and 9, 4."""
    sets = Configurations(Borders(narrowed_classes(chain([9, 9, 4, 4, 4], 0))), 1, lambda: False)
    assert sets.refute(16, None)
    assert not sets.refute(17, None)


def test_sets_count_what_crosses_their_border() -> None:
    """9, 1, 1, 9 in a chain with payloads of 3: within 13, 9 and 1 leave with 3 ticks; within 12, 9 alone does."""
    problem = chain([9, 1, 1, 9], 3)
    sets = Configurations(Borders(narrowed_classes(problem)), 1, lambda: False)
    assert sets.refute(12, None)
    assert not sets.refute(13, None)
    assert best_period(problem) == 13
    problem = chain([6, 9, 11, 1, 2, 10, 11, 3, 4], 5)
    found = {bound.name: bound for bound in bounds(problem, time_limit=20, blocks=False)}
    assert found["configurations"].value == 34 == best_period(problem)
    assert "hold too little of all groups" in found["configurations"].explanation


def random_outputs(seed: int) -> po.Problem:
    """Five tasks whose outputs may go to several devices; a byte takes a tick."""
    draw = np.random.default_rng(seed)
    edges = [(i, j) for i in range(5) for j in range(i + 1, 5) if draw.random() < 0.6]
    output = draw.integers(0, 9, 5).tolist()
    return po.build_problem(
        task_names=[f"t{i}" for i in range(5)],
        device_names=["x", "y", "z"],
        duration=draw.integers(0, 12, (5, 3)),
        edges=edges,
        payload=[output[i] for i, _ in edges],
        shared=[True] * len(edges),
        byte_ticks_num=np.ones((3, 3)),
        objective=PERIOD,
        pipeline={"full_duplex": bool(seed % 2)},
    )


@pytest.mark.parametrize("make", [random_pipeline, unlike_pipeline, random_outputs])
@pytest.mark.parametrize("finest", [0, frontier.FINEST])
def test_no_set_of_a_placement_is_missing(
    make: Callable[[int], po.Problem], finest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With sets by CP-SAT, and by dynamic programming where that is possible."""
    monkeypatch.setattr(frontier, "FINEST", finest)
    reached = 0
    for seed in range(2000, 2040):
        problem = make(seed)
        best = best_period(problem)
        if best is None or problem.pipeline is None or problem.pipeline.replicas > 1:
            continue
        sets = Configurations(Borders(narrowed_classes(problem)), 1, lambda: False)
        assert not sets.refute(best, None), seed
        assert not sets.refute(2 * best, None), seed
        reached += best > 0 and sets.refute(best - 1, None)
    assert reached > 3


@pytest.mark.parametrize("make", [random_pipeline, unlike_pipeline, random_outputs])
def test_dynamic_programming_and_cp_sat_find_the_same_worth(make: Callable[[int], po.Problem]) -> None:
    compared = linked = 0
    for seed in range(3000, 3060):
        borders, draw = Borders(narrowed_classes(make(seed))), np.random.default_rng(seed)
        for c in range(len(borders.plain.size)):
            sets = _Sets(borders, c, int(draw.integers(1, 30)), [])
            if sets.frontier is None:
                continue
            groups, items = len(borders.plain.memory), len(sets.linked)
            gain = np.where(sets.linked, draw.integers(-40, 40, items), 0)
            worths = np.concatenate((draw.integers(0, 50, groups), gain))
            most = sets.held(worths, None, lambda: False)
            assert most == max(int(each.balance @ worths) for each in sets.known), seed
            assert most == sets.most(worths, math.inf, None, 1, lambda: False), seed
            compared += 1
            linked += bool(sets.linked.any())
    assert compared > 20
    assert make is not random_outputs or linked > 20


def test_items_that_wait_for_consumers_limit_the_dynamic_program() -> None:
    """Branches that fork and join have 2 to the power of branches states; 16 items may wait."""
    for branches, fits in ((4, True), (14, False)):
        names = ["fork", *(f"b{i}" for i in range(branches)), "join"]
        edges = [(0, i + 1) for i in range(branches)] + [(i + 1, branches + 1) for i in range(branches)]
        problem = po.build_problem(
            task_names=names,
            device_names=["x", "y"],
            duration=[[1, 1]] * len(names),
            edges=edges,
            payload=[1] * len(edges),
            byte_ticks_num=np.ones((2, 2)),
            objective=PERIOD,
            pipeline={},
        )
        assert (_Sets(Borders(narrowed_classes(problem)), 0, 5, []).frontier is not None) is fits


def test_a_dynamic_program_that_stops_proves_nothing() -> None:
    sets = _Sets(Borders(narrowed_classes(chain([9, 1, 1, 9] * 50, 3))), 0, 200, [])
    worths = np.concatenate((np.full(200, 100), np.zeros(199, dtype=np.int64)))
    assert sets.held(worths, 0.0, lambda: False) == 20_000
    assert 0 < sets.held(worths, None, lambda: False) < 20_000


@pytest.mark.parametrize("make", [random_pipeline, unlike_pipeline])
def test_no_period_of_a_placement_is_refuted(make: Callable[[int], po.Problem]) -> None:
    reached = raised = 0
    for seed in range(2000, 2014):
        problem = make(seed)
        best = best_period(problem)
        if best is None:
            continue
        borders, least = Borders(narrowed_classes(problem)), int(best_bound(problem).value)
        found = least
        for period in sorted({best - 2, best - 1, best, best + 1, 2 * best} - {-2, -1}):
            for effort in ((1, 1), (8, 3)):
                if refutes(borders, period, *effort):
                    assert period < best, seed
                    found = max(found, period + 1)
        shares = borders.shares(best, 8, 3)
        assert shares is not None
        if problem.pipeline is not None and problem.pipeline.replicas == 1:
            limit = best * shares.factor
            assert divides(shares.sharing, limit, seconds=None, workers=1, should_stop=lambda: False) is True, seed
        reached += found == best
        raised += found > least
    assert reached > 3
    assert raised >= 2


def test_bounds_in_time_and_of_weighted_objectives() -> None:
    problem = chain([4, 4, 4, 4], 2, pipeline={"segments": 1})
    found = bounds(problem, time_limit=20)
    assert found[0].value == 10
    assert {"load", "packing", "borders"} <= {bound.name for bound in found}
    assert "most of it around task t" in next(bound.explanation for bound in found if bound.name == "borders")
    doubled = with_changes(problem, objective=po.Objective(((po.Term("period", 2),), (po.Term("makespan"),))))
    assert bounds(doubled, time_limit=20)[0].value == 20
    assert bounds(doubled, time_limit=20, should_stop=lambda: True)[0].name == "load"


def test_the_command_lists_bounds_of_a_pipeline(tmp_path: Path) -> None:
    """Two devices; a cut costs 2 ms on both sides, so that the best stages take 8 + 2."""
    tasks = {f"t{i}": {"time": 4, "output": 0.002} | ({"after": f"t{i - 1}"} if i else {}) for i in range(4)}
    spec: dict[str, Any] = {"placeopt": 1, "objective": "period", "units": {"time": "ms", "memory": "GB"}}
    spec |= {"devices": {"gpu": {"count": 2}}, "links": {"default": {"bandwidth": "1 GB/s"}}, "pipeline": {}}
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(spec | {"tasks": tasks}))
    done = CliRunner().invoke(app, ["bounds", str(path), "--time-limit", "20s", "--workers", "1", "--json"])
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert data["bound"] == 10_000_000
    assert {bound["name"] for bound in data["bounds"]} >= {"load", "packing", "borders", "cp-sat"}
    assert "relaxation" not in done.output


def test_large_numbers_leave_the_work() -> None:
    """Numbers whose sums would exceed 64 bits in a network: the amounts are the computing times."""
    borders = Borders(narrowed_classes(chain([1 << 50, 1 << 50], 1 << 50)))
    shares = borders.shares(1 << 50, 1)
    assert shares is not None
    assert (shares.factor, shares.load()) == (1, 1 << 50)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is missing; PLACEOPT_DATA names the folder above")
@pytest.mark.parametrize(
    ("name", "best"), [("bert24_inference", 17_714_724), ("bert24_training", 39_789_548)]
)  # fmt: skip
def test_published_layers_without_stages(name: str, best: int) -> None:
    """Free stages and no limit of memory; the best periods are those of CP-SAT, which proves the second."""
    spec = po.read_dnn_partitioning(DATA / f"{name}.json", objective="period")
    del spec["pipeline"]["stages"], spec["devices"]["accelerator"]["memory"]
    wanted = int(0.97 * best)  # where the computation ends
    # It takes a second; `division` has a share of the time, which must suffice on a loaded machine.
    found = bounds(po.compile(spec), time_limit=600, known=wanted, blocks=False)[0]
    assert found.name == "division"
    assert found.value == wanted
