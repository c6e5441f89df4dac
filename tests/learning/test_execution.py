"""Critical tasks and ends by insertion, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from learned_problems import built, placement, random_problem

from placeopt.learning.graphs.gpnet import GpNet
from placeopt.learning.graphs.views import Execution, ExecutionView
from placeopt.model.problem import Problem
from placeopt.policies import Policy, State, run_episode


def ends_by_insertion(problem: Problem, state: State, task: int, device: int) -> int:
    """The first start from the arrival of the inputs on, at which the task overlaps no other task of the device."""
    ready = int(state.finish_times(task)[state.options(task).tolist().index(device)] - problem.duration[task, device])
    ticks = int(problem.duration[task, device])
    others = [
        (int(state.run.start[j]), int(state.run.end[j]))
        for j in np.flatnonzero(state.device == device).tolist()
        if j != task
    ]
    starts = sorted([ready, *(end for _, end in others if end >= ready)])
    start = next(s for s in starts if all(s + ticks <= low or high <= s for low, high in others))
    return start + ticks


def by_definition(problem: Problem, state: State) -> set[int]:
    """The critical tasks: from the first task that ends last, the latest of all causes of its start, and so on."""
    run, device = state.run, state.device
    position = {task: place for place, task in enumerate(problem.order.tolist())}
    task: int | None = int(run.end.argmax())
    found = set()
    while task is not None:
        found.add(task)
        key = int(run.start[task]), int(run.end[task]), position[task]
        others = [(int(run.start[j]), int(run.end[j]), position[j], j) for j in np.flatnonzero(device == device[task])]
        causes = [(int(run.end[j]), j) for *before, j in sorted(others) if tuple(before) < key][-1:]
        causes += [
            (int(run.end[problem.edge_source[k]] + run.edge_ticks[k]), int(problem.edge_source[k]))
            for k in range(problem.n_edges)
            if problem.edge_target[k] == task
        ]
        latest = max((ticks for ticks, _ in causes), default=-1)
        first = next((cause for ticks, cause in causes if ticks == latest), None)
        task = None if latest < run.start[task] else first
    return found


class Watching(Policy):
    """Random moves; compares the features with the definitions."""

    name = "watching"

    def move(self, state: State) -> tuple[int, int]:
        problem, run = state.problem, state.run
        net = GpNet(problem, state.device)
        critical, later = Execution(net).features(state.device, run, net.potential(run.start, run.end))
        path = by_definition(problem, state)
        assert [task in path for task in net.task.tolist()] == (critical > 0).tolist()
        for node, (task, device) in enumerate(zip(net.task.tolist(), net.device.tolist(), strict=True)):
            assert later[node] + run.end[task] == ends_by_insertion(problem, state, task, device)
        task = int(self.rng.integers(problem.n_tasks))
        return task, int(self.rng.choice(state.options(task)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_features_are_those_of_the_definitions(seed: int, noise: float) -> None:
    problem = random_problem(seed, 16, 4)
    run_episode(problem, Watching(), placement(problem, seed), steps=8, noise=noise, seed=seed)


def test_a_gap_that_fits_exactly_is_used() -> None:
    # d0 runs t0 in [0, 2) and t1 in [5, 9); t2 is on d1 in [2, 9) and would fit into [2, 5).
    problem = built([[2, 9], [4, 9], [3, 7]], [(0, 2)], release=[0, 5, 0])
    device = np.array([0, 0, 1])
    seen: list[float] = []

    class Once(Policy):
        name = "once"

        def move(self, state: State) -> tuple[int, int]:
            net = GpNet(problem, device)
            run = state.run
            seen.extend(Execution(net).features(device, run, net.potential(run.start, run.end))[1])
            return 0, 0

    run_episode(problem, Once(), device, steps=1)
    assert seen[4] == 5 - 9
    assert seen[5] == 0


def test_the_view_has_two_more_features() -> None:
    problem = random_problem(2, 20, 3)
    device = placement(problem)
    view = ExecutionView(problem, device, rng=np.random.default_rng(0))
    from placeopt.policies import Simulator

    seen = view.observe(Simulator(problem, 0.0, np.random.default_rng(0)).run(device))
    assert seen.nodes.shape == (view.net.n_nodes, 6)
    assert set(np.unique(seen.nodes[:, 4])) == {-1.0, 1.0}
    assert (seen.nodes.min(), seen.nodes.max()) == (-1.0, 1.0)
