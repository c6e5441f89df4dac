"""Generate the types of the keys that `po.Model` takes from the spec.

python docs/_pages/model_keys.py        # writes placeopt/orchestration/modelling/keys.py; a test compares both
"""

from __future__ import annotations

import keyword
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, PlainValidator, WithJsonSchema
from pydantic.fields import FieldInfo

from placeopt.io import spec
from placeopt.io.scalars import Of, Text, UnitOf

PAGE = Path(__file__).parents[2] / "placeopt" / "orchestration" / "modelling" / "keys.py"

NAMED = {name: getattr(spec, name) for name in ("Contention", "InFlight", "MemoryModel", "Metric", "NumberFormat")}
"""Types that the spec names."""

HEADER = '''"""Types of the keys of each part of a problem. Generated from the spec by docs/_pages/model_keys.py."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Required, TypedDict

import numpy as np

from placeopt.io.spec import NumberFormat
from placeopt.model.pipeline import InFlight
from placeopt.model.problem import Contention, MemoryModel, Metric
from placeopt.orchestration.modelling.parts import Device, Entries, Operation, Resource, Task

Number = float | Fraction | Decimal | np.integer[Any] | np.floating[Any]
Amount = str | Number
"""A number with its unit as text, or a number in the unit that `units` states."""


'''


def text() -> str:
    """The module: a class for each model of the spec, in the order of its file."""
    return HEADER + "\n\n".join(keys(model) for model in models())


def models() -> list[type[BaseModel]]:
    """The models that a problem consists of, in the order of the file."""
    found: set[type[BaseModel]] = {spec.Spec}
    waiting = list(found)
    while waiting:
        for inner in set(parts(get_type_hints(waiting.pop(), include_extras=True))) - found:
            found.add(inner)
            waiting.append(inner)
    return [each for each in vars(spec).values() if isinstance(each, type) and each in found]


def parts(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in annotation.values() if isinstance(annotation, dict) else get_args(annotation):
        yield from parts(inner)


def keys(model: type[BaseModel]) -> str:
    """The class with the keys of a model."""
    hints = get_type_hints(model, include_extras=True)
    entries = {field.alias or name: key_type(model, field, hints[name]) for name, field in model.model_fields.items()}
    if any(map(keyword.iskeyword, entries)):
        inner = "".join(f'        "{key}": "{value}",\n' for key, value in entries.items())
        start = f'{class_name(model)} = TypedDict(\n    "{class_name(model)}",\n'
        return f'{start}    {{\n{inner}    }},\n    total=False,\n)\n"""{model.__doc__}"""\n'
    base = model.__bases__[0]
    if issubclass(base, BaseModel) and base is not spec.Strict:
        entries = {key: value for key, value in entries.items() if key not in base.model_fields}
    parent = "TypedDict" if base is spec.Strict else class_name(base)
    lines = [f"class {class_name(model)}({parent}, total=False):", f'    """{model.__doc__}"""', ""]
    return "\n".join([*lines, *(f"    {key}: {value}" for key, value in entries.items())]) + "\n"


def class_name(model: type[BaseModel]) -> str:
    """TaskKeys for TaskSpec."""
    return "ProblemKeys" if model is spec.Spec else model.__name__.removesuffix("Spec") + "Keys"


def key_type(model: type[BaseModel], field: FieldInfo, hint: Any) -> str:
    """The type of a key; a model states the required keys of the problem one after another."""
    found = written(hint)
    return f"Required[{found}]" if field.is_required() and model is not spec.Spec else found


def written(hint: Any) -> str:
    """The type of what a document may have where the spec has this annotation."""
    named = next((name for name, known in NAMED.items() if hint == known), None)
    if named is not None:
        return named
    if get_origin(hint) is Annotated:
        return annotated(*get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return joined(get_args(hint))
    if get_origin(hint) is Literal:
        # Sorted, because `typing` may return an equal type in another order, which it has cached.
        return f"Literal[{', '.join(sorted(map(repr, get_args(hint))))}]".replace("'", '"')
    if get_origin(hint) is dict:
        key, value = map(written, get_args(hint))
        return f"Entries[{key}, {value}]"
    if get_origin(hint) is list:
        return f"Sequence[{written(*get_args(hint))}]"
    if issubclass(hint, BaseModel):
        return class_name(hint)
    return "None" if hint is types.NoneType else hint.__name__


def joined(hints: tuple[Any, ...]) -> str:
    """A union in one order, because `typing` caches equal ones; an amount includes text and numbers."""
    found = dict.fromkeys(part for hint in hints for part in split(written(hint)))
    if "Amount" in found:
        found = {part: None for part in found if part not in ("str", "Number")}
    return " | ".join(sorted(found, key=lambda part: (part == "None", "[" in part, part)))


def split(union: str) -> list[str]:
    """The members of a union, which may contain unions between brackets."""
    pieces, depth = [""], 0
    for word in union.split(" "):
        if word == "|" and not depth:
            pieces.append("")
        else:
            pieces[-1] += f" {word}" if pieces[-1] else word
            depth += word.count("[") - word.count("]")
    return pieces


def annotated(base: Any, *marks: Any) -> str:
    """The type before validation, where marks state one."""
    for mark in marks:
        if isinstance(mark, UnitOf):
            return "str"
        if isinstance(mark, Of):
            return "Amount"
        if isinstance(mark, Text):
            return "str" if mark.kind is None else f"{mark.kind.capitalize()} | str"
        if isinstance(mark, BeforeValidator) and get_origin(mark.json_schema_input_type) is not None:
            return written(mark.json_schema_input_type)
        if isinstance(mark, PlainValidator):
            schema = next(each.json_schema for each in marks if isinstance(each, WithJsonSchema))
            return "Amount" if "string" in str(schema) else "Number"
    return "Number" if base is float else written(base)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
