"""Jobs: solves that run beside the program, in a thread or in a process of their own.

A process is sent the problem and runs the job in a thread. It sends reports and incumbents back, and the result last.
"""

from __future__ import annotations

import asyncio
import atexit
import faulthandler
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from concurrent import futures
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import IO, Any
from weakref import WeakSet

from placeopt.errors import ExecutionError, UsageError
from placeopt.model.arrays import checked_number
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.crosscheck import mapped_back
from placeopt.orchestration.keyboard import stopped_by_keyboard
from placeopt.orchestration.pipeline import solve, solve_run
from placeopt.orchestration.result import Result
from placeopt.orchestration.run import prepare
from placeopt.protocol import Progress, Solver

GRACE = 30.0
"""Seconds after `cancel` in which the process of a job may end by itself; then it is killed."""

LEAVING = 5.0
"""Seconds that the end of the program waits for each job that it has cancelled."""

# The process imports the same packages as this one.
_START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from placeopt.orchestration.jobs import serve
serve()"""


class Job:
    """A solve that runs beside the program; `placeopt.start` returns it. All methods may be called from any thread.

        job = po.start(problem, "auto", time_limit=60)
        for report in job:
            print(report.elapsed, report.objective, report.bound)
        result = job.wait()

    Iteration, also with `async for`, yields a `Progress` for every new incumbent and bound, from the first one on, and
    ends with the job. Behind passes that may lose the optimum, the reports state no values and no bounds.

    `await job` returns the result like `wait`. A cancelled await cancels the job.
    """

    def __init__(self, problem: Problem, solver: str | Solver | None, options: Mapping[str, Any]) -> None:
        self.problem = problem
        self._reports: list[Progress] = []
        self._changed = threading.Condition()
        self._wakers: list[Callable[[], object]] = []
        self._cancelled = threading.Event()
        self._future: futures.Future[Result] = futures.Future()
        self._future.set_running_or_notify_cancel()
        self._finding = threading.Lock()
        self._stated: Schedule | None = None
        self._incumbent: Schedule | None = None
        arguments: dict[str, Any] = {"on_progress": self._hear, "should_stop": self._cancelled.is_set}
        for name in sorted(arguments.keys() & options):
            raise UsageError(f"start takes no {name}; expected a loop over the reports of the job, or job.cancel()")
        call = signature(solve).bind(problem, solver, **arguments, **options)
        call.apply_defaults()
        self._run = prepare(**call.arguments)

    def __repr__(self) -> str:
        state = "running" if not self.done else "failed" if self._future.exception() else "ended"
        name, values = self.problem.name or "a problem", f"objective {self.objective}, bound {self.bound}"
        return f"<Job of {self._run.solver.name} on {name}: {state}, {values}>"

    @property
    def done(self) -> bool:
        """Whether the job has ended: with a result, or with an error."""
        return self._future.done()

    @property
    def objective(self) -> Value | None:
        """The best reported value of the objective's first level; None if there is none yet."""
        result = self._result()
        return self._latest.objective if result is None else result.objective

    @property
    def bound(self) -> Value | None:
        """The best proven lower bound of the objective's first level; None if there is none yet."""
        result = self._result()
        return self._latest.bound if result is None else result.bound

    def incumbent(self) -> Schedule | None:
        """Return the best schedule so far, verified as feasible; None if there is none yet.

        It is verified by this call, once for each schedule; the solver goes on meanwhile. Heuristics that do not search
        have their first schedule at the end. After an error, this is the last incumbent before it.
        """
        result = self._result()
        if result is not None:
            return result.schedule if result.feasible else None
        with self._finding:
            self._find()
            return self._incumbent

    def cancel(self) -> None:
        """Ask the solver to stop; `wait` returns its best schedule so far. It may be called again, and at any time.

        A process that has not ended after 30 seconds is killed; the job then ends with an `ExecutionError`.
        """
        self._cancelled.set()

    def wait(self, timeout: float | None = None) -> Result:
        """Return the result, once the job has ended.

        In the main thread, Ctrl-C cancels the job and returns its incumbent, unless the program handles SIGINT itself.
        Another Ctrl-C within two seconds raises KeyboardInterrupt.

        Parameters
        ----------
        timeout
            Seconds to wait; None for no limit. The job runs on after a TimeoutError.

        Raises
        ------
        TimeoutError
            If the job has not ended within the timeout.
        ExecutionError
            If the process of the job has ended without a result: the solver crashed, or somebody killed it.
        UsageError
            If the timeout is not a number of seconds.
        Exception
            Any exception of `placeopt.solve` and of the solver.
        """
        seconds = checked_number("timeout", timeout)
        with stopped_by_keyboard(self.cancel):
            futures.wait([self._future], seconds)
        if not self.done:
            raise TimeoutError(f"the job has not ended within {timeout} s; expected a longer timeout, or job.cancel()")
        return self._future.result()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._awaited().__await__()

    async def _awaited(self) -> Result:
        try:
            return await asyncio.wrap_future(self._future)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def __iter__(self) -> Iterator[Progress]:
        seen = 0
        while True:
            with self._changed:
                while not self.done and len(self._reports) == seen:
                    self._changed.wait()
                reports = self._reports[seen:]
            if not reports:
                return
            yield from reports
            seen += len(reports)

    async def __aiter__(self) -> AsyncIterator[Progress]:
        loop, woken, seen = asyncio.get_running_loop(), asyncio.Event(), 0

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(woken.set)

        with self._changed:
            self._wakers.append(wake)
        try:
            while True:
                woken.clear()
                done = self.done  # if so, all reports are there
                for report in self._reports[seen:]:
                    seen += 1
                    yield report
                if done:
                    return
                await woken.wait()
        finally:
            with self._changed:
                self._wakers.remove(wake)

    @property
    def _latest(self) -> Progress:
        return self._reports[-1] if self._reports else Progress(0.0)

    def _result(self) -> Result | None:
        """The result; None before the end and after an error."""
        return self._future.result() if self.done and self._future.exception() is None else None

    def _hear(self, report: Progress) -> None:
        """Keep a report and tell all that wait for it."""
        if not all(chain.exact for chain in self._run.chains):
            report = replace(report, objective=None, bound=None)
        self._reports.append(report)
        self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()
            for wake in self._wakers:
                wake()

    def _work(self) -> None:
        try:
            self._future.set_result(self._solve())
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            self._future.set_exception(error)
        self._tell()

    def _solve(self) -> Result:
        return solve_run(self._run, self._cancelled.is_set, time.monotonic())

    def _find(self) -> None:
        """Map the latest schedule that the solver stated back to the problem, and verify it."""
        stated = self._run.announcer.latest.schedule
        if stated is None or stated is self._stated:
            return
        self._stated = stated
        schedule, report = mapped_back(self._run, self._run.chains[0], stated)
        if report.feasible:
            self._incumbent = schedule


class ProcessJob(Job):
    """A job that runs in a process of its own."""

    def __init__(self, problem: Problem, solver: str | Solver | None, options: Mapping[str, Any]) -> None:
        super().__init__(problem, solver, options)
        try:
            self._sent = pickle.dumps((problem, solver, options), pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(f"process=True: the arguments cannot be pickled: {error}; expected a thread") from error
        self._killed = ""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(list(map(str, sys.path)))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # only this process handles Ctrl-C
        )

    def _solve(self) -> Result:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            with suppress(BrokenPipeError):  # the process has ended, as its output will
                self._process.stdin.write(self._sent)
                self._process.stdin.flush()
            threading.Thread(target=self._stop, args=(self._process.stdin,), daemon=True).start()
            while isinstance(message := self._received(self._process.stdout), tuple):
                report, schedule = message
                self._incumbent = schedule or self._incumbent
                self._hear(report)
            if isinstance(message, Result):
                return replace(message, problem=self.problem)
            raise message
        finally:
            self._cancelled.set()
            self._process.kill()  # it has sent all that it has to say
            self._process.wait()
            self._process.stdout.close()

    def _received(self, answers: IO[bytes]) -> Any:
        """The next message of the process: a report and perhaps a schedule, or at last a result or an exception."""
        try:
            return pickle.load(answers)
        except (EOFError, pickle.UnpicklingError):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVING)
            how = self._killed or _death(self._process.poll())
            raise ExecutionError(f"the process of the job {how}") from None

    def _stop(self, commands: IO[bytes]) -> None:
        """Once the job is cancelled, tell the process, and kill it if it does not end."""
        self._cancelled.wait()
        with suppress(OSError):  # the process has ended
            commands.close()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._killed = f"was killed: it had not ended {GRACE:g} s after it was cancelled"
            self._process.kill()

    def _find(self) -> None:
        """The process sends its incumbents itself."""


def start(problem: Problem, solver: str | Solver | None = None, *, process: bool = False, **options: Any) -> Job:
    """Start to solve a problem beside the program, and return the job at once.

    Parameters
    ----------
    solver
        As in `placeopt.solve`.
    process
        Whether the solver runs in a process of its own instead of a thread: a crash then ends only the job. The
        process needs some tenths of a second to start. The arguments are pickled; a solver object must be of a class
        that the process can import.
    **options
        Further arguments of `placeopt.solve`, except `on_progress` and `should_stop`. With several jobs, `workers=1` is
        a good choice, because each job uses all cores otherwise.

    Raises
    ------
    UsageError, UnsupportedError, MissingExtraError
        As `placeopt.solve`, for arguments that are wrong; or if the arguments cannot be pickled for a process.
    """
    if not isinstance(process, bool):
        raise UsageError(f"process is {process!r}; expected True or False")
    job = (ProcessJob if process else Job)(problem, solver, options)
    thread = threading.Thread(target=job._work, name="job", daemon=True)
    with _lock:
        _running.add(job)
    thread.start()
    return job


_running: WeakSet[Job] = WeakSet()
_lock = threading.Lock()


@atexit.register
def _end_all() -> None:
    """Cancel all jobs, because threads must not run on while Python ends."""
    with _lock:
        left = [job for job in _running if not job.done]
    for job in left:
        job.cancel()
    for job in left:
        futures.wait([job._future], LEAVING)


def _death(code: int | None) -> str:
    """How a process ended, for a message."""
    if code is None:
        return "closed its output"
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"died of {signal.Signals(-code).name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
    return f"died of signal {-code}"


def serve() -> None:
    """Run in this process the job that it is sent. What the solver prints goes to stderr."""
    answers, commands = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable()

    def say(message: object) -> None:
        text = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        answers.write(text)
        answers.flush()

    def obey(job: Job) -> None:
        commands.read()  # ends once the job is cancelled, or with the program
        job.cancel()
        futures.wait([job._future], GRACE)
        if not job.done:
            os._exit(1)  # the program is gone, else it would have killed this process

    try:
        try:
            problem, solver, options = pickle.load(commands)
            job = start(problem, solver, **options)
            threading.Thread(target=obey, args=(job,), daemon=True).start()
            last = None
            for report in job:
                found = job.incumbent()
                say((report, None if found is last else found))
                last = found
            say(job.wait())
        except BaseException as error:  # noqa: BLE001 - the program raises it
            error.add_note(traceback.format_exc())
            say(_sendable(error))
    finally:
        os._exit(0)  # without waiting for threads that a solver has left


def _sendable(error: BaseException) -> Exception:
    """An exception that the program can unpickle and that does not end it."""
    try:
        if isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # noqa: BLE001 - the class belongs to a third party
        pass
    return ExecutionError(f"the solver raised {type(error).__name__}: {error}")
