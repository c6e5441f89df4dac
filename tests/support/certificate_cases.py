"""Random problems with their optimum, their certificates, and changed ones."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from brute_force import METRICS, optimum, small_problem, with_resources, with_setups, with_shared_links, with_windows
from large_amounts import large_problem
from pipelines import random_pipeline, teams_document, unlike_pipeline

from placeopt.bounding import quick
from placeopt.errors import CertificateError
from placeopt.io.compiler import compile_spec
from placeopt.model.building import with_changes
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.orchestration.pipeline import solve
from placeopt.proving.certificates import certificate, infeasibility
from placeopt.verifier.certificates import Checked, check_certificate
from placeopt.verifier.certificates.model import timely
from placeopt.verifier.certificates.refutation import PARTS

SUM = Objective(((Term("makespan", Fraction(2, 3)), Term("energy"), Term("total_cost", Fraction(5))),))
OBJECTIVES = [*(Objective(((Term(metric),),)) for metric in METRICS), SUM, *[Objective()] * (len(METRICS) + 1)]

KINDS = (
    "nothing", "critical-path", "load", "spread", "packing", "interval", "resource", "swapping",
    "path", "flow", "refutation", "series", "engine", "cheapest", "transfers", "earliest", "memory",
    "separation", "budget", "limit", "stages", "machines",
)  # fmt: skip


CLOSING = "critical-path", "load", "spread", "packing", "flow", "resource", "interval", "refutation", "series", "engine"
"""Claims within trees of cases; all but the last ones may close a case."""


def drawn_problem(seed: int) -> Problem:
    """A problem of one to five tasks, with every constraint and metric now and then."""
    rng, objective = np.random.default_rng(seed), OBJECTIVES[seed % len(OBJECTIVES)]
    if seed % 5 == 0:
        return large_problem(seed, objective, bound=objective.single == "makespan")
    problem = small_problem(rng, objective, times=seed % 7 == 0)
    if seed % 11 == 0:
        none = np.zeros(problem.n_tasks, dtype=np.int64)
        problem = with_changes(problem, resident=none, output=none, scratch=none, shared=np.zeros_like(problem.shared))
    for chance, change in ((0.3, with_resources), (0.15, with_windows), (0.15, with_setups)):
        if rng.random() < chance:
            problem = change(problem, rng)
    if problem.contention == "none" and problem.n_devices > 1 and problem.n_edges <= 3 and rng.random() < 0.3:
        problem = with_shared_links(problem, rng)
    return problem


def proofs(seed: int) -> Iterator[tuple[Problem, Value, Value, dict[str, Any]]]:
    """A drawn problem with its optimum, and certificates of its best quick bound and of the optimum; none without."""
    problem = drawn_problem(seed)
    found = optimum(problem)
    if found is None or problem.n_tasks == 0:
        return
    best = found[0][0]
    bound = quick.best_bound(problem)
    for value, source in ((bound.value, bound.name), (best, "brute-force")):
        made = certificate(problem, value, source, found[1], time_limit=1.0, should_stop=lambda: False)
        yield problem, best, value, made


def period_proof(seed: int) -> tuple[Problem, int, dict[str, Any]] | None:
    """A pipeline with contiguous stages or with teams, its least period, and a certificate; None without a schedule."""
    if seed % 3 == 0:
        drawn = compile_spec(teams_document(seed))
    else:
        drawn = random_pipeline(seed, contiguous=True) if seed % 2 else unlike_pipeline(seed)
    assert drawn.pipeline is not None
    problem = replace(drawn, pipeline=replace(drawn.pipeline, replicas=1), objective=Objective(((Term("period"),),)))
    found = solve(problem, "brute-force")
    if found.objective is None:
        return None
    best = int(found.objective)
    return problem, best, certificate(problem, best, "x", None, time_limit=1.0, should_stop=lambda: False)


def tight_problem(seed: int) -> Problem:
    """A problem of one to five tasks, about half of which have no feasible schedule."""
    rng = np.random.default_rng([seed, 1])
    if seed % 5 == 0:
        return large_problem(seed, Objective(), scarce=seed % 2 == 0)
    problem = small_problem(rng, Objective(), times=rng.random() < 0.6)
    if rng.random() < 0.3 and problem.n_tasks > 1:
        pairs = list(combinations(range(problem.n_tasks), 2))
        problem = with_changes(problem, separation=[pair for pair in pairs if rng.random() < 0.6])
    if rng.random() < 0.3:
        room = rng.integers(0, max(int(problem.memory.sum()), 1), problem.n_devices)
        problem = with_changes(problem, capacity=np.maximum(room, problem.memory.max(initial=0)))
    for chance, change in ((0.3, with_resources), (0.1, with_windows), (0.1, with_setups)):
        if rng.random() < chance:
            problem = change(problem, rng)
    if rng.random() < 0.25:
        metric = METRICS[int(rng.integers(len(METRICS)))]
        only = replace(problem, objective=Objective(((Term(metric),),)))
        most = int(quick.best_bound(only).value) + int(rng.integers(-2, 4))
        problem = with_changes(problem, limits=((metric, max(most, 0)),))
    return problem


def infeasibility_proof(seed: int) -> tuple[Problem, bool, dict[str, Any]]:
    """A tight problem, whether it has a feasible schedule, and a certificate that it has none, right or wrong."""
    problem = tight_problem(seed)
    made = infeasibility(problem, "brute-force", time_limit=1.0, should_stop=lambda: False)
    return problem, problem.n_tasks == 0 or optimum(problem) is not None, made


def relaxed(problem: Problem, made: dict[str, Any], rng: random.Random) -> tuple[Problem, dict[str, Any]]:
    """A problem with one or two looser constraints, and a certificate that applies the claims for another one to it."""
    for _ in range(rng.randint(1, 2)):
        kind = rng.choice(["deadline", "capacity", "separation", "limits", "budget"])
        if kind == "deadline":
            more = np.where(problem.deadline < UNLIMITED // 4, rng.choice([1, 1, 2, 5, 50]), 0)
            problem = replace(problem, deadline=problem.deadline + more)
        elif kind == "capacity":
            more = np.where(problem.capacity < UNLIMITED // 4, rng.choice([1, 1, 3, 20]), 0)
            problem = replace(problem, capacity=problem.capacity + more)
        elif kind == "separation" and len(problem.separation):
            problem = replace(problem, separation=problem.separation[rng.randint(0, 1) :: rng.randint(1, 2)])
        elif kind == "limits":
            problem = replace(
                problem, limits=tuple((metric, most + rng.choice([1, 9])) for metric, most in problem.limits)
            )
        elif problem.resources is not None:
            resources = problem.resources
            problem = replace(
                problem, resources=replace(resources, capacity=resources.capacity + rng.choice([1, 10**9]))
            )
    end = timely(problem)[1] + 1
    return problem, {**made, "problem": problem.fingerprint(), "proof": {**made["proof"], "value": end}}


def mutated(made: dict[str, Any], problem: Problem, rng: random.Random) -> dict[str, Any]:
    """A certificate with one to three changes: numbers, names, claims and parts of it."""
    changed = copy.deepcopy(made)
    for _ in range(rng.randint(1, 3)):
        holders = [changed, *_inside(changed["proof"])]
        holder = rng.choice(holders)
        if not holder:
            continue
        key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        if holder is changed and key != "bound":
            continue
        value = holder[key]
        if isinstance(value, int):
            holder[key] = max(value + rng.choice([1, -1, value, -value, rng.randint(1, 9), 1 << rng.randint(0, 70)]), 0)
        elif isinstance(value, str):
            names = [*problem.task_names, *problem.device_names, *KINDS]
            holder[key] = rng.choice(names)
        elif isinstance(value, list):
            holder[key] = rng.sample(value, rng.randint(0, len(value)))
        elif isinstance(value, dict):
            holder[key] = rng.choice([None, _claim(problem, rng)])
        else:
            holder[key] = _claim(problem, rng)
    return changed


def _inside(part: Any) -> Iterator[Any]:
    if isinstance(part, dict | list):
        yield part
        for each in part.values() if isinstance(part, dict) else part:
            yield from _inside(each)


def _claim(problem: Problem, rng: random.Random) -> dict[str, Any]:
    """A claim with keys of all kinds, at random."""
    devices, tasks = list(problem.device_names), list(problem.task_names)
    most = int(problem.duration.max(initial=1)) * problem.n_tasks + 2

    def number() -> int:
        return rng.choice([0, 0, 1, rng.randint(0, most), rng.randint(0, 9)])

    claim: dict[str, Any] = {
        "claim": rng.choice(KINDS), "value": number(), "head": number(), "tail": number(), "start": number(),
        "end": number(), "each": rng.randint(0, 3), "swap": number(), "level": number(), "scale": rng.randint(1, 4),
        "shift": rng.choice([0, 0, 2, 40]), "backwards": rng.random() < 0.5, "half": rng.random() < 0.3,
        "prices": {name: rng.choice([0, 1, rng.randint(0, 1 << 40)]) for name in devices},
        "memory": {name: rng.choice([0, 0, rng.randint(0, 1 << 20)]) for name in devices},
        "size": rng.choice([0, number()]), "tasks": rng.sample(tasks, rng.randint(1, len(tasks))),
        "engine": "CP-SAT", "proof": rng.choice([None, "?"]),
        rng.choice(["pair", "order"]): [rng.choice(tasks), rng.choice(tasks)],
    }  # fmt: skip
    if rng.random() < 0.6:
        claim["devices"] = rng.sample(devices, rng.randint(1, len(devices)))
    if problem.resources is not None:
        claim["resource"] = rng.choice(list(problem.resources.names) or ["?"])
    if problem.limits and claim["claim"] == "limit":
        metric, most = rng.choice(problem.limits)
        kind = rng.choice(["cheapest", "load", "critical-path", "memory", "earliest"])
        claim |= {"metric": metric, "proof": {**claim, "claim": kind, "value": rng.choice([0, most, most + 1])}}
    if problem.shared_links is not None and rng.random() < 0.7:
        claim["link"] = rng.choice(list(problem.shared_links.channels))
    if claim["claim"] == "refutation":
        claim["proof"] = drawn_tree(problem, rng, {**claim, **drawn_flow(problem, rng)})
    if claim["claim"] == "stages":
        claim["path"] = [problem.task_names[i] for i in walk(problem, rng)]
    if claim["claim"] == "machines":
        claim["machines"] = {str(q): rng.choice([0, 1, 1, rng.randint(0, 1 << 40)]) for q in range(3)}
        names = [] if problem.resources is None else [problem.resources.names[r] for r in problem.resources.budgets]
        claim["budgets"] = {name: rng.choice([0, 0, 1, rng.randint(0, 1 << 40)]) for name in names}
    if claim["claim"] in ("path", "flow"):
        claim |= {"path": drawn_path, "flow": drawn_flow}[claim["claim"]](problem, rng)
        claim.pop("devices", None)
    if claim["claim"] == "series":
        cut, end = rng.choice(tasks), rng.choice(devices)
        leaf = {
            **claim,
            **drawn_flow(problem, rng),
            "claim": rng.choice(["swapping", "critical-path", "load", "memory", "spread", "resource", "flow"]),
        }
        arcs = [{"block": 0, "start": None, "end": end}, {"block": 1, "start": end, "end": None}]
        claim |= {
            "cuts": [cut],
            "blocks": [rng.sample(tasks, rng.randint(0, len(tasks))) for _ in range(2)],
            "arcs": [{**arc, "proof": leaf} for arc in rng.sample(arcs, rng.randint(0, 2))],
        }
    return claim


def drawn_tree(problem: Problem, rng: random.Random, leaf: dict[str, Any], depth: int = 3) -> dict[str, Any] | None:
    """A tree of cases, as a proof: decisions about ticks, devices and tasks, and claims with the numbers of `leaf`."""
    if depth == 0 or rng.random() < 0.3:
        claim = {**leaf, "claim": rng.choice(CLOSING), "value": rng.choice([0, 0, leaf["value"]])}
        return rng.choice([None, {**claim, "proof": None}])
    kind, task = rng.choice(["ends", "ends", "ends", "pair", "order", "class"]), rng.choice(problem.task_names)
    most = int(problem.duration.max(initial=1)) * problem.n_tasks + 2
    other = {"ends": rng.randint(0, most), "class": rng.choice(problem.device_names)}
    parts = {name: drawn_tree(problem, rng, leaf, depth - 1) for name in PARTS[kind]}
    return {kind: [task, other.get(kind, rng.choice(problem.task_names))], **parts}


def walk(problem: Problem, rng: random.Random) -> list[int]:
    """A path of the graph."""
    tasks = [rng.randrange(problem.n_tasks)]
    while rng.random() < 0.8:
        after = problem.edge_target[problem.edge_source == tasks[-1]].tolist()
        if not after:
            break
        tasks.append(rng.choice(after))
    return tasks


def drawn_path(problem: Problem, rng: random.Random) -> dict[str, Any]:
    """A path with any prices, as a claim."""
    names, resources = problem.task_names, problem.resources
    budgets = [] if resources is None else [resources.names[r] for r in resources.budgets.tolist()]
    limited = [d for d in range(problem.n_devices) if problem.capacity[d] < UNLIMITED]

    def price() -> int:
        return rng.choice([0, 1, rng.randint(0, 9), rng.randint(0, 1000), rng.randint(0, 1 << 61)])

    return {
        "claim": "path", "path": [names[i] for i in walk(problem, rng)], "scale": rng.choice([1, 2, 30, 1 << 58]),
        "memory": {problem.device_names[d]: price() for d in limited if rng.random() < 0.7},
        "budgets": {name: price() for name in budgets}, "shift": rng.choice([0, 0, 0, 1, 3]),
    }  # fmt: skip


def drawn_flow(problem: Problem, rng: random.Random) -> dict[str, Any]:
    """A flow over some paths, as a claim."""
    lanes: dict[str, list[list[Any]]] = {"plain": [], "children": [], "parents": []}
    most = rng.choice([1, 3, 1 << 52])
    for _ in range(rng.randint(1, 6)):
        amount, tasks = rng.randint(1, most), [problem.task_names[i] for i in walk(problem, rng)]
        for u, v in pairwise(tasks):
            lanes[rng.choice(["plain", "children", "children", "parents", "parents"])].append([u, v, amount])
    return {"claim": "flow", **lanes}


def accepted(problem: Problem, changed: dict[str, Any]) -> Checked | None:
    """What a certificate proves; None if the checker refuses it."""
    try:
        return check_certificate(problem, changed)
    except CertificateError:
        return None
