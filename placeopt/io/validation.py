"""Validate a document as a pydantic model: list all structural issues and return the sound parts.

Pydantic's errors are reworded, with near misses and positions in the file. Faulty parts are then removed and the rest
is validated again, so that one misspelt key does not hide the other errors.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from placeopt.errors import DocumentError, Issue, Search, SpecError, in_file_order, listing, meaning
from placeopt.io.document import Document
from placeopt.io.scalars import BARE, QUANTITY
from placeopt.io.syntax import Path
from placeopt.model.units import excerpt, shown

Model = TypeVar("Model", bound=BaseModel)

_ATTEMPTS = 5
_VERSIONS = {"placeopt": "problem", "placeopt_plan": "plan"}
KINDS = _VERSIONS | {"placeopt_certificate": "certificate", "placeopt_buffers": "buffer"}
"""Kinds of files by the keys that only they have."""
_PLANS = {"tasks": "tasks", "tokens_per_second": "a serving problem"}
"""What a plan file is a plan of, by keys that only such plan files have."""
_KINDS = {"GraphFile": "graph", "NetworkFile": "network", "ProfileFile": "profile"}
"""Kinds of files that have the version of a problem file, by their models."""
_MARKS = ("placeopt", "placeopt_plan", "placeopt_certificate", "placeopt_buffers", "devices", "tasks", "links", "graph")
"""Keys by which problem, graph, plan, network and profile files are recognised: each file has one of them."""
_CHARACTER, _TASK = 20, 2500
"""Bytes of memory that the model needs per character of a file, and per task at least."""
_FORMS = {BARE: ("int_", "greater_", "string_"), QUANTITY: ("value_error", "string_")}
_KEY = {"[key]": ("string_", "literal_")}
_EXPECTED = {
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "a name",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "finite_number": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}


@dataclass(frozen=True, slots=True)
class Validated(Generic[Model]):
    """A model of the sound parts of a document (None if there are none), and the issues with the rest."""

    model: Model | None
    issues: tuple[Issue, ...]


def valid(document: Document, model: type[Model], error: type[DocumentError] = SpecError) -> Model:
    """Return the document as a `model`; raises an `error` that lists every issue, in file order, if it is not valid."""
    checked = validate(document, model)
    if checked.model is None or checked.issues:
        raise error(in_file_order(checked.issues))
    return checked.model


def validate(document: Document, model: type[Model]) -> Validated[Model]:
    """Validate the document as a `model`; list every structural issue."""
    data = document.data
    if not isinstance(data, dict):
        what = "is empty" if data is None else f"holds {excerpt(data)}"
        return Validated(None, (document.issue(f"the document {what}; expected a mapping", ()),))
    if data and document.file is not None and not _is_ours(data):
        # Its content may be secret: an untrusted spec may have named this file.
        message = f"this is not a placeopt file: its first key is {excerpt(next(iter(data)))}"
        return Validated(None, (document.issue(f"{message}; expected {listing(_MARKS)}", ()),))
    for key, what in _VERSIONS.items():
        # Other issues of another kind of file, or of a later version, would mislead.
        other = next((kind for name, kind in KINDS.items() if name != key and name in data), None)
        if key in model.model_fields and key not in data and other is not None:
            expected = _KINDS.get(model.__name__, what)
            message = f"{key} is missing: this looks like a {other} file, expected a {expected} file"
            return Validated(None, (document.issue(message, ()),))
        if key in model.model_fields and isinstance(data.get(key), int) and data[key] > 1:
            return Validated(None, (document.issue(_version_message(data[key]), (key,)),))
    foreign = [key for key in _PLANS if key in data and key not in model.model_fields]
    if foreign and "placeopt_plan" in model.model_fields:
        expected = next(what for key, what in _PLANS.items() if key in model.model_fields)
        message = f"this is a plan of {_PLANS[foreign[0]]}; expected a plan of {expected}"
        return Validated(None, (document.issue(message, (foreign[0],), at_key=True),))
    _reserve(document)
    pruned = _Pruned({key: value for key, value in data.items() if not isinstance(key, str) or key[:2] != "x-"})
    issues: dict[object, Issue] = dict(enumerate(document.faults))
    search = Search()
    faulty = {(fault.line, fault.column) for fault in document.faults}
    for attempt in range(_ATTEMPTS):
        try:
            return Validated(model.model_validate(pruned.data), tuple(issues.values()))
        except ValidationError as error:
            details = list(_reported(error))
        misspelt = _misspelt(model, details, search)
        for detail in details:
            # A key may be missing because it was cut or misspelt, and a list short; that is not reported.
            cut = attempt > 0 or detail["loc"] in misspelt
            if not (cut and detail["type"] in ("missing", "too_short")):
                issue = _issue(document, model, detail, search)
                if issue.line is None or (issue.line, issue.column) not in faulty:
                    issues[issue.path, issue.message] = issue
        if not pruned.cut(details):
            break
    return Validated(None, tuple(issues.values()))


def _is_ours(data: dict[str, Any]) -> bool:
    """Whether a mapping has a key by which files are recognised, perhaps misspelt: taks counts, services does not."""
    first = islice(map(str, data), 100)
    return any(mark in data for mark in _MARKS) or any(get_close_matches(key, _MARKS, 1, 0.85) for key in first)


def _reserve(document: Document) -> None:
    """Raise a MemoryError if the model does not fit into memory: pydantic's core would end the process."""
    tasks = document.data.get("tasks")
    needed = len(document.text or "") * _CHARACTER + (len(tasks) * _TASK if isinstance(tasks, dict) else 0)
    try:
        mmap.mmap(-1, max(needed, 1)).close()  # address space only: no page is touched
    except OSError:
        raise MemoryError from None


def _reported(error: ValidationError) -> Iterator[ErrorDetails]:
    """The errors, without labels of forms; of the two forms of an amount or a name, only the second is reported."""
    for detail in error.errors(include_url=False):
        form = _label(detail, _FORMS)
        if form == QUANTITY:
            yield {**detail, "loc": detail["loc"][:-1]}
        elif form is None:
            yield detail


def _label(detail: ErrorDetails, labels: Mapping[str, tuple[str, ...]]) -> str | None:
    """The label that pydantic appends to an error's path, if it is one of these with their types of errors."""
    last = str(detail["loc"][-1]) if detail["loc"] else ""
    # A task may have the name of a label, but errors of tasks are of other types.
    return last if last in labels and detail["type"].startswith(labels[last]) else None


def _plain(detail: ErrorDetails) -> Path:
    """The path of an error in the document."""
    return detail["loc"][:-1] if _label(detail, _KEY) else detail["loc"]


class _Pruned:
    """A copy-on-write view of a document's data, from which faulty parts are removed."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self._owned = {id(data)}

    def cut(self, details: Sequence[ErrorDetails]) -> bool:
        """Remove the parts with errors; False if an error concerns the whole document."""
        document = Document(self.data)
        paths = [document.existing(_plain(detail)) for detail in details]
        cuts = [self._cut(detail, path) for detail, path in zip(details, paths, strict=True)]
        return all(cuts)

    def _cut(self, detail: ErrorDetails, path: Path) -> bool:
        version = detail["loc"][0]
        if version in _VERSIONS:
            self.data[str(version)] = 1
            return True
        # Removing one item of a list would shift the others.
        while path and isinstance(path[-1], int):
            path = path[:-1]
        if not path:
            return False
        holder = self._own(path[:-1])
        if holder is None:  # already removed
            return True
        keep_name = len(path) == 2 and path[0] in ("tasks", "devices", "operations")
        if keep_name and detail["type"] != "missing" and not _label(detail, _KEY):
            holder[path[-1]] = {}
        else:
            holder.pop(path[-1], None)
        return True

    def _own(self, path: Path) -> Any:
        """The mapping or list at a path, copied if shared; None if it was removed."""
        holder: Any = self.data
        for part in path:
            if isinstance(holder, dict) and part not in holder:
                return None
            inner = holder[part]
            if id(inner) not in self._owned:
                inner = inner.copy()
                self._owned.add(id(inner))
                holder[part] = inner
            holder = inner
        return holder


def _misspelt(model: type[BaseModel], details: Sequence[ErrorDetails], search: Search) -> set[Path]:
    """Locations of missing keys that an unknown key next to them probably means."""
    return {
        (*detail["loc"][:-1], meant)
        for detail in details
        if detail["type"] == "extra_forbidden"
        for meant in search.near_misses("key", str(detail["loc"][-1]), _keys(model, detail["loc"][:-1]))
    }


def _issue(document: Document, model: type[BaseModel], detail: ErrorDetails, search: Search) -> Issue:
    kind, value, path = detail["type"], detail["input"], _plain(detail)
    if kind == "extra_forbidden":
        known = _keys(model, path[:-1])
        hint = meaning(search.near_misses("key", str(path[-1]), known)) or f"; known are {listing(sorted(known), 20)}"
        return document.issue(f"unknown key{hint}", path, at_key=True)
    if kind == "missing":
        holder = document.existing(path)
        return document.issue(f"{path[-1]} is missing", holder, at_key=True)
    message = _message(kind, value, path, detail.get("ctx", {}), search) or f"{shown(value)}: {detail['msg']}"
    return document.issue(message, path, at_key=bool(_label(detail, _KEY)) or kind == "invalid_key")


def _message(kind: str, value: Any, path: Path, context: dict[str, Any], search: Search) -> str | None:
    """The error and what was expected; None for unexpected kinds of errors."""
    if path in [(key,) for key in _VERSIONS]:
        return _version_message(value)
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        choices = context["expected"].replace("'", "")
        known = choices.replace(" or ", ", ").split(", ")
        near = search.near_misses(choices, str(value), known) if isinstance(value, str) else ()
        return f"{shown(value)} is unknown; expected {choices}{meaning(near)}"
    if kind == "too_short":
        return f"expected at least {_entries(context['min_length'])}"
    if kind == "too_long":
        return f"expected at most {_entries(context['max_length'])}"
    if kind == "string_too_short":
        return "a name needs at least one character"
    if kind in ("greater_than_equal", "less_than_equal"):
        least = kind == "greater_than_equal"
        limit = f"at least {context['ge']}" if least else f"at most {context['le']}"
        return f"{shown(value)} is too {'small' if least else 'large'}; expected {limit}"
    if kind == "invalid_key":
        return f"a key must be text, not {shown(value)}"
    expected = _EXPECTED.get(kind)
    if kind == "string_type" and path[-1] in ("description", "source"):
        expected = "text"
    if kind == "list_type":
        expected = (
            "a list"
            if path[-1] in ("overrides", "transfers", "objective", "tiers", "unavailable")
            else "a list of names"
        )
    return None if expected is None else f"expected {expected}, got {shown(value)}"


def _version_message(value: Any) -> str:
    return f"{shown(value)} is not a version of the format that this placeopt reads; expected 1"


def _entries(count: int) -> str:
    return f"{count} entr{'y' if count == 1 else 'ies'}"


def _keys(model: type[BaseModel], location: Path) -> tuple[str, ...]:
    """The keys that a document may have at a location."""
    for part in location:
        for name, field in model.model_fields.items():
            if part in (name, field.alias):
                model = next(_models(field.annotation), model)
                break
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation, at any depth: dict[str, TaskSpec] contains TaskSpec."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
