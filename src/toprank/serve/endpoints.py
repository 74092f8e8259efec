"""What is answered at each path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from string import Template
from typing import Any

import msgspec
import numpy as np
from prometheus_client import generate_latest
from starlette.responses import Response, StreamingResponse

from .._version import __version__
from ..data.dataset import QueryDataset
from ..data.documents import JSON, DocumentList, PathError
from ..export import writing
from ..export.targets import Settings
from ..rankers.online import OnlineRanker
from ..report.additive import contributions
from ..report.page import asset, digest
from ..report.svg import curves
from . import bodies, history
from .app import Call, describe, endpoint
from .batch import Step
from .bodies import EVENTS, BodyError, Ranked, Ranking, RefusedEvent, require
from .learning import NOBODY, Event, Learner
from .service import Service

CERTIFIED = 20_000
"""Most events of a stream whose bounds are proved on demand: they are all replayed."""
STREAMS = 16
"""Most pages that are shown live at once."""
WEIGHTS, TOP = 16, 5
"""Weights shown on the page, the largest first, and documents of a ranking before and after."""


@endpoint("POST", "/v1/rank", "rank")
async def rank(call: Call, body: bodies.Rank) -> Ranking:
    """Rank documents; feedback on the ranking can be given by its id for a while."""
    docs = call.service.served.columns.read(body)
    served, rows, ranking = _ranked(call.service, docs, body.explore, body.top)
    if body.explain:
        parts = contributions(served.ranker.model_, served.as_list(docs.X))
        if parts is None:
            raise BodyError("the scores of this model are no sums over features", "$.explain")
        for item, row in zip(ranking.items, parts[rows].tolist(), strict=True):
            item.contributions = dict(zip(served.part_labels, row, strict=True))
    return ranking


def _ranked(service: Service, docs: DocumentList, explore: bool, top: int | None) -> tuple[Learner, list[int], Ranking]:
    served, scores, order = service.rank(docs, explore=explore)
    rows = order[:top].tolist()
    items = [*map(Ranked, [docs.ids[row] for row in rows], range(1, len(rows) + 1), scores[rows].tolist())]
    name = service.keep_ranking(replace(docs, shown=rows if explore else None))
    return served, rows, Ranking(name, served.version, items)


@endpoint("POST", "/v1/feedback", "learn")
async def feedback(call: Call, body: bodies.Events) -> bodies.Learned | list[bodies.Learned]:
    """Learn from what came of a ranking; answered when it is on disk. Several events are learned all or none."""
    call.service.check_learns()
    given, key = body if isinstance(body, list) else [body], call.noted["key"] or NOBODY
    require(len(given) <= EVENTS, f"at most {EVENTS:,} events at once, got {len(given):,}", "$", 413)

    def refusal(place: int, error: PathError) -> BodyError:
        at = f"$[{place}]{error.at[1:]}" if given is body and error.at else error.at
        status, headers = (error.status, error.headers) if isinstance(error, BodyError) else (422, {})
        return BodyError(error.message, at, status, **headers)

    events = []
    for place, one in enumerate(given):
        try:
            events.append(_event(call.service, one, key))
        except PathError as error:
            raise refusal(place, error) from None
    try:
        learned = await asyncio.wrap_future(call.service.learn(events, key))
    except RefusedEvent as refused:
        raise refusal(refused.place, refused.error) from None
    return learned if given is body else learned[0]


def _event(service: Service, body: bodies.Feedback, key: str) -> Event:
    one = (body.ranking_id is None) != (body.items is None and body.ids is None)
    require(one, "give the ranking_id, or the documents again: one of them", "$")
    served = service.served
    docs = served.columns.read(body) if body.ranking_id is None else service.waiting.get(body.ranking_id)
    event = Event.of(body, docs, key)
    served.check(event.kind)
    return event


@endpoint("POST", "/v2/rerank", "rank")
async def rerank(call: Call, body: bodies.Rerank) -> bodies.Reranked:
    """Rank in the shape of Cohere's rerank; a score is the model's own, not between 0 and 1."""
    features = []
    for i, document in enumerate(body.documents):
        if isinstance(document, str):
            raise BodyError('plain text has no features: send objects {"features": {...}}', f"$.documents[{i}]")
        features.append(document.features)
    X = call.service.served.columns.rows(features, "$.documents")
    served, scores, order = call.service.rank(DocumentList([], X))
    results = [bodies.Result(row, float(scores[row])) for row in order[: body.top_n].tolist()]
    return bodies.Reranked(call.name, results, {"version": served.version})


@endpoint("GET", "/v1/model", "admin", query={"file": ["1"]})
async def model(call: Call) -> bodies.Model | Response:
    """Return the model as it is now: its version, weights and totals; with `?file=1` its file, for replicas."""
    served = call.service.served
    call.headers["etag"] = f'"{call.service.tag}"'
    if call.head.get("if-none-match") == call.headers["etag"]:
        return Response(status_code=304, headers=call.headers)
    if "file" in call.request.query_params:
        return Response(served.model_text(), headers=call.headers, media_type=JSON)
    ranker, columns = served.ranker, served.columns
    totals = ranker.totals_ if isinstance(ranker, OnlineRanker) else vars(ranker).get("counts_", {})
    weights = None if served.coef is None else dict(zip(served.weight_labels, served.coef.tolist(), strict=True))
    return bodies.Model(
        served.version, type(ranker).__name__, ranker.learns_from, served.measure, call.service.frozen,
        call.service.oldest, columns.n_features, weights, dict(totals), call.service.age,
    )  # fmt: skip


@endpoint("GET", "/v1/model/versions/{n}", "admin", media=(JSON,))
async def version(call: Call) -> Response:
    """Return the model file of a version, as `toprank.load` reads it."""
    found = call.service.served
    if found.version != call.number:
        found = await asyncio.wrap_future(call.service.submit(lambda store: history.version(store, call.number)))
    return Response(found.model_text(), media_type=JSON)


@endpoint("GET", "/v1/model/certificate", "admin")
async def certificate(call: Call) -> dict[str, Any]:
    """Say what the stream showed: the mean measure with a band that holds at all times at once, and what is proved."""
    served, proved = call.service.served, list[dict[str, Any]]()
    why = f"all events since version 0 must be here, {CERTIFIED:,} at most, without a rollback"
    if not isinstance(served.ranker, OnlineRanker):
        why = f"no bound is known for {type(served.ranker).__name__}"
    elif events := await asyncio.wrap_future(call.service.submit(lambda store: store.since_the_start(CERTIFIED))):
        proved = await asyncio.to_thread(_proved, served.ranker, events)
    return _shown_so_far(call.service) | {"proved": proved, "why_nothing_is_proved": None if proved else why}


def _proved(ranker: OnlineRanker, events: list[Event]) -> list[dict[str, Any]]:
    qid = np.repeat(np.arange(len(events)), [len(event.y) for event in events])
    X = np.concatenate([event.docs.X.astype(np.float64) for event in events])
    data = QueryDataset.from_arrays(X, np.concatenate([event.y for event in events]), qid)
    return [one.to_dict() | {"terms": {}} for one in ranker.certify(data)]


def _shown_so_far(service: Service) -> dict[str, Any]:
    served = service.served
    lower, mean, upper = served.progress.interval()
    return {
        "version": served.version, "measure": served.measure, "events_judged": served.progress.n,
        "observed": None if served.progress.n == 0 else mean, "lower": lower, "upper": upper, "confidence": 0.95,
        "meaning": "mean of what each event was expected to show before it was learned from, at all times at once",
        "mistakes": served.mistakes,
    }  # fmt: skip


@endpoint("POST", "/v1/model:rollback", "admin")
async def rollback(call: Call, body: bodies.Rollback) -> dict[str, int]:
    """Go back to an old version, as a new version."""
    await asyncio.wrap_future(call.service.submit(lambda store: call.service.rollback(body.version, store)))
    return {"version": call.service.served.version}


@endpoint("POST", "/v1/model:freeze", "admin")
async def freeze(call: Call, body: bodies.Freeze) -> dict[str, int | bool]:
    """Stop learning, or let it go on; ranking does not stop."""
    await asyncio.wrap_future(call.service.submit(lambda store: call.service.freeze(body.frozen, store)))
    return {"version": call.service.served.version, "frozen": body.frozen}


@endpoint("POST", "/v1/model:backup", "admin")
async def backup(call: Call) -> dict[str, int | str]:
    """Copy the store beside itself while the server runs."""
    name = await asyncio.wrap_future(call.service.submit(lambda store: store.backup()))
    return {"version": call.service.served.version, "file": name}


@endpoint("POST", "/v1/model:export", "admin", media=("text/plain", "application/octet-stream"))
async def export(call: Call, body: bodies.Export) -> Response:
    """Write the live model for a search engine or a database, as `toprank export` does."""
    served, given = call.service.served, msgspec.to_builtins(body)
    to, names = given.pop("to"), served.columns.labels
    _, made = await asyncio.to_thread(writing.render, served.ranker, to, features=names, settings=Settings(**given))
    return Response(made.content, media_type="application/octet-stream" if to == "onnx" else "text/plain")


@endpoint("POST", "/demo/search", "rank")
async def search(call: Call, body: bodies.Search) -> Ranking:
    """Search the demo's library: the ranking is sampled, so that clicks on it can be learned from."""
    documents, X = await asyncio.to_thread(call.app.demo.candidates, body.query)
    docs = DocumentList([document.id for document in documents], np.ascontiguousarray(X, dtype=np.float64))
    _, rows, ranking = _ranked(call.service, docs, body.explore, 10)
    for item, row in zip(ranking.items, rows, strict=True):
        item.summary = documents[row].summary
    return ranking


@endpoint("GET", "/v1/live", "admin", early=True, media=("text/event-stream",))
async def stream(call: Call) -> Response:
    """Send what the page shows, again whenever the version changes (server-sent events)."""
    service, app = call.service, call.app
    require(app.streams < STREAMS, "too many live pages at once", status=503)

    async def events() -> AsyncIterator[bytes]:
        app.streams += 1
        try:
            sent, quiet = None, 0
            while not service.stopping.is_set():
                if sent != (sent := (service.served.version, service.frozen)):
                    yield b"data: " + msgspec.json.encode(_page(service, app.demo is not None)) + b"\n\n"
                elif (quiet := quiet + 1) % 60 == 0:
                    yield b": still here\n\n"
                await asyncio.sleep(0.25)
        finally:
            app.streams -= 1

    return StreamingResponse(events(), media_type="text/event-stream")


def _page(service: Service, demo: bool) -> dict[str, Any]:
    served, start, weights, drawn = service.served, service.first.coef, list[tuple[str, float, float]](), ""
    if served.coef is not None and start is not None:
        largest = np.argsort(-abs(served.coef), kind="stable")[:WEIGHTS].tolist()
        moved = (served.coef - start).tolist()
        weights = [(served.weight_labels[j], float(served.coef[j]), moved[j]) for j in largest]
    if service.curve:
        _, means, lows, highs = zip(*service.curve, strict=True)
        label = f"mean {served.measure} by event, from {means[0]:.3f} to {means[-1]:.3f}"
        drawn = curves({"mean": means, "band low": lows, "band high": highs}, label, (0.0, 1.0))
    return _shown_so_far(service) | {
        "toprank": __version__, "demo": demo, "frozen": service.frozen, "ranker": type(served.ranker).__name__,
        "learns": served.ranker.learns_from, "curve": drawn, "weights": weights, "last": [*map(_last, [*service.last])],
        "same_as": service.same_as,
    }  # fmt: skip


def _last(step: Step) -> dict[str, Any]:
    """The best documents of an event before and after it was learned from."""
    found: dict[str, Any] = {"seq": step.after.version, "event": step.event.given_id, "measure": step.measure}
    for when, learner in (("before", step.before), ("after", step.after)):
        order = np.argsort(-learner.scores(step.event.docs.X), kind="stable")[:TOP]
        found[when] = [step.event.docs.ids[row] for row in order.tolist()]
    return found


@endpoint("GET", "/metrics", "admin", early=True, media=("text/plain",))
async def metrics(call: Call) -> Response:
    """Return counters for Prometheus."""
    return Response(generate_latest(call.app.registry), media_type="text/plain; version=0.0.4")


@endpoint("GET", "/healthz", early=True)
async def healthz(call: Call) -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok", "toprank": __version__}


@endpoint("GET", "/readyz")
async def readyz(call: Call) -> dict[str, int | float]:
    """Say that everything is compiled, and requests are served at full speed; of a replica, that it keeps up."""
    call.service.check_fresh()
    age = call.service.age
    return {"version": call.service.served.version} | ({} if age is None else {"age_seconds": round(age, 3)})


@endpoint("GET", "/openapi.json", early=True)
async def openapi(call: Call) -> dict[str, Any]:
    """Return this description."""
    return describe(call.app.endpoints)


@endpoint("GET", "/", early=True, media=("text/html",))
async def page(call: Call) -> Response:
    """Return the page that shows the stream live: nothing is fetched but from here, and no other script runs."""
    script, style = asset("live.js", "toprank.serve"), asset("page.css") + asset("live.css", "toprank.serve")
    text = Template(asset("live.html", "toprank.serve")).substitute(style=style, script=script)
    ours = f"script-src 'sha256-{digest(script)}'; style-src 'sha256-{digest(style)}'; connect-src 'self'"
    policy = f"default-src 'none'; {ours}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return Response(text, media_type="text/html", headers={"content-security-policy": policy})
