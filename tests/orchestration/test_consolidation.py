"""Schedules with fewer devices, segments and transfers, within a stated share of the objective."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from commandline import run

import placeopt as po
from placeopt.model.building import with_changes
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.orchestration.consolidation import Pieces, pieces
from placeopt.protocol.registry import find_solver

INCEPTION = Path(__file__).parents[2] / "problems" / "inception.yaml"

TASKS = {
    "first": {"time": 1000},
    "aside": {"time": 5, "after": "first"},
    "last": {"time": 1000, "after": "aside"},
    "other": {"time": 15, "after": "first"},
}


def document(**keys: Any) -> dict[str, Any]:
    """A chain of 2,005 ticks, and a task of 15 ticks that may run on the other device meanwhile."""
    return {"placeopt": 1, "devices": {"a": {}, "b": {}}, "links": {"default": {"latency": 1}}, "tasks": TASKS, **keys}


def two_branches(**keys: Any) -> Problem:
    return po.compile(document(**keys))


class Listening(type(find_solver("heft"))):  # type: ignore[misc]
    """HEFT, which keeps the options that it was given."""

    options: po.Options | None = None

    def solve(self, problem: Problem, options: po.Options, settings: Any) -> po.Answer:
        self.options = options
        return super().solve(problem, options, settings)  # type: ignore[no-any-return]


class TestSolve:
    def test_gives_up_a_device_that_gains_less_than_the_share(self) -> None:
        found = po.solve(two_branches(), "brute-force", consolidate=0.01)
        assert (found.objective, found.makespan, found.feasible) == (2020, 2020, True)
        assert found.placement is not None
        assert len(set(found.placement.values())) == 1
        changed = found.consolidation
        assert changed is not None
        assert (changed.before, changed.after) == (po.Pieces(2, 2, 1), po.Pieces(1, 1, 0))
        assert (changed.values, changed.fewest) == ((2005,), True)
        assert changed.increase == pytest.approx(15 / 2005)

    def test_is_optimal_only_if_nothing_is_given_up(self) -> None:
        assert po.solve(two_branches(), "brute-force", consolidate=0.01).termination is po.Termination.COMPLETED
        assert po.solve(two_branches(), "brute-force", consolidate=0.005).termination is po.Termination.OPTIMAL

    def test_certifies_the_gap_of_the_schedule_that_it_returns(self) -> None:
        found = po.solve(two_branches(), "brute-force", consolidate=0.01)
        assert found.bound == 2005
        assert found.gap == pytest.approx(15 / 2020)

    def test_says_that_the_schedule_was_optimal_or_within_the_gap_before(self) -> None:
        found = po.solve(two_branches(), "brute-force", consolidate=0.01, gap_limit=0.001)
        assert found.message == "the schedule of brute-force was optimal before it was consolidated"
        found = po.solve(two_branches(), "heft", consolidate=0.01, gap_limit=0.001)
        assert found.message == "the schedule of heft was within the gap of 0.10% before it was consolidated"
        assert po.solve(two_branches(), "heft", consolidate=0.01, gap_limit=0.01).message == ""

    def test_says_nothing_about_a_schedule_on_one_device(self) -> None:
        problem = po.compile({"placeopt": 1, "devices": {"a": {}}, "tasks": {"t": {"time": 5}}})
        assert "consolidated" not in po.solve(problem, consolidate=0.01).summary()

    def test_says_that_the_simpler_schedule_is_better(self) -> None:
        text = po.solve(po.load(INCEPTION.with_name("resnet50.yaml")), "heft", consolidate=0.01).summary()
        assert "1 device instead of 2, 1 segment instead of 3, 0 transfers instead of 2: 0.53% better" in text

    def test_may_vary_if_it_was_stopped(self) -> None:
        found = po.solve(two_branches(), "heft", consolidate=0.01, should_stop=lambda: True)
        assert found.consolidation is not None
        assert found.consolidation.stopped
        assert "the search was stopped before its end" in found.summary()
        assert found.varies_by == "clock"
        assert po.solve(two_branches(), "heft", consolidate=0.01).repeatable

    @pytest.mark.parametrize(("share", "seconds"), [(0.01, 9), (0, 10)])
    def test_has_a_tenth_of_the_time_limit(self, share: float, seconds: float) -> None:
        solver = Listening()
        found = po.solve(two_branches(), solver, consolidate=share, time_limit=10)
        assert solver.options is not None
        assert (solver.options.time_limit, solver.options.planned_seconds) == (seconds, seconds)
        assert found.consolidation is None or not found.consolidation.stopped

    def test_does_not_begin_after_the_time_limit(self) -> None:
        found = po.solve(two_branches(), Listening(), consolidate=0.01, time_limit=1e-6)
        assert found.consolidation is not None
        assert (found.consolidation.stopped, found.objective) == (True, 2005)

    def test_says_what_it_gave_up(self) -> None:
        text = po.solve(two_branches(), "brute-force", consolidate=0.01).summary()
        assert "1 device instead of 2, 1 segment instead of 2, 0 transfers instead of 1: 0.75% worse" in text

    def test_says_that_fewer_devices_are_too_slow(self) -> None:
        text = po.solve(two_branches(), "brute-force", consolidate=0.005).summary()
        assert "no schedule within 0.5% of the objective has fewer devices" in text

    def test_follows_the_problem_unless_told_otherwise(self) -> None:
        problem = two_branches(consolidate="1%")
        assert po.solve(problem, "brute-force").objective == 2020
        assert po.solve(problem, "brute-force", consolidate=0).objective == 2005
        assert po.solve(two_branches(), "brute-force").consolidation is None

    def test_leaves_pipelines_alone(self) -> None:
        problem = two_branches(consolidate="1%", objective="period")
        assert po.solve(problem, "brute-force").consolidation is None

    def test_compares_solvers_by_their_own_schedules(self) -> None:
        (row,) = po.compare([two_branches(consolidate="1%")], ["brute-force"], workers=1).rows()
        assert row["objective"] == 2005

    @pytest.mark.parametrize("share", [-0.1, 1.5, "1%", float("nan"), True])
    def test_rejects_what_is_not_a_share(self, share: Any) -> None:
        with pytest.raises(po.UsageError, match=r"consolidate is .*expected a share from 0 to 1"):
            po.solve(two_branches(), consolidate=share)


class TestConsolidate:
    @pytest.mark.parametrize("seed", range(150))
    def test_keeps_all_rules_and_the_share_and_proves_only_what_holds(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        problem = small_problem(rng, times=seed % 3 == 0)
        found = optimum(problem)
        if found is None:
            pytest.skip("infeasible")
        share = Fraction(int(rng.integers(0, 60)), 100)
        schedule, changed = po.consolidate(problem, found[1], share)
        report = po.verify(problem, schedule)
        assert report.feasible
        assert report.objective == evaluate(problem, schedule)
        limits = [value + value * share for value in found[0]]
        assert all(value <= limit for value, limit in zip(report.objective, limits, strict=True))
        assert changed.before == pieces(problem, found[1])
        assert changed.after == pieces(problem, schedule) <= changed.before
        if changed.fewest and changed.after.devices > 1:
            assert least_devices(problem, limits) == changed.after.devices

    def test_is_repeatable(self) -> None:
        problem = po.load(INCEPTION)
        schedule = po.solve(problem, "heft").schedule
        assert schedule is not None
        first, second = (po.consolidate(problem, schedule, 0.05) for _ in range(2))
        assert np.array_equal(first[0].start, second[0].start)
        assert first[1] == second[1]

    def test_makes_few_segments_of_many(self) -> None:
        changed = po.solve(po.load(INCEPTION), "heft", consolidate=0.05).consolidation
        assert changed is not None
        assert changed.before.devices == 3
        assert changed.after.devices == 2
        assert changed.after.segments <= changed.before.segments // 4

    def test_stops_when_told_to(self) -> None:
        problem = two_branches()
        schedule = po.solve(problem, "brute-force").schedule
        assert schedule is not None
        assert po.consolidate(problem, schedule, 0.01, should_stop=lambda: True)[0] is schedule

    def test_waits_for_no_candidate_when_told_to_stop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem, begun, released = two_branches(), Event(), Event()
        schedule = po.solve(problem, "brute-force").schedule
        assert schedule is not None

        def slow(*arguments: Any, **options: Any) -> po.Schedule:
            begun.set()
            released.wait()
            return po.simulate(*arguments, **options)

        monkeypatch.setattr("placeopt.orchestration.consolidation.simulate", slow)
        found, changed = po.consolidate(problem, schedule, 0.01, should_stop=begun.is_set)
        released.set()
        assert found is schedule
        assert changed.stopped

    def test_raises_what_went_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def wrong(*_arguments: Any, **_options: Any) -> po.Schedule:
            raise MemoryError("too large")

        problem = two_branches()
        schedule = po.solve(problem, "brute-force").schedule
        assert schedule is not None
        monkeypatch.setattr("placeopt.orchestration.consolidation.simulate", wrong)
        with pytest.raises(MemoryError, match="too large"):
            po.consolidate(problem, schedule, 0.01)

    def test_changes_nothing_for_a_share_of_zero(self) -> None:
        problem = po.load(INCEPTION)
        schedule = po.solve(problem, "heft").schedule
        assert schedule is not None
        found, changed = po.consolidate(problem, schedule, 0)
        assert found is schedule
        assert changed.before == changed.after
        assert po.solve(problem, "heft", consolidate=0).consolidation is None

    def test_ends_soon_with_many_different_devices(self) -> None:
        """There are 145 million choices of 15 of these 30 devices."""
        tasks = {f"t{i}": {"time": {f"d{j}": 1000 + j for j in range(30)}, "pin": f"d{i}"} for i in range(16)}
        problem = po.compile({"placeopt": 1, "devices": {f"d{i}": {} for i in range(30)}, "tasks": tasks})
        changed = po.solve(problem, "heft", consolidate=0.01).consolidation
        assert changed is not None
        assert (changed.after.devices, changed.fewest) == (16, False)

    def test_rejects_infeasible_schedules_and_pipelines(self) -> None:
        problem = two_branches()
        schedule = po.solve(problem, "heft").schedule
        assert schedule is not None
        with pytest.raises(po.UsageError, match="takes a feasible schedule"):
            po.consolidate(problem, replace(schedule, start=np.zeros(4, dtype=np.int64)))
        period = two_branches(objective="period")
        with pytest.raises(po.UsageError, match="does not support pipelines"):
            po.consolidate(period, schedule)


def least_devices(problem: Problem, limits: list[Any]) -> int:
    """The fewest devices of a schedule whose first value is within its limit, by brute force."""
    counts = []
    for mask in range(1, 2**problem.n_devices):
        usable = np.array([bool(mask >> d & 1) for d in range(problem.n_devices)])
        feasible = problem.feasible & usable
        if feasible.any(axis=1).all():
            narrowed = with_changes(problem, feasible=feasible, duration=np.where(feasible, problem.duration, 0))
            found = optimum(narrowed)
            if found is not None and found[0][0] <= limits[0]:
                counts.append(mask.bit_count())
    return min(counts)


class TestDocuments:
    @pytest.mark.parametrize(("stated", "share"), [("1%", 0.01), (0.01, 0.01), ("0.5%", 0.005), (0, 0), (1, 1)])
    def test_state_a_share(self, stated: Any, share: float) -> None:
        problem = two_branches(consolidate=stated)
        assert problem.consolidate == Fraction(str(share))
        assert with_changes(problem, contention="port").consolidate == problem.consolidate
        assert problem.fingerprint() == two_branches().fingerprint()

    @pytest.mark.parametrize("stated", ["much", "101%", "1e999999999", -0.1, 2, "1%%", True, None, "1/0"])
    def test_with_another_value_are_rejected(self, stated: Any) -> None:
        with pytest.raises(po.SpecError, match=re.escape("expected a number from 0 to 1, or such as 1%")):
            two_branches(consolidate=stated)


def test_modes_of_a_device_are_one_device() -> None:
    task = {"time": 4, "output": 8, "modes": {"one": {}, "two": {"time": 5}, "both": {"team": {"gpu": 2}, "time": 1}}}
    document = {"placeopt": 1, "devices": {"gpu": {"count": 2}}, "tasks": {"a": task, "b": task | {"after": "a"}}}
    problem = po.compile(document)

    def found(*places: str) -> Pieces:
        return pieces(problem, po.simulate(problem, [problem.device_names.index(name) for name in places]))

    assert found("gpu0: one", "gpu0: two") == (1, 2, 0)
    assert found("gpu0: one", "gpu1: one") == (2, 2, 1)
    assert found("gpu0+gpu1: both", "gpu0: one") == (2, 2, 0)
    team = po.simulate(problem, [problem.device_names.index("gpu0+gpu1: both")] * 2)
    assert not po.consolidate(problem, team, 0.5)[1].fewest  # a limit of modes in use proves nothing about devices


class TestCommand:
    def test_consolidates_by_the_option(self, tmp_path: Path) -> None:
        path = tmp_path / "p.json"
        path.write_text(json.dumps(document()))
        done = run("solve", path, "--solver", "brute-force", "--consolidate", "1%", "--json")
        assert json.loads(done.out)["consolidation"]["after"] == {"devices": 1, "segments": 1, "transfers": 0}

    def test_rejects_what_is_not_a_share(self, tmp_path: Path) -> None:
        path = tmp_path / "p.json"
        path.write_text(json.dumps(document()))
        done = run("solve", path, "--consolidate", "half")
        assert done.code == 2
        assert "--consolidate is half; expected a share" in done.err

    def test_a_required_gap_that_it_lost(self, tmp_path: Path) -> None:
        path = tmp_path / "p.json"
        path.write_text(json.dumps(document(consolidate="1%")))
        done = run("solve", path, "--solver", "brute-force", "--require-gap", "0")
        assert done.code == 1
        assert "it is 0.74%; it was 0.00% before the schedule was consolidated" in done.err
        assert run("solve", path, "--solver", "brute-force", "--require-gap", "0", "--consolidate", "0").code == 0

    def test_compare_says_why_it_has_no_such_option(self, tmp_path: Path) -> None:
        path = tmp_path / "p.json"
        path.write_text(json.dumps(document()))
        done = run("compare", path, "--solvers", "heft", "--consolidate", "1%")
        assert done.code == 2
        assert "compares the schedules that solvers find, so that it has no --consolidate" in done.err
