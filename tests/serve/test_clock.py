"""A clock that jumps forgets nothing: neither while the server runs nor between two starts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.serve.starting import model, running
from toprank.serve import clock as clock_module
from toprank.serve import service as service_module
from toprank.serve.clock import Clock

DAY = 86_400.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A wall clock that can be set, and one that only runs on."""
    made = SimpleNamespace(wall=1.7e9, run=0.0)
    made.time, made.monotonic = lambda: made.wall, lambda: made.run

    def wait(seconds: float) -> None:
        made.wall += seconds
        made.run += seconds

    made.wait = wait
    monkeypatch.setattr(clock_module, "time", made)
    monkeypatch.setattr(service_module, "SNAPSHOT_EVERY", 5)
    return made


def test_a_clock_that_was_set_is_not_followed(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    ours, start = Clock(0.0), clock.wall
    clock.wait(100.0)
    assert ours.now() == start + 100
    clock.wall += 30.0  # a small correction is followed
    assert ours.now() == start + 130
    assert caplog.text == ""
    clock.wall += 400 * DAY
    clock.wait(10.0)
    assert ours.now() == start + 140
    assert ours.for_forgetting() == start + 140
    assert "the clock was set by 9600.0 h" in caplog.text
    clock.wall -= 400 * DAY  # and back
    clock.wait(10.0)
    assert ours.now() == start + 150
    clock.wall -= 400 * DAY
    clock.wait(10.0)
    assert ours.now() == start + 160  # never backwards
    assert ours.for_forgetting() < start - 399 * DAY


def test_of_a_long_time_before_a_start_one_day_counts(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    last = clock.wall
    clock.wall += 400 * DAY
    ours = Clock(last)
    assert ours.now() == last + 400 * DAY
    assert ours.for_forgetting() == pytest.approx(last + DAY)
    assert "400.0 days before this start" in caplog.text
    clock.wait(5 * DAY)
    assert ours.for_forgetting() == pytest.approx(last + 6 * DAY)
    clock.wall = last - 400 * DAY  # the clock of the event was wrong, or is now
    ours = Clock(last)
    assert ours.now() == last
    assert ours.for_forgetting() == last - 400 * DAY
    assert "400.0 days before the last event" in caplog.text


@pytest.mark.parametrize("restarted", [False, True])
def test_a_jump_of_the_clock_drops_no_version_and_no_id(tmp_path: Path, clock: Any, restarted: bool) -> None:
    with running(tmp_path, model()) as server:
        server.service.keep = 30 * DAY
        for i in range(12):
            clock.wait(60.0)
            server.learn(f"e{i}", i)
        if not restarted:
            clock.wall += 400 * DAY
            server.learn("after", 50)
            server.service.submit(server.service.forget).result(30)
            assert server.get("/v1/model")["oldest_version"] == 0
            assert server.learn("e3", 3)["status"] == "duplicate"
    clock.wall += 400 * DAY
    with running(tmp_path, None) as server:
        server.service.keep = 30 * DAY
        server.service.submit(server.service.forget).result(30)
        assert server.get("/v1/model")["oldest_version"] == 0
        assert server.learn("e3", 3)["status"] == "duplicate"
        for i in range(20, 30):  # what is really old goes
            clock.wait(5 * DAY)
            server.learn(f"e{i}", i)
        server.service.submit(server.service.forget).result(30)
        assert server.get("/v1/model")["oldest_version"] >= 10
