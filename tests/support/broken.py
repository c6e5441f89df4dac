"""Broken files for tests of importers: mutations of a valid file by fixed seeds, and what an import may do with them.

for name, content in broken_files(VALID, 50):
    check_import(tmp_path / f"{name}.json", content, "wfformat")
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from placeopt.bridges.importers.imported import ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError, SpecError, UsageError
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import Problem

SEED = 2026
ODD = (
    None, True, -1, 0, 10**30, -(10**30), 1.5, 1e308, float("nan"), float("inf"), "", "text", "1e999 s", "\0",
    "é\u2028", [], {}, [[[]]], {"a": {"b": 1}}, "x" * 10_000,
)  # fmt: skip
"""Values of a wrong type or out of range."""
WORDS = (
    b"-1",
    b"NaN",
    b"1e999",
    b"99999999999999999999",
    b"0x1",
    b"",
    b"\x00",
    b"\xff\xfe",
    b"{",
    b"]",
    b'"',
    b"<",
    b"&amp;",
)


def broken_files(valid: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """`count` mutations of a valid file, each with a name that states how it was made; always the same ones.

    JSON files are mutated as data, too: values of wrong types, missing and duplicate entries.
    """
    try:
        data = json.loads(valid)
    except ValueError:
        data = None
    kinds: list[Callable[[random.Random, bytes], bytes]] = [truncated, flipped, without_a_line, with_a_line_twice]
    kinds.append(with_a_word_replaced)
    if isinstance(data, dict):
        kinds += [with_an_odd_value, without_an_entry, with_an_entry_twice]
    for k in range(count):
        kind = kinds[k % len(kinds)]
        yield f"{k}-{kind.__name__}", kind(random.Random(SEED + k), valid)


def truncated(draw: random.Random, valid: bytes) -> bytes:
    """Without its end."""
    return valid[: draw.randrange(len(valid))]


def flipped(draw: random.Random, valid: bytes) -> bytes:
    """With one to four other bytes."""
    found = bytearray(valid)
    for _ in range(draw.randint(1, 4)):
        found[draw.randrange(len(found))] = draw.randrange(256)
    return bytes(found)


def without_a_line(draw: random.Random, valid: bytes) -> bytes:
    """Without one of its lines."""
    lines = valid.splitlines(keepends=True)
    del lines[draw.randrange(len(lines))]
    return b"".join(lines)


def with_a_line_twice(draw: random.Random, valid: bytes) -> bytes:
    """With a copy of a line somewhere else."""
    lines = valid.splitlines(keepends=True)
    lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
    return b"".join(lines)


def with_a_word_replaced(draw: random.Random, valid: bytes) -> bytes:
    """With an odd word instead of one between spaces."""
    words = valid.split(b" ")
    words[draw.randrange(len(words))] = draw.choice(WORDS)
    return b" ".join(words)


def with_an_odd_value(draw: random.Random, valid: bytes) -> bytes:
    """With a value of a wrong type, or out of range."""
    data = json.loads(valid)
    holder, key = draw.choice(list(_places(data)))
    holder[key] = draw.choice(ODD)
    return json.dumps(data, indent=1).encode()


def without_an_entry(draw: random.Random, valid: bytes) -> bytes:
    """Without an entry of a mapping or a list."""
    data = json.loads(valid)
    holder, key = draw.choice(list(_places(data)))
    del holder[key]
    return json.dumps(data, indent=1).encode()


def with_an_entry_twice(draw: random.Random, valid: bytes) -> bytes:
    """With an entry of a list twice; a file without lists is unchanged."""
    data = json.loads(valid)
    lists = [(holder, key) for holder, key in _places(data) if isinstance(holder, list)]
    if lists:
        holder, key = draw.choice(lists)
        holder.append(holder[key])
    return json.dumps(data, indent=1).encode()


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of nested data: its container and its key or index."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from _places(data[key])


def check_import(
    path: Path, content: bytes, format: str | None = None, options: ImportOptions | None = None
) -> Problem | DocumentError | UsageError:
    """Import a file: the problem if that succeeds, else the error, which names the file.

    Any other exception, and a document that does not compile, fails the test.
    """
    path.write_bytes(content)
    failed: DocumentError | UsageError | None = None
    try:
        imported = import_file(path, format, options)
    except (DocumentError, UsageError) as error:
        failed = error
    if isinstance(failed, DocumentError):
        assert failed.issues
        for issue in failed.issues:
            assert issue.file == str(path), issue
            assert issue.message
    if failed is not None:
        assert str(path) in str(failed), failed
        return failed
    assert all(isinstance(note, str) and note for note in imported.notes)
    try:
        return compile_spec(imported.document)
    except SpecError as error:
        raise AssertionError(f"{path.name}: the document of a successful import does not compile:\n{error}") from error
