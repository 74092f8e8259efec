"""MAP of the batch learners on test parts of LETOR, settings chosen on the validation parts: one row a learner.

    python -m benchmarks.letor_tables ohsumed-letor2 mq2008-letor4

reads the collections below `TOPRANK_DATA`. Only names that have been there from the beginning are used, so that the
same file measures an older version: `PYTHONPATH=older/src python benchmarks/letor_tables.py …`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import toprank as tr

C = (0.1, 1.0, 10.0, 100.0)
GRIDS: dict[str, list[Callable[[], Any]]] = {
    "AdaRank": [lambda: tr.AdaRank("map")],
    "AdaRank, paper's rule": [lambda: tr.AdaRank("map", rule="paper")],
    "ListMLE": [lambda a=a: tr.ListMLE("map", alpha=a) for a in (1e-2, 1e-1, 1.0, 10.0)],
    "ListNet": [lambda a=a: tr.ListNet("map", alpha=a) for a in (1e-4, 1e-3, 1e-2, 1e-1)],
    "PermuRank": [lambda c=c: tr.PermuRank("map", rounds=20, C=c) for c in C],
    "RankBoost": [lambda t=t: tr.RankBoost("map", thresholds=t) for t in (10, 100)],
    "RankCosine": [lambda a=a: tr.RankCosine("map", alpha=a) for a in (1e-4, 1e-3, 1e-2)],
    "RankSVM": [lambda c=c: tr.RankSVM("map", C=c) for c in (1e-3, 1e-2, *C)],
    "SVMMap": [lambda c=c: tr.SVMMap("map", C=c, tol=1e-3) for c in C],
}


def mean_ap(scores: Any, data: Any) -> float:
    """The mean over queries with a relevant document, documents with equal scores in an order that a seed draws."""
    values = []
    for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True):
        relevant = np.asarray(data.y[a:b]) > 0
        if relevant.any():
            mixed = np.random.default_rng(int(a)).permutation(b - a)
            hits = relevant[mixed[np.argsort(-scores[a:b][mixed], kind="stable")]]
            values.append((np.cumsum(hits) / np.arange(1, b - a + 1))[hits].mean())
    return float(np.mean(values))


def scores_of(ranker: Any, data: Any) -> Any:
    """Scores in the order of the rows of `data.X`, by either version."""
    return np.asarray(ranker.function_.scores(data.X))


def row(name: str, grid: list[Callable[[], Any]], collection: str) -> str:
    """Return the mean over five folds, each fold, and the seconds."""
    found, began = [], time.perf_counter()
    for fold in range(1, 6):
        train, valid, test = (tr.datasets.load(collection, fold, part) for part in ("train", "valid", "test"))
        fits = [make().fit_queries(train) for make in grid]
        best = max(fits, key=lambda ranker, valid=valid: mean_ap(scores_of(ranker, valid), valid))
        found.append(mean_ap(scores_of(best, test), test))
    folds = " ".join(f"{value:.4f}" for value in found)
    return f"{collection}  {name:22} {np.mean(found):.4f}  [{folds}]  {time.perf_counter() - began:.0f} s"


def main() -> None:
    warnings.simplefilter("ignore")
    for collection in sys.argv[1:]:
        for name, grid in GRIDS.items():
            print(row(name, grid, collection), flush=True)


if __name__ == "__main__":
    main()
