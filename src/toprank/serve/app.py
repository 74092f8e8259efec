"""The endpoints: one table from which the routes, the scopes and the OpenAPI description are made."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TextIO, TypeVar

import msgspec
import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from .._version import __version__
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..rankers.online import OnlineRanker
from ..report.additive import contributions
from . import bodies, live
from .bodies import EVENTS, BodyError, Lists, Problem, Ranked, decode
from .guard import Keys, Limits, Scope, check_origin, read_body
from .learning import Event
from .service import Service

CERTIFIED = 20_000
"""Most events of a stream whose bounds are proved on demand: they are all replayed."""
STREAMS = 16
"""Most pages that are shown live at once."""
_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_JSON, _PACKED, _LINES = "application/json", "application/msgpack", "application/x-ndjson"
T = TypeVar("T")


@dataclass(frozen=True)
class Endpoint:
    """A path with who may call it, what goes in and what comes out."""

    method: str
    path: str
    scope: Scope | None
    handler: Callable[[App, Request, Any], Awaitable[Any]]
    summary: str
    body: Any = None
    answer: Any = None
    early: bool = False
    """Whether it answers before everything is warm."""


class App:
    """The server as an ASGI application."""

    def __init__(
        self, service: Service, keys: Keys, limits: Limits | None = None, log: TextIO | None = None, demo: Any = None
    ) -> None:
        self.service, self.keys, self.limits, self.demo = service, keys, limits or Limits(), demo
        self._log, self._busy, self.streams = log, 0, 0
        self._life, self._count = secrets.token_hex(4), itertools.count(1)
        self.endpoints = [*ENDPOINTS, *([_SEARCH] if demo is not None else [])]
        self.router = Router(
            [Route(e.path, self._route(e), methods=[e.method]) for e in self.endpoints], redirect_slashes=False
        )
        self.registry = CollectorRegistry()
        self._requests = Counter("toprank_requests", "Requests", ["path", "status"], registry=self.registry)
        self._seconds = Histogram(
            "toprank_request_seconds", "Seconds per request", ["path"], registry=self.registry,
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0),
        )  # fmt: skip
        self._counters = cache(lambda path, status: (self._requests.labels(path, status), self._seconds.labels(path)))
        for name, text, read in (
            ("toprank_version", "Version that is served", lambda: service.served.version),
            ("toprank_stored_events", "Events stored since the start", lambda: service.stored),
            ("toprank_commits", "Transactions since the start", lambda: service.groups),
            ("toprank_waiting_bytes", "Bytes of rankings that wait for feedback", lambda: service.waiting.nbytes),
            ("toprank_waiting_rankings", "Rankings that wait for feedback", lambda: len(service.waiting)),
            ("toprank_measure_mean", "Mean measure so far", lambda: service.served.learner.progress.mean),
        ):
            Gauge(name, text, registry=self.registry).set_function(read)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request: count it, log it, and let nothing of the inside out."""
        if scope["type"] != "http":
            return
        began, status, path = time.perf_counter(), 500, scope["path"]
        # Read once: a lookup in starlette's headers goes through all of them. The last of several counts.
        head = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = head.get("x-request-id", "")
        name = (
            given if given and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", given) else f"{self._life}-{next(self._count):x}"
        )
        scope["app"] = self  # so that the router raises what it cannot find
        scope["head"], scope["request_id"] = head, name

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = _HEADERS if path != "/" else _HEADERS[1:]  # the page has a policy of its own
                message["headers"] = [*message["headers"], *own, (b"x-request-id", name.encode())]
            await send(message)

        if self._busy >= self.limits.concurrent:
            await _problem(BodyError("too many requests at once: try again", status=503), scope)(scope, receive, answer)
        else:
            self._busy += 1
            try:
                await self.router(scope, receive, answer)
            except (HTTPException, ValueError) as error:  # no such path, another method, or a number of 5,000 digits
                known = error if isinstance(error, HTTPException) else HTTPException(404)
                told = BodyError(f"{scope['method']} {path[:200]}: {known.detail}", status=known.status_code)
                await _problem(told, scope, known.headers)(scope, receive, answer)
            finally:
                self._busy -= 1
        took = time.perf_counter() - began
        count, seconds = self._counters(scope.get("endpoint_path", "other"), status)
        count.inc()
        seconds.observe(took)
        if self._log is not None:
            line = {
                "at": time.time(), "request": scope["request_id"], "key": scope.get("key"), "method": scope["method"],
                "path": path, "status": status, "ms": round(1000 * took, 3), "version": self.service.served.version,
            }  # fmt: skip
            self._log.write(msgspec.json.encode(line | scope.get("failure", {})).decode() + "\n")

    def _route(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def route(request: Request) -> Response:
            scope = request.scope
            scope["endpoint_path"] = endpoint.path
            try:
                return await self._answer(endpoint, request)
            except BodyError as error:
                return _problem(error, scope)
            except InputError as error:
                return _problem(BodyError(str(error)), scope)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:
                scope["failure"] = {"error": f"{type(error).__name__}: {error}"}
                return _problem(
                    BodyError("something went wrong inside: see the log by the request id", status=500), scope
                )

        return route

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        head = request.scope["head"]
        check_origin(head, self.keys)
        if endpoint.scope is not None:
            request.scope["key"] = self.keys.admit(head.get("authorization"), endpoint.scope)
        if not endpoint.early and not self.service.ready.is_set():
            raise BodyError("not ready yet: compiling", status=503)
        kind = head.get("content-type", "").partition(";")[0].strip().lower()
        packed, body = kind == _PACKED, None
        if endpoint.body is not None:
            lines = kind == _LINES and endpoint.body is _EVENTS
            if kind not in (_JSON, _PACKED) and not lines:
                raise BodyError(f"the content type must be {_JSON} or {_PACKED}, got {kind[:80]!r}", status=415)
            raw = await read_body(request, head, self.limits)
            body = _lines(raw) if lines else decode(raw, endpoint.body, packed)
        found = await endpoint.handler(self, request, body)
        if isinstance(found, Response):
            return found
        packed |= _PACKED in head.get("accept", "")
        content = msgspec.msgpack.encode(found) if packed else msgspec.json.encode(found)
        return Response(content, media_type=_PACKED if packed else _JSON)

    async def work(self, what: list[Event] | Callable[[], T]) -> Any:
        """Let the writing thread do something, and wait for it."""
        return await self.service.submit(what, asyncio.get_running_loop())


def _problem(error: BodyError, scope: Any, headers: Any = None) -> Response:
    content = Problem(str(error), scope["request_id"], error.at)
    more = dict(headers or {})
    if error.status in (429, 503):
        more["retry-after"] = "1"
    if error.status == 401:
        more["www-authenticate"] = "Bearer"
    if error.status in (401, 403, 408, 413, 415, 503):  # the body may not have been read
        more["connection"] = "close"
    return Response(msgspec.json.encode(content), error.status, more, _JSON)


def _lines(raw: bytes) -> list[bodies.Feedback]:
    found = []
    for number, line in enumerate(raw.splitlines(), start=1):
        if line.strip():
            try:
                found.append(decode(line, bodies.Feedback))
            except BodyError as error:
                raise BodyError(f"line {number}: {error}", error.at, error.status) from None
    return found


async def rank(app: App, request: Request, body: bodies.Rank) -> bodies.Ranking:
    """Rank documents; feedback on the ranking can be given by its id for a while."""
    service = app.service
    lists = service.served.learner.columns.lists(body)
    served, scores, order = service.rank(lists, explore=body.explore)
    top = order[: body.top]
    parts = contributions(served.learner.ranker.model_, lists.X[top]) if body.explain else None
    if body.explain and parts is None:
        raise BodyError("the scores of this model are no sums over features", "$.explain")
    rows, places = top.tolist(), range(1, len(top) + 1)
    ids = [lists.ids[row] for row in rows]
    items = [*map(Ranked, ids, places, scores[top].tolist())]
    if parts is not None:
        for item, row in zip(items, parts.tolist(), strict=True):
            item.contributions = dict(zip(served.learner.columns.labels, row, strict=True))
    shown = tuple(rows) if body.explore else None
    return bodies.Ranking(service.waiting.put(Lists(lists.ids, lists.X, shown)), served.version, items)


async def feedback(app: App, request: Request, body: Any) -> Any:
    """Learn from what came of a ranking; answered when it is on disk. Several events are learned all or none."""
    many = isinstance(body, list)
    given = body if many else [body]
    if len(given) > EVENTS:
        raise BodyError(f"at most {EVENTS:,} events at once, got {len(given):,}", "$", 413)
    columns, events = app.service.served.learner.columns, []
    for i, one in enumerate(given):
        at = f"$[{i}]" if many else "$"
        if (one.ranking_id is None) == (one.items is None and one.ids is None):
            raise BodyError("give the ranking_id, or the documents again: one of them", at)
        try:
            lists = columns.lists(one) if one.ranking_id is None else app.service.waiting.get(one.ranking_id)
            events.append(Event.of(one, lists))
        except BodyError as error:
            if not many or error.at is None:
                raise
            raise BodyError(str(error).rpartition(" - at ")[0], at + error.at[1:], error.status) from None
    for kind in {event.kind for event in events}:
        app.service.served.learner.check(kind)
    learned = await app.work(events)
    return learned if many else learned[0]


async def rerank(app: App, request: Request, body: bodies.Rerank) -> bodies.Reranked:
    """Rank in the shape of Cohere's rerank; a score is the model's own, not between 0 and 1."""
    features = []
    for i, document in enumerate(body.documents):
        if isinstance(document, str):
            raise BodyError('plain text has no features: send objects {"features": {...}}', f"$.documents[{i}]")
        features.append(document.features)
    X = app.service.served.learner.columns.rows(features, "$.documents")
    served, scores, order = app.service.rank(Lists([], X))
    results = [bodies.Result(row, float(scores[row])) for row in order[: body.top_n].tolist()]
    return bodies.Reranked(request.scope["request_id"], results, {"version": served.version})


async def model(app: App, request: Request, body: None) -> Any:
    """Return the model as it is now: its version, weights and totals; with `?file=1` its file, for replicas."""
    served = app.service.served
    learner, tag = served.learner, f'"{served.version}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    if "file" in request.query_params:
        return Response(learner.model_text(), headers={"etag": tag}, media_type=_JSON)
    coef, ranker = learner.coef, learner.ranker
    totals = ranker.totals_ if isinstance(ranker, OnlineRanker) else vars(ranker).get("counts_", {})
    weights = None if coef is None else dict(zip(learner.columns.labels, coef.tolist(), strict=True))
    content = bodies.Model(
        served.version, type(ranker).__name__, learner.learns, learner.measure, served.frozen, app.service.oldest,
        learner.columns.n_features, weights, dict(totals),
    )  # fmt: skip
    return Response(msgspec.json.encode(content), headers={"etag": tag}, media_type=_JSON)


async def version(app: App, request: Request, body: None) -> Response:
    """Return the model file of a version, as `toprank.load` reads it."""
    seq, served, store = request.path_params["n"], app.service.served, app.service.store
    if seq != served.version and (store is None or seq > 2**62):
        raise BodyError(f"there is no version {seq} here", status=404)
    learner = served.learner if seq == served.version or store is None else await app.work(lambda: store.version(seq))
    return Response(learner.model_text(), media_type=_JSON)


async def certificate(app: App, request: Request, body: None) -> Any:
    """Say what the stream showed: the mean measure with a band that holds at all times at once, and what is proved."""
    served, store, learner = app.service.served, app.service.store, app.service.served.learner
    lower, mean, upper = learner.progress.interval()
    found: dict[str, Any] = {
        "version": served.version, "measure": learner.measure, "events_judged": learner.progress.n,
        "observed": None if learner.progress.n == 0 else mean, "lower": lower, "upper": upper, "confidence": 0.95,
        "meaning": "mean of what each event was expected to show before it was learned from, at all times at once",
        "mistakes": learner.short, "proved": [], "why_nothing_is_proved": None,
    }  # fmt: skip
    why = f"all events since version 0 must be here, {CERTIFIED:,} at most, without a rollback"
    if not isinstance(learner.ranker, OnlineRanker):
        why = f"no bound is known for {type(learner.ranker).__name__}"
    elif store is not None and (events := await app.work(lambda: store.events_for_certificates(CERTIFIED))):
        return found | {"proved": await asyncio.to_thread(_proved, learner.ranker, events)}
    return found | {"why_nothing_is_proved": why}


def _proved(ranker: OnlineRanker, events: list[Event]) -> list[dict[str, Any]]:
    qid = np.repeat(np.arange(len(events)), [len(event.y) for event in events])
    X = np.concatenate([event.X.astype(np.float64) for event in events])
    data = QueryDataset.from_arrays(X, np.concatenate([event.y for event in events]), qid)
    return [one.to_dict() | {"terms": {}} for one in ranker.certify(data)]


async def rollback(app: App, request: Request, body: bodies.Rollback) -> bodies.Stored:
    """Go back to an old version, as a new version."""
    return bodies.Stored(await app.work(lambda: app.service.rollback(body.version)))


async def freeze(app: App, request: Request, body: bodies.Freeze) -> bodies.Stored:
    """Stop learning, or let it go on; ranking does not stop."""
    frozen = await app.work(lambda: app.service.freeze(body.frozen))
    return bodies.Stored(app.service.served.version, frozen)


async def backup(app: App, request: Request, body: None) -> bodies.Stored:
    """Copy the store beside itself while the server runs."""
    store = app.service.store
    name = await app.work(lambda: None if store is None else store.backup())
    return bodies.Stored(app.service.served.version, file=name)


async def export(app: App, request: Request, body: bodies.Export) -> Response:
    """Write the live model for a search engine or a database, as `toprank export` does."""
    from ..export import writing
    from ..export.targets import Settings

    learner = app.service.served.learner
    given = {name: value for name in body.__struct_fields__[1:] if (value := getattr(body, name)) is not None}
    settings = Settings(**given)
    _, artifact = await asyncio.to_thread(
        lambda: writing.render(learner.ranker, body.to, features=learner.columns.labels, settings=settings)
    )
    return Response(artifact.content, media_type="application/octet-stream" if body.to == "onnx" else "text/plain")


async def healthz(app: App, request: Request, body: None) -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok", "toprank": __version__}


async def readyz(app: App, request: Request, body: None) -> dict[str, int]:
    """Say that everything is compiled, and requests are served at full speed."""
    if not app.service.ready.is_set() or not app.service.alive:
        raise BodyError("not ready yet", status=503)
    return {"version": app.service.served.version}


async def metrics(app: App, request: Request, body: None) -> Response:
    """Return counters for Prometheus."""
    return Response(generate_latest(app.registry), media_type="text/plain; version=0.0.4")


async def page(app: App, request: Request, body: None) -> Response:
    """Return the page that shows the stream live."""
    text, policy = live.page(app.demo is not None)
    return Response(text, media_type="text/html", headers={"content-security-policy": policy})


async def stream(app: App, request: Request, body: None) -> Response:
    """Send what the page shows, again whenever the version changes (server-sent events)."""
    if app.streams >= STREAMS:
        raise BodyError("too many live pages at once", status=503)

    async def events() -> AsyncIterator[bytes]:
        app.streams += 1
        try:
            sent, quiet = (-1, False), 0
            while not app.service.stopping.is_set():
                now = (app.service.served.version, app.service.served.frozen)
                if now != sent:
                    sent, quiet = now, 0
                    yield b"data: " + msgspec.json.encode(live.payload(app.service)) + b"\n\n"
                elif (quiet := quiet + 1) % 60 == 0:
                    yield b": still here\n\n"
                await asyncio.sleep(0.25)
        finally:
            app.streams -= 1

    return StreamingResponse(events(), media_type="text/event-stream")


async def search(app: App, request: Request, body: live.Search) -> Any:
    """Search the demo's library: the ranking is sampled, so that clicks on it can be learned from."""
    lists, summaries = await asyncio.to_thread(app.demo.candidates, body.query)
    served, scores, order = app.service.rank(lists, explore=body.explore)
    order = order[:10].tolist()
    ranking = app.service.waiting.put(Lists(lists.ids, lists.X, tuple(order) if body.explore else None))
    items = [{"id": lists.ids[row], "summary": summaries[row], "score": float(scores[row])} for row in order]
    return {"ranking_id": ranking, "version": served.version, "items": items}


async def openapi(app: App, request: Request, body: None) -> Any:
    """Return this description."""
    return describe(app.endpoints)


_EVENTS = bodies.Feedback | list[bodies.Feedback]
_SEARCH = Endpoint("POST", "/demo/search", "rank", search, "Search the demo's library", live.Search)
ENDPOINTS = [
    Endpoint("POST", "/v1/rank", "rank", rank, "Rank documents", bodies.Rank, bodies.Ranking),
    Endpoint("POST", "/v1/feedback", "learn", feedback, "Learn", _EVENTS, bodies.Learned | list[bodies.Learned]),
    Endpoint("POST", "/v2/rerank", "rank", rerank, "Rank in Cohere's shape", bodies.Rerank, bodies.Reranked),
    Endpoint("GET", "/v1/model", "admin", model, "The model as it is now", None, bodies.Model),
    Endpoint("GET", "/v1/model/versions/{n:int}", "admin", version, "The model file of a version"),
    Endpoint("GET", "/v1/model/certificate", "admin", certificate, "What the stream showed, and what is proved"),
    Endpoint("POST", "/v1/model:rollback", "admin", rollback, "Go back to a version", bodies.Rollback, bodies.Stored),
    Endpoint("POST", "/v1/model:freeze", "admin", freeze, "Stop learning, or go on", bodies.Freeze, bodies.Stored),
    Endpoint("POST", "/v1/model:export", "admin", export, "Write the model for an engine", bodies.Export),
    Endpoint("POST", "/v1/model:backup", "admin", backup, "Copy the store beside itself", None, bodies.Stored),
    Endpoint("GET", "/v1/live", "admin", stream, "What the page shows, live", early=True),
    Endpoint("GET", "/metrics", "admin", metrics, "Counters for Prometheus", early=True),
    Endpoint("GET", "/healthz", None, healthz, "Whether the process answers", early=True),
    Endpoint("GET", "/readyz", None, readyz, "Whether everything is warm", early=True),
    Endpoint("GET", "/openapi.json", None, openapi, "This description", early=True),
    Endpoint("GET", "/", None, page, "The live page", early=True),
]


def describe(endpoints: list[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of endpoints, made of the types that decode their bodies."""
    kinds = [kind for e in endpoints for kind in (e.body, e.answer) if kind is not None] + [Problem]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema = dict(zip(kinds, schemas, strict=True))
    refused = {"description": "What is wrong, in one line", "content": {_JSON: {"schema": schema[Problem]}}}
    paths: dict[str, Any] = {}
    for e in endpoints:
        content = {_JSON: {"schema": schema[e.answer]}} if e.answer is not None else {}
        operation: dict[str, Any] = {
            "operationId": e.handler.__name__,
            "summary": e.summary,
            "description": e.handler.__doc__,
            "responses": {
                "200": {"description": "Done", **({"content": content} if content else {})},
                "default": refused,
            },
            "security": [] if e.scope is None else [{"key": []}],
        }
        if e.body is not None:
            body = {_JSON: {"schema": schema[e.body]}, _PACKED: {"schema": schema[e.body]}}
            operation["requestBody"] = {"required": True, "content": body}
        if "{n:int}" in e.path:
            place = {"name": "n", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
            operation["parameters"] = [place]
        paths.setdefault(e.path.replace(":int", ""), {})[e.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "toprank serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
