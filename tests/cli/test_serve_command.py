"""`toprank serve` from the outside: it starts, says where, learns, stops well; keys; refusals in one line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.calling import call, fail, run
from tests.serve.starting import event, items, model, open_store


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_bytes(model())
    return path


def started(*args: object) -> tuple[subprocess.Popen[str], Any]:
    command = [sys.executable, "-m", "toprank", "serve", *map(str, args), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = ""
    while not lines.endswith("}\n"):
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        lines += line
    return process, json.loads(lines)


def test_it_serves_learns_stops_and_goes_on(tmp_path: Path, saved: Path, capsys: Any) -> None:
    store = tmp_path / "rank.db"
    for life in range(2):
        process, told = started(*([saved] if life == 0 else []), "--store", store)
        try:
            assert told["version"] == 2 * life
            assert told["ranker"] == "OnlineListNet"
            end = time.monotonic() + 120
            while httpx.get(f"{told['url']}/readyz").status_code != 200:
                assert time.monotonic() < end
                time.sleep(0.05)
            for i in range(2):
                assert httpx.post(f"{told['url']}/v1/feedback", json=event(f"{life}-{i}")).json()["status"] == "learned"
            answer = httpx.post(f"{told['url']}/v1/rank", json={"items": items()})
            assert answer.json()["version"] == 2 * life + 2
            if life == 0:
                assert "is in use by another server" in fail(capsys, "serve", "--store", store, "--port", "0")
            # An open stream does not keep it from stopping.
            with httpx.stream("GET", f"{told['url']}/v1/live") as stream:
                next(stream.iter_lines())
                process.send_signal(signal.SIGTERM if life == 0 else signal.SIGINT)
                assert process.wait(30) == 0
        finally:
            process.kill()
            _, err = process.communicate()
        assert all(json.loads(line)["request"] for line in err.splitlines())
    assert not Path(f"{store}-wal").exists()  # closed well
    assert store.stat().st_mode & 0o777 == 0o600
    assert "4 events replayed from version 0 to 4: snapshots and state are equal to the bit" in run(
        capsys, "serve", "--verify", store
    )
    assert json.loads(run(capsys, "serve", "--verify", store, "--json"))["equal"] is True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_start_stops_it(tmp_path: Path, saved: Path, number: int) -> None:
    process, _ = started(saved, "--store", tmp_path / "rank.db")
    try:
        process.send_signal(number)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("checksum", "words"), [("checksum", "not what was written"), ("NULL", "DIFFERS")])
def test_verify_says_no_with_another_exit_code(tmp_path: Path, capsys: Any, checksum: str, words: str) -> None:
    """A state that was written over is found by its checksum; without one, as stores had none once, by the replay."""
    import sqlite3

    open_store(tmp_path / "rank.db", model()).close()
    with sqlite3.connect(tmp_path / "rank.db") as db:
        db.execute(f"UPDATE state SET progress = '[1,1.0,1.0,1]', checksum = {checksum}")
    db.close()
    code, out, _ = call(capsys, "serve", "--verify", tmp_path / "rank.db")
    assert code == 1
    assert words in out


def test_refusals_are_one_line(tmp_path: Path, saved: Path, capsys: Any) -> None:
    assert "--store says where" in fail(capsys, "serve", saved)
    assert "no such store" in fail(capsys, "serve", "--store", tmp_path / "none.db", "--port", "0")
    assert "no keys" in fail(capsys, "serve", saved, "--store", tmp_path / "a.db", "--host", "0.0.0.0", "--port", "0")
    assert "30d" in fail(capsys, "serve", saved, "--store", tmp_path / "a.db", "--keep", "soon")
    assert "no such store" in fail(capsys, "serve", "--verify", tmp_path / "none.db")
    assert "give one of" in fail(capsys, "serve", saved, "--demo")
    assert "does not answer" in fail(capsys, "serve", "--follow", "http://127.0.0.1:9", "--port", "0")
    assert "like http://" in fail(capsys, "serve", "--follow", "ftp://x", "--port", "0")
    assert not (tmp_path / "a.db").exists()


def test_clicks_go_on_from_the_weights_of_a_linear_model(saved: Path) -> None:
    from toprank.cli.serve import _learner
    from toprank.rankers.persistence import load, parse

    clicking = parse(_learner(str(saved), clicks=True).model_text(), "m")
    assert type(clicking).__name__ == "PDGD"
    assert (clicking.coef_ == load(saved).coef_).all()
    assert list(clicking.feature_names_in_) == list(load(saved).feature_names_in_)


def test_keys_are_made_listed_and_revoked(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "keys.toml"
    key = run(capsys, "serve", "keys", "new", "shop", "--scopes", "rank,learn", "--keys", file).strip()
    assert key.startswith("toprank_")
    assert key not in file.read_text()
    other = json.loads(run(capsys, "serve", "keys", "new", "ops", "--scopes", "admin", "--keys", file, "--json"))
    assert other["scopes"] == ["admin"]
    assert run(capsys, "serve", "keys", "list", "--keys", file) == "shop  rank, learn\nops  admin\n"
    run(capsys, "serve", "keys", "revoke", "shop", "--keys", file)
    assert [one["name"] for one in json.loads(run(capsys, "serve", "keys", "list", "--keys", file, "--json"))] == [
        "ops"
    ]
    assert "no key 'shop'" in fail(capsys, "serve", "keys", "revoke", "shop", "--keys", file)
    assert "--scopes takes" in fail(capsys, "serve", "keys", "new", "x", "--scopes", "all", "--keys", file)
    assert "No such file" in fail(capsys, "serve", "keys", "list", "--keys", tmp_path / "none")
