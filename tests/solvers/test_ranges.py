"""Ranges of a schedule that are improved apart and joined, and randomised list scheduling."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.portfolio import _restarts
from placeopt_solvers.portfolio._restarts import Restarts, randomised
from placeopt_solvers.search._intervals import moves, sweep
from placeopt_solvers.search._intervals.moves import Change, change_of, improved_range, joined, ranges
from placeopt_solvers.search._intervals.state import State, decoded

from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.model.problem import MemoryModel, Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.protocol import Options
from placeopt.protocol.pool import Pool


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Two ranges of two small windows."""
    return irregular_problem(180, 4, seed=2)


@pytest.fixture(scope="module")
def start(problem: Problem) -> Schedule:
    """The devices in turn, which any search improves."""
    return decoded(problem, problem.order, np.arange(problem.n_tasks) % problem.n_devices)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (sweep, "LEAST", 30), (moves, "LEAST", 90), (_restarts, "LARGE", 100), (_restarts, "SECONDS", 0.3),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


class TestRanges:
    @pytest.mark.parametrize("turn", range(6))
    def test_they_cover_the_sequence_and_move_from_turn_to_turn(self, turn: int) -> None:
        found = ranges(10_000, 8, turn)
        assert (len(found), found[0][0], found[-1][1]) == (8, 0, 10_000)
        assert all(a[1] == b[0] and a[0] < a[1] for a, b in pairwise(found))
        assert found[0] == (0, 1250) if turn == 0 else found != ranges(10_000, 8, turn - 1)

    def test_each_has_two_windows(self) -> None:
        assert len(ranges(450, 100, 0)) == 5
        assert ranges(10, 100, 3) == [(0, 10)]

    @pytest.mark.parametrize("model", ["sum", "peak"])  # moves, passes
    def test_tasks_outside_keep_their_order_and_devices(
        self, problem: Problem, start: Schedule, model: MemoryModel
    ) -> None:
        problem = replace(problem, memory_model=model)
        state, (_, (first, last)) = State(problem, start), ranges(problem.n_tasks, 2, 0)
        options = Options(initial=start, time_limit=1.0, seed=1)
        answer = improved_range(problem, options, first=first, last=last)
        assert answer.schedule is not None
        assert valid(problem, answer.schedule)
        assert makespan(problem, answer.schedule) < state.span
        outside = np.concatenate((state.sequence[:first], state.sequence[last:]))
        assert (answer.schedule.device[outside] == start.device[outside]).all()
        change = change_of(state, first, last, answer.schedule)
        assert sorted(change.tasks) == sorted(state.sequence[first:last])
        again = joined(state, [change])
        assert again.span == makespan(problem, answer.schedule)

    def test_a_change_that_lengthens_the_schedule_or_overfills_a_device_is_left_out(
        self, problem: Problem, start: Schedule
    ) -> None:
        state = State(problem, start)
        worst = Change(0, state.sequence[:90], np.zeros(90, dtype=np.int64))
        same = change_of(state, 90, 180, start)
        assert joined(state, []) is state
        assert joined(state, [worst]).span == state.span
        found = joined(state, [worst, same])
        assert found.span <= state.span
        assert (found.device == start.device).all()

        memory = np.ones(problem.n_tasks, dtype=np.int64)
        used = np.bincount(start.device, minlength=problem.n_devices)
        small = replace(problem, resident=memory, capacity=used)
        task = next(i for i in state.sequence.tolist() if start.device[i] != start.device[0])
        home = start.device.copy()
        home[task] = start.device[0]
        moved = Change(0, state.sequence, home[state.sequence])
        found = joined(State(small, start), [moved])
        assert (found.device == start.device).all()


class TestRandomised:
    def test_more_samples_are_not_worse_and_a_seed_repeats(self, problem: Problem, start: Schedule) -> None:
        spans = []
        for seed, samples in ((1, 1), (1, 30), (1, 30), (2, 30)):
            left = iter(range(samples - 1))
            found = randomised(problem, Options(seed=seed, should_stop=lambda left=left: next(left, None) is None))
            assert found.schedule is not None
            assert valid(problem, found.schedule)
            spans.append(makespan(problem, found.schedule))
        assert makespan(problem, start) > spans[0] > spans[1] == spans[2]
        assert spans[3] < spans[0]
        again = randomised(problem, Options(seed=3, time_limit=0.0), steps=found.stats["steps"]).schedule
        assert again is not None
        assert makespan(problem, again) <= spans[3]

    def test_tight_memory(self, problem: Problem) -> None:
        n = problem.n_tasks
        tight = replace(problem, resident=np.ones(n, dtype=np.int64), capacity=np.full(problem.n_devices, n // 4 + 1))
        found = randomised(tight, Options(time_limit=0.0)).schedule
        assert found is not None
        assert valid(tight, found)


def test_restarts_improve_a_large_graph(problem: Problem, start: Schedule) -> None:
    found: list[int] = []
    with ThreadPoolExecutor(2) as executor, Restarts(problem, Pool(executor, lambda: 2), 0) as restarts:
        while restarts._rounds < 4:  # one of each kind at least
            restarts.submit(start, 60.0)
            restarts.collect(lambda schedule: found.append(makespan(problem, schedule)))
    assert found == sorted(found, reverse=True)
    assert found[-1] < makespan(problem, start)
