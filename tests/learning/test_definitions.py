"""Networks and choices of moves against plain implementations from the text of the paper, on small problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs placeopt[torch]")

from learned_problems import built, placement, random_problem  # noqa: E402

from placeopt.learning.graphs.views import GpNetView, Observation, TaskView  # noqa: E402
from placeopt.learning.networks.batch import Batch  # noqa: E402
from placeopt.learning.networks.giph import EMBEDDING  # noqa: E402
from placeopt.learning.networks.variants import make_agent  # noqa: E402
from placeopt.model.problem import Problem  # noqa: E402
from placeopt.policies import Simulator  # noqa: E402

Array = np.ndarray
Weights = dict[str, Array]


def linear(weights: Weights, name: str, values: Array) -> Array:
    return values @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", np.zeros(1))


def relu(values: Array) -> Array:
    return np.maximum(values, 0)


def two_layers(weights: Weights, name: str, values: Array) -> Array:
    return linear(weights, f"{name}.2", relu(linear(weights, f"{name}.0", values)))


def received(edges: list[tuple[int, int]], node: int) -> list[int]:
    """The nodes with an edge to a node."""
    return [u for u, v in edges if v == node]


def mean(rows: list[Array], size: int) -> Array:
    return np.mean(rows, axis=0) if rows else np.zeros(size)


def with_out_edges(seen: Observation) -> Array:
    """Appendix B.6: the mean feature value of out-edges of a node is appended to its features."""
    out = [
        [x for u, x in zip(seen.source.tolist(), seen.edges, strict=True) if u == node]
        for node in range(len(seen.nodes))
    ]
    return np.array(
        [np.concatenate((x, mean(rows, seen.edges.shape[1]))) for x, rows in zip(seen.nodes, out, strict=True)]
    )


def giph_ne(weights: Weights, seen: Observation, edges: list[tuple[int, int]]) -> Array:
    """Equation 1 without edge features."""
    start = two_layers(weights, "transform", with_out_edges(seen))
    parts = []
    for way, pairs in (("along", edges), ("against", [(v, u) for u, v in edges])):
        found: dict[int, Array] = {}

        def embedding(node: int, way: str = way, pairs=pairs, found=found) -> Array:
            if node not in found:
                messages = [relu(linear(weights, f"{way}.message", embedding(u))) for u in received(pairs, node)]
                found[node] = relu(linear(weights, f"{way}.update", mean(messages, EMBEDDING))) + start[node]
            return found[node]

        parts.append(np.array([embedding(node) for node in range(len(start))]))
    return two_layers(weights, "score", np.concatenate(parts, axis=1))[:, 0]


def giph_ne_pol(weights: Weights, seen: Observation, _: list[tuple[int, int]]) -> Array:
    return two_layers(weights, "score", with_out_edges(seen))[:, 0]


def graphsage_ne(weights: Weights, seen: Observation, edges: list[tuple[int, int]]) -> Array:
    """Hamilton et al. 2017, algorithm 1, with mean aggregation in one direction."""
    found = with_out_edges(seen)
    for layer in range(3):
        found = relu(found) if layer else found
        means = [mean([found[u] for u in received(edges, node)], found.shape[1]) for node in range(len(found))]
        found = linear(weights, f"own.{layer}", found) + linear(weights, f"mean.{layer}", np.array(means))
    return two_layers(weights, "score", found)[:, 0]


def placeto(weights: Weights, seen: Observation, edges: list[tuple[int, int]]) -> Array:
    """Eight steps in both directions, then sums over the relatives of the task."""
    start = two_layers(weights, "transform", seen.nodes)

    def summed(name: str, rows: list[Array], size: int) -> Array:
        messages = [relu(two_layers(weights, f"{name}.before", row)) for row in rows]
        return relu(two_layers(weights, f"{name}.after", np.sum(messages, axis=0) if messages else np.zeros(size)))

    parts = []
    for way, pairs in (("along", edges), ("against", [(v, u) for u, v in edges])):
        found = start
        for _ in range(8):
            steps = [summed(way, [found[u] for u in received(pairs, node)], 5) for node in range(len(start))]
            found = start + np.array(steps)
        parts.append(found)
    embedding = np.concatenate(parts, axis=1)

    def reached(node: int) -> set[int]:
        return {node}.union(*(reached(v) for u, v in edges if u == node))

    task = seen.current
    descendants = reached(task) - {task}
    ancestors = {node for node in range(len(start)) if task in reached(node)} - {task}
    parallel = set(range(len(start))) - descendants - ancestors - {task}
    pools = [
        summed(f"pools.{place}", [embedding[node] for node in sorted(nodes)], 10)
        for place, nodes in enumerate((ancestors, descendants, parallel))
    ]
    return two_layers(weights, "policy", np.concatenate((*pools, embedding[task])))


DEFINITIONS: dict[str, Callable[[Weights, Observation, list[tuple[int, int]]], Array]] = {
    "giph-ne": giph_ne,
    "giph-ne-pol": giph_ne_pol,
    "graphsage-ne": graphsage_ne,
    "placeto": placeto,
}


@pytest.mark.parametrize("name", list(DEFINITIONS))
@pytest.mark.parametrize("tasks", [1, 7])
def test_scores_are_those_of_the_definition(name: str, tasks: int) -> None:
    problem = random_problem(tasks, tasks, 4)
    agent = make_agent(name, devices=4, seed=3)
    view = agent.make_view(problem, placement(problem), rng=np.random.default_rng(0))
    simulator = Simulator(problem, 0.0, np.random.default_rng(0))
    for _ in range(min(tasks, 3)):
        seen = view.observe(simulator.run(view.device))
        weights = {key: value.numpy().astype(np.float64) for key, value in agent.network.state_dict().items()}
        edges = list(zip(seen.source.tolist(), seen.target.tolist(), strict=True))
        with torch.no_grad():
            found = agent.network(Batch([seen])).numpy()
        assert found == pytest.approx(DEFINITIONS[name](weights, seen, edges), abs=1e-5)
        view.move(*view.decode(int(np.flatnonzero(seen.allowed)[0])))


def limited(seed: int) -> Problem:
    """A problem with memory limits, a colocation group and separated tasks."""
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i in range(6) for j in range(i + 1, 6) if rng.random() < 0.5]
    rest = {"payload": rng.integers(0, 20, len(edges)), "byte_ticks_num": rng.integers(1, 4, (3, 3))}
    rest |= {"resident": rng.integers(0, 5, 6), "capacity": [14, 14, 14], "release": rng.integers(0, 9, 6)}
    return built(rng.integers(1, 20, (6, 3)), edges, group=[0, 0, 1, 2, 3, 4], separation=[(0, 5)], **rest)


def possible(problem: Problem, device: Array, task: int, to: int) -> bool:
    """Whether all limits hold after a move, by definition."""
    after = device.copy()
    after[problem.group == problem.group[task]] = to
    used = [problem.memory[after == d].sum() for d in range(problem.n_devices)]
    return all(np.array(used) <= problem.capacity) and all(after[i] != after[j] for i, j in problem.separation.tolist())


@pytest.mark.parametrize("seed", range(6))
def test_choices_of_limited_problems(seed: int) -> None:
    problem = limited(seed)
    device, rng = placement(problem, seed), np.random.default_rng(seed)
    views = [kind(problem, device, rng=rng) for kind in (GpNetView, TaskView)]
    simulator = Simulator(problem, 0.0, rng)
    last = None
    for _ in range(8):
        run = simulator.run(device)
        nodes, tasks = (view.observe(run) for view in views)
        moves = {views[0].decode(choice) for choice in np.flatnonzero(nodes.allowed).tolist()}
        free = [i for i in range(6) if last is None or problem.group[i] != problem.group[last]]
        expected = {(i, d) for i in free for d in range(3) if d != device[i] and possible(problem, device, i, d)}
        assert moves == (expected or {(0, int(device[0]))})
        assert np.flatnonzero(tasks.allowed).tolist() == free
        for i in range(6):
            finish = []
            for d in range(3):
                ready = int(problem.release[i])
                for k in np.flatnonzero(problem.edge_target == i).tolist():
                    u = int(problem.edge_source[k])
                    apart = problem.group[u] != problem.group[i]
                    moving = int(problem.transfer(problem.payload[k], device[u], d)) if apart else 0
                    ready = max(ready, int(run.end[u]) + moving)
                if d == device[i] or possible(problem, device, i, d):
                    finish.append((ready + int(problem.duration[i, d]), d))
            assert views[1].decode(i) == (i, min(finish)[1])
        task, to = sorted(moves)[rng.integers(len(moves))]
        for view in views:
            view.move(task, to)
        device, last = views[0].device.copy(), task


def test_tasks_of_one_group_may_move_again() -> None:
    problem = built([[1, 2], [2, 1]], group=[0, 0])
    view = TaskView(problem, np.array([0, 0]), rng=np.random.default_rng(0))
    view.move(1, 1)
    seen = view.observe(Simulator(problem, 0.0, np.random.default_rng(0)).run(view.device))
    assert seen.allowed.tolist() == [False, True]
