"""Features prepared by the ranker itself: the same as preparing them by hand, in every way in and out."""

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

import toprank as tr
from tests.rankers.test_failed_fit import ALL, small
from toprank.data.transforms import prepared
from toprank.rankers.listwise import ListwiseRanker

CHAINS = ["log", "query", "standard", "log,query"]
WIDE = "log,+rank,+minmax,ramps:3"


def raw(n_queries=30, seed=0):
    """Counts with heavy tails, as engines log them."""
    data = tr.datasets.make_graded(n_queries=n_queries, n_features=4, random_state=seed)
    return data.with_X(np.sinh(4 * data.X), data.feature_names)


def by_hand(X, qid, prepare):
    """The definitions, in plain Python."""
    X = np.array(X, dtype=float)
    for step in prepare.split(","):
        if step == "log":
            X = np.sign(X) * np.log(1 + np.abs(X))
            continue
        for q in set(qid):
            rows = [i for i, other in enumerate(qid) if other == q]
            for j in range(X.shape[1]):
                x = X[rows, j]
                low, width = (x.min(), np.ptp(x)) if step == "query" else (x.mean(), x.std())
                X[rows, j] = (x - low) / width if width > 0 else 0.0
    return X


@pytest.mark.parametrize("prepare", CHAINS)
def test_preparing_is_what_the_definitions_say(prepare):
    data = raw()
    qid = data.qid.tolist()
    ours, mine = tr.ListNet(prepare=prepare), tr.ListNet()
    ours.fit(data.X, data.y, qid=qid)
    mine.fit(by_hand(data.X, qid, prepare), data.y, qid=qid)
    np.testing.assert_allclose(ours.coef_, mine.coef_, rtol=1e-3, atol=1e-4)
    fresh = raw(8, seed=1)
    told = mine.predict(by_hand(fresh.X, fresh.qid.tolist(), prepare))
    np.testing.assert_allclose(ours.predict(fresh.X, qid=fresh.qid), told, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ours.predict(fresh), ours.predict(fresh.X, qid=fresh.qid))
    mixed = np.random.default_rng(0).permutation(fresh.n_docs)
    np.testing.assert_allclose(ours.predict(fresh.X[mixed], qid=fresh.qid[mixed]), ours.predict(fresh)[mixed])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prepare", ["log,query", WIDE])
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_ranker_learns_saves_loads_and_judges_prepared(kind, prepare, tmp_path):
    if kind is tr.AdditiveRanker and prepare == WIDE:
        pytest.skip("it takes parts of a preparation, too")
    data = raw()
    outside = prepared(data, prepare)
    ours = small(kind).set_params(prepare=prepare).fit(data.X, data.y, qid=data.qid)
    theirs = small(kind).set_params(prepare="").fit(outside.X, outside.y, qid=data.qid)
    assert np.array_equal(ours.predict(data), theirs.predict(outside))
    assert ours.score(data.X, data.y, qid=data.qid) == theirs.score(outside.X, outside.y, qid=data.qid)
    assert np.array_equal(ours.rank(data.X, qid=data.qid), theirs.rank(outside))
    learned = prepare == WIDE and issubclass(kind, ListwiseRanker)  # whose theorems are about fixed columns
    assert learned or [c.to_dict() for c in tr.certify(ours, data)] == [
        c.to_dict() for c in tr.certify(theirs, outside)
    ]
    ours.save(tmp_path / "model.json")
    again = tr.load(tmp_path / "model.json")
    assert again.prepare == prepare
    assert np.array_equal(again.predict(data.X, qid=data.qid), ours.predict(data))


def test_streams_prepare_list_by_list():
    data = raw()
    for kind in (tr.SlamPerceptron, tr.KernelSlamPerceptron):
        lists, whole = kind(prepare="query"), kind()
        for q in range(data.n_queries):
            one = data[q]
            lists.partial_fit(one.X, one.y)
            whole.partial_fit(by_hand(one.X, [0] * one.n_docs, "query"), one.y)
        np.testing.assert_allclose(
            lists.predict(data), whole.predict(by_hand(data.X, data.qid.tolist(), "query")), rtol=1e-6, atol=1e-9
        )


def test_rows_without_query_ids_are_refused_where_they_would_mean_something_else():
    data = raw()
    ranker = tr.ListNet(prepare="query").fit(data.X, data.y, qid=data.qid)
    with pytest.raises(tr.InputError, match="predict needs qid"):
        ranker.predict(data.X)
    assert len(tr.ListNet(prepare="log").fit(data.X, data.y, qid=data.qid).predict(data.X)) == data.n_docs


@pytest.mark.parametrize("prepare", ["rot13", "log,querry", ["log", "squared"]])
def test_an_unknown_step_is_one_line(prepare):
    with pytest.raises(tr.InputError, match="prepare has '"):
        tr.ListNet(prepare=prepare).fit([[1.0], [0.0]], [1, 0])


def test_what_was_learned_from_is_known_again():
    data = raw(60)
    ranker = tr.ListNet(prepare="log,query").fit_queries(data[:40])
    assert tr.certify(ranker, data[:40])[0].verdict == "does not apply"
    assert tr.certify(ranker, data[40:])[0].n_queries == 20
    assert all(c.verdict != "violated" for c in tr.certify(ranker, data[:40]))


@pytest.mark.parametrize("routed", [False, True])
def test_pipelines_that_normalise_are_evaluated(routed):
    data = raw(40)
    train, test = data[:30], data[30:]
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(tr.QueryNormalizer(), tr.ListNet()).fit(train.X, train.y, qid=train.qid)
        plain = make_pipeline(tr.SignedLog(), sklearn.linear_model.Ridge()).fit(train.X, train.y)
    with sklearn.config_context(enable_metadata_routing=routed):
        found = tr.evaluate(pipe, test)
        assert tr.evaluate(plain, test).mean["map"] > 0
        assert tr.scorer("ndcg@10")(pipe, test.X, test.y, qid=test.qid) == pytest.approx(found.mean["ndcg@10"])
    alone = tr.evaluate(tr.ListNet(prepare="query").fit_queries(train), test)
    assert found.mean["ndcg@10"] == pytest.approx(alone.mean["ndcg@10"], abs=1e-3)


@pytest.mark.parametrize("prepare", CHAINS)
def test_exports_score_as_the_ranker_does(prepare, tmp_path):
    data = raw()
    for kind in (tr.ListNet, tr.RankBoost):
        ranker = kind(prepare=prepare).fit_queries(data)
        folded = tr.export.fold(ranker)
        np.testing.assert_allclose(folded.predict(data), ranker.predict(data), rtol=1e-9, atol=1e-9)
        tr.export.write(ranker, tmp_path / "m.sql", to="sql")
        assert tr.export.verify(ranker, tmp_path / "m.sql", data).agrees
        with pytest.raises(tr.InputError, match="elasticsearch cannot compute"):
            tr.export.write(ranker, tmp_path / "es.json", to="elasticsearch")
