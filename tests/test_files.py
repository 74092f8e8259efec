"""Files appear whole or not at all, and what is no regular file is written to."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from toprank import _files
from toprank._files import replacing
from toprank.errors import InputError, ParseError, naming

DATA = tr.QueryDataset.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], ["a", "a", "b"])
TEXT = b"0 qid:a 1:1\n1 qid:a 1:2\n2 qid:b 1:3\n"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_link_is_followed_and_rights_are_kept(tmp_path):
    real, link = tmp_path / "deep" / "real.txt", tmp_path / "link.txt"
    real.parent.mkdir()
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with replacing(link) as draft:
        draft.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert mode(real) == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "made.txt")
    tr.write_letor(DATA, dangling)
    assert (tmp_path / "made.txt").read_bytes() == TEXT
    assert dangling.is_symlink()
    assert mode(tmp_path / "made.txt") == 0o666 & ~_files.umask()


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    os.chown(file, 12345, 54321)
    with replacing(file) as draft:
        draft.write_text("new")
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 54321)


@pytest.mark.parametrize("write", [tr.write_letor, lambda data, path: tr.ListNet().fit_queries(data).save(path)])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, write):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write(DATA, pipe)
    reader.join(30)
    plain = tmp_path / "plain"
    write(DATA, plain)
    assert found == [plain.read_bytes()]
    assert pipe.is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pipe", "plain"]


def run(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    script = script.replace("toprank", f"{sys.executable} -m toprank")
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, check=False)


def test_the_command_line_writes_through(tmp_path):
    (tmp_path / "train.txt").write_bytes(TEXT)
    done = run(
        """
        set -e
        toprank convert train.txt /dev/stdout
        toprank convert train.txt >(cat > substituted; touch done) > /dev/null; while [ ! -e done ]; do sleep 0.05; done
        echo first > appended; toprank convert train.txt /dev/stdout >> appended; echo last >> appended
        toprank fit train.txt --ranker ListNet -o model.json > /dev/null
        cat model.json | toprank rank - train.txt -o /dev/stdout
        (echo query,label,x; echo a,0,1; echo a,1,2) | toprank info - --json > info.json
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    ranked = done.stdout.removeprefix(TEXT).decode().split("\n")
    assert [row.split("\t")[:3] for row in ranked if row] == [["a", "2", "1"], ["a", "1", "2"], ["b", "3", "1"]]
    assert (tmp_path / "substituted").read_bytes() == TEXT
    assert (tmp_path / "appended").read_bytes() == b"first\n" + TEXT + b"last\n"
    assert '"n_docs": 2' in (tmp_path / "info.json").read_text()


def test_a_device_stays_a_device(capfdbinary):
    before = os.stat("/dev/null")
    tr.write_letor(DATA, "/dev/null")
    tr.ListNet().fit_queries(DATA).save("/dev/null")
    after = os.stat("/dev/null")
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    tr.write_letor(DATA, "-")
    assert capfdbinary.readouterr().out == TEXT


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_names_the_file(tmp_path):
    for write in (tr.write_letor, lambda data, path: tr.ListNet().fit_queries(data).save(path)):
        with pytest.raises(InputError, match="cannot write /dev/full: No space left on device"):
            write(DATA, "/dev/full")
    with pytest.raises(InputError, match=r"cannot write .*nowhere/a\.txt: No such file or directory"):
        tr.write_letor(DATA, tmp_path / "nowhere" / "a.txt")
    with pytest.raises(InputError, match="is a folder: name a file to write"):
        tr.write_letor(DATA, tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(InputError, match=r"cannot write .*a\.json: No space left on device"):
            tr.ListNet().fit_queries(DATA).save(tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_other_trouble_keeps_its_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="elsewhere"), replacing(tmp_path / "a"):
        (tmp_path / "elsewhere").read_text()
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, sys, toprank as tr
from toprank._files import replacing
from toprank.data.mapped import drafting
with replacing(sys.argv[1]) as draft, drafting(sys.argv[2]) as folder:
    draft.write_text("half")
    (folder / "x").write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_drafts_of_a_killed_process_are_removed_and_those_of_living_ones_are_not(tmp_path):
    file, folder = tmp_path / "m[1]*.json", tmp_path / "queries"
    subprocess.run([sys.executable, "-c", KILLED, file, folder], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    with replacing(file) as draft:
        draft.write_text("one")
        with replacing(file) as other:
            other.write_text("two")
        assert draft.exists()
    assert file.read_text() == "one"
    tr.save_queries(DATA, folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m[1]*.json", "queries"]


def test_a_file_is_on_the_disk_before_its_name_and_the_name_after(tmp_path, monkeypatch):
    seen = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: seen.append(stat.S_ISDIR(os.fstat(fd).st_mode)) or fsync(fd))
    monkeypatch.setattr(os, "replace", lambda *names: seen.append("renamed") or rename(*names))
    with replacing(tmp_path / "a") as draft:
        draft.write_text("x")
    assert seen == [False, "renamed", True]
    seen.clear()
    renamed = os.rename
    monkeypatch.setattr(os, "rename", lambda *names: seen.append("renamed") or renamed(*names))
    tr.save_queries(DATA, tmp_path / "folder")
    assert seen[-2:] == ["renamed", True]
    assert seen[:-2].count(False) == len(list((tmp_path / "folder").iterdir()))


def test_a_model_comes_from_a_stream(tmp_path, monkeypatch):
    ranker = tr.ListNet().fit_queries(DATA)
    ranker.save(tmp_path / "model.json")
    with open(tmp_path / "model.json") as file:
        monkeypatch.setattr(sys, "stdin", file)
        np.testing.assert_array_equal(tr.load("-").coef_, ranker.coef_)
    with open(os.devnull) as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(InputError, match=r"<stdin> is not a toprank model"):
            tr.load("-")


def test_an_error_of_a_file_reaches_another_process_with_its_place():
    told = ParseError("expected feature:value", file="train.txt", line=3, column=12, text="1;0.5")
    there = pickle.loads(pickle.dumps(told))
    assert type(there) is ParseError
    assert str(there) == str(told) == "train.txt:3:12: expected feature:value, found '1;0.5'"
    assert (there.file, there.line, there.column) == ("train.txt", 3, 12)


@pytest.mark.parametrize("error", [InputError("a.csv: no column 'x'"), ParseError("no header", file="b.csv")])
def test_a_file_that_is_named_already_is_not_named_again(error):
    with pytest.raises(InputError) as caught, naming("a.csv"):
        raise error
    assert caught.value is error
