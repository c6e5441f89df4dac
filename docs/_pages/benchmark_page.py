"""Generate the page of benchmarks from the figures in the README and the docstrings of the scripts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from solver_pages import prose


def benchmark_page(root: Path) -> str:
    """The page: figures, then scripts."""
    scripts = sorted((root / "benchmarks").glob("*.py"))
    parts = [
        "# Benchmarks\n\nThis page lists the measured figures and the scripts that reproduce them. Run a script from a "
        f"clone of the repository:\n\n    python benchmarks/{scripts[0].name}",
        re.sub(r"^#", "##", measured((root / "README.md").read_text(encoding="utf-8")), flags=re.MULTILINE).replace(
            "### What is measured", "## What is measured"
        ),
        "## The scripts",
    ]
    for path in scripts:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        parts.append(f"### {path.name}\n\n{prose(docstring)}")
    return "\n\n".join(parts) + "\n"


def measured(readme: str) -> str:
    """The section of the README with the figures; empty without one."""
    found = re.search(r"^## What is measured$.*?(?=^## |\Z)", readme, flags=re.MULTILINE | re.DOTALL)
    return found[0].strip() if found else ""
