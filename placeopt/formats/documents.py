"""Problem documents as text: YAML and JSON with one task, device or link a line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

MODELINE = "# yaml-language-server: $schema={schema}\n"
"""First line of a problem file, by which editors find the schema."""

_LINED = ("operations", "devices", "tasks", "placement")
"""Sections whose entries stand on a line each."""

_PLAIN = re.compile(r"(?:[^\W\d][\w./+-]*|\d+(?:\.\d+)?(?= ))(?: [^\W\d][\w./+-]*)*")
_WORDS = {"y", "yes", "n", "no", "on", "off", "true", "false", "null"}
"""Words that some version of YAML takes for something else than text."""


def to_json(document: Mapping[str, Any]) -> str:
    """A document as JSON."""
    lines = []
    for key, value in document.items():
        if key in _LINED and isinstance(value, Mapping) and value:
            entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{entries}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def to_yaml(document: Mapping[str, Any], schema: str | None = None) -> str:
    """A document as YAML; `schema` is the path of the JSON Schema for editors."""
    parts = [] if schema is None else [MODELINE.format(schema=schema)]
    for key, value in document.items():
        if key in _LINED and isinstance(value, Mapping) and value:
            entries = (_pair(_key(name), _flow(entry), "  ") for name, entry in value.items())
            parts.append(f"{key}:\n" + "".join(f"  {entry}\n" for entry in entries))
        elif key == "links" and isinstance(value, Mapping) and value:
            parts.append("links:\n" + "".join(_links(value)))
        else:
            parts.append(f"{_pair(_key(key), _flow(value))}\n")
    return "".join(parts)


def _links(links: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in links.items():
        if key == "overrides" and value:
            lines.append("  overrides:\n" + "".join(f"    - {_flow(link)}\n" for link in value))
        else:
            lines.append(f"  {key}: {_flow(value)}\n")
    return lines


def _flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pair(_key(key), _flow(inner)) for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    return _scalar(value) if isinstance(value, str) else str(value)


def _key(key: Any) -> str:
    """A key; one so long that a parser would give up looking for its colon gets a mark."""
    text = _scalar(str(key))
    return f"? {text}" if len(text) > 1000 else text


def _pair(key: str, value: str, indent: str = "") -> str:
    return f"{key}\n{indent}: {value}" if key.startswith("? ") else f"{key}: {value}"


def _scalar(text: str) -> str:
    """A text without quotes where every reader takes it for a text, else in double quotes."""
    if _PLAIN.fullmatch(text) and text.casefold() not in _WORDS:
        return text
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escape(c) for c in text) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
