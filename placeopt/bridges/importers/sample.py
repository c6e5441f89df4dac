"""A file of unknown format, as far as its format must be recognised."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_file, read_start

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
        with reading(self.path):
            return read_start(self.path, _START)

    @cached_property
    def json(self) -> bytes:
        """The whole file if it begins like a JSON object, else nothing: JSON objects state their keys in any order."""
        begins = self.start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
        with reading(self.path):
            return read_file(self.path) if begins else b""
