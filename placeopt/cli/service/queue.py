"""The jobs of the service: a queue, and a separate process for each running job."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from placeopt.cli.service.cards import Card, Event, JobCard, ProblemCard, State, solver_cards
from placeopt.cli.service.limits import Limits
from placeopt.errors import InternalError, PlaceoptError, SolverError
from placeopt.model.problem import Problem
from placeopt.orchestration.forking import start_template
from placeopt.orchestration.jobs import Job, serve, start
from placeopt.orchestration.result import Result, number, relative_gap

Returned = TypeVar("Returned")

LATE = 10.0
"""Seconds after its time limit in which a job may end by itself; then it is cancelled."""

PROCESS: Literal[True, "forked"] = True if sys.platform == "win32" else "forked"


class FullError(Exception):
    """The queue has as many jobs as it may have."""


@dataclass(eq=False, slots=True)
class Entry:
    """A job of the service."""

    id: str
    problem: Problem
    facts: ProblemCard
    solver: str
    time_limit: float
    seed: int
    options: dict[str, Any]
    state: State = "queued"
    begun: float | None = None
    """The time of `time.monotonic` at which it started to run."""
    ended: float | None = None
    """The time at which it ended."""
    job: Job | None = None
    result: Result | None = None
    error: str | None = None
    cancelled: bool = False
    events: list[tuple[str, Card]] = field(default_factory=list)
    """All events so far, each with its name; the last one of a job is `finished`."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def size(self) -> int:
        """Bytes of the problem, about: arrays of tasks by devices, and of devices by devices."""
        n, m = self.problem.n_tasks, self.problem.n_devices
        return 200 * n + m * (25 * n + 40 * m)

    @property
    def elapsed(self) -> float | None:
        """Seconds that the solver needed; before its end, those since the job began to run."""
        if self.result is not None:
            return self.result.wall_time.solve
        return None if self.begun is None else (self.ended or time.monotonic()) - self.begun

    @property
    def over(self) -> bool:
        """Whether the job has ended, in whichever way."""
        return self.state not in ("queued", "running")

    def say(self, name: str, card: Card) -> None:
        """Add an event and wake those who wait for one."""
        self.events.append((name, card))
        self.changed.set()
        self.changed = asyncio.Event()

    async def stream(self, first: int = 0, *, every: float) -> AsyncIterator[tuple[int, str, Card] | None]:
        """Yield the events from number `first` on until the job ends; None after each `every` seconds without one."""
        following = first
        while following < len(self.events) or not self.over:
            if following < len(self.events):
                yield following, *self.events[following]
                following += 1
                continue
            try:
                async with asyncio.timeout(every):
                    await self.changed.wait()
            except TimeoutError:
                yield None


class Queue:
    """All jobs of the service. Its methods run in the event loop; what takes long runs in `heavy` threads."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._entries: dict[str, Entry] = {}
        self._free = asyncio.Semaphore(limits.jobs)
        self._threads = ThreadPoolExecutor(2, "service")

    async def heavy(self, work: Callable[..., Returned], *arguments: Any) -> Returned:
        """Call a function in one of two threads, so that large problems neither block others nor fill the memory."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def warm(self) -> None:
        """Load the solvers, here and in the template of processes, so that the first client does not wait for it."""
        if PROCESS == "forked":
            start_template(serve)
        await self.heavy(solver_cards)

    @property
    def waiting(self) -> list[Entry]:
        """The jobs that wait, the next one first."""
        return [entry for entry in self._entries.values() if entry.state == "queued"]

    def find(self, id: str) -> Entry | None:
        """Return the job of an id, if there is one and it was not dropped."""
        return self._entries.get(id)

    def check_room(self, size: int = 0) -> None:
        """Raise a FullError if no job can be added whose problem takes this number of bytes."""
        if len(self.waiting) >= self.limits.queue:
            raise FullError(f"{len(self.waiting)} jobs wait already; expected another try in some seconds")
        held = sum(entry.size for entry in self._entries.values() if not entry.over)
        if held + size > self.limits.room:
            raise FullError("the problems of other jobs take its memory; expected another try in some seconds")

    def add(
        self, problem: Problem, facts: ProblemCard, solver: str, time_limit: float, seed: int, options: dict[str, Any]
    ) -> Entry:
        """Add a job to the end of the queue; raises a FullError."""
        entry = Entry(secrets.token_urlsafe(16), problem, facts, solver, time_limit, seed, options)
        self.check_room(entry.size)
        self._entries[entry.id] = entry
        ended = [other for other in self._entries.values() if other.over]
        held = sum(other.size for other in self._entries.values())
        for left, other in zip(range(len(ended), 0, -1), ended, strict=True):
            if left > self.limits.kept or held > self.limits.room:
                held -= other.size
                del self._entries[other.id]
        entry.task = asyncio.create_task(self._run(entry))
        return entry

    def cancel(self, entry: Entry) -> None:
        """Stop a job: its result is then its best schedule so far, if it has begun."""
        if entry.job is not None:
            entry.job.cancel()
        elif entry.state == "queued" and entry.task is not None:
            entry.task.cancel()
            self._end(entry, "cancelled")
        elif not entry.over:  # its process is being started
            entry.cancelled = True

    async def close(self) -> None:
        """Cancel all jobs."""
        for entry in list(self._entries.values()):
            self.cancel(entry)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, entry: Entry) -> None:
        async with self._free:
            entry.state, entry.begun = "running", time.monotonic()
            try:
                entry.result = await self._solve(entry)
            except (PlaceoptError, MemoryError) as error:
                entry.error = _reason(error)
            except Exception as error:  # noqa: BLE001 - of a solver; it ends only this job
                entry.error = f"the solver {entry.solver} failed: {_reason(error)}"
            self._end(entry, "ended" if entry.error is None else "failed")

    async def _solve(self, entry: Entry) -> Result:
        entry.say("started", Event(elapsed=0.0, objective=None, bound=None))
        job = await self.heavy(self._started, entry)
        entry.job = job
        if entry.cancelled:
            job.cancel()
        late = asyncio.get_running_loop().call_later(entry.time_limit + LATE, job.cancel)
        objective = bound = None
        async for report in job:
            card = Event(elapsed=report.elapsed, objective=number(report.objective), bound=number(report.bound))
            if card.objective is not None and card.objective != objective:
                entry.say("incumbent", card)
            if card.bound is not None and card.bound != bound:
                entry.say("bound", card)
            objective, bound = card.objective, card.bound
        late.cancel()
        return await job

    def _started(self, entry: Entry) -> Job:
        return start(
            entry.problem, entry.solver, process=PROCESS, max_memory=self.limits.memory, workers=1,
            time_limit=entry.time_limit, seed=entry.seed, **entry.options,
        )  # fmt: skip

    def _end(self, entry: Entry, state: State) -> None:
        entry.state, entry.ended = state, time.monotonic()
        entry.say("finished", self.card(entry))

    def card(self, entry: Entry) -> JobCard:
        """Return the facts of a job for clients."""
        job, result = entry.job, entry.result
        objective, bound = (None, None) if job is None else (job.objective, job.bound)
        waiting = self.waiting if entry.state == "queued" else []
        return JobCard(
            id=entry.id,
            state=entry.state,
            position=waiting.index(entry) if entry in waiting else None,
            problem=entry.facts,
            solver=entry.solver,
            time_limit=entry.time_limit,
            seed=entry.seed,
            elapsed=entry.elapsed,
            objective=number(objective),
            bound=number(bound),
            gap=relative_gap(objective, bound) if result is None else result.gap,
            termination=None if result is None else result.termination.value,
            feasible=None if result is None else result.feasible,
            message="" if result is None else result.message,
            error=entry.error,
        )


def _reason(error: BaseException) -> str:
    """The first line of an exception, for people who cannot see this machine."""
    if isinstance(error, InternalError) and not isinstance(error, SolverError):
        return f"internal error, a bug of placeopt: {error}"
    return (str(error).strip() or type(error).__name__).splitlines()[0][:1000]
