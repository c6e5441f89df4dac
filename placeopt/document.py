"""YAML and JSON files as plain data that still knows where everything stands.

Positions cost nothing until somebody asks for one: only then is the text read a second time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placeopt import syntax
from placeopt.errors import DocumentError, Issue
from placeopt.files import check_input


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector: it would walk a growing heap of plain data again and again in vain.

    Reading 36,000 tasks takes a third of the time without it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(slots=True)
class Document:
    """Plain data (dicts, lists, str, int, float, bool, None) and where it came from.

    `file` is None for data made in code, which has no positions.
    """

    data: Any
    file: str | None = None
    faults: tuple[Issue, ...] = ()
    """What was wrong already while it was read: keys given twice, unknown tags."""
    text: str | None = field(default=None, repr=False)
    json_format: bool = False
    _root: syntax.Spot | None = field(default=None, repr=False)

    def issue(self, message: str, path: Sequence[str | int], *, at_key: bool = False) -> Issue:
        """An issue at the place that `path` leads to, or as far along it as the document goes.

        `at_key` points at the key itself (an unknown one, say) instead of its value.
        """
        known = self.existing(path)
        line, column = self._place(known, at_key and known[-1:] == tuple(path[-1:]))
        return Issue(message, known, self.file, line, column)

    def existing(self, path: Sequence[str | int]) -> syntax.Path:
        """The path as far as the document has it.

        Short forms count as what they stand for: one thing for a list of one, a name in a list for its place there.
        """
        value: Any = self.data
        known: list[str | int] = []
        for part in path:
            if isinstance(value, list):
                place = part
                if isinstance(place, str):
                    place = next((k for k, item in enumerate(value) if _is_called(item, place)), -1)
                if not 0 <= place < len(value):
                    break
                value = value[place]
                known.append(place)
            elif isinstance(value, dict) and part in value:
                value = value[part]
                known.append(part)
            elif not isinstance(value, dict) or not isinstance(part, int):
                break
        return tuple(known)

    def _place(self, path: syntax.Path, at_key: bool) -> syntax.Place | tuple[None, None]:
        if self._root is None and self.text is not None:
            self._root = syntax.map_places(self.text, json_format=self.json_format)
        if self._root is None:
            return None, None
        spot = self._root
        for part in path:
            assert spot.inside is not None
            spot = spot.inside[part]  # type: ignore[index]
        return spot.key if at_key else spot.value


def _is_called(item: object, name: str) -> bool:
    return isinstance(item, str | int | float) and str(item) == name


def read_document(path: str | Path) -> Document:
    """The document in a file: JSON if its name ends in .json, else YAML.

    Raises
    ------
    DocumentError
        If the file cannot be read, is no UTF-8 text, has a syntax error, or holds more than one document.
    UsageError
        If the command that reads it would overwrite it (`placeopt.files.keep_apart`).
    """
    file = str(path)
    check_input(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _failure(file, f"is no UTF-8 text (byte {error.start} is {error.object[error.start]:#04x})") from None
    except OSError as error:
        reason = {FileNotFoundError: "no such file", IsADirectoryError: "is a folder, expected a file"}.get(
            type(error), f"cannot be read: {error.strerror or error}"
        )
        raise _failure(file, reason) from None
    except ValueError as error:  # a NUL in the name
        raise _failure(file.replace("\0", "\\0"), f"is no file name: {error}") from None
    return parse_document(text, file=file, json_format=Path(path).suffix.lower() == ".json")


def parse_document(text: str, *, file: str | None = None, json_format: bool = False) -> Document:
    """The document in a text; see `read_document` for the errors."""
    text = text.removeprefix("\ufeff")
    try:
        with collection_paused():
            data, faults = syntax.read_json(text) if json_format else syntax.read_yaml(text)
    except syntax.TextError as error:
        raise _failure(file, error.message, *(error.place or (None, None))) from None
    issues = [Issue(fault.message, fault.path, file, *fault.place) for fault in faults]
    return Document(data, file, tuple(issues), text, json_format)


def _failure(file: str | None, message: str, line: int | None = None, column: int | None = None) -> DocumentError:
    return DocumentError([Issue(message, (), file, line, column)])
