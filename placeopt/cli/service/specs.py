"""Read problems of clients: within the limits, and without opening the files that a spec may name elsewhere.

Some specs of 100 kB take minutes to compile: many overrides of links, or large groups of separate tasks. So a spec that
is not small is compiled in a process that can be killed.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections import Counter
from math import comb, prod

from placeopt.cli.service.limits import Limits
from placeopt.errors import Issue, SpecError
from placeopt.io.compiler import Compilation, begin_compilation
from placeopt.io.document import Document, parse_document
from placeopt.io.spec import DeviceSpec, pool_names
from placeopt.io.syntax import DEEPEST, is_deeper
from placeopt.model.problem import Problem
from placeopt.model.units import size_text
from placeopt.orchestration.forking import Forked

SMALL = 20_000
"""Bytes of a spec without aliases that is compiled at once, in this process: 300 tasks, and at worst some seconds."""

COMPILING = 10.0
"""Seconds in which another spec must be compiled."""

LARGEST = 2**27
"""Bytes of a compiled problem; most take a tenth of the memory of their solver."""


def compiled(body: bytes, limits: Limits) -> Problem:
    """Return the problem of `read_problem`, compiled within limits of time and memory unless the spec is small."""
    if sys.platform == "win32" or (len(body) <= SMALL and b"&" not in body):
        return read_problem(body, limits)
    process = Forked(_answer)
    timer = threading.Timer(COMPILING, process.kill)
    timer.start()
    try:
        with process.stdin as commands, process.stdout as answers:
            commands.write(pickle.dumps((body, limits)))
            commands.close()
            answer = pickle.load(answers)
    except (OSError, EOFError, pickle.UnpicklingError):
        text = f"the spec takes more than {COMPILING:g} s or too much memory to compile; expected a simpler one"
        raise SpecError([Issue(text)]) from None
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    if isinstance(answer, Exception):
        raise answer
    problem: Problem = answer
    return problem


def _answer() -> None:
    """Compile the spec that this process gets on stdin."""
    import resource

    try:
        with os.fdopen(os.dup(0), "rb") as commands:
            body, limits = pickle.load(commands)
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))
        answer = pickle.dumps(read_problem(body, limits))
        if len(answer) > LARGEST:
            text = f"the compiled problem takes {size_text(len(answer))}; expected at most {size_text(LARGEST)}"
            raise SpecError([Issue(text)])
    except Exception as error:  # noqa: BLE001 - the service answers with it
        answer = pickle.dumps(error)
    with os.fdopen(os.dup(1), "wb") as answers:
        answers.write(answer)
    os._exit(0)


def read_problem(body: bytes, limits: Limits) -> Problem:
    """Compile a spec, in JSON if it begins like a JSON object, else in YAML. It may name no files.

    Raises a SpecError if it is not valid, exceeds the limits or names a file; the issues state its lines.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise SpecError([Issue("the spec is not UTF-8 text", line=line)]) from None
    try:
        document = parse_document(text)
        if is_deeper(document.data, DEEPEST):  # in JSON, unlike in YAML; processes could not exchange it
            raise SpecError([Issue(f"the spec is nested too deeply, more than {DEEPEST} levels")])
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
    more = _teams(compilation, limits.devices)
    if devices + more > limits.devices:
        teams = f" and up to {more:,} teams and modes" if more else ""
        text = f"{devices:,} devices{teams}; this service takes at most {limits.devices:,}"
        issues.append(document.issue(text, ("devices",)))
    if issues:
        raise SpecError(issues)


def _teams(compilation: Compilation, most: int) -> int:
    """How many devices the teams and modes of tasks make at most, each kind once; the count ends above `most`.

    Modes with their own outputs are one kind only if all modes of their tasks have the same outputs.
    """
    spec, members = compilation.spec, Counter[str]()
    for name, device in spec.devices.items():
        for known in {name, device.type or name, *_names(name, device)}:
            members[known] += (device.count or 1) if known in (name, device.type) else 1
    every = sum(device.count or 1 for device in spec.devices.values())
    found: dict[tuple[object, ...], tuple[tuple[str, int], ...]] = {}
    for task in compilation.tasks.values():
        outputs = tuple(mode.output for mode in task.modes.values())
        outputs = (task.output, *outputs) if any(output is not None for output in outputs) else ()
        for label, mode in task.modes.items():
            team = tuple(sorted((mode.team or {}).items()))
            found[label, team, mode.output, outputs] = team
    total = 0
    for team in found.values():
        total += prod(comb(members[name], count) for name, count in team) if team else every
        if total > most:
            break
    return total


def _names(name: str, device: DeviceSpec) -> list[str]:
    return pool_names(name, device.count) if device.count is not None else [name]
