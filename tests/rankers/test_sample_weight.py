"""`sample_weight`, by which scikit-learn weighs rows: here rows of one query weigh the same, and a query so much."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr

DATA = tr.datasets.make_graded(n_queries=30, n_docs=(2, 9), n_features=4, random_state=0)
WEIGHT = np.random.default_rng(0).uniform(0.1, 5, DATA.n_queries)
ROWS = np.repeat(WEIGHT, DATA.lengths)
MIXED = np.random.default_rng(1).permutation(DATA.n_docs)


@pytest.mark.parametrize("kind", [tr.ListNet, tr.RankBoost, tr.SlamPerceptron, tr.SVMPerf, tr.AdaRank])
def test_rows_weigh_what_their_queries_do(kind):
    X, y, qid = DATA.X[MIXED], (DATA.y[MIXED] > 0).astype(float), DATA.qid[MIXED]
    by_query = kind().fit(X, y, qid, query_weight=dict(zip(DATA.query_ids.tolist(), WEIGHT, strict=True)))
    by_row = kind().fit(X, y, qid, sample_weight=ROWS[MIXED])
    assert by_row.predict(X, qid).tobytes() == by_query.predict(X, qid).tobytes()
    plain = kind().fit(X, y, qid)
    assert by_row.predict(X, qid).tobytes() != plain.predict(X, qid).tobytes()


def test_score_is_the_weighted_mean_of_the_queries():
    ranker = tr.ListNet().fit(DATA.X, DATA.y, DATA.qid)
    values = np.asarray(tr.evaluate(ranker, DATA, ["ndcg@10"]).per_query["ndcg@10"])
    by_hand = sum(w * v for w, v in zip(WEIGHT, values, strict=True)) / sum(WEIGHT)
    found = ranker.score(DATA.X[MIXED], DATA.y[MIXED], DATA.qid[MIXED], sample_weight=ROWS[MIXED])
    assert found == pytest.approx(by_hand, rel=1e-12)
    assert found != pytest.approx(values.mean(), rel=1e-6)
    assert tr.scorer("ndcg@10")(ranker, DATA.X, DATA.y, DATA.qid, ROWS) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("call", ["fit", "score"])
def test_a_weight_that_varies_inside_a_query_is_refused(call):
    ranker = tr.ListNet().fit(DATA.X, DATA.y, DATA.qid)
    uneven = ROWS.copy()
    uneven[DATA.ptr[3]] += 1
    with pytest.raises(tr.InputError, match=r"sample_weight differs inside query 3.*doc_weight") as told:
        getattr(ranker, call)(DATA.X, DATA.y, DATA.qid, sample_weight=uneven)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "wrong", [ROWS[:-1], WEIGHT, np.ones((DATA.n_docs, 2)), -ROWS, 0 * ROWS, np.full(DATA.n_docs, np.nan)]
)
def test_other_weights_are_refused(wrong):
    ranker = tr.ListNet().fit(DATA.X, DATA.y, DATA.qid)
    for call in (ranker.fit, ranker.score):
        with pytest.raises(tr.InputError, match="weight"):
            call(DATA.X, DATA.y, DATA.qid, sample_weight=wrong)


def test_two_weights_are_refused():
    with pytest.raises(tr.InputError, match="query_weight or sample_weight"):
        tr.ListNet().fit(DATA.X, DATA.y, DATA.qid, query_weight=WEIGHT, sample_weight=ROWS)


def test_several_labels_and_batches():
    y = np.column_stack([DATA.y > 0, DATA.y > 1]).astype(int)
    by_row = tr.SVMPerf(kappa=0.5).fit(DATA.X, y, DATA.qid, sample_weight=ROWS)
    by_query = tr.SVMPerf(kappa=0.5).fit(DATA.X, y, DATA.qid, query_weight=WEIGHT)
    assert by_row.coef_.tobytes() == by_query.coef_.tobytes()
    assert by_row.score(DATA.X, y, DATA.qid, sample_weight=ROWS) != by_row.score(DATA.X, y, DATA.qid)


def test_search_and_pipelines_weigh_fits_and_scores():
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        search = GridSearchCV(
            make_pipeline(scaler, tr.ListNet()),
            {"listnet__alpha": [1e-3, 1.0]},
            cv=tr.QueryKFold(3),
            scoring=tr.scorer("ndcg@5"),
        ).fit(DATA.X, DATA.y, qid=DATA.qid, sample_weight=ROWS)
        own = GridSearchCV(tr.ListNet(), {"alpha": [1e-3, 1.0]}, cv=tr.QueryKFold(3))
        own.fit(DATA.X, DATA.y, qid=DATA.qid, sample_weight=ROWS)
        crossed = cross_validate(
            tr.ListNet(), DATA.X, DATA.y, cv=tr.QueryKFold(3), params={"qid": DATA.qid, "sample_weight": ROWS}
        )
    weighted = tr.QueryDataset.from_arrays(DATA.X, DATA.y, DATA.qid, query_weight=WEIGHT)
    folds = list(tr.QueryKFold(3).datasets(weighted))
    reached = {}
    for alpha in (1e-3, 1.0):
        values = []
        for train, test in folds:
            scale = StandardScaler().fit(train.X)
            ranker = tr.ListNet(alpha=alpha).fit_queries(train.with_X(scale.transform(train.X)))
            values.append(tr.evaluate(ranker, test.with_X(scale.transform(test.X)), ["ndcg@5"]).mean["ndcg@5"])
        reached[alpha] = np.mean(values)
    assert search.best_params_["listnet__alpha"] == max(reached, key=reached.get)
    assert search.best_score_ == pytest.approx(max(reached.values()), rel=1e-9)
    by_hand = [tr.evaluate(tr.ListNet().fit_queries(a), b, ["ndcg@10"]).mean["ndcg@10"] for a, b in folds]
    np.testing.assert_allclose(crossed["test_score"], by_hand, rtol=1e-12)
    assert own.best_score_ > 0
