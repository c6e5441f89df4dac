"""The largest rate of a small serving problem: all intervals of all nodes, each with a largest flow in integers."""

from __future__ import annotations

from collections import deque
from itertools import product

from placeopt.serving.problem import Serving

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
