"""Several complete copies of the model, each on its own nodes: a search.

A replica has its own groups of requests. Nodes whose steps take unlike times serve more tokens in replicas of their
own, because the slower nodes would keep requests waiting, and these take memory of the faster ones. Where memory is
scarce, one replica serves more: each further one holds all weights again.

The search begins with chains of equal nodes, whose lengths a model in integers chooses, and with the plan of one
replica. Then nodes move from one chain to another, and the plans of one or two replicas are searched again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.errors import InternalError, UsageError
from placeopt.model.arrays import Int
from placeopt.serving.chains import best_chain
from placeopt.serving.feasibility import shortage
from placeopt.serving.flow import best_flow
from placeopt.serving.in_flight import Floats, sustained
from placeopt.serving.plan import Replica, Replicas, ServingPlan, replica_of, total_rate
from placeopt.serving.problem import TOKEN, Serving
from placeopt.serving.request_bounds import TimeBounds
from placeopt.serving.request_search import RequestSearch
from placeopt.serving.result import ReplicatedResult
from placeopt.serving.search import SearchOptions, Timed, search_options
from placeopt.serving.sites import find_sites
from placeopt.serving.solving import DEFAULT_GAP
from placeopt.serving.verification import verify_replicas

JOINT = 0.25
"""Share of the time for the plan of one replica."""

DIVISIONS = 0.25
"""Largest share of the time for the bound by all divisions of the nodes."""

WARM = 1e-3
"""Mean loss that a move of nodes may cost, as a share of the rate."""

IDLE = 0.4
"""Probability that a replica is tried with the idle nodes, if there are any."""

SLICE = 0.05, 0.2
"""Share of the time for a changed replica, and its least number of seconds."""


def replicated_serving(
    problem: Serving,
    *,
    time_limit: float = 60.0,
    gap_limit: float = DEFAULT_GAP,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    start: Replicas | None = None,
) -> ReplicatedResult:
    """Find replicas that pass many tokens together, at most `problem.replicas`, and prove a bound.

    Parameters
    ----------
    start
        Replicas with which the search starts, if they keep all rules.

    Raises
    ------
    UsageError
        If all rates are measured, prefill is separate, or an argument is out of range.
    """
    options = search_options(
        "replicated_serving", problem, time_limit, gap_limit=gap_limit, seed=seed, workers=workers,
        should_stop=should_stop,
    )  # fmt: skip
    if problem.steps is None or problem.prefill_layers:
        why = "all rates are measured, and say nothing of requests" if problem.steps is None else "prefill is separate"
        raise UsageError(f"the problem has no replicas: {why}")
    if shortage(problem) is not None:
        return ReplicatedResult(problem, (), 0, "shortage", 0.0)
    search = _Search(problem, options)
    if start and verify_replicas(problem, start).feasible:
        search.best = start
    return search.run()


class _Search(Timed):
    """The best replicas so far."""

    def __init__(self, problem: Serving, options: SearchOptions) -> None:
        self._asked, self.problem, self.options = problem, problem.with_merged_kinds(), options
        super().__init__(options.limit, options.should_stop)
        self.best: Replicas = ()
        self.bounds = TimeBounds(self.problem)
        self.bound, self.source, self.prices = 0, "prices", np.zeros(len(self.problem.counts))
        self._random = np.random.default_rng(options.seed)
        self._sites = find_sites(self.problem)
        self._known: dict[bytes, Replica | None] = {}  # chains by their nodes

    def run(self) -> ReplicatedResult:
        nodes = np.arange(self.problem.n_nodes)
        whole = self._chain(nodes)
        self._keep(() if whole is None else (whole,))
        for found in self._equal_nodes():
            self._keep(found)
        until = time.monotonic() + DIVISIONS * self.options.limit
        self.bound, self.source, self.prices = self.bounds.of_replicas(
            self.problem.replicas, lambda: self._stopped() or time.monotonic() > until
        )
        joint = self._solved(nodes, JOINT * self.options.limit)
        self._keep(() if joint is None else (joint,))
        while self.best and not self._done():
            self._move_nodes(self._slice())
            self._change()
        return self._result()

    def _done(self) -> bool:
        rate = total_rate(self.best)
        return self._stopped() or self.bound - rate <= self.options.gap * rate

    def _keep(self, found: Replicas) -> bool:
        if total_rate(found) <= total_rate(self.best) or len(found) > self.problem.replicas:
            return False
        self.best = found
        return True

    def _solved(self, nodes: Int, seconds: float, start: tuple[Int, Int] | None = None) -> Replica | None:
        """One replica on some of the nodes."""
        options = replace(self.options, limit=min(seconds, self._left()))
        return _replica(nodes, RequestSearch(self.problem.part(nodes), options, start).run().plan)

    def _equal_nodes(self) -> Iterator[Replicas]:
        """Chains of nodes of one kind: within sites, across them, and across them with the nodes that are left."""
        sites, most = self._sites, self.problem.replicas
        everywhere = np.argsort(sites.of_node, kind="stable")  # chains seldom leave a site
        inside = self._chains([np.flatnonzero(sites.of_node == site) for site in range(sites.number)], most)
        yield inside
        if sites.number > 1:
            yield self._chains([everywhere], most)
            rest = everywhere[~np.isin(everywhere, [n for each in inside for n in each.nodes.tolist()])]
            yield inside + self._chains([rest], most - len(inside))

    def _chains(self, scopes: Sequence[Int], most: int) -> Replicas:
        """The best chains of nodes of one kind, each within a scope, at most `most`: a model in integers."""
        model = cp_model.CpModel()
        chosen: list[tuple[Int, int, cp_model.IntVar]] = []
        rates = list[int]()
        for scope in scopes:
            for kind in range(len(self.problem.counts)):
                nodes = scope[self.problem.kind[scope] == kind]
                own = [
                    (length, chain) for length in self._lengths(len(nodes)) if (chain := self._chain(nodes[:length]))
                ]
                numbers = [model.new_int_var(0, len(nodes) // length, "chains") for length, _ in own]
                model.add(sum(length * x for (length, _), x in zip(own, numbers, strict=True)) <= len(nodes))
                chosen += [(nodes, length, x) for (length, _), x in zip(own, numbers, strict=True)]
                rates += [chain.plan.rate // TOKEN for _, chain in own]
        if not chosen or most < 1:
            return ()
        model.add(sum(x for _, _, x in chosen) <= most)
        model.minimize(-sum(rate * x for rate, (_, _, x) in zip(rates, chosen, strict=True)))
        outcome = cp_sat.run(
            model, largest=sum(rates) * self.problem.n_nodes, seconds=self._left(), seed=self.options.seed, workers=1,
            should_stop=self._stopped,
        )  # fmt: skip
        found, used = list[Replica](), dict[int, int]()  # nodes of a scope and a kind that chains have taken
        for nodes, length, x in chosen if outcome.solved else ():
            for _ in range(outcome.solver.value(x)):
                at = used.get(id(nodes), 0)
                used[id(nodes)] = at + length
                if (chain := self._chain(nodes[at : at + length])) is not None:
                    found.append(chain)
        return tuple(found)

    def _lengths(self, nodes: int) -> list[int]:
        """The least numbers of nodes with at most 1, 2, ... layers each."""
        layers = self.problem.layers
        return sorted({length for k in range(1, layers + 1) if (length := -(-layers // k)) <= nodes})

    def _chain(self, nodes: Int) -> Replica | None:
        """A replica of nodes, one after the other."""
        if self._stopped() or not len(nodes):
            return None
        key = np.sort(nodes).tobytes()
        if key not in self._known:
            self._known[key] = None
            if (found := best_chain(self.problem, nodes, self._sites)) is not None:
                part = self.problem.part(found[0])
                self._known[key] = _replica(found[0], sustained(part, best_flow(part, *found[1:])))
        return self._known[key]

    def _slice(self) -> float:
        return max(SLICE[0] * self.options.limit, SLICE[1])

    def _move_nodes(self, seconds: float) -> None:
        """Join two replicas as a chain, or move nodes of a kind or a site from one to another.

        Losses are accepted, too, at random, if they are small.
        """
        until, now = time.monotonic() + seconds, self.best
        while time.monotonic() < until and not self._done():
            parts = [*(each.nodes for each in now), self._idle(now), np.zeros(0, dtype=np.int64)]
            a, b = self._random.permutation(len(parts))[:2].tolist()
            if not len(parts[a]):
                continue
            left, moved = self._divided(parts[a])
            kept = [each for at, each in enumerate(now) if at not in (a, b)]
            changed = [*([left] if a < len(now) else []), np.concatenate([parts[b], moved])]
            found = (*kept, *(chain for nodes in changed if (chain := self._chain(nodes)) is not None))
            least = total_rate(now) - WARM * self._random.exponential() * total_rate(self.best)
            if total_rate(found) > least and len(found) <= self.problem.replicas:
                now = found
                self._keep(now)

    def _divided(self, nodes: Int) -> tuple[Int, Int]:
        """Nodes that stay and nodes that move: all, or some of a kind, of a site or of both."""
        moved = np.ones(len(nodes), dtype=np.bool_)
        model = nodes[self._random.integers(len(nodes))]
        choice = int(self._random.integers(4))
        for bit, of in ((1, self.problem.kind), (2, self._sites.of_node)):
            if choice & bit:
                moved &= of[nodes] == of[model]
        if choice & 1 and self._random.random() < 0.5:
            some = np.flatnonzero(moved)
            moved[some[self._random.integers(1, len(some) + 1) :]] = False
        return nodes[~moved], nodes[moved]

    def _change(self) -> None:
        """Solve for the nodes of a replica, alone or with those of another one, or with idle ones."""
        first = int(self._random.choice(len(self.best), p=_shares([self._slack(each) for each in self.best])))
        idle = self._idle(self.best)
        joined = len(idle) > 0 and self._random.random() < IDLE
        second = len(self.best) if joined else int(self._random.integers(len(self.best)))
        one, start = self.best[first], None
        nodes = one.nodes
        kept = [each for at, each in enumerate(self.best) if at not in (first, second)]
        others = idle if joined else self.best[second].nodes
        if second == first or not len(others):
            start = one.plan.begin, one.plan.end
        else:
            nodes = np.concatenate([nodes, others])
        found = self._solved(nodes, self._slice(), start)
        self._keep((*kept, *(() if found is None else (found,))))

    def _slack(self, replica: Replica) -> float:
        """What the nodes of a replica might pass more, by their prices."""
        return max(float(self.prices[self.problem.kind[replica.nodes]].sum()) - replica.plan.rate, 0.0)

    def _idle(self, replicas: Replicas) -> Int:
        """The nodes without a replica."""
        used = [n for each in replicas for n in each.nodes.tolist()]
        return np.setdiff1d(np.arange(self.problem.n_nodes), used)

    def _result(self) -> ReplicatedResult:
        """The verified result.

        Raises an InternalError if a plan breaks a rule, or the replicas pass more than the bound.
        """
        report = verify_replicas(self._asked, self.best)
        if not report.feasible or report.rate > self.bound:
            raise InternalError(f"replicas of a serving problem are not verified: {report.violations[:1]}")
        best = tuple(sorted(self.best, key=lambda each: -each.plan.rate))
        return ReplicatedResult(self._asked, best, self.bound, self.source, self._elapsed(), report.first_token)


def _shares(worth: Sequence[float] | Floats) -> Floats:
    """Probabilities that grow with amounts; each is positive."""
    amounts = np.asarray(worth, dtype=np.float64)
    shares = amounts / max(amounts.sum(), 1.0) + 1 / len(amounts)
    found: Floats = shares / shares.sum()
    return found


def _replica(nodes: Int, plan: ServingPlan | None) -> Replica | None:
    """The replica of a plan; None if it passes no tokens."""
    return replica_of(nodes, plan) if plan is not None and plan.rate else None
