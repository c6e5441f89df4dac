"""Files that consist of numbers between spaces: their lines, and their issues with positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from placeopt.bridges.importers.task_graph import Place
from placeopt.errors import DocumentError, Issue, in_file_order, visible
from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_text

Word = tuple[str, int]
"""A word of a line, and its column."""

_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_LONGEST = 30
"""Maximum number of characters of a number."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file: its number, its text, and its words."""

    number: int
    text: str
    words: list[Word]


def lines_of(path: StrPath, comment: str | None = None) -> list[Line]:
    """Return the lines of a file that have words, without comments from `comment` to the end of a line."""
    with reading(path):
        text = read_text(path)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        kept = line.partition(comment)[0] if comment else line
        words = [(match[0], match.start() + 1) for match in re.finditer(r"\S+", kept)]
        if words:
            found.append(Line(number, kept, words))
    return found


def leading_numbers(start: bytes, count: int) -> list[list[int]] | None:
    """Return the first `count` lines with words of the start of a file if they consist of whole numbers."""
    rows: list[list[int]] = []
    for line in start.splitlines():
        words = line.split()
        if not all(word.isdigit() and len(word) <= _LONGEST for word in words):
            return None
        rows += [[int(word) for word in words]] if words else []
        if len(rows) == count:
            return rows
    return None


class NumberReader:
    """Reads the numbers of a file, and collects its issues."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.issues: list[Issue] = []

    def whole(self, word: Word, line: int) -> int | None:
        """The whole number of a word; None, with an issue, if it is not one."""
        text, column = word
        if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
            return int(text)
        self.add(f'"{visible(text)}" is not a whole number', line, column)
        return None

    def wholes(self, line: Line) -> list[int] | None:
        """The whole numbers of a line; None, with issues, if one of its words is not one."""
        before = len(self.issues)
        numbers = [self.whole(word, line.number) or 0 for word in line.words]
        return numbers if len(self.issues) == before else None

    def time(self, word: Word, line: int) -> Fraction | None:
        """The time of a word; None, with an issue, if it is not one."""
        text, column = word
        if _NUMBER.fullmatch(text) and len(text) <= _LONGEST:
            return Fraction(text)
        self.add(f'"{visible(text)}" is not a time; expected a number that is not negative', line, column)
        return None

    def issue(self, message: str, place: Place) -> Issue:
        """An issue at a line of the file."""
        return Issue(message, (), self.file, place if isinstance(place, int) else None)

    def add(self, message: str, line: int | None = None, column: int | None = None) -> None:
        """Add an issue at a position."""
        self.issues.append(Issue(message, (), self.file, line, column))

    def check(self) -> None:
        """Raise a DocumentError with all issues if there are any."""
        if self.issues:
            raise DocumentError(in_file_order(self.issues))
