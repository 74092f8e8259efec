"""The nine listwise rankers (three losses × three transforms) on the LETOR collections, chosen by validation MAP.

    TOPRANK_DATA=/data python -m benchmarks.letor_listwise [ohsumed-letor3 mq2008-letor4]

Every hyper-parameter (penalty, truth) is chosen by MAP on the validation part of the fold; the test part is read once.
"""

from __future__ import annotations

import os
import sys
from itertools import product
from pathlib import Path

import numpy as np

import toprank as tr
from toprank._tables import Table
from toprank.data.splits import Fold, read_folds

MEASURES = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")
CONVENTIONS = {"ohsumed-letor3": "letor3", "mq2008-letor4": "letor4"}
PUBLISHED = {
    "ohsumed-letor3": (0.4457, 0.5326, 0.4732, 0.4432, 0.4410),
    "mq2008-letor4": (0.4775, 0.3754, 0.4324, 0.4747, 0.2303),
}
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
LOSSES: dict[str, type[tr.Ranker]] = {"ListNet": tr.ListNet, "ListMLE": tr.ListMLE, "RankCosine": tr.RankCosine}
TRANSFORMS = ("linear(1, 20)", "exponential", "sigmoid")


def grid(loss: str, transform: str) -> list[dict[str, object]]:
    """ListMLE sees only the order of the grades, so it has no choice of truth, but one of ties."""
    choices = {"ties": ("fixed", "sampled")} if loss == "ListMLE" else {"truth": ("grades", "gains")}
    name, values = next(iter(choices.items()))
    return [{"transform": transform, "alpha": alpha, name: value} for alpha, value in product(ALPHAS, values)]


def fit_best(loss: str, transform: str, fold: Fold, convention: str) -> tuple[float, list[float]]:
    """Return the best validation MAP of all candidates (the first of equals) and the test measures of that one."""
    best, reached = None, -1.0
    for parameters in grid(loss, transform):
        ranker = LOSSES[loss](measure="map", max_iter=200, tol=1e-5, epochs=10, **parameters).fit_queries(fold.train)
        value = tr.evaluate(ranker, fold.valid, ["map"], convention=convention).mean["map"]
        if value > reached:
            best, reached = ranker, value
    mean = tr.evaluate(best, fold.test, MEASURES, convention=convention).mean
    return reached, [mean[measure] for measure in MEASURES]


def table(collection: str, folder: Path) -> Table:
    """Mean over the folds of the test measures of each of the nine, and of each loss with the transform chosen too."""
    convention = CONVENTIONS[collection]
    folds = list(read_folds(folder / collection, dtype=np.float64))
    rows: list[tuple[object, ...]] = []
    for loss in LOSSES:
        results = [[fit_best(loss, transform, fold, convention) for fold in folds] for transform in TRANSFORMS]
        for transform, of_folds in zip(TRANSFORMS, results, strict=True):
            rows.append((loss, transform, *np.mean([test for _, test in of_folds], axis=0)))
        chosen = [max(of_transforms, key=lambda result: result[0])[1] for of_transforms in zip(*results, strict=True)]
        rows.append((loss, "chosen by validation", *np.mean(chosen, axis=0)))
    rows.append(("ListNet (published)", "exponential", *PUBLISHED[collection]))
    return Table(
        ("ranker", "transform", *MEASURES),
        rows,
        title=f"{collection}, convention {convention}, mean of {len(folds)} folds, chosen by validation MAP",
    )


if __name__ == "__main__":
    home = Path(os.environ["TOPRANK_DATA"])
    for collection in sys.argv[1:] or CONVENTIONS:
        print(table(collection, home), flush=True)
