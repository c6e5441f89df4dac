"""Links of Markdown pages: written as they hold on GitHub, turned into those that hold on the site.

Every page links by the path of a file in the repository, relative to its own. On the site

    README.md, CONTRIBUTING.md, CHANGELOG.md    are index, contributing, changelog
    docs/solvers.md                             is the index of the solvers' pages
    docs/NAME                                   is NAME
    solvers/NAME.py                             is the page of that solver (`?source` behind it: the source)
    benchmarks/NAME.py, benchmarks              is that script's part of the page of benchmarks

and any other file of the repository is there as it is, below `files/`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/solvers.md": "solvers/index.md",
}
_FENCE = re.compile(r"^( *)(```|~~~)")
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^()\s]+)(\))")
_CODE = re.compile(r"(``[^`]+``|`[^`]*`)")


def targets(markdown: str) -> list[str]:
    """What the links and pictures of a page lead to, in order; those inside code are none."""
    found: list[str] = []

    def note(target: str) -> str:
        found.append(target)
        return target

    replaced(markdown, note)
    return found


def replaced(markdown: str, change: Callable[[str], str]) -> str:
    """The page with every target of a link or a picture changed, outside of code."""
    fence = None
    lines = []
    for line in markdown.split("\n"):
        opening = _FENCE.match(line)
        if opening and (fence is None or opening[2] == fence):
            fence = None if fence else opening[2]
        elif fence is None and not line.startswith("    "):
            line = _outside_code(line, change)
        lines.append(line)
    return "\n".join(lines)


def _outside_code(line: str, change: Callable[[str], str]) -> str:
    # Code is put aside first: it may stand inside of a link's text.
    kept: list[str] = []

    def aside(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    line = _LINK.sub(lambda found: f"{found[1]}{change(found[2])}{found[3]}", _CODE.sub(aside, line))
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], line)


def is_relative(target: str) -> bool:
    """Whether a target is a file of the repository or a place on the same page, and not elsewhere in the world."""
    return not re.match(r"[a-z][a-z0-9+.-]*:|//", target)


def on_site(path: str, solvers: dict[str, str]) -> tuple[str, str]:
    """The page or file of the site that stands for a file of the repository, and the place on it, "" for its top.

    `solvers` names the solver of each source file.
    """
    path, _, query = path.partition("?")
    if path in PAGES:
        return PAGES[path], ""
    if path in solvers and not query:
        return f"solvers/{solvers[path]}.md", ""
    if path.rstrip("/") == "benchmarks":
        return "benchmarks.md", ""
    if path.startswith("benchmarks/"):
        return "benchmarks.md", f"#{path.removeprefix('benchmarks/').replace('.', '')}"
    if path.rstrip("/") == "solvers":
        return "solvers/index.md", ""
    return (path.removeprefix("docs/"), "") if path.startswith("docs/") else (f"files/{path}", "")


def site_links(markdown: str, source: str, page: str, solvers: dict[str, str], root: Path) -> tuple[str, list[str]]:
    """A page with the links of the site, and the files of the repository that these need.

    `source` is the path of the page in the repository, or where it would stand if it is generated; `page` on the site.
    """
    needed: list[str] = []

    def change(target: str) -> str:
        if not is_relative(target) or target.startswith("#"):
            return target
        path, hash_, anchor = target.partition("#")
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        found, place = on_site(inside, solvers)
        if found.startswith("files/"):
            needed.append(found.removeprefix("files/"))
            if not (root / needed[-1]).is_file():
                return target  # the strict build refuses it
        return posixpath.relpath(found, posixpath.dirname(page) or ".") + (f"{hash_}{anchor}" if anchor else place)

    return replaced(markdown, change), needed
