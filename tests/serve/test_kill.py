"""Thirty times kill -9 under load; `make torture` does it a thousand times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the lives of the server are forks")
def test_nothing_acknowledged_is_lost_and_nothing_is_learned_twice() -> None:
    command = [sys.executable, "-m", "tests.serve.torture", "--kills", "30", "--seed", "7"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["difference"] is None
    assert found["replayed"] == found["stored"]
    assert found["lost"] == found["learned_twice"] == 0
    assert found["stored"] >= found["acknowledged"] > 30
