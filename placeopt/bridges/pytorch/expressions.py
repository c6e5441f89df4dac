"""Check the sizes in saved programs, which PyTorch evaluates as Python code.

`torch.export` writes a symbolic size as an expression of SymPy: `Mul(Integer(4), Symbol('s77', positive=True))`. To
read it, PyTorch calls `sympy.sympify`, which uses `eval`. Therefore a file could execute any code, or compute for
hours. Only calls of SymPy's classes with such calls and constants as arguments are allowed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import sympy
from torch.utils._sympy import functions

LARGEST_POWER = 64
"""Largest exponent; powers of numbers are computed while they are read."""
LONGEST = 10_000
"""Maximum number of characters of an expression."""

_TEXT = re.compile(r"\w{1,100}|[+-]?\d{0,30}(?:\.\d{0,30})?(?:e[+-]?\d{1,3})?", re.ASCII)
_NUMBER = 2**63
_TYPES = (
    "Abs", "Add", "And", "BooleanFalse", "BooleanTrue", "Dummy", "Equality", "Float", "GreaterThan", "ITE", "Integer",
    "LessThan", "Max", "Min", "Mod", "Mul", "Not", "Or", "Piecewise", "Pow", "Rational", "StrictGreaterThan",
    "StrictLessThan", "Symbol", "Tuple", "Unequality", "Xor", "ceiling", "floor", "log", "sign", "sqrt",
)  # fmt: skip
ALLOWED = frozenset(_TYPES) | {
    name
    for name, found in vars(functions).items()
    if isinstance(found, type) and issubclass(found, sympy.Basic) and found.__module__ == functions.__name__
}
"""Names of classes of SymPy, and of the functions that PyTorch adds."""


def expressions(data: Any) -> Iterator[Any]:
    """The expressions in the graph of a saved program."""
    waiting = [data]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if "expr_str" in found:
                yield found["expr_str"]
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


def is_safe(text: Any) -> bool:
    """Whether an expression only builds a size from symbols and numbers."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return False
    try:
        return _is_size(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return _is_constant(value)
        case ast.Name(id=name):
            return not name.startswith("_")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_size(operand)
        case ast.Tuple(elts=parts):
            return all(map(_is_size, parts))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            return _is_size(left) and _is_size(right)
        case ast.Call(func=ast.Name(id="Pow"), args=[base, exponent], keywords=[]):
            nested = any(isinstance(each, ast.Name) and each.id == "Pow" for each in ast.walk(base))
            return not nested and _is_size(base) and _is_small(exponent)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in ALLOWED - {"Pow"}:
            return all(map(_is_size, args)) and all(isinstance(each.value, ast.Constant) for each in keywords)
    return False


def _is_constant(value: object) -> bool:
    if isinstance(value, str):
        return _TEXT.fullmatch(value) is not None
    return value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < _NUMBER)


def _is_small(node: ast.expr) -> bool:
    """Whether an exponent is a small constant, such as `Integer(-1)` or `Rational(1, 2)`."""
    constants = [each for each in ast.walk(node) if isinstance(each, ast.Constant)]
    kinds = (ast.Constant, ast.UnaryOp, ast.USub, ast.Load, ast.Name, ast.Call)
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return (
        all(isinstance(each, kinds) for each in ast.walk(node))
        and all(each.id in ("Integer", "Rational") for each in calls)
        and bool(constants)
        and all(isinstance(each.value, int) and abs(each.value) <= LARGEST_POWER for each in constants)
        and _is_size(node)
    )
