"""Solve and bounds with a pool: the same optima as without one, regardless of how many jobs are lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from dask_processes import dask_processes
from placeopt_solvers._series import run as series_module
from placeopt_solvers._series.cuts import series_of
from placeopt_solvers._series.run import SeriesRun
from placeopt_solvers.portfolio import _restarts

import placeopt as po
from placeopt.errors import InternalError, UsageError
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Clock, Options, Termination, remote
from placeopt.protocol import cluster as cluster_module
from placeopt.protocol.cluster import abandoned
from placeopt.protocol.pool import Pool
from placeopt.protocol.registry import find_solver
from placeopt.proving.portfolio import _bounds

PROBLEMS = Path(__file__).parents[2] / "problems"


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Five blocks with four or five parallel tasks each, on two fast devices and a slow one."""
    edges, last, n = [], 0, 1
    for block in range(5):
        first, last = last, n + 4 + block % 2
        edges += [edge for i in range(n, last) for edge in ((first, i), (i, last))]
        n = last + 1
    fast = [2 + 5 * i % 7 for i in range(n)]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=["a", "b", "c"],
        duration=[[each, each, each + 1 + i % 3] for i, each in enumerate(fast)],
        edges=edges,
        payload=[1 + i % 4 for i in range(len(edges))],
        byte_ticks_num=[[1] * 3] * 3,
        byte_ticks_den=[[1] * 3] * 3,
    )


@pytest.fixture(scope="module")
def best(problem: Problem) -> int:
    """The optimum, by CP-SAT on the whole."""
    found = po.solve(problem, "cp-sat", series=False, time_limit=60)
    assert found.termination is Termination.OPTIMAL
    assert found.makespan is not None
    return found.makespan


class Unreliable(Executor):
    """Runs jobs in threads, except that `fate` decides about each by its number."""

    def __init__(self, fate: Callable[[int], str]) -> None:
        self._threads, self._fate = ThreadPoolExecutor(3), fate
        self.jobs: list[Callable[..., Any]] = []
        self.waiting: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a job, unless its fate is another one."""
        self.jobs.append(fn)
        fate = self._fate(len(self.jobs))
        if fate == "refused":
            raise BrokenExecutor("all workers are gone")
        if fate == "run":
            return self._threads.submit(fn, *args, **kwargs)
        future: Future[Any] = Future()
        if fate == "dies":
            future.set_exception(BrokenExecutor("its worker died\nand more"))
        elif fate == "cancelled":
            future.cancel()
        else:
            self.waiting.append(future)
        return future


class TestPools:
    """Pools whose executor is a part of this process."""

    @pytest.mark.parametrize("name", ["series", "cp-sat", "auto"])
    def test_all_jobs_end(self, name: str, problem: Problem, best: int) -> None:
        executor = Unreliable(lambda _: "run")
        pool = Pool(executor, lambda: 3)
        answer = solved(name, problem, pool)
        assert (answer.termination, answer.bound) == (Termination.OPTIMAL, best)
        assert len(executor.jobs) >= 2
        assert pool.note() == ""

    def test_attempts_end_while_a_path_is_found(
        self, problem: Problem, best: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = series_module.shortest_path

        def slow(*arguments: Any) -> Any:
            path = found(*arguments)
            time.sleep(0.1)
            return path

        monkeypatch.setattr(series_module, "shortest_path", slow)
        series = find_solver("series")
        pool = Pool(Unreliable(lambda _: "run"), lambda: 3)
        options = Options(time_limit=60, workers=1, pool=pool)
        answer = series.solve(problem, options, series.settings_type(whole=False))
        assert (answer.termination, answer.bound) == (Termination.OPTIMAL, best)

    @pytest.mark.parametrize("fate", ["dies", "cancelled", "refused"])
    @pytest.mark.parametrize("share", [1, 2])
    def test_lost_jobs_cost_nothing_but_time(self, fate: str, share: int, problem: Problem, best: int) -> None:
        executor = Unreliable(lambda number: "run" if number % share else fate)
        pool = Pool(executor, lambda: 2)
        answer = solved("series", problem, pool)
        assert (answer.termination, answer.bound) == (Termination.OPTIMAL, best)
        assert executor.jobs
        assert "of the cluster" in pool.note()
        why = {"dies": "BrokenExecutor: its worker died", "cancelled": "cancelled by the scheduler",
               "refused": "BrokenExecutor: all workers are gone"}  # fmt: skip
        assert pool.note().endswith(f"lost: {why[fate]}")

    def test_a_pool_that_is_gone(self, problem: Problem, best: int) -> None:
        executor = Unreliable(lambda _: "waits")
        pool = Pool(executor, lambda: 0 if executor.jobs else 2)
        answer = solved("series", problem, pool)
        assert (answer.termination, answer.bound) == (Termination.OPTIMAL, best)
        assert len(executor.jobs) <= 5  # a path has five blocks
        assert all(future.cancelled() for future in executor.waiting)
        assert "lost: no worker can be reached" in pool.note()

    @pytest.mark.parametrize("name", ["series", "auto"])
    def test_a_stop_cancels_the_jobs(self, name: str, problem: Problem) -> None:
        executor = Unreliable(lambda _: "waits")
        answer = solved(name, problem, Pool(executor, lambda: 2), should_stop=lambda: bool(executor.jobs))
        assert answer.termination is Termination.INTERRUPTED
        assert answer.schedule is not None
        assert all(future.cancelled() for future in executor.waiting)

    def test_an_error_in_the_last_attempt_is_raised(self, problem: Problem) -> None:
        begun = threading.Event()

        def fail(*_: Any) -> Answer:
            begun.set()
            time.sleep(0.5)  # until the run has ended
            raise InternalError("a wrong schedule")

        series = series_of(problem)
        assert series is not None
        pool = Pool(Unreliable(lambda _: "dies"), lambda: 2)
        run = SeriesRun(problem, Options(pool=pool, should_stop=begun.is_set), series, fail)
        with pytest.raises(InternalError, match="a wrong schedule"):
            run.answer()

    def test_the_time_limit_cancels_the_jobs(self, problem: Problem) -> None:
        executor = Unreliable(lambda _: "waits")
        answer = solved("series", problem, Pool(executor, lambda: 2), time_limit=2)
        assert answer.termination is Termination.TIME_LIMIT
        assert executor.waiting
        assert all(future.cancelled() for future in executor.waiting)

    def test_further_slots_solve_problems_off_the_path(self, problem: Problem) -> None:
        executor = Unreliable(lambda _: "waits")
        solved("series", problem, Pool(executor, lambda: 50), should_stop=lambda: len(executor.waiting) > 5)
        assert len(executor.waiting) > 5  # a path has five blocks

    def test_searches_of_auto(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_restarts, "SECONDS", 0.5)
        large = layered_problem(80, 4, ccr=2.0, device_types=2, seed=3)
        executor = Unreliable(lambda number: "run" if number % 3 else "dies")
        pool = Pool(executor, lambda: 1)
        answer = solved("auto", large, pool, workers=2, should_stop=lambda: len(executor.jobs) > 4)
        assert answer.termination is Termination.INTERRUPTED
        assert "restarts" in [member["name"] for member in answer.stats["members"]]
        assert "lost: BrokenExecutor" in pool.note()
        assert answer.varies_by

    def test_bounds(self, problem: Problem, best: int) -> None:
        executor = Unreliable(lambda _: "run")
        found = _bounds(problem, Clock(30), 1, best, None, None, True, Pool(executor, lambda: 3))
        assert found[0].value <= best
        assert "series" in [bound.name for bound in found]
        assert executor.jobs

    def test_workers_with_another_version(self, problem: Problem, best: int, monkeypatch: pytest.MonkeyPatch) -> None:
        versions = iter(range(10**6))
        monkeypatch.setattr(remote, "version_of", lambda: str(next(versions)))
        pool = Pool(Unreliable(lambda _: "run"), lambda: 2)
        answer = solved("series", problem, pool)
        assert (answer.termination, answer.bound) == (Termination.OPTIMAL, best)
        assert "lost: VersionError: placeopt" in pool.note()

    def test_outside_of_a_worker_no_job_is_abandoned(self) -> None:
        assert not abandoned()()


def solved(name: str, problem: Problem, pool: Pool, **options: Any) -> Answer:
    """The answer of a solver with a pool."""
    solver = find_solver(name)
    return solver.solve(
        problem, Options(**{"time_limit": 60, "workers": 1, "pool": pool} | options), solver.settings_type()
    )


class TestDask:
    """Real clusters."""

    pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask itself

    @pytest.fixture(scope="class")
    def cluster(self) -> Iterator[Any]:
        """Two workers in processes, with one thread each."""
        with distributed_module().LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, processes=True
        ) as found:
            yield found

    def test_the_same_optimum(self, cluster: Any, problem: Problem, best: int, monkeypatch: pytest.MonkeyPatch) -> None:
        jobs = counted_jobs(monkeypatch)
        result = po.solve(problem, "series", time_limit=60, dask=cluster.scheduler_address)
        assert (result.termination, result.makespan, result.message) == (Termination.OPTIMAL, best, "")
        assert jobs
        bounds = po.bounds(problem, time_limit=30, known=best, dask=cluster.scheduler_address)
        assert bounds[0].value <= best

    def test_commands(self, cluster: Any) -> None:
        address = cluster.scheduler_address
        done = run("solve", PROBLEMS / "inception-medium.yaml", "--solver", "series", "--dask", address)
        assert done.code == 0
        assert "optimal" in done.out
        done = run("bounds", PROBLEMS / "five-node.yaml", "--time-limit", 1, "--dask", address)
        assert done.code == 0

    def test_a_worker_is_killed(self, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        jobs = counted_jobs(monkeypatch)
        killed: list[int] = []

        def kill_one() -> None:
            end = time.monotonic() + 60
            with distributed_module().Client(cluster.scheduler_address, set_as_default=False) as client:
                while not killed and time.monotonic() < end:
                    busy = [worker for worker, tasks in client.processing().items() if tasks]
                    if jobs and busy:
                        pids = client.run(os.getpid, workers=busy[:1])
                        killed.extend(pids.values())
                        os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one)
        killer.start()
        inception = po.load(PROBLEMS / "inception.yaml")
        result = po.solve(inception, "series", time_limit=120, workers=1, dask=cluster.scheduler_address)
        killer.join()
        assert killed
        assert (result.termination, result.makespan) == (Termination.OPTIMAL, 3_785_104)

    def test_a_stop_ends_the_jobs_on_the_workers(self, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        jobs = counted_jobs(monkeypatch)
        gnmt = po.load(PROBLEMS / "gnmt.yaml")
        po.solve(
            gnmt, "auto", time_limit=600, workers=2, dask=cluster.scheduler_address, should_stop=lambda: bool(jobs)
        )
        assert jobs
        with distributed_module().Client(cluster.scheduler_address, set_as_default=False) as client:
            end = time.monotonic() + 60
            while any(client.run(running).values()):
                assert time.monotonic() < end
                time.sleep(0.1)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
    def test_the_scheduler_does_not_answer_any_more(
        self, number: signal.Signals, problem: Problem, best: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        distributed_module()
        monkeypatch.setattr(cluster_module, "PATIENCE", 3.0)
        jobs = counted_jobs(monkeypatch)
        with dask_processes() as cluster:

            def end() -> None:
                while not jobs:
                    time.sleep(0.01)
                cluster.scheduler.send_signal(number)

            threading.Thread(target=end, daemon=True).start()
            result = po.solve(problem, "series", time_limit=60, dask=cluster.address, connect_limit=2)
        assert (result.termination, result.makespan) == (Termination.OPTIMAL, best)
        assert "of the cluster" in result.message

    def test_a_frozen_worker_is_reported(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        distributed_module()
        monkeypatch.setattr(cluster_module, "PATIENCE", 3.0)

        def reported() -> list[str]:
            return [text for record in caplog.records if "has not answered" in (text := record.getMessage())]

        with dask_processes() as found, cluster_module.connected(found.address, 60):
            time.sleep(4)
            assert not reported()  # while it answers
            found.worker.send_signal(signal.SIGSTOP)
            end = time.monotonic() + 60
            while not reported():
                assert time.monotonic() < end
                time.sleep(0.1)
        (text,) = reported()
        assert text.startswith("worker tcp://127.0.0.1:")
        assert f"of the cluster at {found.address} has not answered for" in text

    def test_wrong_arguments(self, problem: Problem) -> None:
        distributed_module()
        with pytest.raises(
            UsageError, match="heft runs on this machine only; solvers that use a cluster: auto, cp-sat"
        ):
            po.solve(problem, "heft", dask="tcp://127.0.0.1:8786")
        done = run("solve", PROBLEMS / "five-node.yaml", "--solver", "auto", "--dask", "nonsense://")
        assert done.code == 2
        assert "--dask nonsense://: no scheduler answers" in done.err
        with pytest.raises(UsageError, match="Dask's configuration names no certificates"):
            po.solve(problem, "auto", dask="tls://127.0.0.1:8786")


def test_without_dask(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(po.MissingExtraError, match=r"--dask needs Dask: pip install 'placeopt\[dask\]'"):
        po.solve(problem, "auto", dask="tcp://127.0.0.1:1")


def distributed_module() -> Any:
    """Dask; tests are skipped if it is not installed."""
    return pytest.importorskip("distributed", reason="Dask is not installed: pip install 'placeopt[dask]'")


def counted_jobs(monkeypatch: pytest.MonkeyPatch) -> list[Future[Any]]:
    """The jobs that all pools submit after this call."""
    jobs: list[Future[Any]] = []
    submit = Pool.submit

    def counting(self: Pool, *arguments: Any) -> Future[Any]:
        jobs.append(submit(self, *arguments))
        return jobs[-1]

    monkeypatch.setattr(Pool, "submit", counting)
    return jobs


def running(dask_worker: Any) -> list[str]:
    """The jobs of a worker."""
    return list(dask_worker.state.tasks)
