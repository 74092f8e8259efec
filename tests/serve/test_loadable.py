"""No event is committed whose state could not be loaded again; a store that has such a state can be taken back."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event as Flag
from typing import Any

import msgspec
import pytest

import toprank as tr
from tests.cli.calling import call, fail, run
from tests.serve.starting import Running, event, model, running
from tests.serve.test_feedback import verdict
from toprank.certificates.performance import RunningMean
from toprank.data.validation import LARGEST_GRADE
from toprank.errors import InputError
from toprank.serve.bodies import Feedback
from toprank.serve.learning import Event, Learner
from toprank.serve.service import Service
from toprank.serve.store import Store

OLD = Path(__file__).parent / "old"


def old_store(name: str, folder: Path) -> Path:
    """A store that the first layout's code wrote, from its SQL."""
    path = folder / "rank.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript((OLD / f"{name}.sql").read_text())
    return path


@pytest.fixture
def overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events whose id begins with "overflows" make a sum NaN, and no step refuses them."""
    real = Learner.after

    def after(self: Learner, one: Event) -> tuple[Learner, float | None]:
        learner, measure = real(self, one)
        bad = RunningMean(learner.progress.n, math.nan, 0.0)
        return (replace(learner, progress=bad) if one.given_id.startswith("overflows") else learner), measure

    monkeypatch.setattr(Learner, "after", after)


@pytest.mark.parametrize("grade", [LARGEST_GRADE + 0.5, 1023.9])
def test_a_grade_beyond_the_bound_is_refused_by_its_path(server: Running, grade: float) -> None:
    before = server.service.served
    told = server.post("/v1/feedback", event("large") | {"labels": {"d1": grade}}, 422)
    assert told["at"] == "$.labels.d1"
    assert f"{LARGEST_GRADE:g}" in told["error"]
    assert server.service.served is before


@pytest.mark.parametrize("kind", [tr.OnlineListNet, tr.SlamPerceptron, tr.MinimaxPerceptron])
def test_the_largest_grade_is_learned_from_and_loaded_again(tmp_path: Path, kind: Any) -> None:
    with running(tmp_path, model(kind)) as server:
        labels = {f"d{i}": LARGEST_GRADE for i in range(0, 1000, 2)}
        assert server.post("/v1/feedback", event("large", n=1000) | {"labels": labels})["measure"] is not None
    with running(tmp_path, None) as server:
        assert server.get("/v1/model")["version"] == 1
    assert verdict(tmp_path / "rank.db").difference is None


def test_an_event_that_leads_to_a_state_that_cannot_be_loaded_is_not_committed(tmp_path: Path, overflows: None) -> None:
    with running(tmp_path, model()) as server:
        assert [one["seq"] for one in server.post("/v1/feedback", [event("a", 1), event("b", 2)])] == [1, 2]
        before = server.get("/v1/model")
        told = server.learn("overflows", status=422)
        assert told["at"] == "$"
        assert "could not be loaded again" in told["error"]
        told = server.post("/v1/feedback", [event("c", 3), event("b", 2), event("overflows", 4), event("d", 5)], 422)
        assert told["at"] == "$[2]"
        assert server.get("/v1/model") == before
        assert server.learn("c", 3)["seq"] == 3
    with running(tmp_path, None) as server:
        assert server.get("/v1/model")["version"] == 3
    assert verdict(tmp_path / "rank.db").difference is None


def test_requests_that_are_written_together_do_not_suffer_for_one_of_them(tmp_path: Path, overflows: None) -> None:
    with running(tmp_path, model()) as server:
        service: Service = server.service
        bodies = [msgspec.convert(event(name), Feedback) for name in ("a", "overflows", "b")]
        hold = Flag()
        service.submit(lambda store: hold.wait(30))  # all three wait for the writer at once
        futures = [service.learn([Event.of(body, service.served.columns.read(body))]) for body in bodies]
        hold.set()
        assert [one.version for one in futures[0].result(30)] == [1]
        with pytest.raises(Exception, match="could not be loaded again"):
            futures[1].result(30)
        assert [one.version for one in futures[2].result(30)] == [2]
    assert verdict(tmp_path / "rank.db").difference is None


def test_an_old_store_opens_verifies_and_learns_on(tmp_path: Path) -> None:
    path = old_store("layout1", tmp_path)
    found = verdict(path)
    assert (found.oldest, found.events, found.difference) == (0, 8, None)
    with running(tmp_path, None) as server:
        assert server.get("/v1/model")["weights"] == {"bm25": -7.0, "age": -1.0, "views": -4.0}
        assert server.learn("new", 1)["seq"] == 9
        server.post("/v1/model:rollback", {"version": 5})
    found = verdict(path)
    assert (found.events, found.difference) == (10, None)


def test_a_state_that_cannot_be_loaded_is_told_and_taken_back(tmp_path: Path, capsys: Any) -> None:
    path = old_store("unloadable", tmp_path)
    code, out, _ = call(capsys, "serve", "--verify", path)
    assert code == 1
    assert "version 3 of rank.db cannot be loaded" in out
    told = fail(capsys, "serve", "--store", path, "--port", "0")
    assert f"toprank serve --rollback N --store {path} goes back to version N, from 0 to 2" in told
    with pytest.raises(InputError, match="cannot be loaded"):
        Service(Store(path))
    assert "versions 0 to 3, not 4" in fail(capsys, "serve", "--rollback", "4", "--store", path)
    assert "version 3 of rank.db cannot be loaded" in fail(capsys, "serve", "--rollback", "3", "--store", path)
    assert "--rollback needs --store" in fail(capsys, "serve", "--rollback", "2")
    assert "version 4 of" in run(capsys, "serve", "--rollback", "2", "--store", path)
    told = json.loads(run(capsys, "serve", "--verify", path, "--json"))
    assert (told["equal"], told["events"], told["left_behind"]) == (True, 4, [3])
    assert "cannot be learned again, before a rollback: 3" in run(capsys, "serve", "--verify", path)
    with running(tmp_path, None) as server:
        assert server.get("/v1/model")["version"] == 4
        assert server.learn("next", 1)["seq"] == 5
        server.get("/v1/model/versions/3", 409)
    assert json.loads(run(capsys, "serve", "--rollback", "0", "--store", path, "--json")) == {
        "version": 6,
        "same_as": 0,
    }
