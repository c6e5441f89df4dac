"""Checks of the caller's arrays, since compiled code indexes with them unchecked; a base class for records of arrays.

Each check returns an array that nothing else can change, or raises a UsageError that names the argument, the first
wrong entry, its value and what was expected. A read-only array of the right type, such as one of another problem, is
returned itself, others are copied: a large table is stored once. All checks are vectorised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import UsageError, listing, suggestion, visible
from placeopt.model.units import exact, is_number, is_whole

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
Float = NDArray[np.float64]

LARGEST = 2**63 - 1

LONGEST = 10**9
"""The largest time limit; engines count nanoseconds in 64 bits."""


def by_index(combine: np.ufunc, index: Int, values: Any, size: int, start: int = 0) -> Int:
    """(size, ...) the values (k, ...) combined with `start` by their index (k,), such as sums of np.add."""
    found = np.full((size, *np.shape(values)[1:]), start, dtype=np.int64)
    combine.at(found, index, values)
    return found


def inverse(permutation: Int) -> Int:
    """(n,) the position of each index in a permutation (n,)."""
    position = np.empty_like(permutation)
    position[permutation] = np.arange(len(permutation))
    return position


def csr(size: int, pairs: Int) -> tuple[Int, Int]:
    """Distinct pairs (p, 2) by their first number, as CSR: start (size + 1,) and the second numbers."""
    distinct = np.unique(pairs, axis=0)
    start = np.searchsorted(distinct[:, 0], np.arange(size + 1)).astype(np.int64)
    return start, np.ascontiguousarray(distinct[:, 1])


def whole_numbers(
    name: str,
    values: Any,
    shape: tuple[int, ...] | None,
    axes: str,
    *,
    default: int | None = None,
    least: int | None = 0,
    most: int | None = None,
    where: Bool | None = None,
) -> Int:
    """A C-contiguous int64 array of the given shape; filled with `default` if `values` is None.

    Parameters
    ----------
    shape
        None for any shape.
    axes
        Meaning of the axes, for messages: "tasks x devices".
    least, most
        Range of the entries; None for no limit other than 64 bits.
    where
        Entries to keep; the others become 0.
    """
    if values is None and default is not None and shape is not None:
        # Pages of zeros take no memory until they are written.
        return np.full(shape, default, dtype=np.int64) if default else np.zeros(shape, dtype=np.int64)
    given = _array(name, values, shape, axes)
    if given.dtype.kind not in "biuf" and not (given.dtype == object and _all_integers(given)):
        raise UsageError(f"{name}: holds {given.dtype}; expected whole numbers")
    masked = False
    if where is not None and not where.all() and given[~where].any():
        given, masked = np.where(where, given, 0), True
    if given.dtype.kind == "f":
        # NaN compares false with everything, and 2^63 is the first float beyond 64 bits.
        sound = (np.abs(given) < 2.0**63) & (np.floor(given) == given)
        _raise_first(name, given, ~sound, "a whole number of 64 bits")
    elif given.dtype == object or given.dtype.kind == "u":
        beyond = given > LARGEST if given.dtype != object else (given > LARGEST) | (given < -LARGEST)
        _raise_first(name, given, beyond, "a whole number of 64 bits")
    # Always in C order, which the engine reads.
    array: Int = (np.asarray if masked or _is_fixed(given) else np.array)(given, dtype=np.int64, order="C")
    if least is not None and array.size and int(array.min()) < least:
        _raise_first(name, array, array < least, _range(least, most))
    if most is not None and array.size and int(array.max()) > most:
        _raise_first(name, array, array > most, _range(least, most))
    return array


def flags(name: str, values: Any, shape: tuple[int, ...], axes: str, *, default: bool) -> Bool:
    """A boolean array of the given shape; filled with `default` if `values` is None."""
    if values is None:
        return np.full(shape, default, dtype=np.bool_)
    given = _array(name, values, shape, axes)
    if given.dtype.kind not in "biuf":
        raise UsageError(f"{name}: holds {given.dtype}; expected truth values")
    if given.dtype.kind != "b":
        _raise_first(name, given, (given != 0) & (given != 1), "true or false, or 1 or 0")
    return (np.asarray if _is_fixed(given) else np.array)(given, dtype=np.bool_, order="C")


def task_pairs(name: str, values: Any, n: int) -> Int:
    """(k, 2) pairs of tasks, each from 0 to n - 1."""
    if not isinstance(values, Iterable):
        raise UsageError(f"{name} is {values!r}; expected pairs of tasks")
    listed = values if isinstance(values, (np.ndarray, Sequence)) else list(values)
    rows = len(listed) if isinstance(listed, Sequence) or listed.ndim else 0
    given = whole_numbers(name, listed, (rows, 2), "pairs x 2 tasks", least=None)
    if given.size and not (int(given.min()) >= 0 and int(given.max()) < n):
        row = int(np.flatnonzero(((given < 0) | (given >= n)).any(axis=1))[0])
        left, right = given[row].tolist()
        raise UsageError(f"{name}[{row}] is ({left}, {right}); expected {_tasks(n)}")
    return given


def names(name: str, values: Any, *, count: int | None = None, unique: bool = False) -> tuple[str, ...]:
    """A tuple of names; `count` requires their number, `unique` that no name repeats."""
    if not isinstance(values, Iterable):
        raise UsageError(f"{name} is {values!r}; expected a list of names")
    found = tuple(values)
    if not set(map(type, found)) <= {str}:
        at = next(at for at, each in enumerate(found) if type(each) is not str)
        if not isinstance(found[at], str):
            raise UsageError(f"{name}[{at}] is {found[at]!r}; expected a name, a text")
        found = tuple(map(str, found))  # NumPy strings, which YAML cannot write
    if count is not None and len(found) != count:
        raise UsageError(f"{name}: {len(found)} names; expected {count}")
    if unique and len(set(found)) < len(found):
        first: dict[str, int] = {}
        at = next(at for at, each in enumerate(found) if first.setdefault(each, at) != at)
        raise UsageError(
            f'{name}[{at}] is "{visible(found[at])}", and so is {name}[{first[found[at]]}]; expected each name once'
        )
    return found


def checked_number(name: str, value: Any, *, positive: bool = False) -> float | None:
    """Return a finite number that is positive, or not negative; None stays None."""
    if value is None:
        return None
    if not is_number(value) or not (value > 0 if positive else value >= 0):
        wanted = "positive" if positive else "not negative"
        raise UsageError(f"{name} is {value!r}; expected a finite number that is {wanted}")
    if value > LONGEST:
        raise UsageError(f"{name} is {value}; expected at most {LONGEST:,} (seconds of thirty years), or none")
    return float(value)


def checked_share(name: str, value: Any) -> Fraction:
    """Return a share from 0 to 1 as a fraction; a float has its decimal value."""
    if not is_number(value) or not 0 <= value <= 1:
        raise UsageError(f"{name} is {value!r}; expected a share from 0 to 1, such as 0.01")
    return exact(value)


def checked_whole(name: str, value: Any, least: int, most: int = 2**31 - 1) -> int:
    """Return an integer of Python or NumPy that is within a range."""
    if not is_whole(value) or not least <= value <= most:
        raise UsageError(f"{name} is {value!r}; expected a whole number from {least} to {most}")
    return int(value)


def checked_call(name: str, value: Any) -> None:
    """Reject a callback that cannot be called; None is allowed."""
    if value is not None and not callable(value):
        raise UsageError(f"{name} is {value!r}; expected a function, or None")


def abbreviated(values: NDArray[Any]) -> str:
    """Return the first and last entries of an array on one line."""
    entries = list(map(str, values.ravel()[: 3 if values.size > 8 else None].tolist()))
    if values.size > 8:
        entries += ["...", *map(str, values.ravel()[-3:].tolist())]
    return f"[{' '.join(entries)}]"


def choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Reject a value that is not one of the known words."""
    if value not in known:
        raise UsageError(f"{name} is {value!r}; expected {listing(known, 20)}{suggestion(str(value), known)}")


def _array(name: str, values: Any, shape: tuple[int, ...] | None, axes: str) -> NDArray[Any]:
    """The values as an array of the shape; an empty array may have any shape if no entries are expected."""
    expected = "an array" if shape is None else f"{shape}: {axes}"
    try:
        given = np.asarray(values)
    except ValueError:
        raise UsageError(f"{name}: has rows of different lengths; expected {expected}") from None
    if shape is None or given.shape == shape:
        return given
    if given.size == 0 and 0 in shape:
        return np.zeros(shape, dtype=np.int64)
    raise UsageError(f"{name}: has shape {given.shape}; expected {expected}")


def _is_fixed(given: NDArray[Any]) -> bool:
    """Whether the array is read-only and owns its data."""
    return not given.flags.writeable and given.base is None


def _all_integers(given: NDArray[Any]) -> bool:
    return all(isinstance(each, (int, np.integer)) for each in given.flat)


def _raise_first(name: str, given: NDArray[Any], wrong: NDArray[np.bool_], expected: str) -> None:
    """Raise a UsageError that names the first wrong entry, if there is one."""
    wrong = np.asarray(wrong, dtype=np.bool_)
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise UsageError(f"{name}[{', '.join(map(str, place))}] is {given[place]}; expected {expected}")


def _range(least: int | None, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return f"at most {most}" if least is None else f"{least} to {most}"


def _tasks(n: int) -> str:
    return f"two tasks, each from 0 to {n - 1}" if n else "none, as there are no tasks"


def freeze(*values: object) -> None:
    """Make arrays read-only; other values are left as they are."""
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


class Record:
    """Base class of data classes with arrays: equal if all fields are, and not hashable."""

    __slots__ = ()

    def parts(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        others = other.parts()
        return all(np.array_equal(value, others[name]) for name, value in self.parts().items())

    __hash__ = None  # type: ignore[assignment]
