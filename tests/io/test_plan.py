"""Plan files: written, read back, edited by hand, and refused with the place of every mistake."""

from __future__ import annotations

import copy
import json
import os
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placeopt.errors import PlanError
from placeopt.io.document import parse_document
from placeopt.io.plan import Plan, plan_document, read_plan, write_plan
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers


def problem(**changes: Any) -> Problem:
    """n1 sends its output to n2 and n3, n2 sends to n4, on three devices."""
    arrays: dict[str, Any] = {
        "name": "four",
        "task_names": ("n1", "n2", "n3", "n 4.x"),
        "device_names": ("core0", "core1", "gpu"),
        "duration": [[1, 1, 1]] * 4,
        "edges": [(0, 1), (0, 2), (1, 3)],
        "payload": [5, 5, 7],
        "shared": [True, True, False],
        "contention": "port",
    }
    return build_problem(**(arrays | changes))


SCHEDULE = Schedule(np.array([0, 2, 2, 1]), np.array([0, 6, 7, 20]), Transfers(np.array([0, 2]), np.array([1, 9])))

PLAN = """\
{
 "placeopt_plan": 1,
 "problem": "four",
 "tasks": {
  "n1": {"device": "core0", "start": 0},
  "n2": {"device": "gpu", "start": 6},
  "n3": {"device": "gpu", "start": 7},
  "n 4.x": {"device": "core1", "start": 20}
 },
 "transfers": [
  {"producer": "n1", "consumer": "n3", "start": 1},
  {"producer": "n2", "consumer": "n 4.x", "start": 9}
 ]
}
"""


def rows(schedule: Schedule) -> tuple[list[int], list[int], list[tuple[int, int]] | None]:
    moves = schedule.transfers
    pairs = None if moves is None else list(zip(moves.edge.tolist(), moves.start.tolist(), strict=True))
    return schedule.device.tolist(), schedule.start.tolist(), pairs


def answer(folder: Path, text: str, *, name: str = "plan.json") -> Plan | list[str]:
    """The plan in a text, or every issue as `line:column: path: message`."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    try:
        return read_plan(path, problem())
    except PlanError as error:
        return [str(issue).removeprefix(f"{path}").removeprefix(":").lstrip() for issue in error.issues]


def edited(*edits: tuple[str, str]) -> str:
    text = PLAN
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class TestRoundTrip:
    def test_by_way_of_a_file(self, tmp_path: Path) -> None:
        written = plan_document(problem(), SCHEDULE, solver="heft", objective=[21, Fraction(7, 2)])
        assert list(written) == ["placeopt_plan", "problem", "fingerprint", "solver", "objective", "tasks", "transfers"]
        write_plan(tmp_path / "plan.json", written)
        plan = read_plan(tmp_path / "plan.json", problem())
        assert rows(plan.schedule) == rows(SCHEDULE)
        assert plan.claim == (21, Fraction(7, 2))
        assert plan.fingerprint == problem().fingerprint()
        again = plan_document(problem(), plan.schedule, solver="heft", objective=plan.claim)
        assert again == written

    def test_what_was_not_said_is_none(self, tmp_path: Path) -> None:
        free = problem(contention="none")
        written = plan_document(free, Schedule(SCHEDULE.device, SCHEDULE.start))
        assert list(written) == ["placeopt_plan", "problem", "fingerprint", "tasks"]
        plan = answer(tmp_path, json.dumps({"placeopt_plan": 1, "tasks": written["tasks"]}))
        assert isinstance(plan, Plan)
        assert (plan.claim, plan.fingerprint, plan.schedule.transfers) == (None, None, None)

    def test_as_yaml(self, tmp_path: Path) -> None:
        plan = answer(tmp_path, PLAN, name="plan.yaml")
        assert isinstance(plan, Plan)
        assert rows(plan.schedule) == rows(SCHEDULE)
        text = "placeopt_plan: 1\ntasks:\n" + "".join(
            f"  {name}: {{device: gpu, start: {start}}}\n" for start, name in enumerate(problem().task_names)
        )
        plan = answer(tmp_path, text, name="plan.yaml")
        assert isinstance(plan, Plan)
        assert rows(plan.schedule) == ([2] * 4, [0, 1, 2, 3], None)

    @pytest.mark.parametrize(
        ("value", "written"),
        [
            (15, 15), (0, 0), (2**70, 2**70), (Fraction(7, 2), 3.5), (Fraction(7, 10), 0.7),
            (Fraction(22, 7), "22/7"), (Fraction(10**20 + 1, 10), f"{10**20 + 1}/10"), (Fraction(-1, 3), "-1/3"),
        ],
    )  # fmt: skip
    def test_claims_are_exact(self, tmp_path: Path, value: Any, written: Any) -> None:
        document = plan_document(problem(), SCHEDULE, objective=[value])
        assert document["objective"] == [written]
        plan = answer(tmp_path, json.dumps(document))
        assert isinstance(plan, Plan)
        assert plan.claim == (value,)
        assert type(plan.claim[0]) is type(value)

    def test_names_of_all_sorts(self, tmp_path: Path) -> None:
        names = ("", " ", "ü/1", 'a"b', "007", "x\ny")
        odd = problem(task_names=names, device_names=("7", "no", "~"), duration=np.ones((6, 3)))
        schedule = Schedule(np.array([0, 1, 2, 0, 1, 2]), np.arange(6))
        write_plan(tmp_path / "plan.json", plan_document(odd, schedule))
        assert rows(read_plan(tmp_path / "plan.json", odd).schedule) == rows(schedule)


class TestEditsByHand:
    def test_other_devices_and_starts(self, tmp_path: Path) -> None:
        plan = answer(tmp_path, edited(('"gpu", "start": 6', '"core1", "start": -3'), ('"start": 20', '"start": 8.0')))
        assert isinstance(plan, Plan)
        assert rows(plan.schedule)[:2] == ([0, 1, 2, 1], [0, -3, 7, 8])  # the verifier judges the start

    def test_any_consumer_may_stand_for_a_shared_transfer(self, tmp_path: Path) -> None:
        plan = answer(tmp_path, PLAN)
        assert isinstance(plan, Plan)
        assert rows(plan.schedule)[2] == [(0, 1), (2, 9)]
        # n3 alone on core1: now the edge to n3 has a transfer of its own, and the one to n2 as well.
        plan = answer(tmp_path, edited(('"gpu", "start": 7', '"core1", "start": 7')))
        assert isinstance(plan, Plan)
        assert rows(plan.schedule)[2] == [(1, 1), (2, 9)]
        # n2 beside n 4.x: a transfer between them is left for the verifier to find.
        plan = answer(tmp_path, edited(('"core1", "start": 20', '"gpu", "start": 20')))
        assert isinstance(plan, Plan)
        assert rows(plan.schedule)[2] == [(0, 1), (2, 9)]

    @pytest.mark.parametrize(
        ("edits", "issues"),
        [
            ([('  "n2": {"device": "gpu", "start": 6},\n', "")],
             ["4:11: tasks: a task of the problem is missing: n2"]),
            ([('  "n2": {"device": "gpu", "start": 6},\n  "n3": {"device": "gpu", "start": 7},\n', "")],
             ["4:11: tasks: 2 tasks of the problem are missing: n2, n3"]),
            ([('"n2": {', '"N2": {')],
             ['6:3: tasks.N2: the problem has no task "N2"; did you mean n2?']),
            ([('"n2": {', '"zz": {')],
             ["4:11: tasks: a task of the problem is missing: n2",
              '6:3: tasks.zz: the problem has no task "zz"; known are n1, n2, n3, n 4.x']),
            ([('"four"', '"five"'), ('"n1": {', '"t1": {'), ('"n2": {', '"t2": {'), ('"n3": {', '"t3": {'),
              ('"n 4.x": {', '"t4": {')],
             ['4:11: tasks: this plan of "five" is for another problem: none of its tasks is among n1, n2, n3, n 4.x']),
            ([('"n1": {"device": "core0", "start": 0},', '"n1": {"device": "core0", "start": 0},\n  "n5": {"device": '
               '"gpu", "start": 1},')],
             ['6:3: tasks.n5: the problem has no task "n5"; known are n1, n2, n3, n 4.x']),
            ([('"n2": {', '"n1": {')],
             ["4:11: tasks: a task of the problem is missing: n2",
              '6:3: tasks.n1: duplicate name "n1", first given on line 5']),
            ([('"core0"', '"core2"'), ('"gpu", "start": 6', '"tpu", "start": 6')],
             ['5:20: tasks.n1.device: the problem has no device "core2"; did you mean core1?',
              '6:20: tasks.n2.device: the problem has no device "tpu"; did you mean gpu?']),
            ([('"core0"', "null"), ('"gpu", "start": 6', '["gpu"], "start": 6')],
             ["5:20: tasks.n1.device: expected a name, got null",
              "6:20: tasks.n2.device: expected a name, got a list"]),
            ([('"start": 0}', '"start": "0"}'), ('"start": 6', '"start": 6.5'), ('"start": 7', '"start": true'),
              ('"start": 20', '"start": null')],
             ['5:38: tasks.n1.start: expected a whole number, got "0"',
              "6:36: tasks.n2.start: expected a whole number, got 6.5",
              "7:36: tasks.n3.start: expected a whole number, got true",
              "8:41: tasks.n 4.x.start: expected a whole number, got null"]),
            ([('"start": 0}', '"start": 9223372036854775808}'), ('"start": 6', '"start": NaN')],
             ["5:38: tasks.n1.start: 9223372036854775808 is too large; expected at most 4611686018427387904",
              "6:36: tasks.n2.start: expected a whole number, got nan"]),
            ([(', "start": 0}', "}"), ('"device": "gpu", "start": 6', '"devise": "gpu", "start": 6, "end": 7')],
             ["5:3: tasks.n1: start is missing", "6:10: tasks.n2.devise: unknown key; did you mean device?",
              "6:39: tasks.n2.end: unknown key; known are device, offset, stage, start"]),
            ([('{"device": "core0", "start": 0}', "3"), ('"core1", "start": 20', '"core9", "start": 20')],
             ["5:9: tasks.n1: expected a mapping, got 3",
              '8:23: tasks.n 4.x.device: the problem has no device "core9"; did you mean core1?']),
            ([('"consumer": "n3"', '"consumer": "n 4.x"'), ('"producer": "n2"', '"producer": "n9"')],
             ["11:3: transfers[0]: the problem has no edge n1 -> n 4.x",
              "12:3: transfers[1]: the problem has no edge n9 -> n 4.x"]),
            ([('"core0"', '"core9"'), ('"start": 1}', '"start": "soon"}'), ('"producer": "n2", ', "")],
             ['5:20: tasks.n1.device: the problem has no device "core9"; did you mean core1?',
              '11:49: transfers[0].start: expected a whole number, got "soon"',
              "12:3: transfers[1]: producer is missing"]),
            ([('"problem": "four"', '"problem": ["four"],\n "fingerprint": {}, "solvr": "x"')],
             ["3:13: problem: expected a name, got a list", "4:17: fingerprint: expected a name, got a mapping",
              "4:21: solvr: unknown key; did you mean solver?"]),
            ([('"problem": "four"', '"objective": [NaN, true, "fast", "1/0", null, 1]')],
             ["3:16: objective[0]: expected a number, got nan", "3:21: objective[1]: expected a number, got true",
              '3:27: objective[2]: expected a number, got "fast"', '3:35: objective[3]: expected a number, got "1/0"',
              "3:42: objective[4]: expected a number, got null"]),
            ([('"problem": "four"', '"objective": 15')], ["3:15: objective: expected a list, got 15"]),
            ([('"placeopt_plan": 1', '"placeopt_plan": 2'), ('"n1": {', '"n9": {')],
             ["2:19: placeopt_plan: 2 is not a version of the format that this placeopt reads; expected 1"]),
            ([('"placeopt_plan": 1', '"placeopt_plan": "1"'), ('"n2": {', '"N2": {')],
             ['2:19: placeopt_plan: "1" is not a version of the format that this placeopt reads; expected 1',
              '6:3: tasks.N2: the problem has no task "N2"; did you mean n2?']),
            ([('"placeopt_plan": 1', '"placeopt": 1')],
             ["1:1: placeopt_plan is missing: this looks like a problem file, expected a plan file"]),
            ([(' "placeopt_plan": 1,\n', "")], ["1:1: placeopt_plan is missing"]),
            ([('"tasks"', '"task"')], ["4:2: task: unknown key; did you mean tasks?"]),
        ],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, edits: list[tuple[str, str]], issues: list[str]) -> None:
        # Quotes around names with dots and spaces are left out above for the sake of reading.
        found = answer(tmp_path, edited(*edits))
        assert isinstance(found, list)
        assert [line.replace('tasks."n 4.x"', "tasks.n 4.x") for line in found] == issues

    @pytest.mark.parametrize(
        ("text", "issue"),
        [
            ("", "the document is empty; expected a mapping"),
            ("[]", "1:1: the document holds a list; expected a mapping"),
            ('{"tasks": {}', "1:13: is not valid JSON: Expecting ',' delimiter"),
            ("{}", "1:1: placeopt_plan is missing"),
        ],
    )
    def test_files_that_are_no_plans(self, tmp_path: Path, text: str, issue: str) -> None:
        found = answer(tmp_path, text)
        assert isinstance(found, list)
        assert found[0] == issue

    def test_files_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(PlanError, match=r"none\.json: no such file$"):
            read_plan(tmp_path / "none.json", problem())
        with pytest.raises(PlanError, match=r": is a folder, expected a file$"):
            read_plan(tmp_path, problem())


class TestWriting:
    DOCUMENT = plan_document(problem(), SCHEDULE)
    TEXT = PLAN.replace('n3", "start": 1', 'n2", "start": 1').replace(
        ' "tasks"', f' "fingerprint": "{DOCUMENT["fingerprint"]}",\n "tasks"'
    )

    def test_each_task_and_transfer_has_a_line_whatever_its_name(self, tmp_path: Path) -> None:
        tasks = {"a}, ": {"device": '}, "x', "start": 0}, "b": {"device": "}, {", "start": 1, "stage": 0}}
        rows = [{"producer": "}, {", "consumer": "b", "start": 1}, {"producer": "b", "consumer": "a}, ", "start": 2}]
        for parts in ({"tasks": tasks, "transfers": rows}, {"tasks": {}, "transfers": []}):
            document = {"placeopt_plan": 1, **parts}
            write_plan(tmp_path / "plan.json", document)
            text = (tmp_path / "plan.json").read_text(encoding="utf-8")
            assert json.loads(text) == document
            assert len(text.splitlines()) == 5 + sum(len(entries) + 1 for entries in parts.values() if entries)

    def test_replaces_a_file_whole_and_leaves_nothing_beside_it(self, tmp_path: Path) -> None:
        path = tmp_path / "plan.json"
        path.write_text("old", encoding="utf-8")
        path.chmod(0o640)
        before = path.stat().st_ino
        write_plan(path, self.DOCUMENT)
        assert path.read_text(encoding="utf-8") == self.TEXT
        assert path.stat().st_ino != before
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert os.listdir(tmp_path) == ["plan.json"]

    def test_a_new_file_has_the_rights_that_new_files_have(self, tmp_path: Path) -> None:
        (tmp_path / "other").touch()
        write_plan(str(tmp_path / "plan.json"), self.DOCUMENT)
        assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "other").stat().st_mode

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link.json").symlink_to(tmp_path / "real" / "plan.json")
        for _ in range(2):  # what it stands for is not there, then is
            write_plan(tmp_path / "link.json", self.DOCUMENT)
            assert (tmp_path / "link.json").is_symlink()
            assert (tmp_path / "real" / "plan.json").read_text(encoding="utf-8") == self.TEXT

    def test_into_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="No such file or directory"):
            write_plan(tmp_path / "none" / "plan.json", self.DOCUMENT)
        assert os.listdir(tmp_path) == []

    def test_over_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "plan.json").mkdir()
        with pytest.raises(IsADirectoryError, match="Is a directory"):
            write_plan(tmp_path / "plan.json", self.DOCUMENT)
        assert os.listdir(tmp_path) == ["plan.json"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
    def test_to_a_full_device(self) -> None:
        with pytest.raises(OSError, match="No space left on device"):
            write_plan("/dev/full", self.DOCUMENT)

    @pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="no null device")
    def test_to_a_device(self) -> None:
        write_plan("/dev/null", self.DOCUMENT)
        assert Path("/dev/null").is_char_device()

    def test_when_it_fails_the_old_file_is_still_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "plan.json"
        path.write_text("old", encoding="utf-8")

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            write_plan(path, self.DOCUMENT)
        assert path.read_text(encoding="utf-8") == "old"
        assert os.listdir(tmp_path) == ["plan.json"]


JUNK: tuple[Any, ...] = (
    None, True, 0, -1, 2.5, float("nan"), 10**30, "", "n1", "gpu", "1/0", "9" * 500, [], [1], {}, {"n1": {}}, [{}],
    {"device": "gpu", "start": 1}, {"": 1},
)  # fmt: skip


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """A plan with a few things replaced by junk, deleted or renamed."""
    data = parse_document(PLAN, json_format=True).data
    for _ in range(draw(st.integers(1, 3))):
        holder, part = {"": data}, ""
        for _ in range(draw(st.integers(1, 4))):
            inner: Any = holder[part]
            if not isinstance(inner, dict | list) or not inner:
                break
            holder = inner
            part = draw(st.sampled_from(list(inner) if isinstance(inner, dict) else list(range(len(inner)))))
        if part == "":
            continue
        action = draw(st.sampled_from(["junk", "delete", "rename"]))
        if action == "junk":
            holder[part] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        elif action == "delete":
            del holder[part]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["", "n1", "N1", "start", "x"]))] = holder.pop(part)
    return data


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutants())
def test_mutants_are_plans_or_plan_errors(tmp_path: Path, data: Any) -> None:
    found = answer(tmp_path, json.dumps(data))
    if isinstance(found, Plan):
        assert found.schedule.device.shape == found.schedule.start.shape == (4,)
        assert ((found.schedule.device >= 0) & (found.schedule.device < 3)).all()
        transfers = found.schedule.transfers
        assert transfers is None or transfers.edge.shape == transfers.start.shape
    else:
        assert found
        assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ({"core0": ["core0"]}, r"replicas\.core0\[0\]: core0 already runs the tasks of core0; expected another device"),
        ({"core0": ["core1", "core1"]}, r"replicas\.core0\[1\]: core1 already runs the tasks of core0"),
        ({"core0": ["gpu"], "core1": ["gpu"]}, r"replicas\.core1\[0\]: gpu already runs the tasks of core0"),
    ],
)
def test_a_replica_runs_the_tasks_of_one_other_device(
    tmp_path: Path, replicas: dict[str, list[str]], message: str
) -> None:
    whole = {name: {"device": "core0", "start": i} for i, name in enumerate(("n1", "n2", "n3", "n 4.x"))}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"placeopt_plan": 1, "tasks": whole, "transfers": [], "replicas": replicas}))
    with pytest.raises(PlanError, match=message):
        read_plan(path, problem())
