"""The three listwise rankers: solvers, balls, ties, stopping, weights, executors."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr
from toprank.data import blocks
from toprank.objective import Objective
from toprank.surrogates import Exponential, Linear, Sigmoid

pytestmark = pytest.mark.filterwarnings("ignore:.*did not reach tol")  # many fits here are cut short

KINDS = [tr.ListNet, tr.ListMLE, tr.RankCosine]
TRANSFORMS = [Linear(1.0, 20.0), Exponential(1.0), Sigmoid(1.0)]


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=50, n_docs=(3, 12), n_features=6, n_grades=3, random_state=0)


@pytest.fixture(scope="module")
def noise_level(data):
    rng = np.random.default_rng(0)
    return max(tr.evaluate(rng.random(data.n_docs), data, ["ndcg@10"]).mean["ndcg@10"] for _ in range(20))


@pytest.mark.parametrize(("kind", "transform"), list(product(KINDS, TRANSFORMS)))
@pytest.mark.parametrize("solver", ["lbfgs", "minibatch:eta=0.3"])
def test_all_nine_learn_with_both_solvers(data, noise_level, kind, transform, solver):
    ranker = kind(transform=transform, solver=solver, alpha=1e-4).fit_queries(data)
    assert ranker.score(data.X, data.y, qid=data.qid) > noise_level + 0.1
    if isinstance(transform, Linear):
        assert ranker.radius_ is not None
        assert transform(ranker.predict(data)).min() > 0
    else:
        assert ranker.radius_ is None


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_memory_maps_give_the_same_bits(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "RUN_VALUES", 1 << 17)
    data = tr.datasets.make_graded(n_queries=300, n_docs=(60, 90), n_features=30, random_state=0)
    tr.save_queries(data, tmp_path / "data")
    mapped = tr.open_queries(tmp_path / "data")
    make = {"max_iter": 4, **({"ties": "sampled"} if kind is tr.ListMLE else {})}
    serial = kind(**make).fit_queries(data).coef_
    with ThreadPoolExecutor(2) as executor:
        threads = kind(**make).fit_queries(data, executor=executor).coef_
    assert len(Objective(data, kind()._loss())._parts.runs) > 2
    assert serial.tobytes() == threads.tobytes()
    assert serial.tobytes() == kind(**make).fit_queries(mapped).coef_.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_norm_ball_binds_and_is_certified_optimal(data, kind):
    ranker = kind(radius=0.1, alpha=0.0, tol=1e-4).fit_queries(data)
    assert np.linalg.norm(ranker.coef_) == pytest.approx(0.1)
    if ranker.solution_.gap < np.inf:
        assert ranker.solution_.gap < 1e-4


def test_a_linear_transform_needs_room(data):
    with pytest.raises(tr.InputError, match=r"linear\(1, 1\) is not positive for ‖w‖ ≤ 5 .* take b above"):
        tr.ListNet(transform="linear(1, 1)", radius=5.0).fit_queries(data)
    norm = float(np.linalg.norm(data.X, axis=1).max())
    ranker = tr.ListNet(transform=Linear.on_ball(radius=5.0, norm=norm), radius=5.0).fit_queries(data)
    assert np.linalg.norm(ranker.coef_) <= 5


@pytest.mark.parametrize("kind", KINDS)
def test_query_weights_are_multiplicities(data, kind):
    weight = np.arange(data.n_queries) % 3
    repeated = data[np.repeat(np.arange(data.n_queries), weight)]
    heavy = kind(alpha=0.1, tol=1e-7).fit(data.X, data.y, qid=data.qid, query_weight=weight).coef_
    ids = np.repeat(np.arange(repeated.n_queries), repeated.lengths)
    np.testing.assert_allclose(heavy, kind(alpha=0.1, tol=1e-7).fit(repeated.X, repeated.y, qid=ids).coef_, atol=1e-5)


@pytest.mark.parametrize(
    "solver", [tr.solvers.LBFGS(max_iter=100, tol=1e-12), tr.solvers.MiniBatch(epochs=100, eta=1.0)]
)
def test_early_stopping_keeps_the_best_and_stops(data, solver):
    train, valid = tr.query_train_test_split(data, test_size=0.5, random_state=0)
    make = {"solver": solver, "alpha": 0.0}
    ranker = tr.ListNet(patience=3, **make).fit_queries(train, valid=valid)
    path = ranker.trace_["valid"]
    assert tr.evaluate(ranker, valid, ["ndcg@10"]).mean["ndcg@10"] == path.max()
    assert len(path) == path.argmax() + 4 < 100
    assert len(tr.ListNet(**make).fit_queries(train, valid=valid).trace_["valid"]) > len(path)


def test_sampled_ties_depend_on_the_seed_alone(data):
    make = {"ties": "sampled", "solver": tr.solvers.MiniBatch(epochs=3)}
    one, two, other = (tr.ListMLE(random_state=seed, **make).fit_queries(data).coef_ for seed in (1, 1, 2))
    assert one.tobytes() == two.tobytes()
    assert one.tobytes() != other.tobytes()
    fixed = tr.ListMLE(random_state=1, ties="fixed", solver=tr.solvers.MiniBatch(epochs=3)).fit_queries(data).coef_
    assert one.tobytes() != fixed.tobytes()


def test_sampling_undoes_what_the_order_of_rows_would_teach():
    """Rows of a grade come sorted by a useless feature: fixed ties learn it, sampled ones do not."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.standard_normal((4000, 2)), rng.integers(0, 2, 4000).astype(float), np.repeat(np.arange(200), 20)
    X[:, 0] += y
    rows = np.lexsort((-X[:, 1], qid))
    X, y = X[rows], y[rows]
    fixed, sampled = (tr.ListMLE(ties=ties).fit(X, y, qid=qid).coef_ for ties in ("fixed", "sampled"))
    assert fixed[1] > 0.5
    assert abs(sampled[1]) < 0.1 < sampled[0]


def test_full_and_top_k_listnet_train(data):
    for k in (2, "full"):
        ranker = tr.ListNet(k=k, max_iter=30).fit_queries(data)
        assert ranker.solution_.value < Objective(data, ranker._loss()).value_and_grad(0 * ranker.coef_)[0]
    long = tr.datasets.make_graded(n_queries=3, n_docs=(30, 30), random_state=0)
    with pytest.raises(tr.InputError, match="query 0 of 30 documents"):
        tr.ListNet(k="full").fit_queries(long)


def test_the_transform_is_a_parameter_and_not_a_method(data):
    ranker = tr.ListNet(transform=Sigmoid(2.0))
    assert not hasattr(ranker, "transform")
    assert ranker.get_params()["transform"] == Sigmoid(2.0)
    assert clone(ranker).get_params() == ranker.get_params()
    assert ranker.set_params(transform="linear(1, 9)").get_params()["transform"] == "linear(1, 9)"
    pipeline = make_pipeline(StandardScaler(), tr.ListNet(transform="sigmoid")).fit(
        data.X, data.y, listnet__qid=data.qid
    )
    assert pipeline.predict(data.X).shape == (data.n_docs,)


def test_a_saved_transform_comes_back(data, tmp_path):
    ranker = tr.RankCosine(transform=Linear(2.0, 50.0), radius=0.5).fit_queries(data)
    ranker.save(tmp_path / "model.json")
    again = tr.load(tmp_path / "model.json")
    assert again.get_params() == ranker.get_params()


def test_verbose_prints_a_line_per_iteration(data, capsys):
    tr.ListNet(verbose=True, max_iter=3).fit_queries(data, valid=data)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all("objective" in line and "ndcg@10" in line for line in lines)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transform": "softmax"}, "transform must be"),
        ({"radius": -1}, "radius must be a number above 0"),
        ({"solver": "adam"}, "solver must be one of 'lbfgs', 'minibatch'"),
        ({"solver": "minibatch:eta=0"}, "eta must be a number above 0"),
        ({"solver": "minibatch:epochs=0"}, "epochs must be a whole number"),
        ({"solver": "minibatch:batch_size=x"}, "batch_size must be a number, got 'x'"),
        ({"solver": "minibatch:steps=3"}, "minibatch has no setting 'steps', it has epochs, batch_size, eta"),
        ({"solver": "minibatch", "tol": 1e-9}, "tol does nothing with solver='minibatch'"),
        ({"solver": tr.solvers.Newton()}, "solver must be one of 'lbfgs', 'minibatch' or a value"),
        ({"epochs": 3}, r"ListMLE\(epochs=...\) is now ListMLE\(solver=toprank.solvers.MiniBatch\(epochs=...\)\)"),
        ({"patience": 0}, "patience must be a whole number"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_parameters_are_named(data, change, message):
    with pytest.raises(tr.InputError, match=message):
        tr.ListMLE(**change).fit_queries(data)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_iterations_are_what_max_iter_says(max_iter):
    data = tr.datasets.make_graded(n_queries=30, random_state=0)
    with pytest.warns(ConvergenceWarning, match="ListMLE did not converge"):
        ranker = tr.ListMLE(max_iter=max_iter, tol=1e-12).fit_queries(data)
    assert ranker.n_iter_ == len(ranker.trace_["value"]) == max_iter


def test_sampled_orders_are_one_objective_and_seeds_differ_little():
    data = tr.datasets.make_graded(n_queries=60, random_state=0)
    fits = [tr.ListMLE(random_state=seed).fit_queries(data) for seed in (0, 1, 2)]
    assert all(fit.solution_.converged and fit.n_iter_ < 20 for fit in fits)
    assert max(np.linalg.norm(a.coef_ - b.coef_) for a in fits for b in fits) < 0.1 * np.linalg.norm(fits[0].coef_)
    few = [tr.ListMLE(random_state=seed, orders=1).fit_queries(data).coef_ for seed in (0, 1)]
    assert np.linalg.norm(few[0] - few[1]) > np.linalg.norm(fits[0].coef_ - fits[1].coef_)


def test_a_solver_is_kept_in_the_file(data, tmp_path):
    ranker = tr.ListNet(solver=tr.solvers.MiniBatch(epochs=2, eta=0.5)).fit_queries(data)
    ranker.save(tmp_path / "model.json")
    assert tr.load(tmp_path / "model.json").solver == ranker.solver


def test_a_file_of_before_says_the_settings_of_its_solver_in_the_parameters(tmp_path):
    content = json.loads((Path(__file__).parent / "stored" / "ListNet.json").read_text())
    content["params"] |= {"solver": "minibatch", "epochs": 7}
    (tmp_path / "old.json").write_text(json.dumps(content))
    assert tr.load(tmp_path / "old.json").solver == tr.solvers.MiniBatch(epochs=7)
