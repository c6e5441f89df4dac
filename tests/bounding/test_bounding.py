"""Lower bounds: the portfolio, the command, and the prover that runs alongside a solver."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from brute_force import optimum, small_problem, with_resources
from commandline import run
from large_amounts import large_problem

import placeopt as po
from placeopt import engine
from placeopt.bounding import quick as lowerbounds
from placeopt.bounding.energetic import TOO_LONG, energetic_bound
from placeopt.bounding.lagrangian import lagrangian_bound
from placeopt.bounding.quick import Bound, best_bound
from placeopt.model.building import build_problem, with_changes
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.protocol import Announcer, Answer, Options, Progress, Termination
from placeopt.proving.bound_prover import BoundProver
from placeopt.proving.portfolio import bounds

PROBLEMS = Path(__file__).parents[2] / "problems"


def chain() -> Problem:
    """Four tasks in a row; memory allows two of them on a device."""
    return build_problem(
        task_names="abcd", device_names="de", duration=np.full((4, 2), 10), edges=[(0, 1), (1, 2), (2, 3)],
        payload=[5, 3, 7], byte_ticks_num=np.ones((2, 2)), resident=np.ones(4), capacity=np.array([2, 2]),
    )  # fmt: skip


def uneven() -> Problem:
    """Eight tasks in a row, four of which fit on the fast device."""
    return build_problem(
        task_names="abcdefgh", device_names=["fast", "slow"], duration=[[1, 3]] * 8, edges=list(pairwise(range(8))),
        resident=[1] * 8, capacity=[4, 9], latency=np.ones((2, 2)),
    )  # fmt: skip


def never() -> bool:
    return False


def layered() -> Problem:
    """Twenty-four tasks in four layers on three devices, which no solver proves optimal at once."""
    rng = np.random.default_rng(5)
    edges = [(i, j) for i in range(18) for j in range(6 * (i // 6) + 6, 6 * (i // 6) + 12) if rng.random() < 0.4]
    return build_problem(
        task_names=[f"t{i}" for i in range(24)], device_names="abc", duration=rng.integers(2, 20, (24, 3)), edges=edges,
        payload=rng.integers(1, 9, len(edges)), byte_ticks_num=np.ones((3, 3)),
    )  # fmt: skip


class TestBounds:
    def test_without_a_limit_are_the_quick_ones(self) -> None:
        assert bounds(chain()) == lowerbounds.bounds(chain()) == po.bounds(chain())

    def test_with_a_limit_are_all_best_first(self) -> None:
        heard: list[Bound] = []
        found = bounds(chain(), time_limit=60, on_bound=heard.append)
        quick, slow = {"critical-path", "load", "jackson", "packing"}, {"energetic", "relaxation-lp", "relaxation-mip"}
        kinds = {*quick, "destructive", "sct-lp", "series", "intervals", *slow}
        assert {bound.name for bound in found} == kinds == {bound.name for bound in heard}
        assert [bound.value for bound in found] == sorted((bound.value for bound in found), reverse=True)
        assert found[0].value == 43
        assert all(bound.seconds >= 0 and bound.explanation for bound in found)

    def test_end_where_the_known_value_is_reached(self) -> None:
        quick = best_bound(chain()).value
        assert {bound.name for bound in bounds(chain(), time_limit=60, known=quick)} == {
            bound.name for bound in bounds(chain())
        }

    def test_of_an_infeasible_problem_end_early(self) -> None:
        full = build_problem(task_names="a", device_names="d", duration=[[1]], resident=[5], capacity=[4])
        assert "relaxation-lp" not in {bound.name for bound in bounds(full, time_limit=60)}

    def test_energetic_reasoning_is_only_for_the_makespan(self) -> None:
        costly = build_problem(
            task_names="a", device_names="d", duration=[[1]], objective=Objective(((Term("energy"),),))
        )
        assert "energetic" not in {bound.name for bound in bounds(costly, time_limit=60)}


class TestEnergetic:
    def test_is_not_above_the_optimum(self) -> None:
        compared = 0
        for seed in range(400):
            problem = small_problem(np.random.default_rng(seed), Objective(), times=bool(seed % 2))
            best = optimum(problem) if problem.n_tasks else None
            if best is not None:
                compared += 1
                for least in (0, int(best_bound(problem).value)):
                    assert energetic_bound(problem, least).value <= best[0][0], f"seed {seed}"
        assert compared > 250

    def test_proves_more_than_the_quick_ones_now_and_then(self) -> None:
        problem = small_problem(np.random.default_rng(2205), Objective(), times=True)
        assert best_bound(problem).value == 27
        assert energetic_bound(problem, 27).value == 28
        assert optimum(problem)[0] == (29,)  # type: ignore[index]

    def test_alone_begins_with_the_longest_task(self) -> None:
        problem = build_problem(task_names="ab", device_names="d", duration=[[3], [4]])
        assert energetic_bound(problem, 7).value == energetic_bound(problem, 0).value == 7
        loose = build_problem(task_names="ab", device_names="de", duration=[[3, 3], [4, 4]])
        assert energetic_bound(loose, 6) == Bound("energetic", 4, "task b takes at least this long on any device")

    def test_where_another_class_is_cheaper_for_a_part(self) -> None:
        # X may run on a or b; as long as it fills the interval there, b is the cheaper one at some prices.
        feasible = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.bool_)
        ticks = np.array([[25, 40, 0, 0], [30, 0, 0, 0], [50, 72, 0, 0], [0, 0, 12, 0], [0, 0, 0, 5]])
        problem = build_problem(
            task_names=["Y", "Z", "X", "y", "z"], device_names="abcd", duration=ticks, feasible=feasible,
            edges=[(0, 3), (1, 4)], release=np.array([12, 5, 0, 0, 0]),
        )  # fmt: skip
        assert po.solve(problem, "cp-sat", workers=1).objective == 72
        for least in range(60, 73):
            assert energetic_bound(problem, least).value <= 72

    def test_a_task_in_part(self) -> None:
        # Two machines; three tasks of 4, each to start at 1 or later and to end 1 or more before the end. In [2, C - 2)
        # each runs for 3 ticks or more: C >= 4 + 9 / 2, rounded up. Whole tasks only say 2 + 12 / 2 = 8.
        three = np.full((3, 1), 4)
        arguments = np.ones((3, 1), np.int64), three, np.ones((3, 1), np.int64), np.ones((3, 1), np.bool_)
        price, worth = np.array([1]), np.zeros((3, 1), np.int64)
        at = np.array([2])
        assert engine.best_interval(at, at, *arguments, price, worth, 2, 0, 8, TOO_LONG, engine.Stop()) == 9
        # An interval that may be empty proves nothing.
        assert engine.best_interval(at, at, *arguments, price, worth, 2, 0, 4, TOO_LONG, engine.Stop()) == 0


class TestCompanion:
    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("placeopt.proving.bound_prover.DELAY", 0.0)

    def solved(self, options: Options, schedule: Schedule, value: int) -> Answer:
        """The answer of a solver that finds a schedule at once and then runs until it is stopped."""
        assert options.on_progress is not None
        options.on_progress(Progress(0.0, value, None, "first"))
        end = time.monotonic() + 60
        while not options.should_stop():
            assert time.monotonic() < end, "the solver was not stopped"
            time.sleep(0.01)
        return Answer(Termination.INTERRUPTED, schedule)

    @pytest.mark.parametrize(
        ("gap", "value", "expected"), [(None, 43, Termination.OPTIMAL), (0.5, 60, Termination.COMPLETED)]
    )
    def test_stops_a_solver_whose_gap_is_proved(self, gap: float | None, value: int, expected: Termination) -> None:
        heard: list[Progress] = []
        options = Options(workers=2, time_limit=60, gap_limit=gap, on_progress=heard.append)
        with BoundProver(chain(), options) as prover:
            answer = self.solved(prover.options, Schedule(np.array([0, 0, 1, 1]), np.array([0, 10, 23, 33])), value)
        answer = prover.with_bound(answer)
        assert answer.termination is expected
        assert prover.best is not None
        assert answer.bound == prover.best.value >= math.ceil(value * (1 - (gap or 0)))
        assert heard[-1].objective == value
        assert heard[-1].bound == answer.bound

    def test_leaves_a_caller_who_stops_his_stop(self) -> None:
        stop = threading.Event()
        stop.set()
        with BoundProver(chain(), Options(workers=2, should_stop=stop.is_set, on_progress=lambda _: None)) as prover:
            answer = self.solved(prover.options, Schedule(np.zeros(4, np.int64), np.zeros(4, np.int64)), 43)
        assert prover.with_bound(answer).termination is Termination.INTERRUPTED

    def test_does_not_end_a_list_of_objectives(self) -> None:
        levels = Objective(((Term("makespan"),), (Term("communication"),)))
        problem = build_problem(task_names="a", device_names="d", duration=[[5]], objective=levels)
        with BoundProver(problem, Options(workers=2, time_limit=60)) as prover:
            prover.options.on_progress(Progress(0.0, 5))  # type: ignore[misc]
            while prover.best is None or prover.best.value < 5:
                time.sleep(0.01)
            assert not prover.options.should_stop()

    def test_keeps_the_better_bound(self) -> None:
        prover = BoundProver(chain(), Options())
        prover.best = Bound("relaxation-lp", 41, "")
        assert prover.with_bound(Answer(Termination.TIME_LIMIT, bound=42)).bound == 42
        assert prover.with_bound(Answer(Termination.TIME_LIMIT, bound=Fraction(81, 2))).bound == 41
        assert prover.with_bound(Answer(Termination.INFEASIBLE)).bound is None

    def test_its_errors_are_told_and_lose_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("on purpose")

        monkeypatch.setattr("placeopt.proving.bound_prover.bounds", broken)
        with BoundProver(chain(), Options()) as prover:
            time.sleep(0.2)
        answer = prover.with_bound(Answer(Termination.TIME_LIMIT, message="tired"))
        assert answer.message == "tired; proving better bounds failed: ZeroDivisionError: on purpose"

    def test_what_contradicts_itself_is_raised_and_stops_the_solver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise po.InternalError("two bounds contradict each other")

        monkeypatch.setattr("placeopt.proving.bound_prover.bounds", broken)
        with BoundProver(chain(), Options()) as prover:
            answer = self.solved(prover.options, Schedule(np.zeros(4, np.int64), np.zeros(4, np.int64)), 43)
        with pytest.raises(po.InternalError, match="two bounds contradict each other"):
            prover.with_bound(answer)

    @pytest.mark.parametrize("solver", ["tabu", "auto"])
    def test_a_contradiction_is_an_internal_error_of_the_run(
        self, solver: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise po.InternalError("two bounds contradict each other")

        monkeypatch.setattr("placeopt.proving.bound_prover.bounds", broken)
        monkeypatch.setattr("placeopt_solvers.portfolio.auto.DELAY", 0.0)
        with pytest.raises(po.InternalError, match="two bounds contradict each other") as raised:
            po.solve(layered(), solver, workers=2, time_limit=30)
        assert raised.value.dump is not None
        assert raised.value.dump["x-disagreement"]["solver"] == solver

    @pytest.mark.parametrize("error", [ValueError, SystemExit])
    def test_an_error_of_the_callback_is_raised_wherever_it_is_called(self, error: type[BaseException]) -> None:
        def hear(_: Progress) -> None:
            if threading.current_thread() is not threading.main_thread():
                raise error("the caller broke")

        with BoundProver(chain(), Options(workers=2, on_progress=hear)) as prover:
            answer = self.solved(prover.options, Schedule(np.zeros(4, np.int64), np.zeros(4, np.int64)), 99)
        with pytest.raises(error, match="the caller broke"):
            prover.with_bound(answer)


class TestProgress:
    def heard(self, threads: int, reports: int) -> tuple[list[Progress], int]:
        """The calls of a slow callback from several threads, and how many of them overlap."""
        heard: list[Progress] = []
        inside = most = 0

        def hear(progress: Progress) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.0005)
            heard.append(progress)
            inside -= 1

        announce = Announcer(hear)

        def report(number: int) -> None:
            rng = np.random.default_rng(number)
            for at in range(reports):
                objective, bound = (
                    (int(rng.integers(50, 100)), None) if number % 2 else (None, int(rng.integers(0, 50)))
                )
                announce(Progress(at + float(rng.random()), objective, bound, str(number)))

        pool = [threading.Thread(target=report, args=(number,)) for number in range(threads)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
        return heard, most

    def test_comes_one_call_at_a_time_and_never_gets_worse(self) -> None:
        heard, most = self.heard(6, 60)
        assert most == 1
        assert len(heard) == 360
        for before, after in pairwise(heard):
            assert after.elapsed >= before.elapsed
            assert before.bound is None or (after.bound is not None and after.bound >= before.bound)
            assert before.objective is None or (after.objective is not None and after.objective <= before.objective)

    def test_a_callback_may_report_and_ask(self) -> None:
        heard: list[Progress] = []

        def hear(progress: Progress) -> None:
            heard.append(progress)
            if progress.objective == 9:
                assert announce.latest == progress
                announce(Progress(2.0, 8))

        announce = Announcer(hear)
        announce(Progress(3.0, 9))
        assert [(each.elapsed, each.objective) for each in heard] == [(3.0, 9), (3.0, 8)]

    def test_a_prover_and_its_solver_do_not_interrupt_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, done = threading.Event(), threading.Event()
        heard: list[Progress] = []

        def bounds_at_once(*_: object, on_bound: Any, **__: object) -> None:
            first.wait(60)
            for value in range(10, 40):
                on_bound(Bound("made up", value, ""))
            done.set()

        def hear(progress: Progress) -> None:
            heard.append(progress)
            first.set()
            time.sleep(0.01 if len(heard) == 1 else 0.0)  # the bounds are proved now
            assert heard[-1] is progress

        monkeypatch.setattr("placeopt.proving.bound_prover.DELAY", 0.0)
        monkeypatch.setattr("placeopt.proving.bound_prover.bounds", bounds_at_once)
        with BoundProver(chain(), Options(workers=2, on_progress=hear)) as prover:
            assert prover.options.on_progress is not None
            for value in range(90, 60, -1):
                prover.options.on_progress(Progress(0.0, value))
            done.wait(60)
        prover.with_bound(Answer(Termination.COMPLETED))
        assert len(heard) == 60
        assert [each.elapsed for each in heard] == sorted(each.elapsed for each in heard)
        proved = [each.bound for each in heard if each.bound is not None]
        assert proved == sorted(proved)

    @pytest.mark.parametrize("solver", ["auto", "annealing", "cp-sat"])
    def test_of_a_solver_with_several_threads(self, solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
        heard: list[Progress] = []
        busy = threading.Lock()

        def hear(progress: Progress) -> None:
            assert busy.acquire(blocking=False), "two calls at a time"
            heard.append(progress)
            time.sleep(0.001)
            busy.release()

        monkeypatch.setattr("placeopt.proving.bound_prover.DELAY", 0.0)
        result = po.solve(layered(), solver, workers=4, time_limit=1.5, on_progress=hear)
        assert result.progress == tuple(heard)
        assert len(heard) > 2
        for before, after in pairwise(heard):
            assert after.elapsed >= before.elapsed
            assert (after.bound or 0) >= (before.bound or 0)
            assert before.objective is None or (after.objective is not None and after.objective <= before.objective)


class TestPipeline:
    def test_bound_time_improves_the_bound_of_a_heuristic(self) -> None:
        quick, slow = po.solve(chain(), "heft"), po.solve(chain(), "heft", bound_time=60, workers=1)
        assert quick.bound is not None
        assert slow.bound is not None
        assert slow.bound == 43 >= quick.bound
        assert slow.bound_source in ("relaxation-lp", "relaxation-mip") or quick.bound == 43

    def test_a_wrong_bound_time(self) -> None:
        with pytest.raises(po.UsageError, match="bound_time is 0; expected a finite number that is positive"):
            po.solve(chain(), "heft", bound_time=0)


class TestCommand:
    def test_people_get_a_table(self) -> None:
        done = run("bounds", PROBLEMS / "five-node.yaml", "-t", "20s", "-w", "1")
        assert done.code == 0
        lines = done.out.splitlines()
        assert lines[0].startswith("five-node: 5 tasks")
        assert lines[1].split() == ["bound", "value", "time", "why", "no", "schedule", "is", "better"]
        assert re.match(r"  critical-path +14 s +0\.\d{3} s +the longest chain of tasks", lines[2])
        assert "relaxation-mip" in done.out

    def test_json(self) -> None:
        done = run("bounds", PROBLEMS / "five-node.yaml", "-t", "20", "--json")
        data = json.loads(done.out)
        assert list(data) == ["problem", "fingerprint", "objective", "resolution", "infeasible", "bound", "bounds"]
        assert (data["bound"], data["infeasible"], data["objective"]) == (14, None, "makespan")
        assert set(data["bounds"][0]) == {"name", "value", "seconds", "explanation"}
        assert max(bound["value"] for bound in data["bounds"]) == 14

    def test_infeasible(self, tmp_path: Path) -> None:
        path = tmp_path / "full.yaml"
        path.write_text(
            "placeopt: 1\ndevices: {d: {memory: 3}, e: {memory: 3}}\n"
            "tasks: {'[red]a': {time: 1, memory: 2}, b: {time: 1, memory: 2}, c: {time: 1, memory: 2}}\n"
        )
        done, data = run("bounds", path), run("bounds", path, "--json")
        assert done.code == data.code == 1
        assert "infeasible: " in done.out
        assert json.loads(data.out)["bounds"] == []
        assert json.loads(data.out)["infeasible"] in done.out

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            (["-t", "soon"], '--time-limit: "soon" is not a time'),
            (["-t", "0s"], '--time-limit: "0s" is zero'),
            (["-w", "0"], "--workers is 0; expected a whole number from 1 to 1000"),
        ],
    )
    def test_mistakes(self, option: list[str], message: str) -> None:
        done = run("bounds", PROBLEMS / "five-node.yaml", *option)
        assert done.code == 2
        assert message in done.err

    def test_solve_takes_a_time_for_bounds(self) -> None:
        done = run("solve", PROBLEMS / "five-node.yaml", "--bound-time", "20s", "--json")
        assert json.loads(done.out)["bound"] == 14


class TestLagrangian:
    def test_is_not_above_the_optimum(self) -> None:
        compared = 0
        for seed in range(300):
            rng = np.random.default_rng(seed)
            problem = small_problem(rng, Objective(), times=bool(seed % 3))
            if problem.n_tasks == 0:
                continue
            problem = with_resources(problem, rng) if seed % 2 else problem
            found, best = lagrangian_bound(problem, None, never), optimum(problem)
            if found is not None and best is not None:
                compared += 1
                assert found.value <= best[0][0], f"seed {seed}"
        assert compared > 30

    def test_is_not_above_the_optimum_with_large_amounts(self) -> None:
        # For seed 1085, GLOP did not end.
        for seed in [1085, *range(150)]:
            problem = large_problem(seed, Objective(), scarce=True)
            found, best = lagrangian_bound(problem, None, never), optimum(problem)
            assert found is None or best is None or found.value <= best[0][0], f"seed {seed}"

    def test_prices_scarce_memory_along_a_chain(self) -> None:
        # The best schedule takes 4 + 1 + 12. The line from 8 (all on the fast device) to 24 (none) has 16 there.
        assert lagrangian_bound(uneven(), None, never) == Bound("lagrangian", 16, ANY)
        assert best_bound(uneven()).value < 16
        assert "lagrangian" in {bound.name for bound in bounds(uneven(), time_limit=10)}

    def test_a_known_value_or_a_stop_ends_the_search(self) -> None:
        known = lagrangian_bound(uneven(), 5, never)
        assert known is not None
        assert known.value >= 5
        assert lagrangian_bound(uneven(), None, lambda: True) is None

    def test_is_only_for_scarce_memory_or_budgets(self) -> None:
        ample = build_problem(task_names="ab", device_names="de", duration=[[3, 3], [4, 4]], resident=[1, 1])
        assert lagrangian_bound(ample, None, never) is None
        assert lagrangian_bound(with_changes(ample, capacity=np.array([2, 2])), None, never) is None
