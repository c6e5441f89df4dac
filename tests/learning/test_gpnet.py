"""gpNet and the views: counts, the definition, moves, start-time potentials, features and masks."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from learned_problems import built, placement, random_problem

from placeopt.learning.graphs.gpnet import GpNet
from placeopt.learning.graphs.traits import Traits, fitted_traits
from placeopt.learning.graphs.views import GpNetView, TaskView, scaled
from placeopt.model.problem import Problem
from placeopt.policies import Policy, Simulator, State, run_episode


def edges_by_definition(problem: Problem, device: np.ndarray) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Algorithm B.1 of the paper, lines 13 to 20."""
    found = set()
    for i, j in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        for k, to in product(*(np.flatnonzero(problem.feasible[t]).tolist() for t in (i, j))):
            if device[i] == k or device[j] == to:
                found.add(((i, k), (j, to)))
    return found


def labelled(net: GpNet) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    label = list(zip(net.task.tolist(), net.device.tolist(), strict=True))
    return [(label[u], label[v]) for u, v in zip(net.source.tolist(), net.target.tolist(), strict=True)]


@pytest.mark.parametrize("seed", range(8))
def test_nodes_and_edges_are_those_of_the_definition_after_every_move(seed: int) -> None:
    problem = random_problem(seed)
    device = placement(problem)
    net = GpNet(problem, device)
    options, degree = problem.feasible.sum(axis=1), np.diff(problem.in_start) + np.diff(problem.out_start)
    assert net.n_nodes == options.sum()
    assert net.n_edges == (options * degree).sum() - problem.n_edges
    rng = np.random.default_rng(seed)
    for _ in range(15):
        edges = labelled(net)
        assert len(set(edges)) == len(edges) == net.n_edges
        assert set(edges) == edges_by_definition(problem, device)
        for (i, k), (j, to), data in zip(*zip(*edges, strict=True), net.data.T.tolist(), strict=True):
            e = next(e for e in range(problem.out_start[i], problem.out_start[i + 1]) if problem.edge_target[e] == j)
            slowness = problem.byte_ticks_num[k, to] / problem.byte_ticks_den[k, to] if k != to else 0
            ticks = problem.transfer(problem.payload[e], k, to)
            assert data == [problem.payload[e], slowness, problem.latency[k, to], ticks]
        fresh = GpNet(problem, device)
        assert (fresh.source == net.source).all()
        assert (fresh.target == net.target).all()
        assert (fresh.data == net.data).all()
        task = int(rng.integers(problem.n_tasks))
        device[task] = rng.choice(np.flatnonzero(problem.feasible[task]))
        net.move(np.array([task]), int(device[task]))


def two_tasks() -> Problem:
    """Figure 2: two tasks on three devices, with two devices each, one in common."""
    feasible = [[True, True, False], [False, True, True]]
    return built(np.ones((2, 3)), [(0, 1)], feasible=feasible, payload=[1], byte_ticks_num=np.ones((3, 3)))


def test_the_four_states_of_figure_2() -> None:
    problem = two_tasks()
    states = {}
    for device in product((0, 1), (1, 2)):
        net = GpNet(problem, np.array(device))
        assert (net.n_nodes, net.n_edges) == (4, 3)
        states[device] = frozenset(labelled(net))
        # The pivots' edge and one edge to each of the other two nodes.
        i, j = (0, device[0]), (1, device[1])
        other = (0, 1 - device[0]), (1, 3 - device[1])
        assert states[device] == {(i, j), (i, other[1]), (other[0], j)}
    for device, (task, to) in product(states, ((0, 0), (0, 1), (1, 1), (1, 2))):  # the four actions in each state
        net = GpNet(problem, np.array(device))
        net.move(np.array([task]), to)
        after = (to, device[1]) if task == 0 else (device[0], to)
        assert frozenset(labelled(net)) == states[after]


class Watching(Policy):
    """Random moves; compares the potentials with the finish times of the state."""

    name = "watching"

    def move(self, state: State) -> tuple[int, int]:
        problem, run = state.problem, state.run
        net = GpNet(problem, state.device)
        potential = net.potential(run.start, run.end)
        first = net.first
        for i, (low, high) in enumerate(pairwise(first.tolist())):
            ready = state.finish_times(i) - problem.duration[i, net.device[low:high]]
            assert (potential[low:high] == ready - run.start[i]).all()
        task = int(self.rng.integers(problem.n_tasks))
        return task, int(self.rng.choice(state.options(task)))


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_potentials_are_arrivals_minus_starts(noise: float) -> None:
    problem = random_problem(5)
    run_episode(problem, Watching(), placement(problem), steps=10, noise=noise, seed=1)


def test_a_pivot_that_does_not_queue_has_potential_zero_and_others_wait() -> None:
    problem = built([[2, 3], [4, 4], [1, 5]], [(0, 2)], payload=[6], byte_ticks_num=np.ones((2, 2)))
    device = np.array([0, 0, 1])
    run = Simulator(problem, 0.0, np.random.default_rng()).run(device)
    potential = GpNet(problem, device).potential(run.start, run.end)
    # t0 runs from 0 to 2 on d0, then t1 from 2 to 6; t2 starts on d1 at 2 + 6, and would start at 2 on d0.
    assert potential.tolist() == [0, 0, -2, -2, -6, 0]


def test_traits_recover_work_and_speed_up_to_their_unit() -> None:
    rng = np.random.default_rng(2)
    work, speed = rng.uniform(1, 9, 12), rng.uniform(1, 9, 5)
    feasible = rng.random((12, 5)) < 0.6
    feasible[np.arange(12), rng.integers(5, size=12)] = True
    duration = np.rint(1e9 * work[:, None] / speed).astype(np.int64)
    problem = built(duration, feasible=feasible)
    traits = fitted_traits(problem)
    assert np.ptp(np.log(traits.work / work)) < 1e-6
    assert np.ptp(np.log(traits.speed / speed)) < 1e-6


def test_a_task_without_duration_has_no_work() -> None:
    problem = built([[0, 0], [4, 2]])
    traits = fitted_traits(problem)
    assert traits.work[0] == 0
    assert traits.speed[1] == pytest.approx(2 * traits.speed[0])


def test_scaling_is_to_minus_one_and_one_and_constants_become_zero() -> None:
    assert scaled(np.array([[2.0, 3.0, 4.0], [7.0, 7.0, 7.0]])).tolist() == [[-1, 0, 1], [0, 0, 0]]


def observed(problem: Problem, kind: type[GpNetView] = GpNetView, **rest: object) -> tuple[GpNetView, Simulator]:
    device = placement(problem)
    view = kind(problem, device, rng=np.random.default_rng(0), **rest)
    return view, Simulator(problem, 0.0, np.random.default_rng(0))


def test_features_of_gpnet() -> None:
    problem = random_problem(4)
    traits = Traits(np.arange(1.0, 15.0), np.arange(1.0, 7.0))
    view, simulator = observed(problem, traits=traits)
    run = simulator.run(view.device)
    seen = view.observe(run)
    net = view.net
    raw = [
        traits.work[net.task], traits.speed[net.device], problem.duration[net.task, net.device],
        net.potential(run.start, run.end),
    ]  # fmt: skip
    for column, values in zip(seen.nodes.T, raw, strict=True):
        expected = 2 * (values - values.min()) / (values.max() - values.min()) - 1
        assert column == pytest.approx(expected, abs=1e-6)
    assert seen.edges.min() == -1
    assert seen.edges.max() == 1
    without, _ = observed(problem, potential="none")
    assert without.observe(run).nodes.shape[1] == 3


def test_the_released_potential_is_zero_for_pivots_and_entry_tasks() -> None:
    problem = random_problem(4)
    view, simulator = observed(problem, potential="released")
    run = simulator.run(view.device)
    seen, net = view.observe(run).nodes[:, 3], view.net
    raw = net.potential(run.start, run.end)
    zero = np.union1d(net.pivot, np.flatnonzero(net.depth == 0))
    raw[zero] = 0
    assert seen == pytest.approx(scaled(raw[None])[0], abs=1e-6)


@pytest.mark.parametrize("kind", [GpNetView, TaskView])
def test_masks_at_every_step(kind: type[GpNetView]) -> None:
    problem = random_problem(6)
    view, simulator = observed(problem, kind)
    rng = np.random.default_rng(1)
    last = None
    for _ in range(25):
        seen = view.observe(simulator.run(view.device))
        moves = {view.decode(choice) for choice in np.flatnonzero(seen.allowed).tolist()}
        assert moves
        assert all(task != last for task, _ in moves)
        assert all(problem.feasible[task, to] for task, to in moves)
        if kind is GpNetView:
            assert all(view.device[task] != to for task, to in moves)
            movable = (problem.feasible.sum(axis=1) - 1).sum()
            blocked = 0 if last is None else int(problem.feasible[last].sum()) - 1
            assert len(moves) == movable - blocked
        else:
            assert len(moves) == problem.n_tasks - (last is not None)
        task, to = sorted(moves)[rng.integers(len(moves))]
        view.move(task, to)
        last = task


def test_without_task_masks_any_task_may_move_again() -> None:
    problem = random_problem(6)
    view, simulator = observed(problem, TaskView, mask_tasks=False)
    view.move(3, int(view.device[3]))
    assert view.observe(simulator.run(view.device)).allowed.all()


def test_frozen_masks_allow_moves_that_change_nothing() -> None:
    problem = random_problem(6)
    view, simulator = observed(problem, freeze_masks=True)
    for _ in range(3 * problem.n_tasks):
        allowed = np.flatnonzero(view.observe(simulator.run(view.device)).allowed)
        view.move(*view.decode(int(allowed[0])))
    assert (view.device[view.net.task[allowed]] == view.net.device[allowed]).any()


def test_with_one_device_the_only_move_changes_nothing() -> None:
    problem = built([[3], [4]], [(0, 1)])
    view, simulator = observed(problem)
    seen = view.observe(simulator.run(view.device))
    assert np.flatnonzero(seen.allowed).tolist() == [0]
    assert view.decode(0) == (0, 0)


def test_memory_colocation_and_separation_restrict_choices() -> None:
    limits = {"resident": [4, 4, 3, 1], "capacity": [9, 8, 3], "group": [0, 0, 1, 2], "separation": [(2, 3)]}
    problem = built(np.ones((4, 3)), [(0, 1)], **limits)
    view = GpNetView(problem, np.array([0, 0, 1, 2]), rng=np.random.default_rng(0))
    seen = view.observe(Simulator(problem, 0.0, np.random.default_rng()).run(view.device))
    moves = {view.decode(choice) for choice in np.flatnonzero(seen.allowed).tolist()}
    # The group has 8 bytes and no room elsewhere. Task 2 has no room, and task 3 must not join it.
    assert moves == {(3, 0)}
