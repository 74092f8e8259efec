"""Contests for the page's tests: a small one with everything that could break a page, and one as large as promised."""

from __future__ import annotations

import numpy as np

import toprank as tr
from toprank.certificates.base import Assumption, Certificate
from toprank.contests.base import Contest, Entrant
from toprank.model import Inputs, LinearFunction, ScoringFunction, StumpFunction
from toprank.rankers.base import Ranker

MEASURES = ("ndcg@10", "map", "mrr", "p@10")
NASTY = """</script><script>alert("x")</script> & 'quoted' <img src=x onerror=alert(1)> ünï→日本"""


def _made(ranker: Ranker, function: ScoringFunction, names: tuple[str, ...] | None = None) -> Ranker:
    """A ranker as if it had learned this: the page is what is tested, and compiling learners takes a while."""
    ranker.function_, ranker.inputs_ = function, Inputs(function.n_features, names)
    return ranker


def _least_squares(data: tr.QueryDataset) -> LinearFunction:
    return LinearFunction(np.linalg.lstsq(data.X, data.y, rcond=None)[0])


def _stumps(seed: int) -> StumpFunction:
    rng = np.random.default_rng(seed)
    return StumpFunction(8, rng.integers(0, 8, 20), rng.standard_normal(20), rng.random(20))


def held(
    names: tuple[str, ...] = ("ListNet", "RankSVM"), n_queries: int = 60, title: str = "A small contest"
) -> Contest:
    """Two folds, linear rankers and stumps, one baseline that learned nothing; names that could break HTML."""
    data = tr.datasets.make_graded(n_queries=n_queries, n_docs=(5, 30), n_features=8, random_state=1)
    labels = tuple(f"f{j} {NASTY}" if j == 0 else f"f{j}" for j in range(8))
    ids = np.array([f"q{q} {NASTY}" if q == 3 else f"q{q}" for q in range(n_queries)], dtype=object)
    docs = np.array([f"d{i}{'<b>' if i % 7 == 0 else ''}" for i in range(data.n_docs)], dtype=object)
    data = tr.QueryDataset(data.X, data.y, data.ptr, ids, feature_names=labels, doc_ids=docs)
    half = n_queries // 2
    parts = [data[:half], data[half:]]
    fold = np.repeat([0, 1], [half, n_queries - half]).astype(np.int64)
    fitted = {
        "ListNet": [_made(tr.ListNet(alpha=0.01), _least_squares(parts[1 - f]), labels) for f in (0, 1)],
        "RankSVM": [_made(tr.RankSVM(), _least_squares(parts[1 - f][::3]), labels) for f in (0, 1)],
        "RankBoost": [_made(tr.RankBoost(), _stumps(f), labels) for f in (0, 1)],
    }
    scores = {
        name: np.concatenate([r.function_.scores(p.X) for r, p in zip(fitted[name], parts, strict=True)])
        for name in names
    }
    scores = {"order as given": -np.arange(data.n_docs, dtype=np.float64), **scores}
    reports = {name: tr.evaluate(values, data, MEASURES) for name, values in scores.items()}
    proved = Certificate(
        statement=f"loss ≤ A/γ² {NASTY}",
        value=40.0,
        observed=12.0,
        reference="Corollary 7",
        assumptions=(Assumption("the data are separable", True), Assumption("the stream is what it seems")),
    )
    entrants = tuple(
        Entrant(
            name,
            scores[name],
            reports[name],
            tuple(fitted.get(name, ())),
            params=({"alpha": 0.01}, {"alpha": 0.1}) if name in fitted else (),
            curves={"train": [0.5, 0.7, 0.8], "valid": [0.4, 0.6, 0.65], "objective": [3.0, 2.0, 1.9]}
            if name in fitted
            else {},
            certificates=(proved,) if name == "ListNet" else (),
            seconds=0.25 if name in fitted else 0.0,
        )
        for name in scores
    )
    return Contest(title, data, entrants, tr.compare(reports), fold, notes=(f"Settings were chosen by hand. {NASTY}",))


def large(systems: int = 20, n_queries: int = 1_000, n_docs: int = 100, n_features: int = 136) -> Contest:
    """As many systems and queries as a page promises to hold: linear ones, at random but alike."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_queries * n_docs, n_features), dtype=np.float32)
    truth = rng.standard_normal(n_features)
    noise = 2 * np.sqrt(n_features) * rng.standard_normal(len(X))
    y = np.digitize(X @ truth + noise, [10.0, 20.0, 30.0, 45.0]).astype(np.float64)
    data = tr.QueryDataset.from_arrays(
        X,
        y,
        np.repeat(np.arange(n_queries), n_docs) + 10_000,
        doc_ids=[f"GX{i:03d}-{i * 37 % 99_991:05d}" for i in range(len(X))],
    )
    entrants, reports = [], {}
    for i in range(systems):
        ranker = _made(tr.ListNet(), LinearFunction(truth + (1 + 0.1 * i) * rng.standard_normal(n_features)))
        scores = ranker.function_.scores(data.X)
        reports[f"system {i + 1}"] = tr.evaluate(scores, data, MEASURES)
        curve = np.linspace(0.2, 0.5 - 0.01 * i, 100).tolist()
        entrants.append(
            Entrant(
                f"system {i + 1}",
                scores,
                reports[f"system {i + 1}"],
                (ranker,) if i else (),
                ({"alpha": 0.1},),
                curves={"train": curve, "valid": curve, "objective": curve},
                seconds=1.0,
            )
        )
    comparison = tr.compare(reports, test="t", n_resamples=1_000)
    return Contest("A large contest", data, tuple(entrants), comparison, np.zeros(n_queries, dtype=np.int64))
