"""Convert links between files of the repository to links between pages of the site.

Every page links to files of the repository by relative paths, so that the links work on GitHub. On the site, these
targets become:

    README.md, CONTRIBUTING.md, CHANGELOG.md    index, contributing, changelog
    docs/solvers.md                             the index of the pages of solvers
    benchmarks/papers/README.md, pages/NAME.md  papers/index, papers/NAME
    docs/NAME                                   NAME
    solvers/placeopt_solvers/NAME.py            the page of the solver (the source file with `?source`)
    benchmarks/NAME.py, benchmarks              the section of the script on the page of benchmarks

Any other file of the repository is copied to `files/`.
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
    "benchmarks/papers/README.md": "papers/index.md",
}
for _paper in ("baechi", "celeritas", "giph", "carbonari"):
    PAGES[f"benchmarks/papers/pages/{_paper}.md"] = f"papers/{_paper}.md"
_FENCE = re.compile(r"^( *)(```|~~~)")
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^()\s]+)(\))")
_CODE = re.compile(r"(``[^`]+``|`[^`]*`)")


def targets(markdown: str) -> list[str]:
    """The targets of the links and images of a page, in order. Code is ignored."""
    found: list[str] = []

    def note(target: str) -> str:
        found.append(target)
        return target

    replaced(markdown, note)
    return found


def replaced(markdown: str, change: Callable[[str], str]) -> str:
    """The page with `change` applied to the target of every link and image outside code."""
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
    # Code is replaced by placeholders first, because the text of a link may contain code.
    kept: list[str] = []

    def aside(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    line = _LINK.sub(lambda found: f"{found[1]}{change(found[2])}{found[3]}", _CODE.sub(aside, line))
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], line)


def is_relative(target: str) -> bool:
    """Whether a target is a file of the repository or an anchor on the same page, not an external address."""
    return not re.match(r"[a-z][a-z0-9+.-]*:|//", target)


def on_site(path: str, solvers: dict[str, str]) -> tuple[str, str]:
    """The page or file of the site for a file of the repository, and the anchor on it ("" for the top of the page).

    `solvers` maps each source file to the name of its solver.
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
    """A page with links of the site, and the files of the repository that these links require.

    `source` is the path of the page in the repository, which generated pages have as well. `page` is its path on the
    site.
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
                return target  # the strict build reports it
        return posixpath.relpath(found, posixpath.dirname(page) or ".") + (f"{hash_}{anchor}" if anchor else place)

    return replaced(markdown, change), needed
