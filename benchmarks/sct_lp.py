"""Measure the solution time of the linear program of Small Communication Times, and its size after reductions.

    python benchmarks/sct_lp.py [GAP]

The instances have 36,000 to 41,515 tasks on 4 devices: layered graphs (`layered_problem(36_000, 4, ccr=...)`, seed 0)
and the Transformer (see placeopt/generate/transformer.py) with links of 1.2, 12 and 120 GB/s. The table lists tasks
and edges before and after the reductions, the certified relative gap (1e-4 unless GAP is given), the rounds of the
game, and seconds of CPU time on one thread.
"""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.bounding.sct.program import program_of
from placeopt.bounding.sct.solution import solution_of
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.model.problem import Problem

TRANSFORMER = {"layers": 12, "heads": 64, "width": 4096, "ff_width": 16384, "split_heads": True, "training": True}


def transformer(bandwidth: str) -> Problem:
    """The Transformer on four identical devices, in ticks of 10 ns."""
    network = {
        "resolution": "10 ns",
        "devices": {
            "gpu": {"count": 4, "speed": "14 TFLOP/s", "memory_bandwidth": "900 GB/s", "overhead": "5 us"},
        },
        "links": {"default": {"bandwidth": bandwidth, "latency": "10 us"}},
    }
    return po.compile(model_document("transformer", **TRANSFORMER) | network)


def main() -> None:
    """Measure and print the table."""
    tolerance = float(sys.argv[1]) if len(sys.argv) > 1 else 1e-4
    problems = {f"layered, CCR {ccr:g}": layered_problem(36_000, 4, ccr=ccr) for ccr in (0.1, 1.0, 10.0)}
    problems |= {f"transformer, {rate} GB/s": transformer(f"{rate} GB/s") for rate in ("120", "12", "1.2")}
    table = Table(title=f"linear program, gap {tolerance:g}")
    for header in ("graph", "tasks", "edges", "tasks left", "edges left", "method", "rounds", "ticks", "gap", "CPU s"):
        table.add_column(header, justify="left" if header in ("graph", "method") else "right")
    for name, problem in problems.items():
        program = program_of(problem)
        begin = time.thread_time()
        found = solution_of(program, tolerance=tolerance)
        table.add_row(
            name,
            f"{problem.n_tasks:,}",
            f"{problem.n_edges:,}",
            f"{found.tasks:,}",
            f"{found.edges:,}",
            found.method,
            f"{found.rounds:,}",
            f"{found.value:,.1f}",
            f"{found.gap:.1e}",
            f"{time.thread_time() - begin:.2f}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
