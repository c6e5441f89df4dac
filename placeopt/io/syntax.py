"""Parse YAML and JSON texts into plain data, and map the positions of their values.

YAML follows version 1.2: only `true` and `false` are booleans, 010 is ten, and 1:30 is text. Keys are always text, a
duplicate key is a fault, and `<<` merges. Both readers use neither recursion nor PyYAML's nodes: deep nesting and
multiplying aliases are errors, and reading takes half the time.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import yaml
from yaml import events

from placeopt.errors import visible

Place = tuple[int, int]
"""Line and column, counted from 1."""

Path = tuple[str | int, ...]


class Spot(NamedTuple):
    """Positions of an entry of a mapping or a list: its key (for lists its value), its value, and its contents."""

    key: Place
    value: Place
    inside: Tree


Tree: TypeAlias = "dict[str, Spot] | list[Spot] | None"
"""Positions in a text, nested like its data."""


class Fault(NamedTuple):
    """An error after which the rest of the text can still be read."""

    message: str
    path: Path
    place: Place


class TextError(Exception):
    """A text cannot be parsed."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message, self.place = message, place


DEEPEST = 100
"""Maximum number of levels of nesting of a YAML text; problems and plans need six."""

_TOO_DEEP = f"is nested too deeply, more than {DEEPEST} levels"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + kind for kind in ("int", "float", "bool", "null")}
_NUMBER = re.compile(r"[-+]?(\d+|(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?)", re.ASCII)
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_yaml(text: str) -> tuple[Any, list[Fault]]:
    """Parse a YAML text; None if it is empty.

    Raises a TextError if it has a syntax error, several documents, or is nested too deeply.
    """
    builder = _Builder(marked=False)
    _feed_yaml(text, builder)
    return builder.result, builder.faults


def read_json(text: str) -> tuple[Any, list[Fault]]:
    """Parse a JSON text; None if it is empty.

    Raises a TextError if it has a syntax error.
    """
    if not text.strip(" \t\r\n"):
        return None, []
    data: Any = _DUPLICATE
    try:
        try:
            data = json.loads(text, object_pairs_hook=_unique, parse_float=_WrittenFloat.read)
        except _DuplicateKeyError:
            json.loads(text)  # raises the syntax errors after the duplicate key
    except json.JSONDecodeError as error:
        raise TextError(f"is not valid JSON: {error.msg}", (error.lineno, error.colno)) from None
    except RecursionError:
        raise TextError("is nested too deeply") from None
    except ValueError:
        raise TextError("is not valid JSON: a number has thousands of digits") from None
    if data is _DUPLICATE:
        builder = _Builder(marked=False)
        _feed_json(text, builder)
        return builder.result, builder.faults
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise TextError(r"is not valid JSON: unpaired surrogate (\ud800 to \udfff)") from None
    return data, []


def map_places(text: str, *, json_format: bool) -> Spot | None:
    """Map the positions in a text that was parsed before; None if it is empty, or JSON nested too deeply."""
    builder = _Builder(marked=True)
    try:
        (_feed_json if json_format else _feed_yaml)(text, builder)
    except TextError:
        return None
    return builder.root


class _DuplicateKeyError(Exception):
    pass


_DUPLICATE: Final = object()
"""Stands for data with a duplicate key."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _DuplicateKeyError
    return mapping


class _Mark:
    """Takes the place of a key whose value is merged into the mapping, or dropped."""


_MERGE, _DROP = _Mark(), _Mark()


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is not closed yet."""

    container: Any
    place: Place
    anchor: str | None
    key_place: Place
    key: str | _Mark | None = None
    lines: dict[str, int] = field(default_factory=dict)
    """The line of each key of a mapping."""
    merges: list[Any] = field(default_factory=list)
    size: int = 1
    """Number of entries at all depths, with aliases expanded."""


class _Builder:
    """Builds data from keys, values, starts and ends; if `marked`, the Tree of their positions."""

    def __init__(self, *, marked: bool) -> None:
        self.result: Any = None
        self.root: Spot | None = None
        self.faults: list[Fault] = []
        self.marked = marked
        self._stack: list[_Frame] = []

    def wants_key(self) -> bool:
        """Whether a mapping is open and the next scalar is a key."""
        return bool(self._stack) and self._stack[-1].key is None and isinstance(self._stack[-1].container, dict)

    def open(self, container: Any, place: Place, anchor: str | None = None) -> None:
        """Begin a mapping or a list."""
        if len(self._stack) == DEEPEST:
            raise TextError(_TOO_DEEP, place)
        self._stack.append(_Frame(container, place, anchor, place))

    def close(self) -> tuple[Any, int, str | None]:
        """End the innermost mapping or list; return it, its size and its anchor."""
        frame = self._stack.pop()
        for merged in frame.merges:
            for key, value in merged.items():
                frame.container.setdefault(key, value)
        self.add(frame.container, frame.place, frame.size)
        return frame.container, frame.size, frame.anchor

    def key(self, key: str | _Mark, place: Place) -> None:
        """Add the next key of a mapping."""
        frame = self._stack[-1]
        frame.key, frame.key_place = key, place
        if isinstance(key, str):
            first = frame.lines.get(key)
            if first is None:
                frame.lines[key] = place[0]
            else:
                self.fault(f'duplicate name "{visible(key)}", first given on line {first}', place)
                frame.key = _DROP

    def add(self, value: Any, place: Place, size: int = 1) -> None:
        """Add a scalar, an alias, or a closed mapping or list."""
        if not self._stack:
            self.result, self.root = value, Spot(place, place, value)
            return
        frame = self._stack[-1]
        frame.size += size
        key = frame.key
        if isinstance(frame.container, list):
            frame.container.append(Spot(place, place, value) if self.marked else value)
            return
        frame.key = None
        if isinstance(key, str):
            frame.container[key] = Spot(frame.key_place, place, value) if self.marked else value
        elif key is None:
            self.fault("a key must be plain text, not a list, a mapping or an alias", place)
            frame.key = _DROP
        elif key is _MERGE:
            self._merge(frame, value, place)

    def fault(self, message: str, place: Place) -> None:
        """Record an error in the entry that is being read."""
        path: list[str | int] = []
        for frame in self._stack:
            part = len(frame.container) if isinstance(frame.container, list) else frame.key
            if not isinstance(part, str | int):
                break
            path.append(part)
        self.faults.append(Fault(message, tuple(path), place))

    def _merge(self, frame: _Frame, value: Any, place: Place) -> None:
        items = value if isinstance(value, list) else [value]
        if self.marked and isinstance(value, list):
            items = [spot.inside for spot in value]
        if all(isinstance(item, dict) for item in items):
            frame.merges += items
        elif not self.marked and (not self.faults or self.faults[-1].place != place):
            self.fault("<< needs a mapping or a list of mappings", place)


_OPEN: Final = object()


def _feed_yaml(text: str, builder: _Builder) -> None:
    anchors: dict[str, Any] = {}
    most = 100_000 + 2 * len(text)  # most entries that all aliases may expand to
    documents = 0
    for event in _yaml_events(text):
        kind = type(event)
        if kind is events.ScalarEvent:
            value = event.value
            if builder.wants_key():
                merges = value == "<<" and event.implicit[0] and event.tag is None
                builder.key(_MERGE if merges else value, _place(event))
            else:
                value = None if builder.marked else _value(event, builder)
                builder.add(value, _place(event))
            if event.anchor:
                anchors[event.anchor] = value, 1
        elif kind in (events.MappingEndEvent, events.SequenceEndEvent):
            container, size, anchor = builder.close()
            if anchor:
                anchors[anchor] = container, size
        elif kind is events.MappingStartEvent or kind is events.SequenceStartEvent:
            if event.anchor:
                anchors[event.anchor] = _OPEN
            _check_tag(event, builder, "map" if kind is events.MappingStartEvent else "seq")
            builder.open({} if kind is events.MappingStartEvent else [], _place(event), event.anchor)
        elif kind is events.AliasEvent:
            known = anchors.get(event.anchor)
            if known is None:
                raise TextError(f"is not valid YAML: unknown anchor &{_cut(event.anchor)}", _place(event))
            if known is _OPEN:
                builder.fault(f"contains itself: *{_cut(event.anchor)} is inside &{_cut(event.anchor)}", _place(event))
                known = None, 1
            most -= known[1]
            if most < 0:
                raise TextError("has aliases that expand to far more entries than the file has", _place(event))
            builder.add(known[0], _place(event), known[1])
        elif kind is events.DocumentStartEvent:
            documents += 1
            if documents > 1:
                raise TextError("contains several documents; expected one", _place(event))


def _yaml_events(text: str) -> Iterator[Any]:
    try:
        yield from iter(_Loader(text).get_event, None)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context
        lines = text.splitlines()
        if mark and mark.line < len(lines) and lines[mark.line][mark.column :].startswith("\t"):
            problem = "a tab in the indentation; expected spaces"
        place = (mark.line + 1, mark.column + 1) if mark else None
        if problem == "exceeded maximum nesting depth":  # libyaml may look further ahead than `DEEPEST`
            raise TextError(_TOO_DEEP, place) from None
        raise TextError(f"is not valid YAML: {problem}", place) from None
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:
        found = _UNPRINTABLE.search(text)
        problem = f"contains the control character {ord(found[0]):#04x}" if found else str(error)
        raise TextError(f"is not valid YAML: {problem}", _Lines(text).place(found.start()) if found else None) from None


def is_deeper(data: Any, levels: int) -> bool:
    """Return whether mappings and lists of plain data are nested in more than some levels."""
    level = [data]
    for _ in range(levels):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [part for parts in inner for part in parts]
    return any(isinstance(each, dict | list) for each in level)


def _cut(name: str) -> str:
    """The beginning of a name for a message: the rest of an unknown file may be secret."""
    return name if len(name) <= 12 else f"{name[:6]}..."


def _place(event: Any) -> Place:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def _check_tag(event: Any, builder: _Builder, kind: str) -> None:
    if event.tag not in (None, "!", _TAG + kind):
        tag = event.tag.replace(_TAG, "!!")
        builder.fault(f"unknown tag {visible(tag)}; expected plain YAML", _place(event))


def _value(event: Any, builder: _Builder) -> Any:
    """A scalar in the core schema of YAML 1.2."""
    if event.tag is None:
        return _plain(event.value) if event.implicit[0] else event.value
    if event.tag in _PLAIN_TAGS:
        return _plain(event.value)
    _check_tag(event, builder, "str")
    return event.value


def _plain(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "0123456789+-." and len(text) < 1000:
        match = _NUMBER.fullmatch(text)
        if match is not None:
            return _WrittenInt.read(text) if match[1].isdigit() else _WrittenFloat.read(text)
    return text


class _Written:
    """A number with its original text, for names (007 and 7 differ) and for all digits of quantities."""

    text: str

    def __repr__(self) -> str:
        return self.text


class _WrittenInt(_Written, int):
    @classmethod
    def read(cls, text: str) -> int:
        number = cls(text)
        if int.__repr__(number) == text:
            return int(number)
        number.text = text
        return number


class _WrittenFloat(_Written, float):
    @classmethod
    def read(cls, text: str) -> float | str:
        plain = float(text)
        if repr(plain) == text:
            return plain
        if math.isinf(plain):
            return text
        number = cls(plain)
        number.text = text
        return number


_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def _feed_json(text: str, builder: _Builder) -> None:
    """Feed a text that is valid JSON to the builder."""
    lines = _Lines(text)
    for token in _JSON_TOKEN.finditer(text):
        first = text[token.start()]
        if first in ",:":
            continue
        if first in "}]":
            builder.close()
        elif first in "{[":
            builder.open({} if first == "{" else [], lines.place(token.start()))
        elif builder.wants_key():
            builder.key(json.loads(token[0]), lines.place(token.start()))
        else:
            value = None if builder.marked else json.loads(token[0], parse_float=_WrittenFloat.read)
            builder.add(value, lines.place(token.start()))


class _Lines:
    """Converts offsets in a text to lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text))]

    def place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
