"""Generate the page of benchmarks from the docstrings of the scripts."""

from __future__ import annotations

import ast
from pathlib import Path

from solver_pages import prose


def benchmark_page(root: Path) -> str:
    """Return the page, with a section for each script."""
    scripts = sorted((root / "benchmarks").glob("*.py"))
    parts = [
        "# Benchmarks\n\nThis page describes the script behind each [measured figure](docs/measured.md). To run one, "
        f"from a clone of the repository:\n\n    python benchmarks/{scripts[0].name}"
    ]
    for path in scripts:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        parts.append(f"## {path.name}\n\n{prose(docstring)}")
    return "\n\n".join(parts) + "\n"
