"""A backup takes the place of a store whole; a log that belongs to another file is refused and never mixed in."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.calling import call, fail, run
from tests.serve.starting import event, model, open_store, running
from tests.serve.test_feedback import verdict
from tests.serve.test_loadable import old_store

SERVER = """
import sys
from pathlib import Path
from toprank.cli import main
main(["serve", "--store", sys.argv[1], "--port", "0", "--json", "--log", "none"])
"""


def killed(store: Path, names: list[str]) -> None:
    """Let a server of its own learn, and kill it: its log is left."""
    command = [sys.executable, "-c", SERVER, str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["url"]
        end = time.monotonic() + 120
        while httpx.get(f"{url}/readyz").status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.05)
        for seed, name in enumerate(names):
            assert httpx.post(f"{url}/v1/feedback", json=event(name, seed)).status_code == 200
        process.send_signal(signal.SIGKILL)


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, Path]:
    """A store whose server was killed at version 5, and a backup of version 2."""
    with running(tmp_path, model()) as server:
        for i in range(2):
            server.learn(f"e{i}", i)
        backup = tmp_path / server.client.post("/v1/model:backup").json()["file"]
    path = tmp_path / "rank.db"
    killed(path, ["a", "b", "c"])
    assert Path(f"{path}-wal").stat().st_size > 0
    return path, backup


def test_a_log_of_another_file_is_refused(store: tuple[Path, Path], capsys: Any) -> None:
    path, backup = store
    own = path.with_name("own.db")
    for part in ("", "-wal", "-mark"):
        shutil.copy(f"{path}{part}", f"{own}{part}")
    assert verdict(own).events == 5  # its own log is read
    shutil.copy(backup, path)
    told = fail(capsys, "serve", "--verify", path)
    assert "rank.db-wal was written for another file" in told
    assert "--restore BACKUP --store" in told
    assert "was written for another file" in fail(capsys, "serve", "--store", path, "--port", "0")


def test_a_copy_of_the_file_from_an_earlier_start_is_another_file(tmp_path: Path) -> None:
    path = tmp_path / "rank.db"
    open_store(path, model()).close()
    shutil.copy(path, tmp_path / "copy.db")
    killed(path, ["a"])
    shutil.copy(tmp_path / "copy.db", path)
    with pytest.raises(Exception, match="was written for another file"):
        open_store(path, None)


def test_a_backup_takes_the_place_of_a_store(store: tuple[Path, Path], capsys: Any) -> None:
    path, backup = store
    before = backup.read_bytes()
    told = json.loads(run(capsys, "serve", "--restore", backup, "--store", path, "--json"))
    assert told["version"] == 2
    assert backup.read_bytes() == before
    found = verdict(path)
    assert (found.events, found.difference) == (2, None)
    assert verdict(Path(told["replaced"])).events == 5  # nothing is lost
    with running(path.parent, None) as server:
        assert server.learn("a", 7)["seq"] == 3
        tag = server.client.get("/v1/model").headers["etag"]
    with running(path.parent, None, name=Path(told["replaced"]).name) as old:
        assert old.client.get("/v1/model").headers["etag"].rpartition("-")[0] != tag.rpartition("-")[0]
    assert sorted(file.suffix for file in path.parent.glob("*rank*")) == [".db", ".db", ".db"]


def test_a_backup_of_the_first_layout_is_restored(tmp_path: Path, capsys: Any) -> None:
    backup = old_store("layout1", tmp_path).rename(tmp_path / "old.db")
    assert "at version 8" in run(capsys, "serve", "--restore", backup, "--store", tmp_path / "rank.db")
    assert verdict(tmp_path / "rank.db").events == 8


def test_what_cannot_be_restored_changes_nothing(store: tuple[Path, Path], tmp_path: Path, capsys: Any) -> None:
    path, backup = store
    (tmp_path / "text.db").write_text("hello " * 1000)
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert "there is no such backup" in fail(capsys, "serve", "--restore", tmp_path / "none.db", "--store", path)
    assert "is not a store" in fail(capsys, "serve", "--restore", tmp_path / "text.db", "--store", path)
    assert "is the store itself" in fail(capsys, "serve", "--restore", path, "--store", path)
    assert "--restore needs --store" in fail(capsys, "serve", "--restore", backup)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == files
    bad = old_store("unloadable", tmp_path / "..")
    code, _, err = call(capsys, "serve", "--restore", bad, "--store", path)
    bad.unlink()
    assert (code, "cannot be loaded" in err) == (2, True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == files


def test_a_store_in_use_is_not_replaced(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "rank.db"
    open_store(path, model()).close()
    shutil.copy(path, tmp_path / "copy.db")
    command = [sys.executable, "-c", SERVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "{\n"
            told = fail(capsys, "serve", "--restore", tmp_path / "copy.db", "--store", path)
        finally:
            process.kill()
    assert "is in use by a server" in told
