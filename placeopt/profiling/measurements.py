"""Read measurements of operators and of transfers from CSV files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.profiling.tables import Column, Table, amount, name, read_table, whole

Array = TypeVar("Array", Int, Float)

_NAME = Column("a name", name)
_BYTES = Column("a number of bytes, such as 3145728", amount)
_TIMES = {
    unit: (per_second, Column(f"a number of {unit}, such as {example}", amount, choice="time"))
    for unit, per_second, example in (
        ("seconds", 1, "0.0125"), ("milliseconds", 10**3, "12.5"), ("microseconds", 10**6, "134"),
        ("nanoseconds", 10**9, "5200"),
    )
}  # fmt: skip
_TIME_COLUMNS = {unit: column for unit, (_, column) in _TIMES.items()}
_OPERATOR_COLUMNS = {
    "operator": _NAME,
    "device": Column("a device's name or type", name, optional=True),
    "batch": Column("a batch size: a whole number of at least 1", whole),
    **_TIME_COLUMNS,
    "bytes": _BYTES,
    "output_bytes": Column(_BYTES.expected, amount, optional=True),
}
_TRANSFER_COLUMNS = {"bytes": _BYTES, **_TIME_COLUMNS}


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Measurements of operators in file order: r measurements of s series.

    A series is an operator on a device. All arrays are read-only.

    Attributes
    ----------
    series
        (s,) pairs of operator and device, in order of first appearance; the device is None if not stated.
    member
        (r,) series of each measurement.
    batch
        (r,) batch size.
    seconds
        (r,) duration.
    bytes
        (r,) memory of the operator, its output included.
    output_bytes
        (r,) size of its output; None if that was not measured.
    file
        Name of the file, for messages.
    ignored
        Unknown columns of the file.
    """

    series: tuple[tuple[str, str | None], ...]
    member: Int
    batch: Int
    seconds: Float
    bytes: Float
    output_bytes: Float | None = None
    file: str = ""
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TransferTimes:
    """Measured transfers: (r,) bytes and (r,) seconds, read-only."""

    bytes: Float
    seconds: Float
    file: str = ""
    ignored: tuple[str, ...] = ()


def read_measurements(path: str | Path) -> Measurements:
    """Read the measurements in a CSV file.

    Columns: `operator`, `batch`, a time (`milliseconds`, `seconds`, `microseconds` or `nanoseconds`) and `bytes`;
    optionally `device` and `output_bytes`.

    Raises
    ------
    DocumentError
        If the file cannot be read or is wrong; lists every issue with its line and column.
    """
    table = read_table(path, _OPERATOR_COLUMNS)
    columns = table.columns
    operators: list[str] = columns["operator"]
    devices = columns.get("device", [None] * len(operators))
    keys = list(zip(operators, devices, strict=True))
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return Measurements(
        tuple(number),
        _fixed(np.array([number[key] for key in keys], dtype=np.int64)),
        _fixed(np.array(columns["batch"], dtype=np.int64)),
        _seconds(table),
        _floats(columns["bytes"]),
        _floats(columns["output_bytes"]) if "output_bytes" in columns else None,
        str(path),
        table.ignored,
    )


def read_transfers(path: str | Path) -> TransferTimes:
    """Read the transfers in a CSV file with the columns `bytes` and a time, named as in `read_measurements`.

    Raises
    ------
    DocumentError
        If the file cannot be read or is wrong; lists every issue with its line and column.
    """
    table = read_table(path, _TRANSFER_COLUMNS)
    return TransferTimes(_floats(table.columns["bytes"]), _seconds(table), str(path), table.ignored)


def _seconds(table: Table) -> Float:
    unit = next(unit for unit in _TIMES if unit in table.columns)
    # Division by a whole number rounds once: 12.5 ms become the double nearest to 0.0125 s.
    return _fixed(np.array(table.columns[unit], dtype=np.float64) / _TIMES[unit][0])


def _floats(values: list[float]) -> Float:
    return _fixed(np.array(values, dtype=np.float64))


def _fixed(array: Array) -> Array:
    array.flags.writeable = False
    return array
