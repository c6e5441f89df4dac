"""Measure the wall time of complete commands.

    python benchmarks/commands.py

    placeopt --help                          shell completion, or a typing error
    heft on problems/inception.yaml, cold    first result after installation, without caches
    heft on problems/inception.yaml          the same command with caches
    heft on 36,000 tasks from JSON, cold     without caches
    heft on 36,000 tasks from JSON           reading, compiling, solving, bounding and verifying, with caches

The large instance is `placeopt generate layered` with 36,000 tasks on 4 devices, seed 0. Each cold run uses a new
copy of the packages without byte code. Times are medians of 5 runs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
RUNS = 5


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Wall time of one command."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "placeopt", *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def cold_copy(folder: Path) -> dict[str, str]:
    """An environment with a new copy of placeopt, without byte code."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "placeopt", folder / "placeopt", ignore=ignored)
    shutil.copytree(ROOT / "solvers" / "placeopt_solvers", folder / "placeopt_solvers", ignore=ignored)
    return os.environ | {"PYTHONPATH": str(folder)}


def cold(arguments: list[str]) -> float:
    """Wall time of a command without any cache."""
    with tempfile.TemporaryDirectory() as folder:
        return seconds(arguments, cold_copy(Path(folder)))


def main() -> None:
    """Measure and print the table."""
    table = Table(title=f"complete commands, median of {RUNS} runs")
    for header in ("command", "seconds", "target"):
        table.add_column(header, justify="left" if header == "command" else "right")
    with tempfile.TemporaryDirectory() as folder:
        large = str(Path(folder) / "layered.json")
        seconds(["generate", "layered", "--set", "tasks=36000", "--set", "devices=4", "-o", large], dict(os.environ))
        inception = ["solve", str(ROOT / "problems" / "inception.yaml"), "--solver", "heft"]
        rows = (
            ("placeopt --help", ["--help"], False, 0.3),
            ("heft, inception, cold caches", inception, True, 1.5),
            ("heft, inception, warm caches", inception, False, None),
            ("heft, 36,000 tasks from JSON, cold caches", ["solve", large], True, None),
            ("heft, 36,000 tasks from JSON, warm caches", ["solve", large], False, 3.0),
        )
        for label, arguments, is_cold, target in rows:
            if not is_cold:
                seconds(arguments, dict(os.environ))  # fills the caches
            runs = [cold(arguments) if is_cold else seconds(arguments, dict(os.environ)) for _ in range(RUNS)]
            table.add_row(label, f"{statistics.median(runs):.2f}", "" if target is None else f"< {target:g}")
    Console().print(table)


if __name__ == "__main__":
    main()
