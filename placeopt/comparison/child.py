"""The process in which one solver runs once: a job comes in on stdin, lines of JSON go out on what was stdout.

    {"begun": true}                         the problem is there, the solver starts
    {"progress": [seconds, value, bound]}   whenever the solver tells of some
    {"outcome": {...}}                      the record's status, message, result, slr and peak_memory; the last line

Whatever the solver prints goes to stderr. The process ends when its stdin does: no run outlives who asked for it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from placeopt.comparison.jobs import Job, unpack
from placeopt.comparison.processes import kill_group, kill_marked
from placeopt.comparison.records import plain
from placeopt.errors import InternalError, MissingExtraError, PlaceoptError, UnsupportedError
from placeopt.ir import Problem
from placeopt.kernels import COMPILE_ABOVE
from placeopt.solver import Progress

LENGTH = 8
"""Bytes that tell how long the job is, before it."""

CONTRADICTED = "contradicted by the verifier: "
"""Beginning of the message of a run whose claims do not hold."""

BACKSTOP = 30.0
"""Seconds after limit and grace at which the process ends on its own, should nobody kill it."""


def main() -> None:
    """Run the job and end the process."""
    lines = os.dup(1)
    os.dup2(2, 1)
    source = sys.stdin.buffer
    job: Job = pickle.loads(source.read(int.from_bytes(source.read(LENGTH), "big")))
    threading.Thread(target=_end_with, args=(source, job.tag), daemon=True).start()
    faulthandler.enable()
    writing = threading.Lock()

    def say(**line: Any) -> None:
        text = json.dumps(plain(line), allow_nan=False, separators=(",", ":")) + "\n"
        with writing:
            rest = memoryview(text.encode())
            while rest:
                rest = rest[os.write(lines, rest) :]

    try:
        outcome = _outcome(job, say)
    except BaseException as error:  # noqa: BLE001  whatever it is, it is this run's outcome, also SystemExit
        outcome = {"status": "crashed", "message": _told(error)}
    say(outcome=outcome)
    sys.stderr.flush()
    os._exit(0)  # threads that a solver left behind are no reason to stay


def _outcome(job: Job, say: Any) -> dict[str, Any]:
    from placeopt.metrics import critical_path
    from placeopt.pipeline import solve

    problem = unpack(job.packed)
    last: list[tuple[float | None, float | None]] = [(None, None)]

    def tell(state: Progress) -> None:
        seen = _number(state.objective), _number(state.bound)
        if seen != last[0]:
            last[0] = seen
            say(progress=[round(state.elapsed, 6), *seen])

    _warm_up(problem)
    if job.time_limit is not None:
        # A thread in C, which needs no turn of the interpreter: not even a hang in native code outlives everybody.
        faulthandler.dump_traceback_later(job.time_limit + job.grace + BACKSTOP, exit=True)
    say(begun=True)
    try:
        result = solve(
            problem, job.solver, time_limit=job.time_limit, seed=job.seed, workers=job.threads, on_progress=tell,
            **job.settings,
        )  # fmt: skip
    except (UnsupportedError, MissingExtraError) as error:
        return {"status": "refused", "message": str(error)}
    except InternalError as error:
        return {"status": "crashed", "message": f"{CONTRADICTED if error.dump else ''}{error}"}
    except PlaceoptError as error:  # a package that cannot be imported, settings that make no sense
        return {"status": "crashed", "message": str(error)}
    shortest = critical_path(problem)
    slr = result.makespan / shortest if result.makespan is not None and shortest else None
    document = result.to_dict(plan=False)
    return {
        "status": "done",
        "message": result.message,
        "result": document,
        "slr": slr,
        "peak_memory": max((use.memory for use in result.devices), default=None),
    }


def _warm_up(problem: Problem) -> None:
    """Load the compiler of kernels before the clock starts, where the problem is so large that it will be used."""
    if (problem.n_tasks + problem.n_edges) * problem.n_devices > COMPILE_ABOVE:
        import numba  # noqa: F401


def _end_with(source: Any, tag: str) -> None:
    """End the process, and what it started, once nobody holds the other end of its stdin any more."""
    source.read(1)
    kill_marked(tag)
    kill_group(os.getpid())


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _told(error: BaseException) -> str:
    """What went wrong, and where."""
    if isinstance(error, MemoryError):
        return "out of memory"
    text = str(error).strip()
    name = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{name}: {text}{place}" if text else f"{name}{place}"


def outcome_of(line: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outcome that a line tells, whole; None if it tells of something else."""
    outcome = line.get("outcome")
    if not isinstance(outcome, dict):
        return None
    return {"result": None, "slr": None, "peak_memory": None} | outcome
