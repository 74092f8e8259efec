from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank import InputError


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=60, random_state=0)


def learn(ranker, queries, sessions, seed):
    """Users who look at position k with 1/k and click what is relevant, seldom what is not."""
    rng = np.random.default_rng(seed)
    for _ in range(sessions):
        query = queries[int(rng.integers(queries.n_queries))]
        shown = ranker.sample(query.X)
        chance = np.where(query.y[shown] > 2, 1.0, 0.1) / np.arange(1, len(shown) + 1)
        ranker.partial_fit_clicks(query.X, shown, rng.random(len(shown)) < chance)
    return ranker


def test_clicks_teach_it_to_rank(data):
    ranker = learn(tr.PDGD(cut=5), data[:40], 1500, 0)
    untaught = tr.evaluate(np.zeros(data[40:].n_docs), data[40:]).mean["ndcg@10"]
    assert tr.evaluate(ranker, data[40:]).mean["ndcg@10"] > untaught + 0.1
    assert ranker.counts_["pages"] == 1500


def test_pages_are_drawn_with_the_odds_of_their_scores():
    ranker = tr.PDGD(cut=1)
    X = np.array([[1.0], [0.0], [-1.0]])
    ranker.fit(np.array([[1.0], [0.0]]), [1, 0])
    ranker.function_ = type(ranker.function_)(np.array([0.7]))
    drawn = np.bincount([ranker.sample(X)[0] for _ in range(3000)], minlength=3) / 3000
    odds = np.exp(0.7 * X[:, 0])
    np.testing.assert_allclose(drawn, odds / odds.sum(), atol=0.04)


def test_saved_in_mid_stream_it_goes_on_with_the_same_bits(data, tmp_path):
    ranker = learn(tr.PDGD(cut=5), data, 50, 0)
    ranker.save(tmp_path / "m.json")
    again = tr.load(tmp_path / "m.json")
    np.testing.assert_array_equal(learn(again, data, 50, 1).coef_, learn(ranker, data, 50, 1).coef_)


@pytest.mark.parametrize(
    ("shown", "clicked", "words"),
    [
        ([0, 99], [1, 0], "shown has row 99 of"),
        ([-1, 0], [1, 0], "shown has row -1"),
        ([1, 1], [1, 0], "a row twice"),
        ([0, 1], [1], "clicked a flag for each"),
        (["a"], [1], "shown must be row numbers"),
    ],
)
def test_a_bad_page_changes_nothing(data, shown, clicked, words):
    ranker = learn(tr.PDGD(), data, 10, 0)
    before, model = ranker.coef_.copy(), ranker.function_
    with pytest.raises(InputError, match=words):
        ranker.partial_fit_clicks(data[0].X, shown, clicked)
    with pytest.raises(InputError, match="features"):
        ranker.partial_fit_clicks(data[0].X[:, :3], [0, 1], [1, 0])
    assert ranker.function_ is model
    np.testing.assert_array_equal(ranker.coef_, before)


def test_a_page_without_a_preference_tells_nothing(data):
    ranker = learn(tr.PDGD(), data, 10, 0)
    before = ranker.coef_.copy()
    ranker.partial_fit_clicks(data[0].X, [0, 1, 2], [0, 0, 0])
    ranker.partial_fit_clicks(data[0].X, [0, 1, 2], [1, 1, 1])
    np.testing.assert_array_equal(ranker.coef_, before)


def test_a_list_may_be_sparse(data):
    plain, sparse = (tr.PDGD().start_at(tr.ListNet().fit_queries(data)) for _ in range(2))
    X = data[0].X
    assert (plain.sample(X) == sparse.sample(csr_array(X))).all()
    plain.partial_fit_clicks(X, [0, 1, 2], [0, 1, 0])
    sparse.partial_fit_clicks(csr_array(X), [0, 1, 2], [0, 1, 0])
    assert plain.coef_.tobytes() == sparse.coef_.tobytes()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), "1"])
def test_the_weight_of_a_page_is_a_number_not_below_0(data, weight):
    with pytest.raises(InputError, match="weight must be a number not below 0"):
        tr.PDGD().partial_fit_clicks(data[0].X, [0, 1], [0, 1], weight=weight)
