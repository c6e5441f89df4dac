"""Compare Celeritas with its baselines on generated model graphs.

    python benchmarks/celeritas_models.py [PART ...] [tensorflow] [SCALE]

The graphs are training graphs of four models of `placeopt generate model` on four V100 GPUs (`--network v100x4`). The
link is the one that Baechi measured and Celeritas adopted: 134 us + 0.0001754 us per byte. The batch sizes require
all four devices. Nodes are kernels, or with `tensorflow` the operations of TensorFlow 1.12, as in the paper: constants,
reshapes, variable reads and initial values are nodes, and a quarter to a third of them have no inputs. SCALE multiplies
the payloads.

Parts, all but `large` and `batches` by default:

- fusion: nodes and CCR before and after fusion, for each treatment of colocation groups.
- steps: step times (verified makespans in seconds) of all methods, with port contention, which Celeritas models as
  well, and without; in the order of the method's schedule, and with the same placement executed first in, first out,
  as TensorFlow did for the paper.
- orders: edges cut, and step times, if the operators fill one device after another in each of the three orders
  (figure 3); and Celeritas in each order.
- tuning: the makespans of `celeritas` by R alone, and what `celeritas-tuned` chooses.
- large: a Transformer of 41,515 operators, the size of the paper's, with batch 4. Takes two minutes.
- batches: the paper's batches, Inception-v3 and NMT with 512 and Transformer with 256, and ResNet-50, which is not in
  the paper, with 512; under the memory models sum and peak, with and without ports. Takes two minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import numpy as np
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.errors import MissingExtraError
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.levels import ORDERS, OrderName
from placeopt.model.memory import peak_memory
from placeopt.model.metrics import Grain, grain, shape
from placeopt.model.problem import Contention, MemoryModel, Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.passes import apply_passes
from placeopt.passes.celeritas_fusion import Colocation
from placeopt.simulation import simulate

MODELS: dict[str, dict[str, Any]] = {
    "inception_v3": {"batch": 256},
    "lstm_nmt": {"batch": 256, "layers": 4, "width": 2048, "granular": True},
    "transformer": {"batch": 64, "layers": 12, "heads": 16, "width": 2048, "ff_width": 8192, "split_heads": True},
    "resnet50": {"batch": 256},
}
TENSORFLOW: dict[str, dict[str, Any]] = {
    "inception_v3": {"batch": 256, "auxiliary": True, "optimiser": "sgd"},
    "lstm_nmt": {"batch": 256, "width": 2048, "source_length": 40, "target_length": 40, "optimiser": "sgd"},
    "transformer": {"batch": 32, "layers": 12, "heads": 16, "width": 2048, "ff_width": 8192},
    "tensor_holography": {"batch": 32},
}
"""The paper's models; its batches are 512, 512, 256 and 32."""
graphs = dict(MODELS)
"""The models of this run."""
BATCHES = {
    "inception_v3": {"batch": 512},
    "lstm_nmt": MODELS["lstm_nmt"] | {"batch": 512},
    "transformer": MODELS["transformer"] | {"batch": 256},
    "resnet50": {"batch": 512},
}
"""The batches of the paper's section 6.2; ResNet-50 is not in the paper."""
LARGE = {"batch": 4, "layers": 12, "heads": 64, "width": 4096, "ff_width": 16384, "split_heads": True}
NETWORK = network_document("v100x4", bandwidth="5.701 GB/s", latency="134 us")
COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "metis": ("metis", {}),
    "topo-fill": ("topo-fill", {}),
    "m-topo": ("m-topo", {}),
    "m-etf": ("m-etf", {}),
    "m-sct": ("m-sct", {}),
    "heft": ("heft", {}),
    "order-place": ("order-place", {}),
    "celeritas": ("celeritas", {}),
    "best": ("celeritas", {"placement": "best"}),
    "unite, best": ("celeritas", {"placement": "best", "colocation": "unite"}),
    "tuned": ("celeritas-tuned", {}),
}
"""Methods: a solver and its settings."""
CONTENTIONS: tuple[Contention, ...] = ("port", "none")
MEMORY_MODELS: tuple[MemoryModel, ...] = ("sum", "peak")
EXECUTIONS = ("own order", "first in, first out")
CHOSEN = ("range", "memory", "order", "colocation", "placement", "execution")
RANGES = (1, 2, 5, 10, 13, 20, 50, 100, 200)


def fusion() -> Iterable[Table]:
    """Nodes and CCR after fusion."""
    headers = ("model", "nodes", "sources", "groups", "CCR", *get_args(Colocation))
    table = table_of(
        "fusion: nodes and CCR before; clusters, CCR and groups after, by the treatment of groups", headers
    )
    for name in graphs:
        problem = model(name)
        cells = [f"{problem.n_tasks:,}", str(shape(problem).sources), f"{problem.n_groups:,}", ratio(grain(problem))]
        for how in get_args(Colocation):
            coarse = fused(problem, how)
            cells.append(f"{coarse.n_tasks:,}, {ratio(grain(coarse))}, {coarse.n_groups:,}")
        table.add_row(name, *cells)
    yield table


def steps() -> Iterable[Table]:
    """Step times of all methods."""
    for contention in CONTENTIONS:
        for execution in EXECUTIONS:
            title = f"step time in seconds, contention: {contention}, {execution}"
            table = table_of(title, ("model", *COLUMNS, "bound"))
            for name in graphs:
                found = (step(name, contention, column, execution) for column in COLUMNS)
                table.add_row(name, *map(text, found), f"{bound(name, contention):.3f}")
            yield table


def orders() -> Iterable[Table]:
    """Figure 3, and Celeritas in each order."""
    names = get_args(OrderName)
    table = table_of(
        "figure 3: edges cut if one device is filled after another; step time with ports then (order-place, R = 1)",
        ("graph", "edges", *names),
    )
    chains = four_chains()
    cuts = {order: len(cut_edges(chains, ORDERS[order](chains))) for order in names}
    table.add_row("four chains", str(chains.n_edges), *(str(cuts[order]) for order in names))
    for name in graphs:
        problem, cells = model(name), []
        for order in names:
            seconds, *_ = solved(replace(problem, contention="port"), "order-place", range=1, order=order)
            cells.append(f"{len(cut_edges(problem, ORDERS[order](problem))):,}; {text(seconds)}")
        table.add_row(name, f"{problem.n_edges:,}", *cells)
    yield table
    for contention in CONTENTIONS:
        table = table_of(
            f"celeritas in each order, contention: {contention}: adjusting; order-place", ("model", *names)
        )
        for name in graphs:
            problem = replace(model(name), contention=contention)
            cells = []
            for order in names:
                both = [solved(problem, "celeritas", order=order, placement=how)[0] for how in ("adjusting", "order")]
                cells.append("; ".join(map(text, both)))
            table.add_row(name, *cells)
        yield table


def tuning() -> Iterable[Table]:
    """Step times by R alone, and what the search chooses."""
    for how in ("first", "unite"):
        title = f"celeritas with placement=best, colocation={how}, by R; contention: port"
        table = table_of(title, ("model", *map(str, RANGES)))
        for name in graphs:
            problem = replace(model(name), contention="port")
            found = (solved(problem, "celeritas", range=r, placement="best", colocation=how)[0] for r in RANGES)
            table.add_row(name, *map(text, found))
        yield table
    table = table_of("celeritas-tuned", ("model", "contention", "seconds", "chosen", "CPU seconds"))
    for name in graphs:
        for contention in CONTENTIONS:
            begin = time.process_time()
            result = po.solve(replace(model(name), contention=contention), "celeritas-tuned", workers=1)
            spent = time.process_time() - begin
            chosen = ", ".join(f"{key} {result.stats[key]}" for key in CHOSEN)
            table.add_row(name, contention, text(step(name, contention, "tuned")), chosen, f"{spent:.1f}")
    yield table


def large() -> Iterable[Table]:
    """A graph of the paper's size."""
    problem = po.compile(model_document("transformer", training=True, **LARGE) | NETWORK)
    table = table_of(
        f"Transformer of {problem.n_tasks:,} operators, batch 4: step time in seconds", ("", *COLUMNS, "bound")
    )
    for contention in CONTENTIONS:
        case = replace(problem, contention=contention)
        found = [solved(case, solver, **settings) for solver, settings in COLUMNS.values()]
        table.add_row(contention, *(text(each[0]) for each in found), f"{max(each[1] for each in found):.3f}")
    yield table


def batches() -> Iterable[Table]:
    """The papers' batches under both memory models."""
    for contention in CONTENTIONS:
        for memory_model in MEMORY_MODELS:
            title = f"step time in seconds with large batches, contention: {contention}, memory model: {memory_model}"
            table = table_of(title, ("model", "GiB", *COLUMNS, "bound"))
            for name in BATCHES:
                found = [large_batch(name, contention, memory_model, column) for column in COLUMNS]
                problem = with_batch(name)
                needed = problem.memory.sum() if memory_model == "sum" else live_bytes(problem)
                limit = max(each[1] for each in found) or None
                table.add_row(
                    f"{name}, {BATCHES[name]['batch']}", f"{needed / 2**30:.1f}", *(text(each[0]) for each in found),
                    "-" if limit is None else text(limit),
                )  # fmt: skip
            yield table


PARTS = {each.__name__: each for each in (fusion, steps, orders, tuning, large, batches)}
DEFAULT = ("fusion", "steps", "orders", "tuning")


def main() -> None:
    """Measure and print the tables."""
    console = Console(width=170)
    scale = next((int(word) for word in sys.argv[1:] if word.isdigit()), 1)
    words = [word for word in sys.argv[1:] if not word.isdigit()]
    if "tensorflow" in words:
        words.remove("tensorflow")
        graphs.clear()
        graphs.update({name: {**options, "style": "tensorflow"} for name, options in TENSORFLOW.items()})
    chosen = words or DEFAULT
    if unknown := [part for part in chosen if part not in PARTS]:
        raise SystemExit(f"unknown part {unknown[0]}; known are {', '.join(PARTS)}")
    for name in graphs:
        problem = model(name)
        problems[name] = replace(problem, payload=problem.payload * scale)
    for part in chosen:
        for table in PARTS[part]():
            console.print(table)


problems: dict[str, Problem] = {}


@cache
def with_batch(name: str) -> Problem:
    """The training graph of a model with the paper's batch, under the memory model `peak`."""
    document = model_document(name, training=True, **BATCHES[name]) | NETWORK
    return po.compile(document | {"memory_model": "peak"})


@cache
def large_batch(
    name: str, contention: Contention, memory_model: MemoryModel, column: str
) -> tuple[float | None, float, float | None]:
    """As `solved`, for a method and the paper's batch."""
    solver, settings = COLUMNS[column]
    return solved(replace(with_batch(name), contention=contention, memory_model=memory_model), solver, **settings)


def live_bytes(problem: Problem) -> int:
    """The most live bytes of all tasks on one device, breadth first."""
    one = np.zeros(problem.n_tasks, dtype=np.int64)
    ticks = problem.duration[problem.order, 0]
    start = np.empty(problem.n_tasks, dtype=np.int64)
    start[problem.order] = np.cumsum(ticks) - ticks
    return int(peak_memory(replace(problem, contention="none"), Schedule(one, start))[0])


def model(name: str) -> Problem:
    """The training graph of a model on the network."""
    if name not in problems:
        problems[name] = po.compile(model_document(name, training=True, **graphs[name]) | NETWORK)
    return problems[name]


def four_chains() -> Problem:
    """The kind of graph that figure 3 shows: four chains of two tasks, two devices with room for half of them each."""
    return build_problem(
        task_names=[f"t{i}" for i in range(8)],
        device_names=["d0", "d1"],
        duration=np.ones((8, 2), dtype=np.int64),
        edges=[(i, i + 4) for i in range(4)],
        resident=np.ones(8, dtype=np.int64),
        capacity=np.array([4, 4]),
    )


def cut_edges(problem: Problem, order: Int) -> Int:
    """The edges between devices if operators fill one device after another in an order; groups are ignored."""
    device, d, room = np.zeros(problem.n_tasks, dtype=np.int64), 0, problem.capacity.copy()
    for i in order:
        while d + 1 < problem.n_devices and problem.memory[i] > room[d]:
            d += 1
        device[i], room[d] = d, room[d] - problem.memory[i]
    return np.flatnonzero(device[problem.edge_source] != device[problem.edge_target])


def fused(problem: Problem, how: str) -> Problem:
    """The problem after fusion."""
    return apply_passes(problem, [f"celeritas-fusion:colocation={how}"]).problem


@cache
def measured(name: str, contention: Contention, column: str) -> tuple[float | None, float, float | None]:
    """As `solved`, for a method."""
    solver, settings = COLUMNS[column]
    return solved(replace(model(name), contention=contention), solver, **settings)


def step(name: str, contention: Contention, column: str, execution: str = "own order") -> float | None:
    """Seconds of a step by a method; None without a placement that fits."""
    return measured(name, contention, column)[0 if execution == "own order" else 2]


def bound(name: str, contention: Contention) -> float:
    """The best lower bound of all methods in seconds."""
    return max(measured(name, contention, column)[1] for column in COLUMNS)


def solved(problem: Problem, solver: str, **settings: Any) -> tuple[float | None, float, float | None]:
    """A solver's makespan, its bound, and the makespan of its placement first in, first out; in seconds.

    The makespans are None if the solver finds no placement that fits into memory.
    """
    try:
        result = po.solve(problem, solver, workers=1, **settings)
    except MissingExtraError as missing:
        print(missing, file=sys.stderr)
        return None, 0.0, None
    tick = float(problem.resolution)
    bound = float(result.bound or 0) * tick
    if not result.feasible or result.schedule is None or result.objective is None:
        return None, bound, None
    in_turn = makespan(problem, simulate(problem, result.schedule.device))
    return float(result.objective) * tick, bound, in_turn * tick


def ratio(found: Grain) -> str:
    """The CCR as text."""
    return "-" if found.ccr is None else f"{found.ccr:.1f}"


def text(seconds: float | None) -> str:
    """A step time as text."""
    return "no placement" if seconds is None else f"{seconds:.3f}"


def table_of(title: str, headers: Iterable[str]) -> Table:
    """An empty table."""
    table = Table(title=title)
    for place, header in enumerate(headers):
        table.add_column(header, justify="right" if place else "left")
    return table


if __name__ == "__main__":
    main()
