"""Connect to the scheduler of a Dask cluster within a time limit, and only to one with the same versions.

Dask itself waits for the first answer of a port, and for the answers of workers, without a limit. Therefore, a thread
connects, and the caller abandons it at the limit or on request. The thread first asks the scheduler without a client,
and creates the client once all answers are right.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from placeopt.errors import MissingExtraError, UsageError, listing
from placeopt.protocol.pool import TICK

if TYPE_CHECKING:
    from distributed import Client

LOG = logging.getLogger("placeopt.cluster")
"""Reports what a cluster is waited for. Without handlers, its messages go to stderr."""

CONNECTING = 10.0
"""Default time limit for the answer of the scheduler and the first worker, in seconds."""

QUIET = 1.0
"""Seconds of waiting that are not reported."""

CLOSING = 2.0
"""Time limit for leaving the cluster, in seconds."""

PACKAGES = ("python", "placeopt", "dask", "distributed")
"""Names of packages, and Python, whose versions must be the same on all machines."""

_VERSIONS = "install the same versions of Python, placeopt, dask and distributed on all machines"


def connect(address: str, limit: float, should_stop: Callable[[], bool]) -> tuple[Client, list[int]] | None:
    """Return a client of the scheduler at an address, and the threads of each worker; None once `should_stop` is true.

    Raises a MissingExtraError if Dask is not installed, and a UsageError if no scheduler with a worker answers within
    the limit, or versions differ.
    """
    try:
        from distributed import Security
    except ImportError:
        raise MissingExtraError("--dask needs Dask: pip install 'placeopt[dask]'") from None
    arguments = Security().get_connection_args("client")
    if address.startswith("tls://") and arguments.get("ssl_context") is None:
        raise UsageError(f"--dask {address}: Dask's configuration names no certificates (distributed.comm.tls)")
    attempt = _Attempt(address, limit, arguments)
    begun, reported = time.monotonic(), ""
    try:
        while not attempt.over(TICK):
            waited = time.monotonic() - begun
            if should_stop():
                return None
            if waited > limit:
                raise UsageError(attempt.failure())
            if waited > QUIET and reported != attempt.awaited:
                reported = attempt.awaited
                LOG.warning("waiting for %s of the cluster at %s, at most %g s", reported, address, limit)
        return None if should_stop() else attempt.result()
    finally:
        attempt.abandon()


class _Attempt:
    """A thread that connects."""

    def __init__(self, address: str, limit: float, arguments: Mapping[str, Any]) -> None:
        self._address, self._limit, self._arguments = address, limit, arguments
        self.awaited = "the scheduler"
        """What the thread waits for."""
        self._why = ""
        self._lock, self._abandoned = threading.Lock(), threading.Event()
        self._client: Client | None = None
        self._threads: list[int] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="connecting", daemon=True)
        self._thread.start()

    def over(self, timeout: float) -> bool:
        """Wait for the end of the thread; return whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def result(self) -> tuple[Client, list[int]]:
        """Return the client and the threads of each worker, or raise the error of the thread."""
        if self._error is not None:
            raise self._error
        assert self._client is not None
        client, self._client = self._client, None
        return client, self._threads

    def failure(self) -> str:
        """Return why the limit was reached."""
        longer = "or wait longer with --connect-limit"
        if self.awaited == "the versions":
            return (
                f"--dask {self._address}: the cluster does not state its versions within {self._limit:g} s; "
                "wait longer with --connect-limit"
            )
        if self.awaited != "the scheduler":
            return (
                f"--dask {self._address}: the cluster has no worker after {self._limit:g} s; start one with "
                f"`dask worker {self._address}`, {longer}"
            )
        why = f": {self._why}" if self._why else ""
        return (
            f"--dask {self._address}: no scheduler answers within {self._limit:g} s{why}; expected the address that "
            f"`dask scheduler` prints, {longer}"
        )

    def abandon(self) -> None:
        """Let the thread end by itself; a client that has no owner is closed."""
        with self._lock:
            self._abandoned.set()
            client, self._client = self._client, None
        if client is not None:
            close(client)

    def _run(self) -> None:
        try:
            self._connect()
        except UsageError as error:
            self._error = error
        except OSError as error:
            self._error = self._no_scheduler(_reason(error))
        except Exception:  # noqa: BLE001 - what an unknown server sends may raise anything, such as a MemoryError
            self._error = self._no_scheduler("the server at this address does not speak Dask's protocol")

    def _no_scheduler(self, why: str) -> UsageError:
        return UsageError(
            f"--dask {self._address}: no scheduler answers: {why}; expected the address that `dask scheduler` prints, "
            "such as tcp://10.0.0.1:8786"
        )

    def _connect(self) -> None:
        import asyncio

        from distributed import Client
        from distributed.comm.addressing import resolve_address

        try:
            resolved = resolve_address(self._address)  # an address that a Client rejects keeps the process from ending
        except ValueError as error:
            raise self._no_scheduler(_reason(error)) from None
        if not asyncio.run(self._asked(resolved)):
            return
        client = Client(resolved, timeout=self._limit, set_as_default=False)
        with self._lock:
            if not self._abandoned.is_set():
                self._client = client
                return
        close(client)

    async def _asked(self, resolved: str) -> bool:
        """Return whether the cluster is ready; False once the attempt is abandoned."""
        import asyncio

        task = asyncio.create_task(self._ready(resolved))
        while not task.done():
            if self._abandoned.is_set():
                return False
            await asyncio.wait([task], timeout=TICK)
        task.result()
        return True

    async def _ready(self, resolved: str) -> None:
        """Wait for the scheduler and its first worker, and check their versions."""
        import asyncio

        from distributed import rpc

        async with rpc(resolved, timeout=self._limit / 2, connection_args=self._arguments) as scheduler:
            while True:
                try:
                    kind = (await scheduler.identity())["type"]
                    break
                except OSError as error:  # it may be starting
                    self._why = _refusal(resolved) or _reason(error)
                    await asyncio.sleep(TICK)
            if kind in ("Worker", "Nanny"):
                raise UsageError(f"--dask {self._address} is a {kind.lower()}; expected the address of the scheduler")
            self.awaited = "a worker"
            while not (workers := await scheduler.ncores()):
                await asyncio.sleep(TICK)
            self._threads = list(workers.values())
            self.awaited = "the versions"
            await self._check_versions(scheduler)

    async def _check_versions(self, scheduler: Any) -> None:
        """Raise a UsageError if the scheduler or a worker has other versions; workers that do not answer are passed."""
        import asyncio

        from distributed.versions import get_versions

        extra = {"packages": ["placeopt"]}
        parts = {"the scheduler": await scheduler.versions(**extra)}
        try:
            asked = scheduler.broadcast(msg={"op": "versions", **extra}, on_error="ignore")
            answers = await asyncio.wait_for(asked, patience(self._limit))
            parts |= {f"worker {each}": found for each, found in answers.items()}
        except TimeoutError:
            LOG.warning("a worker of the cluster at %s does not answer; its versions are not checked", self._address)
        here = _relevant(get_versions(**extra))
        differences = {
            f"{where} has {_stated(name, version)}, here is {_stated(name, here[name])}"
            for where, found in parts.items()
            for name, version in _relevant(found).items()
            if version != here[name]
        }
        if differences:
            raise UsageError(
                f"--dask {self._address}: versions differ: {listing(sorted(differences), 4, '; ')}; {_VERSIONS}"
            )


def _refusal(resolved: str) -> str:
    """Return why the system cannot connect to an address, which Dask may not report; empty if it can."""
    from distributed.comm.addressing import get_address_host_port

    try:
        socket.create_connection(get_address_host_port(resolved), timeout=QUIET).close()
    except (OSError, ValueError, OverflowError) as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    """Return the type and the first line of an error."""
    return f"{type(error).__name__}: {error}".strip(": ").partition("\n")[0]


def _relevant(found: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the versions that must be the same; of Python, major and minor version."""
    packages = {name: found["packages"].get(name) for name in PACKAGES}
    return packages | {"python": ".".join(str(packages["python"]).split(".")[:2])}


def _stated(name: str, version: str | None) -> str:
    return f"no {name}" if version is None else f"{name} {version}"


def patience(limit: float) -> float:
    """Return the seconds after which a single answer is late: several attempts fit into the limit."""
    return min(max(limit / 2, 1.0), 5.0)


def limited(seconds: float, call: Callable[..., object], *arguments: Any) -> bool:
    """Make a call in a thread, and return whether it has ended within some seconds; its errors are ignored."""

    def guarded() -> None:
        try:
            call(*arguments)
        except Exception:
            LOG.debug("a call on the cluster failed", exc_info=True)

    thread = threading.Thread(target=guarded, name="cluster", daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def close(client: Client) -> None:
    """Close a client; one whose scheduler does not answer is abandoned."""
    if not limited(CLOSING, client.close):
        client.status = "closed"  # its destructor would wait
