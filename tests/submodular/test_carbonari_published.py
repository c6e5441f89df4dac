"""The published JCTs of Carbonari et al. 2017 with the graphs and costs that benchmarks/ infers from them."""

from __future__ import annotations

from importlib import import_module
from itertools import permutations, product
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.metrics import carbonari_jct
from placeopt.submodular.placement import PlacementModel, PlacementSettings

VGG, RESNET = 51_362_816, 60_986_968
"""Tables 1 to 3: heuristic-g on VGG-19 and on ResNet-50."""


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("benchmarks", "benchmarks/papers"):
        monkeypatch.syspath_prepend(Path(__file__).parents[2] / folder)


@pytest.fixture
def graphs() -> ModuleType:
    return import_module("carbonari_graphs")


@pytest.fixture
def paper() -> ModuleType:
    return import_module("carbonari_paper")


@pytest.fixture
def carbonari() -> ModuleType:
    return import_module("carbonari")


def test_graphs_have_the_published_numbers_of_nodes(graphs: ModuleType) -> None:
    assert [len(nodes()) for nodes in graphs.NODES.values()] == [24, 176, 311]


@pytest.mark.parametrize("network", ["small", "medium", "large"])
def test_heuristic_g_has_the_published_jct_of_vgg_19(graphs: ModuleType, paper: ModuleType, network: str) -> None:
    problem = graphs.inferred_problem("VGG-19", network, paper.INFERRED)
    result = po.solve(problem, "heuristic-g")
    assert result.schedule is not None
    assert carbonari_jct(problem, result.schedule.device) == result.makespan == VGG


@pytest.mark.parametrize("network", ["medium", "large"])
def test_heuristic_g_has_the_published_longest_path_of_resnet_50(
    graphs: ModuleType, paper: ModuleType, network: str
) -> None:
    assert po.solve(graphs.inferred_problem("ResNet-50", network, paper.INFERRED), "heuristic-g").makespan == RESNET


def test_every_published_jct_of_vgg_19_is_attained(graphs: ModuleType, paper: ModuleType) -> None:
    """The sums that a chain can have, over all assignments to cores and GPUs."""
    sums = {0}
    for node in graphs.vgg_19():
        sums = {total + node.elements * cost for total in sums for cost in paper.INFERRED[node.op]}
    published = {jct for (_, model), row in paper.PAPER.items() if model == "VGG-19" for jct, *_ in row.values()}
    assert len(published) == 4
    assert published <= sums
    assert min(sums) == VGG


def test_search_finds_the_lower_costs(graphs: ModuleType) -> None:
    costs = import_module("carbonari_costs")
    sizes = costs.sizes_of(graphs.vgg_19())
    assert list(costs.lower_tables(sizes, 12)) == [{"conv2d": 2, "max_pool": 5, "flatten": 6, "dense": 4}]
    assert not costs.ways(costs.UNIT + 1, sizes, {"conv2d": 2, "max_pool": 2, "flatten": 2, "dense": 2})


def test_published_placements_leave_cores_empty(graphs: ModuleType, paper: ModuleType) -> None:
    """With 10 GPUs, greedy would place at least 14 of 24 tasks on cores; INFERRED has no task faster on a core."""
    costs = import_module("carbonari_costs")
    sizes = costs.sizes_of(graphs.vgg_19())
    extra = {op: core - gpu for op, (core, gpu) in paper.INFERRED.items()}
    goal = costs.published("medium", "submodular-g") - costs.published("medium", "heuristic-g")
    on_cores = [sum(counts) for counts in costs.ways(goal, sizes, extra)]
    assert 0 < max(on_cores) < 14


@pytest.mark.parametrize(
    ("ours", "published", "verdict"), [(30.4, 41, "direction"), (40.2, 41, "same"), (-3, 41, "reversed")]
)
def test_verdicts_of_changes(paper: ModuleType, ours: float, published: float, verdict: str) -> None:
    assert paper.change_verdict(ours, published, 1.0) == verdict


def test_verdicts_of_absolute_values(paper: ModuleType) -> None:
    assert paper.jct_verdict("VGG-19", "heuristic-g", VGG, VGG, VGG) == ("same", "")
    assert paper.jct_verdict("ResNet-50", "heuristic-g", 1.009 * RESNET, RESNET, RESNET) == ("same", "")
    assert paper.jct_verdict("ResNet-50", "submodular-g", 97e6, 94e6, 77e6) == ("not comparable", paper.ASSUMED)


def test_a_jct_that_fails_within_the_costs_inferred_from_it_counts(paper: ModuleType) -> None:
    found = paper.jct_verdict("VGG-19", "submodular-g", 66_958_848, 66_958_848, 72_795_648)
    assert found == ("differs", paper.REASONS["VGG-19"])


def test_a_jct_that_is_only_the_makespan_differs(paper: ModuleType) -> None:
    assert paper.jct_verdict("ResNet-50", "heuristic-g", 62_463_832, RESNET, RESNET) == ("differs", paper.MAKESPAN)


def test_only_one_published_change_contradicts_its_jcts(paper: ModuleType) -> None:
    off = [
        (*key, solver)
        for key, row in paper.PAPER.items()
        for solver, (_, stated, *_) in row.items()
        if abs(paper.published_percent(*key, solver) - stated) > 1
    ]
    assert off == [("large", "ResNet-50", "submodular-gi")]
    claim = paper.jct_change("large", "ResNet-50", "submodular-gi", 77.8)
    assert (claim.paper, claim.ours, claim.verdict) == ("+21 %", "+77.8 %", "direction")
    assert claim.reason == "the published 78,237,720 is +28.3 %, not +21 %"
    near = paper.jct_change("large", "ResNet-50", "submodular-gi", 28.0)
    assert near.judged == ("direction: the published 78,237,720 is +28.3 %, not +21 %; compared with that: same")


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [((30, 20, 10), "same"), ((30, 49, 23), "in part"), ((10, 20, 30), "reversed"), ((30, 29.5, 30), "reversed")],
)
def test_a_trend_is_judged_by_its_steps(paper: ModuleType, ours: tuple[float, ...], verdict: str) -> None:
    found = paper.trend("a chain", (41.7, 5.52, 0.65), ours, 1.0)
    assert (found.paper, found.verdict) == ("+41.7 %, +5.52 %, +0.65 %", verdict)


def test_tables_measure_neither_times_nor_processes(carbonari: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the item times does: the others repeat exactly."""
    monkeypatch.setattr(carbonari, "NODES", {"VGG-19": carbonari.NODES["VGG-19"]})
    report = carbonari.table(None, network="small")
    assert [claim.text for claim in report[0].claims] == [
        "VGG-19, heuristic-g: JCT",
        "VGG-19, submodular-g: JCT",
        "VGG-19, submodular-g: JCT, change to heuristic-g",
        "VGG-19, submodular-gi: JCT",
        "VGG-19, submodular-gi: JCT, change to heuristic-g",
    ]
    assert not any(word in header for block in report for header in block.headers for word in ("process", "CPU"))


def test_section_3_claims_no_more_than_the_paper(carbonari: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """It proves that the first function is submodular, and states it of the second; nothing is said of monotonicity."""
    outcome = SimpleNamespace(violations=1, cases=2)
    found = SimpleNamespace(submodular=outcome, monotone=outcome)
    monkeypatch.setattr(carbonari, "check_submodular", lambda *_, **__: found)
    claims = carbonari.submodularity(None)[0].claims
    assert [(claim.text.rpartition(" is ")[2], claim.paper, claim.verdict) for claim in claims] == [
        ("submodular", "proved", "reversed"),
        ("submodular", "stated", "reversed"),
    ]


@pytest.mark.parametrize("name", ["submodular-g", "submodular-gi"])
def test_best_value_is_that_of_all_sequences(name: str) -> None:
    best = import_module("carbonari_best")
    form, settings = best.MODELS[name]
    problem = build_problem(
        task_names=["a", "b", "c", "d"],
        device_names=["core", "gpu"],
        edges=[(0, 1), (0, 2), (1, 3)],
        duration=[[4, 2], [6, 5], [1, 3], [5, 7]],
    )
    model = PlacementModel(problem, form, PlacementSettings(cap="20", **settings))
    values = []
    for order, device in product(permutations(range(4)), product(range(2), repeat=4)):
        state = model.start()
        for task in order:
            model.add(state, task * 2 + device[task])
        values.append(model.value(state))
    assert best.best_value(model).value == pytest.approx(max(values), rel=1e-12)
    assert max(values) > model.place_all().values[-1]
