"""Connecting to a cluster: it has a limit, states what it waits for, and ends on request."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from dask_processes import free_port

import placeopt as po
from placeopt.errors import UsageError
from placeopt.protocol import Termination, connection

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'placeopt[dask]'")

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask itself

FIVE = Path(__file__).parents[2] / "problems" / "five-node.yaml"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a port that accepts connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a port that sends the bytes of the parameter, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):  # the server is closed
                while True:
                    with closing(server.accept()[0]) as connection:
                        connection.sendall(request.param)
                        connection.shutdown(socket.SHUT_WR)

        threading.Thread(target=answer, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def cluster(n_workers: int) -> Any:
    """A cluster in threads of this process."""
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address=None, silence_logs=50,
    )  # fmt: skip


def test_a_silent_port_has_a_limit(silent: str, caplog: pytest.LogCaptureFixture) -> None:
    problem = po.load(FIVE)
    for use in (
        lambda: po.solve(problem, "auto", time_limit=1, dask=silent, connect_limit=1.5),
        lambda: po.bounds(problem, dask=silent, connect_limit=0.3),
        lambda: po.compare(problem, "heft", dask=silent, connect_limit=0.3),
    ):
        with pytest.raises(UsageError, match=r"--dask tcp://.*: no scheduler answers within .* --connect-limit"):
            use()
    assert [record.getMessage() for record in caplog.records if record.name == "placeopt.cluster"] == [
        f"waiting for the scheduler of the cluster at {silent}, at most 1.5 s"
    ]


def test_a_stop_ends_the_connecting(silent: str) -> None:
    problem = po.load(FIVE)
    result = po.solve(problem, "auto", dask=silent, connect_limit=600, should_stop=lambda: True)
    assert (result.termination, result.schedule) == (Termination.INTERRUPTED, None)
    assert result.message == "stopped while connecting to the cluster"
    assert po.bounds(problem, dask=silent, connect_limit=600, should_stop=lambda: True)
    comparison = po.compare(problem, "heft", dask=silent, connect_limit=600, should_stop=lambda: True)
    assert (len(comparison.records), comparison.expected) == (0, 1)


@pytest.mark.parametrize("command", ["solve --solver auto", "compare --solvers heft"])
def test_the_first_ctrl_c_ends_the_connecting(command: str, silent: str) -> None:
    name, *options = command.split()
    words = [sys.executable, "-m", "placeopt", name, str(FIVE), *options, "--dask", silent, "--connect-limit", "10min"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting for the scheduler of the cluster at {silent}, at most 600 s\n"
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()


def test_a_closed_port_is_named_with_the_reason() -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(UsageError, match=r"no scheduler answers within 1 s: .*refused"):
        po.compare([FIVE], "heft", dask=address, connect_limit=1)


@pytest.mark.parametrize(
    "answering",
    [b"", b"\0" * 100, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", bytes(range(255, -1, -1)) * 64],
    ids=["closed", "zeros", "http", "bytes"],
    indirect=True,
)
def test_other_servers_are_no_schedulers(answering: str) -> None:
    with pytest.raises(UsageError, match=r"--dask tcp://.*: no scheduler answers.*; expected the address"):
        po.compare([FIVE], "heft", dask=answering, connect_limit=1)
    stopped = po.compare([FIVE], "heft", dask=answering, connect_limit=1, should_stop=lambda: True)
    assert (len(stopped.records), stopped.expected) == (0, 1)


def test_a_cluster_without_workers() -> None:
    with cluster(0) as empty, pytest.raises(UsageError, match=r"the cluster has no worker after 0\.5 s; start one"):
        po.compare([FIVE], "heft", dask=empty.scheduler_address, connect_limit=0.5)


def test_a_worker_that_comes_late(caplog: pytest.LogCaptureFixture) -> None:
    with cluster(0) as found:

        def scale() -> None:
            end = time.monotonic() + 60
            while not any("a worker" in record.getMessage() for record in caplog.records) and time.monotonic() < end:
                time.sleep(0.05)
            found.scale(1)

        with caplog.at_level(logging.WARNING):
            thread = threading.Thread(target=scale, daemon=True)
            thread.start()
            comparison = po.compare([FIVE], "heft", dask=found.scheduler_address, connect_limit=60)
        thread.join()
    assert [row["verdict"] for row in comparison.rows()] == ["feasible"]


def test_the_address_of_a_worker() -> None:
    with cluster(1) as found:
        (worker,) = found.workers.values()
        with pytest.raises(UsageError, match="is a worker; expected the address of the scheduler"):
            po.compare([FIVE], "heft", dask=worker.address)


def test_versions_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    own = distributed.versions.get_versions

    def older(packages: Any = None) -> Any:
        found = own(packages)
        return found | {"packages": found["packages"] | {"placeopt": None, "python": "3.9.1.final.0"}}

    monkeypatch.setattr(distributed.versions, "get_versions", older)  # as this side sees it
    stated = (
        r"versions differ: the scheduler has placeopt .*, here is no placeopt; the sch.* has python 3\.1\d, here is "
        r"python 3\.9; worker tcp.*; install the same versions of Python"
    )
    with cluster(1) as found, pytest.raises(UsageError, match=stated):
        po.compare([FIVE], "heft", dask=found.scheduler_address)


def test_a_cluster_that_does_not_state_its_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(connection._Attempt, "_check_versions", silent)
    stated = r"--dask tcp://.*: the cluster does not state its versions within 2 s; wait longer with --connect-limit"
    with cluster(1) as found, pytest.raises(UsageError, match=stated):
        po.compare([FIVE], "heft", dask=found.scheduler_address, connect_limit=2)
