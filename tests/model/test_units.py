"""Quantities: what each unit is worth, exactly, and what is said about wrong ones."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.model import units
from placeopt.model.units import Dimension, Quantity, QuantityError, parse, shown, size_text, time_text


def outcome(value: object, dimension: Dimension) -> Quantity | str:
    """The quantity, or what is said instead."""
    try:
        return parse(value, dimension)
    except QuantityError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("0.1 s", units.TIME, Fraction(1, 10)),
        ("5 ms", units.TIME, Fraction(5, 1000)),
        ("10 us", units.TIME, Fraction(1, 100_000)),
        ("10 µs", units.TIME, Fraction(1, 100_000)),
        ("10 μs", units.TIME, Fraction(1, 100_000)),
        ("7ns", units.TIME, Fraction(7, 10**9)),
        ("2 min", units.TIME, 120),
        ("1.5 h", units.TIME, 5400),
        ("1e-3 s", units.TIME, Fraction(1, 1000)),
        ("+.5E+1 s", units.TIME, 5),
        ("5. s", units.TIME, 5),
        ("  1_000.5   ms ", units.TIME, Fraction(10005, 10_000)),
        ("3 B", units.MEMORY, 3),
        ("12 b", units.MEMORY, Fraction(3, 2)),
        ("12 bit", units.MEMORY, Fraction(3, 2)),
        ("12 bits", units.MEMORY, Fraction(3, 2)),
        ("1 byte", units.MEMORY, 1),
        ("9 bytes", units.MEMORY, 9),
        ("1 kB", units.MEMORY, 1000),
        ("1 KB", units.MEMORY, 1000),
        ("1 KiB", units.MEMORY, 1024),
        ("1 MB", units.MEMORY, 10**6),
        ("1 MiB", units.MEMORY, 2**20),
        ("1 Mb", units.MEMORY, 125_000),
        ("1 Mib", units.MEMORY, 2**17),
        ("1 Mbit", units.MEMORY, 125_000),
        ("1.5 GiB", units.MEMORY, 3 * 2**29),
        ("1 TB", units.PAYLOAD, 10**12),
        ("1 PiB", units.PAYLOAD, 2**50),
        ("12 GB/s", units.BANDWIDTH, 12 * 10**9),
        ("12 GiB/s", units.BANDWIDTH, 12 * 2**30),
        ("12 Gb/s", units.BANDWIDTH, 15 * 10**8),
        ("12 Gib/s", units.BANDWIDTH, 3 * 2**29),
        ("12 Gbit/s", units.BANDWIDTH, 15 * 10**8),
        ("12 Gbps", units.BANDWIDTH, 15 * 10**8),
        ("12 GBps", units.BANDWIDTH, 12 * 10**9),
        ("8 bps", units.BANDWIDTH, 1),
        ("29.8 Mb/s", units.BANDWIDTH, 3_725_000),
        ("3 FLOP", units.WORK, 3),
        ("3.8 GFLOP", units.WORK, 38 * 10**8),
        ("3.8 GFLOPs", units.WORK, 38 * 10**8),
        ("2 TOP", units.WORK, 2 * 10**12),
        ("14 TFLOP/s", units.SPEED, 14 * 10**12),
        ("14 TFLOPS", units.SPEED, 14 * 10**12),
        ("26 TOPS", units.SPEED, 26 * 10**12),
        ("250 W", units.POWER, 250),
        ("1.2 kW", units.POWER, 1200),
        ("30 mW", units.POWER, Fraction(3, 100)),
        ("60 pJ/B", units.ENERGY_PER_BYTE, Fraction(60, 10**12)),
        ("60 pJ/bit", units.ENERGY_PER_BYTE, Fraction(480, 10**12)),
        ("2 J/B", units.ENERGY_PER_BYTE, 2),
    ],
)
def test_units_have_their_exact_worth(text: str, dimension: Dimension, value: Fraction | int) -> None:
    assert parse(text, dimension) == Quantity(Fraction(value), bare=False)


@pytest.mark.parametrize(
    ("number", "value"),
    [(5, 5), (0, 0), (0.1, Fraction(1, 10)), ("5", 5), ("1e3", 1000), (1e-7, Fraction(1, 10**7)), ("-0", 0), (-0.0, 0),
     (np.int64(7), 7), (np.float64(0.1), Fraction(1, 10)), (10**30, 10**30), (1e300, 10**300),
     (np.float32(2), 2), (np.float32(0.1), Fraction(1, 10)), (np.float16(0.5), Fraction(1, 2)), (np.uint8(255), 255),
     (np.longdouble(3), 3), (Fraction(1, 3), Fraction(1, 3)), (Decimal("0.10"), Fraction(1, 10)), (Decimal(5), 5),
     (Decimal("1E+3"), 1000), ("1_000_000", 10**6)],
)  # fmt: skip
def test_bare_numbers_keep_their_decimal_value_and_have_no_unit(number: object, value: Fraction | int) -> None:
    assert parse(number, units.TIME) == Quantity(Fraction(value), bare=True)


@pytest.mark.parametrize(
    ("value", "dimension", "message"),
    [
        ("12 MB/s", units.MEMORY, '"12 MB/s" is a bandwidth; expected an amount of memory, such as 12 MiB'),
        ("12 MB", units.BANDWIDTH, '"12 MB" is an amount of memory; expected a bandwidth, such as 12 GB/s'),
        ("12 FLOP", units.SPEED, '"12 FLOP" is an amount of work; expected a speed, such as 14 TFLOP/s'),
        ("12 FLOPS", units.WORK, '"12 FLOPS" is a speed; expected an amount of work, such as 3.8 GFLOP'),
        ("12 s", units.PAYLOAD, '"12 s" is a time; expected an amount of data, such as 512 KiB'),
        ("12 J/B", units.POWER, '"12 J/B" is an energy per byte; expected a power, such as 250 W'),
        ("12 W", units.ENERGY_PER_BYTE, '"12 W" is a power; expected an energy per byte, such as 60 pJ/B'),
        ("12 gib", units.MEMORY, '"12 gib" has an unknown unit gib; expected an amount of memory, such as 12 MiB; '
                                 "did you mean GiB?"),
        ("1G", units.MEMORY, '"1G" has an unknown unit G; expected an amount of memory, such as 12 MiB; '
                             "did you mean GB or GiB?"),
        ("12 GBPS", units.BANDWIDTH, '"12 GBPS" has an unknown unit GBPS; expected a bandwidth, such as 12 GB/s; '
                                     "did you mean GBps or Gbps?"),
        ("12 parsec", units.WORK, '"12 parsec" has an unknown unit parsec; expected an amount of work, such as '
                                  "3.8 GFLOP"),
        ("", units.TIME, '"" is not a time; expected a time, such as 5 ms'),
        ("ms", units.TIME, '"ms" is not a time; expected a time, such as 5 ms'),
        ("٣ ms", units.TIME, '"٣ ms" is not a time; expected a time, such as 5 ms'),  # digits of another script
        ("1:30", units.TIME, '"1:30" is not a time; expected a time, such as 5 ms'),
        ("5\nms\x07", units.TIME, r'"5\nms\x07" has an unknown unit ms\x07; expected a time, such as 5 ms; '
                                  "did you mean ms?"),
        *((f"3 {unit}", units.TIME, f'"3 {unit}" has an unknown unit {unit}; expected a time, such as 5 ms; '
                                    f"did you mean {meant}?")
          for unit, meant in (("msec", "ms"), ("milliseconds", "ms"), ("usec", "us"), ("secs", "s"), ("mins", "min"))),
        ("-5 ms", units.TIME, '"-5 ms" is negative; expected a time, such as 5 ms'),
        (-5, units.TIME, "-5 is negative; expected a time, such as 5 ms"),
        (float("nan"), units.TIME, "nan is not finite; expected a time, such as 5 ms"),
        (float("-inf"), units.TIME, "-inf is not finite; expected a time, such as 5 ms"),
        ("1e401 s", units.TIME, '"1e401 s" is out of range; expected a time, such as 5 ms'),
        ("1e-401 s", units.TIME, '"1e-401 s" is out of range; expected a time, such as 5 ms'),
        (True, units.TIME, "true is not a time; expected one such as 5 ms"),
        (None, units.TIME, "null is not a time; expected one such as 5 ms"),
        ([5], units.TIME, "a list is not a time; expected one such as 5 ms"),
        ({}, units.MEMORY, "a mapping is not an amount of memory; expected one such as 12 MiB"),
        (3 + 1j, units.TIME, "(3+1j) is not a time; expected one such as 5 ms"),
        (np.bool_(True), units.TIME, "True is not a time; expected one such as 5 ms"),
        (np.float32("nan"), units.TIME, "nan is not finite; expected a time, such as 5 ms"),
        (Decimal("sNaN"), units.TIME, "sNaN is not finite; expected a time, such as 5 ms"),
        (Decimal("-Infinity"), units.TIME, "-Infinity is not finite; expected a time, such as 5 ms"),
        (Decimal("1e999999999"), units.TIME, '"1E+999999999" is out of range; expected a time, such as 5 ms'),
        (Fraction(-1, 3), units.TIME, "-1/3 is negative; expected a time, such as 5 ms"),
        ("1__0", units.TIME, '"1__0" is not a time; expected a time, such as 5 ms'),
        ("1_ ms", units.TIME, '"1_ ms" is not a time; expected a time, such as 5 ms'),
        ("1_.5 ms", units.TIME, '"1_.5 ms" is not a time; expected a time, such as 5 ms'),
        ("_1 ms", units.TIME, '"_1 ms" is not a time; expected a time, such as 5 ms'),
        ("1._5 ms", units.TIME, '"1._5 ms" is not a time; expected a time, such as 5 ms'),
        ("1/3 ms", units.TIME, '"1/3 ms" is not a time; expected a time, such as 5 ms'),
    ],
)  # fmt: skip
def test_wrong_quantities_are_told_what_they_are_and_what_was_expected(
    value: object, dimension: Dimension, message: str
) -> None:
    assert outcome(value, dimension) == message


def test_whole_numbers_too_long_to_write_have_a_message() -> None:
    message = "a number of thousands of digits is negative; expected a time, such as 5 ms"
    assert outcome(-(10**5000), units.TIME) == message


@pytest.mark.parametrize("digits", [401, 5000, 100_000])
def test_numbers_without_end_are_refused_at_once_and_shown_short(digits: int) -> None:
    with pytest.raises(QuantityError, match=r'^"9{80}\.\.\.9{7} ms" is out of range; expected a time, such as 5 ms$'):
        parse("9" * digits + " ms", units.TIME)
    assert parse("9" * 400, units.TIME).value == 10**400 - 1
    with pytest.raises(QuantityError, match=r'^"9{80}\.\.\.9{9}!" is not a time; expected a time, such as 5 ms$'):
        parse("9" * digits + "!", units.TIME)


def test_a_cached_text_has_its_own_meaning_in_each_dimension() -> None:
    assert parse("1", units.TIME) == parse(1, units.TIME) == parse("1", units.WORK)
    with pytest.raises(QuantityError, match=r"^true is not a time"):
        parse(True, units.TIME)
    assert parse("2 GB", units.PAYLOAD) == parse("2 GB", units.MEMORY)
    for _ in range(2):
        with pytest.raises(QuantityError, match=r'^"2 GB" is an amount of memory; expected a time'):
            parse("2 GB", units.TIME)


def test_every_unit_is_read_in_its_own_dimension_and_named_in_every_other() -> None:
    for own in units.DIMENSIONS:
        for unit, size in own.units.items():
            assert parse(f"2 {unit}", own) == parse(f"2{unit}", own) == Quantity(2 * size, bare=False)
            for other in units.DIMENSIONS:
                if unit not in other.units:
                    with pytest.raises(QuantityError, match=rf'^"2 {unit}" is an? .*; expected {other.article}, such'):
                        parse(f"2 {unit}", other)
        assert own.units[own.base] == 1
        assert not parse(own.example, own).bare


@settings(deadline=None)
@given(
    st.sampled_from(units.DIMENSIONS),
    st.sampled_from(["5", "+.5", "1_000.", "1e3", "-1", "1.2.3", "", "x", "٣", "5e", "1__0", "1_", "_1", "1._5"]),
    st.sampled_from(["", " ", "\t\n"]),
    st.sampled_from(["", *(unit for dimension in units.DIMENSIONS for unit in dimension.units), "gb", "s s", "%", "1"]),
)
def test_the_pattern_for_editors_allows_just_what_is_read(
    dimension: Dimension, number: str, space: str, unit: str
) -> None:
    text = number + space + unit
    assert bool(re.search(dimension.pattern, text)) == isinstance(outcome(text, dimension), Quantity)


@settings(deadline=None)
@given(st.decimals(min_value=0, max_value=10**15, allow_nan=False, allow_infinity=False, places=9))
def test_decimals_are_exact(number: Decimal) -> None:
    assert parse(f"{number:f} ms", units.TIME).value == Fraction(number) / 1000
    assert parse(f"{number:e}", units.TIME).value == Fraction(number)


@settings(deadline=None)
@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_floats_mean_the_decimal_they_are_shown_as(number: float) -> None:
    assert parse(number, units.TIME).value == Fraction(repr(number))


@settings(deadline=None)
@given(st.text(max_size=20), st.sampled_from(units.DIMENSIONS))
def test_any_text_is_a_quantity_or_a_quantity_error(text: str, dimension: Dimension) -> None:
    found = outcome(text, dimension)
    if isinstance(found, Quantity):
        assert found.value >= 0
    else:
        assert "expected" in found
        assert found.isprintable()


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (3 * 2**30, "3 GiB"), (2**52, "4096 TiB")],
)
def test_size_text(amount: int, text: str) -> None:
    assert size_text(amount) == text


@pytest.mark.parametrize(
    ("ticks", "resolution", "text"),
    [(0, Fraction(1), "0 s"), (12_500, Fraction(1, 10**6), "12.5 ms"), (1, Fraction(1, 10**9), "1 ns"),
     (1500, Fraction(1, 10**9), "1.5 us"), (90, Fraction(1), "90 s"), (1, Fraction(1, 10**12), "0.001 ns")],
)  # fmt: skip
def test_time_text(ticks: int, resolution: Fraction, text: str) -> None:
    assert time_text(ticks, resolution) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", '"a"'), (None, "null"), (True, "true"), (1.5, "1.5"), ([1], "a list"), ({}, "a mapping"),
     ("line\nbreak\t\u202e", r'"line\nbreak\t\u202e"'), ("x" * 101, f'"{"x" * 80}...{"x" * 10}"')],
)  # fmt: skip
def test_shown(value: object, text: str) -> None:
    assert shown(value) == text
