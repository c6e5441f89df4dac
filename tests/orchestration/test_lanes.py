"""Lanes keep the slots of a pool busy, and what jobs share is sent once."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Options, Termination
from placeopt.protocol.pool import Lanes, Pool, Shared
from placeopt.protocol.remote import Parcel, pack, shared_problem, submitted


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Three threads that run jobs."""
    with ThreadPoolExecutor(3) as executor:
        yield executor


@pytest.fixture(scope="module")
def problem() -> Problem:
    """A small problem."""
    return irregular_problem(30, 3, seed=1)


def until(met: Any) -> None:
    """Wait until a condition is met."""
    end = time.monotonic() + 30
    while not met():
        assert time.monotonic() < end
        time.sleep(0.005)


class TestLanes:
    def test_each_slot_runs_one_job_at_a_time_and_new_slots_get_lanes(self, threads: ThreadPoolExecutor) -> None:
        slots, running, most = 2, 0, 0
        lock, found = threading.Lock(), []

        def job(lane: int) -> int:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.005)
            with lock:
                running -= 1
            return lane

        pool = Pool(threads, lambda: slots)
        with Lanes(pool, lambda lane: pool.submit(job, lane), lambda lane, result: found.append((lane, result))):
            until(lambda: len(found) > 4)
            assert {lane for lane, _ in found} <= {0, 1}
            assert most <= 2
            slots = 3
            until(lambda: (2, 2) in found)
        assert all(lane == result for lane, result in found)
        assert pool.note() == ""

    def test_a_lane_pauses_after_a_lost_job(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("placeopt.protocol.pool.PAUSE", 0.05)
        sent: list[float] = []

        class Broken(Executor):
            def submit(self, *_: Any, **__: Any) -> Future[Any]:
                sent.append(time.monotonic())
                raise BrokenExecutor("all workers are gone")

        pool, found = Pool(Broken(), lambda: 1), []
        with Lanes(pool, lambda _: pool.submit(int), lambda _, result: found.append(result)):
            until(lambda: len(found) > 2)
        assert found == [None] * len(found)
        assert all(after - before >= 0.05 for before, after in pairwise(sent))
        assert pool.note().endswith("jobs of the cluster were lost: BrokenExecutor: all workers are gone")

    def test_in_the_end_jobs_are_cancelled(self) -> None:
        open_: list[Future[Any]] = []

        class Waiting(Executor):
            def submit(self, *_: Any, **__: Any) -> Future[Any]:
                open_.append(Future())
                return open_[-1]

        pool = Pool(Waiting(), lambda: 2)
        with Lanes(pool, lambda _: pool.submit(int), lambda *_: None):
            until(lambda: len(open_) == 2)
        assert all(future.cancelled() for future in open_)

    def test_jobs_are_lost_while_the_pool_cannot_be_reached(self) -> None:
        open_: list[Future[Any]] = []

        class Waiting(Executor):
            def submit(self, *_: Any, **__: Any) -> Future[Any]:
                open_.append(Future())
                return open_[-1]

        pool, found = Pool(Waiting(), lambda: 0 if open_ else 1), []
        with Lanes(pool, lambda _: pool.submit(int), lambda _, result: found.append(result)):
            until(lambda: found)
        assert found == [None]
        assert open_[0].cancelled()
        assert "no worker can be reached" in pool.note()

    def test_an_error_of_the_caller_is_raised(self) -> None:
        def fail(_: int) -> None:
            raise ZeroDivisionError("of the caller")

        with Lanes(Pool(ThreadPoolExecutor(1), lambda: 1), fail, lambda *_: None) as found:
            until(lambda: found._error)
            with pytest.raises(ZeroDivisionError, match="of the caller"):
                found.check()


class TestSharing:
    def test_a_parcel_is_unpacked_once(self, problem: Problem) -> None:
        parcel = Parcel(pack(problem))
        assert parcel.problem is parcel.problem
        again = pickle.loads(pickle.dumps(parcel))
        assert again._problem is None
        assert again.problem.fingerprint() == problem.fingerprint()

    def test_jobs_share_a_problem(self, problem: Problem, threads: ThreadPoolExecutor) -> None:
        pool = Pool(threads, lambda: 3)
        sent = shared_problem(pool, problem)
        jobs = [submitted(pool, identity, sent, Options(seed=seed)) for seed in range(4)]
        assert len({future.result().stats["id"] for future in jobs}) == 1

    def test_without_a_scheduler_arguments_are_copied(self, problem: Problem) -> None:
        def gone(*_: Any) -> Any:
            raise OSError("no scheduler")

        pool = Pool(ThreadPoolExecutor(1), lambda: 1, keep=gone)
        assert pool.share(len, "abc") == Shared(3)
        start = Shared(Schedule([0], [0]))
        assert submitted(pool, started, problem, Options(), start).result().schedule is start.argument


def identity(problem: Problem, options: Options) -> Answer:
    """The identity of the problem where the job runs."""
    time.sleep(0.01 * options.seed)
    return Answer(Termination.COMPLETED, stats={"id": id(problem)})


def started(_: Problem, options: Options) -> Answer:
    """The schedule to start from."""
    return Answer(Termination.COMPLETED, options.initial)
