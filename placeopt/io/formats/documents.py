"""Write problems and their documents as YAML and JSON, with one task, device or link per line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt.io.compiler import compile_spec
from placeopt.io.files import StrPath, checked_path, write_whole
from placeopt.model.problem import Problem, check_problem

MODELINE = "# yaml-language-server: $schema={schema}\n"
"""First line of a problem file, by which editors find the schema."""

_LINED = ("operations", "devices", "tasks", "placement")
"""Sections with one entry per line."""

_PLAIN = re.compile(r"(?:[^\W\d][\w./+-]*|\d+(?:\.\d+)?(?= ))(?: [^\W\d][\w./+-]*)*")
_WORDS = {"y", "yes", "n", "no", "on", "off", "true", "false", "null"}
"""Words that some version of YAML does not read as text."""


def write_problem(problem: Problem, path: StrPath) -> None:
    """Write a problem to a file, from which `po.load` makes it again: JSON if the name ends in .json, else YAML.

    An existing file is replaced as a whole or not at all. JSON is the better choice for more than a few thousand tasks.

    Raises
    ------
    UsageError
        If the format cannot state a part of the problem (`Problem.to_document`).
    SpecError
        If no problem file may state it, such as a deadline that cannot be met; lists every issue.
    OSError
        If the file cannot be written.
    """
    check_problem("write_problem", problem)
    checked_path(path)
    document = problem.to_document()
    compile_spec(document)
    write_whole(path, document_text(document, path))


def document_text(document: Mapping[str, Any], path: StrPath) -> str:
    """Format a document as JSON if the name of the file ends in .json, else as YAML."""
    return to_json(document) if Path(checked_path(path)).suffix.lower() == ".json" else to_yaml(document)


def to_json(document: Mapping[str, Any]) -> str:
    """Format a document as JSON."""
    lines = []
    for key, value in document.items():
        if key in _LINED and isinstance(value, Mapping) and value:
            entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{entries}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def to_yaml(document: Mapping[str, Any], schema: str | None = None, *, ascii_only: bool = False) -> str:
    """Format a document as YAML; `schema` is the path of the JSON Schema for editors.

    With `ascii_only`, other characters are escaped, for streams that cannot encode them.
    """
    write = _Writer(ascii_only)
    parts = [] if schema is None else [MODELINE.format(schema=schema)]
    for key, value in document.items():
        if key in _LINED and isinstance(value, Mapping) and value:
            entries = (write.pair(name, entry, "  ") for name, entry in value.items())
            parts.append(f"{key}:\n" + "".join(f"  {entry}\n" for entry in entries))
        elif key == "links" and isinstance(value, Mapping) and value:
            parts.append("links:\n" + "".join(write.link(*entry) for entry in value.items()))
        else:
            parts.append(f"{write.pair(key, value)}\n")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Formats parts of YAML."""

    ascii_only: bool

    def link(self, key: str, value: Any) -> str:
        """An entry of the section `links`, with one override per line."""
        if key == "overrides" and value:
            return "  overrides:\n" + "".join(f"    - {self.flow(link)}\n" for link in value)
        return f"  {key}: {self.flow(value)}\n"

    def pair(self, key: Any, value: Any, indent: str = "") -> str:
        """A key and its value; long keys are marked with "?", because parsers limit the search for the colon."""
        text = self.scalar(str(key))
        return f"? {text}\n{indent}: {self.flow(value)}" if len(text) > 1000 else f"{text}: {self.flow(value)}"

    def flow(self, value: Any) -> str:
        """A value on one line."""
        if isinstance(value, Mapping):
            return f"{{{', '.join(self.pair(key, inner) for key, inner in value.items())}}}"
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self.flow, value))}]"
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        if isinstance(value, float) and not math.isfinite(value):
            return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
        return self.scalar(value) if isinstance(value, str) else str(value)

    def scalar(self, text: str) -> str:
        """A text, without quotes if every version of YAML reads it as text."""
        writable = not self.ascii_only or text.isascii()
        if writable and _PLAIN.fullmatch(text) and text.casefold() not in _WORDS:
            return text
        return '"' + "".join(c if self._bare(c) else _escape(c) for c in text) + '"'

    def _bare(self, character: str) -> bool:
        """Whether a character needs no escape between quotes."""
        return character.isprintable() and character not in '"\\' and (character.isascii() or not self.ascii_only)


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
