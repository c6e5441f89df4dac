"""Read and write ledgers: files of JSON lines, one per finished run, that survive a crash of the writer.

The lines of runs that end at the same time are appended by one call and flushed to disk before these runs count as
done. If the writer is killed, at most the last line is torn: it has no line end, and the next writer drops it.

Lines are checked when they are read. A checksum detects lines that were changed afterwards, but not lines that were
forged together with their checksum.
"""

from __future__ import annotations

import os
import stat
import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from placeopt.bounding import quick
from placeopt.bounding.quick import Bound
from placeopt.errors import UsageError
from placeopt.io.files import UnreadableError, read_file, writing
from placeopt.orchestration.result import number as json_number
from placeopt.studies.comparison.records import CHECKSUM, Record, checksum, read_line
from placeopt.studies.comparison.verdicts import feasible_value

_MOST = 8
"""Maximum number of wrong lines that a message lists."""

Floor = Callable[[str], Bound | None]
"""Returns the quick bound of the problem with a fingerprint, None if the problem is not available."""


class Contents(NamedTuple):
    """The accepted records of a ledger, and notes on each line that is left out."""

    records: tuple[Record, ...]
    notes: tuple[str, ...]


def read_ledger(path: str | os.PathLike[str]) -> list[Record]:
    """Return the accepted records of a ledger in the order of its lines; see `examine_ledger`."""
    return list(examine_ledger(path).records)


def examine_ledger(path: str | os.PathLike[str]) -> Contents:
    """Return the contents of a ledger; a last line without a line end is ignored.

    A line is left out if it was changed after it was written, if it contradicts itself, or if other lines disprove it
    (see `_accepted`).

    Raises a UsageError if the file cannot be read, or lines are not records.
    """
    return _accepted(path, _lines(path, _content(path, appended=False)), lambda _fingerprint: None)


def _content(path: str | os.PathLike[str], *, appended: bool) -> bytes:
    try:
        return read_file(Path(path), appended=appended)
    except UnreadableError as error:
        raise UsageError(f"cannot read {os.fspath(path)}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    record: Record
    sealed: bool
    """Whether it has a checksum; lines of older versions do not."""
    intact: bool

    @property
    def bound(self) -> float | None:
        """The stated bound."""
        bound = None if self.record.result is None else self.record.result["bound"]
        return None if bound is None else float(bound)

    @property
    def source(self) -> str | None:
        """The origin of the bound."""
        return None if self.record.result is None else self.record.result["bound_source"]


def _lines(path: str | os.PathLike[str], data: bytes) -> list[_Line]:
    found, wrong = [], []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            read = read_line(line.decode())
            sealed = CHECKSUM in read
            intact = not sealed or read[CHECKSUM] == checksum(read)
            found.append(_Line(number, Record.of(read), sealed, intact))
        except ValueError as error:
            wrong.append(f"{os.fspath(path)}:{number}: not a record of a run: {error}")
    if wrong:
        more = f"\nand {len(wrong) - _MOST:,} more lines" if len(wrong) > _MOST else ""
        what = "line" if len(wrong) == 1 else "lines"
        raise UsageError("\n".join(wrong[:_MOST]) + f"{more}; delete the {what}, or use another file")
    return found


def contradiction(record: Record) -> str | None:
    """Return how a record contradicts itself; None if it does not."""
    result = record.result
    if (record.status == "done") != (result is not None):
        return f"its status is {record.status}, {'with' if result is not None else 'without'} a result"
    if result is None:
        return None
    levels, objective, bound = result["objective_levels"], result["objective"], result["bound"]
    if objective != (levels[0] if levels else None):
        return "its objective is not the first value of its objective_levels"
    if (result["feasible"] is None) != (levels is None):
        return "it has an objective without a schedule, or a schedule without an objective"
    if not result["feasible"]:
        return None
    if result["violations"]:
        return "its schedule is feasible and breaks rules"
    if result["termination"] == "infeasible":
        return "it has a schedule for a problem that it proves infeasible"
    if bound is not None and float(objective) < float(bound):
        return f"its objective {objective:,} is below its own bound {bound:,}"
    return None


def _accepted(path: str | os.PathLike[str], lines: Sequence[_Line], floor: Floor) -> Contents:
    """Return the lines that are not contradicted.

    If one line has a schedule and another line has a larger bound, one of them is wrong. The verifier accepted the
    schedule when the run ended, while a solver may claim any bound. So the schedule is accepted and the bound is
    refuted, as during a comparison. There are two exceptions. A line without a checksum does not disprove lines that
    have one. And every run states at least the quick bound of its problem (`placeopt.bounding.quick`), so a schedule
    below that bound was not produced by a run.
    """
    left_out: dict[int, str] = {}
    groups: dict[tuple[str, bool], list[_Line]] = {}
    for line in lines:
        why = contradiction(line.record) if line.intact else "it was changed after it was written (see its checksum)"
        if why is None:
            groups.setdefault((line.record.fingerprint, line.sealed), []).append(line)
        else:
            left_out[line.number] = why
    for (problem, sealed), group in groups.items():
        known = floor(problem)
        others = [] if sealed else groups.get((problem, True), [])
        if known is None:
            stated = _quick_bound(group)
            others = others if stated is None else [*others, stated]
        against = [(line.bound, _origin(line)) for line in others if line.bound is not None]
        if known is not None:
            against.append((float(known.value), f"{json_number(known.value):,} of its problem ({known.name})"))
        bound, origin = max(against, default=(0.0, ""))
        for line in group:
            value = feasible_value(line.record)
            if value is not None and float(value) < bound:
                left_out[line.number] = f"its objective {value:,} is below the bound {origin}"
    return Contents(
        tuple(line.record for line in lines if line.number not in left_out),
        tuple(f"{os.fspath(path)}:{number}: left out: {left_out[number]}" for number in sorted(left_out)),
    )


def _quick_bound(group: Sequence[_Line]) -> _Line | None:
    """Return the line with the largest quick bound that at least half of the lines confirm by a bound as large."""
    stated = sorted(line.bound for line in group if line.bound is not None)
    agreed = [
        line
        for line in group
        if line.bound is not None and line.source in quick.NAMES and 2 * bisect_left(stated, line.bound) <= len(stated)
    ]
    return max(agreed, key=lambda line: line.bound or 0.0, default=None)


def _origin(line: _Line) -> str:
    return f"{line.bound:,.15g} of line {line.number} ({line.source})"


class Ledger:
    """A ledger to append to, locked against other writers; `floor` has the quick bounds of the available problems.

    With `resume`, it continues with the `records` in the file (`notes` describe lines that are left out); otherwise the
    file must be empty. Raises a UsageError if the file cannot be written, is in use, or is not such a ledger.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool, floor: Floor = lambda _fingerprint: None) -> None:
        self.path = os.fspath(path)
        with writing(self.path):
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise UsageError(f"cannot write {self.path}: it is not a regular file; a ledger is read again later")
            self._lock()
            data = _content(self.path, appended=True)
            if data and not resume:
                raise UsageError(
                    f"{self.path} exists; --resume (resume=True) runs only what is missing in it, or use another file"
                )
            self.records, self.notes = _accepted(path, _lines(path, data), floor)
            whole = data.rfind(b"\n") + 1
            self.dropped = len(data) - whole
            """Bytes of a torn last line, which has been removed."""
            if self.dropped:
                os.truncate(self._descriptor, whole)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, *records: Record) -> None:
        """Append records, with one flush to disk; a write error is a UsageError."""
        lines = b"".join(record.to_json().encode() + b"\n" for record in records)
        with writing(self.path):
            written = os.write(self._descriptor, lines)
            os.fsync(self._descriptor)
        if written < len(lines):  # the next writer drops a torn line
            raise UsageError(f"cannot write {self.path}: only {written} of {len(lines)} bytes were written")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        """Close and unlock the file."""
        os.close(self._descriptor)

    def _lock(self) -> None:
        """Lock the file against other comparisons until it is closed or the process ends."""
        if sys.platform == "win32":
            return
        import fcntl

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another comparison is writing {self.path}") from None
