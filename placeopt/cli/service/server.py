"""The application of the service and the server that runs it: they refuse strangers, and disconnect slow clients."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from hmac import compare_digest
from importlib.resources import files
from string import Template
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from placeopt.cli.service.limits import Limits
from placeopt.cli.service.queue import Queue
from placeopt.cli.service.routes import refusal, routes
from placeopt.errors import visible
from placeopt.views.page import components

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


ASSETS = {"codemirror.js": "text/javascript", "completion.js": "text/javascript", "app.js": "text/javascript"}
"""Files of the page that are sent as they are."""


def application(limits: Limits, *, host: str = "127.0.0.1", token: str | None = None) -> Starlette:
    """Return the service as an ASGI application; `host` is the name that it listens at."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.queue = Queue(limits)
        await app.state.queue.warm()
        yield
        await app.state.queue.close()

    pages = [Route("/", page), Route("/{name}", asset)]
    errors = {HTTPException: _http_error, Exception: _unforeseen}
    middleware = [Middleware(Guard, host=host, token=token)]
    return Starlette(routes=[*pages, *routes()], exception_handlers=errors, middleware=middleware, lifespan=lifespan)


async def page(_request: Request) -> Response:
    """The page, with a nonce for the styles that the editor adds."""
    nonce = secrets.token_urlsafe(16)
    text = Template(_file("index.html")).substitute(nonce=nonce, sections=components().sections)
    return HTMLResponse(text, headers={"Content-Security-Policy": POLICY.format(nonce=nonce)})


async def asset(request: Request) -> Response:
    """A script or the style of the page."""
    name = request.path_params["name"]
    if name == "report.js":
        return _asset(components().script, "text/javascript")
    if name == "app.css":
        return _asset(components().style + _file("app.css"), "text/css")
    if name in ASSETS:
        return _asset(_file(name), ASSETS[name])
    raise HTTPException(404)


def _asset(text: str, kind: str) -> Response:
    return Response(text, media_type=kind, headers={"Cache-Control": "no-cache"})


@cache
def _file(name: str) -> str:
    return (files("placeopt.cli.service") / "page" / name).read_text(encoding="utf-8")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {404: f"there is no {request.url.path}", 405: f"{request.method} is not allowed here"}
    text = what.get(error.status_code, error.detail)
    return refusal(error.status_code, f"{text}; /api/openapi.json lists all paths", headers=error.headers)


async def _unforeseen(_request: Request, error: Exception) -> Response:
    return refusal(500, f"internal error, a bug of placeopt: {type(error).__name__}")


class Server(uvicorn.Server):
    """Says where it listens, once it does."""

    say: Callable[[str], None]

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        for each in self.servers:
            for socket in each.sockets:
                host, port = socket.getsockname()[:2]
                self.say(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")


def server(host: str, port: int, token: str | None, limits: Limits, say: Callable[[str], None]) -> Server:
    """Return the server, whose `run` serves until a signal ends it; `say` gets its address."""
    config = uvicorn.Config(
        application(limits, host=host, token=token), host=host, port=port, http=Patient, ws="none", loop="asyncio",
        lifespan="on", log_level="warning", access_log=False, server_header=False, proxy_headers=False,
        limit_concurrency=limits.connections, timeout_keep_alive=10, timeout_graceful_shutdown=2,
    )  # fmt: skip
    found = Server(config)
    found.say = say
    return found
