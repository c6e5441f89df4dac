"""YAML and JSON files as plain data that still knows where everything stands.

YAML is read as version 1.2 means it: only `true` and `false` are booleans, 010 is ten, and a
time such as 1:30 stays text. Keys are always text. A key given twice is an error. Positions cost
nothing until somebody asks for one: JSON is parsed a second time, with marks, only then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from placeopt.errors import DocumentError, Issue

Path_ = tuple[str | int, ...]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = re.compile(r"[-+]?(\d[\d_]*)?(\.\d*)?([eE][-+]?\d+)?", re.ASCII)
_SPECIAL = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
_TAG = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Document:
    """Plain data (dicts, lists, str, int, float, bool, None) and where it came from.

    `file` is None for data made in code, which has no positions.
    """

    data: Any
    file: str | None = None
    text: str | None = None
    faults: tuple[Issue, ...] = ()
    """What was wrong already while it was read: keys given twice."""
    _root: yaml.Node | None = field(default=None, repr=False)
    _composed: bool = False

    def issue(self, message: str, path: Sequence[str | int], *, at_key: bool = False) -> Issue:
        """An issue at the place that `path` leads to, or as far along it as the document goes.

        `at_key` points at the key itself (an unknown one, say) instead of its value.
        """
        known = self.existing(path)
        line, column = self._position(known, at_key and len(known) == len(path))
        return Issue(message, known, self.file, line, column)

    def existing(self, path: Sequence[str | int]) -> Path_:
        """The path as far as the document has it; a name in a list of names counts as its place there."""
        value, known = self.data, []
        for part in path:
            if isinstance(value, str):
                break
            if isinstance(value, list) and isinstance(part, str):
                part = next((k for k, item in enumerate(value) if str(item) == part), len(value))
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                break
            known.append(part)
        return tuple(known)

    def _position(self, path: Path_, at_key: bool) -> tuple[int, int] | tuple[None, None]:
        node = self._marked()
        if node is None:
            return None, None
        for depth, part in enumerate(path):
            if isinstance(node, yaml.MappingNode):
                pair = next((pair for pair in _merged(node) if pair[0].value == part), None)
                if pair is None:
                    break
                node = pair[0] if at_key and depth == len(path) - 1 else pair[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part]
        return node.start_mark.line + 1, node.start_mark.column + 1

    def _marked(self) -> yaml.Node | None:
        """The document's nodes with marks; None for data made in code."""
        if self._root is None and self.text is not None and not self._composed:
            self._composed = True
            try:
                self._root = yaml.compose(self.text, Loader=_Loader)
            except (yaml.YAMLError, RecursionError):  # JSON that is no YAML: issues go without positions
                self._root = None
        return self._root


def read_document(path: str | Path) -> Document:
    """The document in a file: JSON if its name ends in .json, else YAML.

    Raises
    ------
    DocumentError
        If the file cannot be read, is no UTF-8 text, has a syntax error, or holds more than one document.
    """
    file = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
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
    try:
        if json_format:
            return _parse_json(text, file)
        root = yaml.compose(text, Loader=_Loader)
        builder = _Builder(file)
        data = None if root is None else builder.build(root)
    except RecursionError:
        raise _failure(file, "is nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        raise _failure(file, f"is no valid YAML: {error.problem or error.context}", *place) from None
    except yaml.YAMLError as error:
        raise _failure(file, f"is no valid YAML: {_one_line(error)}") from None
    return Document(data, file, text, tuple(builder.issues), root, True)


def _failure(file: str | None, message: str, line: int | None = None, column: int | None = None) -> DocumentError:
    return DocumentError([Issue(message, (), file, line, column)])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class _DuplicateKeyError(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _DuplicateKeyError
    return mapping


def _parse_json(text: str, file: str | None) -> Document:
    try:
        return Document(json.loads(text, object_pairs_hook=_unique), file, text)
    except json.JSONDecodeError as error:
        raise _failure(file, f"is no valid JSON: {error.msg}", error.lineno, error.colno) from None
    except _DuplicateKeyError:
        document = parse_document(text, file=file)  # JSON is YAML: the other parser says where the key stands twice
        if not document.faults:
            raise _failure(file, "has a key twice in one object") from None
        return document
    except ValueError as error:  # an integer of thousands of digits
        raise _failure(file, f"is no valid JSON: {_one_line(error)}") from None


def _merged(node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """A mapping's own pairs, then those of its merge keys (<<)."""
    merges = []
    for key, value in node.value:
        if key.tag == _TAG + "merge":
            merges.append(value)
        else:
            yield key, value
    for merge in merges:
        for mapping in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
            if isinstance(mapping, yaml.MappingNode):
                yield from _merged(mapping)


class _Builder:
    """Turns nodes into plain data; an aliased node becomes one shared object."""

    def __init__(self, file: str | None) -> None:
        self.issues: list[Issue] = []
        self._file = file
        self._built: dict[yaml.Node, Any] = {}
        self._open: set[yaml.Node] = set()

    def build(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if node in self._built:
            return self._built[node]
        if node in self._open:
            self._note(node, "contains itself")
            return None
        self._open.add(node)
        value = self._mapping(node) if isinstance(node, yaml.MappingNode) else [self.build(item) for item in node.value]
        self._open.discard(node)
        self._built[node] = value
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        first: dict[str, yaml.Node] = {}
        plain = True
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._note(key, "a key must be text, not a list or a mapping")
            elif key.tag == _TAG + "merge":
                plain = False
            elif key.value in first:
                earlier = first[key.value].start_mark.line + 1
                self._note(key, f'duplicate name "{key.value}", first given on line {earlier}')
            else:
                first[key.value] = key
                mapping[key.value] = self.build(value)
        if not plain:
            for key, value in _merged(node):
                if isinstance(key, yaml.ScalarNode) and key.value not in mapping:
                    mapping[key.value] = self.build(value)
        return mapping

    def _note(self, node: yaml.Node, message: str) -> None:
        mark = node.start_mark
        self.issues.append(Issue(message, (), self._file, mark.line + 1, mark.column + 1))


def _scalar(node: yaml.ScalarNode) -> str | int | float | bool | None:
    """A scalar by YAML 1.2's core schema."""
    text: str = node.value
    if node.tag == _TAG + "str" or node.style in ("'", '"', "|", ">"):
        # 1e9 is text by YAML 1.1, which wants a dot; quantities read it as the number it is.
        return text
    if node.tag == _TAG + "null":
        return None
    if node.tag == _TAG + "bool":
        return text.lower() == "true" if text.lower() in ("true", "false") else text
    if node.tag in (_TAG + "int", _TAG + "float"):
        if text.lower() in _SPECIAL:
            return float(_SPECIAL[text.lower()])
        if _NUMBER.fullmatch(text) and len(text) < 1000:
            digits = text.replace("_", "")
            try:
                return int(digits) if node.tag == _TAG + "int" else float(digits)
            except ValueError:
                return text
    return text
