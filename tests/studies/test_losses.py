"""Separated losses: intervals that contain the true losses, by brute force, and chains worked by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from brute_force import optimum, small_problem
from commandline import run

import placeopt as po
from placeopt.bounding.quick import best_bound
from placeopt.errors import InternalError
from placeopt.model.arrays import Int
from placeopt.model.building import with_changes
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.result import Result, with_schedule
from placeopt.passes import Reduction
from placeopt.passes.rebuilding import rebuilt
from placeopt.protocol import Info
from placeopt.simulation import retime
from placeopt.studies.losses import Losses, separated
from placeopt.studies.losses.branching import branched
from placeopt.studies.losses.chain import chain_of, shared
from placeopt.studies.losses.findings import loss
from placeopt.verifier import verify

HEFT_10 = Path(__file__).parents[2] / "problems" / "heft-10.yaml"


def problem_of(durations: list[list[int]], edges: list[tuple[int, int]] | None = None, **rest: Any) -> Problem:
    m = len(durations[0]) if durations else 2
    return po.build_problem(
        name="made",
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.array(durations, dtype=np.int64).reshape(len(durations), m),
        edges=edges or [],
        **rest,
    )


def result_of(problem: Problem, device: list[int], start: list[int], clusters: list[int]) -> Result:
    """A result with a given schedule, re-timed, and clusters."""
    schedule = retime(problem, Schedule(np.array(device, dtype=np.int64), np.array(start, dtype=np.int64)))
    report = verify(problem, schedule)
    assert report.feasible
    assert report.objective is not None
    made = with_schedule(po.solve(problem, "heft"), schedule, report.objective, report.makespan)
    return replace(made, solver="made", clusters=np.array(clusters, dtype=np.int64))


def numbers(found: Losses) -> dict[str, tuple[Fraction, Fraction | None]]:
    return {each.name: (each.at_least, each.at_most) for each in found.losses}


def exactly(**shares: Fraction | int) -> dict[str, tuple[Fraction, Fraction]]:
    return {name: (Fraction(share), Fraction(share)) for name, share in shares.items()}


class TestByHand:
    def test_clusters_cost_and_their_placement_does_not(self) -> None:
        found = separated(
            result_of(problem_of([[2, 2]] * 2), [0, 0], [0, 2], [0, 0]), prover="cp-sat", time_limit=None, workers=1
        )
        assert numbers(found) == exactly(fusion=1, placement=0, devices=0, order=0, total=1)
        assert (
            found.conclusion == "fusion costs 100.00% (proved), placement nothing (proved); in total 100.00% (proved)"
        )
        assert found.clusters == 1

    def test_the_devices_cost_and_the_clusters_do_not(self) -> None:
        found = separated(
            result_of(problem_of([[2, 2]] * 2), [0, 0], [0, 2], [0, 1]), prover="cp-sat", time_limit=None, workers=1
        )
        assert numbers(found) == exactly(fusion=0, placement=1, devices=1, order=0, total=1)

    def test_the_order_costs(self) -> None:
        problem = problem_of([[2, 9], [9, 3], [2, 9]], [(0, 1)], feasible=[[1, 0], [0, 1], [1, 0]])
        found = separated(
            result_of(problem, [0, 1, 0], [2, 4, 0], [0, 1, 0]), prover="cp-sat", time_limit=None, workers=1
        )
        half = Fraction(2, 5)  # 7 ticks with t2 first, 5 with t0 first
        assert numbers(found) == exactly(fusion=0, placement=half, devices=0, order=half, total=half)
        assert [each.schedule.start.tolist()[0] for each in found.chain] == [0, 0, 0]

    def test_all_three_multiply(self) -> None:
        # One device for both of the cluster: 4 ticks, which 6 of a slow device and a wait for t2 make 8.
        problem = problem_of([[2, 3], [2, 3], [9, 2]], feasible=[[1, 1], [1, 1], [0, 1]])
        found = separated(
            result_of(problem, [1, 1, 1], [2, 5, 0], [0, 0, 1]), prover="cp-sat", time_limit=None, workers=1
        )
        assert numbers(found) == exactly(fusion=0, placement=1, devices=1, order=0, total=1)

    def test_clusters_and_groups_count_together(self) -> None:
        problem = problem_of([[1, 1]] * 4, group=[0, 0, 1, 2])
        found = chain_of(result_of(problem, [0] * 4, [0, 1, 2, 3], [0, 1, 1, 2]), np.array([0, 1, 1, 2]))
        assert found[1].problem.group.tolist() == [0, 0, 0, 1]

    def test_nothing_to_do_loses_nothing(self) -> None:
        for problem in (problem_of([]), problem_of([[0, 0]] * 2, [(0, 1)])):
            found = po.losses(problem, "dsc", time_limit=None, workers=1)
            assert numbers(found) == exactly(fusion=0, placement=0, devices=0, order=0, total=0)


class TestAgainstBruteForce:
    """Random problems of all kinds with random clusters; the schedule found is the best of a random placement."""

    @staticmethod
    def cases(count: int) -> Iterator[tuple[Result, tuple[Value, Value, Value]]]:
        seed = made = 0
        while made < count:
            seed += 1
            rng = np.random.default_rng(seed)
            problem = small_problem(rng, times=bool(seed % 2))
            clusters = rng.integers(0, 2, problem.n_tasks)
            united = with_changes(problem, group=_joined(problem.group, clusters))
            found = po.solve(united, "random", samples=3, seed=seed, workers=1)
            best = optimum(problem)
            if not found.feasible or best is None or problem.n_devices == 1 or found.schedule is None:
                continue
            placed = with_changes(united, feasible=np.eye(problem.n_devices, dtype=np.bool_)[found.schedule.device])
            optima = [optimum(each) for each in (united, placed)]
            assert optima[0] is not None
            assert optima[1] is not None
            made += 1
            yield replace(found, problem=problem, bound=None, clusters=clusters), (
                best[0][0], optima[0][0][0], optima[1][0][0],
            )  # fmt: skip

    def test_exact_if_the_optima_are_proved(self) -> None:
        for found, truth in self.cases(8):
            got = separated(found, prover="cp-sat", time_limit=None, workers=1)
            assert tuple(each.objective for each in got.chain) == truth
            assert all(each.optimal for each in got.chain)
            assert all(each.proved or each.at_most is None for each in got.losses)
            for each in got.chain:
                assert verify(each.problem, each.schedule).objective == each.values
                assert verify(found.problem, each.schedule).feasible

    def test_intervals_contain_the_losses(self) -> None:
        wide = 0
        for found, (best, united, placed) in self.cases(8):
            assert found.objective is not None
            got = separated(found, prover="single", workers=1)  # proves little on any machine
            truth = {
                "fusion": (united, best), "placement": (found.objective, united), "devices": (placed, united),
                "order": (found.objective, placed), "total": (found.objective, best),
            }  # fmt: skip
            for each in got.losses:
                above, below = truth[each.name]
                true = Fraction(above) / Fraction(below) - 1 if below else Fraction(0) if above == 0 else None
                if true is not None:
                    assert each.at_least <= true, each
                    assert each.at_most is None or true <= each.at_most, each
                wide += not each.proved
        assert wide


def _on_first(problem: Problem) -> Schedule:
    """All tasks on the first device, one after another."""
    return Schedule(np.zeros(problem.n_tasks, dtype=np.int64), np.arange(problem.n_tasks) * 9)


def _joined(*labels: Int) -> list[int]:
    """Labels by which things are together that are together in any of several labellings."""
    together = list(range(len(labels[0])))
    for _ in together:
        for label in labels:
            for value in set(label.tolist()):
                members = np.flatnonzero(label == value).tolist()
                least = min(together[i] for i in members)
                for i in members:
                    together[i] = least
    return together


class TestBranching:
    @staticmethod
    def leaf(problem: Problem, seconds: float) -> Result:
        return po.solve(problem, "cp-sat", time_limit=10 * seconds, workers=1)

    def test_the_optimum_over_placements(self) -> None:
        proved = 0
        for found, (_, united, _) in TestAgainstBruteForce.cases(6):
            assert found.objective is not None
            assert found.clusters is not None
            problem = chain_of(found, found.clusters)[1].problem
            for stop, known in ((False, found.objective), (False, united), (True, found.objective)):
                bound, schedules = branched(problem, known, 20.0, self.leaf, lambda stop=stop: stop)
                assert bound <= united
                assert stop or bound == united
                values = [verify(problem, each).objective for each in schedules]
                assert all(each is not None and each[0] >= united for each in values)
            proved += best_bound(problem).value < united
        assert proved

    def test_interchangeable_devices_are_tried_once(self) -> None:
        leaves: list[list[int]] = []

        def leaf(problem: Problem, seconds: float) -> Result:
            leaves.append(problem.feasible.argmax(axis=1).tolist())
            return self.leaf(problem, seconds)

        # A transfer of 5 each way, but quick bounds see a path through both tasks on one device only.
        problem = problem_of([[3] * 3, [2] * 3, [1] * 3])
        bound, _ = branched(problem, 3, 20.0, leaf, lambda: False)
        assert (bound, leaves) == (3, [])
        bound, _ = branched(problem, 9, 20.0, leaf, lambda: False)
        assert bound == 3
        assert sorted(leaves)[0] == [0, 1, 1]
        assert all(each[0] == 0 and each[1] <= 1 for each in leaves)

    def test_a_leaf_that_is_infeasible_is_dropped(self) -> None:
        def leaf(problem: Problem, seconds: float) -> Result:
            alike = problem.feasible[0].argmax() == problem.feasible[1].argmax()
            found = self.leaf(problem, seconds)
            return replace(found, termination=po.Termination.INFEASIBLE, bound=None, feasible=None) if alike else found

        problem = problem_of([[3, 9], [3, 9]])
        assert branched(problem, 100, 20.0, leaf, lambda: False)[0] == 9

    def test_a_leaf_without_a_proof_stays_open(self) -> None:
        limits: list[float] = []

        def leaf(problem: Problem, seconds: float) -> Result:
            limits.append(seconds)
            return replace(self.leaf(problem, seconds), termination=po.Termination.FAILED, bound=None, schedule=None)

        stops = iter([False] * 6 + [True] * 9)
        bound, schedules = branched(problem_of([[3], [2]]), 9, 20.0, leaf, lambda: next(stops))
        assert (bound, schedules) == (5, [])
        assert limits == [0.5, 1.0, 2.0, 4.0]


class TestIntervals:
    def test_from_bounds_and_values(self) -> None:
        found = loss("fusion", (6, 8), (4, 5))
        assert (found.at_least, found.at_most) == (Fraction(1, 5), Fraction(1))
        assert not found.proved
        assert str(found) == "20.00% to 100.00%"

    def test_never_negative(self) -> None:
        found = loss("fusion", (3, 8), (3, 5))
        assert found.at_least == 0
        assert str(found) == "at most 166.67%"

    def test_a_value_that_meets_a_bound_loses_nothing(self) -> None:
        assert str(loss("order", (4, 5), (5, 5))) == "nothing (proved)"

    def test_nothing_is_known_against_a_bound_of_zero(self) -> None:
        assert str(loss("total", (5, 5), (0, 2))) == "at least 150.00%"
        assert loss("total", (5, 5), (0, 0)).texts == ("0.00%", "-")
        assert str(loss("total", (0, 0), (0, 0))) == "nothing (proved)"

    def test_ends_are_rounded_outwards(self) -> None:
        assert loss("total", (100_001, 100_009), (100_000, 100_000)).texts == ("0.00%", "0.01%")
        assert loss("total", (100_009, 100_009), (100_000, 100_000)).texts == ("0.01%", "0.01%")


class TestWhatFollowsFromWhat:
    def test_schedules_and_bounds_are_shared(self) -> None:
        problem = problem_of([[2, 2]] * 2)
        chain = chain_of(result_of(problem, [0, 0], [0, 2], [0, 1]), np.arange(2))
        parallel = Schedule(np.array([0, 1]), np.array([0, 0]))
        got = shared([replace(chain[0], bound=2, bound_source="a proof"), *chain[1:]], [parallel])
        assert [each.objective for each in got] == [2, 2, 4]
        assert [each.bound for each in got] == [2, 2, 4]
        assert got[1].bound_source in ("a proof", chain[1].bound_source)

    def test_a_bound_above_a_schedule_is_an_internal_error(self) -> None:
        chain = chain_of(result_of(problem_of([[2, 2]] * 2), [0, 0], [0, 2], [0, 1]), np.arange(2))
        with pytest.raises(InternalError, match="a liar claims the bound 9, and the verifier accepts"):
            shared([replace(chain[0], bound=9, bound_source="a liar"), *chain[1:]])

    def test_a_stop_leaves_valid_intervals(self) -> None:
        problem = po.load(HEFT_10)
        found = separated(po.solve(problem, "dsc"), time_limit=5, workers=1, should_stop=lambda: True)
        assert found.notes == ("stopped early: more time would narrow the intervals",)
        assert found.total is not None
        assert found.total.at_least == 0
        assert found.total.at_most is not None

    def test_devices_that_are_overfilled_leave_nothing_to_separate(self) -> None:
        problem = problem_of([[3, 3], [2, 2], [1, 1]], resident=[4, 4, 4], capacity=[8, 4])
        found = po.solve(problem, "order-place")
        over = replace(found, feasible=False, violations=verify(problem, _on_first(problem)).violations)
        got = separated(over)
        assert (got.chain, got.losses, got.fusion, got.clusters) == ((), (), None, None)
        assert got.conclusion.startswith("order-place found no feasible schedule: d0 needs 12 bytes")
        assert got.to_dict()["losses"] == []

    def test_stages_are_announced(self) -> None:
        heard: list[tuple[int, int, str]] = []
        po.losses(problem_of([[2, 2]] * 2), "lc", time_limit=1, workers=1, on_stage=lambda *each: heard.append(each))
        assert heard == [(0, 4, "lc"), (1, 4, "this placement"), (2, 4, "these clusters"), (3, 4, "any schedule")]


class Silent:
    """Joins the first two tasks and does not state it."""

    name: ClassVar[str] = "silent"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "leaves out the first task"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        reduced, _ = rebuilt(problem, tasks=np.arange(1, problem.n_tasks))

        def restore(schedule: Schedule) -> Schedule:
            return Schedule(np.append(schedule.device[:1], schedule.device), np.append(9, schedule.start))

        return Reduction(reduced, restore, lambda _: None, "one task less")


class TestWhoHasClusters:
    def test_passes(self) -> None:
        problem = problem_of([[1, 1], [1, 1], [1, 1]], [(0, 1)], payload=[1], byte_ticks_num=np.ones((2, 2)))
        found = po.losses(problem, "heft", passes=["coplace"], time_limit=None, prover="cp-sat", workers=1)
        assert found.found.clusters is not None
        assert found.found.clusters.tolist() == [0, 0, 1]
        assert found.found.solver == "heft"
        assert numbers(found) == exactly(fusion=0, placement=0, devices=0, order=0, total=0)

    def test_a_pass_with_nothing_to_do(self) -> None:
        found = po.losses(problem_of([[1, 1]] * 2), "heft", passes=["coplace"], time_limit=1, workers=1)
        assert found.clusters == 2

    def test_a_solver_without(self) -> None:
        with pytest.raises(
            po.UsageError,
            match=r"^losses: heft places no clusters; expected a solver that does \(.*celeritas.*dsc.*\), or also a "
            r"pass that joins tasks \(.*coplace, fuse, celeritas-fusion.*\)$",
        ):
            po.losses(problem_of([[1, 1]]), "heft")
        with pytest.raises(po.UsageError, match="losses: cp-sat places no clusters"):
            po.losses(problem_of([[1, 1]]), "cp-sat", passes=["relays"])

    def test_a_pass_that_does_not_state_them(self) -> None:
        with pytest.raises(po.UsageError, match="losses: heft and its passes state no clusters; a solver states them"):
            po.losses(problem_of([[1, 1]] * 2), "heft", passes=[Silent()])

    def test_problems_that_are_not_supported(self) -> None:
        energy = problem_of([[1, 1]], objective=po.Objective(((po.Term("energy"),),)))
        with pytest.raises(po.UnsupportedError, match="dsc does not support objective energy"):
            po.losses(energy, "dsc")
        with pytest.raises(po.UnsupportedError, match="heft does not support objective energy"):
            po.losses(energy, "random", passes=["coplace"], prover="heft")
        with pytest.raises(po.UsageError, match=r"^losses takes a Problem, got dict"):
            po.losses({})  # type: ignore[arg-type]


class TestCommand:
    def test_tables(self) -> None:
        done = run("losses", HEFT_10, "--solver", "dsc", "--prover", "cp-sat", "--workers", 1)
        assert (done.code, done.err) == (0, "")
        lines = [line.rstrip() for line in done.out.splitlines()]
        assert lines[1:] == [
            "dsc: 10 tasks in 5 clusters",
            "schedule                makespan  lower bound  proved by",
            "found by dsc                89 s",
            "best of this placement      89 s         89 s  optimal",
            "best of these clusters      73 s         73 s  optimal",
            "best of any schedule        73 s         73 s  optimal",
            "loss       at least  at most  the price of",
            "fusion        0.00%    0.00%  the clusters, however placed",
            "placement    21.92%   21.92%  where and when their tasks run",
            "  devices    21.92%   21.92%  where they run",
            "  order       0.00%    0.00%  when they run",
            "total        21.92%   21.92%  all of this",
            "fusion costs nothing (proved), placement 21.92% (proved); in total 21.92% (proved)",
        ]

    def test_json(self) -> None:
        done = run("losses", HEFT_10, "-s", "heft", "--pass", "coplace", "--prover", "cp-sat", "-w", 1, "--json")
        assert done.code == 0
        data = json.loads(done.out)
        assert [(row["loss"], row["proved"]) for row in data["losses"]] == [
            ("fusion", True), ("placement", True), ("devices", True), ("order", True), ("total", True)
        ]  # fmt: skip
        assert [each["keeps"] for each in data["chain"]] == ["free", "clusters", "placement"]
        assert [each["objective"] for each in data["chain"]] == [each["bound"] for each in data["chain"]]
        assert data["clusters"] == 4
        assert data["found"]["solver"] == "heft"

    def test_without_a_schedule(self, tmp_path: Path) -> None:
        def written(name: str, memory: str) -> Path:
            path = tmp_path / name
            tasks = {task: {"time": 1, "memory": {"resident": memory}} for task in "abc"}
            devices = {"x": {"count": 2, "memory": "10 B"}}
            path.write_text(json.dumps({"placeopt": 1, "devices": devices, "tasks": tasks}))
            return path

        done = run("losses", written("tight.json", "6 B"), "-t", "1s")
        assert done.code == 1
        assert done.out.splitlines()[-1].startswith("the problem is infeasible: ")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--solver", "heft"], "losses: heft places no clusters; expected a solver that does (celeritas, "),
            (["--solver", "celeritsa"], 'unknown solver "celeritsa"; did you mean celeritas'),
            (["--pass", "coplce"], 'unknown pass "coplce"; did you mean coplace'),
            (["--prover", "cpsat"], 'unknown solver "cpsat"'),
            (["--time-limit", "0"], '--time-limit: "0" is zero; expected a positive time, such as 30s'),
            (["--set", "rnge=2"], 'celeritas has no setting "rnge"; did you mean range'),
            (["--workers", 0], "--workers is 0; expected a whole number from 1"),
        ],
    )
    def test_errors(self, arguments: list[object], message: str) -> None:
        done = run("losses", HEFT_10, *arguments)
        assert (done.code, done.out) == (2, "")
        assert message in done.err


def test_texts() -> None:
    found = po.losses(po.load(HEFT_10), "dsc", prover="cp-sat", time_limit=None, workers=1)
    assert str(found).splitlines()[-1] == found.conclusion
    assert repr(found) == f"<Losses of dsc on heft-10: {found.conclusion}>"
    assert "<table>" in found._repr_html_()
    assert [grid.headers[-1] for grid in found.grids()] == ["proved by", "the price of"]
    assert Info("", "", "").clusters is False


def test_frame() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install 'placeopt[frames]'")
    found = po.losses(po.load(HEFT_10), "dsc", prover="cp-sat", time_limit=None, workers=1)
    assert found.to_frame()["loss"].to_list() == ["fusion", "placement", "devices", "order", "total"]
