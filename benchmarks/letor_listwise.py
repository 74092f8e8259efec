"""The nine listwise rankers (three losses × three transforms) on the LETOR collections, chosen by validation MAP.

    TOPRANK_DATA=/data python -m benchmarks.letor_listwise [ohsumed-letor3 mq2008-letor4]

Every choice (penalty, truth or ties, whether to stop at the iterate with the best validation MAP or at the minimum, and
in the "chosen" rows the transform) is made by MAP on the validation part of the fold; the test part is read once.
Published rows come without values per query, so that paired tests are among ours.
"""

from __future__ import annotations

import os
import sys
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import toprank as tr
from toprank._tables import Table
from toprank.contests.parts import pool
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
BASELINE = "ListNet, exponential"


class Chosen(NamedTuple):
    """The candidate with the best validation MAP on one fold: that MAP, its scores of the test part, and its name."""

    valid: float
    scores: Any
    parameters: dict[str, object]


def grid(loss: str, transform: str) -> list[dict[str, object]]:
    """ListMLE sees only the order of the grades, so it has no choice of truth, but one of ties."""
    choices = {"ties": ("fixed", "sampled")} if loss == "ListMLE" else {"truth": ("grades", "gains")}
    name, values = next(iter(choices.items()))
    return [{"transform": transform, "alpha": alpha, name: value} for alpha, value in product(ALPHAS, values)]


def fit_best(loss: str, transform: str, fold: Fold, convention: str) -> Chosen:
    """Return the best of all candidates by validation MAP (the first of equals)."""
    best: Chosen | None = None
    measure = tr.measure("map", convention=convention)
    for parameters, early in product(grid(loss, transform), (False, True)):
        ranker = LOSSES[loss](measure=measure, max_iter=200, tol=1e-5, epochs=10, **parameters)
        ranker.fit_queries(fold.train, fold.valid if early else None)
        value = tr.evaluate(ranker, fold.valid, ["map"], convention=convention).mean["map"]
        if best is None or value > best.valid:
            best = Chosen(value, ranker.predict(fold.test.X), {**parameters, "early": early})
    assert best is not None
    return best


def tables(collection: str, folder: Path) -> str:
    """Test measures of each of the nine and of each loss with its transform chosen, mean of the folds; paired tests."""
    convention = CONVENTIONS[collection]
    folds = list(read_folds(folder / collection, dtype=np.float64))
    found: dict[str, list[Chosen]] = {}
    for loss in LOSSES:
        for transform in TRANSFORMS:
            found[f"{loss}, {transform}"] = [fit_best(loss, transform, fold, convention) for fold in folds]
        of_folds = zip(*(found[f"{loss}, {transform}"] for transform in TRANSFORMS), strict=True)
        found[f"{loss}, chosen"] = [max(candidates, key=lambda one: one.valid) for candidates in of_folds]
    rows: list[tuple[object, ...]] = [
        (name, *fold_means([one.scores for one in chosen], folds, convention)) for name, chosen in found.items()
    ]
    rows.append(("ListNet, published", *PUBLISHED[collection]))
    title = f"{collection}, convention {convention}, mean of {len(folds)} folds, chosen by validation MAP"
    scores = {name: [one.scores for one in chosen] for name, chosen in found.items()}
    kept = "\n".join(f"{name}: " + "; ".join(_name(one.parameters) for one in found[name]) for name in found)
    table = Table(("ranker", *MEASURES), rows, title=title).plain()
    return f"{table}\n\n{paired(scores, folds, convention, BASELINE)}\n\nchosen, fold by fold\n{kept}\n"


def _name(parameters: dict[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def fold_means(scores: list[Any], folds: list[Fold], convention: str) -> list[float]:
    """Mean over the folds of each measure's mean over the test part, as LETOR's tables are made."""
    reports = [
        tr.evaluate(of_fold, fold.test, MEASURES, convention=convention)
        for of_fold, fold in zip(scores, folds, strict=True)
    ]
    return [float(np.mean([report.mean[measure] for report in reports])) for measure in MEASURES]


def paired(scores: dict[str, list[Any]], folds: list[Fold], convention: str, baseline: str) -> tr.Comparison:
    """Paired tests against the baseline over the queries of all test parts, each query once."""
    data, _ = pool([fold.test for fold in folds])
    reports = {
        name: tr.evaluate(np.concatenate(of_folds), data, ["map", "ndcg@10"], convention=convention)
        for name, of_folds in scores.items()
    }
    return tr.compare(reports, baseline=baseline)


if __name__ == "__main__":
    home = Path(os.environ["TOPRANK_DATA"])
    for collection in sys.argv[1:] or CONVENTIONS:
        print(tables(collection, home), flush=True)
