"""Read problems of clients: within the limits, and without opening the files that a spec may name elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from math import comb, prod

from placeopt.cli.service.limits import Limits
from placeopt.errors import Issue, SpecError
from placeopt.io.compiler import Compilation, begin_compilation
from placeopt.io.document import Document, parse_document
from placeopt.io.spec import DeviceSpec, Spec, pool_names
from placeopt.model.problem import Problem

_JSON = re.compile(r"\ufeff?\s*\{\s*[\"}]")


def read_problem(body: bytes, limits: Limits) -> Problem:
    """Compile a spec, in JSON if it begins like a JSON object, else in YAML. It may name no files.

    Raises
    ------
    SpecError
        If it is not valid, exceeds the limits or names a file; the issues state its lines.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise SpecError([Issue("the spec is not UTF-8 text", line=line)]) from None
    try:
        document = parse_document(text, json_format=_JSON.match(text) is not None)
        compilation = begin_compilation(document, files="none")
        _check_size(document, compilation, limits)
        return compilation.problem()
    except MemoryError:
        raise SpecError([Issue("the spec needs more memory than the service has; expected a smaller one")]) from None


def _check_size(document: Document, compilation: Compilation, limits: Limits) -> None:
    issues = []
    tasks = len(compilation.tasks)
    if tasks > limits.tasks:
        issues.append(document.issue(f"{tasks:,} tasks; this service takes at most {limits.tasks:,}", ("tasks",)))
    devices = sum(device.count or 1 for device in compilation.spec.devices.values())
    more = _teams(compilation.spec, limits.devices)
    if devices + more > limits.devices:
        teams = f" and up to {more:,} teams and modes" if more else ""
        text = f"{devices:,} devices{teams}; this service takes at most {limits.devices:,}"
        issues.append(document.issue(text, ("devices",)))
    if issues:
        raise SpecError(issues)


def _teams(spec: Spec, most: int) -> int:
    """How many devices the teams and modes of tasks make at most, each kind once; the count ends above `most`."""
    members: Counter[str] = Counter()
    for name, device in spec.devices.items():
        for known in {name, device.type or name, *_names(name, device)}:
            members[known] += (device.count or 1) if known in (name, device.type) else 1
    every = sum(device.count or 1 for device in spec.devices.values())
    found = {
        (label, tuple(sorted((mode.team or {}).items())))
        for task in spec.tasks.values()
        for label, mode in task.modes.items()
    }
    total = 0
    for _, team in sorted(found):
        total += prod(comb(members[name], count) for name, count in team) if team else every
        if total > most:
            break
    return total


def _names(name: str, device: DeviceSpec) -> list[str]:
    return pool_names(name, device.count) if device.count is not None else [name]
