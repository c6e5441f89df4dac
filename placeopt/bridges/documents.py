"""Problem documents of imported models and graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def problem_document(
    tasks: Mapping[str, Mapping[str, Any]],
    network: Mapping[str, Any],
    *,
    name: str,
    source: str,
    description: str = "",
    resolution: str | None = None,
    memory_model: str | None = None,
    pipeline: Mapping[str, Any] | None = None,
    consolidate: str | None = None,
) -> dict[str, Any]:
    """Return the document of a problem on a network, a mapping with `devices` and perhaps `links`.

    With the rules of a `pipeline`, the objective is `period`.
    """
    stated = {"description": description, "source": source, "resolution": resolution, "consolidate": consolidate}
    document: dict[str, Any] = {"placeopt": 1, "name": name}
    document |= {key: text for key, text in stated.items() if text}
    document |= network
    if memory_model is not None:
        document["memory_model"] = memory_model
    if pipeline is not None:
        document |= {"objective": "period", "pipeline": dict(pipeline)}
    document["tasks"] = dict(tasks)
    return document


def pipeline_rules(*, training: bool = False) -> dict[str, Any]:
    """Return the section `pipeline` of an imported model: contiguous stages, as runtimes execute them."""
    return {"stages": "contiguous", "in_flight": "1f1b" if training else "inference"}


def after_entry(producers: Mapping[str, int | None]) -> list[str] | dict[str, int | None]:
    """Return the key `after` of a task for its producers with their payloads in bytes; None for all of their output."""
    plain = all(payload is None for payload in producers.values())
    return list(producers) if plain else dict(producers)
