"""Checked access to the values of a JSON file, and its issues with their positions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from placeopt.bridges.importers.task_graph import Place
from placeopt.errors import DocumentError, Issue, in_file_order
from placeopt.io.document import parse_document, reading
from placeopt.io.files import StrPath, read_text
from placeopt.model.units import exact, excerpt, is_number, shown


class JsonFile:
    """The data of a JSON file, and the issues found in it.

    Raises
    ------
    DocumentError
        If the file cannot be read, is not JSON, or does not contain an object.
    """

    def __init__(self, path: StrPath, expected: str) -> None:
        self.name = str(path)
        with reading(path):
            text = read_text(path)
        self._document = parse_document(text, file=self.name, json_format=True)
        self.issues: list[Issue] = list(self._document.faults)
        self.data: dict[str, Any] = self._document.data
        if not isinstance(self.data, dict):
            self.add(f"holds {excerpt(self.data)}; expected {expected}")
            self.fail()

    def issue(self, message: str, place: Place) -> Issue:
        """An issue at a path of the file."""
        return self._document.issue(message, place if isinstance(place, tuple) else ())

    def add(self, message: str, *path: str | int) -> None:
        """Add an issue at a path."""
        self.issues.append(self.issue(message, path))

    def fail(self) -> NoReturn:
        """Raise a DocumentError with all issues."""
        raise DocumentError(in_file_order(self.issues))

    def check(self) -> None:
        """Raise a DocumentError with all issues if there are any."""
        if self.issues:
            self.fail()

    def mapping(self, value: Any, *path: str | int) -> dict[str, Any]:
        """The value at a path if it is an object; else an empty one, with an issue unless it is null."""
        return self._of_kind(value, dict, {}, "an object", path)  # type: ignore[no-any-return]

    def list(self, value: Any, *path: str | int) -> list[Any]:
        """The value at a path if it is a list; else an empty one, with an issue unless it is null."""
        return self._of_kind(value, list, [], "a list", path)  # type: ignore[no-any-return]

    def texts(self, value: Any, *path: str | int) -> dict[str, int]:
        """The index of each text in the list at a path; other items have an issue, and repeated ones count once."""
        found: dict[str, int] = {}
        for k, item in enumerate(self.list(value, *path)):
            if isinstance(item, str) and item:
                found.setdefault(item, k)
            else:
                self.add(f"expected a name, got {shown(item)}", *path, k)
        return found

    def text(self, value: Any, *path: str | int) -> str | None:
        """The value at a path if it is a text that is not empty; else None, with an issue."""
        if isinstance(value, str) and value:
            return value
        if value is None and path:
            self.add(f"{path[-1]} is missing; expected a name", *path[:-1])
        else:
            self.add(f"expected a name, got {shown(value)}", *path)
        return None

    def number(self, value: Any, what: str, *path: str | int) -> Fraction | None:
        """The value at a path if it is a number that is not negative; else None, with an issue unless it is null."""
        if is_number(value) and value >= 0:
            return exact(value)
        if value is not None:
            self.add(f"{shown(value)} is not {what}; expected a number that is not negative", *path)
        return None

    def _of_kind(self, value: Any, kind: type, empty: Any, what: str, path: Sequence[str | int]) -> Any:
        if isinstance(value, kind):
            return value
        if value is not None:
            self.add(f"expected {what}, got {shown(value)}", *path)
        return empty
