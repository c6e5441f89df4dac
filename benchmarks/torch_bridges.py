"""Import a Llama-shaped model with 8 billion parameters, place it on four GPUs, and write its device map.

    python benchmarks/torch_bridges.py [--tokens 2048] [--time-limit 20] [--training]

The model is on the meta device, so that it needs no memory for weights. The devices are four A100 with 40 GB, joined by
NVLink, from the catalogue. The table shows the seconds from the module to the compiled problem, FLOP relative to
PyTorch's FlopCounterMode, and for operators and for layers (level 2) the makespan and the certified gap of heft and of
auto (seed 0). The device map of each plan is printed if the plan has one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

import placeopt as po

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from torch_models import Llama

GPUS = "a100-40gb:4"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2048, help="length of the input")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds of auto")
    parser.add_argument("--training", action="store_true", help="a training step with 4 bytes of state per parameter")
    asked = parser.parse_args()
    with torch.device("meta"):
        model, ids = Llama().to(torch.bfloat16), torch.zeros(1, asked.tokens, dtype=torch.long)
    counted = FlopCounterMode(display=False)
    with counted:
        out = model(ids)
        if asked.training:
            out.float().mean().backward()
    table = Table(title=f"Llama 8B, {asked.tokens:,} tokens, on {GPUS}")
    for header in ("level", "tasks", "import", "FLOP", "solver", "makespan", "gap", "GPUs"):
        table.add_column(header, justify="left" if header in ("level", "solver") else "right")
    options = {"training": True, "optimizer_bytes_per_parameter": 4} if asked.training else {}
    for level in ("op", 2):
        begin = time.perf_counter()
        imported = po.from_torch(model, (ids,), devices=GPUS, level=level, **options)
        problem = po.compile(imported.document)
        took = time.perf_counter() - begin
        work = sum(task.get("flops", 0) for task in imported.document["tasks"].values())
        for solver in ("heft", "auto"):
            found = po.solve(problem, solver, time_limit=asked.time_limit, seed=0)
            row = (
                str(level),
                f"{problem.n_tasks:,}",
                f"{took:.1f} s",
                f"{work / counted.get_total_flops():.4f}",
                solver,
            )
            if found.schedule is None:
                table.add_row(*row, "-", "-", "-")
                continue
            ticks = float(found.makespan or 0) * float(problem.resolution)
            gap = "-" if found.gap is None else f"{found.gap:.2%}"
            table.add_row(*row, f"{ticks * 1e3:.2f} ms", gap, str(len(set(found.schedule.device.tolist()))))
            try:
                print(f"level {level}, {solver}:", po.device_map(problem, found.schedule, imported))
            except po.UsageError as error:
                print(f"level {level}, {solver}: no device map: {error}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
