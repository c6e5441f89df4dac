"""Separate what clusters cost from what their placement costs, on the graphs of `celeritas_models.py`.

    python benchmarks/losses.py [SECONDS] [MODEL ...] [CONTENTION ...] [METHOD ...]

For each model, contention and method: the number of clusters, the schedule found, the interval of each of the three
optima of `placeopt losses` in seconds of step time, and the losses at least and at most. SECONDS is the time limit for
each optimum, 60 by default: half for schedules, half for lower bounds. One worker. By default all models and methods
with ports: up to four minutes a row.

Methods: `celeritas` as published, `unite` (celeritas with placement=best and colocation=unite), `celeritas-tuned`, and
`m-etf` behind Baechi's passes coplace and fuse.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

from celeritas_models import CONTENTIONS, MODELS, model
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.studies.losses import Known, separated

METHODS: dict[str, dict[str, Any]] = {
    "celeritas": {"solver": "celeritas"},
    "unite": {"solver": "celeritas", "placement": "best", "colocation": "unite"},
    "celeritas-tuned": {"solver": "celeritas-tuned"},
    "m-etf": {"solver": "m-etf", "passes": ("coplace", "fuse")},
}
"""Methods: the arguments of `po.solve`."""

HEADERS = (
    "model", "contention", "method", "clusters", "found", "OPT_P", "OPT_C", "OPT", "fusion", "placement", "devices",
    "order", "total", "wall seconds",
)  # fmt: skip


def main() -> None:
    """Measure and print the rows, each as soon as it is known, then the table."""
    words = sys.argv[1:]
    seconds = next((float(word) for word in words if word.replace(".", "").isdigit()), 60.0)
    chosen = [word for word in words if not word.replace(".", "").isdigit()]
    if unknown := [word for word in chosen if word not in (*MODELS, *CONTENTIONS, *METHODS)]:
        raise SystemExit(f"unknown word {unknown[0]}; known are {', '.join((*MODELS, *CONTENTIONS, *METHODS))}")
    console = Console(width=200)
    table = Table(*HEADERS, title=f"losses, {seconds:g} s a solve")
    for name in [each for each in MODELS if each in chosen] or MODELS:
        for contention in [each for each in CONTENTIONS if each in chosen] or ["port"]:
            for method in [each for each in METHODS if each in chosen] or METHODS:
                row = measured(replace(model(name), contention=contention), method, seconds)
                table.add_row(name, contention, method, *row)
                print(name, contention, method, *row, sep=" | ", flush=True)
    console.print(table)


def measured(problem: po.Problem, method: str, seconds: float) -> list[str]:
    """Return the cells of a row after the first three."""
    begin = time.monotonic()
    found = separated(po.solve(problem, **METHODS[method], workers=1), time_limit=seconds, workers=1)
    if not found.chain:
        return [found.conclusion]
    assert found.found.objective is not None
    cells = [f"{found.clusters:,}", f"{float(found.found.objective * problem.resolution):.3f}"]
    cells += [interval(problem, each) for each in reversed(found.chain)]
    return [*cells, *map(str, found.losses), f"{time.monotonic() - begin:.0f}"]


def interval(problem: po.Problem, known: Known) -> str:
    """Return the lower bound and the best known value in seconds, or both as one number."""
    low, high = (float(value * problem.resolution) for value in (known.bound, known.objective))
    return f"{high:.3f}" if known.optimal else f"{low:.3f} to {high:.3f}"


if __name__ == "__main__":
    main()
