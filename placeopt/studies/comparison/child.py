"""Run one solver once in a separate process: a job is read from stdin, lines of JSON are written to the former stdout.

    {"begun": true}                         the problem is unpacked, the solver starts
    {"progress": [seconds, value, bound]}   each time that the solver reports a new value or bound
    {"outcome": {...}}                      status, message, result, slr and peak_memory of the record
    {"certificate": {...}}                  what the checker says of the certificate, or null; if the job asks for one

The certificate comes after the outcome, so that a run whose certificate crashes or takes too long keeps its result.

All output of the solver goes to stderr. Each message starts on a new line, in case a solver writes to the pipe itself.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from placeopt.errors import (
    InternalError,
    MissingExtraError,
    PlaceoptError,
    UnsupportedError,
    UsageError,
    error_text,
)
from placeopt.protocol import Progress
from placeopt.protocol.remote import unpack
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.records import plain

if TYPE_CHECKING:
    from placeopt.orchestration.result import Result

LENGTH = 8
"""Bytes of the length of the job, which precede the job."""

CONTRADICTED = "contradicted by the verifier: "
"""Prefix of the message of a run whose claims do not hold."""


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
            outcome, result = _outcome(job, say)
            say(outcome=outcome)
            if result is not None and job.certify is not None:
                say(certificate=_certificate(result, job.certify))
        except BaseException as error:  # noqa: BLE001  any exception is the outcome of this run, also SystemExit
            say(outcome={"status": "crashed", "message": error_text(error)})
        sys.stderr.flush()
        os._exit(0)  # without waiting for threads that a solver has left
    except BaseException:  # noqa: BLE001  the pipe is broken
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _outcome(job: Job, say: Any) -> tuple[dict[str, Any], Result | None]:
    """Solve; return the outcome, and the result if there is one."""
    from placeopt.model.metrics import critical_path
    from placeopt.orchestration.pipeline import solve

    problem = unpack(job.packed)
    last: tuple[float | None, ...] = (None, None)

    def on_progress(state: Progress) -> None:
        nonlocal last
        seen = tuple(None if value is None else float(value) for value in (state.objective, state.bound))
        if seen != last:
            last = seen
            say(progress=[round(state.elapsed, 6), *seen])

    say(begun=True)
    try:
        result = solve(
            problem, job.solver, time_limit=job.time_limit, seed=job.seed, workers=job.threads,
            on_progress=on_progress, consolidate=0, **job.settings,
        )  # fmt: skip
    except (UnsupportedError, MissingExtraError) as error:
        return {"status": "refused", "message": str(error)}, None
    except InternalError as error:
        message = f"{CONTRADICTED}{error}" if error.dump else str(error).removeprefix(f"{job.solver}: ")
        return {"status": "crashed", "message": message}, None
    except PlaceoptError as error:  # a package that cannot be imported, invalid settings
        return {"status": "crashed", "message": str(error)}, None
    if problem.fingerprint() != job.fingerprint:
        why = f"{job.solver} changed the problem, so its schedule is not valid"
        return {"status": "crashed", "message": why}, None
    shortest = critical_path(problem)
    several = problem.pipeline is not None  # the latency of a pipeline is not its objective
    slr = None if several or result.makespan is None or not shortest else result.makespan / shortest
    outcome = {
        "status": "done",
        "message": result.message,
        "result": result.to_dict(plan=False),
        "slr": slr,
        "peak_memory": max((use.memory for use in result.devices), default=None),
    }
    return outcome, result


def _certificate(result: Result, seconds: float) -> dict[str, Any] | None:
    """What a certificate of the result proves, as the checker reads it; None if there is nothing to certify."""
    from placeopt.verifier.certificates import check_certificate

    try:
        document = result.certificate(time_limit=seconds)
    except UsageError:
        return None
    return check_certificate(result.problem, json.loads(json.dumps(document))).to_dict()
