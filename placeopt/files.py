"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file; a file that was there before is replaced whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    target = Path(os.path.realpath(path))  # what a link stands for, not the link
    if target.exists() and not target.is_file():  # a pipe or a device
        target.write_text(text, encoding="utf-8")
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
