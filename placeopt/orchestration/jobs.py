"""Jobs: solves that run in the background, in a thread or in a separate process.

A process gets the arguments of a job on stdin and runs it in a thread. It sends reports with incumbents back, and at
last the result or an error. The end of its stdin cancels the job.
"""

from __future__ import annotations

import asyncio
import atexit
import faulthandler
import os
import pickle
import subprocess
import threading
import time
import traceback
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import IO, Any, Literal
from weakref import WeakSet

from placeopt.bounding.engines.children import ending
from placeopt.bounding.engines.children import start as start_child
from placeopt.errors import ExecutionError, UsageError
from placeopt.model.arrays import checked_number, checked_whole
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.model.units import size_text
from placeopt.orchestration.addresses import counting
from placeopt.orchestration.crosscheck import mapped_back
from placeopt.orchestration.forking import Forked
from placeopt.orchestration.keyboard import stopped_by_keyboard
from placeopt.orchestration.pipeline import solve, solve_run
from placeopt.orchestration.result import Result
from placeopt.orchestration.run import prepare
from placeopt.passes import Chain
from placeopt.protocol import Progress, Solver

GRACE = 30.0
"""Seconds after `cancel` in which the process of a job may end by itself; then it is killed."""

WATCH = 0.1
"""Seconds between two looks at the memory of a process."""

LEAVING = 5.0
"""Seconds that the end of the program waits for each job, which it cancels."""


class Job:
    """A solve that runs in the background; `placeopt.start` returns it. All methods may be called from any thread.

    Iteration, also with `async for`, yields a `Progress` for every new incumbent and bound, from the first one on, and
    ends with the job. Behind passes that may lose the optimum, the reports state no values and no bounds; of problems
    with addresses, they state no values.

    `await job` returns the result like `wait`. A cancelled await cancels the job.
    """

    def __init__(self, problem: Problem, solver: str | Solver | None, options: Mapping[str, Any]) -> None:
        self.problem = problem
        self._cancelled = threading.Event()
        self._future: Future[Result] = _running()
        self._latest = Progress(0.0)
        self._reports: list[Future[Progress | None]] = [_running()]  # the last one is still to come
        self._verifying = threading.Lock()
        self._stated: Schedule | None = None
        self._incumbent: Schedule | None = None
        arguments: dict[str, Any] = {"on_progress": self._hear, "should_stop": self._cancelled.is_set}
        for name in sorted(arguments.keys() & options):
            raise UsageError(f"start takes no {name}; expected a loop over the reports of the job, or job.cancel()")
        call = signature(solve).bind(problem, solver, **arguments, **options)
        call.apply_defaults()
        self._call = partial(solve, *call.args, **call.kwargs)
        self._addresses = isinstance(problem, Problem) and problem.alignment is not None
        self._run = prepare(**call.arguments | ({"problem": counting(problem)} if self._addresses else {}))

    def __repr__(self) -> str:
        state = "running" if not self.done else "failed" if self.result is None else "ended"
        of = f"{self._run.solver.name} on {self.problem.name or 'a problem'}"
        return f"<Job of {of}: {state}, objective {self.objective}, bound {self.bound}>"

    @property
    def done(self) -> bool:
        """Whether the job has ended: with a result, or with an error."""
        return self._future.done()

    @property
    def objective(self) -> Value | None:
        """The best reported value of the objective's first level; None if there is none yet."""
        return (self.result or self._latest).objective

    @property
    def bound(self) -> Value | None:
        """The best proven lower bound of the objective's first level; None if there is none yet."""
        return (self.result or self._latest).bound

    def incumbent(self) -> Schedule | None:
        """Return the best schedule so far, verified as feasible; None if there is none yet.

        This call verifies it, once for each schedule, while the solver goes on. Heuristics that do not search have
        their first schedule at the end, and so have problems with addresses. After an error, this is the last incumbent
        before it.
        """
        if self.result is not None:
            return self.result.schedule if self.result.feasible else None
        with self._verifying:
            stated = self._run.announcer.latest.schedule
            if stated is not None and stated is not self._stated and not self._addresses:
                self._stated = stated
                schedule, report = mapped_back(self._run, self._run.chains[0], stated)
                self._incumbent = schedule if report.feasible else self._incumbent
            return self._incumbent

    def cancel(self) -> None:
        """Ask the solver to stop; `wait` returns its best schedule so far. It may be called at any time, also again.

        A process that has not ended after 30 seconds is killed; the job then ends with an `ExecutionError`.
        """
        self._cancelled.set()

    def wait(self, timeout: float | None = None) -> Result:
        """Return the result, once the job has ended.

        In the main thread, Ctrl-C cancels the job, unless the program handles SIGINT itself. Another Ctrl-C within two
        seconds raises KeyboardInterrupt.

        Parameters
        ----------
        timeout
            Seconds to wait; None for no limit.

        Raises
        ------
        TimeoutError
            If the job has not ended within the timeout. It runs on.
        ExecutionError
            If the process of the job has ended without a result: the solver crashed, or the process was killed.
        Exception
            Any exception of `placeopt.solve` and of the solver.
        """
        seconds = checked_number("timeout", timeout)
        with stopped_by_keyboard(self.cancel):
            wait([self._future], seconds)
        if not self.done:
            raise TimeoutError(f"the job has not ended within {timeout} s; expected a longer timeout, or job.cancel()")
        return self._future.result()

    def __await__(self) -> Generator[Any, None, Result]:
        try:
            return (yield from asyncio.wrap_future(self._future))
        except asyncio.CancelledError:
            self.cancel()
            raise

    def __iter__(self) -> Iterator[Progress]:
        for coming in self._reports:  # the list grows
            if (report := coming.result()) is not None:
                yield report

    async def __aiter__(self) -> AsyncIterator[Progress]:
        for coming in self._reports:
            if (report := await asyncio.wrap_future(coming)) is not None:
                yield report

    @property
    def result(self) -> Result | None:
        """The result; None before the end and after an error."""
        return self._future.result() if self.done and self._future.exception() is None else None

    def _hear(self, report: Progress) -> None:
        if self.done:  # from a thread that the solver has left
            return
        if not all(chain.exact for chain in self._run.chains):
            report = replace(report, objective=None, bound=None)
        if self._addresses:  # the schedule may have no offsets
            report = replace(report, objective=None)
        self._latest = report
        self._reports.append(_running())
        self._reports[-2].set_result(report)

    def _work(self) -> None:
        try:
            self._future.set_result(self._solve())
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            self._future.set_exception(error)
        self._reports[-1].set_result(None)

    def _solve(self) -> Result:
        if self._addresses:
            return self._call()
        return solve_run(self._run, self._cancelled.is_set, time.monotonic())


class ProcessJob(Job):
    """A job that runs in a separate process."""

    def __init__(
        self,
        problem: Problem,
        solver: str | Solver | None,
        options: Mapping[str, Any],
        max_memory: int | None,
        forked: bool,
    ) -> None:
        super().__init__(problem, solver, options)
        self._max_memory, self._exceeded = max_memory, False
        self._run.chains.append(Chain(problem))  # the process maps its schedules back
        try:
            self._arguments = pickle.dumps((problem, solver, options))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(f"process=True: the arguments cannot be pickled: {error}; expected a thread") from error
        self._process = Forked(serve) if forked else start_child(f"from {__name__} import serve; serve()")

    def _solve(self) -> Result:
        commands, answers = self._process.stdin, self._process.stdout
        assert commands is not None
        assert answers is not None
        try:
            with suppress(BrokenPipeError):  # the process has ended, and so will its answers
                commands.write(self._arguments)
                commands.flush()
            threading.Thread(target=self._stop, args=(commands,), daemon=True).start()
            if self._max_memory is not None:
                threading.Thread(target=self._watch, args=(self._max_memory,), daemon=True).start()
            while isinstance(message := self._received(answers), Progress):
                self._run.announcer(message)
        finally:
            self._cancelled.set()
            self._process.kill()
            self._process.wait()
            answers.close()
        if isinstance(message, Result):
            return replace(message, problem=self.problem)
        raise message

    def _received(self, answers: IO[bytes]) -> Any:
        try:
            return pickle.load(answers)
        except (EOFError, pickle.UnpicklingError):
            code = self._process.wait(LEAVING)
            if self._exceeded:
                most = size_text(self._max_memory or 0)
                return ExecutionError(f"the process of the job needed more than {most} of main memory and was killed")
            asked = self._cancelled.is_set()
            return ExecutionError(f"the process of the job {ending(code, killed=asked)}{' after cancel()' * asked}")

    def _stop(self, commands: IO[bytes]) -> None:
        """Once the job is cancelled or has ended, end its process."""
        self._cancelled.wait()
        with suppress(OSError):  # the process has ended
            commands.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._process.kill()

    def _watch(self, most: int) -> None:
        """Kill the process and those that it started, once they hold more bytes of main memory than `most`."""
        import psutil

        with suppress(psutil.NoSuchProcess):  # the process has ended
            process = psutil.Process(self._process.pid)
            looks, family = 0, [process]
            while not self._exceeded and self._process.poll() is None:
                if looks % 10 == 5:  # to find children takes milliseconds
                    family = [process, *process.children(recursive=True)]
                looks, held = looks + 1, 0
                for member in family:
                    with suppress(psutil.Error):  # a child has ended
                        held += member.memory_info().rss
                if held > most:
                    self._exceeded = True
                    for member in family:
                        with suppress(psutil.Error):
                            member.kill()
                time.sleep(WATCH)


def start(
    problem: Problem,
    solver: str | Solver | None = None,
    *,
    process: bool | Literal["forked"] = False,
    max_memory: int | None = None,
    **options: Any,
) -> Job:
    """Start to solve a problem in the background, and return the job at once.

        job = po.start(problem, "auto", time_limit=60)
        for report in job:
            print(report.elapsed, report.objective, report.bound)
        result = job.wait()

    Parameters
    ----------
    solver
        As in `placeopt.solve`.
    process
        Whether the solver runs in a separate process instead of a thread: a crash then ends only the job. The
        arguments are pickled; the class of a solver object must be one that the process can import. "forked" starts
        the process in hundredths of a second instead of tenths, but not on Windows: it is forked from a template, which
        the first such job starts. Like `multiprocessing`, this needs a program that can be imported.
    max_memory
        Bytes of main memory that this process, with those that it starts, may hold. If they hold more, which is
        checked ten times a second, they are killed, and the job ends with an `ExecutionError`. None for no limit.
    **options
        Further arguments of `placeopt.solve`, except `on_progress` and `should_stop`. Unless `workers` is given, each
        job uses all cores.

    Raises
    ------
    UsageError, UnsupportedError
        As `placeopt.solve`, for arguments that are wrong; or if they cannot be pickled for a process.
    """
    if not isinstance(process, bool) and process != "forked":
        raise UsageError(f'process is {process!r}; expected True, False or "forked"')
    if max_memory is not None and not process:
        raise UsageError(f"max_memory is {max_memory}, but the job runs in a thread; expected process=True, too")
    most = None if max_memory is None else checked_whole("max_memory", max_memory, 1, most=2**63 - 1)
    job = ProcessJob(problem, solver, options, most, process == "forked") if process else Job(problem, solver, options)
    _jobs.add(job)
    threading.Thread(target=job._work, name="job", daemon=True).start()
    return job


_jobs: WeakSet[Job] = WeakSet()


@atexit.register
def _end_all() -> None:
    """Cancel all jobs: no thread may run on while Python ends."""
    for job in (left := list(_jobs)):
        job.cancel()
    for job in left:
        wait([job._future], LEAVING)


def _running() -> Future[Any]:
    """A future that those who wait for it cannot cancel."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def serve() -> None:
    """Run in this process the job that it is sent. What the solver prints goes to stderr."""
    answers, commands = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable()

    def say(message: object) -> None:
        answers.write(pickle.dumps(message))
        answers.flush()

    def obey(job: Job) -> None:
        commands.read()
        job.cancel()
        wait([job._future], GRACE)
        os._exit(1) if not job.done else None  # the program is gone, else it would have killed this process

    try:
        try:
            try:
                problem, solver, options = pickle.load(commands)
            except (AttributeError, ImportError) as error:
                what = "expected the class of a solver in a module that can be imported, or a thread"
                raise UsageError(f"process=True: the process cannot load the arguments: {error}; {what}") from None
            job = start(problem, solver, **options)
            threading.Thread(target=obey, args=(job,), daemon=True).start()
            sent = None
            for report in job:
                found = job.incumbent()
                say(replace(report, schedule=None if found is sent else found))
                sent = found
            say(job.wait())
        except BaseException as error:  # noqa: BLE001 - the program raises it
            error.add_note(traceback.format_exc())
            say(_sendable(error))
    finally:
        os._exit(0)  # without waiting for threads that a solver has left


def _sendable(error: BaseException) -> Exception:
    """An exception that the program can unpickle and that does not end it."""
    with suppress(Exception):  # the class belongs to a third party
        if isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    return ExecutionError(f"the solver raised {type(error).__name__}: {error}")
