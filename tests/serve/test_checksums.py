"""What a disk changed behind SQLite's back is found: at the start where it can be, and by --verify all of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import toprank as tr
from tests.cli.calling import call, fail
from tests.serve.starting import fresh, model, running
from tests.serve.test_feedback import verdict
from tests.serve.test_loadable import old_store
from toprank.errors import InputError
from toprank.rankers.persistence import parse
from toprank.serve.service import Service
from toprank.serve.store import Store


def store_of(folder: Path, events: int = 4) -> Path:
    with running(folder, model()) as server:
        for i in range(events):
            server.learn(f"e{i}", i)
    return folder / "rank.db"


def spoil(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def empty_index_of_ids(path: Path) -> None:
    """Let the index of event ids be that of an empty table."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE other (event_id TEXT UNIQUE)")
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master WHERE name LIKE 'sqlite_autoindex%'"))
        db.execute("PRAGMA writable_schema = ON")
        change = "UPDATE sqlite_master SET rootpage = ? WHERE name = ?"
        ours, others = "sqlite_autoindex_events_1", "sqlite_autoindex_other_1"
        db.execute(change, (roots[others], ours))
        db.execute(change, (roots[ours], others))
        db.commit()


def test_an_index_of_ids_without_ids_is_found_at_the_start_and_by_verify(tmp_path: Path, capsys: Any) -> None:
    path = store_of(tmp_path)
    empty_index_of_ids(path)
    code, out, _ = call(capsys, "serve", "--verify", path)
    assert code == 1
    assert "missing from index sqlite_autoindex_events_1" in out
    told = fail(capsys, "serve", "--store", path, "--port", "0")  # it would learn events twice
    assert "is damaged" in told
    assert f"toprank serve --restore BACKUP --store {path}" in told
    with pytest.raises(InputError, match="is damaged"):
        Service(Store(path))
    Store(path).close()  # the file was let go


COEF = "'$.model.fields.coef.data[0]'"
CHANGED = {
    "a weight": f"UPDATE state SET model = json_set(model, {COEF}, json_extract(model, {COEF}) + 0.125)",
    "a digit wherever it stands": "UPDATE state SET model = replace(model, '3', '4')",
    "what the stream showed": "UPDATE state SET progress = replace(progress, '[4,', '[3,')",
    "the version": "UPDATE state SET seq = 3 WHERE seq = 4",
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_state_that_was_changed_is_not_served(tmp_path: Path, change: str) -> None:
    path = store_of(tmp_path)
    spoil(path, change)
    with pytest.raises(InputError, match=r"version \d of rank.db cannot be loaded.*toprank serve --rollback N"):
        Service(Store(path))
    assert "cannot be loaded" in str(verdict(path).difference)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET measure = 0.25 WHERE seq = 2",
        "UPDATE events SET at = at + 1 WHERE seq = 2",
        "UPDATE events SET event_id = 'nobody/other' WHERE seq = 2",
        "UPDATE events SET content = x'00' WHERE seq = 2",
        "UPDATE events SET kind = 'clicks' WHERE seq = 2",
        "UPDATE events SET target = 0 WHERE seq = 2",
    ],
)
def test_an_event_that_was_changed_is_found_though_it_leads_to_the_same_weights(tmp_path: Path, change: str) -> None:
    path = store_of(tmp_path)
    spoil(path, change)
    assert verdict(path).difference == "event 2 of rank.db is damaged: it is not what was written"


def test_a_snapshot_that_was_changed_is_found(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        server.learn("a", 1)
        server.post("/v1/model:rollback", {"version": 1})
        server.learn("b", 2)
    path = tmp_path / "rank.db"
    spoil(path, "UPDATE snapshots SET progress = replace(progress, '[1,', '[0,') WHERE seq = 2")
    assert "version 2 of rank.db cannot be loaded" in str(verdict(path).difference)
    with running(tmp_path, None) as server:  # the newest version is sound
        assert "not what was written" in server.get("/v1/model/versions/2", 422)["error"]


@pytest.mark.parametrize("kind", [tr.OnlineListNet, tr.SlamPerceptron, tr.MinimaxPerceptron])
@pytest.mark.parametrize("average", [True, False, "auto"])
def test_weights_that_are_not_those_of_the_state_are_refused(kind: Any, average: Any) -> None:
    content = json.loads(model(kind, average=average))
    parse(json.dumps(content).encode(), "model.json")
    content["model"]["fields"]["coef"]["data"][1] += 0.5
    with pytest.raises(InputError, match=r"model.json: \$.model has other weights than \$.state.state_"):
        parse(json.dumps(content).encode(), "model.json")


def test_a_store_of_the_second_layout_opens_verifies_and_learns_on(tmp_path: Path) -> None:
    path = old_store("layout2", tmp_path)
    found = verdict(path)
    assert (found.oldest, found.events, found.difference) == (0, 6, None)
    spoil(path, "UPDATE events SET measure = 0.25 WHERE seq = 2")  # nothing is known of events of then
    with running(tmp_path, None) as server:
        assert server.learn("new", 1)["seq"] == 7
    found = verdict(path)
    assert (found.events, found.difference) == (7, None)
    spoil(path, "UPDATE events SET measure = 0.25 WHERE seq = 7")
    assert "event 7 of rank.db is damaged" in str(verdict(path).difference)


def test_a_store_that_learned_nothing_yet_has_its_checksum(tmp_path: Path) -> None:
    with running(tmp_path, fresh()):
        pass
    path = tmp_path / "rank.db"
    spoil(path, "UPDATE state SET progress = '[1,1.0,1.0,0]'")
    with pytest.raises(InputError, match=r"version 0 of rank.db cannot be loaded"):
        Service(Store(path))
