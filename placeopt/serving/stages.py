"""Plans of consecutive stages: all nodes of a stage hold exactly its layers, and the stages follow each other.

For a rate f, a stage is a number of layers and nodes whose rates add up to f. A model in integers chooses stages whose
layers add up to those of the problem, with the nodes that there are. Where links between sites are slow, a site is
visited once, and the last stage of a site and the first one of the next fit each other: a senders, b receivers and
links of rate c pass f if a b c >= f, the rates of the senders, each at most b c, add up to f, and those of the
receivers, each at most a c, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, permutations, product

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.model.arrays import Int
from placeopt.serving.bounds import PatternBound
from placeopt.serving.problem import UNLIMITED, Serving
from placeopt.serving.sites import Sites

MOST_STAGES = 6_000
"""Most candidate stages in a model; beyond it, those that are cheapest at the prices of the bound are kept."""

LARGEST_END = 6
"""Most nodes of a stage that sends to another site, or receives from one."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers and nodes of a stage.

    `counts` are its layers in each run of layers that are alike. `sent` is the rate of links to the next site and the
    least number of nodes there; `received` that of links from the site before. (0, 0) stands for none.
    """

    counts: tuple[int, ...]
    nodes: tuple[tuple[int, int], ...]
    site: int
    received: tuple[int, int] = (0, 0)
    sent: tuple[int, int] = (0, 0)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return sum(number for _, number in self.nodes)

    @property
    def runs(self) -> tuple[int, int]:
        """The first and the last run of which it has layers."""
        own = [r for r, count in enumerate(self.counts) if count]
        return own[0], own[-1]


@dataclass
class StagePlanner:
    """Finds stages in some sites that pass a given rate."""

    problem: Serving
    sites: Sites
    members: Sequence[int]  # the sites whose nodes are used
    bound: PatternBound
    seed: int
    workers: int
    should_stop: Callable[[], bool]

    def stages(self, rate: int, seconds: float, prices: Sequence[int] | None = None) -> list[Stage] | None:
        """Stages in their order, the cheapest ones at prices of nodes of each group; None without any in time."""
        model, chosen, follows = self._model(self._candidates(rate))
        largest = self.problem.layers + self.problem.n_nodes
        if prices is not None:
            model.minimize(sum(prices[g] * number * x for stage, x in chosen for g, number in stage.nodes))
            largest = max(
                largest, sum(price * group.count for price, group in zip(prices, self.bound.groups, strict=True))
            )
        outcome = cp_sat.run(
            model, largest=largest, seconds=seconds, seed=self.seed,
            workers=self.workers, should_stop=self.should_stop,
        )  # fmt: skip
        if not outcome.solved:
            return None
        value = outcome.solver.value
        found = [stage for stage, x in chosen for _ in range(value(x))]
        after = {g: h for (g, h), literal in follows.items() if value(literal)}
        site = next((g for g in {stage.site for stage in found} if g not in after.values()), 0)
        route = [site]
        while route[-1] in after:
            route.append(after[route[-1]])
        return sorted(
            found,
            key=lambda stage: (
                route.index(stage.site), stage.received == (0, 0), stage.sent != (0, 0), stage.runs
            ),
        )  # fmt: skip

    def intervals(self, stages: Sequence[Stage]) -> tuple[Int, Int]:
        """(v,) begin and end of each node for stages in their order."""
        begin, end = (np.zeros(self.problem.n_nodes, dtype=np.int64) for _ in range(2))
        free = [
            np.flatnonzero((self.sites.of_node == group.site) & (self.problem.kind == group.kind)).tolist()
            for group in self.bound.groups
        ]
        first = 0
        for stage in stages:
            for g, number in stage.nodes:
                taken, free[g] = free[g][:number], free[g][number:]
                begin[taken], end[taken] = first, first + sum(stage.counts)
            first += sum(stage.counts)
        return begin, end

    def _candidates(self, rate: int) -> list[Stage]:
        """Candidate stages for a rate, the cheapest ones if there are too many."""
        found = list(dict.fromkeys(stage for site in self.members for stage in self._of_site(site, rate)))
        if len(found) > MOST_STAGES:
            prices = self.bound.prices(rate)
            cost = [sum(prices[g] * number for g, number in stage.nodes) / sum(stage.counts) for stage in found]
            found = [found[k] for k in np.argsort(cost, kind="stable")[:MOST_STAGES].tolist()]
        return found

    def _of_site(self, site: int, rate: int) -> Iterator[Stage]:
        """Candidate stages of a site."""
        problem, alone = self.problem, len(self.members) == 1
        own = [g for g, group in enumerate(self.bound.groups) if group.site == site]
        limits = [self.bound.groups[g].count for g in own]
        for begin, counts in self._layers():
            rates = [problem.rate_of(self.bound.groups[g].kind, begin, begin + sum(counts)) for g in own]
            for numbers in least_numbers(rates, limits, rate):
                yield Stage(counts, _named(own, numbers), site)
            for size in range(1, 0 if alone else LARGEST_END + 1):
                for numbers in exact_numbers(rates, limits, rate, size):
                    for received, sent in self._ends(site, rates, numbers, rate):
                        yield Stage(counts, _named(own, numbers), site, received, sent)

    def _layers(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The layers that a stage may have: the first one, and their number in each run."""
        firsts = [0, *accumulate(self.problem.runs)]
        for r, length in enumerate(self.problem.runs):
            for count in range(1, min(length, self.problem.most) + 1):
                yield firsts[r], (0,) * r + (count,) + (0,) * (len(self.problem.runs) - r - 1)
                # The last layers of a run, all of the runs that follow, and the first layers of another one.
                held = [count]
                for after in self.problem.runs[r + 1 :]:
                    most = min(after, self.problem.most - sum(held))
                    for more in range(1, most + 1):
                        counts = (0,) * r + (*held, more)
                        yield firsts[r + 1] - count, counts + (0,) * (len(self.problem.runs) - len(counts))
                    if most < after:
                        break
                    held.append(after)

    def _ends(
        self, site: int, rates: Sequence[int], numbers: Sequence[int], rate: int
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """What a stage may be joined to: the rate of links, and the least number of nodes, before it and after it."""
        used = [(r, number) for r, number in zip(rates, numbers, strict=True) if number]
        before, after = ([(0, 0), *self._partners(levels, used, rate)] for levels in self._levels(site))
        for (c, a), (d, b) in product(before, after):
            most = min(c * a or UNLIMITED, d * b or UNLIMITED)
            if (c or d) and sum(min(r, most) * number for r, number in used) >= rate:
                yield (c, a), (d, b)

    def _partners(self, levels: list[int], used: list[tuple[int, int]], rate: int) -> Iterator[tuple[int, int]]:
        """For each rate of links, the least number of nodes on the other side with which a stage passes `rate`."""
        size = sum(number for _, number in used)
        for level in levels:
            for partners in range(1, LARGEST_END + 1):
                passed = sum(min(r, level * partners) * number for r, number in used)
                if passed >= rate and partners * size * level >= rate:
                    yield level, partners
                    break

    def _levels(self, site: int) -> tuple[list[int], list[int]]:
        """The different rates of links from other sites and to them."""
        others = [h for h in self.members if h != site]
        slowest = self.sites.slowest
        return sorted({int(slowest[h, site]) for h in others}), sorted({int(slowest[site, h]) for h in others})

    def _model(
        self, candidates: list[Stage]
    ) -> tuple[cp_model.CpModel, list[tuple[Stage, cp_model.IntVar]], dict[tuple[int, int], cp_model.IntVar]]:
        """The model, the number of each stage, and whether a site follows another."""
        model = cp_model.CpModel()
        chosen = []
        for k, stage in enumerate(candidates):
            ends = stage.received != (0, 0) or stage.sent != (0, 0) or stage.runs[0] < stage.runs[1]
            most = min(self.bound.groups[g].count // number for g, number in stage.nodes)
            chosen.append((stage, model.new_int_var(0, 1 if ends else most, f"stage{k}")))
        self._add_layers(model, chosen)
        for g, group in enumerate(self.bound.groups):
            model.add(sum(number * x for stage, x in chosen for h, number in stage.nodes if h == g) <= group.count)
        follows: dict[tuple[int, int], cp_model.IntVar] = {}
        if len(self.members) > 1:
            self._add_route(model, chosen, follows)
        return model, chosen, follows

    def _add_layers(self, model: cp_model.CpModel, chosen: list[tuple[Stage, cp_model.IntVar]]) -> None:
        """Each layer is in one stage: as many as each run has, and at most one stage at a border between two runs."""
        for r, length in enumerate(self.problem.runs):
            model.add(sum(stage.counts[r] * x for stage, x in chosen if stage.counts[r]) == length)
            if r:
                model.add(sum(x for stage, x in chosen if stage.counts[r - 1] and stage.counts[r]) <= 1)

    def _add_route(
        self,
        model: cp_model.CpModel,
        chosen: list[tuple[Stage, cp_model.IntVar]],
        follows: dict[tuple[int, int], cp_model.IntVar],
    ) -> None:
        """Sites follow each other, and the stages at a border fit."""
        members, outside = self.members, self.sites.number
        visited = {g: model.new_bool_var(f"visited{g}") for g in members}
        first, last = ({g: model.new_bool_var(f"{what}{g}") for g in members} for what in ("first", "last"))
        arcs: list[tuple[int, int, cp_model.LiteralT]] = []
        for g in members:
            arcs += [(outside, g, first[g]), (g, outside, last[g]), (g, g, visited[g].negated())]
        # Layers before the longest run are in the first site, those after it in the last one.
        longest = self.problem.runs.index(max(self.problem.runs))
        for stage, x in chosen:
            before, after = stage.runs[0] < longest, stage.runs[1] > longest
            if before:
                model.add(x == 0).only_enforce_if(first[stage.site].negated())
            if after:
                model.add(x == 0).only_enforce_if(last[stage.site].negated())
            if (before and stage.sent[0]) or (after and stage.received[0]):  # others of its site may be in between
                model.add(x == 0)
        borders: dict[tuple[int, int], list[tuple[int, int, cp_model.IntVar]]] = {}
        sizes = range(1, LARGEST_END + 1)
        for g, h in permutations(members, 2):
            follows[g, h] = model.new_bool_var(f"follows{g},{h}")
            arcs.append((g, h, follows[g, h]))
            borders[g, h] = [(a, b, model.new_bool_var(f"border{g},{h},{a},{b}")) for a, b in product(sizes, sizes)]
            model.add(sum(literal for _, _, literal in borders[g, h]) == follows[g, h])
        model.add_circuit(arcs)
        for g in members:
            own = [(stage, x) for stage, x in chosen if stage.site == g]
            # A stage that receives from another site and sends to one is the only one of its site.
            between = [x for stage, x in own if stage.received[0] and stage.sent[0]]
            single = model.new_bool_var(f"single{g}")
            model.add(sum(between) == single)
            for stage, x in own:
                model.add(x == 0).only_enforce_if(visited[g].negated())
                if not (stage.received[0] and stage.sent[0]):
                    model.add(x == 0).only_enforce_if(single)
            leaving = [(stage.size, *stage.sent, x) for stage, x in own if stage.sent[0]]
            entering = [(stage.size, *stage.received, x) for stage, x in own if stage.received[0]]
            for ends, sending in ((leaving, True), (entering, False)):
                others = [(g, h) if sending else (h, g) for h in members if h != g]
                model.add(sum(x for *_, x in ends) == sum(follows[pair] for pair in others))
                for level in {rate for _, rate, _, _ in ends}:
                    for size, partners in product(sizes, sizes):
                        fitting = [x for n, rate, least, x in ends if (n, rate) == (size, level) and least <= partners]
                        asked = [
                            literal
                            for pair in others
                            if int(self.sites.slowest[pair]) == level
                            for a, b, literal in borders[pair]
                            if ((a, b) if sending else (b, a)) == (size, partners)
                        ]
                        model.add(sum(asked) <= sum(fitting))
                stated = {rate for _, rate, _, _ in ends}
                for pair in others:
                    if int(self.sites.slowest[pair]) not in stated:
                        model.add(follows[pair] == 0)


def _named(own: Sequence[int], numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((g, number) for g, number in zip(own, numbers, strict=True) if number)


def least_numbers(rates: Sequence[int], limits: Sequence[int], rate: int, few: int = 4) -> Iterator[tuple[int, ...]]:
    """Numbers of nodes of each group whose rates add up to `rate`, and no longer do without one of them.

    Of `few` groups or fewer, at most three are combined, and of more at most two.
    """
    useful = [g for g, r in enumerate(rates) if r and limits[g]]
    for size in range(1, (3 if len(useful) <= few else 2) + 1):
        for some in combinations(sorted(useful, key=lambda g: -rates[g]), size):
            for numbers in _numbers(some, rates, limits, rate):
                found = [0] * len(rates)
                for g, number in zip(some, numbers, strict=True):
                    found[g] = number
                yield tuple(found)


def _numbers(some: Sequence[int], rates: Sequence[int], limits: Sequence[int], rate: int) -> Iterator[tuple[int, ...]]:
    """At least one node of each group, fastest first; the last group has as few as it takes."""
    g, rest = some[0], some[1:]
    if not rest:
        number = -(-rate // rates[g])
        if 0 < number <= limits[g]:
            yield (number,)
        return
    for number in range(1, limits[g] + 1):
        if number * rates[g] >= rate:
            return
        for others in _numbers(rest, rates, limits, rate - number * rates[g]):
            yield (number, *others)


def exact_numbers(rates: Sequence[int], limits: Sequence[int], rate: int, size: int) -> Iterator[tuple[int, ...]]:
    """Numbers of nodes of at most two groups, `size` in all, whose rates add up to `rate`."""
    useful = [g for g, r in enumerate(rates) if r and limits[g]]
    pairs = [(g, g) for g in useful] + list(combinations(useful, 2))
    for g, h in pairs:
        for number in [size] if g == h else range(1, size):
            others = size - number
            if number <= limits[g] and others <= limits[h] and number * rates[g] + others * rates[h] >= rate:
                yield tuple(number * (k == g) + others * (k == h) for k in range(len(rates)))
