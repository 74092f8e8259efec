"""Anybody's estimators, fitted models, runs and scores in a contest: as their own libraries would have it."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr
from toprank.contests.entries import Defaults, entries_of
from toprank.contests.estimators import Guest


@pytest.fixture(scope="module")
def parts():
    data = tr.datasets.make_graded(n_queries=60, n_docs=(5, 12), n_features=5, n_grades=3, random_state=0)
    return data[:30], data[30:42], data[42:]


def ids(data):
    return np.repeat(np.arange(data.n_queries), data.lengths)


def hold(parts, rankers, **options):
    train, valid, test = parts
    return tr.contest(train, test, valid, rankers, n_resamples=100, **options)


class TestTheirOwnNumbers:
    """Each library by itself, as its documentation shows it, and in a contest: the same scores."""

    def test_scikit_learn(self, parts):
        train, _, test = parts
        pipeline, classifier = make_pipeline(StandardScaler(), Ridge()), LogisticRegression(max_iter=500)
        result = hold(parts, {"pipeline": pipeline, "classifier": classifier})
        alone = sklearn.clone(pipeline).fit(train.X, train.y).predict(test.X)
        np.testing.assert_array_equal(result.entrant("pipeline").scores, alone)
        learned = sklearn.clone(classifier).fit(train.X, train.y.astype(int))
        expected = learned.predict_proba(test.X) @ learned.classes_
        np.testing.assert_array_equal(result.entrant("classifier").scores, expected)
        assert not hasattr(pipeline[-1], "coef_"), "what was given stays as it was"

    @pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
    def test_lightgbm(self, parts):
        lgb = pytest.importorskip("lightgbm")
        train, valid, test = parts
        mine = lgb.LGBMRanker(n_estimators=80, n_jobs=1, verbosity=-1, min_child_samples=5)
        entrant = hold(parts, {"mine": mine}).entrant("mine")
        alone = sklearn.clone(mine).fit(
            train.X,
            train.y,
            group=train.lengths,
            eval_set=[(valid.X, valid.y)],
            eval_group=[valid.lengths],
            eval_metric="ndcg",
            eval_at=[10],
            callbacks=[lgb.early_stopping(50, verbose=False)],
        )
        np.testing.assert_array_equal(entrant.scores, alone.predict(test.X))
        assert entrant.rankers[0].best_iteration_ == alone.best_iteration_ < 80
        assert entrant.curves["valid"] == alone.evals_result_["valid_0"]["ndcg@10"]

    def test_lightgbm_s_own_ndcg_is_ours_by_its_convention(self, parts):
        lgb = pytest.importorskip("lightgbm")
        _, valid, _ = parts
        entrant = hold(parts, {"mine": lgb.LGBMRanker(n_estimators=20, n_jobs=1, verbosity=-1)}).entrant("mine")
        model = entrant.rankers[0]
        ours = tr.evaluate(model, valid, ["ndcg@10"], convention="lightgbm").mean["ndcg@10"]
        assert ours == pytest.approx(max(entrant.curves["valid"]), abs=1e-9)

    def test_xgboost(self, parts):
        xgb = pytest.importorskip("xgboost")
        train, valid, test = parts
        mine = xgb.XGBRanker(n_estimators=80, n_jobs=1)
        entrant = hold(parts, {"mine": mine}).entrant("mine")
        alone = xgb.XGBRanker(n_estimators=80, n_jobs=1, early_stopping_rounds=50, eval_metric="ndcg@10")
        alone.fit(train.X, train.y, qid=ids(train), eval_set=[(valid.X, valid.y)], eval_qid=[ids(valid)], verbose=False)
        np.testing.assert_array_equal(entrant.scores, alone.predict(test.X))
        assert entrant.rankers[0].best_iteration == alone.best_iteration
        reached = tr.evaluate(alone, valid, ["ndcg@10"], convention="xgboost").mean["ndcg@10"]
        assert reached == pytest.approx(alone.best_score, abs=1e-5)

    def test_catboost(self, parts):
        cat = pytest.importorskip("catboost")
        train, valid, test = parts
        plain = {"iterations": 60, "thread_count": 1, "allow_writing_files": False, "random_seed": 3}
        mine = cat.CatBoostRanker(**plain)
        entrant = hold(parts, {"mine": mine}).entrant("mine")
        alone = cat.CatBoostRanker(**plain, eval_metric="NDCG:top=10;type=Exp")
        pool = cat.Pool(valid.X, valid.y, group_id=ids(valid))
        alone.fit(train.X, train.y, group_id=ids(train), eval_set=pool, early_stopping_rounds=50, verbose=False)
        np.testing.assert_array_equal(entrant.scores, alone.predict(test.X))
        assert entrant.rankers[0].get_best_iteration() == alone.get_best_iteration()
        assert not mine.is_fitted()

    @pytest.mark.parametrize("routing", [False, True])
    def test_pipelines_that_end_in_a_ranker(self, parts, routing):
        lgb, cat = pytest.importorskip("lightgbm"), pytest.importorskip("catboost")
        train, _, test = parts
        lean = {"n_estimators": 10, "n_jobs": 1, "verbosity": -1, "early_stopping_rounds": 100}
        last = {
            "lightgbm": lgb.LGBMRanker(**lean),
            "catboost": cat.CatBoostRanker(iterations=10, thread_count=1, allow_writing_files=False, od_wait=100),
            "ours": tr.ListNet(),
            "ridge": Ridge(),
        }
        with sklearn.config_context(enable_metadata_routing=routing):
            result = hold(parts, {name: make_pipeline(tr.QueryNormalizer(), one) for name, one in last.items()})
        X, X_test = (tr.QueryNormalizer().transform_queries(part).X for part in (train, test))
        alone = sklearn.clone(last["ridge"]).fit(X, train.y).predict(X_test)
        np.testing.assert_array_equal(result.entrant("ridge").scores, alone)
        assert result.warnings == ()
        for name in last:
            assert result.entrant(name).report.mean["ndcg@10"] > result.entrant("order as given").report.mean["ndcg@10"]


class TestEarlyStopping:
    def test_the_users_own_rule_stays(self, parts):
        lgb = pytest.importorskip("lightgbm")
        mine = lgb.LGBMRanker(n_estimators=300, n_jobs=1, verbosity=-1, early_stopping_round=3)
        model = hold(parts, {"mine": mine}).entrant("mine").rankers[0]
        assert model.n_iter_ == model.best_iteration_ + 3 or model.best_iteration_ == model.n_iter_ < 300

    @pytest.mark.parametrize("measure", ["map", "mrr", "ndcg"])
    def test_every_library_finds_a_measure_to_stop_by(self, parts, measure):
        lgb, xgb, cat = (pytest.importorskip(name) for name in ("lightgbm", "xgboost", "catboost"))
        rankers = {
            "lightgbm": lgb.LGBMRanker(n_estimators=5, n_jobs=1, verbosity=-1),
            "xgboost": xgb.XGBRanker(n_estimators=5, n_jobs=1),
            "catboost": cat.CatBoostRanker(iterations=5, thread_count=1, allow_writing_files=False),
            "classifier": lgb.LGBMClassifier(n_estimators=5, n_jobs=1, verbosity=-1),
            "regressor": xgb.XGBRegressor(n_estimators=5, n_jobs=1),
        }
        result = hold(parts, rankers, measure=measure)
        assert result.warnings == ()
        assert all(len(result.entrant(name).curves["valid"]) == 5 for name in rankers)
        again = hold(parts, rankers, measure=measure, refit=True)
        assert again.warnings == ()
        assert {e.name for e in again.entrants} == {e.name for e in result.entrants}

    def test_weights_of_queries_reach_each_library_as_it_wants_them(self, parts):
        lgb, xgb, cat = (pytest.importorskip(name) for name in ("lightgbm", "xgboost", "catboost"))
        train, valid, test = parts
        weight = np.where(np.arange(train.n_queries) % 3 == 0, 5.0, 0.1)
        heavy = train._with(query_weight=weight)
        plain = {"n_estimators": 10, "n_jobs": 1}
        rankers = {
            "lightgbm": lgb.LGBMRanker(**plain, verbosity=-1, early_stopping_rounds=99),
            "xgboost": xgb.XGBRanker(**plain),
            "catboost": cat.CatBoostRanker(iterations=10, thread_count=1, allow_writing_files=False, od_wait=99),
            "ridge": Ridge(),
        }
        result = hold((heavy, valid, test), rankers)
        even = hold(parts, rankers)
        rows = np.repeat(weight, train.lengths)
        alone = Ridge().fit(train.X, train.y, sample_weight=rows).predict(test.X)
        np.testing.assert_array_equal(result.entrant("ridge").scores, alone)
        alone = sklearn.clone(rankers["xgboost"]).set_params(early_stopping_rounds=50, eval_metric="ndcg@10")
        alone.fit(
            train.X, train.y, qid=ids(train), sample_weight=weight, verbose=False,
            eval_set=[(valid.X, valid.y)], eval_qid=[ids(valid)],
        )  # fmt: skip
        np.testing.assert_array_equal(result.entrant("xgboost").scores, alone.predict(test.X))
        for name in rankers:
            assert not np.array_equal(result.entrant(name).scores, even.entrant(name).scores)

    def test_a_refit_keeps_the_rounds_that_were_chosen(self, parts):
        lgb = pytest.importorskip("lightgbm")
        train, valid, test = parts
        mine = lgb.LGBMRanker(n_estimators=100, n_jobs=1, verbosity=-1, min_child_samples=5)
        once, again = (hold(parts, {"mine": mine}, refit=refit).entrant("mine") for refit in (False, True))
        rounds = once.rankers[0].best_iteration_
        both = tr.data.splits.stacked([train, valid])
        alone = sklearn.clone(mine).set_params(n_estimators=rounds).fit(both.X, both.y, group=both.lengths)
        np.testing.assert_array_equal(again.scores, alone.predict(test.X))


class TestGrids:
    def test_every_setting_is_tried_and_the_best_on_validation_is_kept(self, parts):
        train, valid, _ = parts
        pipeline = make_pipeline(StandardScaler(), Ridge())
        grid = {"ridge__alpha": [1e3, 1e-3]}
        entrant = hold(parts, {"mine": pipeline}, grids={"mine": grid}).entrant("mine")
        reached = {}
        for alpha in (1.0, 1e3, 1e-3):
            model = sklearn.clone(pipeline).set_params(ridge__alpha=alpha).fit(train.X, train.y)
            reached[alpha] = tr.evaluate(model, valid, ["ndcg@10"]).mean["ndcg@10"]
        assert (entrant.tried, entrant.planned) == (3, 3)
        assert entrant.valid[0] == max(reached.values())
        chosen = entrant.rankers[0][-1].alpha
        assert reached[chosen] == max(reached.values())

    def test_a_name_and_a_ranker_of_ours_take_a_grid_too(self, parts):
        grids = {"ListNet": {"alpha": [0.1]}, "own": [{"alpha": [0.2, 0.3]}, {"truth": ["gains"]}]}
        result = hold(parts, {"ListNet": "ListNet", "own": tr.ListNet(alpha=0.5), "RankSVM": "RankSVM"}, grids=grids)
        assert [result.entrant(name).planned for name in ("ListNet", "own", "RankSVM")] == [2, 4, 8]
        told = next(note for note in result.notes if note.startswith("Not everybody"))
        assert "as RankSVM with 8: ListNet 2, own 4 (the grid has no more)" in told

    def test_a_budget_cuts_grids_like_any_other_list(self, parts):
        result = hold(parts, {"mine": Ridge(), "ListNet": "ListNet"}, grids={"mine": {"alpha": [1, 2, 3]}}, budget=1)
        assert (result.entrant("mine").tried, result.entrant("mine").planned) == (2, 4)
        assert str(result).splitlines()[0].endswith("search cut short: 4 of 10 settings tried")

    @pytest.mark.parametrize(
        ("grids", "words"),
        [
            ({"mine": {"alphas": [1]}}, "Ridge has no parameter 'alphas'"),
            ({"yours": {"alpha": [1]}}, "grids has 'yours', who does not take part: there are mine"),
            ({"mine": {"alpha": 1.0}}, "the grid of 'alpha' must be a list of values, got 1.0"),
            ({"mine": {"alpha": []}}, "the grid of 'alpha' must be a list of values"),
            ({"mine": [3]}, "a grid is a dictionary of lists"),
        ],
    )
    def test_bad_grids_are_refused_by_name(self, parts, grids, words):
        with pytest.raises(tr.InputError, match=words):
            hold(parts, {"mine": Ridge()}, grids=grids)

    def test_lightgbm_xgboost_and_catboost_by_name_have_as_many_settings(self):
        pytest.importorskip("catboost")
        found = entries_of(["LightGBM", "XGBoost", "CatBoost"], {}, Defaults(tr.measure("ndcg@10")))
        assert [len(one.rankers) for one in found.candidates] == [6, 6, 6]

    def test_seconds_of_the_processor_stand_in_the_table(self, parts):
        result = hold(parts, {"search": HistGradientBoostingRegressor(max_iter=5), "ListNet": "ListNet"}, budget=0)
        assert "processor, s" in result.tables()[1].columns
        assert all(result.entrant(name).processor > 0 for name in ("search", "ListNet"))


class TestMadeElsewhere:
    def test_what_is_fitted_stays_as_it_is(self, parts):
        train, _, test = parts
        model, ranker = Ridge().fit(train.X[:50], train.y[:50]), tr.ListNet().fit_queries(train)
        result = hold(parts, {"model": model, "ranker": ranker, "ListNet": "ListNet"}, budget=0)
        np.testing.assert_array_equal(result.entrant("model").scores, model.predict(test.X))
        np.testing.assert_array_equal(result.entrant("ranker").scores, ranker.predict(test))
        assert result.entrant("model").rankers == (model,)
        assert result.entrant("model").tried == 0
        trusted = [result.entrant(name).certificates[0].assumptions[1].state for name in ("model", "ranker", "ListNet")]
        assert trusted == ["on trust", "checked", "checked"]
        assert any("model took part as given and did not learn here" in note for note in result.notes)

    def test_one_of_ours_that_learned_from_the_test_is_caught(self, parts):
        test = parts[2]
        result = hold(parts, {"cheat": tr.ListNet().fit_queries(test), "ListNet": "ListNet"}, budget=0)
        assert any(warning.startswith("cheat learned from test queries") for warning in result.warnings)
        assert "nothing can be said" in result.entrant("cheat").certificates[0].meaning
        assert "nothing can be said" not in result.entrant("ListNet").certificates[0].meaning

    def test_scores_and_runs(self, parts):
        train, valid, test = parts
        scores = np.arange(test.n_docs) % 7.0
        named = test._with(doc_ids=np.array([f"d{i}" for i in range(test.n_docs)]))
        run = {}
        for q, (a, b) in enumerate(zip(test.ptr[:-1], test.ptr[1:], strict=True)):
            run[str(test.query_ids[q])] = {f"d{i}": float(scores[i]) for i in range(a, b)}
        result = tr.contest(train, named, valid, {"scores": scores, "run": run, "read": tr.Run.of(run)}, n_resamples=50)
        expected = tr.evaluate(scores, test, ["ndcg@10"]).mean["ndcg@10"]
        assert [result.entrant(name).report.mean["ndcg@10"] for name in ("scores", "run", "read")] == [expected] * 3
        del run[str(test.query_ids[0])]
        less = tr.contest(train, named, valid, {"run": run}, n_resamples=50)
        assert np.isneginf(less.entrant("run").scores[: test.ptr[1]]).all()

    def test_refusals(self, parts):
        with pytest.raises(tr.InputError, match="scores has 3 values for"):
            hold(parts, {"short": [1.0, 2.0, 3.0]})
        with pytest.raises(tr.InputError, match="runs and scores need a name"):
            hold(parts, [np.zeros(3)])
        with pytest.raises(tr.InputError, match="a run names documents, and the data set has no doc_ids"):
            hold(parts, {"run": {"q": {"d": 1.0}}})
        with pytest.raises(tr.InputError, match="Ridge is a class: make one"):
            hold(parts, {"mine": Ridge})
        with pytest.raises(tr.InputError, match="a contestant is a name, a ranker, an estimator"):
            hold(parts, {"mine": 3})


class Broken(BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no luck\nat all")

    def predict(self, X):
        return np.zeros(len(X))


class TestTrouble:
    def test_who_fails_is_left_out_and_told(self, parts):
        result = hold(parts, {"broken": Broken(), "ListNet": "ListNet"}, budget=0)
        assert list(result.warnings) == ["broken was left out: Broken: RuntimeError: no luck."]

    def test_a_search_that_would_cut_queries_apart_is_refused(self, parts):
        lgb = pytest.importorskip("lightgbm")
        search = GridSearchCV(lgb.LGBMRanker(), {"num_leaves": [7]})
        result = hold(parts, {"search": search, "ListNet": "ListNet"}, budget=0)
        assert "GridSearchCV slices rows, and LGBMRanker wants its queries whole" in result.warnings[0]

    def test_searches_that_can_be_told_their_queries(self, parts):
        scoring, folds = tr.scorer("ndcg@10"), tr.QueryKFold(3)
        ours = GridSearchCV(tr.ListNet(), {"alpha": [0.1, 10.0]}, cv=folds, scoring=scoring)
        plain = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=3)
        result = hold(parts, {"ours": ours, "plain": plain}, budget=0)
        train, _, test = parts
        with sklearn.config_context(enable_metadata_routing=True):
            alone = sklearn.clone(ours).fit(train.X, train.y, qid=train.qid)
        np.testing.assert_array_equal(result.entrant("ours").scores, alone.best_estimator_.predict(test.X))
        alone = sklearn.clone(plain).fit(train.X, train.y).predict(test.X)
        np.testing.assert_array_equal(result.entrant("plain").scores, alone)

    @pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
    def test_missing_cells_reach_the_trees_and_the_others_say_no(self, parts):
        lgb = pytest.importorskip("lightgbm")
        rng = np.random.default_rng(0)
        holes = []
        for part in parts:
            X = np.where(rng.random(part.X.shape) < 0.1, np.nan, part.X)
            holes.append(tr.QueryDataset.from_arrays(X, part.y, part.qid, missing="keep"))
        mine = lgb.LGBMRanker(n_estimators=10, n_jobs=1, verbosity=-1, early_stopping_rounds=99)
        result = hold(holes, {"mine": mine, "LightGBM": "LightGBM", "ridge": Ridge(), "ListNet": "ListNet"}, budget=0)
        left_out = {warning.split(" was left out")[0] for warning in result.warnings if "left out" in warning}
        assert left_out == {"ridge", "ListNet"}
        alone = sklearn.clone(mine).fit(
            holes[0].X, holes[0].y, group=holes[0].lengths, eval_set=[(holes[1].X, holes[1].y)],
            eval_group=[holes[1].lengths], eval_at=[10],
        )  # fmt: skip
        np.testing.assert_array_equal(result.entrant("mine").scores, alone.predict(holes[2].X))

    def test_names_of_features_reach_steps_that_choose_by_them(self, parts):
        pd = pytest.importorskip("pandas")
        from sklearn.compose import ColumnTransformer

        named = [part._with(feature_names=tuple("abcde")) for part in parts]
        chooser = ColumnTransformer([("two", StandardScaler(), ["b", "d"])])
        result = hold(named, {"mine": make_pipeline(chooser, Ridge())}, measures=["map"])
        train, _, test = named
        frame, unseen = (pd.DataFrame(part.X, columns=list("abcde")) for part in (train, test))
        alone = make_pipeline(chooser, Ridge()).fit(frame, train.y).predict(unseen)
        np.testing.assert_allclose(result.entrant("mine").scores, alone, rtol=1e-9, atol=1e-12)


class TestKeeping:
    def test_every_winner_is_saved_in_a_form_that_can_be_read(self, parts, tmp_path):
        lgb, xgb, cat = (pytest.importorskip(name) for name in ("lightgbm", "xgboost", "catboost"))
        test = parts[2]
        rankers = {
            "lightgbm": lgb.LGBMRanker(n_estimators=30, n_jobs=1, verbosity=-1),
            "xgboost": xgb.XGBRanker(n_estimators=30, n_jobs=1),
            "catboost": cat.CatBoostRanker(iterations=10, thread_count=1, allow_writing_files=False),
            "pipeline": make_pipeline(StandardScaler(), tr.ListNet()),
            "trees": tr.BoostedTrees(rounds=10),
            "ours/1": tr.ListNet(),
            "neighbours": HistGradientBoostingRegressor(max_iter=3),
        }
        result = hold(parts, rankers)
        with pytest.warns(
            UserWarning, match="neighbours was not saved: HistGradientBoostingRegressor has no format but"
        ):
            written = result.save(tmp_path / "models")
        assert {path.rpartition("/")[2] for path in written} == {
            "lightgbm.txt", "xgboost.ubj", "catboost.json", "pipeline.json", "trees.json", "ours-1.json"
        }  # fmt: skip
        for name, file in (
            ("lightgbm", "lightgbm.txt"),
            ("xgboost", "xgboost.ubj"),
            ("pipeline", "pipeline.json"),
            ("catboost", "catboost.json"),
        ):
            read = tr.export.fold(tmp_path / "models" / file)
            np.testing.assert_allclose(read.predict(test.X), result.entrant(name).scores, rtol=0, atol=1e-5)
        for name, file in (("trees", "trees.json"), ("ours/1", "ours-1.json")):
            again = tr.load(tmp_path / "models" / file)
            np.testing.assert_array_equal(again.predict(test), result.entrant(name).scores)
        theirs = cat.CatBoostRanker().load_model(tmp_path / "models" / "catboost.json", format="json")
        np.testing.assert_allclose(theirs.predict(test.X), result.entrant("catboost").scores, rtol=1e-12)

    def test_the_page_is_written_for_all_of_them(self, parts, tmp_path):
        result = hold(parts, {"mine": Ridge(), "trees": tr.BoostedTrees(rounds=3), "ListNet": "ListNet"}, budget=0)
        tr.write_report(result, tmp_path / "page.html")
        assert "mine" in (tmp_path / "page.html").read_text()

    def test_learners_are_compared_by_learning_again_from_another_seed(self, parts):
        lgb = pytest.importorskip("lightgbm")
        drawn = {"subsample": 0.5, "subsample_freq": 1}
        mine = lgb.LGBMRanker(n_estimators=10, n_jobs=1, verbosity=-1, min_child_samples=3, **drawn)
        result = hold(parts, {"mine": mine, "ridge": Ridge()}, repeats=2)
        assert result.repeats.n == 2
        (row,) = result.repeats.rows
        guest = Guest(mine, {}, tr.measure("ndcg@10")).fit_queries(parts[0])
        first, other = (guest.refitted(parts[0], seed=seed).predict_grouped(parts[2]) for seed in (1, 2))
        assert not np.array_equal(first, other)
        assert {row.a, row.b} == {"mine", "ridge"}
