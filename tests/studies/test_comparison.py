"""Comparisons: runs that crash, hang or make false claims are isolated; the ledger survives; the tables are right."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rogues
from commandline import run
from rich.console import Console

import placeopt as po
from placeopt.cli.terminal.comparison import Bars, print_comparison, write_csv, write_latex, write_markdown
from placeopt.errors import SpecError, UsageError
from placeopt.protocol import registry
from placeopt.protocol.remote import pack, unpack
from placeopt.studies.comparison.execution import Observer, execute
from placeopt.studies.comparison.grids import grids
from placeopt.studies.comparison.isolation import _Run, lost_record
from placeopt.studies.comparison.jobs import Job, read_choices
from placeopt.studies.comparison.ledger import Ledger, read_ledger
from placeopt.studies.comparison.records import Record
from placeopt.studies.comparison.result import Comparison
from placeopt.views.page.comparisons import comparison_data

PROBLEMS = Path(__file__).parents[2] / "problems"
HEFT_10 = PROBLEMS / "heft-10.yaml"
FIVE = PROBLEMS / "five-node.yaml"

LIMIT, GRACE = 0.5, 2.0
"""Seconds that a run has which never ends; all others may take a minute, so that no busy machine is too slow."""

TIMES = ("seconds", "wall", "process_memory")
"""Fields of a row that differ from run to run."""

FULL = """
placeopt: 1
name: full
devices: {a: {memory: 4}, b: {memory: 100}}
links: {default: {bandwidth: 1 GB/s}}
tasks:
  t0: {time: 3, memory: 1}
  t1: {time: 3, memory: 1}
  t2: {time: 2, memory: 1}
  t3: {time: 2, memory: 1}
  t4: {time: 2, memory: 1}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The rogues are installed, for this process and all that it starts."""
    folder = tmp_path_factory.mktemp("site")
    rogues.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        registry._entry_points.cache_clear()
        yield folder
    registry._entry_points.cache_clear()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("problems") / "full.yaml"
    path.write_text(FULL)
    return path


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledger") / "results.jsonl"


@pytest.fixture(scope="module")
def rough(site: Path, full: Path, notes: Path, ledger: Path) -> Comparison:  # noqa: ARG001
    """Every rogue and a decent solver on a problem of five tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROGUE_NOTES", str(notes))
        others = ("rogue-hang", "rogue-slow", "rogue-random", "rogue-stop")
        names = [name for name in rogues.NAMES if name not in others]
        ending = po.compare([full], ["heft", *names], time_limit=60, ledger=ledger)
        hanging = po.compare([full], "rogue-hang", time_limit=LIMIT, grace=GRACE, ledger=ledger, resume=True)
    records = sorted((*ending.records, *hanging.records), key=lambda record: record.solver)
    return Comparison(tuple(records))


def by_solver(comparison: Comparison) -> dict[str, dict[str, Any]]:
    return {row["solver"]: row for row in comparison.rows()}


def timeless(comparison: Comparison) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in TIMES} for row in comparison.rows()]


def a_record(**changed: Any) -> Record:
    """A run that has ended well, but for what is changed; `value`, `bound`, `feasible`, ... are those of its result."""
    result: dict[str, Any] = {
        "objective_name": "makespan", "resolution": 0.001, "feasible": True, "violations": [], "bound": 5,
        "bound_source": "load", "termination": "completed", "message": "", "wall_time": {"solve": 0.25},
    }  # fmt: skip
    result |= {key: changed.pop(key) for key in tuple(changed) if key in result and key != "message"}
    levels = changed.pop("levels", (changed.pop("value", 10),))
    result |= {"objective": levels and levels[0], "objective_levels": levels and list(levels)}
    facts: dict[str, Any] = {
        "problem": "p", "file": None, "fingerprint": "f", "solver": "s", "settings": {}, "seed": 0, "time_limit": 1.0,
        "status": "done", "message": "", "result": result, "progress": (), "slr": 1.5, "peak_memory": 2048, "wall": 1.0,
    }  # fmt: skip
    return Record(**facts | {"problem": "p"} | changed)


def a_job(**changed: Any) -> Job:
    facts: dict[str, Any] = {
        "problem": "p", "file": None, "fingerprint": "f", "solver": "s", "settings": {}, "seed": 0, "time_limit": 1.0,
        "grace": 1.0, "tag": "t/0", "version": "", "packed": b"",
    }  # fmt: skip
    return Job(**facts | changed)


def test_a_run_keeps_its_outcome_without_its_certificate() -> None:
    record = a_record()
    outcome = {"status": "done", "message": "", "result": record.result, "slr": None, "peak_memory": None}
    for certificate in (None, {"complete": True}):
        state = _Run(a_job(certify=1.0), None, begun=0.0)
        state.read(json.dumps({"outcome": outcome}).encode() + b"\n")
        assert state.certifies
        assert state.overdue(0.0) is None
        state.ended = -1e9
        assert state.overdue(0.0) == "no certificate after 1 s and a grace of 1 s"
        state.read(json.dumps({"certificate": certificate}).encode() + b"\n")
        assert not state.certifies
        assert state.outcome is not None
        assert state.outcome["result"]["certificate"] == certificate


def test_certificates_of_runs(tmp_path: Path) -> None:
    ledger = tmp_path / "runs.jsonl"
    found = po.compare(HEFT_10, ["heft", "cp-sat"], certify=10, ledger=ledger)
    assert [row["certificate"] for row in found.rows()] == ["checked", "checked"]
    assert [record.result["certificate"]["bound"] for record in found.records] == [63, 73]
    assert Comparison.read(ledger).rows() == found.rows()
    with pytest.raises(UsageError, match="certify"):
        po.compare(HEFT_10, "heft", certify=0)


def failed(status: str, message: str, **changed: Any) -> Record:
    return a_record(status=status, message=message, result=None, slr=None, peak_memory=None, **changed)


class TestRecords:
    def test_a_record_is_a_line(self) -> None:
        record = a_record(progress=((0.5, 10, None), (1.0, 10, 7.5)), settings={"a": 1}, message="two\nlines: ü\u2028")
        line = record.to_json()
        assert "\n" not in line
        assert Record.from_json(line) == record

    def test_what_no_json_holds_becomes_something_it_does(self) -> None:
        record = a_record(settings={"nan": float("nan"), "path": Path("x"), "tuple": (1, 2.5), "yes": True})
        read = Record.from_json(record.to_json())
        assert read.settings == {"nan": None, "path": "x", "tuple": [1, 2.5], "yes": True}

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("", "Expecting value"),
            ("[1]", "expected an object, got list"),
            ("{}", "no key problem, file, fingerprint"),
            (a_record().to_json()[:-20], "delimiter|Unterminated|property name"),
            (a_record().to_json().replace('"done"', '"fine"'), 'status is "fine"; expected one of done, refused'),
            (a_record().to_json().replace('"seed":0', '"seed":"0"'), 'seed is "0"; expected a whole number'),
            (
                a_record().to_json().replace('"progress":[]', '"progress":[[1]]'),
                "progress holds .*; expected .seconds, inc",
            ),
            (a_record().to_json().replace('"bound":5', '"bound":NaN'), "NaN is not a JSON number"),
            (a_record().to_json().replace('"bound":5', '"bound":"5"'), 'result.bound is "5"; expected a number'),
            (a_record().to_json().replace('"bound":5', '"band":5'), "no key result.bound"),
            (
                a_record().to_json().replace('_levels":[10]', '_levels":["x"]'),
                "objective_levels is .*; expected numbers",
            ),
            (a_record().to_json().replace('_levels":[10]', '_levels":[]'), "objective_levels is .*; expected numbers"),
            (a_record().to_json().replace('"resolution":0.001', '"resolution":0'), "resolution is 0; expected seconds"),
            (
                a_record().to_json().replace('"violations":[]', '"violations":[1]'),
                "violations is .1.; expected a list of objects",
            ),
            (a_record().to_json().replace('"place":[0,0]', '"place":[0]'), "place is .0.; expected the numbers"),
            ('{"a":' * 20_000, "nested too deeply"),
        ],
    )
    def test_other_lines_are_refused(self, line: str, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            Record.from_json(line)


class TestJobs:
    def test_a_problem_survives_packing_and_stays_read_only(self) -> None:
        problem = po.load(HEFT_10)
        again = unpack(pack(problem))
        assert again.fingerprint() == problem.fingerprint()
        with pytest.raises(ValueError, match="read-only"):
            again.duration[0, 0] = 1

    def test_solvers_and_their_settings_from_a_text(self) -> None:
        assert read_choices("heft, celeritas:range=100,m-etf") == [
            ("heft", {}), ("celeritas", {"range": 100}), ("m-etf", {}),
        ]  # fmt: skip
        assert read_choices([("cp-sat", {"deterministic": "true"}), "heft"]) == [
            ("cp-sat", {"deterministic": True}), ("heft", {}),
        ]  # fmt: skip
        names = [name for name, _ in read_choices("all")]
        assert names == registry.solver_names()
        with_settings = read_choices("all,celeritas:range=100")
        assert with_settings[-1] == ("celeritas", {"range": 100})
        assert len(with_settings) == len(names) + 1

    @pytest.mark.parametrize(
        ("solvers", "why"),
        [
            ("hefd", 'unknown solver "hefd"; did you mean heft'),
            ("", 'is not a solver'),
            ("range=100", 'is not a solver; expected NAME or NAME:KEY=VALUE'),
            ("celeritas:range", "is not a setting; expected NAME:KEY=VALUE"),
            ("celeritas:range=1,range=2", "range of celeritas is set twice"),
            ("celeritas:rage=1", 'celeritas has no setting "rage"; did you mean range'),
            ("heft,heft", "heft is listed twice"),
            ([], "needs at least one solver"),
        ],
    )  # fmt: skip
    def test_mistakes_in_solvers_are_reported(self, solvers: Any, why: str) -> None:
        with pytest.raises(UsageError, match=why):
            read_choices(solvers)

    def test_mistakes_in_arguments_are_reported(self, tmp_path: Path) -> None:
        for arguments, why in (
            ({"problems": []}, "needs at least one problem"),
            ({"problems": [HEFT_10, str(HEFT_10)]}, r"heft-10.yaml and .*heft-10.yaml are the same problem"),
            ({"problems": [3]}, "expects problems or paths of problem files, got int"),
            ({"seeds": 0}, "seeds is 0; expected a whole number from 1"),
            ({"seeds": [1, 1]}, r"seeds is \[1, 1\]; expected at least one, without repetition"),
            ({"workers": 0}, "workers is 0"),
            ({"threads": 0}, "threads is 0; expected a whole number from 1 to 1,000"),
            ({"time_limit": -1}, "time_limit is -1"),
            ({"resume": True}, "add --out FILE .in Python, resume=True needs ledger=FILE"),
            ({"workers": 1, "dask": "tcp://nowhere:1"}, "workers, executor and dask exclude each other"),
            ({"ledger": tmp_path}, "cannot write .*: Is a directory"),
        ):
            with pytest.raises(UsageError, match=why):
                po.compare(**{"problems": [HEFT_10], "solvers": "heft"} | arguments)  # type: ignore[arg-type]

    def test_a_wrong_problem_is_reported_before_anything_runs(self, tmp_path: Path) -> None:
        wrong = tmp_path / "wrong.yaml"
        wrong.write_text("placeopt: 1\ntaks: {}\n")
        with pytest.raises(SpecError, match="taks"):
            po.compare([HEFT_10, wrong], "heft", ledger=tmp_path / "out.jsonl")
        assert not (tmp_path / "out.jsonl").exists()


class TestRogues:
    def test_each_costs_its_own_run_alone(self, rough: Comparison) -> None:
        assert {row["solver"]: row["verdict"] for row in rough.rows()} == {
            "heft": "feasible",
            "rogue-bound": "contradicted",
            "rogue-claims": "contradicted",
            "rogue-daemon": "crashed",
            "rogue-exit": "crashed",
            "rogue-forger": "feasible",
            "rogue-hang": "killed",
            "rogue-meddler": "crashed",
            "rogue-memory": "crashed",
            "rogue-missing": "crashed",
            "rogue-noise": "feasible",
            "rogue-odd": "crashed",
            "rogue-orphans": "feasible",
            "rogue-overfull": "infeasible",
            "rogue-picky": "refused",
            "rogue-segfault": "crashed",
            "rogue-stats": "crashed",
        }

    @pytest.mark.parametrize(
        ("solver", "message"),
        [
            ("rogue-bound", "claims to be optimal with 12, and the verifier accepts a schedule of heft with 7"),
            ("rogue-claims", "rogue-claims claims the bound 1000000000, and the verifier accepts a schedule with 12"),
            ("rogue-exit", "its process ended with exit code 7; it printed: about to leave"),
            ("rogue-hang", "killed after its limit of 0.5 s and a grace of 2 s"),
            ("rogue-daemon", "its process ended with exit code 3"),
            ("rogue-forger", r"lone \udc80"),
            ("rogue-meddler", "rogue-meddler changed the problem"),
            ("rogue-memory", "out of memory"),
            ("rogue-missing", "cannot be loaded: No module named 'nowhere_to_be_found'"),
            ("rogue-odd", "SilentError (rogues.py:"),
            ("rogue-orphans", "5 left, 0 unburied"),
            ("rogue-overfull", "memory: a needs 5 bytes"),
            ("rogue-picky", "does not support objective makespan"),
            ("rogue-segfault", "its process died of SIGSEGV, at File"),
            ("rogue-stats", "RecursionError"),
        ],
    )
    def test_says_why(self, rough: Comparison, solver: str, message: str) -> None:
        assert message in by_solver(rough)[solver]["message"]

    def test_the_wrong_bound_counts_for_nobody(self, rough: Comparison) -> None:
        (standing,) = rough.standings.values()
        assert (standing.best, standing.bound) == (7, 6)  # 3 + 2 + 2 next to 3 + 2; 12 ticks shared by two devices
        row = by_solver(rough)["heft"]
        assert (row["gap"], row["ratio"]) == (1 / 7, 1.0)

    def test_what_a_hang_had_started_is_gone_and_what_it_told_is_kept(self, rough: Comparison, notes: Path) -> None:
        (record,) = (record for record in rough.records if record.solver == "rogue-hang")
        assert record.progress == ((0.25, 1000, 1),)
        (sleeper,) = rogues.noted(notes, "hang")
        assert not rogues.alive(sleeper)

    @pytest.mark.skipif(sys.platform != "linux", reason="others do not tell whose such a process is")
    def test_what_was_started_elsewhere_is_gone_too(self, rough: Comparison, notes: Path) -> None:
        assert len(rough.records) > 0
        (sleeper,) = rogues.noted(notes, "daemon")
        assert not rogues.alive(sleeper)

    def test_what_is_printed_and_odd_statistics_do_no_harm(self, rough: Comparison) -> None:
        (record,) = (record for record in rough.records if record.solver == "rogue-noise")
        assert record.result is not None
        assert record.result["stats"] == {"nan": None, "array": [0, 1, 2], "set": "{1}", "3": 0.5}

    def test_the_ledger_has_it_all(self, rough: Comparison, ledger: Path) -> None:
        assert sorted(map(Record.to_json, read_ledger(ledger))) == sorted(map(Record.to_json, rough.records))
        read = Comparison.read(ledger)
        assert sorted(read.rows(), key=lambda row: row["solver"]) == rough.rows()
        assert read.solvers[0] == "heft"  # the first that was asked for

    def test_the_table_at_80_and_140_columns(self, rough: Comparison) -> None:
        for width in (80, 140):
            text = printed(rough, width)
            lines = text.splitlines()
            assert all(len(line) <= width for line in lines)
            assert lines[0] == "full: best 7 ns (heft), bound 6 ns (load), gap 14.29%"
            wide = width == 140
            rest = "SLR time RAM dev mem verdict" if wide else "time verdict SLR RAM"
            assert lines[1].split() == ["solver", "makespan", "gap", "ratio", *rest.split()]
            assert wide or any(line.split() == ["solver", "dev", "mem"] for line in lines)  # below: no word breaks
            cells: dict[str, list[str]] = {}
            for line in lines[2:]:
                cells.setdefault(line.split()[0], line.split())
            assert cells["heft"][1:5] == ["7", "ns", "14.29%", "1.000"]
            verdict = -1 if wide else -4
            assert cells["heft"][verdict] == "feasible"
            assert "contradicted" in cells["rogue-bound"]
            assert cells["rogue-hang"][1:4] == ["-", "-", "-"]
            assert "killed" in cells["rogue-hang"]
            joined = " ".join(text.split())
            assert "killed: rogue-hang: after its limit of 0.5 s and a grace of 2 s" in joined
            assert "refused: rogue-picky: does not support objective makespan" in joined
            assert "solvers that support" not in joined
            assert "infeasible: rogue-overfull: memory: a needs 5 bytes" in joined
            assert "rogue-picky" not in cells  # a row would be empty

    def test_csv_and_json_and_markdown(self, rough: Comparison) -> None:
        out = io.StringIO()
        write_csv(out, rough.rows())
        rows = list(csv.DictReader(io.StringIO(out.getvalue())))
        assert [row["solver"] for row in rows] == [row["solver"] for row in rough.rows()]
        assert (rows[0]["objective"], rows[0]["best_bound"], rows[0]["verdict"]) == ("7", "6", "feasible")
        assert rows[4]["objective"] == ""

        data = json.loads(json.dumps(rough.to_dict(), allow_nan=False))
        assert data["runs"] == rough.rows()
        assert data["problems"][0]["best_found"] == 7
        assert [row["solver"] for row in data["summary"]] == list(rough.ranking)
        assert data["profile"]["heft"] == [[1.0, 1.0]]

        out = io.StringIO()
        write_markdown(out, grids(rough))
        lines = out.getvalue().splitlines()
        assert lines[0] == "### full: best 7 ns (heft), bound 6 ns (load), gap 14.29%"
        assert lines[2] == "| solver | makespan | gap | ratio | SLR | time | RAM | dev mem | verdict |"
        assert lines[3] == "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
        assert lines[4].startswith("| heft | 7 ns | 14.29% | 1.000 | 2.333 |")
        assert any(line.startswith("- crashed: rogue-exit: its process ended") for line in lines)


def printed(comparison: Comparison, width: int) -> str:
    out = io.StringIO()
    print_comparison(Console(file=out, width=width, force_terminal=True, color_system=None), grids(comparison))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


class TestTables:
    def test_rows_follow_the_order_of_jobs_and_entries_take_the_median_seed(self) -> None:
        runs = [
            a_record(seed=seed, value=value, slr=value / 4, peak_memory=value)
            for seed, value in enumerate((30, 10, 20, 16))
        ]
        runs.append(failed("killed", "killed after all", seed=4))
        comparison = Comparison((*runs, a_record(solver="t", value=8, bound=6, bound_source="t")))
        assert [(row["solver"], row["seed"]) for row in comparison.rows()] == [*(("s", k) for k in range(5)), ("t", 0)]
        assert [row["ratio"] for row in comparison.rows()] == [3.75, 1.25, 2.5, 2.0, None, 1.0]
        entry, _ = comparison.entries["p"]
        assert (entry.runs, entry.feasible, entry.objective, entry.verdict) == (5, 4, 16, "feasible")
        assert (entry.spread, entry.ratio, entry.gap) == (20 / 16, 2.0, 10 / 16)
        assert (entry.slr, entry.seconds, entry.peak_memory) == (4.0, 0.25, 30)
        assert entry.message == "1 of 5 runs killed: killed after all"

    def test_ratios_have_three_decimals_whatever_their_size(self) -> None:
        runs = [a_record(solver=name, value=value) for name, value in (("s", 100), ("t", 7941), ("u", 123_456))]
        lines = printed(Comparison(tuple(runs)), 80).splitlines()
        assert [line.split()[4] for line in lines[2:]] == ["1.000", "79.410", "1,234.560"]

    def test_printed_with_the_spread_over_seeds(self) -> None:
        runs = [a_record(seed=seed, value=value) for seed, value in enumerate((10, 12, 11))]
        text = printed(Comparison((*runs, failed("crashed", "boom", seed=3))), 80)
        headers = ["solver", "makespan", "spread", "gap", "ratio", "SLR", "time", "RAM", "dev", "mem", "verdict"]
        assert text.splitlines()[1].split() == headers
        assert text.splitlines()[2].split()[1:5] == ["11", "ms", "18.18%", "54.55%"]
        assert text.splitlines()[2].endswith("3 of 4")
        assert text.splitlines()[3] == "  s: 1 of 4 runs crashed: boom"

    def test_memory_of_the_process_and_of_devices(self) -> None:
        """A problem whose tasks state no memory has no column for it; the RAM of older runs is unknown."""
        record = a_record(peak_memory=0)
        assert record.result is not None
        runs = [replace(record, seed=k, result={**record.result, "process_memory": 2**28 * k}) for k in (1, 2)]
        comparison = Comparison((*runs, replace(record, solver="old")))
        assert [row["process_memory"] for row in comparison.rows()] == [2**28, 2**29, None]
        _, headers, new, old = printed(comparison, 80).splitlines()[:4]
        assert headers.split()[-3:] == ["time", "RAM", "verdict"]
        assert (new.split()[-3:-1], old.split()[-2]) == (["512", "MiB"], "-")

    def test_the_weakest_certificate_of_all_seeds(self) -> None:
        """A run without a bound has nothing to certify; without certificates, the table has no column for them."""
        record = a_record()
        assert record.result is not None
        proofs = [{"complete": True}, {"complete": False}, None]
        runs = [
            replace(record, seed=k, result={**record.result, "certificate": proof}) for k, proof in enumerate(proofs)
        ]
        nothing = replace(record, solver="t", result={**record.result, "bound": None})
        assert [row["certificate"] for row in Comparison((*runs, nothing)).rows()] == [
            "checked", "trusted", "none", None,
        ]  # fmt: skip
        for number, word in ((1, "checked"), (2, "trusted"), (3, "none")):
            assert Comparison(tuple(runs[:number])).entries["p"][0].certificate == word
        _, headers, first, second = printed(Comparison((*runs[:2], nothing)), 80).splitlines()[:4]
        assert headers.split()[-2:] == ["proof", "verdict"]
        assert (first.split()[-2], second.split()[-2]) == ("trusted", "-")
        assert "proof" not in printed(Comparison((runs[2], nothing)), 80)

    def test_means_are_over_the_problems_that_all_solved(self) -> None:
        def two(problem: str, s: int | None, t: int | None) -> list[Record]:
            where = {"problem": problem, "fingerprint": problem}
            return [
                a_record(solver=solver, value=value, **where)
                if value
                else a_record(
                    solver=solver, feasible=False, violations=[{"rule": "memory", "message": "full"}], **where
                )
                for solver, value in (("s", s), ("t", t))
            ]

        nothing = [failed("refused", "no", solver="u", problem=name, fingerprint=name) for name in "abcd"]
        comparison = Comparison(
            (*two("a", 10, 20), *two("b", 40, 10), *two("c", 10, None), *two("d", None, None), *nothing)
        )
        assert comparison.common() == ("a", "b")
        t, s, u = comparison.summary()  # the best ratio first
        assert (s["solved"], s["wins"], s["infeasible"], s["refused"]) == (3, 2, 1, 0)
        assert (t["solved"], t["wins"], t["infeasible"], t["refused"]) == (2, 1, 2, 0)
        assert (u["solved"], u["wins"], u["failed"], u["refused"], u["ratio"], u["seconds"]) == (0, 0, 0, 4, None, None)
        assert s["ratio"] == pytest.approx(2.0)  # of 1 and 4
        assert t["ratio"] == pytest.approx(2**0.5)  # of 2 and 1
        assert s["ratio_solved"] == pytest.approx(4 ** (1 / 3))
        assert comparison.profile() == {
            "s": [(1.0, pytest.approx(2 / 3)), (4.0, 1.0)],
            "t": [(1.0, pytest.approx(1 / 3)), (2.0, pytest.approx(2 / 3))],
            "u": [],
        }  # fmt: skip
        text = " ".join(printed(comparison, 80).split())
        assert (
            "over the 2 of 4 problems that every solver solved (except those that solved less than half: u): a, b"
            in text
        )
        assert "d: no feasible schedule, bound 5 ms (load)" in text

    def test_means_do_not_wait_for_a_solver_of_few_problems(self) -> None:
        records = [
            a_record(solver=solver, value=value, problem=name, fingerprint=name)
            for solver, values in (("s", (10, 10, 10)), ("t", (20, 40, None)), ("u", (None, None, 5)))
            for name, value in zip("abc", values, strict=True)
            if value
        ]
        comparison = Comparison(tuple(sorted(records, key=lambda record: record.problem)))
        assert (comparison.steady(), comparison.common()) == (("s", "t"), ("a", "b"))
        assert [row["ratio"] for row in comparison.summary()] == [1.0, pytest.approx(8**0.5), None]
        assert [row["ratio_solved"] for row in comparison.summary()][2] == 1.0

    def test_a_ledger_keeps_the_order_of_the_matrix(self, tmp_path: Path) -> None:
        def runs(problem: int, *solvers: tuple[str, int]) -> list[Record]:
            name = "ab"[problem]
            return [
                a_record(solver=solver, problem=name, fingerprint=name, place=(problem, place), seed=seed)
                for seed in (1, 0)
                for solver, place in solvers
            ]

        # Runs end in any order; the comparison of t and s went on with u alone.
        written = [*runs(1, ("s", 1), ("t", 0)), *runs(0, ("s", 1), ("t", 0)), *runs(0, ("u", 0))]
        path = tmp_path / "out.jsonl"
        path.write_text("".join(f"{record.to_json()}\n" for record in written))
        found = Comparison.read(path)
        assert [(record.problem, record.solver, record.seed) for record in found.records] == [
            *(("a", solver, seed) for solver in "tus" for seed in (0, 1)),
            *(("b", solver, seed) for solver in "ts" for seed in (0, 1)),
        ]
        assert found.standings["a"].best_solver == "t"  # as the comparison had it, of those with the same value
        # Lines of older versions have no place and no checksum: those that came first come first.
        path.write_text(
            "".join(re.sub(r',"place":\[.,.\]|,"checksum":"\w*"', "", record.to_json()) + "\n" for record in written)
        )
        assert [record.solver for record in Comparison.read(path).records] == list("ssttssttuu")

    def test_one_order_everywhere(self) -> None:
        """The least ratio first, of equal ones who solved more; without a ratio last, by what was solved, then own."""
        values = {
            "late": (11, 10, 10, 10), "same": (10, 10, 10, None), "best": (10, 10, 10, 10),
            "one": (None, None, None, 20), "none": (None,) * 4, "able": (None, None, None, 10),
        }  # fmt: skip
        comparison = Comparison(
            tuple(
                a_record(solver=solver, value=row[k], problem=name, fingerprint=name)
                if row[k]
                else failed("crashed", "boom", solver=solver, problem=name, fingerprint=name)
                for k, name in enumerate("abcd")
                for solver, row in values.items()
            )
        )
        order = ("best", "same", "late", "able", "one", "none")
        assert comparison.ranking == order
        assert [row["solver"] for row in comparison.summary()] == list(order)
        assert tuple(comparison.profile()) == order
        assert [tuple(row[0] for row in grid.rows) for grid in grids(comparison)[-2:]] == [order, order]

    def test_lexicographic_ties_are_no_wins(self) -> None:
        records = a_record(levels=(10, 2)), a_record(solver="t", levels=(10, 3))
        comparison = Comparison(
            tuple(
                replace(record, result=record.result | {"objective_name": "makespan, then energy"})
                for record in records
            )
        )  # type: ignore[operator]
        assert [row["wins"] for row in comparison.summary()] == [1, 0]
        assert [row["ratio"] for row in comparison.summary()] == [1.0, 1.0]
        lines = printed(comparison, 80).splitlines()
        assert lines[1].split()[1:3] == ["makespan", "energy"]
        assert lines[2].split()[:4] == ["s", "10", "ms", "2e-09"]
        assert lines[-1] == "  gap and ratio are of the first level, makespan"

    def test_the_best_of_several_levels_is_the_least_of_all(self) -> None:
        named = {"objective_name": "makespan, then price"}
        records = (a_record(levels=(10, 3), bound=10), a_record(solver="t", levels=(10, 2), bound=10))
        first, second = (replace(each, result=each.result | named) for each in records)  # type: ignore[operator]
        comparison = Comparison((first, second))
        assert comparison.ranking == ("t", "s")
        assert [row["objective_levels"] for row in comparison.rows()] == [[10, 3], [10, 2]]
        assert [row["best_levels"] for row in comparison.rows()] == [[10, 2], [10, 2]]
        title = printed(comparison, 200).splitlines()[0]
        assert title == "p: best 10 ms, then 2e-09 (t), bound 10 ms (load), first level proved optimal"
        assert comparison_data(comparison)["problems"][0]["known"] == "first level proved optimal"
        proved = replace(second, result=second.result | {"termination": "optimal"})  # type: ignore[operator]
        assert printed(Comparison((first, proved)), 200).splitlines()[0].endswith(", proved optimal")
        frame = comparison.to_frame()
        assert frame["objective_levels"].tolist() == [[10, 3], [10, 2]]
        out = io.StringIO()
        write_csv(out, comparison.rows())
        assert '"[10, 3]"' in out.getvalue()

    def test_a_best_of_nothing_at_all(self) -> None:
        comparison = Comparison((a_record(value=0, bound=0), a_record(solver="t", value=3, bound=0)))
        assert [(row["ratio"], row["gap"]) for row in comparison.rows()] == [(1.0, 0.0), (None, 1.0)]
        assert [row["ratio"] for row in comparison.summary()] == [1.0, None]

    def test_a_proof_that_there_is_no_schedule(self) -> None:
        proof = a_record(termination="infeasible", feasible=None, levels=None, bound=None, message="d is full")
        comparison = Comparison((proof, failed("crashed", "boom", solver="t")))
        assert printed(comparison, 80).splitlines()[0] == "p: proved to have no schedule"
        assert comparison.rows()[0]["verdict"] == "no solution"
        refuted = Comparison((proof, a_record(solver="t")))
        assert refuted.rows()[0]["verdict"] == "refuted"
        assert refuted.rows()[0]["message"] == "claims that no schedule exists; t found one"

    def test_two_problems_of_one_name(self) -> None:
        comparison = Comparison((a_record(fingerprint="f1"), a_record(fingerprint="f2")))
        assert list(comparison.by_problem) == ["p (f1)", "p (f2)"]

    def test_names_that_markdown_would_take_for_its_own(self) -> None:
        out = io.StringIO()
        write_markdown(out, grids(Comparison((a_record(problem="a|b_*", settings={"x": "<i>"}),))))
        assert r"### a\|b\_\*: best 10 ms" in out.getvalue()
        assert "| s:x=&lt;i> |" in out.getvalue()
        out = io.StringIO()
        write_markdown(out, grids(Comparison((a_record(problem="`a` [x](y) ~~b~~ $c$ &lt;"),))))
        assert r"### \`a\` \[x\](y) \~\~b\~\~ \$c\$ &amp;lt;: best 10 ms" in out.getvalue()

    def test_names_that_latex_would_take_for_its_own(self) -> None:
        out = io.StringIO()
        write_latex(out, grids(Comparison((a_record(solver=r"a_b\ {50%} <~^", problem="x"),))))
        assert r"a\_b\textbackslash{} \{50\%\} $<$\textasciitilde{}\textasciicircum{} & 10 ms" in out.getvalue()
        assert out.getvalue().splitlines()[-1] == r"\end{tabular}"

    def test_rows_state_whether_a_run_is_repeatable(self) -> None:
        older, record = a_record(solver="s"), a_record(solver="t")
        assert record.result is not None
        known = replace(record, result={**record.result, "repeatable": True})
        assert [row["repeatable"] for row in Comparison((older, known)).rows()] == [None, True]
        broken = replace(record, result={**record.result, "repeatable": 1})
        with pytest.raises(ValueError, match=r"result\.repeatable is 1; expected true or false, or null"):
            Record.from_json(broken.to_json())

    def test_the_line_about_the_means_names_few_problems(self) -> None:
        records = [
            a_record(solver=solver, problem=f"p{k}", fingerprint=f"p{k}")
            for k in range(9)
            for solver in "st"
            if (k, solver) != (8, "t")
        ]
        told = "that every solver solved: p0, p1, p2, p3 and 4 more"
        assert f"over the 8 of 9 problems {told}\n" in str(Comparison(tuple(records)))
        whole = str(Comparison(tuple(record for record in records if record.problem != "p8")))
        assert "are over all 8 problems, which every solver solved\n" in whole

    def test_nothing_to_show(self) -> None:
        comparison = Comparison(())
        assert (comparison.rows(), comparison.summary(), comparison.profile(), comparison.common()) == ([], [], {}, ())
        assert printed(comparison, 80) == ""
        out = io.StringIO()
        write_csv(out, comparison.rows())
        assert out.getvalue() == "problem\n"


class TestLedger:
    def test_a_torn_last_line_is_dropped_and_written_over(self, tmp_path: Path) -> None:
        path = tmp_path / "out.jsonl"
        first, second = a_record(seed=1), a_record(seed=2)
        for cut in (1, 20, len(second.to_json())):  # the last: all but the line's end
            path.write_text(first.to_json() + "\n" + second.to_json()[:cut])
            assert read_ledger(path) == [first]
            with Ledger(path, resume=True) as ledger:
                assert ledger.records == (first,)
                assert ledger.dropped == cut
                ledger.append(second)
            assert read_ledger(path) == [first, second]

    def test_a_line_in_the_middle_is_no_such_thing(self, tmp_path: Path) -> None:
        path = tmp_path / "out.jsonl"
        path.write_text(a_record().to_json() + "\n" + '{"problem": 1\n' + a_record().to_json() + "\n")
        with pytest.raises(UsageError, match=r"out.jsonl:2: not a record of a run: .*; delete the line"):
            Ledger(path, resume=True)
        with pytest.raises(UsageError, match=r"cannot read .*: no such file"):
            read_ledger(tmp_path / "none.jsonl")

    def test_nothing_is_overwritten_and_nobody_else_may_write(self, tmp_path: Path) -> None:
        path = tmp_path / "out.jsonl"
        with Ledger(path, resume=False) as ledger:
            ledger.append(a_record())
            with pytest.raises(UsageError, match="another comparison is writing"):
                Ledger(path, resume=True)
        with pytest.raises(UsageError, match="exists; --resume"):
            Ledger(path, resume=False)
        with Ledger(path, resume=True):
            pass

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_a_full_disk_is_reported(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot write /dev/full: it is not a regular file"):
            Ledger("/dev/full", resume=True)
        with Ledger(tmp_path / "out.jsonl", resume=True) as ledger, Path("/dev/full").open("wb") as full:
            os.dup2(full.fileno(), ledger._descriptor)
            with pytest.raises(UsageError, match=r"cannot write .*out.jsonl: No space"):
                ledger.append(a_record())


def start(site: Path, out: Path, *arguments: object, notes: Path | None = None) -> subprocess.Popen[str]:
    """`placeopt compare` in another process."""
    tests = str(Path(rogues.__file__).parent)
    environment = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{tests}", "ROGUE_NOTES": str(notes or "")}
    command = [sys.executable, "-m", "placeopt", "compare", *map(str, arguments), "--out", str(out)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(true: Callable[[], object]) -> None:
    """Wait for something."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.05)


class TestResume:
    ARGUMENTS = (HEFT_10, FIVE, "--solvers", "heft,rogue-slow", "--workers", 1, "--time-limit", "20s")

    def test_after_kill_9_the_same_table(self, site: Path, tmp_path: Path) -> None:
        out, notes = tmp_path / "out.jsonl", tmp_path / "notes"
        notes.mkdir()
        killed = start(site, out, *self.ARGUMENTS, notes=notes)
        until(lambda: rogues.noted(notes, "slow"))  # in the midst of the second run
        killed.kill()
        killed.communicate()
        (orphan,) = rogues.noted(notes, "slow")
        until(lambda: not rogues.alive(orphan))
        before = out.read_bytes()
        assert 1 <= before.count(b"\n") < 4
        out.write_bytes(before + b'{"problem":"torn')  # as a kill in the midst of writing would leave it

        resumed = start(site, out, *self.ARGUMENTS, "--resume")
        _, messages = resumed.communicate(timeout=60)
        assert resumed.returncode == 0
        assert f"note: the last line of {out} was incomplete and has been dropped" in messages
        assert out.read_bytes().startswith(before)
        assert b"torn" not in out.read_bytes()
        records = read_ledger(out)
        assert len({record.key for record in records}) == len(records) == 4

        # Nothing is left to do: the table comes from the ledger, regardless of the order of its lines.
        arguments = (*self.ARGUMENTS, "--out", out, "--resume")
        table = run("compare", *arguments).out
        lines = out.read_text().splitlines(keepends=True)
        random.Random(1).shuffle(lines)
        out.write_text("".join(lines))
        assert run("compare", *arguments).out == table
        assert out.read_text() == "".join(lines)

        # It equals the table of an uninterrupted comparison, except for times and memory of the process.
        whole = po.compare([HEFT_10, FIVE], "heft,rogue-slow", time_limit=20.0)
        again = po.compare([HEFT_10, FIVE], "heft,rogue-slow", time_limit=20.0, ledger=out, resume=True)
        assert [{**row, "file": Path(row["file"])} for row in timeless(whole)] == [
            {**row, "file": Path(row["file"])} for row in timeless(again)
        ]

    @pytest.mark.skipif(sys.platform != "linux", reason="whether a process lives is read from /proc")
    def test_after_kill_9_not_even_a_run_that_stopped_itself_is_left(self, site: Path, tmp_path: Path) -> None:
        killed = start(
            site, tmp_path / "out.jsonl", FIVE, "--solvers", "rogue-stop", "--time-limit", "none", notes=tmp_path
        )
        until(lambda: rogues.noted(tmp_path, "stop"))
        killed.kill()
        killed.communicate()
        (orphan,) = rogues.noted(tmp_path, "stop")
        until(lambda: not rogues.alive(orphan))

    def test_sigterm_kills_the_runs_and_prints_what_there_is(self, site: Path, tmp_path: Path) -> None:
        out, notes = tmp_path / "out.jsonl", tmp_path / "notes"
        notes.mkdir()
        arguments = (FIVE, "--solvers", "heft,rogue-hang,m-etf", "--workers", 1, "--time-limit", "none")
        stopped = start(site, out, *arguments, notes=notes)
        until(lambda: rogues.noted(notes, "hang"))
        stopped.send_signal(signal.SIGTERM)
        table, messages = stopped.communicate(timeout=60)
        assert stopped.returncode == 143
        assert table.startswith("five-node: best 14 s (heft)")
        assert "stopped after 1 of 3 runs; --resume runs the others" in messages
        assert [record.solver for record in read_ledger(out)] == ["heft"]
        (sleeper,) = rogues.noted(notes, "hang")
        assert not rogues.alive(sleeper)

    def test_an_interrupt_in_a_notebook_leaves_nothing_running(
        self, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Impatient(Observer):
            def tick(self, done: int) -> None:  # noqa: ARG002
                if rogues.noted(tmp_path, "hang"):
                    raise KeyboardInterrupt

        monkeypatch.setenv("ROGUE_NOTES", str(tmp_path))
        assert site.exists()
        with pytest.raises(KeyboardInterrupt):
            po.compare([FIVE], "rogue-hang", time_limit=None, observer=Impatient())
        (sleeper,) = rogues.noted(tmp_path, "hang")
        assert not rogues.alive(sleeper)

    def test_another_limit_or_seed_is_another_run_and_lost_ones_are_repeated(self, tmp_path: Path) -> None:
        out = tmp_path / "out.jsonl"
        first = po.compare([FIVE], "heft", ledger=out).records[0]
        with Ledger(out, resume=True) as ledger:
            ledger.append(replace(first, solver="m-etf", status="lost", result=None))
        again = po.compare([FIVE], "heft,m-etf", seeds=[0, 3], ledger=out, resume=True)
        assert [(record.solver, record.seed, record.status) for record in again.records] == [
            ("heft", 0, "done"), ("heft", 3, "done"), ("m-etf", 0, "done"), ("m-etf", 3, "done"),
        ]  # fmt: skip
        assert again.records[0] == replace(first, file=str(FIVE))
        assert len(read_ledger(out)) == 5
        assert Comparison.read(out).records[2] == again.records[2]  # the last one counts


class Unsteady(Executor):
    """Runs at once, in the order of last come first served; the worker of some dies, a few times."""

    def __init__(self, deaths: dict[str, int]) -> None:
        self.deaths = deaths
        self.given: list[str] = []

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        (job,) = arguments
        self.given.append(job.solver)
        if self.deaths.get(job.solver, 0):
            self.deaths[job.solver] -= 1
            future.set_exception(BrokenExecutor("gone"))
        elif job.solver == "olb":
            raise RuntimeError("cannot schedule new futures after shutdown")
        else:
            future.set_result(function(*arguments, **named))
        return future


class TestExecutors:
    def test_runs_of_dead_workers_are_repeated_and_lost_in_the_end(self, tmp_path: Path) -> None:
        executor, out = Unsteady({"heft": 2, "m-etf": 3}), tmp_path / "out.jsonl"
        comparison = po.compare([FIVE], "heft,m-etf,olb", executor=executor, ledger=out)
        assert executor.given == ["heft", "m-etf", "olb", *["m-etf", "heft"] * 2] or sorted(executor.given) == sorted(
            [*["heft"] * 3, *["m-etf"] * 3, "olb"]
        )
        rows = by_solver(comparison)
        assert rows["heft"]["verdict"] == "feasible"
        assert (rows["m-etf"]["verdict"], rows["olb"]["verdict"]) == ("lost", "lost")
        assert rows["m-etf"]["message"] == "its worker failed 3 times: BrokenExecutor: gone"
        assert rows["olb"]["message"] == "no worker accepts it: cannot schedule new futures after shutdown"
        assert len(read_ledger(out)) == 3

    def test_processes_in_any_order_give_the_same_comparison(self) -> None:
        wanted: dict[str, Any] = {"solvers": "heft,m-etf"}
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            there = po.compare([po.load(FIVE)], executor=pool, **wanted)
        here = po.compare([po.load(FIVE)], workers=1, **wanted)
        assert timeless(there) == timeless(here)
        assert [(row["solver"], row["seed"]) for row in here.rows()] == [
            ("heft", 0), ("m-etf", 0),
        ]  # fmt: skip

    def test_no_problem_is_handed_out_before_its_turn(self) -> None:
        jobs = [a_job(fingerprint=f"{k}") for k in range(5)]
        most = 0

        class Counting(Executor):
            def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
                nonlocal most
                future: Future[Any] = Future()
                open_.append(future)
                most = max(most, sum(not each.done() for each in open_))
                threading.Timer(0.02, future.set_result, (lost_record(arguments[0], ""),)).start()
                return future

        open_: list[Future[Any]] = []
        found = execute(
            jobs, Counting(), in_flight=lambda: 2, on_records=None, observer=Observer(), should_stop=lambda: False
        )
        assert list(found) == [job.key for job in jobs] or sorted(found) == sorted(job.key for job in jobs)
        assert most == 2


class TestCommand:
    def test_tables_of_several_problems(self) -> None:
        done = run("compare", HEFT_10, FIVE, "--solvers", "heft,m-etf", "-s", "celeritas:range=100")
        assert (done.code, done.err) == (0, "")
        lines = done.out.splitlines()
        assert lines[0] == "heft-10: best 80 s (heft), bound 63 s (critical-path), gap 21.25%"
        assert "both problems" in lines
        assert any(line.split()[:2] == ["celeritas:range=100", "2/2"] for line in lines)
        assert any(line.startswith("performance profile") for line in lines)

    def test_json_csv_and_markdown_on_stdout(self, tmp_path: Path) -> None:
        arguments = ("compare", FIVE, "--solvers", "heft", "--out", tmp_path / "out.jsonl", "--resume")
        data = json.loads(run(*arguments, "--json").out)
        assert (data["expected"], data["runs"][0]["verdict"], data["runs"][0]["objective"]) == (1, "feasible", 14)
        assert run(*arguments, "--csv").out.splitlines()[1].startswith(f"five-node,{FIVE},")
        assert run(*arguments, "--markdown").out.startswith("### five-node: best 14 s (heft)")
        done = run(*arguments, "--csv", "--json")
        assert (done.code, done.err) == (
            2,
            "placeopt: --csv, --json, --markdown and --latex exclude each other: each prints on stdout\n",
        )
        rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv", "--summary").out)))
        assert [(row["solver"], row["solved"], row["ratio"]) for row in rows] == [("heft", "1", "1.0")]
        assert json.loads(run(*arguments, "--json", "--summary").out)[0]["wins"] == 1
        assert run(*arguments, "--summary").out.startswith("the problem\n")
        assert run(*arguments, "--latex").out.startswith("% five-node: best 14 s (heft)")
        assert run(*arguments, "--latex", "--summary").out.splitlines()[:4] == [
            "% the problem",
            r"\begin{tabular}{lrrrrrrrr}",
            r"\toprule",
            r"solver & solved & ratio & gap & wins & infeas. & failed & refused & time \\",
        ]

    def test_exit_codes(self, site: Path, full: Path, tmp_path: Path) -> None:  # noqa: ARG002
        assert run("compare", full, "--solvers", "rogue-overfull").code == 1  # no feasible schedule at all
        for arguments, why in (
            ((full, "--solvers", "hefd"), 'unknown solver "hefd"'),
            ((tmp_path / "none.yaml",), "none.yaml"),
            ((full, "--time-limit", "soon"), "--time-limit"),
            ((full, "--resume"), "--resume needs the results of the earlier comparison: add --out FILE"),
        ):
            done = run("compare", *arguments)
            assert done.code == 2
            assert why in done.err
            assert "Traceback" not in done.err

    def test_bars_on_a_terminal_alone(self, site: Path) -> None:  # noqa: ARG002
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=100)
        with Bars(console) as bars:
            po.compare([FIVE], "heft,rogue-slow", workers=1, observer=bars)
        shown = out.getvalue()
        assert "2 of 2 runs" in shown
        assert "five-node, rogue-slow, seed 0" in shown
        silent = io.StringIO()
        with Bars(Console(file=silent)) as bars:
            bars.plan(1, 0, False)
            bars.tick(1)
        assert silent.getvalue() == ""


def test_seeds_are_reported_to_the_solver(site: Path) -> None:  # noqa: ARG001
    comparison = po.compare([HEFT_10], "rogue-random", seeds=3)
    values = [row["objective"] for row in comparison.rows()]
    assert len(set(values)) > 1
    again = po.solve(po.load(HEFT_10), "rogue-random", seed=2)
    assert values[2] == again.objective


def test_a_comparison_as_a_data_frame() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install 'placeopt[frames]'")
    large = 2**53 + 1  # no float is that number
    comparison = Comparison((a_record(value=large), failed("crashed", "m", solver="t")))
    frame = comparison.to_frame()
    assert list(frame.columns) == list(comparison.rows()[0])
    assert frame["solver"].tolist() == ["s", "t"]
    assert frame["objective"].tolist()[0] == large
    assert frame["objective"].isna().tolist() == [False, True]
    assert Comparison(()).to_frame().empty


def test_a_comparison_in_words_and_in_a_notebook() -> None:
    comparison = Comparison((a_record(), failed("refused", "<no>", solver="t")), expected=3)
    assert repr(comparison) == "<Comparison: 2 of 3 runs of 2 solvers on 1 problem>"
    assert repr(Comparison((a_record(),))) == "<Comparison: 1 run of 1 solver on 1 problem>"
    assert str(comparison).splitlines() == [
        "p: best 10 ms (s), bound 5 ms (load), gap 50.00%",
        "solver  makespan     gap  ratio    SLR    time  RAM  dev mem  verdict",
        "s          10 ms  50.00%  1.000  1.500  250 ms    -    2 KiB  feasible",
        "  refused: t: <no>",
    ]
    assert "<th" in comparison._repr_html_()
    assert "text-align:left'>feasible<" in comparison._repr_html_()  # the words at the end of a row, too
    assert "refused: t: &lt;no&gt;" in comparison._repr_html_()
