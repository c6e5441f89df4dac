"""The service in a thread of the test, and a client for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from placeopt.cli.service.limits import Limits
from placeopt.cli.service.server import server

PROBLEMS = Path(__file__).parents[2] / "problems"
HEFT_10 = (PROBLEMS / "heft-10.yaml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The text of a refusal: one line, without a traceback."""
        text: str = self.data["error"]
        assert len(text.splitlines()) == 1, text
        assert "Traceback" not in text
        return text


@dataclass(frozen=True)
class Client:
    url: str

    @property
    def place(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def ask(self, path: str, body: str | bytes | None = None, method: str | None = None, **headers: str) -> Answer:
        """Ask for a path; with a body, the method is POST."""
        connection = HTTPConnection(*self.place, timeout=60)
        try:
            data = body.encode() if isinstance(body, str) else body
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method or ("GET" if body is None else "POST"), path, data, named)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def submit(self, spec: str = HEFT_10, query: str = "solver=heft", **headers: str) -> dict[str, Any]:
        """Submit a job and return it."""
        answer = self.ask(f"/api/jobs?{query}", spec, **headers)
        assert answer.status == 202, answer.body
        job: dict[str, Any] = answer.data
        assert answer.headers["location"] == f"/api/jobs/{job['id']}"
        return job

    def events(self, id: str, **headers: str) -> list[tuple[str, Any]]:
        """All events of a job, once it has ended."""
        text = self.ask(f"/api/jobs/{id}/events", **headers).body.decode()
        blocks = [
            dict(line.split(": ", 1) for line in part.splitlines()) for part in text.split("\n\n") if part[:2] == "id"
        ]
        return [(block["event"], json.loads(block["data"])) for block in blocks]

    def solve(self, spec: str = HEFT_10, query: str = "solver=heft") -> dict[str, Any]:
        """Submit a job and return it as it is at its end."""
        name, job = self.events(self.submit(spec, query)["id"])[-1]
        assert name == "finished"
        found: dict[str, Any] = job
        return found

    def wait_until(self, id: str, state: str) -> dict[str, Any]:
        """Wait until a job is in a state."""
        end = time.monotonic() + 60
        while (job := self.ask(f"/api/jobs/{id}").data)["state"] != state:
            assert time.monotonic() < end, job
            time.sleep(0.02)
        found: dict[str, Any] = job
        return found


@contextmanager
def running(limits: Limits | None = None, *, token: str | None = None, host: str = "127.0.0.1") -> Iterator[Client]:
    """A client of a service that runs in this process."""
    address: list[str] = []
    begun = threading.Event()

    def say(text: str) -> None:
        address.append(text)
        begun.set()

    made = server(host, 0, token, limits or Limits(jobs=2), say)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    assert begun.wait(60)
    try:
        yield Client(address[0].replace("0.0.0.0", "127.0.0.1"))
    finally:
        made.should_exit = True
        thread.join(60)
    assert not thread.is_alive()
