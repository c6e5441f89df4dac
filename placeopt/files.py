"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file, texts as UTF-8; one that was there before is replaced whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))  # what a link stands for, not the link
    if target.exists() and not target.is_file():  # a pipe or a device
        target.write_bytes(data)
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
