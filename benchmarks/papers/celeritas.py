"""Celeritas: fusion and placement of large graphs.

H. Xu, Y. Liao, H. Xie, P. Zhou: Celeritas: Fast Optimizer for Large Dataflow Graphs, 2022, arXiv:2208.00184.

`celeritas_runs.py` has the graphs and the conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from celeritas_models import cut_edges, four_chains
from celeritas_paper import (
    EQUAL_TIMES,
    FIGURE_3,
    FIGURE_6,
    HOLOGRAPHY,
    METHODS,
    SLOWER,
    SPEED_UP,
    STEPS,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    fusion_cells,
    ratio_cell,
    shorter_cell,
)  # fmt: skip
from celeritas_runs import (
    AUTO_SECONDS,
    CONTENTIONS,
    EVERY,
    GRAPHS,
    MEMORY_MODELS,
    PUBLISHED,
    graph,
    measured,
    placing_seconds,
    shown_seconds,
    step,
    under,
)  # fmt: skip
from claims import Claim, Verdict, holds, sign
from reports import Item, Paper, Report, Workplace

import placeopt as po
from placeopt.model.levels import ORDERS
from placeopt.model.memory import used_memory
from placeopt.model.metrics import grain, shape
from placeopt.model.problem import UNLIMITED, Contention, MemoryModel
from placeopt.passes import apply_passes
from placeopt.policies import random_placement
from placeopt.simulation import simulate

DRAWN = 50
"""Random placements."""
BASELINES = ("metis", "m-topo", "m-etf", "m-sct")
MEASURED = (*BASELINES, "order-place", "celeritas")
"""Methods of table 3 without the learned one; the reference last."""
Steps = Mapping[tuple[str, str], Mapping[str, float | None]]
"""What `celeritas_runs.measured` returns, by graph and method."""
EVALUATED = ("m-topo", "dfs-topo", "celeritas")
"""Methods of figure 6, the reference last."""


def figure_1(workplace: Workplace) -> Report:
    """How often placements are out of memory."""
    rows = []
    for model in GRAPHS:

        def compute(model: str = model) -> list[int]:
            problem = under(model, "peak", "none")
            free = replace(problem, capacity=np.full(problem.n_devices, UNLIMITED))
            rng = np.random.default_rng(0)
            single = np.zeros(problem.n_tasks, dtype=np.int64)
            drawn = [random_placement(free, rng) for _ in range(DRAWN)]
            fits = [
                bool((used_memory(problem, simulate(problem, device)) <= problem.capacity).all())
                for device in (*drawn, single)
            ]
            return [sum(fits[:-1]), int(fits[-1])]

        fit, single = workplace.measurements.value(compute, "figure-1", model, EVERY[model])
        rows.append((model, f"{DRAWN - fit} of {DRAWN}", "no" if single else "yes"))
    report = Report()
    report.claims(
        "HRL, Inception-v3, batch 512",
        [Claim("HRL mostly runs out of memory in 8 hours", "yes", "-", "not comparable", "a learned method, not here")],
    )
    report.text(
        "HRL starts with all operators on one device, and learns only from placements that it executes. The table "
        "counts random placements of colocation groups that exceed the memory of a device, first in, first out."
    )
    report.table("", ("model", "random placements out of memory", "one device out of memory"), rows)
    return report


def table_1(workplace: Workplace) -> Report:
    """The row of Celeritas in the comparison of methods."""
    fast, equal, fits = [], [], []
    for model in GRAPHS:
        first = measured(workplace, model, "celeritas")
        again = po.solve(under(model, "peak", "port"), "celeritas", workers=1)
        ticks = None if again.objective is None else float(again.objective) * float(graph(model).resolution)
        fits.append((model, first["step"] is not None))
        equal.append((model, first["step"] is None or ticks == first["step"]))
        fast.append((model, (first["cpu"] or 0.0) < 60.0))
    report = Report()
    report.claims(
        "row Celeritas",
        [
            holds("placement time: seconds", "yes", fast),
            holds("handles models that do not fit", "yes", fits),
            holds("stable results: two runs have the same step time", "yes", equal),
        ],
    )
    return report


def table_2(_: Workplace) -> Report:
    """Nodes and CCR before and after fusion."""
    cells, rows = [], []
    for model in EVERY:
        problem = graph(model)
        coarse = apply_passes(problem, ["celeritas-fusion:colocation=first"]).problem
        before, after = grain(problem), grain(coarse)
        if model in TABLE_2:
            nodes = TABLE_2[model][0]
            share = before.tasks / nodes
            what = f"{model}: nodes before fusion, within 5 %", f"{nodes:,}", f"{before.tasks:,}"
            if abs(share - 1) <= 0.05:
                cells.append(Claim(*what, "same"))
            else:
                cells.append(Claim(*what, "not comparable", f"{share:.2f} times as many"))
            cells += fusion_cells(model, (before.tasks, before.ccr or 0.0), (after.tasks, after.ccr or 0.0))
        rows.append(
            (
                model, f"{before.tasks:,}", f"{shape(problem).sources:,}", f"{before.ccr or 0:.1f}", f"{after.tasks:,}",
                f"{after.ccr or 0:.1f}",
            )
        )  # fmt: skip
    report = Report()
    report.claims("table 2", cells)
    report.table("ours", ("model", "nodes", "without inputs", "CCR", "clusters", "CCR"), rows)
    return report


def table_3(workplace: Workplace) -> Report:
    """Step times, and their ratios to Celeritas's."""
    found = {(model, method): measured(workplace, model, method) for model, method in product(GRAPHS, MEASURED)}
    cells = []
    for model in GRAPHS:
        cells += [*step_cells(found, model, "step"), *further_cells(found, model)]
        cells.append(blind_cell(workplace, model, TABLE_3[model][0]))
    report = Report()
    title = "seconds of a step (ratio to celeritas)"
    report.claims(title, cells)
    fifo = [cell for model in GRAPHS for cell in step_cells(found, model, "fifo")]
    report.claims(f"{title}; the same placements first in, first out", fifo)
    return report


def step_cells(found: Steps, model: str, execution: str) -> list[Claim]:
    """The cells of a row of table 3 that have a ratio to Celeritas's step."""
    published = dict(zip(METHODS, TABLE_3[model], strict=True))
    mine = found[model, "celeritas"][execution]
    return [
        step_cell(f"{model}: {each}", (published[each], published["celeritas"]), (found[model, each][execution], mine))
        for each in MEASURED[:-1]
    ]


def further_cells(found: Steps, model: str) -> list[Claim]:
    """The other cells of a row of table 3: the speed-up, the learned method, and the reference."""
    published = dict(zip(METHODS, TABLE_3[model], strict=True))
    mine = found[model, "celeritas"]["step"]
    rivals = [seconds for each in BASELINES if (seconds := found[model, each]["step"]) is not None]
    best = min(rivals, default=None)
    return [
        shorter_cell(f"{model}: celeritas against the best baseline", SPEED_UP[model], (mine, best)),
        Claim(f"{model}: HRL", f"{published['HRL']:.3f}", "-", "not comparable", "a learned method, not here"),
        Claim(
            f"{model}: celeritas", f"{published['celeritas']:.3f}", shown_seconds(mine), "not comparable",
            "another machine; the reference of this table",
        ),
    ]  # fmt: skip


def blind_cell(workplace: Workplace, model: str, published: float | None) -> Claim:
    """Whether METIS without regard to memory, as published, exceeds the memory of a device."""

    def compute() -> int:
        problem = under(model, "peak", "port")
        free = replace(problem, capacity=np.full(problem.n_devices, UNLIMITED))
        schedule = po.solve(free, "metis", workers=1).schedule
        assert schedule is not None
        return int(np.maximum(used_memory(problem, schedule) - problem.capacity, 0).sum())

    over = workplace.measurements.value(compute, "blind", model, EVERY[model])
    ours = f"out of memory by {over / 2**30:.1f} GiB" if over else "fits"
    verdict: Verdict = "same" if (published is None) == bool(over) else "reversed"
    theirs = "out of memory" if published is None else "fits"
    return Claim(f"{model}: memory of metis, which does not regard it in the paper", theirs, ours, verdict)


def step_cell(what: str, paper: tuple[float | None, float | None], ours: tuple[float | None, float | None]) -> Claim:
    """The cell of a step time; None: out of memory."""
    published, reference = paper
    own, mine = ours
    if published is None or own is None:
        texts = shown_seconds(published), shown_seconds(own)
        if published is own is None:
            return Claim(what, *texts, "same")
        reason = "every heuristic counts memory here" if published is None else ""
        return Claim(what, *texts, "reversed", reason)
    assert reference is not None
    if mine is None:
        return Claim(what, f"{published:.3f}", f"{own:.3f}", "not comparable", "celeritas has no placement")
    return ratio_cell(what, (published, reference), (own, mine))


def table_4(workplace: Workplace) -> Report:
    """Seconds to place."""
    cells = []
    for model in GRAPHS:

        def compute(model: str = model) -> list[float]:
            problem = under(model, "peak", "port")
            return [placing_seconds(problem, solver) for solver in ("m-sct", "order-place", "celeritas")]

        spent = workplace.measurements.value(compute, "table-4", model, EVERY[model])
        for solver, published, own in zip(("m-sct", "order-place"), TABLE_4[model], spent, strict=False):
            what = f"{model}: {solver}"
            if published is None:
                cells.append(Claim(what, "out of memory", f"{own:.3f}", "not comparable", "no figure in the paper"))
            else:
                cells.append(ratio_cell(what, (published, TABLE_4[model][-1]), (own, spent[-1]), EQUAL_TIMES))
        cells.append(
            Claim(
                f"{model}: celeritas", f"{TABLE_4[model][-1]:.3f}", f"{spent[-1]:.3f}", "not comparable",
                f"another machine; {TABLE_4[model][-1] / spent[-1]:,.0f} times as fast here",
            )
        )  # fmt: skip
    report = Report()
    report.claims("seconds to place (ratio to celeritas); ours are CPU seconds of one thread", cells)
    return report


def figure_3(_: Workplace) -> Report:
    """Edges cut by orders."""
    chains = four_chains()
    cuts = {order: len(cut_edges(chains, ORDERS[order](chains))) for order in FIGURE_3}
    texts = [", ".join(f"{order} {count}" for order, count in each.items()) for each in (FIGURE_3, cuts)]
    cells = [Claim("edges cut in the example", *texts, "same" if cuts == FIGURE_3 else "reversed")]
    for model in EVERY:
        problem = graph(model)
        found = {order: len(cut_edges(problem, ORDERS[order](problem))) for order in (*FIGURE_3, "cpd-topo")}
        text = ", ".join(f"{order} {count:,}" for order, count in found.items())
        held = found["m-topo"] > found["dfs-topo"]
        cells.append(
            Claim(
                f"section 4.2.2: M-TOPO cuts more edges than DFS-TOPO, {model}", "yes", text,
                "same" if held else "reversed",
            )
        )  # fmt: skip
    report = Report()
    report.claims("edges between devices if one device is filled after another", cells)
    return report


def figure_4(_: Workplace) -> Report:
    """Fusion makes no loops."""
    found = []
    for model in EVERY:
        coarse = apply_passes(graph(model), ["celeritas-fusion:colocation=first"]).problem
        place = np.empty(coarse.n_tasks, dtype=np.int64)
        place[ORDERS["m-topo"](coarse)] = np.arange(coarse.n_tasks)
        found.append((model, bool((place[coarse.edge_source] < place[coarse.edge_target]).all())))
    report = Report()
    report.claims("lemma 2", [holds("fusing neighbours of a topological order makes no loop", "proved", found)])
    return report


def figure_6(workplace: Workplace) -> Report:
    """Minutes of the steps of the Standard Evaluation."""
    from pictures import draw_bars

    minutes = {model: {name: evaluation(workplace, model, name) for name in EVALUATED} for model in GRAPHS}
    cells = []
    for model, published in FIGURE_6.items():
        reference = published["celeritas"], minutes[model]["celeritas"]
        for name in EVALUATED[:-1]:
            pairs = zip((published[name], minutes[model][name]), reference, strict=True)
            cells += [step_cell(f"{model}: {name}", *pairs)]
        cells.append(
            Claim(
                f"{model}: celeritas", f"{published['celeritas']:.2f}", shown_seconds(reference[1]), "not comparable",
                "another machine; the reference of this figure",
            )
        )  # fmt: skip
    report = Report()
    report.claims(
        f"minutes for {STEPS} steps (ratio to celeritas)", [*cells, *holography_cells(minutes["tensor_holography"])]
    )
    groups = {model: minutes[model] for model in FIGURE_6}
    title = f"Standard Evaluation: {STEPS} steps"
    picture = draw_bars(title, "four V100 GPUs, ours simulated", {"paper": FIGURE_6, "here": groups}, "minutes")
    picture.write(workplace.images / "celeritas_figure_6.png")
    report.picture("celeritas_figure_6.png", "Minutes of the Standard Evaluation")
    report.text(
        "m-topo and dfs-topo fill one device after another in these orders, with best effort, as in section 6.3 "
        "(`order-place` with R = 1). The paper's minutes include the time to place, which is below a second here "
        "(table-4), and ours do not."
    )
    return report


def evaluation(workplace: Workplace, model: str, name: str) -> float | None:
    """Minutes of the steps with the placement of an order, or of celeritas; None without a placement."""

    def compute() -> float | None:
        problem = under(model, "peak", "port")
        settings: dict[str, Any] = {} if name == "celeritas" else {"range": 1, "order": name}
        result = po.solve(problem, "celeritas" if name == "celeritas" else "order-place", workers=1, **settings)
        if not result.feasible or result.objective is None:
            return None
        return STEPS * float(result.objective) * float(problem.resolution) / 60

    found: float | None = workplace.measurements.value(compute, "evaluation", model, EVERY[model], name)
    return found


def holography_cells(minutes: Mapping[str, float | None]) -> list[Claim]:
    """What section 6.5.2 says of Tensor Holography, without minutes."""
    mine, dfs = minutes["celeritas"], minutes["dfs-topo"]
    cells = [shorter_cell("tensor_holography: celeritas against m-topo", HOLOGRAPHY, (mine, minutes["m-topo"]))]
    if mine is not None and dfs is not None:
        seconds = 60 * (mine - dfs)
        verdict: Verdict = "same" if abs(seconds - SLOWER) <= 1 else "direction" if seconds > 0 else "reversed"
        cells.append(
            Claim("tensor_holography: celeritas against dfs-topo", f"+{SLOWER:g} s", f"{seconds:+.1f} s", verdict)
        )
    return cells


def estimates(workplace: Workplace) -> dict[str, dict[str, list[float]]]:
    """Relative deviations of estimated bytes and seconds of each kernel, by model."""
    from standard_evaluation import MODELS as MEASURED
    from standard_evaluation import deviations

    return {name: workplace.measurements.value(partial(deviations, name), "estimates", name) for name in MEASURED}


def table_5(workplace: Workplace) -> Report:
    """Mean deviations of the Rough Estimation."""
    cells = []
    means = {}
    for model, found in estimates(workplace).items():
        memory, seconds = (100 * float(np.mean(found[what])) for what in ("bytes", "seconds"))
        means[model] = memory, seconds
        published = TABLE_5[model]
        reason = "sizes of results are linear in the batch; TensorFlow's memory has temporary buffers"
        cells += [
            Claim(f"{model}: memory", f"{published[0]:.2f} %", f"{memory:.2f} %", "not comparable", reason),
            Claim(f"{model}: time", f"{published[1]:.2f} %", f"{seconds:.1f} %", *time_verdict(published[1], seconds)),
        ]
    cells.append(
        holds("memory is estimated more accurately than time", "yes", ((name, m < t) for name, (m, t) in means.items()))
    )
    report = Report()
    report.claims("mean relative deviation of estimates from measurements", cells)
    report.text(
        "Ours: kernels of small models in PyTorch on a core of this machine, measured with batches of 2, 4, 8 and 16 "
        "and estimated for 64; medians of CPU time, on an idle machine."
    )
    return report


def time_verdict(paper: float, ours: float) -> tuple[Verdict, str]:
    """The verdict on a mean deviation of times in per cent: the same within 3 percentage points."""
    if abs(paper - ours) <= 3:
        return "same", ""
    return "reversed" if ours > paper else "direction", "a core, whose caches favour small batches; the paper: a GPU"


def figure_5(workplace: Workplace) -> Report:
    """Distributions of the deviations."""
    from pictures import draw_distributions

    found = estimates(workplace)
    accurate, near = [], []
    for model, each in found.items():
        accurate.append((model, float(np.mean(np.array(each["bytes"]) <= 0.2)) >= 0.9))
        near.append((model, float(np.mean(np.array(each["seconds"]) <= 0.3)) >= 0.8))
    report = Report()
    report.claims(
        "kernels",
        [
            holds("(a) memory within 20 % for 90 % of the nodes", "all models", accurate),
            holds("(b) time within 30 % for 80 % of the nodes", "all models", near),
        ],
    )
    panels = {
        what: {model: each[key] for model, each in found.items()}
        for what, key in (("memory", "bytes"), ("time", "seconds"))
    }
    title = "Estimates from small batches, and measurements"
    draw_distributions(title, panels).write(workplace.images / "celeritas_figure_5.png")
    report.picture("celeritas_figure_5.png", "Distributions of the deviations of estimates")
    return report


def statements(workplace: Workplace) -> Report:
    """Statements of the text."""
    baselines = (*BASELINES, "order-place")
    cells = []
    for claim, better, others in (
        ("section 5.2: Adjusting Placement is at least as good as Order-Place", "celeritas", ("order-place",)),
        ("section 5.2: Order-Place is superior to Baechi", "order-place", ("m-topo", "m-etf", "m-sct")),
        ("section 6.4.1: Celeritas outperforms all baselines", "celeritas", baselines),
    ):
        for contention in CONTENTIONS:
            found = []
            for model in EVERY:
                mine = step(workplace, model, better, "peak", contention)
                rivals = [step(workplace, model, other, "peak", contention) for other in others]
                best = mine is not None and all(each is None or sign(mine / each) <= 0 for each in rivals)
                found.append((model, best))
            cells.append(holds(f"{claim}; contention: {contention}", "yes", found))
    report = Report()
    report.claims("statements", cells)
    return report


def conditions() -> Iterator[tuple[str, MemoryModel, Contention]]:
    """All rows of the summary."""
    yield from product(EVERY, MEMORY_MODELS, CONTENTIONS)


def everything(workplace: Workplace) -> Report:
    """All methods on all graphs."""
    methods = (*PUBLISHED, "tuned", "auto")
    rows, placed, behind = [], 0, []
    for model, memory, contention in conditions():
        found = {method: measured(workplace, model, method, memory, contention) for method in methods}
        bound = max(each["bound"] or 0.0 for each in found.values())
        steps = {method: each["step"] for method, each in found.items()}
        published = [seconds for method in PUBLISHED if (seconds := steps[method]) is not None]
        if published:
            tuned, placed = steps["tuned"], placed + 1
            if tuned is None or any(sign(tuned / each) > 0 for each in published):
                behind.append(f"{model}, {memory}, {contention}")
        rows.append((model, memory, contention, *map(shown_seconds, steps.values()), f"{bound:.3f}" if bound else "-"))
    report = Report()
    ours = f"on {placed - len(behind)} of {placed} rows with a placement; not on {'; '.join(behind) or 'none'}"
    verdict: Verdict = "same" if not behind else "in part" if len(behind) < placed else "reversed"
    report.claims("", [Claim("celeritas-tuned is the best of all published heuristics", "-", ours, verdict)])
    report.table(
        f"seconds of a step; auto has {AUTO_SECONDS:g} s; the bound is the best of all columns",
        ("model", "memory", "contention", *methods, "bound"), rows,
    )  # fmt: skip
    return report


CELERITAS = Paper(
    "celeritas",
    "Celeritas",
    "H. Xu, Y. Liao, H. Xie, P. Zhou, *Celeritas: Fast Optimizer for Large Dataflow Graphs*, 2022, arXiv:2208.00184.",
    "Four V100 GPUs of 32 GiB, the paper's batches, `memory_model: peak` and `contention: port`, if not stated "
    "otherwise. Ratios are the same within 10 %. [Baechi and Celeritas](baechi-celeritas.md) describes the "
    "solvers.",
    (
        Item("table-1", "comparison of methods", table_1, "1 minute"),
        Item("figure-1", "a learned method out of memory", figure_1, "1 minute"),
        Item("figure-2", "overview", None, why="an illustration"),
        Item("figure-3", "edges cut by topological orders", figure_3, "10 seconds"),
        Item("figure-4", "fusion and loops", figure_4, "10 seconds"),
        Item("table-2", "nodes and CCR before and after fusion", table_2, "10 seconds"),
        Item("table-3", "step times", table_3, "2 minutes"),
        Item("table-4", "time to place", table_4, "1 minute", kept="measures CPU seconds"),
        Item("table-5", "accuracy of the Rough Estimation", table_5, "2 minutes, PyTorch", kept="measures CPU seconds"),
        Item("figure-5", "distributions of its deviations", figure_5, "after table-5, 1 second", kept="as table-5"),
        Item("figure-6", "minutes of the Standard Evaluation", figure_6, "1 minute"),
        Item("statements", "sections 5.2 and 6.4.1", statements, "2 minutes"),
        Item(
            "everything",
            "beyond the paper: all methods, memory models and contentions",
            everything,
            "30 minutes",
            kept="takes 30 minutes, and auto has a time limit",
        ),
    ),
)
