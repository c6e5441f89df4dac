"""Reproduce and extend the tables of Carbonari, Kodirov, Golub 2017: submodular placement and the greedy heuristic.

    python benchmarks/carbonari_tables.py [tables] [costs] [extensions] [speed]

All sections run unless some are named. All results are deterministic; the layered graphs have seed 0. CPU time is
that of one thread, from the compiled problem to the schedule: the median of RUNS runs after a warm-up run, or one run
for large problems, with the code compiled by a small problem before. "JCT" is the job completion time of the paper
(`placeopt.model.metrics.carbonari_jct`), and "makespan" the end of the last task in a verified schedule.

tables      VGG-19, ResNet-50 and Inception-v3 on the networks of 3, 30 and 60 devices (2, 20, 40 cores and 1, 10, 20
            GPUs), with two sets of costs, together with the figures of the paper:
            - the costs of the paper, as far as they are published: COSTS ticks per element of the inputs of a task,
              free transfers, unlimited memory. Table 4 of the paper states four operations; the others are assumed.
              The JCT of VGG-19 differs by 0.3 % from the 51,362,816 of the paper: the difference is 150,528, the
              elements of one input image.
            - the times of problems/ (roofline of real hardware, a GPU up to 186 times as fast as a core) and their
              transfers, which the JCT ignores.
            "process" is the peak memory of a process that reads the problem and places it. The conclusion of the
            paper names "system memory consumption and time spent to place job graph" as characteristics of the
            algorithm. "on a device" is the memory of the placement: the largest peak memory of any device.
costs       the change of JCT depending on the costs that the paper does not publish (ELEMENTWISE).
extensions  the effect of the settings `memory` and `communication` with scarce memory or expensive transfers: memory
            violations, makespan, and the gap to the best bound that `placeopt.bounds` proves in BOUND_SECONDS.
speed       36,000 tasks and more on 60 devices.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from heuristics_36000 import transformer
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.memory import peak_memory, used_memory
from placeopt.model.metrics import carbonari_jct
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.simulation import retime
from placeopt.solver import Options, checked_settings
from placeopt.solver.registry import find_solver

RUNS = 5
BOUND_SECONDS = 10.0
MIB = 1 << 20
FILES = Path(__file__).parents[1] / "problems"
MODELS = {"VGG-19": "vgg19", "ResNet-50": "resnet50", "Inception-v3": "inception-v3"}
NETWORKS = ("small", "medium", "large")
SOLVERS = ("heuristic-g", "submodular-g", "submodular-gi")

COSTS = {
    "conv2d": (4, 2), "max_pool": (6, 5), "avg_pool": (1, 3), "global_avg_pool": (1, 3), "concat": (5, 7),
    "dense": (8, 4), "classifier": (8, 4),
}  # fmt: skip
"""Ticks per input element on a CPU core and on a GPU: the first five are from table 4, the others are assumed."""
ELEMENTWISE = ((2, 1), (1, 1), (4, 1))
"""Assumed costs of batch_norm, relu, add and pad, which the paper does not state; the first pair is the default."""
IMAGE = {"VGG-19": 224 * 224 * 3, "ResNet-50": 224 * 224 * 3, "Inception-v3": 299 * 299 * 3}
"""Elements of the image that the first task reads."""

# Tables 1 to 3: JCT, and the changes of JCT, memory and CPU time against Heuristic-G in per cent.
PAPER: dict[tuple[str, str], dict[str, tuple[int, float, float, float]]] = {
    ("small", "VGG-19"): {
        "heuristic-g": (51362816, 0, 0, 0),
        "submodular-g": (72795648, 41, 0.99, 84),
        "submodular-gi": (72795648, 41, 0.56, 64),
    },
    ("small", "ResNet-50"): {
        "heuristic-g": (60986968, 0, 0, 0),
        "submodular-g": (81836592, 34, 2.73, 10383),
        "submodular-gi": (83125360, 36, 2.96, 10408),
    },
    ("small", "Inception-v3"): {
        "heuristic-g": (49299104, 0, 0, 0),
        "submodular-g": (78681008, 60, 5, 38698),
        "submodular-gi": (78802576, 60, 2.77, 38274),
    },
    ("medium", "VGG-19"): {
        "heuristic-g": (51362816, 0, 0, 0),
        "submodular-g": (54197760, 5.52, -2.40, 1658),
        "submodular-gi": (54197760, 5.52, -2.17, 1643),
    },
    ("medium", "ResNet-50"): {
        "heuristic-g": (60986968, 0, 0, 0),
        "submodular-g": (77032600, 26, 3.25, 307872),
        "submodular-gi": (78322968, 28, 2.24, 301400),
    },
    ("medium", "Inception-v3"): {
        "heuristic-g": (33821568, 0, 0, 0),
        "submodular-g": (74251264, 119, 5, 976838),
        "submodular-gi": (73765376, 118, 5, 971220),
    },
    ("large", "VGG-19"): {
        "heuristic-g": (51362816, 0, 0, 0),
        "submodular-g": (51696640, 0.65, 0.87, 2599),
        "submodular-gi": (51696640, 0.65, 0.53, 2578),
    },
    ("large", "ResNet-50"): {
        "heuristic-g": (60986968, 0, 0, 0),
        "submodular-g": (79055192, 29, 5.31, 386137),
        "submodular-gi": (78237720, 21, 2.34, 393176),
    },
    ("large", "Inception-v3"): {
        "heuristic-g": (33821568, 0, 0, 0),
        "submodular-g": (71365584, 111, 1.69, 1088094),
        "submodular-gi": (71849152, 112, 1.93, 1098507),
    },
}

Variant = tuple[str, str, dict[str, Any]]
"""Label, solver and settings."""
AS_PUBLISHED = {"memory": "unlimited"}
BOTH = {"memory": "step", "communication": True}
VARIANTS: tuple[Variant, ...] = (
    ("heuristic-g", "heuristic-g", {}),
    ("submodular-g, model of the paper", "submodular-g", AS_PUBLISHED),
    ("    both", "submodular-g", BOTH),
    ("submodular-gi, model of the paper", "submodular-gi", AS_PUBLISHED),
    ("    memory", "submodular-gi", {"memory": "step"}),
    ("    communication", "submodular-gi", AS_PUBLISHED | {"communication": True}),
    ("    both", "submodular-gi", BOTH),
    ("    both, cap=total", "submodular-gi", BOTH | {"cap": "total"}),
    ("    model of the paper, cap=search", "submodular-gi", AS_PUBLISHED | {"cap": "search"}),
)
LARGE: tuple[Variant, ...] = (
    ("heuristic-g", "heuristic-g", {}),
    ("submodular-g", "submodular-g", {}),
    ("submodular-gi", "submodular-gi", {}),
    ("    both, cap=total", "submodular-gi", BOTH | {"cap": "total"}),
)
BAECHI = network_document("v100x4", bandwidth="5.701 GB/s", latency="134 us")


def main() -> None:
    """Measure and print the sections that the arguments name."""
    sections: dict[str, Callable[[Console], None]] = {
        "tables": tables,
        "costs": costs,
        "extensions": extensions,
        "speed": speed,
    }
    names = sys.argv[1:] or list(sections)
    unknown = [name for name in names if name not in sections]
    if unknown:
        sys.exit(f"unknown section {unknown[0]}; expected {', '.join(sections)}")
    console = Console(width=170)
    for name in names:
        sections[name](console)


def tables(console: Console) -> None:
    """Tables 1 to 3 of the paper, with its costs and with those of real hardware."""
    for network in NETWORKS:
        for costs in ("paper", "real"):
            count = len(problem_of("VGG-19", network, costs).device_names)
            title = f"{network} network, {count} devices; memory in MiB; " + (
                "costs of the paper, in ticks; free transfers" if costs == "paper" else "times of problems/, in us"
            )
            table = Table(title=title)
            for header in ("model", "solver"):
                table.add_column(header)
            headers = (
                "JCT",
                "change %",
                "paper",
                "makespan",
                "change %",
                "on a device",
                "process",
                "change %",
                "paper",
            )
            headers = (*headers, "CPU ms", "change %", "paper")
            for header in headers:
                table.add_column(header, justify="right")
            for model in MODELS:
                base: tuple[float, ...] | None = None
                for name in SOLVERS:
                    found = measured(model, network, costs, name)
                    base = found if base is None else base
                    jct, length, memory, process, seconds = found
                    paper = PAPER[network, model][name]
                    table.add_row(
                        model if name == SOLVERS[0] else "",
                        name,
                        f"{jct:,.0f}",
                        change(jct, base[0]),
                        f"{paper[1]:+g}",
                        f"{length:,.0f}",
                        change(length, base[1]),
                        f"{memory / MIB:,.1f}",
                        f"{process / MIB:,.1f}",
                        change(process, base[3]),
                        f"{paper[2]:+g}",
                        f"{seconds * 1000:,.2f}",
                        change(seconds, base[4]),
                        f"{paper[3]:+,}",
                        end_section=name == SOLVERS[-1],
                    )
            console.print(table)


def problem_of(model: str, network: str, costs: str, elementwise: tuple[int, int] = ELEMENTWISE[0]) -> Problem:
    """A model on a network, with the costs of the paper or with those of problems/."""
    graph = json.loads((FILES / "graphs" / f"{MODELS[model]}.json").read_text(encoding="utf-8"))
    problem = po.compile(graph | network_document(network))
    if costs == "real":
        return problem
    elements = np.zeros(problem.n_tasks, dtype=np.int64)
    np.add.at(elements, problem.edge_target, problem.payload // 4)
    elements[np.diff(problem.in_start) == 0] = IMAGE[model]
    factor = np.array([COSTS.get(task["op"], elementwise) for task in graph["tasks"].values()], dtype=np.int64)
    kind = np.array([0 if name == "cpu" else 1 for name in problem.device_types])
    return replace(
        problem,
        resolution=Fraction(1, 10**6),
        duration=elements[:, None] * factor[:, kind],
        capacity=np.full(problem.n_devices, UNLIMITED),
        latency=np.zeros_like(problem.latency),
        byte_ticks_num=np.zeros_like(problem.byte_ticks_num),
    )


def measured(model: str, network: str, costs: str, name: str) -> tuple[float, float, float, float, float]:
    """JCT, makespan, bytes on the fullest device, bytes of the process, CPU seconds; times in the unit of the table."""
    problem = problem_of(model, network, costs)
    seconds, schedule = placed(problem, name, {})
    assert schedule is not None, f"{name} found no placement of {model}"
    report = po.verify(problem, schedule)
    assert report.feasible, f"{name} on {model}: {report.violations[0].message}"
    unit = 1.0 if costs == "paper" else float(problem.resolution) * 1e6
    process = process_memory(model, network, costs, name)
    return (
        carbonari_jct(problem, schedule.device) * unit,
        makespan(problem, schedule) * unit,
        float(peak_memory(problem, schedule).max()),
        process,
        seconds,
    )


def placed(
    problem: Problem, name: str, settings: dict[str, Any], runs: int = RUNS, *, warm: bool = True
) -> tuple[float, Schedule | None]:
    """Median CPU seconds of a solver, and its schedule after re-timing."""
    solver = find_solver(name)
    chosen = checked_settings(name, solver.settings_type, settings)
    seconds = []
    if warm:
        answer = solver.solve(problem, Options(), chosen)
    for _ in range(runs):
        begin = time.thread_time()
        answer = solver.solve(problem, Options(), chosen)
        seconds.append(time.thread_time() - begin)
    schedule = answer.schedule
    return statistics.median(seconds or [0.0]), None if schedule is None else retime(problem, schedule)


def process_memory(model: str, network: str, costs: str, name: str) -> float:
    """Peak memory in bytes of a separate process that reads the problem and solves it once (Linux)."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from carbonari_tables import problem_of, solved_once\n"
        "solved_once(problem_of(*sys.argv[2:5]), sys.argv[5])\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent), model, network, costs, name]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
    return statistics.median(int(run.stdout) * 1024 for run in runs)


def solved_once(problem: Problem, name: str) -> None:
    """Place the problem once, for `process_memory`."""
    solver = find_solver(name)
    solver.solve(problem, Options(), solver.settings_type())


def change(value: float, base: float) -> str:
    """The change relative to a base, in per cent."""
    return f"{(value - base) / base * 100:+,.1f}"


def hard_problems() -> Iterator[tuple[str, Problem]]:
    """Problems with scarce memory, expensive communication, or both, with their titles."""
    for name in ("vgg19-tight", "resnet50-tight", "inception-tight"):
        yield f"{name}\nmemory", po.load(FILES / f"{name}.yaml")
    for batch, what in ((256, "memory, communication"), (32, "communication")):
        document = model_document("inception_v3", training=True, batch=batch) | BAECHI
        yield f"inception-v3 training,\nbatch {batch}, 4 V100\n{what}", po.compile(document)
    document = model_document("lstm_nmt", training=True, batch=64, layers=4, width=1024) | BAECHI
    yield "lstm_nmt training,\nbatch 64, 4 V100\ncommunication", po.compile(document)
    yield "gnmt\ncommunication", po.load(FILES / "gnmt.yaml")
    yield "layered, 2,000 tasks,\n8 devices, CCR 10\ncommunication", layered_problem(2000, 8, ccr=10.0)
    yield (
        "layered, 2,000 tasks,\n8 devices, CCR 10,\n90 % full\nmemory, communication",
        layered_problem(2000, 8, ccr=10.0, tightness=0.9),
    )


def costs(console: Console) -> None:
    """Dependence of the results on the costs that the paper does not publish."""
    table = Table(title="change of JCT (and makespan) relative to heuristic-g in %, by costs of elementwise operations")
    for header in ("model", "network", "solver"):
        table.add_column(header)
    for cpu, gpu in ELEMENTWISE:
        table.add_column(f"{cpu} on a core, {gpu} on a GPU", justify="right")
    table.add_column("paper", justify="right")
    for model in list(MODELS)[1:]:
        for network in NETWORKS:
            for name in SOLVERS[1:]:
                cells = []
                for elementwise in ELEMENTWISE:
                    problem = problem_of(model, network, "paper", elementwise)
                    schedules = [placed(problem, solver, {}, 0)[1] for solver in (SOLVERS[0], name)]
                    base, found = (
                        (carbonari_jct(problem, schedule.device), makespan(problem, schedule))
                        for schedule in schedules
                        if schedule is not None
                    )
                    cells.append(f"{change(found[0], base[0])} ({change(found[1], base[1])})")
                paper = PAPER[network, model][name][1]
                last = network == NETWORKS[-1] and name == SOLVERS[-1]
                table.add_row(model, network, name, *cells, f"{paper:+g}", end_section=last)
    console.print(table)


def extensions(console: Console) -> None:
    """Effect of the settings on problems that violate the assumptions of the paper."""
    table = Table(title=f"scarce memory and expensive transfers; bounds after {BOUND_SECONDS:g} s")
    for header in ("problem", "solver"):
        table.add_column(header)
    for header in ("feasible", "MiB over", "makespan, ms", "/ -gi, paper", "/ heft", "bound, ms", "gap"):
        table.add_column(header, justify="right")
    for title, problem in hard_problems():
        bound = float(po.bounds(problem, time_limit=BOUND_SECONDS, workers=1)[0].value)
        tick = float(problem.resolution) * 1000
        reference = [
            po.solve(problem, "submodular-gi", **AS_PUBLISHED).makespan,
            po.solve(problem, "heft").makespan,
        ]
        for index, (label, name, settings) in enumerate(VARIANTS):
            result = po.solve(problem, name, **settings)
            first, last = index == 0, index == len(VARIANTS) - 1
            cells = [title if first else "", label]
            if result.schedule is None or result.makespan is None:
                table.add_row(*cells, "none", *[""] * 6, end_section=last)
                continue
            over = np.maximum(used_memory(problem, result.schedule) - problem.capacity, 0)
            table.add_row(
                *cells,
                "yes" if result.feasible else "no",
                f"{over.sum() / MIB:,.1f}",
                f"{result.makespan * tick:,.3f}",
                *(ratio(result.makespan, other) for other in reference),
                f"{bound * tick:,.3f}" if first else "",
                f"{(result.makespan - bound) / result.makespan * 100:.1f} %" if result.feasible else "",
                end_section=last,
            )
    console.print(table)


def ratio(length: int, other: int | None) -> str:
    """The ratio of two makespans."""
    return "-" if not other else f"x {length / other:.3f}"


def speed(console: Console) -> None:
    """CPU time of large problems."""
    problems = {"layered": layered_problem(36_000, 60, ccr=1.0), "transformer": transformer(60)}
    table = Table(title="CPU seconds of one thread, and makespan / makespan of heuristic-g; 60 devices")
    table.add_column("solver")
    for name, problem in problems.items():
        table.add_column(f"{name}\n{problem.n_tasks:,} tasks\n{problem.n_edges:,} edges", justify="right")
    reference = {}
    tiny = layered_problem(1000, 60, ccr=1.0)
    for label, name, settings in LARGE:
        cells = []
        placed(tiny, name, settings, 0)  # compiles the kernels
        for key, problem in problems.items():
            seconds, schedule = placed(problem, name, settings, 1, warm=False)
            length = None if schedule is None else makespan(problem, schedule)
            reference.setdefault(key, length)
            cells.append(f"{seconds:.3f}  {'none' if length is None else ratio(length, reference[key])}")
        table.add_row(label, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
