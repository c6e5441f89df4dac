"""A file of unknown format, as far as its format must be recognised."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from placeopt.errors import DocumentError, Issue
from placeopt.io.files import StrPath, UnreadableError, read_file, read_start

_START = 2**16


class Sample:
    """A file whose format is recognised; reading it raises a DocumentError if it cannot be read."""

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)

    @property
    def suffix(self) -> str:
        """The ending of the name, in lower case: `.json`."""
        return self.path.suffix.lower()

    @cached_property
    def start(self) -> bytes:
        """The first 64 KiB."""
        return self._read(lambda: read_start(self.path, _START))

    @cached_property
    def json(self) -> bytes:
        """The whole file if it begins like a JSON object, else nothing: JSON objects state their keys in any order."""
        begins = self.start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
        return self._read(lambda: read_file(self.path)) if begins else b""

    def _read(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except UnreadableError as error:
            raise DocumentError([Issue(str(error), (), str(self.path))]) from None
