"""A list is stored once, however many events name it; what a request and a key may store is bounded."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.serve.starting import Running, event, items, model, running
from tests.serve.test_feedback import verdict
from toprank.serve import clock as clock_module
from toprank.serve import quota
from toprank.serve import service as service_module
from toprank.serve.quota import StorageLimits


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


def judge(server: Running, names: list[str], ranking: str, status: int = 200) -> Any:
    told = [{"event_id": name, "ranking_id": ranking, "labels": {"d1": 1}} for name in names]
    return server.post("/v1/feedback", told, status)


def test_events_that_name_one_ranking_store_it_once(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        ranking = server.post("/v1/rank", {"items": items(1, 900)})["ranking_id"]
        assert [one["seq"] for one in judge(server, ["a", "b", "c"], ranking)] == [1, 2, 3]
        assert judge(server, ["d"], ranking)[0]["seq"] == 4
        server.post("/v1/feedback", event("e", 1, 900))  # the same documents again
        server.learn("f", 2)
    path = tmp_path / "rank.db"
    assert rows(path, "SELECT list FROM events ORDER BY seq") == [(1,), (1,), (1,), (1,), (1,), (2,)]
    assert rows(path, "SELECT count(*) FROM lists") == [(2,)]
    assert rows(path, "SELECT max(length(body)) < 900 * 3 * 8 FROM events") == [(1,)]
    found = verdict(path)
    assert (found.events, found.difference) == (6, None)


def test_a_thousand_events_of_one_large_ranking_take_the_room_of_one(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        ranking = server.post("/v1/rank", {"items": items(1, 1000)})["ranking_id"]
        assert judge(server, [str(i) for i in range(1000)], ranking)[-1]["seq"] == 1000
    assert rows(tmp_path / "rank.db", "SELECT count(*), sum(length(body)) < 30000 FROM lists") == [(1, 1)]


def test_a_list_goes_with_the_last_event_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "SNAPSHOT_EVERY", 5)
    clock = SimpleNamespace(now=1e9, time=lambda: clock.now, monotonic=time.monotonic)
    monkeypatch.setattr(clock_module, "time", clock)
    with running(tmp_path, model()) as server:
        for i in range(12):
            clock.now += 1.0
            server.learn(f"e{i}", 0 if i in (1, 11) else i + 1)  # one list comes early and late
        server.service.keep = 1.5
        server.service.submit(server.service.forget).result(30)
        assert server.get("/v1/model")["oldest_version"] == 10
    path = tmp_path / "rank.db"
    assert rows(path, "SELECT seq FROM events") == [(11,), (12,)]
    assert rows(path, "SELECT id FROM lists ORDER BY id") == [(2,), (11,)]
    assert verdict(path).difference is None


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        ("UPDATE lists SET body = (SELECT body FROM lists WHERE id = 1) WHERE id = 2", "list 2 of rank.db is damaged"),
        ("DELETE FROM lists WHERE id = 2", "list 2 of rank.db is missing"),
        ("UPDATE events SET body = x'00' WHERE seq = 2", "event 2 of rank.db is damaged"),
    ],
)
def test_a_list_that_was_changed_is_found_out(tmp_path: Path, spoil: str, told: str) -> None:
    with running(tmp_path, model()) as server:
        for i in range(3):
            server.learn(f"e{i}", i)
    with closing(sqlite3.connect(tmp_path / "rank.db")) as db:
        db.execute(spoil)
        db.commit()
    assert told in str(verdict(tmp_path / "rank.db").difference)


def test_a_request_may_store_so_much(tmp_path: Path) -> None:
    with running(tmp_path, model(), limits_of_store=StorageLimits(request=40_000)) as server:
        before = server.get("/v1/model")
        told = server.post("/v1/feedback", [event(f"e{i}", i, 400) for i in range(3)], 413)
        assert told["at"] == "$[2]"
        assert "0.04 MB" in told["error"]
        assert server.get("/v1/model") == before
        assert len(server.post("/v1/feedback", [event(f"e{i}", i, 400) for i in range(2)])) == 2


def test_a_key_may_store_so_much_in_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(quota, "time", clock)
    with running(tmp_path, model(), limits_of_store=StorageLimits(key_per_day=40_000)) as server:
        for i in range(2):
            server.post("/v1/feedback", event(f"e{i}", i, 400))
        answer = server.client.post("/v1/feedback", json=event("e2", 2, 400))
        assert answer.status_code == 429
        assert "a key may store 0.04 MB a day" in answer.json()["error"]
        wait = int(answer.headers["retry-after"])
        assert server.post("/v1/feedback", event("e1", 1, 400))["status"] == "duplicate"  # it stores nothing
        clock.now += wait
        assert server.post("/v1/feedback", event("e2", 2, 400))["status"] == "learned"
        assert server.get("/v1/model")["version"] == 3


def test_what_was_not_written_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, model(), limits_of_store=StorageLimits(key_per_day=20_000)) as server:
        store: Any = server.service.store
        real = store.commit
        monkeypatch.setattr(store, "commit", lambda *args, **named: 1 / 0)
        for i in range(4):
            server.post("/v1/feedback", event(f"e{i}", i, 400), 500)
        monkeypatch.setattr(store, "commit", real)
        assert server.post("/v1/feedback", event("e0", 0, 400))["seq"] == 1
