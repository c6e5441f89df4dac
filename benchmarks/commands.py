"""How long whole commands take, from the shell's point of view.

    python benchmarks/commands.py

    placeopt --help                          what a shell completion or a typo costs
    heft on problems/inception.yaml, cold    a newcomer's first answer: nothing of placeopt compiled or cached
    heft on problems/inception.yaml          the same again
    heft on 36,000 tasks from JSON, cold     Numba compiles what it needs
    heft on 36,000 tasks from JSON           reading, compiling, solving, bounding, verifying; caches warm

The large instance is `placeopt generate layered` with 36,000 tasks on 4 devices, seed 0. Cold runs use a copy
of the packages without byte code and an empty Numba cache, made anew each time. Median of 5 runs.
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
    """An environment whose placeopt was never run: a copy without byte code, and no Numba cache."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "placeopt", folder / "placeopt", ignore=ignored)
    shutil.copytree(ROOT / "solvers", folder / "placeopt_solvers", ignore=ignored)
    return os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "numba")}


def cold(arguments: list[str]) -> float:
    """Wall time of a command that finds nothing cached."""
    with tempfile.TemporaryDirectory() as folder:
        return seconds(arguments, cold_copy(Path(folder)))


def main() -> None:
    """Measure and print the table."""
    table = Table(title=f"whole commands, median of {RUNS} runs")
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
                seconds(arguments, dict(os.environ))  # warms the caches
            runs = [cold(arguments) if is_cold else seconds(arguments, dict(os.environ)) for _ in range(RUNS)]
            table.add_row(label, f"{statistics.median(runs):.2f}", "" if target is None else f"< {target:g}")
    Console().print(table)


if __name__ == "__main__":
    main()
