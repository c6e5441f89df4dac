"""Hooks for MkDocs that add the generated pages and convert repository links to links of the site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))

from benchmark_page import benchmark_page
from links import PAGES, site_links
from python_page import python_page
from schema_page import schema_page
from solver_pages import families, our_solvers, solver_page, source_path

from placeopt.io.spec import json_schema

ROOT = Path(__file__).parents[2]


def generated() -> dict[str, tuple[str, str]]:
    """The Markdown of every page without a file in docs/, and the path that its links are relative to."""
    pages = {page: ((ROOT / path).read_text(encoding="utf-8"), path) for path, page in PAGES.items()}
    pages["reference.md"] = (schema_page(json_schema()), "docs/reference.md")
    pages["python.md"] = (python_page(ROOT), "docs/python.md")
    pages["benchmarks.md"] = (benchmark_page(ROOT), "benchmarks.md")
    for name in our_solvers():
        pages[f"solvers/{name}.md"] = (solver_page(name), f"solvers/{name}.md")
    return pages


def on_config(config: Any) -> Any:
    """Add the solver pages to the navigation by family, and append pages that the navigation does not list."""
    entries: list[Any] = ["solvers/index.md"]
    for family, names in families().items():
        entries.append({family.capitalize(): [{name: f"solvers/{name}.md"} for name in names]})
    for entry in config.nav:
        if "Solvers" in entry:
            entry["Solvers"] = [*entries, *entry["Solvers"]]
    listed = {*listed_pages(config.nav), *(path.removeprefix("docs/") for path in PAGES)}
    unlisted = [path.name for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in listed]
    if unlisted:
        config.nav.append({"More": unlisted})
    return config


def listed_pages(nav: Any) -> list[str]:
    """The pages that a navigation lists."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in listed_pages(part)]


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and the files of the repository that pages link to."""
    solvers = {source_path(name): name for name in our_solvers()}
    needed: list[str] = []
    texts = {file.src_uri: (file.content_string, f"docs/{file.src_uri}") for file in files.documentation_pages()}
    for page, (markdown, source) in (texts | generated()).items():
        content, paths = site_links(markdown, source, page, solvers, ROOT)
        needed += paths
        known = files.get_file_from_path(page)
        if known is not None:
            files.remove(known)
        files.append(File.generated(config, page, content=content))
    for path in dict.fromkeys(needed):
        if (ROOT / path).is_file():
            files.append(File.generated(config, f"files/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave the column of the table of contents to the code and the pictures of the gallery."""
    if page.file.src_uri.startswith("examples/"):
        page.meta["hide"] = ["toc"]
    return markdown
