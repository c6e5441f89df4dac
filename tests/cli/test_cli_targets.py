"""Output files never overwrite input files or each other, and are written completely or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import run

from placeopt.io.files import write_whole

HEADER = "placeopt: 1\ndevices: {a: {}, b: {}}\n"
TASKS = "{x: {time: 1}, y: {time: 2, after: x}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {
        "graph.yaml": f"tasks: {TASKS}",
        "p.yaml": HEADER + "graph: {file: graph.yaml}\n",
        "fixed.yaml": HEADER + f"tasks: {TASKS}placement: {{file: plan.json}}\n",
        "now.yaml": HEADER + f"tasks: {TASKS}current: {{placement: {{file: plan.json}}}}\nobjective: relocation\n",
        "devices.yaml": "devices: {a: {}, c: {}}\n",
        "m.csv": "operator,batch,milliseconds,bytes\n" + "".join(f"x,{k},{k},{k}\n" for k in (1, 2, 4)),
        "t.csv": "bytes,microseconds\n1,1\n1000,2\n2000,3\n",
        "profile.yaml": "placeopt: 1\ntasks: {x: {time: 3 ms}}\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    assert run("solve", "p.yaml", "--out", "plan.json").code == 0
    Path("sub").mkdir()
    Path("link").symlink_to("graph.yaml")
    os.link("graph.yaml", "hard")
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nowhere/x")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder)) if (folder / name).is_file()}


REFUSED = [
    "solve p.yaml --out p.yaml",
    "solve p.yaml --out graph.yaml",
    "solve p.yaml --out ./sub/../graph.yaml",
    "solve p.yaml --out link",
    "solve p.yaml --report hard",
    "solve p.yaml --trace graph.yaml",
    "solve p.yaml --initial plan.json --out plan.json",
    "solve fixed.yaml --out plan.json",
    "solve now.yaml --out plan.json",
    "compare p.yaml -s heft --report link",
    "compare p.yaml -s heft --out graph.yaml --resume",
    "compare fixed.yaml -s heft --report plan.json",
    "replace p.yaml plan.json -d devices.yaml --out plan.json",
    "replace p.yaml plan.json -d devices.yaml --out-problem graph.yaml",
    "replace p.yaml plan.json -d devices.yaml --out-problem devices.yaml",
    "simulate p.yaml plan.json --out graph.yaml",
    "export fixed.yaml plan.json --trace plan.json",
    "profile fit m.csv -b 8 --transfers t.csv --out t.csv",
    "profile apply profile.yaml p.yaml --out graph.yaml",
    "profile apply profile.yaml fixed.yaml --out plan.json",
    "profile apply profile.yaml now.yaml --out plan.json",
]


@pytest.mark.parametrize("command", REFUSED)
def test_what_is_read_is_not_overwritten(folder: Path, command: str) -> None:
    before = contents(folder)
    done = run(*command.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("which is read; expected another file\n")
    assert contents(folder) == before


@pytest.mark.parametrize(
    "command",
    [
        "solve p.yaml --out x --trace x",
        "solve p.yaml --out x --report ./sub/../x",
        "solve p.yaml --out x.svg --plot x.svg",
        "solve p.yaml --plot x.svg --plot memory:x.svg",
        "compare p.yaml -s heft --out x.svg --plot x.svg",
        "replace p.yaml plan.json -d devices.yaml --out x --out-problem x",
    ],
)
def test_two_outputs_are_two_files(folder: Path, command: str) -> None:
    before = contents(folder)
    done = run(*command.split())
    assert (done.code, done.out) == (2, "")
    assert "are the same file, " in done.err
    assert contents(folder) == before


@pytest.mark.parametrize(
    "command",
    ["solve p.yaml --out", "simulate p.yaml plan.json --out", "generate layered --out", "profile fit m.csv -b 8 --out"],
)
@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("none/x", "there is no folder none"),
        ("sub", "it is a folder"),
        ("loop", "Too many levels of symbolic links"),
        ("dangling", "there is no folder "),
        ("p.yaml/x", "Not a directory"),
        ("n" * 256, "File name too long"),
    ],
)
def test_a_target_that_cannot_be_written_is_reported_before_the_work(
    folder: Path, command: str, target: str, told: str
) -> None:
    before = contents(folder)
    done = run(*command.split(), target)
    assert (done.code, done.out) == (2, "")
    assert f"cannot write {target}: {told}" in done.err
    assert contents(folder) == before


def test_outputs_that_are_devices_or_pipes_are_written(folder: Path) -> None:
    assert run("solve", "p.yaml", "--out", "/dev/null", "--trace", "/dev/null").code == 0
    assert folder.exists()
    shell = f"{sys.executable} -m placeopt solve p.yaml --out /dev/stdout | grep -c placeopt_plan"
    assert subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True).stdout == "1\n"


def test_a_named_pipe_without_a_reader_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    shell = f"{sys.executable} -m placeopt solve p.yaml --out pipe"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "cannot write pipe: no process reads this named pipe; the plan is printed instead" in done.stderr
    assert "placeopt_plan" in done.stdout
    read = subprocess.run(["bash", "-c", f"cat pipe & {shell} >&2; wait"], capture_output=True, text=True, check=True)
    assert "placeopt_plan" in read.stdout


def test_a_plan_does_not_go_where_stdout_goes(folder: Path) -> None:
    shell = f"{sys.executable} -m placeopt solve p.yaml --out both > both"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--out both is the file of standard output; expected another one" in done.stderr
    assert (folder / "both").read_bytes() == b""


class TestWriteWhole:
    @pytest.mark.parametrize("name", ["n" * 245, "n" * 255, "é" * 127])
    def test_a_name_may_be_as_long_as_the_system_allows(self, tmp_path: Path, name: str) -> None:
        write_whole(tmp_path / name, "content")
        assert (tmp_path / name).read_text() == "content"
        assert os.listdir(tmp_path) == [name]

    @pytest.mark.parametrize("command", ["generate devices small", "profile apply profile.yaml p.yaml"])
    def test_documents_are_written_whole_or_not_at_all(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        Path("out.yaml").write_text("before")
        before = contents(folder)

        def full(_source: object, _target: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        done = run(*command.split(), "--out", "out.yaml")
        assert done.code == 2
        assert contents(folder) == before


@pytest.mark.parametrize("arguments", ["solve {}/p.yaml --out plan.json", "solve {}/p.yaml", "solve p.yaml"])
def test_a_deleted_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = run(*arguments.format(folder).split())
    assert (done.code, done.out) == (2, "")
    assert done.err == "placeopt: the current folder has been deleted; change to another one with `cd`\n"
