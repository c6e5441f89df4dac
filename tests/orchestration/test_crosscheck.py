"""False claims of solvers: each is an internal error with a dump that reproduces it."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml
from brute_force import small_problem
from commandline import run
from reducible_problems import reducible_problem

import placeopt as po
from placeopt.io.formats.documents import to_json
from placeopt.model.arrays import Int
from placeopt.model.documents import decimal, problem_document
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options, Settings, Termination, registry

TEXT = """placeopt: 1
name: pair
devices: {d: {count: 2}, slow: {}}
tasks: {a: {time: {d: 2, slow: 3}}, b: {time: 2, after: a}}
"""


def ints(*values: int) -> Int:
    return np.array(values, dtype=np.int64)


GOOD, BAD, LONG = (po.Schedule(ints(d, d), ints(0, start)) for d, start in ((0, 2), (0, 1), (2, 3)))


class LiarSettings(Settings):
    """Settings of the liar."""

    depth: int = 1
    """How deep."""


class Liar:
    """A solver declared exact that returns the answer a test sets."""

    name: ClassVar[str] = "liar"
    info: ClassVar[Info] = Info(
        "a liar", "optimal", "O(1)", exact=True, combined=True, warm_start=True, metrics=po.ALL_METRICS
    )
    settings_type: ClassVar[type[Settings]] = LiarSettings
    answer: ClassVar[Answer | Exception]

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Caller(Liar):
    """A solver that calls what it is given."""

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:
        options.should_stop()
        return super().solve(problem, options, settings)


@pytest.fixture(autouse=True)
def liar_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = dict(registry._entry_points()) | {"liar": EntryPoint("liar", f"{__name__}:Liar", registry.GROUP)}
    monkeypatch.setattr(registry, "_entry_points", lambda: points)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    path = tmp_path / "pair.yaml"
    path.write_text(TEXT)
    return path


def dump_of(answer: Answer | po.InternalError, problem: Problem, match: str, **options: Any) -> dict[str, Any]:
    """The dump of the error for this answer."""
    Liar.answer = answer
    with pytest.raises(po.InternalError, match=match) as raised:
        po.solve(problem, "liar", **{"workers": 1, "passes": ()} | options)
    assert raised.value.dump is not None
    return json.loads(to_json(raised.value.dump))


def test_dump_reproduces_a_strict_run(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pair.parent)
    dump = dump_of(Answer(Termination.INFEASIBLE), po.load(pair), "is infeasible", strict=True, bound_time=2)
    disagreement = dump["x-disagreement"]
    assert (disagreement["strict"], disagreement["bound_time"]) == (True, 2.0)
    words = disagreement["reproduce"].split()
    assert words[words.index("--bound-time") :] == ["--bound-time", "2", "--strict", "--no-passes"]
    dumped = pair.with_name("dump.json")
    dumped.write_text(json.dumps(dump))
    again = run(*(str(dumped) if word == "THIS_FILE" else word for word in words[1:]))
    assert again.code == 70


FALSE_CLAIMS = {
    "infeasible, and heft finds a schedule": (
        Answer(Termination.INFEASIBLE),
        "liar claims that the problem is infeasible, and the verifier accepts a schedule of heft",
    ),
    "infeasible, with a schedule": (
        Answer(Termination.INFEASIBLE, GOOD),
        "liar claims that the problem is infeasible, and the verifier accepts a schedule of liar",
    ),
    "a bound above its schedule": (
        Answer(Termination.TIME_LIMIT, GOOD, bound=5),
        "liar claims the bound 5, and the verifier accepts a schedule with 4",
    ),
    "optimal with a lower bound": (
        Answer(Termination.OPTIMAL, GOOD, bound=3),
        "liar claims to be optimal with the bound 3, and the verifier finds 4",
    ),
    "optimal, and heft finds a better schedule": (
        Answer(Termination.OPTIMAL, LONG, bound=5),
        "liar claims to be optimal with 5, and the verifier accepts a schedule of heft with 4",
    ),
    "a bound above the schedule of heft": (
        Answer(Termination.TIME_LIMIT, LONG, bound=5),
        "liar claims the bound 5, and the verifier accepts a schedule of heft with 4",
    ),
    "optimal without a bound": (
        Answer(Termination.OPTIMAL, GOOD),
        "liar claims to be optimal with the bound None, and the verifier finds 4",
    ),
    "optimal with a schedule that the verifier rejects": (
        Answer(Termination.OPTIMAL, po.Schedule(ints(5, 5), ints(0, 2)), bound=4),
        "liar claims to be optimal, and the verifier rejects its schedule: a has device 5",
    ),
    "optimal without a schedule": (
        Answer(Termination.OPTIMAL, bound=4),
        "liar claims to be optimal without a schedule",
    ),
    "a NumPy integer as a bound": (
        Answer(Termination.TIME_LIMIT, GOOD, bound=np.int64(4)),  # type: ignore[arg-type]
        "liar states the bound np.int64(4); expected a Python int, or a Fraction for a weighted sum",
    ),
    "a float as a bound": (
        Answer(Termination.OPTIMAL, GOOD, bound=4.0),  # type: ignore[arg-type]
        "liar states the bound 4.0; expected a Python int, or a Fraction for a weighted sum",
    ),
    "an error that the solver raises": (po.InternalError("two parts of liar disagree"), "two parts of liar disagree"),
}


@pytest.mark.parametrize("claim", list(FALSE_CLAIMS))
def test_false_claims_are_internal_errors_with_reproduction(claim: str, pair: Path) -> None:
    answer, message = FALSE_CLAIMS[claim]
    problem = po.load(pair)
    dump = dump_of(answer, problem, re.escape(message), seed=7, time_limit=3, gap_limit=0.5, initial=GOOD, depth=4)
    disagreement = dump["x-disagreement"]
    assert message in disagreement["message"]
    assert "seed 7" in disagreement["message"]
    assert disagreement["fingerprint"] == problem.fingerprint() == po.compile(dump).fingerprint()
    assert disagreement["reproduce"] == (
        "placeopt solve THIS_FILE --solver liar --seed 7 --workers 1 --time-limit 3 --gap 0.5 --set depth=4 --no-passes"
    )
    assert (disagreement["seed"], disagreement["time_limit"], disagreement["gap_limit"], disagreement["workers"]) == (
        7,
        3.0,
        0.5,
        1,
    )
    assert disagreement["settings"] == {"depth": 4}
    assert (disagreement["strict"], disagreement["bound_time"]) == (False, None)
    assert disagreement["versions"]["placeopt"]
    assert disagreement["initial"]["tasks"]["b"] == {"device": "d0", "start": 2}


def test_dump_contains_the_refuting_schedule(pair: Path) -> None:
    dump = dump_of(Answer(Termination.INFEASIBLE), po.load(pair), "heft")
    assert dump["x-disagreement"]["plan"]["tasks"] == {
        "a": {"device": "d0", "start": 0},
        "b": {"device": "d0", "start": 2},
    }


def test_dump_contains_the_passes(pair: Path) -> None:
    dump = dump_of(Answer(Termination.INFEASIBLE), po.load(pair), "infeasible", passes=["zero-time", "relays"])
    assert dump["x-disagreement"]["passes"] == ["zero-time", "relays"]
    assert dump["x-disagreement"]["reproduce"].endswith("--pass zero-time --pass relays")


def test_infeasible_schedule_refutes_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    # The problem is infeasible, because one of the tasks ends at tick 4; re-timing cannot change that.
    monkeypatch.setattr("placeopt.orchestration.pipeline.prove_infeasible", lambda _: None)
    problem = po.compile(
        {"placeopt": 1, "resolution": "1 s", "devices": {"d": {}}, "tasks": {"a": {"time": 2}, "b": {"time": 2}}}
    )
    tight = replace(problem, deadline=ints(3, 3))
    Liar.answer = Answer(Termination.INFEASIBLE, BAD)
    result = po.solve(tight, "liar", passes=())
    assert result.termination is Termination.INFEASIBLE
    assert result.feasible is False


def test_quick_proof_is_checked_against_heuristics(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from placeopt.bounding.quick import Infeasibility

    monkeypatch.setattr("placeopt.orchestration.pipeline.prove_infeasible", lambda _: Infeasibility("because"))
    with pytest.raises(po.InternalError, match="a quick proof claims that the problem is infeasible"):
        po.solve(po.load(pair), "heft")


def test_invalid_schedule_after_passes_is_reported_not_raised() -> None:
    Liar.answer = Answer(Termination.TIME_LIMIT, po.Schedule(ints(5), ints(0)))
    problem = po.compile({"placeopt": 1, "devices": {"d": {}}, "tasks": {"a": {"time": 2, "colocate": "x"},
                          "z": {"time": 0, "after": "a", "colocate": "x"}}})  # fmt: skip
    result = po.solve(problem, "liar")
    assert result.passes is not None
    assert result.passes.names == ("zero-time",)
    assert (result.feasible, result.schedule) == (False, None)
    assert [violation.rule.value for violation in result.violations] == ["placement"]


def test_claim_of_a_second_level_is_compared_too() -> None:
    document = {**po.compile(yaml.safe_load(TEXT)).to_document(), "objective": ["devices", "makespan"]}
    Liar.answer = Answer(Termination.OPTIMAL, LONG, bound=1)
    message = r"liar claims to be optimal with 1, 5, and the verifier accepts a schedule of \w+ with 1, 4 "
    with pytest.raises(po.SolverError, match=message):
        po.solve(po.compile(document), "liar", passes=())


def test_claims_of_solvers_of_placeopt_cost_no_heuristic(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placeopt.orchestration.crosscheck.heuristic_schedules", lambda *_: pytest.fail("was run"))
    assert po.solve(po.load(pair), "brute-force").termination is Termination.OPTIMAL


def test_what_is_not_a_claim_of_the_solver_is_a_bug_of_placeopt(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from placeopt.bounding.quick import Infeasibility

    monkeypatch.setattr("placeopt.orchestration.pipeline.prove_infeasible", lambda _: Infeasibility("because"))
    with pytest.raises(po.InternalError, match=r"; please report this with the problem$") as raised:
        po.solve(po.load(pair), "liar")
    assert type(raised.value) is po.InternalError


class TestExceptions:
    def test_an_exception_is_the_cause_of_a_solver_error(self, pair: Path) -> None:
        Liar.answer = ValueError("boom")
        with pytest.raises(po.SolverError, match=r"^liar: ValueError: boom \(test_crosscheck\.py:\d+\)$") as raised:
            po.solve(po.load(pair), "liar")
        assert raised.value.__cause__ is Liar.answer
        assert raised.value.origin == f"the class {__name__}.Liar"
        again = pickle.loads(pickle.dumps(raised.value))
        assert (str(again), again.origin, again.dump) == (str(raised.value), raised.value.origin, None)

    @pytest.mark.parametrize("error", [po.UsageError("no"), MemoryError()])
    def test_errors_of_placeopt_and_of_memory_are_raised_unchanged(self, error: Exception, pair: Path) -> None:
        Liar.answer = error
        with pytest.raises(type(error)) as raised:
            po.solve(po.load(pair), "liar")
        assert raised.value is error

    def test_an_exception_of_a_callback_is_raised_unchanged(self, pair: Path) -> None:
        def stop() -> bool:
            raise ValueError("of the caller")

        with pytest.raises(ValueError, match=r"^of the caller$"):
            po.solve(po.load(pair), Caller(), should_stop=stop)

    def test_the_command_line_names_the_package(self, pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Point(EntryPoint):
            dist = SimpleNamespace(name="lying-solvers")

        point = Point("liar", f"{__name__}:Liar", registry.GROUP)
        monkeypatch.setattr(registry, "_entry_points", lambda: {"liar": point})
        Liar.answer = ValueError("boom")
        done = run("solve", pair, "--solver", "liar")
        assert done.code == 70
        first, second = done.err.splitlines()
        assert re.fullmatch(r"placeopt: liar: ValueError: boom \(test_crosscheck\.py:\d+\)", first)
        assert second == (
            "placeopt: this is an error of the package lying-solvers, not of placeopt; "
            "`placeopt.solve` in Python shows the traceback"
        )

    def test_the_service_does_not_call_it_a_bug_of_placeopt(self) -> None:
        from placeopt.cli.service.queue import _reason

        assert _reason(po.SolverError("liar: ValueError: boom", origin="the package lies")) == "liar: ValueError: boom"
        assert _reason(po.InternalError("two bounds")) == "internal error, a bug of placeopt: two bounds"

    def test_any_other_exception_is_an_internal_error(self) -> None:
        program = "from placeopt import cli\ncli.run = lambda: 1 // 0\ncli.main()"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 70
        assert "ZeroDivisionError" in done.stderr
        assert done.stderr.endswith("placeopt: internal error; please report this with the problem\n")


class TestCommandLine:
    def test_dump_is_saved_and_can_be_solved(self, pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Liar.answer = Answer(Termination.INFEASIBLE)
        done = run("solve", pair, "--solver", "liar", "--workers", 1)
        name = f"placeopt-disagreement-{po.load(pair).fingerprint()}.json"
        assert done.code == 70
        assert "placeopt: liar claims that the problem is infeasible" in done.err
        last = done.err.splitlines()[-1]
        report = f"please report this to the authors of the class {__name__}.Liar with the file {name}"
        assert f"{report}, which reproduces the error: placeopt solve {name}" in last
        again = run(*last.partition(": placeopt ")[2].split())
        assert again.code == 70
        assert "liar claims that the problem is infeasible" in again.err
        assert json.loads(run("solve", tmp_path / name, "--json").out)["objective"] == 4

    def test_dump_is_saved_elsewhere_if_the_folder_is_not_writable(
        self, pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        elsewhere = tmp_path / "tmp"
        elsewhere.mkdir()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
        name = f"placeopt-disagreement-{po.load(pair).fingerprint()}.json"
        (tmp_path / name).mkdir()
        Liar.answer = Answer(Termination.OPTIMAL, GOOD, bound=1)
        done = run("solve", pair, "--solver", "liar")
        assert done.code == 70
        assert str(elsewhere / name) in done.err
        (elsewhere / name).unlink()
        (elsewhere / name).mkdir()
        done = run("solve", pair, "--solver", "liar")
        assert done.code == 70
        assert f"please report this to the authors of the class {__name__}.Liar; {name} could not be writ" in done.err


ARRAYS = (
    "duration", "feasible", "resident", "output", "scratch", "release", "deadline", "capacity", "edge_source",
    "edge_target", "payload", "shared", "group", "separation", "order",
)  # fmt: skip


class TestDocuments:
    @pytest.mark.parametrize("block", range(4))
    def test_random_problems_round_trip(self, block: int) -> None:
        compared = 0
        for seed in range(40 * block, 40 * block + 40):
            rng = np.random.default_rng(seed)
            problem = small_problem(rng, times=seed % 2 == 0) if seed % 3 else reducible_problem(rng)
            try:
                first = po.compile(json.loads(to_json(problem_document(problem))))
            except po.SpecError:  # the compiler rejects obviously infeasible problems
                continue
            compared += 1
            for name in ARRAYS:
                assert np.array_equal(getattr(first, name), getattr(problem, name)), name
            assert (first.contention, first.memory_model) == (problem.contention, problem.memory_model)
            apart = ~np.eye(problem.n_devices, dtype=np.bool_)
            assert np.array_equal(first.latency[apart], problem.latency[apart])
            for name in ("byte_ticks", "byte_energy"):
                ours, theirs = ((getattr(p, f"{name}_num")[apart], getattr(p, f"{name}_den")[apart])
                                for p in (first, problem))  # fmt: skip
                assert np.array_equal(ours[0] * theirs[1], theirs[0] * ours[1])
            assert np.array_equal(first.power_num * problem.power_den, problem.power_num * first.power_den)
            again = po.compile(problem_document(first))
            assert again.fingerprint() == first.fingerprint()
        assert compared > 20

    @pytest.mark.parametrize("name", ["heft-10", "inception-tight", "sensor-fusion"])
    def test_problem_files_round_trip(self, name: str) -> None:
        problem = po.load(Path(__file__).parents[2] / "problems" / f"{name}.yaml")
        assert po.compile(problem_document(problem)).fingerprint() == problem.fingerprint()

    @pytest.mark.parametrize(
        ("value", "text"),
        [((1, 1), "1"), ((5, 2), "2.5"), ((1, 10**9), "1e-9"), ((10**12, 1), "1000000000000"), ((0, 1), "0")],
    )
    def test_decimals(self, value: tuple[int, int], text: str) -> None:
        assert decimal(Fraction(*value)) == text
        assert decimal(Fraction(1, 3)) == "3." + "3" * 59 + "e-1"
