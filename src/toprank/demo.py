"""The main job on an embedded set: train, evaluate against baselines, compare, report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .comparison import Comparison, compare
from .data.dataset import QueryDataset
from .data.splits import query_train_test_split
from .data.synthetic import make_graded
from .evaluation import Report, evaluate
from .rankers.base import Ranker
from .rankers.listwise import ListNet

MEASURES = ("ndcg@10", "map", "mrr", "p@10")


@dataclass(frozen=True)
class Demo:
    """What the demo did: its data, the ranker, the reports on held-out queries and their comparison."""

    train: QueryDataset
    test: QueryDataset
    ranker: Ranker
    reports: dict[str, Report]
    comparison: Comparison


def run(n_queries: int = 400, random_state: int = 0) -> Demo:
    """Fit ListNet on generated judged queries and compare it with the order as given and the best single feature.

    The best feature is chosen on the training part; everything is judged on queries that no one has seen.

    >>> demo = run(n_queries=60)
    >>> demo.reports["ListNet"].mean["ndcg@10"] > demo.reports["order as given"].mean["ndcg@10"]
    True
    """
    data = make_graded(n_queries=n_queries, n_docs=(10, 60), n_features=24, blank=0.02, random_state=random_state)
    train, test = query_train_test_split(data, test_size=0.5, random_state=random_state)
    ranker = ListNet().fit_queries(train)
    feature, sign = best_feature(train)
    scores = {
        "order as given": -np.arange(test.n_docs, dtype=np.float64),
        f"feature {feature + 1}": sign * test.X[:, feature],
        "ListNet": ranker.predict(test),
    }
    reports = {name: evaluate(values, test, MEASURES) for name, values in scores.items()}
    return Demo(train, test, ranker, reports, compare(reports, baseline="ListNet"))


def best_feature(data: QueryDataset, measure: str = "ndcg@10") -> tuple[int, int]:
    """Return the column that ranks best by itself, and whether up (+1) or down (−1).

    >>> best_feature(QueryDataset.from_arrays([[1.0, 9.0], [1.0, 2.0], [1.0, 5.0]], [0, 2, 1]))
    (1, -1)
    """
    tried = [
        (evaluate(sign * np.asarray(column, dtype=np.float64), data, [measure]).mean[measure], -index, sign)
        for index, column in enumerate((data.X.toarray() if data.is_sparse else data.X).T)
        for sign in (1, -1)
    ]
    _, index, sign = max(tried)
    return -index, sign


def write_page(demo: Demo, path: str | Path) -> None:
    """Write the demo's results as one self-contained page."""
    from .report.page import write_report

    names = [f"feature {i + 1}" for i in range(demo.train.n_features)]
    write_report(
        path,
        title="toprank demo",
        data=demo.test,
        reports=demo.reports,
        comparison=demo.comparison,
        weights=dict(zip(names, demo.ranker.coef_, strict=True)),
        trace=demo.ranker.trace_["value"].tolist(),
    )
