"""An event id belongs to a key and to a content: a repeat is a duplicate, anything else under the id is refused."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from tests.serve.starting import NAMES, event, items, model, running
from tests.serve.test_feedback import verdict
from tests.serve.test_loadable import old_store
from toprank._keys import new_key


def test_an_id_with_other_content_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        first = server.learn("e", 1)
        before = server.get("/v1/model")
        assert server.learn("e", 1) == first | {"status": "duplicate"}
        told = server.post("/v1/feedback", event("e", 1) | {"labels": {"d1": 2}}, 409)
        assert told["at"] == "$.event_id"
        assert "another event was learned under this id, as number 1" in told["error"]
        other = items(1)
        other[2]["features"]["age"] += 1
        server.post("/v1/feedback", event("e", 1) | {"items": other}, 409)
        told = server.post("/v1/feedback", [event("f", 2), event("f", 3)], 409)
        assert told["at"] == "$[1].event_id"
        assert server.get("/v1/model") == before
    with running(tmp_path, None) as server:
        server.learn("e", 2, 409)
        assert server.learn("e", 1)["status"] == "duplicate"


def test_the_same_content_may_come_in_any_form(tmp_path: Path) -> None:
    listed, labels = items(1), {"d1": 1, "d2": 0}
    X = np.array([[item["features"][name] for name in NAMES] for item in listed])
    with running(tmp_path, model()) as server:
        ranking = server.post("/v1/rank", {"items": listed})["ranking_id"]
        assert server.post("/v1/feedback", {"event_id": "e", "ranking_id": ranking, "labels": labels})["seq"] == 1
        packed = base64.b64encode(X.astype("<f4").tobytes()).decode()
        forms: list[dict[str, Any]] = [
            {"items": listed, "labels": labels},
            {"items": listed, "labels": {"d1": 1}},  # documents without a grade count as 0
            {"items": [{"id": item["id"], "features": list(item["features"].values())} for item in listed]},
            {"ids": [item["id"] for item in listed], "features_f32": packed},
        ]
        for form in forms:
            told = server.post("/v1/feedback", {"event_id": "e", "labels": labels} | form)
            assert (told["status"], told["seq"]) == ("duplicate", 1)


def test_keys_share_no_ids(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    shop, blog = (new_key(file, name, ("learn",)) for name in ("shop", "blog"))
    with running(tmp_path, model(), keys=file) as server:
        told = [
            server.post("/v1/feedback", event("order/17", seed), authorization=f"Bearer {key}")
            for seed, key in ((1, shop), (2, blog), (1, shop), (2, blog))
        ]
        assert [(one["status"], one["seq"]) for one in told] == [
            ("learned", 1), ("learned", 2), ("duplicate", 1), ("duplicate", 2),
        ]  # fmt: skip
        server.post("/v1/feedback", event("order/17", 2), 409, authorization=f"Bearer {shop}")
    assert verdict(tmp_path / "rank.db").difference is None


def test_while_frozen_a_repeat_is_a_duplicate(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        server.learn("e", 1)
        server.post("/v1/model:freeze", {"frozen": True})
        assert server.learn("e", 1)["status"] == "duplicate"
        assert "another event" in server.learn("e", 2, 409)["error"]
        assert "frozen" in server.learn("f", 2, 409)["error"]


def test_ids_of_an_old_store_are_known(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), old_store("layout1", tmp_path)
    listed = [
        {"id": f"d{i}", "features": dict(zip(NAMES, rng.integers(-3, 4, 3).astype(float).tolist(), strict=True))}
        for i in range(4)
    ]
    old = {"event_id": "e0", "items": listed, "labels": {"d2": 1}}
    with running(tmp_path, None) as server:
        told = server.post("/v1/feedback", old)
        assert (told["status"], told["seq"]) == ("duplicate", 1)
        server.post("/v1/feedback", old | {"labels": {"d1": 1}}, 409)
        name = server.service.store._first_value("SELECT event_id FROM events WHERE kind = 'rollback'")
        assert server.learn(name)["status"] == "learned"  # a rollback is no event of a client
    assert verdict(path).difference is None
