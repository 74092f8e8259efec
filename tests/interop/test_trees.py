"""Surrogates inside LightGBM and XGBoost."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import toprank as tr
from toprank import surrogates
from toprank.interop.curvature import BoostingLoss
from toprank.surrogates import Linear, Surrogate, TypeOne


def every_surrogate():
    """One of each surrogate the library has, found and not listed."""
    for name in surrogates.__all__:
        kind = getattr(surrogates, name)
        if not inspect.isclass(kind) or not issubclass(kind, Surrogate) or inspect.isabstract(kind):
            continue
        needs = {n for n, p in inspect.signature(kind).parameters.items() if p.default is p.empty}
        yield kind(**{n: {"measure": "ndcg@10", "k": 2}.get(n) for n in needs})


EVERY = [surrogate for surrogate in every_surrogate() if not isinstance(surrogate, TypeOne)]


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=40, n_docs=(4, 9), n_features=6, n_grades=2, blank=0.1, random_state=0)


def named(value):
    return type(value).__name__


@pytest.mark.parametrize("surrogate", EVERY, ids=named)
def test_gradient_is_the_surrogate_s_and_blank_queries_are_left_out(surrogate, data):
    scores = np.random.default_rng(0).normal(size=data.n_docs)
    grad, bend = BoostingLoss(surrogate)(scores, data.y, data.ptr)
    _, wanted = surrogate.per_query(scores, data.y, data.ptr)
    rows = np.repeat(data.informative, data.lengths)
    np.testing.assert_array_equal(grad[rows], wanted[rows])
    assert (grad[~rows] == 0).all()
    assert (~rows).any()
    assert (bend > 0).all()
    assert np.isfinite(bend).all()


@pytest.mark.parametrize("surrogate", EVERY, ids=named)
def test_curvature_is_not_constant(surrogate, data):
    scores = np.random.default_rng(1).normal(size=data.n_docs)
    _, bend = BoostingLoss(surrogate)(scores, data.y, data.ptr)
    bend = bend[np.repeat(data.informative, data.lengths)]
    assert bend.std() > 0.1 * bend.mean()


def test_estimated_diagonal_is_the_true_one_for_a_smooth_loss(data):
    """The probes know nothing of ListNet, and yet find P (1 − P)."""

    class Hidden(Surrogate):
        convex = True

        def per_query(self, scores, y, ptr):
            return tr.surrogates.ListNet().per_query(scores, y, ptr)

    scores = np.random.default_rng(2).normal(size=data.n_docs)
    guess = BoostingLoss(Hidden(), probes=4000, step=1e-3).diagonal(scores, data.y, data.ptr)
    truth = tr.surrogates.ListNet().diagonal(scores, data.y, data.ptr)
    np.testing.assert_allclose(guess, truth, atol=0.02)
    few = BoostingLoss(Hidden(), probes=8, step=0.5).diagonal(scores, data.y, data.ptr)
    assert np.corrcoef(few, truth)[0, 1] > 0.8


def test_a_leaf_never_moves_further_than_its_trust(data):
    scores = 50 * np.random.default_rng(3).normal(size=data.n_docs)  # far from every kink: no curvature to be seen
    grad, bend = BoostingLoss(tr.surrogates.PairwiseHinge(), trust=2.0)(scores, data.y, data.ptr)
    assert (np.abs(grad) <= 2.0 * bend * (1 + 1e-12)).all()


class TestLightGBM:
    lgb = pytest.importorskip("lightgbm")

    def test_both_forms_agree(self, data):
        objective = tr.interop.lightgbm_objective(tr.surrogates.ListMLE())
        scores = np.random.default_rng(0).normal(size=data.n_docs)
        train = self.lgb.Dataset(data.X, label=data.y, group=data.lengths).construct()
        one, two = objective(scores, train), objective(data.y, scores, None, data.lengths)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_inside_lightgbm_s_own_ranker(self, data):
        objective = tr.interop.lightgbm_objective(tr.surrogates.ListNet())
        ranker = self.lgb.LGBMRanker(objective=objective, n_estimators=5, min_child_samples=2, verbosity=-1)
        ranker.fit(data.X, data.y, group=data.lengths)
        ours = tr.BoostedTrees(loss="ListNet", rounds=5, leaves=31, params={"min_data_in_leaf": 2}).fit_queries(data)
        np.testing.assert_allclose(ranker.booster_.predict(data.X), ours.predict(data), rtol=1e-6, atol=1e-9)

    def test_weights_of_queries_are_multiplicities(self, data):
        objective = tr.interop.lightgbm_objective(tr.surrogates.ListNet())
        scores = np.random.default_rng(0).normal(size=data.n_docs)
        weight = np.arange(data.n_queries) % 3 + 1.0
        plain, heavy = (objective(data.y, scores, w, data.lengths) for w in (None, np.repeat(weight, data.lengths)))
        by_row = np.repeat(weight, data.lengths)
        np.testing.assert_allclose(heavy[0], by_row * plain[0])


class TestXGBoost:
    xgb = pytest.importorskip("xgboost")

    def test_gradient_reaches_xgboost(self, data):
        matrix = self.xgb.DMatrix(data.X, label=data.y)
        matrix.set_group(data.lengths)
        scores = np.random.default_rng(0).normal(size=data.n_docs)
        objective = tr.interop.xgboost_objective(tr.surrogates.ListNet())
        grad, bend = objective(scores, matrix)
        wanted = BoostingLoss(tr.surrogates.ListNet())(scores, data.y, data.ptr)
        np.testing.assert_allclose(grad, wanted[0], rtol=1e-6)
        np.testing.assert_allclose(bend, wanted[1], rtol=1e-6)
        matrix.set_weight(np.full(data.n_queries, 2.0))
        np.testing.assert_allclose(objective(scores, matrix)[0], 2 * wanted[0], rtol=1e-6)


@pytest.fixture(params=["lightgbm", "xgboost"])
def ranker(request):
    pytest.importorskip(request.param)
    own = {"min_data_in_leaf": 3, "num_leaves": 8} if request.param == "lightgbm" else {"max_depth": 3}
    return tr.BoostedTrees(engine=request.param, loss="ListNet", rounds=20, eta=0.2, params=own)


@pytest.mark.parametrize(
    "surrogate", [s for s in EVERY if not isinstance(getattr(s, "transform", None), Linear)], ids=named
)
def test_trees_learn_from_every_surrogate(ranker, surrogate, data):
    rng = np.random.default_rng(0)
    chance = max(tr.evaluate(rng.random(data.n_docs), data, ["ndcg@10"]).mean["ndcg@10"] for _ in range(20))
    fitted = clone(ranker).set_params(loss=surrogate).fit(data.X, data.y, qid=data.qid)
    assert fitted.score(data.X, data.y, qid=data.qid) > chance + 0.05


def test_row_order_same_bits_and_stopping(ranker, data):
    train, valid = data[:25], data[25:]
    one, two = (clone(ranker).fit_queries(train, valid=valid) for _ in range(2))
    assert one.predict(valid).tobytes() == two.predict(valid).tobytes()
    reached = tr.evaluate(one, valid, ["ndcg@10"]).mean["ndcg@10"]
    assert reached == pytest.approx(one.trace_["valid"].max(), abs=1e-6)
    perm = np.random.default_rng(0).permutation(train.n_docs)
    mixed = clone(ranker).fit(train.X[perm], train.y[perm], qid=train.qid[perm])
    assert mixed.n_queries_in_ == train.n_queries
    places = mixed.rank(valid)
    for a, b in pairwise(valid.ptr):
        assert sorted(places[a:b]) == list(range(1, b - a + 1))


def test_bad_parameters_are_named(ranker, data):
    with pytest.raises(tr.InputError, match="rounds must be a whole number"):
        ranker.set_params(rounds=0).fit_queries(data)
    with pytest.raises(AttributeError, match="not fitted"):
        _ = clone(ranker).feature_importances_
    with pytest.raises(tr.InputError, match=r'loss must be "lambdarank", one of toprank\.surrogates or its name'):
        clone(ranker).set_params(rounds=5, loss="ListNut").fit_queries(data)
    with pytest.raises(tr.InputError, match="engine must be one of 'lightgbm', 'xgboost', got 'catboost'"):
        clone(ranker).set_params(rounds=5, engine="catboost").fit_queries(data)
    with pytest.raises(tr.InputError, match="takes whole grades from 0 to 59"):
        clone(ranker).set_params(rounds=5, loss="lambdarank").fit(data.X, data.y / 2, data.qid)


def test_scores_outside_a_linear_transform_are_named(ranker, data):
    surrogate = tr.surrogates.ListNet(transform=Linear(1.0, 0.05))
    with pytest.raises(tr.InputError, match="needs scores above"):
        ranker.set_params(loss=surrogate, rounds=200, eta=1.0).fit_queries(data)


def test_a_surrogate_without_slope_is_refused():
    with pytest.raises(tr.InputError, match="TypeOne is a step function"):
        tr.interop.lightgbm_objective(TypeOne())
    with pytest.raises(tr.InputError, match="TypeOne is a step function"):
        tr.interop.xgboost_objective(TypeOne())


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
class TestBoostedTrees:
    def test_scores_are_those_of_the_engine_itself(self, engine, data):
        """The engine, called as its documentation shows, on the same data with the same parameters."""
        package = pytest.importorskip(engine)
        ours = tr.BoostedTrees(engine=engine, rounds=15, eta=0.2, depth=3).fit_queries(data)
        common = {"learning_rate": 0.2, "max_depth": 3, "n_jobs": 1, "random_state": 0, "n_estimators": 15}
        if engine == "lightgbm":
            gains = [2**grade - 1 for grade in range(60)]
            theirs = package.LGBMRanker(**common, label_gain=gains, verbosity=-1, deterministic=True)
            theirs.set_params(force_row_wise=True).fit(data.X, data.y, group=data.lengths)
        else:
            qid = np.repeat(np.arange(data.n_queries), data.lengths)
            theirs = package.XGBRanker(objective="rank:ndcg", **common).fit(data.X, data.y, qid=qid)
        np.testing.assert_allclose(ours.predict(data), theirs.predict(data.X), rtol=0, atol=2e-6)

    def test_missing_cells_reach_the_engine_untouched(self, engine, data):
        package = pytest.importorskip(engine)
        X = data.X.copy()
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
        ours = tr.BoostedTrees(engine=engine, loss="ListNet", rounds=5).fit(X, data.y, qid=data.qid)
        trees = ours.booster_
        theirs = trees.predict(X) if engine == "lightgbm" else trees.predict(package.DMatrix(X), output_margin=True)
        np.testing.assert_allclose(ours.predict(X), theirs, rtol=0, atol=1e-6)
        assert ours.inputs_.missing.native
        assert not np.allclose(ours.predict(X), ours.predict(np.nan_to_num(X)))

    @pytest.mark.parametrize("steps", ["query", "standard", "log,query"])
    def test_features_relative_to_the_query_leave_missing_cells_missing(self, engine, data, steps):
        pytest.importorskip(engine)
        X = data.X.copy()
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
        seen = tr.BoostedTrees(engine=engine, rounds=3, prepare=steps).fit(X, data.y, qid=data.qid)
        one = tr.QueryDataset.from_arrays(X, data.y, data.qid, missing="keep")
        prepared = seen.inputs_.apply(one).X
        assert (np.isnan(prepared) == np.isnan(X)).all()
        q, j = slice(data.ptr[0], data.ptr[1]), 1
        cells = X[q, j][~np.isnan(X[q, j])]
        cells = np.sign(cells) * np.log1p(np.abs(cells)) if "log" in steps else cells
        spread = cells.std() if steps == "standard" else cells.max() - cells.min()
        wanted = (cells - (cells.mean() if steps == "standard" else cells.min())) / spread
        np.testing.assert_allclose(prepared[q, j][~np.isnan(X[q, j])], wanted, rtol=0, atol=1e-9)

    def test_importances_are_the_shares_of_the_engine_s_gain(self, engine, data):
        package = pytest.importorskip(engine)
        ours = tr.BoostedTrees(engine=engine, rounds=10, missing="indicator", params={"min_data_in_leaf": 2})
        if engine == "xgboost":
            ours.set_params(params=None)
        X = data.X.copy()
        X[::3, 2] = np.nan
        ours.fit(X, data.y, qid=data.qid)
        if engine == "lightgbm":
            gain = ours.booster_.feature_importance("gain")
        else:
            assert package
            gain = np.zeros(7)
            for name, value in ours.booster_.get_score(importance_type="total_gain").items():
                gain[int(name[1:])] = value
        wanted = gain[:6].copy()
        wanted[2] += gain[6]
        np.testing.assert_allclose(ours.feature_importances_, wanted / gain.sum(), rtol=1e-12)

    def test_patience_ends_and_the_best_round_is_kept(self, engine, data):
        pytest.importorskip(engine)
        fitted = tr.BoostedTrees(engine=engine, rounds=200, patience=4).fit_queries(data[:25], valid=data[25:])
        reached = fitted.trace_["valid"]
        assert len(reached) == int(np.argmax(reached)) + 1 + 4
        assert fitted.n_iter_ == int(np.argmax(reached)) + 1
        assert len(fitted.function_.root) - fitted.n_iter_ == (engine == "xgboost")  # whose base score is a leaf
        again = tr.BoostedTrees(engine=engine, rounds=fitted.n_iter_).fit_queries(data[:25])
        assert again.predict(data).tolist() == fitted.predict(data).tolist()

    def test_parameters_of_the_engine_go_before_ours(self, engine, data):
        pytest.importorskip(engine)
        named = tr.BoostedTrees(engine=engine, rounds=5, eta=0.3).fit_queries(data)
        alias = tr.BoostedTrees(engine=engine, rounds=5, params={"eta": 0.3}).fit_queries(data)
        assert named.predict(data).tolist() == alias.predict(data).tolist()
        with pytest.raises(tr.InputError, match="params must be a dictionary"):
            tr.BoostedTrees(engine=engine, params=["eta"]).fit_queries(data)

    def test_certificates_and_exports(self, engine, data, tmp_path):
        pytest.importorskip(engine)
        ranker = tr.BoostedTrees(engine=engine, rounds=10).fit_queries(data[:25])
        unseen, seen = tr.certify(ranker, data[25:])[0], tr.certify(ranker, data[:25])[0]
        assert unseen.lower > 0
        assert unseen.verdict in ("holds", "vacuous")
        assert "nothing can be said" in seen.meaning
        tr.export.write(ranker, tmp_path / "trees.json", "json")
        assert tr.export.verify(ranker, tmp_path / "trees.json", data[25:]).agrees
