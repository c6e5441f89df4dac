"""stdout and stderr: names that they cannot encode, readers that go away."""

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
"""Exit code when the reader of stdout went away: 128 plus SIGPIPE."""


class LostError(Exception):
    """stdout can no longer be written."""


class Stream(io.TextIOWrapper):
    """A standard stream that can be lost: its reader goes away, its disk is full, its terminal was closed.

    The first write that fails raises a LostError, unless the stream is `lasting`. Later ones go nowhere.
    """

    failure: OSError | None = None
    """Why the stream was lost."""
    lasting = False
    """Whether work goes on without the stream, since a file will hold the result."""

    def write(self, text: str) -> int:
        """Write a text; see the class."""
        try:
            super().write(text)
        except OSError as error:
            self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Write what is held back; see the class."""
        try:
            super().flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())  # what is held back can go there
        os.close(null)
        self.failure = error
        if not self.lasting:
            raise LostError from error


def open_streams() -> None:
    """Put a `Stream` in the place of stdout and of stderr; characters that their encodings lack are escaped.

    Exits with code 2 if stdout is closed: results need a place to go.
    """
    if sys.stderr is None:  # closed by the caller: messages have nowhere to go
        # For the rest of the process. `__stderr__` keeps the file open: the Stream below only holds its buffer.
        sys.stderr = sys.__stderr__ = open(os.devnull, "w", encoding="utf-8")  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = _opened(sys.stderr, lasting=True)
    if sys.stdout is None:
        print("placeopt: standard output is closed; results need a place to go", file=sys.stderr)
        sys.exit(2)
    sys.stdout = _opened(sys.stdout, lasting=False)


def _opened(stream: TextIO, *, lasting: bool) -> TextIO:
    """A Stream over the buffer of a standard stream; other objects, such as the text buffer of a test, as they are."""
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, Stream):
        return stream
    opened = Stream(
        stream.buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )  # fmt: skip
    opened.lasting = lasting
    return opened


def outlast_stdout() -> None:
    """Go on without stdout once it is lost: a file will hold the result."""
    if isinstance(sys.stdout, Stream):
        sys.stdout.lasting = True


def settled(code: int) -> int:
    """The exit code of a command that ended with `code`, after the last write to stdout.

    A lost stdout changes it: to 141 if the reader went away, as in `| head`, else to 2, with a message. Codes of
    signals and internal errors remain.
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
    """Whether the stream's encoding has all characters; true of streams without one."""
    return stream.encoding is None or codecs.lookup(stream.encoding).name.startswith("utf")
