"""Generate the reference of the problem file from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

TITLES = {
    "AddressesSpec": "addresses",
    "BestKnown": "best_known",
    "CurrentSpec": "current",
    "DeviceSpec": "a device",
    "DueSpec": "due date of a task",
    "EfficiencySpec": "efficiency of a device",
    "GraphSpec": "graph",
    "LinkOverride": "an override of links",
    "LinkSpec": "a link",
    "LinksSpec": "links",
    "LimitsSpec": "limits of metrics",
    "MemorySpec": "memory of a task",
    "MigrationSpec": "migration of a task",
    "ModeSpec": "mode of a task",
    "PipelineSpec": "pipeline",
    "PoolSpec": "memory that devices share",
    "RegionSpec": "reserved bytes of a device",
    "SharedLinkSpec": "a shared link",
    "StageSpec": "pipeline of a device",
    "TaskSpec": "a task",
    "TierSpec": "memory tier of a device",
    "ViewSpec": "view of an output",
    "WindowSpec": "time in which a device is unavailable",
    "UnitsSpec": "units",
}
"""Titles of the sections, one for each definition of the schema."""


def schema_page(schema: dict[str, Any]) -> str:
    """The page: one table of keys for the document and for each of its parts, in order of first reference."""
    parts = [
        "# Every key of a problem file\n\n"
        "This page lists every key of a problem file. It is generated from the "
        "[JSON Schema](../problems/placeopt.schema.json), which `placeopt schema` prints and editors use. "
        "[The problem file](../docs/spec.md) explains how the parts work together. Any other key is an error, except "
        "top-level keys that start with `x-`, which are ignored.\n\n"
        f"## the document\n\n{section(schema)}"
    ]
    seen: list[str] = []
    waiting = list(names(schema["properties"]))
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen.append(name)
            definition = schema["$defs"][name]
            parts.append(f"## {TITLES[name]}\n\n{section(definition)}")
            waiting += names(definition.get("properties", {}))
    return "\n\n".join(parts) + "\n"


def section(definition: dict[str, Any]) -> str:
    """Description and keys of a part."""
    required = definition.get("required", [])
    lines = [definition.get("description", ""), "", "| key | value | default | meaning |", "|---|---|---|---|"]
    for key, schema in definition["properties"].items():
        default = "required" if key in required else shown(schema.get("default"))
        meaning = " ".join(schema.get("description", "").split())
        lines.append(f"| `{key}` | {kind(schema)} | {default} | {meaning} |".replace("  ", " "))
    return "\n".join(lines).strip()


def kind(schema: dict[str, Any]) -> str:
    """The valid values of a schema, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{TITLES[name]}](#{TITLES[name].replace(' ', '-')})"
    if "examples" in schema:
        return f"a quantity, such as {' or '.join(f'`{example}`' for example in schema['examples'])}"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("enum", [])[:1] == ["makespan"]:
        return "[a metric](../docs/spec.md#objective)"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(kind(each) for each in schema[several] if each.get("type") != "null"))
    if schema.get("type") == "array":
        return f"a list of: {kind(schema['items'])}"
    if schema.get("type") == "object":
        keys, values = schema.get("propertyNames", {}), schema.get("additionalProperties")
        named = kind(keys) if "enum" in keys else "names"
        return f"a mapping of {named} to: {kind(values)}" if isinstance(values, dict) else "a mapping"
    limits = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    words = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}
    return " ".join([words.get(str(schema.get("type")), "anything"), *limits])


def shown(default: Any) -> str:
    """The default value, empty if it is trivial."""
    return "" if default in (None, "", [], {}) or isinstance(default, dict) else f"`{json.dumps(default)}`"


def names(schema: Any) -> Iterator[str]:
    """The definitions that a schema refers to, in order of appearance."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value.rpartition("/")[2]
            else:
                yield from names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from names(value)
