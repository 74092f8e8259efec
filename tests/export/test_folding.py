"""A folded pipeline scores as the pipeline does; what is not linear is refused by name."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import toprank as tr
from tests.export.models import linear_model
from toprank.errors import InputError
from toprank.model import Inputs, KernelFunction, LinearFunction, MissingRule, StumpFunction


def ranker_with(weights, missing="error"):
    """Return a ranker that scores with given weights."""
    weights = np.asarray(weights, dtype=np.float64)
    ranker = tr.ListNet(missing=missing)
    rule = MissingRule("fill", np.zeros(len(weights))) if missing == "zero" else MissingRule()
    ranker.function_, ranker.inputs_ = LinearFunction(weights), Inputs(len(weights), missing=rule)
    ranker.n_features_in_, ranker.n_queries_in_, ranker.learned_from_ = len(weights), 1, None
    return ranker


def pipeline(X, steps, weights, missing="error"):
    """Return a pipeline whose transformers are fitted one after the other."""
    values = X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for step in steps:
            values = step.fit_transform(values)
    return make_pipeline(*steps, ranker_with(weights[: values.shape[1]], missing))


SCALERS = {
    "standard": StandardScaler,
    "uncentred": lambda: StandardScaler(with_mean=False),
    "unscaled": lambda: StandardScaler(with_std=False),
    "neither": lambda: StandardScaler(with_mean=False, with_std=False),
    "minmax": MinMaxScaler,
    "range": lambda: MinMaxScaler((-3.0, 7.0)),
    "maxabs": MaxAbsScaler,
    "robust": RobustScaler,
    "centred": lambda: RobustScaler(with_scaling=False),
    "spread": lambda: RobustScaler(with_centering=False),
    "selector": lambda: VarianceThreshold(0.0),
    "mean": lambda: SimpleImputer(strategy="mean"),
    "seven": lambda: SimpleImputer(strategy="constant", fill_value=7.0),
}


@given(
    names=st.lists(st.sampled_from(sorted(SCALERS)), min_size=1, max_size=4),
    seed=st.integers(0, 10**6),
    gaps=st.booleans(),
)
def test_a_folded_pipeline_scores_as_the_pipeline(names, seed, gaps):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-2, 4, size=4) + rng.normal(size=4) * 50
    X[:, 3] = rng.integers(0, 3, size=30)
    with_gaps = X.copy()
    if gaps:
        names = ["mean", *names]  # without an imputer a gap is refused
        with_gaps[rng.random(X.shape) < 0.2] = np.nan
        with_gaps[0] = X[0]
    pipe = pipeline(with_gaps, [SCALERS[name]() for name in names], rng.normal(size=4))
    folded = tr.export.fold(pipe)
    expected = pipe.predict(with_gaps)
    size = np.abs(np.nan_to_num(X)) @ np.abs(folded.weights) + abs(folded.offset) + np.abs(expected)
    assert (np.abs(folded.predict(with_gaps) - expected) <= 1e-9 * size).all()
    clear = np.abs(np.subtract.outer(expected, expected)) > 1e-9 * size.max()
    order = np.sign(np.subtract.outer(folded.predict(with_gaps), folded.predict(with_gaps)))
    assert (order[clear] == np.sign(np.subtract.outer(expected, expected))[clear]).all()


def test_zero_filling_behind_a_scaler_is_told_in_raw_values():
    X = np.array([[1.0, 10.0], [3.0, 30.0], [5.0, np.nan]])
    pipe = pipeline(X, [StandardScaler()], [1.0, 1.0], missing="zero")
    folded = tr.export.fold(pipe)
    assert folded.rule.fill == pytest.approx([3.0, 20.0])  # 0 behind the scaler is the mean in front of it
    assert folded.predict(X) == pytest.approx(pipe.predict(X))


def test_nested_pipelines_and_steps_that_do_nothing():
    X = np.random.default_rng(0).normal(size=(9, 2))
    inner = Pipeline([("scale", StandardScaler().fit(X)), ("none", "passthrough")])
    pipe = Pipeline([("inner", inner), ("off", None), ("rank", ranker_with([1.0, -2.0]))])
    assert tr.export.fold(pipe).predict(X) == pytest.approx(pipe.predict(X))


def test_a_selector_gives_other_features_no_weight():
    X = np.array([[1.0, 5.0, 2.0], [2.0, 5.0, 1.0], [4.0, 5.0, 3.0]])
    pipe = pipeline(X, [VarianceThreshold()], [3.0, -1.0])
    assert tr.export.fold(pipe).weights.tolist() == [3.0, 0.0, -1.0]


def test_names_come_from_the_frame_that_was_fitted():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"bm25": [1.0, 2.0, 0.5], "age": [3.0, 1.0, 2.0]})
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), tr.ListNet()).fit(X, [0, 1, 0])
    assert tr.export.fold(pipe).names == ("bm25", "age")
    assert tr.export.fold(pipe, ["a", "b"]).names == ("a", "b")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([StandardScaler(), tr.QueryNormalizer()], "a scaler in front of QueryNormalizer cannot be folded.*behind"),
        ([MaxAbsScaler(), tr.SignedLog()], "a scaler in front of SignedLog cannot be folded.*behind"),
        ([tr.SignedLog(), SimpleImputer()], "SimpleImputer behind SignedLog .*in front"),
        ([PCA(2)], "PCA cannot be folded into weights: StandardScaler"),
        ([MinMaxScaler(clip=True)], r"MinMaxScaler\(clip=True\) is not linear.*clip=False"),
        ([SimpleImputer(add_indicator=True)], "add_indicator=True"),
        ([SimpleImputer(missing_values=-1)], "missing_values=-1.*use NaN"),
    ],
)
def test_what_is_not_linear_is_refused(steps, message):
    X = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(InputError, match=message) as caught:
        tr.export.fold(pipeline(X, steps, [1.0, 2.0]))
    assert "\n" not in str(caught.value)


def test_models_that_are_not_linear():
    data = tr.datasets.make_graded(n_queries=10, n_features=3, random_state=0)
    with pytest.raises(InputError, match="the last step of the pipeline must be a ranker"):
        tr.export.fold(make_pipeline(StandardScaler(), PCA(1)).fit(data.X))
    with pytest.raises(InputError, match="a dict cannot be exported"):
        tr.export.fold({})
    boosted = ranker_with([1.0])
    boosted.function_ = StumpFunction(1, np.array([0]), np.array([0.5]), np.array([1.0]))
    with pytest.raises(InputError, match=r"scalers cannot be folded into .*: thresholds need no scaling"):
        tr.export.fold(pipeline(np.full((2, 1), 2.0), [MaxAbsScaler()], [1.0]).set_params(listnet=boosted))
    curved = ranker_with([1.0, 2.0])
    curved.function_ = KernelFunction(np.ones((1, 2)), np.ones(1), "rbf")
    with pytest.raises(InputError, match='kernel="rbf" is not linear'):
        tr.export.fold(curved)
    with pytest.raises(InputError, match="3 names are given for the 2 features"):
        tr.export.fold(ranker_with([1.0, 2.0]), ["a", "b", "c"])
    with pytest.raises(InputError, match="the name 'a' is given twice"):
        tr.export.fold(ranker_with([1.0, 2.0]), ["a", "a"])


def test_imputers_and_selectors_can_stand_before_thresholds():
    X = np.array([[1.0, 5.0, 2.0], [2.0, 5.0, np.nan], [4.0, 5.0, 3.0]])
    boosted = ranker_with([1.0, 1.0])
    boosted.function_ = StumpFunction(2, np.array([0, 1]), np.array([1.5, 2.25]), np.array([1.0, 10.0]))
    pipe = pipeline(X, [SimpleImputer(), VarianceThreshold()], [1.0, 1.0]).set_params(listnet=boosted)
    folded = tr.export.fold(pipe)
    assert folded.function.thresholds == [(0, 1.5, 1.0), (2, 2.25, 10.0)]
    assert folded.rule.fill.tolist() == [7 / 3, 0.0, 2.5]
    assert folded.predict(X).tolist() == pipe.predict(X).tolist() == [0.0, 11.0, 11.0]


def test_a_linear_kernel_is_linear():
    ranker = ranker_with([1.0, 2.0])
    ranker.function_ = KernelFunction(np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([2.0, -1.0]), "linear")
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert tr.export.fold(ranker).predict(X) == pytest.approx(ranker.predict(X))


@pytest.mark.parametrize("scale", [None, "running", "query"])
def test_scaled_perceptrons_keep_raw_weights(scale):
    data = tr.datasets.make_graded(n_queries=20, n_features=3, random_state=0)
    data = data.with_X(data.X * np.array([1.0, 100.0, 0.01]))
    ranker = tr.SlamPerceptron(scale=scale, random_state=0).fit_queries(data)
    assert tr.export.fold(ranker).predict(data) == pytest.approx(ranker.predict(data))


def test_files_go_both_ways(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3)) * [1, 10, 100]
    pipe = pipeline(X, [SimpleImputer(), StandardScaler()], [1.0, -2.0, 0.5])
    folded = tr.export.fold(pipe, ["a", "b", "c"])
    tr.export.write(folded, tmp_path / "linear.json", "json")
    again = tr.export.fold(tmp_path / "linear.json")
    assert isinstance(again.function, LinearFunction)
    assert (again.names, again.source, again.offset) == (folded.names, "ListNet", folded.offset)
    for ours, theirs in ((again.weights, folded.weights), (again.rule.fill, folded.rule.fill)):
        assert (ours == theirs).all()
    for ours, theirs in zip(again.scaler, folded.scaler, strict=True):
        assert (ours == theirs).all()
    ranker_with([1.0, 2.0]).save(tmp_path / "model.json")
    assert tr.export.fold(str(tmp_path / "model.json")).weights.tolist() == [1.0, 2.0]
    for name in ("gone.json", "model.json"):
        if name == "model.json":
            (tmp_path / name).write_text("{")
        with pytest.raises(InputError, match=name):
            tr.export.fold(tmp_path / name)


def test_predict_takes_what_rankers_take():
    model = linear_model(("a", "b"), np.array([1.0, 10.0]), fill=np.array([0.0, 5.0]))
    sparse = csr_array(np.array([[1.0, 0.0], [0.0, np.nan]]))
    assert model.predict(sparse).tolist() == [1.0, 50.0]
    twice = csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert model.predict(twice).tolist() == [3.0]
    assert twice.nnz == 2  # the caller's matrix is as it was
    data = tr.QueryDataset.from_arrays([[1.0, 1.0], [2.0, 0.0]], [0, 1], feature_names=["a", "b"])
    assert model.predict(data).tolist() == [11.0, 2.0]
    assert tr.evaluate(model, data, ["ndcg@10"]).counts["queries"] == 1
    with pytest.raises(InputError, match="X has 3 features"):
        model.predict(np.ones((1, 3)))
    with pytest.raises(InputError, match=r"NaN in row 1, column 0 \('a'\)"):
        linear_model(("a",), np.ones(1)).predict([[1.0], [np.nan]])
    with pytest.raises(InputError, match="infinity"):
        model.predict([[np.inf, 1.0]])
