"""Measure serving problems: published clusters, baselines, random problems against all intervals, growth.

    python benchmarks/serving.py [PART ...] [--limit 60] [--number 5000] [--seed 0]

All parts run unless some are named:

    published  the clusters in serving/ of the folder that PLACEOPT_DATA names, with measured rates (Mei et al., Helix,
               ASPLOS 2025, artifact): the plan and the bound of placeopt, and the plans of other rules
    agreement  random problems with up to 5 nodes and 6 layers (tests/support/random_serving.py): plans and bounds
               against all intervals, each with a largest flow (tests/support/brute_force_serving.py)
    requests   random problems with up to 3 nodes and 4 layers whose nodes share requests: bounds against all groups of
               whole requests on all ways through all intervals; plans are changed, and the verifier must find that
    prefill    random problems with up to 4 nodes and 3 layers and separate prefill: plans and bounds with rates alone
               against a linear program of all routes for all intervals; bounds with requests against all groups on all
               divisions of the nodes; simulated plans; plans are changed, and the verifier must find that
    replicas   random problems as in requests that allow up to 3 replicas: bounds against all divisions of the nodes
    mutants    plans of random problems with one change: the verifier must reject it, or find the same or less flow
    growth     24 to 1,000 nodes of 3 to 10 kinds in one site and in eight, with rates of the catalogue for 80 layers:
               rates of nodes alone, as if they were measured, with shared requests in one replica, and in any number
    slow       200 nodes of 10 random kinds in eight sites, whose links pass a third of what a node passes, with
               nodes that hold up to 12 or up to 6 of 80 layers

The other rules, each with the largest flow for its layers:

    equal      one chain; all nodes hold the same number of layers
    memory     one chain; layers in proportion to the most that a node can hold, as llama.cpp and exo divide by memory
    swarm      as many equal stages as the node with the least memory needs; each node, the fastest first, goes to the
               stage with the least rate (M. Ryabinin et al., SWARM parallelism, ICML 2023)
    petals     each node in turn holds as many layers as it can, where the least rate of a layer is least, then the sum
               (A. Borzunov et al., Petals, ACL 2023)
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

import placeopt as po
from placeopt.serving.flow import best_flow
from placeopt.serving.plan import ServingPlan
from placeopt.serving.prefill import transfers
from placeopt.serving.problem import TOKEN, UNLIMITED, Serving, build_serving
from placeopt.serving.result import ServingResult
from tests.serving.test_bounds_and_plans import cluster
from tests.support.brute_force_serving import (
    best_rate,
    best_rate_of_groups,
    best_rate_of_phases,
    best_rate_of_replicas,
    best_rate_of_routes,
)
from tests.support.random_serving import random_prefill, random_requests, random_serving

CONSOLE = Console(width=140)

PARTS = ("published", "agreement", "requests", "prefill", "replicas", "mutants", "growth", "slow")

SIZES = ((24, 3, 1), (42, 7, 1), (100, 10, 1), (200, 10, 1), (200, 10, 8), (1_000, 10, 1))
"""Nodes, kinds and sites of the part growth."""

Intervals = tuple[np.ndarray, np.ndarray]


def most_layers(problem: Serving) -> list[int]:
    """The most layers that each node can hold."""
    return [int(np.flatnonzero(problem.rate[kind, 0]).max(initial=-1)) + 1 for kind in problem.kind.tolist()]


def chain(shares: list[float], problem: Serving) -> Intervals:
    """One chain of all nodes, with layers in proportion to shares."""
    ends = np.rint(np.cumsum(shares) / sum(shares) * problem.layers).astype(np.int64)
    return np.concatenate([[0], ends[:-1]]), ends


def equal(problem: Serving) -> Intervals:
    """All nodes hold the same number of layers."""
    return chain([1.0] * problem.n_nodes, problem)


def by_memory(problem: Serving) -> Intervals:
    """Layers in proportion to the most that a node can hold."""
    return chain([float(most) for most in most_layers(problem)], problem)


def swarm(problem: Serving) -> Intervals:
    """Equal stages that every node can hold; each node goes to the stage with the least rate."""
    number = -(-problem.layers // min(most_layers(problem)))
    ends = np.rint(np.arange(1, number + 1) / number * problem.layers).astype(np.int64)
    begins = np.concatenate([[0], ends[:-1]])
    rates, place = [0] * number, [0] * problem.n_nodes
    fastest_first = sorted(range(problem.n_nodes), key=lambda n: -problem.rate_of(int(problem.kind[n]), 0, 1))
    for n in fastest_first:
        place[n] = min(range(number), key=rates.__getitem__)
        rates[place[n]] += problem.rate_of(int(problem.kind[n]), int(begins[place[n]]), int(ends[place[n]]))
    return begins[place], ends[place]


def petals(problem: Serving) -> Intervals:
    """Each node holds as many layers as it can, where the least rate is least."""
    coverage = np.zeros(problem.layers, dtype=np.int64)
    begin, end = np.zeros((2, problem.n_nodes), dtype=np.int64)
    for n, most in enumerate(most_layers(problem)):
        windows = [(sorted(coverage[s : s + most].tolist()), s) for s in range(problem.layers - most + 1)]
        begin[n] = min(windows)[1]
        end[n] = begin[n] + most
        coverage[begin[n] : end[n]] += problem.rate_of(int(problem.kind[n]), int(begin[n]), int(end[n]))
    return begin, end


RULES: dict[str, Callable[[Serving], Intervals]] = {
    "equal": equal, "memory": by_memory, "swarm": swarm, "petals": petals
}  # fmt: skip


def published(limit: float) -> None:
    """Published clusters: placeopt, what was published, and other rules."""
    folder = Path(os.environ.get("PLACEOPT_DATA", ""), "serving")
    files = sorted(folder.glob("*.json"))
    if not files:
        CONSOLE.print("published: PLACEOPT_DATA does not name a folder with serving/*.json; nothing to measure")
        return
    table = Table(title=f"tokens/s, {limit:g} s")
    for header in ("cluster", "nodes", "placeopt", "bound", "gap", "s", "published", "its bound", *RULES):
        table.add_column(header, justify="left" if header == "cluster" else "right")
    for path in files:
        data: dict[str, Any] = json.loads(path.read_text())
        problem = cluster(data)
        found = po.solve_serving(problem, time_limit=limit)
        others = [best_flow(problem, *rule(problem)).rate for rule in RULES.values()]
        stated = [data["published_tokens_per_s"], data["published_bound"]]
        table.add_row(
            path.stem, str(problem.n_nodes), *amounts([found.rate, found.bound]),
            "-" if found.gap is None else f"{found.gap:.3%}", f"{found.seconds:.1f}",
            *(f"{tokens:,.2f}" for tokens in stated), *amounts(others),
        )  # fmt: skip
    CONSOLE.print(table)


def amounts(rates: list[int]) -> Iterator[str]:
    """Rates as text."""
    return (f"{rate / TOKEN:,.2f}" for rate in rates)


def agreement(number: int, seed: int) -> bool:
    """Random problems against all intervals; whether nothing was wrong."""
    counts: Counter[str] = Counter()
    for k in range(seed, seed + number):
        problem = random_serving(k)
        best = best_rate(problem)
        found = po.solve_serving(problem, time_limit=0.3, workers=1)
        if not found.rate <= best <= found.bound:
            counts["wrong"] += 1
            CONSOLE.print(f"seed {k}: rate {found.rate}, optimum {best}, bound {found.bound} by {found.bound_source}")
        counts[f"bound by {found.bound_source}"] += 1
        counts["plan within 0.01%"] += found.rate >= best * (1 - 1e-4)
        counts["bound within 0.1%"] += found.bound <= best * (1 + 1e-3)
        counts["several sites"] += found.sites.number > 1
    CONSOLE.print(f"agreement: {number} problems from seed {seed}: {counts['wrong']} wrong; {dict(counts)}")
    return not counts["wrong"]


def requests(number: int, seed: int) -> bool:
    """Random problems with requests in flight; whether nothing was wrong."""
    counts: Counter[str] = Counter()
    near, gaps = [], []
    for k in range(seed, seed + number):
        problem, rng = random_requests(k), random.Random(k)
        best = best_rate_of_groups(problem)
        found = po.solve_serving(problem, time_limit=0.3, workers=1)
        # The reference does not round rates down to those of nodes and links.
        if found.rate > found.bound or best > found.bound + 2 * problem.n_nodes + 2:
            counts["wrong"] += 1
            CONSOLE.print(f"seed {k}: rate {found.rate}, optimum {best}, bound {found.bound}")
        if best and found.plan is not None:
            near.append(found.rate / best)
            gaps.append(found.bound / best - 1)
        if found.plan is None or not found.rate:
            continue
        for what, plan in group_changes(found.plan, rng):
            counts["changed plans"] += 1
            if po.verify_serving(problem, plan).feasible and plan.rate > found.bound:
                counts["wrong"] += 1
                CONSOLE.print(f"seed {k}: {what} was not found")
    CONSOLE.print(
        f"requests: {number} problems from seed {seed}: {counts['wrong']} wrong; {counts['changed plans']} changes; "
        f"plans at least as good as the reference {np.mean(np.array(near) >= 1 - 1e-4):.0%}, "
        f"bounds above it by {np.median(gaps):.1%} in the median"
    )
    return not counts["wrong"]


def replicas(number: int, seed: int) -> bool:
    """Random problems with replicas; whether nothing was wrong."""
    counts: Counter[str] = Counter()
    near, gaps = [], []
    for k in range(seed, seed + number):
        problem = random_requests(k)
        problem = replace(problem, replicas=min(1 + k % 3, problem.n_nodes))
        best = best_rate_of_replicas(problem)
        found = po.replicated_serving(problem, time_limit=0.2, workers=1)
        # The reference does not round rates down to those of nodes and links.
        if found.rate > found.bound or best > found.bound + 2 * problem.n_nodes + 2:
            counts["wrong"] += 1
            CONSOLE.print(f"seed {k}: rate {found.rate}, optimum {best}, bound {found.bound}")
        if best:
            near.append(found.rate / best)
            gaps.append(found.bound / best - 1)
            counts["several"] += len(found.replicas) > 1
    CONSOLE.print(
        f"replicas: {number} problems from seed {seed}: {counts['wrong']} wrong; {counts['several']} with several; "
        f"plans at least as good as the reference {np.mean(np.array(near) >= 1 - 1e-4):.0%}, "
        f"bounds above it by {np.median(gaps):.1%} in the median"
    )
    return not counts["wrong"]


def group_changes(plan: ServingPlan, rng: random.Random) -> Iterator[tuple[str, ServingPlan]]:
    """Plans with one change of groups or flow."""
    factor = rng.choice([1.01, 1.2, 2])
    yield "shorter period", replace(plan, period=int(plan.period / factor), flow=(plan.flow * factor).astype(np.int64))
    yield "fewer groups", replace(plan, groups=plan.groups - 1)
    yield "more flow", replace(plan, flow=(plan.flow * factor).astype(np.int64))
    yield "more groups", replace(plan, groups=plan.groups * 2, period=plan.period // 2, flow=plan.flow * 2)


def prefill(number: int, seed: int) -> bool:
    """Random problems with separate prefill; whether nothing was wrong."""
    counts: Counter[str] = Counter()
    near, simulated = [], []
    for k in range(seed, seed + number):
        problem, rng = random_prefill(k), random.Random(k)
        assert problem.prompts is not None
        unlimited = replace(problem, prompts=replace(problem.prompts, limit=None))
        alone = replace(unlimited, steps=None)
        best = best_rate_of_routes(alone)
        found = po.solve_serving(alone, time_limit=0.3, workers=1)
        # The linear program does not round.
        wrong = not found.rate <= best + 5 or found.bound < best - 5
        if best:
            near.append(found.rate / best)
        least = best_rate_of_phases(unlimited)
        found = po.solve_serving(unlimited, time_limit=0.3, workers=1)
        wrong |= found.bound < least - 2 * problem.n_nodes - 2 or found.rate > found.bound
        if wrong:
            counts["wrong"] += 1
            CONSOLE.print(f"seed {k}: routes {best}, groups {least}, bound {found.bound}")
        if found.plan is not None and found.rate:
            simulated.append(po.simulate_serving(unlimited, found.plan, tokens=4_000).rate / found.rate)
            for what, changed, plan in prefill_changes(found, rng):
                counts["changed plans"] += 1
                if po.verify_serving(changed, plan).feasible:
                    counts["wrong"] += 1
                    CONSOLE.print(f"seed {k}: {what} was not found")
            # A limit that a plan keeps leaves a bound of at least its rate.
            first = found.report.first_token if found.report is not None else None
            limited = replace(problem, prompts=replace(problem.prompts, limit=first))
            again = po.solve_serving(limited, time_limit=0.1, workers=1)
            counts["limits of the first token"] += 1
            if again.bound < found.rate:
                counts["wrong"] += 1
                CONSOLE.print(f"seed {k}: {found.rate} with a first token after {first}, bound {again.bound}")
    CONSOLE.print(
        f"prefill: {number} problems from seed {seed}: {counts['wrong']} wrong; {dict(counts)}; "
        f"plans with rates alone within 0.01% {np.mean(np.array(near) >= 1 - 1e-4):.0%}, "
        f"simulated at least 90% of the plan {np.mean(np.array(simulated) >= 0.9):.0%}"
    )
    return not counts["wrong"]


def prefill_changes(found: ServingResult, rng: random.Random) -> Iterator[tuple[str, Serving, ServingPlan]]:
    """Plans with one change of routes, layers, links, or the limit of the time to the first token."""
    problem, plan, report = found.problem, found.plan, found.report
    assert plan is not None
    assert report is not None
    assert problem.prompts is not None
    prompts, half, k = problem.prompts, problem.prefill_layers, rng.randrange(len(plan.routes))
    (nodes, rate), others = plan.routes[k], plan.routes[:k] + plan.routes[k + 1 :]
    yield "rate of a route", problem, replace(plan, routes=((nodes, rate + rng.choice([-1, 1])), *others))
    yield "no route", problem, replace(plan, routes=others)
    yield "node of a route", problem, replace(plan, routes=((nodes[:-1], rate), *others))
    end = plan.end.copy()
    end[rng.choice([n for n in nodes if plan.begin[n] < half])] = half + 1
    yield "border", problem, replace(plan, end=end)
    assert report.first_token is not None
    yield "limit", replace(problem, prompts=replace(prompts, limit=report.first_token - 1)), plan
    u, w, size = rng.choice(transfers(problem, prompts, plan, nodes))
    transfer = np.full_like(prompts.transfer, UNLIMITED)
    transfer[u, w] = max(size * rate // prompts.answer // TOKEN - 1, 0)
    if size * rate > transfer[u, w] * prompts.answer * TOKEN:
        yield "slower link", replace(problem, prompts=replace(prompts, transfer=transfer)), plan


def mutants(number: int, seed: int) -> bool:
    """Changed plans; whether the verifier found each change."""
    counts: Counter[str] = Counter()
    made = missed = 0
    k = seed
    while made < number:
        k += 1
        problem, rng = random_serving(k), random.Random(k)
        plan = po.solve_serving(problem, time_limit=0.05, workers=1).plan
        if plan is None or not len(plan.flow):
            continue
        for what, changed in changes(plan, rng):
            made += 1
            report = po.verify_serving(problem, changed)
            rules = {rule for rule, _ in report.violations}
            counts[f"{what}: {', '.join(sorted(rules)) or 'kept'}"] += 1
            # Another interval may be sound; then the flow must be, too, and no larger than the largest.
            again = best_flow(problem, changed.begin, changed.end).rate
            wrong = report.feasible and (report.rate > again or report.largest != (report.rate == again))
            if wrong or (report.feasible and what in ("more", "other end")):
                missed += 1
                CONSOLE.print(f"seed {k}: {what} was not found")
    CONSOLE.print(f"mutants: {made} plans, {missed} wrong; {dict(counts)}")
    return not missed


def changes(plan: ServingPlan, rng: random.Random) -> Iterator[tuple[str, ServingPlan]]:
    """Plans with one change."""
    e, n = rng.randrange(len(plan.flow)), rng.choice(np.flatnonzero(plan.end > plan.begin).tolist())
    for what, amount in (("more", rng.choice([1, TOKEN, 10**12])), ("less", -min(int(plan.flow[e]), TOKEN))):
        flow = plan.flow.copy()
        flow[e] += amount
        yield what, replace(plan, flow=flow)
    begin, end = plan.begin.copy(), plan.end.copy()
    begin[n] += rng.choice([-1, 1])
    end[n] += rng.choice([-1, 0, 1])
    yield "other layers", replace(plan, begin=begin, end=end)
    edges = plan.edges.copy()
    edges[e, rng.randrange(2)] = edges[e, rng.randrange(2)]
    if not np.array_equal(edges, plan.edges):
        yield "other end", replace(plan, edges=edges)


def catalogue_cluster(nodes: int, kinds: int, sites: int) -> Serving:
    """Nodes of kinds of the catalogue, by turns, and by turns in sites with links of 1 Gbps between them."""
    names = ["a100-40gb", "l4", "t4", "v100-16gb", "rtx-3090", "rtx-4090", "a10", "h100-sxm", "rtx-4070", "l40s"][
        :kinds
    ]
    devices: dict[str, Any] = {}
    for k in range(kinds):
        for site in range(sites):
            count = len(range(k + kinds * site, nodes, kinds * sites))
            if count:
                devices[f"{names[k]}-s{site}-"] = {"like": names[k], "count": count, "type": f"site{site}"}
    inside = [{"between": [f"site{s}", f"site{s}"], "bandwidth": "10 Gbps"} for s in range(sites)]
    serving = {
        "layers": 80, "weights": 1711308800, "cache": "4 KiB", "flops": 1711308800, "activation": "16 KiB",
        "reserve": "1 GiB",
    }  # fmt: skip
    links = {"default": {"bandwidth": "1 Gbps"}, "overrides": inside}
    return po.load_serving({"placeopt": 1, "devices": devices, "links": links, "serving": serving})


def growth(limit: float) -> None:
    """Larger clusters."""
    for what in ("rates of nodes alone", "shared requests, one replica", "shared requests, replicas"):
        table = Table(title=f"{what}, {limit:g} s, 80 layers")
        for header in ("nodes", "kinds", "sites", "tokens/s", "bound", "gap", "s"):
            table.add_column(header, justify="right")
        for nodes, kinds, sites in SIZES:
            problem, begun = catalogue_cluster(nodes, kinds, sites), time.perf_counter()
            problem = replace(problem, steps=None) if what == "rates of nodes alone" else problem
            if what.endswith("replicas"):
                found: Any = po.replicated_serving(replace(problem, replicas=nodes), time_limit=limit)
            else:
                found = po.solve_serving(problem, time_limit=limit)
            gap = "-" if found.gap is None else f"{found.gap:.2%}"
            seconds = f"{time.perf_counter() - begun:.1f}"
            table.add_row(
                *(f"{x:,}" for x in (nodes, kinds, sites)), *amounts([found.rate, found.bound]), gap, seconds
            )  # fmt: skip
        CONSOLE.print(table)


def slow_cluster(seed: int, most_layers: int) -> Serving:
    """200 nodes of 10 kinds that hold at most `most_layers` of 80 layers, in eight sites with slow links."""
    rng = np.random.default_rng(seed)
    most = rng.integers(2, most_layers + 1, 10)
    top = rng.uniform(4_000, 24_000, 10)
    count = np.arange(1, most_layers + 1)
    rate = TOKEN * top[:, None] / count * (1 - 0.7 * ((count - 1) / most[:, None]) ** 2) * (count <= most[:, None])
    kind, site = rng.integers(10, size=200), rng.integers(8, size=200)
    usual = np.mean([row[round(0.7 * largest) - 1] for row, largest in zip(rate, most.tolist(), strict=True)])
    link = np.where(site[:, None] == site[None, :], UNLIMITED, int(usual / 3))
    return build_serving(
        layers=80, node_names=[f"n{n}" for n in range(200)], kind=kind, rate=rate[:, None].astype(np.int64), link=link
    )


def slow(limit: float) -> None:
    """Many sites with slow links."""
    table = Table(title=f"200 nodes, 8 sites, {limit:g} s")
    for header in ("most layers", "seed", "tokens/s", "bound", "gap"):
        table.add_column(header, justify="right")
    for most, seed in ((12, 0), (12, 1), (6, 0), (6, 1)):
        found = po.solve_serving(slow_cluster(seed, most), time_limit=limit)
        gap = "-" if found.gap is None else f"{found.gap:.2%}"
        table.add_row(str(most), str(seed), *amounts([found.rate, found.bound]), gap)
    CONSOLE.print(table)


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each cluster")
    parser.add_argument("--number", type=int, default=5_000, help="random problems, and changed plans")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    parts = asked.parts or list(PARTS)
    sound = True
    if "published" in parts:
        published(asked.limit)
    if "agreement" in parts:
        sound &= agreement(asked.number, asked.seed)
    if "requests" in parts:
        sound &= requests(asked.number, asked.seed)
    if "replicas" in parts:
        sound &= replicas(asked.number, asked.seed)
    if "prefill" in parts:
        sound &= prefill(asked.number, asked.seed)
    if "mutants" in parts:
        sound &= mutants(asked.number, asked.seed)
    if "growth" in parts:
        growth(asked.limit)
    if "slow" in parts:
        slow(asked.limit)
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
