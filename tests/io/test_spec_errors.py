"""Wrong specs: every mistake with its exact place and words, all at once, each once."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from texts import FILE, compiled, complaints, data_complaints, edited, file_complaints

from placeopt import errors
from placeopt.errors import DocumentError, Issue, SpecError, UsageError
from placeopt.io.compiler import compile_spec, load
from placeopt.io.document import Document, parse_document

BASE = """\
placeopt: 1
devices:
  cpu: {type: host, memory: 8 GiB}
  gpu: {type: card, count: 2, memory: 16 GiB, features: [tensor]}
links:
  default: {bandwidth: 12 GB/s, latency: 10 us}
operations:
  conv: {host: 4 us, card: 2 us}
tasks:
  a: {op: conv, output: 1 MiB}
  b: {time: 5 us, after: a}
  c: {time: {host: 3 us, gpu0: 1 us}, after: [a, b]}
  d: {time: 1 us, memory: {resident: 1 MiB}, after: {c: 512 KiB}}
"""


def table() -> list[Any]:
    """(edits of the base text, the whole answer) for every case of spec_errors.txt."""
    cases = []
    heading = ""
    for block in (Path(__file__).parent / "spec_errors.txt").read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip("\n").split("\n")
        if lines[0].startswith("#"):
            heading = lines[0].removeprefix("# ")
            continue
        edits = [line.removeprefix("@ ").replace("\\n", "\n") for line in lines if line.startswith("@ ")]
        name = f"{heading}: {edits[0].split(' => ')[-1]}"
        pairs = [tuple(edit.split(" => ")) if " => " in edit else (edit.removesuffix(" =>"), "") for edit in edits]
        cases.append(pytest.param(pairs, lines[len(edits) :], id=name[:80]))
    return cases


def test_the_base_compiles() -> None:
    assert complaints(BASE) == []
    assert compiled(BASE).task_names == ("a", "b", "c", "d")


@pytest.mark.parametrize(("edits", "answer"), table())
def test_mistakes(edits: list[tuple[str, str]], answer: list[str]) -> None:
    assert complaints(edited(BASE, *edits)) == answer


def words(lines: list[str]) -> list[str]:
    """What is said, without where and how often."""
    return sorted({line.split(": ", 1)[1] for line in lines})


@pytest.mark.parametrize(("edits", "answer"), table())
def test_mistakes_in_json_and_in_code_get_the_same_words(edits: list[tuple[str, str]], answer: list[str]) -> None:
    text = edited(BASE, *edits)
    document = parse_document(text, file=FILE)
    if document.faults or "&" in text:  # what a key given twice said is gone, and what an alias repeats is repeated
        return
    assert sorted(set(data_complaints(document.data))) == words(answer)
    rewritten = json.dumps(document.data)
    if "1e" not in text:  # JSON writes such numbers in another way
        found = complaints(rewritten, json_format=True)
        assert words(found) == words(answer)
        assert all(line.startswith("1:") for line in found)


def test_cycles_are_named_shortened_and_reported_one_by_one() -> None:
    def ring(first: int, last: int) -> str:
        rows = [f"  t{k}: {{time: 1, after: t{k - 1 if k > first else last}}}\n" for k in range(first, last + 1)]
        return "".join(rows)

    head = "placeopt: 1\ndevices: {cpu: }\ntasks:\n"
    assert complaints(head + ring(0, 7)) == [
        "4:24: tasks.t0.after: these tasks form a cycle: t0 -> t1 -> t2 -> t3 -> t4 -> t5 -> t6 -> t7 -> t0"
    ]
    assert complaints(head + ring(0, 99) + ring(100, 101)) == [
        "4:24: tasks.t0.after: these tasks form a cycle: t0 -> t1 -> t2 -> t3 -> t4 -> t5 -> t6 -> ... -> t99 -> t0",
        "104:26: tasks.t100.after: these tasks form a cycle: t100 -> t101 -> t100",
    ]
    rings = "".join(ring(2 * k, 2 * k + 1) for k in range(20))
    assert len(complaints(head + rings)) == 8
    tail = "  'to the end': {time: 1, after: [t1, x, 'to the end', over]}\n  over: {time: 1, after: 'to the end'}\n"
    assert complaints(head + ring(0, 1) + tail) == [
        "4:24: tasks.t0.after: these tasks form a cycle: t0 -> t1 -> t0",
        '6:39: tasks."to the end".after[1]: unknown task "x"; known are t0, t1, to the end, over',
        '6:42: tasks."to the end".after[2]: a task cannot come after itself',
        '6:56: tasks."to the end".after[3]: these tasks form a cycle: "to the end" -> over -> "to the end"',
    ]


def test_near_misses_are_not_looked_for_without_end() -> None:
    many = {f"operation{k}": 1 for k in range(3000)}
    tasks = {f"t{k}": {"op": f"operatiom{k}"} for k in range(100)}
    found = data_complaints({"placeopt": 1, "devices": {"cpu": {}}, "operations": many, "tasks": tasks})
    assert found[0] == 'tasks.t0.op: unknown operation "operatiom0"; did you mean operation0?'
    assert found[99].startswith('tasks.t99.op: unknown operation "operatiom99"; known are operation0, operation1, ')
    assert found[99].endswith("operation7 and 2992 more")


@pytest.mark.parametrize(
    ("devices", "task"),
    [
        (3000, {"time": 1, "pin": "device{}o"}),
        (1, {"time": 1, "after": ["tusk{}"]}),
        (1, {"tyme{}": 1}),
        (1, {"time": 1, "after": "x" * 1000 + "{}"}),
    ],
)
def test_many_wrong_names_are_compared_with_few(devices: int, task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, ends = [], []
    closest, shared = errors.get_close_matches, errors._shared_ends
    monkeypatch.setattr(errors, "get_close_matches", lambda *a, **b: compared.append(len(a[1])) or closest(*a, **b))
    monkeypatch.setattr(errors, "_shared_ends", lambda *a: ends.append(a) or shared(*a))
    text = json.dumps(task)
    document = {
        "placeopt": 1,
        "devices": {f"device{k}": {} for k in range(devices)},
        "tasks": {f"task{k}": json.loads(text.replace("{}", str(k))) for k in range(2000)},
    }
    assert len(data_complaints(document)) == 2000
    assert sum(compared) < 5000
    assert len(ends) <= 100_000


def test_only_the_names_with_the_same_ends_are_compared_with_a_long_list() -> None:
    known = [f"layer{k}/attention/output" for k in range(500)]
    assert errors.near_misses("layer77/atention/output", known) == ("layer77/attention/output",)
    assert errors.near_misses("LAYER77/attention/output", known) == ("layer77/attention/output",)
    assert errors.near_misses("y" * 101, ["y" * 100]) == ()


def test_the_place_of_a_name_is_looked_up_in_a_list_once() -> None:
    class Names(list[str]):
        walks = 0

        def __iter__(self) -> Iterator[str]:
            self.walks += 1
            return super().__iter__()

    names = Names(["a", "b", "a"])
    document = Document({"after": names})
    assert [document.existing(("after", each)) for each in "aabx"] == [("after", k) for k in (0, 0, 1)] + [("after",)]
    assert names.walks == 1


def test_a_name_is_a_slip_for_names_of_its_kind() -> None:
    tasks = {"a1": {"op": "a", "after": ["b"]}, "b1": {"time": 1, "devices": ["a", "b"]}}
    document = {"placeopt": 1, "devices": {"a2": {}, "b2": {}}, "operations": {"a3": 1}, "tasks": tasks}
    assert data_complaints(document) == [
        'tasks.a1.after[0]: unknown task "b"; did you mean b1?',
        'tasks.b1.devices[0]: unknown device "a"; did you mean a2?',
        'tasks.b1.devices[1]: unknown device "b"; did you mean b2?',
        'tasks.a1.op: unknown operation "a"; did you mean a3?',
    ]


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        ({}, ["placeopt is missing", "devices is missing"]),
        ({1: 2, "placeopt": 1, "devices": {"d": {}}, "tasks": {}}, ["[1]: a key must be text, not 1"]),
        (
            {9**5000: 2, "placeopt": 1, "devices": {9**5000: {}}, "tasks": {}},
            [
                "devices: expected a name, got a number of thousands of digits",
                "a key must be text, not a number of thousands of digits",
            ],
        ),
        (
            {"placeopt": 1, "devices": {"d": {}}, "tasks": {1: {"tme": 3}}},
            ["tasks.1.tme: unknown key; did you mean time?"],
        ),
        (
            {"placeopt": 1, "devices": {"d": object}, "tasks": {"a": {"time": 3 + 1j}}},
            [
                "devices.d: expected a mapping, got <class 'object'>",
                "tasks.a.time: (3+1j) is not a time; expected one such as 5 ms",
            ],
        ),
        (
            {"placeopt": 1, "devices": {"d": {}}, "tasks": {"~bare": {"time": "x"}, "~quantity": 3, "[key]": []}},
            [
                'tasks.~bare.time: "x" is not a time; expected a time, such as 5 ms',
                "tasks.~quantity: expected a mapping, got 3",
                'tasks."[key]": expected a mapping, got a list',
            ],
        ),
    ],
)
def test_odd_data_made_in_code(data: dict[Any, Any], answer: list[str]) -> None:
    assert data_complaints(data) == answer


def test_numbers_are_names_in_code() -> None:
    document = {"placeopt": 1, "devices": {0: {}, 1: {}}, "tasks": {7: {"time": {0: 3}}, 8: {"time": 1, "after": [7]}}}
    problem = compile_spec(document)
    assert (problem.device_names, problem.task_names) == (("0", "1"), ("7", "8"))
    assert problem.feasible.tolist() == [[True, False], [True, True]]
    with pytest.raises(
        UsageError, match=r"^two names in devices are written in the same way, as text and as a number$"
    ):
        compile_spec(document | {"devices": {0: {}, "0": {}}})


def test_the_message_is_every_issue_on_a_line() -> None:
    with pytest.raises(
        SpecError, match=r"^p.yaml:11:6: .*; expected time, op or flops\np.yaml:13:7: .* time\?$"
    ) as raised:
        compiled(edited(BASE, ("time: 5 us, ", ""), ("d: {time", "d: {tme")))
    first, second = raised.value.issues
    assert (first.path, first.file, first.line, first.column) == (("tasks", "b"), "p.yaml", 11, 6)
    assert (second.path, second.message) == (("tasks", "d", "tme"), "unknown key; did you mean time?")


def test_the_message_of_many_issues_is_cut() -> None:
    error = SpecError([Issue(f"issue {k}") for k in range(20_000)])
    assert str(error).split("\n")[49:] == ["issue 49", "and 19,950 more"]
    copied = pickle.loads(pickle.dumps(error))  # as a process pool does
    assert (str(copied), copied.issues) == (str(error), error.issues)
    long = "x" * 10_000
    (fault,) = parse_document(f"? {long}\n: 1\n? {long}\n: 2").faults
    assert len(fault.message) < 200


def test_data_that_contains_itself() -> None:
    tasks: dict[str, Any] = {"a": {"time": 1}}
    tasks["a"]["memory"] = tasks
    document: dict[str, Any] = {"placeopt": 1, "devices": {"cpu": {}}, "tasks": tasks}
    document["x-self"] = document["description"] = document
    assert data_complaints(document) == [
        "description: expected text, got a mapping",
        "tasks.a.memory.a: unknown key; known are output, resident, scratch",
    ]


def test_only_specs_and_dicts_are_compiled() -> None:
    with pytest.raises(UsageError, match=r"^compile takes a Spec or a dict, got str; use load for a file$"):
        compile_spec("p.yaml")  # type: ignore[arg-type]


class TestFiles:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_that_cannot_be_read(self, folder: Path) -> None:
        (folder / "a.folder.yaml").mkdir()
        (folder / "image.yaml").write_bytes(b"placeopt: 1\n\x89PNG\xff")
        (folder / "wide.json").write_text("{}", encoding="utf-16")
        (folder / "file").write_text("", encoding="utf-8")
        assert file_complaints("none.yaml") == ["none.yaml: no such file"]
        assert file_complaints("a.folder.yaml") == ["a.folder.yaml: is a folder, expected a file"]
        assert file_complaints("image.yaml") == ["image.yaml: is not UTF-8 text (byte 12 is 0x89)"]
        assert file_complaints("wide.json") == ["wide.json: is not UTF-8 text (byte 0 is 0xff)"]
        assert file_complaints("a\0b") == ["a\\0b: is not a file name: embedded null byte"]
        assert file_complaints("file/x.yaml") == ["file/x.yaml: cannot be read: Not a directory"]
        assert file_complaints("n" * 300) == [f"{'n' * 300}: cannot be read: File name too long"]

    @pytest.mark.parametrize("name", ["p.yaml", "p.json"])
    @pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
    def test_that_are_empty(self, folder: Path, name: str, text: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")
        assert file_complaints(name) == [f"{name}: the document is empty; expected a mapping"]

    @pytest.mark.parametrize(
        ("name", "text", "answer"),
        [
            ("p.yaml", "# nothing\n", "p.yaml: the document is empty; expected a mapping"),
            ("p.yaml", "null", "p.yaml:1:1: the document is empty; expected a mapping"),
            ("p.yaml", "- a\n- b\n", "p.yaml:1:1: the document holds a list; expected a mapping"),
            ("p.yaml", "\n hello", 'p.yaml:2:2: the document holds "hello"; expected a mapping'),
            ("p.json", "[]", "p.json:1:1: the document holds a list; expected a mapping"),
            ("p.json", " 3", "p.json:1:2: the document holds 3; expected a mapping"),
            ("P.JSON", "{,}", "P.JSON:1:2: is not valid JSON: Expecting property name enclosed in double quotes"),
        ],
    )
    def test_that_hold_no_mapping(self, folder: Path, name: str, text: str, answer: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")
        assert file_complaints(name) == [answer]

    def test_with_a_key_twice(self, folder: Path) -> None:
        text = '{"placeopt": 1, "devices": {"d": {}},\n "tasks": {"a": {"time": 1},\n  "a": {"time": {"y": 2}}}}'
        (folder / "p.json").write_text(text, encoding="utf-8")
        assert file_complaints("p.json") == ['p.json:3:3: tasks.a: duplicate name "a", first given on line 2']
        (folder / "p.yaml").write_text(text, encoding="utf-8")
        assert file_complaints("p.yaml") == ['p.yaml:3:3: tasks.a: duplicate name "a", first given on line 2']

    def test_without_tasks(self, folder: Path) -> None:
        (folder / "p.yaml").write_text("placeopt: 1\ndevices: {cpu: }\n", encoding="utf-8")
        assert file_complaints("p.yaml") == ["p.yaml:1:1: tasks is missing, and so is a graph file with tasks"]
        (folder / "p.yaml").write_text("placeopt: 1\ndevices: {cpu: }\ntsks: {}\n", encoding="utf-8")
        assert file_complaints("p.yaml") == ["p.yaml:3:1: tsks: unknown key; did you mean tasks?"]
        (folder / "p.yaml").write_text("placeopt: 1\ndevices: {cpu: }\ntasks: {}\n", encoding="utf-8")
        assert load("p.yaml").n_tasks == 0

    def test_are_never_only_documents_to_those_who_load(self, folder: Path) -> None:
        (folder / "p.yaml").write_text("a: [", encoding="utf-8")
        with pytest.raises(SpecError, match=r"^p\.yaml:2:1: is not valid YAML: did not find expected node content$"):
            load("p.yaml")
        assert issubclass(SpecError, DocumentError)


class TestGraphFiles:
    SPEC = """\
placeopt: 1
graph: {file: g.json}
devices: {cpu: {type: host}, gpu: }
operations: {conv: {host: 1}}
tasks:
  z: {op: conv, after: y}
"""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def answer(self, folder: Path, graph: str | None, *edits: tuple[str, str]) -> list[str]:
        (folder / "p.yaml").write_text(edited(self.SPEC, *edits), encoding="utf-8")
        if graph is not None:
            (folder / "g.json").write_text(graph, encoding="utf-8")
        return file_complaints("p.yaml")

    def test_that_are_fine(self, folder: Path) -> None:
        assert self.answer(folder, '{"operations": {"pool": 2, "conv": 3}, "tasks": {"y": {"op": "pool"}}}') == []
        problem = load(folder / "p.yaml")
        assert problem.task_names == ("y", "z")
        assert problem.duration.tolist() == [[2, 2], [1, 0]]  # the spec's own operations win
        assert problem.feasible.tolist() == [[True, True], [True, False]]

    def test_stand_beside_the_spec(self, folder: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "sub" / "p.yaml").write_text(self.SPEC, encoding="utf-8")
        (folder / "sub" / "g.json").write_text('{"tasks": {"y": {"time": 1}}}', encoding="utf-8")
        assert load("sub/p.yaml").n_tasks == 2
        data = parse_document(self.SPEC).data
        assert compile_spec(data, folder="sub").n_tasks == 2
        assert data_complaints(data) == ["graph.file: g.json: no such file"]

    def test_that_cannot_be_read_belong_to_the_line_that_names_them(self, folder: Path) -> None:
        # Nothing is said about y and about conv: they may stand in the graph.
        assert self.answer(folder, None) == ["p.yaml:2:15: graph.file: g.json: no such file"]
        assert self.answer(folder, None, ("g.json", ".")) == [
            "p.yaml:2:15: graph.file: .: is a folder, expected a file"
        ]
        assert self.answer(folder, None, ("g.json", '"a\\0b"')) == [
            "p.yaml:2:15: graph.file: a\\0b: is not a file name: embedded null byte"
        ]
        assert self.answer(folder, None, ("g.json", "p.yaml")) == [
            "p.yaml:2:15: graph.file: is this same file; expected another one, with tasks"
        ]
        assert self.answer(folder, None, ("g.json", "../x/../none.json"), ("gpu: ", "gpu: {cuont: 2}")) == [
            "p.yaml:2:15: graph.file: ../x/../none.json: no such file",
            "p.yaml:3:36: devices.gpu.cuont: unknown key; did you mean count?",
        ]

    def test_with_mistakes_keep_their_own_places(self, folder: Path) -> None:
        assert self.answer(folder, '{"tasks":\n {"y": ]}') == ["g.json:2:8: is not valid JSON: Expecting value"]
        assert self.answer(folder, "") == ["g.json: the document is empty; expected a mapping"]
        assert self.answer(folder, "{}") == ["g.json:1:1: tasks is missing"]
        assert self.answer(folder, '{"tasks": []}') == ["g.json:1:11: tasks: expected a mapping, got a list"]
        assert self.answer(folder, '{"placeopt": 2, "tasks": []}') == [
            "g.json:1:14: placeopt: 2 is not a version of the format that this placeopt reads; expected 1"
        ]
        assert self.answer(folder, '{"taks": {"y": {"time": 1}}}') == [
            "g.json:1:2: taks: unknown key; did you mean tasks?"
        ]
        assert self.answer(
            folder, '{"tasks": {\n"y": {"tme": 1, "after": ["w"]},\n"x": {"op": "pol", "pin": "gqu"}}}'
        ) == [
            "g.json:2:7: tasks.y.tme: unknown key; did you mean time?",
            'g.json:2:27: tasks.y.after[0]: unknown task "w"; known are y, x, z',
            'g.json:3:13: tasks.x.op: unknown operation "pol"; known are conv',
            'g.json:3:27: tasks.x.pin: unknown device "gqu"; did you mean gpu?',
        ]

    def test_and_specs_with_mistakes_come_one_after_the_other(self, folder: Path) -> None:
        graph = '{"tasks": {"z": {"time": 1}, "y": {"time": 1, "memory": "1 W"}}}'
        assert self.answer(folder, graph, ("devices: {", "devices: {'': , ")) == [
            'p.yaml:3:11: devices."": a name needs at least one character',
            'p.yaml:6:3: tasks.z: duplicate name "z": the graph file has this task too',
            'g.json:1:57: tasks.y.memory: "1 W" is a power; expected an amount of memory, such as 12 MiB',
        ]

    def test_cycles_through_both(self, folder: Path) -> None:
        assert self.answer(folder, '{"tasks": {"y": {"time": 1, "after": ["z"]}}}') == [
            "g.json:1:39: tasks.y.after[0]: these tasks form a cycle: y -> z -> y"
        ]
