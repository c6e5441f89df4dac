"""Run a plan on a Dask cluster, and compare measured times with predicted ones.

Each task is submitted with the address of its worker, and to no other worker. The place of a task in the plan is its
priority: of the tasks whose inputs have arrived, a worker with one thread runs the first one. So the worker fetches
inputs of later tasks meanwhile, and no task waits for an answer of the scheduler. Where the order must be that of the
plan, or where a worker has several threads or runs several devices, each task also depends on the one before it on its
device. The result of a task then stays on its worker until the next task of the device ends.

Starts in the plan are not waited for; only the order counts. Times are those of the clocks of the workers' machines,
which must agree: Dask's own estimate of their difference is off by milliseconds.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_in_threads
from dataclasses import dataclass
from fractions import Fraction
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from placeopt.bridges.extras import require
from placeopt.errors import ExecutionError, UsageError, counted, listing, suggestion, visible
from placeopt.model.arrays import Int
from placeopt.model.building import with_changes
from placeopt.model.ports import PORTLESS
from placeopt.model.problem import BUSY, Problem, check_problem
from placeopt.model.schedule import Schedule, check_schedule, durations, makespan, sequence
from placeopt.model.units import time_text
from placeopt.verifier import Report, verify

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client, Future

POLL = 0.5
"""Seconds between two checks that all workers are alive."""
_LONGEST = 5000
"""Maximum number of characters of the message of an exception; Dask replaces exceptions with longer messages."""
_STORE = "_placeopt_runs"
"""The attribute of a worker with the measured times of each run."""

Function = Callable[[Mapping[str, Any]], Any]
"""Computes a task from the results of its producers, by name."""


class Planned(Protocol):
    """A result or a plan."""

    @property
    def schedule(self) -> Schedule | None:
        """The schedule to run."""


@dataclass(frozen=True, slots=True, eq=False)
class DaskRun:
    """The measured run of a plan.

    Attributes
    ----------
    problem, planned
        The problem and the schedule that were run.
    schedule
        The measured schedule. Tick 0 is the start of the first task; times are rounded down to ticks.
    durations
        (n,) measured ticks of each task.
    received
        (n,) seconds that the worker spent on receiving inputs of each task. Inputs that arrive for another task of the
        worker count there only.
    results
        The results of the gathered tasks by name.
    fitted
        The problem with the measured durations on the planned devices and with free transfers.
    report
        The verification of `schedule` against `fitted`.
    unrestricted_makespan
        Measured ticks of the same graph where Dask chooses workers and order; None without `compare`.
    """

    problem: Problem
    planned: Schedule
    schedule: Schedule
    durations: Int
    received: np.ndarray[Any, np.dtype[np.float64]]
    results: Mapping[str, Any]
    fitted: Problem
    report: Report
    unrestricted_makespan: int | None = None

    @property
    def makespan(self) -> int:
        """Measured ticks from the start of the first task to the end of the last one."""
        return makespan(self.fitted, self.schedule)

    @property
    def predicted_makespan(self) -> int:
        """Ticks from tick 0 to the end of the last task in the plan."""
        return makespan(self.problem, self.planned)

    @property
    def deviation(self) -> float | None:
        """Relative deviation of the predicted from the measured makespan; None if nothing took a tick."""
        return (self.predicted_makespan - self.makespan) / self.makespan if self.makespan else None

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each task: predicted and measured start, end and duration, and `received`, in seconds."""
        require("pandas", "frames", "data frames")
        import pandas

        tick = float(self.problem.resolution)
        took = durations(self.problem, self.planned.device)
        columns: dict[str, Any] = {
            "task": list(self.problem.task_names),
            "device": [self.problem.device_names[d] for d in self.planned.device],
            "predicted_start": self.planned.start * tick,
            "start": self.schedule.start * tick,
            "predicted_end": (self.planned.start + took) * tick,
            "end": (self.schedule.start + self.durations) * tick,
            "predicted_duration": took * tick,
            "duration": self.durations * tick,
            "received": self.received,
        }
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        name = f" of {visible(self.problem.name)}" if self.problem.name else ""
        measured, predicted = (
            time_text(ticks, self.problem.resolution) for ticks in (self.makespan, self.predicted_makespan)
        )
        off = "" if self.deviation is None else f" ({self.deviation:+z.1%})"
        verdict = "" if self.report.feasible else f", {counted(len(self.report.violations), 'violation')}"
        tasks = counted(self.problem.n_tasks, "task")
        verdict = f"{self._against}{verdict}"
        return f"<DaskRun{name}: {tasks}, measured makespan {measured}, predicted {predicted}{off}{verdict}>"

    @property
    def _against(self) -> str:
        """The comparison with Dask's own schedule."""
        own = self.unrestricted_makespan
        if own is None:
            return ""
        text = f", Dask's own schedule {time_text(own, self.problem.resolution)}"
        shorter, longer = sorted((own, self.makespan))
        if shorter == longer or not shorter:
            return text
        return f"{text}: {'the plan' if self.makespan == shorter else 'Dask'} is {longer / shorter:.2f} times as fast"


def run_on_dask(
    client: Client,
    problem: Problem,
    plan: Schedule | Planned,
    functions: Mapping[str, Function],
    *,
    workers: Mapping[str, str] | None = None,
    gather: Sequence[str] | None = None,
    in_order: bool = False,
    compare: bool = False,
) -> DaskRun:
    """Run each task on the worker that a plan names, with the order of the plan as priority.

    Placeopt must be installed on the workers.

    Parameters
    ----------
    plan
        A feasible schedule of the problem, or a plan or result with one.
    functions
        The function of each task, by name. It takes a mapping from the names of the producers to their results, and
        returns the result of the task. `from_dask` returns the functions of a Dask graph.
    workers
        The name or the address of the worker of each device that the plan uses. Default: the worker with the name of
        the device. Two devices may share a worker with two threads.
    gather
        The tasks whose results are returned. Default: the tasks without consumers.
    in_order
        Whether a task also waits for the task before it in the plan. Otherwise a worker with one thread runs a later
        task if the inputs of earlier ones have not arrived. On other workers, tasks always wait.
    compare
        Whether the graph runs a second time, without the plan: Dask chooses the order, and for each task any worker of
        the cluster. Every function is then called twice.

    Raises
    ------
    UsageError
        If the plan is not feasible, a function or a worker is missing, a function cannot be sent to a worker, or the
        client is asynchronous.
    ExecutionError
        If a function raises an exception, which is its cause; if a worker is lost, or the run is cancelled. No task of
        the run is left on the cluster.
    MissingExtraError
        If Dask is not installed.
    """
    require("distributed", "dask", "run_on_dask and Dask clusters")
    from distributed import Client

    if not isinstance(client, Client) or client.asynchronous:
        raise UsageError(f"run_on_dask takes a synchronous Client of distributed, got {type(client).__name__}")
    schedule = _checked(problem, plan)
    names = problem.task_names
    gathered = _gathered(problem, gather)
    if lacking := [name for name in names if name not in functions]:
        raise UsageError(f"functions: {counted(len(lacking), 'task')} without a function: {listing(lacking)}")
    addresses = _addresses(client, problem, schedule, workers)
    free = set() if in_order else _free(client, addresses)
    times, results = _Run(client, problem, schedule, addresses, free).execute(functions, gathered)
    own = None
    if compare and problem.n_tasks:
        spans, _ = _Run(client, problem, schedule, addresses, free, planned=False).execute(functions, [])
        start, end = min(row[0] for row in spans.values()), max(row[1] for row in spans.values())
        own = int(Fraction(end - start) / problem.resolution)
    return _measured(problem, schedule, times, results, own)


def _checked(problem: Problem, plan: object) -> Schedule:
    check_problem("run_on_dask", problem)
    schedule: Any = plan if isinstance(plan, Schedule) else getattr(plan, "schedule", plan)
    check_schedule("run_on_dask", problem, schedule)
    assert isinstance(schedule, Schedule)
    found = verify(problem, schedule)
    if not found.feasible:
        raise UsageError(f"the plan is not feasible: {listing([str(each) for each in found.violations], 3, '; ')}")
    return schedule


def _gathered(problem: Problem, gather: Sequence[str] | None) -> list[str]:
    names = problem.task_names
    if gather is None:
        consumed = np.zeros(problem.n_tasks, dtype=np.bool_)
        consumed[problem.edge_source] = True
        return [names[i] for i in np.flatnonzero(~consumed)]
    for name in gather:
        if name not in names:
            raise UsageError(f'gather: no task is called "{visible(str(name))}"{suggestion(str(name), names)}')
    return list(gather)


def _addresses(
    client: Client, problem: Problem, schedule: Schedule, workers: Mapping[str, str] | None
) -> dict[int, str]:
    """The address of the worker of each device that the schedule uses."""
    alive = client.run_on_scheduler(worker_names)
    by_name = {name: address for address, name in sorted(alive.items(), key=lambda pair: pair[1])}
    known = by_name | {address: address for address in by_name.values()}
    found: dict[int, str] = {}
    missing: list[str] = []
    for d in np.unique(schedule.device).tolist():
        device = problem.device_names[d]
        worker = device if workers is None else workers.get(device)
        if worker is None:
            missing.append(f"{device} (not in workers)")
        elif str(worker) not in known:
            missing.append(device if workers is None else f"{device} ({worker})")
        else:
            found[d] = known[str(worker)]
    if missing:
        raise UsageError(f"no worker for the devices {listing(missing)}; workers are {listing(list(by_name))}")
    return found


def _free(client: Client, addresses: Mapping[int, str]) -> set[int]:
    """The devices that are alone on a worker with one thread, which runs one task at a time anyway."""
    threads = client.run_on_scheduler(worker_threads)
    devices = Counter(addresses.values())
    return {d for d, address in addresses.items() if threads.get(address) == devices[address] == 1}


def worker_threads(dask_scheduler: Any) -> dict[str, int]:
    """Return the number of threads of each worker by address; runs on the scheduler."""
    return {worker.address: worker.nthreads for worker in dask_scheduler.workers.values()}


def worker_names(dask_scheduler: Any) -> dict[str, str]:
    """Return the name of each worker by address; runs on the scheduler."""
    return {worker.address: str(worker.name) for worker in dask_scheduler.workers.values()}


class _Run:
    """The tasks of a run on the cluster."""

    def __init__(
        self,
        client: Client,
        problem: Problem,
        schedule: Schedule,
        addresses: Mapping[int, str],
        free: Collection[int],
        *,
        planned: bool = True,
    ) -> None:
        self._client, self._problem, self._schedule = client, problem, schedule
        self._addresses, self._number = addresses, uuid.uuid4().hex
        self._free = free
        """Devices whose tasks need not wait for the one before them."""
        self._planned = planned
        """Whether the plan, and not Dask, chooses workers and order."""
        self._futures: dict[str, Future] = {}

    def execute(
        self, functions: Mapping[str, Function], gathered: Sequence[str]
    ) -> tuple[Mapping[str, tuple[float, float, float]], Mapping[str, Any]]:
        """Run all tasks; return their times and the results of some. No task is left on the cluster."""
        try:
            futures = self._submit(functions)
            self._wait()
            results = self._watched(self._client.gather, [futures[name] for name in gathered])
            times = self._watched(self._times)
        except BaseException:
            self._cancel()
            raise
        for future in futures.values():
            future.release()
        return times, dict(zip(gathered, results, strict=True))

    def _submit(self, functions: Mapping[str, Function]) -> Mapping[str, Future]:
        """Submit all tasks in the order of the plan; return their futures by name."""
        problem, names = self._problem, self._problem.task_names
        last: dict[int, Future] = {}
        for rank, i in enumerate(sequence(problem, self._schedule).tolist()):
            edges = problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]]
            producers = [names[a] for a in problem.edge_source[edges]]
            d = int(self._schedule.device[i])
            stated: dict[str, Any] = {}
            if self._planned:
                stated = {"workers": [self._addresses[d]], "allow_other_workers": False, "priority": -rank}
            try:
                future = self._client.submit(
                    run_task,
                    self._number,
                    names[i],
                    functions[names[i]],
                    producers,
                    last.get(d) if self._planned and d not in self._free else None,
                    *(self._futures[producer] for producer in producers),
                    key=f"{names[i]}-{self._number}",
                    pure=False,
                    **stated,
                )
            except (TypeError, AttributeError, PicklingError) as error:
                raise UsageError(
                    f"functions: that of task {visible(names[i])} cannot be sent to a worker: "
                    f"{visible(str(error.__cause__ or error), 300)}"
                ) from error
            self._futures[names[i]] = last[d] = future
        return self._futures

    def _wait(self) -> None:
        """Wait until every task has ended; raise an ExecutionError if one fails or a worker is lost."""
        from distributed import wait
        from distributed.client import FutureCancelledError, FuturesCancelledError

        pending = list(self._futures.values())
        while pending:
            try:
                wait(pending, timeout=POLL)
            except TimeoutError:
                self._check_workers()
            except (FutureCancelledError, FuturesCancelledError) as error:
                raise ExecutionError(f"the run was cancelled: {error}") from None
            if any(future.status == "error" for future in pending):
                self._fail()
            pending = [future for future in pending if future.status == "pending"]
        if any(future.status != "finished" for future in self._futures.values()):
            self._fail()

    def _watched(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Return the result of a call that waits for workers; raise an ExecutionError if one is lost meanwhile."""
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(call, *arguments)
            try:
                while not waiting.done():
                    wait_in_threads([waiting], timeout=POLL)
                    self._check_workers()
                return waiting.result()
            except BaseException as error:
                self._cancel()  # which ends the call
                if isinstance(error, OSError):
                    self._check_workers()
                raise

    def _check_workers(self) -> None:
        try:
            alive = self._client.run_on_scheduler(worker_names)
        except (OSError, ValueError) as error:  # a closed client
            raise ExecutionError(f"the scheduler does not answer: {error}") from None
        lost = [self._problem.device_names[d] for d, address in self._addresses.items() if address not in alive]
        if lost:
            raise ExecutionError(f"{counted(len(lost), 'worker')} lost during the run: {listing(lost)}")

    def _fail(self) -> None:
        for name, future in self._futures.items():
            if future.status == "error":
                error = future.exception()
                if isinstance(error, TaskFailedError):
                    raise ExecutionError(str(error)) from error.original
                self._check_workers()
                raise ExecutionError(f"task {visible(name)}: {type(error).__name__}: {error}") from error
        raise ExecutionError("the run was cancelled")

    def _times(self) -> dict[str, tuple[float, float, float]]:
        """The start and the end of each task in seconds, and the seconds spent on receiving its inputs."""
        found: dict[str, tuple[float, float, float]] = {}
        addresses = list(dict.fromkeys(self._addresses.values())) if self._planned else None
        for each in self._client.run(collected, self._number, workers=addresses).values() if self._futures else ():
            found |= each
        return found

    def _cancel(self) -> None:
        """Remove all tasks of the run from the cluster."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures.values()), force=True)


class TaskFailedError(Exception):
    """A function of a run raised an exception; raised on the worker."""

    def __init__(self, text: str, original: BaseException | None) -> None:
        super().__init__(text, original)
        self.text, self.original = text, original

    def __str__(self) -> str:
        return self.text


def run_task(
    number: str, name: str, function: Function, producers: Sequence[str], _previous: object, *inputs: Any
) -> Any:
    """Run a task of a run and store its times on the worker; runs on the worker.

    `_previous` is the result of the task before it on the same device, if it must wait for it.
    """
    from distributed import get_worker

    worker = get_worker()
    given = dict(zip(producers, inputs, strict=True))
    start = time.time()
    try:
        result = function(given)
    except BaseException as error:  # noqa: BLE001 - reported with the name of the task; SystemExit would end the worker
        text = str(error)
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}..."
        text = f"task {visible(name)} failed on worker {worker.name}: {type(error).__name__}: {text}"
        raise TaskFailedError(text, _portable(error)) from None
    end = time.time()
    state = worker.state.tasks.get(f"{name}-{number}")
    transfers = [] if state is None else [each for each in state.startstops if each["action"] == "transfer"]
    received = sum(each["stop"] - each["start"] for each in transfers)
    worker.__dict__.setdefault(_STORE, {}).setdefault(number, {})[name] = (start, end, received)
    return result


def _portable(error: BaseException) -> BaseException | None:
    """The exception if it can be sent to the client, else None."""
    from distributed.protocol.pickle import dumps, loads

    try:
        loads(dumps(error))
    except Exception:  # noqa: BLE001 - of any kind, from the code of others
        return None
    return error


def collected(number: str, dask_worker: Any) -> dict[str, tuple[float, float, float]]:
    """Return and forget the times of a run; runs on the worker."""
    found: dict[str, tuple[float, float, float]] = dask_worker.__dict__.get(_STORE, {}).pop(number, {})
    return found


def _measured(
    problem: Problem,
    planned: Schedule,
    times: Mapping[str, tuple[float, float, float]],
    results: Mapping[str, Any],
    unrestricted: int | None = None,
) -> DaskRun:
    rows = [times[name] for name in problem.task_names]
    first = min((start for start, _, _ in rows), default=0.0)
    start, end = (
        np.array([int(Fraction(row[k] - first) / problem.resolution) for row in rows], dtype=np.int64) for k in (0, 1)
    )
    schedule = Schedule(planned.device, start)
    took = np.maximum(end - start, 0)
    duration = problem.duration.copy()
    duration[np.arange(problem.n_tasks), planned.device] = took
    free = np.zeros((problem.n_devices, problem.n_devices), dtype=np.int64)
    fitted = with_changes(
        problem,
        duration=duration,
        latency=free,
        byte_ticks_num=free,
        byte_ticks_den=free + 1,
        **PORTLESS,
        **BUSY,
    )
    received = np.array([row[2] for row in rows], dtype=np.float64)
    report = verify(fitted, schedule)
    return DaskRun(problem, planned, schedule, took, received, results, fitted, report, unrestricted)
