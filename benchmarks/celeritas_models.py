"""Compare Celeritas with Baechi on generated model graphs: graph sizes after fusion, and step times.

    python benchmarks/celeritas_models.py [SCALE]

The graphs are training graphs of four models of `placeopt generate model` on four V100 GPUs (`--network v100x4`). The
link is the one that Baechi measured and Celeritas adopted: 134 us + 0.0001754 us per byte. The batch sizes require
all four devices. The first table lists nodes and CCR before and after `celeritas-fusion`, together with table 2 of
Celeritas. Its graphs come from TensorFlow and contain constants, reshapes and variable reads as nodes. Its model
Tensor Holography is not generated here.

The other tables list step times (verified makespans in seconds) with port contention, which Celeritas models as
well, and without contention. SCALE multiplies the payloads to increase the CCR.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.metrics import ccr
from placeopt.model.problem import Problem
from placeopt.passes import apply_passes

MODELS = {
    "inception_v3": {"batch": 256},
    "lstm_nmt": {"batch": 256, "layers": 4, "width": 2048, "granular": True},
    "transformer": {"batch": 64, "layers": 12, "heads": 16, "width": 2048, "ff_width": 8192, "split_heads": True},
    "resnet50": {"batch": 256},
}
PAPER = {
    "inception_v3": ("6,332", "33.1", "59", "8.1"),
    "lstm_nmt": ("25,463", "18.6", "154", "6.4"),
    "transformer": ("36,352", "112.0", "220", "11.1"),
    "resnet50": ("-",) * 4,
}
NETWORK = network_document("v100x4", bandwidth="5.701 GB/s", latency="134 us")
SOLVERS = ("m-topo", "m-etf", "m-sct", "heft", "order-place", "celeritas")


def main() -> None:
    """Measure and print the tables."""
    scale = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    problems = {name: model(name, scale) for name in MODELS}
    console = Console(width=120)
    table = Table(title="fusion: nodes and CCR before and after, compared with table 2 of Celeritas")
    for header in ("model", "nodes", "CCR", "fused", "CCR", "nodes (paper)", "CCR", "fused", "CCR"):
        table.add_column(header, justify="left" if header == "model" else "right")
    for name, problem in problems.items():
        coarse = apply_passes(problem, ["celeritas-fusion"]).problem
        cells = [f"{problem.n_tasks:,}", ratio(problem), f"{coarse.n_tasks:,}", ratio(coarse)]
        table.add_row(name, *cells, *PAPER[name])
    console.print(table)
    for contention in ("port", "none"):
        table = Table(title=f"step time in seconds, contention: {contention}")
        for header in ("model", *SOLVERS, "bound"):
            table.add_column(header, justify="left" if header == "model" else "right")
        for name, problem in problems.items():
            table.add_row(name, *steps(replace(problem, contention=contention)))
        console.print(table)


def model(name: str, scale: int) -> Problem:
    """The training graph of a model on the network."""
    problem = po.compile(model_document(name, training=True, **MODELS[name]) | NETWORK)
    return replace(problem, payload=problem.payload * scale)


def ratio(problem: Problem) -> str:
    """The CCR as text."""
    found = ccr(problem)
    return "-" if found is None else f"{found:.1f}"


def steps(problem: Problem) -> list[str]:
    """The makespan of each solver and the best bound."""
    cells, bound = [], 0.0
    for name in SOLVERS:
        result = po.solve(problem, name)
        tick = float(problem.resolution)
        bound = max(bound, float(result.bound or 0) * tick)
        if result.objective is None:
            cells.append("no placement")
        else:
            over = "" if result.feasible else " exceeds memory"
            cells.append(f"{float(result.objective) * tick:.3f}{over}")
    return [*cells, f"{bound:.3f}"]


if __name__ == "__main__":
    main()
