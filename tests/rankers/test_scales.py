"""Units of features: step sizes have them, penalties feel them, and who is hurt by them says so."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import toprank as tr

UNITS = np.array([1e6, 1.0, 1e-2, 1.0])
PREPARE = r'the largest is .* times the median one: set prepare="log,query" .toprank.SignedLog, then toprank.Query'


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=60, n_docs=(8, 12), n_features=4, n_grades=3, random_state=0)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kind", [tr.SlamPerceptron, tr.OnlineListNet])
def test_the_unit_of_the_features_does_not_change_the_choice(kind, factor, data):
    plain = tr.choose_eta(kind(), data)
    other = tr.choose_eta(kind(), data.with_X(data.X * factor))
    assert other.eta * factor**2 == pytest.approx(plain.eta, rel=1e-6)
    assert list(other.averages.values()) == pytest.approx(list(plain.averages.values()), abs=1e-9)


def test_the_end_of_a_grid_is_told(data):
    with pytest.warns(UserWarning, match=r"the best step size, 0.1, is at an end of the grid"):
        tr.choose_eta(tr.OnlineListNet(), data, etas=[0.1, 1.0, 10.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best = tr.choose_eta(tr.OnlineListNet(), data)
    assert best.averages[best.eta] == max(best.averages.values())


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", [tr.ListNet, tr.RankSVM, tr.AdaRank, tr.SlamPerceptron])
def test_uneven_features_are_told_with_the_transformer_that_helps(kind, storage, data):
    raw = tr.QueryDataset.from_arrays(storage(data.X * UNITS), data.y, data.qid)
    if kind is tr.SlamPerceptron:
        for learn in (kind().fit_queries, kind().partial_fit_queries):
            with pytest.raises(tr.InputError, match=PREPARE + ".*scale=.running."):
                learn(raw)
    else:
        with pytest.warns(UserWarning, match=PREPARE):
            kind().fit_queries(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind().fit_queries(data)
        kind(prepare="log,query" if storage is np.asarray else "").fit_queries(raw if storage is np.asarray else data)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", [tr.SlamPerceptron, tr.MinimaxPerceptron, tr.OnlineListNet])
def test_a_column_that_never_varies_inside_a_list_has_no_weight_on_a_running_scale(kind, storage):
    """Rounding of its mean is no spread: divided by it, the weight was 1e14 and scores lost their digits."""
    made = tr.datasets.make_graded(n_queries=30, random_state=0)
    of_the_query = np.repeat(1e3 * np.random.default_rng(0).normal(size=made.n_queries), made.lengths)
    X = np.column_stack([made.X, np.full(made.n_docs, 3.7), of_the_query])
    ranker = kind(scale="running", random_state=0).fit(storage(X), made.y, made.qid)
    assert ranker.coef_[-2:].tolist() == [0.0, 0.0]
    alone = kind(scale="running", random_state=0).fit(storage(made.X), made.y, made.qid)
    assert np.array_equal(ranker.coef_[:-2], alone.coef_)


def test_who_does_not_feel_units_says_nothing(data):
    raw = data.with_X(data.X * UNITS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr.RankBoost(rounds=5).fit_queries(raw)
        tr.SlamPerceptron(scale="running").fit_queries(raw)


@pytest.mark.parametrize("kind", [tr.OnlineListNet, tr.SlamPerceptron, tr.MinimaxPerceptron])
def test_learners_that_step_are_told_of_features_that_are_somewhat_uneven(kind, data):
    raw = data.with_X(data.X * np.array([300.0, 1.0, 1.0, 1.0]))
    for learn in (kind().fit_queries, kind().partial_fit_queries):
        with pytest.warns(UserWarning, match="treats features alike"):
            learn(raw)


def test_a_penalty_that_outweighs_the_loss_is_told(data):
    large = tr.evaluate(tr.ListNet().fit_queries(data), data).mean["ndcg@10"]
    for unit in (1e-3, 1e-8):
        small = data.with_X(data.X * unit)
        with pytest.warns(UserWarning, match="the penalty alpha=0.001 outweighs the loss.*set alpha below"):
            held_back = tr.ListNet().fit_queries(small)
        assert tr.evaluate(held_back, small).mean["ndcg@10"] < large
        mended = tr.ListNet(alpha=1e-3 * unit**2).fit_queries(small)
        assert tr.evaluate(mended, small).mean["ndcg@10"] == pytest.approx(large, abs=1e-3)


def test_info_names_uneven_columns(data):
    assert "uneven columns   " in str(data.with_X(data.X * UNITS).info())
    assert "--prepare log,query" in str(data.with_X(data.X * UNITS).info())
    assert "uneven" not in str(data.info())
