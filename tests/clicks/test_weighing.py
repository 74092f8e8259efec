from __future__ import annotations

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import toprank as tr
from tests.oracles import clicks as oracle
from toprank import InputError, QueryDataset, rankers
from toprank.clicks import ClickLog, Propensities
from toprank.rankers.base import Ranker

EVERY = [getattr(rankers, name) for name in rankers.__all__]


@pytest.fixture(scope="module")
def features():
    return QueryDataset.from_arrays(
        np.arange(10.0).reshape(5, 2), np.zeros(5), qid=["p", "p", "q", "q", "q"], doc_ids=["a", "b", "a", "c", "d"]
    )


@given(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_the_expected_loss_over_all_clicks_is_the_loss_with_all_documents_judged(seen, attracts):
    """Σ_clicks −log P(d)/p_k has expectation Σ_d γ_d (−log P(d)), whatever page was shown."""
    p = [1.0, *(s / max(seen) for s in seen[1:])]
    scores = [0.3, -0.2, 1.1]
    mass = sum(map(math.exp, scores))
    losses = [-math.log(math.exp(s) / mass) for s in scores]
    page = (2, 0, 1)
    data = QueryDataset.from_arrays(np.eye(3), np.zeros(3), doc_ids=[0, 1, 2])

    def corrected(pattern):
        if not any(pattern):
            return 0.0
        log = ClickLog.from_arrays([0] * 3, list(page), [1, 2, 3], pattern)
        judged = log.to_queries(data, Propensities.known(p), clip=None)
        return float(judged.doc_weight @ np.array(losses))

    chances = [p[k] * attracts[d] for k, d in enumerate(page)]
    whole = sum(g * loss for g, loss in zip(attracts, losses, strict=True))
    assert oracle.expected(corrected, chances) == pytest.approx(whole, abs=1e-9)


def test_weights_are_sums_over_clicks_and_clipped(features):
    log = ClickLog.from_arrays(list("qqqqpp"), list("acaacb"), [1, 2, 2, 1, 2, 3], [1, 0, 1, 0, 0, 1])
    p = Propensities.known([1.0, 0.5, 0.01])
    judged = log.to_queries(features, p, clip=None, candidates="all")
    assert judged.query_ids.tolist() == ["p", "q"]
    assert judged.doc_weight.tolist() == pytest.approx([0, 100, 3, 0, 0])
    assert judged.y.tolist() == [0, 1, 1, 0, 0]
    assert judged.query_weight.tolist() == pytest.approx([100, 3])
    # Of document a of query p, and of d of q, the log says nothing.
    assert log.to_queries(features, p, clip=0.1).doc_weight.tolist() == pytest.approx([10, 3, 0])
    weights = np.array([1.0, 2.0, 10.0])
    assert log.effective_sample_size(p, clip=0.1) == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_weights_of_queries_compose(features):
    log = ClickLog.from_arrays(list("pq"), list("ad"), [1, 2], [1, 1])
    p, own = Propensities.known([1.0, 0.5]), replace(features, query_weight=np.array([3.0, 5.0]))
    assert log.to_queries(own, p).query_weight.tolist() == [3, 10]
    assert log.to_queries(own, p).doc_weight.tolist() == log.to_queries(features, p).doc_weight.tolist()
    blank = QueryDataset(
        features.X, features.y, np.array([0, 2, 5, 5]), np.array(["p", "q", "r"]), doc_ids=features.doc_ids
    )
    assert log.to_queries(blank, p).query_weight.tolist() == [1, 2]  # a last query without documents is nothing
    none = replace(features, query_weight=np.array([0.0, 1.0]))
    assert log.to_queries(none, p).query_ids.tolist() == ["q"]


def test_queries_without_clicks_are_left_out(features):
    log = ClickLog.from_arrays(list("pq"), list("ad"), [1, 1], [0, 1])
    judged = log.to_queries(features, Propensities.known([1.0]))
    assert judged.query_ids.tolist() == ["q"]


@pytest.mark.parametrize(
    ("log", "p", "words"),
    [
        (("q", "d", 4, 1), [1.0, 0.5], "1 clicks are at positions after 2, the first at 4"),
        (("q", "d", 2, 1), [1.0, 0.0], "position 2 has clicks and propensity 0"),
        (("q", "z", 1, 1), [1.0], "1 clicked documents have no features, the first is document z of query q"),
        (("q", "d", 1, 0), [1.0], "no click of the log is on a document with features"),
    ],
)
def test_what_cannot_be_weighed_is_refused(features, log, p, words):
    with pytest.raises(InputError, match=words):
        ClickLog.from_arrays(*([v] for v in log)).to_queries(features, Propensities.known(p))


def test_clicks_without_features_can_be_dropped(features):
    log = ClickLog.from_arrays(list("qq"), list("zd"), [1, 2], [1, 1])
    judged = log.to_queries(features, Propensities.known([1.0, 0.5]), unknown="drop", candidates="all")
    assert judged.doc_weight.tolist() == [0, 0, 2]


def test_a_document_listed_twice_is_refused(features):
    twice = replace(features, doc_ids=np.array(["a", "a", "a", "c", "d"]))
    with pytest.raises(InputError, match="document a twice in query p"):
        ClickLog.from_arrays(["q"], ["d"], [1], [1]).to_queries(twice, Propensities.known([1.0]))


def test_a_query_whose_documents_were_all_clicked_still_teaches():
    """With many sessions every document has clicks: how many, over its propensity, says which is the better one."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]] * 2)
    data = QueryDataset.from_arrays(X, [1, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1], doc_weight=[9, 1, 3, 2, 0, 0])
    assert data.informative.all()
    assert not QueryDataset.from_arrays(X, np.ones(6), doc_weight=np.full(6, 2.0)).informative.any()
    assert np.argsort(-tr.ListNet().fit_queries(data[:1]).predict(X[:3])).tolist() == [0, 2, 1]
    # Sums over pairs of grades, of which such a query has none.
    for ranker in (tr.RankSVM(), tr.LinearRanker("Slam", alpha=0.1)):
        whole, graded = (clone(ranker).fit_queries(part).coef_ for part in (data, data[1:]))
        np.testing.assert_allclose(whole / np.linalg.norm(whole), graded / np.linalg.norm(graded), atol=1e-3)


WEIGHED = {tr.ListNet: {}, tr.RankSVM: {}, tr.LinearRanker: {"surrogate": "Slam"}}


@pytest.mark.parametrize("kind", [kind for kind in EVERY if inspect.isclass(kind) and issubclass(kind, Ranker)])
def test_every_ranker_learns_by_the_weights_or_refuses_them_by_name(kind):
    rng = np.random.default_rng(0)
    y, qid = np.tile([1, 1, 0, 0], 10), np.repeat(np.arange(10), 4)
    X = rng.normal(size=(40, 3)) + y[:, None]
    plain, even, heavy = (
        QueryDataset.from_arrays(X, y, qid, doc_weight=weight)
        for weight in (None, np.ones(40), rng.integers(1, 9, size=40))
    )
    if kind not in WEIGHED:
        with pytest.raises(InputError, match=rf"^{kind.__name__} learns without weights of documents: take ListNet"):
            kind().fit_queries(heavy)
        if hasattr(kind, "partial_fit_queries"):
            with pytest.raises(InputError, match=rf"^{kind.__name__} learns without weights"):
                kind().partial_fit_queries(heavy)
        return
    one, same, other = (kind(**WEIGHED[kind]).fit_queries(data).coef_ for data in (plain, even, heavy))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3 * np.abs(one).max()
    if hasattr(kind, "partial_fit_queries"):
        with pytest.raises(InputError, match="partial_fit learns without weights"):
            kind(**WEIGHED[kind]).partial_fit_queries(heavy)


def test_simulated_clicks_follow_their_model_and_seed():
    data = tr.datasets.make_graded(n_queries=20, n_docs=8, random_state=0)
    one = tr.datasets.simulate_clicks(data, data.X[:, 0], sessions=40_000, cut=4, eta=2.0, noise=0.2, random_state=5)
    two = tr.datasets.simulate_clicks(data, data.X[:, 0], sessions=40_000, cut=4, eta=2.0, noise=0.2, random_state=5)
    np.testing.assert_array_equal(one.clicked, two.clicked)
    relevant = data.y[one.document] > 0
    for k in range(1, 5):
        for kind, chance in ((True, k**-2.0), (False, 0.2 * k**-2.0)):
            rows = (one.position == k) & (relevant == kind)
            error = 5 * math.sqrt(chance * (1 - chance) / rows.sum()) + 1e-9
            assert abs(one.clicked[rows].mean() - chance) < error
    order = np.argsort(-data.X[: data.lengths[0], 0], kind="stable")[:4]
    session = one.session == one.session[one.query == 0][0]
    assert one.document[session].tolist() == order.tolist()


def test_without_documents_nothing_is_shown():
    data = tr.datasets.make_graded(n_queries=2, random_state=0)
    with pytest.raises(InputError, match="data has no documents"):
        tr.datasets.simulate_clicks(data[:0], data.X[:0, 0])


def test_cascade_users_click_and_stop_by_grade():
    data = tr.datasets.make_graded(n_queries=20, n_docs=8, n_grades=2, random_state=0)
    for user, clicks, leaves in (
        ("perfect", (0, 1), 0),
        ("navigational", (0.05, 0.95), 0.9),
        ("informational", (0.4, 0.9), 0.5),
    ):
        log = tr.datasets.simulate_clicks(data, data.y, model="cascade", user=user, sessions=20_000, cut=2)
        top, next_one = log.position == 1, log.position == 2
        grades = data.y[log.document]
        for grade in (0, 1):
            first = log.clicked[top & (grades == grade)]
            if len(first):
                assert abs(first.mean() - clicks[grade]) < 0.03
        good = (
            log.clicked[top] & (grades[top] == 1) & (grades[next_one] == 1)
        )  # clicked a relevant first, another below
        assert abs(log.clicked[next_one][good].mean() - (1 - leaves) * clicks[1]) < 0.03
