"""A server in a thread of the tests, and models small enough to wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np

import toprank as tr
from toprank.cli.serve import listen
from toprank.rankers.persistence import content_of, parse
from toprank.serve.app import App
from toprank.serve.guard import Keys, Limits
from toprank.serve.learning import Learner
from toprank.serve.quota import StorageLimits
from toprank.serve.running import Server
from toprank.serve.service import Service
from toprank.serve.store import Store

NAMES = ["bm25", "age", "views"]
PATIENCE = 120.0


def model(kind: Any = tr.OnlineListNet, names: list[str] | None = NAMES, **params: Any) -> bytes:
    """The text of a model file with three features."""
    data = tr.datasets.make_graded(n_queries=10, n_features=3, random_state=0)
    ranker = kind(**params).fit(data.X, data.y, qid=data.qid)
    return msgspec.json.encode(content_of(ranker, names))


def fresh(kind: Any = tr.OnlineListNet, **params: Any) -> bytes:
    """A model that has learned from one list only, by `partial_fit`: a stream from its beginning."""
    X = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    return msgspec.json.encode(content_of(kind(**params).partial_fit(X, np.array([1.0, 1.0])), NAMES))


def open_store(path: Path, text: bytes | None) -> Store:
    return Store(path, None if text is None else Learner.of(parse(text, "the model")))


@dataclass
class Running:
    url: str
    app: App
    store: Path
    client: httpx.Client

    @property
    def service(self) -> Service:
        return self.app.service

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    def post(self, path: str, body: Any, status: int = 200, **headers: str) -> Any:
        answer = self.client.post(path, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        assert answer.status_code == status, answer.text
        return answer.json()

    def get(self, path: str, status: int = 200, **headers: str) -> Any:
        answer = self.client.get(path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        assert answer.status_code == status, answer.text
        return answer.json()

    def pack(self, path: str, body: Any) -> Any:
        head = {"content-type": "application/msgpack"}
        answer = self.client.post(path, content=msgspec.msgpack.encode(body), headers=head)
        assert answer.status_code == 200, answer.text
        return msgspec.msgpack.decode(answer.content)

    def learn(self, name: str, seed: int = 0, status: int = 200) -> Any:
        return self.post("/v1/feedback", event(name, seed), status)


@contextmanager
def running(
    folder: Path, text: bytes | None, *, keys: Path | None = None, limits: Limits | None = None, log: Any = None,
    demo: Any = None, name: str = "rank.db", service: Service | None = None,
    limits_of_store: StorageLimits | None = None, **waiting: float,
) -> Iterator[Running]:  # fmt: skip
    path = folder / name
    service = service or Service(open_store(path, text), None, limits_of_store, **waiting)
    limits = limits or Limits()
    allowed = Keys(keys, limits.rate)
    bound = listen("127.0.0.1", 0, allowed)
    app = App(service, allowed, limits, log, demo)
    server = Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    try:
        assert service.ready.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.005)
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            yield Running(url, app, path, client)
    finally:
        service.stopping.set()
        server.should_exit = True
        thread.join(PATIENCE)
        service.stop()
        bound.close()


def items(seed: int = 0, n: int = 5) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"id": f"d{i}", "features": dict(zip(NAMES, rng.normal(size=3).tolist(), strict=True))} for i in range(n)]


def event(name: str, seed: int = 0, n: int = 5) -> dict[str, Any]:
    """An event whose best document is the one with the largest first feature."""
    listed = items(seed, n)
    best = max(listed, key=lambda item: item["features"]["bm25"])
    return {"event_id": name, "items": listed, "labels": {best["id"]: 2, listed[0]["id"]: 1} | {best["id"]: 2}}
