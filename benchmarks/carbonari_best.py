"""Compare the best value of f with that of greedy, for the models of Carbonari, Kodirov, Golub 2017.

    python benchmarks/carbonari_best.py [graphs]

The value of f depends on the order of placement. `best_value` finds the best sequence of all tasks exactly: it extends
all partial placements and keeps, for each assignment of tasks to devices, the vectors of benefits B_i that no other
vector dominates. This is exact because the assignment determines all later benefits, and f increases with each B_i.

The first table has the example of the paper and random graphs (60, seed 0): 5 tasks with the costs of table 4 on two
cores and a GPU. The ratio is f of greedy divided by the best f. Only the model without parallelism and load is proved
to be submodular, so that 1/2 is guaranteed. JCT and makespan are sums over all graphs, relative to the best makespan
(by CP-SAT): they show what a better f would be worth. The second table has f of greedy divided by the upper bound on
the best f that lazy greedy proves with the guaranteed model, for the three graphs and networks of the paper.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from carbonari_graphs import FILES, NODES, inferred_problem
from carbonari_paper import INCEPTION, INFERRED
from rich.table import Table
from shown import show

import placeopt as po
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.metrics import carbonari_jct
from placeopt.model.problem import Problem
from placeopt.submodular import lazy_greedy
from placeopt.submodular.placement import Form, PlacementModel, PlacementSettings
from placeopt.submodular.placement.model import PlacementState

TABLE_4 = np.array([[4, 4, 2], [6, 6, 5], [1, 1, 3], [5, 5, 7]])
"""Convolution, max pooling, average pooling and concatenation on two cores and a GPU."""
GUARANTEED: dict[str, Any] = {"parallelism": False, "load": False}
MODELS: dict[str, tuple[Form, dict[str, Any]]] = {
    "submodular-g, parallelism=false load=false": ("inside", GUARANTEED),
    "submodular-g": ("inside", {}),
    "submodular-gi": ("outside", {}),
}


class Best(NamedTuple):
    """The best value of f, and the devices of a sequence that has it."""

    value: float
    device: tuple[int, ...]


def best_value(model: PlacementModel) -> Best:
    """The best value of f over all sequences that place every task."""
    n, m = model.problem.n_tasks, model.problem.n_devices
    states: dict[tuple[int, ...], list[PlacementState]] = {(-1,) * n: [model.start()]}
    best = Best(-np.inf, ())
    for step in range(n):
        following: dict[tuple[int, ...], list[PlacementState]] = {}
        for device, found in states.items():
            for state in found:
                for task, chosen in product((j for j in range(n) if device[j] < 0), range(m)):
                    new = model.copy(state)
                    model.add(new, task * m + chosen)
                    key = (*device[:task], chosen, *device[task + 1 :])
                    if step < n - 1:
                        keep(following.setdefault(key, []), new)
                    elif model.value(new) > best.value:  # with pf of the last task, for submodular-gi
                        best = Best(model.value(new), key)
        states = following
    return best


def keep(found: list[PlacementState], new: PlacementState) -> None:
    """Add a state unless another one dominates it, and remove those that it dominates."""
    if not any((old.benefit >= new.benefit).all() for old in found):
        found[:] = [old for old in found if not (new.benefit >= old.benefit).all()]
        found.append(new)


def graphs(count: int) -> Iterator[Problem]:
    """Random graphs of 5 tasks with the operations of table 4."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        n = 5
        yield build_problem(
            task_names=[f"n{j}" for j in range(n)],
            device_names=["core0", "core1", "gpu"],
            device_types=["cpu", "cpu", "gpu"],
            edges=[(i, j) for j in range(n) for i in range(j) if rng.random() < 0.35],
            duration=TABLE_4[rng.integers(0, len(TABLE_4), n)],
        )


def main() -> None:
    """Print the two tables."""
    compare(int(sys.argv[1]) if len(sys.argv) > 1 else 60)


def compare(count: int) -> None:
    """Show the two tables for a number of random graphs."""
    cases = {"five-node, i_cap = 100": ("100", [po.load(FILES / "five-node.yaml")])}
    cases |= {f"{count} graphs, i_cap = {cap}": (cap, list(graphs(count))) for cap in ("100", "total")}
    table = Table(title="f of greedy / the best f; JCT and makespan / the best makespan")
    for header in ("case", "model"):
        table.add_column(header)
    for header in ("least", "mean", "optimal", "JCT greedy", "JCT best f", "greedy", "best f"):
        table.add_column(header, justify="right")
    for name, (cap, problems) in cases.items():
        shortest = sum(length(po.solve(problem, "cp-sat", workers=1)) for problem in problems)
        for label, (form, settings) in MODELS.items():
            ratios, jct, lengths = [], np.zeros(2), np.zeros(2)
            for problem in problems:
                chosen = PlacementSettings(cap=cap, memory="unlimited", **settings)
                model = PlacementModel(problem, form, chosen)
                placed = model.place_all()
                greedy = np.empty(problem.n_tasks, dtype=np.int64)
                greedy[placed.task] = placed.device
                best = best_value(model)
                ratios.append(float(placed.values[-1]) / best.value)
                for k, device in enumerate((greedy, np.array(best.device))):
                    jct[k] += carbonari_jct(problem, device)
                    lengths[k] += scheduled(problem, device)
            same = sum(ratio > 1 - 1e-12 for ratio in ratios)
            table.add_row(
                name if label == next(iter(MODELS)) else "",
                label,
                f"{min(ratios):.4f}",
                f"{np.mean(ratios):.4f}",
                f"{same} of {len(ratios)}",
                *(f"{value / shortest:.3f}" for value in (*jct, *lengths)),
                end_section=label == list(MODELS)[-1],
            )
    show(table)
    proved = Table(title="parallelism=false load=false: f of greedy / the upper bound proved for the instance")
    for header in ("model", "3 devices", "30 devices", "60 devices"):
        proved.add_column(header)
    for name in NODES:
        ratios = []
        for network in ("small", "medium", "large"):
            costs = INFERRED | INCEPTION if name == "Inception-v3" else INFERRED
            problem = inferred_problem(name, network, costs)
            model = PlacementModel(problem, "inside", PlacementSettings(memory="unlimited", **GUARANTEED))
            found = lazy_greedy(model, model.independence())
            ratios.append(found.ratio or 0.0)
        proved.add_row(name, *(f"{ratio:.6f}" for ratio in ratios))
    show(proved)


def length(result: po.Result) -> int:
    """The makespan of a result that is proved to be optimal."""
    assert result.makespan is not None
    assert result.gap == 0, "a proof of optimality takes too long"
    return result.makespan


def scheduled(problem: Problem, device: Int) -> int:
    """The makespan of HEFT's order on given devices, as in the solvers; transfers are free."""
    pinned = np.zeros((problem.n_tasks, problem.n_devices), dtype=np.bool_)
    pinned[np.arange(problem.n_tasks), device] = True
    fixed = build_problem(
        task_names=problem.task_names,
        device_names=problem.device_names,
        edges=np.column_stack((problem.edge_source, problem.edge_target)),
        duration=problem.duration,
        feasible=pinned,
    )
    result = po.solve(fixed, "heft")
    assert result.makespan is not None
    return result.makespan


if __name__ == "__main__":
    main()
