"""Reports: values per query first, counts that let one read them, every way to show them."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import StringIO
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank.errors import InputError
from toprank.measures import AP, NDCG, Blank, measure
from toprank.statistics import evaluation


@dataclass
class Linear:
    """A model that only knows how to score rows."""

    w: np.ndarray

    def predict(self, X) -> np.ndarray:
        return X @ self.w


def data_set(seed: int = 0, n_queries: int = 60, weights: bool = False) -> tr.QueryDataset:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, n_queries)
    n = int(sizes.sum())
    y = rng.integers(0, 4, n) * np.repeat(rng.random(n_queries) > 0.2, sizes)
    return tr.QueryDataset.from_arrays(
        rng.integers(0, 9, (n, 3)).astype(float),
        y,
        qid=np.repeat([f"q{i}" for i in range(n_queries)], sizes),
        doc_ids=[f"d{i}" for i in rng.permutation(n)],
        query_weight=rng.random(n_queries) if weights else None,
    )


DATA = data_set()


def test_values_are_those_of_each_measure() -> None:
    report = tr.evaluate(DATA.X[:, 0], DATA, ["ndcg@5", "map", "p@3", "auc"], convention="trec_eval")
    assert list(report.mean) == list(report.per_query) == ["ndcg@5", "map", "p@3", "auc"]
    for one in report.measures:
        expected = one.per_query(DATA.X[:, 0], DATA.y, DATA.ptr, doc_ids=DATA.doc_ids)
        np.testing.assert_array_equal(report.per_query[one.name], expected)
        assert report.mean[one.name] == expected[~np.isnan(expected)].mean()
    assert report.convention == "trec_eval"
    assert report.query_ids.tolist() == DATA.query_ids.tolist()


def test_counts_say_what_was_measured() -> None:
    data = tr.QueryDataset.from_arrays(
        [[1.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 0, 0, 2, 1, 1], qid=[1, 1, 2, 3, 3, 4]
    )
    report = tr.evaluate(data.X[:, 0], data, ["ndcg@2", "map"])
    assert dict(report.counts) == {"queries": 4, "blank_queries": 1, "short_queries": 2, "tied_queries": 1}
    assert tr.evaluate(data.X[:, 0], data, "map", convention="mslr").counts["blank_queries"] == 3
    assert tr.evaluate(data.X[:, 0], data, "map").counts["short_queries"] == 0
    nearly = data.X[:, 0] + [0, 1e-9, 0, 0, 0, 0]
    assert tr.evaluate(nearly, data, "map").counts["tied_queries"] == 0
    assert tr.evaluate(nearly, data, "map", convention="trec_eval").counts["tied_queries"] == 1, "single precision"


def test_models_scores_and_columns_are_all_taken() -> None:
    w = np.array([1.0, -0.5, 0.25])
    expected = tr.evaluate(DATA.X @ w, DATA).per_query["ndcg@10"]
    np.testing.assert_array_equal(tr.evaluate(Linear(w), DATA).per_query["ndcg@10"], expected)
    np.testing.assert_array_equal(tr.evaluate((DATA.X @ w).tolist(), DATA).per_query["ndcg@10"], expected)
    sparse = replace(DATA, X=csr_array(DATA.X))
    for column in range(3):
        np.testing.assert_array_equal(
            tr.evaluate(sparse.X[:, [column]], sparse).per_query["map"],
            tr.evaluate(DATA.X[:, column], DATA).per_query["map"],
        )


@pytest.mark.parametrize("convention", ["standard", "trec_eval"])
def test_an_executor_changes_no_bit(convention: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "BLOCK_DOCS", 50)
    data = data_set(weights=True)
    serial = tr.evaluate(data.X[:, 1], data, ["ndcg@3", "map", "auc"], convention)
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        for executor in (threads, process):
            parallel = tr.evaluate(data.X[:, 1], data, ["ndcg@3", "map", "auc"], convention, executor=executor)
            for name, values in serial.per_query.items():
                np.testing.assert_array_equal(parallel.per_query[name], values)
            assert parallel.counts == serial.counts
            assert dict(parallel.mean) == dict(serial.mean)


def test_means_are_weighted_and_skip_what_the_convention_skips() -> None:
    data = data_set(weights=True)
    report = tr.evaluate(data.X[:, 0], data, ["map", "map:blank=skip"])
    w, values = data.query_weight, report.per_query["map"]
    assert report.mean["map"] == pytest.approx((w * values).sum() / w.sum(), abs=1e-15)
    counted = ~np.isnan(report.per_query["map:blank=skip"])
    assert counted.sum() == 60 - report.counts["blank_queries"]
    expected = (w * values)[counted].sum() / w[counted].sum()
    assert report.mean["map:blank=skip"] == pytest.approx(expected, abs=1e-15)
    assert str(report).endswith("; weighted")


def test_measures_keep_the_convention_they_name() -> None:
    report = tr.evaluate(DATA.X[:, 0], DATA, ["ndcg@5", "map:letor4", NDCG(k=5, convention="sklearn")], "lightgbm")
    assert [str(m) for m in report.measures] == ["ndcg@5:lightgbm", "map:letor4", "ndcg@5:sklearn"]
    assert list(report.mean) == ["ndcg@5:lightgbm", "map", "ndcg@5:sklearn"]
    assert report.convention == "lightgbm, letor4, sklearn"


def test_a_name_is_found_however_it_is_spelt() -> None:
    report = tr.evaluate(DATA.X[:, 0], DATA, ["ap", "NDCG@5"])
    assert report.mean["MAP"] == report.mean["ap"] == report.mean["map"]
    assert report.per_query["nDCG@5"] is report.per_query["ndcg@5"]
    for missing in ("mrr", "ndcg@4", "no such measure", "map:above=1"):
        with pytest.raises(KeyError, match="was not evaluated: there are map, ndcg@5"):
            report.mean[missing]


def test_every_way_to_show_a_report() -> None:
    data = tr.QueryDataset.from_arrays([[2.0], [1.0], [1.0]], [0, 1, 0], qid=["a", "a", "b"])
    report = tr.evaluate(data.X[:, 0], data, [measure("mrr"), AP(blank=Blank.SKIP)])
    assert str(report).splitlines() == [
        "measure    mean",
        "-------  ------",
        "mrr      0.2500",
        "map      0.5000",
        "convention standard; 2 queries, 1 without relevant documents, map counts 1 of them, 0 with ties that matter",
    ]
    assert repr(report) == "Report(mrr=0.2500, map=0.5000; 2 queries, convention standard)"
    plain = json.loads(json.dumps(report.to_dict(per_query=True)))
    assert plain["mean"] == {"mrr": 0.25, "map": 0.5}
    assert plain["measures"] == {"mrr": "mrr", "map": "map:blank=skip"}
    assert plain["per_query"] == {"mrr": [0.5, 0.0], "map": [0.5, None]}
    assert plain["query_ids"] == ["a", "b"]
    assert "per_query" not in report.to_dict()
    assert "| mrr | 0.2500 |" in report.to_markdown()
    assert r"mrr & 0.2500 \\" in report.to_latex()
    assert "<td" in report._repr_html_()
    assert report.per_query_table().plain().splitlines()[2].split() == ["a", "0.5000", "0.5000"]
    frame = report.to_frame("polars")
    assert frame.columns == ["query", "mrr", "map"]
    assert frame["mrr"].to_list() == [0.5, 0.0]
    from rich.console import Console

    console = Console(width=90, file=StringIO())
    console.print(report)
    assert "convention standard" in console.file.getvalue()


@pytest.mark.parametrize(
    ("scores", "measures", "message"),
    [
        (np.zeros(3), ["map"], "scores has 3 values for"),
        (np.full(DATA.n_docs, np.nan), ["map"], "scores has NaN in row 0"),
        (DATA.X[:, :1], ["map"], "scores must have one dimension"),
        (DATA.X[:, 0], [], "measures is empty: name at least one"),
        (DATA.X[:, 0], ["map", "ap"], "measures names map more than once"),
        (DATA.X[:, 0], ["maap"], r"unknown measure 'maap' \(did you mean 'map'\?\)"),
    ],
)
def test_bad_input_is_told_in_one_line(scores, measures, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tr.evaluate(scores, DATA, measures)


def test_auc_counts_no_query_of_one_grade():
    """Such a query has no pair to order: a perfect ranking has an AUC of 1 whether or not it is there."""
    y = np.array([1, 0, 2, 2, 0, 0, 1, 0])
    data = tr.QueryDataset.from_arrays(np.zeros((8, 1)), y, [0, 0, 1, 1, 2, 2, 3, 3])
    good, bad = tr.evaluate(y, data, ["auc", "map"]), tr.evaluate(-y, data, ["auc", "map"])
    assert (good.mean["auc"], bad.mean["auc"]) == (1.0, 0.0)
    np.testing.assert_array_equal(good.per_query["auc"], [1.0, np.nan, np.nan, 1.0])
    assert ", 1 without relevant documents, auc counts 2 of them, " in good.summary()
    found = tr.compare({"good": good, "bad": bad})
    assert dict(found.counted) == {"auc": 2, "map": 4}
    assert found.difference("auc", "good", "bad").difference == 1.0
    assert (found.difference("auc", "good", "bad").wins, found.difference("auc", "good", "bad").ties) == (2, 0)
    assert "Some measures count fewer queries: auc 2." in str(found)
    assert "counts" not in tr.evaluate(y, data, ["auc"], convention="catboost").summary()  # CatBoost counts 0
