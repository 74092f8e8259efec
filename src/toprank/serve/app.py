"""The server as an ASGI application: every request is named, admitted, decoded, answered, counted and logged here.

Endpoints are a table. The types of a handler decode its body, encode its answer, and make the OpenAPI description.
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
from collections import Counter as Counts
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, NamedTuple, TextIO, TypeVar, get_type_hints

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from .._keys import Scope
from .._version import __version__
from ..data.documents import JSON, LINES, PACKED, PathError, decode
from ..errors import InputError
from .background_log import BackgroundLog
from .bodies import BodyError, Events, Feedback, Model, Problem, require
from .guard import CONNECTION, Connection, Keys, Limits, check_origin, read_body
from .service import Service

_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)
_GAUGES: dict[str, tuple[str, Callable[[Service], float]]] = {
    "version": ("Version that is served", lambda service: service.served.version),
    "stored_events": ("Events stored since the start", lambda service: service.stored),
    "commits": ("Transactions since the start", lambda service: service.groups),
    "waiting_bytes": ("Bytes of rankings that wait for feedback", lambda service: service.waiting.nbytes),
    "waiting_rankings": ("Rankings that wait for feedback", lambda service: len(service.waiting.lists)),
    "replica_age_seconds": ("Seconds since the other server answered a replica", lambda service: service.age or 0.0),
    "measure_mean": ("Mean measure so far", lambda service: service.served.progress.mean),
}
_ALWAYS_ANSWERED = ("/healthz", "/readyz", "/metrics")
"""Paths whose requests are not counted as under way: who watches the server sees it when it is full."""
H = TypeVar("H", bound=Callable[..., Awaitable[Any]])


class Endpoint(NamedTuple):
    """What answers at a path, and for whom; `early` ones answer before everything is warm."""

    handler: Callable[..., Awaitable[Any]]
    scope: Scope | None
    early: bool
    body: Any
    answer: Any
    media: tuple[str, ...]
    """The media types of its answer."""
    query: dict[str, list[str]]
    """What may stand behind `?`: names, and the values that each may have."""


ENDPOINTS: dict[str, dict[str, Endpoint]] = {}
"""By path and method; `{n}` at the end of a path is a number."""


def endpoint(
    method: str,
    path: str,
    scope: Scope | None = None,
    *,
    early: bool = False,
    media: tuple[str, ...] = (JSON, PACKED),
    query: dict[str, list[str]] | None = None,
) -> Callable[[H], H]:
    """Put a handler into the table."""

    def add(handler: H) -> H:
        kinds = get_type_hints(handler)
        answer = {Response: None, Model | Response: Model}.get(kinds["return"], kinds["return"])
        ENDPOINTS.setdefault(path, {})[method] = Endpoint(
            handler, scope, early, kinds.get("body"), answer, media, query or {}
        )
        return handler

    return add


class Call:
    """A request on its way: what it asks, and what is noted of it for its answer and the log."""

    def __init__(self, app: App, request: Request) -> None:
        self.app, self.service, self.request = app, app.service, request
        # A lookup in starlette's headers goes through all of them. The last of several counts.
        self.head = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.scope["headers"]}
        given = self.head.get("x-request-id", "")
        self.name = given if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", given) else next(app.names)
        self.path, self.number, self.headers = "other", 0, dict[str, str]()
        self.counted_for: str | None = None
        """The key under which it is counted as a request under way."""
        self.noted: dict[str, str | None] = {"key": None}


class App:
    """Answers requests by the table of endpoints."""

    def __init__(
        self,
        service: Service,
        keys: Keys,
        limits: Limits | None = None,
        log: TextIO | BackgroundLog | None = None,
        demo: Any = None,
    ) -> None:
        from . import endpoints  # noqa: F401  # fills the table

        self.service, self.keys, self.limits, self.demo = service, keys, limits or Limits(), demo
        self._log, self._busy, self.streams, life = log, Counts[str](), 0, secrets.token_hex(4)
        self.names = (f"{life}-{count:x}" for count in itertools.count(1))
        self.endpoints = {path: by for path, by in ENDPOINTS.items() if demo is not None or path != "/demo/search"}
        registry = self.registry = CollectorRegistry()
        counts = Counter("toprank_requests", "Requests", ["path", "status"], registry=registry)
        seconds = Histogram("toprank_request_seconds", "Seconds", ["path"], registry=registry, buckets=_BUCKETS)
        self._counters = cache(lambda path, status: (counts.labels(path, status), seconds.labels(path)))
        for name, (text, read) in _GAUGES.items():
            Gauge(f"toprank_{name}", text, registry=registry).set_function(lambda read=read: read(service))
        dropped = Gauge("toprank_dropped_log_lines", "Lines of the log that could not be written", registry=registry)
        dropped.set_function(lambda: log.dropped if isinstance(log, BackgroundLog) else 0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request: count it, log it, and let nothing of the inside out."""
        if scope["type"] != "http":
            return
        began, call = time.perf_counter(), Call(self, Request(scope, receive))
        try:
            response = await self._respond(call)
            response.raw_headers += [*_HEADERS, (b"x-request-id", call.name.encode())]
            if call.path != "/":  # the page has a policy of its own
                response.raw_headers.append(_POLICY)
            await response(scope, receive, send)
        finally:
            if call.counted_for is not None:
                self._busy[call.counted_for] -= 1
        took = time.perf_counter() - began
        count, seconds = self._counters(call.path, response.status_code)
        count.inc()
        seconds.observe(took)
        if self._log is not None:
            line = {
                "at": time.time(), "request": call.name, "method": scope["method"], "path": scope["path"],
                "status": response.status_code, "ms": round(1000 * took, 3), "version": self.service.served.version,
            }  # fmt: skip
            self._log.write(msgspec.json.encode(line | call.noted).decode() + "\n")

    async def _respond(self, call: Call) -> Response:
        try:
            return await self._answer(call, self._find(call))
        except ClientDisconnect:
            return Response(status_code=400)
        except InputError as error:
            problem = Problem(str(error), call.name, error.at if isinstance(error, PathError) else None)
            status, headers = 400 if type(error) is PathError and error.at is None else 422, {}
            if isinstance(error, BodyError):
                status, headers = error.status, error.headers
        except Exception as error:
            call.noted["error"] = f"{type(error).__name__}: {error}"
            problem = Problem("something went wrong inside: see the log by the request id", call.name)
            status, headers = 500, {}
        if status in (429, 503):
            headers.setdefault("retry-after", "1")
        if status in (401, 403, 408, 413, 415, 503):  # the body may not have been read
            headers["connection"] = "close"
        return Response(msgspec.json.encode(problem), status, headers, JSON)

    def _find(self, call: Call) -> Endpoint:
        method, path = call.request.method, call.request.scope["path"]
        head, _, last = path.rpartition("/")
        number = last.isascii() and last.isdecimal() and len(last) < 19
        literal = "{" not in path  # `{n}` itself is no path
        found = self.endpoints.get(f"{head}/{{n}}" if number else path, {}) if literal else {}
        require(found, f"{method} {path[:200]}: Not Found", status=404)
        call.path, call.number = (f"{head}/{{n}}", int(last)) if number else (path, 0)
        wanted = "GET" if method == "HEAD" else method
        require(wanted in found, f"{method} {path}: Method Not Allowed", status=405, allow=", ".join(found))
        return found[wanted]

    def _count(self, call: Call) -> None:
        """Count a request as one under way, until it is answered; refuse it where there are too many."""
        if call.path in _ALWAYS_ANSWERED:
            return
        name, most = call.noted["key"] or "", self.limits.concurrent_per_key
        require(self._busy.total() < self.limits.concurrent, "too many requests at once: try again", status=503)
        if not self.keys.open or not name:
            whose = (
                f"the key {name!r} has {most} requests under way"
                if name
                else f"{most} requests without a key are under way"
            )
            require(self._busy[name] < most, f"{whose}, which is the most: try again", status=503)
        self._busy[name] += 1
        call.counted_for = name

    async def _answer(self, call: Call, endpoint: Endpoint) -> Response:
        check_origin(call.head, self.keys)
        if endpoint.scope is not None:
            call.noted["key"] = self.keys.admit(call.head.get("authorization"), endpoint.scope)
            call.request.scope.get(CONNECTION, Connection()).key = call.noted["key"]
        self._count(call)
        for name, values in endpoint.query.items():
            given = call.request.query_params.get(name, values[0])
            require(given in values, f"write ?{name}={values[0]}, or leave it out; got {given[:40]!r}", f"?{name}")
        require(endpoint.early or self.service.ready.is_set(), "not ready yet: compiling", status=503)
        media = call.head.get("content-type", "").partition(";")[0].strip().lower()
        bodies: list[Any] = []
        if endpoint.body is not None:
            lines = media == LINES and endpoint.body == Events
            known = f"the content type must be {JSON} or {PACKED}, got {media[:80]!r}"
            require(lines or media in (JSON, PACKED), known, status=415)
            raw = await read_body(call.request, call.head, self.limits)
            bodies = [decode(raw, Feedback if lines else endpoint.body, media)]
        found = await endpoint.handler(call, *bodies)
        if isinstance(found, Response):
            return found
        packed = media == PACKED or PACKED in call.head.get("accept", "")
        content = msgspec.msgpack.encode(found) if packed else msgspec.json.encode(found)
        return Response(content, headers=call.headers, media_type=PACKED if packed else JSON)


def describe(endpoints: dict[str, dict[str, Endpoint]]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of endpoints."""
    every = [e for by in endpoints.values() for e in by.values()]
    kinds = [Problem, Feedback, *(kind for e in every for kind in (e.body, e.answer) if kind is not None)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    media = {kind: {"schema": schema} for kind, schema in zip(kinds, schemas, strict=True)}
    refused = {"description": "What is wrong, in one line", "content": {JSON: media[Problem]}}
    number = {"name": "n", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}

    def operation(path: str, e: Endpoint) -> dict[str, Any]:
        content = media[e.answer] if e.answer is not None else {}
        responses = {"200": {"description": "Done", "content": dict.fromkeys(e.media, content)}, "default": refused}
        if e.query:
            responses["304"] = {"description": "The ETag is still the one of if-none-match"}
        bodies = {} if e.body is None else dict.fromkeys((JSON, PACKED), media[e.body])
        if e.body == Events:
            bodies[LINES] = media[Feedback]  # of each line
        body = {"content": bodies, "required": True} if bodies else {}
        asked = [
            {"name": name, "in": "query", "schema": {"type": "string", "enum": of}} for name, of in e.query.items()
        ]
        return {
            "operationId": e.handler.__name__,
            "summary": e.handler.__doc__,
            "parameters": [number] * path.endswith("{n}") + asked,
            "responses": responses,
            "security": [] if e.scope is None else [{"key": []}],
        } | ({"requestBody": body} if body else {})

    return {
        "openapi": "3.1.0",
        "info": {"title": "toprank serve", "version": __version__},
        "paths": {path: {m.lower(): operation(path, e) for m, e in by.items()} for path, by in endpoints.items()},
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
