"""Feedback is learned once, durably, all or none; a replay of the store leads to the same bits."""

from __future__ import annotations

import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import toprank as tr
from tests.serve.starting import NAMES, Running, event, fresh, items, model, open_store, running
from toprank.errors import InputError
from toprank.rankers.persistence import parse
from toprank.serve import history
from toprank.serve.learning import Event, Learner
from toprank.serve.store import Store


class Verdict(NamedTuple):
    oldest: int
    events: int
    difference: str | None


def verdict(path: Path) -> Verdict:
    with closing(Store(path)) as store:
        return Verdict(store.oldest_and_newest[0], *history.verify(store)[:2])


def test_events_are_learned_as_partial_fit_learns_them(tmp_path: Path) -> None:
    ranker = parse(model(names=None), "m")
    with running(tmp_path, model()) as server:
        for i in range(20):
            body = event(f"e{i}", i)
            told = server.post("/v1/feedback", body)
            X = np.array([[item["features"][name] for name in NAMES] for item in body["items"]])
            y = np.array([float(body["labels"].get(item["id"], 0)) for item in body["items"]])
            ranker.partial_fit(X, y)
            assert told == {
                "status": "learned",
                "seq": i + 1,
                "version": i + 1,
                "measure": ranker.trace_["measure"][-1],
            }
        now = server.get("/v1/model")
        assert list(now["weights"].values()) == ranker.coef_.tolist()
        assert now["totals"] == ranker.totals_
        X = np.array([[item["features"][name] for name in NAMES] for item in items(99)])
        ranked = server.post("/v1/rank", {"items": items(99)})
        assert ranked["version"] == 20
        assert sorted((item["score"] for item in ranked["items"]), reverse=True) == sorted(
            ranker.predict(X), reverse=True
        )
    found = verdict(tmp_path / "rank.db")
    assert (found.events, found.difference) == (20, None)


def test_an_event_that_comes_again_is_not_learned_again(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        first = server.learn("e", 1)
        before = server.get("/v1/model")
        again = server.learn("e", 1)
        assert again == first | {"status": "duplicate"}
        assert server.get("/v1/model") == before
        twice = server.post("/v1/feedback", [event("f", 1), event("f", 1), event("e", 1)])
        assert [one["status"] for one in twice] == ["learned", "duplicate", "duplicate"]
        assert [one["seq"] for one in twice] == [2, 2, 1]
    with running(tmp_path, None) as server:  # and not after a restart either
        assert server.learn("f", 1)["status"] == "duplicate"
        assert server.get("/v1/model")["version"] == 2


def test_several_events_are_learned_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, model()) as server:
        before = server.get("/v1/model")
        bad = event("c", 3)
        bad["labels"]["nobody"] = 1
        told = server.post("/v1/feedback", [event("a", 1), event("b", 2), bad], 422)
        assert told["at"] == "$[2].labels.nobody"
        real = Learner.after

        def after(self: Learner, one: Event) -> Any:  # what only learning finds out
            if one.given_id == "overflows":
                raise InputError("numbers overflow")
            return real(self, one)

        monkeypatch.setattr(Learner, "after", after)
        server.post("/v1/feedback", [event("a", 1), event("overflows", 2)], 422)
        assert server.get("/v1/model") == before
        lines = "\n".join(json.dumps(event(f"l{i}", i)) for i in range(3))
        head = {"content-type": "application/x-ndjson"}
        answer = server.client.post("/v1/feedback", content=lines, headers=head)
        assert [one["seq"] for one in answer.json()] == [1, 2, 3]
        answer = server.client.post("/v1/feedback", content=lines + "\n{}", headers=head)
        assert answer.status_code == 422
        assert answer.json()["at"] == "$[3]"
        server.post("/v1/feedback", [event(str(i), n=1) for i in range(1001)], 413)
    assert verdict(tmp_path / "rank.db").difference is None


BAD: list[tuple[dict[str, Any], int, str | None]] = [
    ({"labels": {"d0": -1}}, 422, "$.labels.d0"),
    ({"labels": {"d0": 1000.5}}, 422, "$.labels.d0"),
    ({"labels": {"d0": "x"}}, 422, "$.labels.d0"),
    ({"labels": None}, 422, "$"),
    ({"clicks": ["d0"]}, 422, "$"),
    ({"labels": None, "clicks": ["d0"]}, 422, "$.clicks"),
    ({"ranking_id": "x"}, 422, "$"),
    ({"items": None}, 422, "$"),
    ({"items": None, "ranking_id": "unknown"}, 404, None),
    ({"event_id": ""}, 422, "$.event_id"),
    ({"event_id": "x" * 201}, 422, "$.event_id"),
    ({"surprise": 1}, 422, "$"),
]


@pytest.mark.parametrize(("change", "status", "at"), BAD)
def test_bad_feedback_leaves_the_model_as_it_was(server: Running, change: Any, status: int, at: str | None) -> None:
    before = server.service.served
    told = server.post("/v1/feedback", event("bad") | change, status)
    assert told.get("at") == at
    assert server.service.served is before


def test_a_ranking_can_be_judged_by_its_id(tmp_path: Path) -> None:
    with running(tmp_path, model(), most=3000, seconds=0.2) as server:
        first = server.post("/v1/rank", {"items": items(1)})["ranking_id"]
        assert server.post("/v1/feedback", {"event_id": "a", "ranking_id": first, "labels": {"d1": 1}})["seq"] == 1
        for i in range(5):
            newest = server.post("/v1/rank", {"items": items(i)})["ranking_id"]
        assert server.service.waiting.nbytes <= 3000  # the oldest went, the newest are there
        server.post("/v1/feedback", {"event_id": "b", "ranking_id": first, "labels": {"d1": 1}}, 404)
        server.post("/v1/feedback", {"event_id": "b", "ranking_id": newest, "labels": {"d1": 1}})
        time.sleep(0.25)
        told = server.post("/v1/feedback", {"event_id": "c", "ranking_id": newest, "labels": {"d1": 1}}, 404)
        assert "send the documents again" in told["error"]


def test_clicks_are_learned_on_sampled_rankings_only(tmp_path: Path) -> None:
    with running(tmp_path, model(tr.PDGD, cut=3)) as server:
        plain = server.post("/v1/rank", {"items": items(1)})
        told = server.post("/v1/feedback", {"event_id": "a", "ranking_id": plain["ranking_id"], "clicks": ["d0"]}, 422)
        assert "clicks are no grades" in told["error"]
        shown = server.post("/v1/rank", {"items": items(1), "explore": True})
        assert len(shown["items"]) == 3
        ids = [item["id"] for item in shown["items"]]
        body = {"event_id": "a", "ranking_id": shown["ranking_id"]}
        absent = next(f"d{i}" for i in range(5) if f"d{i}" not in ids)
        assert server.post("/v1/feedback", body | {"clicks": [absent]}, 422)["at"] == "$.clicks[0]"
        server.post("/v1/feedback", body | {"clicks": [ids[0], ids[0]]}, 422)
        server.post("/v1/feedback", event("labelled"), 409)
        before = server.get("/v1/model")["weights"]
        told = server.post("/v1/feedback", body | {"clicks": [ids[1]]})
        assert told["measure"] == 0.5
        assert server.get("/v1/model")["weights"] != before
        assert (
            server.post("/v1/feedback", body | {"event_id": "b", "clicks": [ids[1]], "shown": ids[1:]})["measure"] == 1
        )
        orders = {
            tuple(i["id"] for i in server.post("/v1/rank", {"items": items(1), "explore": True})["items"])
            for _ in range(30)
        }
        assert len(orders) > 1
    assert verdict(tmp_path / "rank.db").difference is None


def test_a_model_that_does_not_learn_still_ranks(tmp_path: Path) -> None:
    with running(tmp_path, model(tr.ListNet)) as server:
        assert len(server.post("/v1/rank", {"items": items()})["items"]) == 5
        assert "ListNet learns from nothing" in server.learn("a", status=409)["error"]
        assert server.get("/v1/model")["learns"] == "nothing"


def test_many_clients_at_once(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda i: server.learn(f"e{i % 100}", i % 100), range(200)))
        learned = [one for one in told if one["status"] == "learned"]
        assert sorted(one["seq"] for one in learned) == list(range(1, 101))
        assert server.service.groups <= 100
    assert verdict(tmp_path / "rank.db").difference is None


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE events SET body = (SELECT body FROM events e WHERE e.body <> events.body) WHERE seq = 2",
        "UPDATE events SET list = 3 WHERE seq = 2",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events WHERE seq = 5",
        "UPDATE state SET progress = '[5,1.0,1.0,1]'",
        "UPDATE state SET model = replace(model, '\"n_queries\":', '\"n_queries\":1')",
    ],
)
def test_a_store_that_was_changed_is_found_out(tmp_path: Path, spoil: str) -> None:
    with running(tmp_path, model()) as server:
        for i in range(5):
            server.learn(f"e{i}", i)
    assert verdict(tmp_path / "rank.db").difference is None
    with sqlite3.connect(tmp_path / "rank.db") as db:
        db.execute(spoil)
    db.close()
    assert verdict(tmp_path / "rank.db").difference is not None


def test_a_store_serves_one_server_and_one_model(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        server.learn("a")
        with pytest.raises(InputError, match="in use by another server"):
            Store(tmp_path / "rank.db")
    open_store(tmp_path / "rank.db", model()).close()
    with pytest.raises(InputError, match="begun with another model"):
        open_store(tmp_path / "rank.db", fresh())
    with pytest.raises(InputError, match="no such store"):
        open_store(tmp_path / "none.db", None)
    (tmp_path / "text.db").write_text("hello " * 1000)
    with pytest.raises(InputError, match="not a store of toprank serve"):
        Store(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (a)").connection.close()
    with pytest.raises(InputError, match="not a store of toprank serve"):
        open_store(tmp_path / "other.db", model())


def test_what_a_crash_leaves_of_a_transaction_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, model()) as server:
        server.learn("a")
        before, store = server.service.served, server.service.store
        assert store is not None
        real = store.commit

        def fails(rows: list[Any], *args: Any, **named: Any) -> None:
            real([*rows, rows[0]], *args, **named)  # a second row of the same number

        monkeypatch.setattr(store, "commit", fails)
        assert "request id" in server.learn("b", status=500)["error"]
        monkeypatch.undo()
        assert server.service.served is before
        assert server.learn("b")["seq"] == 2
    assert verdict(tmp_path / "rank.db").events == 2
