"""Trees of LightGBM and XGBoost as a value of ours: the same scores, saved and loaded, refused by name where unfit."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import toprank as tr
from tests.oracles import tree_files as oracle
from toprank.errors import InputError
from toprank.interop.tree_files import rounded_below
from toprank.model.functions import TreeFunction

PACKAGES = ("lightgbm", "xgboost")


def table(gaps=0.0, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=400), rng.integers(0, 4, 400), rng.exponential(1e6, 400), np.zeros(400)])
    X[rng.random(400) < 0.3, 0] = 0.0
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=400) / 2), 0, 3).astype(int)
    X[rng.random(X.shape) < gaps] = np.nan
    return X.astype(dtype), y, np.full(20, 20)


def boosted(package, X, y, lengths, **params):
    module = pytest.importorskip(package)
    if package == "lightgbm":
        train = module.Dataset(X, y, group=lengths, params={"verbosity": -1})
        options = {"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 3, "num_threads": 1, **params}
        return module.train(options, train, 12)
    matrix = module.DMatrix(X, y)
    matrix.set_group(lengths)
    return module.train({"objective": "rank:ndcg", "max_depth": 4, "nthread": 1, "verbosity": 0, **params}, matrix, 12)


def raw(package, booster, X):
    if package == "lightgbm":
        return booster.predict(X, raw_score=True)
    import xgboost

    return booster.predict(xgboost.DMatrix(X), output_margin=True)


def text_of(package, booster):
    return booster.model_to_string() if package == "lightgbm" else bytes(booster.save_raw("json")).decode()


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_the_value_scores_as_the_booster(package, dtype, gaps):
    X, y, lengths = table(gaps, dtype)
    booster = boosted(package, X, y, lengths)
    trees = tr.interop.read_trees(booster)
    X[:3] = np.nan
    truth = raw(package, booster, X)
    text, rows = text_of(package, booster), [[None if np.isnan(v) else v for v in row] for row in X[:60].tolist()]
    assert [getattr(oracle, package)(text, row) for row in rows] == truth[:60].tolist()
    got = trees.function.scores(X)
    if package == "lightgbm":
        assert got.tolist() == truth.tolist()
    else:  # XGBoost adds up in float32
        assert np.abs(got - truth).max() <= 14 * 2**-24 * np.abs(truth).max() * 4
        leaves = booster.predict(pytest.importorskip("xgboost").DMatrix(X), pred_leaf=True)
        assert len(np.unique(leaves, axis=0)) > 20  # and yet every row is in its own leaf
    assert trees.inputs.names is None


@pytest.mark.parametrize("package", PACKAGES)
def test_sparse_rows_score_as_in_the_package(package):
    X, y, lengths = table()
    X = sparse.csr_matrix(X)
    booster = boosted(package, X, y, lengths)
    got = tr.interop.read_trees(booster).function.scores(X.astype(np.float64))
    assert got == pytest.approx(raw(package, booster, X), abs=1e-6)


@given(st.floats(-(2.0**99), 2.0**99, width=32), st.integers(-3, 3))
def test_a_double_falls_on_the_side_of_its_rounding(limit, steps):
    limit = np.float32(limit)
    threshold = rounded_below(np.array([limit]))[0]
    x = threshold
    for _ in range(abs(steps)):
        x = np.nextafter(x, np.inf if steps > 0 else -np.inf)
    assert (x <= threshold) == (np.float32(x) < limit)


@pytest.mark.parametrize("package", PACKAGES)
def test_files_and_estimators_are_read_alike(package, tmp_path):
    X, y, lengths = table()
    module = pytest.importorskip(package)
    booster = boosted(package, X, y, lengths)
    truth = tr.interop.read_trees(booster).function.scores(X)
    for name in ("model.txt",) if package == "lightgbm" else ("model.json", "model.ubj"):
        booster.save_model(tmp_path / name)
        assert tr.interop.read_trees(tmp_path / name).function.scores(X).tolist() == truth.tolist()
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c", "d"])
    if package == "lightgbm":
        estimator = module.LGBMRanker(n_estimators=5, verbosity=-1).fit(frame, y, group=lengths)
        assert tr.interop.read_trees(estimator).function.scores(X).tolist() == estimator.predict(frame).tolist()
    else:
        qid = np.repeat(np.arange(20), 20)
        estimator = module.XGBRanker(n_estimators=30, early_stopping_rounds=2, eval_metric="ndcg@3", verbosity=0)
        estimator.fit(frame, y, qid=qid, eval_set=[(frame[::-1], y[::-1])], eval_qid=[qid], verbose=False)
        assert estimator.best_iteration < 29
        assert tr.interop.read_trees(estimator).function.scores(X) == pytest.approx(estimator.predict(frame), abs=1e-5)
    assert tr.interop.read_trees(estimator).names == ("a", "b", "c", "d")


def test_base_scores_of_other_objectives():
    module = pytest.importorskip("xgboost")
    X, y, lengths = table()
    for objective, target in {"binary:logistic": y > 1, "count:poisson": y, "reg:squarederror": y}.items():
        booster = boosted("xgboost", X, target, lengths, objective=objective, base_score=0.3)
        truth = booster.predict(module.DMatrix(X), output_margin=True)
        assert tr.interop.read_trees(booster).function.scores(X) == pytest.approx(truth, abs=2e-6)


def test_what_a_sum_of_trees_cannot_say_is_refused_by_name(tmp_path):
    X, y, lengths = table()
    pytest.importorskip("lightgbm")
    refused = {
        "categories": {"categorical_feature": "1", "min_data_per_group": 1, "cat_smooth": 0},
        "leaves are linear": {"objective": "regression", "linear_tree": True},
        "several classes": {"objective": "multiclass", "num_class": 4},
        "random forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "objective": "regression"},
    }
    lgb = pytest.importorskip("lightgbm")
    for words, params in refused.items():
        dataset = {key: params[key] for key in ("linear_tree",) if key in params}
        train = lgb.Dataset(
            X, y, group=None if "num_class" in params else lengths, params={"verbosity": -1, **dataset},
            categorical_feature=[1] if words == "categories" else "auto",
        )  # fmt: skip
        options = {key: value for key, value in params.items() if key != "categorical_feature"}
        booster = lgb.train({"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 3, **options}, train, 5)
        with pytest.raises(InputError, match=words):
            tr.interop.read_trees(booster)
    zero = boosted("lightgbm", np.abs(X), y, lengths, zero_as_missing=True)
    text = zero.model_to_string()
    if "decision_type" in text:
        with pytest.raises(InputError, match="zero_as_missing=false"):
            tr.interop.read_trees(zero)
    for content in (b"tree\nnothing", b"{}", b'{"learner": {}}', b"{L\x00learner", b"junk", b""):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(InputError, match="file"):
            tr.interop.read_trees(tmp_path / "file")
    with pytest.raises(InputError, match="gone"):
        tr.interop.read_trees(tmp_path / "gone")
    with pytest.raises(InputError, match="no booster"):
        tr.interop.read_trees(3)


def test_other_boosters_of_xgboost_are_refused_by_name():
    pytest.importorskip("xgboost")
    X, y, lengths = table()
    for name in ("dart", "gblinear"):
        booster = boosted("xgboost", X, y, lengths, booster=name, objective="reg:squarederror")
        with pytest.raises(InputError, match=f"its booster is {name}"):
            tr.interop.read_trees(booster)


RANKERS = {
    "LightGBM, lambdarank": lambda: tr.BoostedTrees(rounds=5),
    "LightGBM, ListNet": lambda: tr.BoostedTrees(rounds=5, loss="ListNet", params={"min_data_in_leaf": 3}),
    "XGBoost, lambdarank": lambda: tr.BoostedTrees(rounds=5, engine="xgboost"),
    "XGBoost, ListNet": lambda: tr.BoostedTrees(rounds=5, engine="xgboost", loss="ListNet"),
}


@pytest.mark.parametrize("kind", RANKERS)
def test_rankers_around_trees_are_saved_and_loaded_without_the_package(kind, tmp_path, monkeypatch):
    package = pytest.importorskip("lightgbm" if "Light" in kind else "xgboost").__name__
    data = tr.datasets.make_graded(n_queries=20, n_features=4, random_state=0)
    ranker = RANKERS[kind]().fit_queries(data)
    ranker.save(tmp_path / "model.json")
    monkeypatch.setitem(__import__("sys").modules, package, None)
    again = tr.load(tmp_path / "model.json")
    assert type(again) is type(ranker)
    assert isinstance(again.function_, TreeFunction)
    assert again.predict(data).tolist() == ranker.predict(data).tolist()
    assert again.feature_importances_.tolist() == ranker.feature_importances_.tolist()
    monkeypatch.undo()
    assert not hasattr(again, "booster_")
    check = pytest.importorskip("jsonschema").Draft202012Validator(tr.export.schema("model"))
    check.validate(json.loads((tmp_path / "model.json").read_text()))
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"low": np.array([0, 0, 0])}, "behind it"),
        ({"high": np.array([9, 0, 0])}, "behind it"),
        ({"feature": np.array([2, -1, -1])}, "outside 0"),
        ({"feature": np.array([-2, -1, -1])}, "outside 0"),
        ({"value": np.array([0.0, np.inf, 1.0])}, "finite"),
        ({"value": np.array([0.0])}, "differ in length"),
        ({"root": np.array([3])}, "not there"),
        ({"root": np.array([], dtype=int)}, "no tree"),
        ({"feature": np.array([0.0, -1.0, -1.0])}, "whole numbers"),
        ({"missing_low": np.array([1, 0, 0])}, "true or false"),
    ],
)
def test_broken_trees_are_refused(change, words):
    sound = {
        "width": 2, "root": np.array([0]), "feature": np.array([0, -1, -1]), "value": np.array([0.0, 1.0, 2.0]),
        "low": np.array([1, 0, 0]), "high": np.array([2, 0, 0]), "missing_low": np.zeros(3, dtype=bool),
    }  # fmt: skip
    assert TreeFunction(**sound).depth == 1
    with pytest.raises(InputError, match=words):
        TreeFunction(**{**sound, **change})


class TestCatBoost:
    cat = pytest.importorskip("catboost")

    def fitted(self, X, y, **options):
        plain = {"iterations": 25, "depth": 4, "thread_count": 1, "allow_writing_files": False, "verbose": False}
        return self.cat.CatBoostRegressor(**plain | options).fit(X, y)

    @pytest.mark.parametrize("treatment", ["Min", "Max"])
    def test_scores_are_catboost_s_own(self, treatment, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 5)).astype(np.float32).astype(np.float64)
        X[rng.random(X.shape) < 0.1] = np.nan
        y = np.nan_to_num(X[:, 0]) + np.isnan(X[:, 1]) + rng.normal(size=600)
        model = self.fitted(X, y, nan_mode=treatment)
        model.save_model(tmp_path / "model.json", format="json")
        # On the borders, and next to them in float64: CatBoost rounds to float32 before it compares.
        borders = {s["border"] for t in json.loads((tmp_path / "model.json").read_text())["oblivious_trees"]
                   for s in t["splits"]}  # fmt: skip
        near = np.array([[f(b) for _ in range(5)] for b in borders for f in (
            float, lambda b: np.nextafter(b, 9.0), lambda b: np.nextafter(b, -9.0),
            lambda b: float(np.nextafter(np.float32(b), np.float32(9))),
        )])  # fmt: skip
        for rows in (X, near):
            for source in (model, tmp_path / "model.json"):
                found = tr.interop.read_trees(source)
                np.testing.assert_allclose(found.predict(rows), model.predict(rows), rtol=1e-12, atol=1e-12)
        assert found.inputs.missing.native

    def test_names_scale_and_refusals(self, tmp_path):
        pd = pytest.importorskip("pandas")
        X, y, _ = table()
        X = np.nan_to_num(X)
        names = [f"f_{j}" for j in range(X.shape[1])]
        model = self.fitted(pd.DataFrame(X, columns=names), y)
        assert tr.interop.read_trees(model).names == tuple(names)
        model.set_scale_and_bias(2.0, 3.0)
        np.testing.assert_allclose(tr.interop.read_trees(model).predict(X), model.predict(X), rtol=1e-12)
        frame = pd.DataFrame({"word": np.where(X[:, 0] > 0, "a", "b"), "x": X[:, 1]})
        with pytest.raises(InputError, match="it splits by categories"):
            tr.interop.read_trees(self.fitted(frame, y, cat_features=["word"]))
        deep = self.fitted(X, y, grow_policy="Lossguide")
        with pytest.raises(InputError, match="is not a CatBoost model that can be read here"):
            tr.interop.read_trees(deep)
        (tmp_path / "broken.json").write_text('{\n"features_info": {}}')
        with pytest.raises(InputError, match="is not a CatBoost model that can be read here"):
            tr.interop.read_trees(tmp_path / "broken.json")
