"""Reproduce and extend the tables of Carbonari, Kodirov, Golub 2017: submodular placement and the greedy heuristic.

    python benchmarks/carbonari_tables.py [tables] [costs] [extensions] [speed]

All sections run unless some are named. All results are deterministic; the layered graphs have seed 0. CPU time is
that of one thread, from the compiled problem to the schedule: the median of RUNS runs after a warm-up run, or one run
for large problems, with the code compiled by a small problem before. "JCT" is the job completion time of the paper
(`placeopt.model.metrics.carbonari_jct`), and "makespan" the end of the last task in a verified schedule.

tables      VGG-19, ResNet-50 and Inception-v3 on the networks of 3, 30 and 60 devices (2, 20, 40 cores and 1, 10, 20
            GPUs), with two sets of costs, together with the figures of the paper:
            - the costs of the paper, as far as they are published or inferred (`carbonari_paper.INFERRED`, found by
              `carbonari_costs`): ticks for each element that a task reads, free transfers, unlimited memory. The graphs
              are those of `carbonari_graphs`. Absolute JCTs are compared with those of the paper; each has a verdict.
            - the times of problems/ (roofline of real hardware, a GPU up to 186 times as fast as a core) and their
              transfers, which the JCT ignores.
            "process" is the peak memory of a process that reads the problem and places it. The conclusion of the
            paper names "system memory consumption and time spent to place job graph" as characteristics of the
            algorithm. "on a device" is the memory of the placement: the largest peak memory of any device. The inferred
            graphs state none.
costs       the change of JCT depending on the costs that are neither published nor inferred (ELEMENTWISE).
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
from pathlib import Path
from typing import Any

import numpy as np
from carbonari_graphs import FILES, MODELS, NODES, inferred_problem
from carbonari_paper import INCEPTION, INFERRED, PAPER, REASONS, jct_verdict, verdict
from heuristics_36000 import transformer
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.memory import peak_memory, used_memory
from placeopt.model.metrics import carbonari_jct
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.simulation import retime
from placeopt.solver import Options, checked_settings
from placeopt.solver.registry import find_solver

RUNS = 5
BOUND_SECONDS = 10.0
MIB = 1 << 20
NETWORKS = ("small", "medium", "large")
SOLVERS = ("heuristic-g", "submodular-g", "submodular-gi")

ELEMENTWISE = ((2, 1), (1, 1), (4, 1))
"""Costs of batch_norm and relu on a core and on a GPU; add costs twice as much. Those on a core are assumed."""

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
            unit = "costs of the paper, in ticks; free transfers" if costs == "paper" else "times of problems/, in us"
            times = Table(title=f"{network} network, {count} devices: {unit}")
            means = Table(title=f"{network} network, {count} devices: means to place the graph; memory in MiB; {unit}")
            heads = ("JCT", "paper", "verdict", "change %", "paper", "verdict", "makespan", "change %")
            for table in (times, means):
                table.add_column("model")
                table.add_column("solver")
            for header in heads:
                times.add_column(header, justify="left" if header == "verdict" else "right")
            for header in ("on a device", "process", "change %", "paper", "CPU ms", "change %", "paper", "verdict"):
                means.add_column(header, justify="right")
            for model in NODES:
                base: tuple[float, ...] | None = None
                for name in SOLVERS:
                    found = measured(model, network, costs, name)
                    base = found if base is None else base
                    jct, length, memory, process, seconds = found
                    paper = PAPER[network, model][name]
                    label, last = model if name == SOLVERS[0] else "", name == SOLVERS[-1]
                    first = name == SOLVERS[0]
                    longer, slower = percent(jct, base[0]), percent(seconds, base[4])
                    times.add_row(
                        label,
                        name,
                        f"{jct:,.0f}",
                        f"{paper[0]:,}",
                        jct_verdict(model, name, jct, length, paper[0]) if costs == "paper" else "",
                        change(jct, base[0]),
                        f"{paper[1]:+g}",
                        "" if first else verdict(longer, paper[1], 1.0),
                        f"{length:,.0f}",
                        change(length, base[1]),
                        end_section=last,
                    )
                    means.add_row(
                        label,
                        name,
                        "" if costs == "paper" else f"{memory / MIB:,.1f}",
                        f"{process / MIB:,.1f}",
                        change(process, base[3]),
                        f"{paper[2]:+g}",
                        f"{seconds * 1000:,.2f}",
                        change(seconds, base[4]),
                        f"{paper[3]:+,}",
                        "" if first else verdict(slower, paper[3], 5.0),
                        end_section=last,
                    )
            console.print(times)
            console.print(means)
    for name, reason in REASONS.items():
        console.print(f"{name}: {reason}")


def problem_of(model: str, network: str, costs: str, elementwise: tuple[int, int] = ELEMENTWISE[0]) -> Problem:
    """A model on a network, with the inferred costs of the paper or with those of problems/."""
    if costs == "real":
        graph = json.loads((FILES / "graphs" / f"{MODELS[model]}.json").read_text(encoding="utf-8"))
        return po.compile(graph | network_document(network))
    core, gpu = elementwise
    chosen = INFERRED | {"batch_norm": elementwise, "relu": elementwise, "add": (2 * core, 2 * gpu)}
    return inferred_problem(model, network, chosen | INCEPTION if model == "Inception-v3" else chosen)


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


def percent(value: float, base: float) -> float:
    """The change relative to a base, in per cent."""
    return (value - base) / base * 100


def change(value: float, base: float) -> str:
    """The same as text."""
    return f"{percent(value, base):+,.1f}"


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
    for model in list(NODES)[1:]:
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
