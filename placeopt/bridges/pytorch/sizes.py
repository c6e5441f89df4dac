"""Concrete sizes for the symbolic sizes of an exported program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from placeopt.errors import UsageError, listing, suggestion


class Sizes:
    """The value of each symbol; converts values of nodes to tensors on the meta device and integers."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = dict(values)
        self._numbers: dict[Any, float] = {}

    def number(self, size: Any, node: Node) -> Any:
        """An integer, float or truth value for a symbolic one."""
        if not isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return size
        expression = size.node.expr
        if expression not in self._numbers:
            unknown = sorted(str(each) for each in expression.free_symbols if str(each) not in self._values)
            if unknown:
                raise UsageError(
                    f"node {node.name}: its size {expression} depends on the data; state {unknown[0]} among the "
                    f"dimensions: --dim {unknown[0]}=SIZE"
                )
            found = expression.xreplace({each: self._values[str(each)] for each in expression.free_symbols})
            if isinstance(size, torch.SymInt):
                self._numbers[expression] = int(found)
            else:
                self._numbers[expression] = bool(found) if isinstance(size, torch.SymBool) else float(found)
        return self._numbers[expression]

    def concrete(self, value: Any, node: Node) -> Any:
        """A value of a node with concrete sizes."""
        if isinstance(value, torch.Tensor):
            shape = tuple(self.number(size, node) for size in value.shape)
            strides = tuple(self.number(size, node) for size in value.stride())
            return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")
        if isinstance(value, (list, tuple)):
            return tuple(self.concrete(each, node) for each in value)
        return self.number(value, node)


def symbol_values(program: ExportedProgram, dims: Mapping[str, int], batch: int | None) -> dict[str, int]:
    """The value of each symbolic size of an exported program.

    Parameters
    ----------
    dims
        Sizes by the name of their symbol (`s77`), or of an input and a dimension (`ids.0` or `ids.shape[0]`).
    batch
        Size of the first dimension of every input in which it is symbolic.

    Raises
    ------
    UsageError
        If a size has no value, has several, is unknown, or is outside of the range of the export.
    """
    places = _places(program)
    values: dict[str, int] = {}
    taken: dict[str, str] = {}

    def give(symbol: str, size: int, by: str) -> None:
        if values.setdefault(symbol, size) != size:
            raise UsageError(f"{by} is {size}, but {taken[symbol]} is {values[symbol]}: both are the size {symbol}")
        taken.setdefault(symbol, by)

    symbols = dict.fromkeys(symbol for _, symbol in places if symbol is not None)
    symbols |= dict.fromkeys(str(symbol) for symbol in program.range_constraints)
    stated = dict(places)
    for name, size in dims.items():
        name = re.sub(r"\.shape\[(\d+)\]$", r".\1", name)
        if name in symbols:
            give(name, size, name)
        elif name in stated and stated[name] is not None:
            give(str(stated[name]), size, name)
        elif name in stated:
            raise UsageError(f"{name} is not one symbolic size; state the symbols {listing(list(symbols), 20)}")
        else:
            hint = suggestion(name, [*symbols, *stated])
            known = "every size of the model is fixed"
            if symbols:
                known = f"known are {_shown(symbols, places)}; torch.export drops the names of Dim"
            raise UsageError(f"unknown dimension {name}{hint}; {known}")
    if batch is not None:
        first = [(name, symbol) for name, symbol in places if name.endswith(".0") and symbol is not None]
        if not first:
            raise UsageError("the model is exported with a fixed batch size; export it with a dynamic first dimension")
        for name, symbol in first:
            give(str(symbol), batch, f"the batch size ({name})")
    missing = [(name, symbol) for name, symbol in places if symbol is not None and symbol not in values]
    if missing:
        wanted = dict.fromkeys(str(symbol) for _, symbol in missing)
        where = {symbol: next(name for name, other in missing if other == symbol) for symbol in wanted}
        options = " ".join(f"--dim {name}=SIZE" for name in where.values())
        if batch is None and any(name.endswith(".0") for name in where.values()):
            options += " (--batch SIZE states first dimensions)"
        raise UsageError(
            f"the model has symbolic sizes; state a value for each: {options}; they are {_shown(wanted, places)}"
        )
    for symbol, limits in program.range_constraints.items():
        value = values.get(str(symbol))
        if value is not None and not limits.lower <= value <= limits.upper:
            raise UsageError(f"{taken[str(symbol)]} is {value}; the export allows {limits.lower} to {limits.upper}")
    return values


def _shown(symbols: Iterable[str], places: Sequence[tuple[str, str | None]]) -> str:
    """The symbols with the dimensions of inputs that have them: `s77 (ids.1, mask.1)`."""
    at = {symbol: [name for name, other in places if other == symbol] for symbol in symbols}
    return listing([f"{symbol} ({', '.join(names)})" if names else symbol for symbol, names in at.items()], 20)


def _places(program: ExportedProgram) -> list[tuple[str, str | None]]:
    """Each symbolic dimension of the inputs, as `ids.0`, and its symbol; None for an expression of several."""
    inputs = set(program.graph_signature.user_inputs)
    found: list[tuple[str, str | None]] = []
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or node.name not in inputs or not isinstance(value, torch.Tensor):
            continue
        for place, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt):
                expression = size.node.expr
                symbol = str(expression) if expression.is_symbol else None
                if symbol is not None or expression.free_symbols:
                    found.append((f"{node.name}.{place}", symbol))
    return found
