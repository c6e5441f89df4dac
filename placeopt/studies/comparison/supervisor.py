"""Supervise the process of a run, and kill it together with every process that it started.

The supervisor forks the process that solves. It ends that process when the run is over, or when the other end of stdin
is closed: the caller has the outcome, or was killed. The solver cannot prevent this. It may hang in native code, stop
itself, close its stdin, or start processes in sessions and environments of their own: on Linux these become children
of the supervisor when their parents end. On other systems, processes that leave the process group survive.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress

import psutil

VARIABLE = "PLACEOPT_RUN"
"""Environment variable that marks the process of a run; its child processes inherit it."""

TICK = 50
"""Milliseconds between two checks whether the run has ended."""

_PDEATHSIG, _CHILD_SUBREAPER = 1, 36


def kill_marked(tag: str) -> None:
    """Kill every other process of this user whose mark is the tag, or starts with the tag and a slash."""
    # Twice: the second pass finds processes that were being started during the first.
    for _ in range(2):
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it has ended, or belongs to another user
                mark = process.environ().get(VARIABLE, "")
                if f"{mark}/".startswith(f"{tag}/") and process.pid != os.getpid():
                    process.kill()


def kill_group(leader: int) -> None:
    """Kill a process group. Its leader must not have been waited for, so that its process id is not reused."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def main() -> None:
    """Run the job from stdin in a child process; end with the exit code or the signal of that process."""
    supervisor = os.getpid()
    _prctl(_CHILD_SUBREAPER, 1)
    run = os.fork()
    if run == 0:
        os.setsid()  # signals to its group do not reach the supervisor
        _prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == supervisor:
            from placeopt.studies.comparison.child import main as solve

            solve()
        os._exit(1)
    code = _exit_code(run)
    _kill_children()
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core dump is enough
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(supervisor, -code)
    os._exit(max(code, 0))


def _exit_code(run: int) -> int:
    """Wait until the run ends, or kill it when stdin is closed; return its exit code, negative for a signal."""
    stdin = select.poll()
    stdin.register(0, 0)  # reports only that the other end is closed
    status = None
    while status is None and not stdin.poll(TICK):
        child = -1
        while status is None and child:  # other children are adopted orphans
            child, ended = os.waitpid(-1, os.WNOHANG)
            status = ended if child == run else None
    kill_group(run)
    if status is None:
        _, status = os.waitpid(run, 0)
    return os.waitstatus_to_exitcode(status)


def _kill_children() -> None:
    """Kill all children, and their children, which are adopted in turn."""
    refused: set[int] = set()
    while found := [child for child in psutil.Process().children() if child.pid not in refused]:
        for child in found:
            try:
                child.kill()
                os.waitpid(child.pid, 0)
            except (psutil.Error, OSError):  # it belongs to another user
                refused.add(child.pid)


def _prctl(option: int, value: int) -> None:
    """Call prctl on Linux."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
