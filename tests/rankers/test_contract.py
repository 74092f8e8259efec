"""What every ranker promises, run over every ranker there is."""

import inspect
import json

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import toprank as tr
from tests.rankers.test_laws import tight
from toprank import rankers

ALL = [getattr(rankers, name) for name in rankers.__all__]
WEIGHTS_INSIDE_A_LIST = (
    "it weighs the rows of one list against each other, and a ranker weighs lists as a whole (documents by doc_weight)"
)
EXPECTED_TO_FAIL = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_INSIDE_A_LIST,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_INSIDE_A_LIST,
    "check_sample_weights_not_overwritten": WEIGHTS_INSIDE_A_LIST,
}


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=30, n_docs=(2, 15), n_features=6, n_grades=3, blank=0.1, random_state=0)


# Its checks fit a few points with made-up labels: little can be learned from some, and learners say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*without qid takes all")
@parametrize_with_checks([kind() for kind in ALL], expected_failed_checks=lambda estimator: EXPECTED_TO_FAIL)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ALL)
class TestEveryRanker:
    def test_ranks_count_from_one_in_every_query(self, kind, data):
        places = kind().fit(data.X, data.y, qid=data.qid).rank(data.X, qid=data.qid)
        for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True):
            assert sorted(places[a:b]) == list(range(1, b - a + 1))

    def test_same_data_same_bits(self, kind, data):
        first, second = (kind().fit(data.X, data.y, qid=data.qid).predict(data.X) for _ in range(2))
        assert first.tobytes() == second.tobytes()

    def test_fit_and_fit_queries_are_one(self, kind, data):
        by_rows = kind().fit(data.X, data.y, qid=data.qid).predict(data.X)
        by_queries = kind().fit_queries(data).predict(data)
        assert by_rows.tobytes() == by_queries.tobytes()

    def test_query_ids_are_only_names(self, kind, data):
        plain = kind().fit(data.X, data.y, qid=data.qid).predict(data.X)
        named = kind().fit(data.X, data.y, qid=[f"q{q}" for q in data.qid]).predict(data.X)
        assert plain.tobytes() == named.tobytes()

    def test_sparse_input_learns_the_same(self, kind, data):
        X = np.where(np.abs(data.X) < 0.3, 0.0, data.X)
        dense = tight(kind).fit(X, data.y, qid=data.qid).predict(X)
        thin = tight(kind).fit(sparse.csr_array(X), data.y, qid=data.qid).predict(sparse.csr_array(X))
        scale = np.abs(dense).max()
        # Rows round differently when they are sparse; solved to a gap of 1e-9, weights are equal up to its root.
        np.testing.assert_allclose(dense / scale, thin / scale, rtol=0, atol=1e-9**0.5)

    def test_save_and_load_keep_every_bit(self, kind, data, tmp_path):
        ranker = kind().fit(data.X, data.y, qid=data.qid)
        ranker.save(tmp_path / "model.json")
        again = tr.load(tmp_path / "model.json")
        assert type(again) is kind
        assert again.get_params() == ranker.get_params()
        assert again.predict(data.X).tobytes() == ranker.predict(data.X).tobytes()
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()

    def test_score_without_qid_is_refused_after_several_queries(self, kind, data):
        ranker = kind().fit(data.X, data.y, qid=data.qid)
        with pytest.raises(tr.InputError, match="score needs qid"):
            ranker.score(data.X, data.y)
        assert 0 <= ranker.score(data.X, data.y, qid=data.qid) <= 1

    def test_missing_values(self, kind, data):
        X = data.X.copy()
        X[3, 2] = np.nan
        refusing = kind(missing="error") if kind is tr.BoostedTrees else kind()  # trees have a side for what is missing
        with pytest.raises(tr.InputError, match="row 3, column 2"):
            refusing.fit(X, data.y, qid=data.qid)
        filled = np.nan_to_num(X)
        lenient = kind(missing="zero").fit(X, data.y, qid=data.qid)
        assert (lenient.predict(X) == kind().fit(filled, data.y, qid=data.qid).predict(filled)).all()

    def test_the_help_opens_with_a_sentence_in_words(self, kind):
        first, blank, formula = inspect.getdoc(kind).splitlines()[:3]
        assert first.endswith(".")
        assert not set(first) & set("Σ‖←=∈[]{}_^·≤"), first
        assert blank == ""
        assert formula
        assert ">>>" in inspect.getdoc(kind)

    def test_parameters_are_keywords_but_the_first(self, kind):
        parameters = inspect.signature(kind).parameters
        by_place = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert by_place in (["measure"], ["variant"], ["surrogate"], [])
        assert not any(name.endswith("_") or name.startswith("_") for name in parameters)
        given = {name: object() for name in parameters}  # kept as they are: scikit-learn's clone compares by identity
        assert all(value is given[name] for name, value in kind(**given).get_params().items())
        with pytest.raises(TypeError):
            kind("a", "b")
        assert repr(kind()) == f"{kind.__name__}()"


def test_feature_names_are_enforced(data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data.X, columns=list("abcdef"))
    ranker = tr.ListNet().fit(frame, data.y, qid=data.qid)
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.predict(frame[list("fedcba")])
    other = tr.QueryDataset.from_arrays(data.X, data.y, data.qid, feature_names=list("abcdeg"))
    with pytest.raises(tr.InputError, match="the data set has no feature 'f', and ListNet learned from it"):
        ranker.predict(other)
    shuffled = tr.QueryDataset.from_arrays(data.X[:, ::-1], data.y, data.qid, feature_names=list("fedcba"))
    assert np.array_equal(ranker.predict(shuffled), ranker.predict(frame))
    with pytest.raises(tr.InputError, match="is expecting 6 features"):
        ranker.predict(tr.QueryDataset.from_arrays(data.X[:, :3], data.y, data.qid))


def test_model_selection_with_routing(data):
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            tr.ListNet(), data.X, data.y, cv=tr.QueryKFold(3), scoring=tr.scorer("map"), params={"qid": data.qid}
        )
        search = GridSearchCV(
            make_pipeline(StandardScaler(), tr.ListNet()),
            {"listnet__alpha": [1e-3, 1.0]},
            cv=tr.QueryKFold(3),
            scoring=tr.scorer("ndcg@5"),
        ).fit(data.X, data.y, qid=data.qid)
        pipeline = make_pipeline(tr.QueryNormalizer(), tr.ListNet()).fit(data.X, data.y, qid=data.qid)
        piped = pipeline.score(data.X, data.y, qid=data.qid)
    assert result["test_score"].shape == (3,)
    # By hand: the same folds, the same numbers.
    folds = list(tr.QueryKFold(3).datasets(data))
    by_hand = [tr.evaluate(tr.ListNet().fit_queries(a), b, ["map"]).mean["map"] for a, b in folds]
    np.testing.assert_allclose(result["test_score"], by_hand, rtol=1e-12)
    by_alpha = {}
    for alpha in (1e-3, 1.0):
        values = []
        for a, b in folds:
            scaler = StandardScaler().fit(a.X)
            ranker = tr.ListNet(alpha=alpha).fit_queries(a.with_X(scaler.transform(a.X)))
            values.append(tr.evaluate(ranker, b.with_X(scaler.transform(b.X)), ["ndcg@5"]).mean["ndcg@5"])
        by_alpha[alpha] = np.mean(values)
    assert search.best_params_["listnet__alpha"] == max(by_alpha, key=by_alpha.get)
    assert search.best_score_ == pytest.approx(max(by_alpha.values()), rel=1e-9)
    assert by_alpha[1e-3] != by_alpha[1.0]
    normalised = data.with_X(tr.QueryNormalizer().fit_transform(data.X, qid=data.qid))
    direct = tr.ListNet().fit_queries(normalised)
    assert piped == pytest.approx(tr.evaluate(direct, normalised, ["ndcg@10"]).mean["ndcg@10"])


def test_scorer_without_qid_says_what_to_do(data):
    ranker = tr.ListNet().fit(data.X, data.y, qid=data.qid)
    with pytest.raises(tr.InputError, match="enable_metadata_routing"):
        tr.scorer("ndcg@10")(ranker, data.X, data.y)


def test_validation_part_keeps_the_best_iterate(data):
    train, valid = tr.query_train_test_split(data, test_size=0.5, random_state=0)
    ranker = tr.ListNet(alpha=0.0, max_iter=60).fit_queries(train, valid=valid)
    reached = tr.evaluate(ranker, valid, ["ndcg@10"]).mean["ndcg@10"]
    assert reached == ranker.trace_["valid"].max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1}, "alpha must be a number not below 0, got -1"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"truth": "x"}, "truth must be one of"),
        ({"measure": "ndgc@10"}, "ndgc"),
    ],
)
def test_bad_parameters_are_named(data, change, message):
    ranker = tr.ListNet(**change)
    with pytest.raises(tr.InputError, match=message):
        ranker.fit(data.X, data.y, qid=data.qid).score(data.X, data.y, qid=data.qid)


def _tamper(change):
    def apply(content):
        change(content)
        return json.dumps(content)

    return apply


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda c: "", "not a toprank model"),
        (lambda c: "[]", "not a toprank model"),
        (lambda c: json.dumps(c)[:-40], "not a toprank model"),
        (_tamper(lambda c: c.update(version=99)), "version 99"),
        (_tamper(lambda c: c.update(ranker="os.system")), "unknown ranker 'os.system'"),
        (_tamper(lambda c: c.update(extra=1)), "not a toprank model"),
        (_tamper(lambda c: c["params"].update(nothing=1)), "parameters do not fit"),
        (_tamper(lambda c: c["model"].update({"$value": "Popen"})), "unknown value 'Popen'"),
        (_tamper(lambda c: c["model"]["fields"]["coef"].update(shape=[10**12])), "shape and its data do not fit"),
        (_tamper(lambda c: c["model"]["fields"]["coef"].update({"$array": "object"})), "unknown array type"),
        (_tamper(lambda c: c["model"]["fields"]["coef"]["data"].__setitem__(0, "x")), "not an array of float64"),
        (_tamper(lambda c: c["model"]["fields"]["coef"]["data"].__setitem__(0, {"$float": "nan"})), "finite"),
        (_tamper(lambda c: c.update(n_features=7)), "does not score 7 features"),
        (_tamper(lambda c: c.update(feature_names=["a"])), "1 names for 6 features"),
        (_tamper(lambda c: c.update(state={"w": 1})), "must hold exactly"),
    ],
)
def test_a_spoilt_model_file_is_an_error_that_names_it(data, tmp_path, spoil, message):
    file = tmp_path / "model.json"
    tr.ListNet().fit(data.X, data.y, qid=data.qid).save(file)
    file.write_text(spoil(json.loads(file.read_text())))
    with pytest.raises(tr.InputError, match=message) as caught:
        tr.load(file)
    assert str(file) in str(caught.value)


def test_a_failed_save_leaves_the_old_file(data, tmp_path):
    file = tmp_path / "model.json"
    ranker = tr.ListNet().fit(data.X, data.y, qid=data.qid)
    ranker.save(file)
    before = file.read_bytes()
    ranker.set_params(truth=object())
    with pytest.raises(tr.InputError, match="truth cannot be saved"):
        ranker.save(file)
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]
