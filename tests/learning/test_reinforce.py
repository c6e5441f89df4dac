"""REINFORCE: factors by hand, gradients step by step, determinism, the faults, and that it learns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs placeopt[torch]")

from learned_problems import built, placement, random_problem  # noqa: E402

from placeopt.errors import UsageError  # noqa: E402
from placeopt.learning.networks.batch import Batch  # noqa: E402
from placeopt.learning.networks.giph import Giph  # noqa: E402
from placeopt.learning.networks.variants import VARIANTS, make_agent  # noqa: E402
from placeopt.learning.search import LearnedPolicy, Search, guide, step  # noqa: E402
from placeopt.learning.training.reinforce import Settings, Trainer, baselines, discounted, policy_factors  # noqa: E402
from placeopt.model.problem import Objective, Problem, Term  # noqa: E402
from placeopt.policies import run_episode  # noqa: E402

PROBLEMS = [random_problem(seed, 8) for seed in range(4)]


def test_returns_and_baselines_by_hand() -> None:
    gains = np.array([1.0, 2.0, -4.0])
    assert discounted(gains, 0.5).tolist() == [1 + 1 - 1, 2 - 2, -4]
    assert baselines(gains).tolist() == [0, 1, 1.5]
    assert baselines(gains, late=True).tolist() == [1, 1.5, -1 / 3]


def test_factors_by_hand() -> None:
    gains, settings = np.array([1.0, 2.0, -4.0]), Settings(gamma=0.5)

    def factors(*faults: str, period: int | None = None) -> list[float]:
        found = policy_factors([gains], replace(settings, faults=frozenset(faults)), period)  # type: ignore[arg-type]
        return found[0].tolist()

    assert factors() == [1 - 0, 0.5 * (0 - 1), 0.25 * (-4 - 1.5)]
    assert factors("undiscounted") == [1, -1, -5.5]
    assert factors("undiscounted", "late-baseline") == [0, -1.5, -4 + 1 / 3]
    # Placeto's second pass is an episode of its own.
    assert factors(period=2) == [2 - 0, 0.5 * (2 - 1), -4]
    # Accumulated from the first reward on: 1, 2.5, -2.75, then reversed.
    assert factors("undiscounted", "placeto-returns") == [-2.75, 2.5 - 1, 1 - 1.5]


def test_peers_share_a_baseline() -> None:
    first, second = policy_factors([np.array([3.0, 1.0]), np.array([1.0, 1.0])], Settings(gamma=0.5), None)
    # Returns 3.5, 1 and 1.5, 1: the mean is subtracted, and the deviation of -1, 1, 0, 0 is the root of a half.
    assert first == pytest.approx([2**0.5, 0])
    assert second == pytest.approx([-(2**0.5), 0])


def test_the_gradient_of_an_episode_is_the_sum_over_its_steps() -> None:
    agent = make_agent("giph")
    trainer = Trainer(agent, PROBLEMS, PROBLEMS, Settings(episodes=0, cases=1))
    problem = PROBLEMS[1]
    search = Search(problem, placement(problem), agent.make_view, steps=7, seed=3)
    decisions = guide([search], agent.network, record=True)[0]
    factors = np.linspace(-1, 2, 7)
    trainer._add_gradient(decisions, factors)
    together = [parameter.grad.clone() for parameter in agent.network.parameters()]
    agent.network.zero_grad()
    for made, factor in zip(decisions, factors.tolist(), strict=True):
        batch = Batch([made.observation])
        (-factor * batch.log_probabilities(agent.network(batch))[0, made.choice]).backward()
    for found, parameter in zip(together, agent.network.parameters(), strict=True):
        assert found.numpy() == pytest.approx(parameter.grad.numpy(), abs=1e-4)


def weights(name: str = "giph", **rest: object) -> dict[str, torch.Tensor]:
    settings = Settings(episodes=4, every=2, cases=2, **rest)  # type: ignore[arg-type]
    agent = make_agent(name, devices=6, seed=settings.seed)
    Trainer(agent, PROBLEMS, PROBLEMS, settings).run()
    return {name: value.clone() for name, value in agent.network.state_dict().items()}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_the_same_seed_gives_the_same_weights(name: str) -> None:
    before = make_agent(name, devices=6).network.state_dict()
    found = weights(name)
    assert same(found, weights(name))
    assert not same(found, before)


def test_settings_change_the_weights() -> None:
    found = weights()
    for changed in (
        {"seed": 1}, {"noise": 0.3}, {"gamma": 0.5}, {"batch": 2}, {"batch": 2, "peers": 2},
        {"faults": frozenset({"undiscounted"})}, {"faults": frozenset({"late-baseline"})},
        {"faults": frozenset({"repeated-cases"})},
    ):  # fmt: skip
        assert not same(found, weights(**changed)), changed
    assert not same(weights("placeto"), weights("placeto", faults=frozenset({"placeto-returns"})))


def test_evaluations_and_the_best_weights() -> None:
    agent = make_agent("giph")
    trainer = Trainer(agent, PROBLEMS, PROBLEMS, Settings(episodes=7, every=3, cases=3))
    seen = []
    progress = trainer.run(lambda progress: seen.append(progress.episode))  # type: ignore[func-returns-value]
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert [point.episode for point in progress.curve] == [0, 3, 6, 7]
    assert len(progress.returns) == 7
    assert progress.best_point is not None
    assert progress.best_point.ratio == min(point.ratio for point in progress.curve)
    agent.network.load_state_dict(progress.best)
    again = Trainer(agent, PROBLEMS, PROBLEMS, Settings(episodes=0, every=3, cases=3)).run()
    assert again.curve[0].ratio == progress.best_point.ratio


def test_report_stops_training() -> None:
    trainer = Trainer(make_agent("giph"), PROBLEMS, PROBLEMS, Settings(episodes=50, cases=1))
    progress = trainer.run(lambda progress: progress.episode >= 3)
    assert progress.episode == 3
    assert [point.episode for point in progress.curve] == [0]
    trainer.run(lambda progress: progress.episode >= 5)
    assert [point.episode for point in progress.curve] == [0, 5]


@pytest.mark.parametrize("batch", [1, 2])
def test_stops_before_any_move_change_nothing(batch: int) -> None:
    settings = Settings(episodes=4, every=2, cases=2, batch=batch)
    whole = Trainer(make_agent("giph"), PROBLEMS, PROBLEMS, settings)
    calls = 0

    def count() -> bool:
        nonlocal calls
        calls += 1
        return False

    whole.run(should_stop=count)
    for moves in range(1, calls + 1, 9):
        trainer, left = Trainer(make_agent("giph"), PROBLEMS, PROBLEMS, settings), moves

        def stop() -> bool:
            nonlocal left
            left -= 1
            return left == 0

        trainer.run(should_stop=stop)
        assert left == 0
        assert len(trainer.progress.curve) < len(whole.progress.curve)
        trainer.run()
        assert trainer.progress.curve == whole.progress.curve
        assert trainer.progress.returns == whole.progress.returns
        assert same(trainer.network.state_dict(), whole.network.state_dict())


def test_a_stop_ends_the_preparation_of_a_batch() -> None:
    trainer = Trainer(make_agent("giph"), PROBLEMS, PROBLEMS, Settings(episodes=4, cases=1, batch=10**9))
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return bool(trainer.progress.curve) and calls > 1000

    assert trainer.run(should_stop=stop).episode == 0


@pytest.mark.parametrize("metric", ["total_cost", "communication"])
def test_other_objectives(metric: str) -> None:
    objective = Objective(((Term(metric),),))  # type: ignore[arg-type]
    trainer = Trainer(make_agent("giph"), PROBLEMS, PROBLEMS, Settings(episodes=3, cases=2), objective=objective)
    assert all(0 < point.ratio <= 1 for point in trainer.run().curve)


def test_settings_out_of_range() -> None:
    for wrong, message in (
        ({"episodes": -1}, "episodes: -1 is too small"), ({"gamma": 1.5}, "gamma: 1.5 is out of range"),
        ({"rate": 0.0}, "rate: 0.0 is out of range"), ({"noise": 1.0}, "noise: 1.0 is out of range"),
        ({"batch": 3, "peers": 2}, "batch: 3 is not a multiple of peers, 2"),
        ({"faults": frozenset({"undiscount"})}, "unknown fault undiscount; did you mean undiscounted"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            Settings(**wrong)
    with pytest.raises(UsageError, match="seed: 9223372036854775808 is too large; expected at most"):
        Settings(seed=2**63)
    with pytest.raises(UsageError, match="train: no problems"):
        Trainer(make_agent("giph"), [], PROBLEMS)


def test_problems_without_anything_to_learn() -> None:
    agent = make_agent("giph")

    def train(problem: Problem, objective: Objective | None = None) -> None:
        Trainer(agent, [problem], [problem], Settings(episodes=1), objective=objective).run()

    with pytest.raises(UsageError, match="a problem without tasks has nothing to move"):
        train(built(np.empty((0, 2))))
    with pytest.raises(UsageError, match="objective: makespan is 0 for the random first placements"):
        train(built([[0, 0]]))
    for metric in ("energy", "relocation", "memory_balance"):  # the problems state no data for it
        with pytest.raises(UsageError, match=f"objective: {metric} is 0 .*expected problems with the data for it"):
            train(PROBLEMS[0], Objective(((Term(metric),),)))  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match="a problem of 2 tasks cannot be trained or evaluated on: no device can run task t1"
    ):
        train(built([[1, 2], [1, 2]], feasible=[[True, True], [False, False]]))
    with pytest.raises(UsageError, match="problem tight cannot be trained or evaluated on: none of 10000 random"):
        train(built([[1], [1]], resident=[4, 4], capacity=[5], name="tight"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", list(VARIANTS))
def test_scores_beyond_the_range_of_floats(name: str) -> None:
    agent = make_agent(name, devices=6)
    with torch.no_grad():
        for parameter in agent.network.parameters():
            parameter.fill_(1e38)
    if isinstance(agent.network, Giph):  # computed with 64 bits, in which these scores are finite
        agent.network.score[2].weight.data.fill_(float("inf"))
    searches = [Search(PROBLEMS[0], placement(PROBLEMS[0]), agent.make_view, steps=3)]
    with pytest.raises(UsageError, match="scores are not finite: its weights are too large; train with a smaller rate"):
        guide(searches, agent.network)


def test_searches_check_their_arguments() -> None:
    agent = make_agent("giph")
    problem = PROBLEMS[0]
    for wrong, message in (({"noise": 1.0}, "noise: 1.0 is out of range"), ({"steps": -1}, "steps: -1 is negative")):
        with pytest.raises(UsageError, match=message):
            Search(problem, placement(problem), agent.make_view, **{"steps": 2} | wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "placeto"])
def test_a_search_in_lockstep_is_the_episode_of_the_policy(name: str) -> None:
    agent = make_agent(name)
    problem = PROBLEMS[2]
    device = placement(problem)
    searches = [Search(problem, device, agent.make_view, steps=12, noise=0.2, seed=seed) for seed in (5, 6)]
    guide(searches, agent.network)
    found = searches[0].episode(name)
    expected = run_episode(
        problem, LearnedPolicy(name, agent.network, agent.make_view), device, steps=12, noise=0.2, seed=5
    )
    assert [(step.task, step.device) for step in found.history] == [(s.task, s.device) for s in expected.history]
    assert found.best.tolist() == expected.best.tolist()
    assert found.current.tolist() == expected.current.tolist()
    assert found.device.tolist() == expected.device.tolist()
    assert found.expected.tolist() == expected.expected.tolist()


def test_placeto_visits_each_task_once_and_starts_again() -> None:
    agent = make_agent("placeto", devices=6)
    problem = PROBLEMS[0]
    device = placement(problem)
    search = Search(problem, device, agent.make_view, steps=2 * problem.n_tasks, seed=1)
    guide([search], agent.network)
    tasks = [step.task for step in search.history]
    assert sorted(tasks[: problem.n_tasks]) == sorted(tasks[problem.n_tasks :]) == list(range(problem.n_tasks))
    assert tasks[: problem.n_tasks] != tasks[problem.n_tasks :]
    assert search.view.device.tolist() == device.tolist()


def test_training_learns_to_leave_a_slow_device() -> None:
    """Tasks take 1 or 9 ticks: the policy must learn to prefer moves to the fast device."""
    problems = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        slow = np.where(rng.random((6, 3)) < 0.34, 1, 9)
        slow[:, rng.integers(3)] = 1
        problems.append(built(slow, list(pairwise(range(6)))))
    agent = make_agent("giph-ne-pol", seed=1)
    trainer = Trainer(agent, problems, problems, Settings(episodes=160, batch=8, peers=8, every=40, cases=6, steps=1))
    curve = trainer.run().curve
    assert min(point.ratio for point in curve[1:]) < 0.7 * curve[0].ratio


@pytest.mark.parametrize("name", list(VARIANTS))
def test_decisions_recall_what_the_network_observed(name: str) -> None:
    agent = make_agent(name, devices=6)
    problem = PROBLEMS[1]
    search = Search(problem, placement(problem), agent.make_view, steps=9, noise=0.3, seed=4)
    seen, decisions = [], []
    while search.active:
        seen.append(search.view.observe(search.run))
        decisions += step([search], agent.network)
    for decision, expected in zip(decisions, seen, strict=True):
        found = decision.observation
        assert (found.nodes == expected.nodes).all()
        assert (found.edges == expected.edges).all()
        assert (found.source == expected.source).all()
        assert (found.target == expected.target).all()
        assert (found.allowed == expected.allowed).all()
        assert found.current == expected.current
