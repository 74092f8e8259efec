"""The same job on generated queries: for tests, and where Python comes without its sources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..contests.base import Contest, Entrant
from ..contests.baselines import best_feature, feature_scores, given_order
from ..contests.search import curves
from ..contests.settings import settings_of
from ..data.splits import query_train_test_split
from ..data.synthetic import make_graded
from ..rankers.listwise import ListNet
from ..statistics.comparison import compare
from ..statistics.evaluation import evaluate_grouped

MEASURES = ("ndcg@10", "map", "mrr", "p@10")


def run(n_queries: int = 400, random_state: int = 0) -> Contest:
    """Fit ListNet on generated judged queries and compare it with the order as given and the best single feature.

    The best feature is chosen on the training part; everything is judged on queries that no one has seen.

    >>> contest = run(n_queries=60)
    >>> contest.best.name
    'ListNet'
    """
    data = make_graded(n_queries=n_queries, n_docs=(10, 60), n_features=24, blank=0.02, random_state=random_state)
    train, test = query_train_test_split(data, test_size=0.5, random_state=random_state)
    ranker = ListNet().fit_queries(train)
    feature, sign = best_feature(train)
    scores = {
        "order as given": given_order(test),
        f"feature {feature + 1}": feature_scores(test, feature, sign),
        "ListNet": ranker.predict_grouped(test),
    }
    reports = {name: evaluate_grouped(values, test, MEASURES) for name, values in scores.items()}
    entrants = [Entrant(name, values, reports[name]) for name, values in scores.items()]
    entrants[-1] = replace(entrants[-1], rankers=(ranker,), params=(settings_of(ranker),), curves=curves(ranker))
    return Contest(
        title="Generated queries",
        data=test,
        entrants=tuple(entrants),
        comparison=compare(reports),
        fold=np.zeros(test.n_queries, dtype=np.int64),
        notes=(f"{train.n_queries} generated queries to learn from, {test.n_queries} others to be judged on.",),
    )
