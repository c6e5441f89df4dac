"""The process in which one solver runs once: a job comes in on stdin, lines of JSON go out on what was stdout.

    {"begun": true}                         the problem is there, the solver starts
    {"progress": [seconds, value, bound]}   whenever the solver tells of some
    {"outcome": {...}}                      the record's status, message, result, slr and peak_memory; the last line

Whatever the solver prints goes to stderr. A line begins on a line of its own, whatever a solver that found the pipe
wrote there. `placeopt.studies.comparison.keeper` sees to it that no run outlives who asked for it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import sys
import threading
import traceback
from typing import Any

from placeopt.errors import InternalError, MissingExtraError, PlaceoptError, UnsupportedError
from placeopt.solver import Progress
from placeopt.studies.comparison.jobs import Job, unpack
from placeopt.studies.comparison.records import plain

LENGTH = 8
"""Bytes that tell how long the job is, before it."""

CONTRADICTED = "contradicted by the verifier: "
"""Beginning of the message of a run whose claims do not hold."""


def main() -> None:
    """Run the job and end the process."""
    lines = os.dup(1)
    os.dup2(2, 1)
    source = sys.stdin.buffer
    job: Job = pickle.loads(source.read(int.from_bytes(source.read(LENGTH), "big")))
    faulthandler.enable()
    writing = threading.Lock()

    def say(**line: Any) -> None:
        text = json.dumps(plain(line), allow_nan=False, separators=(",", ":"))
        with writing:
            rest = memoryview(f"\n{text}\n".encode())
            while rest:
                rest = rest[os.write(lines, rest) :]

    try:
        try:
            say(outcome=_outcome(job, say))
        except BaseException as error:  # noqa: BLE001  whatever it is, it is this run's outcome, also SystemExit
            say(outcome={"status": "crashed", "message": _told(error)})
        sys.stderr.flush()
        os._exit(0)  # threads that a solver left behind are no reason to stay
    except BaseException:  # noqa: BLE001  nobody can be told any more
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _outcome(job: Job, say: Any) -> dict[str, Any]:
    from placeopt.model.metrics import critical_path
    from placeopt.solving.pipeline import solve

    problem = unpack(job.packed)
    last: list[tuple[float | None, float | None]] = [(None, None)]

    def tell(state: Progress) -> None:
        seen = _number(state.objective), _number(state.bound)
        if seen != last[0]:
            last[0] = seen
            say(progress=[round(state.elapsed, 6), *seen])

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
    if problem.fingerprint() != job.fingerprint:
        return {"status": "crashed", "message": f"{job.solver} changed the problem, so its schedule says nothing"}
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


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _told(error: BaseException) -> str:
    """What went wrong, and where."""
    if isinstance(error, MemoryError):
        return "out of memory"
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001  it is somebody else's class
        text = ""
    name = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{name}: {text}{place}" if text else f"{name}{place}"
