"""The RNN placer: its input, its probabilities and gradients, and its training on one problem."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from rnn_placer import INFEASIBLE, place_by_rnn

import placeopt as po
from placeopt.errors import MissingExtraError, UsageError
from placeopt.generate.random_graphs import random_document
from placeopt.learning.graphs.traits import Traits
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem, Term
from placeopt.policies import random_placement, sample_placements
from placeopt.simulation import simulate
from placeopt.verifier import verify

torch = pytest.importorskip("torch", reason="the RNN placer needs PyTorch")

from rnn_network import RnnPlacer, RnnSettings, RnnTrainer, TaskSequence, sequence_of  # noqa: E402

from placeopt.learning.search import one_thread  # noqa: E402

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = RnnSettings(hidden=8)


@pytest.fixture(autouse=True)
def on_one_thread() -> Iterator[None]:
    with one_thread():
        yield


def diamond(**rest: Any) -> Problem:
    """Tasks d, a, b, c with edges a -> b, a -> c, b -> d, c -> d; a and d may not run on the last device."""
    arguments: dict[str, Any] = {
        "task_names": list("dabc"),
        "device_names": ["x", "y", "z"],
        "duration": np.array([[4, 2, 0], [8, 4, 0], [6, 3, 6], [2, 1, 2]]),
        "feasible": np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]),
        "edges": [(1, 2), (1, 3), (2, 0), (3, 0)],
        "payload": [10, 5, 2, 1],
        "byte_ticks_num": np.ones((3, 3)),
    }
    return build_problem(**arguments | rest)


def giph(seed: int) -> Problem:
    document = random_document(
        12, 8, alpha=0.3, connection=0.2, hardware=4, requirement=1.0, support=0.4, seed=seed,
        speed=5.0, speed_heterogeneity=0.8, bandwidth=100.0, bandwidth_heterogeneity=0.8, delay=10.0,
    )  # fmt: skip
    return po.compile(document)


def sequence(problem: Problem) -> TaskSequence:
    return sequence_of(problem, Traits(np.array([2.0, 4.0, 3.0, 1.0]), np.array([0.5, 1.0, 0.5])))


def network(tasks: TaskSequence) -> RnnPlacer:
    return RnnTrainer(tasks, SMALL, 3).network.double()


class TestInput:
    def test_columns_by_hand(self) -> None:
        found = sequence(diamond())
        assert found.order.tolist() == [1, 2, 3, 0]
        assert found.leader.tolist() == [0, 1, 2, 3]
        assert found.allowed.tolist() == [[True, True, False], [True] * 3, [True] * 3, [True, True, False]]
        np.testing.assert_array_equal(
            found.features,
            [  # type, work / 4, bytes of out-edges / 10, consumers a, b, c, d
                [1, 0, 1.0, 1.0, 0.5, 0, 1, 1, 0],
                [0, 1, 0.75, 0.2, 0, 0, 0, 0, 1],
                [0, 1, 0.25, 0.1, 0, 0, 0, 0, 1],
                [1, 0, 0.5, 0, 0, 0, 0, 0, 0],
            ],
        )

    def test_groups_and_problems_without_edges(self) -> None:
        found = sequence(diamond(group=np.array([7, 1, 7, 3])))
        assert found.leader.tolist() == [0, 1, 2, 1]
        assert found.allowed[1].tolist() == found.allowed[3].tolist() == [True, True, False]
        alone = build_problem(task_names=["a"], device_names=["x"], duration=np.array([[0]]))
        assert sequence_of(alone, Traits(np.zeros(1), np.ones(1))).features.tolist() == [[1, 0, 0]]
        assert place_by_rnn(alone, [0], steps=5, settings=SMALL).best.tolist() == [0] * 6


class TestNetwork:
    @pytest.mark.parametrize("group", [[0, 1, 2, 3], [0, 1, 0, 3]])
    def test_probabilities_of_all_placements(self, group: list[int]) -> None:
        tasks = sequence(diamond(group=np.array(group)))
        options = [np.flatnonzero(row) for row in tasks.allowed]
        every = [each for each in product(*options) if all(each[i] == each[k] for i, k in enumerate(tasks.leader))]
        model = network(tasks)
        _, logs = model(tasks, len(every), chosen=torch.tensor(np.array(every)))
        assert logs.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
        drawn, own = model(tasks, 4000, torch.Generator().manual_seed(0))
        again = model(tasks, 4000, chosen=drawn)[1]
        assert bool((own == again).all())
        assert {tuple(row) for row in drawn.tolist()} == {tuple(map(int, each)) for each in every}
        share = np.array([(drawn == torch.tensor(np.array(each))).all(dim=1).double().mean() for each in every])
        assert abs(share - logs.detach().exp().numpy()).max() < 5 * (0.25 / 4000) ** 0.5

    def test_logits_are_bounded(self) -> None:
        tasks = sequence(diamond())
        model = network(tasks)
        with torch.no_grad():
            model.choice.bias[0] = 1e9
            model.choice.bias[1:] = -1e9
        _, logs = model(tasks, 1, chosen=torch.zeros((1, 4), dtype=torch.int64))
        # Logits are C = 5 and -5: two tasks have one other device, two have two.
        expected = 2 * np.log(1 / (1 + np.exp(-10.0))) + 2 * np.log(1 / (1 + 2 * np.exp(-10.0)))
        assert logs.item() == pytest.approx(expected, rel=1e-9)

    def test_gradients_agree_with_finite_differences(self) -> None:
        tasks = sequence(diamond(group=np.array([0, 1, 0, 3])))
        model = network(tasks)
        chosen = torch.tensor([[0, 1, 2, 1], [1, 0, 0, 0]])
        advantage = torch.tensor([0.7, -1.3], dtype=torch.float64)

        def loss() -> Any:
            return -(advantage * model(tasks, 2, chosen=chosen)[1]).mean()

        loss().backward()
        rng = np.random.default_rng(0)
        for name, weights in model.named_parameters():
            flat, slope = weights.detach().view(-1), weights.grad.view(-1)
            assert float(slope.abs().max()) > 1e-9, name
            for place in rng.integers(len(flat), size=4).tolist():
                kept, values = float(flat[place]), []
                for offset in (1e-5, -1e-5):
                    flat[place] = kept + offset
                    values.append(loss().item())
                flat[place] = kept
                assert (values[0] - values[1]) / 2e-5 == pytest.approx(float(slope[place]), rel=1e-4, abs=1e-9), name


class TestTraining:
    @pytest.mark.parametrize("freeze", [False, True])
    def test_attention_is_trained(self, freeze: bool) -> None:
        trainer = RnnTrainer(sequence(diamond()), replace(SMALL, freeze_attention=freeze), 0)
        before = {name: weights.clone() for name, weights in trainer.network.named_parameters()}
        trainer.draw(4)
        trainer.learn(np.array([1.0, -1.0, 0.5, -0.5]))
        for name, weights in trainer.network.named_parameters():
            assert bool((weights == before[name]).all()) == (freeze and name.startswith("attention")), name

    def test_an_advantage_raises_the_probability(self) -> None:
        trainer = RnnTrainer(sequence(diamond()), SMALL, 0)
        (placement,) = trainer.draw(1)
        chosen = torch.tensor(placement[trainer.tasks.order][None])
        before = trainer.network(trainer.tasks, 1, chosen=chosen)[1].item()
        trainer.learn(np.array([1.0]))
        assert trainer.network(trainer.tasks, 1, chosen=chosen)[1].item() > before

    def test_same_seed_gives_the_same_record(self) -> None:
        problem = giph(0)
        first = random_placement(problem, np.random.default_rng(0))
        torch.manual_seed(1)
        state = torch.get_rng_state()
        found = [place_by_rnn(problem, first, steps=24, noise=0.3, seed=seed, settings=SMALL) for seed in (5, 5, 6)]
        assert bool((torch.get_rng_state() == state).all())
        np.testing.assert_array_equal(found[0].current, found[1].current)
        assert found[0].current.tolist() != found[2].current.tolist()

    def test_better_than_random_placements(self) -> None:
        learned, drawn, early, late = [], [], [], []
        for seed in range(3):
            problem = giph(seed)
            first = random_placement(problem, np.random.default_rng(seed))
            found = place_by_rnn(problem, first, steps=240, seed=seed, settings=replace(SMALL, patience=None))
            assert found.evaluations.tolist() == list(range(1, 242))
            np.testing.assert_array_equal(found.best, np.minimum.accumulate(found.current))
            np.testing.assert_array_equal(found.best, found.expected)
            learned.append(found.best[-1])
            drawn.append(sample_placements(problem, first, steps=240, seed=seed).best[-1])
            early.append(found.current[1:41].mean())
            late.append(found.current[-40:].mean())
        assert sum(learned) < sum(drawn)
        assert sum(late) < 0.9 * sum(early)

    def test_infeasible_placements_are_punished_and_not_executed(self) -> None:
        problem = diamond(resident=np.array([2, 2, 2, 2]), capacity=np.array([4, 4, 4]), separation=[(2, 3)])
        found = place_by_rnn(problem, [0, 0, 1, 2], steps=400, seed=1, settings=RnnSettings(patience=None))
        steps = np.diff(found.evaluations)
        assert 0 < steps.sum() < 400
        np.testing.assert_array_equal(found.current[1:][steps == 0], found.current[:-1][steps == 0])
        assert verify(problem, simulate(problem, found.device)).feasible
        assert steps[-60:].mean() > steps[:60].mean()  # it learns to avoid them
        assert -((found.current.max() / found.current[0]) ** 0.5) > INFEASIBLE

    def test_objective_and_noise(self) -> None:
        objective = Objective(((Term("makespan"), Term("communication", 2.5)),))
        found = place_by_rnn(diamond(), [0] * 4, steps=40, noise=0.5, seed=2, objective=objective, settings=SMALL)
        stated = diamond(objective=objective)
        assert found.expected[-1] == float(evaluate(stated, simulate(stated, found.device))[0])
        assert found.expected[0] == 20.0
        assert found.expected[-1] <= 10.0  # all on y

    def test_training_ends(self) -> None:
        problem = build_problem(task_names=["a", "b"], device_names=["x"], duration=np.array([[1], [2]]))
        assert len(place_by_rnn(problem, [0, 0], settings=replace(SMALL, patience=3)).best) == 1 + 4 * 4
        assert len(place_by_rnn(problem, [0, 0], settings=replace(SMALL, updates=2)).best) == 1 + 2 * 4
        assert len(place_by_rnn(problem, [0, 0], steps=6, settings=SMALL).best) == 1 + 6
        assert len(place_by_rnn(problem, [0, 0], steps=0, settings=SMALL).best) == 1


class TestErrors:
    def test_invalid_settings(self) -> None:
        for arguments, message in (
            ({"batch": 0}, "batch: 0 is too few; expected at least 1"),
            ({"patience": 0}, "patience: 0 is too few"),
            ({"learning_rate": 0.0}, "learning_rate: 0.0 is not positive"),
            ({"clip": -1.0}, "clip: -1.0 is not positive"),
            ({"scale": float("inf")}, "scale: inf is not positive and finite"),
        ):
            with pytest.raises(UsageError, match=message):
                RnnSettings(**arguments)  # type: ignore[arg-type]

    def test_invalid_arguments(self) -> None:
        with pytest.raises(UsageError, match=r"noise: 1\.0 is out of range"):
            place_by_rnn(diamond(), [0] * 4, noise=1.0)
        with pytest.raises(UsageError, match="task d may not run on z"):
            place_by_rnn(diamond(), [2] * 4)
        with pytest.raises(UsageError, match="traits of 1 tasks"):
            place_by_rnn(diamond(), [0] * 4, traits=Traits(np.ones(1), np.ones(3)))

    def test_missing_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtraError, match=r"learned policies need torch: pip install 'placeopt\[torch\]'"):
            place_by_rnn(diamond(), [0] * 4)

    def test_the_module_loads_no_torch(self) -> None:
        code = "import sys, rnn_placer; assert 'torch' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=BENCHMARKS)
