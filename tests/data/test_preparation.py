"""Copies beside the features and knots: by their definitions, on every kind of X, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import toprank as tr
from tests.oracles import preparation as oracle
from toprank.data import linear
from toprank.data.lazy import LazyRows
from toprank.data.preparation import QueryRelative, Ramps, Thresholds, steps_of, words_of
from toprank.data.remote import RemoteMatrix
from toprank.model import Inputs, inputs
from toprank.objective import Objective
from toprank.surrogates import ListNet

VALUES = st.sampled_from([0.0, 1.0, 2.5, -3.0, 1e-3, 1e9, 7.0, 7.5, 0.25])


def lists(X, sizes, **more):
    qid = np.repeat(np.arange(len(sizes)), sizes)
    return tr.QueryDataset.from_arrays(np.array(X, dtype=float), np.arange(len(qid)) % 2, qid, **more)


@given(st.lists(VALUES, min_size=3, max_size=20), st.integers(1, 4), st.booleans())
def test_copies_are_what_the_definitions_say(values, queries, as_single):
    sizes = np.diff(np.linspace(0, len(values), queries + 1).astype(int))
    data = lists([[v] for v in values], sizes)
    data = data.with_X(data.X.astype(np.float32)) if as_single else data
    words = ["+rank", "+minmax", "+standard"]
    column = data.X[:, 0].astype(float).tolist()
    wanted = oracle.prepared([column], data.ptr.tolist(), [column], data.ptr.tolist(), words)
    found = Inputs.fit(data, prepare=words).apply(data).X
    np.testing.assert_allclose(found, np.array(wanted).T, rtol=1e-9, atol=1e-9)


@given(st.lists(VALUES, min_size=2, max_size=30), st.integers(1, 6), st.sampled_from(["ramps", "steps"]))
def test_knots_are_what_the_definitions_say(values, count, kind):
    data = lists([[v, float(i)] for i, v in enumerate(values)], [len(values)])
    columns = [data.X[:, 0].tolist(), data.X[:, 1].tolist()]
    useful = [set(c) for c in columns]
    possible = max(len(u) - (2 if kind == "ramps" else 1) for u in useful)
    if possible < count:
        with pytest.raises(tr.InputError, match="no column has values for more than"):
            Inputs.fit(data, prepare=f"{kind}:{count}")
        return
    made = Inputs.fit(data, prepare=f"{kind}:{count}")
    wanted = oracle.prepared(columns, [0, len(values)], columns, [0, len(values)], [f"{kind}:{count}"])
    np.testing.assert_allclose(made.apply(data).X, np.array(wanted).T, rtol=1e-12)
    assert made.n_outputs == len(wanted) == len(set(made.output_labels))


@pytest.mark.parametrize("words", ["ramps:3", "steps:4", "+minmax", "+minmax,ramps:2", "log,steps:2"])
def test_a_sparse_matrix_gives_the_same_columns_and_stays_sparse(words):
    random = np.random.default_rng(0)
    X = (
        random.poisson(1.0, (40, 5))
        * random.random((40, 5))
        * (1 if "minmax" in words else random.choice([-1, 1], (40, 5)))
    )
    whole = lists(X, [10] * 4)
    thin = whole.with_X(csr_array(X))
    made, other = Inputs.fit(whole, prepare=words), Inputs.fit(thin, prepare=words)
    seen = other.apply(thin)
    assert seen.is_sparse
    assert seen.X.has_canonical_format
    np.testing.assert_allclose(seen.X.toarray(), made.apply(whole).X, rtol=1e-12, atol=1e-15)


def test_ranks_of_a_sparse_matrix_are_made_list_by_list_or_refused():
    X = np.random.default_rng(0).poisson(0.5, (40, 3)).astype(float)
    whole = lists(X, [10] * 4)
    thin = whole.with_X(csr_array(X))
    ranker = tr.ListNet(prepare="+rank,ramps:2").fit_queries(whole)
    np.testing.assert_array_equal(ranker.predict(thin), ranker.predict(whole))
    other = tr.ListNet(prepare="+rank,ramps:2").fit_queries(thin)
    np.testing.assert_allclose(other.coef_, ranker.coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(tr.InputError, match=r"take \+minmax, or pass X.toarray"):
        tr.SlamPerceptron(prepare="+rank,ramps:2").fit_queries(thin)


def test_missing_cells_never_get_into_knots():
    data = tr.datasets.make_graded(n_queries=30, n_features=3, random_state=0)
    X = np.array(data.X)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    gaps = tr.QueryDataset.from_arrays(X, data.y, data.qid, missing="keep")
    for missing in ("zero", "median", "indicator"):
        made = Inputs.fit(gaps, missing, "ramps:4")
        assert np.isfinite(made.steps[0].knot).all()
        filled = made.missing.filled(gaps.X)
        assert made.steps[0].width == filled.shape[1]
        chosen = made.steps[0].knot[made.steps[0].column == 0]
        assert chosen.tolist() == oracle.knots(filled[:, 0].tolist(), 4, "ramps")
    with pytest.raises(tr.InputError, match="NaN"):
        Inputs.fit(gaps, "error", "ramps:4")


def test_rows_that_are_computed_when_they_are_read_give_the_bits_of_rows_in_memory(monkeypatch):
    data = tr.datasets.make_graded(n_queries=90, n_docs=(1, 40), n_features=6, random_state=0)
    made = Inputs.fit(data, prepare="+rank,+minmax,ramps:5")
    kept, whole = made.prepared_lazily(data), made.prepared(data)
    monkeypatch.setattr(inputs, "AT_ONCE", 0)
    monkeypatch.setattr("toprank.data.lazy.RUN_BYTES", 1 << 14)
    lazy = made.prepared_lazily(data)
    assert isinstance(lazy.X, LazyRows)
    assert len(list(lazy.X.runs())) > 3
    w = np.random.default_rng(0).normal(size=made.n_outputs)
    for other in (kept, lazy):
        assert np.array_equal(linear.scores(other.X, w), linear.scores(whole.X, w))
        np.testing.assert_allclose(linear.adjoint(other.X, whole.y), linear.adjoint(whole.X, whole.y), rtol=1e-9)
        one, two = (Objective(rows, ListNet()) for rows in (other, whole))
        for a, b in zip(one.value_and_grad(w), two.value_and_grad(w), strict=True):
            assert np.array_equal(a, b)
        np.testing.assert_allclose(one.spread(), two.spread(), rtol=1e-9, atol=1e-12)
    with pytest.raises(tr.InputError, match="all rows are needed at once"):
        np.asarray(lazy.X)
    first = tr.ListNet(prepare="+rank,ramps:5").fit_queries(data)
    monkeypatch.setattr(inputs, "AT_ONCE", 1 << 28)
    assert np.array_equal(first.coef_, tr.ListNet(prepare="+rank,ramps:5").fit_queries(data).coef_)


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        ("ramps:4,log", "'log' must come before 'ramps:4'"),
        ("+rank,query", r"'query' must come before '\+rank'"),
        ("ramps:4,+rank", r"'\+rank' must come before"),
        ("ramps:4,steps:4", "take one of ramps and steps"),
        ("+rank,+minmax,+rank", r"prepare has '\+rank' twice"),
        ("ramps", "prepare has 'ramps'"),
        ("ramps:0", "takes 1 to 1000 knots"),
        ("ramps:5000", "takes 1 to 1000 knots"),
        ("ramps:many", "prepare has 'ramps:many'"),
        ("+ranks", r"did you mean '\+rank'"),
    ],
)
def test_nonsense_is_one_line(prepare, why):
    with pytest.raises(tr.InputError, match=why) as refused:
        tr.ListNet(prepare=prepare).fit([[1.0], [0.0], [2.0]], [1, 0, 2])
    assert "\n" not in str(refused.value)


def test_a_stream_cannot_learn_knots_but_goes_on_with_them():
    data = tr.datasets.make_graded(n_queries=30, n_features=3, random_state=0)
    one = data[0]
    with pytest.raises(tr.InputError, match="learns its knots from all rows: call fit first"):
        tr.SlamPerceptron(prepare="+rank,ramps:3").partial_fit_queries(one)
    ranker = tr.SlamPerceptron(prepare="+rank,ramps:3").fit_queries(data[:20])
    knots = ranker.inputs_.steps[-1].knot
    ranker.partial_fit_queries(data[20:])
    assert ranker.inputs_.steps[-1].knot is knots
    assert tr.SlamPerceptron(prepare="+rank").partial_fit_queries(one).coef_.shape == (6,)


def damaged(field, value):
    column = {"column": np.array([0, 0, 1]), "knot": np.array([1.0, 2.0, 0.5]), "scale": np.ones(3)}
    return {"count": 2, "width": 2, **column, field: value}


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("column", np.array([1, 0, 1]), "rising order"),
        ("column", np.array([0, 0, 2]), "outside 0 … 1"),
        ("knot", np.array([2.0, 1.0, 0.5]), "rising order"),
        ("knot", np.array([1.0, np.inf, 0.5]), "finite"),
        ("scale", np.array([1.0, 0.0, 1.0]), "above 0"),
        ("scale", np.ones(2), "differ in length"),
        ("count", 1, "more than the 1 knots"),
        ("width", 0, "no columns"),
        ("knot", None, "incomplete"),
    ],
)
@pytest.mark.parametrize("kind", [Ramps, Thresholds])
def test_damaged_knots_are_refused(kind, field, value, why):
    kind(**damaged("count", 2))
    with pytest.raises(tr.InputError, match=why):
        kind(**damaged(field, value))


def test_knots_of_other_columns_are_refused():
    with pytest.raises(tr.InputError, match="learned on 2 columns, and there are 3"):
        Inputs(3, steps=(Ramps(**damaged("count", 2)),))


def test_words_and_labels():
    assert words_of("log, +rank,+query,ramps:8") == ("log", "+rank", "+minmax", "ramps:8")
    assert steps_of("+rank,+minmax") == (QueryRelative(("rank", "minmax")),)
    made = Inputs(1, ("age",), steps=(*steps_of("+rank"), Ramps(2, 2, np.array([0]), np.array([0.5]), np.ones(1))))
    assert made.output_labels == ("age", "rank of age", "age ramp 1 (above 0.5)")


class Far(RemoteMatrix):
    """Rows that lie elsewhere, and are given to nobody."""

    def __init__(self, X):
        self.shape, self.dtype, self.row_values = X.shape, X.dtype, float(X.shape[1])

    def keep(self, *given):
        self.refuse()

    collect = walk_parts = keep


@pytest.mark.parametrize("prepare", ["ramps:3", "+rank", "+minmax,steps:3"])
@pytest.mark.parametrize("kind", [tr.ListNet, tr.AdditiveRanker])
def test_rows_on_a_cluster_are_refused_in_one_line(kind, prepare):
    data = tr.datasets.make_graded(n_queries=40, n_features=3, random_state=0)
    with pytest.raises(tr.InputError, match="all rows of X are needed in one memory") as refused:
        kind(prepare=prepare).fit_queries(data._with(X=Far(data.X)))
    assert "\n" not in str(refused.value)


def test_mapped_rows_give_the_same_weights(tmp_path):
    data = tr.datasets.make_graded(n_queries=40, n_features=3, random_state=0)
    tr.save_queries(data, tmp_path / "folder")
    mapped = tr.open_queries(tmp_path / "folder")
    ours, theirs = (tr.ListNet(prepare="+rank,ramps:3").fit_queries(rows) for rows in (data, mapped))
    assert np.array_equal(ours.coef_, theirs.coef_)
    assert np.array_equal(ours.predict(mapped), theirs.predict(data))
