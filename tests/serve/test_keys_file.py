"""Commands that change the file of keys at the same time lose nothing: no new key, and no revocation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toprank import _files
from toprank._files import locked
from toprank._keys import new_key, read_keys, revoke_key
from toprank.errors import InputError

WORKER = """
import sys
from pathlib import Path
from toprank._keys import new_key, revoke_key

file, worker = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for i in range(12):
    new_key(file, f"{worker}-{i}", ("rank",))
    revoke_key(file, f"old-{worker}-{i}")
"""


def test_concurrent_commands_lose_nothing(tmp_path: Path) -> None:
    file, workers = tmp_path / "keys.toml", ("a", "b", "c", "d")
    for worker in workers:
        for i in range(12):
            new_key(file, f"old-{worker}-{i}", ("rank",))
    command = [sys.executable, "-c", WORKER, str(file)]
    running = [
        subprocess.Popen([*command, worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for worker in workers
    ]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in running:  # all at once
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=120)
        assert one.returncode == 0
    assert set(read_keys(file)) == {f"{worker}-{i}" for worker in workers for i in range(12)}


def test_a_file_that_stays_locked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "LOCK_TIMEOUT", 0.05)
    file = tmp_path / "keys.toml"
    new_key(file, "shop", ("rank",))
    with locked(file), pytest.raises(InputError, match=r"keys\.toml is being changed by another command"):
        revoke_key(file, "shop")
    assert list(read_keys(file)) == ["shop"]
    revoke_key(file, "shop")
    assert read_keys(file) == {}


def test_a_lock_is_no_link_to_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    (tmp_path / "keys.toml.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="cannot be locked"):
        new_key(file, "shop", ("rank",))
    assert not (tmp_path / "elsewhere").exists()
