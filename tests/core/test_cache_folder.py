"""Compiled kernels on disk: found again, never stale, mended, and read only where nobody else can write."""

from __future__ import annotations

import ast
import importlib
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numba
import pytest

import toprank
from toprank.core import jit
from toprank.core.cache_folder import check_private, source_stamp
from toprank.errors import InputError

PACKAGE = Path(toprank.__file__).parent
OUTER = """
from toprank.core.jit import kernel
from ._helper_kernels import helper
from .constants import LEVEL

@kernel
def outer(x):
    return helper(x) + LEVEL
"""
HELPER = "from toprank.core.jit import kernel\n@kernel\ndef helper(x):\n    return {} * x\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of kernels, whose cache is a folder of its own; call it to import it afresh."""
    home = tmp_path / "kernels_of_a_test"
    home.mkdir()
    (home / "core").mkdir()
    (home / "__init__.py").write_text("")
    (home / "_outer_kernels.py").write_text(OUTER)
    (home / "_helper_kernels.py").write_text(HELPER.format(2))
    (home / "constants.py").write_text("LEVEL = 100\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(stamp=None):
        jit.prepare.cache_clear()
        source_stamp.cache_clear()
        monkeypatch.setattr(jit, "STAMP", stamp or source_stamp(home))
        for name in [name for name in sys.modules if name.startswith("kernels_of_a_test")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module("kernels_of_a_test._outer_kernels").outer

    load.home, load.cache = home, tmp_path / "cache"
    yield load
    jit.prepare.cache_clear()


def hits(kernel) -> int:
    return sum(kernel.stats.cache_hits.values())


def test_a_kernel_is_found_again(package):
    assert package()(1) == 102
    again = package()
    assert (again(1), hits(again)) == (102, 1)


def test_numba_alone_does_not_see_a_changed_helper(package):
    assert package("same")(1) == 102
    (package.home / "_helper_kernels.py").write_text(HELPER.format(3))
    assert package("same")(1) == 102  # else the stamp would not be needed


def test_a_changed_helper_or_constant_is_seen_and_what_was_compiled_before_is_removed(package):
    assert package()(1) == 102
    before = set(package.cache.rglob("*.nb[ic]"))
    (package.home / "_helper_kernels.py").write_text(HELPER.format(3))
    assert package()(1) == 103
    (package.home / "constants.py").write_text("LEVEL = 200\n")
    again = package()
    assert again(1) == 203
    after = set(package.cache.rglob("*.nb[ic]"))
    assert not before & after
    assert len(before) == len(after)


def test_the_stamp_covers_every_file_that_a_file_of_kernels_imports_from():
    source_stamp.cache_clear()
    read = []
    original = Path.read_bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: read.append(path) or original(path))
        source_stamp(PACKAGE)
    for file in PACKAGE.rglob("_*kernels.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                home = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                assert home.with_suffix(".py") in read, f"{file}: {ast.unparse(node)}"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:-100] + bytes(100)])
def test_files_that_were_cut_short_are_replaced(package, suffix, damage):
    assert package()(1) == 102
    files = list(package.cache.rglob(f"*.{suffix}"))
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    assert files
    mended = package()
    assert (mended(1), hits(mended)) == (102, 0)
    again = package()
    assert (again(1), hits(again)) == (102, 1)


def test_where_no_folder_can_be_written_to_kernels_are_compiled_by_every_process(package, monkeypatch):
    if not hasattr(numba.config, "CACHE_LOCATOR_CLASSES"):
        pytest.skip("this numba does not let its choice of folders be narrowed")
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(package.home / "constants.py"))
    with pytest.warns(RuntimeWarning, match="compiled code is not kept.*NUMBA_CACHE_DIR"):
        assert package()(1) == 102


@contextmanager
def full_disk():
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_an_error_that_names_the_reason_and_leaves_nothing_damaged(package):
    kernel = package()
    with full_disk(), pytest.raises(OSError, match="File too large"):
        kernel(1)
    assert kernel(1) == 102
    again = package()
    assert again(1) == 102


@contextmanager
def refused(euid, problem, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    told = pytest.raises(InputError, match=problem) if euid == 0 else pytest.warns(RuntimeWarning, match=problem)
    with told:
        yield


def open_to_all(folder):
    folder.chmod(0o777)
    return folder, "other users can write to"


def open_to_a_group(folder):
    folder.chmod(0o775)
    os.chown(folder, -1, 54321)
    return folder, "other users can write to"


def of_somebody(folder):
    os.chown(folder, 54321, -1)
    return folder, "belongs to user 54321"


def file_of_somebody(folder):
    (folder / "kernel.nbi").write_bytes(b"")
    os.chown(folder / "kernel.nbi", 54321, -1)
    return folder, "belongs to user 54321"


def file_open_to_all(folder):
    (folder / "kernel.nbi").write_bytes(b"")
    (folder / "kernel.nbi").chmod(0o666)
    return folder, "other users can write to"


def link_inside(folder):
    (folder / "kernel.nbi").symlink_to("/etc/passwd")
    return folder, "is a link"


def itself_a_link(folder):
    (folder.parent / "link").symlink_to(folder)
    return folder.parent / "link", "is a link"


def in_an_open_folder(folder):
    folder.chmod(0o777)
    return folder / "below" / "kernels", "other users can write to"


def behind_a_link_of_somebody(folder):
    (folder.parent / "link").symlink_to(folder)
    os.chown(folder.parent / "link", 54321, -1, follow_symlinks=False)
    return folder.parent / "link" / "kernels", "belongs to user 54321"


def behind_a_link_to_an_open_folder(folder):
    (folder.parent / "link").symlink_to(folder)
    folder.chmod(0o777)
    return folder.parent / "link" / "kernels", "other users can write to"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("euid", [0, 1234])
@pytest.mark.parametrize(
    "spoil",
    [
        open_to_all, open_to_a_group, of_somebody, file_of_somebody, file_open_to_all, link_inside, itself_a_link,
        in_an_open_folder, behind_a_link_of_somebody, behind_a_link_to_an_open_folder,
    ],
)  # fmt: skip
def test_a_folder_that_others_can_change_is_refused_for_root_and_warned_of_for_others(
    tmp_path, monkeypatch, spoil, euid
):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o755)
    check_private(folder)
    spoilt, problem = spoil(folder)
    with refused(euid, problem, monkeypatch):
        check_private(spoilt)


def test_nothing_is_written_to_a_folder_that_is_refused(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONWARNINGS": "error::RuntimeWarning"}
    code = "from toprank.core import sorting"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "let NUMBA_CACHE_DIR name a private folder" in done.stderr.splitlines()[-1]
    assert not list((tmp_path / "cache").iterdir())


def test_the_folder_beside_the_sources_is_as_private_as_these(tmp_path):
    for name in ("other", "__pycache__"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    refusal = InputError if os.geteuid() == 0 else RuntimeWarning
    with pytest.raises(refusal):
        jit.prepare.__wrapped__(tmp_path / "other", "stamp")
    jit.prepare.__wrapped__(tmp_path / "__pycache__", "stamp")
