from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report import browser as chromium
from tests.report.contests import held, large
from toprank.contests.base import Contest
from toprank.report.page import write_report


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    if chromium.found() is None:
        pytest.skip(f"no browser here: install one of {', '.join(chromium.NAMES)}")
    with chromium.started() as started:
        yield started


@pytest.fixture(scope="session")
def small_contest() -> Contest:
    return held(("ListNet", "RankSVM", "RankBoost"))


@pytest.fixture(scope="session")
def small_page(small_contest: Contest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "report.html"
    write_report(small_contest, path)
    return path


@pytest.fixture(scope="session")
def large_contest() -> Contest:
    return large()


@pytest.fixture(scope="session")
def large_page(large_contest: Contest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "report.html"
    write_report(large_contest, path)
    return path
