"""Connect to a Dask cluster, whose workers run jobs."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from placeopt.model.arrays import checked_number
from placeopt.protocol.connection import CONNECTING, LOG, close, connect, limited, patience
from placeopt.protocol.pool import Pool

if TYPE_CHECKING:
    from distributed import Client

AHEAD = 3
"""Jobs submitted per thread of the cluster: enough to keep it busy without sending all problems at once."""

LARGEST = "1TB"
"""Size of shared arguments from which Dask warns."""

RECENT = 1.0
"""Seconds between two counts of the workers."""

PATIENCE = 60.0
"""Seconds without a worker, or without an answer over an open connection, after which a cluster is lost, unless its
limit is longer: managers replace dead workers, and a scheduler that imports modules does not answer."""

LOOKING = 10.0
"""Seconds between two looks for frozen workers."""

KILLING = 3.0
"""Time limit for killing processes on all workers, in seconds."""


class Cluster:
    """A Dask cluster that runs jobs.

    When a worker dies, Dask gives its jobs to another one. placeopt and the solvers must be installed on the workers'
    machines.

    A thread counts the workers once per second, because the answer of a frozen scheduler never comes. Silence is the
    sum of its vain attempts rather than the time since the last answer, so that a process that was suspended itself
    takes no cluster for lost.

    Parameters
    ----------
    threads
        The number of threads of each worker.
    limit
        Seconds without a connection to the scheduler after which the cluster is lost.
    """

    def __init__(self, client: Client, threads: list[int], address: str, limit: float) -> None:
        self.client, self._address, self._limit = client, address, limit
        self._silent = self._unmanned = 0.0
        self._threads = threads
        self._seen: dict[str, tuple[float, float]] = {}
        """By worker: the last sign of life by the scheduler's clock, and since when it is the last by our clock."""
        self._frozen: set[str] = set()
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="cluster", daemon=True).start()

    @property
    def executor(self) -> Executor:
        """The executor of the cluster."""
        executor: Executor = self.client.get_executor(pure=False)
        return executor

    def in_flight(self) -> int:
        """Return the maximum number of submitted jobs; it follows a cluster that grows or shrinks."""
        return AHEAD * self.slots()

    def pool(self) -> Pool:
        """Return the threads of all workers as slots."""
        return Pool(self.executor, self.slots, threads=min(self._threads, default=1), keep=self.keep)

    def keep(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on a worker, and return the future of its value, which may be an argument of jobs.

        The scheduler keeps the arguments until the future is released, and repeats the call if the value is lost.
        """
        import dask

        # Dask warns of large arguments, because most callers send them with every job.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGEST}):
            return self.client.submit(function, *arguments, pure=False)

    def slots(self) -> int:
        """Return the number of threads of all workers; 0 while the scheduler cannot be reached."""
        return sum(self._threads) if self._connected and self.lost() is None else 0

    def lost(self) -> str | None:
        """Return why no further result is expected; None if results are."""
        if self._silent >= (self._patience if self._connected else self._limit):
            return f"the cluster at {self._address} is lost: its scheduler has not answered for {self._silent:.0f} s"
        if self._unmanned >= self._patience:
            return f"the cluster at {self._address} is lost: it has had no worker for {self._unmanned:.0f} s"
        return None

    @property
    def _patience(self) -> float:
        return max(self._limit, PATIENCE)

    @property
    def _connected(self) -> bool:
        return str(self.client.status) == "running"

    def kill(self, kill: Callable[[str], None], tag: str) -> None:
        """Call a function on all workers that kills the processes with a tag; wait for it, but not for frozen ones."""
        if self.slots() and not self._silent:
            limited(KILLING, self.client.run, kill, tag)

    def close(self) -> None:
        """Leave the cluster."""
        self._over.set()
        close(self.client)

    def _watch(self) -> None:
        """Count the workers until the cluster is closed."""
        pause, late = min(RECENT, self._limit / 4), patience(self._limit)
        looked = time.monotonic()
        while not self._over.wait(pause):
            begun = time.monotonic()
            try:
                counted: dict[str, int] = self.client.nthreads(callback_timeout=late)
                if begun - looked >= min(LOOKING, PATIENCE / 2):
                    looked = begun
                    self._look_for_frozen(late)
            except Exception:  # noqa: BLE001 - a connection, or a client, that is closed meanwhile
                self._report(self._silent, "the scheduler", self._patience if self._connected else self._limit)
                self._silent += pause + min(time.monotonic() - begun, late)
                continue
            self._threads, self._silent = list(counted.values()), 0.0
            if self._threads:
                self._unmanned = 0.0
            else:
                self._report(self._unmanned, "a worker", self._patience)
                self._unmanned += pause

    def _look_for_frozen(self, late: float) -> None:
        """Report once each worker that is connected but gives no sign of life; Dask removes it only minutes later."""
        found = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=late)
        now = time.monotonic()
        signs = {address: worker["last_seen"] for address, worker in found["workers"].items()}
        before = self._seen
        self._seen = {
            address: before[address] if address in before and before[address][0] == sign else (sign, now)
            for address, sign in signs.items()
        }
        frozen = {address for address, (_, since) in self._seen.items() if now - since >= PATIENCE}
        for address in sorted(frozen - self._frozen):
            LOG.warning(
                "worker %s of the cluster at %s has not answered for %.0f s; its jobs wait until it answers or is "
                "killed, or until Dask removes it: by default after 5 to 10 min (distributed.scheduler.worker-ttl)",
                address,
                self._address,
                now - self._seen[address][1],
            )
        self._frozen = frozen

    def _report(self, waited: float, awaited: str, limit: float) -> None:
        """Report once what the cluster is waited for."""
        if not waited and not self._over.is_set():
            LOG.warning("waiting for %s of the cluster at %s, at most %g s", awaited, self._address, limit)


@contextmanager
def connected(
    address: str, limit: float = CONNECTING, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[Cluster | None]:
    """Connect to the cluster of a scheduler's address, such as tcp://10.0.0.1:8786.

    Yields None if `should_stop` is true before the cluster has answered.

    Raises
    ------
    MissingExtraError, UsageError
        As `placeopt.protocol.connection.connect`.
    """
    limit = checked_number("connect_limit", limit, positive=True) or CONNECTING
    answer = connect(address, limit, should_stop)
    if answer is None:
        yield None
        return
    log = logging.getLogger("distributed.client")
    log.addFilter(_unwanted)
    try:
        cluster = Cluster(*answer, address, limit)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        log.removeFilter(_unwanted)


def _unwanted(record: logging.LogRecord) -> bool:
    """Pass no message of Dask about lost connections: `Cluster` reports them."""
    return "reconnect" not in record.msg


@contextmanager
def pool_at(
    address: str | None, limit: float = CONNECTING, should_stop: Callable[[], bool] | None = None
) -> Iterator[Pool | None]:
    """Connect to the cluster of a scheduler's address, and yield its pool; None without an address, or as `connected`.

    Raises
    ------
    MissingExtraError, UsageError
        As `connected`.
    """
    if address is None:
        yield None
        return
    with connected(address, limit, should_stop or (lambda: False)) as cluster:
        yield None if cluster is None else cluster.pool()


def abandoned() -> Callable[[], bool]:
    """Return a function that states whether the cluster still wants the job that runs in this thread."""
    if "distributed" not in sys.modules:
        return lambda: False
    from distributed import get_worker

    try:
        worker = get_worker()
        key = worker.get_current_task()
    except ValueError:  # not in a worker
        return lambda: False

    def cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return cancelled
