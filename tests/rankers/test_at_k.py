from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr
from tests.oracles import precision_at_k as oracle
from toprank.errors import InputError
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.surrogates import PrecAvg, PrecMax, PrecStruct

ONLINE = [
    tr.PerceptronAtK("avg", random_state=0),
    tr.PerceptronAtK("max", random_state=0),
    tr.SGDAtK("avg", random_state=0),
    tr.SGDAtK("max", random_state=0),
    tr.OnePassMiniBatch(random_state=0),
]
NAMES = [f"{type(r).__name__}-{getattr(r, 'variant', 'struct')}" for r in ONLINE]


@pytest.fixture(scope="module")
def rare():
    return make_classification(3000, n_features=12, weights=[0.9], class_sep=1.5, flip_y=0.02, random_state=3)


def streams(seed, rows=60, d=4, size=7, whole=False):
    """A stream that holds batches of one class too; `whole` gives small integers, so that sums are exact."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(rows, d)).astype(float) if whole else rng.normal(size=(rows, d))
    y = (rng.random(rows) < 0.4).astype(int)
    y[:size], y[-size:] = 0, 1
    batches = [(X[a : a + size].tolist(), y[a : a + size].tolist()) for a in range(0, rows, size)]
    return X, y, batches


def naive(ranker, batches, d):
    places = {"k": ranker.k, "kappa": ranker.kappa}
    if isinstance(ranker, tr.PerceptronAtK):
        run = oracle.perceptron_avg if ranker.variant == "avg" else oracle.perceptron_max
        return run(batches, d, **places)[0]
    pick = {"avg": oracle.avg_subgradient, "max": oracle.max_subgradient, "struct": oracle.struct_subgradient}
    radius = np.inf if ranker.radius is None else ranker.radius
    rule = pick[getattr(ranker, "variant", "struct")]
    return oracle.sgd(batches, d, rule, eta=ranker.eta, radius=radius, normalize=ranker.normalize, **places)


@pytest.mark.parametrize("ranker", ONLINE, ids=NAMES)
@pytest.mark.parametrize("places", [{"k": 1}, {"k": 3}, {"kappa": 0.5}, {"kappa": 1.0}], ids=str)
def test_updates_are_those_of_the_pseudo_code(ranker, places):
    for seed in range(3):
        X, y, batches = streams(seed)
        options = {"kappa": None, "k": None, **places, "batch_size": 7, "shuffle": None, "epochs": 2}
        if not isinstance(ranker, tr.PerceptronAtK):
            options |= {"eta": 0.7, "radius": 0.9, "normalize": seed % 2 == 0}
        ours = clone(ranker).set_params(**options)
        iterates = naive(ours, batches * 2, 4)
        # k is that of the judged list, so a batch is a list here; a share is the same for batches of one list.
        lists = np.arange(len(y)) // 7 if "k" in places else None
        for matrix in (X, csr_array(X)):
            last = clone(ours).set_params(average=False).fit(matrix, y, lists)
            np.testing.assert_allclose(last.coef_, iterates[-1], atol=1e-9)
            mean = clone(ours).set_params(average=True).fit(matrix, y, lists)
            np.testing.assert_allclose(mean.coef_, np.mean(iterates, axis=0), atol=1e-9)
            assert (last.n_batches_, last.n_skipped_) == (len(iterates), 2 * len(batches) - len(iterates))


@pytest.mark.parametrize("variant", ["avg", "max"])
def test_ties_are_broken_as_in_the_pseudo_code(variant):
    run = oracle.perceptron_avg if variant == "avg" else oracle.perceptron_max
    for seed in range(10):
        X, y, batches = streams(seed, rows=80, d=2, size=8, whole=True)
        expected, _ = run(batches, 2, k=2)
        # With k = 2 and D a ratio of whole numbers, only the max variant stays in whole numbers.
        ours = tr.PerceptronAtK(variant, k=2, epochs=1, shuffle=None, average=False).fit(X, y, np.arange(80) // 8)
        np.testing.assert_allclose(ours.coef_, expected[-1], atol=0 if variant == "max" else 1e-9)


def rosenblatt(X, y, order, w):
    """The classical perceptron: a row on the wrong side of 0, or on 0, is added or taken off."""
    mistakes = 0
    for i in order:
        if (w @ X[i]) * (1 if y[i] else -1) <= 0:
            w = w + X[i] if y[i] else w - X[i]
            mistakes += 1
    return w, mistakes


@pytest.mark.parametrize("variant", ["avg", "max"])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_batches_of_one_row_are_the_classical_perceptron(variant, form):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(200, 5)).astype(float)
    y = (X @ rng.normal(size=5) + rng.normal(size=200) > 1).astype(int)
    options = {"k": 1, "batch_size": 1, "average": False}
    ours = tr.PerceptronAtK(variant, shuffle=None, epochs=3, **options).fit(form(X), y)
    w, mistakes = rosenblatt(X, y, np.tile(np.arange(200), 3), np.zeros(5))
    assert ours.coef_.tolist() == w.tolist()
    assert (ours.n_updates_, ours.n_skipped_, ours.trace_["loss"].sum() * 200) == (mistakes, 0, pytest.approx(mistakes))
    stream = tr.PerceptronAtK(variant, **options)
    for rows in np.array_split(np.arange(200), 7):
        stream.partial_fit(form(X)[rows], y[rows])
    assert stream.coef_.tolist() == rosenblatt(X, y, np.arange(200), np.zeros(5))[0].tolist()
    for shuffle in ("rows", "batches"):
        ranker = tr.PerceptronAtK(variant, shuffle=shuffle, epochs=2, **options).fit(form(X), y)
        assert ranker.n_batches_ == 400
        assert ranker.score(X, y) > 0.8


def test_one_row_is_refused_where_it_teaches_nothing_and_two_rows_are_a_pairwise_perceptron():
    X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1]
    for kind in (tr.SGDAtK, tr.OnePassMiniBatch):
        with pytest.raises(InputError, match="a batch of one row has one class"):
            kind(k=1, batch_size=1).fit(X, y)
    ranker = tr.PerceptronAtK(k=1, batch_size=2, shuffle=None, epochs=1, average=False).fit(X, y)
    assert ranker.coef_.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("ranker", ONLINE, ids=NAMES)
def test_a_stream_of_batches_is_one_pass_and_survives_a_file(ranker, rare, tmp_path):
    X, y = rare
    whole = clone(ranker).set_params(shuffle=None, epochs=1, batch_size=100).fit(X, y)
    stream = clone(ranker).set_params(batch_size=100)
    for a in range(0, len(X), 100):
        stream.partial_fit(X[a : a + 100], y[a : a + 100])
        if a == 1000:
            stream.save(tmp_path / "model.json")
            stream = tr.load(tmp_path / "model.json")
    for name in ("coef_", "weights_", "drift_"):
        np.testing.assert_array_equal(getattr(stream, name), getattr(whole, name))
    assert (stream.n_batches_, stream.n_seen_, stream.n_positive_) == (whole.n_batches_, len(y), y.sum())


@pytest.mark.parametrize(
    ("labels", "positive", "options"),
    [
        (np.array(["no", "yes"]), "yes", {}),
        (np.array(["no", "yes"], dtype=object), "no", {"pos_label": "no"}),
        (np.array([-1, 1]), 1, {}),
        (np.array([False, True]), True, {}),
        (np.array([7.5, 2.5]), 2.5, {"pos_label": 2.5}),
    ],
    ids=["text", "text-reversed", "signs", "bools", "floats-reversed"],
)
def test_any_two_labels(labels, positive, options, rare):
    X, y = rare
    negative = next(label for label in labels if label != positive)
    given = np.where(y == 1, positive, negative).astype(labels.dtype)
    plain = tr.SGDAtK(random_state=0).fit(X, y)
    ranker = tr.SGDAtK(random_state=0, **options).fit(X, given)
    np.testing.assert_array_equal(ranker.coef_, plain.coef_)
    assert ranker.classes_.tolist() == [negative, positive]
    assert ranker.score(X, given) == plain.score(X, y)
    chosen = ranker.predict_labels(X, k=10)
    assert set(np.flatnonzero(chosen == positive)) == set(np.argsort(-ranker.predict(X), kind="stable")[:10])


def test_one_class_against_the_rest_and_grades():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(1, 8, size=600)
    ranker = tr.PerceptronAtK(pos_label=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(ranker.coef_, tr.PerceptronAtK(random_state=0).fit(X, y == 4).coef_)
    assert ranker.score(X, y) == ranker.score(X, y)
    with pytest.raises(InputError, match="y has 7 labels: name the positive one with pos_label"):
        tr.PerceptronAtK().fit(X, y)
    graded = tr.PerceptronAtK(random_state=0).fit(X, y % 3, qid=np.arange(600) // 20)
    binary = tr.PerceptronAtK(random_state=0).fit(X, y % 3 > 0, qid=np.arange(600) // 20)
    np.testing.assert_array_equal(graded.coef_, binary.coef_)
    assert graded.n_batches_ == 25 * 30


def test_each_query_is_a_batch_whatever_the_order_of_rows():
    X, y, _ = streams(5, rows=63, size=9)
    qid = np.repeat(np.arange(7), 9)
    batches = [(X[qid == q].tolist(), y[qid == q].tolist()) for q in range(7)]
    iterates, _ = oracle.perceptron_avg(batches, 4, k=2)
    options = {"k": 2, "epochs": 1, "shuffle": None, "average": False}
    np.testing.assert_allclose(tr.PerceptronAtK(**options).fit(X, y, qid=qid).coef_, iterates[-1])
    first = np.array([list(qid).index(q) for q in range(7)])
    mixed = np.concatenate([first, np.setdiff1d(np.arange(63), first)])
    mixed[7:] = np.concatenate([[i for i in range(63) if qid[i] == q and i not in first] for q in range(7)])
    np.testing.assert_allclose(tr.PerceptronAtK(**options).fit(X[mixed], y[mixed], qid=qid[mixed]).coef_, iterates[-1])
    stream = tr.PerceptronAtK(**options)
    for q in range(7):
        stream.partial_fit(X[qid == q], y[qid == q], qid=qid[qid == q])
    np.testing.assert_allclose(stream.coef_, iterates[-1])
    with pytest.raises(InputError, match="score needs qid"):
        stream.score(X, y)


def test_query_weights_weigh_the_steps():
    X, y, _ = streams(2, rows=40, size=10)
    qid = np.repeat([0, 1, 2, 3], 10)
    kept = tr.SGDAtK(k=2, random_state=0).fit(X, y, qid=qid, query_weight=[1, 1, 0, 1])
    doubled = tr.SGDAtK(k=2, random_state=0, eta=2.0).fit(X, y, qid=qid, query_weight=[0.5, 0.5, 0, 0.5])
    np.testing.assert_allclose(kept.coef_, doubled.coef_, atol=1e-12)


def test_the_first_rows_of_a_stream_may_hold_one_class(rare):
    X, y = rare
    zero = np.flatnonzero(y == 0)[:50]
    ranker = tr.PerceptronAtK().partial_fit(X[zero], y[zero])
    assert (ranker.n_batches_, ranker.n_skipped_, ranker.classes_.tolist()) == (0, 1, [0, 1])
    words = np.where(y == 1, "yes", "no")
    with pytest.raises(InputError, match="one class only"):
        tr.PerceptronAtK().partial_fit(X[zero], words[zero])
    ranker = tr.PerceptronAtK().partial_fit(X[zero], words[zero], classes=["no", "yes"]).partial_fit(X, words)
    assert ranker.n_batches_ == 6
    assert tr.PerceptronAtK(pos_label="yes").partial_fit(X[zero], words[zero]).partial_fit(X, words).n_batches_ == 6


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (np.where(np.arange(X.size).reshape(X.shape) == 5, np.nan, X), y),
        lambda X, y: (X[:, :3], y),
        lambda X, y: (X, np.where(np.arange(len(y)) == 3, 2, y)),
        lambda X, y: (X, y[:-1]),
    ],
    ids=["nan", "features", "label", "length"],
)
def test_bad_rows_change_nothing(spoil, rare):
    X, y = rare
    ranker = tr.SGDAtK(random_state=0).fit(X, y)
    before = {name: np.copy(getattr(ranker, name)) for name in ("coef_", "weights_", "drift_")}
    state = (ranker.n_batches_, ranker.n_seen_, ranker.labels_)
    with pytest.raises(ValueError, match=r"X|y|features"):
        ranker.partial_fit(*spoil(X, y))
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(ranker, name), value)
    assert state == (ranker.n_batches_, ranker.n_seen_, ranker.labels_)


def test_rows_sorted_by_class_are_dealt_out_and_the_user_is_told(rare):
    X, y = rare
    order = np.argsort(y, kind="stable")
    with pytest.warns(UserWarning, match=r"sorted by class: \d+ of 30 batches hold both"):
        ranker = tr.SGDAtK(batch_size=100, random_state=0).fit(X[order], y[order])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed = tr.SGDAtK(batch_size=100, random_state=0).fit(X, y)
        asked = tr.SGDAtK(batch_size=100, shuffle="rows", random_state=0).fit(X[order], y[order])
    assert min(ranker.score(X, y), asked.score(X, y)) > mixed.score(X, y) - 0.1
    assert ranker.n_skipped_ < 25 * 15


@pytest.mark.parametrize("shuffle", ["batches", "rows", None])
def test_the_seed_is_all_the_chance_there_is(shuffle, rare):
    X, y = rare
    ranker = tr.PerceptronAtK(shuffle=shuffle, batch_size=200, epochs=3, random_state=4)
    first, again = (clone(ranker).fit(X, y).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = clone(ranker).set_params(random_state=5).fit(X, y).coef_
    assert np.array_equal(first, other) == (shuffle is None)


def test_shuffled_rows_dense_and_sparse_agree(rare):
    X, y = rare
    ranker = tr.SGDAtK(shuffle="rows", batch_size=200, epochs=3, radius=1.0, random_state=4)
    dense, sparse = clone(ranker).fit(X, y), clone(ranker).fit(csr_array(X), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-9)
    assert np.linalg.norm(dense.weights_) <= 1 + 1e-12


def test_single_precision_and_read_only_memory_are_taken_as_they_are(rare):
    X, y = rare
    single = X.astype(np.float32)
    single.setflags(write=False)
    ranker = tr.PerceptronAtK(random_state=0).fit(single, y)
    assert ranker.score(single, y) == pytest.approx(tr.PerceptronAtK(random_state=0).fit(X, y).score(X, y), abs=0.05)


@pytest.mark.parametrize("ranker", [*ONLINE, tr.SVMPerf("avg"), tr.SVMPerf("struct", C=0.1)], ids=str)
def test_they_learn_what_is_on_top(ranker):
    X, y = make_classification(3000, weights=[0.9], class_sep=2.0, n_clusters_per_class=1, flip_y=0, random_state=0)
    assert clone(ranker).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) > 0.9


def test_scores_are_precisions_by_hand():
    X, y = np.array([[4.0], [3.0], [2.0], [1.0], [0.0]]), np.array([1, 0, 1, 1, 0])
    ranker = tr.PerceptronAtK(k=2, batch_size=5).fit(X, y)
    sign = np.sign(ranker.coef_[0])
    best = y[np.argsort(-sign * X[:, 0], kind="stable")]
    assert ranker.score(X, y) == best[:2].mean()
    whole = tr.PerceptronAtK(kappa=1.0, batch_size=5).fit(X, y)  # κ = 1: as many places as positives
    first = y[np.argsort(-np.sign(whole.coef_[0]) * X[:, 0], kind="stable")][:3]
    assert whole.score(X, y) == pytest.approx(first.mean())
    assert tr.precision_at_k(k=4)(ranker, X, y) == best[:4].mean()
    assert tr.precision_at_k(kappa=0.5)(ranker, X, y) == best[:2].mean()


@pytest.mark.filterwarnings("ignore:SVMPerf learned nothing")
def test_a_validation_set_keeps_the_best_epoch(rare):
    X, y = rare
    data, valid = (tr.QueryDataset.from_arrays(X[rows], y[rows]) for rows in (slice(0, 2000), slice(2000, None)))
    ranker = tr.PerceptronAtK(average=False, random_state=0, batch_size=100).fit_queries(data, valid)
    assert ranker.score(valid.X, valid.y) == ranker.trace_["valid"].max()
    assert len(ranker.trace_["valid"]) == 25
    assert tr.SVMPerf("avg").fit_queries(data, valid).trace_["valid"].shape == (1,)


def test_labels_of_the_top_default_to_the_share_seen_in_training(rare):
    X, y = rare
    ranker = tr.SGDAtK(kappa=0.5, random_state=0).fit(X, y)
    assert (ranker.predict_labels(X) == 1).sum() == np.ceil(0.5 * y.sum())
    places = tr.SGDAtK(k=5, random_state=0).fit(X, y)
    qid = np.arange(len(X)) % 10
    assert np.bincount(qid[places.predict_labels(X, qid=qid) == 1]).tolist() == [5] * 10


def test_model_selection_of_scikit_learn(rare):
    X, y = rare
    words = np.where(y == 1, "yes", "no")
    folds = StratifiedKFold(3)
    ranker = make_pipeline(StandardScaler(), tr.SGDAtK(random_state=0, epochs=3))
    for labels in (y, words):
        values = cross_val_score(ranker, X, labels, scoring=tr.precision_at_k(kappa=0.25), cv=folds)
        assert values.shape == (3,)
        assert values.min() > 0.4
    for scoring in ("average_precision", "roc_auc"):
        assert cross_val_score(tr.SGDAtK(random_state=0), X, y, scoring=scoring, cv=folds).min() > y.mean()
    grid = {"batch_size": [100, 500], "variant": ["avg", "max"]}
    search = GridSearchCV(tr.PerceptronAtK(random_state=0), grid, scoring=tr.precision_at_k(k=50), cv=folds).fit(
        X, words
    )
    assert search.best_estimator_.score(X, words) > 0.4


def test_the_scorer_takes_any_estimator_and_either_class(rare):
    X, y = rare
    words = np.where(y == 1, "yes", "no")
    model = LogisticRegression().fit(X, words)
    ranked = words[np.argsort(-model.decision_function(X), kind="stable")]
    assert tr.precision_at_k(k=40)(model, X, words) == (ranked[:40] == "yes").mean()
    assert tr.precision_at_k(k=40, pos_label="no")(model, X, words) == (ranked[::-1][:40] == "no").mean()


@pytest.mark.filterwarnings("ignore:SVMPerf learned nothing")
@pytest.mark.parametrize(("variant", "loss"), [("struct", PrecStruct), ("avg", PrecAvg), ("max", PrecMax)])
def test_cutting_planes_end_at_the_minimum(variant, loss, rare):
    X, y = rare
    ranker = tr.SVMPerf(variant, kappa=0.25, C=0.5, tol=1e-4).fit(X, y)
    objective = Objective(tr.QueryDataset.from_arrays(X, y), loss(kappa=0.25, normalize=True), L2(2.0))
    reached = objective.value_and_grad(ranker.coef_)[0]
    assert ranker.solution_.converged
    assert ranker.solution_.value == pytest.approx(reached)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            elsewhere = ranker.coef_ + size * rng.normal(size=len(ranker.coef_))
            assert objective.value_and_grad(elsewhere)[0] >= reached - ranker.solution_.gap


def test_a_minimum_at_zero_is_told():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 0]
    with pytest.warns(ConvergenceWarning, match="learned nothing.*raise kappa, or learn in batches"):
        ranker = tr.SVMPerf("avg", kappa=1.0).fit(X, y)
    assert ranker.coef_.tolist() == [0.0]
    assert "the minimum is at w = 0" in ranker.solution_.message


def test_svmperf_avg_is_struct_where_all_positives_count(rare):
    X, y = rare
    weights = [tr.SVMPerf(variant, kappa=1.0, C=0.5, tol=1e-6).fit(X, y).coef_ for variant in ("avg", "struct")]
    np.testing.assert_allclose(*weights, atol=1e-3)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (tr.PerceptronAtK("struct"), "variant must be one of 'avg', 'max'"),
        (tr.PerceptronAtK(k=3, kappa=0.5), "not both"),
        (tr.PerceptronAtK(batch_size=0), "batch_size"),
        (tr.PerceptronAtK(shuffle="all"), "shuffle"),
        (tr.PerceptronAtK(pos_label=9), "pos_label 9"),
        (tr.SGDAtK(eta=0.0), "eta"),
        (tr.SGDAtK(radius=-1.0), "radius"),
        (tr.SGDAtK(schedule="linear"), "schedule"),
        (tr.OnePassMiniBatch(radius=None), "radius"),
        (tr.SVMPerf(C=0.0), "C must be"),
        (tr.SVMPerf("ramp"), "variant"),
    ],
    ids=str,
)
def test_parameters_that_make_no_sense_are_named(ranker, message, rare):
    with pytest.raises(InputError, match=message):
        ranker.fit(*rare)


def test_one_class_teaches_nothing():
    with pytest.raises(InputError, match="one class only"):
        tr.SGDAtK().fit(np.eye(3), [1, 1, 1])


@pytest.mark.filterwarnings("ignore:SVMPerf learned nothing")
def test_save_keeps_everything_for_labels_of_text(rare, tmp_path):
    X, y = rare
    ranker = tr.SVMPerf("avg").fit(X, np.where(y == 1, "yes", "no"))
    ranker.save(tmp_path / "model.json")
    again = tr.load(tmp_path / "model.json")
    assert again.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(again.predict_labels(X), ranker.predict_labels(X))


def test_sparse_batches_of_one_row_are_read_within_their_arrays():
    code = "import numpy as np, scipy.sparse as sp, toprank as tr\nX, y = sp.csr_array(np.eye(50)), np.arange(50) % 2\n"
    code += "print(tr.PerceptronAtK(k=1, batch_size=1, epochs=1).fit(X, y).n_batches_)"
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"] + "-bounds"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "50\n", done.stderr
