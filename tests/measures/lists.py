"""Random judged lists for the tests of measures: short and long, tied and distinct, blank and full."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from tests.oracles import measures as oracles
from toprank.measures import ERR, Measure

ORACLES = {"map": oracles.ap, "meanndcg": oracles.mean_ndcg, "p@share": oracles.p_at_share}


@dataclass
class Lists:
    """Scores, grades and ids of queries, end to end."""

    scores: np.ndarray
    y: np.ndarray
    ptr: np.ndarray
    ids: np.ndarray

    def __iter__(self):
        for a, b in zip(self.ptr[:-1], self.ptr[1:], strict=True):
            yield self.scores[a:b].tolist(), self.y[a:b].tolist(), self.ids[a:b].tolist()

    @property
    def sizes(self):
        return np.diff(self.ptr)


def random_lists(seed, n_queries, *, shortest=1, longest=14, grades=5, tied=True, blank=0.15):
    """Lists with small whole grades; scores are exact in single precision, since some tools read no more."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(shortest, longest + 1, n_queries)
    total = int(sizes.sum())
    scores = rng.integers(0, 6, total) if tied else rng.permutation(total)
    y = rng.integers(0, grades, total) * np.repeat(rng.random(n_queries) >= blank, sizes)
    ids = np.array([f"d{i}" for i in rng.permutation(total)])
    return Lists(scores.astype(float), y.astype(float), np.concatenate(([0], np.cumsum(sizes))), ids)


def for_measure(measure: Measure, lists: Lists) -> Lists:
    """Bring grades on the scale that the measure takes."""
    if isinstance(measure, ERR):
        lists.y *= measure.max_grade / max(lists.y.max(initial=1), 1)
    return lists


def by_definition(measure: Measure, lists: Lists) -> list[float]:
    """Value of each list by the oracle, told the same rules."""
    value = ORACLES.get(measure.short_name) or getattr(oracles, measure.short_name)
    given = {f.name: getattr(measure, f.name) for f in fields(measure) if f.name != "convention"}
    rules = {name: getattr(rule, "name", rule) for name, rule in given.items() if name != "k" or measure.cuts}
    rules = {name: rule.lower() if isinstance(rule, str) else rule for name, rule in rules.items()}
    return [value(scores, grades, ids, **rules) for scores, grades, ids in lists]
