"""The record: one run of one solver on one problem, as a line of JSON.

It is the one format between runs, ledgers, tables, pictures and pages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal, get_args

Status = Literal["done", "refused", "crashed", "killed", "lost"]

STATUSES: tuple[Status, ...] = get_args(Status)


Key = tuple[str, str, str, int, float | None, int]
"""Fingerprint, solver, settings as JSON, seed, time limit, threads: runs of one key need no repeating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one solver on one problem: what tells it from others. Times are seconds.

    Attributes
    ----------
    problem
        Name.
    file
        Path as it was given, None for a problem made in code.
    fingerprint
        Hash of the problem.
    solver
        Name: "cp-sat".
    settings
        Settings that were asked for, checked; those left out have the solver's own defaults (see `Record.result`).
    seed
        Of the run.
    time_limit
        None for none.
    threads
        That the solver may use.
    place
        Numbers of its problem and of its solver in the comparison that ran it; (0, 0) in ledgers without it.
    """

    problem: str
    file: str | None
    fingerprint: str
    solver: str
    settings: Mapping[str, Any]
    seed: int
    time_limit: float | None
    threads: int = 1
    place: tuple[int, int] = (0, 0)

    @property
    def key(self) -> Key:
        """What tells this run from others."""
        return (
            self.fingerprint, self.solver, settings_text(self.settings), self.seed, self.time_limit, self.threads,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Run):
    """What came of a run. Objective values are in the metric's unit (ticks), times in seconds.

    Attributes
    ----------
    status
        done: it ended with a `result`, which may well hold no schedule or an infeasible one. refused: the solver does
        not support the problem, or is not installed. crashed: an exception, a dead process, or a claim that the
        verifier refutes. killed: ran past its limit plus grace. lost: its worker died.
    message
        Why, for people.
    result
        `Result.to_dict(plan=False)`; None unless done.
    progress
        (seconds, incumbent, bound) as the solver told them.
    slr
        Schedule length ratio, see `placeopt.metrics.Metrics`; None without a schedule.
    peak_memory
        Bytes on the fullest device, under the problem's memory model; `result["devices"]` has them all.
    wall
        Seconds of the whole run, as seen from outside: with the start of its process and with verification.
    """

    status: Status
    message: str
    result: Mapping[str, Any] | None
    progress: tuple[tuple[float, float | None, float | None], ...]
    slr: float | None
    peak_memory: int | None
    wall: float

    def to_json(self) -> str:
        """The record as one line of JSON, without the line's end."""
        return json.dumps(plain(asdict(self)), allow_nan=False, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record of a line.

        Raises
        ------
        ValueError
            If the line is no record, or only the beginning of one.
        """
        data = read_line(line)
        missing = [field.name for field in fields(cls) if field.name not in data and field.name not in _LATER]
        if missing:
            raise ValueError(f"no key {', '.join(missing)}")
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        check(known)
        place = tuple(known.get("place", (0, 0)))
        return cls(**known | {"progress": tuple(map(tuple, known["progress"])), "place": place})


def read_line(line: str) -> dict[str, Any]:
    """The object that a line of JSON holds.

    Raises
    ------
    ValueError
        If it holds none.
    """
    try:
        data = json.loads(line, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, got {type(data).__name__}")
    return data


def check(data: Mapping[str, Any]) -> None:
    """Check those of a record's fields that are there.

    Raises
    ------
    ValueError
        If one is not as it should be: says which.
    """
    _check_kinds(data, _KINDS, "")
    if data.get("status", STATUSES[0]) not in STATUSES:
        raise ValueError(f"status is {data['status']!r}; expected one of {', '.join(STATUSES)}")
    place = data.get("place", [0, 0])
    if not (len(place) == 2 and all(type(number) is int for number in place)):
        raise ValueError(f"place is {place!r}; expected the numbers of a problem and of a solver")
    for point in data.get("progress", ()):
        check_point(point)
    result = data.get("result")
    if result is not None:
        missing = [name for name in _RESULT_KINDS if name not in result]
        if missing:
            raise ValueError(f"no key result.{', '.join(missing)}")
        _check_kinds(result, _RESULT_KINDS, "result.")
        _check_kinds(result["wall_time"], {"solve": _NUMBER}, "result.wall_time.")
        levels = result["objective_levels"]
        if levels is not None and not (levels and all(isinstance(value, int | float) for value in levels)):
            raise ValueError(f"result.objective_levels is {levels!r}; expected numbers")
        if not result["resolution"] > 0:
            raise ValueError(f"result.resolution is {result['resolution']!r}; expected seconds, more than 0")
        if not all(
            isinstance(broken, dict) and {"rule", "message"} <= broken.keys() for broken in result["violations"]
        ):
            raise ValueError("result.violations is not a list of a rule and a message each")


def check_point(point: Any) -> None:
    """Check a point of a record's progress.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not (
        isinstance(point, list)
        and len(point) == 3
        and isinstance(point[0], int | float)
        and all(isinstance(value, _NUMBER) for value in point)
    ):
        raise ValueError(f"progress holds {point!r}; expected [seconds, incumbent, bound]")


def _check_kinds(data: Mapping[str, Any], kinds: Mapping[str, Any], place: str) -> None:
    for name, kind in kinds.items():
        if name in data and not isinstance(data[name], kind):
            raise ValueError(f"{place}{name} is {data[name]!r}")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


_NUMBER = int | float | None

_KINDS: dict[str, Any] = {
    "problem": str,
    "file": str | None,
    "fingerprint": str,
    "solver": str,
    "settings": dict,
    "seed": int,
    "time_limit": _NUMBER,
    "message": str,
    "result": dict | None,
    "progress": list,
    "slr": _NUMBER,
    "peak_memory": int | None,
    "wall": int | float,
    "threads": int,
    "place": list,
}

_LATER = ("threads", "place")
"""Keys that lines of older versions do not have."""

_RESULT_KINDS: dict[str, Any] = {
    "termination": str,
    "feasible": bool | None,
    "violations": list,
    "objective": _NUMBER,
    "objective_levels": list | None,
    "objective_name": str,
    "bound": _NUMBER,
    "bound_source": str | None,
    "resolution": int | float,
    "message": str,
    "wall_time": dict,
}
"""Of a result what tables, pictures and pages read."""


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings as JSON, the same for the same settings."""
    return json.dumps(plain(settings), sort_keys=True)


def plain(value: Any) -> Any:
    """The value as JSON can hold it: what a solver of somebody else's put into its statistics may be anything."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()  # lone surrogates, which UTF-8 has no bytes for
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
