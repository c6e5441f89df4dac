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


@dataclass(frozen=True, slots=True)
class Record:
    """One run of one solver on one problem. Objective values are in the metric's unit (ticks), times in seconds.

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
        Settings that were asked for, checked; those left out have the solver's own defaults (see `result`).
    seed
        Of the run.
    time_limit
        Seconds, None for none.
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
    threads
        That the solver might use.
    """

    problem: str
    file: str | None
    fingerprint: str
    solver: str
    settings: Mapping[str, Any]
    seed: int
    time_limit: float | None
    status: Status
    message: str
    result: Mapping[str, Any] | None
    progress: tuple[tuple[float, float | None, float | None], ...]
    slr: float | None
    peak_memory: int | None
    wall: float
    threads: int = 1

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
        data = json.loads(line)
        if not isinstance(data, dict):
            raise ValueError(f"expected an object, got {type(data).__name__}")
        missing = [field.name for field in fields(cls) if field.name not in data and field.name != "threads"]
        if missing:
            raise ValueError(f"no key {', '.join(missing)}")
        for name, kind in _KINDS.items():
            if not isinstance(data.get(name, 1 if name == "threads" else None), kind):
                raise ValueError(f"{name} is {data[name]!r}")
        if data["status"] not in STATUSES:
            raise ValueError(f"status is {data['status']!r}; expected one of {', '.join(STATUSES)}")
        told = data.pop("progress")
        if not all(isinstance(point, list) and len(point) == 3 for point in told):
            raise ValueError("progress is not a list of [seconds, incumbent, bound]")
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in data.items() if name in names}
        return cls(**known, progress=tuple((point[0], point[1], point[2]) for point in told))


_KINDS: dict[str, Any] = {
    "problem": str,
    "file": str | None,
    "fingerprint": str,
    "solver": str,
    "settings": dict,
    "seed": int,
    "time_limit": int | float | None,
    "message": str,
    "result": dict | None,
    "progress": list,
    "slr": int | float | None,
    "peak_memory": int | None,
    "wall": int | float,
    "threads": int,
}


def plain(value: Any) -> Any:
    """The value as JSON can hold it: what a solver of somebody else's put into its statistics may be anything."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real | Fraction):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return plain(value.tolist())
    return str(value)
