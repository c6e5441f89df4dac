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

from placeopt.errors import MissingExtraError, UsageError
from placeopt.solver.pool import Pool

if TYPE_CHECKING:
    from distributed import Client

CONNECTING = 30.0
"""Time limit for the scheduler's answer, in seconds."""

AHEAD = 3
"""Jobs submitted per thread of the cluster: enough to keep it busy without sending all problems at once."""

LARGEST = "1TB"
"""Size of shared arguments from which Dask warns."""

RECENT = 1.0
"""Seconds for which the number of slots is not requested again."""


class Cluster:
    """A Dask cluster that runs jobs.

    When a worker dies, Dask gives its jobs to another one. placeopt and the solvers must be installed on the workers'
    machines.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._lock = threading.Lock()
        self._slots, self._counted = 0, -RECENT

    @property
    def executor(self) -> Executor:
        """The executor of the cluster."""
        executor: Executor = self.client.get_executor(pure=False)
        return executor

    def in_flight(self) -> int:
        """Return the maximum number of submitted jobs; it follows a cluster that grows or shrinks."""
        return AHEAD * max(self.slots(), 1)

    def pool(self) -> Pool:
        """Return the threads of all workers as slots."""
        return Pool(self.executor, self.slots, threads=min(self._threads(), default=1), keep=self.keep)

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
        if self.client.status != "running":
            return 0
        with self._lock:
            if time.monotonic() - self._counted >= RECENT:
                try:
                    self._slots = sum(self._threads())
                except (OSError, TimeoutError):
                    return 0
                self._counted = time.monotonic()
            return self._slots

    def _threads(self) -> list[int]:
        """Return the number of threads of each worker."""
        threads: dict[str, int] = self.client.nthreads()
        return list(threads.values())


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to the cluster of a scheduler's address, such as tcp://10.0.0.1:8786.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    UsageError
        If the scheduler does not answer, or has no worker.
    """
    try:
        from distributed import Client, Security
        from distributed.comm.addressing import resolve_address
    except ImportError:
        raise MissingExtraError("--dask needs Dask: pip install 'placeopt[dask]'") from None
    if address.startswith("tls://") and Security().get_connection_args("client").get("ssl_context") is None:
        raise UsageError(f"--dask {address}: Dask's configuration names no certificates (distributed.comm.tls)")
    try:
        resolve_address(address)  # after a Client rejects its address, the process does not end
        client = Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--dask {address}: no scheduler answers: {error}") from None
    log = logging.getLogger("distributed.client")

    def wanted(record: logging.LogRecord) -> bool:  # noqa: ARG001 - as logging requires
        return client.status not in ("closing", "closed")  # Dask logs that it ends its attempts to connect again

    log.addFilter(wanted)
    try:
        with client:
            try:
                client.wait_for_workers(1, timeout=CONNECTING)
            except TimeoutError:
                raise UsageError(f"--dask {address}: the cluster has no worker") from None
            yield Cluster(client)
    finally:
        log.removeFilter(wanted)


@contextmanager
def pool_at(address: str | None) -> Iterator[Pool | None]:
    """Connect to the cluster of a scheduler's address, and yield its pool; None without an address.

    Raises
    ------
    MissingExtraError, UsageError
        As `connected`.
    """
    if address is None:
        yield None
        return
    with connected(address) as cluster:
        yield cluster.pool()


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
