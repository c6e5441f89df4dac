"""Problem documents as text: YAML and JSON with one task, device or link a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

MODELINE = "# yaml-language-server: $schema={schema}\n"
"""First line of a problem file, by which editors find the schema."""

_LINED = ("operations", "devices", "tasks")
"""Sections whose entries stand on a line each."""


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
            parts.append(f"{_flow(key)}:\n" + "".join(f"  {_flow(n)}: {_flow(entry)}\n" for n, entry in value.items()))
        elif key == "links" and isinstance(value, Mapping):
            parts.append("links:\n" + "".join(_links(value)))
        else:
            parts.append(f"{_flow(key)}: {_flow(value)}\n")
    return "".join(parts)


def _links(links: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in links.items():
        if key == "overrides":
            lines.append("  overrides:\n" + "".join(f"    - {_flow(link)}\n" for link in value))
        else:
            lines.append(f"  {key}: {_flow(value)}\n")
    return lines


def _flow(value: Any) -> str:
    """A value on one line."""
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(value, Dumper=dumper, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return str(text).removesuffix("\n").removesuffix("\n...")
