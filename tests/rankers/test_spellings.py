"""Other libraries' words: eval_set for valid, early_stopping_rounds for patience, one name for what was seen."""

import numpy as np
import pytest

import toprank as tr


@pytest.fixture(scope="module")
def parts():
    data = tr.datasets.make_graded(n_queries=50, n_docs=(4, 9), n_features=5, noise=1.0, random_state=0)
    return data[:30], data[30:]


KINDS = [
    lambda **p: tr.BoostedTrees(rounds=60, **p),
    lambda **p: tr.BoostedTrees(rounds=60, engine="xgboost", loss="ListNet", **p),
    lambda **p: tr.AdaRank("map", rounds=60, **p),
    lambda **p: tr.RankBoost(rounds=60, every=1, **p),
    lambda **p: tr.ListNet(**p),
]


@pytest.mark.parametrize("kind", KINDS)
def test_eval_set_and_early_stopping_rounds_are_valid_and_patience(kind, parts):
    train, valid = parts
    ours = kind(patience=3).fit(train.X, train.y, train.qid, valid=(valid.X, valid.y, valid.qid))
    theirs = kind()
    before = theirs.get_params()
    one = {"eval_set": [(valid.X, valid.y)], "eval_qid": [valid.qid]}
    theirs.fit(train.X, train.y, qid=train.qid, **one, early_stopping_rounds=3)
    assert theirs.predict(valid).tobytes() == ours.predict(valid).tobytes()
    assert theirs.get_params() == before
    assert theirs.evals_result_ == ours.evals_result_
    (values,) = ours.evals_result_["valid"].values()
    assert values == ours.trace_["valid"].tolist()
    assert values[ours.best_iteration_ - 1] == max(values)
    for other in ((valid.X, valid.y, valid.qid), [(valid.X, valid.y, valid.qid)], valid):
        again = kind(patience=3).fit(train.X, train.y, train.qid, eval_set=other)
        assert again.predict(valid).tobytes() == ours.predict(valid).tobytes()
    flat = kind(patience=3).fit(train.X, train.y, train.qid, eval_set=(valid.X, valid.y), eval_qid=valid.qid)
    assert flat.predict(valid).tobytes() == ours.predict(valid).tobytes()


def test_what_was_not_watched_has_no_best_iteration(parts):
    train, _ = parts
    fitted = tr.BoostedTrees(rounds=3).fit_queries(train)
    assert not hasattr(fitted, "best_iteration_")
    assert not hasattr(fitted, "evals_result_")
    assert fitted.n_iter_ == 3


def test_refusals(parts):
    train, valid = parts
    own, X, y, qid = (valid.X, valid.y, valid.qid), train.X, train.y, train.qid
    for given, words in (
        ({"valid": own, "eval_set": [own]}, "two names of one thing"),
        ({"eval_set": [own, own]}, "eval_set must hold one validation set, by which to choose, got 2"),
        ({"eval_qid": [valid.qid]}, "eval_qid goes with eval_set"),
        ({"eval_set": [own], "eval_qid": [valid.qid]}, "give them once"),
        ({"eval_set": [own], "early_stopping_rounds": 0}, "early_stopping_rounds must be a whole number of at least 1"),
    ):
        with pytest.raises(tr.InputError, match=words):
            tr.BoostedTrees(rounds=3).fit(X, y, qid, **given)
    with pytest.raises(tr.InputError, match="RankSVM has no patience: it does not stop early"):
        tr.RankSVM().fit(X, y, qid, eval_set=[own], early_stopping_rounds=3)


def test_two_classes_too(parts):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + rng.normal(size=200) > 1).astype(int)
    ours = tr.SGDAtK(k=10, random_state=0).fit(X[:150], y[:150], valid=(X[150:], y[150:]))
    theirs = tr.SGDAtK(k=10, random_state=0).fit(X[:150], y[:150], eval_set=[(X[150:], y[150:])])
    assert theirs.predict(X).tobytes() == ours.predict(X).tobytes()
