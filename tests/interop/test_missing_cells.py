"""Missing cells reach the trees of other packages as they came, unless the caller says otherwise."""

import numpy as np
import pytest
from toprank.contests.peers import LightGBM, XGBoost

import toprank as tr

KINDS = [tr.interop.LightGBMRanker, tr.interop.XGBoostRanker, LightGBM, XGBoost]


def queries(seed=0):
    """Cells are missing in documents of low grade alone."""
    made = tr.datasets.make_graded(n_queries=60, n_docs=(5, 12), n_features=4, n_grades=3, random_state=seed)
    X = made.X.copy()
    X[(made.y == 0) & (np.arange(made.n_docs) % 3 > 0), 2] = np.nan
    return tr.QueryDataset.from_arrays(X, made.y, [f"{seed}-{q}" for q in made.qid], missing="keep")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def ranker(request):
    pytest.importorskip("lightgbm" if "Light" in request.param.__name__ else "xgboost")
    return request.param(rounds=8)


def own_scores(ranker, X):
    if "Light" in type(ranker).__name__:
        return ranker.booster_.predict(X)
    import xgboost

    return ranker.booster_.predict(xgboost.DMatrix(X), output_margin=True).astype(np.float64)


def test_the_booster_sees_missing_cells(ranker, tmp_path):
    data, test = queries(), queries(1)
    ranker.fit(data.X, data.y, qid=data.qid)
    scores = ranker.predict(test.X, qid=test.qid)
    assert np.array_equal(scores, own_scores(ranker, test.X))
    assert not np.array_equal(scores, own_scores(ranker, np.nan_to_num(test.X)))
    assert tr.evaluate(ranker, test).mean["ndcg@10"] == ranker.score(test.X, test.y, qid=test.qid)
    tr.export.write(ranker, tmp_path / "trees.json", "json")
    assert tr.export.verify(ranker, tmp_path / "trees.json", test).agrees


def test_other_rules_are_followed(ranker):
    data = queries()
    with pytest.raises(tr.InputError, match="X has NaN in row"):
        type(ranker)(rounds=3, missing="error").fit(data.X, data.y, qid=data.qid)
    filled = type(ranker)(rounds=3, missing="zero").fit(data.X, data.y, qid=data.qid)
    assert np.array_equal(filled.predict(data.X), own_scores(filled, np.nan_to_num(data.X)))


def test_scaling_within_queries_refuses_missing_cells_in_one_line(ranker):
    data = queries()
    ranker.set_params(prepare="log,query")
    with pytest.raises(tr.InputError, match='prepare="log,query" scales features within a query') as told:
        ranker.fit(data.X, data.y, qid=data.qid)
    assert "\n" not in str(told.value)
    ranker.set_params(prepare="log").fit(data.X, data.y, qid=data.qid)
    assert np.isfinite(ranker.predict(data.X)).all()


def test_linear_rankers_have_no_side_for_missing_cells():
    data = queries()
    with pytest.raises(tr.InputError, match="missing must be one of 'error', 'zero', 'median', 'indicator'"):
        tr.ListNet(missing="native").fit(data.X, data.y, qid=data.qid)
