"""Write a quick bound as a claim of a certificate: find the set, the prices or the interval with which it is proved.

The bounds know their value and not always how they got it, so this searches again, with the same prices. A claim that
does not hold is found by the checker, which reads every claim before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from placeopt.bounding.energetic import ENDS, breakpoints
from placeopt.bounding.quick import bounds, narrowed_classes, swapping_bound
from placeopt.bounding.quick.classes import Subset, by_group, least, subsets
from placeopt.bounding.quick.deadlines import narrowed
from placeopt.bounding.quick.infeasibility import crowded_cliques
from placeopt.bounding.quick.jackson import (
    QUANTILES,
    coarser,
    head_load_tail,
    nearest,
    priced_subsets,
    sharing_of_tasks,
    sweep,
)
from placeopt.bounding.quick.loads import Prices, Sharing, best_price_bound, candidate_prices, sharing_of, weights
from placeopt.bounding.quick.paths import Windows, windows
from placeopt.bounding.quick.resources import scarcest
from placeopt.errors import CertificateError
from placeopt.model.arrays import Bool, Int
from placeopt.model.objective import Value, task_energy
from placeopt.model.ports import channels
from placeopt.model.problem import UNLIMITED, Metric, Problem
from placeopt.verifier.certificates import ENGINES, OTHER, check_claim, exact
from placeopt.verifier.certificates.model import Model, model_hash

Claim = dict[str, Any]

SIZES = 32
"""Sizes of groups at most that are tried to show that groups do not fit into devices."""

NOTHING: Claim = {"claim": "nothing", "value": 0}
"""No metric is negative."""


REASONS = {
    "destructive": "no tree of cases was found in the time",
    "chronological": "the states that it refutes are too many to state",
    "series": "its blocks were not solved again in the time",
    "intervals": "CP-SAT states no proofs of the parts of the graph, and no tree of cases was found in the time",
    "relaxation-lp": "its cuts have no claims, so that its dual prices prove nothing alone",
    "relaxation-mip": "the engine states no proof of its branches",
    "borders": "the most work together with each group is found by branches and cuts, which have no claims",
    "division": "CP-SAT states no proof that whole groups do not fit",
    "configurations": "no proof states what the sets of a device are worth",
    "ideals": "a dynamic program over all sets of tasks that may come first, which are too many to state",
}
"""Why a bound is trusted if no other claim proves as much."""

OTHERWISE = "the engine states no proof, and no other claim was found in the time"


def relying(model: Model, metric: str, value: Value, engine: str) -> Claim:
    """A claim that relies on an engine, with the hash of what it is about, and why it is not checked."""
    stated, reason = exact(value), REASONS.get(engine, OTHERWISE)
    engine = engine if engine in ENGINES or engine.startswith(OTHER) else f"{OTHER}{engine}"[:79]
    about = model_hash(model, metric, stated)
    return {"claim": "engine", "engine": engine, "value": stated, "model": about, "reason": reason}


def best_claim(problem: Problem, metric: Metric, model: Model, least: int = 1) -> Claim | None:
    """The largest quick bound of a metric whose claim the checker accepts, of at least `least`; None without one.

    The objective of the problem is this metric alone; `model` is the problem for the checker.
    """
    for claim in _quick_claims(problem, metric):
        if claim["value"] < least:
            break
        if accepted(model, metric, claim):
            return claim
    return None


def _quick_claims(problem: Problem, metric: Metric) -> Iterator[Claim]:
    """Claims of quick bounds of a metric, best first."""
    if problem.n_tasks == 0 or problem.n_devices == 0:
        return
    found = bounds(problem)
    writer = _Writer(problem, metric)
    for bound in found:
        if bound.value <= 0:
            break
        write = writer.by_name.get(bound.name)
        for claim in [] if write is None else write():
            yield {**claim, "value": int(bound.value)}


class _Writer:
    """Writes claims about one problem."""

    def __init__(self, problem: Problem, metric: Metric) -> None:
        self.problem, self.metric = problem, metric
        self.classes = narrowed_classes(problem)
        self.found: Windows | None = None
        self.by_name: dict[str, Callable[[], list[Claim]]] = {
            "critical-path": lambda: [{"claim": "critical-path"}],
            "load": self.load,
            "jackson": self.jackson,
            "packing": self.packing,
            "resources": self.resources,
            "ports": lambda: [{"claim": "transfers"}],
            "links": self.links,
            "swapping": self.swapping,
            "transfers": lambda: [{"claim": "cheapest"}],
            "cheapest": self.cheapest,
            "memory": self.memory,
            "earliest": lambda: [{"claim": "earliest"}],
        }

    @property
    def windows(self) -> Windows:
        if self.found is None:
            self.found = windows(self.classes)
        return self.found

    def names(self, members: Bool) -> list[str]:
        """A device of each of some classes (k,)."""
        return [self.problem.device_names[d] for d in self.classes.leader[members].tolist()]

    def prices(self, prices: Prices, members: Bool | None = None) -> Claim:
        """Prices by device; `members` are the classes that they are of."""
        kept = np.ones(self.classes.n_classes, dtype=np.bool_) if members is None else members
        stated: Claim = {}
        for key, each in (("prices", prices.amount), ("memory", prices.memory)):
            named = {name: price for name, price in zip(self.names(kept), each.tolist(), strict=True) if price}
            if named:
                stated[key] = named
        return {**stated, "shift": prices.shift} if "memory" in stated else stated

    def load(self) -> list[Claim]:
        classes = self.classes
        everything = Subset(np.ones(classes.n_classes, dtype=np.bool_), np.ones(len(classes.allowed), dtype=np.bool_))
        ticks = classes.busy if self.metric == "makespan" else classes.duration
        sharing = sharing_of(classes, everything, ticks, loads=True)
        tried = priced_subsets(classes)[-1][1] if self.metric == "makespan" else candidate_prices(sharing)
        best = _best_prices(sharing, tried)
        return [] if best is None else [{"claim": "load", **self.prices(best)}]

    def cheapest(self) -> list[Claim]:
        classes, problem = self.classes, self.problem
        table = {"relocation": problem.relocation, "price": problem.price}.get(self.metric)
        amount = task_energy(problem) if table is None else table
        everything = Subset(np.ones(classes.n_classes, dtype=np.bool_), np.ones(len(classes.allowed), dtype=np.bool_))
        sharing = sharing_of(
            classes,
            everything,
            classes.duration if self.metric == "total_cost" else amount[:, classes.leader],
            loads=False,
        )
        best = _best_prices(sharing, candidate_prices(sharing))
        if best is None:
            return [{"claim": "cheapest"}]
        stated = self.prices(best)
        del stated["prices"]
        return [{"claim": "cheapest", "scale": int(best.amount[0]), **stated}]

    def packing(self) -> list[Claim]:
        classes = self.classes
        ticks = classes.busy if self.metric == "makespan" else classes.duration
        amounts = least(by_group(self.problem, ticks, np.add), classes.allowed)
        return [{"claim": "packing", "each": _best_each(amounts, self.problem.n_devices)}]

    def memory(self) -> list[Claim]:
        if self.metric == "devices":
            return [{"claim": "memory"}]
        classes = self.classes
        stated = []
        for subset in subsets(classes):
            count = int(classes.size[subset.members].sum())
            each = _best_each(classes.group_memory[subset.groups], count)
            stated.append({"claim": "memory", "devices": self.names(subset.members), "each": each})
        return stated

    def links(self) -> list[Claim]:
        return [{"claim": "transfers", "link": name} for name, _ in channels(self.problem)]

    def swapping(self) -> list[Claim]:
        return [{"claim": "swapping", "swap": swapping_bound(self.classes, self.windows)[1]}]

    def jackson(self) -> list[Claim]:
        """The set of devices, the heads and the tails of the best bound by prices, or of the best without."""
        classes, found = self.classes, self.windows
        priced = priced_subsets(classes)
        value, subset, _ = head_load_tail(classes, found, priced)
        tried = next(tried for each, tried in priced if each is subset)
        tasks = subset.groups[self.problem.group]
        head, tail = (least(ticks, found.allowed)[tasks] for ticks in (found.head, found.tail))
        sharing = sharing_of_tasks(classes, tasks, subset.members)
        stated: Claim = {"devices": self.names(subset.members)}
        for prices in tried:
            prices = coarser(sharing, prices, int(head.max()) + int(tail.max()))
            scale = prices.scale(sharing)
            if scale:
                weight = weights(sharing, prices).astype(np.int64)
                ticks, far = sweep(head, tail, weight, scale)
                if -((prices.memory_worth(sharing) - ticks) // scale) >= value:
                    near, each = nearest(head, tail, weight, scale, far), self.prices(prices, subset.members)
                    return [{"claim": "load", **stated, "head": near, "tail": far, **each}]
        written: list[Claim] = []
        for ticks_after, backwards in ((tail, {}), (head, {"backwards": True})):
            levels = np.unique(np.quantile(ticks_after, np.arange(QUANTILES) / QUANTILES, method="lower")).tolist()
            written += [{"claim": "spread", **stated, "level": level, **backwards} for level in levels]
        return written

    def confined(self) -> Iterator[Claim]:
        """Separated groups without a device for each; groups that do not fit into the devices they are confined to."""
        problem, classes = self.problem, self.classes
        first = np.unique(problem.group, return_index=True)[1]
        for _, crowd in crowded_cliques(classes):
            yield {"claim": "separation", "tasks": [problem.task_names[i] for i in first[crowd].tolist()]}
        for subset in subsets(classes):
            room, count = classes.capacity[subset.members], classes.size[subset.members]
            held, live = classes.group_memory[subset.groups], classes.lone_need[subset.groups[problem.group]]
            if len(held) == 0 or (room == UNLIMITED).any():
                continue
            stated, most = {"claim": "memory", "devices": self.names(subset.members)}, int(room.max())
            if sum(held.tolist()) + int(live.max()) > sum((room.astype(object) * count).tolist()):
                yield stated
            sizes = np.unique(held[held > 0])
            for size in sizes[:: len(sizes) // SIZES + 1].tolist():
                if int((held >= size).sum()) > int((room // size * count).sum()):
                    yield {**stated, "size": size}
                counted = np.where(held > most - size, most, np.where(held < size, 0, held))
                if 2 * size <= most and sum(counted.tolist()) > most * int(count.sum()):
                    yield {**stated, "level": size}

    def resources(self) -> list[Claim]:
        """The resource, its level, and the heads and tails of the best bound."""
        resources, use = self.problem.resources, scarcest(self.classes, self.windows)
        if resources is None or use is None:
            return []
        odd = use.double_level % 2 == 1  # half of the capacity
        level: Claim = {"half": True} if odd else {"level": use.double_level // 2}
        return [{"claim": "resource", "resource": use.name, **level, "head": use.head, "tail": use.tail}]


def interval_claim(problem: Problem, ticks: int, model: Model, should_stop: Callable[[], bool]) -> Claim | None:
    """A claim about the work within an interval that the makespan is at least these ticks, if any."""
    writer = _Writer(problem, "makespan")
    classes, found = writer.classes, writer.windows
    for subset, tried in priced_subsets(classes):
        tasks = subset.groups[problem.group]
        if not tasks.any():
            continue
        sharing = sharing_of_tasks(classes, tasks, subset.members)
        rows = np.ix_(tasks, subset.members)
        head, tail, open_ = found.head[rows], found.tail[rows], found.allowed[rows]
        starts, ends = (breakpoints(each[open_], sharing.amount[open_], ENDS) for each in (head, tail))
        for each in tried:
            prices = coarser(sharing, each, int(starts.max()) + int(ends.max()))
            scale, worth = prices.scale(sharing), (sharing.memory >> prices.shift)[:, None] * prices.memory
            for near, far in product(starts.tolist(), ends.tolist()) if scale else ():
                inside = np.minimum(
                    np.maximum(head + sharing.amount - near, 0), np.maximum(tail + sharing.amount - far, 0)
                )
                longest = ticks - 1 - near - far
                if should_stop():
                    return None
                work = np.minimum(np.minimum(sharing.amount, inside), max(longest, 0)) * prices.amount + worth
                least_work = np.where(open_, work, np.iinfo(np.int64).max).min(axis=1)
                if longest >= 0 and int(least_work.sum()) - prices.memory_worth(sharing) > scale * longest:
                    stated = {"devices": writer.names(subset.members), **writer.prices(prices, subset.members)}
                    claim = {"claim": "interval", "start": near, "end": far, "value": ticks, **stated}
                    return claim if accepted(model, "makespan", claim) else None
    return None


def infeasible_claim(problem: Problem, model: Model, ticks: int) -> Claim | None:
    """A quick proof of infeasibility as a claim about the makespan; None if there is none that the checker accepts.

    `model` is the problem with its deadlines (`placeopt.verifier.certificates.model.timely`), `ticks` beyond its end.
    """
    for claim in _infeasible_claims(problem):
        stated = {**claim, "value": ticks}
        if accepted(model, "makespan", stated):
            return stated
    return None


def _infeasible_claims(problem: Problem) -> Iterator[Claim]:
    """Claims that correspond to the proofs of `placeopt.bounding.quick.infeasibility`."""
    yield {"claim": "critical-path"}  # a group without a device; a deadline that is missed
    if problem.n_tasks == 0 or problem.n_devices == 0:
        return
    writer, resources = _Writer(problem, "makespan"), problem.resources
    for r in () if resources is None else resources.budgets.tolist():
        assert resources is not None
        yield {"claim": "budget", "resource": resources.names[r]}
    yield from writer.confined()
    within = narrowed(writer.classes)
    if within is not None:
        writer.classes, writer.found = within.classes, within.found
        yield from writer.jackson()
        yield from writer.resources()


def _best_prices(sharing: Sharing, tried: list[Prices]) -> Prices | None:
    return max(tried, key=lambda prices: best_price_bound(sharing, [prices]), default=None)


def _best_each(amounts: Int, places: int) -> int:
    """The k for which the k + 1 least of the k places + 1 largest amounts are the most."""
    ordered = np.sort(amounts)[::-1].tolist()
    total = [0]
    for amount in ordered:
        total.append(total[-1] + amount)
    each = range((len(ordered) - 1) // places + 1) if ordered else range(1)
    return max(each, key=lambda k: total[k * places + 1] - total[k * places - k], default=0) if ordered else 0


def accepted(model: Model, metric: Metric, claim: Claim) -> bool:
    """Whether the checker accepts a claim about a metric."""
    try:
        check_claim(model, metric, claim)
    except CertificateError:
        return False
    return True
