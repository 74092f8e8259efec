"""Versions, rollback, freezing, export, certificates, retention, backups, replicas; full disks and clocks set back."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import toprank as tr
from tests.serve.starting import NAMES, Running, event, fresh, items, model, running
from tests.serve.test_feedback import verdict
from toprank.errors import InputError
from toprank.rankers.persistence import parse
from toprank.serve import clock as clock_module
from toprank.serve import service as service_module
from toprank.serve.app import describe
from toprank.serve.following import Follower
from toprank.serve.service import Service
from toprank.serve.store import Store


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots every five events."""
    monkeypatch.setattr(service_module, "SNAPSHOT_EVERY", 5)


def test_old_versions_come_back_to_the_bit(tmp_path: Path, often: None) -> None:
    with running(tmp_path, model()) as server:
        texts = [server.client.get("/v1/model/versions/0").text]
        for i in range(12):
            server.learn(f"e{i}", i)
            texts.append(server.client.get(f"/v1/model/versions/{i + 1}").text)
        for version in (0, 3, 5, 11, 12):
            text = server.client.get(f"/v1/model/versions/{version}").text
            assert text == texts[version]
            assert list(parse(text.encode(), "m").feature_names_in_) == NAMES
        assert server.post("/v1/model:rollback", {"version": 3}) == {"version": 13}
        old, new = (parse(text.encode(), "m") for text in (texts[3], server.client.get("/v1/model/versions/13").text))
        assert (old.coef_ == new.coef_).all()
        server.learn("after", 50)
        server.post("/v1/model:rollback", {"version": 13})
        assert server.client.get("/v1/model/versions/15").text == texts[3]
        server.post("/v1/model:rollback", {"version": 16}, 404)
        server.get("/v1/model/versions/16", 404)
        server.get(f"/v1/model/versions/{10**40}", 404)
        assert server.get("/v1/model")["version"] == 15
    found = verdict(tmp_path / "rank.db")
    assert (found.events, found.difference) == (15, None)


def test_frozen_models_rank_and_do_not_learn(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        assert server.post("/v1/model:freeze", {"frozen": True}) == {"version": 0, "frozen": True}
        assert "frozen" in server.learn("a", status=409)["error"]
        assert len(server.post("/v1/rank", {"items": items()})["items"]) == 5
    with running(tmp_path, None) as server:  # it stays so
        assert server.get("/v1/model")["frozen"]
        server.post("/v1/model:freeze", {"frozen": False})
        assert server.learn("a")["seq"] == 1


@pytest.mark.parametrize("to", ["elasticsearch", "solr", "vespa", "sql", "json"])
def test_the_live_model_is_exported_as_the_command_does(tmp_path: Path, to: str) -> None:
    with running(tmp_path, model()) as server:
        server.learn("a")
        asked = {"to": to, "name": "live", "version": "1"}
        text = server.client.post("/v1/model:export", json=asked).content
        (tmp_path / "model.json").write_bytes(server.client.get("/v1/model/versions/1").content)
        tr.export.write(tr.load(tmp_path / "model.json"), tmp_path / "out", to, name="live", version="1")
        assert text == (tmp_path / "out").read_bytes()
        told = server.post("/v1/model:export", {"to": "elasticsarch"}, 422)
        assert "did you mean" in told["error"]


def test_the_certificate_is_that_of_the_stream(tmp_path: Path) -> None:
    with running(tmp_path, fresh(tr.SlamPerceptron, eta=0.1, average=False)) as server:
        empty = server.get("/v1/model/certificate")
        assert (empty["observed"], empty["lower"], empty["upper"]) == (None, 0, 1)
        values = [server.learn(f"e{i}", i)["measure"] for i in range(60)]
        found = server.get("/v1/model/certificate")
        lower, upper = tr.confidence_sequence(values, changing=True)
        assert found["observed"] == pytest.approx(np.mean(values))
        assert found["lower"] == pytest.approx(lower[-1], abs=1e-12)
        assert found["upper"] == pytest.approx(upper[-1], abs=1e-12)
        assert found["mistakes"] == sum(value < 1 for value in values)
        assert "violated" not in {one["verdict"] for one in found["proved"]}
        bound = next(one for one in found["proved"] if one["reference"] == "Eq. 17")
        assert bound["verdict"] in ("holds", "vacuous")
        totals = server.get("/v1/model")["totals"]
        assert bound["observed"] == pytest.approx(totals["surrogate"])
        server.post("/v1/model:rollback", {"version": 10})
        rolled = server.get("/v1/model/certificate")
        assert rolled["proved"] == []
        assert "without a rollback" in rolled["why_nothing_is_proved"]
    with running(tmp_path, model(tr.PDGD), name="clicks.db") as server:
        assert "no bound is known for PDGD" in server.get("/v1/model/certificate")["why_nothing_is_proved"]


def test_old_events_go_and_what_is_left_is_sound(tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=time.time(), time=lambda: clock.now, monotonic=time.monotonic)
    monkeypatch.setattr(clock_module, "time", clock)
    with running(tmp_path, model()) as server:
        for i in range(22):
            clock.now += 1.0
            server.learn(f"e{i}", i)
        server.post("/v1/model:rollback", {"version": 12})
        for i in range(22, 26):
            server.learn(f"e{i}", i)
        store = server.service.store
        assert store is not None
        twentieth = store._first_value("SELECT at FROM events WHERE seq = 20")
        server.service.keep = clock.now - twentieth
        for i in range(26, 30):
            server.learn(f"e{i}", i)
        # Version 15 is old enough to be the oldest, but the rollback needs version 12.
        assert server.get("/v1/model")["oldest_version"] == 10
        assert "versions 10 to 31" in server.post("/v1/model:rollback", {"version": 9}, 404)["error"]
        server.get("/v1/model/versions/11")
        assert server.learn("e15", 15)["status"] == "duplicate"
        assert server.learn("e5", 5)["status"] == "learned"  # forgotten, its id too
    found = verdict(tmp_path / "rank.db")
    assert (found.oldest, found.events, found.difference) == (10, 22, None)
    with running(tmp_path, None) as server:
        server.service.keep = -1.0
        for i in range(5):
            server.learn(f"f{i}", i)
        assert server.get("/v1/model")["oldest_version"] == 35
    found = verdict(tmp_path / "rank.db")
    assert (found.oldest, found.events, found.difference) == (35, 2, None)
    with sqlite3.connect(tmp_path / "rank.db") as db:
        assert db.execute("SELECT min(seq) FROM events").fetchone()[0] == 36
    db.close()


def test_a_disk_that_refuses_to_forget_does_not_spoil_what_was_learned(
    tmp_path: Path, often: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: Store, at: float) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Store, "drop_before", refuses)
    with running(tmp_path, model()) as server:
        server.service.keep = 0.0
        assert [server.learn(f"e{i}", i)["status"] for i in range(12)] == ["learned"] * 12
        assert server.get("/readyz") == {"version": 12}


def test_a_backup_is_a_store(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        for i in range(3):
            server.learn(f"e{i}", i)
        told = server.client.post("/v1/model:backup").json()
        server.learn("later")
        assert re.fullmatch(r"rank-3-\d+\.db", told["file"])
        assert server.client.post("/v1/model:backup").json()["file"] != told["file"]
        assert (tmp_path / told["file"]).stat().st_mode & 0o777 == 0o600
    found = verdict(tmp_path / told["file"])
    assert (found.events, found.difference) == (3, None)
    with running(tmp_path, None, name=told["file"]) as server:
        assert server.learn("e2", 2)["status"] == "duplicate"
        assert server.learn("e3")["seq"] == 4


def test_a_replica_follows(tmp_path: Path) -> None:
    with running(tmp_path, model()) as leader:
        follower = Follower(leader.url, None)
        service = Service(follower)
        assert follower.fetch() is None  # nothing new
        with running(tmp_path, None, service=service) as replica:
            assert (
                replica.post("/v1/rank", {"items": items(4)})["items"]
                == leader.post("/v1/rank", {"items": items(4)})["items"]
            )
            told = replica.learn("a", status=409)
            assert "send it there" in told["error"]
            leader.learn("a", 1)
            end = time.monotonic() + 30
            while replica.get("/v1/model")["version"] != 1:
                assert time.monotonic() < end
                time.sleep(0.05)
            assert replica.get("/v1/model")["weights"] == leader.get("/v1/model")["weights"]
            replica.post("/v1/model:rollback", {"version": 0}, 409)
    with pytest.raises(InputError, match="does not answer"):
        follower.fetch()


def test_a_clock_set_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, model()) as server:
        server.learn("a")
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - 1e6)
        waits = server.post("/v1/rank", {"items": items()})["ranking_id"]
        server.post("/v1/feedback", {"event_id": "b", "ranking_id": waits, "labels": {"d1": 1}})
        monkeypatch.undo()
    with running(tmp_path, None) as server:
        monkeypatch.setattr(time, "time", lambda: real() - 1e6)
        server.learn("c")
    with sqlite3.connect(tmp_path / "rank.db") as db:
        times = [at for (at,) in db.execute("SELECT at FROM events ORDER BY seq")]
    db.close()
    assert times == sorted(times)
    assert verdict(tmp_path / "rank.db").difference is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    ).returncode == 0  # fmt: skip
    if not mounted:
        pytest.skip("a small disk can be mounted by root only")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_nothing_is_half_written(small_disk: Path) -> None:
    with running(small_disk, model()) as server:
        count = 0
        while (answer := server.client.post("/v1/feedback", json=event(f"e{count}", count, 400))).status_code == 200:
            count += 1
            assert count < 500
        assert answer.status_code == 507
        assert "nothing was learned" in answer.json()["error"]
        assert str(small_disk) not in answer.text
        assert count > 1
        assert server.get("/v1/model")["version"] == count
        assert len(server.post("/v1/rank", {"items": items()})["items"]) == 5
        assert server.client.post("/v1/model:backup").status_code == 507
        assert [file.name for file in small_disk.glob("*-*.db")] == []
        subprocess.run(["mount", "-o", "remount,size=32m", str(small_disk)], check=True)
        assert server.post("/v1/feedback", event(f"e{count}", count, 400))["seq"] == count + 1  # room again: it goes on
    found = verdict(small_disk / "rank.db")
    assert (found.events, found.difference) == (count + 1, None)


def test_counters_and_logs(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        server.learn("a")
        server.post("/v1/rank", {"items": items()})
        server.get("/nope", 404)
        text = server.client.get("/metrics").text
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert values['toprank_requests_total{path="/v1/rank",status="200"}'] == "1.0"
        assert values['toprank_requests_total{path="other",status="404"}'] == "1.0"
        assert values["toprank_version"] == "1.0"
        assert float(values["toprank_waiting_bytes"]) > 0
        assert "/nope" not in text  # what strangers type is no label


def test_the_description_is_made_of_the_types(server: Running) -> None:
    found = server.get("/openapi.json")
    assert found["openapi"] == "3.1.0"
    assert set(found["paths"]) >= {"/v1/rank", "/v1/feedback", "/v2/rerank", "/v1/model/versions/{n}", "/metrics", "/"}
    rank = found["paths"]["/v1/rank"]["post"]
    assert rank["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Rank"}
    assert found["components"]["schemas"]["Item"]["required"] == ["id", "features"]
    names = [operation["operationId"] for path in found["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert describe(server.app.endpoints) == found


def test_the_length_of_a_stream_costs_no_memory(tmp_path: Path, often: None) -> None:
    with running(tmp_path, model(), most=10_000) as server:
        for i in range(40):
            server.post("/v1/feedback", [event(f"{i}-{j}", j) for j in range(20)])
            server.post("/v1/rank", {"items": items(i)})
        service: Any = server.service
        assert server.get("/v1/model")["version"] == 800
        assert len(service.curve) <= service_module.POINTS
        assert len(service.last) == service_module.LAST
        assert service.waiting.nbytes <= 10_000
    store = Store(tmp_path / "rank.db")
    assert len(store.progress()) >= 2
    store.close()


def test_a_store_whose_models_have_marks_of_lists_is_verified_and_goes_on(tmp_path: Path, often: None) -> None:
    with running(tmp_path, model()) as server:
        for i in range(7):
            server.learn(f"e{i}", i)
    with closing(sqlite3.connect(tmp_path / "rank.db", isolation_level=None)) as db:
        for table in ("snapshots", "state"):
            for seq, text in db.execute(f"SELECT seq, model FROM {table}").fetchall():
                old = re.sub(r'"learned_from":"[^"]*"', '"learned_from":"8jOC8wgHGgA5OqIHAGgdAA=="', text)
                assert old != text
                db.execute(f"UPDATE {table} SET model = ?, checksum = NULL WHERE seq = ?", (old, seq))
    assert verdict(tmp_path / "rank.db").difference is None
    with running(tmp_path, model()) as server:
        server.learn("later", 9)
        text = server.client.get("/v1/model/versions/8").text
    assert '"learned_from":"later rows:' in text
    assert verdict(tmp_path / "rank.db").difference is None


def test_what_the_server_learned_from_is_refused_as_new(tmp_path: Path) -> None:
    with running(tmp_path, model()) as server:
        server.learn("e0", 0)
        ranker = parse(server.client.get("/v1/model/versions/1").text.encode(), "m")
    with closing(Store(tmp_path / "rank.db")) as store:
        (learned,) = store.since_the_start(10) or []
    data = tr.QueryDataset.from_arrays(learned.docs.X[::-1], learned.y[::-1], feature_names=NAMES)
    assert tr.certify(ranker, data)[0].verdict == "does not apply"
