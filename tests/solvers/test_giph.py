"""giph: the search of a trained policy as a solver."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers.search import giph
from test_search import OBJECTIVES, constrained

import placeopt as po
from placeopt.errors import DocumentError, MissingExtraError, UsageError
from placeopt.generate.giph.sets import SETS, sampled
from placeopt.generate.random_graphs import random_document
from placeopt.learning.networks.variants import VARIANTS, make_agent
from placeopt.learning.search import LearnedPolicy
from placeopt.learning.training.weights import PACKAGED, load_policy
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem
from placeopt.policies import RandomTaskEft, random_placement, run_episode
from placeopt.protocol import Termination
from placeopt.testing import CASES, check_solver

PROBLEM = po.compile(random_document(12, 5, delay=5.0, seed=3))


def solve(problem: Problem = PROBLEM, **options: Any) -> po.Result:
    return po.solve(problem, "giph", **{"workers": 1, "seed": 1, "restarts": 4} | options)


def need_pytorch() -> None:
    for library in ("torch", "safetensors"):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install 'placeopt[torch]'")


def untrained(path: Path, name: str) -> str:
    """A file with initial weights."""
    need_pytorch()
    from placeopt.learning.training.checkpoints import save_policy
    from placeopt.learning.training.reinforce import Settings, Trainer

    trainer = Trainer(make_agent(name, devices=5), [PROBLEM], [PROBLEM], Settings(episodes=0, cases=1))
    trainer.run()
    save_policy(path, trainer)
    return str(path)


def test_the_same_seed_gives_the_same_schedule() -> None:
    one, other, another = solve(), solve(), solve(seed=2)
    assert one.schedule is not None
    assert other.schedule is not None
    assert np.array_equal(one.schedule.device, other.schedule.device)
    assert one.stats == other.stats == {"moves": 4 * 2 * 12, "starts": 4}
    assert another.termination is one.termination is Termination.COMPLETED


def test_each_incumbent_is_reported() -> None:
    reports: list[Any] = []
    result = solve(searches=1, on_progress=lambda progress: reports.append(progress.objective))
    values = [value for value in reports if value is not None]
    assert len(set(values)) > 2
    assert all(later <= earlier for earlier, later in pairwise(values))
    assert values[-1] == result.objective


def test_a_stop_ends_the_search_between_two_moves() -> None:
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > 6

    result = solve(should_stop=stop)
    assert result.termination is Termination.INTERRUPTED
    assert result.feasible
    assert 0 < result.stats["moves"] < 4 * 2 * 12


def test_the_time_limit_holds_between_two_moves() -> None:
    result = solve(time_limit=1e-6)
    assert result.termination is Termination.TIME_LIMIT
    assert result.feasible
    assert result.stats["moves"] == 0


def test_it_starts_at_the_initial_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    best = po.solve(PROBLEM, "cp-sat", time_limit=20, workers=1)
    assert best.schedule is not None
    starts = []
    make = giph._Run._start
    monkeypatch.setattr(giph._Run, "_start", lambda run: starts.append(make(run)) or starts[-1])
    result = solve(initial=best.schedule, searches=2)
    assert result.objective == best.objective
    assert np.array_equal(starts[0], best.schedule.device)  # and every second one, at the best so far
    assert np.array_equal(starts[1], best.schedule.device)
    assert not np.array_equal(starts[2], best.schedule.device)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_it_keeps_every_rule_for_any_objective(objective: Objective) -> None:
    """Groups, separation, memory, deadlines and ports; a warm start is never lost."""
    for seed in range(3):
        problem = constrained(seed, tight=0.5, contention="port" if seed else "none", objective=objective)
        found = solve(problem, restarts=3)
        broken = {violation.rule for violation in found.violations}
        assert found.schedule is None or broken <= {"deadline"}
        start = po.solve(problem, "annealing", rounds=300, workers=1)
        if start.feasible and start.schedule is not None:
            warm = solve(problem, restarts=3, initial=start.schedule)
            assert warm.feasible
            assert warm.values is not None
            assert start.values is not None
            assert warm.values <= start.values


def test_no_value_is_below_the_optimum() -> None:
    hits = 0
    for seed in range(25):
        problem = small_problem(np.random.default_rng(4000 + seed), OBJECTIVES[seed % 2])
        best, found = optimum(problem), solve(problem)
        assert best is not None or not found.feasible
        if best is not None and found.feasible and found.values is not None:
            assert found.values >= best[0]
            hits += found.values == best[0]
    assert hits > 8


def test_it_stops_at_a_proved_optimum() -> None:
    problem = build_problem(task_names=["a", "b"], device_names=["x", "y"], duration=np.array([[3, 9], [9, 3]]))
    result = solve(problem, restarts=1000)
    assert result.termination is Termination.OPTIMAL
    assert result.objective == result.bound == 3
    assert result.stats["moves"] < 20
    wide = solve(restarts=1000, gap_limit=0.9)
    assert wide.termination is Termination.COMPLETED
    assert wide.stats["moves"] < 100


def test_the_number_of_moves_follows_from_the_limit_not_from_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giph, "SHARE", 0.01)  # even a slow machine makes these moves within the limit
    one, other = (solve(restarts=None, time_limit=10.0) for _ in range(2))
    assert one.termination is other.termination is Termination.COMPLETED
    assert one.stats == other.stats
    assert one.stats["moves"] > 100


def test_a_search_ends_without_progress() -> None:
    whole, patient, hasty = (solve(restarts=10, patience=patience) for patience in (None, 24, 5))
    assert whole.stats == patient.stats == {"moves": 10 * 2 * 12, "starts": 10}
    assert patient.objective == whole.objective
    assert hasty.stats["starts"] == 10
    assert hasty.stats["moves"] < 200


@pytest.mark.parametrize("name", ["giph", "placeto"])
def test_searches_in_lockstep_end_one_by_one(name: str, tmp_path: Path) -> None:
    weights = untrained(tmp_path / "weights", name)
    one, four = (solve(weights=weights, restarts=4, searches=k, patience=3) for k in (1, 4))
    assert one.stats["starts"] == four.stats["starts"] == 4
    assert 4 * 3 <= four.stats["moves"] < 4 * 24


@pytest.mark.parametrize("name", VARIANTS)
def test_weights_of_every_variant_can_be_used(name: str, tmp_path: Path) -> None:
    result = solve(weights=untrained(tmp_path / "weights", name), restarts=2)
    assert result.feasible
    assert result.stats["moves"] == 2 * 2 * 12


def test_trained_weights_are_better_than_initial_ones(tmp_path: Path) -> None:
    weights = untrained(tmp_path / "weights", "giph")
    problems = [po.compile(random_document(20, 8, delay=5.0, seed=seed)) for seed in range(100, 105)]
    trained, initial = (
        sum(float(solve(each, restarts=1, **more).objective or 0) for each in problems)
        for more in ({}, {"weights": weights})
    )
    assert trained < 0.95 * initial


def test_weights_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="nothing: no such file"):
        solve(weights=str(tmp_path / "nothing"))
    with pytest.raises(DocumentError, match=r"gipf: no such file; did you mean giph\?"):
        solve(weights="gipf")
    (tmp_path / "weights").write_bytes(b"1234567890")
    with pytest.raises(DocumentError, match="weights: is not a complete file of the format safetensors"):
        solve(weights=str(tmp_path / "weights"))
    with pytest.raises(UsageError, match="placeto was trained for 5 devices, but the problem has 4"):
        solve(po.compile(random_document(6, 4, seed=0)), weights=untrained(tmp_path / "placeto", "placeto"))


WITHOUT_LIBRARIES = """
import sys

sys.modules["torch"] = sys.modules["safetensors"] = None
import placeopt as po

for weights in ("giph-plus", "giph"):
    schedule = po.solve(po.load(sys.argv[1]), "giph", weights=weights, restarts=2, seed=1, workers=1).schedule
    print(schedule.device.tolist(), schedule.start.tolist())
"""


def test_the_policies_of_the_package_need_no_libraries() -> None:
    path = str(Path(__file__).parents[2] / "problems" / "heft-10.yaml")
    done = subprocess.run([sys.executable, "-c", WITHOUT_LIBRARIES, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with_libraries = []
    for weights in ("giph-plus", "giph"):
        schedule = solve(po.load(path), weights=weights, restarts=2).schedule
        assert schedule is not None
        with_libraries.append(f"{schedule.device.tolist()} {schedule.start.tolist()}")
    assert done.stdout.splitlines() == with_libraries


def test_other_variants_need_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, other = untrained(tmp_path / "giph", "giph-task-eft"), untrained(tmp_path / "giph-3", "giph-3")
    for library in ("torch", "safetensors"):
        monkeypatch.setitem(sys.modules, library, None)
    assert solve(weights=compiled).feasible
    with pytest.raises(
        MissingExtraError, match=r"policies of the variant giph-3 need torch: pip install 'placeopt\[torch\]'"
    ):
        solve(weights=other)


def test_a_graph_that_is_too_large_keeps_its_first_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giph, "LARGEST", 100)
    result = solve()
    assert result.feasible
    assert "made no move: the graphs of all moves have" in result.message


def test_large_graphs_and_short_limits_get_fewer_searches() -> None:
    small, compiled = (giph.Cost(PROBLEM, compiled=compiled) for compiled in (False, True))
    large = giph.Cost(po.compile(random_document(200, 20, seed=0)), compiled=False)
    assert small.searches(24, 10.0) == 16
    assert small.searches(24, 1e-6) == 1
    assert large.searches(1, 1e9) == 1
    assert compiled.searches(24, 10.0) == 1
    assert large(1) > small(1) > compiled(1)


@pytest.mark.parametrize(
    "case", [case for case in CASES if "memory" in case.name or "deadline" in case.name], ids=lambda case: case.name
)
def test_one_search_at_a_time_keeps_the_rules(case: Any) -> None:
    check_solver("giph", case, restarts=3, searches=1)


def test_the_policy_beats_untrained_weights_and_random_task_eft_on_unseen_networks() -> None:
    """At equal numbers of steps, on graphs and networks that training has not seen."""
    chosen = SETS["giph-unseen"]().test
    problems = [po.compile(chosen.document(graph, network)) for graph, network in sampled(chosen, 12, seed=3)]
    need_pytorch()
    agent = load_policy(PACKAGED["giph-plus"], compiled=True).agent
    starts = [random_placement(problem, np.random.default_rng(0)) for problem in problems]
    ratios = {}
    for name, policy in {
        "trained": LearnedPolicy("trained", agent.network, agent.make_view),
        "untrained": LearnedPolicy("untrained", make_agent("giph-plus").network, agent.make_view),
        "random-task-eft": RandomTaskEft(),
    }.items():
        found = [
            run_episode(p, policy, d, steps=2 * p.n_tasks, seed=1).best[-1] / po.critical_path(p)
            for p, d in zip(problems, starts, strict=True)
        ]
        ratios[name] = np.array(found)
    assert (ratios["trained"] < ratios["untrained"]).all()
    assert (ratios["trained"] < ratios["random-task-eft"]).sum() >= 11
    assert ratios["trained"].mean() < ratios["random-task-eft"].mean() - 0.1
