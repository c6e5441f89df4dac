"""Several complete copies of the model, each on nodes of its own: plans, their verification, and a search.

A replica has its own groups of requests. Nodes whose steps take unlike times serve more tokens in replicas of their
own, because the slower nodes would keep requests waiting, and these take memory of the faster ones. Where memory is
scarce, one replica serves more: each further one holds all weights again.

The search begins with the plan of one replica, and with chains of equal nodes: for each kind, a dynamic program chooses
their lengths. Then replicas are joined, or lose the nodes of a kind, as long as that gains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.errors import InternalError, UsageError
from placeopt.model.arrays import Int
from placeopt.orchestration.settings import make_options
from placeopt.serving.chains import best_chain
from placeopt.serving.in_flight import Floats
from placeopt.serving.plan import COORDINATOR, ServingPlan, without_idle
from placeopt.serving.plan_files import serving_plan_document
from placeopt.serving.problem import TOKEN, Serving
from placeopt.serving.request_bounds import TimeBounds
from placeopt.serving.request_search import RequestSearch
from placeopt.serving.search import SearchOptions
from placeopt.serving.sites import find_sites
from placeopt.serving.solving import DEFAULT_GAP
from placeopt.serving.verification import ServingReport, verify_serving

JOINT = 0.25
"""Share of the time for the plan of one replica."""

WARM = 1e-3
"""Mean loss that a move of nodes may cost, as a share of the rate."""

SLICE = 0.05, 1.0
"""Share of the time for a changed replica, and its least number of seconds."""


class Replica(NamedTuple):
    """The numbers of the nodes of a copy of the model, and a plan of the problem's part with these nodes."""

    nodes: Int
    plan: ServingPlan


Replicas = tuple[Replica, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReplicatedResult:
    """Verified replicas, none if no plan was found, and an upper bound of their rate, in millionths of a token per
    second."""

    problem: Serving
    replicas: Replicas
    bound: int
    seconds: float

    @property
    def rate(self) -> int:
        """The rate of all replicas."""
        return total_rate(self.replicas)

    @property
    def gap(self) -> float | None:
        """(bound - rate) / rate; None without a plan, unless the bound is 0."""
        if not self.rate:
            return 0.0 if not self.bound else None
        return (self.bound - self.rate) / self.rate

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON; rates in tokens per second."""
        return {
            "problem": self.problem.name,
            "tokens_per_second": self.rate / TOKEN if self.replicas else None,
            "bound": self.bound / TOKEN,
            "gap": self.gap,
            "requests": sum(each.plan.requests for each in self.replicas),
            "seconds": self.seconds,
            "plan": replicas_document(self.problem, self.replicas) if self.replicas else None,
        }


def total_rate(replicas: Sequence[Replica]) -> int:
    """Tokens that all replicas pass, in millionths per second."""
    return sum(each.plan.rate for each in replicas)


def replicas_document(problem: Serving, replicas: Replicas) -> dict[str, Any]:
    """The document of a plan file with replicas."""
    parts = [serving_plan_document(problem.part(each.nodes), each.plan) for each in replicas]
    kept = ("tokens_per_second", "groups", "period", "nodes", "last")
    return {
        "placeopt_plan": 1, "problem": problem.name, "tokens_per_second": total_rate(replicas) / TOKEN,
        "replicas": [{key: part[key] for key in kept if key in part} for part in parts],
    }  # fmt: skip


def verify_replicas(problem: Serving, replicas: Replicas) -> ServingReport:
    """Check that replicas share no node and are not too many, and the rules of each plan."""
    violations: list[tuple[str, str]] = []
    if len(replicas) > problem.replicas:
        violations.append(("replica", f"{len(replicas):,} replicas; allowed are {problem.replicas:,}"))
    seen: set[int] = set()
    for number, (nodes, plan) in enumerate(replicas):
        for n in nodes.tolist():
            if n in seen:
                violations.append(("replica", f"{problem.node_names[n]} is in two replicas"))
            seen.add(n)
        report = verify_serving(problem.part(nodes), plan)
        violations += [(rule, f"replica {number}: {message}") for rule, message in report.violations]
    return ServingReport(total_rate(replicas), tuple(violations), largest=False)


def replicated_serving(
    problem: Serving,
    *,
    time_limit: float = 60.0,
    gap_limit: float = DEFAULT_GAP,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> ReplicatedResult:
    """Find replicas that pass many tokens together, at most `problem.replicas`, and prove a bound.

    Raises
    ------
    UsageError
        If the nodes share no requests in flight, or an argument is out of range.
    """
    options = make_options(time_limit=time_limit, gap_limit=gap_limit, seed=seed, workers=workers)
    if problem.steps is None:
        raise UsageError("replicas need computed rates: measured ones say nothing of requests in flight")
    return _Search(problem, SearchOptions(time_limit, gap_limit, seed, options.workers, should_stop)).run()


class _Search:
    """The best replicas so far."""

    def __init__(self, problem: Serving, options: SearchOptions) -> None:
        self._asked, self.problem, self.options = problem, problem.with_merged_kinds(), options
        self._begun = time.monotonic()
        self.best: Replicas = ()
        self.bounds = TimeBounds(self.problem)
        self.bound, self.prices = 0, np.zeros(len(self.problem.counts))
        self._random = np.random.default_rng(options.seed)
        self._sites = find_sites(self.problem)
        self._known: dict[bytes, Replica | None] = {}  # chains by their nodes

    def run(self) -> ReplicatedResult:
        self.bound, self.prices = self.bounds.of_replicas(self.problem.replicas)
        for found in self._equal_nodes():
            self._keep(found)
        self._join()
        while self.best and not self._done():
            self._move_nodes(self._slice())
            self._change()
        return self._result()

    def _stopped(self) -> bool:
        return self.options.should_stop() or time.monotonic() > self._begun + self.options.limit

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
        return _used(nodes, RequestSearch(self.problem.part(nodes), options, start).run().plan)

    def _join(self) -> None:
        """One replica on all nodes, from a chain of them."""
        nodes, start = np.arange(self.problem.n_nodes), None
        chain = self._chain(nodes)
        if chain is not None:
            self._keep((chain,))
            begin, end = np.zeros((2, len(nodes)), dtype=np.int64)
            begin[chain.nodes], end[chain.nodes] = chain.plan.begin, chain.plan.end
            start = begin, end
        joint = self._solved(nodes, JOINT * self.options.limit, start)
        self._keep(() if joint is None else (joint,))

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
        """The best chains of nodes of one kind, each within a scope, at most so many: a model in integers."""
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
        """A replica of nodes, one after the other, those of a site and of a kind together."""
        if self._stopped() or not len(nodes):
            return None
        nodes = nodes[np.lexsort((self.problem.kind[nodes], self._sites.of_node[nodes]))]
        key = nodes.tobytes()
        if key not in self._known:
            self._known[key] = _used(nodes, best_chain(self.problem.part(nodes)))
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
        second = int(self._random.integers(len(self.best) + 1))
        one, start = self.best[first], None
        nodes = one.nodes
        kept = [each for at, each in enumerate(self.best) if at not in (first, second)]
        others = self._idle(self.best) if second == len(self.best) else self.best[second].nodes
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

    def _left(self) -> float:
        return max(self._begun + self.options.limit - time.monotonic(), 0.01)

    def _result(self) -> ReplicatedResult:
        """The verified result.

        Raises
        ------
        InternalError
            If a plan breaks a rule, or the replicas pass more than the bound.
        """
        report = verify_replicas(self._asked, self.best)
        if not report.feasible or report.rate > self.bound:
            raise InternalError(f"replicas of a serving problem are not verified: {report.violations[:1]}")
        best = tuple(sorted(self.best, key=lambda each: -each.plan.rate))
        return ReplicatedResult(self._asked, best, self.bound, time.monotonic() - self._begun)


def _shares(worth: Sequence[float] | Floats) -> Floats:
    """Probabilities in proportion to amounts, and equal ones if all are 0."""
    amounts = np.asarray(worth, dtype=np.float64)
    found: Floats = amounts / amounts.sum() if amounts.sum() > 0 else np.full(len(amounts), 1 / len(amounts))
    return found


def _used(nodes: Int, plan: ServingPlan | None) -> Replica | None:
    """The replica of the nodes that pass tokens; None without any."""
    if plan is None or not plan.rate:
        return None
    plan = without_idle(plan)
    used = np.flatnonzero(plan.end > plan.begin)
    number = np.full(len(nodes) + 1, COORDINATOR, dtype=np.int64)  # the coordinator, -1, is the last entry
    number[used] = np.arange(len(used))
    return Replica(
        nodes[used], replace(plan, begin=plan.begin[used], end=plan.end[used], edges=number[plan.edges])
    )  # fmt: skip
