"""Measured values in a folder, so that an interrupted reproduction goes on where it was, and versions of the code."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

FOLDERS = ("placeopt", "solvers", "benchmarks")
"""What a version of the code consists of: these trees of a commit. The last one does not make measured values invalid,
because each report changes it."""

DRAFT = "draft"
"""The version of a tree with changes that are not committed."""


class UncommittedError(Exception):
    """Changes that no version of the code has."""


@cache
def code_version() -> str:
    """The version of the code in the working tree: the Git tree of each folder, as in `git rev-parse HEAD:placeopt`.

    Raises
    ------
    UncommittedError
        If sources have changes that are not committed, or the Git history is missing.
    """
    changed = _git("status", "--porcelain", "--", "placeopt", "solvers", "benchmarks/*.py").splitlines()
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UncommittedError(f"{changed[0][3:]}{more} changed since the last commit")
    return next(versions(["HEAD"]))


def versions(commits: Iterable[str]) -> Iterable[str]:
    """The versions of the code of commits."""
    names = "".join(f"{commit}:{folder}\n" for commit in commits for folder in FOLDERS)
    found = [line.split()[0][:10] for line in _git("cat-file", "--batch-check", given=names).splitlines()]
    return map(".".join, zip(*[iter(found)] * len(FOLDERS), strict=True))


def _git(*words: str, given: str = "") -> str:
    try:
        run = subprocess.run(["git", *words], cwd=ROOT, input=given, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UncommittedError("the Git repository is missing, so the version of the code is not known") from error
    return run.stdout


class Measurements:
    """JSON values by key, each with the version of the code that it was measured with.

    A value of another version is measured again, unless `reuse` is set. `used` are the versions of the values so far.
    """

    def __init__(self, folder: Path, *, version: str, reuse: bool = False) -> None:
        self.folder, self.version, self.reuse = folder, version, reuse
        self.used = {version}
        folder.mkdir(parents=True, exist_ok=True)

    def value(self, compute: Callable[[], Any], *key: object) -> Any:
        """The value of a key; measures it if the folder has none."""
        text = " ".join(map(str, key))
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if self.reuse or product(found["code"]) == product(self.version):
                self.used.add(found["code"])
                return found["value"]
        value = compute()
        part = path.with_suffix(".part")
        part.write_text(json.dumps({"key": text, "code": self.version, "value": value}), encoding="utf-8")
        part.rename(path)
        return value


def product(version: str) -> str:
    """The part of a version that makes values invalid."""
    return version.rpartition(".")[0] or version
