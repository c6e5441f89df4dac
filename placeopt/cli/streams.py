"""Wrap stdout and stderr: handle names that they cannot encode, and readers that close them."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys
from typing import TextIO

INTERNAL = 70
"""Exit code of an internal error."""
LOST = 141
"""Exit code when the reader of stdout has closed it: 128 plus SIGPIPE."""


class LostError(Exception):
    """stdout can no longer be written."""


class Stream(io.TextIOWrapper):
    """A standard stream that can be lost: its reader has closed it, its disk is full, its terminal is gone.

    The first write that fails raises a LostError, unless the stream is `lasting`. Later output is discarded.
    """

    failure: OSError | None = None
    """Why the stream was lost."""
    lasting = False
    """Whether work continues without the stream, because a file will hold the result."""

    def write(self, text: str) -> int:
        """Write a text; see the class."""
        try:
            super().write(text)
        except OSError as error:
            self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Write buffered text; see the class."""
        try:
            super().flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())  # for buffered text
        os.close(null)
        self.failure = error
        if not self.lasting:
            raise LostError from error


def open_streams() -> None:
    """Replace stdout and stderr by a `Stream`; characters that their encodings lack are escaped.

    A width of 0 columns in the environment means that the width is unknown, as for terminals. Exits with code 2 if
    stdout is closed, because results could not be printed.
    """
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)
    if sys.stderr is None:  # closed by the caller: messages are discarded
        # `__stderr__` keeps the file open, because the Stream below only holds its buffer.
        sys.stderr = sys.__stderr__ = open(os.devnull, "w", encoding="utf-8")  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = _opened(sys.stderr, lasting=True)
    if sys.stdout is None:
        print("placeopt: standard output is closed; results cannot be printed", file=sys.stderr)
        sys.exit(2)
    sys.stdout = _opened(sys.stdout, lasting=False)


def _opened(stream: TextIO, *, lasting: bool) -> TextIO:
    """Return a Stream for a standard stream; other objects, such as a StringIO, are returned unchanged."""
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, Stream):
        return stream
    opened = Stream(
        stream.buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )  # fmt: skip
    opened.lasting = lasting
    return opened


def tolerate_lost_stdout() -> None:
    """Continue if stdout is lost, because a file will hold the result."""
    if isinstance(sys.stdout, Stream):
        sys.stdout.lasting = True


def final_code(code: int) -> int:
    """Flush stdout and return the exit code of a command that ended with `code`.

    If stdout was lost, the code is 141 if its reader closed it, as in `| head`, else 2 with a message. Codes of signals
    and internal errors do not change.
    """
    with contextlib.suppress(LostError):
        sys.stdout.flush()
    failure = sys.stdout.failure if isinstance(sys.stdout, Stream) else None
    if failure is None or code == INTERNAL or code > 128:
        return code
    if failure.errno == errno.EPIPE:
        return LOST
    print(f"placeopt: cannot write the output: {failure.strerror or failure}", file=sys.stderr)
    return 2


def is_unicode(stream: TextIO) -> bool:
    """Return whether the encoding of a stream has all characters; true without an encoding."""
    return stream.encoding is None or codecs.lookup(stream.encoding).name.startswith("utf")
