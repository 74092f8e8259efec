"""The LETOR conventions reproduce the scores of single features that were published with LETOR 2.0."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from toprank.measures import measure
from toprank.measures.plan import Plan

FOLDER = Path(os.environ.get("TOPRANK_DATA", "")) / "ohsumed-letor2"
pytestmark = pytest.mark.skipif(
    "TOPRANK_DATA" not in os.environ or not FOLDER.is_dir(), reason="needs ohsumed-letor2 in the folder TOPRANK_DATA"
)


def published(name: str) -> dict[str, np.ndarray]:
    """Return a table's columns by name, one figure per feature."""
    with (FOLDER / "Baselines" / f"SingleFeatures_OHSUMED.{name}.csv").open(newline="") as file:
        rows = [row for row in csv.reader(file) if any(row)]
    columns = zip(*rows[1:], strict=True)
    return {head: np.array(column, dtype=float) for head, column in zip(rows[0], columns, strict=True)}


def test_single_features_of_ohsumed() -> None:
    parts = [load_svmlight_file(str(FOLDER / f"Fold{fold}" / "testset.txt"), query_id=True) for fold in range(1, 6)]
    X, y, qid = (np.concatenate(part) for part in zip(*((X.toarray(), y, q) for X, y, q in parts), strict=True))
    ptr = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(qid)]))
    assert len(ptr) == 106 + 1
    figures = published("NDCG") | published("Precision")
    names = [name for name in figures if name != "Feature No"]
    assert len(names) == 21
    assert figures["Feature No"].tolist() == list(range(1, 26))
    for convention in ("letor3", "letor4"):  # they differ in lists of fewer than ten documents, and here is none
        plan = Plan.of(tuple(measure(name, convention=convention) for name in names))
        for feature in range(25):
            values = plan.run(X[:, feature], y, ptr)
            expected = [figures[name][feature] for name in names]
            np.testing.assert_allclose(values.mean(axis=1), expected, rtol=0, atol=1e-12)
