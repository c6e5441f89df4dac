"""Files read within limits, files written whole or not at all, and both kept apart."""

from __future__ import annotations

import errno
import os
import re
import secrets
import select
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from placeopt.errors import UsageError, visible

STDIN = "/dev/stdin"
"""The path of standard input, on every system: what `-` stands for on the command line."""

LARGEST = 2**29
"""Bytes of the largest file that is read unless the caller allows more; a million tasks take a third of it."""

_CHUNK = 2**20
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_KINDS = {
    stat.S_IFDIR: "is a folder, expected a file",
    stat.S_IFIFO: "is a named pipe, expected a regular file; placeopt reads pipes from standard input (-) and <(...)",
    stat.S_IFSOCK: "is a socket, expected a regular file",
    stat.S_IFCHR: "is a device, expected a regular file",
    stat.S_IFBLK: "is a device, expected a regular file",
}
_most: ContextVar[int | None] = ContextVar("most", default=None)

Identity = tuple[int, int] | str

StrPath = str | os.PathLike[str]
"""The path of a file, as callers give it."""

LONGEST_PATH = 4096
"""Characters of a path that a message shows."""

_protected: ContextVar[Mapping[Identity, str] | None] = ContextVar("_protected", default=None)
"""Names of the outputs by their identities; see `keep_apart`."""


class UnreadableError(Exception):
    """A file cannot be read; the text says why, without the file's name."""


@contextmanager
def size_limit(max_bytes: int | None) -> Iterator[None]:
    """Set the size of the largest file that placeopt reads inside the `with` block; None keeps the limit as it is.

    The limit replaces the usual ones: 512 MiB, and 32 MiB for YAML. It holds for the current thread.

    Raises
    ------
    UsageError
        If it is not a positive whole number.
    """
    if max_bytes is None:
        yield
        return
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise UsageError(f"max_bytes is {max_bytes!r}; expected a positive whole number of bytes")
    token = _most.set(max_bytes)
    try:
        yield
    finally:
        _most.reset(token)


def checked_path(path: StrPath) -> str:
    """Return the path of a file as text.

    Raises
    ------
    UsageError
        If it is not a path.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise UsageError(f"the path of a file is a {type(path).__name__}; expected a str or a pathlib.Path")
    return text


def descriptor(path: StrPath) -> int | None:
    """The number of the open file that a path such as /dev/stdin or /dev/fd/63 names; None for any other path."""
    text = path if isinstance(path, str) else Path(path).as_posix()
    match = _DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match else 0 if text == STDIN else None


def read_file(path: StrPath, most: Callable[[bytes], int] = lambda _start: LARGEST, *, appended: bool = False) -> bytes:
    """The content of a regular file, or of a pipe that the caller of this process opened (`-`, `<(...)`).

    Nothing else is opened for long: a named pipe without a writer or a device would never end.

    Parameters
    ----------
    most
        The size limit in bytes, given the first piece of the file.
    appended
        Whether the command that runs appends to the file, so that it may be one of its outputs.

    Raises
    ------
    UnreadableError
        If there is no such file, it cannot be read, is of another kind, or is too large.
    UsageError
        If the command that runs would overwrite it (`keep_apart`).
    """
    path = checked_path(path)
    if not appended:
        check_input(path)
    try:
        return _read(path, most)
    except FileNotFoundError:
        raise UnreadableError("no such file") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise UnreadableError(f"is not a file name: {error}") from None


def read_text(path: StrPath, most: Callable[[bytes], int] = lambda _start: LARGEST) -> str:
    """The content of a file as UTF-8 text; see `read_file`."""
    try:
        return read_file(path, most).decode()
    except UnicodeDecodeError as error:
        at = error.object[error.start]
        raise UnreadableError(f"is not UTF-8 text (byte {error.start} is {at:#04x})") from None


def _read(path: StrPath, most: Callable[[bytes], int]) -> bytes:
    given = descriptor(path)
    # Without O_NONBLOCK, opening a named pipe waits for a writer, and files such as trace_pipe for an event.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    if given is None:
        kind = _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))  # before it is opened: that may do something to a device
        if kind is not None:
            raise UnreadableError(kind)
    number = os.open(path, flags) if given is None else os.dup(given)
    with open(number, "rb", buffering=0) as file:
        status = os.fstat(number)
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        if given is not None and (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode) or os.isatty(number)):
            kind = None
        if kind is not None:
            raise UnreadableError(kind)
        content = bytearray()
        limit = None
        while True:
            chunk = file.read(_CHUNK)
            if chunk is None:  # nothing is there yet, and reading does not wait
                if given is None:
                    raise UnreadableError("has no end, expected a regular file")
                select.select([number], [], [])
                continue
            content += chunk
            if limit is None:
                limit = _most.get() or most(bytes(content))
            if len(content) > limit or status.st_size > limit:
                raise UnreadableError(_too_large(limit, status.st_size))
            if not chunk:
                return bytes(content)


def _too_large(limit: int, size: int) -> str:
    has = f"has {size:,} bytes" if size > limit else "does not end within the limit"
    return f"{has}; placeopt reads {limit:,} bytes of such a file (--max-size, or max_bytes in Python, raises that)"


def write_whole(path: StrPath, content: str | bytes) -> None:
    """Write a file, texts as UTF-8; one that was there before is replaced whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written; also if it is a named pipe that no process reads, since opening that would wait.
    """
    data = content.encode() if isinstance(content, str) else content
    path = Path(checked_path(path))
    if path.exists() and not path.is_file():  # a pipe or a device
        with open(path, "wb", opener=_opened_at_once) as stream:
            stream.write(data)
        return
    target = Path(os.path.realpath(path))  # what a link stands for, not the link
    # The name does not grow with that of the target, which may be as long as the system allows.
    temporary = target.with_name(f".placeopt-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # name the file that the caller gave
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _opened_at_once(path: str, flags: int) -> int:
    """The descriptor of a pipe or a device, opened without waiting for a reader."""
    try:
        number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode):
            raise OSError(errno.ENXIO, "no process reads this named pipe") from None
        raise
    os.set_blocking(number, True)
    return number


def identity(path: StrPath | int) -> Identity | None:
    """What two names of the same file have in common, links and ./a/../b resolved; None for a pipe or a device.

    A number is a file descriptor.
    """
    try:
        found = os.stat(path)
    except OSError:  # it does not exist yet
        return None if isinstance(path, int) else os.path.realpath(path)
    except ValueError:  # it holds a NUL, which no name of a file does
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def keep_apart(outputs: Mapping[Identity, str]) -> None:
    """Refuse to read files that will be written, in this context: `outputs` maps identities to names for messages."""
    _protected.set(outputs)


def check_input(path: StrPath) -> None:
    """Refuse a file that is an output of the command that runs; called before a file is read.

    Raises
    ------
    UsageError
        If it is an output.
    """
    outputs = _protected.get()
    if outputs and (output := outputs.get(identity(path) or "")):
        raise UsageError(
            f"{output} would overwrite {visible(str(path), LONGEST_PATH)}, which is read; expected another file"
        )
