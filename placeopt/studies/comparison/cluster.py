"""Run jobs on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placeopt.errors import MissingExtraError, UsageError
from placeopt.studies.comparison.supervisor import kill_marked

if TYPE_CHECKING:
    from distributed import Client

CONNECTING = 30.0
"""Time limit for the scheduler's answer, in seconds."""

AHEAD = 3
"""Jobs submitted per thread of the cluster: enough to keep it busy without sending all problems at once."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask cluster that runs jobs.

    When a worker dies, Dask gives its jobs to another one. placeopt and the compared solvers must be installed on the
    workers' machines.
    """

    client: Client

    @property
    def executor(self) -> Executor:
        """The executor of the cluster."""
        executor: Executor = self.client.get_executor(pure=False)
        return executor

    @property
    def in_flight(self) -> int:
        """Maximum number of submitted jobs."""
        threads: dict[str, int] = self.client.nthreads()
        return AHEAD * max(sum(threads.values()), 1)

    def stop(self, tag: str) -> None:
        """Kill the processes with the tag on every worker's machine."""
        self.client.run(kill_marked, tag)


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
        from distributed import Client
        from distributed.comm.addressing import resolve_address
    except ImportError:
        raise MissingExtraError("--dask needs Dask: pip install 'placeopt[dask]'") from None
    try:
        resolve_address(address)  # after a Client rejects its address, the process does not end
        client = Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--dask {address}: no scheduler answers: {error}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECTING)
        except TimeoutError:
            raise UsageError(f"--dask {address}: the cluster has no worker") from None
        yield Cluster(client)
