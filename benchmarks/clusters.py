"""Measure what a Dask cluster costs and gains: `compare --dask` and `solve --dask` with local workers.

    python benchmarks/clusters.py [dispatch] [compare] [solve] [model] [--workers 8] [--problems 25] [--seconds 60]

All parts run unless some are named. The cluster is a scheduler and `--workers` workers with one thread each, all on
this machine, in processes of their own. CPU time is that of processes, so it does not depend on how many cores there
are; elapsed times do. Memory is resident memory.

    dispatch   all solvers on 100 problems of 40 to 100 tasks (`irregular`, 4 to 8 devices, seeds 0, 1, ...), where each
               run returns a finished record at once: CPU time and memory per run of the client, the scheduler and the
               workers
    compare    all heuristics on `--problems` of these problems, in real processes. In the middle, a worker is killed.
               The part fails if a run is missing or there twice.
    solve      `placeopt solve --solver auto --workers 1` on `irregular`, 10,000 tasks, 60 devices, seed 0: one process
               for `--seconds` and for four times as long, one worker for four times as long, and all workers for
               `--seconds`
    model      efficiency with 8, 100 and 1,000 workers, computed from the figures of the first three parts (measured
               before, in `MEASURED`, for parts that do not run): `simulated_comparison`, `round_efficiency`
"""

from __future__ import annotations

import argparse
import copy
import heapq
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np
import psutil
from placeopt_solvers.portfolio import _restarts
from placeopt_solvers.search._intervals import moves
from placeopt_solvers.search._intervals.state import State
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.irregular_graphs import irregular_document, irregular_problem
from placeopt.model.problem import Problem
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.protocol.remote import pack
from placeopt.studies.comparison import execution
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.ledger import read_ledger
from placeopt.studies.comparison.records import Record

PARTS = ("dispatch", "compare", "solve", "model")

MEASURED = {"client": 2.2e-3, "scheduler": 3.0e-3, "runs": (0.49,), "gap": 0.042}
"""Figures of an earlier run of the other parts, in seconds: CPU per run, lengths of runs, time between two rounds."""

BANDWIDTH, SCHEDULE = 1e9 / 8, 16 * 10_000
"""Bytes per second of each machine's network in the model, and bytes of a schedule of 10,000 tasks."""


@dataclass(slots=True)
class Local:
    """A cluster on this machine."""

    address: str
    scheduler: psutil.Process
    workers: psutil.Process

    def slots(self) -> list[psutil.Process]:
        """Return the processes of the workers: children of their nannies."""
        found = []
        for each in self.workers.children(recursive=True):
            with suppress(psutil.Error):  # it has just ended
                if "spawn_main" in " ".join(each.cmdline()):
                    found.append(each)
        return found

    def usage(self) -> dict[str, tuple[float, float]]:
        """Return CPU seconds, of dead child processes too, and MiB of the client, the scheduler and the workers."""
        groups = {"client": [psutil.Process()], "scheduler": [self.scheduler], "workers": self.slots()}
        return {name: (sum(map(_cpu, group)), sum(map(_mebibytes, group))) for name, group in groups.items()}


def _cpu(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        used = process.cpu_times()
        return float(used.user + used.system + used.children_user + used.children_system)
    return 0.0


def _mebibytes(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        return float(process.memory_info().rss / 2**20)
    return 0.0


@contextmanager
def cluster(workers: int) -> Iterator[Local]:
    """Start a cluster, and end it."""
    from distributed import Client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    run = [sys.executable, "-m"]
    started = [
        subprocess.Popen([*run, *words, "--no-dashboard"], stderr=subprocess.DEVNULL)
        for words in (
            ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port],
            ["distributed.cli.dask_worker", address, "--nthreads", "1", "--nworkers", str(workers)],
        )
    ]
    try:
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)
        yield Local(address, *(psutil.Process(each.pid) for each in started))
    finally:
        for each in reversed(started):
            each.terminate()
            each.wait()


def problems(count: int) -> list[Problem]:
    """Return small problems."""
    return [po.compile(irregular_document(40 + seed % 61, 4 + seed % 5, seed=seed)) for seed in range(count)]


class Sampler(execution.Observer):
    """Samples the usage of the cluster during a comparison."""

    def __init__(self, local: Local) -> None:
        self.local, self.samples = local, [(0, local.usage())]

    def tick(self, done: int) -> None:
        """Take a sample every 200 runs."""
        if done >= self.samples[-1][0] + 200:
            self.samples.append((done, self.local.usage()))


def dispatch(console: Console, workers: int, measured: dict[str, object]) -> None:
    """Measure runs that do nothing."""
    chosen = problems(100)
    record = po.compare(chosen[0], "heft", workers=1).records[0]

    def finished(job: Job) -> Record:
        result = copy.deepcopy(record.result)
        return replace(record, fingerprint=job.fingerprint, solver=job.solver, place=job.place, result=result)

    real, execution.run_job = execution.run_job, finished
    try:
        with cluster(workers) as local, tempfile.TemporaryDirectory() as folder:
            sampler, begin = Sampler(local), time.monotonic()
            po.compare(chosen, solver_names(), dask=local.address, ledger=Path(folder) / "runs.jsonl", observer=sampler)
            seconds = time.monotonic() - begin
    finally:
        execution.run_job = real
    (first, before), (last, after) = sampler.samples[1], sampler.samples[-1]
    table = Table("process", "CPU per run", "memory after 200 runs", "more per 1,000 runs", title="dispatch")
    for name in before:
        each = (after[name][0] - before[name][0]) / (last - first)
        more = (after[name][1] - before[name][1]) / (last - first) * 1000
        table.add_row(name, f"{each * 1e3:.1f} ms", f"{before[name][1]:.0f} MiB", f"{more:.1f} MiB")
        measured[name] = each
    console.print(table)
    runs = len(chosen) * len(solver_names())
    console.print(f"{runs:,} runs in {seconds:.0f} s: {runs / seconds:.0f} per second with {os.cpu_count()} cores")


def heuristics() -> list[str]:
    """Return the solvers that are not anytime, and are not exact."""
    return [name for name in solver_names() if not (find_solver(name).info.anytime or find_solver(name).info.exact)]


def compare(console: Console, workers: int, count: int, measured: dict[str, object]) -> None:
    """Measure real runs, of which one worker's are killed."""
    chosen, names = problems(count), heuristics()
    total = count * len(names)
    with cluster(workers) as local, tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "runs.jsonl"
        killed: list[int] = []

        class Killer(Sampler):
            def tick(self, done: int) -> None:
                super().tick(done)
                if not killed and done >= total // 2:
                    killed.append(self.local.slots()[0].pid)
                    os.kill(killed[0], signal.SIGKILL)

        sampler, begin = Killer(local), time.monotonic()
        found = po.compare(chosen, names, time_limit=10, dask=local.address, ledger=ledger, observer=sampler)
        seconds, usage = time.monotonic() - begin, local.usage()
        lines = Counter(record.key for record in read_ledger(ledger))
    start = sampler.samples[0][1]
    used = usage["workers"][0] - start["workers"][0]
    walls, verdicts = [record.wall for record in found.records], Counter(row["verdict"] for row in found.rows())
    # The workers share the cores of this machine; on a cluster each has its own.
    measured["runs"] = tuple(wall * used / sum(walls) for wall in walls)
    table = Table("figure", "value", title="compare")
    for name, value in (
        ("runs", f"{total:,} of {len(names)} heuristics on {count} problems"),
        ("elapsed", f"{seconds:.0f} s, {total / seconds:.1f} runs per second with {os.cpu_count()} cores"),
        ("wall time of a run", f"{np.median(walls):.2f} s in the middle, {max(walls):.2f} s the longest"),
        ("CPU of a run", f"at least {used / total:.2f} s (without that of the killed worker)"),
        ("client", f"{usage['client'][0] - start['client'][0]:.1f} s of CPU, {usage['client'][1]:.0f} MiB"),
        ("scheduler", f"{usage['scheduler'][0] - start['scheduler'][0]:.1f} s of CPU, {usage['scheduler'][1]:.0f} MiB"),
        ("workers", f"{usage['workers'][1]:.0f} MiB together, {start['workers'][1]:.0f} MiB at first"),
        ("killed worker", f"process {killed[0]}, after {total // 2} runs"),
        ("verdicts", ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())),
    ):
        table.add_row(name, value)
    console.print(table)
    assert len(lines) == total
    assert set(lines.values()) == {1}
    assert not any(record.status == "lost" for record in found.records)


def solve(console: Console, workers: int, seconds: int, measured: dict[str, object]) -> None:
    """Solve one large problem with and without workers."""
    problem = irregular_problem(10_000, 60, seed=0)
    table = Table("on", "time limit", "CPU", "makespan", "gap", "found by", title="solve, 10,000 tasks on 60 devices")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        path.write_text(json.dumps(irregular_document(10_000, 60, seed=0)))
        for count, limit in ((0, seconds), (0, 4 * seconds), (1, 4 * seconds), (workers, seconds)):
            if count:
                with cluster(count) as local:
                    before = local.usage()["workers"][0]
                    result, cpu = _solved(path, limit, local.address)
                    cpu += local.usage()["workers"][0] - before
            else:
                result, cpu = _solved(path, limit, None)
            on = f"one process and {count} worker{'s' * (count > 1)}" if count else "one process"
            figures = f"{limit} s", f"{cpu:.0f} s", f"{result['objective']:,}", f"{result['gap']:.2%}"
            table.add_row(on, *figures, result["stats"]["found by"])
    console.print(table)
    start = find_solver("peft").solve(problem, po.Options(), find_solver("peft").settings_type()).schedule
    state, begin = State(problem, start), time.process_time()
    found = [moves.change_of(state, *each, start) for each in moves.ranges(problem.n_tasks, workers, 0)]
    moves.joined(State(problem, start), found)
    measured["gap"] = time.process_time() - begin
    console.print(
        f"sent once per worker: the problem, {len(pack(problem)):,} bytes; per round: a schedule, "
        f"{len(pickle.dumps(start)):,} bytes; between two rounds: {measured['gap'] * 1e3:.0f} ms on this machine"
    )


def _solved(path: Path, limit: int, dask: str | None) -> tuple[dict, float]:
    """Run the command; return its result and its CPU seconds."""
    command = [sys.executable, "-m", "placeopt", "solve", str(path), "--solver", "auto", "--json"]
    command += ["--time-limit", str(limit), "--workers", "1", *(["--dask", dask] if dask else [])]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(done.stdout), used


def simulated_comparison(lengths: Sequence[float], runs: int, workers: int, dispatching: float) -> float:
    """Return the efficiency of a comparison: the work of its runs, divided by the workers' time until the last ends.

    Runs are drawn from the measured lengths. They are dispatched one after the other, `dispatching` seconds each, in
    order, to the worker that is free first.
    """
    drawn = np.random.default_rng(0).choice(np.array(lengths), runs)
    free = [0.0] * workers
    for k, length in enumerate(drawn.tolist()):
        heapq.heapreplace(free, max(free[0], k * dispatching) + length)
    return float(drawn.sum() / (workers * max(free)))


def round_efficiency(workers: int, seconds: float, gap: float, per_job: float, sent: float) -> float:
    """Return the efficiency of a round of ranges: the time of its searches, divided by the time until the next round.

    Between two rounds, the client joins the results and submits a job per worker, and each worker receives the
    schedule from another one, in a chain of log2(workers) steps.
    """
    moving = sent / BANDWIDTH * (1 + np.log2(workers))
    return float(seconds / (seconds + gap + workers * per_job + moving))


def model(console: Console, measured: dict[str, object]) -> None:
    """Compute what more workers would gain."""
    per_run, lengths = max(measured["client"], measured["scheduler"]), measured["runs"]
    searches = [10.0 + mean(lengths)]
    names = "compare, heuristics", "10 x the runs", "runs of 10 s", "solve"
    table = Table("workers", *names, title="efficiency")
    for workers in (8, 100, 1000):
        seconds = max(_restarts.SECONDS, _restarts.PER_SLOT * workers)
        shares = (
            simulated_comparison(lengths, 45_000, workers, per_run),
            simulated_comparison(lengths, 450_000, workers, per_run),
            simulated_comparison(searches, 45_000, workers, per_run),
            round_efficiency(workers, seconds, measured["gap"], per_run, SCHEDULE),
        )
        table.add_row(f"{workers:,}", *(f"{share:.0%}" for share in shares))
    console.print(f"{per_run * 1e3:.1f} ms to dispatch a run; runs of {mean(lengths):.2f} s, 45,000 unless stated")
    console.print(table)


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--problems", type=int, default=25)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    chosen = options.parts or PARTS
    if set(chosen) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    console, measured = Console(width=150), dict(MEASURED)
    for part, run in (
        ("dispatch", lambda: dispatch(console, options.workers, measured)),
        ("compare", lambda: compare(console, options.workers, options.problems, measured)),
        ("solve", lambda: solve(console, options.workers, options.seconds, measured)),
        ("model", lambda: model(console, measured)),
    ):
        if part in chosen:
            run()


if __name__ == "__main__":
    main()
