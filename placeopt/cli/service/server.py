"""The application of the service, and the server that runs it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from string import Template

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from placeopt.cli.service.guard import POLICY, Guard, Patient
from placeopt.cli.service.limits import Limits
from placeopt.cli.service.queue import Queue
from placeopt.cli.service.routes import refusal, routes
from placeopt.views.page import components

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
