"""Import graphs in DOT, the language of Graphviz; `attributes` states what their attributes mean.

https://graphviz.org/doc/info/lang.html defines the language. Nodes of subgraphs and clusters are nodes of the graph.
An edge from or to a subgraph is an edge from or to each of its nodes. Default attributes (`node [...]`, `edge [...]`)
apply from their statement on, in their own subgraph. Ports are ignored.

The parser is our own because it reports positions, and because pydot, with which the tests compare it, needs a
millisecond for each statement.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, NoReturn

from placeopt.bridges.importers.graphs.attributes import AttributedGraph, Edge, Node
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.task_graph import Place
from placeopt.errors import DocumentError, Issue, visible
from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_text

NAME = "dot"
DEEPEST = 100
"""Maximum number of levels of subgraphs."""
MOST_EDGES = 2**22
"""Maximum number of edges, and of nodes of subgraphs that statements name again; a short file may name large
subgraphs."""

_BEGINS = re.compile(
    rb"(?:\s|//[^\n]*|/\*.*?\*/|^#[^\n]*)*+(?:strict\s+)?(?:di)?graph\b[^{\[=:]*\{", re.S | re.M | re.I
)
_TOKEN = re.compile(
    r"""(?:(?P<skipped>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)
    | (?P<quoted>"(?:[^"\\]|\\.)*")
    | (?P<mark>->|--|[{}\[\]=;,:+])
    | (?P<numeral>-?(?:\.\d+|\d+(?:\.\d*)?))
    | (?P<word>[^\W\d]\w*)
    | (?P<html><))\s*+""",
    re.X | re.S | re.M,
)
_ANGLES = re.compile("[<>]")
_KEYWORDS = frozenset({"strict", "graph", "digraph", "node", "edge", "subgraph"})


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    return sample.suffix in (".dot", ".gv") or _BEGINS.match(sample.start.removeprefix(b"\xef\xbb\xbf")) is not None


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in this format.

    Raises a DocumentError if the file cannot be read, has a syntax error, or does not contain one directed graph; it
    lists every issue.
    """
    with reading(path):
        text = read_text(path).removeprefix("\ufeff")
    return _Parser(text, str(path)).graph().imported(options)


class _Token(NamedTuple):
    """An identifier (`id`), a keyword, a mark or the end, and its offset."""

    kind: str
    text: str
    offset: int


@dataclass(slots=True)
class _Scope:
    """A graph or a subgraph: default attributes, and the names of its nodes."""

    node: dict[str, str]
    edge: dict[str, str]
    members: dict[str, None] = field(default_factory=dict)


class _Parser:
    """Parses one file."""

    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text))]
        self._tokens = self._scan()
        self._next = next(self._tokens)
        self._subgraphs: dict[str, _Scope] = {}
        self._strict = False
        self._merged: dict[tuple[str, str], Edge] = {}
        self._left = MOST_EDGES
        self._graph = AttributedGraph("", "", self._issue)

    def graph(self) -> AttributedGraph:
        """The graph of the file."""
        self._strict = self._take("strict") is not None
        kind = self._take("digraph") or self._take("graph")
        if kind is None:
            self._fail("expected digraph")
        if kind.text == "graph":
            self._fail("is an undirected graph; expected a digraph", kind.offset)
        name = self._take("id")
        stem = Path(self._file).stem
        self._graph.name = name.text if name is not None and name.text.strip() else stem
        self._graph.source = f"{Path(self._file).name}, in DOT"
        self._block(_Scope({}, {}), 1)
        if self._next.kind != "end":
            self._fail("expected the end of the file; only files with one graph are supported")
        return self._graph

    def _block(self, scope: _Scope, depth: int) -> None:
        """Read statements in braces."""
        if depth > DEEPEST:
            self._fail(f"has more than {DEEPEST} levels of subgraphs")
        self._expect("{")
        while self._take("}") is None:
            if self._take(";") is None:
                self._statement(scope, depth)

    def _statement(self, scope: _Scope, depth: int) -> None:
        begin = self._next
        if begin.kind in ("node", "edge", "graph"):
            self._advance()
            attributes = self._attributes()
            if begin.kind != "graph":
                (scope.node if begin.kind == "node" else scope.edge).update(attributes)
            return
        ends = [self._end(scope, depth)]
        if begin.kind == "id" and self._take("="):
            self._expect("id")
            return
        while (operator := self._take("->") or self._take("--")) is not None:
            if operator.text == "--":
                self._fail("-- joins nodes of undirected graphs; expected ->", operator.offset)
            ends.append(self._end(scope, depth))
        attributes = self._attributes()
        if len(ends) == 1:
            if begin.kind == "id":
                node = self._graph.nodes[ends[0][0]]
                node.attributes = {**node.attributes, **attributes}
            return
        stated = {**scope.edge, **attributes}
        for sources, targets in pairwise(ends):
            self._left -= len(sources) * len(targets)
            if self._left < 0:
                self._fail(f"has more than {MOST_EDGES:,} edges", begin.offset)
            for source in sources:
                for target in targets:
                    self._join(source, target, stated, begin.offset)

    def _join(self, source: str, target: str, attributes: dict[str, str], offset: int) -> None:
        """Add an edge; a strict graph has one of each kind, with the attributes of all."""
        known = self._merged.get((source, target)) if self._strict else None
        if known is not None:
            known.attributes = {**known.attributes, **attributes}
            return
        edge = Edge(source, target, attributes, offset)
        if self._strict:
            self._merged[source, target] = edge
        self._graph.edges.append(edge)

    def _end(self, scope: _Scope, depth: int) -> list[str]:
        """Read a node or a subgraph; return the names of its nodes."""
        if self._next.kind in ("{", "subgraph"):
            keyword = self._take("subgraph")
            name = self._take("id") if keyword is not None else None
            if name is not None and self._next.kind != "{":
                inner = self._subgraphs.get(name.text)
                if inner is None:
                    self._fail(f'no subgraph has the name "{visible(name.text)}"', name.offset)
                self._left -= len(inner.members)
                if self._left < 0:
                    self._fail(f"names more than {MOST_EDGES:,} edges and nodes of subgraphs", name.offset)
            else:
                inner = _Scope(dict(scope.node), dict(scope.edge))
                self._block(inner, depth + 1)
                if name is not None:
                    self._subgraphs[name.text] = inner
            scope.members.update(inner.members)
            return list(inner.members)
        token = self._expect("id")
        for _ in range(2):  # a port and a compass point
            if self._take(":"):
                self._expect("id")
        if self._next.kind != "=":  # else it is the name of an attribute of the graph
            self._graph.nodes.setdefault(token.text, Node(dict(scope.node), token.offset))
            scope.members[token.text] = None
        return [token.text]

    def _attributes(self) -> dict[str, str]:
        """Read lists of attributes in brackets."""
        found: dict[str, str] = {}
        while self._take("[") is not None:
            while self._take("]") is None:
                name = self._expect("id")
                found[name.text.lower()] = self._expect("id").text if self._take("=") else "true"
                if self._take(";") is None:
                    self._take(",")
        return found

    def _take(self, kind: str) -> _Token | None:
        """The next token if it is of this kind."""
        return self._advance() if self._next.kind == kind else None

    def _expect(self, kind: str) -> _Token:
        if self._next.kind != kind:
            what = "a name" if kind == "id" else kind
            self._fail(f"expected {what}")
        return self._advance()

    def _advance(self) -> _Token:
        token = self._next
        self._next = next(self._tokens)
        if self._next.kind == "+" and token.kind == "id" and self._text[token.offset] == '"':
            texts = [token.text]
            while self._next.kind == "+":
                self._next = next(self._tokens)
                if self._next.kind != "id":
                    self._fail("expected a name")
                texts.append(self._next.text)
                self._next = next(self._tokens)
            token = token._replace(text="".join(texts))
        return token

    def _scan(self) -> Iterator[_Token]:
        """The tokens of the text; the last one has the kind `end` and repeats."""
        text, offset = self._text, 0
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                what = "a text without its end" if text[offset] == '"' else visible(text[offset])
                self._fail(f"unexpected {what}", offset)
            kind = match.lastgroup
            assert kind is not None
            word, end = match[kind], match.end()
            if kind == "quoted":
                yield _Token("id", _unquoted(word), offset)
            elif kind == "html":
                end = self._html_end(offset)
                yield _Token("id", text[offset + 1 : end - 1], offset)
            elif kind == "mark":
                yield _Token(word, word, offset)
            elif kind != "skipped":
                keyword = word.lower()
                yield _Token(keyword if keyword in _KEYWORDS else "id", word, offset)
            offset = end
        while True:
            yield _Token("end", "the end of the file", len(text))

    def _html_end(self, offset: int) -> int:
        """The end of a text in balanced angle brackets."""
        depth = 0
        for match in _ANGLES.finditer(self._text, offset):
            depth += 1 if match[0] == "<" else -1
            if depth == 0:
                break
        else:
            self._fail("unexpected < without its >", offset)
        return match.end()

    def _issue(self, message: str, place: Place) -> Issue:
        if not isinstance(place, int):
            return Issue(message, (), self._file)
        line = bisect_right(self._starts, place)
        return Issue(message, (), self._file, line, place - self._starts[line - 1] + 1)

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        if offset is None:
            message, offset = f"{message}, got {visible(self._next.text)}", self._next.offset
        raise DocumentError([self._issue(message, offset)])


def _unquoted(text: str) -> str:
    """The content of a quoted text; only escaped quotes and line breaks are replaced, as in Graphviz."""
    return re.sub(r'(\\\\)|\\(?:(")|\r?\n)', r"\1\2", text[1:-1])
