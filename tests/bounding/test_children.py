"""How child processes start, exchange messages and end."""

from __future__ import annotations

import queue
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from placeopt.bounding.engines.children import Child, ending, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals of this kind")


@pytest.mark.parametrize(
    ("code", "killed", "text"),
    [
        (0, False, "ended with exit code 0"),
        (7, True, "ended with exit code 7"),
        (-signal.SIGSEGV, False, "died of SIGSEGV"),
        (-9, False, "died of SIGKILL (out of memory?)"),
        (-9, True, "died of SIGKILL"),
        (-200, False, "died of signal 200"),
    ],
)
def test_how_a_process_ended(code: int, killed: bool, text: str) -> None:
    assert ending(code, killed=killed) == text


def test_a_statement_imports_what_this_process_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "found_here.py").write_text("print(42)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with start("import found_here") as process:
        assert process.communicate() == (b"42\n", None)


def test_messages_come_in_order_and_the_last_one_is_none(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text("import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n")
    heard: queue.Queue[Any] = queue.Queue()
    child = Child(script, heard.put)
    for message in ({"a": 1}, [1, "ä"]):
        child.send(message)
        assert heard.get(timeout=60) == message
    child.process.kill()
    assert child.process.wait() == -signal.SIGKILL
    with pytest.raises(BrokenPipeError, match="Broken pipe"):
        child.send({})
    child.close()
    assert heard.get(timeout=60) is None
