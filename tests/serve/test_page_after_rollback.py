"""The live page shows the stream that led to the model: after a rollback, nothing of what was taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.serve.starting import Running, fresh, running
from toprank.serve import service as service_module


def page(server: Running) -> Any:
    """What the page is told first."""
    with server.client.stream("GET", "/v1/live") as stream:
        return json.loads(next(line for line in stream.iter_lines() if line.startswith("data: "))[6:])


def versions(server: Running) -> list[int]:
    return [point[0] for point in server.service.curve]


def test_what_was_taken_back_is_not_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "SNAPSHOT_EVERY", 2)
    with running(tmp_path, fresh()) as server:
        for i in range(6):
            server.learn(f"e{i}", i)
        before = page(server)
        assert [one["seq"] for one in before["last"]] == [6, 5, 4, 3, 2, 1]
        assert before["same_as"] is None
        server.post("/v1/model:rollback", {"version": 3})
        after = page(server)
        assert (after["version"], after["same_as"], after["events_judged"]) == (7, 3, 3)
        assert [one["seq"] for one in after["last"]] == [3, 2, 1]
        assert versions(server) == [1, 2, 3, 7]
        server.learn("next", 9)
        now = page(server)
        assert (now["version"], now["same_as"]) == (8, None)
        assert [one["seq"] for one in now["last"]] == [8, 3, 2, 1]
        server.post("/v1/model:rollback", {"version": 7})
        assert page(server)["same_as"] == 7
    with running(tmp_path, None) as server:  # the same after a start: of the snapshots, those on the way
        assert page(server)["same_as"] == 7
        assert versions(server) == [2, 7, 9]
        server.post("/v1/model:rollback", {"version": 0})
        assert versions(server) == []
        empty = page(server)
        assert (empty["curve"], empty["last"], empty["observed"], empty["same_as"]) == ("", [], None, 0)
