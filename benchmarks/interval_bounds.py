"""Measure lower bounds with and without intervals.

    python benchmarks/interval_bounds.py [--limit 60] [--workers 2] [--seeds 0 1 2] [--only TEXT]

The instances are problems/gnmt.yaml, and narrow layered graphs: `placeopt generate layered` with CCR 1, the stated
numbers of tasks, devices, tasks per layer (width) and device types, and other options at their defaults. For each, the
command `placeopt solve FILE --solver auto` runs in a separate process within the time limit. Its objective and bound
give the gap, (objective - bound) / objective. Then `placeopt bounds FILE` runs within the same limit: "before" is the
best bound that is not of `intervals`, "after" the best of all, each with the gap to the objective of auto. Times are in
ms.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from placeopt.generate.layered_graphs import layered_document

GNMT = Path(__file__).parents[1] / "problems" / "gnmt.yaml"
SHAPES = ((300, 3, 4, 1), (300, 4, 5, 1), (300, 5, 6, 1), (300, 4, 4, 4), (1000, 3, 4, 1), (1000, 4, 5, 1))
"""Tasks, devices, width, device types."""


def ran(command: str, path: Path, *options: str) -> dict[str, Any]:
    """The output of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "placeopt", command, str(path), *options, "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not done.stdout:
        sys.exit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    """Bound all instances and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="only instances whose names contain it")
    asked = parser.parse_args()
    limits = ("--time-limit", f"{asked.limit}s", "--workers", str(asked.workers))
    table = Table(title=f"{asked.limit:g} s, {asked.workers} workers; times in ms")
    for header in ("instance", "auto", "bound", "gap", "bound by", "before", "gap", "after", "gap"):
        table.add_column(header, justify="left" if header in ("instance", "bound by") else "right")
    with tempfile.TemporaryDirectory() as folder:
        instances = [("gnmt", GNMT)]
        for tasks, devices, width, types in SHAPES:
            for seed in asked.seeds:
                name = f"{tasks} tasks, {devices} devices, width {width}, {types} types, seed {seed}"
                path = Path(folder) / f"{len(instances)}.json"
                document = layered_document(tasks, devices, width=width, ccr=1.0, device_types=types, seed=seed)
                path.write_text(json.dumps(document))
                instances.append((name, path))
        for name, path in instances:
            if asked.only not in name:
                continue
            solved = ran("solve", path, "--solver", "auto", *limits)
            found = {bound["name"]: bound["value"] for bound in ran("bounds", path, *limits)["bounds"]}
            objective, unit = solved["objective"], 1e-6 if name == "gnmt" else 1e-3
            before = max(value for kind, value in found.items() if kind != "intervals")
            cells = [f"{objective * unit:,.3f}"]
            for value in (solved["bound"], before, max(found.values())):
                cells += [f"{value * unit:,.3f}", f"{1 - value / objective:.2%}"]
            cells.insert(3, solved["bound_source"])
            table.add_row(name, *cells)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
