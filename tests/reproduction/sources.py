"""Which texts the benchmarks can write: their strings, and their f-strings with such texts or numbers in the gaps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NUMBER = re.compile(r"[+-]?[\d.,]+( ?%)?")


@cache
def strings() -> tuple[frozenset[str], tuple[tuple[str, ...], ...]]:
    """All strings of the benchmarks but docstrings, and the constant parts of all f-strings."""
    plain, formatted = set(), set()
    for path in sorted(BENCHMARKS.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        inside |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                formatted.add(tuple(_parts(node)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                plain.add(node.value)
    return frozenset(plain), tuple(sorted(each for each in formatted if any(each)))


def _parts(node: ast.JoinedStr) -> Iterator[str]:
    """The constant parts around the gaps, one more than gaps."""
    constant = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            constant += str(part.value)
        else:
            yield constant
            constant = ""
    yield constant


@cache
def written(text: str, depth: int = 3) -> bool:
    """Whether a benchmark can write this text."""
    plain, formatted = strings()
    if text in plain or NUMBER.fullmatch(text):
        return True
    for parts in formatted if depth else ():
        if all(part in text for part in parts):
            found = re.fullmatch("(.*?)".join(map(re.escape, parts)), text)
            if found and all(not gap or written(gap, depth - 1) for gap in found.groups()):
                return True
    return False
