"""Processes that are forked from a template, a process that has loaded placeopt and its solvers: they start at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import IO, Any

from placeopt.errors import UsageError
from placeopt.protocol.registry import solver_modules


def start_template(run: Callable[[], None]) -> Any:
    """Start the template for processes that run a function, unless it runs; return its context of `multiprocessing`."""
    if sys.platform == "win32":
        raise UsageError('process is "forked", but Windows has no fork; expected process=True')
    from multiprocessing import forkserver, resource_tracker

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([run.__module__, *solver_modules(), "placeopt.orchestration.template"])
    resource_tracker.ensure_running()  # it would unblock the signal again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C would end the template while it loads
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return context


class Forked:
    """A process that runs a function with pipes as its stdin and stdout; used like a `subprocess.Popen`.

    All of them share the template, which ends with this program.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        context = start_template(run)
        (commands, ours), (theirs, answers) = context.Pipe(duplex=False), context.Pipe(duplex=False)
        self._process = context.Process(target=_become, args=(run, commands, answers), daemon=True)
        self._reading = threading.Lock()  # only one thread may read the exit code, and only once
        self._process.start()
        commands.close()
        answers.close()
        self.pid = self._process.pid or 0
        self.stdin: IO[bytes] = os.fdopen(os.dup(ours.fileno()), "wb")
        self.stdout: IO[bytes] = os.fdopen(os.dup(theirs.fileno()), "rb")
        ours.close()
        theirs.close()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        with self._reading:
            code: int | None = self._process.exitcode
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code; raises a `subprocess.TimeoutExpired`."""
        wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return code

    def kill(self) -> None:
        """Kill the process, if it has not ended."""
        with self._reading:
            if self._process.exitcode is None:
                self._process.kill()


def _become(run: Callable[[], None], commands: Connection, answers: Connection) -> None:
    """Run the function in the forked process."""
    os.setsid()  # only the program handles Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # the template blocks it
    os.dup2(commands.fileno(), 0)
    os.dup2(answers.fileno(), 1)
    commands.close()
    answers.close()
    run()
