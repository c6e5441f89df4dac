"""The process that keeps a run: it forks the one that solves, and ends it in time, with all that it started.

That is when the run ends by itself, or when nobody holds the other end of stdin any more: whoever asked for the run
has heard enough, or was killed. The solver has no say in it: it may hang in native code, stop itself, close its stdin,
or start processes in sessions and environments of their own, which become the keeper's children when theirs are gone
(Linux; elsewhere what leaves its process group survives).
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path

TICK = 50
"""Milliseconds between two looks at whether the run has ended."""

_PDEATHSIG, _CHILD_SUBREAPER = 1, 36


def main() -> None:
    """Run the job that comes in on stdin; end as its process does."""
    keeper = os.getpid()
    _ask_kernel(_CHILD_SUBREAPER, 1)
    run = os.fork()
    if run == 0:
        os.setsid()  # signals to its group are no signals to us
        _ask_kernel(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            from placeopt.studies.comparison.child import main as solve

            solve()
        os._exit(1)
    code = _attend(run)
    _kill_children()
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core is enough
        with suppress(OSError):  # SIGKILL is as it always is
            signal.signal(-code, signal.SIG_DFL)
        os.kill(keeper, -code)
    os._exit(max(code, 0))


def _attend(run: int) -> int:
    """The exit code of the run, negative for a signal, once it has ended or was killed since nobody wants it."""
    wanted = select.poll()
    wanted.register(0, 0)  # tells of the other end alone
    status = None
    while status is None and not wanted.poll(TICK):
        child = -1
        while status is None and child:  # others are orphans that became ours
            child, ended = os.waitpid(-1, os.WNOHANG)
            status = ended if child == run else None
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(run, signal.SIGKILL)
    if status is None:
        _, status = os.waitpid(run, 0)
    return os.waitstatus_to_exitcode(status)


def _kill_children() -> None:
    """Kill the children, and theirs, which become ours, until there are none."""
    refused: set[int] = set()
    while found := [child for child in _children() if child not in refused]:
        for child in found:
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            except OSError:  # somebody else's by now
                refused.add(child)


def _children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(path.parent.name))
    return found


def _ask_kernel(option: int, value: int) -> None:
    """Call prctl, where there is one."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
