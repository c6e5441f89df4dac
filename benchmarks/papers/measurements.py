"""Measured values in a folder, so that an interrupted reproduction goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@cache
def code_version() -> str:
    """A hash of the source files of placeopt and its solvers."""
    digest = hashlib.sha256()
    for folder in ("placeopt", "solvers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


class Measurements:
    """JSON values by key, each with the version of the code that it was measured with.

    A value of another version is measured again, unless `reuse` is set.
    """

    def __init__(self, folder: Path, *, reuse: bool = False) -> None:
        self.folder, self.reuse = folder, reuse
        folder.mkdir(parents=True, exist_ok=True)

    def value(self, compute: Callable[[], Any], *key: object) -> Any:
        """The value of a key; measures it if the folder has none."""
        text = " ".join(map(str, key))
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if self.reuse or found["code"] == code_version():
                return found["value"]
        value = compute()
        part = path.with_suffix(".part")
        part.write_text(json.dumps({"key": text, "code": code_version(), "value": value}), encoding="utf-8")
        part.rename(path)
        return value
