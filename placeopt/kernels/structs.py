"""Arguments of compiled kernels: NamedTuples packed into one pointer each, and signatures of calls.

Numba passes a NamedTuple of forty arrays as three hundred separate values to each function, which dominates the time to
compile. A `Struct` is one block of 64-bit words, passed as a pointer: the address and shape of each array and the value
of each number. `placeopt.kernels.lowering` defines how Numba reads it. Plain kernels take the NamedTuple.

A signature describes the types of a call's arguments with strings and tuples, so that it does not depend on Numba and
can be sent to another process:

    "int64", "float64", "bool"                a number
    ("l", 2, "C")                             an array: type of its entries, axes, layout ("C" or "A")
    ("placeopt_solvers._local_search.instance:Instance", (...))  a struct: its class, pairs of field and type
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Kind = str | tuple[Any, ...]
"""The type of one argument."""

Signature = tuple[Kind, ...]
"""The types of all arguments of a call."""


class Struct:
    """A NamedTuple packed for compiled kernels.

    Attributes
    ----------
    value
        The NamedTuple.
    kind
        Its type.
    address
        Address of the block: a word per number, the address and shape per array, in the order of the fields.

    Raises
    ------
    TypeError
        If a field is not a C-contiguous array, a number or such a NamedTuple.
    """

    __slots__ = ("_block", "_inner", "address", "kind", "value")

    def __init__(self, value: Any) -> None:
        words: list[int] = []
        kinds: list[tuple[str, Kind]] = []
        self._inner: list[Struct] = []
        for name, each in zip(value._fields, value, strict=True):
            if isinstance(each, np.ndarray):
                if not each.flags.c_contiguous:
                    raise TypeError(f"{type(value).__name__}.{name} is not C-contiguous; expected a C-contiguous array")
                words.append(each.__array_interface__["data"][0])
                words.extend(each.shape)
                kinds.append((name, (each.dtype.char, each.ndim, "C")))
            elif is_struct(each):
                self._inner.append(Struct(each))
                words.append(self._inner[-1].address)
                kinds.append((name, self._inner[-1].kind))
            else:
                kinds.append((name, number_kind(each)))
                words.append(int(np.float64(each).view(np.int64)) if kinds[-1][1] == "float64" else int(each))
        owner = type(value)
        self.value = value
        self.kind: Kind = (f"{owner.__module__}:{owner.__qualname__}", tuple(kinds))
        self._block = np.array(words, dtype=np.int64)
        self.address: int = self._block.__array_interface__["data"][0]


def is_struct(value: object) -> bool:
    """Whether the value is a NamedTuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def number_kind(value: object) -> Kind:
    """The type of a number; raises a TypeError for other values."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int | np.integer):
        return "int64"
    if isinstance(value, float | np.floating):
        return "float64"
    raise TypeError(f"a kernel takes arrays, numbers and NamedTuples of these, not {type(value).__name__}")


def packed(arguments: Iterable[Any]) -> tuple[Signature, list[Any]]:
    """The signature of a call, and its arguments for the compiled kernel."""
    kinds: list[Kind] = []
    ready: list[Any] = []
    for each in arguments:
        if isinstance(each, np.ndarray):
            kinds.append((each.dtype.char, each.ndim, "C" if each.flags.c_contiguous else "A"))
        elif is_struct(each):
            each = Struct(each)
            kinds.append(each.kind)
        else:
            kinds.append(each.kind if isinstance(each, Struct) else number_kind(each))
        ready.append(each)
    return tuple(kinds), ready


def unpacked(arguments: Iterable[Any]) -> list[Any]:
    """The arguments for the plain kernel."""
    return [each.value if isinstance(each, Struct) else each for each in arguments]
