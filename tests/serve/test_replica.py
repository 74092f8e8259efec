"""A replica follows whatever happens, shows how old its model is, and is not ready when that is too old."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.serve.starting import Running, model, open_store, running
from toprank.errors import InputError
from toprank.serve import following
from toprank.serve.following import Follower
from toprank.serve.service import Service

GOOD = model()


class Leader(ThreadingHTTPServer):
    """Answers as it is told to, and notes what it was asked."""

    answer: bytes = b""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append(dict(self.headers))
        self.wfile.write(server.answer)
        self.close_connection = True

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def leading() -> Iterator[Leader]:
    with Leader() as leader:
        thread = threading.Thread(target=leader.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield leader
        leader.shutdown()
        thread.join()


def answered(body: bytes, tag: str | None, length: int | None = None) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body) if length is None else length}\r\n"
    return (head + ("" if tag is None else f"etag: {tag}\r\n") + "\r\n").encode() + body


def until(done: Any) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


BROKEN = {
    "half an answer": answered(GOOD[:100], '"a-1"', len(GOOD)),
    "no HTTP": b"hello\r\n\r\n",
    "nothing": b"",
    "half a file": answered(GOOD[:100], '"a-1"'),
    "no JSON": answered(b"<html>", '"a-1"'),
    "no tag": answered(GOOD, None),
    "another tag": answered(GOOD, '"12"'),
    "an error": b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
    "bytes that are no text": answered(b"\xff\xfe{", '"a-1"'),
    "half a chunk": b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\netag: "a-1"\r\n\r\nff\r\nabc',
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_no_answer_stops_a_replica(broken: bytes) -> None:
    with leading() as leader:
        leader.answer = broken
        follower = Follower(leader.url, None)
        with pytest.raises(InputError, match=leader.url) as refused:
            follower.fetch()
        assert len(str(refused.value).splitlines()) == 1
        leader.answer = answered(GOOD, '"a-1"')
        found = follower.fetch()
        assert found is not None  # what was broken is not taken for fetched
        assert found.version == 1
        service: Any = SimpleNamespace(stopping=threading.Event(), served=found)
        service.stopping.wait = lambda seconds: threading.Event.wait(service.stopping, 0.01)
        leader.answer = broken
        follower.follow(service)
        until(lambda: follower.problem)
        leader.answer = answered(GOOD, '"a-2"')
        until(lambda: service.served.version == 2 and not follower.problem)
        service.stopping.set()


def test_any_error_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Follower("http://127.0.0.1:9", None)
    service: Any = SimpleNamespace(stopping=threading.Event(), served=None)
    service.stopping.wait = lambda seconds: threading.Event.wait(service.stopping, 0.01)
    monkeypatch.setattr(follower, "fetch", lambda: 1 / 0)
    follower.follow(service)
    until(lambda: follower.problem == "division by zero")
    monkeypatch.setattr(follower, "fetch", lambda: "a model")
    until(lambda: service.served == "a model")
    service.stopping.set()


def test_the_key_does_not_go_along_a_redirect() -> None:
    with leading() as leader, leading() as other:
        other.answer = answered(GOOD, '"a-1"')
        leader.answer = f"HTTP/1.1 302 Found\r\nlocation: {other.url}/\r\ncontent-length: 0\r\n\r\n".encode()
        with pytest.raises(InputError, match=f"answers 302 Found and names another address \\({other.url}/\\)"):
            Follower(leader.url, "secret").fetch()
        assert leader.asked[0]["Authorization"] == "Bearer secret"
        assert other.asked == []


def test_a_replica_that_hears_nothing_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(late=0.0, monotonic=lambda: time.monotonic() + clock.late)
    monkeypatch.setattr(following, "time", clock)
    with running(tmp_path, model()) as leader:
        service = Service(Follower(leader.url, None, stale=20.0))
        with running(tmp_path, None, service=service) as replica:
            assert replica.get("/readyz")["age_seconds"] < 20
            assert replica.get("/v1/model")["age_seconds"] < 20
            assert leader.get("/v1/model")["age_seconds"] is None
            assert leader.get("/readyz") == {"version": 0}
            assert age_of(replica) < 20
            monkeypatch.setattr(service.follower, "fetch", lambda: 1 / 0)
            until(lambda: service.follower is not None and service.follower.problem)
            clock.late = 25.0
            told = replica.get("/readyz", 503)
            assert "s ago, and 20 s are allowed: division by zero" in told["error"]
            assert age_of(replica) >= 25
            assert replica.post("/v1/rank", {"items": [{"id": "a", "features": [0, 0, 0]}]})["version"] == 0
            monkeypatch.undo()
            until(lambda: replica.client.get("/readyz").status_code == 200)


def age_of(replica: Running) -> float:
    text = replica.client.get("/metrics").text
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("toprank_replica_age_seconds "))


def test_a_tag_names_store_and_version(tmp_path: Path) -> None:
    with running(tmp_path, model()) as first:
        old = first.client.get("/v1/model").headers["etag"]
        first.learn("a")
        tag = first.client.get("/v1/model").headers["etag"]
        assert tag != old
        assert first.client.get("/v1/model", headers={"if-none-match": tag}).status_code == 304
        with running(tmp_path, None, service=Service(Follower(first.url, None)), name="none.db") as replica:
            assert replica.client.get("/v1/model").headers["etag"] == tag
    with running(tmp_path, model(), name="other.db") as second:  # another store at the same version
        second.learn("b", 2)
        answer = second.client.get("/v1/model", headers={"if-none-match": tag})
        assert answer.status_code == 200
        assert answer.headers["etag"].endswith('-1"')
    with running(tmp_path, None) as again:  # the same store after a restart
        assert again.client.get("/v1/model").headers["etag"] == tag
    open_store(tmp_path / "rank.db", None).close()
