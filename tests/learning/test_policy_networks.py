"""Networks: message passing against a reference, invariances, gradients, and the faults of the released code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs placeopt[torch]")

from learned_problems import built, placement, random_problem  # noqa: E402

from placeopt.errors import UsageError  # noqa: E402
from placeopt.learning.graphs.views import Observation, Potential  # noqa: E402
from placeopt.learning.networks.batch import Batch  # noqa: E402
from placeopt.learning.networks.compiled import layer_shapes  # noqa: E402
from placeopt.learning.networks.giph import Giph, GiphSteps  # noqa: E402
from placeopt.learning.networks.variants import FAULTS, VARIANTS, Agent, make_agent, runs_compiled  # noqa: E402
from placeopt.learning.search import compilable, compiled_network  # noqa: E402
from placeopt.model.problem import Problem  # noqa: E402
from placeopt.policies import Simulator  # noqa: E402

GRAPHS = [name for name in VARIANTS if name != "placeto"]
"""Variants with a score for each node."""


def observe(agent: Agent, problem: Problem, seed: int = 0, moves: int = 2) -> Observation:
    """The observation after some moves."""
    view = agent.make_view(problem, placement(problem, seed), rng=np.random.default_rng(seed))
    simulator = Simulator(problem, 0.0, np.random.default_rng(0))
    for _ in range(moves):
        seen = view.observe(simulator.run(view.device))
        view.move(*view.decode(int(np.flatnonzero(seen.allowed)[-1])))
    return view.observe(simulator.run(view.device))


def scores(agent: Agent, *observations: Observation) -> np.ndarray:
    with torch.no_grad():
        return agent.network(Batch(observations)).numpy()


def linear(module: torch.nn.Linear, values: np.ndarray) -> np.ndarray:
    return module.weight.detach().numpy() @ values + module.bias.detach().numpy()


def relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0)


def by_definition(network: Giph, seen: Observation) -> np.ndarray:
    """Equation 1 node by node, with the mean of messages and transformed features."""
    start = network.transform(torch.from_numpy(seen.nodes)).detach().numpy()
    edges = list(zip(seen.source.tolist(), seen.target.tolist(), seen.edges, strict=True))
    found = []
    for messages, pairs in ((network.along, edges), (network.against, [(v, u, x) for u, v, x in edges])):
        into: dict[int, list[tuple[int, np.ndarray]]] = {u: [] for u in range(len(start))}
        for u, v, x in pairs:
            into[v].append((u, x))
        embedding: dict[int, np.ndarray] = {}

        def of(u: int, messages=messages, into=into, embedding=embedding) -> np.ndarray:
            if u not in embedding:
                sent = [relu(linear(messages.message, np.concatenate((of(v), x)))) for v, x in into[u]]
                mean = np.mean(sent, axis=0) if sent else np.zeros(messages.update.in_features, dtype=np.float32)
                embedding[u] = relu(linear(messages.update, mean)) + start[u]
            return embedding[u]

        found.append(np.stack([of(u) for u in range(len(start))]))
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_giph_embeds_as_equation_1(seed: int) -> None:
    agent = make_agent("giph", seed=seed)
    seen = observe(agent, random_problem(seed), seed)
    with torch.no_grad():
        found = agent.network.embed(Batch([seen])).numpy()
    assert found == pytest.approx(by_definition(agent.network, seen), abs=1e-5)


def test_giph_k_with_as_many_steps_as_levels_is_giph() -> None:
    """After as many steps as the longest path has edges, nothing changes; the weights have the same names."""
    agent = make_agent("giph")
    problem = random_problem(1)
    seen = observe(agent, problem)
    steps = GiphSteps(4, 4, steps=int(seen.depth.max()) + 1)
    steps.load_state_dict(agent.network.state_dict())
    assert scores(Agent("", steps, agent.make_view), seen) == pytest.approx(scores(agent, seen), abs=1e-5)
    few = GiphSteps(4, 4, steps=1)
    few.load_state_dict(agent.network.state_dict())
    assert scores(Agent("", few, agent.make_view), seen) != pytest.approx(scores(agent, seen), abs=1e-5)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_graphs_of_a_batch_do_not_affect_each_other(name: str) -> None:
    agent = make_agent(name, devices=6)
    seen = [observe(agent, random_problem(seed, tasks), seed) for seed, tasks in ((0, 9), (1, 17), (2, 5))]
    alone = np.concatenate([scores(agent, each) for each in seen])
    assert scores(agent, *seen) == pytest.approx(alone, abs=1e-5)
    logs = Batch(seen).log_probabilities(torch.from_numpy(alone)).exp().numpy()
    assert logs.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    for row, each in zip(logs, seen, strict=True):
        assert (row[: len(each.allowed)] > 0).tolist() == each.allowed.tolist()
        assert (row[len(each.allowed) :] == 0).all()


def renumbered(problem: Problem, tasks: np.ndarray, devices: np.ndarray) -> Problem:
    """The problem with task tasks[i] as task i, and device devices[d] as device d."""
    place = np.argsort(tasks)
    edges = np.stack([place[problem.edge_source], place[problem.edge_target]], axis=1)
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    grid = np.ix_(devices, devices)
    return built(
        problem.duration[tasks][:, devices], edges[order], payload=problem.payload[order],
        feasible=problem.feasible[tasks][:, devices], latency=problem.latency[grid],
        byte_ticks_num=problem.byte_ticks_num[grid], byte_ticks_den=problem.byte_ticks_den[grid],
    )  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_scores_do_not_depend_on_the_numbers_of_tasks_and_devices(name: str) -> None:
    problem = random_problem(7)
    rng = np.random.default_rng(3)
    tasks, devices = rng.permutation(problem.n_tasks), rng.permutation(problem.n_devices)
    other = renumbered(problem, tasks, devices)
    agent = make_agent(name)
    device = placement(problem)
    moved = np.argsort(devices)[device[tasks]]
    found = []
    for each, start in ((problem, device), (other, moved)):
        view = agent.make_view(each, start, rng=np.random.default_rng(0))
        # First in, first out breaks ties by number; with random durations there are none.
        seen = view.observe(Simulator(each, 0.0, np.random.default_rng(0)).run(start))
        found.append({view.decode(place): score for place, score in enumerate(scores(agent, seen).tolist())})
    for (task, to), score in found[1].items():
        assert score == pytest.approx(found[0][int(tasks[task]), int(devices[to])], abs=1e-5)


def chain(length: int = 6) -> Problem:
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(length - 1)]
    rest = {"payload": rng.integers(1, 9, length - 1), "byte_ticks_num": np.ones((3, 3))}
    return built(rng.integers(1, 9, (length, 3)), edges, **rest)


def affected(agent: Agent, node: int, length: int = 6) -> np.ndarray:
    """(N,) whether each score changes if a feature of a node does. With positive weights, no ReLU hides a change."""
    seen = observe(agent, chain(length), moves=0)
    exact = seen._replace(nodes=seen.nodes.astype(np.float64) + 1, edges=seen.edges.astype(np.float64) + 1)
    nodes = exact.nodes.copy()
    nodes[node] += 1.0
    with torch.no_grad():
        for parameter in agent.network.double().parameters():
            parameter.abs_()
    return scores(agent, exact) != scores(agent, exact._replace(nodes=nodes))


@pytest.mark.parametrize("name", ["giph", "giph-ne", "giph-task-eft"])
def test_a_descendant_and_an_ancestor_change_the_score(name: str) -> None:
    agent = make_agent(name, seed=3)
    view = agent.make_view(chain(), placement(chain()), rng=np.random.default_rng(0))
    ends = (0, 5) if name == "giph-task-eft" else (int(view.net.pivot[0]), int(view.net.pivot[5]))
    assert affected(agent, ends[1])[ends[0]]
    assert affected(agent, ends[0])[ends[1]]


@pytest.mark.parametrize("name", ["giph", "giph-ne"])
def test_without_the_backward_pass_a_descendant_changes_nothing(name: str) -> None:
    agent = make_agent(name, faults=frozenset({"one-way"}), seed=3)
    view = agent.make_view(chain(), placement(chain()), rng=np.random.default_rng(0))
    first, last = int(view.net.pivot[0]), int(view.net.pivot[5])
    assert not affected(agent, last)[first]
    assert affected(agent, first)[last]


def test_giph_k_sees_k_steps_only() -> None:
    for name, faults, reach in (("giph-3", (), 3), ("giph-5", (), 5), ("giph-3", ("five-steps",), 5)):
        agent = make_agent(name, faults=frozenset(faults), seed=5)
        pivot = agent.make_view(chain(8), placement(chain(8)), rng=np.random.default_rng(0)).net.pivot
        assert affected(agent, int(pivot[0]), 8)[pivot].tolist() == [i <= reach for i in range(8)]


@pytest.mark.parametrize("name", ["giph-3", "placeto"])
def test_zero_ends_change_the_scores(name: str) -> None:
    fixed, faulty = make_agent(name, devices=6), make_agent(name, devices=6, faults=frozenset({"zero-ends"}))
    seen = observe(fixed, random_problem(2))
    assert scores(fixed, seen) != pytest.approx(scores(faulty, seen), abs=1e-6)


@pytest.mark.parametrize("name", ["giph-ne", "giph-ne-pol", "graphsage-ne"])
def test_incoming_means_change_the_scores(name: str) -> None:
    fixed, faulty = make_agent(name), make_agent(name, faults=frozenset({"incoming-means"}))
    seen = observe(fixed, random_problem(2))
    assert scores(fixed, seen) != pytest.approx(scores(faulty, seen), abs=1e-6)


@pytest.fixture
def doubles() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("name", list(VARIANTS))
@pytest.mark.usefixtures("doubles")
def test_gradients_are_finite_differences(name: str) -> None:
    agent = make_agent(name, devices=4, seed=1)
    seen = observe(agent, random_problem(3, 6, 4))
    exact = seen._replace(nodes=seen.nodes.astype(np.float64), edges=seen.edges.astype(np.float64))
    batch = Batch([exact, exact])
    factors = torch.tensor([0.3, -1.7])
    choice = int(np.flatnonzero(exact.allowed)[-1])

    def loss() -> torch.Tensor:
        return (batch.log_probabilities(agent.network(batch))[:, choice] * factors).sum()

    loss().backward()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in agent.network.parameters():
            flat = parameter.view(-1)
            gradient = torch.zeros(len(flat)) if parameter.grad is None else parameter.grad.view(-1)
            for place in rng.choice(len(flat), min(3, len(flat)), replace=False).tolist():
                before = float(flat[place])
                flat[place] = before + 1e-6
                above = float(loss())
                flat[place] = before - 1e-6
                below = float(loss())
                flat[place] = before
                assert float(gradient[place]) == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-7)


def test_weights_have_the_sizes_of_table_5() -> None:
    shapes = {name: tuple(value.shape) for name, value in make_agent("giph").network.state_dict().items()}
    assert shapes["transform.0.weight"] == (4, 4)
    assert shapes["transform.2.weight"] == (5, 4)
    for direction in ("along", "against"):
        assert shapes[f"{direction}.message.weight"] == (9, 9)
        assert shapes[f"{direction}.update.weight"] == (5, 9)
    assert shapes["score.0.weight"] == (16, 10)
    assert shapes["score.2.weight"] == (1, 16)
    placeto = make_agent("placeto", devices=20).network.state_dict()
    assert tuple(placeto["policy.0.weight"].shape) == (32, 40)
    assert tuple(placeto["policy.2.weight"].shape) == (20, 32)


def test_initial_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(99)
    first = make_agent("giph", seed=4).network.state_dict()
    torch.manual_seed(7)
    drawn = torch.rand(1)
    torch.manual_seed(7)
    second = make_agent("giph", seed=4).network.state_dict()
    assert torch.equal(torch.rand(1), drawn)  # the global generator is left alone
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(make_agent("giph", seed=5).network.state_dict()["score.0.weight"], first["score.0.weight"])


def test_unknown_names() -> None:
    with pytest.raises(UsageError, match="unknown variant gihp; did you mean giph"):
        make_agent("gihp")
    with pytest.raises(UsageError, match="unknown fault oneway"):
        make_agent("giph", faults=frozenset({"oneway"}))  # type: ignore[arg-type]


def test_placeto_refuses_another_number_of_devices() -> None:
    agent = make_agent("placeto", devices=5)
    with pytest.raises(UsageError, match="trained for 5 devices, but the problem has 6"):
        scores(agent, observe(agent, random_problem(2), moves=0))


@pytest.mark.parametrize("name", ["giph", "giph-task-eft"])
def test_the_compiled_network_scores_like_pytorch(name: str) -> None:
    agent = make_agent(name, seed=2)
    problem = random_problem(5)
    view = agent.make_view(problem, placement(problem), rng=np.random.default_rng(0))
    simulator = Simulator(problem, 0.0, np.random.default_rng(0))
    plain = compiled_network(agent.network)
    for _ in range(4):
        seen = view.observe(simulator.run(view.device))
        batch = Batch([seen])
        with torch.no_grad():
            expected = batch.log_probabilities(agent.network(batch))[0].numpy()
        assert plain.log_probabilities(seen) == pytest.approx(expected, abs=1e-5)
        view.move(*view.decode(int(np.flatnonzero(seen.allowed)[-1])))


@pytest.mark.parametrize("name", VARIANTS)
def test_which_variants_run_compiled(name: str) -> None:
    for faults in (frozenset(), *(frozenset({fault}) for fault in FAULTS)):
        network = make_agent(name, faults=faults).network
        assert runs_compiled(name, faults) == compilable(network) == (type(network) is Giph and not network.one_way)
    assert not compilable(make_agent(name).network, "meta")


@pytest.mark.parametrize("name", ["giph", "giph-task-eft", "giph-plus"])
@pytest.mark.parametrize("potential", ["paper", "none"])
def test_the_shapes_of_the_compiled_network_are_those_in_pytorch(name: str, potential: Potential) -> None:
    weights = make_agent(name, potential=potential).network.state_dict()
    shapes = layer_shapes(VARIANTS[name].nodes(potential))
    assert [(key, tuple(each.shape)) for key, each in weights.items()] == list(shapes.items())
