"""The problems of the project: they compile, and their headers are correct."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.bounding.quick import best_bound
from placeopt.generate.models import model_document
from placeopt.io.compiler import compile_spec, read_spec
from placeopt.io.spec import BestKnown, PipelineSpec
from placeopt.model.problem import UNLIMITED
from placeopt.verifier import Rule
from tests.support.orders import schedules

FOLDER = Path(__file__).parents[1] / "problems"
FILES = sorted(FOLDER.glob("*.yaml"))
PROVED_FAST = (
    "camera-box",
    "edge-perception",
    "five-node",
    "heft-10",
    "microcontroller",
    "pcie-roots",
    "peft-10",
    "sensor-fusion",
    "sensor-fusion-later",
    "vgg19",
    "vgg19-tight",
    "workstation",
)
PIPELINES = ("four-stages", "llama-8b")
GNMT = {"layers": 8, "width": 1024, "bidirectional": True, "batch": 128, "source_length": 25, "target_length": 25}


def best_known(path: Path) -> BestKnown:
    found = read_spec(path).best_known
    assert found is not None, f"{path.name} does not say what is known of it"
    return found


def test_documented_problems_exist() -> None:
    sizes = [
        f"{model}{network}" for model in ("vgg19", "resnet50", "inception") for network in ("", "-medium", "-tight")
    ]
    small = [name for name in PROVED_FAST if not name.startswith("vgg19")]
    assert {path.stem for path in FILES} == {*small, "gnmt", *sizes, *PIPELINES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_headers_state_valid_best_values_and_bounds(path: Path) -> None:
    """The best known value is that of a stored plan; the bound is at least the quick bounds."""
    problem, known = po.load(path), best_known(path)
    spec = read_spec(path)
    assert problem.name == path.stem
    assert spec.source
    assert spec.description
    plan = po.read_plan(FOLDER / "plans" / f"{path.stem}.json", problem)
    assert plan.fingerprint == problem.fingerprint(), "the plan was made for another version of the problem"
    report = po.verify(problem, plan.schedule, plan.claim)
    assert report.feasible, report.violations
    assert [float(value) for value in report.objective or ()] == [known.objective]
    assert known.bound is not None
    assert best_bound(problem).value <= known.bound <= known.objective


@pytest.mark.parametrize("name", PROVED_FAST)
def test_known_optima_are_proved(name: str) -> None:
    path = FOLDER / f"{name}.yaml"
    result = po.solve(po.load(path), "cp-sat", time_limit=60)
    assert result.termination is po.Termination.OPTIMAL
    proved = [float(value) for value in (result.objective, result.bound) if value is not None]
    assert proved == [best_known(path).objective, best_known(path).bound]


def test_the_optimum_of_a_language_model_is_proved() -> None:
    path = FOLDER / "llama-8b.yaml"
    result = po.solve(po.load(path), "ideals", workers=1)
    assert result.termination is po.Termination.OPTIMAL
    assert [float(value) for value in (result.objective, result.bound) if value is not None] == [
        best_known(path).objective, best_known(path).bound,
    ]  # fmt: skip


def test_four_stages_cost_less_than_three_percent() -> None:
    """The bound is the least load of the busiest device, over all divisions of the chain and all orders of devices."""
    path = FOLDER / "four-stages.yaml"
    problem, known = po.load(path), best_known(path)
    assert known.bound == known.objective == least_period_of_a_chain(problem)
    free = compile_spec(read_spec(path).model_copy(update={"pipeline": PipelineSpec()}), folder=FOLDER)
    assert f"no period is below {best_bound(free).value} ticks" in path.read_text(encoding="utf-8")
    assert known.objective < 1.03 * float(best_bound(free).value)


def least_period_of_a_chain(problem: po.Problem) -> int:
    """Divide a chain of forward tasks, which backward tasks mirror, into at most one stage per device, under 1F1B."""
    n, m = problem.n_tasks // 2, problem.n_devices
    ahead, behind = np.arange(n), 2 * n - 1 - np.arange(n)
    assert problem.forward[behind].tolist() == ahead.tolist()
    payload = {
        (a, b): p
        for a, b, p in zip(
            problem.edge_source.tolist(), problem.edge_target.tolist(), problem.payload.tolist(), strict=True
        )
    }
    assert set(payload) == {(k, k + 1) for k in range(2 * n - 1)} | {(k, 2 * n - 1 - k) for k in range(n)}

    def sums(values: Any) -> Any:
        return np.concatenate((np.zeros_like(values[:1]), np.cumsum(values, axis=0))).tolist()

    work = sums(problem.duration[ahead] + problem.duration[behind])
    fixed = sums((problem.memory - np.where(np.arange(2 * n) < n, problem.output, 0))[ahead] + problem.memory[behind])
    kept = sums(problem.output[ahead])

    def moved(cut: int, one: int, other: int) -> int:
        """Ticks between two stages: the activation and its gradient."""
        gradient = payload[2 * n - 1 - cut, 2 * n - cut]
        return int(problem.transfer(payload[cut - 1, cut], one, other) + problem.transfer(gradient, other, one))

    best = 2**62
    for order in (order for size in range(1, m + 1) for order in permutations(range(m), size)):
        costs = [[moved(cut, a, b) for cut in range(1, n)] for a, b in pairwise(order)]
        for cuts in combinations(range(1, n), len(order) - 1):
            ends = (0, *cuts, n)
            between = [0, *(costs[k][cut - 1] for k, cut in enumerate(cuts)), 0]
            period = 0
            for s, d in enumerate(order):
                i, j = ends[s], ends[s + 1]
                if fixed[j] - fixed[i] + (len(order) - s) * (kept[j] - kept[i]) > problem.capacity[d]:
                    break
                period = max(period, work[j][d] - work[i][d] + between[s] + between[s + 1])
                if period >= best:
                    break
            else:
                best = period
    return best


def test_heft_reproduces_its_paper() -> None:
    """Topcuoglu, Hariri, Wu 2002, figure 3: a makespan of 80; the optimum is 73."""
    assert po.solve(po.load(FOLDER / "heft-10.yaml"), "heft").objective == 80


def test_constraints_of_edge_perception_are_binding() -> None:
    """Without the deadlines, release times or fixed placement, the perception ends earlier."""
    path = FOLDER / "edge-perception.yaml"
    problem, optimum = po.load(path), best_known(path).objective
    free = read_spec(path).model_copy(update={"placement": {}})
    relaxed = (
        replace(problem, deadline=np.full(problem.n_tasks, UNLIMITED)),
        replace(problem, release=np.zeros(problem.n_tasks, dtype=np.int64)),
        compile_spec(free, folder=FOLDER),
    )
    for other in relaxed:
        result = po.solve(other, "cp-sat", time_limit=60)
        assert result.termination is po.Termination.OPTIMAL
        assert result.objective is not None
        assert result.objective < optimum
    schedule = po.solve(relaxed[0], "heft").schedule
    assert schedule is not None
    assert {violation.rule for violation in po.verify(problem, schedule).violations} == {Rule.DEADLINE}


@pytest.mark.parametrize(
    ("file", "model", "options"),
    [
        ("vgg19", "vgg19", {}),
        ("resnet50", "resnet50", {}),
        ("inception-v3", "inception_v3", {}),
        ("gnmt", "lstm_nmt", GNMT),
    ],
)
def test_graph_files_equal_the_generator_output(file: str, model: str, options: dict[str, object]) -> None:
    committed = json.loads((FOLDER / "graphs" / f"{file}.json").read_text())
    assert committed == model_document(model, **options)


def test_few_orders_of_the_microcontroller_fit() -> None:
    """All 5,040 orders: 3 fit by the count of bytes, and have addresses; that of the file needs 335 KiB."""
    problem = po.load(FOLDER / "microcontroller.yaml")
    peaks = [(int(po.measure(problem, schedule).peak_memory[0]), schedule) for schedule in schedules(problem)]
    assert len(peaks) == 5040
    fitting = [schedule for peak, schedule in peaks if peak <= problem.capacity[0]]
    assert len(fitting) == 3
    assert all(po.allocate_plan(problem, schedule)[0].fits for schedule in fitting)
    assert peaks[0][1].start.tolist() == sorted(peaks[0][1].start.tolist())
    assert 334 * 1024 < peaks[0][0] <= 335 * 1024
    assert po.solve(problem, "heft").schedule is None
    less = replace(problem, capacity=np.array([min(peak for peak, _ in peaks) - 1]))
    assert po.solve(less, "cp-sat", workers=2, time_limit=60).termination is po.Termination.INFEASIBLE
