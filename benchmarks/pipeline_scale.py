"""Measure `dpl` and `stage-search` on pipelines of about 36,000 operators and 16 devices.

    python benchmarks/pipeline_scale.py [SECONDS [CASE ...]]

Cases are named GRAPH/DEVICES/STAGES, and may be parts of names, such as `layered` or `4x4/free`; default: all.

- transformer: inference of the Transformer with 25 layers, 64 separate heads, width 4096 and 16 samples.
- training: the forward and backward tasks of such a Transformer with 12 layers.
- layered: `layered_problem(36_000, 16)` with CCR 0.05: 190 layers of 190 tasks.
- 16: equal devices; 4x4: four each of speeds 1, 2, 3 and 5. Models run at 10 TFLOP/s times the speed, over links of
  25 GB/s and 10 us.
- contiguous: each device has one stage; free: any number of stages.

Each case is solved with seed 0 and the limit SECONDS (60), which includes everything from the compiled problem to the
verified schedule; building it is extra. The bound is the quick bound of the period, and
the ratio is the period divided by it. CPU seconds are those of all threads.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import placeopt as po
from placeopt.bounding.quick import best_bound
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.model.building import with_changes

TASKS, DEVICES = 36_000, 16
SPEEDS = {"16": (1,), "4x4": (1, 2, 3, 5)}
STAGES = ("contiguous", "free")
GRAPHS: dict[str, dict[str, Any]] = {
    "transformer": {"layers": 25, "batch": 16},
    "training": {"layers": 12, "batch": 16, "training": True},
    "layered": {},
}
LARGE = {"heads": 64, "width": 4096, "ff_width": 16384, "split_heads": True, "objective": "period"}


def problem_of(graph: str, devices: str, stages: str) -> po.Problem:
    """Build a case."""
    speeds = SPEEDS[devices]
    if graph != "layered":
        types: dict[str, Any] = {
            f"gpu{speed}": {
                "count": DEVICES // len(speeds), "speed": f"{10 * speed} TFLOP/s",
                "memory_bandwidth": f"{900 * speed} GB/s", "overhead": "5 us",
            }
            for speed in speeds
        }  # fmt: skip
        links = {"default": {"bandwidth": "25 GB/s", "latency": "10 us"}}
        sections = {"objective": "period", "pipeline": {"stages": stages}, "devices": types, "links": links}
        return po.compile(model_document("transformer", **LARGE, **GRAPHS[graph]) | sections)
    plain = layered_problem(TASKS, DEVICES, ccr=0.05, device_types=1, speed_heterogeneity=0.0)
    speed = np.repeat(np.array(speeds), DEVICES // len(speeds))
    return with_changes(
        plain,
        duration=-(-plain.duration // speed),
        objective=po.Objective(((po.Term("period"),),)),
        pipeline={"segments": 1 if stages == "contiguous" else None},
    )


def cases(chosen: list[str]) -> Iterator[tuple[str, po.Problem]]:
    """Yield names and problems."""
    for graph in GRAPHS:
        for devices in SPEEDS:
            for stages in STAGES:
                name = f"{graph}/{devices}/{stages}"
                if not chosen or any(part in name for part in chosen):
                    yield name, problem_of(graph, devices, stages)


def main() -> None:
    """Print a line for each case and solver."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    solvers = ("dpl", "stage-search")
    print(f"limit {seconds:g} s, seed 0")
    for name, problem in cases(sys.argv[2:]):
        bound = best_bound(problem).value
        print(f"{name}: {problem.n_tasks:,} tasks, {problem.n_edges:,} edges", flush=True)
        for solver in solvers:
            begin, used = time.perf_counter(), time.process_time()
            result = po.solve(problem, solver, time_limit=seconds, workers=1)
            taken, cpu = time.perf_counter() - begin, time.process_time() - used
            assert result.values is not None
            assert result.feasible
            period = result.values[0]
            print(
                f"  {solver:12} {result.termination.value:10} period {period}, bound {bound}, "
                f"ratio {float(period / bound):.4f}, {taken:.1f} s, {cpu:.1f} CPU s",
                flush=True,
            )


if __name__ == "__main__":
    main()
