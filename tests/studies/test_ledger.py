"""Ledgers as input: malicious lines, changed lines, and which of two contradicting lines is accepted."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from test_comparison import a_record, failed

import placeopt as po
from placeopt.cli.terminal.comparison import write_csv
from placeopt.errors import UsageError
from placeopt.studies.comparison.grids import as_html, as_text
from placeopt.studies.comparison.ledger import Ledger, contradiction, examine_ledger, read_ledger
from placeopt.studies.comparison.records import CHECKSUM, Record, checksum
from placeopt.studies.comparison.result import Comparison
from placeopt.views.page import comparison_page

PROBLEMS = Path(__file__).parents[2] / "problems"
FIVE = PROBLEMS / "five-node.yaml"


def data_of(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.to_json())
    return found


def sealed(data: dict[str, Any]) -> str:
    """A line with a checksum that fits."""
    return json.dumps(data | {CHECKSUM: checksum(data)})


def changed(path: str, value: Any) -> str:
    """The line of a record, with a checksum that fits, in which a value is another one: result.wall_time.solve."""
    data = data_of(a_record())
    inner = data
    *outer, last = path.split(".")
    for key in outer:
        inner = inner[key]
    inner[last] = value
    return sealed(data)


def unsealed(record: Record) -> str:
    data = data_of(record)
    del data[CHECKSUM]
    return json.dumps(data)


def written(folder: Path, *lines: str | Record) -> Path:
    path = folder / "l.jsonl"
    path.write_text("".join((line if isinstance(line, str) else line.to_json()) + "\n" for line in lines))
    return path


class TestFields:
    NUMBERS = (
        "slr", "wall", "time_limit", "result.objective", "result.bound", "result.resolution", "result.wall_time.solve",
    )  # fmt: skip
    WHOLE = ("seed", "threads", "peak_memory")

    @pytest.mark.parametrize("field", NUMBERS + WHOLE)
    @pytest.mark.parametrize("value", [10**400, -1, 1e200, 1e-200, True, "1", [], {}], ids=lambda value: str(value)[:9])
    def test_a_number_is_one_that_can_be_reckoned_with(self, field: str, value: Any) -> None:
        with pytest.raises(ValueError, match=rf"{field} is .{{1,100}}; expected "):
            Record.from_json(changed(field, value))

    @pytest.mark.parametrize(
        ("field", "value", "expected"),
        [
            ("peak_memory", 1.5, "a whole number"), ("seed", None, "a whole number"), ("wall", None, "seconds"),
            ("threads", 0, "a whole number from 1"), ("place", [0, 0, 0], "the numbers of a problem"),
            ("place", [0, True], "the numbers of a problem"), ("place", 0, "the numbers of a problem"),
            ("problem", None, "a text"), ("file", 1, "a text, or null"), ("settings", [], "an object"),
            ("status", "fine", "one of done, refused"), ("status", ["done"], "one of done"), ("progress", {}, "a list"),
            ("result.termination", "optimum", "one of optimal"), ("result.feasible", 1, "true or false, or null"),
            ("result.objective_levels", [10, 10**400], "numbers"), ("result.objective_levels", 10, "numbers"),
            ("result.violations", [{"rule": 1, "message": ""}], "a list of"), ("result.wall_time", None, "an object"),
            ("result.objective_name", 3, "a text"), ("result.bound_source", 3, "a text"),
            ("result.resolution", 0, "seconds, more"),
        ],
    )  # fmt: skip
    def test_each_is_checked(self, field: str, value: Any, expected: str) -> None:
        with pytest.raises(ValueError, match=f"{field} is .*; expected {expected}"):
            Record.from_json(changed(field, value))

    @pytest.mark.parametrize(
        "point",
        [[10**400, 1, 1], [1, 10**400, 1], [1, 1, -1], [None, 1, 1], ["1", 1, 1], [True, 1, 1], [1, 1], 1, None, {}],
        ids=lambda value: str(value)[:9],
    )
    def test_progress_is(self, point: Any) -> None:
        with pytest.raises(ValueError, match=r"progress holds .{1,100}; expected .seconds, incumbent, bound"):
            Record.from_json(changed("progress", [[1, 1, 1], point]))

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            (b'{"a": ' + b"1" * 5000 + b"}", "holds a number of thousands of digits"),
            (b'{"a": 1, "a": 2}', 'the key "a" occurs twice'),
            (b'{"settings": ' * 60 + b"1" + b"}" * 60, "nested too deeply"),
            (b'{"problem": "\\ud800"}', "are not characters"),
            (b"\xff", "codec can't decode"),
            (b"\x00", "Expecting value"),
            (b'{"a": Infinity}', "Infinity is not a JSON number"),
            (b"null", "expected an object, got NoneType"),
        ],
    )
    def test_so_is_the_line_itself(self, tmp_path: Path, line: bytes, why: str) -> None:
        path = tmp_path / "l.jsonl"
        path.write_bytes(a_record().to_json().encode() + b"\n" + line + b"\n")
        with pytest.raises(UsageError, match=f"l.jsonl:2: not a record of a run: .*{why}.*; delete the line"):
            read_ledger(path)

    def test_all_wrong_lines_are_reported_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"(?s):1: .*:2: .*:8: .*\nand 3 more lines; delete") as caught:
            read_ledger(written(tmp_path, *["{}"] * 11))
        assert len(str(caught.value).splitlines()) == 9

    @pytest.mark.parametrize("field", ["slr", "peak_memory", "result.wall_time.solve"])
    def test_commands_end_with_a_message(self, tmp_path: Path, field: str) -> None:
        path = written(tmp_path, changed(field, 10**400))
        for command in (("compare", FIVE, "-s", "heft", "--out", path, "--resume"), ("plot", path, "-o", "x.png")):
            done = run(*command)
            assert done.code == 2
            assert f"l.jsonl:1: not a record of a run: {field} is 1000000" in done.err

    @pytest.mark.parametrize("value", [0, 1e-100, 1e100, 2**62])
    def test_what_is_in_range_can_be_shown(self, tmp_path: Path, value: float) -> None:
        for field in self.NUMBERS:
            if value or field not in ("result.resolution", "result.objective"):
                data = json.loads(changed(field, value))
                if field == "result.objective":
                    data["result"] |= {"objective_levels": [value], "bound": None}
                found = Comparison.read(written(tmp_path, sealed(data), a_record(solver="t", value=7)))
                sheet = io.StringIO()
                write_csv(sheet, found.rows())
                texts = as_text(found), as_html(found), json.dumps(found.to_dict(), allow_nan=False), sheet.getvalue()
                assert all(texts)
                assert comparison_page(found)


class TestBelief:
    def test_a_line_that_was_changed_is_left_out(self, tmp_path: Path) -> None:
        honest = a_record(value=10)
        for old, new in (('"objective":10', '"objective":9'), ("[10]", "[9]"), ('"seed":0', '"seed":1')):
            path = written(tmp_path, a_record(solver="t").to_json().replace(old, new), honest)
            contents = examine_ledger(path)
            assert contents.records == (honest,)
            assert contents.notes == (f"{path}:1: left out: it was changed after it was written (see its checksum)",)

    def test_spaces_and_the_order_of_keys_are_no_change(self, tmp_path: Path) -> None:
        record = a_record(settings={"a": [0.1, 2**70, "ü\n"]}, progress=((0.1, 1 / 3, None),))
        loose = json.dumps(dict(reversed(data_of(record).items())), indent=None)
        assert read_ledger(written(tmp_path, loose)) == [record]

    @pytest.mark.parametrize(
        ("record", "why"),
        [
            (a_record(value=4, bound=5), "its objective 4 is below its own bound 5"),
            (a_record(value=10.0, bound=10.000001), "is below its own bound"),
            (a_record(violations=[{"rule": "memory", "message": ""}]), "its schedule is feasible and breaks rules"),
            (a_record(termination="infeasible"), "it has a schedule for a problem that it proves infeasible"),
            (a_record(levels=None), "it has an objective without a schedule, or a schedule without an objective"),
            (a_record(feasible=None), "it has an objective without a schedule"),
            (replace(a_record(), result=None), "its status is done, without a result"),
            (a_record(status="crashed"), "its status is crashed, with a result"),
        ],
    )
    def test_a_line_that_contradicts_itself_is_left_out(self, tmp_path: Path, record: Record, why: str) -> None:
        assert why in str(contradiction(record))
        honest = a_record(solver="t")
        for line in (record.to_json(), unsealed(record)):
            contents = examine_ledger(written(tmp_path, honest, line))
            assert contents.records == (honest,)
            assert contents.notes[0].startswith(f"{tmp_path / 'l.jsonl'}:2: left out: ")
            assert why in contents.notes[0]

    @pytest.mark.parametrize(
        "record",
        [
            a_record(), a_record(value=5), a_record(bound=None, bound_source=None), a_record(value=2**60, bound=2**60),
            a_record(levels=None, feasible=None), failed("crashed", "why"), failed("lost", ""),
            a_record(feasible=False, violations=[{"rule": "memory", "message": ""}], value=3),
            a_record(levels=None, feasible=None, bound=None, bound_source=None, termination="infeasible"),
        ],
    )  # fmt: skip
    def test_what_runs_come_to_is_no_contradiction(self, record: Record) -> None:
        assert contradiction(record) is None

    FORGED = a_record(solver="forged", value=1, bound=1)

    @pytest.mark.parametrize("seal", [Record.to_json, unsealed])
    @pytest.mark.parametrize("first", [True, False])
    def test_a_schedule_below_the_quick_bound_of_others_does_not_refute_them(
        self, tmp_path: Path, seal: Callable[[Record], str], first: bool
    ) -> None:
        honest = [a_record(solver=name, bound=5, bound_source="load") for name in "ab"]
        honest.append(a_record(solver="c", bound=10, bound_source="c"))
        lines = [seal(self.FORGED), *map(Record.to_json, honest)]
        found = Comparison.read(written(tmp_path, *(lines if first else [*lines[1:], lines[0]])))
        assert {row["solver"]: row["verdict"] for row in found.rows()} == dict.fromkeys("abc", "feasible")
        assert len(found.notes) == 1
        assert ": left out: its objective 1 is below the bound " in found.notes[0]
        assert found.to_dict()["notes"] == list(found.notes)

    def test_one_forged_bound_does_not_outweigh_the_others(self, tmp_path: Path) -> None:
        honest = [a_record(solver=name, bound=5, bound_source="load") for name in "ab"]
        forged = a_record(solver="z", levels=None, feasible=None, bound=10**6, bound_source="load")
        for line in (forged.to_json(), unsealed(forged)):
            found = Comparison.read(written(tmp_path, line, *honest))
            verdicts = {row["solver"]: row["verdict"] for row in found.rows()}
            assert (verdicts, found.notes) == ({"z": "refuted", "a": "feasible", "b": "feasible"}, ())

    def test_of_a_solvers_claim_and_a_verified_schedule_the_schedule_is_believed(self, tmp_path: Path) -> None:
        claim = a_record(solver="c", value=10, bound=10, bound_source="c", termination="optimal")
        better = a_record(solver="d", value=7)
        found = Comparison.read(written(tmp_path, claim, better))
        assert {row["solver"]: row["verdict"] for row in found.rows()} == {"c": "refuted", "d": "feasible"}
        assert Comparison((claim, better)).rows() == found.rows()  # as in a comparison that runs
        # Without a checksum, the schedule's line does not disprove one that has one.
        found = Comparison.read(written(tmp_path, claim, unsealed(better)))
        assert [row["solver"] for row in found.rows()] == ["c"]
        assert found.notes[0].endswith(":2: left out: its objective 7 is below the bound 10 of line 1 (c)")
        # And among lines of older versions, which have none, all is as it was.
        found = Comparison.read(written(tmp_path, unsealed(claim), unsealed(better)))
        assert {row["solver"]: row["verdict"] for row in found.rows()} == {"c": "refuted", "d": "feasible"}

    def test_other_problems_say_nothing(self, tmp_path: Path) -> None:
        lines = a_record(bound=5), replace(self.FORGED, fingerprint="g")
        assert examine_ledger(written(tmp_path, *lines)) == (lines, ())

    def test_to_resume_reckons_the_bound_and_repeats_the_run(self, tmp_path: Path) -> None:
        out = tmp_path / "l.jsonl"
        honest = po.compare([FIVE], "heft,etf", ledger=out).records
        result = dict(honest[0].result or {})
        result |= {"objective": 1, "objective_levels": [1], "bound": 1, "makespan": 1}
        out.write_text(replace(honest[0], result=result).to_json() + "\n")  # no other line contradicts it
        assert Comparison.read(out).notes == ()
        stray = run("compare", FIVE, "-s", "heft", "etf")
        assert "etf is a solver, not a file of a problem; separate solvers by commas: --solvers heft,etf" in stray.err
        done = run("compare", FIVE, "-s", "heft,etf", "--out", out, "--resume", "--json")
        note = f"note: {out}:1: left out: its objective 1 is below the bound 14 of its problem (critical-path)\n"
        assert (done.code, done.err) == (0, note)
        assert [row["objective"] for row in json.loads(done.out)["runs"]] == [14, 14]
        with Ledger(out, resume=True) as ledger:
            assert len(ledger.records) == 2  # the line is still there, and is left out by the others now
            assert len(ledger.notes) == 1
        pytest.importorskip("matplotlib")
        done = run("plot", out, "-o", tmp_path / "x.png")
        assert (done.code, "l.jsonl:1: left out: its objective 1 is below the bound 14" in done.err) == (0, True)

    def test_many_notes_are_counted(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        forged = [replace(self.FORGED, seed=seed) for seed in range(25)]
        lines = [a_record(solver="s", seed=seed, bound=5) for seed in range(30)]
        done = run("plot", written(tmp_path, *lines, *forged), "-o", tmp_path / "x.png")
        assert done.err.count("left out") == 21
        assert done.err.endswith("note: 5 more lines are left out\n")


class TestCsv:
    @pytest.mark.parametrize(
        "start",
        [
            *("=", "+", "-", "@", "\t", "\r", "\n", " =", " \t=", "\u00a0+", "\u3000=", "\x00=", "\ufeff=", "\u200b@"),
            *("\uff1d", "\uff0b", "\uff0d", " \uff20"),  # full-width
        ],
    )
    def test_no_cell_is_a_formula(self, start: str) -> None:
        text = f"{start}cmd|' /C calc'!A0"
        record = replace(failed("crashed", text, problem=text, file=text, solver=text), fingerprint=text)
        sheet = io.StringIO(newline="")
        write_csv(sheet, Comparison((record,)).rows())
        (row,) = csv.DictReader(io.StringIO(sheet.getvalue(), newline=""))
        for column in ("problem", "file", "fingerprint", "solver", "message"):
            assert row[column] == "'" + text.replace("\r", "\n")

    def test_numbers_and_other_texts_stay(self) -> None:
        sheet = io.StringIO()
        write_csv(sheet, Comparison((a_record(problem="a=b", slr=-1.5, seed=-3),)).rows())
        (row,) = csv.DictReader(io.StringIO(sheet.getvalue()))
        assert (row["problem"], row["slr"], row["seed"]) == ("a=b", "-1.5", "-3")
