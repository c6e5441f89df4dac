"""The process that compiles kernels: reads a line of JSON per kernel, answers a line once it is in Numba's cache.

    {"kernel": "placeopt_solvers._local_search.walk:walk", "signature": "(...)", "fingerprint": "1f2e3d4c"}
    {"error": null}

The process ends at the end of its input, after the current kernel.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Compile the kernels requested on stdin."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            error = _compile(json.loads(line))
        except Exception as failure:  # noqa: BLE001  plain Python runs instead of the kernel
            error = f"{type(failure).__name__}: {failure}"
        try:
            answers.write(json.dumps({"error": error}) + "\n")
            answers.flush()
        except BrokenPipeError:  # the requesting process has ended
            return


def _compile(request: dict[str, Any]) -> str | None:
    """Compile a kernel; return an error, or None."""
    from placeopt.kernels import Kernel

    place, _, name = request["kernel"].partition(":")
    found = getattr(import_module(place), name, None)
    if not isinstance(found, Kernel) or found.fingerprint() != request["fingerprint"]:
        return f"{request['kernel']} is not the requested kernel"
    found.load(ast.literal_eval(request["signature"]))
    return None
