"""Compare plans that run on a Dask cluster with the schedules that Dask's own scheduler makes.

    python benchmarks/dask_plans.py [WORKLOAD ...] [--runs 5] [--solver heft] [--time-limit 5]

A local cluster has two workers, processes with one thread each. Each collection is computed once, so that `from_dask`
knows durations and sizes. Then `run_on_dask` runs the plan and, with `compare`, the same functions without a plan: Dask
chooses order and workers. Both take turns; times are medians from the start of the first task to the end of the last.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import dask.array as da
import dask.bag as db
import distributed
import numpy as np
from rich.console import Console
from rich.table import Table

import placeopt as po


def product() -> Any:
    """A matrix times its transpose."""
    x = da.random.default_rng(0).random((4000, 4000), chunks=(1000, 1000))
    return (x @ x.T).sum()


def decomposition() -> Any:
    """Singular values of a tall matrix."""
    x = da.random.default_rng(0).random((400_000, 40), chunks=(40_000, 40))
    return da.linalg.svd(x)[1]


def words() -> Any:
    """Frequencies of words, in pure Python."""
    lines = db.from_sequence(range(40_000), npartitions=24)
    return lines.map(lambda k: [f"w{k * j % 97}" for j in range(60)]).flatten().frequencies(split_every=4)


def overlap() -> Any:
    """Smoothing of an image in blocks that overlap."""
    x = da.random.default_rng(0).random((4000, 4000), chunks=(1000, 1000))
    return x.map_overlap(lambda block: (block + np.roll(block, 1, 0) + np.roll(block, 1, 1)) / 3, depth=2).std()


WORKLOADS: dict[str, Callable[[], Any]] = {
    "product": product,
    "decomposition": decomposition,
    "words": words,
    "overlap": overlap,
}


def main() -> None:
    """Print a table with a row for each collection."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"any of {', '.join(WORKLOADS)}")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--solver", default="heft")
    parser.add_argument("--time-limit", type=float, default=5, help="seconds of the solver")
    asked = parser.parse_args()
    table = Table(title=f"two Dask workers: plans of {asked.solver} against Dask's own schedules")
    for header in ("collection", "tasks", "predicted", "plan", "Dask", "plan / Dask"):
        table.add_column(header, justify="left" if header == "collection" else "right")
    ratios = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        for name in asked.workloads or WORKLOADS:
            collection = WORKLOADS[name]()
            for _ in range(2):  # the second run has durations and sizes of the first one
                po.from_dask(collection, client=client)
                client.compute(collection).result()
            imported = po.from_dask(collection, client=client)
            problem = po.compile(imported.document)
            result = po.solve(problem, asked.solver, time_limit=asked.time_limit, workers=2)
            runs = [
                po.run_on_dask(client, problem, result, imported.functions, gather=imported.outputs, compare=True)
                for _ in range(asked.runs)
            ]
            times = [(run.predicted_makespan, run.makespan, run.unrestricted_makespan) for run in runs]
            predicted, plan, own = np.median(np.array(times, dtype=np.float64), axis=0) * float(problem.resolution)
            ratios.append(plan / own)
            cells = (f"{seconds * 1e3:.0f} ms" for seconds in (predicted, plan, own))
            table.add_row(name, str(problem.n_tasks), *cells, f"{ratios[-1]:.3f}")
    table.caption = f"median {np.median(ratios):.3f}, largest {max(ratios):.3f}"
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
