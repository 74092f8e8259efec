"""LightGBM with our objectives against its own rank_xendcg and lambdarank, on the five folds of MQ2008.

    TOPRANK_DATA=/data python -m benchmarks.letor_trees

The same trees for all; the number of rounds by NDCG@10 on the validation part. "ListNet, constant Hessian" is the trap:
our gradient with 1 for every second derivative.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

import toprank as tr
from benchmarks.letor_listwise import MEASURES, fold_means, paired
from toprank._tables import Table
from toprank.data.grouping import bounds_of
from toprank.data.splits import Fold, read_folds

PARAMS = {
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 20,
    "verbosity": -1,
    "seed": 0,
    "deterministic": True,
    "force_row_wise": True,
    "metric": "None",
    "num_threads": 1,
}
WATCHED = tr.measure("ndcg@10")


@dataclass(frozen=True)
class Flat:
    """An objective with its curvature replaced by 1."""

    objective: Any

    def __call__(self, scores: Any, data: Any) -> tuple[Any, Any]:
        grad, _ = self.objective(scores, data)
        return grad, np.ones_like(grad)


def fit(objective: Any, fold: Fold) -> np.ndarray[Any, Any]:
    """Scores of the test part."""
    train = lgb.Dataset(fold.train.X, label=fold.train.y, group=fold.train.lengths, params={"verbosity": -1})
    valid = lgb.Dataset(fold.valid.X, label=fold.valid.y, group=fold.valid.lengths, reference=train)

    def reached(scores: Any, data: Any) -> tuple[str, float, bool]:
        labels = np.asarray(data.get_label(), dtype=np.float64)
        return "ndcg@10", WATCHED.mean(np.asarray(scores, dtype=np.float64), labels, bounds_of(data.get_group())), True

    booster = lgb.train(
        {**PARAMS, "objective": objective},
        train,
        num_boost_round=300,
        valid_sets=[valid],
        feval=reached,
        callbacks=[lgb.early_stopping(50, verbose=False)],
    )
    return np.asarray(booster.predict(fold.test.X))


def tables(folder: Path) -> str:
    """Test measures of each objective, mean of the folds; paired tests against lambdarank, and against our ListNet."""
    listnet = tr.interop.lightgbm_objective(tr.surrogates.ListNet(truth="gains"))
    objectives = {
        "LightGBM lambdarank": "lambdarank",
        "LightGBM rank_xendcg": "rank_xendcg",
        "ListNet (grades)": tr.interop.lightgbm_objective(tr.surrogates.ListNet()),
        "ListNet (gains)": listnet,
        "ListNet (gains), constant Hessian": Flat(listnet),
        "ListMLE": tr.interop.lightgbm_objective(tr.surrogates.ListMLE()),
        "ListMLE, ties sampled": tr.interop.lightgbm_objective(tr.surrogates.ListMLE(ties="sampled")),
        "RankCosine": tr.interop.lightgbm_objective(tr.surrogates.RankCosine()),
        "PairwiseHinge": tr.interop.lightgbm_objective(tr.surrogates.PairwiseHinge()),
    }
    folds = list(read_folds(folder, dtype=np.float64))
    scores = {name: [fit(objective, fold) for fold in folds] for name, objective in objectives.items()}
    rows = [(name, *fold_means(of_folds, folds, "letor4")) for name, of_folds in scores.items()]
    title = f"MQ2008, convention letor4, mean of {len(folds)} folds, rounds by validation NDCG@10"
    table = Table(("objective", *MEASURES), rows, title=title).plain()
    against = paired(scores, folds, "letor4", "LightGBM lambdarank")
    _, among_ours = paired(scores, folds, "letor4", "ListNet (gains)").tables()
    return f"{table}\n\n{against}\n\n{among_ours.plain()}"


if __name__ == "__main__":
    print(tables(Path(os.environ["TOPRANK_DATA"]) / "mq2008-letor4"))
