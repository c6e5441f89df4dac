"""Search for the unpublished costs of Carbonari, Kodirov, Golub 2017, from their published JCTs.

    python benchmarks/carbonari_costs.py [limit]

A table states two costs for each kind of task, per element that the task reads: on a core and on a GPU. Costs are
integers from 1 to `limit` (12), as in table 4 of the paper. The program enumerates all tables. It runs for seconds.

VGG-19 is a chain. Its nine JCTs have four different values, all multiples of 512. A table is *consistent* if

- heuristic-g has the published JCT: each task costs the lower of its two costs, because no device is busy when a chain
  needs it, and transfers are free;
- some placement has the published JCT of submodular-g on 3 devices, some on 30, and some on 60. Each is a subset-sum
  over the tasks that are on the slower type of device; dynamic programming over sums and numbers of tasks is exact.

Two graphs are compared: that of problems/, where the first convolution reads the image and has separate costs, and
that of `carbonari_graphs`. "Filled" are the tables and faster types for which the placements also have as many tasks on
cores as the greedy algorithm of the paper produces. Its proof requires a freeRatio of at least 1. Then a task gains at
least 1 on an empty device and at most sqrt(3) - 1 on another, so that no device has two tasks while one is empty. With
24 tasks, at least 14 are on 20 cores, and at least 4 on 40. "Greedy" are those for which this algorithm, which takes
the cheapest pair first, has the published JCT on 60 devices.

For ResNet-50, the JCT of heuristic-g is compared with the longest path at the lower costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from carbonari_graphs import Node, resnet_50, vgg_19
from carbonari_paper import PAPER
from rich.table import Table
from shown import show

UNIT = 512
IMAGE = 224 * 224 * 3
TABLE_4 = {"conv2d": (4, 2), "max_pool": (6, 5)}
NETWORKS = {"small": (2, 1), "medium": (20, 10), "large": (40, 20)}
"""Cores and GPUs."""

Sums = dict[int, frozenset[int]]
"""Sums of subsets, and the numbers of their elements."""
Costs = dict[str, int]


class Found(NamedTuple):
    """A consistent table: the lower costs, and what the slower type of device costs more.

    `filled`: the choices of kinds that are faster on a GPU for which the numbers of tasks on cores agree.
    """

    lower: Costs
    extra: Costs
    filled: tuple[frozenset[str], ...]


def sizes_of(nodes: list[Node]) -> dict[str, tuple[int, ...]]:
    """The elements in UNITs that the tasks of each kind read."""
    found: dict[str, list[int]] = {}
    for node in nodes:
        assert node.elements % UNIT == 0, "the unit must divide all sizes"
        found.setdefault(node.op, []).append(node.elements // UNIT)
    return {op: tuple(sizes) for op, sizes in found.items()}


def problem_graph(*, classifier: bool) -> list[Node]:
    """VGG-19 as in problems/, with the first convolution, and perhaps the last layer, as separate kinds."""
    nodes = [Node("first conv2d", IMAGE, ()), *(node for node in vgg_19() if node.op != "flatten")]
    return [*nodes[:-1], nodes[-1]._replace(op="classifier")] if classifier else nodes


GRAPHS: dict[str, Callable[[], list[Node]]] = {
    "problems/vgg19": lambda: problem_graph(classifier=False),
    "problems/vgg19, separate classifier": lambda: problem_graph(classifier=True),
    "carbonari_graphs": vgg_19,
}


def published(network: str, solver: str, model: str = "VGG-19") -> int:
    """A published JCT in UNITs."""
    units, rest = divmod(PAPER[network, model][solver][0], UNIT)
    assert rest == 0, "no table has this JCT"
    return units


def lower_tables(sizes: dict[str, tuple[int, ...]], limit: int) -> Iterator[Costs]:
    """The tables of the lower costs with which heuristic-g has its published JCT."""
    *first, last = sizes
    for costs in product(range(1, limit + 1), repeat=len(first)):
        rest = published("small", "heuristic-g") - sum(
            cost * sum(sizes[op]) for cost, op in zip(costs, first, strict=True)
        )
        cost, remainder = divmod(rest, sum(sizes[last]))
        if remainder == 0 and 1 <= cost <= limit:
            yield dict(zip(first, costs, strict=True)) | {last: cost}


@cache
def subsets(sizes: tuple[int, ...]) -> Sums:
    """All sums of subsets."""
    found = {(0, 0)}
    for size in sizes:
        found |= {(total + size, count + 1) for total, count in found}
    by_sum: dict[int, set[int]] = {}
    for total, count in found:
        by_sum.setdefault(total, set()).add(count)
    return {total: frozenset(counts) for total, counts in by_sum.items()}


def ways(goal: int, sizes: dict[str, tuple[int, ...]], extra: Costs) -> set[tuple[int, ...]]:
    """The numbers of slow tasks of each kind with which the slow tasks cost `goal` UNITs more in total."""
    largest, *others = sizes
    partial: set[tuple[int, tuple[int, ...]]] = {(goal, ())}
    for op in reversed(others):
        partial = {
            (left - extra[op] * total, (count, *counts))
            for left, counts in partial
            for total, numbers in subsets(sizes[op]).items()
            if extra[op] * total <= left
            for count in numbers
        }
    found = set()
    for left, counts in partial:
        if extra[largest] == 0:
            numbers = frozenset(range(len(sizes[largest]) + 1)) if left == 0 else frozenset()
        else:
            total, rest = divmod(left, extra[largest])
            numbers = subsets(sizes[largest]).get(total, frozenset()) if rest == 0 else frozenset()
        found |= {(count, *counts) for count in numbers}
    return found


def consistent(sizes: dict[str, tuple[int, ...]], limit: int) -> Iterator[Found]:
    """All consistent tables. The first kind must be the one with the most tasks."""
    for lower in lower_tables(sizes, limit):
        for costs in product(*(range(limit - cost + 1) for cost in lower.values())):
            extra = dict(zip(lower, costs, strict=True))
            found = {}
            for network in reversed(NETWORKS):
                goal = published(network, "submodular-g") - published(network, "heuristic-g")
                found[network] = ways(goal, sizes, extra)
                if not found[network]:
                    break
            else:
                yield Found(lower, extra, filled(sizes, extra, found))


def filled(
    sizes: dict[str, tuple[int, ...]], extra: Costs, found: dict[str, set[tuple[int, ...]]]
) -> tuple[frozenset[str], ...]:
    """The choices of kinds faster on GPUs for which the numbers of tasks on cores are those of filled devices."""
    tasks = sum(map(len, sizes.values()))
    agreeing = []
    for faster in product(*((True, False) if extra[op] else (True,) for op in sizes)):
        for network, (cores, gpus) in NETWORKS.items():
            least, most = (tasks - gpus, cores) if tasks <= cores + gpus else (0, tasks)
            if not any(
                least <= sum(c if g else len(s) - c for c, s, g in zip(w, sizes.values(), faster, strict=True)) <= most
                for w in found[network]
            ):
                break
        else:
            agreeing.append(frozenset(op for op, on_gpu in zip(sizes, faster, strict=True) if on_gpu))
    return tuple(agreeing)


def greedy_jct(sizes: dict[str, tuple[int, ...]], one: Found, faster: frozenset[str], network: str) -> int:
    """The JCT in UNITs of the greedy algorithm where every task has an empty device: the cheapest pair first."""
    waiting = [(op, size) for op, all_sizes in sizes.items() for size in all_sizes]
    free, total = list(NETWORKS[network]), 0
    while waiting:
        cost, index, kind = min(
            (size * (one.lower[op] + one.extra[op] * ((op in faster) != bool(kind))), index, kind)
            for index, (op, size) in enumerate(waiting)
            for kind in (0, 1)
            if free[kind]
        )
        total += cost
        free[kind] -= 1
        del waiting[index]
    return total


def main() -> None:
    """Print the numbers of consistent tables, those with the costs of table 4, and the costs of ResNet-50."""
    infer(int(sys.argv[1]) if len(sys.argv) > 1 else 12)


def infer(limit: int) -> None:
    """Show the same for costs up to a limit."""
    counts = Table(title=f"VGG-19: tables of costs from 1 to {limit} that agree with the published JCTs")
    counts.add_column("graph")
    for header in ("heuristic-g", "consistent", "and table 4", "filled", "and table 4", "greedy"):
        counts.add_column(header, justify="right")
    listed = Table(title="consistent tables with the costs of table 4: on a core / on a GPU")
    for header in ("graph", "costs"):
        listed.add_column(header)
    for name, nodes in GRAPHS.items():
        sizes = sizes_of(nodes())
        sizes = dict(sorted(sizes.items(), key=lambda item: -len(item[1])))
        lower = list(lower_tables(sizes, limit))
        found = list(consistent(sizes, limit))
        known = [one for one in found if is_table_4(one)]
        fills = [(one, faster) for one in found for faster in one.filled]
        same = sum(one in known and set(TABLE_4) <= faster for one, faster in fills)
        greedy = sum(
            greedy_jct(sizes, one, faster, "large") == published("large", "submodular-g") for one, faster in fills
        )
        numbers = (len(lower), len(found), len(known), len(fills), same, greedy)
        counts.add_row(name, *(f"{number:,}" for number in numbers))
        for one in sorted(known, key=lambda one: sum(one.extra.values()))[:4]:
            text = ", ".join(f"{op} {one.lower[op] + one.extra[op]} / {one.lower[op]}" for op in one.lower)
            listed.add_row(name, text)
        for table in lower:
            show(f"{name}: lower costs {table}")
    show(counts)
    show(listed)
    resnet(limit)


def is_table_4(one: Found) -> bool:
    """Whether the costs of convolution and pooling are those of table 4."""
    return all((one.lower[op] + one.extra[op], one.lower[op]) == costs for op, costs in TABLE_4.items())


def resnet(limit: int) -> None:
    """Print the lower costs for which the longest path of ResNet-50 is the published JCT of heuristic-g.

    The costs of table 4 are given; the first task is free, and costs of dense layers count together with flattening.
    """
    goal = PAPER["small", "ResNet-50"]["heuristic-g"][0]
    for pooled in (55, 56):
        on_path: dict[str, int] = {}
        for node in main_branch(resnet_50(pooled)):
            on_path[node.op] = on_path.get(node.op, 0) + node.elements
        given = sum(on_path[op] * gpu for op, (_, gpu) in TABLE_4.items())
        found = []
        for norm, relu, add, pool in product(range(1, limit + 1), repeat=4):
            costs = {"batch_norm": norm, "relu": relu, "add": add, "avg_pool": pool}
            rest = goal - given - sum(on_path[op] * cost for op, cost in costs.items())
            both, remainder = divmod(rest, on_path["dense"])
            if remainder == 0 and 2 <= both <= 2 * limit:
                found.append(costs | {"flatten + dense": both})
        show(f"ResNet-50, {pooled} x {pooled} pixels after pooling: {len(found)} tables {found}")
    first = 230 * 230 * 3
    assert all(node.elements % 64 == 0 for node in resnet_50() if node.elements != first), "64 must divide the others"
    for (network, model), row in PAPER.items():
        if model == "ResNet-50":
            agree = {
                name: [cost for cost in range(1, limit + 1) if (value[0] - cost * first) % 64 == 0]
                for name, value in row.items()
            }
            show(f"ResNet-50, {network}: costs of the first convolution, modulo 64: {agree}")


def main_branch(nodes: list[Node]) -> list[Node]:
    """The tasks on the longest path in tasks: without the convolution and normalisation of shortcuts."""
    depth: list[int] = []
    for node in nodes:
        depth.append(1 + max((depth[i] for i in node.after), default=0))
    path, last = [], len(nodes) - 1
    while True:
        path.append(nodes[last])
        if not nodes[last].after:
            return path
        last = max(nodes[last].after, key=depth.__getitem__)


if __name__ == "__main__":
    main()
