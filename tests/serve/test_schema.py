"""The OpenAPI description, taken at its word: whatever is sent by it gets an answer by it, and none is a failure."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import toprank as tr
from tests.serve.starting import Running, event, model, running

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module", params=[tr.OnlineListNet, tr.PDGD], ids=lambda kind: kind.__name__)
def logged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Any]]:
    log = io.StringIO()
    with running(tmp_path_factory.mktemp("schema"), model(request.param), log=log) as server:
        yield server, log


def test_no_request_by_the_description_fails_inside(logged: tuple[Running, Any], tmp_path: Path) -> None:
    server, log = logged
    schema = schemathesis.openapi.from_dict(server.get("/openapi.json"))
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path == "/v1/live":  # has no end
            continue

        @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def send(case: Any) -> None:
            answer = case.call(base_url=server.url)
            assert answer.status_code < 500, answer.text
            if answer.status_code >= 400 and answer.headers["content-type"] == "application/json":
                assert set(answer.json()) <= {"error", "request_id", "at"}

        send()
        tried += 1
    assert tried >= 14
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert len(lines) > 50
    assert [line for line in lines if "error" in line] == []


def test_the_description_names_what_bodies_and_answers_are(logged: tuple[Running, Any]) -> None:
    server, _ = logged
    told = server.get("/openapi.json")
    paths = told["paths"]
    feedback = paths["/v1/feedback"]["post"]["requestBody"]["content"]
    assert set(feedback) == {"application/json", "application/msgpack", "application/x-ndjson"}
    assert feedback["application/x-ndjson"]["schema"]["$ref"].endswith("/Feedback")  # of each line
    assert "application/x-ndjson" not in paths["/v1/rank"]["post"]["requestBody"]["content"]
    asked = {(one["name"], one["in"]): one for one in paths["/v1/model"]["get"]["parameters"]}
    assert asked["file", "query"]["schema"] == {"type": "string", "enum": ["1"]}
    assert not asked["file", "query"].get("required")
    assert "304" in paths["/v1/model"]["get"]["responses"]
    answers = {path: set(one["responses"]["200"]["content"]) for path, by in paths.items() for one in by.values()}
    assert answers["/v1/live"] == {"text/event-stream"}
    assert answers["/metrics"] == {"text/plain"}
    assert answers["/"] == {"text/html"}
    assert answers["/v1/model/versions/{n}"] == {"application/json"}
    assert answers["/v1/model:export"] == {"text/plain", "application/octet-stream"}
    assert answers["/v1/rank"] == {"application/json", "application/msgpack"}
    for path, by in paths.items():  # what is sent is what was said
        if "get" in by and path != "/v1/live":
            answer = server.client.get(path.replace("{n}", "0"))
            assert answer.headers["content-type"].partition(";")[0] in answers[path]
    lines = b"\n".join(json.dumps(event(f"line {i}", i)).encode() for i in range(2))
    answer = server.client.post("/v1/feedback", content=lines, headers={"content-type": "application/x-ndjson"})
    assert answer.status_code in (200, 409)  # PDGD learns from clicks
    with server.client.stream("GET", "/v1/live") as stream:
        assert stream.headers["content-type"].partition(";")[0] == "text/event-stream"


def test_the_file_of_the_model_is_sent_where_it_is_asked_for(logged: tuple[Running, Any]) -> None:
    server, _ = logged
    assert server.get("/v1/model?file=1")["format"] == "toprank-model"
    assert "weights" in server.get("/v1/model")
    for wrong in ("0", "no", ""):
        told = server.get(f"/v1/model?file={wrong}", 422)
        assert "?file=1" in told["error"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/model/versions/0", 200), ("/v1/model/versions/{n}", 404), ("/v1/model/versions/%7Bn%7D", 404),
        ("/v1/model/versions/²", 404), ("/v1/model/versions/٣", 404), ("/v1/model/versions/", 404),
        ("/v1/model/versions/-1", 404), ("/v1/model/versions/00", 200), ("/v1/model/0", 404),
    ],
)  # fmt: skip
def test_a_version_is_a_number_of_ascii_digits(logged: tuple[Running, Any], path: str, status: int) -> None:
    server, _ = logged
    assert server.client.get(path).status_code == status
