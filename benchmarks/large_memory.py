"""Measure the whole command on a million tasks: seconds, CPU seconds and peak memory from the file to the plan.

    python benchmarks/large_memory.py [--tasks 1000000] [--devices 64] [--solver heft --solver auto] [--limit 20]

`placeopt generate irregular` writes a JSON file to a temporary folder. Then `placeopt solve FILE --out PLAN` runs in a
fresh process for each solver, `auto` with a time limit. It reads and compiles the file, solves, verifies, proves a
bound, prints the result and writes the plan. Seconds and CPU seconds (of user and system, all threads) are of the whole
process; the peak is its resident set size.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from placeopt.model.units import size_text


class Usage(NamedTuple):
    """What a command used."""

    seconds: float
    """Wall time."""
    cpu: float
    """Seconds of all threads, in user and system mode."""
    peak: int
    """Bytes, resident."""
    objective: str
    """The line of the output that states the objective."""


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--solver", action="append", help="heft and auto unless given; may be repeated")
    parser.add_argument("--limit", type=float, default=20.0, help="time limit of auto in seconds")
    asked = parser.parse_args()
    memory(asked.tasks, asked.devices, asked.solver or ["heft", "auto"], asked.limit)


def memory(tasks: int = 1_000_000, devices: int = 64, solvers: list[str] | None = None, limit: float = 20.0) -> None:
    """Generate the file, solve it with each solver, and print the table."""
    chosen = solvers or ["heft", "auto"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        large = Path(folder) / "large.json"
        begun = used(
            "generate", "irregular", "--set", f"tasks={tasks}", "--set", f"devices={devices}", "--out", str(large)
        )
        table = Table(title=f"{tasks:,} tasks, {devices} devices, {large.stat().st_size / 1e6:.0f} MB of JSON")
        for header in ("command", "seconds", "CPU seconds", "peak memory", "objective"):
            table.add_column(header, justify="left" if header in ("command", "objective") else "right")
        table.add_row("generate", f"{begun.seconds:.1f}", f"{begun.cpu:.1f}", size_text(begun.peak), "")
        for solver in chosen:
            options = ["--solver", solver, *(["--time-limit", f"{limit:g}s"] if solver == "auto" else [])]
            found = used("solve", str(large), *options, "--out", str(Path(folder) / "plan.json"))
            row = f"{found.seconds:.1f}", f"{found.cpu:.1f}", size_text(found.peak), found.objective
            table.add_row(" ".join(["solve", *options]), *row)
        Console(width=120).print(table)


def used(*words: str) -> Usage:
    """Run a command of placeopt in a fresh process; one that fails ends the measurement."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "placeopt", *words], stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"placeopt {' '.join(words)} ended with exit code {process.returncode}\n{text}")
    peak = usage.ru_maxrss if sys.platform == "darwin" else 1024 * usage.ru_maxrss
    objective = next((line.split("=", 1)[1].strip() for line in text.splitlines() if line.startswith("objective")), "")
    return Usage(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, peak, objective)


if __name__ == "__main__":
    main()
