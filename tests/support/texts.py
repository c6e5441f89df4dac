"""Spec texts for tests: what they compile to, and what is said about the wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from placeopt.errors import DocumentError, SpecError
from placeopt.io.compiler import compile_document, compile_spec, load
from placeopt.io.document import parse_document
from placeopt.model.problem import Problem

FILE = "p.yaml"


def compiled(text: str, *, json_format: bool = False) -> Problem:
    """The problem of a spec."""
    return compile_document(parse_document(text, file=FILE, json_format=json_format))


def complaints(text: str, *, json_format: bool = False) -> list[str]:
    """Every issue of a spec as `line:column: path: message`; none if it compiles."""
    try:
        compiled(text, json_format=json_format)
    except DocumentError as error:
        return [str(issue).removeprefix(f"{FILE}:") for issue in error.issues]
    return []


def edited(text: str, *edits: tuple[str, str]) -> str:
    """A text in which each edit has replaced the one place that it finds."""
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the text"
        text = text.replace(old, new)
    return text


def data_complaints(data: dict[str, Any]) -> list[str]:
    """Every issue of a document made in code as `path: message`; none if it compiles."""
    try:
        compile_spec(data, files="any")
    except SpecError as error:
        return [str(issue) for issue in error.issues]
    return []


def file_complaints(path: Path | str) -> list[str]:
    """Every issue of a spec file, as people see it; none if it loads."""
    try:
        load(path)
    except SpecError as error:
        return [str(issue) for issue in error.issues]
    return []
