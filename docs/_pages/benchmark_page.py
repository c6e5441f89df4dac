"""The page of benchmarks: what the README says was measured, and what each script says of itself."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from solver_pages import prose


def benchmark_page(root: Path) -> str:
    """Figures and scripts."""
    scripts = sorted((root / "benchmarks").glob("*.py"))
    parts = [
        "# Benchmarks\n\nA script for every figure; nothing in the tests is timed. To run one, from a clone of the "
        f"repository:\n\n    python benchmarks/{scripts[0].name}",
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
    """The README's section of figures."""
    found = re.search(r"^## What is measured$.*?(?=^## |\Z)", readme, flags=re.MULTILINE | re.DOTALL)
    return found[0].strip() if found else ""
