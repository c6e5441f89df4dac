"""Generate the page of benchmarks from the docstrings of the scripts."""

from __future__ import annotations

import ast
from pathlib import Path

from solver_pages import prose


def benchmark_page(root: Path) -> str:
    """Return the page, with a section for each script."""
    folder = root / "benchmarks"
    scripts = [folder / "papers" / "__main__.py", *sorted(folder.glob("*.py"))]
    parts = [
        "# Benchmarks\n\nThis page describes the script behind each [measured figure](docs/measured.md). To run one, "
        f"from a clone of the repository:\n\n    python benchmarks/{scripts[1].name}"
    ]
    for path in scripts:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        name = path.parent.name if path.name == "__main__.py" else path.name
        parts.append(f"## {name}\n\n{prose(docstring)}")
    return "\n\n".join(parts) + "\n"
