"""Types of single values in a document for pydantic and JSON Schema: amounts with units, numbers, names."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from placeopt.errors import suggestion
from placeopt.model import units
from placeopt.model.units import Amount, Dimension, Number, exact, is_number, is_whole

BARE, QUANTITY = "~bare", "~quantity"
"""Labels of the two forms of an amount in locations of pydantic errors."""


class Of:
    """Annotates an amount of one dimension.

    Whole numbers, most values of large files, are checked inside pydantic's core.
    """

    def __init__(self, dimension: Dimension) -> None:
        self._dimension = dimension

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        read = core_schema.no_info_plain_validator_function(lambda value: units.parse(value, self._dimension))
        bare = core_schema.int_schema(ge=0, strict=True)
        return core_schema.union_schema([(bare, BARE), (read, QUANTITY)], mode="left_to_right")

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        article, example = self._dimension.article, self._dimension.example
        return {
            "description": f"{article[0].upper()}{article[1:]}, such as {example}.",
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": self._dimension.pattern}],
            "examples": [example],
        }


class UnitOf(Of):
    """Annotates the unit of bare numbers of one dimension; its value is the unit's size in base units."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._size)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"enum": sorted(self._dimension.units)}

    def _size(self, value: Any) -> Fraction:
        if not isinstance(value, str) or value not in self._dimension.units:
            example = self._dimension.example.split()[1]
            near = suggestion(value, self._dimension.units) if isinstance(value, str) else ""
            raise ValueError(
                f"{units.shown(value)} is not a unit for {self._dimension.article}; "
                f"expected one such as {example}{near}"
            )
        return self._dimension.units[value]


EXTREME = 1e30
"""The largest weight, and the inverse of the smallest."""

_EXACT = re.compile(r"[0-9]{1,40}(/0{0,40}[1-9][0-9]{0,40}|(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?)")
"""A price as text: a whole number, a fraction, or a decimal."""


def _use(value: Any, what: str = "an amount") -> Fraction:
    if not is_number(value) or value < 0:
        raise ValueError(f"{units.shown(value)} is not {what}; expected a number that is not negative")
    return _moderate(value)


def _weight(value: Any) -> Fraction:
    return _use(value, "a weight")


def _price(value: Any) -> Fraction:
    exact_text = isinstance(value, str) and _EXACT.fullmatch(value)  # longer numbers would take time without end
    return _use(Fraction(value) if exact_text else value)


def _positive(value: Any) -> Fraction:
    if not is_number(value) or value <= 0:
        raise ValueError(f"expected a positive number, got {units.shown(value)}")
    return _moderate(value)


def _share(value: Any) -> Fraction:
    if not is_number(value) or not 0 < value <= 1:
        raise ValueError(f"{units.shown(value)} is not an efficiency; expected a number above 0 and at most 1")
    return _moderate(value)


def _allowance(value: Any) -> Fraction:
    stated = exact(value) if is_number(value) and 0 <= value <= 1 else None
    found = units.share(value) if isinstance(value, str) else stated
    if found is None:
        raise ValueError(f"{units.shown(value)} is not a share; expected a number from 0 to 1, or such as 1%")
    return found


def _moderate(value: Number) -> Fraction:
    """The exact number; beyond EXTREME and its inverse, floats of objectives would overflow."""
    if value and not 1 / EXTREME <= _near(value) <= EXTREME:
        raise ValueError(f"{units.shown(value)} is out of range; expected a number from {1 / EXTREME:g} to {EXTREME:g}")
    return exact(value)


def _number(value: Any) -> float:
    if not is_number(value):
        raise ValueError(f"expected a number, got {units.shown(value)}")
    near = _near(value)
    if not math.isfinite(near):
        raise ValueError(f"{units.shown(value)} is out of range")
    return near


def _near(value: Number) -> float:
    """The nearest float; infinity if the number is too large for floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _whole(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if is_number(value):  # a type that pydantic does not support
        whole = value if isinstance(value, Rational) else _near(value)
        if whole == whole // 1:
            return int(whole)
    raise ValueError(f"expected a whole number, got {units.shown(value)}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Named:
    """An object made in code that stands for its name, where a document refers to a part of its kind."""

    name: str
    kind: ClassVar[str]


def name_text(value: Any) -> Any:
    """A whole number or a named object as a name; any other value unchanged."""
    if isinstance(value, Named):
        return value.name
    if isinstance(value, str) or not is_whole(value):
        return value
    try:
        return str(value)
    except ValueError:  # too long for Python to print
        raise ValueError(f"expected a name, got {units.shown(value)}") from None


class Text:
    """Annotates a name: a text that is not empty, or a whole number, which becomes one.

    A name that refers to a part of the document states the kind of the part; in code, an object of this kind stands for
    it. Texts, most names of large files, are checked inside pydantic's core.
    """

    def __init__(self, kind: str | None = None) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.str_schema(min_length=1, strict=True)
        read = core_schema.no_info_before_validator_function(self._read, core_schema.str_schema(min_length=1))
        return core_schema.union_schema([(text, BARE), (read, QUANTITY)], mode="left_to_right")

    def _read(self, value: Any) -> Any:
        if isinstance(value, Named) and value.kind != self.kind:
            expected = "a name as text" if self.kind is None else _with_article(self.kind)
            raise ValueError(f"{units.shown(value.name)} is {_with_article(value.kind)}; expected {expected}")
        return name_text(value)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


Time = Annotated[Amount, Of(units.TIME)]
Memory = Annotated[Amount, Of(units.MEMORY)]
Payload = Annotated[Amount, Of(units.PAYLOAD)]
Bandwidth = Annotated[Amount, Of(units.BANDWIDTH)]
Work = Annotated[Amount, Of(units.WORK)]
Speed = Annotated[Amount, Of(units.SPEED)]
Power = Annotated[Amount, Of(units.POWER)]
EnergyPerByte = Annotated[Amount, Of(units.ENERGY_PER_BYTE)]
Name = Annotated[str, Text()]
TaskName = Annotated[str, Text("task")]
DeviceName = Annotated[str, Text("device")]
OperationName = Annotated[str, Text("operation")]
ResourceName = Annotated[str, Text("resource")]
Whole = Annotated[int, BeforeValidator(_whole, json_schema_input_type=int)]
NotNegative = Annotated[float, BeforeValidator(_number), Field(ge=0), WithJsonSchema({"type": "number", "minimum": 0})]
Version = Annotated[Literal[1], BeforeValidator(_whole, json_schema_input_type=Literal[1])]
Weight = Annotated[Fraction, PlainValidator(_weight), WithJsonSchema({"type": "number", "minimum": 0})]
Share = Annotated[
    Fraction, PlainValidator(_share), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
]
Allowance = Annotated[
    Fraction,
    PlainValidator(_allowance),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string"}]}),
]
Use = Annotated[Fraction, PlainValidator(_use), WithJsonSchema({"type": "number", "minimum": 0})]
Price = Annotated[
    Fraction, PlainValidator(_price), WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]})
]
Positive = Annotated[Fraction, PlainValidator(_positive), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
