"""The ledger: a file of JSON lines, one for every run that has ended, which survives whatever kills its writer.

A line is written by one call, at the end of the file, and is on the disk before the next run counts as done. Of a
writer that was killed half-way, at most the last line is torn: it has no end, and whoever goes on drops it.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import TracebackType

from placeopt.comparison.records import Record
from placeopt.errors import UsageError
from placeopt.files import check_input


def read_ledger(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a ledger in the order of its lines; a last line without an end is left out.

    Raises
    ------
    UsageError
        If the file cannot be read, or a line is no record: says which.
    """
    check_input(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from None
    return _records(path, data)


def _records(path: str | os.PathLike[str], data: bytes) -> list[Record]:
    found = []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            found.append(Record.from_json(line.decode()))
        except ValueError as error:
            raise UsageError(
                f"{os.fspath(path)}:{number}: no record of a run: {error}; delete the line, or give another file"
            ) from None
    return found


class Ledger:
    """A ledger to append to; nobody else may at the same time.

    Parameters
    ----------
    resume
        Whether to go on with what the file holds: `records`. A file that holds anything is refused otherwise.

    Raises
    ------
    UsageError
        If the file cannot be written, is in use, holds something unasked, or is no ledger.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool) -> None:
        self.path = os.fspath(path)
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror or error}") from None
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise UsageError(
                    f"cannot write {self.path}: it is no regular file, which a ledger must be to be read again"
                )
            self._lock()
            data = Path(self.path).read_bytes()
            if data and not resume:
                raise UsageError(
                    f"{self.path} exists; --resume (resume=True) runs what it does not hold yet, or give another file"
                )
            self.records = tuple(_records(path, data))
            whole = data.rfind(b"\n") + 1
            self.dropped = len(data) - whole
            """Bytes of a torn last line, which is gone now."""
            if self.dropped:
                os.truncate(self._descriptor, whole)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, record: Record) -> None:
        """Add a record.

        Raises
        ------
        UsageError
            If the disk does not take it.
        """
        line = record.to_json().encode() + b"\n"
        try:
            written = os.write(self._descriptor, line)
            os.fsync(self._descriptor)
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror or error}") from None
        if written < len(line):  # torn: the next to open the file drops it
            raise UsageError(f"cannot write {self.path}: only {written} of {len(line)} bytes of a line fitted")

    def close(self) -> None:
        """Let others have the file."""
        os.close(self._descriptor)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        """Keep other comparisons out until the file is closed, or the process is gone."""
        if sys.platform == "win32":
            return
        import fcntl

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another comparison is writing {self.path}") from None
