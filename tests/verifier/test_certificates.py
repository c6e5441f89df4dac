"""Certificates: each claim by hand, random ones against brute force, changed ones, and the commands."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from certificate_cases import (
    accepted,
    drawn_flow,
    drawn_path,
    drawn_problem,
    drawn_tree,
    infeasibility_proof,
    mutated,
    proofs,
    relaxed,
    tight_problem,
)
from commandline import run
from pipelines import random_pipeline, teams_document, unlike_pipeline

import placeopt as po
from placeopt.bounding import quick
from placeopt.bounding.quick import prove_infeasible
from placeopt.errors import CertificateError, UsageError
from placeopt.model.building import with_changes
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.tiers import ENDLESS, build_tiers
from placeopt.proving.certificates.chains import ends_claim, pairs_claim
from placeopt.proving.certificates.leaves import relying
from placeopt.proving.certificates.paths import machines_claim, path_claim, stages_claim
from placeopt.proving.certificates.refutation import due_claim, refutation_claim
from placeopt.verifier.certificates import ENGINES, OTHER, Checked, blocks, check_claim, refutation
from placeopt.verifier.certificates.devices import Devices
from placeopt.verifier.certificates.model import model_of, timely
from placeopt.verifier.certificates.refutation import decided

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "certificates.md").read_text()


def problem_of(tasks: dict[str, Any], **rest: Any) -> Problem:
    """Two equal devices, a transfer takes two ticks."""
    document = {"placeopt": 1, "devices": {"d": {"count": 2}}, "links": {"default": {"latency": 2}}, "tasks": tasks}
    return po.compile({**document, **rest})


def proved(problem: Problem, kind: str, metric: str = "makespan", **keys: Any) -> int:
    """What a claim proves."""
    return check_claim(model_of(problem), metric, {"claim": kind, "value": 0, **keys})


CHAIN = {"a": {"time": 3}, "b": {"time": 4, "after": ["a"]}, "c": {"time": 5}}
THREE = {"a": {"time": 3}, "b": {"time": 3}, "c": {"time": 2}}
FORK = {name: {"time": 3, "after": ["a"]} if name != "a" else {"time": 2} for name in "abcd"}
SIZED = {name: {"time": 1, "memory": size} for name, size in (("a", 6), ("b", 5), ("c", 4))}
ONE_CUT = {"claim": "series", "value": 1, "cuts": ["a"], "blocks": [[], ["b"]]}
BOTH = {"devices": {"x": {"memory": 10}, "y": {"memory": 10}}}


@pytest.mark.parametrize(
    ("made", "kind", "keys", "value"),
    [
        (problem_of(CHAIN), "nothing", {}, 0),
        (problem_of(CHAIN), "critical-path", {}, 7),
        (problem_of(CHAIN), "load", {"prices": {"d0": 1}}, 6),  # 12 ticks of work on two devices
        (problem_of(CHAIN), "load", {"prices": {"d1": 7}}, 6),  # one name stands for the class
        (problem_of(CHAIN), "load", {"prices": {"d0": 1}, "head": 3, "tail": 0}, 5),  # b alone, 3 + 4 / 2
        (problem_of(CHAIN), "load", {"prices": {"d0": 1}, "head": 4}, 0),  # no task
        (problem_of(THREE), "packing", {"each": 1}, 5),  # two of three tasks share a device
        (problem_of(THREE), "packing", {"each": 0}, 3),
        (problem_of(THREE), "packing", {"each": 9}, 0),
        (problem_of(FORK), "spread", {}, 7),  # 9 ticks of b, c and d, heads 2 and 2, tails 0 and 0: 13 / 2
        (problem_of(SIZED, **BOTH), "load", {"prices": {"x": 1, "y": 1}}, 2),
    ],
)
def test_what_a_claim_proves(made: Problem, kind: str, keys: dict[str, Any], value: int) -> None:
    assert proved(made, kind, **keys) == value


def test_prices_of_memory_move_work_off_a_small_device() -> None:
    """The fast device holds one of two tasks: the other one takes 10 ticks."""
    devices = {"fast": {"memory": 6}, "slow": {"memory": 12}}
    tasks = {name: {"time": {"fast": 1, "slow": 10}, "memory": 6} for name in ("a", "b")}
    made = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks})
    assert proved(made, "cheapest", "total_cost") == 2
    assert proved(made, "cheapest", "total_cost", scale=6, memory={"fast": 9}) == 11


def test_a_path_pays_for_scarce_memory() -> None:
    """The fast device holds two of three tasks: 1 + 1 + 2 + 10 ticks. At 9 / 4 ticks a byte, all on one cost 12."""
    devices = {"fast": {"memory": 8}, "slow": {}}
    task = {"time": {"fast": 1, "slow": 10}, "memory": 4}
    tasks = {"a": task, "b": {**task, "after": ["a"]}, "c": {**task, "after": ["b"]}}
    links = {"default": {"latency": 2}}
    made = po.compile({"placeopt": 1, "devices": devices, "links": links, "tasks": tasks})
    keys = {"path": ["a", "b", "c"], "scale": 4}
    assert proved(made, "path", **keys) == 3
    assert proved(made, "path", **keys, memory={"fast": 9}) == 12
    assert proved(made, "path", path=["b"], scale=4, memory={"fast": 9}) == 0  # the others cost nothing on `slow`
    assert po.solve(made, "brute-force").objective == 14
    for change, message in (
        ({"path": ["b", "a"]}, "expected tasks of which each has an edge"),
        ({"path": ["a", "a"]}, "expected tasks of which each has an edge"),
        ({"path": []}, "expected tasks of which each has an edge"),
        ({"path": ["z"]}, "expected tasks"),
        ({"scale": 0}, "scale is 0; expected a whole number, 1 or more"),
        ({"devices": ["slow"]}, "devices is .* expected none"),
        ({"memory": {"slow": 1}}, "without a limit of memory"),
        ({"budgets": {"r": 1}}, "expected a price for each budget"),
        ({"budgets": []}, "expected a price for each budget"),
    ):
        with pytest.raises(CertificateError, match=message):
            proved(made, "path", **{**keys, **change})


def test_a_path_pays_for_budgets() -> None:
    """Two of three tasks in a row may use the fast way: 1 + 1 + 9 ticks, and 8 ticks are the price of a unit."""
    tasks = {name: {"time": {"d0": 1, "d1": 9}, "uses": {"r": {"d0": 1, "d1": 0}}} for name in "abc"}
    tasks = {
        name: {**task, "after": [before] if before else []}
        for (name, task), before in zip(tasks.items(), ["", "a", "b"], strict=True)
    }
    made = problem_of(tasks, budgets={"r": 2}, links={"default": {}})
    assert proved(made, "path", path=["a", "b", "c"], scale=1) == 3
    assert proved(made, "path", path=["a", "b", "c"], scale=1, budgets={"r": 8}) == 11
    assert po.solve(made, "brute-force").objective == 11


def test_a_flow_lets_one_consumer_save_its_transfer() -> None:
    """Each of b, c and d runs for 3 ticks, a transfer takes 2: at most one of them starts before 4."""
    made = problem_of(FORK, devices={"d": {"count": 4}})
    lanes = [["a", name, 1] for name in "bcd"]
    assert proved(made, "flow", children=lanes) == 7  # (3 (2 + 2 + 3) - 2) / 3
    assert proved(made, "flow", children=lanes[:2], parents=lanes[2:]) == 6  # d has one producer only
    assert proved(made, "flow", plain=lanes) == 5
    assert proved(made, "flow") == proved(made, "flow", plain=[["a", "b", 0]]) == 0
    twice = [["a", "b", 1], ["a", "b", 1]]
    assert proved(made, "flow", children=twice) == 5  # no rivals of each other
    for change, message in (
        ({"children": [[None, "a", 1]]}, "expected tasks"),
        ({"children": [["b", "a", 1]]}, "have no edge between them"),
        ({"children": [["a", "b"]]}, "expected two tasks and an amount"),
        ({"children": [["a", "b", -1]]}, "expected a whole number"),
        ({"children": {}}, "children is {}; expected a list"),
    ):
        with pytest.raises(CertificateError, match=message):
            proved(made, "flow", **{"children": lanes, **change})


def test_a_flow_pays_between_tasks_that_never_share_a_device() -> None:
    tasks = {"a": {"time": {"d0": 3}}, "b": {"time": {"d1": 4}, "after": ["a"]}}
    made = problem_of(tasks, devices={"d0": {}, "d1": {}})
    assert proved(made, "flow", plain=[["a", "b", 1]]) == 9


def pipeline_of(tasks: dict[str, Any], **rest: Any) -> Problem:
    """Two equal devices; a transfer takes two ticks on both sides."""
    return problem_of(tasks, **{"objective": "period", "pipeline": {"stages": "contiguous"}, **rest})


def test_the_stages_of_a_pipeline_are_intervals_of_a_path() -> None:
    row = {
        name: {"time": ticks, "after": list(before)}
        for name, ticks, before in (("a", 3, ""), ("b", 4, "a"), ("c", 5, "b"))
    }
    made, path = pipeline_of(row), ["a", "b", "c"]
    assert proved(made, "stages", "period", path=path, value=9) == 9  # a and b, a transfer, c: 7 + 2
    assert proved(made, "stages", "period", path=["a", "b"], value=6) == 6
    assert po.solve(made, "brute-force").objective == 9
    apart = pipeline_of(row, pipeline={"stages": "contiguous", "overlap": True})
    assert proved(apart, "stages", "period", path=path, value=7) == 7  # without transfers
    many = {name: {"count": 100, "memory": size} for name, size in (("d", 1), ("e", 2), ("f", 3))}
    for keys, problem, message in (
        ({"path": path, "value": 10}, made, "states 10, but it proves 0"),
        ({"path": path, "value": 8}, apart, "states 8, but it proves 0"),
        ({"path": ["a", "c"], "value": 1}, made, "expected tasks of which each has an edge"),
        ({"path": [], "value": 1}, made, "expected tasks of which each has an edge"),
        ({"path": path, "value": 1}, pipeline_of(row, pipeline={"stages": "free"}), "proves 0"),
        ({"path": path, "value": 1}, pipeline_of(row, pipeline={"stages": "contiguous", "replicas": 2}), "proves 0"),
        ({"path": path, "value": 1}, pipeline_of(row, devices=many), "too many divisions"),
    ):
        with pytest.raises(CertificateError, match=message):
            proved(problem, "stages", "period", **keys)


@pytest.mark.parametrize("name", ["four-stages", "llama-8b"])
def test_the_periods_of_examples_are_checked(name: str) -> None:
    made = po.load(ROOT / "problems" / f"{name}.yaml")
    result = po.solve(made, "chains")
    checked = po.check_certificate(made, result.certificate())
    assert checked.complete
    assert checked.bound == result.objective


@pytest.mark.parametrize("seed", range(120))
def test_no_path_of_stages_proves_more_than_the_period(seed: int) -> None:
    drawn = random_pipeline(seed, contiguous=True) if seed % 2 else unlike_pipeline(seed)
    assert drawn.pipeline is not None
    problem = replace(drawn, pipeline=replace(drawn.pipeline, replicas=1))
    best = po.solve(problem, "brute-force").objective
    if best is None:
        return
    model = model_of(problem)
    claim = stages_claim(problem, 1, model)
    if claim is None:
        return
    for more in (1, 5, 1000):
        with pytest.raises(CertificateError):
            check_claim(model, "period", {**claim, "value": int(best) + more})


def test_machines_of_teams_have_prices() -> None:
    """A task takes 6 ticks on d0, 2 on d1 or 5 on both. If d1 holds one of two tasks, d0 runs the other one."""
    modes = {"one": {"time": {"d0": 6, "d1": 2}, "memory": 4}, "pair": {"team": ["d0", "d1"], "time": 5, "memory": 4}}
    given = teams_document(0) | {"tasks": {"a": {"modes": modes}, "b": {"modes": modes}}, "pipeline": {}, "budgets": {}}
    made = po.compile(given | {"devices": {name: {"memory": 4} for name in ("d0", "d1")}})
    assert proved(made, "machines", "period", machines={"0": 1, "1": 3}) == 3  # each task costs 6 or more
    scarce = {"machines": {"0": 2}, "budgets": {"memory of d1": 3}}
    assert proved(made, "machines", "period", **scarce) == 6  # each task costs 12 or more, the budget 12: 12 / 2
    assert po.solve(made, "brute-force").objective == 6
    claim = machines_claim(made, 6, model_of(made), None, lambda: False)
    assert claim is not None
    assert machines_claim(made, 7, model_of(made), None, lambda: False) is None
    assert check_claim(model_of(made), "period", claim) == 6
    for change, message in (
        ({"machines": {"2": 1}}, "expected a price for each machine that has one"),
        ({"machines": {"0": 0}}, "expected a machine of the problem with a price"),
        ({"budgets": {"d0": 1}}, "expected a price for each budget that has one"),
    ):
        with pytest.raises(CertificateError, match=message):
            proved(made, "machines", "period", **{**scarce, **change})
    with pytest.raises(CertificateError, match="expected a price for each machine"):
        proved(unlike_pipeline(0), "machines", "period", machines={"0": 1})


def test_deadlines_raise_bounds() -> None:
    """`a` must run first on d0; so b ends at 5, and c, on d1, at 12. Without the deadline, c may end at 9.

    For T = 11, a has a tail of 8.
    """
    tasks = {
        "a": {"time": {"d0": 3}, "deadline": 3},
        "b": {"time": {"d0": 2}},
        "c": {"time": {"d1": 5}, "after": ["b"]},
    }
    made = problem_of(tasks, devices={"d0": {}, "d1": {}})
    load = {
        "claim": "load",
        "devices": ["d0"],
        "prices": {"d0": 1},
        "tail": 7,
        "value": 12,
    }
    assert po.solve(made, "brute-force").objective == 12
    assert proved(made, "refutation", value=12, proof=load) == 12
    assert proved(made, "load", **{**load, "value": 0}) == 9
    for value, proof, message in (
        (13, {**load, "value": 13}, "states 13, but it proves 12"),
        (13, load, "expected a claim that closes the case by computing"),
        (12, {**load, "tail": 9}, "states 12, but it proves 0"),
        (13, None, "the case is not closed"),
        (1 << 300, load, "expected a smaller number"),
    ):
        with pytest.raises(CertificateError, match=message):
            proved(made, "refutation", value=value, proof=proof)
    cut = {"cuts": ["b"], "blocks": [[], ["c"]], "value": 0}
    tree = {"claim": "refutation", "value": 6, "proof": None}
    arcs = [{"block": 1, "start": "d0", "end": None, "proof": tree}]
    assert proved(made, "series", **cut, arcs=arcs) == 2 + 6
    tree["value"] = 8  # c waits for its data: 2 + 5
    with pytest.raises(CertificateError, match="the case is not closed"):
        proved(made, "series", **cut, arcs=arcs)


LAYERS: dict[str, Any] = {
    **{name: {"time": 4} for name in "abc"},
    "v": {"time": 5, "after": list("abc")},
    **{name: {"time": 4, "after": ["v"]} for name in "xyz"},
    "w": {"time": 1, "after": list("xyz")},
}


def test_a_tree_decides_when_a_task_ends() -> None:
    """Within 17 ticks, v cannot end before 11: a, b and c take 6 on two devices. Later, x, y and z do not end."""
    made = problem_of(LAYERS, links={"default": {}})
    load = {"claim": "load", "value": 18, "prices": {"d0": 1}}
    tree = {"ends": ["v", 11], "before": {**load, "tail": 12}, "later": {**load, "head": 11, "tail": 1}}
    assert proved(made, "refutation", value=18, proof=tree) == 18
    assert max(proved(made, "load", **{**load, "value": 0, "tail": tail}) for tail in range(12)) == 16
    for value, change, message in (
        (17, {"ends": ["v", 13]}, "proof.before: the claim load states 18, but it proves 0"),
        (18, {"ends": ["v", 12]}, "proof.before: the claim load states 18, but it proves 0"),
        (18, {"ends": ["v", 12], "before": {**load, "value": 0, "tail": 11}}, "expected a claim that closes the case"),
        (18, {"ends": ["v", 10]}, "proof.later: the claim load states 18, but it proves 0"),
        (18, {"ends": ["a", 11]}, "states 18, but it proves 0"),
        (19, {}, "expected a claim that closes the case"),
        (18, {"ends": ["v", 12], "before": None}, "proof.before is None; .*: the case is not closed"),
        (18, {"before": relying(model_of(made), "makespan", 18, "CP-SAT")}, "that closes the case by computing"),
        (18, {"later": {"claim": "?", "value": 18}}, "which is not a claim about makespan"),
        (18, {"ends": ["v", -1]}, "is -1; expected a whole number"),
        (18, {"ends": ["v", 1 << 1001]}, "expected a whole number"),
        (18, {"ends": ["v", "w"]}, "expected a whole number"),
        (18, {"ends": ["v"]}, "expected a task, and a task, device or tick,"),
    ):
        with pytest.raises(CertificateError, match=message):
            proved(made, "refutation", value=value, proof={**tree, **change})


def test_ends_of_tasks_prove_the_bound_of_layers() -> None:
    """Each layer takes 6 ticks on two devices and its last task 5: 33 ticks, four more than all work shared."""
    tasks: dict[str, Any] = {}
    for k in range(3):
        tasks |= {f"{x}{k}": {"time": 4, "after": [f"v{k - 1}"] if k else []} for x in "abc"}
        tasks[f"v{k}"] = {"time": 5, "after": [f"{x}{k}" for x in "abc"]}
    made = problem_of(tasks, links={"default": {}})
    assert quick.best_bound(made).value == 29
    claim = ends_claim(made, 33, model_of(made), lambda: False)
    assert claim is not None
    assert "ends" in claim["proof"]
    assert check_claim(model_of(made), "makespan", claim) == 33
    assert ends_claim(made, 34, model_of(made), lambda: False) is None
    assert ends_claim(made, 33, model_of(made), lambda: True) is None


def layered(seed: int) -> Problem:
    """Four layers of four tasks on four equal devices."""
    rng = random.Random(seed)
    tasks: dict[str, Any] = {}
    for i in range(16):
        before = [f"t{j}" for j in range(i) if j // 4 == i // 4 - 1]
        ticks, chosen = rng.randint(1, 20), [name for name in before if rng.random() < 0.5]
        tasks[f"t{i}"] = {"time": ticks, "after": chosen or before[:1]}
    return problem_of(tasks, links={"default": {"latency": 12}}, devices={"d": {"count": 4}})


@pytest.mark.parametrize(("seed", "bound", "divided"), [(3, 90, False), (4, 70, False), (12, 75, True)])
def test_edges_prove_more_than_quick_bounds(seed: int, bound: int, divided: bool) -> None:
    """Probed edges, of which one part is closed, or one that divides a case into two."""
    made = layered(seed)
    model = model_of(made)
    assert quick.best_bound(made).value < bound
    claim = pairs_claim(made, bound, model, lambda: False)
    assert claim is not None
    assert check_claim(model, "makespan", claim) == bound
    parts = claim["proof"]["together"], claim["proof"]["apart"]
    assert (None not in parts) == divided
    assert pairs_claim(made, bound, model, lambda: True) is None
    best = po.solve(made, "cp-sat", time_limit=60)
    assert best.bound == best.objective
    assert pairs_claim(made, int(best.objective or 0) + 1, model, lambda: False) is None


@pytest.mark.parametrize("seed", range(8000, 8060))
def test_no_chain_proves_more_than_the_optimum(seed: int) -> None:
    problem = replace(tight_problem(seed) if seed % 2 else drawn_problem(seed), objective=Objective())
    best = optimum(problem)
    if best is None or problem.n_tasks == 0:
        return
    ticks, model = int(best[0][0]), model_of(problem)
    for write in (ends_claim, pairs_claim):
        made = write(problem, ticks, model, lambda: False)
        assert made is None or check_claim(model, "makespan", made) == ticks
        assert write(problem, ticks + 1, model, lambda: False) is None


def test_a_task_starts_by_its_end_and_its_duration_on_each_class() -> None:
    """b runs for 2 ticks on d0, 5 on d1, and does not end before 9; or it ends before 9, and c after it by 20."""
    tasks = {"a": {"time": 1}, "b": {"time": {"d0": 2, "d1": 5}, "after": ["a"]}, "c": {"time": 3, "after": ["b"]}}
    model = model_of(problem_of(tasks, devices={"d0": {}, "d1": {}}))
    before, later = decided(model, "ends", 1, 9, 20)
    assert (later.head[1], later.head[2], later.tail) == ([7, 4], [9, 9], model.tail)
    assert (before.head, before.tail[1], before.tail[0]) == (model.head, [12, 12], [14, 16])


def test_the_ends_of_a_sum_are_not_decided() -> None:
    """Schedules of each case of a sum of metrics end by another tick."""
    made = problem_of(CHAIN, objective={"makespan": 1, "total_cost": 1})
    facts = {"placeopt_certificate": 1, "problem": made.fingerprint(), "objective": str(made.objective), "bound": 20}
    for known in (3, "a"):
        proof = {"claim": "refutation", "value": 20, "proof": {"ends": ["a", known], "before": None, "later": None}}
        with pytest.raises(CertificateError, match="expected no tick: of a sum"):
            po.check_certificate(made, {**facts, "proof": proof})


@pytest.mark.parametrize("seed", range(7000, 7150))
def test_no_tree_with_ends_proves_more_than_the_optimum(seed: int) -> None:
    problem = replace(tight_problem(seed) if seed % 2 else drawn_problem(seed), objective=Objective())
    best, rng = optimum(problem), random.Random(seed)
    if best is None or problem.n_tasks == 0:
        return
    value, ends = int(best[0][0]) + 1, (best[1].start + problem.duration[np.arange(problem.n_tasks), best[1].device])
    leaf = {"value": 0, "prices": dict.fromkeys(problem.device_names, 1), "level": 0, **drawn_flow(problem, rng)}
    for _ in range(12):
        tree = drawn_tree(problem, rng, {**leaf, **{key: rng.randint(0, value) for key in ("head", "tail", "start")}})
        for at in rng.sample(range(problem.n_tasks), rng.randint(1, problem.n_tasks)):
            tree = {"ends": [problem.task_names[at], int(ends[at]) + rng.randint(0, 1)], "before": tree, "later": tree}
        with pytest.raises(CertificateError):
            proved(problem, "refutation", value=value, proof=tree)


def test_a_bound_by_deadlines_is_written_as_a_claim() -> None:
    made = po.load(ROOT / "problems" / "edge-perception.yaml")
    result = po.solve(made, "auto", time_limit=20)
    checked = po.check_certificate(made, result.certificate(time_limit=30))
    assert checked.complete
    assert checked.bound == result.objective


@pytest.mark.parametrize("seed", range(3000, 3060))
def test_no_claim_by_deadlines_proves_more_than_the_optimum(seed: int) -> None:
    problem = replace(tight_problem(seed), objective=Objective())
    best = optimum(problem)
    if best is None or problem.n_tasks == 0:
        return
    ticks, model, names = int(best[0][0]), model_of(problem), problem.task_names
    for write in (
        lambda t: due_claim(model, problem, t),
        lambda t: refutation_claim(model, names, t, lambda: False, 300),
    ):
        made = write(ticks)
        assert made is None or check_claim(model, "makespan", made) == ticks
        assert write(ticks + 1) is None


@pytest.mark.parametrize("seed", range(5000, 5200))
def test_no_path_and_no_flow_proves_more_than_the_optimum(seed: int) -> None:
    problem = replace(drawn_problem(seed), objective=Objective())
    best, rng = optimum(problem), random.Random(seed)
    if best is None or problem.n_tasks == 0:
        return
    for draw in (drawn_path, drawn_flow) * 5:
        assert check_claim(model_of(problem), "makespan", {**draw(problem, rng), "value": 0}) <= best[0][0]


def test_the_bounds_of_paths_are_written_as_claims() -> None:
    layers = {f"l{k:02}": {"time": {"fast": 2, "slow": 7}, "memory": 3} for k in range(24)}
    for k in range(1, 24):
        layers[f"l{k:02}"]["after"] = [f"l{k - 1:02}"]
    devices = {"fast": {"memory": 20}, "slow": {"count": 4, "memory": 20}}
    links = {"default": {"latency": 2}}
    chain = po.compile({"placeopt": 1, "devices": devices, "links": links, "tasks": layers})
    forks: dict[str, Any] = {"s0": {"time": 1}}
    for k in range(4):
        forks |= {f"x{k}{j}": {"time": 4, "after": [f"s{k}"]} for j in range(5)}
        forks[f"s{k + 1}"] = {"time": 1, "after": [f"x{k}{j}" for j in range(5)]}
    wide = problem_of(forks, devices={"d": {"count": 6}}, links={"default": {"latency": 3}})
    for made, kind in ((chain, "path"), (wide, "flow")):
        bound = next(
            b for b in po.bounds(made, time_limit=20) if b.name == {"path": "lagrangian", "flow": "sct-lp"}[kind]
        )
        assert bound.value > max(b.value for b in quick.bounds(made))
        claim = path_claim(made, int(bound.value), model_of(made), lambda: False)
        assert claim is not None
        assert claim["claim"] == kind
        facts = {"placeopt_certificate": 1, "problem": made.fingerprint(), "objective": "makespan"}
        document = {**facts, "bound": claim["value"], "proof": {"claim": "terms", "terms": [claim]}}
        checked = po.check_certificate(made, json.loads(json.dumps(document)))
        assert checked.complete
        assert checked.bound == bound.value


def test_a_claim_about_the_work_within_an_interval() -> None:
    """Between a and e, three tasks have 4 ticks of work each: 12 in 5 ticks do not fit on two devices, in 6 they do."""
    tasks: dict[str, Any] = {"a": {"time": 2}, "e": {"time": 3, "after": ["t0", "t1", "t2"]}}
    made = problem_of(tasks | {f"t{k}": {"time": 4, "after": ["a"]} for k in range(3)})
    keys = {"start": 2, "end": 3, "prices": {"d0": 1}}
    assert proved(made, "interval", **keys, value=11) == 11
    for value, change in ((12, {}), (11, {"start": 4}), (11, {"end": 5}), (5, {"start": 9})):
        with pytest.raises(CertificateError, match=f"states {value}, but it proves 0"):
            proved(made, "interval", **{**keys, "value": value, **change})


def test_resources_count_their_use_over_time() -> None:
    tasks = {f"t{k}": {"time": 2, "uses": {"r": 2}} for k in range(3)}
    made = problem_of(tasks, resources={"r": 3})
    assert proved(made, "resource", resource="r") == 4  # 12 of 3 at a time
    assert proved(made, "resource", resource="r", half=True) == 6  # no two at one time
    assert proved(made, "resource", resource="r", head=100, tail=100) == 0
    with pytest.raises(CertificateError, match="expected at most half of the largest capacity, 3"):
        proved(made, "resource", resource="r", level=2)
    with pytest.raises(CertificateError, match="expected resources"):
        proved(made, "resource", resource="q")


def test_trees_count_the_use_of_resources() -> None:
    """No two tasks run at one time: 6 ticks. With 1 of 3 each, all of them do."""
    for use, value in ((2, 6), (1, 2)):
        tasks = {f"t{k}": {"time": 2, "uses": {"r": use}} for k in range(3)}
        made = problem_of(tasks, resources={"r": 3}, devices={"d": {"count": 3}})
        assert po.solve(made, "brute-force").objective == value
        assert proved(made, "refutation", value=value, proof=None) == value
        with pytest.raises(CertificateError, match="is not closed"):
            proved(made, "refutation", value=value + 1, proof=None)


def test_a_sum_with_a_makespan_is_checked_by_a_tree() -> None:
    """Both tasks on slow devices: 5 + 0; one on the fast device: 5 + 4; both: 2 + 8. The least of each is 1 + 0."""
    devices = {"fast": {"power": "4 W"}, "slow": {"count": 2, "power": "0 W"}}
    tasks = {name: {"time": {"fast": 1, "slow": 5}} for name in "ab"}
    made = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks, "objective": {"makespan": 1, "energy": 1}})
    best = po.solve(made, "cp-sat")
    facts = {"placeopt_certificate": 1, "problem": made.fingerprint(), "objective": str(made.objective)}
    proof = best.certificate()["proof"]
    assert best.objective == 5
    assert proof["claim"] == "refutation"
    assert po.check_certificate(made, {**facts, "bound": 5, "proof": proof}).complete
    for change, message in (
        ({"value": 6}, "is not closed"),
        ({"value": None}, "value is None; expected a whole number"),
    ):
        with pytest.raises(CertificateError, match=message):
            po.check_certificate(made, {**facts, "bound": 5, "proof": {**proof, **change}})


def test_a_placement_with_relocation_is_checked_by_a_tree() -> None:
    made = po.load(ROOT / "problems" / "sensor-fusion-later.yaml")
    result = po.solve(made, "auto", time_limit=20)
    checked = po.check_certificate(made, result.certificate())
    assert checked.complete
    assert checked.bound == result.objective


def test_a_bound_by_resources_and_budgets_is_checked() -> None:
    made = po.load(ROOT / "problems" / "camera-box.yaml")
    result = po.solve(made, "auto", time_limit=20)
    checked = po.check_certificate(made, result.certificate())
    assert checked.complete
    assert checked.bound == result.objective == 149


def test_transfers_that_cannot_be_avoided() -> None:
    tasks = {
        "a": {"time": {"x": 1}, "output": 8},
        "b": {"time": {"y": 1}, "after": ["a"]},
        "c": {"time": {"y": 1}, "after": ["a"]},
    }
    links = {"default": {"latency": 1, "bandwidth": 4}}
    document = {"placeopt": 1, "devices": {"x": {}, "y": {}}, "links": links, "tasks": tasks, "contention": "port"}
    made = po.compile({**document, "objective": "communication"})
    assert proved(made, "cheapest", "communication") == 8  # one transfer serves both
    assert proved(po.compile(document), "transfers") == 1 + 2 + 1  # 3 ticks over two ports, and tasks around them


def test_a_claim_about_a_link_names_one_of_the_problem() -> None:
    tasks = {"a": {"time": {"d0": 1}, "output": 1}, "b": {"time": {"d1": 1}, "after": ["a"]}}
    links = {"default": {"latency": 2}, "shared": {"s": {"between": ["d0", "d1"]}}}
    made = problem_of(tasks, devices={"d0": {}, "d1": {}}, links=links)
    assert proved(made, "transfers", link="s") == 1 + 2 + 1
    with pytest.raises(CertificateError, match=r"link is \['r'\]; expected shared links of the problem"):
        proved(made, "transfers", link="r")


def test_swapping_before_the_first_task() -> None:
    devices = {"x": {"memory": 4, "tiers": [{"memory": 100, "bandwidth": 2}]}}
    made = po.compile({"placeopt": 1, "devices": devices, "tasks": {"a": {"time": 5, "memory": 10}}})
    assert proved(made, "swapping", swap=3) == 3 + 5
    assert proved(made, "swapping", swap=4) == 0


def test_a_tier_without_a_limit_holds_more_than_the_largest_number() -> None:
    tiers = build_tiers([1], [[(ENDLESS, 1, 2**61)]])
    made = po.build_problem(
        task_names="ab", device_names="d", duration=[[1], [1]], resident=[UNLIMITED] * 2, tiers=tiers
    )
    assert proved(made, "swapping", swap=4) == 4 + 1
    assert proved(made, "swapping", swap=5) == 0


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (None, "proof.terms.0.: expected an object"),
        ({"claim": "?", "value": 1}, "'.'.* is not a claim about makespan"),
        ({"claim": "critical-path"}, "value is None; expected a whole number"),
        ({"claim": "critical-path", "value": 1.5}, "value is 1.5"),
        ({"claim": "critical-path", "value": True}, "value is True"),
        ({"claim": "critical-path", "value": -1}, "value is -1"),
        ({"claim": "critical-path", "value": 8}, "states 8, but it proves 7"),
        ({"claim": "load", "value": 1}, "expected a device with a price"),
        ({"claim": "load", "value": 1, "prices": {"e": 1}}, "prices is {'e': 1}; expected a price for each device"),
        ({"claim": "load", "value": 1, "prices": [1]}, "expected a price for each device"),
        ({"claim": "load", "value": 1, "prices": {"d0": 1}, "memory": {"d0": 1}}, "without a limit of memory"),
        ({"claim": "load", "value": 1, "prices": {"d0": 1}, "devices": []}, "expected devices"),
        ({"claim": "spread", "value": 1, "devices": ["e"]}, "expected devices"),
        ({"claim": "transfers", "value": 1, "link": "r"}, "states 1, but it proves 0 only"),
        ({"claim": "engine", "value": 100}, "engine is None"),
        ({"claim": "refutation", "value": 13, "proof": None}, "the case is not closed"),
        ({"claim": "refutation", "value": 13, "proof": {}}, "expected pair, order or class"),
        (
            {"claim": "refutation", "value": 13, "proof": {"pair": ["a", "z"]}},
            "expected a task, and a task, device or tick, of the problem",
        ),
        (
            {"claim": "refutation", "value": 13, "proof": {"order": ["a", "c"]}},
            "expected an order of two tasks that share a device",
        ),
        ({"claim": "series", "value": 1}, "cuts is None; expected tasks"),
        ({"claim": "series", "value": 1, "cuts": [], "blocks": [[]], "arcs": []}, "expected one before each cut"),
        (
            {"claim": "series", "value": 1, "cuts": ["b"], "blocks": [["c"], []], "arcs": []},
            "expected tasks on paths between cuts, which c of block . is not",
        ),
        (
            {"claim": "series", "value": 1, "cuts": ["a"], "blocks": [[], ["c"]], "arcs": []},
            "expected tasks on paths between cuts, which c of block . is not",
        ),
        (
            {"claim": "series", "value": 1, "cuts": ["a"], "blocks": [[]], "arcs": []},
            "expected one before each cut",
        ),
        ({**ONE_CUT, "arcs": [7]}, "arcs.0..block is None; expected a whole number"),
        ({**ONE_CUT, "arcs": [{"block": 2}]}, "block is 2; the last one is 1"),
        ({**ONE_CUT, "arcs": [{"block": 1, "start": ["d0"], "end": None}]}, "expected a device"),
        ({**ONE_CUT, "arcs": [{"block": 1, "start": "d0", "end": "d0"}]}, "end is 'd0'; expected nothing"),
    ],
)
def test_a_wrong_claim_is_named(claim: Any, message: str) -> None:
    made = problem_of(CHAIN)
    document = {
        "placeopt_certificate": 1, "problem": made.fingerprint(), "objective": "makespan", "bound": 1,
        "proof": {"claim": "terms", "terms": [claim]},
    }  # fmt: skip
    with pytest.raises(CertificateError, match=message):
        po.check_certificate(made, document)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"placeopt_certificate": 2}, "placeopt_certificate is 2; a certificate of this problem has 1"),
        ({"problem": "0"}, "problem is '0'; a certificate of this problem has '.*'"),
        ({"objective": "energy"}, "objective is 'energy'; a certificate of this problem has 'makespan'"),
        ({"placeopt_certificate": 1.0}, "placeopt_certificate is 1.0; a certificate of this problem has 1"),
        ({"bound": 8}, "bound is 8, but its proof is of 7"),
        ({"bound": Fraction(1, 10**6000)}, "expected a whole number, or a fraction"),
        ({"bound": "x"}, "expected a whole number, or a fraction"),
        ({"proof": {"claim": "terms", "terms": []}}, "expected the claim engine, or terms with 1 claim"),
        ({"proof": {"claim": "load"}}, "expected the claim engine, or terms with 1 claim"),
    ],
)
def test_a_wrong_document_is_refused(change: dict[str, Any], message: str) -> None:
    made = problem_of(CHAIN)
    document = po.solve(made, "heft").certificate()
    with pytest.raises(CertificateError, match=message):
        po.check_certificate(made, {**document, **change})


def test_a_file_that_is_no_certificate(tmp_path: Path) -> None:
    made = problem_of(CHAIN)
    path = tmp_path / "c.json"
    for text, message in (
        ("[" * 100_000, "is nested too deeply"),
        ('{"placeopt_certificate": 1,\n "problem"', r"c.json:2:11: is not valid JSON"),
        ('{"a": 1, "a": 2}', 'duplicate name "a"'),
        ("", "placeopt_certificate is missing; expected a file of `solve --certificate`"),
        ("[]", "placeopt_certificate is missing; expected"),
        ("7", "placeopt_certificate is missing; expected"),
        ('{"placeopt_plan": 1, "tasks": []}', "looks like a plan file; expected a file of `solve --certificate`"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=f"certificate .*{message}"):
            po.check_certificate(made, path)
    for place, message in (tmp_path / "none.json", "none.json: no such file"), (tmp_path, "is a folder"):
        with pytest.raises(UsageError, match=f"certificate .*{message}"):
            po.check_certificate(made, place)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes and devices in folders")
def test_a_certificate_is_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in ((tmp_path / "pipe", "is a named pipe"), ("/dev/zero", "is a device")):
        with pytest.raises(UsageError, match=message):
            po.check_certificate(problem_of(CHAIN), path)


@pytest.mark.parametrize("document", [None, [], 1, True, (), {1}, float("nan"), b"{}", object()])
def test_a_document_that_is_no_object(document: Any) -> None:
    with pytest.raises(CertificateError, match=r"certificate is .*; expected an object, as `solve` writes it"):
        po.check_certificate(problem_of(CHAIN), document)


def test_deep_claims_are_refused() -> None:
    made = problem_of(CHAIN)
    document = po.solve(made, "heft").certificate()
    claim: dict[str, Any] = {"claim": "critical-path", "value": 7}
    for _ in range(5000):
        claim = {"claim": "refutation", "value": 7, "proof": claim}
    with pytest.raises(CertificateError, match="nested too deeply"):
        po.check_certificate(made, {**document, "proof": {"claim": "terms", "terms": [claim]}})


def test_a_deep_tree_of_cases_is_checked() -> None:
    """Trees are not limited by the recursion of Python; decisions that decide nothing do no harm."""
    made = problem_of(FORK)
    (claim,) = po.solve(made, "cp-sat").certificate()["proof"]["terms"]
    assert claim["claim"] == "refutation"
    tree, part = claim["proof"], "apart" if "pair" in claim["proof"] else "second"
    for _ in range(3000):
        tree = {**claim["proof"], part: tree}
    assert proved(made, "refutation", value=8, proof=tree) == 8
    for _ in range(3000):
        tree = {**claim["proof"], part: tree}
    with pytest.raises(CertificateError, match="is not closed") as error:
        proved(made, "refutation", value=9, proof=tree)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("seed", [*range(150), 5020417])  # the last one orders tasks, and has a parallel device
def test_random_certificates_are_accepted_and_state_the_bound(seed: int) -> None:
    for problem, best, value, made in proofs(seed):
        checked = accepted(problem, json.loads(json.dumps(made)))
        assert checked is not None
        assert checked.bound == value <= best


@pytest.mark.parametrize("seed", range(1000, 1080))
def test_no_changed_certificate_proves_more_than_the_optimum(seed: int) -> None:
    rng = random.Random(seed)
    for problem, best, _, made in proofs(seed):
        for _ in range(10):
            checked = accepted(problem, mutated(made, problem, rng))
            assert checked is None or not checked.complete or checked.bound <= best


def test_cases_prove_the_optima_of_the_papers_and_refute_no_more() -> None:
    for name, value in (("heft-10", 73), ("peft-10", 113)):
        made = po.load(ROOT / "problems" / f"{name}.yaml")
        document = po.solve(made, "cp-sat", time_limit=20).certificate()
        assert po.check_certificate(made, document).complete
        assert document["bound"] == value
        more = {"claim": "terms", "terms": [relying(model_of(made), "makespan", value + 1, "CP-SAT")]}
        checked = po.check_certificate(made, {**document, "bound": value + 1, "proof": more})
        assert [each.tasks for each in checked.trusted] == [10]


def test_a_trusted_claim_states_the_hash_of_what_it_is_about() -> None:
    """The hash of the page, computed by hand."""
    tasks = {f"t{k:02}": {"time": 1} for k in range(10)} | {"é": {"time": 1, "release": 3}}
    made = problem_of(tasks, devices={"d": {"count": 8}})
    names = ",".join(f'"{name}"' for name in [*list(tasks)[:10], "\\u00e9"])
    text = (
        f'{{"after":[0,0,0,0,0,0,0,0,0,0,0],"cuts":[null,null],"metric":"makespan","problem":"{made.fingerprint()}",'
        f'"release":[0,0,0,0,0,0,0,0,0,0,3],"tasks":[{names}],"value":5}}'
    )
    claim = {**relying(model_of(made), "makespan", 5, "other: x"), "reason": "because"}
    assert claim["model"] == hashlib.sha256(text.encode()).hexdigest()
    facts = {"placeopt_certificate": 1, "problem": made.fingerprint(), "objective": "makespan", "bound": 5}
    checked = po.check_certificate(made, {**facts, "proof": {"claim": "terms", "terms": [claim]}})
    assert checked.trusted[0].reason == "because"
    assert checked.to_dict()["trusted"][0]["model"] == claim["model"]
    for change, message in (
        ({"value": 4}, "model is .*; expected the hash of its model"),
        ({"model": None}, "model is None"),
        ({"reason": "two\nlines"}, "expected why the claim is not checked"),
        ({"engine": "gut feeling"}, "engine is 'gut feeling'; expected a name that the format lists"),
    ):
        with pytest.raises(CertificateError, match=message):
            po.check_certificate(made, {**facts, "proof": {"claim": "terms", "terms": [{**claim, **change}]}})


def test_blocks_of_a_network_are_proved_one_by_one() -> None:
    made = po.load(ROOT / "problems" / "resnet50-medium.yaml")
    result = po.solve(made, "auto", time_limit=20)
    document = result.certificate(time_limit=60)
    checked = po.check_certificate(made, document)
    assert checked.bound == result.bound == result.objective
    assert checked.complete
    (series,) = document["proof"]["terms"]
    assert series["claim"] == "series"
    assert series["arcs"]
    for arc in series["arcs"]:
        arc["proof"]["value"] += 1
    if all(arc["proof"]["claim"] == "refutation" for arc in series["arcs"]):
        with pytest.raises(CertificateError):
            po.check_certificate(made, {**document, "bound": document["bound"] + 1})


LIGHT = {"a": {"time": 1}, "b": {"time": 1, "after": {"a": 7}}}


@pytest.mark.parametrize(
    ("rest", "metric", "claim", "value"),
    [
        ({"objective": "devices"}, "devices", {"claim": "memory"}, 1),
        ({"objective": "communication"}, "communication", {"claim": "cheapest"}, 0),
        ({"objective": "total_cost"}, "total_cost", {"claim": "cheapest"}, 2),
        ({"contention": "port"}, "makespan", {"claim": "transfers"}, 0),
        (
            {"links": {"default": {"latency": 2}, "shared": {"s": {"between": ["d0", "d1"]}}}}, "makespan",
            {"claim": "transfers", "link": "s"}, 0,
        ),
        ({"devices": {"d": {"count": 3, "memory": 0}}, "objective": "devices"}, "devices", {"claim": "memory"}, 1),
    ],
)  # fmt: skip
def test_tasks_without_memory_need_one_device(
    rest: dict[str, Any], metric: str, claim: dict[str, Any], value: int
) -> None:
    keys = {key: each for key, each in claim.items() if key != "claim"}
    assert proved(problem_of(LIGHT, **rest), claim["claim"], metric, **keys) == value


def test_devices_swap_once_not_in_every_block() -> None:
    devices = {"d": {"memory": 10, "tiers": [{"bandwidth": 1}]}, "e": {"memory": 0}}
    tasks = {"a": {"time": {"e": 50}}, "b": {"time": {"d": 1}, "memory": 30, "after": ["a"]}}
    made = po.compile({"placeopt": 1, "devices": devices, "tasks": tasks})
    assert proved(made, "swapping", swap=20) == 21
    arcs = [{"block": 1, "start": "e", "end": None, "proof": {"claim": "swapping", "value": 21, "swap": 20}}]
    with pytest.raises(CertificateError, match="states 21, but it proves 0"):
        proved(made, "series", cuts=["a"], blocks=[[], ["b"]], arcs=arcs)


@pytest.mark.parametrize(
    "value",
    ["1e30000000", "1e-30000000", "1" * 2000, 10**3000, -(10**5000), "\u0661", " 1", "1/0"],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_any_length_are_refused_at_once(value: Any) -> None:
    made = problem_of({f"t{k}": {"time": 1} for k in range(12)})
    document = po.solve(made, "heft").certificate()
    engine = {"claim": "engine", "engine": "CP-SAT", "value": value}
    for change in ({"bound": value}, {"proof": engine}, {"proof": {"claim": "terms", "terms": [engine]}}):
        with pytest.raises(CertificateError, match="expected a whole number"):
            po.check_certificate(made, {**document, **change})


def test_nested_parts_of_a_document_are_refused() -> None:
    made = problem_of(CHAIN)
    document, deep = po.solve(made, "heft").certificate(), []
    for _ in range(5000):
        deep = [deep]
    for key in ("problem", "objective", "bound", "proof"):
        with pytest.raises(CertificateError):
            po.check_certificate(made, {**document, key: deep})


@pytest.mark.parametrize("key", ["placeopt_certificate", "bound", "proof"])
def test_numbers_of_any_length_within_wrong_parts_are_refused(key: str) -> None:
    document = po.solve(problem_of(CHAIN), "heft").certificate()
    with pytest.raises(CertificateError, match=r"too large|expected an object"):
        po.check_certificate(problem_of(CHAIN), {**document, key: [10**5000]})


def test_paths_over_many_device_classes_have_few_blocks() -> None:
    """Each pair of classes is an arc, and the model of an arc has a number for each pair of classes."""
    n, m = 12, 60
    kinds = {"device_names": [f"d{d}" for d in range(m)], "duration": [[1 + d for d in range(m)]] * n}
    made = po.build_problem(task_names=[f"t{i}" for i in range(n)], edges=[(i, i + 1) for i in range(n - 1)], **kinds)
    names = list(made.task_names)
    blocks = [names[:1], *([] for _ in range(n - 3)), names[-1:]]
    with pytest.raises(CertificateError, match=r"blocks is .* expected at most 1 with 60 device classes"):
        proved(made, "series", cuts=names[1:-1], blocks=blocks, arcs=[])


def test_trees_of_cases_compare_few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refutation, "WORK", 10_000)
    n = 100
    feasible = np.ones((n, 2), dtype=np.bool_)
    feasible[0, 1] = False
    apart = [(i, i + 1) for i in range(n - 1)]
    made = po.build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names="de", duration=[[1, 1]] * n, feasible=feasible,
        separation=apart,
    )  # fmt: skip
    with pytest.raises(CertificateError, match="the tree of cases takes more than 10,000 comparisons"):
        proved(made, "refutation", value=10 * n, proof=None)


@pytest.mark.parametrize("edges", [[(0, 1)], []])
def test_trees_of_cases_compare_few_pairs_of_classes(
    edges: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refutation, "WORK", 10_000)
    kinds = range(1, 101)
    made = po.build_problem(
        task_names="ab", edges=edges, device_names=[f"d{k}" for k in kinds], duration=[list(kinds)] * 2
    )
    with pytest.raises(CertificateError, match="the tree of cases takes more than 10,000 comparisons"):
        proved(made, "refutation", value=2, proof=None)


def test_edges_to_tied_tasks_count_as_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task is tied to all of its ancestors: a pass follows thousands of edges, and compares few tasks."""
    n = 40
    made = po.build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names="de", duration=[[3, 4]] * n,
        edges=[(i, j) for j in range(n) for i in range(j)], latency=[[0, 1000], [1000, 0]],
    )  # fmt: skip
    model = model_of(made)
    assert model.longest == 3 * n
    compared = n**2 + 4 * made.n_edges
    assert sum(model.followed) > 2 * compared
    monkeypatch.setattr(refutation, "WORK", 2 * compared)
    with pytest.raises(CertificateError, match=r"the tree of cases takes more than [0-9,]+ comparisons"):
        proved(made, "refutation", value=10 * n, proof=None)


def test_blocks_share_the_classes_of_their_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of a block costs as much as its tasks, not as the whole problem: there are thousands of them."""
    made: list[frozenset[int]] = []

    def classes(problem: Problem, alone: frozenset[int]) -> Devices:
        made.append(alone)
        return Devices(problem, alone)

    monkeypatch.setattr(blocks, "Devices", classes)
    tasks = {f"t{k}": {"time": {"d0": 1, "d1": 2}, "after": [f"t{k - 1}"] if k else []} for k in range(30)}
    chain = problem_of(tasks, devices={"d0": {}, "d1": {}})
    assert proved(chain, "series", cuts=list(tasks), blocks=[[] for _ in range(31)], arcs=[]) == 30
    assert len(made) == len(set(made)) == 3


def test_a_tree_of_many_tasks_has_decisions_that_close_a_part() -> None:
    """The example of the page with 60 more tasks, and a limit of the cases."""
    after = {"a": [], "b": ["a"], "c": ["a"], "d": ["a", "b"], "e": ["c", "d"]}
    tasks = {name: {"time": time, "after": after[name]} for name, time in zip("abcde", (4, 3, 3, 2, 1), strict=True)}
    more = {f"t{k}": {"time": 0} for k in range(60)}
    made = problem_of({**tasks, **more}, links={"default": {"latency": 3}})
    claim = refutation_claim(model_of(made), made.task_names, 13, lambda: False, 3)
    assert claim is not None
    assert (claim["proof"]["pair"], claim["proof"]["together"], claim["proof"]["apart"]) == (["a", "c"], None, None)
    assert proved(made, "refutation", proof=claim["proof"], value=13) == 13
    assert refutation_claim(model_of(made), made.task_names, 13, lambda: False, 2) is None
    assert refutation_claim(model_of(made), made.task_names, 13, lambda: True, 3) is None


def test_trees_of_cases_have_few_tasks() -> None:
    made = problem_of({f"t{k}": {"time": 1} for k in range(1001)})
    with pytest.raises(CertificateError, match="for 1,001 tasks; expected at most 1000"):
        proved(made, "refutation", value=2, proof=None)


def test_a_block_of_all_tasks_is_not_the_whole_problem() -> None:
    """The first cut takes no time in its block; with its duration, it would count twice."""
    made = problem_of({"a": {"time": 5}, "b": {"time": 1, "after": ["a"]}})
    assert proved(made, "critical-path") == 6
    inner = {"claim": "series", "value": 6, "cuts": ["a"], "blocks": [[], ["b"]], "arcs": []}
    arcs = [{"block": 1, "start": name, "end": None, "proof": inner} for name in ("d0", "d1")]
    with pytest.raises(CertificateError, match="of the whole problem"):
        proved(made, "series", cuts=["a"], blocks=[[], ["b"]], arcs=arcs)
    assert proved(made, "series", cuts=["a"], blocks=[[], ["b"]], arcs=[]) == 6


def test_what_an_engine_proved_is_said() -> None:
    made = problem_of({f"t{k}": {"time": 2 + k % 3} for k in range(12)}, objective="total_cost")
    document = po.solve(made, "single").certificate()
    document["proof"] = relying(model_of(made), "total_cost", 5, "CP-SAT")
    checked = po.check_certificate(made, {**document, "bound": 5})
    assert str(checked) == "bound 5 trusted, not checked: its only claim relies on CP-SAT (it has 12 tasks)"
    assert checked.to_dict()["trusted"][0]["tasks"] == 12


def test_a_result_without_a_bound_has_no_certificate() -> None:
    result = po.solve(problem_of(CHAIN), "heft")
    with pytest.raises(UsageError, match="no lower bound"):
        replace(result, bound=None).certificate()
    with pytest.raises(UsageError, match="time_limit"):
        po.solve(problem_of(CHAIN), "heft").certificate(time_limit=-1)


DUE = {name: {"time": 4, "deadline": 5} for name in "abc"}
LATE = {"a": {"time": 4}, "b": {"time": 1, "after": ["a"], "deadline": 4}}
BULKY = {name: {"time": 1, "memory": 7} for name in "abc"}
UNEQUAL = {**BULKY, "c": {"time": 1, "memory": 4}}
HELD = {"resident": 8}
LIVE = {name: {"time": 1, "memory": HELD} for name in "ab"} | {
    "c": {"time": 1, "memory": {"resident": 3, "scratch": 2}}
}
ALONE = {name: {"time": {"d": 1}, "separate": "s"} for name in "abc"}
MORE = {"devices": {"d": {"count": 2}, "e": {}}}
SPENT = {name: {"time": 1, "uses": {"m": 2}} for name in "abc"}
SMALL = {"devices": {"d": {"count": 2, "memory": 10}}}


def refusing(claim: dict[str, Any], tasks: dict[str, Any], **rest: Any) -> Checked | None:
    """What a certificate of infeasibility with this claim proves; None if it is refused."""
    made = problem_of(tasks, **rest)
    facts = {"problem": made.fingerprint(), "objective": "makespan", "bound": "infeasible"}
    claim = {"value": timely(made)[1] + 1, **claim}
    checked = accepted(made, {"placeopt_certificate": 1, **facts, "proof": claim})
    found = optimum(made)
    assert checked is None or not checked.complete or found is None
    return checked


@pytest.mark.parametrize(
    ("claim", "tasks", "rest", "false"),
    [
        ({"claim": "critical-path"}, LATE, {}, {"b": {"deadline": 5}}),  # a takes 4, and b 1
        ({"claim": "load", "prices": {"d0": 1}}, DUE, {}, {"c": {"deadline": 8}}),  # 12 ticks of work until 5 on two
        ({"claim": "spread"}, DUE, {}, {"c": {"deadline": 8}}),
        ({"claim": "packing", "each": 1}, DUE, {}, {"c": {"deadline": 8}}),
        ({"claim": "memory"}, BULKY, SMALL, {"a": {"memory": 3}}),  # 21 bytes for 20
        ({"claim": "memory", "size": 6}, BULKY, SMALL, {"a": {"memory": 3}}),  # one of 6 bytes on a device of 10
        ({"claim": "memory", "half": True}, BULKY, SMALL, {"a": {"memory": 3}}),  # no two of 7 bytes share a device
        ({"claim": "memory", "level": 4}, UNEQUAL, SMALL, {"c": {"memory": 3}}),  # a and b leave no room for 4 bytes
        ({"claim": "memory"}, LIVE, {**SMALL, "memory_model": "peak"}, {"c": {"memory": {"resident": 2}}}),
        ({"claim": "separation", "tasks": ["a", "b", "c"]}, ALONE, MORE, {"b": {"separate": "t"}}),
        ({"claim": "budget", "resource": "m"}, SPENT, {"budgets": {"m": 5}}, {"a": {"uses": {"m": 1}}}),
        (
            {"claim": "limit", "metric": "makespan", "proof": {"claim": "critical-path", "value": 7}}, CHAIN,
            {"limits": {"makespan": 6}}, {"b": {"time": 3}},
        ),
        ({"claim": "refutation", "proof": None}, ALONE, MORE, {"b": {"separate": "t"}}),
        ({"claim": "refutation", "proof": None}, SPENT, {"budgets": {"m": 5}}, {"a": {"uses": {"m": 1}}}),
    ],
)  # fmt: skip
def test_claims_that_no_schedule_is_feasible(
    claim: dict[str, Any], tasks: dict[str, Any], rest: dict[str, Any], false: dict[str, Any] | None
) -> None:
    """Each is accepted, and refused for a problem with a schedule: tasks that are changed like `false`."""
    checked = refusing(claim, tasks, **rest)
    assert checked is not None
    assert checked.infeasible
    assert checked.complete
    assert str(checked) == "infeasibility checked: 1 claim, all by computing"
    if false is not None:
        assert refusing(claim, {name: {**task, **false.get(name, {})} for name, task in tasks.items()}, **rest) is None


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"claim": "critical-path", "value": 4}, "of a makespan of 7; expected more than 7, by which schedules end"),
        ({"claim": "memory", "value": 1, "level": 6}, "level is 6; expected at most half of the largest capacity, 10"),
        ({"claim": "memory", "value": 1}, "states 1, but it proves 0 only"),
        ({"claim": "separation", "value": 1, "tasks": ["z"]}, "expected tasks"),
        ({"claim": "separation", "value": 1, "tasks": ["a", "b"]}, "expected tasks of which no two may share a device"),
        ({"claim": "budget", "value": 1, "resource": "m"}, "expected budgets"),
        ({"claim": "limit", "value": 1, "metric": "energy"}, "expected a metric that the problem limits"),
        ({"claim": "limit", "value": 1, "metric": "makespan", "proof": None}, "proof.proof: expected an object"),
    ],
)
def test_a_wrong_claim_of_infeasibility_is_named(claim: dict[str, Any], message: str) -> None:
    made = problem_of({**LATE, "b": {"time": 1, "after": ["a"], "deadline": 5}}, **SMALL, limits={"makespan": 5})
    facts = {"problem": made.fingerprint(), "objective": "makespan", "bound": "infeasible"}
    with pytest.raises(CertificateError, match=message):
        po.check_certificate(made, {"placeopt_certificate": 1, **facts, "proof": claim})


def test_swapping_takes_no_time_of_deadlines() -> None:
    """The work takes 5 ticks at most, and devices swap for 3 ticks before it; there is a schedule."""
    devices = {"x": {"memory": 4, "tiers": [{"memory": 100, "bandwidth": 2}]}}
    tasks = {"a": {"time": 5, "memory": 10}}
    assert proved(problem_of(tasks, devices=devices), "swapping", swap=3) == 8
    swapping = {"claim": "swapping", "value": 8, "swap": 3}
    assert refusing(swapping, tasks, devices=devices) is None
    arcs = [{"block": 0, "start": None, "end": "x", "proof": swapping}]
    series = {"claim": "series", "cuts": ["a"], "blocks": [[], ["b"]], "arcs": arcs}
    tasks["b"] = {"time": 1, "after": ["a"]}
    assert (
        proved(
            problem_of(tasks, devices=devices),
            **{"kind" if key == "claim" else key: each for key, each in series.items()},
        )
        == 9
    )
    assert refusing(series, tasks, devices=devices) is None


def test_groups_without_a_device() -> None:
    made, claim = problem_of(CHAIN, **SMALL), {"claim": "critical-path", "value": 13}
    held = np.full(3, 11)
    pairs = np.array([[0, 1]])
    for broken in (
        replace(made, feasible=np.zeros_like(made.feasible)),
        with_changes(made, resident=held),
        replace(made, group=np.array([0, 0, 1]), separation=pairs),
    ):
        facts = {"problem": broken.fingerprint(), "objective": "makespan", "bound": "infeasible"}
        claim["value"] = timely(broken)[1] + 1
        assert po.check_certificate(broken, {"placeopt_certificate": 1, **facts, "proof": claim}).complete


def test_a_limit_of_the_makespan_is_not_about_deadlines() -> None:
    """With deadlines as tails, a makespan of 9 is proved; the makespan is 1."""
    tasks = {"a": {"time": 1, "deadline": 1}, "b": {"time": 1, "deadline": 9}}
    claim = {"claim": "limit", "metric": "makespan", "proof": {"claim": "critical-path", "value": 1}}
    assert refusing(claim, tasks, limits={"makespan": 1}) is None


@pytest.mark.parametrize("seed", range(150))
def test_random_certificates_of_infeasibility(seed: int) -> None:
    """One of a problem without a schedule is accepted; one of a problem with a schedule relies on an engine."""
    problem, feasible, made = infeasibility_proof(seed)
    checked = accepted(problem, json.loads(json.dumps(made)))
    assert checked is not None
    assert checked.infeasible
    assert not (feasible and checked.complete)
    assert checked.complete or prove_infeasible(problem) is None


@pytest.mark.parametrize("seed", range(1000, 1100))
def test_no_changed_certificate_refutes_a_problem_with_a_schedule(seed: int) -> None:
    rng = random.Random(seed)
    problem, _, made = infeasibility_proof(seed)
    for _ in range(6):
        looser, changed = relaxed(problem, mutated(made, problem, rng), rng)
        checked = accepted(looser, changed)
        assert checked is None or not checked.complete or not checked.infeasible or optimum(looser) is None


def test_the_certificate_by_hand_of_the_page(tmp_path: Path) -> None:
    document, claim = (PAGE.split(f"```{language}\n")[1].split("```")[0] for language in ("yaml", "json"))
    path = tmp_path / "by-hand.yaml"
    path.write_text(document)
    made = po.load(path)
    proof = {"claim": "terms", "terms": [json.loads(claim)]}
    facts = {"problem": made.fingerprint(), "objective": "makespan", "bound": 13}
    checked = po.check_certificate(made, {"placeopt_certificate": 1, **facts, "proof": proof})
    assert checked.complete
    assert po.solve(made, "brute-force").objective == checked.bound


def test_the_certificate_of_infeasibility_of_the_page(tmp_path: Path) -> None:
    document, claim = (PAGE.split(f"```{language}\n")[2].split("```")[0] for language in ("yaml", "json"))
    path = tmp_path / "due.yaml"
    path.write_text(document)
    made = po.load(path)
    facts = {"problem": made.fingerprint(), "objective": "makespan", "bound": "infeasible"}
    checked = po.check_certificate(made, {"placeopt_certificate": 1, **facts, "proof": json.loads(claim)})
    assert checked.complete
    assert po.solve(made, "brute-force").termination is po.Termination.INFEASIBLE


def test_the_page_says_why_a_bound_has_no_claim() -> None:
    from placeopt.proving.certificates.leaves import REASONS

    table = PAGE.split("### Bounds without claims")[1].split("Where another claim")[0]
    assert {name for name in REASONS if f"`{name}`" not in table} == set()


def test_the_page_names_every_claim() -> None:
    from placeopt.verifier.certificates import CLAIMS

    kinds = {"nothing", "engine", "terms"}.union(*CLAIMS.values())
    assert {name for name in kinds if f"`{name}`" not in PAGE} == set()


def test_the_commands_for_a_problem_without_a_schedule(tmp_path: Path) -> None:
    problem, plan, proof = tmp_path / "p.yaml", tmp_path / "plan.json", tmp_path / "proof.json"
    document = {"placeopt": 1, "devices": {"d": {"count": 2}}, "tasks": DUE}
    problem.write_text(json.dumps(document))
    done = run("solve", problem, "--solver", "cp-sat", "--certificate", proof)
    assert done.code == 1
    assert "certificate: infeasibility checked: 1 claim, all by computing" in done.out
    done = run("verify", problem, "--certificate", proof)
    assert done.code == 0
    assert "infeasibility checked" in done.out
    assert (
        json.loads(run("verify", problem, "--certificate", proof, "--json").out)["certificate"]["bound"] == "infeasible"
    )
    assert "needs a PLAN, as `solve --out` writes it, or --certificate" in run("verify", problem).err
    assert "verify --tasks needs a PLAN" in run("verify", problem, "--certificate", proof, "--tasks").err
    document["tasks"] = {f"t{k}": {"time": 1} for k in range(11)}
    problem.write_text(json.dumps(document))
    run("solve", problem, "--solver", "heft", "--out", plan)
    eleven = po.load(problem)
    false = relying(timely(eleven)[0], "makespan", 12, "x")
    stated = {**json.loads(proof.read_text()), "problem": eleven.fingerprint(), "proof": false}
    proof.write_text(json.dumps(stated))
    done = run("verify", problem, plan, "--certificate", proof)
    assert done.code == 1
    assert (
        "certificate refused: its infeasibility is wrong, since the plan is feasible, and its objective is" in done.out
    )
    assert "its only claim relies on other: x (it has 11 tasks)" in done.out
    done = run("verify", problem, plan, "--certificate", proof, "--recheck", "30s")
    assert done.code == 1
    assert "certificate refused: proof: other: x claims at least 12, but cp-sat finds a schedule" in done.out
    right = {
        **stated,
        "bound": 6,
        "proof": {"claim": "terms", "terms": [relying(model_of(eleven), "makespan", 6, "x")]},
    }
    proof.write_text(json.dumps(right))
    done = run("verify", problem, plan, "--certificate", proof, "--recheck", "30s")
    assert done.code == 0
    assert (
        "bound 6 trusted, not checked: its only claim relies on other: x (it has 11 tasks); 1 confirmed by cp-sat, "
        "0 undecided" in done.out
    )
    assert "trusted: other: x: the engine states no proof" in done.out
    done = run("verify", problem, "--certificate", proof, "--recheck", "30s", "--json")
    assert json.loads(done.out)["certificate"]["trusted"][0]["confirmed"] == "cp-sat"


def test_the_commands(tmp_path: Path) -> None:
    problem, plan, proof = ROOT / "problems" / "heft-10.yaml", tmp_path / "plan.json", tmp_path / "proof.json"
    done = run("solve", problem, "--solver", "cp-sat", "--out", plan, "--certificate", proof)
    assert done.code == 0
    assert "certificate: bound 73 checked: 1 claim, all by computing" in done.out
    done = run("verify", problem, plan, "--certificate", proof)
    assert done.code == 0
    assert "gap: 0.00%: no plan is better" in done.out
    done = run("verify", problem, plan, "--certificate", proof, "--json")
    data = json.loads(done.out)
    assert data["gap"] == 0
    assert data["optimal"] is True
    assert data["certificate"]["complete"]
    document = json.loads(proof.read_text())
    proof.write_text(json.dumps({**document, "bound": 74}))
    done = run("verify", problem, plan, "--certificate", proof)
    assert done.code == 1
    assert "certificate refused: certificate.bound is 74, but its proof is of 73 only" in done.out
    done = run("verify", problem, plan, "--certificate", proof, "--json")
    assert "74" in json.loads(done.out)["certificate"]["refused"]
    done = run("verify", problem, plan, "--certificate", tmp_path / "none.json")
    assert done.code == 2
    assert "http://a/b is an address on a network" in run("verify", problem, "--certificate", "http://a/b").err
    assert "this looks like a certificate file, expected a plan file" in run("verify", problem, proof).err
    done = run("solve", problem, "--solver", "heft", "--certificate", proof, "--json")
    assert json.loads(done.out)["certificate"]["bound"] == 63
    assert json.loads(proof.read_text())["bound"] == 63
    done = run("solve", problem, "--certificate", tmp_path / "none" / "proof.json")
    assert done.code == 2
    assert "there is no folder" in done.err


def test_the_page_lists_the_engines() -> None:
    listed = PAGE.partition("is one of these names:")[2].partition("Another name is refused")[0]
    names = set(re.findall(r"`([^`]+)`", listed))
    assert names == {*ENGINES, f"{OTHER}NAME"}


def test_the_writer_marks_other_engines() -> None:
    made = problem_of(CHAIN)
    claim = relying(model_of(made), "makespan", 7, "my-solver")
    assert claim["engine"] == "other: my-solver"
    checked = po.check_certificate(
        made,
        {
            "placeopt_certificate": 1, "problem": made.fingerprint(), "objective": "makespan", "bound": 7,
            "proof": {"claim": "terms", "terms": [claim]},
        },
    )  # fmt: skip
    assert checked.unchecked
    assert str(checked) == "bound 7 trusted, not checked: its only claim relies on other: my-solver (it has 3 tasks)"


def test_of_several_levels_only_the_first_is_proved(tmp_path: Path) -> None:
    """A plan that is optimal on the first level, and not on the second one."""
    problem, plan, proof = tmp_path / "lex.json", tmp_path / "plan.json", tmp_path / "proof.json"
    devices = {"a": {"count": 2, "price": 3600}, "b": {"price": 1}}
    tasks = {"x": {"time": 5}, "y": {"time": 2}}
    problem.write_text(
        json.dumps({"placeopt": 1, "devices": devices, "objective": ["makespan", "price"], "tasks": tasks})
    )
    placed = {"x": {"device": "a0", "start": 0}, "y": {"device": "a1", "start": 0}}
    plan.write_text(json.dumps({"placeopt_plan": 1, "tasks": placed}))
    assert run("solve", problem, "--solver", "cp-sat", "--certificate", proof).code == 0
    done = run("verify", problem, plan, "--certificate", proof)
    assert done.code == 0
    assert "feasible: makespan, then price = 5 ns (5 ticks), then 7e-09" in done.out
    assert "gap of the first level: 0.00%: no plan has a smaller first level" in done.out
    assert "no plan is better" not in done.out
    data = json.loads(run("verify", problem, plan, "--certificate", proof, "--json").out)
    assert (data["gap"], data["optimal"]) == (0, False)
