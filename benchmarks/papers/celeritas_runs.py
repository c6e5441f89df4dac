"""Celeritas's graphs, and what methods achieve on them.

The graphs are training graphs of `placeopt generate model --style tensorflow` with the paper's batches (section 6.2) on
four V100 GPUs of 32 GiB. The link is the one that Baechi measured and Celeritas adopted: 134 us + 0.0001754 us per
byte. The paper's cells are compared under `memory_model: peak` and `contention: port`: TensorFlow frees tensors, and
section 6.1 models congestion by tasks that send and receive. Seconds are verified makespans; each method has one
thread.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from functools import cache
from typing import Any

from celeritas_models import COLUMNS, NETWORK
from reports import Workplace

import placeopt as po
from placeopt.generate.models import model_document
from placeopt.model.problem import Contention, MemoryModel, Problem
from placeopt.model.schedule import makespan
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver
from placeopt.simulation import simulate

SIZES: dict[str, dict[str, Any]] = {
    "inception_v3": {"batch": 512, "auxiliary": True, "optimiser": "sgd"},
    "lstm_nmt": {"batch": 512, "width": 2048, "source_length": 40, "target_length": 40, "optimiser": "sgd"},
    "transformer": {"batch": 256, "layers": 12, "heads": 16, "width": 2048, "ff_width": 8192},
    "tensor_holography": {"batch": 32},
}
"""Section 6.2: the paper's models with its batches; docs/baechi-celeritas.md states what the text leaves open."""
KERNELS: dict[str, dict[str, Any]] = {
    "inception_v3": {"batch": 512},
    "lstm_nmt": {"batch": 512, "layers": 4, "width": 2048, "granular": True},
    "transformer": {"batch": 256, "layers": 12, "heads": 16, "width": 2048, "ff_width": 8192, "split_heads": True},
    "tensor_holography": {"batch": 32},
    "resnet50": {"batch": 512},
}
GRAPHS = {name: (name, {**options, "style": "tensorflow"}) for name, options in SIZES.items()}
"""The paper's graphs: operations of TensorFlow 1.12."""
EVERY = GRAPHS | {f"{name}, kernels": (name, options) for name, options in KERNELS.items()}
"""With the graphs of kernels that `placeopt generate model` makes by default, and ResNet-50."""

CONTENTIONS: tuple[Contention, ...] = ("port", "none")
MEMORY_MODELS: tuple[MemoryModel, ...] = ("peak", "sum")
PUBLISHED = ("metis", "m-topo", "m-etf", "m-sct", "heft", "order-place", "celeritas")
"""Published heuristics."""
AUTO_SECONDS = 10.0
RUNS = 5
"""Timed runs of a placer."""


@cache
def graph(model: str) -> Problem:
    """A training graph of the paper."""
    generator, options = EVERY[model]
    document = model_document(generator, training=True, **options) | NETWORK
    return po.compile(document | {"memory_model": "peak"})


def under(model: str, memory: MemoryModel, contention: Contention) -> Problem:
    """The graph under a memory model and contention."""
    return replace(graph(model), memory_model=memory, contention=contention)


def measured(
    workplace: Workplace, model: str, method: str, memory: MemoryModel = "peak", contention: Contention = "port"
) -> dict[str, float | None]:
    """Seconds of a step in the order of the schedule and first in, first out, the bound, and CPU seconds.

    Seconds are None without a placement that fits into memory.
    """

    def compute() -> dict[str, float | None]:
        solver, settings = COLUMNS.get(method, (method, {}))
        limit = AUTO_SECONDS if solver == "auto" else None
        problem = under(model, memory, contention)
        start = time.process_time()
        result = po.solve(problem, solver, workers=1, time_limit=limit, **settings)
        spent = time.process_time() - start
        tick = float(problem.resolution)
        found: dict[str, float | None] = {
            "step": None, "fifo": None, "bound": float(result.bound or 0) * tick, "cpu": spent
        }  # fmt: skip
        if result.feasible and result.schedule is not None and result.objective is not None:
            found["step"] = float(result.objective) * tick
            found["fifo"] = makespan(problem, simulate(problem, result.schedule.device)) * tick
        return found

    key = ("step", model, EVERY[model], method, memory, contention)
    found: dict[str, float | None] = workplace.measurements.value(compute, *key)
    return found


def step(workplace: Workplace, model: str, method: str, *rest: Any) -> float | None:
    """Seconds of a step."""
    return measured(workplace, model, method, *rest)["step"]


def shown_seconds(seconds: float | None) -> str:
    """A step time as text."""
    return "out of memory" if seconds is None else f"{seconds:.3f}"


def placing_seconds(problem: Problem, name: str) -> float:
    """CPU seconds of a solver alone: the median of RUNS runs after a first one."""
    solver = find_solver(name)
    spent = []
    for _ in range(RUNS + 1):
        begin = time.thread_time()
        solver.solve(problem, Options(), solver.settings_type())
        spent.append(time.thread_time() - begin)
    return statistics.median(spent[1:])
