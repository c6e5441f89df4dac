"""Convert quantities to ticks, bytes and exact ratios, by the resolution and units of a document."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, cast

import numpy as np

from placeopt.errors import counted, path_text
from placeopt.io.compiler.issues import Issues
from placeopt.io.spec import UnitsSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Int
from placeopt.model.problem import COARSE, NANO, Rounding
from placeopt.model.ranges import LARGEST
from placeopt.model.units import Amount, Quantity, size_text, time_text

_ONE = Fraction(1)

TICKS = 10_000
"""Number of times without a unit beyond which a document certainly counts in ticks."""


_SMALL = 2**20
"""Bytes below which the memory of a device without a unit is probably meant in a larger unit."""


class _Kind(NamedTuple):
    """Unit that whole numbers count: a word, its key in `units`, and an example of a larger unit."""

    counted: str
    key: str
    example: str


_TICKS, _BYTES, _FLOP = _Kind("ticks", "time", "s"), _Kind("bytes", "memory", "MiB"), _Kind("FLOP", "work", "GFLOP")


def _value(amount: Amount) -> Fraction | int:
    return amount if isinstance(amount, int) else amount.value


def scaled(rate: Amount, factor: Fraction) -> Amount:
    """Return a rate times a factor, exactly."""
    return Quantity(_value(rate) * factor, bare=isinstance(rate, int) or rate.bare)


class Scales:
    """The length of a tick and the units of bare numbers in a document.

    Each method takes the path of the quantity and reports it if it is out of range, unless the scales are not `sound`.
    """

    def __init__(self, resolution: Fraction, units: UnitsSpec, issues: Issues, *, sound: bool = True) -> None:
        self.resolution = resolution
        self._units = units
        self._issues = issues
        self.sound = sound
        self._most: tuple[Fraction | float, Path] | None = None
        self._bits: dict[Path, Fraction] = {}
        """Bytes of the amounts in units such as Gb."""
        self._bare: dict[Path, int] = {}
        """Ticks of the times without a unit, which the document does not state for all of them."""
        self._with_unit = 0
        """Number of times with a unit."""
        self._rates = 0
        """Number of rates with a unit, which documents in ticks do not have."""
        self._small: dict[Path, int] = {}
        """Bytes of the capacities without a unit that are too small for a device."""
        self._sized = False
        """Whether some amount of memory has a unit."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about amounts that are probably meant otherwise: at most one each for bits, times, capacities."""
        notes = []
        if self._bits:
            size = size_text(math.ceil(next(iter(self._bits.values()))))
            notes.append(self._note(self._bits, f"is {size}, as b means bits; GB and GiB are bytes"))
        if 0 < len(self._bare) <= min(self._with_unit or self._rates, TICKS):
            ticks = next(iter(self._bare.values()))
            meant = f"{counted(ticks, 'tick')}, {time_text(ticks, self.resolution)}"
            timed = "another time has one" if self._with_unit == 1 else f"{self._with_unit:,} times have one"
            timed = timed if self._with_unit else "speeds or bandwidths have one"
            notes.append(self._note(self._bare, f"has no unit and means {meant}; {timed}"))
        if self._small and self._sized:
            meant = f"{next(iter(self._small.values()))} B"
            notes.append(self._note(self._small, f"has no unit and means {meant}; other amounts of memory have one"))
        return tuple(notes)

    def _note(self, amounts: Collection[Path], text: str) -> str:
        """Return a note about the first of some amounts, with its position and the number of the others."""
        path, *others = amounts
        more = f" ({len(others):,} more like this)" if others else ""
        return str(replace(self._issues.place(path), message=f"{self._issues.written(path)} {text}{more}"))

    @property
    def rounding(self) -> Rounding | None:
        """The most rounded time so far."""
        if self._most is None:
            return None
        share, path = self._most
        return Rounding(float(min(share, 10**300)), path_text(self._issues.existing(path)))

    def ticks(self, time: Amount, path: Path, *, counts: bool = True) -> int:
        """Return a time rounded up to whole ticks; `counts` is whether its rounding is reported."""
        return self._rounded(time, _TICKS, path, counts=counts)

    def ticks_rounded_down(self, time: Amount, path: Path) -> int:
        """Return a time rounded down to whole ticks, for deadlines."""
        return self._rounded(time, _TICKS, path, counts=True, up=False)

    def exact_ticks(self, time: Amount) -> Fraction | int:
        """Return a time in ticks, not rounded."""
        return self._amount(time, self._units.time, self.resolution)

    def size(self, amount: Amount, path: Path) -> int:
        """Return bytes, rounded up."""
        return self._rounded(amount, _BYTES, path)

    def sizes(self, amounts: Sequence[Amount], path: Callable[[int], Path]) -> Int:
        """Return bytes, rounded up, of many amounts; `path` returns the path of the one at an index."""
        return self._all_rounded(amounts, _BYTES, path)

    def capacity(self, amount: Amount, path: Path) -> int:
        """Return the bytes of a device, rounded down."""
        found = self._rounded(amount, _BYTES, path, up=False)
        bare = isinstance(amount, int) or amount.bare
        if bare and self._units.memory is None and 0 < found < _SMALL:
            self._small[path] = found
        return found

    def works(self, amounts: Sequence[Amount], path: Callable[[int], Path]) -> Int:
        """Return FLOP, rounded up, of many amounts; see `sizes`."""
        return self._all_rounded(amounts, _FLOP, path)

    def count_rounding(self, exact: Fraction | float, whole: int, path: Path) -> None:
        """Record that the time at a path, `exact` ticks, is rounded to `whole` ticks."""
        share = abs(whole - exact) / exact if exact else 0
        if share and (self._most is None or share > self._most[0]):
            self._most = share, path

    def bandwidth(self, rate: Amount, path: Path) -> tuple[int, int]:
        """Return (num, den): num ticks move den bytes."""
        return self._inverse(rate, self._units.bandwidth, path)

    def speed(self, rate: Amount, path: Path) -> tuple[int, int]:
        """Return (num, den): num ticks do den FLOP."""
        return self._inverse(rate, self._units.speed, path)

    def power(self, power: Amount, path: Path) -> tuple[int, int]:
        """Return (num, den): num nanojoules are spent in den ticks; a bare number is watts."""
        return self._ratio(_value(power) * NANO * self.resolution, path)

    def price(self, price: Fraction, path: Path) -> tuple[int, int]:
        """Return (num, den): num billionths are paid for den ticks of a device with this price of an hour."""
        return self._ratio(price * NANO * self.resolution / 3600, path)

    def energy(self, energy: Amount, path: Path) -> tuple[int, int]:
        """Return (num, den): num nanojoules move den bytes; a bare number is joules per byte."""
        return self._ratio(_value(energy) * NANO, path)

    def share(self, ratio: tuple[int, int], share: Fraction, path: Path) -> tuple[int, int]:
        """Return a ratio for bytes of which only a share moves; the path is that of the share."""
        return self._ratio(Fraction(*ratio) * share, path)

    @staticmethod
    def _amount(amount: Amount, unit: Fraction | None, size: Fraction = _ONE) -> Fraction | int:
        """Return the amount in multiples of `size`; a bare number is unchanged, unless the document states its unit."""
        if isinstance(amount, Quantity) and not amount.bare:
            return amount.value / size
        return _value(amount) if unit is None else _value(amount) * unit / size

    def _inverse(self, rate: Amount, unit: Fraction | None, path: Path) -> tuple[int, int]:
        if _value(rate) == 0:
            self._issues.add(f"{self._issues.written(path)} would never finish; expected a positive rate", path)
            return 0, 1
        if isinstance(rate, Quantity) and not rate.bare:
            self._rates += 1
            per_tick = rate.value * self.resolution
        else:
            per_tick = Fraction(_value(rate)) if unit is None else _value(rate) * unit * self.resolution
        return self._ratio(1 / per_tick, path)

    def _all_rounded(self, amounts: Sequence[Amount], kind: _Kind, path: Callable[[int], Path]) -> Int:
        """Return amounts rounded up; bare whole numbers, as in most large files, are not handled one by one."""
        bare = getattr(self._units, kind.key) is None and set(map(type, amounts)) <= {int}
        if bare and max(cast(Sequence[int], amounts), default=0) <= LARGEST:
            return np.array(amounts, dtype=np.int64)
        rounded = [self._rounded(amount, kind, path(place)) for place, amount in enumerate(amounts)]
        return np.array(rounded, dtype=np.int64)

    def _rounded(self, amount: Amount, kind: _Kind, path: Path, *, counts: bool = False, up: bool = True) -> int:
        """Return the amount in whole ticks, bytes or FLOP.

        A bare number that rounding would change much is reported: another unit was probably meant.
        """
        unit: Fraction | None = getattr(self._units, kind.key)
        self._count_units(amount, unit, kind, path)
        exact = self._amount(amount, unit, self.resolution if kind is _TICKS else _ONE)
        if isinstance(exact, int) or exact.denominator == 1:
            whole = int(exact)
        else:
            whole = math.ceil(exact) if up else math.floor(exact)
            bare = unit is None and isinstance(amount, Quantity) and amount.bare
            if bare and abs(whole - exact) > COARSE * exact:
                self._report(
                    f"counts {kind.counted}, as it has no unit, and would be rounded {'up' if up else 'down'} to "
                    f"{whole}; write a unit ({float(exact)} {kind.example}), or state one for all such numbers "
                    f"(units: {{{kind.key}: {kind.example}}})",
                    path,
                )
            elif counts:
                self.count_rounding(exact, whole, path)
        if whole > LARGEST:
            self._report(f"is more than 2^60 {kind.counted}, out of range", path)
            return 0
        return whole

    def _count_units(self, amount: Amount, unit: Fraction | None, kind: _Kind, path: Path) -> None:
        """Record an amount in bits, a time with a unit, and a time that has none; 0 needs no unit."""
        if isinstance(amount, Quantity) and not amount.bare:
            self._with_unit += kind is _TICKS
            self._sized |= kind is _BYTES
            if amount.bits:
                self._bits[path] = amount.value
        elif kind is _TICKS and unit is None and len(self._bare) <= TICKS and (ticks := int(_value(amount))):
            self._bare[path] = ticks

    def _report(self, message: str, path: Path) -> None:
        """Report a quantity, unless the scales are not sound."""
        if self.sound:
            self._issues.add(f"{self._issues.written(path)} {message}", path)

    def _ratio(self, ratio: Fraction | int, path: Path) -> tuple[int, int]:
        """Numerator and denominator whose product is below 2**62, so that 64-bit arithmetic is exact.

        Nearly all ratios of stated quantities fit unchanged; others are replaced by the nearest that fits.
        """
        if ratio.numerator * ratio.denominator < 2**62:
            return ratio.numerator, ratio.denominator
        if not Fraction(1, 2**55) < ratio < 2**55:
            self._report("is out of range for this resolution", path)
            return 0, 1
        near = Fraction(ratio).limit_denominator(math.isqrt(int(2**60 / Fraction(ratio))))
        return near.numerator, near.denominator
