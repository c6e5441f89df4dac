"""Pages and problems for the tests of reports."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

import numpy as np

import placeopt as po
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.studies.comparison.records import Record
from placeopt.studies.comparison.result import Comparison

HOSTILE = (
    "<script>window.hacked = 1</script>", "</script><img src=x onerror='window.hacked=1'>", "<!--", "]]>",
    "\"quotes' & amp;",
    "${window.hacked = 1}", "line\u2028separator\u2029", "tab\tnew\nline\x00nul", "\u202egnp.exe", "snow ☃ 日本語 🦔",
    "\ud800 alone", "\\u003c/script>", "x" * 10_000, " ", "constructor", "__proto__",
)  # fmt: skip


def embedded(page: str) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The data of a page, and its arrays by name."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    packed = re.search(r'<script type="application/octet-stream" id="arrays">(.*?)</script>', page, re.S)
    assert text is not None
    assert packed is not None
    data = json.loads(text[1])
    buffer = zlib.decompress(base64.b64decode(packed[1]))
    kinds = {"u1": "u1", "u2": "<u2", "i4": "<i4", "f8": "<f8"}
    arrays = {
        name: np.frombuffer(buffer, kinds[part["kind"]], part["length"], part["offset"])
        for name, part in data["arrays"].items()
    }
    return data, arrays


def striped(tasks: int, devices: int, names: tuple[str, ...] | None = None) -> tuple[Problem, Schedule]:
    """Task i on device i mod `devices`, ten ticks long, a tick after the one before it there, which feeds it."""
    place = np.arange(tasks)
    problem = po.build_problem(
        name="striped",
        task_names=names or tuple(f"task {i}" for i in range(tasks)),
        device_names=tuple(f"device {d}" for d in range(devices)),
        duration=np.full((tasks, devices), 10),
        edges=np.stack((place[:-devices], place[devices:]), axis=1) if tasks > devices else (),
        resident=place % 7 * 1000,
        output=place % 5 * 500,
        capacity=np.full(devices, 10**9),
    )
    return problem, Schedule(place % devices, place // devices * 11)


def record(problem: str, solver: str, objective: int | None, **more: Any) -> Record:
    """A run that ended with this objective, or was killed."""
    result = None if objective is None else {
        "feasible": True, "objective": objective, "objective_levels": [objective], "objective_name": "makespan",
        "bound": 10, "bound_source": "load", "resolution": 1e-3, "termination": "completed", "violations": [],
        "message": "", "wall_time": {"solve": 0.5}, "devices": [],
    }  # fmt: skip
    given: dict[str, Any] = {
        "problem": problem, "file": None, "fingerprint": f"of {problem}", "solver": solver, "settings": {}, "seed": 0,
        "time_limit": None, "status": "done" if result else "killed", "message": "" if result else "ran too long",
        "result": result, "progress": ((0.1, 40.0, None), (0.4, objective, 10.0)) if objective else (), "slr": None,
        "peak_memory": None, "wall": 0.6,
    }  # fmt: skip
    return Record(**{**given, **more})


def comparison() -> Comparison:
    """Three solvers on two problems; one run was killed."""
    return Comparison((
        record("p1", "alpha", 30), record("p1", "beta", 20), record("p1", "gamma", None),
        record("p2", "alpha", 12), record("p2", "beta", 100), record("p2", "gamma", 12),
    ), expected=6)  # fmt: skip
