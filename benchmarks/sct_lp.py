"""How fast the linear programme of Small Communication Times is solved, and how much of it the reductions leave.

    python benchmarks/sct_lp.py [GAP]

Instances of 36,000 to 41,515 tasks on 4 devices: layered graphs (`layered_problem(36_000, 4, ccr=...)`, seed 0) and the
Transformer (see placeopt/generate/transformer.py) on links of 1.2, 12 and 120 GB/s. Tasks and edges as given, what the
reductions leave before the game, the certified relative gap (1e-4 unless GAP is given), rounds, and CPU seconds of one
thread, machine code compiled before.
"""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.bounding.sct import program_of, solution_of
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.model.problem import Problem

TRANSFORMER = {"layers": 12, "heads": 64, "width": 4096, "ff_width": 16384, "split_heads": True, "training": True}


def transformer(bandwidth: str) -> Problem:
    """The Transformer on four equal devices, in ticks of 10 ns."""
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
    table = Table(title=f"LP to a gap of {tolerance:g}")
    for header in ("graph", "tasks", "edges", "left", "edges left", "by", "rounds", "w in ticks", "gap", "CPU s"):
        table.add_column(header, justify="left" if header in ("graph", "by") else "right")
    for name, problem in problems.items():
        programme = program_of(problem)
        solution_of(programme, rounds=100)
        begin = time.thread_time()
        found = solution_of(programme, tolerance=tolerance)
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
