"""Carbonari, Kodirov and Golub: placement as submodular maximisation.

A. Carbonari, N. Kodirov, M. Golub: TensorFlow Job Placement Optimization as a Submodular Function Maximization, 2017.

All results but those of the item times are deterministic. "JCT" is the job completion time of the paper
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
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import carbonari_best
import carbonari_costs
from carbonari_graphs import FILES, MODELS, NODES, inferred_problem
from carbonari_paper import (
    INCEPTION,
    INFERRED,
    PAPER,
    change_verdict,
    counted,
    jct_change,
    jct_verdict,
    overhead,
    percent,
    published_percent,
    trend,
)
from claims import Claim, Verdict
from reports import Item, Paper, Report, Workplace, collected
from submodular_extensions import MIB, placed

import placeopt as po
from placeopt.generate.networks import network_document
from placeopt.model.memory import peak_memory
from placeopt.model.metrics import carbonari_jct
from placeopt.model.problem import Problem
from placeopt.model.schedule import makespan
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver
from placeopt.submodular import check_submodular
from placeopt.submodular.placement import Form, PlacementModel, PlacementSettings

NETWORKS = {"small": 3, "medium": 30, "large": 60}
SOLVERS = ("heuristic-g", "submodular-g", "submodular-gi")
COMPARED = tuple(product(MODELS, SOLVERS[1:]))
"""What the paper compares with heuristic-g."""
COSTS = {
    "paper": ("inferred costs", "ticks"), "real": ("times and transfers of real hardware (problems/)", "us")
}  # fmt: skip
"""Titles and units of time."""
ELEMENTWISE = ((2, 1), (1, 1), (4, 1))
"""Costs of batch_norm and relu on a core and on a GPU; add costs twice as much. Those on a core are assumed."""
APPENDIX = (
    (1, "n3", "core0", 1.410), (2, "n4", "gpu", 3.399), (3, "n1", "core1", 4.799), (4, "n5", "core0", 5.371),
    (5, "n2", "core1", 5.935),
)  # fmt: skip
"""Appendix 6.1: round, node, device and f, as a sum of roots that are cut after three digits."""


def table(_: Workplace, *, network: str) -> Report:
    """Tables 1 to 3: one network."""
    report = Report()
    cells: list[Claim] = []
    for model, name in product(NODES, SOLVERS):
        found, published = placement(model, network, "paper", name), PAPER[network, model][name][0]
        ours = f"{found.jct:,.0f} ({percent(found.jct, published):+.1f} %)"
        verdict = jct_verdict(model, name, found.jct, found.makespan, published)
        cells.append(Claim(f"{model}, {name}: JCT", f"{published:,}", ours, *verdict))
        if name != "heuristic-g":
            cells.append(jct_change(network, model, name, jct_percent(model, network, name)))
    report.claims("graphs and costs inferred from the published JCTs; free transfers", cells)
    for costs, (title, unit) in COSTS.items():
        rows = []
        for model, name in product(NODES, SOLVERS):
            found, base = (placement(model, network, costs, each) for each in (name, "heuristic-g"))
            on_device = [f"{found.memory / MIB:,.1f}"] if costs == "real" else []
            change = f"{percent(found.makespan, base.makespan):+.1f} %"
            rows.append((model, name, f"{found.jct:,.0f}", f"{found.makespan:,.0f}", change, *on_device))
        headers = ("model", "solver", f"JCT, {unit}", f"makespan, {unit}", "to heuristic-g", "on a device, MiB")
        report.table(title, headers[: len(rows[0])], rows)
    return report


def trends(_: Workplace) -> Report:
    """How the tables change from network to network, and what section 4 says of them."""
    changes = {key: [jct_percent(key[0], network, key[1]) for network in NETWORKS] for key in COMPARED}
    cells = []
    for (model, name), ours in changes.items():
        paper = [published_percent(network, model, name) for network in NETWORKS]
        cells.append(trend(f"{model}, {name}: JCT, change to heuristic-g", paper, ours, 1.0))
    report = Report()
    report.claims(f"from network to network: {', '.join(map(str, NETWORKS.values()))} devices", cells)
    higher = [(f"{model}, {name}", all(change > 0 for change in each)) for (model, name), each in changes.items()]
    near = []
    for model in NODES:
        one, other = (placement(model, "small", "paper", name).jct for name in SOLVERS[1:])
        near.append((f"{model}, {percent(other, one):+.1f} %", abs(percent(other, one)) <= 2))
    largest = 1 + max(max(each) for each in changes.values()) / 100
    verdict: Verdict = "same" if 1.8 <= largest <= 2.2 else "direction"
    report.claims(
        "abstract, section 4",
        [
            counted("JCTs of the submodular algorithms are above those of heuristic-g, on all networks", "yes", higher),
            counted("JCTs of submodular-gi and submodular-g on 3 devices, within 2 %", "up to +1.6 %", near),
            Claim("JCT, times that of heuristic-g", "up to 2; 2.2 in table 2", f"up to {largest:.2f}", verdict),
        ],
    )
    return report


def times(workplace: Workplace) -> Report:
    """CPU time and memory of the process in tables 1 to 3; both depend on the machine and on what else it does."""
    found = {key: resources(workplace, *key) for key in product(MODELS, NETWORKS, COSTS, SOLVERS)}
    growth, cells = [], []
    for model, name in COMPARED:
        pairs = [[found[model, network, "paper", each] for each in (name, "heuristic-g")] for network in NETWORKS]
        memory = [percent(mine.process, base.process) for mine, base in pairs]
        growth += memory
        cells += resource_cells(model, name, memory, [percent(mine.seconds, base.seconds) for mine, base in pairs])
    report = Report()
    report.claims("changes to heuristic-g", [*cells, memory_claim(max(growth))])
    headers = [f"{what}: {count} devices" for what, count in product(("process, MiB", "CPU ms"), NETWORKS.values())]
    for costs, (title, _) in COSTS.items():
        rows = []
        for model, name in product(MODELS, SOLVERS):
            each = [found[model, network, costs, name] for network in NETWORKS]
            process = (f"{one.process / MIB:,.0f}" for one in each)
            rows.append((model, name, *process, *(f"{one.seconds * 1000:,.2f}" for one in each)))
        report.table(title, ("model", "solver", *headers), rows)
    return report


def resource_cells(model: str, name: str, memory: list[float], seconds: list[float]) -> list[Claim]:
    """The cells of memory and CPU time on all networks, as changes in per cent, and the growth of the CPU time."""
    papers = [PAPER[network, model][name] for network in NETWORKS]
    cells = []
    for count, paper, grown, spent in zip(NETWORKS.values(), papers, memory, seconds, strict=True):
        cells.append(changed(f"{model}, {name}, {count} devices: memory", paper[2], grown, 1.0))
        cells.append(changed(f"{model}, {name}, {count} devices: CPU time", paper[3], spent, 5.0))
    what = f"{model}, {name}: CPU time relative to heuristic-g, from 3 to 60 devices"
    return [*cells, overhead(what, [paper[3] for paper in papers], seconds)]


def memory_claim(growth: float) -> Claim:
    """The claim that the process needs about as much memory as with heuristic-g."""
    text, paper, ours = "memory of the process", "up to +5 %, not significant", f"up to {growth:+.0f} %"
    if growth <= 6:
        return Claim(text, paper, ours, "same")
    return Claim(text, paper, ours, "reversed", "for larger graphs, our process loads compiled code")


def changed(what: str, paper: float, ours: float, within: float) -> Claim:
    """The cell of a change relative to heuristic-g in per cent."""
    verdict: Verdict = change_verdict(ours, paper, within)
    return Claim(f"{what}, change to heuristic-g", f"{paper:+,.10g} %", f"{ours:+,.1f} %", verdict)


def problem_of(model: str, network: str, costs: str, elementwise: tuple[int, int] = ELEMENTWISE[0]) -> Problem:
    """A model on a network, with the inferred costs of the paper or with those of problems/."""
    if costs == "real":
        graph = json.loads((FILES / "graphs" / f"{MODELS[model]}.json").read_text(encoding="utf-8"))
        return po.compile(graph | network_document(network))
    core, gpu = elementwise
    chosen = INFERRED | {"batch_norm": elementwise, "relu": elementwise, "add": (2 * core, 2 * gpu)}
    return inferred_problem(model, network, chosen | INCEPTION if model == "Inception-v3" else chosen)


class Placement(NamedTuple):
    """What a solver finds; times are in the unit of the table, memory is that of the fullest device in bytes."""

    jct: float
    makespan: float
    memory: int


@cache
def placement(model: str, network: str, costs: str, name: str) -> Placement:
    """Place a model and verify the schedule."""
    problem = problem_of(model, network, costs)
    _, schedule = placed(problem, name, {}, 0)
    assert schedule is not None, f"{name} found no placement of {model}"
    report = po.verify(problem, schedule)
    assert report.feasible, f"{name} on {model}: {report.violations[0].message}"
    unit = 1.0 if costs == "paper" else float(problem.resolution) * 1e6
    return Placement(
        carbonari_jct(problem, schedule.device) * unit,
        makespan(problem, schedule) * unit,
        int(peak_memory(problem, schedule).max()),
    )


def jct_percent(model: str, network: str, name: str) -> float:
    """The change of the JCT relative to heuristic-g in per cent, with the inferred costs."""
    return percent(*(placement(model, network, "paper", each).jct for each in (name, "heuristic-g")))


class Resources(NamedTuple):
    """What a solver needs: bytes of its process, and CPU seconds."""

    process: float
    seconds: float


def resources(workplace: Workplace, model: str, network: str, costs: str, name: str) -> Resources:
    """Measure a solver."""

    def compute() -> Resources:
        seconds, _ = placed(problem_of(model, network, costs), name, {})
        return Resources(process_memory(model, network, costs, name), seconds)

    return Resources(*workplace.measurements.value(compute, "resources", model, network, costs, name))


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
    forms: tuple[tuple[str, Form, str], ...] = (
        ("submodular-g", "inside", "proved"), ("submodular-gi", "outside", "stated")
    )  # fmt: skip
    for name, form, paper in forms:
        model = PlacementModel(problem, form, PlacementSettings(cap="100", memory="unlimited"))
        outcome = check_submodular(model, exhaustive=True, independence=model.independence()).submodular
        cells.append(
            Claim(
                f"section 3: the function of {name} is submodular", paper,
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
    "and ResNet-50, so that a JCT that differs counts against the inference or the algorithm. A JCT is the same within "
    "1 %, a change within 1 percentage point (CPU time: 5). A trend is the same if each step from one network to the "
    "next rises or falls as in the paper. "
    "[Submodular placement](submodular.md) describes the solvers.",
    (
        Item("appendix", "worked example: figures 1 to 4, tables 4 and 5", appendix, "1 second"),
        *(
            Item(f"table-{k}", f"{count} devices", partial(table, network=network), "1 minute")
            for k, (network, count) in enumerate(NETWORKS.items(), 1)
        ),
        Item("trends", "from 3 to 30 and 60 devices; statements of section 4", trends, "1 minute"),
        Item(
            "times",
            "tables 1 to 3: CPU time and memory of the process",
            times,
            "5 minutes",
            kept="measures CPU seconds and memory of processes",
        ),
        Item("section-3", "is the function submodular?", submodularity, "1 minute"),
        Item("section-4", "f of greedy against the best f", best, "2 minutes"),
        Item("costs", "beyond the paper: the unpublished costs", costs, "10 seconds"),
        Item("dependence", "beyond the paper: the changes by the costs that remain unknown", dependence, "1 minute"),
    ),
)
