"""Generate the reference of the Python API: the sections of docs/api.md, with the docstring of each name."""

from __future__ import annotations

import re
from pathlib import Path


def public_names(text: str) -> list[str]:
    """Return the names in the first cells of the tables of docs/api.md."""
    cells = re.findall(r"^\| (`po\.[^|]*) \|", text, flags=re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`po\.(\w+)`", cell)]


def python_page(root: Path) -> str:
    """Return the page, in the directives of mkdocstrings."""
    parts = ["# Python reference\n\nThis page shows the signature and the docstring of every [public name](api.md)."]
    for section in (root / "docs" / "api.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        if names := public_names(section):
            parts.append(f"## {section.splitlines()[0]}")
            parts += [f"::: placeopt.{name}" for name in names]
    return "\n\n".join(parts) + "\n"
