"""Worker processes, one for each device; `worker.py` is the script that they execute."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from placeopt.bounding.engines.children import Child, ending
from placeopt.bounding.engines.signals import ended_with_us
from placeopt.errors import ExecutionError, UsageError, visible
from placeopt.model.arrays import Float
from placeopt.model.units import time_text

HEAD_START = 2_000_000
"""Nanoseconds between the command and the start of a run, so that all processes have read it."""

PATIENCE = 10.0
"""Seconds that a process has to end after it has closed its output."""

HOST = "cpu"
"""The device of PyTorch that is a CPU; ONNX Runtime runs segments only there."""

_BUFFER = 1 << 22
"""Bytes that a socket may hold, where the system permits it: a tensor of this size leaves its process at once."""

_LOG = 2000
"""Characters of the standard error of a process that a message quotes at most."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as its worker runs it; the unsplit model is one segment."""

    file: str
    """The model, relative to the folder; in PyTorch, also a file of several graphs and the name of one, FILE/NAME."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    send: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The workers that need an output, by its name."""
    results: tuple[str, ...] = ()
    """Outputs that are outputs of the whole model."""


@dataclass(frozen=True, slots=True)
class Job:
    """The segments and inputs of one worker."""

    name: str
    """Name of the device, for messages."""
    segments: tuple[Segment, ...]
    """In order of execution."""
    inputs: Mapping[str, str]
    """Files of graph inputs by name, relative to the folder."""
    cores: tuple[int, ...] = ()
    """Cores to which the process is pinned; empty if that is not possible."""
    place: str = HOST
    """The device of PyTorch on which it runs its segments."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How workers run their segments."""

    threads: int = 1
    """Threads within an operator, each on a separate core if there are enough."""
    optimization: str = "none"
    """Level of graph optimizations, a key of `worker.LEVELS`."""
    timeout: float = 600.0
    """Seconds within which workers must answer."""
    runtime: str = "onnxruntime"
    """What runs the segments: "onnxruntime" or "torch"."""


def core_shares(count: int, threads: int) -> list[tuple[int, ...]]:
    """Return `threads` cores for each of `count` processes, round-robin; empty where processes cannot be pinned."""
    if not hasattr(os, "sched_getaffinity"):
        return [()] * count
    cores = sorted(os.sched_getaffinity(0))
    return [tuple(sorted({cores[(i * threads + k) % len(cores)] for k in range(threads)})) for i in range(count)]


def processes(count: int, threads: int) -> list[tuple[int, ...]]:
    """Return the cores of the processes among `count` ones that do not share theirs with an earlier one."""
    shares = list(dict.fromkeys(core_shares(count, threads)))
    return shares if any(shares) else [()] * max(1, min(count, (os.cpu_count() or 1) // threads))


Orders = Sequence[Sequence[tuple[int, int]]]
"""For each job, the executions in their order: the number of a run, and that of a segment of the job."""


class Pool:
    """Worker processes that are connected where tensors pass between them.

    Used as a context manager: at its end, also after an exception, no process is left.
    """

    def __init__(self, jobs: Sequence[Job], folder: Path, settings: Settings, *, profile: bool = False) -> None:
        if os.name != "posix":
            raise UsageError("plans can be run on Linux and macOS only: workers inherit connected sockets")
        self._jobs = jobs
        self._folder = folder
        sent = {name for job in jobs for segment in job.segments for name in segment.send}
        self._common = {
            **asdict(settings),
            "profile": profile,
            "folder": str(folder.resolve()),
            "workers": len(jobs),
            "own_cores": _apart([job.cores for job in jobs]),
            "tensors": sorted(sent),
            "rendezvous": f"rendezvous-{uuid.uuid4().hex}",
        }
        self._inherits = settings.runtime == "onnxruntime"
        self._timeout = settings.timeout
        self._children: list[Child] = []
        self._messages: queue.Queue[tuple[int, dict[str, Any] | None]] = queue.Queue()

    def __enter__(self) -> Pool:
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def run(self, orders: Orders | None = None) -> list[list[tuple[int, int]]]:
        """Execute segments; return start and end of each execution by job, in nanoseconds from the first start.

        Without `orders`, each segment is executed once. Raises an ExecutionError if a segment fails, a process ends, or
        the time limit passes.
        """
        at = time.perf_counter_ns() + HEAD_START
        if orders is None:
            orders = [[(0, number) for number in range(len(job.segments))] for job in self._jobs]
        answers = self._all([{"run": at, "order": order} for order in orders])
        return [[(start - at, end - at) for start, end in answer["times"]] for answer in answers]

    def outputs(self) -> dict[str, Any]:
        """Return the results of the last run by name."""
        from placeopt.bridges.running.worker import read_array

        answers = self._all([{"save": {}}] * len(self._jobs))
        files = {name: file for answer in answers for name, file in answer["files"].items()}
        return {name: read_array(self._folder / file) for name, file in files.items()}

    def profiles(self) -> list[Path]:
        """End the profiles of all segments and return their files."""
        return [Path(file) for answer in self._all([{"profile": {}}] * len(self._jobs)) for file in answer["files"]]

    def _start(self) -> None:
        script = Path(__file__).with_name("worker.py")
        with contextlib.ExitStack() as ours:
            ends = self._sockets(ours)
            for index in range(len(self._jobs)):
                peers = {peer: end.fileno() for (owner, peer), end in ends.items() if owner == index}
                inherited = list(peers.values()) if self._inherits else []
                with open(self._log(index), "wb") as log:
                    child = Child(script, partial(self._hear, index), stderr=log, pass_fds=inherited)
                self._children.append(child)
                self._send(index, self._configuration(index, peers))
        self._answers()

    def _sockets(self, stack: contextlib.ExitStack) -> dict[tuple[int, int], socket.socket]:
        """Return the socket of each worker to each other one to which it is connected, by both indices."""
        pairs = {
            (min(index, peer), max(index, peer)): None
            for index, job in enumerate(self._jobs)
            for segment in job.segments
            for peers in segment.send.values()
            for peer in peers
        }
        ends = {}
        for low, high in pairs:
            made = socket.socketpair()
            for end in made:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            for owner, peer, end in ((low, high, made[0]), (high, low, made[1])):
                ends[owner, peer] = stack.enter_context(end)
        return ends

    def _configuration(self, index: int, peers: Mapping[int, int]) -> dict[str, Any]:
        job = self._jobs[index]
        segments = [asdict(segment) for segment in job.segments]
        own = {"index": index, "cores": job.cores, "inputs": job.inputs, "peers": peers, "segments": segments}
        own["place"] = job.place
        return {**self._common, **own}

    def _log(self, index: int) -> Path:
        return self._folder / f"worker-{self._common['rendezvous']}-{index}.log"

    def _hear(self, index: int, message: dict[str, Any] | None) -> None:
        self._messages.put((index, message))

    def _send(self, index: int, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the process has ended, which `_answers` reports
            self._children[index].send(message)

    def _all(self, commands: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send each worker its command and return their answers."""
        for index, command in enumerate(commands):
            self._send(index, command)
        return self._answers()

    def _answers(self) -> list[dict[str, Any]]:
        """Return one message of each worker."""
        answers: dict[int, dict[str, Any]] = {}
        latest = time.monotonic() + self._timeout
        while len(answers) < len(self._jobs):
            try:
                index, message = self._messages.get(timeout=max(0.0, latest - time.monotonic()))
            except queue.Empty:
                late = [job.name for index, job in enumerate(self._jobs) if index not in answers]
                raise ExecutionError(
                    f"no answer within {time_text(self._timeout, Fraction(1))} from the worker of {', '.join(late)}; "
                    "a longer timeout (--timeout) may help"
                ) from None
            if message is None:
                raise ExecutionError(self._ended(index))
            if message.get("lost"):  # the message of the worker that ended states why
                continue
            if "error" in message:
                raise ExecutionError(f"{self._where(index, message['segment'])}: {visible(message['error'], 1000)}")
            answers[index] = message
        return [answers[index] for index in range(len(self._jobs))]

    def _where(self, index: int, segment: int | None) -> str:
        job = self._jobs[index]
        return f"worker of {job.name}" + ("" if segment is None else f", {job.segments[segment].file}")

    def _ended(self, index: int) -> str:
        """Return a message for a worker that has ended by itself."""
        process = self._children[index].process
        try:
            code = process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        ended_with_us(code, lambda: False)  # Slurm sends SIGTERM to all processes: this one raises soon, too
        text = self._log(index).read_text(encoding="utf-8", errors="replace").strip()[-_LOG:]
        printed = f": {visible(text, _LOG)}" if text else ""
        return f"{self._where(index, None)}: the process {ending(code)}{printed}"

    def _close(self) -> None:
        for child in self._children:
            child.process.kill()
        for child in self._children:
            child.close()


class Turns:
    """Executions of several pools that take turns, so that changes of the machine's speed affect all alike."""

    def __init__(self) -> None:
        self._turns: list[tuple[Pool, Orders | None]] = []

    def add(self, pool: Pool, orders: Orders | None = None) -> int:
        """Add an execution; return its number."""
        self._turns.append((pool, orders))
        return len(self._turns) - 1

    def take(self, runs: int, warmup: int) -> list[Float]:
        """Execute all of them `warmup + runs` times; return (runs, executed segments, 2) starts and ends in seconds."""
        times: list[list[list[tuple[int, int]]]] = [[] for _ in self._turns]
        for _ in range(warmup + runs):
            for found, (pool, orders) in zip(times, self._turns, strict=True):
                found.append([span for spans in pool.run(orders) for span in spans])
        return [np.array(found[warmup:], dtype=np.float64) / 1e9 for found in times]


def _apart(cores: Sequence[tuple[int, ...]]) -> bool:
    """Whether each process has cores that it shares with no other one."""
    every = [core for own in cores for core in own]
    return all(cores) and len(set(every)) == len(every)
