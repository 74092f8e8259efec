"""What a new user runs into: each is refused in one line that says what to do, or it works."""

import re

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score

import toprank as tr

DATA = tr.datasets.make_graded(n_queries=24, n_docs=(3, 8), n_features=4, random_state=0)
OTHER = tr.datasets.make_graded(n_queries=12, n_docs=(3, 8), n_features=4, random_state=1)
REMEDY = re.escape("sklearn.set_config(enable_metadata_routing=True)")


def one_line(call):
    with pytest.raises(tr.InputError) as told:
        call()
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_of_numpy_are_seeds_of_functions(make):
    reports = {name: tr.evaluate(DATA.X[:, j], DATA) for j, name in enumerate("ab")}
    first, again = (tr.compare(reports, random_state=make(3)) for _ in range(2))
    assert str(first) == str(again)
    parts = [tr.query_train_test_split(DATA, random_state=make(3))[1].query_ids.tolist() for _ in range(2)]
    assert parts[0] == parts[1]
    folds = [list(tr.QueryKFold(3, shuffle=True, random_state=make(3)).split(DATA.X, groups=DATA.qid)) for _ in "ab"]
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(*folds, strict=True))
    made = [tr.datasets.make_graded(n_queries=3, random_state=make(3)).X for _ in range(2)]
    assert np.array_equal(*made)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_ranker_says_why_it_takes_no_generator(make):
    told = one_line(lambda: tr.SlamPerceptron(random_state=make(0)).fit(DATA.X, DATA.y, DATA.qid))
    assert "random_state must be a whole number not below 0" in told
    assert "draw a number from it" in told


@pytest.mark.parametrize("seed", [3.5, "7", -1, True])
def test_other_seeds_are_named(seed):
    reports = {name: tr.evaluate(DATA.X[:, j], DATA) for j, name in enumerate("ab")}
    for call in (
        lambda: tr.compare(reports, random_state=seed),
        lambda: tr.query_train_test_split(DATA, random_state=seed),
        lambda: tr.datasets.make_graded(n_queries=3, random_state=seed),
        lambda: next(tr.QueryKFold(3, shuffle=True, random_state=seed).split(DATA.X, groups=DATA.qid)),
    ):
        assert "random_state must be a whole number not below 0" in one_line(call)


def test_lists_of_validation_sets_are_refused_by_name():
    arrays = (OTHER.X, OTHER.y, OTHER.qid)
    for valid in ([OTHER, OTHER], [OTHER], [arrays], [arrays, arrays], (OTHER, OTHER)):
        for call in (
            lambda valid=valid: tr.ListNet().fit(DATA.X, DATA.y, DATA.qid, valid=valid),
            lambda valid=valid: tr.ListNet().fit_queries(DATA, valid=valid),
        ):
            assert f"valid takes one validation set, by which the learner chooses, and got a list of {len(valid)}" in (
                one_line(call)
            )
    tr.ListNet().fit(DATA.X, DATA.y, DATA.qid, valid=list(arrays))  # a list of arrays is (X, y, qid)


def test_advice_about_routing_is_the_same_everywhere_and_works():
    search = GridSearchCV(tr.ListNet(), {"alpha": [0.01, 1.0]}, cv=tr.QueryKFold(3), scoring=tr.scorer("ndcg@10"))
    ranker = tr.ListNet().fit(DATA.X, DATA.y, DATA.qid)
    for call in (
        lambda: search.fit(DATA.X, DATA.y, qid=DATA.qid),
        lambda: cross_val_score(tr.ListNet(), DATA.X, DATA.y, cv=tr.QueryKFold(3), params={"qid": DATA.qid}),
        lambda: ranker.score(DATA.X, DATA.y),
        lambda: tr.scorer("ndcg@10")(ranker, DATA.X, DATA.y),
    ):
        told = one_line(call)
        assert re.search(REMEDY, told), told
        assert 'params={"qid": qid} to cross_validate' in told
        assert "groups=qid" not in told or "split(X, groups=qid)" in told
    with pytest.warns(UserWarning, match=REMEDY):
        tr.ListNet().fit(DATA.X, DATA.y)
    with sklearn.config_context(enable_metadata_routing=True):  # as the message says
        assert search.fit(DATA.X, DATA.y, qid=DATA.qid).best_score_ > 0
        assert (cross_val_score(tr.ListNet(), DATA.X, DATA.y, cv=tr.QueryKFold(3), params={"qid": DATA.qid}) > 0).all()
    assert set(tr.evaluate(search, OTHER).mean) == {"ndcg@10", "map"}
