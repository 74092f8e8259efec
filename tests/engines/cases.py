"""Models and rows that every engine scores: linear, steps and trees, with missing values and names of every kind."""

import os
from pathlib import Path

import numpy as np

import toprank as tr
from tests.export.models import linear_model, prepared_model, stump_model, tree_model
from toprank.model.functions import StumpFunction, TreeFunction

PLAIN = ("bm25", "age_days", "click_rate")
ODD = ("user age", "größe-2", "x.y#1")
"""Names that need quoting somewhere."""

FOREST = [(0, 0.5, True, (1, -2.0, False, -1.0, 0.3), (2, 1.0, True, 0.7, 1.1)), (2, -0.5, True, 4.0, 5.0), 0.25]
STUMPS = [(0, 0.1, 1.0), (0, 0.7, -0.25), (2, -1.0, 2.0), (1, 3e-6, -0.5)]


def rows(gaps=True):
    """Float32 numbers, since that is what the fields of the engines hold; some on thresholds, some missing."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 3)) * (1.0, 10.0, 2.0)).astype(np.float32).astype(np.float64)
    X[0], X[1], X[2] = (0.5, -2.0, 1.0), (0.0, 0.0, 0.0), (np.float32(0.1), np.float32(3e-6), -1.0)
    X[3] = (1e-30, -1e30, 1e20)
    X[4:24, 0] = np.nextafter(np.float32(0.5), np.where(rng.random(20) < 0.5, 0, 1).astype(np.float32))
    if gaps:
        hidden = rng.random(X.shape) < 0.2
        hidden[:4] = False
        X[hidden] = np.nan
    return X


def models(names, fill=(0.0, 0.0, 0.0)):
    """Each kind of model by name."""
    features, limits, weights = (np.array(column) for column in zip(*STUMPS, strict=True))
    fill = np.array(fill)
    return {
        "linear": linear_model(names, np.array([0.1, -2e-3, 1 / 3]), 0.0, fill),
        "offset": linear_model(names, np.array([-1.5, 0.25, 3e-3]), -7.5, fill),
        "scaled": linear_model(
            names, np.array([0.5, 1.25, -0.1]), 0.5, fill, center=[1.0, -3.0, 0.5], scale=[2.0, 0.1, 3.0]
        ),
        "steps": stump_model(names, StumpFunction(3, features, limits, weights), fill),
        "trees": tree_model(names, TreeFunction.build(3, FOREST), fill),
    }


def logged(names, fill=(0.0, 0.0, 0.0)):
    """Models of features that are prepared by their signed logarithm."""
    return {
        f"log {kind}": prepared_model(model, ("log",), np.array(fill))
        for kind, model in models(names).items()
        if kind in ("linear", "steps", "trees")
    }


def collection():
    """MQ2008's first fold where it is here, or documents that are made: queries to learn from, and to be scored."""
    folder = Path(os.environ.get("TOPRANK_DATA", "nowhere"), "mq2008-letor4", "Fold1")
    if folder.is_dir():
        return tr.read_letor(folder / "train.txt"), tr.read_letor(folder / "test.txt")
    made = tr.datasets.make_graded(n_queries=60, n_features=12, random_state=0)
    return made[:40], made[40:]


def learned(train):
    """Rankers of each kind by name, learned from a collection."""
    return {
        "ListNet": tr.ListNet(alpha=1e-3, missing="zero").fit_queries(train),
        "RankBoost": tr.RankBoost(rounds=60, missing="zero").fit_queries(train),
    }


def same_bits(got, expected):
    """Whether two columns are the same float32 numbers; that nothing is missing goes without saying."""
    return np.array_equal(np.asarray(got, dtype=np.float32), np.asarray(expected, dtype=np.float32), equal_nan=False)
