"""The verdict on an exported file: it allows for rounding and for nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import toprank as tr
from tests.export.engines import RESTATED
from tests.export.models import linear_model
from tests.oracles import export as oracle
from toprank.errors import InputError
from toprank.export.verification import _misplaced, kendall_tau

NAMES = ("bm25", "age", "clicks")


@pytest.fixture(scope="module")
def data():
    made = tr.datasets.make_graded(n_queries=30, n_docs=(2, 25), n_features=3, random_state=0)
    return replace(made, feature_names=NAMES)


def linear(weights=(0.25, -1.5, 0.5), **rest):
    return linear_model(NAMES, np.array(weights, dtype=np.float64), source="ListNet", **rest)


few = st.sampled_from([0.0, 1.0, 2.0, 3.0])


@given(st.integers(2, 8).flatmap(lambda n: st.tuples(arrays(float, n, elements=few), arrays(float, n, elements=few))))
def test_kendall_tau_counts_every_pair(pair):
    first, second = pair
    assert kendall_tau(first, second) == pytest.approx(oracle.tau_b(first.tolist(), second.tolist()))


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(*(arrays(float, n, elements=st.integers(0, 9).map(float)) for _ in range(2)))
    ),
    st.integers(0, 2),
)
def test_misplaced_documents_are_those_of_the_definition(pair, width):
    truth, engine = pair
    bound = np.full(len(truth), width / 2)
    order = np.argsort(-engine, kind="stable")
    expected = oracle.misplaced(truth.tolist(), bound.tolist(), engine.tolist())
    assert _misplaced(truth[order], bound[order]) == expected


@pytest.mark.parametrize("to", RESTATED)
def test_a_faithful_export_agrees(tmp_path, data, to):
    model = linear()
    tr.export.write(model, tmp_path / "file", to)
    check = tr.export.verify(model, tmp_path / "file", data)
    assert check.agrees
    assert check.target in (to, "elasticsearch/opensearch")
    assert (check.n_queries, check.n_docs) == (data.n_queries, data.n_docs)
    assert check.largest_difference <= check.allowed < 1e-4
    assert (check.misplaced, check.not_numbers, check.worst_query) == (0, 0, None)
    assert check.tau == pytest.approx(1.0)
    assert "the rankings agree" in str(check)
    assert json.loads(json.dumps(check.to_dict()))["agrees"] is True
    assert tr.export.verify(model, tmp_path / "file", data, to=to).target == to


def test_onnx_is_verified_by_onnxruntime(tmp_path, data):
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    tr.export.write(linear(), tmp_path / "m.onnx", "onnx")
    check = tr.export.verify(linear(), tmp_path / "m.onnx", data)
    assert check.agrees
    assert 0 < check.largest_difference <= check.allowed
    assert not tr.export.verify(linear((0.25, 1.5, 0.5)), tmp_path / "m.onnx", data).agrees


@pytest.mark.parametrize("to", ["elasticsearch", "solr", "vespa", "ranklib", "json"])
def test_a_wrong_weight_is_found(tmp_path, data, to):
    tr.export.write(linear((0.25, -1.5, 0.6)), tmp_path / "file", to)
    check = tr.export.verify(linear(), tmp_path / "file", data)
    assert not check.agrees
    assert check.misplaced > 0
    assert check.tau < 1
    assert check.worst_overlap < 1
    assert check.worst_query in set(map(str, data.query_ids.tolist()))
    assert "THE RANKINGS DISAGREE" in str(check)


def test_a_shift_is_told_and_forgiven(tmp_path, data):
    tr.export.write(linear(), tmp_path / "file", "elasticsearch", shift=100.0)
    check = tr.export.verify(linear(), tmp_path / "file", data)
    assert check.agrees
    assert check.shift == pytest.approx(100.0, rel=1e-6)
    assert "beside a shift of +100" in str(check)


def test_differences_by_rounding_are_forgiven(tmp_path):
    # Two documents that differ by less than float32 sees, in the order that float32 cannot keep.
    model = linear_model(("a", "b"), np.array([1.0, 1.0]))
    tr.export.write(model, tmp_path / "file", "elasticsearch")
    X = np.array([[1e8, 1.0], [1e8, 2.0], *([i, 0.0] for i in range(8))])
    check = tr.export.verify(model, tmp_path / "file", X, top=1)
    assert check.overlap == 0.0  # the engine sees a tie and keeps the first
    assert check.agrees
    assert check.largest_difference == 2.0 <= check.allowed


def test_each_side_follows_its_own_rule_for_missing_values(tmp_path):
    model = linear((1.0, 1.0, 1.0), fill=np.array([0.0, 10.0, 0.0]))
    X = np.array([[1.0, np.nan, 1.0], [1.0, 5.0, 1.0]])
    verdicts = {}
    for to in ("elasticsearch", "ranklib", "solr", "vespa", "json"):
        tr.export.write(model, tmp_path / f"{to}.json", to)
        verdicts[to] = tr.export.verify(model, tmp_path / f"{to}.json", X).agrees
    assert verdicts == {"elasticsearch": False, "ranklib": False, "solr": True, "vespa": True, "json": True}
    with pytest.raises(InputError, match="the model refuses missing values"):
        tr.export.verify(linear(), tmp_path / "json.json", X)
    tr.export.write(linear((1.0, 1.0, 1.0)), tmp_path / "bare.json", "json")
    check = tr.export.verify(model, tmp_path / "bare.json", X)
    assert (check.not_numbers, check.agrees) == (1, False)
    assert "1 have no score" in str(check)


def test_rows_may_come_in_any_order_of_queries(tmp_path, data):
    tr.export.write(linear((0.3, -1.5, 0.5)), tmp_path / "file", "json")
    shuffled = np.random.default_rng(0).permutation(data.n_docs)
    one = tr.export.verify(linear(), tmp_path / "file", data)
    other = tr.export.verify(linear(), tmp_path / "file", data.X[shuffled], qid=data.qid[shuffled])
    assert other.tau == pytest.approx(one.tau)
    assert other.misplaced == one.misplaced


def test_features_are_matched_by_name(tmp_path, data):
    names = ("clicks", "bm25", "age")  # the file has the features in another order
    tr.export.write(linear_model(names, np.array([0.5, 0.25, -1.5])), tmp_path / "file", "solr")
    assert tr.export.verify(linear(), tmp_path / "file", data).agrees
    tr.export.write(linear(), tmp_path / "file", "solr", features=["x", "y", "z"])
    check = tr.export.verify(linear(), tmp_path / "file", data)
    assert check.agrees
    assert "by position" in check.notes[0]
    assert tr.export.verify(linear(), tmp_path / "file", data, features=["x", "y", "z"]).notes == ()
    tr.export.write(linear(), tmp_path / "file", "solr", features=["bm25", "y", "z"])
    with pytest.raises(InputError, match="asks for the feature 'y'"):
        tr.export.verify(linear(), tmp_path / "file", data)
    tr.export.write(linear(), tmp_path / "file", "ranklib")
    with pytest.raises(InputError, match="the file has 3 features, but the model has 2"):
        tr.export.verify(linear_model(("a", "b"), np.ones(2)), tmp_path / "file", data.X[:, :2])


def test_a_lone_document_and_top_of_none(tmp_path):
    tr.export.write(linear(), tmp_path / "file", "json")
    check = tr.export.verify(linear(), tmp_path / "file", np.ones((1, 3)))
    assert (check.tau, check.overlap, check.agrees) == (1.0, 1.0, True)
    with pytest.raises(InputError, match="top must be a whole number"):
        tr.export.verify(linear(), tmp_path / "file", np.ones((1, 3)), top=0)
    with pytest.raises(InputError, match="gone"):
        tr.export.verify(linear(), tmp_path / "gone", np.ones((1, 3)))
