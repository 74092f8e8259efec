"""Online rankers: Algorithms 2 and 3 and online ListNet against plain Python, streams, state, bad input."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

import toprank as tr
from tests.oracles import perceptrons as oracle
from tests.rankers.test_laws import interleaved
from toprank.solvers.steps import Scaling, Steps
from toprank.solvers.stream import OnlineDescent
from toprank.surrogates import ListNet, Minimax, PairwiseHinge, Slam

RANKERS = [tr.SlamPerceptron, tr.MinimaxPerceptron, tr.OnlineListNet]
ALGORITHM = {tr.SlamPerceptron: "slam", tr.MinimaxPerceptron: "minimax", tr.OnlineListNet: "listnet"}
TARGETS = [("ndcg@3", "ndcg", 3), ("ndcg", "ndcg", None), ("map", "map", None)]


def graded(n_queries=40, n_docs=(2, 9), n_features=5, **options):
    return tr.datasets.make_graded(n_queries=n_queries, n_docs=n_docs, n_features=n_features, random_state=3, **options)


def split(data):
    return [(data.X[a:b].tolist(), data.y[a:b].tolist()) for a, b in pairwise(data.ptr)]


def usable(data, kind):
    """Lists that count as rounds of the plain algorithms."""
    keep = data.informative.copy()
    if kind == "map":
        keep &= np.array([0 < (data.y[a:b] > 0).sum() < b - a for a, b in pairwise(data.ptr)])
    return data[keep]


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize(("name", "measure", "k"), TARGETS)
@pytest.mark.parametrize(("eta", "margin"), [(1.0, 1.0), (0.03, 2.0)])
def test_rounds_are_the_algorithm_s(kind, name, measure, k, eta, margin):
    data = usable(graded(), measure)
    if kind is tr.OnlineListNet:
        margin = 1.0
    extra = {} if kind is tr.OnlineListNet else {"margin": margin}
    ranker = kind(name, eta=eta, average=False, **extra).partial_fit_queries(data)
    history, rows = oracle.run(split(data), ALGORITHM[kind], measure, k, eta, margin)
    trace = ranker.trace_
    columns = np.column_stack([trace[c] for c in ("measure", "surrogate", "mistake", "znorm2")])
    np.testing.assert_allclose(columns, rows, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ranker.last_coef_, history[-1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ranker.average_coef_, np.mean(history, axis=0), rtol=1e-9, atol=1e-9)


def thinned(data):
    """X as CSR: of three lists one stores all its values, one some, one few, and each is read in its own way."""
    least = np.take([0, 0.7, 1.8], np.arange(data.n_queries) % 3).repeat(np.diff(data.ptr))
    return csr_array(data.X * (np.abs(data.X) > least[:, None]))


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_that_stores_everything_is_dense(kind, dtype):
    data = graded().with_X(graded().X.astype(dtype))
    dense = kind(random_state=0).fit_queries(data)
    full = kind(random_state=0).fit_queries(data.with_X(csr_array(data.X)))
    np.testing.assert_allclose(full._state.weights, dense._state.weights, rtol=1e-9, atol=1e-12)


def in_python(learner):
    """The same learner as a Python loop, which calls its loss and its measure."""
    same = replace(learner)
    vars(same)["_kernel"] = None
    return same


@pytest.mark.parametrize("rule", ["0.5", "sqrt:0.5", "adaptive:0.5"])
@pytest.mark.parametrize("scaling", list(Scaling))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("surrogate", "target", "always"),
    [(Slam("ndcg@3", within="score"), "ndcg@3", False), (Slam("map"), "map", True), (Minimax(), "ndcg", False),
     (Minimax(), "ndcg@10:letor4", False),
     (ListNet(truth="gains"), "ndcg@3", True)],
    ids=str,
)  # fmt: skip
def test_the_kernels_do_what_the_python_loop_does(surrogate, target, always, sparse, scaling, rule):
    data = graded(n_queries=25)
    X = thinned(data) if sparse else data.X
    steps = Steps.parse(float(rule) if ":" not in rule else rule)
    learner = OnlineDescent(surrogate, tr.measure(target), steps, always, scaling, compare=True)
    compiled, plain = learner.start(5), learner.start(5)
    weight = np.random.default_rng(0).uniform(0, 2, data.n_queries)
    weight[3] = 0
    order = np.random.default_rng(1).permutation(data.n_queries)
    rows = learner.play(compiled, X, data.y, data.ptr, order, weight)
    expected = in_python(learner).play(plain, X, data.y, data.ptr, order, weight)
    np.testing.assert_allclose(rows, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(compiled.weights, plain.weights, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(compiled.totals, plain.totals, rtol=1e-8)


@pytest.mark.parametrize("truth", ["grades", "gains"])
@pytest.mark.parametrize("factor", [1, 9, 1.3])
def test_listnet_targets_of_high_and_real_grades(truth, factor):
    """Grades up to 36: exp of their gains does not fit into a number, its share in the list does."""
    data = graded()
    data = replace(data, y=data.y * factor)
    learner = OnlineDescent(ListNet(truth=truth), tr.measure("ndcg@3"), Steps(0.1), always=True)
    compiled, plain = learner.start(5), learner.start(5)
    rows = learner.play(compiled, data.X, data.y, data.ptr)
    expected = in_python(learner).play(plain, data.X, data.y, data.ptr)
    np.testing.assert_allclose(rows, expected, rtol=1e-8, atol=1e-10)


def test_long_lists_many_grades_and_real_grades():
    """Lists past the limit of counting, grades that are no small whole numbers."""
    rng = np.random.default_rng(0)
    for y in (rng.integers(0, 3, 700), rng.integers(0, 50, 700), rng.random(700), rng.integers(0, 3, 700) + 0.5):
        X = rng.standard_normal((700, 3)).round(1)
        data = tr.QueryDataset.from_arrays(X, y * 0.1 if y.max() > 30 else y, np.repeat([0, 1], [300, 400]))
        for name in ("ndcg@10", "ndcg", "map:above=0.6"):
            target = tr.measure(name)
            learner = OnlineDescent(Slam(target, within="score"), target, Steps(0.5))
            compiled, plain = learner.start(3), learner.start(3)
            order = np.array([0, 1, 0, 1])
            rows = learner.play(compiled, data.X, data.y, data.ptr, order)
            expected = in_python(learner).play(plain, data.X, data.y, data.ptr, order)
            np.testing.assert_allclose(rows, expected, rtol=1e-9)
            np.testing.assert_allclose(compiled.weights, plain.weights, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("scale", [None, "running", "query"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_stream_is_one_epoch_in_the_same_order(kind, scale, sparse):
    data = graded(blank=0.1)
    if sparse:
        data = data.with_X(thinned(data))
    whole = kind(scale=scale, epochs=1, shuffle=False).fit_queries(data)
    stream, batches = kind(scale=scale), kind(scale=scale)
    for query in data:
        stream.partial_fit(query.X, query.y)
    for start in range(0, data.n_queries, 7):
        part = data[start : start + 7]
        batches.partial_fit(part.X, part.y, qid=part.qid)
    for other in (stream, batches):
        assert np.array_equal(other._state.weights, whole._state.weights)
        assert np.array_equal(other.coef_, whole.coef_)
        assert other.totals_ == pytest.approx(whole.totals_)
    assert stream.trace_.average("measure")[-1:] == pytest.approx(whole.trace_.average("measure")[-1:])


@pytest.mark.parametrize("kind", RANKERS)
def test_a_stream_of_many_kinds_of_grades_is_one_epoch_too(kind):
    """Lists of whole, high and real grades: a list is learned from alike, whatever came in the same call."""
    data = graded()
    factor = np.repeat(np.resize([1.0, 0.5, 9.0, 1.0, 1.0], data.n_queries), data.lengths)
    data = replace(data, y=data.y * factor)
    options = {"truth": "gains"} if kind is tr.OnlineListNet else {}
    whole = kind(epochs=1, shuffle=False, **options).fit_queries(data)
    stream = kind(**options)
    for query in data:
        stream.partial_fit(query.X, query.y)
    assert np.array_equal(stream._state.weights, whole._state.weights)


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("scale", [None, "running"])
def test_saved_in_mid_stream_it_goes_on_with_the_same_bits(kind, scale, tmp_path):
    data = graded()
    ranker = kind(scale=scale, random_state=1).fit_queries(data[:15])
    ranker.partial_fit_queries(data[15:20])
    ranker.save(tmp_path / "model.json")
    resumed = tr.load(tmp_path / "model.json")
    for each in (ranker, resumed):
        each.partial_fit_queries(data[20:])
        each.set_params(warm_start=True, epochs=2).fit_queries(data)
    assert np.array_equal(ranker.coef_, resumed.coef_)
    assert np.array_equal(ranker._state.totals, resumed._state.totals)


def test_a_damaged_state_is_refused(tmp_path):
    data = graded()
    ranker = tr.SlamPerceptron().fit_queries(data)
    ranker.save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    for old, new in (('"shape":[3,5]', '"shape":[5,3]'), ('"scaling":"none"', '"scaling":"some"')):
        compact = text.replace(" ", "").replace("\n", "")
        assert old in compact
        (tmp_path / "bad.json").write_text(compact.replace(old, new))
        with pytest.raises(tr.InputError, match="state"):
            tr.load(tmp_path / "bad.json")


BAD = {
    "width": (lambda X, y: (X[:, :-1], y), "features"),
    "nan": (lambda X, y: (np.where(np.arange(X.size).reshape(X.shape) == 3, np.nan, X), y), "NaN"),
    "infinity": (lambda X, y: (np.where(np.arange(X.size).reshape(X.shape) == 3, np.inf, X), y), "infinity"),
    "empty": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "label": (lambda X, y: (X, np.where(np.arange(len(y)) == 1, np.nan, y)), "finite grade"),
    "negative": (lambda X, y: (X, y - 5), "negative grade"),
    "length": (lambda X, y: (X, y[:-1]), "labels for"),
    "overflow": (lambda X, y: (X * 1e200, y), "overflow"),
}


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("how", BAD)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_bad_input_in_mid_stream_changes_nothing(kind, how):
    data = graded()
    ranker = kind(scale="running").partial_fit_queries(data[:10])
    before = {key: np.array(value) for key, value in ranker.state_.items()}
    coef, queries, trace = ranker.coef_.copy(), ranker.n_queries_in_, dict(ranker.trace_)
    spoil, message = BAD[how]
    bad = spoil(data[11].X.copy(), data[11].y.copy())
    with pytest.raises(ValueError, match=message):
        ranker.partial_fit(*bad)
    assert all(np.array_equal(value, before[key]) for key, value in ranker.state_.items())
    assert np.array_equal(ranker.coef_, coef)
    assert ranker.n_queries_in_ == queries
    assert all(np.array_equal(ranker.trace_[key], trace[key]) for key in trace)
    fresh = kind(scale="running").partial_fit_queries(data[:10])
    ranker.partial_fit(data[12].X, data[12].y)
    fresh.partial_fit(data[12].X, data[12].y)
    assert np.array_equal(ranker.coef_, fresh.coef_)


@given(eta=st.sampled_from([0.3, 1e-3, 7.7, 1e3]), rule=st.sampled_from(["constant", "sqrt", "adaptive"]))
@settings(max_examples=12, deadline=None)
def test_minimax_rankings_do_not_depend_on_eta(eta, rule):
    data = graded()
    data = data.with_X(data.X.round(1))  # whole tenths: many scores tie up to rounding
    kept = [tr.MinimaxPerceptron(eta=f"{rule}:{e}").partial_fit_queries(data) for e in (eta, 1000 * eta)]
    for column in ("measure", "mistake", "znorm2"):
        assert np.array_equal(kept[0].trace_[column], kept[1].trace_[column])
    assert np.array_equal(kept[0]._state.weights, kept[1]._state.weights)


def test_slam_rankings_do_depend_on_eta():
    data = graded()
    small, large = (tr.SlamPerceptron(eta=eta).partial_fit_queries(data).trace_["measure"] for eta in (1e-3, 1.0))
    assert not np.array_equal(small, large)


@pytest.mark.parametrize("kind", RANKERS)
def test_float32_and_float64_agree(kind):
    data = graded()
    single = data.with_X(data.X.astype(np.float32))
    double = data.with_X(single.X.astype(np.float64))
    a, b = (kind("ndcg", eta=0.01, epochs=2, random_state=0).fit_queries(d) for d in (single, double))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", RANKERS)
def test_equal_rows_score_alike_and_queries_may_come_mixed(kind):
    data = graded()
    X = data.X.copy()
    X[1::2] = X[: len(X) - len(X) % 2 : 2]  # every second row is the one before it
    rows = interleaved(data, 0)
    grouped = kind(random_state=0).fit(X, data.y, qid=data.qid)
    mixed = kind(random_state=0).fit(X[rows], data.y[rows], qid=data.qid[rows])
    scores = grouped.predict(X)
    assert (scores[1::2] == scores[: len(X) - len(X) % 2 : 2]).all()
    assert mixed.predict(X).tobytes() == scores.tobytes()
    assert len(set(scores)) > data.n_docs / 4  # it has learned something
    assert mixed.n_queries_in_ == data.n_queries


@pytest.mark.parametrize("kind", RANKERS)
def test_lists_of_one_grade_are_no_rounds(kind):
    data = graded()
    y = data.y.copy()
    for q in (0, 4, 9):
        y[data.ptr[q] : data.ptr[q + 1]] = 2
    spoiled = replace(data, y=y)
    keep = np.ones(data.n_queries, dtype=bool)
    keep[[0, 4, 9]] = False
    a = kind().partial_fit_queries(spoiled)
    b = kind().partial_fit_queries(spoiled[keep])
    assert np.array_equal(a.coef_, b.coef_)
    assert a.totals_["rounds"] == b.totals_["rounds"]
    with pytest.raises(tr.InputError, match="no query is informative"):
        kind().fit(data.X, np.ones(data.n_docs), qid=data.qid)


def test_the_running_scale_makes_units_irrelevant():
    data = graded(n_queries=60)
    units = np.array([1.0, 1024.0, 1 / 64, 2.0**20, 1.0])
    plain, scaled = (
        tr.SlamPerceptron(scale="running", epochs=1, shuffle=False).fit_queries(d)
        for d in (data, data.with_X(data.X * units))
    )
    np.testing.assert_allclose(plain.coef_, scaled.coef_ * units, rtol=1e-9)
    shifted = data.with_X(data.X + 100)  # a shift of a whole list is no news either
    moved = tr.SlamPerceptron(scale="running", epochs=1, shuffle=False).fit_queries(shifted)
    np.testing.assert_allclose(plain.coef_, moved.coef_, rtol=1e-6, atol=1e-9)


def test_the_query_scale_makes_each_list_s_unit_irrelevant():
    data = graded()
    unit = np.repeat(2.0 ** np.random.default_rng(0).integers(-8, 8, data.n_queries), data.lengths)
    plain, scaled = (
        tr.SlamPerceptron(scale="query", epochs=1, shuffle=False).fit_queries(d)
        for d in (data, data.with_X(data.X * unit[:, None]))
    )
    np.testing.assert_allclose(plain.coef_, scaled.coef_, rtol=1e-9)


def test_early_stopping_keeps_the_best_epoch():
    data, valid = graded(), graded(n_queries=30, noise=2.0)
    ranker = tr.SlamPerceptron(eta=10.0, epochs=30, patience=3, random_state=0, average=False)
    ranker.fit_queries(data, valid=valid)
    reached = ranker.trace_["valid"]
    best = int(np.argmax(reached)) + 1
    assert len(reached) == ranker.n_epochs_
    assert ranker.n_epochs_ == min(30, best + 3)
    alone = clone(ranker).set_params(epochs=best, patience=None).fit_queries(data)
    assert np.array_equal(alone.coef_, ranker.coef_)
    assert tr.measure("ndcg@10").mean(ranker.predict(valid), valid.y, valid.ptr) == reached[best - 1]


def test_average_auto_takes_what_ranks_better_on_the_validation_set():
    data, valid = graded(), graded(n_queries=30, noise=2.0)
    chosen = {
        average: tr.SlamPerceptron(average=average, epochs=4, random_state=0).fit_queries(data, valid=valid)
        for average in (True, False, "auto")
    }
    best = max((True, False), key=lambda average: chosen[average].trace_["valid"].max())
    assert chosen["auto"].averaged_ == best
    assert np.array_equal(chosen["auto"].coef_, chosen[best].coef_)
    both = np.maximum(chosen[True].trace_["valid"], chosen[False].trace_["valid"])
    assert np.array_equal(chosen["auto"].trace_["valid"], both)
    with pytest.raises(tr.InputError, match="average must be"):
        tr.SlamPerceptron(average="mean").fit_queries(data)


@pytest.mark.parametrize("scale", [None, "running", "query"])
@pytest.mark.parametrize("sparse", [False, True])
def test_average_auto_compares_both_in_every_eighth_round_before_its_step(sparse, scale):
    data = graded()
    if sparse:
        data = data.with_X(csr_array(data.X))
    ranker = tr.SlamPerceptron("ndcg@3", scale=scale, eta=0.5)
    measure, last, average = tr.measure("ndcg@3"), 0.0, 0.0
    for query in data:
        rounds = ranker.totals_["rounds"] if hasattr(ranker, "model_") else 0
        if rounds % 8 == 7 and scale != "running":  # a running scale changes with the list that is to be ranked
            dense = query.X.toarray() if sparse else query.X
            whole = np.array([0, len(query.y)])
            last += measure.per_query(dense @ ranker.last_coef_, query.y, whole)[0]
            average += measure.per_query(dense @ ranker.average_coef_, query.y, whole)[0]
        ranker.partial_fit(query.X, query.y)
        assert ranker.averaged_ == (ranker.totals_["average"] >= ranker.totals_["last"])
        assert np.array_equal(ranker.coef_, ranker.average_coef_ if ranker.averaged_ else ranker.last_coef_)
    if scale != "running":
        assert ranker.totals_["last"] == pytest.approx(last)
        assert ranker.totals_["average"] == pytest.approx(average)
    assert 0 < ranker.totals_["average"] <= 5


@pytest.mark.filterwarnings("ignore:the best step size.*is at an end of the grid")
def test_eta_is_chosen_on_the_past_alone():
    data = graded(n_queries=60)
    ranker = tr.SlamPerceptron()
    choice = tr.choose_eta(ranker, data[:30], etas=[1e-3, 0.1, "adaptive:1"])
    assert set(choice.averages) == {1e-3, 0.1, "adaptive:1"}
    assert choice.averages[choice.eta] == max(choice.averages.values())
    one = tr.SlamPerceptron(eta=0.1).partial_fit_queries(data[:30]).totals_
    assert choice.averages[0.1] == one["measure"] / one["rounds"]
    assert not hasattr(ranker, "model_")


def test_any_surrogate_and_measure_can_be_learned_online():
    data = graded(n_queries=60)
    learner = OnlineDescent(PairwiseHinge(), tr.measure("mrr"), Steps.parse("adaptive"), always=True)
    state = learner.start(5)
    rows = learner.play(state, data.X, data.y, data.ptr)
    assert rows[-20:, 1].mean() < rows[:20, 1].mean()
    ranker = tr.MinimaxPerceptron("err@5", random_state=0).fit_queries(data)
    assert ranker.score(data.X, data.y, data.qid) > tr.measure("err@5").mean(np.zeros(data.n_docs), data.y, data.ptr)


def test_memory_does_not_grow_with_the_stream():
    data = graded()
    ranker = tr.SlamPerceptron()
    sizes = []
    for _ in range(3):
        for query in data:
            ranker.partial_fit(query.X, query.y)
        held = [*ranker.trace_.values(), ranker._state.weights, ranker._state.totals, ranker.coef_]
        sizes.append(sum(array.size for array in held))
    assert sizes[0] == sizes[1] == sizes[2]
    assert ranker.totals_["rounds"] == 3 * data.informative.sum()


@pytest.mark.parametrize(
    ("params", "message"),
    [({"eta": 0}, "eta must be"), ({"eta": "fast"}, "eta must be"), ({"eta": "sqrt:x"}, "eta must end"),
     ({"epochs": 0}, "epochs must be"), ({"scale": "some"}, "scale must be"), ({"margin": -1}, "margin must be"),
     ({"patience": 0}, "patience must be"), ({"measure": "mrr"}, "SLAM has weights")],
)  # fmt: skip
def test_bad_parameters_are_named(params, message):
    data = graded()
    with pytest.raises(tr.InputError, match=message):
        tr.SlamPerceptron(**params).fit_queries(data)


def test_scale_cannot_change_in_mid_stream_but_eta_can():
    data = graded()
    ranker = tr.SlamPerceptron(eta=0.5, average=False).partial_fit_queries(data[:20])
    before = ranker.coef_.copy()
    ranker.set_params(eta=0.25).partial_fit(np.ones((2, 5)), np.array([0, 0]))
    np.testing.assert_allclose(ranker.coef_, before, rtol=1e-15)
    with pytest.raises(tr.InputError, match="scale cannot change"):
        ranker.set_params(scale="query").partial_fit_queries(data[20:])
