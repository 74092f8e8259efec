"""What the first minute costs: each command with nothing compiled and with all compiled, and each kernel's compiling.

`cold` is a process with an empty cache of compiled kernels, as in a new container; `warm` is the same once more. Beside
them stand processes that import and fit LightGBM and XGBoost on the same file. Seconds are the processor's, which other
work on the machine hardly moves; those that passed stand in the note. A kernel's seconds are its own, without those of
the kernels that it calls, which have lines of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import Row, row

SLOWEST = 25
"""Kernels that are listed."""
COLD, KERNEL, WARM = 10.0, 1.5, {"evaluate": 1.0, "rank": 1.0, "info": 1.0}
"""Goals in seconds: a command with nothing compiled, a kernel, commands with all compiled."""

WATCHED = """
import json, resource, sys, time
sys.argv = sys.argv[1:]
own, stack = {{}}, []

def begin(function):
    stack.append([f"{{function.__module__}}.{{function.__qualname__}}", time.process_time(), 0.0])

def end():
    name, began, inside = stack.pop()
    took = time.process_time() - began
    if stack:
        stack[-1][2] += took
    own[name] = max(own.get(name, 0.0), took - inside)

def watch():
    from numba.core import event

    class Watch(event.Listener):
        def on_start(self, happened):
            begin(happened.data["dispatcher"].py_func)

        def on_end(self, happened):
            end()

    event.register("numba:compile", Watch())

{body}
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, own]), file=sys.stderr)
"""
OURS = """
watch()
from toprank.cli import cli
cli.main(args=sys.argv, standalone_mode=False)
"""
EVALUATION = """
import numpy as np, toprank as tr
rng = np.random.default_rng(0)
X, y, qid = rng.random((1000, 5)), rng.integers(0, 3, 1000), np.repeat(range(50), 20)
data = tr.QueryDataset.from_arrays(X, y, qid)
tr.evaluate(data.X[:, 0], data, ["ndcg@10", "map"])
"""
THEIRS = {
    "LightGBM": """
import lightgbm, toprank as tr
data = tr.read_letor(sys.argv[0])
lightgbm.LGBMRanker(n_estimators=10, verbosity=-1).fit(data.X, data.y, group=data.lengths)
""",
    "XGBoost": """
import xgboost, toprank as tr
data = tr.read_letor(sys.argv[0])
xgboost.XGBRanker(n_estimators=10).fit(data.X, data.y, qid=data.qid)
""",
}


def measured(body: str, *arguments: str, compiled: str) -> tuple[float, dict[str, float], float]:
    """Run code in a fresh process; return its processor's seconds, those of each kernel, and those that passed."""
    environment = os.environ | {"NUMBA_CACHE_DIR": compiled, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WATCHED.format(body=body), *arguments]
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, kernels = json.loads(done.stderr.splitlines()[-1])
    return seconds, kernels, time.perf_counter() - began


def run() -> list[Row]:
    import toprank as tr
    from toprank import rankers

    names = os.environ["RANKERS"].split() if "RANKERS" in os.environ else rankers.__all__
    kernels: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "data.txt", Path(folder) / "model.json"
        tr.write_letor(tr.datasets.make_graded(n_queries=30, random_state=0), data)
        tr.ListNet().fit_queries(tr.read_letor(data)).save(model)
        commands = {
            f"toprank fit, {name}": ["fit", str(data), "--ranker", name, "-o", os.devnull]
            for name in names
            if name != "LinearRanker"
        }
        commands |= {
            "toprank evaluate": ["evaluate", str(model), str(data)],
            "toprank rank": ["rank", str(model), str(data)],
            "toprank info": ["info", str(data)],
        }
        warmed = str(Path(folder) / "warm")
        theirs = {}
        for name, body in THEIRS.items():
            measured(body, str(data), compiled=warmed)
            theirs[name] = measured(body, str(data), compiled=warmed)[0]
        bare, toprank, sklearn = (
            measured(body, compiled=warmed)[0] for body in ("", "import toprank", "import sklearn.metrics")
        )
        measured(EVALUATION, compiled=warmed)
        first = measured(EVALUATION, compiled=warmed)[0]
        rows = [
            row(job, took - bare, "s over bare python", peer="import sklearn.metrics", theirs=sklearn - bare)
            for job, took in (("import toprank", toprank), ("first evaluation", first))
        ]
        for i, (job, arguments) in enumerate(commands.items()):
            compiled = str(Path(folder) / f"cold{i}")
            cold, own, passed = measured(OURS, *arguments, compiled=compiled)
            kernels |= {name: max(seconds, kernels.get(name, 0.0)) for name, seconds in own.items()}
            rows.append(row(f"{job}, cold", cold, "s", note=f"{passed:.1f} s passed; goal ≤ {COLD:g} s"))
            warm, _, passed = measured(OURS, *arguments, compiled=compiled)
            goal = f"; goal ≤ {WARM[arguments[0]]:g} s" if arguments[0] in WARM else ""
            for peer, seconds in theirs.items():
                note = f"{passed:.1f} s passed{goal}"
                rows.append(row(f"{job}, warm", warm, "s", peer=f"import and fit {peer}", theirs=seconds, note=note))
    slowest = sorted(kernels.items(), key=lambda item: -item[1])[:SLOWEST]
    goal = f"goal ≤ {KERNEL:g} s"
    return rows + [row(f"compile {name.removeprefix('toprank.')}", took, "s", note=goal) for name, took in slowest]


if __name__ == "__main__":
    from benchmarks.__main__ import show

    print(show(run()))
