"""Files that are read: what is refused, how large they may be, and which of them a spec may name."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import run

import placeopt as po
from placeopt.errors import DocumentError, SpecError, UsageError
from placeopt.io import document, files, validation
from placeopt.io.document import NamedFiles, read_document
from placeopt.io.files import UnreadableError, read_file, read_start, size_limit, temporary_folder, write_whole

FIVE = Path(__file__).parents[2] / "problems" / "five-node.yaml"
LINE = {"placeopt": 1, "devices": {"a": {}}, "tasks": {"x": {"time": 1}}}
SECRET = "root:x9Jk2LmQ7vT4:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n"

needs_devices = pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
needs_descriptors = pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd here")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    os.mkfifo("fifo")
    Path("loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    return tmp_path


KINDS = [
    ("fifo", "is a named pipe, expected a regular file; placeopt reads pipes from standard input (-) and <(...)"),
    ("socket", "is a socket, expected a regular file"),
    ("dir", "is a folder, expected a file"),
    ("/dev/zero", "is a device, expected a regular file"),
    ("/dev/fd/987654", "cannot be read: Bad file descriptor"),
    ("none", "no such file"),
    ("loop", "cannot be read: Too many levels of symbolic links"),
]


@needs_devices
@pytest.mark.usefixtures("folder")
class TestKinds:
    @pytest.mark.parametrize(("name", "why"), KINDS)
    def test_only_regular_files_are_read(self, name: str, why: str) -> None:
        for read in (
            lambda: po.load(name),
            lambda: po.read_plan(name, po.compile(LINE)),
            lambda: po.read_dnn_partitioning(name),
            lambda: po.explain(name),
            lambda: po.replace(LINE, {}, name),
        ):
            with pytest.raises(DocumentError, match=f"^{re.escape(name)}: {re.escape(why)}$"):
                read()
        with pytest.raises(UsageError, match=f"^cannot read {re.escape(name)}: {re.escape(why)}$"):
            po.Comparison.read(name)

    @pytest.mark.parametrize(("name", "why"), KINDS)
    def test_nor_those_that_a_spec_names(self, name: str, why: str) -> None:
        for named in (
            {"graph": {"file": name}},
            {"placement": {"file": name}},
            {"current": {"placement": {"file": name}}},
        ):
            with pytest.raises(SpecError, match=re.escape(f"file: {name}: {why}")):
                po.compile(LINE | named, files="any")

    @pytest.mark.parametrize(("name", "why"), KINDS)
    def test_nor_by_a_command(self, name: str, why: str) -> None:
        for command in (
            ("inspect", name), ("verify", FIVE, name), ("import", name), ("profile", "fit", name, "--batch", 8),
            ("profile", "fit", "--transfers", name), ("profile", "apply", name, FIVE),
        ):  # fmt: skip
            done = run(*command)
            assert done.code == 2
            assert f"{name}: {why}" in done.err or (command[0] == "import" and "/dev/fd" in name)

    def test_a_name_that_the_system_refuses(self) -> None:
        for command in (("inspect", "x" * 300), ("solve", FIVE, "--initial", "x" * 300)):
            done = run(*command)
            assert (done.code, done.err) == (2, f"placeopt: {'x' * 300}: cannot be read: File name too long\n")

    def test_a_pipe_that_becomes_one_while_it_is_opened_does_not_block(self, monkeypatch: pytest.MonkeyPatch) -> None:
        regular = os.stat(FIVE)
        monkeypatch.setattr(os, "stat", lambda _path: regular)
        with pytest.raises(UnreadableError, match="is a named pipe"):
            read_file("fifo")

    @pytest.mark.parametrize("read", [read_file, lambda path: read_start(path, 4)], ids=["whole", "start"])
    def test_a_file_that_waits_for_data_does_not_block(
        self, monkeypatch: pytest.MonkeyPatch, read: Callable[[str], bytes]
    ) -> None:
        """As /proc/kmsg does, which calls itself a regular file."""
        monkeypatch.setattr(files, "_KINDS", {})
        writer = os.open("fifo", os.O_RDWR)
        os.write(writer, b"{a")
        try:
            with pytest.raises(UnreadableError, match="has no end, expected a regular file"):
                read("fifo")
        finally:
            os.close(writer)


@needs_descriptors
class TestPipes:
    def test_a_pipe_of_the_caller_is_read(self) -> None:
        for text, format_ in (('\n{"a": 1}', True), ("{a: 1}", False), ("a: 1", False)):
            reader, writer = os.pipe()
            os.write(writer, text.encode())
            os.close(writer)
            found = read_document(f"/dev/fd/{reader}")
            os.close(reader)
            assert (found.data, found.json_format) == ({"a": 1}, format_)

    def test_one_without_an_end_meets_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document, "LARGEST_YAML", 10)
        reader, writer = os.pipe()
        os.write(writer, b"y\n" * 10)
        with pytest.raises(DocumentError, match="does not end within the limit; the limit is 10 bytes"):
            read_document(f"/dev/fd/{reader}")
        os.close(reader)
        os.close(writer)

    def test_standard_input(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        command = [sys.executable, "-m", "placeopt"]
        solved = subprocess.run(
            [*command, "solve", "-", "-s", "heft", "-o", str(plan)], input=FIVE.read_bytes(), capture_output=True
        )
        assert (solved.returncode, solved.stderr) == (0, b"")
        with plan.open() as opened:
            verified = subprocess.run([*command, "verify", str(FIVE), "-"], stdin=opened, capture_output=True)
        assert verified.stdout.endswith(b"feasible: makespan = 14 s (14 ticks)\n")

    def test_a_pipe_that_has_nothing_yet_is_waited_for(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        code = f"import os, time; time.sleep(0.2); os.write({writer}, b'a: 1')"
        late = subprocess.Popen([sys.executable, "-c", code], pass_fds=[writer])
        os.close(writer)
        assert read_document(f"/dev/fd/{reader}").data == {"a": 1}
        late.wait()
        os.close(reader)


class TestSize:
    def test_is_limited_for_yaml_more_than_for_json(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document, "LARGEST_YAML", 10)
        monkeypatch.setattr(document, "LARGEST", 200)
        for name, text, size in (("p.yaml", " " * 11, 10), ("p.json", " " * 201, 200)):
            (tmp_path / name).write_text(text)
            why = rf"{name}: has {size + 1} bytes; the limit is {size} bytes \(raise it with --max-size, or max_bytes"
            with pytest.raises(SpecError, match=why):
                po.load(tmp_path / name)
        assert document.LARGEST_YAML * 10 < files.LARGEST

    def test_is_set_by_the_caller(self, tmp_path: Path) -> None:
        path = tmp_path / "p.json"
        path.write_text('{"placeopt": 1, "devices": {"a": {}}, "graph": {"file": "g.json"}}')
        (tmp_path / "g.json").write_text('{"tasks": {"x": {"time": 1}}}' + " " * 1000)
        assert po.load(path, max_bytes=2000).n_tasks == 1
        with pytest.raises(SpecError, match=r"graph.file: .*g.json: has 1,029 bytes; the limit is 1,000 bytes"):
            po.load(path, max_bytes=1000)
        with size_limit(50), pytest.raises(SpecError, match=r"p.json: has 66 bytes; the limit is 50 bytes"):
            po.load(path)
        assert po.load(path).n_tasks == 1
        for wrong in (0, -1, True, 1.5, "1"):
            with pytest.raises(UsageError, match="expected a positive whole number of bytes"):
                po.load(path, max_bytes=wrong)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("size", "why"),
        [
            ("100", f"has {FIVE.stat().st_size} bytes; the limit is 100 bytes"),
            ("1q", '--max-size: "1q" has an unknown unit q'),
            ("0", '--max-size: "0" is less than a byte'), ("0.1 B", "is less than a byte"), ("-1", "--max-size"),
        ],
    )  # fmt: skip
    def test_on_the_command_line(self, size: str, why: str) -> None:
        done = run("--max-size", size, "inspect", FIVE)
        assert (done.code, why in done.err) == (2, True)
        assert run("--max-size", "1kB", "inspect", FIVE).code == 0
        assert run("inspect", FIVE).code == 0  # it holds for that command alone

    def test_a_ledger_and_measurements_have_one_too(self, tmp_path: Path) -> None:
        path = tmp_path / "l.jsonl"
        path.write_text("{}\n" * 10)
        with size_limit(9):
            with pytest.raises(UsageError, match="has 30 bytes; the limit is 9 bytes"):
                po.Comparison.read(path)
            assert "has 30 bytes" in run("profile", "fit", path, "--batch", 8).err

    def test_a_problem_too_large_for_memory_is_no_crash(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(validation, "_TASK", 2**50)
        done = run("inspect", FIVE)
        assert done.code == 2
        assert done.err == "placeopt: out of memory; the problem is too large for this machine or solver\n"


class TestNamedFiles:
    @pytest.fixture(autouse=True)
    def specs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A folder of specs beside one of secrets."""
        home = tmp_path / "specs"
        (home / "sub").mkdir(parents=True)
        (tmp_path / "secrets").mkdir()
        graph, plan = (
            '{"tasks": {"x": {"time": 1}}}',
            '{"placeopt_plan": 1, "tasks": {"x": {"device": "a", "start": 0}}}',
        )
        for place in (home, home / "sub", tmp_path / "secrets"):
            (place / "g.json").write_text(graph)
            (place / "plan.json").write_text(plan)
        (home / "out").symlink_to("../secrets/g.json")
        (home / "outside").symlink_to("../secrets")
        (home / "inside").symlink_to("sub/g.json")
        monkeypatch.chdir(home)

    INSIDE = ("g.json", "sub/g.json", "./g.json", "inside")
    OUTSIDE = ("../secrets/g.json", "out", "outside/g.json", "sub/../g.json", "sub/../../secrets/g.json", "ABSOLUTE")

    @staticmethod
    def spec(name: str) -> dict[str, Any]:
        name = str(Path("g.json").resolve()) if name == "ABSOLUTE" else name
        return {"placeopt": 1, "devices": {"a": {}}, "graph": {"file": name}}

    @pytest.mark.parametrize("name", INSIDE + OUTSIDE)
    def test_which_a_spec_may_name_is_the_callers_choice(self, name: str) -> None:
        spec = self.spec(name)
        write_whole("p.json", str(spec).replace("'", '"'))
        assert po.load("p.json").n_tasks == 1  # as on the command line
        assert po.compile(spec, files="any").n_tasks == 1
        for refused in (lambda: po.compile(spec), lambda: po.load("p.json", files="none")):
            with pytest.raises(SpecError, match=r"graph.file: .* is not opened: the caller allows no files"):
                refused()
        for beside in (
            lambda: po.load("p.json", files="beside"),
            lambda: po.compile(spec, folder="."),
            lambda: po.compile(spec, files="beside"),
            lambda: po.compile(po.Spec.model_validate(spec), folder=Path.cwd()),
        ):
            if name in self.INSIDE:
                assert beside().n_tasks == 1
            else:
                with pytest.raises(
                    SpecError, match=r"graph.file: .* is not opened: it is not in the folder of the problem"
                ):
                    beside()

    def test_holds_for_plans_and_for_all_that_take_a_spec(self) -> None:
        nx = pytest.importorskip("networkx")
        graph = nx.DiGraph()
        graph.add_node("x", time=1)
        placed = {"placement": {"file": "plan.json"}}
        assert po.from_networkx(graph, {"a": {}}, folder=".", **placed).n_tasks == 1
        for spec in (LINE | placed, LINE | {"current": placed}):
            for take in (po.compile, po.explain, lambda spec: po.replace(spec, {}, LINE)):
                with pytest.raises(SpecError, match=r"placement.file: plan.json: is not opened"):
                    take(spec)
            assert po.compile(spec, folder=".").n_tasks == 1
            assert po.explain(spec, files="beside").status == "feasible"
        with pytest.raises(SpecError, match=r"placement.file: plan.json: is not opened"):
            po.from_networkx(graph, {"a": {}}, **placed)
        kept = nx.DiGraph(placeopt={"devices": {"a": {}}, "graph": {"file": "g.json"}})
        with pytest.raises(SpecError, match=r"g.json: is not opened"):
            po.from_networkx(kept)
        with pytest.raises(UsageError, match="files is 'some'; expected one of any, beside, none"):
            po.load(FIVE, files="some")  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", ["a\0b", "\x1b[2J", "a\nb", "\ud800", "x" * 5000, "", "."])
    @pytest.mark.parametrize("allowed", ["any", "beside", "none"])
    def test_any_name_is_an_error_on_one_line(self, name: str, allowed: Any) -> None:
        with pytest.raises(SpecError, match=r"^graph.file: ") as caught:
            po.compile(self.spec(name), files=allowed)
        told = str(caught.value)
        assert (told.isprintable(), len(told) < 1200) == (True, True)

    def test_a_link_to_the_folder_itself_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("specs")
        assert po.compile(self.spec("g.json"), folder=tmp_path / "link").n_tasks == 1
        assert NamedFiles(tmp_path / "link", "beside").path("g.json") == tmp_path / "link" / "g.json"

    @pytest.mark.parametrize(
        "text",
        [
            SECRET, "password: x9Jk2LmQ7vT4\nuser: root\n", "a: &b 1\nx: *x9Jk2LmQ7vT4-and-more\n", "- x9Jk2LmQ7vT4\n",
            "name: x9Jk2LmQ7vT4\nservices: {db: {password: x9Jk2LmQ7vT4}}\n", "the key is x9Jk2LmQ7vT4",
            "12345678901234567", '{"key": "x9Jk2LmQ7vT4"', "!x9Jk2LmQ7vT4 {a: 1}", "a: x9Jk2LmQ7vT4\na: x9Jk2LmQ7vT4\n",
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("key", ["graph", "placement"])
    def test_of_another_kind_show_their_first_characters_at_most(self, text: str, key: str) -> None:
        Path("secret").write_text(text)
        with pytest.raises(SpecError, match="secret") as caught:
            po.compile(LINE | {key: {"file": "secret"}}, folder=".")
        told = str(caught.value)
        assert "x9Jk2LmQ7vT4" not in told
        assert "3456789012345" not in told
        assert "services" not in told

    def test_a_problem_from_a_pipe_names_files_of_the_current_folder(self) -> None:
        reader, writer = os.pipe()
        os.write(writer, b'{"placeopt": 1, "devices": {"a": {}}, "graph": {"file": "g.json"}}')
        os.close(writer)
        assert po.load(f"/dev/fd/{reader}", files="beside").n_tasks == 1
        os.close(reader)


def test_whole_files_keep_their_mode(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o640)


def test_a_temporary_folder_is_removed_although_a_signal_interrupts_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, calls = shutil.rmtree, 0

    def interrupted(*arguments: Any, **options: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        remove(*arguments, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"^$"), temporary_folder("made-", tmp_path) as folder:
        (folder / "file").write_text("text")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_of_temporary_files_is_named(tmp_path: Path) -> None:
    stated = f"cannot write temporary files in {tempfile.gettempdir()}: No space left on device; free space there"
    with pytest.raises(UsageError, match=re.escape(stated)), temporary_folder("made-"):
        Path("/dev/full").write_bytes(b"x")
    with pytest.raises(FileNotFoundError, match="missing"), temporary_folder("made-") as folder:
        (folder / "missing").read_bytes()
    with pytest.raises(OSError, match="No space left"), temporary_folder("made-", tmp_path):
        Path("/dev/full").write_bytes(b"x")
