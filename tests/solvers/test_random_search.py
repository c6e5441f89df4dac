"""The solvers `random` and `random-task-eft`: what they draw, where their moves go, what they keep."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from placeopt_solvers.baselines import _sampling

import placeopt as po
from placeopt import engine
from placeopt.errors import UsageError
from placeopt.generate.random_graphs import random_document
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.protocol import Options, Termination
from placeopt.simulation import simulate
from placeopt.verifier import verify


def search_of(problem: Problem, seed: int = 0, moves: int = 0) -> _sampling.Sampler:
    search = _sampling.Sampler(problem, Options(seed=seed), moves)
    assert search.begin() is None
    return search


def drawn(problem: Problem, count: int, tries: int | None = None) -> Counter[tuple[int, ...]]:
    """How often each placement comes."""
    search = search_of(problem)
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(count):
        search.state.sample(1, 0, search.tries if tries is None else tries, engine.Stop())
        found[tuple(search.state.device.tolist())] += 1
    return found


def tight() -> Problem:
    """Four tasks, the first two together and apart from the third, on devices that hold three tasks at most."""
    return build_problem(
        task_names=list("abcd"),
        device_names=["d0", "d1", "d2"],
        duration=np.ones((4, 3)),
        resident=np.ones(4),
        capacity=np.array([3, 3, 1]),
        group=np.array([0, 0, 1, 2]),
        separation=[(0, 2)],
    )


def placements(problem: Problem) -> set[tuple[int, ...]]:
    """All that keep the rules, by enumeration and the verifier."""
    found = set()
    for device in itertools.product(range(problem.n_devices), repeat=problem.n_tasks):
        if verify(problem, simulate(problem, device)).feasible:
            found.add(device)
    return found


class TestDrawing:
    @pytest.mark.parametrize("tries", [None, 0], ids=["drawn", "walked"])
    def test_every_placement_comes_as_often(self, tries: int | None) -> None:
        expected = placements(tight())
        assert len(expected) == 10
        found = drawn(tight(), 4000, tries)
        assert set(found) == expected
        # 400 each on average; 19 is the deviation of independent draws, which those of the walk do not exceed by much.
        assert max(abs(count - 400) for count in found.values()) < 5 * 19

    def test_where_nearly_nothing_fits_a_packing_comes_first(self) -> None:
        sizes = np.array([9, 8, 7, 6, 5, 4, 3, 2, 1, 5, 5, 5])
        problem = build_problem(
            task_names=[f"t{i}" for i in range(12)],
            device_names=["d0", "d1", "d2", "d3"],
            duration=np.ones((12, 4)),
            resident=sizes,
            capacity=np.full(4, 17),
        )
        search = search_of(problem)
        assert search.tries == 0
        found = drawn(problem, 300)
        assert len(found) > 100
        for device in found:
            assert (np.bincount(device, sizes, minlength=4) <= 17).all()

    def test_nothing_fits(self) -> None:
        problem = replace(tight(), capacity=np.array([2, 2, 0]))
        result = po.solve(replace(problem, separation=np.array([[0, 2], [0, 3]])), "random", samples=5)
        assert result.termination is Termination.COMPLETED
        sizes = build_problem(
            task_names=["a", "b", "c"],
            device_names=["d0", "d1"],
            duration=np.ones((3, 2)),
            resident=np.array([4, 4, 4]),
            capacity=np.array([7, 7]),
        )
        answer = _sampling.sampled(sizes, Options(), 5, 0)
        assert answer.termination is Termination.FAILED
        assert "cp-sat can decide" in answer.message


def chain(**rest: object) -> Problem:
    """a -> b with a payload of 4 ticks; b is fastest on d2."""
    return build_problem(
        task_names=["a", "b"],
        device_names=["d0", "d1", "d2"],
        duration=np.array([[3, 2, 9], [5, 5, 2]]),
        edges=[(0, 1)],
        payload=[4],
        byte_ticks_num=np.ones((3, 3)),
        **rest,  # type: ignore[arg-type]
    )


class TestMoves:
    def finishes(self, problem: Problem, device: list[int], task: int) -> list[int]:
        state = search_of(problem).state
        home = np.zeros(problem.n_groups, dtype=np.int64)
        home[problem.group] = device
        state.start_from(home, problem.capacity, 0, engine.Stop())
        return [state.finish(task, d) for d in range(problem.n_devices)]

    def test_finish_times_by_hand(self) -> None:
        # a ends at 3 on d0: b ends at 3 + 5, 3 + 4 + 5, 3 + 4 + 2.
        assert self.finishes(chain(), [0, 1], 1) == [8, 12, 9]
        assert self.finishes(chain(), [0, 1], 0) == [3, 2, 9]
        assert self.finishes(chain(release=np.array([1, 20])), [0, 1], 1) == [25, 25, 22]

    def test_inputs_from_the_own_group_come_along(self) -> None:
        assert self.finishes(chain(group=np.array([0, 0])), [0, 0], 1) == [8, 8, 5]

    def test_a_move_takes_the_earliest_finish(self) -> None:
        problem = chain()
        state = search_of(problem).state
        seen = set()
        for _ in range(60):
            state.start_from(np.array([0, 1]), problem.capacity, 0, engine.Stop())
            assert state.relocate()
            seen.add(tuple(state.device.tolist()))
        assert seen == {(1, 1), (0, 0)}

    def test_full_devices_and_rivals_do_not_count(self) -> None:
        result = po.solve(tight(), "random-task-eft", restarts=20)
        assert result.feasible
        assert result.stats["placements"] == 20 * 9

    def test_better_than_random_for_the_same_number_of_placements(self) -> None:
        lengths = []
        for seed in range(12):
            problem = po.compile(
                random_document(20, 8, alpha=0.3, hardware=3, support=0.5, requirement=1.0, delay=10.0, seed=seed)
            )
            eft = po.solve(problem, "random-task-eft", restarts=2, seed=seed)
            draw = po.solve(problem, "random", samples=eft.stats["placements"], seed=seed)
            assert eft.makespan is not None
            assert draw.makespan is not None
            lengths.append(eft.makespan / draw.makespan)
        assert float(np.mean(lengths)) < 0.9


@pytest.fixture(scope="module")
def middle() -> Problem:
    return po.compile(random_document(30, 5, memory=10, tightness=0.7, seed=3))


@pytest.mark.parametrize(
    ("solver", "settings"), [("random", {"samples": 60}), ("random-task-eft", {"restarts": 2, "steps": 30})]
)
class TestBoth:
    def test_more_is_never_worse(self, solver: str, settings: dict[str, int], middle: Problem) -> None:
        name = next(iter(settings))
        few = po.solve(middle, solver, workers=1, **settings)
        more = po.solve(middle, solver, workers=1, **settings | {name: 3 * settings[name]})
        assert few.feasible
        assert more.objective is not None
        assert few.objective is not None
        assert more.objective <= few.objective

    def test_a_start_is_kept(self, solver: str, settings: dict[str, int], middle: Problem) -> None:
        start = po.solve(middle, "heft")
        assert start.schedule is not None
        assert start.objective is not None
        result = po.solve(middle, solver, initial=start.schedule, **settings)
        assert result.objective is not None
        assert result.objective <= start.objective
        useless = Schedule(np.zeros(30, dtype=np.int64), start.schedule.start)  # overfills d0
        assert po.solve(middle, solver, initial=useless, **settings).feasible

    @pytest.mark.parametrize("metric", ["communication", "max_load"])
    def test_other_objectives(self, solver: str, settings: dict[str, int], metric: str, middle: Problem) -> None:
        problem = replace(middle, objective=Objective(((Term(metric),), (Term("makespan"),))))  # type: ignore[arg-type]
        first = po.solve(problem, solver, seed=1, **settings | {next(iter(settings)): 1})
        best = po.solve(problem, solver, seed=1, **settings | {next(iter(settings)): 20})
        assert best.values is not None
        assert first.values is not None
        assert best.values < first.values

    def test_it_stops(self, solver: str, settings: dict[str, int], middle: Problem) -> None:
        heard: list[po.Progress] = []
        result = po.solve(middle, solver, should_stop=lambda: bool(heard), on_progress=heard.append, **settings)
        assert result.termination is Termination.INTERRUPTED
        assert result.feasible
        assert result.objective == heard[-1].objective
        late = po.solve(middle, solver, time_limit=1e-3, **{next(iter(settings)): 10_000_000})
        assert late.termination is Termination.TIME_LIMIT
        assert late.feasible

    def test_settings_are_checked(self, solver: str, settings: dict[str, int], middle: Problem) -> None:
        with pytest.raises(UsageError, match="greater than or equal to 1"):
            po.solve(middle, solver, **{next(iter(settings)): 0})


def test_a_limit_is_a_number_of_placements(middle: Problem) -> None:
    def count(problem: Problem, limit: float | None, moves: int, placements: int | None = None) -> int:
        return _sampling.Sampler(problem, Options(time_limit=limit), moves).count(placements)

    assert count(middle, 1.0, 0) == count(middle, None, 0) == _sampling.STEPS_A_SECOND // (30 + 71 + 5)
    assert count(middle, 3.0, 0) == 3 * _sampling.STEPS_A_SECOND // (30 + 71 + 5)
    assert count(middle, 3.0, 60, 7) == 7 * 61
    assert count(middle, 1e-9, 60) == 61  # one search at least
    # Of nine placements nobody needs millions.
    assert count(chain(), 3.0, 0) == 20 * 9
    assert count(chain(), 3.0, 4) == 20 * 9 * 5


def test_hash_seeds_do_not_matter() -> None:
    program = (
        "import placeopt as po; from placeopt.generate.random_graphs import random_document as d\n"
        "p = po.compile(d(12, 4, seed=2))\n"
        "for s, k in (('random', {'samples': 40}), ('random-task-eft', {'restarts': 2})):\n"
        "    r = po.solve(p, s, seed=4, workers=1, **k); print(r.schedule.device.tolist(), r.schedule.start.tolist())\n"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert texts[0] == texts[1]
    assert texts[0].count("\n") == 2
