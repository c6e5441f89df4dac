"""BibTeX of the papers that solvers and passes implement: the entries of `papers.bib`."""

from __future__ import annotations

from functools import cache
from pathlib import Path


def bibtex(*keys: str) -> str:
    """Return the entries of papers, in the order of their keys."""
    return "\n".join(_entries()[key] for key in keys)


@cache
def _entries() -> dict[str, str]:
    entries = Path(__file__).with_name("papers.bib").read_text(encoding="utf-8").rstrip().split("\n\n")
    return {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
