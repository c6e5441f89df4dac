"""Plans of stages for sites with slow links between them: blocks in one site, and stages of nodes of all sites.

All tokens of a rate f pass stage after stage. A node that passes x and sends to a stage in proportion to the rates of
its nodes gives x y / f to a node that passes y. So links of rate c limit no two stages whose nodes pass at most
sqrt(c f) each. Only stages of one site that follow each other need no such limit: a block is a limited stage, unlimited
ones and another limited stage in one site. A linear program chooses candidates, and a model in integers stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from ortools.math_opt.python import mathopt
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.model.arrays import Int
from placeopt.serving.stages import Stage, StagePlanner, least_numbers

ANY = -1
"""Site of a stage whose nodes are in any sites."""

CANDIDATES = 20_000, 4_000
"""Most candidates with nodes of any sites, and with nodes of one."""

CHOSEN = 3_000
"""Candidates in the model in integers."""

COMBINED = 12
"""Of more kinds, at most two are combined in a stage."""

Row = tuple[list[tuple[int, int]], int]
"""Columns with their coefficients, and the most that they sum up to."""


@dataclass
class BlockPlanner(StagePlanner):
    """Finds stages in all sites; `bound` has the groups of all nodes by kind.

    Nodes that send to other sites pass at most `slack` times sqrt(c f). With more than 1, the flow may be less than f.
    """

    slack: float = 1.0

    def stages(self, rate: int, seconds: float, prices: Sequence[int] | None = None) -> list[Stage] | None:  # noqa: ARG002 - as that of others
        """Stages in their order; None without any in time."""
        candidates = self._cheapest(self._candidates(rate))
        rows, layers = self._rows(candidates)
        number, model = self.sites.number, cp_model.CpModel()
        counts = [group.count for group in self.bound.groups]
        most_of = [
            min(2 if stage.sent[0] else self.problem.layers, *(counts[g] // used for g, used in stage.nodes))
            for stage in candidates
        ]
        chosen = [model.new_int_var(0, most, f"stage{k}") for k, most in enumerate(most_of)]
        chosen += [model.new_bool_var(f"block{site}") for site in range(number)]
        for terms, most in rows + layers:
            model.add(sum(number * chosen[k] for k, number in terms) <= most)
        model.minimize(-sum(sum(stage.counts) * x for stage, x in zip(candidates, chosen, strict=False)))
        outcome = cp_sat.run(  # without presolve, which takes longer than the search
            model, largest=None, seconds=seconds, seed=self.seed, workers=self.workers, should_stop=self.should_stop
        )
        if not outcome.solved:
            return None
        found = [stage for stage, x in zip(candidates, chosen, strict=False) for _ in range(outcome.solver.value(x))]
        if sum(sum(stage.counts) for stage in found) < self.problem.layers:
            return None
        order = []
        for site in range(number):
            own = [stage for stage in found if stage.site == site]
            ends = [stage for stage in own if stage.sent[0]]
            order += ends[:1] + [stage for stage in own if not stage.sent[0]] + ends[1:]
        return sorted(order + [stage for stage in found if stage.site == ANY], key=lambda stage: stage.runs)

    def intervals(self, stages: Sequence[Stage]) -> tuple[Int, Int]:
        """(v,) begin and end of each node for stages in their order; those of one site take their nodes first."""
        begin, end = (np.zeros(self.problem.n_nodes, dtype=np.int64) for _ in range(2))
        free = np.ones(self.problem.n_nodes, dtype=np.bool_)
        firsts = np.cumsum([0, *(sum(stage.counts) for stage in stages)]).tolist()
        placed = zip(firsts, firsts[1:], stages, strict=False)
        for first, after, stage in sorted(placed, key=lambda each: each[2].site == ANY):
            for g, number in stage.nodes:
                fits = free & (self.problem.kind == self.bound.groups[g].kind)
                taken = np.flatnonzero(fits & ((self.sites.of_node == stage.site) | (stage.site == ANY)))[:number]
                begin[taken], end[taken], free[taken] = first, after, False
        return begin, end

    def _candidates(self, rate: int) -> list[Stage]:
        """Candidates of nodes in any sites, and unlimited and limited ones of each site, the cheapest ones of each."""
        between = self.sites.slowest[~np.eye(self.sites.number, dtype=np.bool_)]
        limit = int(self.slack * isqrt(int(np.median(between)) * rate))
        prices, found = self.bound.prices(rate), []
        for site, sent in [(ANY, 1), *((site, sent) for site in range(self.sites.number) for sent in (0, 1))]:
            stages = list(dict.fromkeys(self._limited(site, rate, limit, sent)))
            costs = [sum(prices[g] * number for g, number in stage.nodes) / sum(stage.counts) for stage in stages]
            found += [stages[k] for k in np.argsort(costs, kind="stable")[: CANDIDATES[site != ANY]].tolist()]
        return found

    def _limited(self, site: int, rate: int, limit: int, sent: int) -> Iterator[Stage]:
        """Candidates of a site whose nodes pass at most `limit` if they send to another one."""
        problem, longest = self.problem, self._longest
        limits = self._counts(site)
        for begin, layers in self._layers():
            if site != ANY and layers[longest] != sum(layers):
                continue
            rates = [problem.rate_of(group.kind, begin, begin + sum(layers)) for group in self.bound.groups]
            rates = [min(each, limit) for each in rates] if sent else rates
            for numbers in least_numbers(rates, limits, rate, COMBINED):
                nodes = tuple((g, number) for g, number in enumerate(numbers) if number)
                yield Stage(layers, nodes, site, sent=(limit * sent, 1) if site != ANY else (0, 0))

    @property
    def _longest(self) -> int:
        """The longest run of layers that are alike, in which all blocks are."""
        return self.problem.runs.index(max(self.problem.runs))

    def _counts(self, site: int) -> list[int]:
        """The number of nodes of a site in each group."""
        inside = (self.sites.of_node == site) | (site == ANY)
        return [int((inside & (self.problem.kind == group.kind)).sum()) for group in self.bound.groups]

    def _rows(self, candidates: Sequence[Stage]) -> tuple[list[Row], list[Row]]:
        """What columns use at most, and the layers of each run; the columns are candidates, and whether sites have a
        block."""
        size, number, groups = len(candidates), self.sites.number, self.bound.groups
        ends = [[(size + site, -2)] for site in range(number)]
        inner = [[(size + site, -self.problem.layers)] for site in range(number)]
        every: list[list[tuple[int, int]]] = [[] for _ in groups]
        own: list[list[list[tuple[int, int]]]] = [[[] for _ in groups] for _ in range(number)]
        for k, stage in enumerate(candidates):
            for g, used in stage.nodes:
                every[g].append((k, used))
                if stage.site != ANY:
                    own[stage.site][g].append((k, used))
            if stage.site != ANY:
                (ends if stage.sent[0] else inner)[stage.site].append((k, 1))
        rows = [(terms, group.count) for terms, group in zip(every, groups, strict=True)]
        rows += [row for site in range(number) for row in zip(own[site], self._counts(site), strict=True)]
        rows += [(terms, 0) for terms in ends + inner]
        rows += [([(k, -number) for k, number in terms], 0) for terms in ends]  # two ends, or none
        runs = range(len(self.problem.runs))
        layers = [[(k, stage.counts[r]) for k, stage in enumerate(candidates) if stage.counts[r]] for r in runs]
        rows += [
            ([(k, 1) for k, _ in layers[r] if candidates[k].counts[r - 1]], 1) for r in runs[1:]
        ]  # stages at a border of runs
        return rows, list(zip(layers, self.problem.runs, strict=True))

    def _cheapest(self, candidates: list[Stage]) -> list[Stage]:
        """The candidates with the least reduced costs where as many layers as possible are covered."""
        rows, layers = self._rows(candidates)
        model, size, longest = mathopt.Model(), len(candidates), self._longest
        columns = [model.add_variable(lb=0.0) for _ in candidates]
        columns += [model.add_variable(lb=0.0, ub=1.0) for _ in range(self.sites.number)]
        for terms, most in rows + layers[:longest] + layers[longest + 1 :]:
            model.add_linear_constraint(mathopt.LinearSum([number * columns[k] for k, number in terms]) <= most)
        # Layers out of the longest run are few, and are covered first.
        worth = [10 * sum(stage.counts) - 9 * stage.counts[longest] for stage in candidates]
        model.maximize(mathopt.LinearSum([number * x for number, x in zip(worth, columns, strict=False)]))
        result = mathopt.solve(model, mathopt.SolverType.GLOP)
        if result.termination.reason != mathopt.TerminationReason.OPTIMAL:
            return candidates[:CHOSEN]
        costs = np.array(result.reduced_costs(columns[:size]))
        return [candidates[k] for k in np.argsort(-costs, kind="stable")[:CHOSEN].tolist()]
