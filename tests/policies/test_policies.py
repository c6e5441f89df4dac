"""Search policies: the state, records and costs of episodes, and the moves of each policy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from trainable_problems import trainable_problem

import placeopt as po
from placeopt.errors import UsageError
from placeopt.generate.random_graphs import random_document
from placeopt.model.building import build_problem
from placeopt.model.metrics import critical_path
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, edge_ticks
from placeopt.policies import (
    POLICIES,
    Annealing,
    Episode,
    Policy,
    RandomTaskEft,
    RandomTaskGreedy,
    Simulator,
    State,
    random_placement,
    run_episode,
    sample_placements,
)
from placeopt.policies.state import Space
from placeopt.simulation import simulate, simulate_noisy
from placeopt.verifier import verify


def giph(seed: int, tasks: int = 16) -> Problem:
    """A problem as in the evaluation of GiPH (benchmarks/giph_sets.py)."""
    document = random_document(
        tasks, 20, alpha=0.3, connection=0.2, hardware=5, requirement=1.0, support=0.2, seed=seed,
        speed=5.0, speed_heterogeneity=0.8, bandwidth=100.0, bandwidth_heterogeneity=0.8, delay=10.0,
    )  # fmt: skip
    return po.compile(document)


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


class Scripted(Policy):
    """Makes the given moves, and reverts those of the steps in `back`."""

    name = "scripted"

    def __init__(self, *moves: tuple[int, int], back: tuple[int, ...] = ()) -> None:
        self.moves, self.back = moves, back
        self.seen: list[State] = []

    def move(self, state: State) -> tuple[int, int]:
        self.seen.append(state)
        return self.moves[state.step]

    def keep(self, before: State, after: State) -> bool:
        assert after.step == before.step + 1
        assert after.history[-1].makespan == after.makespan
        return before.step not in self.back


def state_of(problem: Problem, device: list[int]) -> State:
    policy = Scripted((0, device[0]))
    run_episode(problem, policy, device, steps=1)
    return policy.seen[0]


class TestState:
    def test_finish_times_by_hand(self) -> None:
        # a ends at 3 on d0: b ends at 3 + 5, 3 + 4 + 5, 3 + 4 + 2.
        state = state_of(chain(), [0, 1])
        assert state.finish_times(1).tolist() == [8, 12, 9]
        assert state.finish_times(0).tolist() == [3, 2, 9]
        assert state_of(chain(release=np.array([1, 20])), [0, 1]).finish_times(1).tolist() == [25, 25, 22]
        assert state_of(chain(group=np.array([0, 0])), [0, 0]).finish_times(1).tolist() == [8, 8, 5]

    def test_state_is_read_only(self) -> None:
        state = state_of(chain(), [0, 1])
        run = state.run
        for array in (state.device, run.start, run.end, run.edge_ticks, state.options(0), state.finish_times(0)):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1

    def test_options_satisfy_all_constraints(self) -> None:
        problem = build_problem(
            task_names=list("abcd"),
            device_names=["d0", "d1", "d2", "d3"],
            duration=np.ones((4, 4)),
            feasible=np.array([[1, 1, 1, 0]] + [[1, 1, 1, 1]] * 3),
            resident=np.array([2, 2, 3, 1]),
            capacity=np.array([5, 5, 4, 9]),
            group=np.array([0, 0, 1, 2]),
            separation=[(0, 2)],
        )
        space = Space(problem)
        device = np.array([0, 0, 1, 3])
        # The group of a and b needs 4 bytes, not on d3, and separation from c, which is on d1; d needs a free byte.
        assert space.options(device, 1).tolist() == [0, 2]
        assert space.options(device, 2).tolist() == [1, 2, 3]
        assert space.options(device, 3).tolist() == [0, 1, 2, 3]
        assert space.options(np.array([2, 2, 1, 3]), 3).tolist() == [0, 1, 3]
        assert space.moved(device, 1, 2).tolist() == [2, 2, 1, 3]

    @pytest.mark.parametrize("seed", range(20))
    def test_the_table_contains_the_options_of_every_task(self, seed: int) -> None:
        problem = trainable_problem(np.random.default_rng(seed))
        space, rng = Space(problem), np.random.default_rng(seed)
        for _ in range(5):  # also placements that break rules
            device = rng.integers(0, problem.n_devices, problem.n_groups)[problem.group]
            table = space.table(device)
            for task in range(problem.n_tasks):
                assert np.flatnonzero(table[problem.group[task]]).tolist() == space.options(device, task).tolist()

    @pytest.mark.parametrize("seed", range(6))
    def test_critical_path_is_contiguous(self, seed: int) -> None:
        problem = giph(seed)
        device = random_placement(problem, np.random.default_rng(seed))
        state = state_of(problem, device.tolist())
        path, run = state.critical_path(), simulate(problem, device)
        ticks = edge_ticks(problem, device).tolist()
        moving = {(int(problem.edge_source[k]), int(problem.edge_target[k])): ticks[k] for k in range(problem.n_edges)}
        ends = run.start + problem.duration[np.arange(problem.n_tasks), device]
        assert run.start[path[0]] == 0
        assert ends[path[-1]] == state.makespan == ends.max()
        for u, v in pairwise(path):
            assert run.start[v] in (ends[u] + moving.get((u, v), -1), ends[u] if device[u] == device[v] else -1)


class TestEpisode:
    @pytest.mark.parametrize("noise", [0.0, 0.2])
    @pytest.mark.parametrize("name", sorted(POLICIES))
    def test_record_agrees_with_simulation(self, name: str, noise: float) -> None:
        problem = giph(3)
        first = random_placement(problem, np.random.default_rng(0))
        found = run_episode(problem, POLICIES[name](), first, steps=32, noise=noise, seed=4)
        device, current, evaluations = first.copy(), found.current[0], 1
        for step, made in enumerate(found.history, 1):
            if device[made.task] == made.device:
                assert made.makespan == current
            else:
                evaluations += 1
                if noise == 0:
                    moved = device.copy()
                    moved[made.task] = made.device
                    start = simulate(problem, moved).start
                    assert made.makespan == (start + problem.duration[np.arange(16), moved]).max()
            if made.kept:
                device[made.task], current = made.device, made.makespan
            assert found.current[step] == current
        assert len(found.history) == 32
        seen = [int(found.current[0]), *(made.makespan for made in found.history)]
        np.testing.assert_array_equal(found.best, np.minimum.accumulate(seen))
        if name != "random-task-greedy":
            assert found.evaluations[-1] <= evaluations
        if noise == 0:
            np.testing.assert_array_equal(found.best, found.expected)
        start = simulate(problem, found.device).start
        assert found.expected[-1] == (start + problem.duration[np.arange(16), found.device]).max()
        again = run_episode(problem, POLICIES[name](), first, steps=32, noise=noise, seed=4)
        assert again.history == found.history

    def test_reverted_moves(self) -> None:
        # With a on d1: b on d0 ends at 2 + 4 + 5. With a on d0: b on d2 ends at 3 + 4 + 2.
        policy = Scripted((0, 1), (1, 2), (1, 2), (1, 2), back=(0, 1))
        found = run_episode(chain(), policy, [0, 0], steps=4)
        assert found.current.tolist() == [8, 8, 8, 9, 9]
        assert [made.makespan for made in found.history] == [11, 9, 9, 9]
        assert [made.kept for made in found.history] == [False, False, True, True]
        assert found.best.tolist() == [8] * 5
        assert found.device.tolist() == [0, 0]
        # The move to d2 is executed once: the second time it is cached, the third time it changes nothing.
        assert found.evaluations.tolist() == [1, 2, 3, 3, 3]

    def test_estimates_are_counted_once_per_placement(self) -> None:
        class Looking(Scripted):
            def move(self, state: State) -> tuple[int, int]:
                state.finish_times(1)
                state.finish_times(1)
                return super().move(state)

        found = run_episode(chain(), Looking((0, 1), (0, 1), (0, 0), back=(0,)), [0, 0], steps=3)
        assert found.estimates.tolist() == [0, 3, 3, 6]

    def test_evaluated_move_is_not_executed_again(self) -> None:
        class Trying(Scripted):
            def move(self, state: State) -> tuple[int, int]:
                assert [state.evaluate(1, d) for d in (0, 1, 2)] == [8, 12, 9]
                return super().move(state)

        assert run_episode(chain(), Trying((1, 2)), [0, 0], steps=1).evaluations.tolist() == [1, 3]

    def test_noise_agrees_with_simulate_noisy(self) -> None:
        problem = giph(1)
        device = random_placement(problem, np.random.default_rng(1))
        simulator = Simulator(problem, 0.2, np.random.default_rng(2))
        plain = Simulator(problem, 0.0, np.random.default_rng(2)).run(device)
        runs = [simulator.run(device) for _ in range(400)]
        ticks = np.array([run.end - run.start for run in runs])
        whole = plain.end - plain.start
        assert (abs(ticks - whole) <= 0.2 * whole + 1).all()
        assert ticks.min() < 0.85 * whole.min()
        moving = np.array([run.edge_ticks for run in runs])
        assert (abs(moving - plain.edge_ticks) <= 0.2 * plain.edge_ticks + 1).all()
        spans = np.array([run.makespan for run in runs])
        other = simulate_noisy(problem, device, noise=0.2, runs=400, seed=5)
        # Two means of 400 draws each differ by at most five standard errors.
        assert abs(spans.mean() - other.mean) < 5 * other.deviation * (2 / 400) ** 0.5
        assert 0.8 < spans.std() / other.deviation < 1.25
        assert simulator.expected(device) == plain.makespan
        assert simulator.ledger.evaluations == 400

    def test_repeats_average_the_observed_values(self) -> None:
        problem = giph(1)
        device = random_placement(problem, np.random.default_rng(1))
        single = Simulator(problem, 0.2, np.random.default_rng(2))
        spans = [single.run(device).makespan for _ in range(3)]
        thrice = Simulator(problem, 0.2, np.random.default_rng(2), repeats=3)
        run = thrice.run(device)
        assert run.value == round(np.mean(spans))
        assert run.makespan == spans[0] == run.end.max()
        assert thrice.ledger.evaluations == 3
        for found in (
            run_episode(problem, POLICIES["random-task-eft"](), device, steps=4, noise=0.2, repeats=3),
            sample_placements(problem, device, steps=4, noise=0.2, repeats=3),
        ):
            assert found.evaluations[0] == 3
            assert found.evaluations[-1] <= 15
        with pytest.raises(UsageError, match="repeats: 0 is out of range"):
            run_episode(problem, POLICIES["random-task-eft"](), device, steps=4, repeats=0)

    def test_patience_ends_an_episode(self) -> None:
        problem = giph(1)
        device = random_placement(problem, np.random.default_rng(0))
        whole = run_episode(problem, POLICIES["random-task-eft"](), device, steps=40)
        short = run_episode(problem, POLICIES["random-task-eft"](), device, steps=40, patience=4)
        steps = len(short.history)
        assert 4 <= steps < 40
        assert np.array_equal(short.best, whole.best[: steps + 1])
        gains = np.flatnonzero(np.diff(short.best) < 0)
        assert steps - (gains[-1] + 1 if len(gains) else 0) == 4
        assert (np.diff(gains, prepend=-1) <= 4).all()
        with pytest.raises(UsageError, match="patience: 0 is out of range; expected an integer from 1 up"):
            run_episode(problem, POLICIES["random-task-eft"](), device, steps=4, patience=0)

    def test_shared_transfer_has_one_time(self) -> None:
        problem = build_problem(
            task_names=["a", "b", "c"],
            device_names=["d0", "d1"],
            duration=np.full((3, 2), 1000),
            edges=[(0, 1), (0, 2)],
            payload=[5000, 5000],
            shared=[True, True],
            byte_ticks_num=np.ones((2, 2)),
            contention="port",
        )
        simulator = Simulator(problem, 0.2, np.random.default_rng(0))
        runs = [simulator.run(np.array([0, 1, 1])) for _ in range(9)]
        assert all(run.edge_ticks[0] == run.edge_ticks[1] for run in runs)
        assert len({int(run.edge_ticks[0]) for run in runs}) > 5

    @pytest.mark.parametrize("name", sorted(POLICIES))
    def test_constraints_hold_after_each_move(self, name: str) -> None:
        problem = po.compile(random_document(14, 4, memory=10, tightness=0.7, seed=2))
        problem = replace(problem, contention="port")
        group = np.arange(14)
        group[[3, 5]] = 3
        problem = replace(
            problem, group=np.unique(group, return_inverse=True)[1], separation=np.array([[0, 1], [2, 7]])
        )
        first = random_placement(problem, np.random.default_rng(0))
        found = run_episode(problem, POLICIES[name](), first, steps=28, seed=1)
        device = first.copy()
        for made in found.history:
            if made.kept:
                device[problem.group == problem.group[made.task]] = made.device
            assert verify(problem, simulate(problem, device)).feasible
        assert found.best[-1] < found.best[0]

    def test_invalid_arguments(self) -> None:
        problem = chain()
        for arguments, message in (
            ({"steps": -1}, "steps: -1 is negative"),
            ({"steps": 1, "noise": 1.0}, "noise: 1.0 is out of range"),
        ):
            with pytest.raises(UsageError, match=message):
                run_episode(problem, RandomTaskEft(), [0, 0], **arguments)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="expected one device for each of 2 tasks"):
            run_episode(problem, RandomTaskEft(), [0], steps=1)
        with pytest.raises(UsageError, match="policy scripted: no task 2; expected 0 to 1"):
            run_episode(problem, Scripted((2, 0)), [0, 0], steps=1)
        with pytest.raises(UsageError, match="policy scripted: a may not move to device 3; expected one of d0, d1, d2"):
            run_episode(problem, Scripted((0, 3)), [0, 0], steps=1)
        apart = replace(problem, separation=np.array([[0, 1]]))
        with pytest.raises(UsageError, match="policy scripted: a may not move to d1; expected one of d0, d2"):
            run_episode(apart, Scripted((0, 1)), [0, 1], steps=1)
        empty = build_problem(task_names=[], device_names=["d0"], duration=np.empty((0, 1)))
        with pytest.raises(UsageError, match="nothing to move"):
            run_episode(empty, RandomTaskEft(), [], steps=1)


class TestSampling:
    def test_each_step_draws_a_new_placement(self) -> None:
        problem = giph(5)
        first = random_placement(problem, np.random.default_rng(5))
        found = sample_placements(problem, first, steps=30, seed=6)
        assert found.evaluations.tolist() == list(range(1, 32))
        assert len(set(found.current.tolist())) > 20
        np.testing.assert_array_equal(found.best, np.minimum.accumulate(found.current))
        np.testing.assert_array_equal(found.best, found.expected)

    def test_placements_are_uniform(self) -> None:
        rng = np.random.default_rng(0)
        problem = chain(separation=[(0, 1)], feasible=np.array([[1, 1, 0], [1, 1, 1]]))
        found = Counter(tuple(random_placement(problem, rng).tolist()) for _ in range(2000))
        assert set(found) == {(0, 1), (0, 2), (1, 0), (1, 2)}
        assert max(abs(count - 500) for count in found.values()) < 5 * (2000 * 0.25 * 0.75) ** 0.5

    def test_no_feasible_placement_found(self) -> None:
        problem = chain(resident=np.array([4, 4]), capacity=np.array([3, 3, 3]))
        with pytest.raises(UsageError, match="none of 10000 random placements"):
            random_placement(problem, np.random.default_rng(0))

    def test_a_group_without_a_device(self) -> None:
        problem = chain(feasible=np.array([[True, False, False], [False, True, True]]), group=[0, 0])
        with pytest.raises(UsageError, match=r"no device can run task . with its colocation group"):
            random_placement(problem, np.random.default_rng(0))


def mean_slr(policy: Policy, problems: list[Problem], noise: float = 0.0) -> tuple[float, list[Episode]]:
    found = [
        run_episode(
            problem,
            policy,
            random_placement(problem, np.random.default_rng(index)),
            steps=2 * problem.n_tasks,
            noise=noise,
            seed=index,
        )
        for index, problem in enumerate(problems)
    ]
    slr = [each.expected[-1] / critical_path(problem) for each, problem in zip(found, problems, strict=True)]
    return float(np.mean(slr)), found


class TestPolicies:
    def test_eft_chooses_the_earliest_finish(self) -> None:
        found = run_episode(chain(), RandomTaskEft(), [0, 1], steps=30, seed=1)
        # a always ends first on d1. Then b ends there at 2 + 5, and on d2 at 2 + 4 + 2.
        assert {(made.task, made.device) for made in found.history[-10:]} <= {(0, 1), (1, 1)}
        assert found.current[-1] == 7

    def test_greedy_never_increases_the_makespan(self) -> None:
        found = run_episode(giph(4), RandomTaskGreedy(), random_placement(giph(4), np.random.default_rng(0)), steps=40)
        assert (np.diff(found.current) <= 0).all()

    def test_annealing_is_better_than_eft_at_equal_costs(self) -> None:
        problems = [giph(seed) for seed in range(10)]
        eft, _ = mean_slr(RandomTaskEft(), problems)
        annealing, episodes = mean_slr(Annealing(), problems)
        # benchmarks/giph_evaluation.py has the figures; here, each executes at most 2 |V| + 1 placements.
        assert annealing < 0.95 * eft
        assert all(each.evaluations[-1] <= 33 for each in episodes)
        few, lean = mean_slr(Annealing(tasks=2), problems)
        assert annealing < few < eft
        assert sum(each.estimates[-1] for each in lean) < 0.5 * sum(each.estimates[-1] for each in episodes)

    def test_single_device(self) -> None:
        problem = build_problem(task_names=["a", "b"], device_names=["d0"], duration=np.array([[1], [2]]))
        for name in POLICIES:
            assert run_episode(problem, POLICIES[name](), [0, 0], steps=3).best.tolist() == [3] * 4

    def test_annealing_retries_excluded_moves(self) -> None:
        found = run_episode(chain(), Annealing(hot=1e-6, cold=1e-6), [1, 1], steps=12, seed=0)
        assert found.best[-1] == 7  # the optimum: no move is kept
        tried = [(made.task, made.device) for made in found.history if made.device != 1]
        assert set(tried[:4]) == {(0, 0), (0, 2), (1, 0), (1, 2)}
        assert len(tried) > 4
        # Executions are cached as long as the placement is the same.
        assert found.evaluations[-1] == 5

    def test_invalid_annealing_parameters(self) -> None:
        for arguments, message in (
            ({"tasks": 0}, "tasks: 0 is too few"),
            ({"hot": 0.1, "cold": 0.2}, "not valid temperatures"),
            ({"greed": 0.0}, "greed: 0.0 is not positive"),
        ):
            with pytest.raises(UsageError, match=message):
                Annealing(**arguments)  # type: ignore[arg-type]

    def test_names(self) -> None:
        assert [make().name for make in POLICIES.values()] == list(POLICIES)


def test_episode_from_the_schedule_of_a_solver() -> None:
    problem = giph(7)
    heft = po.solve(problem, "heft").schedule
    assert isinstance(heft, Schedule)
    found = run_episode(problem, Annealing(), heft.device, steps=32)
    assert found.best[-1] <= found.best[0]
