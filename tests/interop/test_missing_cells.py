"""Missing cells reach the trees of other packages as they came, unless the caller says otherwise."""

import numpy as np
import pytest
from sklearn.base import clone

import toprank as tr


def queries(seed=0):
    """Cells are missing in documents of low grade alone."""
    made = tr.datasets.make_graded(n_queries=60, n_docs=(5, 12), n_features=4, n_grades=3, random_state=seed)
    X = made.X.copy()
    X[(made.y == 0) & (np.arange(made.n_docs) % 3 > 0), 2] = np.nan
    return tr.QueryDataset.from_arrays(X, made.y, [f"{seed}-{q}" for q in made.qid], missing="keep")


@pytest.fixture(params=["lightgbm", "xgboost"])
def ranker(request):
    pytest.importorskip(request.param)
    return tr.BoostedTrees(engine=request.param, rounds=8, loss="ListNet")


def own_scores(ranker, X):
    if ranker.engine == "lightgbm":
        return ranker.booster_.predict(X)
    import xgboost

    return ranker.booster_.predict(xgboost.DMatrix(X), output_margin=True).astype(np.float64)


def equal(a, b):
    """To the rounding of XGBoost, which adds up its trees in float32."""
    return np.allclose(a, b, rtol=0, atol=1e-5)


def test_the_booster_sees_missing_cells(ranker, tmp_path):
    data, test = queries(), queries(1)
    ranker.fit(data.X, data.y, qid=data.qid)
    scores = ranker.predict(test.X, qid=test.qid)
    assert equal(scores, own_scores(ranker, test.X))
    assert not equal(scores, own_scores(ranker, np.nan_to_num(test.X)))
    assert tr.evaluate(ranker, test).mean["ndcg@10"] == ranker.score(test.X, test.y, qid=test.qid)
    tr.export.write(ranker, tmp_path / "trees.json", "json")
    assert tr.export.verify(ranker, tmp_path / "trees.json", test).agrees


def test_other_rules_are_followed(ranker):
    data = queries()
    with pytest.raises(tr.InputError, match="X has NaN in row"):
        clone(ranker).set_params(missing="error").fit(data.X, data.y, qid=data.qid)
    filled = clone(ranker).set_params(missing="zero").fit(data.X, data.y, qid=data.qid)
    assert equal(filled.predict(data.X), own_scores(filled, np.nan_to_num(data.X)))


def test_columns_beside_the_features_are_refused_in_one_line(ranker):
    data = queries()
    ranker.set_params(prepare="log,+rank")
    with pytest.raises(tr.InputError, match=r'prepare="log,\+rank" puts columns beside the features') as told:
        ranker.fit(data.X, data.y, qid=data.qid)
    assert "\n" not in str(told.value)
    ranker.set_params(prepare="log,query").fit(data.X, data.y, qid=data.qid)
    assert np.isfinite(ranker.predict(data.X, qid=data.qid)).all()


def test_linear_rankers_have_no_side_for_missing_cells():
    data = queries()
    with pytest.raises(tr.InputError, match="missing must be one of 'error', 'zero', 'median', 'indicator'"):
        tr.ListNet(missing="native").fit(data.X, data.y, qid=data.qid)
