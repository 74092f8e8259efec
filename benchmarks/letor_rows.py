"""Why a row of `toprank reproduce direct-optimization comparison` moves: one thing at a time, on the same folds.

    PYTHONPATH=older/src python benchmarks/letor_rows.py mq2008-letor4 ohsumed-letor3 --save older.npz
    python benchmarks/letor_rows.py mq2008-letor4 ohsumed-letor3 --against older.npz

reads the collections below `TOPRANK_DATA`. Only names that have been there from the beginning are used, so that the
same file measures an older version. Printed are MAP as the exhibit counts it, on the validation parts that chose and on
the test parts; how many looks at a validation part chose; and the difference over the test queries with half of its
95% interval: of what was changed to the row as it is, or with `--against` of now to then.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import toprank as tr

CONVENTION = {"mq2008-letor4": "letor4"}
"""That of the others is letor3."""
RAW = ("ohsumed-letor2",)
"""Features that the exhibit normalises per query."""


def as_it_is(data: Any, seed: int) -> Any:
    return data


def shuffled(data: Any, seed: int) -> Any:
    """Return the data with the rows of each query in an order that the seed draws."""
    rng = np.random.default_rng(seed)
    order = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(data.ptr)])
    return tr.QueryDataset.from_arrays(data.X[order], data.y[order], data.qid)


def relevant_or_not(data: Any, seed: int) -> Any:
    return tr.QueryDataset.from_arrays(data.X, (data.y > 0).astype(float), data.qid)


class Variant(NamedTuple):
    """Settings to choose from, what is done to the training part, and whether a fit sees the validation part."""

    grid: list[Any]
    train: Callable[[Any, int], Any] = as_it_is
    watched: bool = True
    seeds: int = 1


def variants(m: Any) -> dict[str, Variant]:
    """Return the rows as the exhibit has them, each with what was changed in it."""

    def slam(**more: Any) -> list[Any]:
        kinds = product((m, tr.measure("ndcg@10")), (None, "query"), (1e-3, 1e-1, 1e1))
        return [tr.SlamPerceptron(t, eta=e, scale=s, epochs=30, random_state=0, **more) for t, s, e in kinds]

    boost = {t: tr.RankBoost(m, rounds=400, thresholds=t) for t in (None, 100, 30)}
    listnet = [tr.ListNet(m, alpha=alpha) for alpha in (1e-4, 1e-3, 1e-2, 1e-1)]
    minimax = [tr.MinimaxPerceptron(m, epochs=30, random_state=0)]
    return {
        "AdaRank": Variant([tr.AdaRank(m)]),
        "AdaRank, rows of a query shuffled": Variant([tr.AdaRank(m)], shuffled, seeds=20),
        "RankBoost": Variant(list(boost.values())),
        "RankBoost, all thresholds": Variant([boost[None]]),
        "ListNet": Variant(listnet),
        "ListNet, minimisers only": Variant(listnet, watched=False),
        "SLAM": Variant(slam()),
        "SLAM, averaged weights": Variant(slam(average=True)),
        "minimax": Variant(minimax),
        "minimax, relevant or not": Variant(minimax, relevant_or_not),
    }


class Found(NamedTuple):
    """MAP on the validation part of each fold and of its test queries, by what was best of so many looks."""

    valid: list[float]
    test: list[Any]
    looks: list[int]


def learned(variant: Variant, m: Any, folds: list[Any], seed: int) -> Found:
    found = Found([], [], [])
    for fold in folds:
        train, fits, looks = variant.train(fold.train, seed), [], 0
        for ranker in variant.grid:
            ranker.fit_queries(train, fold.valid if variant.watched else None)
            looks += len(ranker.trace_["valid"]) if variant.watched else 1
            scores = ranker.function_.scores(fold.valid.X)
            fits.append((m.mean(scores, fold.valid.y, fold.valid.ptr), ranker.function_))
        reached, model = max(fits, key=lambda pair: pair[0])
        found.valid.append(reached)
        found.test.append(m.per_query(model.scores(fold.test.X), fold.test.y, fold.test.ptr))
        found.looks.append(looks)
    return found


def told(runs: list[Found]) -> str:
    means = [np.mean([values.mean() for values in found.test]) for found in runs]
    looks, valid = (np.mean([getattr(found, what) for found in runs]) for what in ("looks", "valid"))
    text = f"of {looks:3.0f}  valid {valid:.4f}  test {np.mean(means):.4f}"
    if len(runs) > 1:
        return f"{text}  from {min(means):.4f} to {max(means):.4f}, standard deviation {np.std(means, ddof=1):.4f}"
    return f"{text}  [{' '.join(f'{values.mean():.4f}' for values in runs[0].test)}]"


def read(collection: str) -> list[Any]:
    """Return the five folds, prepared as the exhibit does."""
    home = Path(os.environ["TOPRANK_DATA"], collection)
    folds = [tr.read_fold(home, n, dtype=np.float64) for n in range(1, 6)]
    if collection not in RAW:
        return folds
    parts = ([fold.train, fold.valid, fold.test] for fold in folds)
    return [
        type(folds[0])(*(p.with_X(tr.QueryNormalizer().fit_transform(p.X, qid=p.qid)) for p in three))
        for three in parts
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--save")
    parser.add_argument("--against")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    then, now = dict(np.load(given.against)) if given.against else {}, {}
    for collection in given.collections:
        folds, m = read(collection), tr.measure("map", convention=CONVENTION.get(collection, "letor3"))
        for name, variant in variants(m).items():
            runs = [learned(variant, m, folds, seed) for seed in range(1, variant.seeds + 1)]
            text, key = f"{collection}  {name:34} {told(runs)}", f"{collection} {name}"
            if len(runs) == 1:
                now[key] = np.concatenate(runs[0].test)
                gap = now[key] - (then[key] if then else now[key.partition(",")[0]])
                half = 1.96 * gap.std(ddof=1) / len(gap) ** 0.5
                text += f"  {gap.mean():+.4f} ± {half:.4f}" if gap.any() else "  the same"
            print(text, flush=True)
    if given.save:
        np.savez(given.save, **now)


if __name__ == "__main__":
    main()
