"""Files written whole or not at all, and kept apart from those that are read."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path

from placeopt.errors import UsageError, visible

Identity = tuple[int, int] | str

LONGEST_PATH = 4096
"""Characters of a path that a message shows."""

_protected: ContextVar[Mapping[Identity, str] | None] = ContextVar("_protected", default=None)
"""Names of the outputs by their identities; see `keep_apart`."""


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file, texts as UTF-8; one that was there before is replaced whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    path = Path(path)
    if path.exists() and not path.is_file():  # a pipe or a device
        path.write_bytes(data)
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def identity(path: str | os.PathLike[str] | int) -> Identity | None:
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


def check_input(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is an output of the command that runs; called before each file is read.

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
