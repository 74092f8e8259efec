"""Kernels that different processes compiled give the same results, in whatever order a new process loads them.

numba finds a helper by its name and the types of its arguments. Where two kernels had different helpers of one name,
RankBoost learned nonsense after AdaRank had been loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FITTED = """
import sys
import toprank as tr

data = tr.datasets.make_graded(n_queries=20, n_docs=12, n_features=4, random_state=0)
for name in sys.argv[1:]:
    scores = getattr(tr, name)().fit_queries(data).predict_grouped(data)
    print(name, scores.tobytes().hex())
"""


def test_rankers_learn_the_same_in_every_order(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def fitted(*names: str) -> dict[str, str]:
        command = [sys.executable, "-c", FITTED, *names]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return dict(line.split() for line in done.stdout.splitlines())

    alone = fitted("RankBoost") | fitted("AdaRank")  # each is compiled by a process of its own
    assert alone["RankBoost"] != alone["AdaRank"]
    assert fitted("AdaRank", "RankBoost") == alone
    assert fitted("RankBoost", "AdaRank") == alone
