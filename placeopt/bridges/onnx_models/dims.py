"""Sizes of symbolic dimensions: `--batch` and `--dim`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from placeopt.bridges.onnx_models.sizes import shapes
from placeopt.errors import DocumentError, Issue, UsageError, alternatives, listing
from placeopt.model.problem import Problem

if TYPE_CHECKING:
    from onnx import GraphProto, TensorShapeProto, ValueInfoProto

NAMELESS = "?"
"""Paddle gives all open dimensions this name, also those that differ."""
_BATCH = frozenset({"n", "b", "bs", "bsz"})


def state_dims(
    graph: GraphProto, inputs: list[ValueInfoProto], batch: int | None, dims: Mapping[str, int], file: str | None
) -> dict[str, tuple[int, int]]:
    """Set the sizes of all dimensions of the inputs, in place.

    A dimension without a name is named by its input and axis: `data[0]`.

    Returns
    -------
    dict[str, tuple[int, int]]
        The old and new size of each fixed dimension that a stated size changes: other sizes in the model do not hold.

    Raises
    ------
    UsageError
        If a name in `dims` is not a dimension, or the inputs have no batch dimension.
    DocumentError
        If a dimension remains unknown; lists all of them with the option that states them.
    """
    for value in (*graph.input, *graph.output, *graph.value_info):
        for _, dim in _axes(value):
            if dim.dim_param == NAMELESS or dim.dim_value < 0:
                dim.Clear()
    sizes = dict(dims)
    if batch is not None:
        for name in _batch_names(inputs):
            if sizes.setdefault(name, batch) != batch:
                raise UsageError(
                    f"--dim {name}={sizes[name]} and --batch {batch} state different sizes of one dimension"
                )
    changed: dict[str, tuple[int, int]] = {}
    used = set()
    for value in inputs:
        for axis, dim in _axes(value):
            place = f"{value.name}[{axis}]"
            given = sizes.get(place)
            if given is not None:
                used.add(place)
                if dim.dim_param:
                    if sizes.setdefault(dim.dim_param, given) != given:
                        raise UsageError(
                            f"--dim {place}={given} and {dim.dim_param}={sizes[dim.dim_param]} state different sizes "
                            "of one dimension"
                        )
                else:
                    if _is_fixed(dim) and dim.dim_value != given:
                        changed[place] = dim.dim_value, given
                    dim.dim_value = given
    known: dict[str, None] = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        for _, dim in _axes(value):
            if dim.dim_param and dim.dim_param in sizes:
                used.add(dim.dim_param)
                dim.dim_value = sizes[dim.dim_param]
            elif dim.dim_param:
                known[dim.dim_param] = None
    for name in dims:
        if name not in used:
            hint = alternatives(name, known) if known else "; all of its dimensions have sizes"
            raise UsageError(f"--dim {name}: the model has no such dimension{hint}")
    unknown = list(dict.fromkeys(name for value in inputs for _, name in _open_axes(value)))
    if unknown:
        first = {name for value in inputs for axis, name in _open_axes(value) if axis == 0}
        by_batch = [name for name in unknown if name in first]
        hint = f" (or --batch SIZE for {listing(by_batch)})" if batch is None and by_batch else ""
        options = " ".join(f"--dim {name}=SIZE" for name in unknown)
        message = f"the sizes of these dimensions are unknown: {listing(unknown, 20)}; state {options}{hint}"
        raise DocumentError([Issue(message, (), file)])
    return changed


def sizes_text(batch: int | None, dims: Mapping[str, int]) -> list[str]:
    """Return the sizes of an import, as the `source` of its problem states them."""
    stated = [f"batch {batch}"] if batch is not None else []
    return stated + [f"{name} = {length}" for name, length in dims.items()]


def sizes_of(problem: Problem, batch: int | None, dims: Mapping[str, int] | None) -> tuple[int | None, dict[str, int]]:
    """Return the given sizes, or without any those that the source of the problem states: "..., batch 4, N = 3"."""
    if batch is not None or dims:
        return batch, dict(dims or {})
    found: dict[str, int] = {}
    for part in str(problem.provenance.get("source", "")).split(", ")[1:]:
        if match := re.fullmatch("batch ([1-9][0-9]{0,17})", part):
            batch = int(match[1])
        elif match := re.fullmatch("(.+) = ([1-9][0-9]{0,17})", part):
            found[match[1]] = int(match[2])
    return batch, found


def _axes(value: ValueInfoProto) -> Iterator[tuple[int, TensorShapeProto.Dimension]]:
    for shape in shapes(value.type):
        yield from enumerate(shape.dim)


def _is_fixed(dim: TensorShapeProto.Dimension) -> bool:
    return dim.HasField("dim_value") and dim.dim_value >= 0


def _open_axes(value: ValueInfoProto) -> Iterator[tuple[int, str]]:
    """Axes of unknown size with their names."""
    for axis, dim in _axes(value):
        if not _is_fixed(dim):
            yield axis, dim.dim_param or f"{value.name}[{axis}]"


def _batch_names(inputs: list[ValueInfoProto]) -> list[str]:
    """Names of the dimensions that hold the batch size.

    They are the symbolic first dimensions of the inputs; if these differ in name, those that are named like a batch.
    Without one, they are the first dimensions that equal that of the first input.
    """
    found = list(dict.fromkeys(name for value in inputs for axis, name in _open_axes(value) if axis == 0))
    stated = [name for name in found if not name.endswith("[0]")]
    if len(stated) > 1:
        like = [name for name in stated if "batch" in name.casefold() or name.casefold() in _BATCH]
        if len(like) != 1:
            raise UsageError(
                f"--batch: the first dimensions of the inputs have the names {listing(stated)}; state --dim NAME=SIZE"
            )
        found = [name for name in found if name.endswith("[0]")] + like
    if found:
        return found
    first = [(value.name, dim.dim_value) for value in inputs for axis, dim in _axes(value) if axis == 0]
    if not first:
        raise UsageError("--batch: no input of the model has a dimension")
    return [f"{name}[0]" for name, length in first if length == first[0][1]]
