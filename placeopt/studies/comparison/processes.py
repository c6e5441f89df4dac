"""Processes that belong to a run: found and killed with all that they started."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

VARIABLE = "PLACEOPT_RUN"
"""Environment variable that marks the process of a run; what that starts inherits it, even in a session of its own."""


def kill_marked(tag: str) -> None:
    """Kill every process of this user that carries the tag, or one that begins with it and a slash.

    Where the system does not show environments in /proc (all but Linux), nothing is found: there the process group
    of a run (`kill_group`) is all that can be killed.
    """
    own = os.getpid()
    # Twice: one that was just being started while the others were killed is found the second time.
    for _ in range(2):
        for pid in _marked(tag):
            if pid != own:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def _marked(tag: str) -> list[int]:
    exact, beginning = f"{VARIABLE}={tag}".encode(), f"{VARIABLE}={tag}/".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is somebody else's
            continue
        if any(variable == exact or variable.startswith(beginning) for variable in variables):
            found.append(int(folder.name))
    return sorted(found)


def kill_group(leader: int) -> None:
    """Kill the process group of a leader that has not been waited for: until then no other can have its number."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
