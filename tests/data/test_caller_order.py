"""One order everywhere: what goes in or out beside a data set is in the row order its caller used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import toprank as tr
from toprank.data.trec import run_of
from toprank.errors import InputError
from toprank.model.functions import LinearFunction
from toprank.statistics.evaluation import evaluate_grouped

QUERY = list("abba")
LABEL = [0, 1, 0, 1]
X = [[1.0], [3.0], [2.0], [4.0]]
SCORES = [1.0, 3.0, 2.0, 4.0]
"""In query a row 3 above row 0, in query b row 1 above row 2: the grades agree with it."""


WHOLE = tr.ListNet().fit(np.eye(3), [0, 1, 2])
WHOLE.function_ = LinearFunction(np.array([1.0, -2.0, 4.0]))  # whole numbers: sums in any order are equal


class Plain:
    """Anybody's model: the first feature is the score."""

    def predict(self, X):
        return np.asarray(X)[:, 0]


@pytest.fixture(scope="module")
def ranker():
    return tr.ListNet().fit(X, LABEL, qid=QUERY)


def test_scores_of_rows_that_do_not_stand_together(ranker):
    data = tr.QueryDataset.from_arrays(X, LABEL, QUERY)
    assert data.order is not None
    for model in (SCORES, ranker, ranker.predict(X), ranker.predict(data), Plain(), data.feature(0)):
        assert tr.evaluate(model, data, ["map", "ndcg@1"]).mean == {"map": 1.0, "ndcg@1": 1.0}
    np.testing.assert_array_equal(ranker.predict(data), ranker.predict(X))
    np.testing.assert_array_equal(ranker.rank(data), ranker.rank(X, qid=QUERY))
    assert ranker.rank(data).tolist() == [2, 1, 2, 1]
    assert run_of(data, SCORES).doc_ids.tolist() == ["4", "1", "2", "3"]
    assert evaluate_grouped(data.X[:, 0], data, ["map"]).mean["map"] == 1.0


def interleaved(lengths: list[int], rng: np.random.Generator) -> np.ndarray:
    """Return a shuffle of grouped rows that keeps the order inside each query."""
    of_row = rng.permutation(np.repeat(np.arange(len(lengths)), lengths))
    result = np.empty(len(of_row), dtype=np.int64)
    result[np.argsort(of_row, kind="stable")] = np.arange(len(of_row))
    return result


@pytest.mark.filterwarnings("ignore:no document has grade 0")
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6), seed=st.integers(0, 2**32), sparse=st.booleans())
def test_to_interleave_rows_permutes_predictions_and_leaves_the_evaluation(lengths, seed, sparse):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    qid, y = np.repeat(np.arange(len(lengths)), lengths), rng.integers(0, 3, n)
    features, scores = rng.integers(-3, 4, (n, 3)).astype(float), rng.integers(0, 4, n).astype(float)
    rows = interleaved(lengths, rng)
    wrap = csr_array if sparse else np.asarray
    data = tr.QueryDataset.from_arrays(wrap(features), y, qid)
    mixed = tr.QueryDataset.from_arrays(wrap(features[rows]), y[rows], qid[rows])
    model = WHOLE
    np.testing.assert_array_equal(model.predict(mixed), model.predict(data)[rows])
    np.testing.assert_array_equal(model.predict(mixed), model.predict(wrap(features[rows])))
    np.testing.assert_array_equal(model.rank(mixed), model.rank(data)[rows])
    np.testing.assert_array_equal(mixed.feature(1), features[rows, 1])
    np.testing.assert_array_equal(mixed.grouped(mixed.in_caller_order(mixed.y)), mixed.y)
    for first, second in (
        (tr.evaluate(scores, data), tr.evaluate(scores[rows], mixed)),
        (tr.evaluate(model, data), tr.evaluate(model, mixed)),
        (tr.evaluate(model, data), tr.evaluate(model.predict(mixed), mixed)),
        (tr.evaluate(scores, data), tr.evaluate(scores[rows], y=y[rows], qid=qid[rows])),
    ):
        for name, values in first.per_query.items():
            there = dict(zip(second.query_ids.tolist(), second.per_query[name].tolist(), strict=True))
            assert [there[q] for q in first.query_ids.tolist()] == values.tolist()


def test_a_slice_is_in_its_own_order(ranker):
    data = tr.QueryDataset.from_arrays(X, LABEL, QUERY)
    for part in (data[:], data[1:], data[[1, 0]], data[0]):
        assert part.order is None
        np.testing.assert_array_equal(ranker.predict(part), ranker.predict(part.X))
        assert tr.evaluate(ranker.predict(part), part, ["map"]).mean["map"] == 1.0


def test_folders_keep_the_caller_order(tmp_path, ranker):
    data = tr.QueryDataset.from_arrays(X, LABEL, QUERY)
    saved = tr.open_queries(tr.save_queries(data, tmp_path / "saved"))
    text = "".join(f"{y} qid:{q} 1:{x[0]}\n" for y, q, x in zip(LABEL, QUERY, X, strict=True))
    (tmp_path / "rows.txt").write_text(text)
    streamed = tr.stream_letor(tmp_path / "rows.txt", tmp_path / "streamed")
    read = tr.read_letor(tmp_path / "rows.txt")
    for other in (saved, streamed, read):
        np.testing.assert_array_equal(other.order, data.order)
        np.testing.assert_allclose(ranker.predict(other), ranker.predict(X))
        assert tr.evaluate(SCORES, other, ["map"]).mean["map"] == 1.0


def test_rows_of_the_data_set_are_no_scores_where_the_orders_differ():
    data, sparse = (tr.QueryDataset.from_arrays(wrap(X), LABEL, QUERY) for wrap in (np.asarray, csr_array))
    for scores, of in ((data.X[:, 0], data), (data.y, data), (sparse.X[:, [0]], sparse)):
        with pytest.raises(InputError, match=r"grouped by query.*data\.feature"):
            tr.evaluate(scores, of)
    straight = tr.QueryDataset.from_arrays(X, LABEL, list("aabb"))
    assert tr.evaluate(straight.X[:, 0], straight).mean == tr.evaluate(straight.feature(0), straight).mean


def test_scores_with_grades_and_ids_alone():
    report = tr.evaluate(SCORES, y=LABEL, qid=QUERY, measures=["map"])
    assert report.mean == {"map": 1.0}
    assert report.query_ids.tolist() == ["a", "b"]
    assert tr.evaluate([np.inf, -np.inf], y=[1, 0], measures="map").mean == {"map": 1.0}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda data, frame: tr.evaluate(Plain(), frame), "data must be a QueryDataset, got a DataFrame: read a table"),
        (lambda data, frame: tr.evaluate(SCORES), "got nothing"),
        (lambda data, frame: tr.evaluate(data, Plain()), "got a Plain"),
        (lambda data, frame: tr.evaluate(tr.ListNet, data), "ListNet is a class"),
        (lambda data, frame: tr.evaluate(["a", "b", "c", "d"], data), "scores must be numbers.*got list"),
        (lambda data, frame: tr.evaluate(object(), data), "scores must be numbers.*got object"),
        (lambda data, frame: tr.evaluate(SCORES, data, y=LABEL), "not both"),
        (lambda data, frame: tr.evaluate(SCORES, qid=QUERY), "y is missing"),
        (lambda data, frame: tr.evaluate(Plain(), y=LABEL), "a model needs features"),
        (lambda data, frame: tr.evaluate(SCORES, y=LABEL[:3], qid=QUERY[:3]), "4 values for 3 documents"),
        (
            lambda data, frame: tr.certify(tr.ListNet().fit_queries(data), X, LABEL),
            "must be a QueryDataset, got a list",
        ),
        (lambda data, frame: tr.certify(tr.ListNet().fit_queries(data), frame), "QueryDataset, got a DataFrame"),
        (lambda data, frame: data.feature("bm25"), "no feature 'bm25'"),
        (lambda data, frame: data.feature(7), "none in column 7"),
    ],
)
def test_wrong_types_get_one_line(call, told):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query": QUERY, "label": LABEL, "x": SCORES})
    with pytest.raises(InputError, match=told) as caught:
        call(tr.QueryDataset.from_arrays(X, LABEL, QUERY), frame)
    assert "\n" not in str(caught.value)
