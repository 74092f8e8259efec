"""The kernel perceptron: the primal with a linear kernel, a budget that is never passed, streams and state."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

import toprank as tr
from toprank.rankers.kernel_store import Counts, Store, squared_norm


def graded(n_queries=25):
    return tr.datasets.make_graded(n_queries=n_queries, n_docs=(2, 9), n_features=4, random_state=5)


@pytest.mark.parametrize("measure", ["ndcg@3", "ndcg", "map"])
def test_with_a_linear_kernel_it_is_the_primal(measure):
    data = graded()
    options = {"eta": 0.3, "epochs": 2, "random_state": 0}
    primal = tr.SlamPerceptron(measure, average=False, **options)
    kernel = tr.KernelSlamPerceptron(measure, kernel="linear", budget=10_000, **options)
    for part in (data[:10], data[10:]):
        primal.partial_fit_queries(part)
        kernel.partial_fit_queries(part)
    np.testing.assert_allclose(kernel.predict(data.X), primal.predict(data.X), rtol=1e-9, atol=1e-9)
    for column in ("measure", "surrogate", "mistake"):
        np.testing.assert_allclose(kernel.trace_[column], primal.trace_[column], rtol=1e-9, atol=1e-12)
    assert kernel.n_dropped_ == 0


@pytest.mark.parametrize("learner", [tr.SlamPerceptron, tr.KernelSlamPerceptron])
@pytest.mark.parametrize("measure", ["ndcg", "ndcg@160", "ndcg@150", "map"])
@pytest.mark.parametrize("swapped", [0, 149, 150])
def test_a_mistake_is_an_order_that_is_not_the_best_however_little_it_costs(learner, measure, swapped):
    options = {"kernel": "linear", "budget": 600} if learner is tr.KernelSlamPerceptron else {}
    ranker = learner(measure, eta=1.0, average=False, **options).partial_fit([[1.0], [0.0]], [1, 0])
    assert ranker.predict([[1.0]])[0] > 0
    y = np.repeat([31, 1, 0], [100, 50, 50])
    y[[swapped, swapped + 1]] = y[[swapped + 1, swapped]]  # at 149 the loss of NDCG is 4e-15
    ranker.partial_fit(np.arange(200.0, 0.0, -1.0)[:, None], y)
    assert ranker.trace_["mistake"][-1] == (swapped == 149)


@pytest.mark.parametrize(
    ("name", "gram"),
    [("rbf", lambda X, S: rbf_kernel(X, S, gamma=0.3)), ("linear", linear_kernel),
     ("polynomial", lambda X, S: polynomial_kernel(X, S, degree=3, gamma=0.3, coef0=0.5))],
)  # fmt: skip
def test_scores_are_scikit_learn_s_kernels(name, gram):
    data = graded()
    ranker = tr.KernelSlamPerceptron(kernel=name, gamma=0.3, coef0=0.5, budget=100, random_state=0).fit_queries(data)
    model = ranker.function_
    np.testing.assert_allclose(ranker.predict(data.X), gram(data.X, model.stored) @ model.alpha, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ranker.predict(csr_array(data.X)), ranker.predict(data.X), rtol=1e-12)


DROPS = ["oldest", "forgetron", "random", "smallest"]


@pytest.mark.parametrize("loss", ["slam", "minimax"])
@pytest.mark.parametrize("eta", [0.3, "sqrt:0.5", "adaptive"])
@pytest.mark.parametrize("average", [True, False, "auto"])
def test_schedules_averages_and_algorithm_3_are_those_of_the_linear_learners(loss, eta, average):
    data = graded()
    options = {"eta": eta, "average": average, "epochs": 3, "random_state": 0, "shuffle": False}
    primal = (tr.SlamPerceptron if loss == "slam" else tr.MinimaxPerceptron)("ndcg@3", **options).fit_queries(data)
    kernel = tr.KernelSlamPerceptron("ndcg@3", kernel="linear", budget=10_000, loss=loss, **options).fit_queries(data)
    np.testing.assert_allclose(kernel.predict(data.X), primal.predict(data.X), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(kernel.trace_["mistake"], primal.trace_["mistake"])


@pytest.mark.filterwarnings("ignore:.*rounds changed more documents than budget")
@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("budget", [1, 7, 40])
def test_the_budget_is_never_passed_and_whole_rounds_leave(drop, budget):
    data = graded()
    ranker = tr.KernelSlamPerceptron(drop=drop, budget=budget, random_state=0)
    held = set()
    for query in data:
        ranker.partial_fit(query.X, query.y)
        assert ranker.n_stored_ <= budget
        assert len(ranker.function_.alpha) == ranker.n_stored_
        assert abs(ranker.function_.alpha.sum()) < 1e-9  # each update adds up to 0, and leaves as a whole
        held.add(ranker.memory_)
    assert held == {budget * (4 + 8) * 8}
    assert ranker.n_dropped_ > 0


def test_documents_that_come_again_are_stored_once():
    data = graded()
    once = tr.KernelSlamPerceptron(budget=1000, epochs=6, random_state=0).fit_queries(data)
    assert once.n_dropped_ == 0
    assert once.n_stored_ == len(np.unique(once.function_.stored, axis=0)) <= data.n_docs
    assert once.trace_["mistake"].sum() * 2 > once.n_stored_  # they did come again
    # Two lists that share a document, and one of them twice.
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    ranker = tr.KernelSlamPerceptron("ndcg", budget=10, kernel="rbf")
    for rows, y in (([0, 1], [0, 1]), ([0, 2], [1, 0]), ([0, 1], [0, 1])):
        ranker.partial_fit(X[rows], y)
    assert ranker.n_stored_ == 3
    assert (ranker._store.counts.parts, ranker._store.counts.rounds) == (4, 2)


def played(drop, budget=4, updates=((1.0, 5.0), (2.0, -0.1), (3.0, 1.0))):
    """A store of two documents a round after rounds with updates c k(x, .) - c k(x + 0.5, .)."""
    ranker = tr.KernelSlamPerceptron(kernel="rbf", gamma=1.0, budget=budget, drop=drop, random_state=7)
    store, seen = Store.empty(ranker, 1, 7), []
    for x, c in updates:
        X, change = np.array([[x], [x + 0.5]]), np.array([c, -c])
        now, dropped = store.model(), store.counts.dropped
        before = store.settings.function(np.concatenate([now.stored, X]), np.concatenate([now.alpha, change]))
        store.add(X, change, squared_norm(store.settings.function(X, change)))
        if store.counts.dropped > dropped:
            seen.append((before, store.model()))
    return store, seen


def test_policies_drop_what_they_say():
    def held(drop):
        return sorted(played(drop)[0].model().stored[:, 0].tolist())

    assert held("oldest") == held("forgetron") == [2.0, 2.5, 3.0, 3.5]
    assert held("smallest") == [1.0, 1.5, 3.0, 3.5]
    assert len(held("random")) == 4


def test_the_forgetron_shrinks_what_stays():
    """Two rounds are held when the third comes: phi = 3^(-1/6), or what brings f to the length U R."""
    plain, shrunk = (dict(zip(*both(played(drop)[0]), strict=True)) for drop in ("oldest", "forgetron"))
    ((before, _),) = played("forgetron")[1]
    longest = np.sqrt(2 * 25 * (1 - np.exp(-0.25)))  # the first update, of two documents 0.5 apart
    limit = 0.25 * np.sqrt(3 / np.log(3)) * longest / np.sqrt(squared_norm(before))
    phi = min(3 ** (-1 / 6), limit)
    for document, alpha in plain.items():
        assert shrunk[document] == pytest.approx(phi * alpha)


def both(store):
    return store.model().stored[:, 0].tolist(), store.model().alpha.tolist()


@pytest.mark.parametrize("drop", DROPS)
def test_what_a_drop_changed_is_recorded(drop):
    """f after the step and what was kept: with <delta, u> and the norms, the price of the drop for any u."""
    ((before, after),) = played(drop)[1]
    x = np.linspace(0, 4, 9)[:, None]
    full = played(drop, budget=100)[0].model()
    np.testing.assert_allclose(before.scores(x), full.scores(x), atol=1e-12)
    assert after.alpha.tolist() == played(drop)[0].model().alpha.tolist()


def test_a_round_longer_than_the_budget_is_not_stored():
    store, _ = played("oldest", budget=1)
    assert store.counts == Counts(dropped=3)
    with pytest.warns(UserWarning, match=r"of .* rounds changed more documents than budget=2 holds and were skipped"):
        tr.KernelSlamPerceptron(budget=2, epochs=1).fit_queries(graded())


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("drop", DROPS)
def test_streams_and_files_go_on_with_the_same_bits(drop, average, tmp_path):
    data = graded()
    options = {"budget": 30, "drop": drop, "average": average, "random_state": 3}
    whole = tr.KernelSlamPerceptron(epochs=1, shuffle=False, **options).fit_queries(data)
    stream = tr.KernelSlamPerceptron(**options)
    for q, query in enumerate(data):
        stream.partial_fit(query.X, query.y)
        if q == 11:
            stream.save(tmp_path / "model.json")
            stream = tr.load(tmp_path / "model.json")
    assert np.array_equal(stream.function_.stored, whole.function_.stored)
    assert np.array_equal(stream.function_.alpha, whole.function_.alpha)
    assert np.array_equal(stream._store.totals, whole._store.totals)


def test_a_kernel_learns_what_a_line_cannot():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1500, 2))
    y = (np.abs(X[:, 0]) > 1).astype(float) + (np.abs(X[:, 1]) > 1)
    qid = np.repeat(np.arange(150), 10)
    kernel = tr.KernelSlamPerceptron("ndcg", gamma=1.0, budget=300, eta=0.5, random_state=0).fit(X, y, qid)
    line = tr.SlamPerceptron("ndcg", random_state=0).fit(X, y, qid)
    assert kernel.score(X, y, qid) > 0.95 > line.score(X, y, qid)


def test_early_stopping_keeps_the_best_epoch():
    data, valid = graded(), graded(15)[5:]
    options = {"budget": 30, "eta": 1.0, "drop": "random", "random_state": 2}
    ranker = tr.KernelSlamPerceptron(epochs=20, patience=2, **options).fit_queries(data, valid=valid)
    reached = ranker.trace_["valid"]
    best = int(np.argmax(reached)) + 1
    assert len(reached) == ranker.n_epochs_ == min(20, best + 2)
    alone = tr.KernelSlamPerceptron(epochs=best, **options).fit_queries(data)
    assert np.array_equal(alone.predict(data.X), ranker.predict(data.X))
    assert tr.measure("ndcg@10").mean(ranker.predict(valid.X), valid.y, valid.ptr) == reached[best - 1]
    assert ranker.n_stored_ <= 30


def test_short_lists_teach_under_every_convention():
    """LETOR 4 gives NDCG@10 of a list of five as 0 whatever its order, which is for evaluation."""
    data = tr.datasets.make_graded(n_queries=20, n_docs=(5, 5), n_features=4, random_state=0)
    letor4 = tr.measure("ndcg@10", convention="letor4")
    own = tr.measure("ndcg@5", convention="letor4")  # the same for lists of five, and none of them is short
    for kind in (partial(tr.KernelSlamPerceptron, kernel="linear", budget=500), tr.SlamPerceptron):
        short, expected = (kind(m, epochs=1, shuffle=False).fit_queries(data) for m in (letor4, own))
        np.testing.assert_array_equal(short.trace_["measure"], expected.trace_["measure"])
        np.testing.assert_array_equal(short.predict(data.X), expected.predict(data.X))
        assert len(short.trace_["measure"]) == 20
        assert short.certify(data)[1].assumptions_hold


def test_bad_input_changes_nothing():
    data = graded()
    ranker = tr.KernelSlamPerceptron(kernel="polynomial", degree=9, budget=20).partial_fit_queries(data[:5])
    before = ranker.predict(data.X)
    for X in (np.full((3, 4), np.nan), np.ones((3, 3)), np.full((3, 4), 1e200)):
        with pytest.raises(ValueError, match=r"X has|overflow"):
            ranker.partial_fit(X, [0, 1, 2])
    assert np.array_equal(ranker.predict(data.X), before)
    with pytest.raises(tr.InputError, match="cannot change in mid-stream"):
        ranker.set_params(budget=3).partial_fit_queries(data)


@pytest.mark.parametrize(
    "bad", [{"budget": 0}, {"drop": "some"}, {"kernel": "tree"}, {"gamma": 0}, {"eta": -1}, {"patience": 0}]
)
def test_bad_parameters_are_named(bad):
    with pytest.raises(tr.InputError, match=next(iter(bad))):
        tr.KernelSlamPerceptron(**bad).fit_queries(graded())
