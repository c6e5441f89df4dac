"""Run one job in a separate process, so that a crash or a hang affects only this run."""

from __future__ import annotations

import os
import pickle
import selectors
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from placeopt.bounding.engines.children import ending, start
from placeopt.bounding.engines.signals import ended_with_us
from placeopt.protocol.remote import check_version
from placeopt.studies.comparison.child import LENGTH
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.records import Record, Run, Status, check, check_point, read_line
from placeopt.studies.comparison.supervisor import VARIABLE, kill_group, kill_marked, main

STARTING = 120.0
"""Time limit until the solver starts, in seconds: Python, imports, unpacking the problem."""

LEAVING = 10.0
"""Time limit of the supervisor for ending all processes of the run, in seconds; then it is killed."""

TICK = 0.1
"""Seconds between two checks of the clock."""

STDERR = 8000
"""Bytes of the last output of a run that are kept for its error message."""

_OUTCOME = ("status", "message", "result", "slr", "peak_memory")

Point = tuple[float, float | None, float | None]


class StoppedError(Exception):
    """The run was stopped on request and has no record."""


@dataclass(slots=True)
class _Run:
    """The state of a run."""

    job: Job
    on_point: Callable[[Point], None] | None
    begun: float | None = None
    ended: float | None = None  # when the outcome came
    points: list[Point] = field(default_factory=list)
    outcome: dict[str, Any] | None = None
    certified: bool = False
    torn: bytes = b""
    stderr: bytes = b""

    def read(self, data: bytes) -> None:
        """Process output of the child process."""
        *lines, self.torn = (self.torn + data).split(b"\n")
        for text in lines:
            with suppress(ValueError):  # other output of a solver that writes to the pipe is ignored
                self._process(read_line(text.decode()))

    def _process(self, line: dict[str, Any]) -> None:
        if "begun" in line:
            self.begun = self.begun or time.monotonic()
        elif "progress" in line:
            check_point(line["progress"])
            elapsed, value, bound = line["progress"]
            self.points.append((float(elapsed), value, bound))
            if self.on_point is not None:
                self.on_point(self.points[-1])
        elif isinstance(line.get("outcome"), dict) and self.outcome is None:
            check(line["outcome"])
            self.outcome = {name: line["outcome"].get(name) for name in _OUTCOME}
            if self.outcome["status"] is None or self.outcome["message"] is None:
                self.outcome = None
            else:
                self.ended = time.monotonic()
        elif "certificate" in line and self.certifies:
            assert self.outcome is not None
            result = {**self.outcome["result"], "certificate": line["certificate"]}
            check({"result": result})
            self.outcome, self.certified = {**self.outcome, "result": result}, True

    @property
    def certifies(self) -> bool:
        """Return whether the outcome is known, and its certificate is not."""
        done = self.outcome is not None and self.outcome["result"] is not None
        return done and self.job.certify is not None and not self.certified

    def overdue(self, born: float) -> str | None:
        """Return why the process must be killed now; None if it must not."""
        now, limit = time.monotonic(), self.job.time_limit
        if self.ended is not None and self.job.certify is not None:
            late = now - self.ended > self.job.certify + self.job.grace
            return f"no certificate after {self.job.certify:g} s and a grace of {self.job.grace:g} s" if late else None
        if self.begun is None:
            return f"killed: the solver had not started after {STARTING:g} s" if now - born > STARTING else None
        if limit is None or now - self.begun <= limit + self.job.grace:
            return None
        return f"killed after its limit of {limit:g} s and a grace of {self.job.grace:g} s"


def run_job(
    job: Job, on_point: Callable[[Point], None] | None = None, should_stop: Callable[[], bool] = lambda: False
) -> Record:
    """Run the job in a separate process and return its record; afterwards all its processes have ended.

    Raises a StoppedError once `should_stop` is true, an OSError if no process can be started, and a VersionError if
    this is another version of placeopt than that of the job.
    """
    check_version(job.version)
    born = time.monotonic()
    run = _Run(job, on_point)
    begin, marked = f"from {main.__module__} import main; main()", os.environ | {VARIABLE: job.tag}
    process = start(begin, stderr=subprocess.PIPE, env=marked, bufsize=0)
    try:
        late = _attend(process, run, born, should_stop)
    finally:
        code = _end(process, job.tag)
    wall = (run.ended or time.monotonic()) - born
    if run.outcome is not None:
        if run.certifies:
            why = late or f"no certificate: {_death(code, run.stderr.decode(errors='replace'))}"
            run.outcome["message"] = "; ".join(filter(None, (run.outcome["message"], why)))
        return _record(run, wall, **run.outcome)
    if late is not None:
        return _record(run, wall, "killed", late)
    if ended_with_us(code, should_stop):
        raise StoppedError
    return _record(run, wall, "crashed", _death(code, run.stderr.decode(errors="replace")))


def _attend(process: subprocess.Popen[bytes], run: _Run, born: float, should_stop: Callable[[], bool]) -> str | None:
    """Exchange data with the process until it has reported all or ends; if it is overdue, return why."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    job = pickle.dumps(run.job, protocol=pickle.HIGHEST_PROTOCOL)
    unsent = memoryview(len(job).to_bytes(LENGTH, "big") + job)
    with selectors.DefaultSelector() as selector:
        for stream, events in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, events)
        while True:
            ended, received = _ended(process), False
            for key, _ in selector.select(TICK):
                if key.fileobj is process.stdin:
                    try:
                        unsent = unsent[os.write(key.fd, unsent) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        unsent = unsent[:0]
                    if not unsent:
                        selector.unregister(process.stdin)  # it stays open: the process ends when this one does
                    continue
                data = _read(key.fd)
                received = received or bool(data)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    run.read(data)
                else:
                    run.stderr = (run.stderr + data)[-STDERR:]
            if (run.outcome is not None and not run.certifies) or (ended and not received):  # nothing is left to read
                return None
            late = run.overdue(born)
            if late is not None:
                return late
            if should_stop():
                raise StoppedError


def _end(process: subprocess.Popen[bytes], tag: str) -> int:
    """Return the exit code of the supervisor after it has ended all processes of the run."""
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        with suppress(OSError):
            stream.close()  # closing stdin makes the supervisor end the run
    try:
        code = process.wait(LEAVING)
    except subprocess.TimeoutExpired:  # pragma: no cover  the supervisor hangs
        kill_group(process.pid)
        code = process.wait()
    kill_marked(tag)  # processes that the supervisor has missed
    return code


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:  # pragma: no cover  a false alarm of select
        return b""


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has ended, without reaping it, so that its process id is not reused."""
    if not hasattr(os, "waitid"):  # macOS with Python before 3.13
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _death(code: int, stderr: str) -> str:
    """Describe how a process ended that reported no outcome."""
    why = f"its process {ending(code)}"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    current = next((number for number, line in enumerate(lines) if line.startswith("Current thread")), None)
    if current is not None and current + 1 < len(lines):  # output of faulthandler
        return f"{why}, at {lines[current + 1]}"
    return f"{why}; it printed: {lines[-1][:300]}" if lines else why


def _record(run: _Run, wall: float, status: Status, message: str, **outcome: Any) -> Record:
    facts = {each.name: getattr(run.job, each.name) for each in fields(Run)}
    facts |= {"result": None, "slr": None, "peak_memory": None} | outcome
    return Record(**facts, status=status, message=message, progress=tuple(run.points), wall=wall)


def lost_record(job: Job, message: str, wall: float = 0.0) -> Record:
    """Return the record of a job whose worker died."""
    return _record(_Run(job, None), wall, "lost", message)
