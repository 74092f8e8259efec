from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.conftest import browser  # noqa: F401
from tests.serve.starting import Running, model, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("serve"), model()) as started:
        yield started
