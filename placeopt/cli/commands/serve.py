"""placeopt serve: solve problems over HTTP, with a page to edit and solve them."""

from __future__ import annotations

import os
import socket
from typing import Annotated

from typer import Option

from placeopt.cli.arguments import check_count, seconds, size_bytes
from placeopt.cli.options import count_option
from placeopt.cli.output import print_notes
from placeopt.errors import UsageError, visible

LOCAL = ("localhost", "127.0.0.1", "::1")


def serve(
    host: Annotated[
        str, Option("--host", help="The address to listen at; state a token for others than localhost.")
    ] = ("127.0.0.1"),
    port: Annotated[int, count_option("--port", help="The port; 0 takes a free one.")] = 8080,
    token: Annotated[
        str | None,
        Option("--token", envvar="PLACEOPT_TOKEN", help="What clients must send as `Authorization: Bearer TOKEN`."),
    ] = None,
    jobs: Annotated[
        int | None, count_option("--jobs", help="Jobs that run at once, each on one core; by default one per core.")
    ] = None,
    queue: Annotated[int, count_option("--queue", help="Jobs that may wait.")] = 250,
    keep: Annotated[int, count_option("--keep", help="Ended jobs whose results stay in memory.")] = 200,
    connections: Annotated[int, count_option("--max-connections", help="Connections at once.")] = 500,
    max_body: Annotated[str, Option("--max-body", metavar="SIZE", help="Size of a request.")] = "1 MB",
    max_tasks: Annotated[int, count_option("--max-tasks", help="Tasks of a problem.")] = 5000,
    max_devices: Annotated[int, count_option("--max-devices", help="Devices of a problem, with its teams.")] = 500,
    max_seconds: Annotated[str, Option("--max-seconds", metavar="TIME", help="Time limit of a job.")] = "60",
    max_memory: Annotated[
        str, Option("--max-memory", metavar="SIZE", help="Main memory that the process of a job may hold.")
    ] = "2 GiB",
) -> None:
    """Serve an HTTP API and a page that solve problems; needs the extra `serve`."""
    from placeopt.bridges.extras import require

    for module in ("starlette", "uvicorn"):
        require(module, "serve", "the service and its page")
    from placeopt.cli.service.limits import Limits
    from placeopt.cli.service.server import server

    if not 0 <= port < 2**16:
        raise UsageError(f"--port is {port}; expected a number from 0 to 65535")
    if token is not None and (not token or not token.isascii() or any(c.isspace() for c in token)):
        raise UsageError("--token must be ASCII text without spaces; expected the output of `openssl rand -hex 16`")
    counts = {
        "--jobs": jobs, "--queue": queue, "--keep": keep, "--max-connections": connections, "--max-tasks": max_tasks,
        "--max-devices": max_devices,
    }  # fmt: skip
    for name, count in counts.items():
        check_count(name, count)
    limit = seconds(max_seconds, "--max-seconds")
    assert limit is not None
    limits = Limits(
        body=size_bytes(max_body, "--max-body"), tasks=max_tasks, devices=max_devices, seconds=limit,
        memory=size_bytes(max_memory, "--max-memory"), jobs=jobs or os.cpu_count() or 1, queue=queue, kept=keep,
        connections=connections,
    )  # fmt: skip
    check_address(host, port)
    if host not in LOCAL and token is None:
        print_notes(f"without --token, everyone who reaches {host} can use this service")
    server(host, port, token, limits, lambda address: print(f"placeopt serves {address}", flush=True)).run()


def check_address(host: str, port: int) -> None:
    """Raise a UsageError if the service cannot listen there: the server itself would only log that."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                if os.name == "posix":  # as the server does: addresses of connections that have ended are free
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        raise UsageError(f"cannot listen at {visible(host)}, port {port}: {error.strerror}") from None
