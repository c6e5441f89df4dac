"""Check output files before any work: they must be writable, and differ from each other and from input files."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path

from placeopt.cli.streams import outlast_stdout
from placeopt.errors import UsageError, unwritable, visible
from placeopt.io.files import LONGEST_PATH, Identity, identity, keep_apart

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def local_file(text: str) -> Path:
    """Convert an argument to a path; an address such as https://... is a UsageError."""
    if _ADDRESS.match(text):
        raise UsageError(f"{visible(text, 1000)} is an address on a network; expected a file on this machine")
    return Path(text)


def check_targets(*targets: tuple[str, Path | None]) -> None:
    """Check output options and their paths: all can be written, and no two are the same file.

    Afterwards, reading one of them is an error (`placeopt.io.files.check_input`), which protects the problem, its graph
    file and plans. A lost stdout no longer ends the command, because a file will hold the result.

    Raises
    ------
    UsageError
        If an output cannot be written, or would overwrite another one.
    """
    wanted = [(option, path) for option, path in targets if path is not None]
    found: dict[Identity, tuple[str, Path]] = {}
    for option, path in wanted:
        _check_writable(path)
        itself = identity(path)
        if itself is None:  # a pipe or a device can be shared
            continue
        if itself in found:
            raise UsageError(f"{found[itself][0]} and {option} are the same file, {_shown(path)}; expected two")
        for stream, name in ((sys.stdout, "standard output"), (sys.stderr, "standard error")):
            with contextlib.suppress(OSError, ValueError):  # not a file, in tests
                if identity(stream.fileno()) == itself:
                    raise UsageError(f"{option} {_shown(path)} is the file of {name}; expected another one")
        found[itself] = option, path
    keep_apart({itself: f"{option} {_shown(path)}" for itself, (option, path) in found.items()})
    if wanted:
        outlast_stdout()


def _check_writable(path: Path) -> None:
    """Raise a UsageError if a file cannot be written, as far as its folder shows."""
    shown = f"cannot write {_shown(path)}"
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # the name is too long, a link refers to itself, a part of the path is a file
        raise UsageError(unwritable(path, error)) from None
    if path.is_dir():
        raise UsageError(f"{shown}: it is a folder; expected a file")
    if path.exists() and not path.is_file():  # a device or a pipe is written, not replaced
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise UsageError(f"{shown}: there is no folder {_shown(folder if path.is_symlink() else path.parent)}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{shown}: its folder is read-only")


def _shown(path: Path) -> str:
    return visible(str(path), LONGEST_PATH)
