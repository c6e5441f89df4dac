"""Quantities with units, such as "12 GB/s", "3 MiB" and "10 us", as exact fractions of base units.

Bits differ from bytes, and FLOP from FLOP/s: a unit of another dimension is an error that states what the text means
and what was expected. Numbers keep their decimal value ("0.1 s" is exactly one tenth of a second), so that rounding to
ticks never depends on floats.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational, Real
from typing import TypeGuard

import numpy as np

from placeopt.errors import meaning, suggestion, visible


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """A dimension: its name in messages, its units in base units, and an example."""

    name: str
    article: str
    example: str
    units: dict[str, Fraction]
    base: str

    @property
    def pattern(self) -> str:
        """A regular expression for the texts of such quantities, for JSON Schema."""
        return rf"^\s*\+?{_NUMBER}\s*({'|'.join(sorted(self.units))})?\s*$"


_NUMBER = r"([0-9]+(_[0-9]+)*(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


_DECIMAL = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}


def _scaled(suffixes: dict[str, Fraction]) -> dict[str, Fraction]:
    units = {}
    for suffix, size in suffixes.items():
        units.update({prefix + suffix: size * 10**power for prefix, power in _DECIMAL.items()})
    return units


def _bytes() -> dict[str, Fraction]:
    units = _scaled({"B": Fraction(1), "b": Fraction(1, 8), "bit": Fraction(1, 8)})
    for prefix, power in _BINARY.items():
        units[prefix + "B"] = Fraction(2**power)
        units[prefix + "b"] = units[prefix + "bit"] = Fraction(2**power, 8)
    for word in ("byte", "bytes"):
        units[word] = Fraction(1)
    units["bits"] = Fraction(1, 8)
    return units


_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),  # micro sign
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "sec": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
_SIZES = _bytes()
_WORK = _scaled({"FLOP": Fraction(1), "FLOPs": Fraction(1), "flop": Fraction(1), "OP": Fraction(1)})

TIME = Dimension("time", "a time", "5 ms", _SECONDS, "s")
MEMORY = Dimension("amount of memory", "an amount of memory", "12 MiB", _SIZES, "B")
PAYLOAD = Dimension("amount of data", "an amount of data", "512 KiB", _SIZES, "B")
BANDWIDTH = Dimension(
    "bandwidth",
    "a bandwidth",
    "12 GB/s",
    {f"{unit}/s": size for unit, size in _SIZES.items()}
    | {unit.replace("bit", "b") + "ps": size for unit, size in _SIZES.items() if unit.endswith(("B", "b", "bit"))},
    "B/s",
)
WORK = Dimension("amount of work", "an amount of work", "3.8 GFLOP", _WORK, "FLOP")
SPEED = Dimension(
    "speed",
    "a speed",
    "14 TFLOP/s",
    {f"{unit}/s": size for unit, size in _WORK.items()}
    | {prefix + unit: Fraction(10**power) for prefix, power in _DECIMAL.items() for unit in ("FLOPS", "OPS")},
    "FLOP/s",
)
POWER = Dimension("power", "a power", "250 W", _scaled({"W": Fraction(1)}) | {"mW": Fraction(1, 1000)}, "W")
ENERGY_PER_BYTE = Dimension(
    "energy per byte",
    "an energy per byte",
    "60 pJ/B",
    {
        f"{prefix}J/{unit}": Fraction(1, 10**power) / size
        for prefix, power in {"": 0, "m": 3, "u": 6, "n": 9, "p": 12}.items()
        for unit, size in {"B": Fraction(1), "b": Fraction(1, 8), "bit": Fraction(1, 8)}.items()
    },
    "J/B",
)
# "0.2 TFLOPS" is a speed, "0.2 TFLOPs" an amount of work: the order decides what a wrong unit means in messages.
DIMENSIONS = (TIME, MEMORY, PAYLOAD, BANDWIDTH, WORK, SPEED, POWER, ENERGY_PER_BYTE)

_QUANTITY = re.compile(rf"\s*(?P<number>[+-]?{_NUMBER})\s*(?P<unit>[^\W\d_].*?)?\s*")

_PREFIXES = {"": "", "m": "m", "milli": "m", "u": "u", "micro": "u", "n": "n", "nano": "n"}
_SECOND = re.compile(rf"({'|'.join(_PREFIXES)})s(?:ec(?:ond)?)?s?")

_LONGEST = 400
"""Maximum number of digits of a number and largest power of ten; more would be slow to parse."""


class QuantityError(ValueError):
    """A text or number is not a valid quantity of the expected dimension; the message says why."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact, non-negative amount.

    `value` is in base units (seconds, bytes, bytes per second, FLOP, FLOP per second, watts, joules per byte), or, if
    `bare`, a number in the unit that the document chooses.
    """

    value: Fraction
    bare: bool
    bits: bool = field(default=False, compare=False)
    """Whether the unit is one of bits that is easily confused with bytes, such as Gb."""


Amount = int | Quantity
"""An amount in a spec: a bare whole number, or a quantity."""


Number = int | float | Fraction | Decimal
"""Python numbers; NumPy numbers are accepted as well."""


def is_real(value: object) -> TypeGuard[Number]:
    """Whether a value of a document is a number, including nan and infinities."""
    # np.timedelta64 is registered as an integer.
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.timedelta64)


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value of a document is a finite number."""
    if not is_real(value) or isinstance(value, Decimal):
        return isinstance(value, Decimal) and value.is_finite()
    return isinstance(value, Rational) or math.isfinite(value)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value of a document is an integer of Python or NumPy."""
    return isinstance(value, Integral) and is_real(value)


def share(text: str) -> Fraction | None:
    """The share between 0 and 1 that a text such as 0.05 or 5% states; None if it states none."""
    digits, percent, rest = text.strip().partition("%")
    try:
        number = float(digits)
    except ValueError:
        return None
    whole = 100 if percent else 1
    return exact(number) / whole if not rest and 0 <= number <= whole else None


def exact(number: Number) -> Fraction:
    """A number as a fraction; a float counts as its shortest decimal, and one that is too small for floats as 0."""
    if isinstance(number, Integral) or not number:  # the text of 1e-999999999 would take time without end
        return Fraction(int(number))
    return number if isinstance(number, Fraction) else Fraction(str(number))


def parse(value: object, dimension: Dimension) -> Quantity:
    """Parse a number or a text as a quantity.

    Raises a QuantityError if it is not a quantity, negative, not finite, or of another dimension.
    """
    if isinstance(value, str):
        return _parse_text(value, dimension)
    if not is_real(value):
        raise QuantityError(f"{shown(value)} is not {dimension.article}; expected one such as {dimension.example}")
    if not is_number(value):
        raise QuantityError(f"{shown(value)} is not finite; {_expected(dimension)}")
    if value < 0:
        raise QuantityError(f"{shown(value)} is negative; {_expected(dimension)}")
    if isinstance(value, Rational):
        return Quantity(exact(value), bare=True)
    return _parse_text(str(value), dimension)


@lru_cache(maxsize=1 << 17)
def _parse_text(text: str, dimension: Dimension) -> Quantity:
    expected = _expected(dimension)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise QuantityError(f"{shown(text)} is not {dimension.article}; {expected}")
    number, unit = match["number"].replace("_", ""), match["unit"]
    exponent = re.split("[eE]", number)[1:]
    if len(number) > _LONGEST or (exponent and abs(int(exponent[0])) > _LONGEST):
        raise QuantityError(f"{shown(text)} is out of range; {expected}")
    value = Fraction(number)
    if value < 0:
        raise QuantityError(f"{shown(text)} is negative; {expected}")
    if unit is None:
        return Quantity(value, bare=True)
    size = dimension.units.get(unit)
    if size is not None:
        return Quantity(value * size, bare=False, bits=dimension.units is _SIZES and unit.endswith("b"))
    meaning = next((other for other in DIMENSIONS if unit in other.units), None)
    if meaning is not None:
        raise QuantityError(f"{shown(text)} is {meaning.article}; {expected}")
    raise QuantityError(f"{shown(text)} has an unknown unit {visible(unit)}; {expected}{_likely(unit, dimension)}")


def _likely(unit: str, dimension: Dimension) -> str:
    """A clause with the units that may be meant: ms for `msec`; of an amount, GB and GiB for `G`, and never bits."""
    word = _SECOND.fullmatch(unit.casefold()) if dimension is TIME else None
    if word is not None:
        return meaning([f"{_PREFIXES[word[1]]}s"])
    if dimension.units is not _SIZES:
        return suggestion(unit, dimension.units)
    names = [name for name in dimension.units if not name.endswith(("b", "bit", "bits"))]
    folded = (f"{unit}b".casefold(), f"{unit}ib".casefold())
    return meaning([name for name in names if name.casefold() in folded]) or suggestion(unit, names)


def _expected(dimension: Dimension) -> str:
    return f"expected {dimension.article}, such as {dimension.example}"


def shown(value: object) -> str:
    """A value for a message: texts in quotes, everything else as in YAML."""
    if isinstance(value, str):
        return f'"{visible(value)}"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    try:
        return visible(str(value))
    except ValueError:  # Python does not print whole numbers of more than 4300 digits
        return "a number of thousands of digits"


def excerpt(value: object) -> str:
    """The first characters of a value in an unknown file, for a message: the rest may be secret."""
    text = shown(value)
    return text if len(text) <= 16 or isinstance(value, list | dict) else f'"{visible(str(value)[:12])}..."'


def size_text(amount: int) -> str:
    """Bytes as text: 1.5 GiB."""
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.4g} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def two_sizes(need: int, room: int) -> tuple[str, str]:
    """Two amounts of memory as text, in bytes if they would otherwise look equal."""
    texts = size_text(need), size_text(room)
    return texts if texts[0] != texts[1] else (f"{need} B", f"{room} B")


def exact_size(amount: int) -> str:
    """Format bytes, with the exact number if the text is rounded."""
    text = size_text(amount)
    return text if parse(text, MEMORY).value == amount else f"{text} ({amount:,} B)"


_TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


def time_text(ticks: float, resolution: Fraction) -> str:
    """Ticks as text in a suitable unit: 12.5 ms."""
    return seconds_text(float(ticks) * float(resolution), 5)


def seconds_text(seconds: float, digits: int) -> str:
    """Seconds as text in a suitable unit, with at most this number of digits: 12.5 ms."""
    if seconds == 0:
        return "0 s"
    unit, size = next((each for each in _TIME_UNITS if seconds >= each[1]), ("ns", 1e-9))
    return f"{seconds / size:.{digits}g} {unit}"
