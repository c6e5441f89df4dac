"""Carbonari, Kodirov and Golub: placement as submodular maximisation.

A. Carbonari, N. Kodirov, M. Golub: TensorFlow Job Placement Optimization as a Submodular Function Maximization, 2017.

All results but times and the memory of processes are deterministic. "JCT" is the job completion time of the paper
(`placeopt.model.metrics.carbonari_jct`), and "makespan" the end of the last task in a verified schedule. CPU time is
that of one thread, from the compiled problem to the schedule, the median of five runs after a first one. "Process" is
the peak memory of a process that reads the problem and places it: the conclusion of the paper names "system memory
consumption and time spent to place job graph" as characteristics of the algorithm. "On a device" is the largest peak
memory of any device.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import carbonari_best
import carbonari_costs
from carbonari_graphs import FILES, MODELS, NODES, inferred_problem
from carbonari_paper import INCEPTION, INFERRED, PAPER, change_verdict, jct_verdict
from claims import Claim, Verdict
from reports import Item, Paper, Report, Workplace, collected
from submodular_extensions import MIB, placed

import placeopt as po
from placeopt.generate.networks import network_document
from placeopt.model.memory import peak_memory
from placeopt.model.metrics import carbonari_jct
from placeopt.model.problem import Problem
from placeopt.model.schedule import makespan
from placeopt.solver import Options
from placeopt.solver.registry import find_solver
from placeopt.submodular import check_submodular
from placeopt.submodular.placement import PlacementModel, PlacementSettings

NETWORKS = {"small": 3, "medium": 30, "large": 60}
SOLVERS = ("heuristic-g", "submodular-g", "submodular-gi")
ELEMENTWISE = ((2, 1), (1, 1), (4, 1))
"""Costs of batch_norm and relu on a core and on a GPU; add costs twice as much. Those on a core are assumed."""
APPENDIX = (
    (1, "n3", "core0", 1.410), (2, "n4", "gpu", 3.399), (3, "n1", "core1", 4.799), (4, "n5", "core0", 5.371),
    (5, "n2", "core1", 5.935),
)  # fmt: skip
"""Appendix 6.1: round, node, device and f, as a sum of roots that are cut after three digits."""


def table(workplace: Workplace, *, network: str) -> Report:
    """Tables 1 to 3: one network."""
    report = Report()
    for costs in ("paper", "real"):
        cells: list[Claim] = []
        rows = []
        for model in NODES:
            found = {name: measured(workplace, model, network, costs, name) for name in SOLVERS}
            base = found["heuristic-g"]
            for name, (jct, length, memory, process, seconds) in found.items():
                paper = PAPER[network, model][name]
                what = f"{model}, {name}"
                if costs == "paper":
                    cells.append(
                        Claim(
                            f"{what}: JCT", f"{paper[0]:,}", f"{jct:,.0f}",
                            *jct_verdict(model, name, jct, length, paper[0]),
                        )
                    )  # fmt: skip
                    if name != "heuristic-g":
                        cells.append(changed(f"{what}: JCT", paper[1], percent(jct, base[0]), 1.0))
                        cells.append(
                            Claim(
                                f"{what}: memory", f"{paper[2]:+g} %", f"{percent(process, base[3]):+.1f} %",
                                "not comparable", "the memory of another program; ours loads compiled code",
                            )
                        )  # fmt: skip
                        cells.append(changed(f"{what}: CPU time", paper[3], percent(seconds, base[4]), 5.0))
                rows.append(
                    (
                        model, name, f"{jct:,.0f}", f"{length:,.0f}", f"{percent(length, base[1]):+.1f} %",
                        f"{memory / MIB:,.1f}" if costs == "real" else "", f"{process / MIB:,.0f}",
                        f"{seconds * 1000:,.2f}",
                    )
                )  # fmt: skip
        if cells:
            report.claims("graphs and costs inferred from the published JCTs; free transfers", cells)
        unit = "ticks" if costs == "paper" else "us"
        kind = "inferred costs" if costs == "paper" else "times and transfers of real hardware (problems/)"
        headers = (
            "model", "solver", f"JCT, {unit}", f"makespan, {unit}", "to heuristic-g", "on a device, MiB",
            "process, MiB", "CPU ms",
        )  # fmt: skip
        report.table(kind, headers, rows)
    return report


def changed(what: str, paper: float, ours: float, within: float) -> Claim:
    """The cell of a change relative to heuristic-g in per cent."""
    verdict: Verdict = change_verdict(ours, paper, within)
    return Claim(f"{what}, change to heuristic-g", f"{paper:+,g} %", f"{ours:+,.1f} %", verdict)


def problem_of(model: str, network: str, costs: str, elementwise: tuple[int, int] = ELEMENTWISE[0]) -> Problem:
    """A model on a network, with the inferred costs of the paper or with those of problems/."""
    if costs == "real":
        graph = json.loads((FILES / "graphs" / f"{MODELS[model]}.json").read_text(encoding="utf-8"))
        return po.compile(graph | network_document(network))
    core, gpu = elementwise
    chosen = INFERRED | {"batch_norm": elementwise, "relu": elementwise, "add": (2 * core, 2 * gpu)}
    return inferred_problem(model, network, chosen | INCEPTION if model == "Inception-v3" else chosen)


def measured(
    workplace: Workplace, model: str, network: str, costs: str, name: str
) -> tuple[float, float, float, float, float]:
    """JCT, makespan, bytes on the fullest device, bytes of the process, CPU seconds; times in the unit of the table."""

    def compute() -> list[float]:
        problem = problem_of(model, network, costs)
        seconds, schedule = placed(problem, name, {})
        assert schedule is not None, f"{name} found no placement of {model}"
        report = po.verify(problem, schedule)
        assert report.feasible, f"{name} on {model}: {report.violations[0].message}"
        unit = 1.0 if costs == "paper" else float(problem.resolution) * 1e6
        return [
            carbonari_jct(problem, schedule.device) * unit,
            makespan(problem, schedule) * unit,
            float(peak_memory(problem, schedule).max()),
            process_memory(model, network, costs, name),
            seconds,
        ]

    jct, length, memory, process, seconds = workplace.measurements.value(compute, model, network, costs, name)
    return jct, length, memory, process, seconds


def process_memory(model: str, network: str, costs: str, name: str) -> float:
    """Peak memory in bytes of a separate process that reads the problem and solves it once (Linux)."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from carbonari import problem_of, solved_once\n"
        "solved_once(problem_of(*sys.argv[3:6]), sys.argv[6])\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    command = [sys.executable, "-c", program, *folders, model, network, costs, name]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
    return statistics.median(int(run.stdout) * 1024 for run in runs)


def solved_once(problem: Problem, name: str) -> None:
    """Place the problem once, for `process_memory`."""
    solver = find_solver(name)
    solver.solve(problem, Options(), solver.settings_type())


def percent(value: float, base: float) -> float:
    """The change relative to a base, in per cent."""
    return (value - base) / base * 100


def appendix(_: Workplace) -> Report:
    """The worked example, round by round."""
    problem = po.load(FILES / "five-node.yaml")
    model = PlacementModel(problem, "inside", PlacementSettings(cap="100", memory="unlimited"))
    found = model.place_all()
    cells = []
    for (number, node, device, value), task, d, ours in zip(
        APPENDIX, found.task.tolist(), found.device.tolist(), found.values.tolist(), strict=True
    ):
        names = problem.task_names[task], problem.device_names[d]
        same = names[0] == node and names[1].startswith(device) and abs(ours - value) < 0.005
        cells.append(
            Claim(
                f"round {number}", f"{node} on {device}, f = {value}", f"{names[0]} on {names[1]}, f = {ours:.4f}",
                "same" if same else "reversed",
            )
        )  # fmt: skip
    device = found.device[found.task.argsort()]
    jct = carbonari_jct(problem, device)
    cells.append(Claim("JCT", "17", str(jct), "same" if jct == 17 else "reversed"))
    report = Report()
    report.claims("tables 4 and 5, figures 1 to 4, rounds 1 to 5", cells)
    report.text("The paper adds roots that are cut after three digits, so that its f is up to 0.004 lower.")
    return report


def submodularity(_: Workplace) -> Report:
    """Section 3."""
    problem = po.load(FILES / "five-node.yaml")
    cells = []
    for name, form in (("submodular-g", "inside"), ("submodular-gi", "outside")):
        model = PlacementModel(problem, form, PlacementSettings(cap="100", memory="unlimited"))
        found = check_submodular(model, exhaustive=True, independence=model.independence())
        for claim, outcome in (("submodular", found.submodular), ("monotone", found.monotone)):
            cells.append(
                Claim(
                    f"section 3: the function of {name} is {claim}", "proved",
                    f"{outcome.violations:,} of {outcome.cases:,} cases violate it",
                    "reversed" if outcome.violations else "same",
                )
            )  # fmt: skip
    report = Report()
    report.claims("the worked example, all sequences of placements", cells)
    report.text(
        "Tasks that can run at the same time increase each other's benefit. [Submodular placement]"
        "(submodular.md#is-the-papers-function-submodular) has the gap in the proof, and what holds."
    )
    return report


def best(_: Workplace) -> Report:
    """Section 4: greedy against the best f."""
    return collected(lambda: carbonari_best.compare(60))


def costs(_: Workplace) -> Report:
    """The unpublished costs."""
    return collected(lambda: carbonari_costs.infer(12))


def dependence(_: Workplace) -> Report:
    """How the changes depend on costs that are neither published nor inferred."""
    rows = []
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
                    cells.append(f"{percent(found[0], base[0]):+.1f} % ({percent(found[1], base[1]):+.1f} %)")
                rows.append((model, network, name, *cells, f"{PAPER[network, model][name][1]:+g} %"))
    report = Report()
    headers = ("model", "network", "solver", *(f"{core} on a core, {gpu} on a GPU" for core, gpu in ELEMENTWISE))
    title = "change of JCT (and makespan) relative to heuristic-g, by costs of elementwise operations"
    report.table(title, (*headers, "paper"), rows)
    return report


CARBONARI = Paper(
    "carbonari",
    "Carbonari et al.",
    "A. Carbonari, N. Kodirov, M. Golub, *TensorFlow Job Placement Optimization as a Submodular "
    "Function Maximization*, 2017.",
    "The paper publishes neither its graphs nor most of its costs. The item costs infers them from the JCTs of VGG-19 "
    "and ResNet-50. A JCT is the same within 1 %, a change within 1 percentage point (CPU time: 5). "
    "[Submodular placement](submodular.md) discusses the results.",
    (
        Item("appendix", "worked example: figures 1 to 4, tables 4 and 5", appendix, "1 second"),
        *(
            Item(
                f"table-{k}",
                f"{count} devices",
                partial(table, network=network),
                "1 minute",
                kept="measures CPU seconds and memory of processes",
            )
            for k, (network, count) in enumerate(NETWORKS.items(), 1)
        ),
        Item("section-3", "is the function submodular?", submodularity, "10 seconds"),
        Item("section-4", "f of greedy against the best f", best, "2 minutes"),
        Item("costs", "beyond the paper: the unpublished costs", costs, "10 seconds"),
        Item("dependence", "beyond the paper: the changes by the costs that remain unknown", dependence, "10 seconds"),
    ),
)
