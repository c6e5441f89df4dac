"""Compare Baechi's algorithms with each other, and with what its paper and its authors' measurements report.

    python benchmarks/baechi_tables.py [PART ...]

B. Jeon et al., "Baechi: Fast device placement of machine learning graphs", SoCC 2020, doi:10.1145/3419111.3421302. The
text at hand ends in section 3.3, so no step time of its evaluation is known here. Measured step times come from the
results in https://github.com/chiragcshetty/BaechiPyTorch. The link is the one that the authors measured: 134 us +
0.0001754 us per byte (README of https://github.com/beomyeol/baechi).

Parts, all by default:

- figures: the worked examples of figures 1, 3, 4 and 6. The graph of figure 1 is in BaechiPyTorch (`dummy_graphs.py`).
  Edges of figure 2 are inferred from the text of figures 4 and 6.
- theorem: theorem 1's ratio, with and without limits on memory, of proven optima.
- steps: step times of Inception-v3, batch 64, next to measured ones; of GNMT, batch 128, on four devices of 4 GiB.
- adjust: post-adjustment of colocation groups (section 3.1) relative to placing each group with its first operator.
- variants: m-SCT by rule and by favourites on training graphs of four models on four V100 GPUs (`v100x4`), with and
  without port contention, before and after the passes `coplace` and `fuse`. Takes three minutes.
- assumption: m-SCT relative to m-ETF on 100 layered graphs on identical devices whose transfers are no longer than any
  task, which m-SCT's ratio assumes.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from claims import Claim, Verdict, ratio_verdict
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from placeopt_solvers._constructive.construction import construct_with_repair
from placeopt_solvers.ready_lists._pairs import TieSettings, detours, tie_order
from placeopt_solvers.ready_lists.m_sct import favourites_first
from rich.table import Table
from shown import Claims, show, show_claims

import placeopt as po
from placeopt.bounding.sct.favourites import THRESHOLD, Favourites, rounded
from placeopt.bounding.sct.program import SctProgram, program_of
from placeopt.bounding.sct.ratios import ratios_of
from placeopt.generate.layered_graphs import layered_problem
from placeopt.generate.models import model_document
from placeopt.generate.networks import network_document
from placeopt.model.arrays import Float, Int
from placeopt.model.building import build_problem
from placeopt.model.memory import used_memory
from placeopt.model.objective import moved_edges
from placeopt.model.problem import Contention, Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.passes import apply_passes
from placeopt.protocol import Options
from placeopt.protocol.registry import find_solver

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "GNMT": ("lstm_nmt", {"batch": 128}),
    "GNMT, operators": ("lstm_nmt", {"batch": 128, "granular": True}),
    "NMT, width 2048": ("lstm_nmt", {"batch": 256, "width": 2048, "granular": True}),
    "Transformer": (
        "transformer",
        {"batch": 64, "layers": 12, "heads": 16, "width": 2048, "ff_width": 8192, "split_heads": True},
    ),
    "Inception-v3": ("inception_v3", {"batch": 256}),
    "ResNet-50": ("resnet50", {"batch": 256}),
}
"""Training graphs: a generator and its options. GNMT is the model of the paper's section 1."""
NETWORK = network_document("v100x4", bandwidth="5.701 GB/s", latency="134 us")
CONTENTIONS: tuple[Contention, ...] = ("none", "port")
PASSES: dict[str, tuple[str, ...]] = {"-": (), "coplace, fuse": ("coplace", "fuse")}
MEASURED = {"single": (457.4, 460.1), "m-etf": (466.0, 465.4), "m-sct": (462.5, 466.5), "m-topo": (533.3, 537.0)}
"""Milliseconds of a step of Inception-v3 with batch 64 on four GPUs of 6.44 GB, two series of runs each, 2022-08-06:
main_training/results/result_details.txt of BaechiPyTorch."""
MEASURED_PEAK = 6.2
"""GB at the peak of one GPU that runs the whole model: singlegpu_inception_v3.txt there."""
TASKS, DEVICES, LIMITED = 9, 3, 25
"""Size and number of the random graphs for theorem 1."""
PLENTY = (None, 2.0, 1.5)
"""K: the memory of all devices over that of all tasks; None for no limit."""
WAYS = ("", "closing", "released")
"""Settings of m-SCT that are true."""
WORSE = 406
"""Percent by which post-adjustment was worse than an expert, at most (section 3.1)."""
SEEDS = 100
RULES = ("compute", "memory", "majority")
SHAPES = (
    {"tasks": 60, "devices": 4, "width": 3},
    {"tasks": 60, "devices": 8, "width": 6},
    {"tasks": 60, "devices": 4, "width": 8},
    {"tasks": 200, "devices": 4, "width": 14},
)
DURATIONS = ((100, 1000), (100, 200))


def figures() -> Iterable[Table | Claims]:
    """The worked examples."""
    cells = []
    chains = figure_1()
    infinite = po.solve(chains, "sct-lp")
    cells.append(
        Claim("figure 1: makespan of SCT with enough memory", "8", str(infinite.makespan), same(infinite.makespan == 8))
    )
    assert infinite.schedule is not None
    need = int(used_memory(chains, infinite.schedule).max())
    cells.append(Claim("figure 1: SCT needs more than 4 units on a device", "yes", f"{need} units", same(need > 4)))
    for solver, settings, published in (
        ("m-sct", {}, 9),
        ("m-sct", {"urgent_first": False}, None),
        ("m-etf", {}, None),
        ("m-topo", {}, None),
    ):
        found = po.solve(figure_1(4), solver, **settings)
        name = ", ".join([solver, *(f"{key}={str(value).lower()}" for key, value in settings.items())])
        verdict: Verdict = same(found.makespan == published) if published else "not comparable"
        reason = "" if published else "not in the figure"
        cells.append(
            Claim(
                f"figure 1: makespan with 4 units, {name}", str(published or "-"), str(found.makespan), verdict, reason
            )
        )
    dot = tensordot()
    for published, passes in (("three devices", []), ("one device", ["coplace"])):
        schedule = po.solve(dot, "m-etf", passes=passes).schedule
        assert schedule is not None
        count = len(set(schedule.device[[0, 1, 3]].tolist()))
        text = f"figure 3: op_in, perm and Shape by m-ETF, {'co-placed' if passes else 'as they are'}"
        expected = 1 if passes else 3
        cells.append(Claim(text, published, f"{count} of 3 devices", same(count == expected)))
    fused = apply_passes(regression(), ["fuse"]).problem
    text = "figure 4: cycle after fusion by the rule of figure 5"
    cells.append(Claim(text, "none", f"none; {', '.join(fused.task_names)}", same(fused.n_tasks == 4)))
    for published, passes in (("1, 2, 2", []), ("none", ["fuse"])):
        result = po.solve(subgraph(), "m-etf", passes=passes)
        assert result.schedule is not None
        devices = [str(d + 1) for d in result.schedule.device.tolist()]
        ours = ", ".join(devices) if not passes else "none" if len(set(devices)) == 1 else "some"
        text = f"figure 6: {'transfers after fusion' if passes else 'devices of Grad, Step, UpdateStep before fusion'}"
        cells.append(Claim(text, published, f"{ours}; {result.makespan} ticks", same(ours == published)))
    yield Claims("figures of the paper", cells)


def steps() -> Iterable[Table | Claims]:
    """Step times next to measured ones."""
    document = model_document("inception_v3", training=True, batch=64) | NETWORK
    cells = []
    problem = po.compile(document | {"memory_model": "peak"})
    alone = po.solve(problem, "single").schedule
    assert alone is not None
    peak = float(used_memory(problem, alone).max()) / 1e9
    cells.append(
        Claim(
            "memory of one GPU at the peak, GB", str(MEASURED_PEAK), f"{peak:.2f}", ratio_verdict(MEASURED_PEAK, peak)
        )
    )
    for contention in CONTENTIONS:
        case = replace(problem, contention=contention)
        ours = {name: milliseconds(case, name) for name in MEASURED}
        reference, paper_reference = ours["single"], np.mean(MEASURED["single"])
        assert reference is not None
        for name, runs in MEASURED.items():
            if name == "single":
                continue
            own = ours[name]
            text, published = f"{name}, contention: {contention}", float(np.mean(runs))
            shown = f"{runs[0]}, {runs[1]} ms (x {published / paper_reference:.2f})"
            if own is None:
                cells.append(Claim(text, shown, "no placement", "not comparable", "no placement"))
                continue
            verdict = ratio_verdict(published / paper_reference, own / reference)
            cells.append(Claim(text, shown, f"{own:.1f} ms (x {own / reference:.2f})", verdict))
    yield Claims("Inception-v3, batch 64: step time, and its ratio to that of one GPU", cells)

    problem = replace(model("GNMT"), capacity=np.full(4, 4 << 30))
    headers = ("contention", "passes", "single", "m-topo", "m-etf", "m-sct", "heft", "bound")
    table = table_of("GNMT, batch 128, on 4 devices of 4 GiB, milliseconds", headers)
    for contention, (name, passes) in product(CONTENTIONS, PASSES.items()):
        case = replace(problem, contention=contention)
        found = [text_of(milliseconds(case, solver, passes)) for solver in headers[2:-1]]
        bound = float(po.solve(case, "heft").bound or 0) * float(case.resolution) * 1e3
        table.add_row(contention, name, *found, f"{bound:.1f}")
    yield table
    need = problem.memory.sum() / 2**30
    fits = milliseconds(problem, "single") is not None
    claim = "section 1: GNMT with batch 128 does not fit on one GPU of 4 GB"
    yield Claims("memory", [Claim(claim, "yes", f"needs {need:.1f} GiB under `sum`", same(not fits))])


def adjust() -> Iterable[Table | Claims]:
    """Post-adjustment."""
    worst = {}
    for contention in CONTENTIONS:
        headers = ("graph", "passes", *(f"{name}, {rule}" for name in ("m-topo", "m-etf", "m-sct") for rule in RULES))
        title = f"step time after post-adjustment, % above that with the first operator; contention: {contention}"
        table = table_of(title, headers, text=2)
        for name, (label, passes) in product(MODELS, PASSES.items()):
            case, row = replace(model(name), contention=contention), []
            for solver in ("m-topo", "m-etf", "m-sct"):
                base = milliseconds(case, solver, passes)
                for rule in RULES:
                    own = milliseconds(case, solver, passes, adjust=rule)
                    if base is None or own is None:
                        row.append("-")
                        continue
                    worst[name, label, contention, solver, rule] = percent = 100 * (own / base - 1)
                    row.append(f"{percent:+.0f}")
            table.add_row(name, label, *row)
        yield table
    values = sorted(worst.values())
    better = sum(value < 0 for value in values)
    span = f"{values[0]:+.0f}% to {values[-1]:+.0f}%, median {np.median(values):+.0f}%"
    ours = f"{span}, shorter in {better} of {len(values)} cases"
    verdict = ratio_verdict(1 + WORSE / 100, 1 + values[-1] / 100)
    text = "section 3.1: longest step time, relative to an expert's; ours to that with the first operator"
    yield Claims("post-adjustment", [Claim(text, f"+{WORSE}%", ours, verdict)])


def variants() -> Iterable[Table | Claims]:
    """The rules and favourites of m-SCT."""
    columns: dict[str, Callable[[Problem], Schedule]] = {
        "m-ETF": by("m-etf"),
        "m-SCT": by("m-sct"),
        "favourite first": by("m-sct", urgent_first=False),
        "threshold 0.5": by("m-sct", threshold=0.5),
        "interior point": interior_point,
        "m-ETF, topological": by("m-etf", ties="topological"),
        "m-SCT, topological": by("m-sct", ties="topological"),
        "m-SCT, released": by("m-sct", released=True),
    }
    topological = list(columns).index("m-ETF, topological")
    ratios: dict[tuple[str, str], list[float]] = {}
    headers = ("graph", "passes", "rho", *columns)
    moved = table_of("GiB between devices; contention: port", headers, text=2)
    for contention in CONTENTIONS:
        table = table_of(f"step time, milliseconds; contention: {contention}", headers, text=2)
        for name, (label, passes) in product(MODELS, PASSES.items()):
            problem = replace(model(name), contention=contention)
            chain = apply_passes(problem, passes)
            found = [chain.restore(way(chain.problem)) for way in columns.values()]
            ticks = [makespan(problem, each) for each in found]
            row = (name, label, f"{rho(chain.problem):,.0f}")
            table.add_row(*row, *(f"{each * float(problem.resolution) * 1e3:.1f}" for each in ticks))
            if contention == "port":
                sizes = (problem.payload[moved_edges(problem, each.device)].sum() / 2**30 for each in found)
                moved.add_row(*row, *(f"{size:.2f}" for size in sizes))
            for place, (column, each) in enumerate(zip(columns, ticks, strict=True)):
                base = ticks[topological if place >= topological else 0]
                ratios.setdefault((contention, column), []).append(each / base)
        yield table
    yield moved
    table = table_of(
        "geometric mean of the ratio to m-ETF with the same order of ties; graphs below and above 1",
        ("contention", *columns),
    )
    for contention in CONTENTIONS:
        table.add_row(contention, *(summary(ratios[contention, column]) for column in columns))
    yield table


def theorem() -> Iterable[Table | Claims]:
    """Theorem 1's ratio on graphs that satisfy its assumption: with and without limits on memory."""
    headers = ("K", "alpha + (1 - beta / m) / (K - 1)", *("m-SCT" + (f", {way}=true" if way else "") for way in WAYS))
    title = f"makespan by optimum, at most, threshold=0.5; {LIMITED} graphs of {TASKS} tasks on {DEVICES} devices"
    table, cells = table_of(title, headers), []
    for plenty in PLENTY:
        bound, worst = worst_ratios(plenty)
        name = "no limit" if plenty is None else f"{plenty:g}"
        table.add_row(name, f"{bound:.2f}", *(f"{each:.3f}" for each in worst))
        text = f"theorem 1: ratio of m-SCT to the optimum, K: {name}"
        cells.append(Claim(text, f"at most {bound:.2f}", f"at most {worst[0]:.3f}", same(worst[0] <= bound)))
    case, bound = closing_chain()
    closed, default = (ticks(case, closing=each) for each in (True, False))
    text = (
        f"theorem 1, if a device closes when a task does not fit: K = 1.67, 200 of {case.n_tasks} tasks without memory"
    )
    ours = f"at least {closed / default:.2f}: {closed} ticks, the optimum takes at most {default}"
    reason = "the proof takes only devices without a byte left for full"
    cells.append(Claim(text, f"at most {bound:.2f}", ours, same(closed / default <= bound), reason))
    yield table
    yield Claims("ratio of m-SCT", cells)


def worst_ratios(plenty: float | None) -> tuple[float, list[float]]:
    """The least of theorem 1's ratios of the random graphs, and the greatest ratio of each way to the optimum."""
    bounds, worst = [], [0.0] * len(WAYS)
    for seed in range(LIMITED):
        case = with_memory(seed, plenty)
        best = po.solve(case, "cp-sat", workers=1, passes=[], time_limit=60)
        assert best.makespan is not None
        assert best.gap == 0
        bounds.append(ratio_of(case))
        found = [ticks(case, **({way: True} if way else {})) / best.makespan for way in WAYS]
        worst = [max(pair) for pair in zip(worst, found, strict=True)]
    return min(bounds), worst


def ticks(problem: Problem, **settings: bool) -> int:
    """The makespan of m-SCT at the threshold for which its ratio is stated."""
    makespan = po.solve(problem, "m-sct", threshold=0.5, passes=[], **settings).makespan
    assert makespan is not None
    return makespan


def ratio_of(problem: Problem) -> float:
    """Theorem 1's ratio."""
    ratio = ratios_of(problem).m_sct
    assert ratio is not None
    return float(ratio)


def assumption() -> Iterable[Table | Claims]:
    """Graphs that satisfy the SCT assumption."""
    columns: dict[str, dict[str, Any]] = {
        "m-SCT": {},
        "favourite first": {"urgent_first": False},
        "threshold 0.5": {"threshold": 0.5},
    }
    table = table_of(
        f"makespan relative to m-ETF's: geometric mean of {SEEDS} layered graphs; graphs below and above 1",
        ("tasks", "width", "devices", "durations", *columns),
    )
    for shape, durations in product(SHAPES, DURATIONS):
        ratios: dict[str, list[float]] = {column: [] for column in columns}
        for seed in range(SEEDS):
            case = layered_problem(
                **shape, duration=durations, payload=(50_000, 99_000), latency=1, speed_heterogeneity=0.0, seed=seed
            )
            base = makespan(case, by("m-etf")(case))
            for column, settings in columns.items():
                ratios[column].append(makespan(case, by("m-sct", **settings)(case)) / base)
        cells = [summary(each) for each in ratios.values()]
        low, high = durations
        table.add_row(*(str(shape[key]) for key in ("tasks", "width", "devices")), f"{low} to {high}", *cells)
    yield table


PARTS = {each.__name__: each for each in (figures, theorem, steps, adjust, variants, assumption)}


def main() -> None:
    """Measure and print the tables."""
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := [part for part in chosen if part not in PARTS]:
        raise SystemExit(f"unknown part {unknown[0]}; known are {', '.join(PARTS)}")
    for part in chosen:
        for each in PARTS[part]():
            if isinstance(each, Claims):
                show_claims(*each)
            else:
                show(each)


problems: dict[str, Problem] = {}


def model(name: str) -> Problem:
    """The training graph of a model on the network."""
    if name not in problems:
        generator, options = MODELS[name]
        problems[name] = po.compile(model_document(generator, training=True, **options) | NETWORK)
    return problems[name]


def by(name: str, **settings: Any) -> Callable[[Problem], Schedule]:
    """A solver as a function of the problem."""

    def solve(problem: Problem) -> Schedule:
        solver = find_solver(name)
        schedule = solver.solve(problem, Options(workers=1), solver.settings_type(**settings)).schedule
        assert schedule is not None, f"{name} finds no placement"
        return schedule

    return solve


def milliseconds(problem: Problem, solver: str, passes: Iterable[str] = (), **settings: Any) -> float | None:
    """The verified makespan of a solver; None without a placement that fits."""
    result = po.solve(problem, solver, passes=list(passes), workers=1, **settings)
    if not result.feasible or result.makespan is None:
        return None
    return float(result.makespan) * float(problem.resolution) * 1e3


def interior_point(problem: Problem) -> Schedule:
    """m-SCT with favourites from the solution of an interior-point method, without crossover to a vertex."""
    program, settings = program_of(problem), TieSettings()
    y = interior(program)
    favourites = Favourites(*rounded(program, y, THRESHOLD), y)
    work, sequence = detours(problem, settings), tie_order(problem, settings)
    found = construct_with_repair(
        problem, lambda groups: favourites_first(problem, groups, favourites, sequence, work)
    ).schedule
    assert found is not None
    return found


def interior(program: SctProgram) -> Float:
    """(e,) y of the linear program by the interior-point method of HiGHS."""
    n, e = len(program.length), len(program.source)
    unit = float(program.length.sum()) / n
    edges, tasks = np.arange(e), np.arange(n)
    end = n + e
    # Columns: the start of each task, x of each edge, w. Rows: edges, ends, children, parents; each is a sum >= low.
    out, into = np.bincount(program.source, minlength=n), np.bincount(program.target, minlength=n)
    entries: list[tuple[Int, Int, Float]] = [
        (edges, program.source, np.full(e, -1.0)),
        (edges, program.target, np.ones(e)),
        (edges, n + edges, -program.hidden / unit),
        (e + tasks, tasks, np.full(n, -1.0)),
        (e + tasks, np.full(n, end), np.ones(n)),
        (e + n + program.source, n + edges, np.ones(e)),
        (e + 2 * n + program.target, n + edges, np.ones(e)),
    ]
    row, column, value = (np.concatenate(each) for each in zip(*entries, strict=True))
    low = np.concatenate(
        [
            (program.length[program.source] + program.fixed) / unit,
            (program.length + program.tail) / unit,
            np.maximum(out - 1, 0),
            np.maximum(into - 1, 0),
        ]
    )
    proto = model_pb2.ModelProto()
    proto.variables.ids.extend(range(end + 1))
    proto.variables.lower_bounds.extend([*(program.release / unit), *([0.0] * (e + 1))])
    proto.variables.upper_bounds.extend([np.inf] * n + [1.0] * e + [np.inf])
    proto.variables.integers.extend([False] * (end + 1))
    proto.objective.linear_coefficients.ids.append(end)
    proto.objective.linear_coefficients.values.append(1.0)
    proto.linear_constraints.ids.extend(range(len(low)))
    proto.linear_constraints.lower_bounds.extend(low.tolist())
    proto.linear_constraints.upper_bounds.extend([np.inf] * len(low))
    order = np.lexsort((column, row))
    proto.linear_constraint_matrix.row_ids.extend(row[order].tolist())
    proto.linear_constraint_matrix.column_ids.extend(column[order].tolist())
    proto.linear_constraint_matrix.coefficients.extend(value[order].tolist())
    program_model = mathopt.Model.from_model_proto(proto)
    parameters = mathopt.SolveParameters()
    parameters.highs.string_options["solver"] = "ipm"
    parameters.highs.string_options["run_crossover"] = "off"
    with silenced():
        result = mathopt.solve(program_model, mathopt.SolverType.HIGHS, params=parameters)
    x = np.array(result.variable_values(sorted(program_model.variables(), key=lambda each: int(each.id))))
    return 1.0 - np.clip(x[n:end], 0.0, 1.0)


@contextmanager
def silenced() -> Iterator[None]:
    """Discard what HiGHS writes to the standard output."""
    sys.stdout.flush()
    kept, void = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(void, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(void)


def rho(problem: Problem) -> float:
    """The longest transfer over the shortest task."""
    found = ratios_of(problem).rho
    return float("inf") if found is None else float(found)


def summary(ratios: list[float]) -> str:
    """The geometric mean of ratios, and how many are below and above 1."""
    mean = float(np.exp(np.mean(np.log(ratios))))
    return f"{mean:.3f} ({sum(each < 1 for each in ratios)}, {sum(each > 1 for each in ratios)})"


def same(holds: bool) -> Verdict:
    """The verdict on a statement."""
    return "same" if holds else "reversed"


def small(
    names: list[str], duration: list[int], edges: list[tuple[int, int]], transfer: int, m: int, **rest: Any
) -> Problem:
    """A problem of identical devices and equal transfers."""
    return build_problem(
        task_names=names,
        device_names=[f"device-{d + 1}" for d in range(m)],
        duration=np.repeat(np.array(duration)[:, None], m, axis=1),
        edges=edges,
        payload=np.full(len(edges), transfer),
        byte_ticks_num=1 - np.eye(m, dtype=np.int64),
        **rest,
    )


def figure_1(room: int | None = None) -> Problem:
    """The example of figure 1 on two devices, with `room` units of memory each."""
    edges = [(0, 1), (0, 4), (1, 2), (2, 3), (4, 5), (5, 3)]
    memory = np.array([1, 2, 2, 1, 1, 1])
    rest = {"resident": memory, "capacity": np.full(2, memory.sum() if room is None else room)}
    return small([f"t{i}" for i in range(6)], [1, 3, 3, 1, 3, 1], edges, 1, 2, **rest)


def with_memory(seed: int, plenty: float | None) -> Problem:
    """A random graph that satisfies the SCT assumption, with K about `plenty`."""
    case = layered_problem(
        TASKS,
        DEVICES,
        width=5,
        duration=(100, 200),
        payload=(50_000, 99_000),
        latency=1,
        speed_heterogeneity=0.0,
        seed=seed,
    )
    if plenty is None:
        return case
    sizes = np.random.default_rng(seed).integers(1, 6, TASKS)
    room = max(math.ceil(int(sizes.sum()) * plenty / DEVICES), int(sizes.max()))
    return replace(case, resident=sizes, capacity=np.full(DEVICES, room))


def closing_chain() -> tuple[Problem, float]:
    """A chain that closes two devices of three, and 200 tasks without memory after it; with theorem 1's ratio."""
    others = 200
    edges = [(0, 1), (1, 2), *((2, 3 + k) for k in range(others))]
    memory = {"resident": np.array([6] * 3 + [0] * others), "capacity": np.full(3, 10)}
    case = small([f"t{i}" for i in range(3 + others)], [1] * (3 + others), edges, 1, 3, **memory)
    return case, ratio_of(case)


def tensordot() -> Problem:
    """The example of figure 3 on three devices, with transfers much longer than tasks."""
    names = ["op_in", "perm", "Transpose", "Shape", "Reshape"]
    return small(names, [4, 1, 4, 1, 4], [(0, 2), (1, 2), (2, 4), (3, 4)], 10, 3)


def regression() -> Problem:
    """The working example of figure 2 as far as the text names it, with its two colocation groups."""
    names = ["Weight", "Grad", "ApplyGrad", "Step", "UpdateStep"]
    edges = [(0, 1), (0, 2), (1, 2), (3, 4), (2, 4)]
    return small(names, [1] * 5, edges, 1, 2, group=np.array([0, 1, 0, 2, 2]))


def subgraph() -> Problem:
    """The part of the working example that figure 6 shows, with transfers longer than tasks."""
    return small(["Grad", "Step", "UpdateStep"], [1] * 3, [(0, 2), (1, 2)], 2, 2, group=np.array([0, 1, 1]))


def text_of(value: float | None) -> str:
    """Milliseconds as text."""
    return "no placement" if value is None else f"{value:.1f}"


def table_of(title: str, headers: Iterable[str], text: int = 1) -> Table:
    """An empty table; the first `text` columns are text."""
    table = Table(title=title)
    for place, header in enumerate(headers):
        table.add_column(header, justify="left" if place < text else "right")
    return table


if __name__ == "__main__":
    main()
