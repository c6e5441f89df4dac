"""YAML and JSON files as plain data with positions for messages.

Positions are computed on first use, by reading the text a second time.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from placeopt.errors import DocumentError, Issue, UsageError, visible
from placeopt.io import syntax
from placeopt.io.files import LARGEST, StrPath, UnreadableError, checked_path, descriptor, read_text

LARGEST_YAML = 2**25
"""Default size limit of YAML files in bytes: 300,000 tasks, 1.3 GB of memory."""

Files = Literal["any", "beside", "none"]
"""Which files a spec may name: any, only those in its own folder, or none."""

_START = 1000
"""Characters of a pipe that decide its format."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector: reading 36,000 tasks then takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(slots=True)
class Document:
    """Plain data (dicts, lists, str, int, float, bool, None) and its origin.

    `file` is None for data made in code, which has no positions.
    """

    data: Any
    file: str | None = None
    faults: tuple[Issue, ...] = ()
    """Issues found while the text was read: duplicate keys, unknown tags."""
    text: str | None = field(default=None, repr=False)
    json_format: bool = False
    _root: syntax.Spot | None = field(default=None, repr=False)
    _named: dict[int, dict[str, int]] = field(default_factory=dict, repr=False)
    """For lists of names, by their identity: the first index of each name."""

    def issue(self, message: str, path: Sequence[str | int], *, at_key: bool = False) -> Issue:
        """An issue at `path`, or at the longest part of it that exists.

        `at_key` points at the key (for example an unknown one) instead of its value.
        """
        known = self.existing(path)
        line, column = self._place(known, at_key and known[-1:] == tuple(path[-1:]))
        return Issue(message, known, self.file, line, column)

    def existing(self, path: Sequence[str | int]) -> syntax.Path:
        """The longest part of the path that exists in the document.

        Short forms are resolved: a single item counts as a list of one, a name in a list as its index.
        """
        value: Any = self.data
        known: list[str | int] = []
        for part in path:
            if isinstance(value, list):
                place = part
                if isinstance(place, str):
                    place = self._indices(value).get(place, -1)
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

    def _indices(self, names: list[Any]) -> dict[str, int]:
        if id(names) not in self._named:
            named = [(str(item), k) for k, item in enumerate(names) if isinstance(item, str | int | float)]
            self._named[id(names)] = dict(reversed(named))
        return self._named[id(names)]

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


def is_serving(document: Document) -> bool:
    """Whether a document states a serving problem, which `placeopt.serving` reads."""
    return isinstance(document.data, dict) and "serving" in document.data


@contextmanager
def reading(path: StrPath) -> Iterator[None]:
    """Raise an UnreadableError of the `with` block as a DocumentError of this file."""
    try:
        yield
    except UnreadableError as error:
        raise _failure(_visible(checked_path(path)), str(error)) from None


def read_document(path: StrPath) -> Document:
    """Read a document: JSON if the file name ends in .json, else YAML.

    Standard input and pipes are read as JSON if they begin like a JSON object.

    Raises a DocumentError if the file cannot be read, is too large, is not UTF-8 text, has a syntax error, or holds
    several documents.
    """
    path = checked_path(path)
    with reading(path):
        text = read_text(path, lambda start: LARGEST if _is_json(path, start) else LARGEST_YAML)
    return parse_document(text, file=path, json_format=_is_json(path, text[:_START].encode()))


def _is_json(path: str, start: bytes) -> bool:
    return _begins_like_json(start) if descriptor(path) is not None else Path(path).suffix.lower() == ".json"


def _begins_like_json(start: bytes) -> bool:
    return re.match(rb"(?:\xef\xbb\xbf)?\s*\{\s*[\"}]", start) is not None


def parse_document(text: str, *, file: str | None = None, json_format: bool | None = None) -> Document:
    """Parse a document, as JSON by default if it begins like a JSON object; see `read_document` for the errors."""
    if json_format is None:
        json_format = _begins_like_json(text[:_START].encode(errors="replace"))
    text = text.removeprefix("\ufeff")
    try:
        with collection_paused():
            data, faults = syntax.read_json(text) if json_format else syntax.read_yaml(text)
    except syntax.TextError as error:
        raise _failure(file, error.message, *(error.place or (None, None))) from None
    issues = [Issue(fault.message, fault.path, file, *fault.place) for fault in faults]
    return Document(data, file, tuple(issues), text, json_format)


def _visible(name: str | Path) -> str:
    """A file name for a message; it may contain any characters."""
    return visible(str(name).replace("\0", "\\0"), 1000)


def _failure(file: str | None, message: str, line: int | None = None, column: int | None = None) -> DocumentError:
    return DocumentError([Issue(message, (), file, line, column)])


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Opens the files that a spec names and the caller allows; names are relative to `folder`."""

    folder: Path
    allowed: Files

    def __post_init__(self) -> None:
        if self.allowed not in get_args(Files):
            raise UsageError(f"files is {self.allowed!r}; expected one of {', '.join(get_args(Files))}")

    @classmethod
    def of(cls, document: Document, folder: StrPath | None = None, allowed: Files | None = None) -> NamedFiles:
        """The files that a document may name: by default any file if it is a file, none if it was made in code.

        A document made in code with a `folder` may by default name the files in that folder.
        """
        made_in_code = document.file is None
        if allowed is None:
            allowed = "any" if not made_in_code else "none" if folder is None else "beside"
        if folder is None:
            piped = document.file is None or descriptor(document.file) is not None
            folder = Path() if piped else Path(document.file or "").parent
        return cls(Path(folder), allowed)

    def read(self, name: str) -> Document:
        """Read the document in a file that a spec names.

        Raises a DocumentError if the caller does not allow the file, or it is not valid (see `read_document`).
        """
        return read_document(self.path(name))

    def path(self, name: str) -> Path:
        """The path of a file that a spec names; raises a DocumentError if the caller does not allow it."""
        if self.allowed == "none":
            raise _failure(
                _visible(name),
                'is not opened: the caller allows no files; state the content here, or allow files by files="any"',
            )
        if self.allowed == "beside" and not self._is_beside(name):
            raise _failure(
                _visible(name), 'is not opened: it is not in the folder of the problem; files="any" allows it'
            )
        return self.folder / name

    def _is_beside(self, name: str) -> bool:
        """Whether a name leads into the folder: not absolute, without "..", and not through a link out of it."""
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            return False
        return Path(os.path.realpath(self.folder / name)).is_relative_to(os.path.realpath(self.folder))
