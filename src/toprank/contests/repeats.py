"""How much of a difference is the training sample, the seed, the queries: learning repeated, and its variance split.

d_rsq = μ + R_r + S_s(r) + Q_q + (RQ)_rq + e_rsq: two learners' difference on query q when they learned from resample r
of the training queries with seed s. Tests of a contest are about models; μ is about learners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._tables import Table, signed
from .._typing import Floats
from ..data.dataset import QueryDataset
from ..measures.base import Measure
from ..rankers.base import Ranker
from ..statistics.comparison import interval_text
from .estimators import Guest

SEEDS = 2
"""Seeds per resample of the training queries."""


@dataclass(frozen=True)
class LearnerDifference:
    """A mean difference with its interval, and the standard deviations that its variance is made of."""

    a: str
    b: str
    difference: float
    interval: tuple[float, float]
    sample: float
    """Between resamples of the training queries."""
    seed: float
    queries: float
    rest: float
    """Resamples that suit some queries and not others, and what is left."""

    @property
    def shown(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval[0] > 0 or self.interval[1] < 0

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        return f"{self.a if self.difference > 0 else self.b} learns better" if self.shown else "not shown"


@dataclass(frozen=True)
class Repeats:
    """What came of learning repeatedly: each learner against the best one."""

    measure: str
    n: int
    rows: tuple[LearnerDifference, ...]
    alpha: float

    def table(self) -> Table:
        """Return the differences between learners, and where they come from."""
        level = f"{1 - self.alpha / max(len(self.rows), 1):.1%}"
        return Table(
            ["learners", "difference", f"{level} interval", "sd: sample", "seed", "queries", "rest", "verdict"],
            [
                [
                    f"{row.a} − {row.b}",
                    signed(row.difference),
                    interval_text(row.interval, sign=True),
                    *(row.sample, row.seed, row.queries, row.rest),
                    row.verdict,
                ]
                for row in self.rows
            ],
            title=f"Learners by {self.measure}: {self.n} resamples of the training queries, {SEEDS} seeds each",
            notes=[
                "Standard deviations of a difference: between resamples of the training queries (drawn with "
                "replacement), between seeds, between test queries, and the rest. Settings are those chosen before. "
                f"Intervals count all of these; all {len(self.rows)} together hold with {1 - self.alpha:.0%}, nearly.",
            ],
        )


def resampled(ranker: Ranker | Guest, train: QueryDataset, test: QueryDataset, n: int, random_state: int) -> Floats:
    """Return test scores (resample × seed × document) of a ranker's chosen setting, learned again and again."""
    from .search import draws, learned_again

    result = np.empty((n, SEEDS, test.n_docs))
    for r in range(n):
        rng = np.random.default_rng((random_state, r))
        drawn = train[np.sort(rng.integers(0, train.n_queries, train.n_queries))]
        for s in range(SEEDS):
            if s and not draws(ranker):
                result[r, s] = result[r, 0]
                continue
            seed = random_state + 1 + r * SEEDS + s if draws(ranker) else None
            result[r, s] = learned_again(ranker, drawn, seed).predict_grouped(test)
    return result


def measured(scores: Floats, test: QueryDataset, measure: Measure) -> Floats:
    """Return the values of a measure (resample × seed × query) for scores (resample × seed × document)."""
    flat = [measure.per_query(one, test.y, test.ptr, doc_ids=test.doc_ids) for one in scores.reshape(-1, test.n_docs)]
    return np.stack(flat).reshape(*scores.shape[:2], -1)


def learner_difference(a: str, b: str, d: Floats, alpha: float) -> LearnerDifference:
    """Split the variance of d (resample × seed × query) by mean squares, and bound μ by Satterthwaite's t.

    σ²_e = MS_e, σ²_RQ = (MS_RQ − MS_e)/S, σ²_S = (MS_S − MS_e)/n, σ²_R = (MS_R − MS_S − MS_RQ + MS_e)/nS,
    σ²_Q = (MS_Q − MS_RQ)/RS, each at least 0; var d̄ = (MS_R + MS_Q − MS_RQ)/RSn.

    >>> one = learner_difference("a", "b", np.array([[[0.1, 0.3], [0.1, 0.3]], [[0.1, 0.3], [0.1, 0.3]]]), 0.05)
    >>> round(one.difference, 3), round(one.queries, 3), one.seed, one.sample
    (0.2, 0.141, 0.0, 0.0)
    """
    from scipy.special import stdtrit

    R, S, n = d.shape
    mean, of_r, of_q = d.mean(), d.mean(axis=(1, 2)), d.mean(axis=(0, 1))
    of_rs, of_rq = d.mean(axis=2), d.mean(axis=1)
    ms = {
        "R": S * n * ((of_r - mean) ** 2).sum() / (R - 1),
        "S": n * ((of_rs - of_r[:, None]) ** 2).sum() / (R * (S - 1)),
        "Q": R * S * ((of_q - mean) ** 2).sum() / max(n - 1, 1),
        "RQ": S * ((of_rq - of_r[:, None] - of_q + mean) ** 2).sum() / max((R - 1) * (n - 1), 1),
        "e": ((d - of_rs[:, :, None] - of_rq[:, None] + of_r[:, None, None]) ** 2).sum()
        / max(R * (S - 1) * (n - 1), 1),
    }
    sample = (ms["R"] - ms["S"] - ms["RQ"] + ms["e"]) / (n * S)
    seed, queries = (ms["S"] - ms["e"]) / n, (ms["Q"] - ms["RQ"]) / (R * S)
    rest = max((ms["RQ"] - ms["e"]) / S, 0.0) + ms["e"]
    total = max(ms["R"] + ms["Q"] - ms["RQ"], ms["Q"], ms["R"])  # an estimate below its own parts is luck
    freedom = total**2 / (ms["R"] ** 2 / (R - 1) + ms["Q"] ** 2 / max(n - 1, 1) or 1.0)
    half = float(stdtrit(max(freedom, 1.0), 1 - alpha / 2) * np.sqrt(total / (R * S * n)))
    sds = [float(np.sqrt(max(variance, 0.0))) for variance in (sample, seed, queries, rest)]
    return LearnerDifference(a, b, float(mean), (float(mean) - half, float(mean) + half), *sds)


def compare_learners(values: Mapping[str, Floats], best: str, measure: str, alpha: float) -> Repeats:
    """Compare every learner with the best one; `values` are measures (resample × seed × query) by name."""
    others: Sequence[str] = [name for name in values if name != best]
    rows = [learner_difference(name, best, values[name] - values[best], alpha / len(others)) for name in others]
    first: Any = next(iter(values.values()))
    return Repeats(measure, int(first.shape[0]), tuple(rows), alpha)
