"""From a document to a validated model: every structural issue in our words, and what is left to work with.

Pydantic says what is wrong; here it is put in the words of the field, with the near miss and the place in the
file. What is wrong is then cut out and the rest validated again, so that one misspelt key does not
hide the mistakes in the rest of the file.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from placeopt.document import Document
from placeopt.errors import Issue, listing, suggestion
from placeopt.spec import BARE, QUANTITY
from placeopt.units import shown

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]

_ATTEMPTS = 5
_EXPECTED = {
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list of names",
    "string_type": "a name",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
}


@dataclass(frozen=True, slots=True)
class Validated(Generic[Model]):
    """A model made of the sound parts of a document (None if nothing is), and the issues with the rest."""

    model: Model | None
    issues: tuple[Issue, ...]


def validate(document: Document, model: type[Model]) -> Validated[Model]:
    """The document as a `model`, with every structural issue."""
    data = document.data
    if not isinstance(data, dict):
        what = "is empty" if data is None else f"holds {_kind(data)}"
        issue = document.issue(f"the document {what}; expected a mapping", ())
        return Validated(None, (issue,))
    data = {key: value for key, value in data.items() if not key.startswith("x-")}
    issues: dict[object, Issue] = dict(enumerate(document.faults))
    for attempt in range(_ATTEMPTS):
        try:
            return Validated(model.model_validate(data), tuple(issues.values()))
        except ValidationError as error:
            if attempt == 0:
                data = copy.deepcopy(data)
            details = error.errors(include_url=False)
        details = [detail for detail in details if BARE not in detail["loc"]]
        for detail in details:
            # Short forms were widened on the way: go only as far as the document itself does.
            path = document.existing(_plain(detail["loc"]))
            issue = _issue(document, model, detail, path)
            issues[issue.path, issue.message] = issue
        left = Document(data)
        cuts = [_cut(data, detail, left.existing(_plain(detail["loc"]))) for detail in details]
        if not all(cuts):
            break
    return Validated(None, tuple(issues.values()))


def _plain(location: Path) -> Path:
    """An error's location without the marks that pydantic adds to the keys of the document."""
    return tuple(part for part in location if part not in ("[key]", QUANTITY))


def _cut(data: Any, detail: ErrorDetails, path: Path) -> bool:
    """Cut a faulty part out of `data`; False if nothing sensible would remain."""
    if detail["type"] == "missing" and not path:
        if detail["loc"] != ("placeopt",):
            return False
        data["placeopt"] = 1
        return True
    if path == ("placeopt",):
        data["placeopt"] = 1
        return True
    while path:
        parent = data
        for part in path[:-1]:
            parent = parent[part]
        if isinstance(parent, dict):
            if len(path) == 2 and path[0] in ("tasks", "devices", "operations"):
                parent[path[-1]] = {}  # the name stays known
            else:
                parent.pop(path[-1], None)
            return True
        path = path[:-1]  # cutting one item out of a list would shift the others
    return False


def _issue(document: Document, model: type[BaseModel], detail: ErrorDetails, path: Path) -> Issue:
    kind, value, location = detail["type"], detail["input"], detail["loc"]
    if kind == "extra_forbidden":
        known = _keys(model, location[:-1])
        near = suggestion(str(location[-1]), known)
        message = f"unknown key{near}" if near else f"unknown key; known are {listing(sorted(known), 20)}"
        return document.issue(message, path, at_key=True)
    if kind == "missing":
        known_name = location[-1]
        return document.issue(f"{known_name} is missing", path, at_key=True)
    if kind == "value_error":
        return document.issue(str(detail["ctx"]["error"]), path)
    if location == ("placeopt",):
        return document.issue(f"{shown(value)} is no version of the format that this placeopt reads; expected 1", path)
    if kind == "literal_error":
        choices = detail["ctx"]["expected"].replace("'", "")
        near = suggestion(str(value), choices.replace(" or ", ", ").split(", "))
        return document.issue(f"{shown(value)} is unknown{near}; expected {choices}", path, at_key="[key]" in location)
    if kind == "too_short":
        fewest = detail["ctx"]["min_length"]
        return document.issue(f"expected at least {fewest} entr{'y' if fewest == 1 else 'ies'}", path)
    if kind == "too_long":
        return document.issue(f"expected at most {detail['ctx']['max_length']} entries", path)
    if kind == "greater_than_equal":
        return document.issue(f"{shown(value)} is too small; expected at least {detail['ctx']['ge']}", path)
    if kind == "less_than_equal":
        return document.issue(f"{shown(value)} is too large; expected at most {detail['ctx']['le']}", path)
    expected = _EXPECTED.get(kind)
    if expected is None:
        return document.issue(f"{shown(value)}: {detail['msg']}", path)
    return document.issue(f"expected {expected}, got {_kind(value)}", path)


def _kind(value: Any) -> str:
    return "nothing" if value is None else shown(value)


def _keys(model: type[BaseModel], location: Path) -> list[str]:
    """The keys that a document may have at a location."""
    for part in location:
        for name, field in model.model_fields.items():
            if part in (name, field.alias):
                model = next(_models(field.annotation), model)
                break
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation mentions, at any depth: dict[str, TaskSpec] gives TaskSpec."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
