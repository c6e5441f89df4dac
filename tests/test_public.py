"""The public names: the list in docs/api.md, what they look like, and what callers get wrong with them."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import placeopt as po

ROOT = Path(__file__).parents[1]
LIST = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
FIVE = ROOT / "problems" / "five-node.yaml"


def test_the_list_has_every_public_name_once() -> None:
    assert sorted(re.findall(r"^\| `po\.(\w+)` \|", LIST, flags=re.MULTILINE)) == po.__all__


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
        ("wrong", "right"), [("timelimit", "time_limit"), ("worker", "workers"), ("warmstart", None), ("rang", "range")]
    )
    def test_a_misspelt_argument_of_solve(self, wrong: str, right: str | None) -> None:
        hint = f"did you mean {right}" if right else "it has range, memory"
        with pytest.raises(po.UsageError, match=f'celeritas has no setting "{wrong}"; {hint}'):
            po.solve(po.load(FIVE), "celeritas", **{wrong: 1})


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
        import numpy as np

        schedule = po.Schedule(np.zeros(100_000, dtype=np.int64), np.arange(100_000))
        assert len(repr(schedule)) < 300
