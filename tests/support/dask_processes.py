"""A Dask cluster whose processes tests may kill and stop."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from placeopt.protocol.cluster import connected


@dataclass(frozen=True)
class Processes:
    """A scheduler and a worker with one thread."""

    address: str
    scheduler: subprocess.Popen[bytes]
    worker: subprocess.Popen[bytes]


@contextmanager
def dask_processes() -> Iterator[Processes]:
    """Start a scheduler and a worker, and wait until they are ready; both are killed in the end."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    scheduler = _started("scheduler", "--host", "127.0.0.1", "--port", str(port))
    worker = _started("worker", address, "--nthreads", "1", "--no-nanny")
    try:
        with connected(address, 60):
            pass
        yield Processes(address, scheduler, worker)
    finally:
        for each in (scheduler, worker):
            each.kill()
            each.wait()


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _started(kind: str, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--no-dashboard"]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)
