"""Child processes that run Python: how one starts, exchanges lines of JSON, is closed, and how it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_IMPORT_ALIKE = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "


def start(code: str | Path, **settings: Any) -> subprocess.Popen[bytes]:
    """Start Python with pipes as stdin and stdout; only this process handles Ctrl-C.

    A statement can import what this process can. A script is independent of the environment; its first argument has
    `sys.path` as JSON. Settings are those of `subprocess.Popen`.
    """
    call = ["-I", str(code)] if isinstance(code, Path) else ["-P", "-c", _IMPORT_ALIKE + code]
    return subprocess.Popen(
        [sys.executable, *call, json.dumps(list(map(str, sys.path)))],
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True, **settings},
    )


def ending(code: int, *, killed: bool = False) -> str:
    """Return how a process ended, by its exit code, negative for a signal; `killed`: by this process, perhaps."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = {int(known): known.name for known in signal.Signals}.get(-code, f"signal {-code}")
    return f"died of {name}{' (out of memory?)' if name == 'SIGKILL' and not killed else ''}"


class Child:
    """A process that runs a script and exchanges messages, one JSON object a line.

    `hear` is called from a thread with each message, and with None once the process has closed its output.
    """

    def __init__(self, script: Path, hear: Callable[[Any], None], **settings: Any) -> None:
        self.process = start(script, **settings)
        self._hear = hear
        self._listener = threading.Thread(target=self._listen, name="listener", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):  # else the process was killed while it wrote
                self._hear(json.loads(line))
        self._hear(None)

    def send(self, message: Any) -> None:
        """Send a message; raises an OSError if the process has ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self._listener.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):  # the process has not read all
                pipe.close()
