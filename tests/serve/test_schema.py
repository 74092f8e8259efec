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
from tests.serve.starting import Running, model, running

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
