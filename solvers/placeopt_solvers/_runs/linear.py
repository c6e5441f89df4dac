"""Linear expressions in whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Linear:
    """An immutable expression: constant + the sum of coefficient * column."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[int, int] | None = None, constant: int = 0) -> None:
        self.terms: Mapping[int, int] = terms or {}
        self.constant = constant

    def __add__(self, other: Linear | int) -> Linear:
        return total((self, other))

    def __radd__(self, other: int) -> Linear:
        return total((other, self))

    def __sub__(self, other: Linear | int) -> Linear:
        return total((self, -1 * other))

    def __rsub__(self, other: int) -> Linear:
        return total((other, -1 * self))

    def __mul__(self, factor: int) -> Linear:
        return Linear({c: factor * a for c, a in self.terms.items() if factor}, factor * self.constant)

    __rmul__ = __mul__

    def at(self, values: list[float]) -> float:
        """Return its value, given that of every column."""
        return self.constant + sum(a * values[c] for c, a in self.terms.items())


def total(parts: Iterable[Linear | int]) -> Linear:
    """Return a sum, computed in one pass."""
    terms: dict[int, int] = {}
    constant = 0
    for part in parts:
        if isinstance(part, int):
            constant += part
            continue
        constant += part.constant
        for column, coefficient in part.terms.items():
            terms[column] = terms.get(column, 0) + coefficient
    return Linear({c: a for c, a in terms.items() if a}, constant)
