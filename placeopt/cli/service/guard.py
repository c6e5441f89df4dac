"""Refuse requests without the token or from pages of other hosts, and disconnect slow clients."""

from __future__ import annotations

import asyncio
from hmac import compare_digest
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from placeopt.cli.service.routes import refusal
from placeopt.errors import visible

LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names of this machine for itself."""

HEADERS = 10.0
"""Seconds in which the line and the headers of a request must arrive."""

READING = 60.0
"""Seconds after which a client that reads nothing more is disconnected."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of the page: nothing comes from another host."""


class Guard:
    """Refuses requests of strangers, and adds headers that limit what browsers do with the answers.

    A web page anywhere may send requests to this machine through the browser of its user. They are refused by their
    Origin, and, where no token is needed, by a Host that is not a name of this machine (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, host: str, token: str | None) -> None:
        self._app = app
        self._hosts = None if token is not None or host not in LOCAL else (*LOCAL, host)
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-store")
                headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
            await send(message)

        refused = self._refused(Headers(scope=scope), scope["path"])
        await (refused or self._app)(scope, receive, answer)

    def _refused(self, headers: Headers, path: str) -> ASGIApp | None:
        host = headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            return refusal(403, f'the host is "{visible(host)}"; expected localhost, or a service with a token')
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return refusal(403, f"a page of {visible(origin)} asks; expected the page of this service")
        if self._token is None or not path.startswith("/api/"):
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and compare_digest(token.strip().encode("utf-8", "replace"), self._token):
            return None
        return refusal(
            401, "the token is missing or wrong; expected the header Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": "Bearer"},
        )  # fmt: skip


def _name(host: str) -> str:
    """The name in a Host header, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


class Patient(H11Protocol):
    """HTTP/1.1 that waits for slow clients, but not forever: uvicorn itself has no limit for headers and readers."""

    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._late is None:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(READING, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _expect_headers(self) -> None:
        self._late = self.loop.call_later(HEADERS, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
