"""Anybody's estimator is judged by its scores, never by its labels, and its columns are matched by name."""

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr
from toprank._estimators import estimator_scores
from toprank.errors import InputError

DATA = tr.datasets.make_graded(n_queries=80, n_features=3, random_state=0)
TRAIN, TEST = DATA[:40], DATA[40:]
BINARY = (TRAIN.y > 1).astype(int)


def value(scores):
    return tr.evaluate(scores, TEST, ["ndcg@10"]).mean["ndcg@10"]


@pytest.mark.parametrize("make", [LogisticRegression, RidgeClassifier], ids=lambda kind: kind.__name__)
def test_a_classifier_is_judged_by_its_decision_function(make):
    model = make().fit(TRAIN.X, BINARY)
    assert tr.evaluate(model, TEST, ["ndcg@10"]).mean["ndcg@10"] == value(model.decision_function(TEST.X))
    assert value(model.predict(TEST.X).astype(float)) < value(model.decision_function(TEST.X))
    assert tr.scorer("ndcg@10")(model, TEST.X, TEST.y, qid=TEST.qid) == value(model.decision_function(TEST.X))


def test_probabilities_of_the_larger_class_and_expected_grades():
    two = RandomForestClassifier(20, random_state=0).fit(TRAIN.X, BINARY)
    assert tr.evaluate(two, TEST, ["ndcg@10"]).mean["ndcg@10"] == value(two.predict_proba(TEST.X)[:, 1])
    for make in (RandomForestClassifier(20, random_state=0), LogisticRegression(max_iter=500)):
        several = make.fit(TRAIN.X, TRAIN.y.astype(int))
        chances = several.predict_proba(TEST.X)
        expected = [sum(p * grade for p, grade in zip(row, several.classes_, strict=True)) for row in chances]
        assert estimator_scores(several, TEST) == pytest.approx(expected)
        assert tr.evaluate(several, TEST, ["ndcg@10"]).mean["ndcg@10"] == value(estimator_scores(several, TEST))
    named = RandomForestClassifier(5).fit(
        TRAIN.X, np.array(["bad", "fair", "good", "best"])[np.minimum(TRAIN.y, 3).astype(int)]
    )
    with pytest.raises(InputError, match="classes that are no grades"):
        tr.evaluate(named, TEST)


def test_labels_alone_are_refused():
    class Labels:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(InputError, match="Labels cannot score: a classifier needs decision_function or predict_proba"):
        tr.evaluate(Labels(), TEST)


def test_pipelines_searches_and_regressors():
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(TRAIN.X, BINARY)
    assert tr.evaluate(pipe, TEST, ["ndcg@10"]).mean["ndcg@10"] == value(pipe.decision_function(TEST.X))
    plain = LinearRegression().fit(TRAIN.X, TRAIN.y)
    assert tr.evaluate(plain, TEST, ["ndcg@10"]).mean["ndcg@10"] == value(plain.predict(TEST.X))
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            tr.ListNet(prepare="query"), {"alpha": [0.01]}, cv=tr.QueryKFold(2), scoring=tr.scorer("ndcg@10")
        ).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    wanted = search.best_estimator_.predict(TEST)
    assert tr.evaluate(search, TEST, ["ndcg@10"]).mean["ndcg@10"] == value(wanted)


def table(X, names):
    return tr.QueryDataset.from_arrays(X, TEST.y, TEST.qid, feature_names=names)


@pytest.mark.parametrize("package", ["sklearn", "lightgbm", "booster", "xgboost"])
def test_columns_are_matched_by_name(package):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(TRAIN.X, columns=["bm25", "age", "clicks"])
    if package == "sklearn":
        model = make_pipeline(StandardScaler(), LinearRegression()).fit(frame, TRAIN.y)
    elif package == "xgboost":
        xgb = pytest.importorskip("xgboost", reason="xgboost is not installed")
        model = xgb.XGBRanker(n_estimators=5).fit(frame, TRAIN.y, qid=TRAIN.qid)
    else:
        lgb = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
        model = lgb.LGBMRanker(n_estimators=5, verbosity=-1).fit(frame, TRAIN.y, group=TRAIN.lengths)
        model = model.booster_ if package == "booster" else model
    right = table(TEST.X, ["bm25", "age", "clicks"])
    wanted = tr.evaluate(model, right, ["ndcg@10"]).mean["ndcg@10"]
    swapped = table(TEST.X[:, [2, 0, 1]], ["clicks", "bm25", "age"])
    assert tr.evaluate(model, swapped, ["ndcg@10"]).mean["ndcg@10"] == wanted
    wider = table(np.column_stack([TEST.X[:, [1]], TEST.X[:, :1], TEST.X]), ["x", "y", "bm25", "age", "clicks"])
    with pytest.warns(UserWarning, match="did not learn from 'x', 'y': left out"):
        assert tr.evaluate(model, wider, ["ndcg@10"]).mean["ndcg@10"] == wanted
    with pytest.raises(InputError, match="the data set has no feature 'age'"):
        tr.evaluate(model, table(TEST.X, ["bm25", "old", "clicks"]))
    with pytest.warns(UserWarning, match="matched by position: the data set has no names"):
        assert tr.evaluate(model, TEST, ["ndcg@10"]).mean["ndcg@10"] == wanted
