"""Numba's type of structs and the code that reads their fields. Imports Numba.

A struct never changes while a kernel runs, only its arrays do. Words are loaded as invariant, so that LLVM keeps
addresses in registers across stores and calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.extending import NativeValue, infer_getattr, lower_getattr_generic, register_model, unbox
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from placeopt.kernels.structs import Kind, Signature

_WORD = ir.IntType(64)
_NUMBERS = {"int64": types.int64, "float64": types.float64, "bool": types.boolean}
_known: dict[Kind, Any] = {}


class StructType(types.Type):
    """The type of a struct: `fields` are pairs of a name and a Numba type, `places` the first word of each."""

    def __init__(self, owner: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = dict(fields)
        self.places: dict[str, int] = {}
        word = 0
        for name, kind in fields:
            self.places[name] = word
            word += 1 + (kind.ndim if isinstance(kind, types.Array) else 0)
        super().__init__(name=f"struct {owner}({', '.join(f'{name}: {kind}' for name, kind in fields)})")


def numba_types(signature: Signature) -> tuple[Any, ...]:
    """The Numba types of a signature."""
    return tuple(map(_numba_type, signature))


def _numba_type(kind: Kind) -> Any:
    found = _known.get(kind)
    if found is None:
        if isinstance(kind, str):
            found = _NUMBERS[kind]
        elif len(kind) == 3:
            entries, axes, layout = kind
            found = types.Array(from_dtype(np.dtype(entries)), axes, layout)
        else:
            owner, fields = kind
            found = StructType(owner, tuple((name, _numba_type(inner)) for name, inner in fields))
        _known[kind] = found
    return found


@register_model(StructType)
class _Pointer(models.OpaqueModel):  # type: ignore[misc]
    """Represents a struct as a pointer to its block."""


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, kind: StructType, name: str) -> Any:
        return kind.fields.get(name)


@unbox(StructType)  # type: ignore[untyped-decorator]
def _take_address(kind: StructType, struct: Any, c: Any) -> Any:  # noqa: ARG001  the signature that Numba expects
    address = c.pyapi.object_getattr_string(struct, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(pointer, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@lower_getattr_generic(StructType)  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, kind: StructType, struct: Any, name: str) -> Any:
    field, place = kind.fields[name], kind.places[name]
    word = _load(builder, struct, place)
    if isinstance(field, types.Array):
        entry = context.get_data_type(field.dtype)
        size = ir.Constant(_WORD, context.get_abi_sizeof(entry))
        shape = [_load(builder, struct, place + 1 + axis) for axis in range(field.ndim)]
        strides = [size]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent, flags=["nsw"]))
        array = make_array(field)(context, builder)
        data = builder.inttoptr(word, entry.as_pointer())
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()
    if isinstance(field, StructType):
        return builder.inttoptr(word, cgutils.voidptr_t)
    if field == types.float64:
        return builder.bitcast(word, ir.DoubleType())
    return builder.icmp_signed("!=", word, ir.Constant(_WORD, 0)) if field == types.boolean else word


def _load(builder: Any, struct: Any, place: int) -> Any:
    words = builder.bitcast(struct, _WORD.as_pointer())
    word = builder.load(builder.gep(words, [ir.Constant(_WORD, place)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word
