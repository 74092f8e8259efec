"""When the server says that it is ready, its first ranking and its first feedback compile nothing, and load nothing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import toprank as tr
from tests.serve.starting import model

SERVED = """
import pathlib, sys
from tests.serve.starting import event, items, running

def compiled():
    found = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("toprank."):
            for value in list(vars(module).values()):
                if hasattr(value, "signatures") and hasattr(value, "py_func"):
                    kernel = f"{value.py_func.__module__}.{value.py_func.__name__}"
                    found |= {f"{kernel} {types}" for types in value.signatures}
    return found

with running(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes()) as server:
    before = compiled()
    explores = sys.argv[3] == "PDGD"
    page = server.post("/v1/rank", {"items": items(), "explore": explores})
    shown = [item["id"] for item in page["items"]]
    told = {"clicks": shown[1:2]} if explores else {"labels": {shown[-1]: 1}}
    server.post("/v1/feedback", {"event_id": "a", "ranking_id": page["ranking_id"], **told})
    if not explores:
        server.post("/v1/feedback", event("b"))
    server.pack("/v1/rank", {"ids": ["a", "b"], "features_f32": bytes(24)})
    server.client.get("/").raise_for_status()
    after = compiled()
print(len(before), *sorted(after - before), sep="\\n")
"""


@pytest.mark.parametrize("kind", [tr.SlamPerceptron, tr.MinimaxPerceptron, tr.OnlineListNet, tr.PDGD])
def test_the_first_ranking_and_the_first_feedback_compile_nothing(kind: type, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_bytes(model(kind))
    command = [sys.executable, "-c", SERVED, str(tmp_path), str(file), kind.__name__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, *new = done.stdout.splitlines()
    assert int(before) > 5  # else nothing was counted
    assert new == []


def test_the_step_that_compiles_for_a_container_runs(tmp_path: Path) -> None:
    text = Path("Containerfile").read_text()
    step = text[text.index("RUN python -c") : text.index("WORKDIR /data")].removeprefix("RUN ")
    assert step.startswith("python -c")
    command = step.replace("python", shlex.quote(sys.executable), 1)
    done = subprocess.run(
        ["sh", "-c", command], env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("tmp*"))) >= 4
