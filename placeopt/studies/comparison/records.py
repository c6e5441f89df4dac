"""Define the record of a run as a line of JSON: the format shared by runs, ledgers, tables, plots and pages."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal, get_args

from placeopt.errors import visible
from placeopt.io.syntax import is_deeper
from placeopt.model.units import shown
from placeopt.protocol import Termination

Status = Literal["done", "refused", "crashed", "killed", "lost"]

STATUSES: tuple[Status, ...] = get_args(Status)

Key = tuple[str, str, str, int, float | None, int]
"""Fingerprint, solver, settings as JSON, seed, time limit, threads: a run with the same key is not repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The identity of a run of one solver on one problem. Times are in seconds."""

    problem: str
    """Name of the problem."""
    file: str | None
    """Path of the problem file as given, None for a problem made in code."""
    fingerprint: str
    """Hash of the problem."""
    solver: str
    """Name of the solver: "cp-sat"."""
    settings: Mapping[str, Any]
    """The given settings, checked; the others have the solver's defaults (see `Record.result`)."""
    seed: int
    time_limit: float | None
    """None for no limit."""
    threads: int = 1
    """Threads that the solver may use."""
    place: tuple[int, int] = (0, 0)
    """Indices of the problem and of the solver in the comparison; (0, 0) in older ledgers."""

    @property
    def key(self) -> Key:
        """The identity of this run for `--resume`."""
        settings = json.dumps(plain(self.settings), sort_keys=True)
        return self.fingerprint, self.solver, settings, self.seed, self.time_limit, self.threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Run):
    """The outcome of a run. Objective values are in the metric's unit (ticks), times in seconds.

    Attributes
    ----------
    status
        done: the run has a `result`, possibly without a schedule or with an infeasible one. refused: the solver does
        not support the problem, or is not installed. crashed: an exception, a dead process, or a claim that the
        verifier refutes. killed: the run exceeded its limit plus grace. lost: its worker died.
    message
        The reason of the status.
    result
        `Result.to_dict(plan=False)`; None unless done.
    progress
        (seconds, incumbent, bound) as reported by the solver.
    slr
        Schedule length ratio, see `placeopt.model.metrics.Metrics`; None without a schedule.
    peak_memory
        Bytes on the fullest device under the problem's memory model; `result["devices"]` holds all devices.
    wall
        Wall time of the whole run, including the start of its process and verification.
    """

    status: Status
    message: str
    result: Mapping[str, Any] | None
    progress: tuple[tuple[float, float | None, float | None], ...]
    slr: float | None
    peak_memory: int | None
    wall: float

    def __post_init__(self) -> None:
        # Thousands of records, read from other processes or a file, hold copies of the same texts.
        object.__setattr__(self, "result", _interned(self.result))

    def __repr__(self) -> str:
        value = "" if self.result is None else f", objective {self.result.get('objective')}"
        return f"<Record of {self.solver} on {visible(self.problem)}, seed {self.seed}: {self.status}{value}>"

    def to_json(self) -> str:
        """Return the record as one line of JSON, without the line end; the last key is a checksum of the others."""
        data = plain({each.name: getattr(self, each.name) for each in fields(self)})
        return _text(data | {CHECKSUM: checksum(data)})

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Parse a line; one that is not a complete record is a ValueError."""
        return cls.of(read_line(line))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Record:
        """Convert the object of a line; see `from_json`."""
        missing = [field.name for field in fields(cls) if field.name not in data and field.name not in _LATER]
        if missing:
            raise ValueError(f"no key {', '.join(missing)}")
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        check(known)
        place = tuple(known.get("place", (0, 0)))
        return cls(**known | {"progress": tuple(map(tuple, known["progress"])), "place": place})


CHECKSUM = "checksum"
"""Key of the checksum, which detects changed lines."""

DEEPEST = 50
"""Maximum nesting of a line; a record has seven levels."""

LARGEST, SMALLEST = 1e100, 1e-100
"""Range of positive numbers in a record: sums and ratios of such numbers do not overflow."""


def checksum(data: Mapping[str, Any]) -> str:
    """Return a hash of the data of a line without its checksum."""
    text = json.dumps({key: value for key, value in data.items() if key != CHECKSUM}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_line(line: str) -> dict[str, Any]:
    """Parse a line that holds a JSON object; anything else is a ValueError."""
    try:
        data = json.loads(line, parse_constant=_refuse, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise ValueError("holds a number of thousands of digits" if "digits" in str(error) else str(error)) from None
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, got {type(data).__name__}")
    if is_deeper(data, DEEPEST):
        raise ValueError("nested too deeply")
    if "\\ud" in line or "\\uD" in line:
        try:
            _text(data).encode()
        except UnicodeEncodeError:
            raise ValueError(r"\ud800 to \udfff are not characters, except in pairs") from None
    return data


def check(data: Mapping[str, Any]) -> None:
    """Check the fields of a record that are present; a wrong one is a ValueError."""
    _check_fields(data, _FIELDS, "")
    for point in data.get("progress", ()):
        check_point(point)
    result = data.get("result")
    if result is not None:
        missing = [name for name in _RESULT_FIELDS if name not in result and name not in _LATER]
        if missing:
            raise ValueError(f"no key result.{', '.join(missing)}")
        _check_fields(result, _RESULT_FIELDS, "result.")
        _check_fields(result["wall_time"], {"solve": _AMOUNT}, "result.wall_time.")


def check_point(point: Any) -> None:
    """Check a point of a record's progress; anything else is a ValueError."""
    valid = isinstance(point, list) and len(point) == 3 and point[0] is not None
    if not (valid and all(_AMOUNT.valid(value) for value in point)):
        raise ValueError(f"progress holds {_shown(point)}; expected [seconds, incumbent, bound]")


def _shown(value: Any) -> str:
    """Format a value for a message."""
    return shown(value) if not isinstance(value, list) else visible(str(value[:8]))


def _text(data: Any) -> str:
    return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} occurs twice")
    return found


@dataclass(frozen=True, slots=True)
class _Field:
    """The check of a field, and its description for messages."""

    expected: str
    valid: Callable[[Any], bool]


def _check_fields(data: Mapping[str, Any], known: Mapping[str, _Field], place: str) -> None:
    for name, field in known.items():
        if name in data and not field.valid(data[name]):
            raise ValueError(f"{place}{name} is {_shown(data[name])}; expected {field.expected}")


def _is_amount(value: Any) -> bool:
    """Return whether a value is 0 or a number from SMALLEST to LARGEST."""
    return type(value) in (int, float) and (value == 0 or SMALLEST <= value <= LARGEST)


def _whole(least: int, most: int) -> _Field:
    return _Field(
        f"a whole number from {least:,} to {most:,}", lambda value: type(value) is int and least <= value <= most
    )


def _optional(field: _Field) -> _Field:
    return _Field(f"{field.expected}, or null", lambda value: value is None or field.valid(value))


def _one_of(values: Sequence[str]) -> _Field:
    return _Field(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


def _is_broken_rule(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("rule", "message"))


_NAME = _Field("a text", lambda value: isinstance(value, str))
_LIST = _Field("a list", lambda value: isinstance(value, list))
_OBJECT = _Field("an object", lambda value: isinstance(value, dict))
_FLAG = _Field("true or false", lambda value: isinstance(value, bool))
_SECONDS = _Field("seconds", _is_amount)
_AMOUNT = _optional(_Field("a number that is not negative", _is_amount))

_FIELDS = {
    "problem": _NAME,
    "file": _optional(_NAME),
    "fingerprint": _NAME,
    "solver": _NAME,
    "settings": _OBJECT,
    "seed": _whole(0, 2**63),
    "time_limit": _AMOUNT,
    "threads": _whole(1, 2**20),
    "place": _Field(
        "the numbers of a problem and of a solver",
        lambda value: isinstance(value, list) and len(value) == 2 and all(map(_whole(0, 2**63).valid, value)),
    ),
    "status": _one_of(STATUSES),
    "message": _NAME,
    "result": _optional(_OBJECT),
    "progress": _LIST,
    "slr": _AMOUNT,
    "peak_memory": _optional(_whole(0, 2**63)),
    "wall": _SECONDS,
}

_LATER = ("threads", "place", "process_memory", "repeatable", "certificate")
"""Keys that lines of older versions lack."""

_RESULT_FIELDS = {
    "termination": _one_of([each.value for each in Termination]),
    "feasible": _optional(_FLAG),
    "violations": _Field(
        "a list of objects with rule and message",
        lambda value: isinstance(value, list) and all(map(_is_broken_rule, value)),
    ),
    "objective": _AMOUNT,
    "objective_levels": _optional(
        _Field("numbers", lambda value: isinstance(value, list) and bool(value) and all(map(_is_amount, value)))
    ),
    "objective_name": _NAME,
    "bound": _AMOUNT,
    "bound_source": _optional(_NAME),
    "resolution": _Field("seconds, more than 0", lambda value: _is_amount(value) and value > 0),
    "message": _NAME,
    "wall_time": _OBJECT,
    "process_memory": _optional(_whole(0, 2**63)),
    "repeatable": _optional(_FLAG),
    "certificate": _optional(
        _Field(
            "an object with the flag complete",
            lambda value: isinstance(value, dict) and isinstance(value.get("complete"), bool),
        )
    ),
}
"""The fields of a result that tables, plots and pages use."""


def _interned(value: Any) -> Any:
    """Return plain data whose equal texts are one object."""
    if type(value) is str:
        return sys.intern(value)
    if type(value) is dict:
        return {_interned(key): _interned(item) for key, item in value.items()}
    if type(value) is list:
        return [_interned(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """Convert a value to JSON data; the statistics of a third-party solver may hold any type."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()  # UTF-8 cannot encode lone surrogates
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real | Fraction):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return plain(value.tolist())
    return str(value)
