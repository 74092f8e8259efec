"""A contest of kinds on the demo's queries, and of losses in the same trees: settings chosen on validation queries.

`python -m benchmarks.kinds` prints both tables (`kinds`, `losses`), and whether the curvature of ListNet matters in
trees (`curvature`). Everybody has four settings, one thread, and the same three parts.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr
from toprank.demo.job import Library
from toprank.demo.judged import judge

SIZES = [{"leaves": [7], "eta": [0.1]}, {"leaves": [31, 7], "eta": [0.03]}]
"""Beside 31 leaves with steps of 0.1, which is what everybody begins with."""
TREES: dict[str, Any] = {"rounds": 1_000, "patience": 50, "leaves": 31}


def kinds() -> dict[str, Any]:
    """Return six kinds of learners: linear, pairwise, stumps, trees of two libraries, and a regression."""
    return {
        "ListNet": "ListNet",
        "RankSVM": "RankSVM",
        "RankBoost": "RankBoost",
        "LightGBM": "LightGBM",
        "CatBoost": "CatBoost",
        "regression": make_pipeline(StandardScaler(), Ridge()),
    }


def losses() -> dict[str, Any]:
    """Return the same trees for LightGBM's two losses and four of ours."""
    own = {
        "lambdarank": tr.BoostedTrees(**TREES),
        "rank_xendcg": tr.BoostedTrees(**TREES, params={"objective": "rank_xendcg"}),
    }
    ours = ("ListNet", "ListMLE", "RankCosine", "PairwiseHinge")
    rows = {"ListMLE, rows' order": tr.BoostedTrees(**TREES, loss=tr.surrogates.ListMLE(ties="fixed"))}
    return own | {name: tr.BoostedTrees(**TREES, loss=name) for name in ours} | rows


def curvature(parts: Any) -> None:
    """Print what ListNet in trees reaches on validation by how far a leaf may move: whether its curvature matters."""
    for trust in (0.5, 2.0, 8.0, 1e6):
        loss = tr.interop.lightgbm_objective(tr.surrogates.ListNet(), trust=trust)
        ranker = tr.BoostedTrees(**TREES | {"leaves": 7}, params={"objective": loss})
        reached = ranker.fit_queries(parts.train, parts.valid).trace_["valid"].max()
        print(f"ListNet, a leaf moves by at most {trust:g}: {reached:.4f} on validation, {ranker.n_iter_} rounds")


def main() -> None:
    """Hold the contests that are named, or all, and print their tables."""
    warnings.filterwarnings("ignore")
    wanted = sys.argv[1:] or ["kinds", "losses", "curvature"]
    parts = judge(Library.open().index)
    fair = {"measures": ["map"], "budget": 3, "n_resamples": 10_000}
    if "kinds" in wanted:
        grids = {"regression": {"ridge__alpha": [0.01, 100.0, 10_000.0]}}
        print(tr.contest(parts.train, parts.test, parts.valid, kinds(), grids=grids, title="Six kinds", **fair))
    if "losses" in wanted:
        entered = losses()
        grids = dict.fromkeys(entered, SIZES)
        print(tr.contest(parts.train, parts.test, parts.valid, entered, grids=grids, title="Losses in trees", **fair))
    if "curvature" in wanted:
        curvature(parts)


if __name__ == "__main__":
    main()
