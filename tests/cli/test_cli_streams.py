"""stdout and stderr that cannot encode a name, or are closed while a command runs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import run

from placeopt.cli.streams import LostError, Stream
from placeopt.io.document import parse_document
from placeopt.io.formats.documents import to_yaml

ENCODINGS = (
    "ascii", "latin-1", "cp1252", "cp437", "koi8-r", "mac-roman", "cp037", "shift_jis", "gb18030", "iso2022_jp",
    "utf-8", "utf-8-sig", "utf-16", "utf-32",
)  # fmt: skip
NAMES = ["é", "中文", "😀", "ß Ω", "a\u0301", "\u2028y", "back\\slash é"]
DOCUMENT: dict[str, Any] = {
    "placeopt": 1,
    "name": "großes Problem",
    "devices": {"gerät": {"type": "тип"}, "装置": {}},
    "links": {"default": {"latency": 1}, "overrides": [{"between": ["gerät", "装置"], "latency": 2}]},
    "tasks": {name: {"time": {"gerät": 3, "装置": 2}} for name in NAMES},
}


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "größe.json"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    return path


class TestEncodings:
    @pytest.mark.parametrize("encoding", ENCODINGS)
    def test_what_a_stream_lacks_is_escaped(self, problem: Path, encoding: str) -> None:
        done = run("solve", problem, encoding=encoding)
        assert done.code == 0
        assert "feasible" in done.out
        encodable = "装置".encode(encoding, "replace").decode(encoding) == "装置"
        assert ("装置" if encodable else r"\u88c5\u7f6e") in done.out
        missing = run("solve", problem.with_name("é中.yaml"), encoding=encoding)
        assert (missing.code, missing.out) == (2, "")
        assert "no such file" in missing.err

    @pytest.mark.parametrize(
        "command",
        ["inspect", "bounds -t 0.1", "compare -s heft --csv", "--help", "solvers lns", "passes"],
    )
    def test_all_commands(self, problem: Path, command: str) -> None:
        name, *options = command.split()
        given = [problem] if name in ("inspect", "bounds", "compare") else []
        assert run(name, *given, *options, encoding="ascii").code == 0

    @pytest.mark.parametrize("encoding", ENCODINGS)
    def test_a_document_on_stdout_stays_what_it_is(
        self, problem: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
    ) -> None:
        monkeypatch.setattr("placeopt.generate.networks.network_document", lambda _name: DOCUMENT)
        done = run("generate", "devices", "small", encoding=encoding)
        assert done.code == 0
        assert parse_document(done.out).data == DOCUMENT
        assert list(json.loads(run("solve", problem, "--json", encoding=encoding).out)["placement"]) == NAMES

    def test_ascii_is_asked_for_by_name(self) -> None:
        text = to_yaml(DOCUMENT, ascii_only=True)
        assert text.isascii()
        assert parse_document(text).data == DOCUMENT
        assert "gerät: {type: тип}" in to_yaml(DOCUMENT)

    def test_a_process_in_the_c_locale(self, problem: Path) -> None:
        locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = subprocess.run(
            [sys.executable, "-m", "placeopt", "inspect", problem],
            env=os.environ | locale,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert rb"gro\xdfes Problem" in done.stdout


@pytest.mark.parametrize("columns", ["0", "00", ""])
def test_a_width_of_zero_is_unknown(problem: Path, columns: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "placeopt", "solve", problem],
        env=os.environ | {"COLUMNS": columns}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"feasible: the verifier found no violation" in done.stdout


@pytest.mark.parametrize("columns", [None, "80"])
def test_lines_of_a_pipe_end_without_blanks_and_are_wrapped_only_for_columns(columns: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-m", "placeopt", "solvers", "heft"], capture_output=True, text=True, check=True,
        env=environment if columns is None else environment | {"COLUMNS": columns},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert all(line == line.rstrip() for line in lines)
    whole = "list scheduling by upward rank, each task where it ends first (Topcuoglu et al. 2002)"
    assert (whole in lines[0], max(map(len, lines)) > 80) == (columns is None, columns is None)


class Broken(io.RawIOBase):
    """A device that takes no more."""

    def __init__(self) -> None:
        self.null = os.open(os.devnull, os.O_WRONLY)
        self.tries = 0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.null

    def write(self, data: Any) -> int:
        self.tries += 1
        if self.tries == 1:
            raise OSError(28, "No space left on device")
        return len(data)

    def close(self) -> None:
        if not self.closed:
            os.close(self.null)
        super().close()


class TestLostStreams:
    @staticmethod
    def broken() -> Stream:
        return Stream(io.BufferedWriter(Broken()), "utf-8", "backslashreplace")

    def test_the_first_failure_is_raised_and_the_rest_goes_nowhere(self) -> None:
        stream = self.broken()
        print("a result", file=stream)
        with pytest.raises(LostError, match=r"^$"):
            stream.flush()
        assert stream.failure is not None
        print("more", file=stream, flush=True)

    def test_a_lasting_stream_raises_nothing(self) -> None:
        stream = self.broken()
        stream.lasting = True
        print("a result", file=stream, flush=True)
        assert stream.failure is not None

    def test_a_filter_ends_quietly(self) -> None:
        """As in `| head` after head has ended: nothing reads the pipe."""
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "placeopt", "schema"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, "")
