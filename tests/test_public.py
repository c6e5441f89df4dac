"""The public names: the list in docs/api.md, what they look like, and what callers get wrong with them."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest
from pydantic import Field

import placeopt as po
from placeopt.testing import CASES, check_solver

ROOT = Path(__file__).parents[1]
LIST = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
FIVE = ROOT / "problems" / "five-node.yaml"
SERVING = ROOT / "problems" / "serving" / "llama-70b-24.yaml"


def test_the_list_has_every_public_name_once() -> None:
    cells = re.findall(r"^\| (`po\.[^|]*) \|", LIST, flags=re.MULTILINE)
    assert sorted(name for cell in cells for name in re.findall(r"`po\.(\w+)`", cell)) == po.__all__


@pytest.mark.parametrize("name", re.findall(r"`(placeopt\.\w+)`", LIST.split("\n## Modules")[1]))
def test_the_modules_in_the_list_can_be_imported(name: str) -> None:
    assert importlib.import_module(name)


@pytest.mark.parametrize("name", po.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    found = getattr(po, name)
    assert name == "ALL_METRICS" or len(inspect.getdoc(found) or "") > 10
    if inspect.isfunction(found):
        hints = inspect.get_annotations(found)
        assert set(inspect.signature(found).parameters) | {"return"} == set(hints), "an argument has no type"


@pytest.fixture(scope="module")
def result() -> po.Result:
    return po.solve(po.load(FIVE), "heft")


class TestPlans:
    def test_a_result_saves_itself(self, result: po.Result, tmp_path: Path) -> None:
        result.save(tmp_path / "a.json")
        po.write_plan(tmp_path / "b.json", result)
        assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
        plan = po.read_plan(tmp_path / "a.json", result.problem)
        assert result.schedule is not None
        assert plan.schedule.start.tolist() == result.schedule.start.tolist()
        assert (plan.claim, plan.fingerprint) == (result.values, result.fingerprint)

    def test_a_document_can_be_written_too(self, result: po.Result, tmp_path: Path) -> None:
        assert result.schedule is not None
        po.write_plan(tmp_path / "a.json", po.plan_document(result.problem, result.schedule))
        assert po.read_plan(tmp_path / "a.json", result.problem).claim is None

    @pytest.mark.parametrize("wrong", ["plan.json", None, 3])
    def test_nothing_else_is_written(self, wrong: object, tmp_path: Path) -> None:
        with pytest.raises(po.UsageError, match=r"write_plan: the plan is a \w+; expected a Result"):
            po.write_plan(tmp_path / "a.json", wrong)  # type: ignore[arg-type]
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"a": 1}, "the document is not a plan: a: unknown key"),
            ({"tasks": {"n1": {"start": 0}}}, r"the document is not a plan: tasks\.n1: device is missing"),
            ({"tasks": {"n1": {"device": "core0", "start": np.int64(0)}}}, "cannot be written as JSON: .* int64"),
            ({"x-a": object()}, "cannot be written as JSON: Object of type object"),
        ],
    )
    def test_a_document_of_something_else_is_not_written(
        self, change: dict[str, Any], message: str, result: po.Result, tmp_path: Path
    ) -> None:
        assert result.schedule is not None
        with pytest.raises(po.UsageError, match=f"write_plan: .*{message}"):
            po.write_plan(tmp_path / "a.json", po.plan_document(result.problem, result.schedule) | change)
        assert not list(tmp_path.iterdir())

    def test_a_result_without_a_schedule_is_not_written(self, tmp_path: Path) -> None:
        spec = {"placeopt": 1, "devices": {"a": {}}, "tasks": {n: {"time": 2, "deadline": 3} for n in "st"}}
        with pytest.raises(po.UsageError, match="the result of heft has no schedule to write"):
            po.solve(po.compile(spec), "heft").save(tmp_path / "a.json")
        assert not list(tmp_path.iterdir())


class TestSolverInfo:
    def test_it_says_what_a_solver_is(self) -> None:
        info = po.solver_info("celeritas")
        assert (info.name, info.family) == ("celeritas", "fusion")
        assert "arXiv:2208.00184" in info.citation
        (order,) = (setting for setting in info.settings if setting.name == "order")
        assert (order.default, order.choices) == ("cpd-topo", ["cpd-topo", "dfs-topo", "m-topo"])

    def test_every_solver_has_one(self) -> None:
        assert [po.solver_info(name).name for name in po.solvers()] == po.solvers()

    def test_an_unknown_name_gets_the_near_miss(self) -> None:
        with pytest.raises(po.UsageError, match='unknown solver "celeritos"; did you mean celeritas'):
            po.solver_info("celeritos")


class TestKeywords:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ("timelimit", "time_limit"),
            ("worker", "workers"),
            ("rang", "range"),
            ("n_jobs", "workers"),
            ("timeout", "time_limit"),
            ("random_state", "seed"),
            ("warm_start", "initial"),
            ("display", None),
        ],
    )
    def test_a_misspelt_argument_of_solve(self, wrong: str, right: str | None) -> None:
        hint = f"did you mean {right}" if right else "it has range, memory"
        with pytest.raises(po.UsageError, match=f'celeritas has no setting "{wrong}"; {hint}'):
            po.solve(po.load(FIVE), "celeritas", **{wrong: 1})

    def test_a_solver_without_settings(self) -> None:
        with pytest.raises(po.UsageError, match='heft has no setting "display"; it has no settings'):
            po.solve(po.load(FIVE), display=True)


class SlowSettings(po.Settings):
    samples: int = Field(default=5, ge=1)
    """Placements that are tried."""


class Slow:
    """A solver of the caller, used without a package: every task on the first device that may run it."""

    name: ClassVar[str] = "slow"
    info: ClassVar[po.Info] = po.Info(summary="first device", guarantee="none", complexity="O(n m)", combined=True)
    settings_type: ClassVar[type[SlowSettings]] = SlowSettings

    def solve(self, problem: po.Problem, options: po.Options, settings: SlowSettings) -> po.Answer:  # noqa: ARG002
        device = problem.feasible.argmax(axis=1)
        return po.Answer(po.Termination.COMPLETED, po.simulate(problem, device), stats={"samples": settings.samples})


class TestOwnSolver:
    def test_an_object_solves_without_a_package(self) -> None:
        solver: po.Solver = Slow()
        result = po.solve(po.load(FIVE), solver, samples=3)
        assert (result.solver, result.feasible, result.stats["samples"]) == ("slow", True, 3)
        assert po.solver_info(solver).settings[0].name == "samples"
        check_solver(solver, CASES[0])

    def test_its_settings_are_checked(self) -> None:
        with pytest.raises(po.UsageError, match='slow has no setting "sample"; did you mean samples'):
            po.solve(po.load(FIVE), Slow(), sample=3)

    def test_a_class_is_not_an_object(self) -> None:
        with pytest.raises(po.UsageError, match=r"the solver is the class Slow; expected an object of it: Slow\(\)"):
            po.solve(po.load(FIVE), Slow)  # type: ignore[arg-type]


class Entry(os.PathLike[str]):
    """A path that is neither text nor a `Path`, such as one of `os.scandir`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


class TestPaths:
    def test_every_function_takes_any_path(self, tmp_path: Path) -> None:
        problem, plan = po.load(Entry(FIVE)), Entry(tmp_path / "plan.json")
        result = po.solve(problem)
        assert result.schedule is not None
        result.save(plan)
        assert po.read_plan(plan, problem).claim == result.values
        po.write_report(Entry(tmp_path / "page.html"), result)
        po.write_trace(Entry(tmp_path / "trace.json"), problem, result.schedule)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "plan.json", "trace.json"]
        assert po.explain(Entry(FIVE)).status == "feasible"

    def test_a_folder_that_does_not_exist(self, result: po.Result, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"No such file or directory: '\S+missing/a\.json'$"):
            result.save(tmp_path / "missing" / "a.json")

    @pytest.mark.parametrize(
        "call",
        [
            lambda result: po.read_plan(None, result.problem),  # type: ignore[arg-type]
            lambda _result: po.read_dnn_partitioning(None),  # type: ignore[arg-type]
            lambda result: result.save(None),
        ],
    )
    def test_nothing_else_is_a_path(self, call: Callable[[po.Result], object], result: po.Result) -> None:
        with pytest.raises(po.UsageError, match=r"the path of a file is a NoneType; expected a str or a pathlib\.Path"):
            call(result)


class TestArguments:
    """What callers confuse gets a placeopt error that names what was expected."""

    @pytest.mark.parametrize(
        "function", [po.evaluate, po.measure, po.fits, po.lateness, po.retime, po.plan_document, po.verify]
    )
    def test_a_result_is_not_a_schedule(self, function: Callable[..., object], result: po.Result) -> None:
        name = function.__name__
        with pytest.raises(po.UsageError, match=f"{name} takes a Schedule, got Result; results and plans have one as"):
            function(result.problem, result)
        with pytest.raises(po.UsageError, match=f"{name} takes a Problem, got str; placeopt.load makes one from a"):
            function("problem.yaml", result.schedule)

    @pytest.mark.parametrize("function", [po.evaluate, po.measure, po.fits, po.lateness, po.retime, po.plan_document])
    def test_a_schedule_of_another_problem(self, function: Callable[..., object], result: po.Result) -> None:
        other = po.load(ROOT / "problems" / "inception.yaml")
        with pytest.raises(po.UsageError, match=r"device: has shape \(5,\); expected one device for each of 311 tasks"):
            function(other, result.schedule)

    @pytest.mark.parametrize("function", [po.bounds, po.critical_path, po.to_networkx, po.whatif])
    def test_a_path_is_not_a_problem(self, function: Callable[..., object]) -> None:
        with pytest.raises(po.UsageError, match=f"{function.__name__} takes a Problem, got str; placeopt.load makes"):
            function("problem.yaml")

    def test_apply_passes(self, result: po.Result) -> None:
        with pytest.raises(po.UsageError, match="apply_passes takes a Problem, got str"):
            po.apply_passes("problem.yaml", [])  # type: ignore[arg-type]
        with pytest.raises(po.UsageError, match="passes is None; expected a list of passes or of their names"):
            po.apply_passes(result.problem, None)  # type: ignore[arg-type]
        assert po.apply_passes(result.problem, "fuse").names == po.apply_passes(result.problem, ["fuse"]).names

    @pytest.mark.parametrize(
        ("wrong", "match"),
        [
            ({"time_limit": -1}, "time_limit is -1; expected a finite number that is positive"),
            ({"time_limit": "1 s"}, "time_limit is '1 s'; expected a finite number that is positive"),
            ({"workers": 0}, "workers is 0; expected a whole number from 1 to 1000"),
            ({"should_stop": True}, "should_stop is True; expected a function, or None"),
        ],
    )
    def test_bounds(self, wrong: dict[str, Any], match: str, result: po.Result) -> None:
        with pytest.raises(po.UsageError, match=match):
            po.bounds(result.problem, **wrong)

    def test_bounds_takes_the_defaults_of_solve(self, result: po.Result) -> None:
        assert po.bounds(result.problem, workers=None, should_stop=None)[0].value == 14

    @pytest.mark.parametrize("name", ["on_progress", "should_stop"])
    def test_a_callback_is_called(self, name: str, result: po.Result) -> None:
        with pytest.raises(po.UsageError, match=f"{name} is 3; expected a function, or None"):
            po.solve(result.problem, **{name: 3})  # type: ignore[arg-type]

    def test_initial_is_no_plan(self, result: po.Result) -> None:
        assert result.schedule is not None
        with pytest.raises(po.UsageError, match="a Schedule, a Result, or the name of a solver; plans have a schedule"):
            po.solve(result.problem, initial=po.Plan(result.schedule, None, None))  # type: ignore[arg-type]

    def test_numbers_of_numpy_are_numbers(self, result: po.Result) -> None:
        again = po.solve(result.problem, seed=np.arange(3)[2], workers=np.int64(1), time_limit=np.float32(5))
        assert (again.seed, type(again.seed)) == (2, int)

    def test_a_placement_by_name_is_not_simulated(self, result: po.Result) -> None:
        with pytest.raises(po.UsageError, match="device is a dict; expected the index of a device for each task"):
            po.simulate(result.problem, result.placement)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("call", "match"),
        [
            (lambda _: po.compare(None, "heft"), "compare takes problems or paths of problem files, got NoneType"),
            (lambda p: po.compare([p], None), "solvers is None; expected names, or pairs of a name and settings"),
            (lambda p: po.compare([p], [1]), "solvers: 1 is not a solver; expected a name, or a name and settings"),
            (lambda p: po.whatif(p, 3), "changes is 3; expected kinds of changes: devices, speed"),
            (lambda p: po.write_report("page.html", p), "write_report takes a Result or a Comparison, got Problem"),
            (lambda p: po.simulate_noisy(p, [0] * 5, noise=0.1, runs=2.5, seed=0), "runs: 2.5 is out of range"),
            (lambda p: po.simulate_noisy(p, [0] * 5, noise=0.1, runs=2, seed=None), "seed: None is out of range"),
            (lambda _: po.solve(po.Model("m")), r"takes a Problem, got Model; its method problem\(\) returns one"),
            (lambda _: po.explain(po.Model("m")), r"got Model; its method to_document\(\) returns it"),
            (
                lambda _: po.solve(po.load_serving(SERVING)),
                "got Serving; placeopt.solve_serving takes a",
            ),
            (lambda _: po.from_networkx(nx.DiGraph(), ["cpu"]), "devices is a list; expected a dict, as in a"),
            (lambda _: po.from_networkx(nx.DiGraph(), {}, links=3), "links is a int; expected a dict, as in a"),
            (lambda _: po.device_info(5), "unknown device of the catalogue 5"),
            (lambda _: po.import_file(None), "the path of a file is a NoneType"),
            (
                lambda p: check_solver("heft", p),
                "check_solver takes a Case, one of placeopt",
            ),
        ],
    )
    def test_other_functions(self, call: Callable[[po.Problem], object], match: str, result: po.Result) -> None:
        with pytest.raises(po.UsageError, match=match):
            call(result.problem)


class TestServingArguments:
    @pytest.mark.parametrize(
        "call",
        [
            po.solve_serving, po.replicated_serving, po.whatif_serving, po.cheapest_serving,
            lambda wrong: po.verify_serving(wrong, None), lambda wrong: po.replace_serving(wrong, wrong, ()),
            lambda wrong: po.export_serving(wrong, None, "vllm"), lambda wrong: po.simulate_serving(wrong, None),
        ],
    )  # fmt: skip
    def test_a_path_is_no_serving_problem(self, call: Callable[[Any], object]) -> None:
        with pytest.raises(po.UsageError, match="takes a Serving, got str; placeopt"):
            call("cluster.yaml")

    @pytest.mark.parametrize(
        "call",
        [
            lambda problem: po.verify_serving(problem, None), lambda problem: po.export_serving(problem, None, "vllm"),
            lambda problem: po.write_serving_plan("plan.json", problem, None),
        ],
    )  # fmt: skip
    def test_what_is_no_plan(self, call: Callable[[Any], object]) -> None:
        with pytest.raises(po.UsageError, match="takes a ServingPlan, got NoneType; a result has one as `plan`"):
            call(po.load_serving(SERVING))

    def test_no_time_limit(self) -> None:
        with pytest.raises(po.UsageError, match="time_limit is None; expected a number of seconds"):
            po.solve_serving(po.load_serving(SERVING), time_limit=None)  # type: ignore[arg-type]


def test_the_version() -> None:
    assert po.__version__ == version("placeopt")


class TestObjectives:
    def test_weights_are_exact(self) -> None:
        assert [po.Term("energy", weight).weight for weight in (2, 0.1, Fraction(1, 3))] == [
            2,
            Fraction(1, 10),
            Fraction(1, 3),
        ]
        assert str(po.Objective(((po.Term("makespan"), po.Term("energy", 0.5)),))) == "makespan + 0.5 energy"

    @pytest.mark.parametrize("weight", ["2", None, -1, float("nan")])
    def test_a_weight_is_a_number(self, weight: Any) -> None:
        with pytest.raises(po.UsageError, match=r"the weight of energy is .*; expected a number that is not negative"):
            po.Term("energy", weight)

    @pytest.mark.parametrize("levels", ["makespan", (po.Term("makespan"),), [["makespan"]], 3])
    def test_levels_hold_terms(self, levels: Any) -> None:
        with pytest.raises(po.UsageError, match=r"levels.* of the objective .*; expected a tuple of (levels|Terms)"):
            po.Objective(levels)

    def test_arrays_may_be_lists(self) -> None:
        problem = po.build_problem(
            task_names=["s", "t"], device_names=["d"], duration=[[1], [2]], edges=[(0, 1)], payload=[3], resolution=1
        )
        assert (po.solve(problem).makespan, problem.resolution) == (3, Fraction(1))
        with pytest.raises(po.UsageError, match=r"resolution is 0\.001; expected a positive number of seconds"):
            po.build_problem(task_names=["s"], device_names=["d"], duration=[[1]], resolution=0.001)  # type: ignore[arg-type]


class TestReprs:
    def test_results(self, result: po.Result) -> None:
        assert repr(result) == "<Result of heft on five-node: completed, makespan 14 s, gap 0.00%, feasible>"
        assert repr(result.problem) == "<Problem five-node: 5 tasks, 5 edges, 3 devices>"

    def test_studies(self, result: po.Result) -> None:
        assert repr(po.explain(FIVE)) == "<Explanation of five-node: feasible>"
        assert result.schedule is not None
        runs = po.simulate_noisy(result.problem, result.schedule.device, noise=0.1, runs=20, seed=0)
        assert re.fullmatch(r"<NoisyRuns: 20 runs, makespan [\d.]+ ticks on average, at most \d+>", repr(runs))
        assert repr(po.solver_info("heft")).startswith("<SolverInfo heft: ")

    def test_a_large_schedule_stays_short(self) -> None:
        schedule = po.Schedule(np.zeros(100_000, dtype=np.int64), np.arange(100_000))
        shown = "<Schedule of 100,000 tasks: device [0 0 0 ... 0 0 0], start [0 1 2 ... 99997 99998 99999]>"
        assert repr(schedule) == shown

    def test_every_answer_is_one_line(self, result: po.Result) -> None:
        problem, schedule = result.problem, result.schedule
        assert schedule is not None
        late = po.verify(problem, po.Schedule(schedule.device, np.zeros(5, dtype=np.int64)))
        chain = po.apply_passes(problem, ["fuse"])
        shown = {
            "<Schedule of 5 tasks: device [2 2 0 2 0], start [0 2 7 7 9]>": schedule,
            "<Plan of 5 tasks: objective 14, fingerprint None>": po.Plan(schedule, (14,), None),
            "<Report: feasible, objective 14, makespan 14>": po.verify(problem, schedule),
            f"<Report: {len(late.violations)} violations (overlap, precedence), objective 5, makespan 5>": late,
            "<Bound critical-path: 14>": po.bounds(problem)[0],
            "<Spec: 1 task, devices a>": po.Spec.model_validate(
                {"placeopt": 1, "devices": {"a": {}}, "tasks": {"s": {"time": 1}}}
            ),
            "<Transfers: 1; edge [0], start [3]>": po.Transfers(np.array([0]), np.array([3])),
            "<Imported two: 1 task, 2 notes>": po.Imported({"name": "two", "tasks": {"s": {}}}, ("a", "b")),
        }
        assert [repr(each) for each in shown.values()] == list(shown)
        assert str(late.violations[0]).startswith("overlap: ")
        for each in (chain, chain.applied, po.measure(problem, schedule), po.Clock(3), po.Answer(result.termination)):
            assert re.fullmatch(r"[^\n]{10,200}", repr(each))
        assert len(repr(po.Options(initial=schedule))) < 400
