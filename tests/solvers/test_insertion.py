"""Heuristics that leave open whether gaps are used: the setting `insertion`, and the setting `batches`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from plain_lists import Reference, problem, random_problem

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.problem import Problem
from placeopt.verifier import verify

MEASURES: dict[str, Callable[[Reference, int, int], int]] = {
    "mct": lambda state, i, d: state.finish(i, d),
    "met": lambda state, i, d: state.duration[i][d],
    "olb": lambda state, _, d: state.free[d],
}
"""By what a heuristic that follows the topological order chooses the device."""


@pytest.mark.parametrize("name", MEASURES)
def test_gaps_are_those_of_a_plain_search(name: str) -> None:
    inserted = 0
    for seed in range(40):
        case = random_problem(seed, like=False, tight=seed % 2 == 1)
        if (case.group_feasible().sum(axis=1) < 2).any():
            continue  # memory is reserved for groups with one device
        order = case.order.tolist()

        def choose(state: Reference, order: list[int] = order) -> tuple[int, int]:
            i = order[len(state.device)]
            return i, min(state.devices(i), key=lambda d: (MEASURES[name](state, i, d), d))

        found = []
        for insertion in (False, True):
            state = Reference(case, insertion=insertion)
            while len(state.device) < case.n_tasks and state.devices(order[len(state.device)]):
                state.put(*choose(state))
            if len(state.device) < case.n_tasks:
                break
            schedule = po.solve(case, name, insertion=insertion).schedule
            assert schedule is not None
            assert schedule.device.tolist() == [state.device[i] for i in range(case.n_tasks)], (seed, insertion)
            assert schedule.start.tolist() == [state.start[i] for i in range(case.n_tasks)], (seed, insertion)
            found.append(schedule)
        inserted += len(found) == 2 and found[0].start.tolist() != found[1].start.tolist()
    assert inserted > 5


@pytest.mark.parametrize("name", ["mct", "met", "olb", "max-min", "duplex"])
def test_a_gap_that_fits_exactly_is_used(name: str) -> None:
    # t0 is released at 5 and comes first: by index, or because it ends last. t1 takes 5 ticks.
    case = problem([[1], [5]], release=[5, 0])
    assert po.solve(case, name).makespan == 6
    expected = 6 if name == "duplex" else 11  # min-min starts with t1
    assert po.solve(case, name, insertion=False).makespan == expected
    assert po.solve(problem([[1], [6]], release=[5, 0]), "olb").makespan == 12


def test_batches_place_all_ready_tasks_first() -> None:
    # t0 ends at 1. Its consumer t2 could end at 2, before t1 could; in batches t1 comes first.
    case = problem([[1], [5], [1]], [(0, 2)], payload=[0])
    starts = [po.solve(case, "min-min", batches=batches).schedule.start.tolist() for batches in (False, True)]  # type: ignore[union-attr]
    assert starts == [[0, 2, 1], [0, 1, 6]]


def test_a_task_without_device_does_not_end_its_batch_early() -> None:
    # t0 fills d0, which t1 needs. t2, ready after t0, is placed before groups are moved to make room.
    only = np.array([[1, 1], [1, 0], [1, 1]], dtype=np.bool_)
    case = problem([[1, 9], [2, 2], [1, 1]], [(0, 2)], payload=[0], resident=[3, 3, 3], capacity=[3, 6], feasible=only)
    for name in ("min-min", "max-min", "sufferage"):
        result = po.solve(case, name)
        assert result.feasible
        assert result.schedule is not None
        assert result.schedule.device.tolist() == [1, 0, 1]


def test_min_min_without_batches_has_no_use_for_gaps() -> None:
    """Ends never decrease from one choice to the next, so no task becomes ready before a gap."""
    for seed in range(40):
        case = random_problem(seed, like=False)
        case = replace(case, duration=np.maximum(case.duration, 1))
        schedules = [po.solve(case, "min-min", batches=False, insertion=gaps).schedule for gaps in (False, True)]
        assert schedules[0] is not None
        assert schedules[1] is not None
        assert np.array_equal(schedules[0].device, schedules[1].device)
        assert np.array_equal(schedules[0].start, schedules[1].start)


def mean_ratio(name: str, cases: list[Problem]) -> float:
    """The geometric mean of the makespan with insertion as a multiple of that without."""
    ratios = []
    for case in cases:
        found = [po.solve(case, name, insertion=gaps).makespan for gaps in (True, False)]
        assert found[0] is not None
        assert found[1] is not None
        ratios.append(found[0] / found[1])
    return float(np.exp(np.mean(np.log(ratios))))


@pytest.mark.parametrize(("name", "most"), [("min-min", 0.99), ("max-min", 0.85), ("sufferage", 0.98)])
def test_gaps_shorten_schedules_on_average(name: str, most: float) -> None:
    cases = [layered_problem(60, 4, ccr=ccr, seed=seed) for ccr in (0.2, 1.0, 5.0) for seed in range(8)]
    assert mean_ratio(name, cases) < most


@pytest.mark.parametrize("name", ["min-min", "max-min", "sufferage", "duplex", "mct", "met", "olb"])
def test_schedules_with_gaps_are_feasible_with_ports_and_little_memory(name: str) -> None:
    for seed in range(12):
        case = random_problem(seed, like=seed % 2 == 0, tight=True)
        for each in (case, replace(case, contention="port")):
            schedule = po.solve(each, name).schedule
            assert schedule is not None
            assert verify(each, schedule).feasible
