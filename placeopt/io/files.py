"""Read files within size limits, write files atomically, and keep inputs from being overwritten."""

from __future__ import annotations

import errno
import os
import re
import secrets
import select
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from io import FileIO
from pathlib import Path

from placeopt.errors import UsageError, unwritable, visible

STDIN = "/dev/stdin"
"""Path of standard input on every system: `-` on the command line."""

LARGEST = 2**29
"""Default size limit of files in bytes; a million tasks take a third of it."""

_CHUNK = 2**20
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_KINDS = {
    stat.S_IFDIR: "is a folder, expected a file",
    stat.S_IFIFO: "is a named pipe, expected a regular file; placeopt reads pipes from standard input (-) and <(...)",
    stat.S_IFSOCK: "is a socket, expected a regular file",
    stat.S_IFCHR: "is a device, expected a regular file",
    stat.S_IFBLK: "is a device, expected a regular file",
}
_FULL = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)}
"""Errors of a disk, a quota or a limit of file sizes that leaves no space."""

_most: ContextVar[int | None] = ContextVar("most", default=None)

Identity = tuple[int, int] | str

StrPath = str | os.PathLike[str]
"""The path of a file, as text or as an object."""

LONGEST_PATH = 4096
"""Maximum number of characters of a path in a message."""

_protected: ContextVar[Mapping[Identity, str] | None] = ContextVar("_protected", default=None)
"""Names of outputs by identity; see `keep_apart`."""


class UnreadableError(Exception):
    """A file cannot be read; the message gives the reason without the file name."""


@contextmanager
def size_limit(max_bytes: int | None) -> Iterator[None]:
    """Set the size limit of files read in the `with` block; None keeps the current limit.

    It replaces the default limits, 512 MiB and 32 MiB for YAML, in the current thread.

    Raises
    ------
    UsageError
        If `max_bytes` is not a positive whole number.
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


def largest(default: int = LARGEST) -> int:
    """The size limit of files in bytes: that of `size_limit`, or else the given default."""
    return _most.get() or default


def checked_path(path: StrPath) -> str:
    """Return the path of a file as text; anything but a path is a UsageError."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise UsageError(f"the path of a file is a {type(path).__name__}; expected a str or a pathlib.Path")
    return text


def descriptor(path: StrPath) -> int | None:
    """The file descriptor that a path such as /dev/stdin or /dev/fd/63 names; None for any other path."""
    text = path if isinstance(path, str) else Path(path).as_posix()
    match = _DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match else 0 if text == STDIN else None


def read_file(path: StrPath, most: Callable[[bytes], int] = lambda _start: LARGEST, *, appended: bool = False) -> bytes:
    """Read a regular file, or a pipe that the caller of this process opened (`-`, `<(...)`).

    Named pipes and devices are rejected, since they may never end. `most` returns the size limit in bytes, given the
    first piece of the file. With `appended`, the running command appends to the file, which may be one of its outputs.

    Raises an UnreadableError if the file does not exist, cannot be read, is not a regular file, or is too large, and a
    UsageError if the running command would overwrite it (`keep_apart`).
    """
    path = checked_path(path)
    if not appended:
        check_input(path)
    with _explained():
        return _read(path, most)


def read_start(path: StrPath, size: int) -> bytes:
    """Read the first `size` bytes of a regular file, however large it is.

    Raises an UnreadableError if the file does not exist, cannot be read, or is not a regular file.
    """
    with _explained(), open(checked_path(path), "rb", buffering=0, opener=_regular) as file:
        content = b""
        while len(content) < size and (chunk := _chunk(file, size - len(content))):
            content += chunk
        return content


@contextmanager
def _explained() -> Iterator[None]:
    """Raise the errors of the system as an UnreadableError."""
    try:
        yield
    except FileNotFoundError:
        raise UnreadableError("no such file") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise UnreadableError(f"is not a file name: {error}") from None


def read_text(path: StrPath, most: Callable[[bytes], int] = lambda _start: LARGEST) -> str:
    """Read a file as UTF-8 text; see `read_file`."""
    return text_of(read_file(path, most))


def text_of(content: bytes) -> str:
    """Decode the content of a file as UTF-8; raises an UnreadableError otherwise."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = error.object[error.start]
        raise UnreadableError(f"is not UTF-8 text (byte {error.start} is {at:#04x})") from None


def _read(path: StrPath, most: Callable[[bytes], int]) -> bytes:
    given = descriptor(path)
    number = _regular(checked_path(path)) if given is None else os.dup(given)
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
            chunk = _chunk(file, _CHUNK, waits=given is not None)
            content += chunk
            if limit is None:
                limit = largest(most(bytes(content)))
            if len(content) > limit or status.st_size > limit:
                raise UnreadableError(_too_large(limit, status.st_size))
            if not chunk:
                return bytes(content)


def _regular(path: str, _flags: int = 0) -> int:
    """Open a regular file; anything else raises an UnreadableError."""
    kind = _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))  # checked before opening, which may affect a device
    if kind is not None:
        raise UnreadableError(kind)
    # Without O_NONBLOCK, opening a named pipe waits for a writer, and files such as trace_pipe for an event.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    return os.open(path, flags)


def _chunk(file: FileIO, size: int, *, waits: bool = False) -> bytes:
    """Read up to `size` bytes. A file that has none yet, and is not at its end, is awaited or rejected."""
    while (chunk := file.read(size)) is None:  # the read does not block
        if not waits:
            raise UnreadableError("has no end, expected a regular file")
        select.select([file], [], [])
    return chunk


def _too_large(limit: int, size: int) -> str:
    has = f"has {size:,} bytes" if size > limit else "does not end within the limit"
    return f"{has}; the limit is {limit:,} bytes (raise it with --max-size, or max_bytes in Python)"


@contextmanager
def temporary_folder(prefix: str, parent: StrPath | None = None) -> Iterator[Path]:
    """Yield a new folder that is removed at the end, also if an exception, such as a signal, ends its removal.

    Raises a UsageError if the disk for temporary files, where the folder is without a `parent`, is full.
    """
    try:
        with _removed_folder(prefix, parent) as made:
            yield made
    except OSError as error:
        if parent is not None or error.errno not in _FULL:
            raise
        where = visible(tempfile.gettempdir(), LONGEST_PATH)
        raise UsageError(
            f"cannot write temporary files in {where}: {error.strerror}; free space there, or set TMPDIR to another "
            "folder"
        ) from None


@contextmanager
def _removed_folder(prefix: str, parent: StrPath | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True) as made:
        try:
            yield Path(made)
        finally:
            try:
                shutil.rmtree(made, ignore_errors=True)
            except BaseException:
                shutil.rmtree(made, ignore_errors=True)
                raise


@contextmanager
def writing(path: StrPath) -> Iterator[None]:
    """Turn an OSError into a UsageError that says which file or folder cannot be written, and why."""
    try:
        yield
    except OSError as error:
        raise UsageError(unwritable(path, error)) from None


def write_whole(path: StrPath, content: str | bytes) -> None:
    """Write a file atomically, text as UTF-8.

    Raises an OSError if it cannot be written, or is a named pipe that no process reads.
    """
    data = content.encode() if isinstance(content, str) else content
    path = Path(checked_path(path))
    if path.exists() and not path.is_file():  # a pipe or a device
        with open(path, "wb", opener=_opened_at_once) as stream:
            stream.write(data)
        return
    target = Path(os.path.realpath(path))  # the target of a link, not the link
    # Of fixed length, since the name of the target may be as long as the system allows.
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
    """Open a pipe or a device without waiting for a reader."""
    try:
        number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode):
            raise OSError(errno.ENXIO, "no process reads this named pipe") from None
        raise
    os.set_blocking(number, True)
    return number


def identity(path: StrPath | int) -> Identity | None:
    """An identity that all names of a file share; None for a pipe or a device.

    `path` may be a file descriptor.
    """
    try:
        found = os.stat(path)
    except OSError:  # it does not exist yet
        return None if isinstance(path, int) else os.path.realpath(path)
    except ValueError:  # a NUL in the name
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def keep_apart(outputs: Mapping[Identity, str]) -> None:
    """In this context, reject reading files that will be written; `outputs` maps identities to names for messages."""
    _protected.set(outputs)


def check_input(path: StrPath) -> None:
    """Raise a UsageError if a file is an output of the running command; called before a file is read."""
    outputs = _protected.get()
    if outputs and (output := outputs.get(identity(path) or "")):
        raise UsageError(
            f"{output} would overwrite {visible(str(path), LONGEST_PATH)}, which is read; expected another file"
        )
