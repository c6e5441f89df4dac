"""The largest rate of a small serving problem: all intervals of all nodes, each with a largest flow in integers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
from scipy.optimize import linprog

from placeopt.model.arrays import Int
from placeopt.serving.problem import SECOND, TOKEN, UNLIMITED, Serving

SOURCE, SINK = -1, -2


def best_rate(problem: Serving) -> int:
    """The largest rate over all intervals."""
    choices = [
        [
            (0, 0),
            *(
                (begin, end)
                for begin in range(problem.layers)
                for end in range(begin + 1, problem.layers + 1)
                if problem.rate_of(int(kind), begin, end)
            ),
        ]
        for kind in problem.kind
    ]
    best = 0
    for intervals in product(*choices):
        if coverage(problem, intervals) > best:
            best = max(best, largest_flow(problem, intervals))
    return best


def coverage(problem: Serving, intervals: tuple[tuple[int, int], ...]) -> int:
    """The least sum of the rates of the nodes that hold a layer: no flow is larger."""
    sums = [0] * problem.layers
    for kind, (begin, end) in zip(problem.kind.tolist(), intervals, strict=True):
        for layer in range(begin, end):
            sums[layer] += problem.rate_of(kind, begin, end)
    return min(sums)


def largest_flow(problem: Serving, intervals: tuple[tuple[int, int], ...]) -> int:
    """The largest flow for these intervals, by shortest augmenting paths (Edmonds and Karp)."""
    left: dict[tuple[object, object], int] = {}

    def connect(a: object, b: object, most: int) -> None:
        left[a, b] = most
        left.setdefault((b, a), 0)

    nodes = [n for n, (begin, end) in enumerate(intervals) if end > begin]
    for n in nodes:
        begin, end = intervals[n]
        connect((n, "in"), (n, "out"), problem.rate_of(int(problem.kind[n]), begin, end))
        if begin == 0:
            connect(SOURCE, (n, "in"), int(problem.entry[n]))
        if end == problem.layers:
            connect((n, "out"), SINK, int(problem.exit[n]))
        for w in nodes:
            joins = intervals[w][0] <= end if problem.partial else intervals[w][0] == end
            if joins and intervals[w][1] > end:
                connect((n, "out"), (w, "in"), int(problem.link[n, w]))
    neighbours: dict[object, list[object]] = {}
    for a, b in left:
        neighbours.setdefault(a, []).append(b)
    total = 0
    while True:
        before: dict[object, object] = {SOURCE: SOURCE}
        waiting = deque([SOURCE])
        while waiting and SINK not in before:
            a = waiting.popleft()
            for b in neighbours.get(a, ()):
                if b not in before and left[a, b] > 0:
                    before[b] = a
                    waiting.append(b)
        if SINK not in before:
            return total
        path, place = [], SINK
        while place != SOURCE:
            path.append((before[place], place))
            place = before[place]
        amount = min(left[arc] for arc in path)
        for a, b in path:
            left[a, b] -= amount
            left[b, a] += amount
        total += amount


def best_rate_of_groups(problem: Serving) -> int:
    """The largest rate of groups of whole requests, over all intervals, numbers of groups, and requests on each way.

    With limits of links it is the largest one for groups that are all alike, and others may be better.
    """
    best = Fraction(0)
    choices = [
        [(0, 0), *((b, e) for b in range(problem.layers) for e in range(b + 1, problem.layers + 1)
                   if problem.rate_of(int(kind), b, e))]
        for kind in problem.kind
    ]  # fmt: skip
    for intervals in product(*choices):
        if coverage(problem, intervals):
            best = max(best, _best_groups(problem, intervals))
    return int(best * TOKEN)


def best_rate_of_replicas(problem: Serving) -> int:
    """The same for at most `problem.replicas` replicas: the largest sum over all divisions of the nodes."""
    known: dict[tuple[int, ...], int] = {}

    def best(nodes: tuple[int, ...], most: int) -> int:
        if not nodes or not most:
            return 0
        first, rest = nodes[0], nodes[1:]
        found = best(rest, most)  # the first node is idle
        for others in (part for size in range(len(rest) + 1) for part in combinations(rest, size)):
            part = (first, *others)
            if part not in known:
                known[part] = best_rate_of_groups(problem.part(part))
            found = max(found, known[part] + best(tuple(n for n in rest if n not in others), most - 1))
        return found

    return best(tuple(range(problem.n_nodes)), problem.replicas)


def _best_groups(problem: Serving, intervals: tuple[tuple[int, int], ...]) -> Fraction:
    steps = problem.steps
    assert steps is not None
    ways: list[tuple[int, ...]] = []

    def follow(way: tuple[int, ...]) -> None:
        done = intervals[way[-1]][1] if way else 0
        if done == problem.layers:
            ways.append(way)
            return
        for w, (begin, end) in enumerate(intervals):
            if end > done and (begin <= done if problem.partial and way else begin == done):
                follow((*way, w))

    follow(())
    kinds = problem.kind.tolist()

    def entry(table: Int, n: int) -> int:
        begin, end = intervals[n]
        return int(table[kinds[n], 0 if problem.alike else begin, end - begin - 1])

    best = Fraction(0)
    used = sorted({n for way in ways for n in way})
    rooms = {n: entry(steps.room, n) for n in used}
    for groups in range(1, 9):
        most = [min(rooms[n] // groups for n in way) for way in ways]
        if steps.batch is not None:
            most = [min(x, steps.batch) for x in most]
        for numbers in product(*(range(x + 1) for x in most)):
            held = {n: sum(x for way, x in zip(ways, numbers, strict=True) if n in way) for n in used}
            total = sum(numbers)
            if not total or any(groups * held[n] > rooms[n] for n in used):
                continue
            if steps.batch is not None and max(held.values()) > steps.batch:
                continue
            if steps.requests is not None and groups * total > steps.requests:
                continue
            taken = {
                n: max(
                    entry(steps.reading, n) + held[n] * entry(steps.token, n),
                    entry(steps.overhead, n) + held[n] * entry(steps.work, n),
                )
                for n in used
            }
            period = Fraction(max(taken[n] for n in used if held[n]))
            for way, number in zip(ways, numbers, strict=True):
                if number:
                    time = int(steps.entry_delay[way[0]]) + sum(taken[n] for n in way) + int(steps.exit_delay[way[-1]])
                    time += _sent(problem, ways, numbers, SOURCE, way[0])
                    time += sum(int(steps.delay[u, w]) + _sent(problem, ways, numbers, u, w) for u, w in pairwise(way))
                    period = max(period, Fraction(time, groups))
            for u, w in {pair for way in ways for pair in pairwise((SOURCE, *way))}:
                period = max(period, Fraction(_sent(problem, ways, numbers, u, w)))
            if steps.token_time is None or groups * period <= steps.token_time:
                best = max(best, Fraction(total) * SECOND / period if period else Fraction(0))
    return best


def _sent(problem: Serving, ways: list[tuple[int, ...]], numbers: tuple[int, ...], u: int, w: int) -> int:
    """Picoseconds in which the requests of a group go from a node or the coordinator to one, one after another."""
    sent = sum(x for way, x in zip(ways, numbers, strict=True) if (u, w) in pairwise((SOURCE, *way)))
    rate = int(problem.entry[w] if u == SOURCE else problem.link[u, w])
    return 0 if rate >= UNLIMITED else sent * (TOKEN * SECOND // rate)


def best_rate_of_phases(problem: Serving) -> int:
    """The largest rate with separate prefill if the KV cache takes no time: over all divisions of the nodes, the lesser
    of what those for prefill pass and of the largest rate of groups of the others."""
    best, half, steps = 0, problem.layers // 2, problem.steps
    assert steps is not None
    assert problem.prompts is not None
    tokens, answer = problem.prompts.tokens, problem.prompts.answer

    def scaled(rates: Int) -> Int:
        return np.array([x if x >= UNLIMITED else x * answer // tokens for x in rates.reshape(-1).tolist()]).reshape(
            rates.shape
        )

    names = ("room", "reading", "token", "overhead", "work")
    prefill = replace(
        problem, layers=half, rate=problem.rate[:, :half], link=scaled(problem.link), entry=scaled(problem.entry),
        exit=np.full_like(problem.exit, UNLIMITED), steps=None, prompts=None,
    )  # fmt: skip
    decode = replace(
        problem, layers=half, rate=problem.rate[:, half:], prompts=None,
        steps=replace(steps, **{name: getattr(steps, name)[:, half:] for name in names}),
    )  # fmt: skip
    for chosen in product((False, True), repeat=problem.n_nodes):
        one, other = (np.flatnonzero(np.array(chosen) == phase) for phase in (False, True))
        if len(one) and len(other):
            first = best_rate(prefill.part(one))
            if first > best:
                best = max(best, min(first, best_rate_of_groups(decode.part(other))))
    return best


def best_rate_of_routes(problem: Serving) -> float:
    """The largest rate with separate prefill and rates of nodes alone: over all intervals, a linear program of the
    rates of all routes, with the transfer of the KV cache."""
    half, best = problem.layers // 2, 0.0
    choices = [
        [(0, 0), *((b, e) for b in range(problem.layers) for e in range(b + 1, problem.layers + 1)
                   if (e <= half or b >= half) and problem.rate_of(int(kind), b, e))]
        for kind in problem.kind
    ]  # fmt: skip
    for intervals in product(*choices):
        if coverage(problem, intervals) > best * (1 + 1e-9) + 1:
            best = max(best, _best_routes(problem, intervals))
    return best


def _best_routes(problem: Serving, intervals: tuple[tuple[int, int], ...]) -> float:
    prompts, half = problem.prompts, problem.layers // 2
    assert prompts is not None
    assert prompts.cache is not None
    assert prompts.transfer is not None

    def routes(route: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        done = intervals[route[-1]][1] if route else 0
        if done == problem.layers:
            yield route
            return
        for w, (begin, end) in enumerate(intervals):
            if end > done and (begin <= done if problem.partial and done not in (0, half) else begin == done):
                yield from routes((*route, w))

    found = list(routes(()))
    if not found:
        return 0.0
    limits: dict[tuple[str, int, int], float] = {}
    uses: list[dict[tuple[str, int, int], float]] = []
    part = Fraction(prompts.answer, prompts.tokens)
    for route in found:
        own: dict[tuple[str, int, int], float] = {}

        def use(what: str, u: int, w: int, limit: object, amount: float = 1.0, own: dict = own) -> None:
            if float(limit) < UNLIMITED:  # type: ignore[arg-type]
                limits[what, u, w] = float(limit)  # type: ignore[arg-type]
                own[what, u, w] = own.get((what, u, w), 0.0) + amount

        held: dict[int, dict[int, int]] = {0: {}, 1: {}}
        done, before = 0, -1
        for n in route:
            begin, end = intervals[n]
            use("node", n, n, problem.rate_of(int(problem.kind[n]), begin, end))
            if done in (0, half):
                entry = int(problem.entry[n])
                use("entry", n, n, entry if done or entry >= UNLIMITED else entry * part)
            else:
                link = int(problem.link[before, n])
                use("link", before, n, link if done > half or link >= UNLIMITED else link * part)
            for layer in range(done, end):
                held[layer >= half][layer % half] = n
            done, before = end, n
        use("exit", before, before, int(problem.exit[before]))
        for layer in range(half):
            u, w = held[0][layer], held[1][layer]
            if prompts.transfer[u, w] < UNLIMITED:
                size = float(prompts.cache[layer]) / prompts.answer / TOKEN
                use("transfer", u, w, int(prompts.transfer[u, w]), size)
        uses.append(own)
    keys = list(limits)
    matrix = np.array([[own.get(key, 0.0) for own in uses] for key in keys]).reshape(len(keys), len(found))
    scale = np.array([limits[key] for key in keys])
    if (scale <= 0).any():
        raise AssertionError("a link of rate 0")
    result = linprog(-np.ones(len(found)), A_ub=matrix / scale[:, None] * TOKEN, b_ub=np.ones(len(keys)))
    return float(-result.fun * TOKEN)
