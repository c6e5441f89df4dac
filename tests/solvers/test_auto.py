"""The portfolio: the turns of its members, the sources of its results, and its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from placeopt_solvers._runs.validity import valid
from placeopt_solvers._series import run as series_module
from placeopt_solvers.portfolio import _members as _auto_members
from placeopt_solvers.portfolio import _run as _auto_run
from placeopt_solvers.portfolio import _standings
from placeopt_solvers.portfolio._members import MEMBERS, affordable, schedules, segments
from placeopt_solvers.portfolio._run import Tuning
from placeopt_solvers.portfolio._standings import Standings
from placeopt_solvers.portfolio.auto import Auto, AutoSettings
from test_memetic import shop

import placeopt as po
from placeopt.bounding.quick import best_bound
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.orchestration.result import Result
from placeopt.protocol import Answer, Clock, Options, Progress, Termination

PROBLEMS = Path(__file__).parents[2] / "problems"


def tight(tasks: int = 30, devices: int = 3, seed: int = 0, **rest: Any) -> Problem:
    """A random layered problem with tight memory and expensive transfers."""
    return layered_problem(tasks, devices, seed=seed, ccr=2.0, tightness=0.8, width=4, **rest)


def solved(problem: Problem, **options: Any) -> Result:
    return po.solve(problem, "auto", **{"time_limit": 4, "workers": 1} | options)


class TestMembers:
    @pytest.mark.parametrize("seed", range(3))
    def test_the_best_of_them_is_the_first_answer(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = tight(seed=seed)
        for later in ("_begin", "_turn", "_exact", "_search", "_bound"):
            monkeypatch.setattr(_auto_run.Run, later, lambda *_: None)
        answer = Auto().solve(problem, Options(), AutoSettings())
        assert answer.schedule is not None
        found = {member.name: list(schedules(member, problem, 0)) for member in MEMBERS}
        found["segments"] = list(segments(problem))
        values = {name: min(evaluate(problem, each) for each in those) for name, those in found.items() if those}
        assert len(values) > 15
        assert evaluate(problem, answer.schedule) == min(values.values()) == values[answer.stats["found by"]]
        shown = {each["name"]: each["value"] for each in answer.stats["members"] if each["value"] is not None}
        assert shown == {name: value[0] for name, value in values.items()}

    def test_a_single_device_is_always_among_them(self) -> None:
        names = [member.name for member in affordable(tight(), 1e-9)]
        assert names == ["heft", "single"]
        assert len(affordable(tight(), 60)) == len(MEMBERS)
        # Heuristics that evaluate all pairs of ready tasks and devices in every step are too slow on large graphs.
        large = affordable(layered_problem(20_000, 6, seed=1), 60)
        assert {"etf", "celeritas:placement=best"} <= {member.name for member in large}
        assert all(member.rate is not None for member in large)

    def test_one_device_wins_where_transfers_are_expensive(self) -> None:
        # b and c end sooner in parallel; heft does not see that their transfers to d take longer than that saves.
        problem = build_problem(
            task_names="abcd", device_names="xy", duration=[[3, 3], [10, 10], [10, 10], [3, 3]], payload=[5, 5, 20, 20],
            edges=[(0, 1), (0, 2), (1, 3), (2, 3)], byte_ticks_num=np.ones((2, 2), np.int64),
        )  # fmt: skip
        result = solved(problem)
        assert result.objective == 26
        assert result.termination is Termination.OPTIMAL
        assert result.stats["found by"] == "single"
        assert next(each["value"] for each in result.stats["members"] if each["name"] == "heft") > 26

    def test_wrong_schedules_are_discarded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = tight()
        full = Schedule(np.zeros(problem.n_tasks, np.int64), np.zeros(problem.n_tasks, np.int64))
        monkeypatch.setattr(_auto_members, "heuristic_schedule", lambda *_: full)
        assert list(schedules(MEMBERS[0], problem, 0)) == []
        elsewhere = Schedule(np.full(problem.n_tasks, 9), np.zeros(problem.n_tasks, np.int64))
        monkeypatch.setattr(_auto_members, "heuristic_schedule", lambda *_: elsewhere)
        assert list(schedules(MEMBERS[0], problem, 0)) == []


class TestAnswer:
    def test_names_the_sources_of_schedule_and_bound(self) -> None:
        result = solved(po.load(PROBLEMS / "heft-10.yaml"))
        members = {each["name"]: each for each in result.stats["members"]}
        assert result.termination is Termination.OPTIMAL
        assert result.bound_source == "cp-sat"
        assert members[result.stats["found by"]]["value"] == result.objective
        assert all(each["value"] is None or each["value"] >= result.objective for each in members.values())
        assert all(each["seconds"] >= 0 for each in members.values())
        assert json.loads(json.dumps(result.to_dict()))["stats"]["members"] == result.stats["members"]
        shown = result.summary()
        assert f"found by     {result.stats['found by']}" in shown
        assert "more in --json" in shown

    def test_quick_bounds_are_named_too(self) -> None:
        problem = build_problem(task_names="ab", device_names="xy", duration=[[2, 2], [3, 3]])
        result = solved(problem)
        assert result.termination is Termination.OPTIMAL
        assert result.bound_source not in (None, "auto", "cp-sat")

    def test_with_one_worker_bounds_have_a_turn_before_the_searches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The clock may end a run before the bounds that come last; searches do not know the first ones."""
        problem, known, quick = tight(), [], best_bound(tight())
        for later in ("_begin", "_exact", "_bound", "_solve_blocks"):
            monkeypatch.setattr(_auto_run.Run, later, lambda *_: None)
        monkeypatch.setattr(_auto_run.Run, "_search", lambda self, _: known.append(self.best.bound))
        answer = Auto().solve(problem, Options(workers=1), AutoSettings())
        assert set(known) == {quick.value}
        assert answer.bound is not None
        assert answer.bound > quick.value
        assert answer.bound_source not in ("", quick.name)

    @pytest.mark.parametrize("workers", [1, 2])
    def test_stops_at_the_gap_that_is_wanted(self, workers: int) -> None:
        result = solved(tight(), gap_limit=0.9, workers=workers)
        assert result.termination in (Termination.COMPLETED, Termination.OPTIMAL)
        assert {each["name"] for each in result.stats["members"]} <= {member.name for member in MEMBERS}

    def test_infeasible_is_proved(self) -> None:
        # Seven groups of three bytes in three devices of eight: two each at most; no quick proof applies.
        problem = build_problem(
            task_names=[f"t{i}" for i in range(7)], device_names="xyz", duration=np.ones((7, 3), np.int64),
            resident=np.full(7, 3), capacity=np.full(3, 8),
        )  # fmt: skip
        answer = Auto().solve(problem, Options(time_limit=20), AutoSettings())
        assert answer.termination is Termination.INFEASIBLE
        assert answer.schedule is None
        assert answer.bound is None

    def test_an_initial_schedule_is_never_lost(self) -> None:
        problem = tight()
        best = solved(problem).schedule
        assert best is not None
        answer = Auto().solve(problem, Options(time_limit=1e-6, initial=best), AutoSettings())
        assert answer.schedule is not None
        assert evaluate(problem, answer.schedule) <= evaluate(problem, best)

    @pytest.mark.parametrize(
        "objective",
        [
            Objective(((Term("makespan"), Term("communication", Fraction(1, 1000))),)),
            Objective(((Term("communication"),), (Term("makespan"),))),
            Objective(((Term("energy"),),)),
        ],
        ids=str,
    )
    def test_other_objectives(self, objective: Objective) -> None:
        problem = replace(tight(12, 2), objective=objective)
        auto, exact = solved(problem), po.solve(problem, "cp-sat", workers=1)
        assert auto.termination is exact.termination is Termination.OPTIMAL
        assert auto.values == exact.values


class TestWindows:
    def test_make_large_graphs_shorter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_auto_run, "TUNING", Tuning(planned=2.0, large=100, windowed=100))
        problem = layered_problem(600, 4, seed=1, ccr=10.0, width=8)
        answer = Auto().solve(problem, Options(), AutoSettings())
        assert answer.stats["found by"] in ("windows", "forward-backward", "multilevel")
        assert answer.schedule is not None
        assert valid(problem, answer.schedule)
        values = {each["name"]: each["value"] for each in answer.stats["members"]}
        ours = [value for name in ("windows", "forward-backward", "multilevel") if (value := values.pop(name, None))]
        assert min(ours) < min(value for value in values.values() if value)


class TestLimits:
    def test_a_stop_keeps_the_best(self) -> None:
        stop = threading.Event()
        heard: list[Progress] = []

        def report(progress: Progress) -> None:
            heard.append(progress)
            stop.set()

        result = solved(tight(40), time_limit=60, workers=2, on_progress=report, should_stop=stop.is_set)
        assert result.termination is Termination.INTERRUPTED
        assert result.feasible
        assert heard[0].message == "heft"
        assert result.objective <= heard[-1].objective

    @pytest.mark.parametrize("workers", [1, 2])
    def test_in_shops_cp_sat_ends_without_a_gain(self, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """On several threads, searches take over; with one, the clock must not decide."""
        ended: list[float] = []

        def silent(_: Problem, options: Options, *__: object) -> Answer:
            clock = Clock(1.5)
            while not options.should_stop() and not clock.over:
                time.sleep(0.01)
            ended.append(clock.elapsed)
            return Answer(Termination.INTERRUPTED, None)

        monkeypatch.setattr(_auto_run, "solved", silent)
        monkeypatch.setattr(_auto_run, "TUNING", Tuning(silent=0.01, silent_least=0.3, first=0.4, begin_sequenced=0.05))
        result = solved(shop(1, 20, 5, 5), time_limit=5, workers=workers)
        assert result.feasible
        assert {"memetic", "lns"} < {each["name"] for each in result.stats["members"]}
        assert len(ended) >= 2
        assert all(0.2 < seconds < 1.5 for seconds in ended) if workers == 2 else max(ended) >= 1.5

    def test_ends_by_itself_without_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_auto_run, "TUNING", Tuning(planned=1.0))
        result = solved(tight(90), time_limit=None)
        assert result.termination in (Termination.COMPLETED, Termination.OPTIMAL)
        assert result.feasible
        assert {"heft", "memetic"} < {each["name"] for each in result.stats["members"]}

    def test_reported_values_only_improve(self) -> None:
        heard: list[Progress] = []
        solved(tight(90), workers=2, time_limit=1, on_progress=heard.append)
        values = [each.objective for each in heard if each.objective is not None]
        assert values == sorted(values, reverse=True)
        assert {each.message for each in heard} > {"heft"}


class TestRepeatable:
    def test_the_same_result_unless_it_varies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_auto_run, "TUNING", Tuning(planned=0.8))
        problem = replace(tight(120, 4), contention="port", memory_model="peak")
        runs = [solved(problem, time_limit=None) for _ in range(2)]
        for run in runs:
            assert run.schedule is not None
            assert run.repeatable
        first, second = (run.schedule for run in runs)
        assert first is not None
        assert second is not None
        assert first.device.tolist() == second.device.tolist()
        assert first.start.tolist() == second.start.tolist()

    def test_heuristics_omitted_by_the_clock_are_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for later in ("_begin", "_turn", "_exact", "_search", "_bound", "_bound_early"):
            monkeypatch.setattr(_auto_run.Run, later, lambda *_: None)
        assert Auto().solve(tight(), Options(time_limit=60), AutoSettings()).varies_by == ""
        monkeypatch.setattr(_auto_run, "TUNING", Tuning(quick=-1.0))
        assert Auto().solve(tight(), Options(time_limit=60), AutoSettings()).varies_by == "clock"
        assert Auto().solve(tight(), Options(time_limit=60, workers=2), AutoSettings()).varies_by == "threads"

    def test_without_a_time_limit_the_clock_omits_no_heuristic(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for later in ("_begin", "_turn", "_exact", "_search", "_bound", "_bound_early"):
            monkeypatch.setattr(_auto_run.Run, later, lambda *_: None)
        monkeypatch.setattr(_auto_run, "TUNING", Tuning(quick=-1.0))
        answer = Auto().solve(tight(12), Options(), AutoSettings())
        assert (len(answer.stats["members"]), answer.varies_by) == (len(MEMBERS) + 1, "")  # segments, too
        answer = Auto().solve(tight(12), Options(time_limit=60), AutoSettings())
        assert (len(answer.stats["members"]), answer.varies_by) == (1, "clock")

    def test_an_optimal_heuristic_ends_the_run_at_the_same_point(self) -> None:
        answer = Auto().solve(po.load(PROBLEMS / "five-node.yaml"), Options(time_limit=600), AutoSettings())
        assert (answer.termination, answer.varies_by) == (Termination.OPTIMAL, "")
        assert len(answer.stats["members"]) == 1

    def test_the_bounds_of_a_block_leave_time_for_other_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seconds: list[float] = []
        monkeypatch.setattr(_standings, "bounds", lambda *_, time_limit, **__: seconds.append(time_limit))
        for earlier in ("_search", "_exact"):
            monkeypatch.setattr(_auto_run.Run, earlier, lambda *_: None)
        options = Options(time_limit=600, nominal_limit=4)
        _auto_run.solved_block(tight(), options)
        Auto().solve(tight(), options, AutoSettings())
        block, early, late = seconds
        assert block <= 4
        assert early <= 0.1
        assert late > 300

    def test_blocks_have_a_plan_without_a_time_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unsolved(*_: Any) -> Answer:
            time.sleep(0.01)
            return Answer(Termination.TIME_LIMIT)

        monkeypatch.setattr(_auto_run, "solved_block", unsolved)
        monkeypatch.setattr(series_module, "FIRST", 1e-3)
        monkeypatch.setattr(series_module, "GROWTH", 1.0)  # attempts without end
        for name in ("_search", "_exact", "_bound"):
            monkeypatch.setattr(_auto_run.Run, name, lambda *_: None)
        monkeypatch.setattr(_auto_run, "TUNING", Tuning(planned=4.0))
        answer = Auto().solve(po.load(PROBLEMS / "inception.yaml"), Options(), AutoSettings())
        assert (answer.termination, answer.varies_by) == (Termination.COMPLETED, "clock")


class TestStandings:
    def test_a_value_is_heard_before_its_schedule(self) -> None:
        problem = build_problem(task_names="ab", device_names="xy", duration=[[2, 2], [3, 3]])
        heard: list[Progress] = []
        best = Standings(problem, Options(on_progress=heard.append), Clock(None))
        best.offer(Schedule(np.array([0, 0]), np.array([0, 2])), "heft")
        report = best.progress_callback("cp-sat")
        report(Progress(0.0, 3, 2))
        report(Progress(0.0, 4, 1))
        best.raise_bound(3, "load")
        assert [(each.objective, each.bound) for each in heard] == [(5, None), (5, 2), (3, 2), (3, 3)]
        assert best.values == (5,)
        assert (best.found_by, best.bound_by) == ("heft", "load")

    def test_turns_add_up(self) -> None:
        problem = build_problem(task_names="a", device_names="x", duration=[[2]])
        best = Standings(problem, Options(), Clock(None))
        for _ in range(2):
            with best.turn("annealing"):
                best.offer(Schedule(np.array([0]), np.array([3])), "annealing")
        with best.turn("lns"):
            pass
        assert [(each["name"], each["value"]) for each in best.table()] == [("annealing", 5), ("lns", None)]


def test_same_seed_same_schedule_under_other_hashes() -> None:
    """Without a time limit, regardless of the load of the machine."""
    program = (
        "import placeopt as po\n"
        "from placeopt_solvers.portfolio import _run\nfrom placeopt.generate.layered_graphs import layered_problem\n"
        "_run.TUNING = _run.Tuning(planned=0.4)\n"
        "problem = layered_problem(70, 3, seed=5, ccr=2.0, tightness=0.8, width=4)\n"
        "result = po.solve(problem, 'auto', workers=1, seed=3)\n"
        "print(repr(result.varies_by))\n"
        "print(result.schedule.device.tolist(), result.schedule.start.tolist())"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate()[0].split("\n", 1) for run in runs)
    assert first == second
    assert first[0] == "''"
    assert first[1].count(",") > 100


def test_heft_runs_for_any_initial_schedule_and_limit() -> None:
    problem = layered_problem(80, 4, seed=1, ccr=1.0, device_types=2)
    heft = po.solve(problem, "heft")
    slow = po.solve(problem, "met").schedule
    assert slow is not None
    assert heft.objective is not None
    found = po.solve(problem, "auto", initial=slow, time_limit=1e-6, workers=1)
    assert found.objective is not None
    assert found.objective <= heft.objective
