"""Measurements of operators and of transfers, from CSV files or from the traces of a profiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from placeopt.errors import UsageError, listing
from placeopt.model.arrays import Float, Int

Array = TypeVar("Array", Int, Float)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Whole runs of a model in a trace, in order of their starts; both arrays are read-only."""

    batch: int
    seconds: Float
    """(k,) duration of each run."""
    operators: Float
    """(k,) sum of the durations of the operators in each run."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Measurements of operators in file order: r measurements of s series.

    A series is an operator on a device. All arrays are read-only.
    """

    series: tuple[tuple[str, str | None], ...]
    """(s,) pairs of operator and device, in order of first appearance; the device is None if not stated."""
    member: Int
    """(r,) series of each measurement."""
    batch: Int
    """(r,) batch size."""
    seconds: Float
    """(r,) duration."""
    bytes: Float | None
    """(r,) memory of the operator, its output included; None if that was not measured."""
    output_bytes: Float | None = None
    """(r,) size of its output; None if that was not measured."""
    file: str = ""
    """Name of the file, or of several files, for messages."""
    ignored: tuple[str, ...] = ()
    """Unknown columns of the file."""
    runs: tuple[Runs, ...] = ()
    """Whole runs, one entry for each trace that contains them."""
    notes: tuple[str, ...] = ()
    """What a trace cannot state: one sentence each."""

    @classmethod
    def of(
        cls,
        keys: Sequence[tuple[str, str | None]],
        batch: ArrayLike,
        seconds: ArrayLike,
        bytes: ArrayLike | None = None,
        output_bytes: ArrayLike | None = None,
        *,
        file: str = "",
        ignored: tuple[str, ...] = (),
        runs: tuple[Runs, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Measurements:
        """Return measurements from the (operator, device) pair and the values of each."""
        number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        return cls(
            tuple(number),
            fixed(np.array([number[key] for key in keys], dtype=np.int64)),
            fixed(np.array(batch, dtype=np.int64)),
            fixed(np.array(seconds, dtype=np.float64)),
            None if bytes is None else fixed(np.array(bytes, dtype=np.float64)),
            None if output_bytes is None else fixed(np.array(output_bytes, dtype=np.float64)),
            file,
            ignored,
            runs,
            notes,
        )


@dataclass(frozen=True, slots=True, eq=False)
class TransferTimes:
    """Measured transfers: (r,) bytes and (r,) seconds, read-only."""

    bytes: Float
    seconds: Float
    file: str = ""
    ignored: tuple[str, ...] = ()


def combined(parts: Sequence[Measurements]) -> Measurements:
    """Return the measurements of several files as one, in the given order.

    Raises a UsageError if only some of the files state memory, or the size of outputs.
    """
    if len(parts) == 1:
        return parts[0]
    for column in ("bytes", "output_bytes"):
        lacking = [part.file for part in parts if getattr(part, column) is None]
        if 0 < len(lacking) < len(parts):
            raise UsageError(f"{listing(lacking)}: no {column}, unlike the other files; fit them separately")

    def joined(column: str) -> Float | None:
        columns = [getattr(part, column) for part in parts]
        return None if not columns or columns[0] is None else np.concatenate(columns)

    return Measurements.of(
        [part.series[place] for part in parts for place in part.member.tolist()],
        np.concatenate([part.batch for part in parts]),
        np.concatenate([part.seconds for part in parts]),
        joined("bytes"),
        joined("output_bytes"),
        file=listing([part.file for part in parts]),
        ignored=tuple(dict.fromkeys(name for part in parts for name in part.ignored)),
        runs=tuple(each for part in parts for each in part.runs),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def fixed(array: Array) -> Array:
    """Return the array, made read-only."""
    array.flags.writeable = False
    return array
