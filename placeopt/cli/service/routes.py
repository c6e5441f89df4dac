"""The paths of the API: each is an entry of a table, from which the OpenAPI document is made, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from placeopt.cli.service import examples
from placeopt.cli.service.cards import (
    ISSUES,
    Checked,
    Event,
    Example,
    Fault,
    JobCard,
    ProblemCard,
    SolverCard,
    issue_card,
    problem_card,
    solver_cards,
)
from placeopt.cli.service.queue import Entry, FullError, Queue
from placeopt.cli.service.specs import compiled
from placeopt.errors import DocumentError, PlaceoptError, UsageError, alternatives, counted, visible
from placeopt.io.plan import plan_document
from placeopt.io.spec import json_schema
from placeopt.model.problem import Problem
from placeopt.model.units import size_text
from placeopt.model.versions import version_of
from placeopt.orchestration.result import Result
from placeopt.orchestration.settings import make_options, read_settings
from placeopt.protocol.registry import check_supported, default_solver, find_solver, solvers_for
from placeopt.verifier import verify
from placeopt.views.page import plan_data, result_data, result_page

ARRIVAL = 30.0
"""Seconds in which a request body must arrive."""

PULSE = 15.0
"""Seconds after which a stream without events says that it is alive."""

DEFAULT_LIMIT = 10.0
"""Time limit of a job, in seconds, unless the request or the service states another."""

Handler: TypeAlias = "Callable[[Request], Awaitable[Response]]"


class RefusedError(Exception):
    """A request is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Path:
    """A path of the API and what the OpenAPI document says of it."""

    method: str
    path: str
    handler: Handler
    summary: str
    answers: dict[int, type[BaseModel] | str]
    """The content of each status: a model, or a media type. Refusals, which all paths have, are added."""
    query: tuple[tuple[str, dict[str, Any], str], ...] = ()
    """Name, schema and description of each query parameter."""
    body: bool = False
    """Whether the body is a spec."""
    many: bool = False
    """Whether the answer is a list of the model."""


def queue_of(request: Request) -> Queue:
    """The queue of the service."""
    queue: Queue = request.app.state.queue
    return queue


async def body_of(request: Request) -> bytes:
    """Read the body, within the limits of size and time."""
    most = queue_of(request).limits.body
    too_large = RefusedError(413, f"the body is too large; this service takes at most {size_text(most)}")
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > most:
        raise too_large
    found = bytearray()
    try:
        async with asyncio.timeout(ARRIVAL):
            async for part in request.stream():
                found += part
                if len(found) > most:
                    raise too_large
    except TimeoutError:
        raise RefusedError(408, f"the body did not arrive within {ARRIVAL:g} s") from None
    return bytes(found)


async def check(request: Request) -> Response:
    body, queue = await body_of(request), queue_of(request)
    return _json(await queue.heavy(_checked, body, queue))


def _checked(body: bytes, queue: Queue) -> Checked:
    try:
        problem = compiled(body, queue.limits)
    except DocumentError as error:
        return Checked(issues=list(map(issue_card, error.issues[:ISSUES])), problem=None, solvers=[])
    able = [name for name in solvers_for(problem) if name in solver_cards()]
    return Checked(issues=[], problem=problem_card(problem), solvers=able)


async def submit(request: Request) -> Response:
    queue = queue_of(request)
    queue.check_room()  # before the spec is read
    wanted = _wanted(request, queue)
    body = await body_of(request)
    problem, facts, solver = await queue.heavy(_prepared, body, queue, wanted)
    options = {"gap_limit": wanted.gap, **wanted.settings}
    entry = queue.add(problem, facts, solver, wanted.time_limit, wanted.seed, options)
    return _json(queue.card(entry), 202, {"Location": f"/api/jobs/{entry.id}"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """The query parameters of a job."""

    solver: str | None
    time_limit: float
    seed: int
    gap: float | None
    settings: dict[str, str]


def _wanted(request: Request, queue: Queue) -> Wanted:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise UsageError(f"{visible(name)} is stated twice; expected one value")
        given[name] = value
    solver = given.pop("solver", None)
    most = queue.limits.seconds
    limit = _number(given, "time_limit", float, min(DEFAULT_LIMIT, most), "seconds, such as 10")
    if not 0 < limit <= most:
        raise UsageError(f"time_limit is {limit:g}; expected more than 0 and at most {most:g} seconds")
    seed = _number(given, "seed", int, 0, "a whole number")
    gap = _number(given, "gap", float, None, "a share between 0 and 1")
    make_options(time_limit=limit, seed=seed, gap_limit=gap, names={"gap_limit": "gap"})
    known = solver_cards()
    if solver is not None and solver not in known:
        raise UsageError(f'unknown solver "{visible(solver)}"{alternatives(solver, list(known), 40)}')
    return Wanted(solver, limit, seed, gap, given)


def _number(given: dict[str, str], name: str, kind: Callable[[str], Any], default: Any, expected: str) -> Any:
    if name not in given:
        return default
    text = given.pop(name)
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{name} is {visible(text)}; expected {expected}") from None


def _prepared(body: bytes, queue: Queue, wanted: Wanted) -> tuple[Problem, ProblemCard, str]:
    """Compile the problem and check the solver and its settings."""
    problem = compiled(body, queue.limits)
    name = wanted.solver or default_solver(problem)
    taken = [each.name for each in solver_cards()[name].settings]
    for key in wanted.settings:
        if key not in taken:
            expected = f"one of {', '.join(taken)}" if taken else "none, as this solver has no settings"
            raise UsageError(f"unknown parameter {visible(key)} of {name}; expected {expected}")
    solver = find_solver(name)
    read_settings(solver, wanted.settings)
    check_supported(solver, problem)
    return problem, problem_card(problem), name


def _entry(request: Request) -> Entry:
    id = request.path_params["id"]
    entry = queue_of(request).find(id)
    if entry is None:
        raise RefusedError(404, f"job {visible(id)} does not exist; it may have been dropped after newer ones")
    return entry


async def read_job(request: Request) -> Response:
    return _json(queue_of(request).card(_entry(request)))


async def cancel(request: Request) -> Response:
    entry, queue = _entry(request), queue_of(request)
    queue.cancel(entry)
    return _json(queue.card(entry), 202)


async def events(request: Request) -> Response:
    entry = _entry(request)
    last = request.headers.get("last-event-id", "")
    first = int(last) + 1 if last.isdecimal() and len(last) < 10 else 0

    async def lines() -> AsyncIterator[str]:
        async for event in entry.stream(first, every=PULSE):
            if event is None:
                yield ": alive\n\n"
            else:
                number, name, card = event
                yield f"id: {number}\nevent: {name}\ndata: {card.model_dump_json()}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _ended(request: Request) -> Result:
    entry = _entry(request)
    if entry.result is None:
        why = entry.error or "it was cancelled before it ran"
        state = f"failed: {why}" if entry.over else f"is {entry.state}"
        raise RefusedError(409, f"the job {state}; it has no result")
    return entry.result


async def result(request: Request) -> Response:
    return _json(await queue_of(request).heavy(_ended(request).to_dict))


async def plan(request: Request) -> Response:
    found = _ended(request)
    if found.schedule is None:
        raise RefusedError(409, f"the result has no schedule: {found.termination.value}")
    make = partial(plan_document, solver=found.solver, objective=found.values)
    document = await queue_of(request).heavy(make, found.problem, found.schedule)
    return _json(document, headers={"Content-Disposition": 'attachment; filename="plan.json"'})


async def report(request: Request) -> Response:
    page = await queue_of(request).heavy(result_page, _ended(request))
    return HTMLResponse(page, headers={"Content-Disposition": 'attachment; filename="report.html"'})


async def charts(request: Request) -> Response:
    """The sections of a report, also while the job runs."""
    entry = _entry(request)

    def data() -> dict[str, Any] | None:
        if entry.result is not None:
            return result_data(entry.result)
        schedule = None if entry.job is None else entry.job.incumbent()
        if schedule is None:
            return None
        return plan_data(entry.problem, schedule, verify(entry.problem, schedule))

    found = await queue_of(request).heavy(data)
    if found is None:
        raise RefusedError(409, "the job has no schedule yet" if not entry.over else "the job has no schedule")
    return _json(found)


async def solvers(_request: Request) -> Response:
    return _json(list(solver_cards().values()))


async def list_examples(_request: Request) -> Response:
    return _json(examples.known())


async def read_example(request: Request) -> Response:
    name = request.path_params["name"]
    text = examples.text(name)
    if text is None:
        known = ", ".join(each.name for each in examples.known())
        raise RefusedError(404, f"example {visible(name)} does not exist; expected one of {known}")
    return Response(text, media_type="application/yaml")


async def schema(_request: Request) -> Response:
    return _json(json_schema())


async def read_limits(request: Request) -> Response:
    limits = queue_of(request).limits
    names = ("body", "tasks", "devices", "seconds", "memory", "jobs", "queue", "kept")
    return _json({name: getattr(limits, name) for name in names})


async def openapi(_request: Request) -> Response:
    return _json(openapi_document())


_SECONDS = {"type": "number", "exclusiveMinimum": 0}
_JOB = (
    ("solver", {"type": "string"}, "The solver. Default: heft, or dpl for pipelines."),
    ("time_limit", _SECONDS, f"Seconds. Default: {DEFAULT_LIMIT:g}."),
    ("seed", {"type": "integer", "minimum": 0}, "Seed of random numbers. Default: 0."),
    ("gap", {"type": "number", "minimum": 0, "maximum": 1}, "Stop as soon as this gap is proved."),
    ("setting", {"type": "string"}, "Settings of the solver, each with its own name: `range=100`."),
)
JSON, YAML, HTML, STREAM = "application/json", "application/yaml", "text/html", "text/event-stream"

PATHS = (
    Path("POST", "/api/check", check, "Check a spec: its errors, or who can solve it", {200: Checked}, body=True),
    Path("POST", "/api/jobs", submit, "Solve a spec: add a job to the queue", {202: JobCard}, _JOB, body=True),
    Path("GET", "/api/jobs/{id}", read_job, "A job: its state, and its best value and bound so far", {200: JobCard}),
    Path("DELETE", "/api/jobs/{id}", cancel, "Cancel a job; its best schedule so far stays its result", {202: JobCard}),
    Path("GET", "/api/jobs/{id}/events", events, "Events: started, incumbent, bound, finished", {200: STREAM}),
    Path("GET", "/api/jobs/{id}/result", result, "The result, as `placeopt solve --json` prints it", {200: JSON}),
    Path("GET", "/api/jobs/{id}/plan", plan, "The plan file", {200: JSON}),
    Path("GET", "/api/jobs/{id}/report", report, "The report, one HTML file", {200: HTML}),
    Path("GET", "/api/jobs/{id}/charts", charts, "What the page draws, also while the job runs", {200: JSON}),
    Path("GET", "/api/solvers", solvers, "The solvers and their settings", {200: SolverCard}, many=True),
    Path("GET", "/api/examples", list_examples, "Examples of specs", {200: Example}, many=True),
    Path("GET", "/api/examples/{name}", read_example, "The text of an example", {200: YAML}),
    Path("GET", "/api/schema", schema, "The JSON Schema of specs", {200: JSON}),
    Path("GET", "/api/limits", read_limits, "The limits of this service", {200: JSON}),
    Path("GET", "/api/openapi.json", openapi, "This document", {200: JSON}),
)  # fmt: skip

REFUSALS = {
    400: "the request is not valid", 401: "the token is missing or wrong", 403: "another site asks",
    404: "there is none", 408: "the body arrives too slowly", 409: "there is none yet, or none at all",
    413: "the body is too large", 422: "the spec or a parameter is wrong", 503: "the queue is full",
}  # fmt: skip


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the table of paths."""
    cards = (Checked, JobCard, Event, SolverCard, Example, Fault)
    models: list[tuple[type[BaseModel], Literal["serialization"]]] = [(card, "serialization") for card in cards]
    _, schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")
    paths: dict[str, dict[str, Any]] = {}
    for each in PATHS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    refused = {str(status): {"description": why, "content": _content(Fault, False)} for status, why in REFUSALS.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "placeopt", "version": version_of() or "checkout", "description": "Place tasks on devices."},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "responses": {f"Refused{status}": answer for status, answer in refused.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(each: Path) -> dict[str, Any]:
    inside = [part[1:-1] for part in each.path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in inside] + [
        {"name": name, "in": "query", "schema": schema, "description": text} for name, schema, text in each.query
    ]
    answers: dict[str, Any] = {
        str(status): {"description": "done", "content": _content(kind, each.many)}
        for status, kind in each.answers.items()
    }
    answers |= {str(status): {"$ref": f"#/components/responses/Refused{status}"} for status in REFUSALS}
    operation: dict[str, Any] = {"operationId": each.handler.__name__, "summary": each.summary, "responses": answers}
    if parameters:
        operation["parameters"] = parameters
    if each.body:
        kinds = {YAML: {"schema": {"type": "string"}}, JSON: {"schema": {"type": "object"}}}
        operation["requestBody"] = {"required": True, "description": "A spec.", "content": kinds}
    return operation


def _content(kind: type[BaseModel] | str, many: bool) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {}}
    reference = {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {JSON: {"schema": {"type": "array", "items": reference} if many else reference}}


def _json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON: of cards or of plain data."""
    if isinstance(data, list):
        data = [each.model_dump() for each in data]
    return JSONResponse(data.model_dump() if isinstance(data, BaseModel) else data, status, headers)


def refusal(
    status: int, message: str, *, error: DocumentError | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to a request that is refused."""
    issues = [] if error is None else list(map(issue_card, error.issues[:ISSUES]))
    return _json(Fault(error=message, issues=issues), status, headers)


async def guarded(handler: Handler, request: Request) -> Response:
    """Call a handler; every error is an answer of one clear line, never a traceback."""
    try:
        return await handler(request)
    except RefusedError as error:
        return refusal(error.status, str(error))
    except FullError as error:
        return refusal(503, f"the queue is full: {error}", headers={"Retry-After": "5"})
    except DocumentError as error:
        first = error.issues[0]
        place = "" if first.line is None else f"line {first.line}: "
        found = f"the spec has {counted(len(error.issues), 'error')}"
        return refusal(422, f"{found}; {place}{replace(first, line=None, column=None)}", error=error)
    except PlaceoptError as error:
        return refusal(422, str(error))
    except MemoryError:
        return refusal(503, "the service has not enough memory for this request; expected a smaller problem")
    except ClientDisconnect:
        return refusal(400, "the request ended before its body")


def routes() -> list[Route]:
    """The routes of the API."""

    def route(each: Path) -> Route:
        async def endpoint(request: Request) -> Response:
            return await guarded(each.handler, request)

        return Route(each.path, endpoint, methods=[each.method], name=each.handler.__name__)

    return [route(each) for each in PATHS]
