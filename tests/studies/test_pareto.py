"""The Pareto front of two metrics: against enumeration, stopped early, determinism, errors, command and plot."""

from __future__ import annotations

import csv
import io
import json
import signal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import METRICS, _Search, placements, small_problem
from commandline import run

import placeopt as po
from placeopt.model.building import build_problem, with_changes
from placeopt.model.objective import METRICS as VALUES
from placeopt.model.problem import Metric, Problem
from placeopt.studies.pareto import check_metrics
from placeopt.studies.pareto.staircase import FAR, Pair, Staircase, non_dominated, weakly_better

ROOT = Path(__file__).parents[2]
HEFT_10 = ROOT / "problems" / "heft-10.yaml"
SENSORS = ROOT / "problems" / "sensor-fusion.yaml"
USED: tuple[Metric, ...] = ("makespan", "total_cost", "max_load", "communication", "memory_balance", "devices")
"""Metrics that need no further keys."""


def enumerated(problem: Problem, metrics: tuple[Metric, Metric]) -> list[Pair]:
    """The complete front: of every placement, all values of its schedules that none of them dominates."""
    goal = po.Objective(tuple((po.Term(metric),) for metric in metrics))
    found: list[Pair] = []
    limits = dict(problem.limits)
    for device in placements(problem):
        most: int | None = None
        while True:
            limited = limits if most is None else limits | {metrics[1]: min(most, limits.get(metrics[1], most))}
            if min(limited.values(), default=0) < 0:
                break
            best = _Search(with_changes(problem, objective=goal, limits=list(limited.items())), device, None).run()
            if best is None:
                break
            first, second = map(int, best[0])
            found.append((first, second))
            most = second - 1
    return non_dominated(found)


@cache
def case(seed: int) -> tuple[Problem, tuple[Metric, Metric], list[Pair]]:
    """A small problem, two metrics, and the complete front."""
    problem, metrics = drawn(seed)
    return problem, metrics, enumerated(problem, metrics)


def drawn(seed: int) -> tuple[Problem, tuple[Metric, Metric]]:
    """A small problem, and two metrics of which it states what they need."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        problem, first, second = conflicting(rng), "makespan", "price"
        if seed % 3 == 0:
            first, second = str(rng.choice(["total_cost", "tardiness", "price"])), "makespan"
    else:
        problem = small_problem(rng, po.Objective(), times=seed % 4 == 0)
        known = [metric for metric in METRICS if metric in USED or _stated(problem, metric)]
        first, second = (known[i] for i in rng.choice(len(known), 2, replace=False))
    metrics = check_metrics((first, second))
    if seed % 5 == 0 and (front := enumerated(problem, metrics)):
        problem = with_changes(problem, limits=[(second, front[len(front) // 2][1])])
    return problem, metrics


def conflicting(rng: np.random.Generator) -> Problem:
    """A small problem in which fast devices are dear, and due dates are early, so that fronts are long."""
    n, m = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.3]
    duration = rng.integers(1, 30, (n, m))
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=duration,
        edges=edges,
        payload=rng.integers(0, 10, len(edges)),
        byte_ticks_num=rng.integers(0, 2, (m, m)),
        price=31 - duration + rng.integers(0, 6, (n, m)),
        due=rng.integers(0, 25, n),
    )


def _stated(problem: Problem, metric: Metric) -> bool:
    fields = {"energy": (problem.power_num, problem.byte_energy_num), "price": (problem.price,)}
    fields |= {"relocation": (problem.relocation,), "tardiness": (problem.due < FAR,)}
    return any(bool(values.any()) for values in fields[metric])


def values(front: po.Pareto) -> list[Pair]:
    return [point.values for point in front.points]


def check(problem: Problem, front: po.Pareto, complete: list[Pair]) -> None:
    """The schedules are feasible and have their values, and nothing that is claimed contradicts the complete front."""
    for point in front.points:
        assert po.verify(problem, point.schedule).feasible
        assert point.values == tuple(VALUES[metric](problem, point.schedule) for metric in front.metrics)
        assert any(weakly_better(best, point.values) for best in complete)
        assert all(0 <= gap <= 1 for gap in point.gaps)
        assert all(low <= value for low, value in zip(point.bounds, point.values, strict=True))
        for axis in (0, 1):
            rivals = [best[axis] for best in complete if best[1 - axis] <= point.values[1 - axis]]
            assert point.bounds[axis] <= min(rivals)
            assert point.values[axis] * (1 - point.gaps[axis]) <= min(rivals) + 1e-6
        assert not point.optimal or point.values in complete
    assert values(front) == non_dominated(values(front))
    assert not any(front.proved.excludes(best) for best in complete)
    assert all(any(weakly_better(low, best) for low in front.proved.lowest()) for best in complete)
    if front.gap is not None:
        share = front.gap + 1e-9
        for best in complete:
            near = [all(p * (1 - share) <= b for p, b in zip(point, best, strict=True)) for point in values(front)]
            assert any(near)


@pytest.mark.parametrize("seed", range(44))
def test_complete_front_equals_enumeration(seed: int) -> None:
    problem, metrics, expected = case(seed)
    front = po.pareto(problem, metrics, points=None, workers=1, time_limit=None)
    assert values(front) == expected
    check(problem, front, expected)
    assert front.termination == ("optimal" if expected else "infeasible")
    assert all(point.optimal and point.gap == 0 for point in front.points)
    assert front.gap == (0.0 if expected else None)


def test_the_drawn_problems_vary() -> None:
    """Long fronts, single points and infeasible problems are among them."""
    sizes = [len(case(seed)[2]) for seed in range(44)]
    assert {0, 1, 2} <= set(sizes)
    assert sum(size >= 4 for size in sizes) >= 10


@pytest.mark.parametrize("seed", range(12))
def test_milp_finds_the_same_front(seed: int) -> None:
    problem, metrics, expected = case(seed)
    front = po.pareto(problem, metrics, points=None, solver="milp", workers=1, time_limit=None)
    assert values(front) == expected


@pytest.mark.parametrize("seed", range(32))
def test_what_a_stopped_run_claims_is_true(seed: int) -> None:
    problem, metrics, expected = case(seed)
    steps = seed // 2 % 8
    begun: list[str] = []
    front = po.pareto(
        problem, metrics, workers=1, time_limit=None, on_step=begun.append, should_stop=lambda: len(begun) > steps
    )
    assert len(begun) <= steps + 1
    check(problem, front, expected)


@pytest.mark.parametrize("seed", range(8))
def test_gap_limits_leave_true_bounds(seed: int) -> None:
    problem, metrics, expected = case(seed)
    front = po.pareto(problem, metrics, points=4, workers=1, time_limit=None, gap_limit=0.5)
    check(problem, front, expected)


def test_a_front_of_some_points_is_spread() -> None:
    problem = po.load(SENSORS)
    metrics: tuple[Metric, Metric] = ("makespan", "communication")
    front = po.pareto(problem, metrics, points=5, workers=1, time_limit=None)
    assert front.termination == "completed"
    assert len(front.points) == 5
    assert all(point.optimal for point in front.points)
    assert front.gap is not None
    assert 0 < front.gap < 0.4
    more = po.pareto(problem, metrics, points=8, workers=1, time_limit=None)
    assert more.gap is not None
    assert more.gap < front.gap
    assert {values(front)[0], values(front)[-1]} <= set(values(more))


def test_one_worker_repeats_itself() -> None:
    problem = po.load(HEFT_10)
    first, second = (
        po.pareto(problem, ("makespan", "total_cost"), points=4, workers=1, seed=3, time_limit=None) for _ in range(2)
    )
    plans = [[point["plan"] for point in front.to_dict()["points"]] for front in (first, second)]
    assert plans[0] == plans[1]
    assert (values(first), first.proved) == (values(second), second.proved)


def test_weighted_sums_start_what_reaches_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placeopt.studies.pareto.search.LEAST", 0.05)
    problem = po.load(ROOT / "problems" / "inception.yaml")
    steps: list[str] = []
    front = po.pareto(problem, points=3, workers=1, time_limit=4, on_step=steps.append)
    assert front.termination == "time_limit"
    assert any("weighted sum of makespan, energy" in step for step in steps)
    assert front.points
    for point in front.points:
        assert po.verify(problem, point.schedule).feasible


def test_limits_and_deadlines_of_the_document_stay() -> None:
    document: dict[str, Any] = {
        "placeopt": 1,
        "devices": {"fast": {"price": 36}, "slow": {"price": 3.6}},
        "objective": "price",
        "tasks": {"a": {"time": {"fast": "2 ms", "slow": "10 ms"}}, "b": {"time": {"fast": "2 ms", "slow": "10 ms"}}},
    }
    whole = po.pareto(po.compile(document), ("makespan", "price"), points=None, workers=1)
    assert [value for value, _ in values(whole)] == [4_000_000, 10_000_000, 20_000_000]
    for more in ({"limits": {"makespan": "15 ms"}}, {"tasks": {**document["tasks"], "b": {**document["tasks"]["b"]}}}):
        if "tasks" in more:
            more["tasks"]["b"]["deadline"] = "15 ms"
            more["tasks"]["a"] = {**more["tasks"]["a"], "after": "b", "deadline": "15 ms"}
        limited = po.pareto(po.compile(document | more), ("makespan", "price"), points=None, workers=1)
        assert limited.complete
        assert max(value for value, _ in values(limited)) <= 15_000_000
        assert len(limited.points) == 2


class TestStaircase:
    def test_dominated_corners_disappear(self) -> None:
        stairs = Staircase().adding((3, 5)).adding((6, 2)).adding((2, 4)).adding((7, 5))
        assert stairs.corners == ((7, 5),)
        assert Staircase().adding((-1, FAR)).corners == ()

    @pytest.mark.parametrize("seed", range(20))
    def test_against_counting(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        corners = [(int(a), int(b)) for a, b in rng.integers(-1, 8, (int(rng.integers(0, 5)), 2))]
        stairs = Staircase()
        for corner in corners:
            stairs = stairs.adding(corner)
        grid = [(x, y) for x in range(9) for y in range(9)]
        free = [pair for pair in grid if not any(weakly_better(pair, corner) for corner in corners)]
        assert [pair for pair in grid if not stairs.excludes(pair)] == free
        for pair in grid:
            assert stairs.area(pair) == sum(weakly_better(each, pair) for each in free)
        for most in range(8):
            assert stairs.least(0, most) == min(x for x, y in free if y <= most or (y == 8 and x == 8))
        assert stairs.lowest() == [p for p in free if not any(weakly_better(q, p) and q != p for q in free)]


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"metrics": ("makespan", "energi")}, r"not a metric of one run; .* price, devices; did you mean energy\?"),
            ({"metrics": ("makespan", "period")}, "'period' is not a metric of one run"),
            ({"metrics": ("makespan", "makespan")}, "metrics: makespan is named twice"),
            ({"metrics": ("makespan", "price", "devices")}, "metrics: 3 metrics; expected two"),
            ({"metrics": "makespan"}, "metrics: 1 metric; expected two"),
            ({"metrics": ("makespan", "energy")}, "^energy needs the power of devices or the energy of links"),
            ({"metrics": ("makespan", "price")}, "^price needs the price of devices or of tasks"),
            ({"metrics": ("tardiness", "makespan")}, "^tardiness needs due dates of tasks"),
            ({"metrics": ("relocation", "makespan")}, "^relocation needs the section current"),
            ({"points": 1}, "points is 1; expected"),
            ({"solver": "cpsat"}, 'unknown solver "cpsat"; did you mean cp-sat'),
            ({"time_limit": 0}, "time_limit is 0"),
            ({"cores": 2}, "cores"),
        ],
    )
    def test_wrong_arguments(self, arguments: dict[str, Any], message: str) -> None:
        given: dict[str, Any] = {"metrics": ("makespan", "total_cost"), **arguments}
        with pytest.raises(po.UsageError, match=message):
            po.pareto(po.load(HEFT_10), **given)

    def test_solvers_without_limits(self) -> None:
        with pytest.raises(po.UnsupportedError, match=r"^heft does not support limits of metrics; .*: cp-sat, milp$"):
            po.pareto(po.load(HEFT_10), ("makespan", "total_cost"), solver="heft")

    def test_pipelines(self) -> None:
        with pytest.raises(po.UnsupportedError, match="does not support pipelines"):
            po.pareto(po.load(ROOT / "problems" / "four-stages.yaml"), ("makespan", "total_cost"))

    def test_infeasible(self) -> None:
        problem = with_changes(po.load(HEFT_10), limits=[("makespan", 10)])
        front = po.pareto(problem, ("makespan", "total_cost"), workers=1)
        assert (front.termination, front.points) == ("infeasible", ())
        assert front.conclusion == "the problem is infeasible: no schedule exists"
        with pytest.raises(po.UsageError, match="the front has no points to draw"):
            front.plot()

    def test_stopped_at_once(self) -> None:
        front = po.pareto(po.load(HEFT_10), ("makespan", "total_cost"), should_stop=lambda: True)
        assert (front.termination, front.points, front.solves) == ("interrupted", (), 0)
        assert front.conclusion == "no schedule was found"
        assert front.gap is None


@pytest.fixture(scope="module")
def front() -> po.Pareto:
    return po.pareto(po.load(HEFT_10), ("makespan", "total_cost"), points=4, workers=1)


def test_ctrl_c_returns_the_points_so_far() -> None:
    begun: list[str] = []

    def press(text: str) -> None:
        begun.append(text)
        if len(begun) == 3:
            signal.raise_signal(signal.SIGINT)

    front = po.pareto(po.load(HEFT_10), ("makespan", "total_cost"), workers=1, on_step=press)
    assert (front.termination, len(begun)) == ("interrupted", 3)
    assert values(front)[0] == (73, 204)


class TestOutput:
    def test_texts(self, front: po.Pareto) -> None:
        lines = str(front).splitlines()
        assert lines[1].split() == ["makespan", "over", "least", "total_cost", "over", "least", "gap"]
        assert lines[2].split() == ["73", "s", "+0.0%", "204", "s", "+60.6%", "optimal"]
        assert lines[-1] == front.conclusion
        assert "4 points, 4 of them proved" in repr(front)
        assert "<td style='text-align:right'>optimal</td>" in front._repr_html_()

    def test_data(self, front: po.Pareto) -> None:
        data = json.loads(json.dumps(front.to_dict()))
        assert data["points"][0]["makespan"] == data["points"][0]["makespan_bound"] == 73
        assert {"makespan": 72, "total_cost": None} in data["empty"]
        assert "plan" not in front.to_dict(plan=False)["points"][0]
        pytest.importorskip("pandas")
        assert front.to_frame()["total_cost"].tolist() == [second for _, second in values(front)]

    def test_plans_of_points_can_be_verified(self, front: po.Pareto, tmp_path: Path) -> None:
        for point in front.to_dict()["points"]:
            (tmp_path / "plan.json").write_text(json.dumps(point["plan"]), encoding="utf-8")
            done = run("verify", HEFT_10, tmp_path / "plan.json", "--json")
            assert (done.code, json.loads(done.out)["makespan"]) == (0, point["makespan"])

    def test_lower_bounds_are_shown_where_a_point_is_not_proved(self) -> None:
        begun: list[str] = []
        front = po.pareto(
            po.load(HEFT_10), ("makespan", "total_cost"), workers=1, on_step=begun.append,
            should_stop=lambda: len(begun) > 1,
        )  # fmt: skip
        (grid,) = front.grids()
        assert grid.headers.count("lower bound") == 2
        assert grid.rows[0][-1].endswith("%")

    @pytest.mark.parametrize("name", ["front.png", "front.svg"])
    def test_plot(self, front: po.Pareto, tmp_path: Path, name: str) -> None:
        pytest.importorskip("matplotlib")
        picture = front.plot(tmp_path / name, title="mine")
        assert (tmp_path / name).stat().st_size > 1000
        texts = {text.get_text() for text in picture.legends[0].get_texts()}
        assert texts == {"proved Pareto-optimal", "front found", "proved to contain no schedule"}
        assert picture.axes[0].get_xlabel().startswith("makespan (")
        assert len(picture.axes[0].collections[1].get_offsets()) == 4  # type: ignore[arg-type]


class TestCommand:
    ASKED = ("pareto", HEFT_10, "--metrics", "makespan, total_cost", "--workers", "1")

    def test_table(self) -> None:
        done = run(*self.ASKED, "--points", "all")
        assert done.code == 0
        assert done.out.splitlines()[-1] == "the front is complete: 7 points, proved to be Pareto-optimal"
        assert done.err == ""

    def test_json_and_csv(self) -> None:
        data = json.loads(run(*self.ASKED, "-n", "3", "--json").out)
        assert data["points"][0]["makespan"] == 73
        rows = list(csv.DictReader(io.StringIO(run(*self.ASKED, "-n", "3", "--csv").out)))
        assert [int(row["total_cost"]) for row in rows] == [point["total_cost"] for point in data["points"]]

    def test_plot(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        done = run(*self.ASKED, "-n", "3", "--plot", tmp_path / "front.png")
        assert (done.code, done.err) == (0, "")
        assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")

    def test_infeasible_problems_name_explain(self, tmp_path: Path) -> None:
        file = tmp_path / "never.json"
        task = {"time": 5, "deadline": 8}
        file.write_text(json.dumps({"placeopt": 1, "devices": {"a": {}}, "tasks": {"x": task, "y": task}}))
        done = run("pareto", file, "-m", "makespan,devices")
        assert done.code == 1
        assert done.out.splitlines()[-1] == "the problem is infeasible: no schedule exists"
        assert "placeopt explain" in done.err

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["-m", "makespan,totalcost"], "did you mean total_cost?"),
            (["-m", "makespan,makespan"], "--metrics: makespan is named twice"),
            (["-m", "makespan,devices,price"], "--metrics: 3 metrics; expected two"),
            (["-n", "some"], "--points is some; expected a whole number of at least 2, or all"),
            (["-n", "1"], "--points is 1; expected"),
            (
                ["-s", "tabu"],
                "tabu does not support limits of metrics; solvers that support this problem: cp-sat, milp",
            ),
            (["--json", "--csv"], "--csv and --json exclude each other"),
            (["--plot", "front.txt"], 'cannot draw front.txt: its name ends in ".txt"'),
            (["--workers", "0"], "--workers is 0"),
            (["--set", "colour=red"], "colour"),
        ],
    )
    def test_errors(self, more: list[str], message: str) -> None:
        done = run(*self.ASKED, *more)
        assert done.code == 2
        assert message in done.err
        assert "Traceback" not in done.err

    def test_completion(self) -> None:
        from placeopt.cli.completion import metrics

        assert metrics("makespan,en") == ["makespan,energy"]
