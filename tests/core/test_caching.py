"""The cache of compiled kernels only ever helps: stale, damaged, full or missing, results are right."""

from __future__ import annotations

import importlib
import os
import resource
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager

import numba
import pytest
from numba.core import caching as numba_caching

from toprank.core import caching

KERNEL = """
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
    (home / "__init__.py").write_text("")
    (home / "_outer_kernels.py").write_text(KERNEL)
    (home / "_helper_kernels.py").write_text(HELPER.format(2))
    (home / "constants.py").write_text("LEVEL = 100\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    caching._warned().clear()

    def load():
        for name in [name for name in sys.modules if name.startswith("kernels_of_a_test")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module("kernels_of_a_test._outer_kernels").outer

    load.home, load.cache = home, tmp_path / "cache"
    yield load
    caching._warned().clear()


def hits(kernel) -> int:
    return sum(kernel.stats.cache_hits.values())


def test_a_kernel_is_found_again(package):
    assert package()(1) == 102
    again = package()
    assert (again(1), hits(again)) == (102, 1)


def test_a_changed_helper_or_constant_is_seen(package):
    assert package()(1) == 102
    (package.home / "_helper_kernels.py").write_text(HELPER.format(3))
    assert package()(1) == 103
    (package.home / "constants.py").write_text("LEVEL = 200\n")
    assert package()(1) == 203
    again = package()
    assert (again(1), hits(again)) == (203, 1)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 0.5])
def test_files_that_were_cut_short_are_replaced(package, suffix, left):
    assert package()(1) == 102
    files = list(package.cache.rglob(f"*.{suffix}"))
    for file in files:
        file.write_bytes(file.read_bytes()[: int(left * file.stat().st_size)])
    assert files
    mended = package()
    assert (mended(1), hits(mended)) == (102, 0)
    again = package()
    assert (again(1), hits(again)) == (102, 1)


def test_modules_that_are_gone_are_no_trouble(package, monkeypatch):
    assert package()(1) == 102

    def gone(*_):
        raise ModuleNotFoundError("No module named 'kernels_of_yesterday'")

    with monkeypatch.context() as patch:
        patch.setattr(numba_caching.IndexDataCacheFile, "_load_data", gone)
        assert package()(1) == 102


def refuse(*_):
    raise OSError(30, "Read-only file system")


def test_a_warm_cache_that_cannot_be_written_to_is_read(package, monkeypatch):
    assert package()(1) == 102
    monkeypatch.setattr(numba_caching._CacheLocator, "ensure_cache_path", refuse)
    warm = package()
    assert (warm(1), hits(warm)) == (102, 1)
    with pytest.warns(RuntimeWarning, match="compiled code is not kept.*Read-only file system"):
        assert warm(1.5) == 103
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warm(2j) == 100 + 4j  # told once


@pytest.mark.parametrize(("fixed", "damaged"), [(True, False), (True, True), (False, False)])
def test_what_was_left_beside_the_sources_is_read_where_new_kernels_go_elsewhere(package, monkeypatch, fixed, damaged):
    with monkeypatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", "")
        assert package()(1) == 102
    left = sorted((package.home / "__pycache__").iterdir())
    if damaged:
        for file in left:
            file.write_bytes(b"")
    before, read = [file.read_bytes() for file in left], fixed and not damaged
    monkeypatch.setattr(os, "access", lambda *_: not fixed)
    warm = package()
    assert (warm(1), hits(warm)) == (102, int(read))
    assert bool(list(package.cache.rglob("*.nbi"))) == (not read)
    assert warm(1.5) == 103
    assert list(package.cache.rglob("*.nbi"))
    assert (sorted((package.home / "__pycache__").iterdir()), [file.read_bytes() for file in left]) == (left, before)


def test_no_folder_at_all(package, monkeypatch):
    monkeypatch.setattr(numba_caching._CacheLocator, "ensure_cache_path", refuse)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(package.home / "constants.py"))
    with pytest.warns(RuntimeWarning, match="compiled code is not kept.*NUMBA_CACHE_DIR") as told:
        assert package()(1) == 102
    assert len(told) == 1


@contextmanager
def full_disk():
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_once(package):
    kernel = package()
    with pytest.warns(RuntimeWarning, match="compiled code is not kept.*File too large") as told, full_disk():
        assert kernel(1) == 102
    assert len(told) == 1
    assert package()(1) == 102


def test_a_stamp_covers_what_a_file_imports():
    from toprank.data import _transform_kernels

    names = {path.name for path in caching._sources(caching.Path(_transform_kernels.__file__))}
    assert {"_transform_kernels.py", "jit.py"} <= names


TWO = """
import pathlib, sys, time
from kernels_of_a_test._outer_kernels import outer
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.001)
print(outer(1), sum(outer.stats.cache_hits.values()))
"""


def test_two_processes_compile_a_kernel_once(package, tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(package.cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    ready, go = [tmp_path / f"ready{i}" for i in range(2)], tmp_path / "go"
    command = [sys.executable, "-c", TWO]
    started = [
        subprocess.Popen([*command, file, go], env=environment, stdout=subprocess.PIPE, text=True) for file in ready
    ]
    deadline = time.monotonic() + 120
    while not all(file.exists() for file in ready) and time.monotonic() < deadline:
        time.sleep(0.01)
    go.touch()
    assert sorted(process.communicate()[0].split() for process in started) == [["102", "0"], ["102", "1"]]
    assert not list(package.cache.rglob("*.lock"))


def test_a_process_that_never_ends_compiling_is_not_waited_for(package, monkeypatch):
    from fcntl import LOCK_EX, flock

    monkeypatch.setattr(caching, "PATIENCE", 0.1)
    kernel = package()
    folder = kernel._cache._cache_path
    with open(os.path.join(folder, kernel._cache._impl.filename_base + ".lock"), "wb") as held:
        flock(held, LOCK_EX)
        assert kernel(1) == 102
    assert hits(package()) == 0
    again = package()
    assert (again(1), hits(again)) == (102, 1)


CLIMB = """
from toprank.core.jit import kernel

def made(step):
    @kernel
    def climb(n):
        return step if n < 2 else climb(n - 1) + climb(n - 2)
    return climb
"""
TOLD = """
import sys
for name in sys.argv[1:]:
    print(getattr(__import__(f"kernels_of_a_test._{name}_kernels", fromlist=["x"]), name)(10))
"""


def test_helpers_of_one_name_that_other_processes_compiled_are_told_apart(package, tmp_path):
    (package.home / "made.py").write_text(CLIMB)
    for name, step in (("one", 1), ("ten", 10)):
        climb = f"from .made import made\nclimb = made({step})\n"
        code = f"from toprank.core.jit import kernel\n{climb}@kernel\ndef {name}(n):\n    return climb(n)\n"
        (package.home / f"_{name}_kernels.py").write_text(code)
    known = os.pathsep.join([str(tmp_path), *sys.path])
    env = os.environ | {"NUMBA_CACHE_DIR": str(package.cache), "PYTHONPATH": known}
    told = [
        subprocess.run([sys.executable, "-c", TOLD, *names], env=env, capture_output=True, text=True, check=True).stdout
        for names in (["one"], ["ten"], ["one", "ten"], ["ten", "one"])
    ]
    assert [each.split() for each in told] == [["89"], ["890"], ["89", "890"], ["890", "89"]]
