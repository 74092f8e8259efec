"""Several labels a row: one list per label, learned as if each were alone."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor

import toprank as tr

LEARNERS = [
    tr.PerceptronAtK(kappa=0.5, epochs=3),
    tr.SGDAtK(k=40, epochs=3, shuffle="rows"),
    tr.OnePassMiniBatch(kappa=0.5, batch_size=60),
    tr.SVMPerf("avg", kappa=1.0),
]
STREAMS = LEARNERS[:3]


def named(ranker):
    return type(ranker).__name__


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    Y = (X @ rng.normal(size=(5, 3)) + rng.normal(size=(600, 3)) > 1.5).astype(int)
    return X, Y


def alone(ranker, X, Y, **options):
    return [clone(ranker).fit(X, Y[:, j], **options) for j in range(Y.shape[1])]


@pytest.mark.parametrize("ranker", LEARNERS, ids=named)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array, lambda Y: Y.astype(bool), np.ndarray.tolist])
def test_each_label_is_learned_to_the_bit_as_if_it_were_alone(ranker, form, labelled):
    X, Y = labelled
    ranker, ones = clone(ranker).fit(X, form(Y)), alone(ranker, X, Y)
    np.testing.assert_array_equal(ranker.coef_, [one.coef_ for one in ones])
    scores = np.column_stack([one.predict(X) for one in ones])
    np.testing.assert_array_equal(ranker.predict(X), scores)
    np.testing.assert_array_equal(ranker.decision_function(X), scores)
    np.testing.assert_array_equal(ranker.rank(X), np.column_stack([one.rank(X) for one in ones]))
    for k in (None, 7):
        top = np.column_stack([one.predict_labels(X, k=k) for one in ones])
        np.testing.assert_array_equal(ranker.predict_labels(X, k=k), top)
    expected = np.mean([one.score(X, Y[:, j]) for j, one in enumerate(ones)])
    assert ranker.score(X, form(Y)) == pytest.approx(expected, abs=1e-15)
    judge = tr.precision_at_k(k=ranker.k, kappa=ranker.kappa)
    assert judge(ranker, X, form(Y)) == pytest.approx(expected, abs=1e-15)
    assert ranker.classes_.tolist() == [0, 1, 2]
    assert len(ranker.estimators_) == 3


def test_x_is_shared_and_not_copied(labelled, monkeypatch):
    X, Y = labelled
    seen = []
    plain = tr.PerceptronAtK._fit

    def look(self, data, valid, executor):
        seen.append(np.shares_memory(data.X, X))
        plain(self, data, valid, executor)

    monkeypatch.setattr(tr.PerceptronAtK, "_fit", look)
    tr.PerceptronAtK(epochs=1).fit(X, Y)
    assert seen == [True] * 3


def test_queries_weights_and_a_validation_set_reach_every_label(labelled):
    X, Y = labelled
    rng = np.random.default_rng(1)
    qid, weight = rng.integers(0, 20, len(X)), rng.random(20)
    options = {"qid": qid, "query_weight": weight}
    ranker = tr.SGDAtK(kappa=0.5, epochs=4).fit(X, Y, valid=(X, Y, qid), **options)
    ones = [
        tr.SGDAtK(kappa=0.5, epochs=4).fit(X, Y[:, j], valid=(X, Y[:, j], qid), **options) for j in range(Y.shape[1])
    ]
    np.testing.assert_array_equal(ranker.coef_, [one.coef_ for one in ones])
    np.testing.assert_array_equal(ranker.rank(X, qid), np.column_stack([one.rank(X, qid) for one in ones]))
    expected = np.mean([one.score(X, Y[:, j], qid) for j, one in enumerate(ones)])
    assert ranker.score(X, Y, qid) == pytest.approx(expected)
    assert tr.precision_at_k(kappa=0.5)(ranker, X, Y, qid) == pytest.approx(expected)
    assert "valid" in ranker.estimators_[0].trace_


@pytest.mark.parametrize("ranker", STREAMS, ids=named)
def test_a_stream_of_several_labels_is_several_streams_and_survives_a_file(ranker, labelled, tmp_path):
    X, Y = labelled
    ranker, ones = clone(ranker), [clone(ranker) for _ in range(3)]
    for rows in np.array_split(np.arange(len(X)), 4):
        ranker.partial_fit(X[rows], Y[rows])
        for j, one in enumerate(ones):
            one.partial_fit(X[rows], Y[rows, j])
        ranker.save(tmp_path / "model.json")
        ranker = tr.load(tmp_path / "model.json")
    np.testing.assert_array_equal(ranker.coef_, [one.coef_ for one in ones])
    assert [one.n_seen_ for one in ranker.estimators_] == [len(X)] * 3
    fitted = clone(ranker).fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_[1], clone(ranker).fit(X, Y[:, 1]).partial_fit(X, Y[:, 1]).coef_)


def test_a_file_holds_every_label(labelled, tmp_path):
    X, Y = labelled
    ranker = tr.SVMPerf("avg", kappa=1.0).fit(X, Y)
    ranker.save(tmp_path / "model.json")
    again = tr.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    np.testing.assert_array_equal(again.predict_labels(X), ranker.predict_labels(X))
    assert again.score(X, Y) == ranker.score(X, Y)
    content = json.loads((tmp_path / "model.json").read_text())

    def refused(change, message):
        spoilt = json.loads(json.dumps(content))
        change(spoilt["state"])
        (tmp_path / "spoilt.json").write_text(json.dumps(spoilt))
        with pytest.raises(tr.InputError, match=message):
            tr.load(tmp_path / "spoilt.json")

    refused(lambda state: state["estimators_"].pop(), "must be 3 rankers")
    refused(lambda state: state.update(estimators_=1), "must be 3 rankers")
    refused(lambda state: state["estimators_"].reverse(), r"estimators_\[0\] has other weights")
    refused(lambda state: state.update(more=1), "exactly: estimators_")
    refused(lambda state: state["estimators_"][0].update(ranker="SGDAtK"), r"estimators_\[0\] is not a SVMPerf")
    refused(lambda state: state["estimators_"][0].pop("model"), r"estimators_\[0\]: .*model")
    refused(lambda state: state["estimators_"].__setitem__(0, content), r"estimators_\[0\] is not a SVMPerf")


def test_frames_names_and_model_selection(labelled):
    pandas = pytest.importorskip("pandas")
    X, Y = labelled
    frame = pandas.DataFrame(X, columns=list("abcde"))
    ranker = tr.SGDAtK(kappa=0.5, epochs=2).fit(frame, pandas.DataFrame(Y))
    assert ranker.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(ranker.coef_, tr.SGDAtK(kappa=0.5, epochs=2).fit(X, Y).coef_)
    ranker.partial_fit(frame, Y)
    assert ranker.rank(frame).shape == ranker.predict_labels(frame).shape == (600, 3)
    values = cross_val_score(tr.SGDAtK(kappa=0.5, epochs=2), X, Y, scoring=tr.precision_at_k(kappa=0.5), cv=3)
    assert values.shape == (3,)
    assert (values > 0.5).all()
    found = GridSearchCV(tr.SGDAtK(epochs=2), {"eta": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert found.best_estimator_.coef_.shape == (3, 5)
    many = MultiOutputRegressor(tr.SGDAtK(kappa=0.5, epochs=2)).fit(X, Y)
    scored = tr.precision_at_k(kappa=0.5)(many, X, Y)
    assert scored == tr.SGDAtK(kappa=0.5, epochs=2).fit(X, Y).score(X, Y)


def test_one_label_after_several_and_the_other_way_round(labelled):
    X, Y = labelled
    for warm in ({}, {"warm_start": True}):
        ranker = tr.SVMPerf("avg", kappa=1.0, **warm).fit(X, Y).fit(X, Y[:, 0])
        assert ranker.coef_.shape == (5,)
        assert not hasattr(ranker, "estimators_")
        np.testing.assert_array_equal(ranker.coef_, tr.SVMPerf("avg", kappa=1.0).fit(X, Y[:, 0]).coef_)
    again = tr.SVMPerf("avg", kappa=1.0, warm_start=True).fit(X, Y).fit(X, Y)
    assert max(one.n_iter_ for one in again.estimators_) <= min(one.n_iter_ for one in alone(LEARNERS[3], X, Y))


def test_what_several_labels_warn_of_is_told_once(labelled):
    X, Y = labelled
    with pytest.warns(
        ConvergenceWarning, match=r"^label 0: SVMPerf did not converge: .* \(and the like of 2 more labels\)$"
    ) as caught:
        tr.SVMPerf(max_iter=1, kappa=1.0).fit(X, Y)
    assert len(caught) == 1


def test_what_needs_one_score_a_row_says_so(labelled, tmp_path):
    X, Y = labelled
    ranker = tr.SGDAtK(kappa=0.5, epochs=1).fit(X, Y)
    data = tr.QueryDataset.from_arrays(X, Y[:, 0])
    told = r"this SGDAtK learned 3 labels .*estimators_\[i\]"
    for use in (
        lambda: ranker.predict(data),
        lambda: ranker.rank(data),
        lambda: ranker.certify(data),
        lambda: tr.evaluate(ranker, data),
        lambda: tr.export.fold(ranker),
    ):
        with pytest.raises(tr.InputError, match=told):
            use()
    assert ranker.estimators_[0].certify(data)
    assert tr.evaluate(ranker.estimators_[0], data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, 2 * Y), "must hold 0 and 1 alone, and it holds 2"),
        (lambda X, Y: (X, np.where(Y, np.nan, 0.0)), "must hold 0 and 1 alone, and it holds nan"),
        (lambda X, Y: (X, sp.csr_matrix(3 * Y)), "must hold 0 and 1 alone, and it holds 3"),
        (lambda X, Y: (X, Y.astype(str)), "must hold 0 and 1 alone, and it holds '0'"),
        (lambda X, Y: (X, Y[:-1]), "label 0: y has 599 labels for 600 documents|y has 599 labels"),
        (lambda X, Y: (X, Y[:, :0]), r"y has no labels: its shape is \(600, 0\)"),
        (lambda X, Y: (X, Y[:, :, None]), "one dimension"),
        (lambda X, Y: (X, np.column_stack([Y, 0 * Y[:, 0]])), "label 3: y has one class only"),
        (lambda X, Y: (X, Y, None, None, (X, Y[:, 0])), "valid must be .* its y have 3 columns"),
        (lambda X, Y: (X, Y, None, None, (X, Y[:, :2])), "valid must be .* its y have 3 columns"),
    ],
)
def test_what_is_no_table_of_labels_is_refused_and_changes_nothing(change, message, labelled):
    X, Y = labelled
    ranker = tr.SGDAtK(kappa=0.5, epochs=1).fit(X, Y)
    before = ranker.coef_
    with pytest.raises(tr.InputError, match=message) as caught:
        ranker.fit(*change(X, Y))
    assert "\n" not in str(caught.value)
    assert ranker.coef_ is before


def test_a_stream_keeps_its_number_of_labels_and_fails_as_a_whole(labelled):
    X, Y = labelled
    ranker = tr.SGDAtK(kappa=0.5).partial_fit(X, Y)
    before = ranker.coef_.copy()
    for y in (Y[:, :2], Y[:, 0]):
        with pytest.raises(tr.InputError, match="y must have 3 columns"):
            ranker.partial_fit(X, y)
        with pytest.raises(tr.InputError, match="y must have 3 columns"):
            ranker.score(X, y)
    with pytest.raises(tr.InputError, match="y has 3 columns, and this SGDAtK learned 1 so far"):
        tr.SGDAtK().partial_fit(X, Y[:, 0]).partial_fit(X, Y)
    with pytest.raises(ValueError, match="X has 4 features, but SGDAtK is expecting 5"):
        ranker.partial_fit(X[:, :4], Y)
    np.testing.assert_array_equal(ranker.coef_, before)
    with pytest.raises(tr.InputError, match="one dimension"):
        tr.ListNet().fit(X, Y)
