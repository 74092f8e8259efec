"""What is sent in four forms is ranked alike; what cannot be used is refused with the path to it."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.starting import NAMES, Running, items, model
from toprank.data.documents import Columns, PathError, decode
from toprank.rankers.persistence import parse
from toprank.serve.bodies import Rank

COLUMNS = Columns(3, NAMES)


def rows(listed: list[dict[str, Any]]) -> np.ndarray:
    return np.array([[item["features"][name] for name in NAMES] for item in listed])


def test_all_forms_rank_as_the_saved_model_does(server: Running) -> None:
    listed = items(3, 8)
    X = rows(listed).astype(np.float32)
    for item, row in zip(listed, X.astype(float).tolist(), strict=True):
        item["features"] = dict(zip(NAMES, row, strict=True))
    ids = [item["id"] for item in listed]
    positional = [{"id": item["id"], "features": list(item["features"].values())} for item in listed]
    binary = X.tobytes()
    found = [
        server.post("/v1/rank", {"items": listed}),
        server.post("/v1/rank", {"items": positional}),
        server.post("/v1/rank", {"ids": ids, "features_f32": base64.b64encode(binary).decode()}),
        server.pack("/v1/rank", {"ids": ids, "features_f32": binary}),
        server.pack("/v1/rank", {"items": positional}),
    ]
    ranker = parse(model(), "m")
    scores = ranker.function_.scores(X.astype(np.float64))
    wanted = [ids[i] for i in np.argsort(-scores, kind="stable")]
    for answer in found:
        assert [item["id"] for item in answer["items"]] == wanted
        assert [item["rank"] for item in answer["items"]] == list(range(1, 9))
        assert [item["score"] for item in answer["items"]] == sorted(scores.tolist(), reverse=True)
        assert answer["version"] == server.service.served.version


def test_top_and_explanations_add_up(server: Running) -> None:
    found = server.post("/v1/rank", {"items": items(1), "top": 2, "explain": True})
    assert len(found["items"]) == 2
    for item in found["items"]:
        assert sum(item["contributions"].values()) == pytest.approx(item["score"])
        assert list(item["contributions"]) == NAMES
    assert "contributions" not in server.post("/v1/rank", {"items": items(1)})["items"][0]


def test_rerank_has_cohere_s_shape(server: Running) -> None:
    documents = [{"text": "ignored", "features": item["features"]} for item in items(2)]
    found = server.post("/v2/rerank", {"model": "x", "query": "q", "documents": documents, "top_n": 3})
    ranked = server.post("/v1/rank", {"items": items(2), "top": 3})["items"]
    assert [f"d{one['index']}" for one in found["results"]] == [item["id"] for item in ranked]
    assert [one["relevance_score"] for one in found["results"]] == [item["score"] for item in ranked]
    told = server.post("/v2/rerank", {"query": "q", "documents": ["plain text"]}, 422)
    assert told["at"] == "$.documents[0]"
    assert '{"features"' in told["error"]


def spoiled(change: Any) -> dict[str, Any]:
    body = {"items": items(0)}
    change(body)
    return body


BAD: list[tuple[Any, str, int]] = [
    (lambda b: b["items"][3]["features"].update(bm25="high"), "$.items[3].features.bm25", 422),
    (lambda b: b["items"][3]["features"].update(bm25=None), "$.items[3].features.bm25", 422),
    (lambda b: b["items"][3]["features"].update(bm25=True), "$.items[3].features.bm25", 422),
    (lambda b: b["items"][1]["features"].pop("age"), "$.items[1].features", 422),
    (lambda b: b["items"][1]["features"].update(bm26=1), "$.items[1].features.bm26", 422),
    (lambda b: b["items"][1].update(features=[1, 2]), "$.items[1].features", 422),
    (lambda b: b["items"][1].update(features=[1, 2, 1e200]), "$.items[1].features.views", 422),
    (lambda b: b["items"][1].update(id=7), "$.items[1].id", 422),
    (lambda b: b["items"][1].update(id="d0"), "$.items[1].id", 422),
    (lambda b: b["items"][1].update(label=1), "$.items[1]", 422),
    (lambda b: b.update(items=[]), "$.items", 422),
    (lambda b: b.update(top=0), "$.top", 422),
    (lambda b: b.update(ids=["a"]), "$.items", 422),
    (lambda b: b.pop("items"), "$", 422),
    (lambda b: (b.pop("items"), b.update(ids=["a"], features_f32="AAAA")), "$.features_f32", 422),
    (lambda b: (b.pop("items"), b.update(ids=["a"], features_f32="no base64!")), "$.features_f32", 422),
    (lambda b: b.update(explore=True), "$.explore", 409),
    (lambda b: b.update(items=[{"id": str(i), "features": [1, 2, 3]} for i in range(1001)]), "$.items", 422),
]


@pytest.mark.parametrize(("change", "at", "status"), BAD)
def test_a_refusal_is_one_line_with_the_path(server: Running, change: Any, at: str, status: int) -> None:
    told = server.post("/v1/rank", spoiled(change), status)
    assert told["at"] == at
    assert f"at {at}" in told["error"]
    assert "\n" not in told["error"]


def test_numbers_that_are_none_are_found_in_binary_too(server: Running) -> None:
    X = np.ones((4, 3), dtype=np.float32)
    X[2, 1] = np.nan
    body = msgspec.msgpack.encode({"ids": list("abcd"), "features_f32": X.tobytes()})
    answer = httpx.post(f"{server.url}/v1/rank", content=body, headers={"content-type": "application/msgpack"})
    assert answer.status_code == 422
    assert answer.json()["at"] == "$.features_f32 (document 2, feature age)"
    packed = msgspec.msgpack.encode({"items": [{"id": "a", "features": [1.0, float("inf"), 0.0]}]})
    answer = httpx.post(f"{server.url}/v1/rank", content=packed, headers={"content-type": "application/msgpack"})
    assert answer.json()["at"] == "$.items[0].features.age"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b"[" * 900_000 + b"]" * 900_000, b"nul"])
def test_what_is_no_json_is_told_so(server: Running, body: bytes) -> None:
    answer = server.client.post("/v1/rank", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) <= {"error", "request_id", "at"}


def test_a_model_without_names_takes_lists(tmp_path) -> None:
    columns = Columns(2, None)
    assert columns.rows([[1.0, 2.0]], "$").tolist() == [[1.0, 2.0]]
    with pytest.raises(PathError, match=r"have no names: send lists of 2 numbers - at \$\[0\].features"):
        columns.rows([{"a": 1.0}], "$")


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "features", "bm25"]), inner),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["items", "ids", "features_f32", "top", "explain"]), values))
def test_no_body_brings_anything_but_a_list_or_a_refusal(body: dict[str, Any]) -> None:
    with suppress(PathError):
        listed = COLUMNS.read(decode(json.dumps(body, default=str).encode(), Rank))
        assert listed.X.shape == (len(listed.ids), 3)
        assert np.isfinite(listed.X).all()
