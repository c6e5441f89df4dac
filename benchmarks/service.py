"""Measure the service: heft on 300 tasks over HTTP, with 1, 20 and 200 clients at once.

    python benchmarks/service.py [--jobs N]

The instance is `layered_document` with 300 tasks, 4 devices, seed 0 and CCR 1, as JSON. `placeopt serve` runs in a
separate process, by default with a worker for each core, and so do the clients, on the same machine. Each client
submits the spec, follows the events to the end, and repeats that until all have made 400 requests in all. `solves`
waits for the results, `checks` only checks the spec. The table lists requests per second, the median and the 95th
percentile of seconds from the request to its answer (of a solve: to the event `finished`), and failed requests. The
last line states the main memory of the service and its processes after the run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import psutil
from rich.console import Console
from rich.table import Table

from placeopt.generate.layered_graphs import layered_document

REQUESTS = 400
CLIENTS = (1, 20, 200)


class Connection:
    """Requests of one client; each opens its own connection, as most scripts do."""

    def __init__(self, host: str, port: int) -> None:
        self.place = host, port

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of an answer."""
        reader, writer = await asyncio.open_connection(*self.place, limit=2**24)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


async def solve(connection: Connection, body: bytes) -> bool:
    """Solve the spec and wait for the last event."""
    status, answer = await connection.ask("POST", "/api/jobs?solver=heft", body)
    if status != 202:
        return False
    _, events = await connection.ask("GET", f"/api/jobs/{json.loads(answer)['id']}/events")
    return b'"feasible":true' in events


async def check(connection: Connection, body: bytes) -> bool:
    """Check the spec."""
    status, answer = await connection.ask("POST", "/api/check", body)
    return status == 200 and json.loads(answer)["issues"] == []


async def measured(
    clients: int, what: Callable[[Connection, bytes], Awaitable[bool]], place: tuple[str, int], body: bytes
) -> tuple[float, list[float], int]:
    """Requests per second, seconds of each request, and the number of failed ones."""
    left, times, failed = REQUESTS, list[float](), 0

    async def client() -> None:
        nonlocal left, failed
        connection = Connection(*place)
        while left > 0:
            left -= 1
            begun = time.perf_counter()
            good = await what(connection, body)
            times.append(time.perf_counter() - begun)
            failed += not good

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return REQUESTS / (time.perf_counter() - begun), times, failed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    jobs = parser.parse_args().jobs
    body = json.dumps(layered_document(300, 4, seed=0)).encode()
    command = [sys.executable, "-m", "placeopt", "serve", "--port", "0", "--jobs", str(jobs)]
    table = Table("requests", "clients", "per second", "median s", "95% s", "failed")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            host, _, port = service.stdout.readline().strip().rpartition("//")[2].partition(":")
            place = host, int(port)
            assert asyncio.run(solve(Connection(*place), body)), "the first one starts the template of processes"
            for what in (check, solve):
                for clients in CLIENTS:
                    rate, times, failed = asyncio.run(measured(clients, what, place, body))
                    slow = statistics.quantiles(times, n=20)[-1]
                    cells = (f"{rate:.1f}", f"{statistics.median(times):.3f}", f"{slow:.3f}", str(failed))
                    table.add_row(f"{what.__name__}s", str(clients), *cells)
            family = [psutil.Process(service.pid), *psutil.Process(service.pid).children(recursive=True)]
            held = sum(each.memory_full_info().uss for each in family)
        finally:
            service.terminate()
    console = Console()
    console.print(f"{len(body):,} bytes, {jobs} jobs at once, {os.cpu_count()} cores")
    console.print(table)
    console.print(f"memory of the service after the run: {held / 2**20:.0f} MiB in {len(family)} processes")


if __name__ == "__main__":
    main()
