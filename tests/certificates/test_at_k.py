from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import toprank as tr
from tests.oracles import precision_at_k as oracle
from toprank.certificates import at_k, convergence
from toprank.certificates.margins import Margins, largest_margin, realised_margins
from toprank.errors import InputError
from toprank.solvers.at_k import LearnerAtK
from toprank.solvers.batches import Batches
from toprank.surrogates import PrecAvg, PrecMax, PrecRamp
from toprank.surrogates.precision_at_k import MistakesAvg, MistakesMax


@st.composite
def lists(draw):
    y = draw(st.lists(st.integers(0, 1), min_size=2, max_size=8).filter(lambda v: 0 < sum(v) < len(v)))
    s = draw(st.lists(st.integers(-8, 8).map(lambda v: v / 2), min_size=len(y), max_size=len(y)))
    return s, y, draw(st.integers(1, sum(y)))


@settings(deadline=None, max_examples=150)
@given(lists())
def test_margins_are_those_of_the_definitions_and_fall_from_weak_to_strong(case):
    s, y, k = case
    found = realised_margins(s, y, k=k)
    assert found.weak == oracle.weak_margin(s, y, k)
    assert found.k == pytest.approx(oracle.k_margin(s, y, k))
    assert found.strong == oracle.strong_margin(s, y)
    assert found.weak >= found.k - 1e-12 >= found.strong - 2e-12


@settings(deadline=None, max_examples=150)
@given(lists())
def test_a_margin_of_one_makes_its_surrogate_zero(case):
    s, y, k = case
    for kind, loss in (("weak", PrecRamp), ("k", PrecAvg), ("strong", PrecMax)):
        margin = getattr(realised_margins(s, y, k=k), kind)
        if margin > 0:
            # 1.001 and not 1: a quotient may fall a rounding error short of the margin it stands for.
            value, _ = loss(k=k).value_and_grad(np.array(s) * (1.001 / margin), y, [0, len(s)])
            assert value == pytest.approx(0, abs=1e-12), kind


def test_the_margin_over_lists_is_the_smallest_and_one_class_has_none():
    assert realised_margins([2.0, 1.0, 9.0, 5.0, 4.5], [1, 0, 1, 1, 0], [0, 2, 3, 5], k=1) == Margins(0.5, 0.5, 0.5)
    with pytest.raises(InputError, match="no list holds both classes"):
        realised_margins([1.0, 2.0], [1, 1], k=1)


def blobs(seed, gap, rows=200, d=5):
    """Rows on both sides of a plane through a random direction, `gap` apart; the negatives' side is the larger."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    X, y = rng.normal(size=(rows, d)), (rng.random(rows) < 0.3).astype(int)
    X += np.outer(np.where(y == 1, gap / 2 + rng.random(rows), -gap / 2 - rng.random(rows)) - X @ u, u)
    return X, y, u


@pytest.mark.parametrize("kind", ["k", "strong"])
def test_the_search_meets_its_own_bound_and_beats_the_planted_margin(kind):
    X, y, u = blobs(0, gap=0.5)
    data = tr.QueryDataset.from_arrays(X, y)
    found = largest_margin(data, kind, k=3, tol=1e-6, max_iter=500)
    assert found.upper - found.margin <= 1e-5
    assert np.linalg.norm(found.w) == pytest.approx(1)
    assert getattr(realised_margins(X @ found.w, y, k=3), kind) == pytest.approx(found.margin)
    assert found.margin >= getattr(realised_margins(X @ u, y, k=3), kind) - 1e-6
    rng = np.random.default_rng(1)
    for _ in range(100):
        w = found.w + 0.1 * rng.normal(size=5)
        assert getattr(realised_margins(X @ (w / np.linalg.norm(w)), y, k=3), kind) <= found.upper + 1e-9


def test_the_strong_margin_of_two_triangles_is_the_distance_between_them():
    X, y = [[0.0, 0.0], [0.0, 2.0], [3.0, 0.0], [3.0, 2.0], [5.0, 1.0]], [0, 0, 1, 1, 1]
    found = largest_margin(tr.QueryDataset.from_arrays(X, y), "strong", k=1, tol=1e-8)
    assert found.margin == pytest.approx(3.0)
    np.testing.assert_allclose(found.w, [1.0, 0.0], atol=1e-6)


def test_the_search_for_a_weak_margin_finds_one_that_no_stronger_kind_has():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(50, 3)), rng.normal(size=(3, 3)) * 0.1 + [6.0, 0.0, 0.0], rng.normal(size=(7, 3))])
    y = np.r_[np.zeros(50), np.ones(10)]
    data = tr.QueryDataset.from_arrays(X, y)
    weak, strong = largest_margin(data, "weak", k=3), largest_margin(data, "strong", k=3)
    assert weak.margin == pytest.approx(realised_margins(X @ weak.w, y, k=3).weak)
    assert weak.margin > 2 > 0 >= strong.margin
    assert math.isinf(weak.upper)


def test_where_no_direction_separates_the_bound_says_so():
    X, y = [[0.0], [1.0], [2.0]], [1, 0, 1]
    found = largest_margin(tr.QueryDataset.from_arrays(X, y), "strong", k=1)
    assert found.upper == pytest.approx(0, abs=1e-9)
    assert found.margin <= 0


def test_sparse_data_and_many_lists_are_searched_too():
    X, y, _ = blobs(3, gap=1.0)
    qid = np.arange(200) // 20
    dense = largest_margin(tr.QueryDataset.from_arrays(X, y, qid), "k", kappa=0.5)
    sparse = largest_margin(tr.QueryDataset.from_arrays(csr_array(X), y, qid), "k", kappa=0.5)
    assert dense.margin == pytest.approx(sparse.margin, rel=1e-6)
    assert dense.margin > 0


def one_pass(loss, X, y, batch_size):
    batches = Batches.of(tr.QueryDataset.from_arrays(X, y), batch_size)
    return at_k.TopReplay(LearnerAtK(loss), [(batches, np.arange(batches.count))])


ORACLES = {MistakesAvg: oracle.perceptron_avg, MistakesMax: oracle.perceptron_max}


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("places", [{"k": 3}, {"kappa": 0.5}], ids=["k", "kappa"])
@pytest.mark.parametrize("gap", [1.0, -0.5], ids=["separable", "inseparable"])
def test_mistakes_stay_below_every_bound(kind, places, gap):
    for seed in range(6):
        X, y, u = blobs(seed, gap, rows=400)
        replay = one_pass(kind(**places), X, y, 40)
        stream = [(X[a : a + 40].tolist(), y[a : a + 40].tolist()) for a in range(0, 400, 40)]
        _, mistakes = ORACLES[kind](stream, 5, **places)
        for w in (u, np.random.default_rng(seed).normal(size=5)):
            bound = replay.certificates(w)[0]
            assert bound.observed == mistakes
            assert bound.holds()
            assert not bound.order_only
            assert bound.value <= replay.lost.places + 1e-9
        margin = replay.certificates()[1]
        assert margin.assumptions_hold == (gap > 0)
        assert margin.holds()


def test_the_mistake_bound_is_its_formula_at_the_best_multiple():
    X, y, u = blobs(1, 1.0, rows=120)
    replay = one_pass(MistakesAvg(k=2), X, y, 30)
    radius = max(np.linalg.norm(x) for x in X)

    def formula(c):
        loss = sum(
            PrecAvg(k=2).value_and_grad(c * X[a : a + 30] @ u, y[a : a + 30], [0, 30])[0] for a in (0, 30, 60, 90)
        )
        return (c * radius * math.sqrt(8) + math.sqrt(loss)) ** 2

    by_hand = min(formula(c) for c in np.linspace(0, 4, 2001))
    assert replay.certificates(3 * u)[0].value == pytest.approx(by_hand, rel=1e-3)


def test_corollary_8_is_four_k_r_squared_over_gamma_squared():
    X, y, u = blobs(2, 2.0, rows=120)
    replay = one_pass(MistakesMax(k=2), X, y, 30)
    gamma = min(oracle.strong_margin(list(X[a : a + 30] @ u), list(y[a : a + 30])) for a in (0, 30, 60, 90))
    expected = 4 * 2 * max(x @ x for x in X) / gamma**2
    assert replay.certificates(7 * u)[1].value == pytest.approx(expected)


@pytest.mark.parametrize("loss", [None, PrecRamp, PrecAvg, PrecMax], ids=str)
def test_samples_stray_at_the_rate_of_theorem_12(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20000, 3)), rng.random(20000) < 0.3
    data = tr.QueryDataset.from_arrays(X + np.outer(y, [0.5, 0.0, 0.0]), y)
    models = [np.array([0.3, 0.0, 0.0]), np.array([0.1, 0.2, 0.0])]
    sizes = (250, 1000, 4000)
    found = convergence.sample_deviations(data, models, kappa=0.25, loss=loss, sizes=sizes, trials=150, seed=0)
    assert -0.75 < found.exponent < -0.35
    certificate = convergence.uniform_convergence(data, models, kappa=0.25, loss=loss, sizes=sizes, trials=100, seed=0)
    assert certificate.order_only
    assert certificate.observed <= 1.2 * certificate.value


def test_a_ranker_certifies_itself_and_says_what_is_only_an_order():
    X, y, _ = blobs(4, 0.5, rows=3000)
    data = tr.QueryDataset.from_arrays(X, y)
    perceptron = tr.PerceptronAtK(batch_size=100, random_state=0, epochs=1).fit(X, y).certify(data)
    assert [c.reference for c in perceptron] == ["Theorem 7", "Corollary 8", "Theorem 12", "Theorem 13", "Corollary 14"]
    assert [c.order_only for c in perceptron] == [False, False, True, True, True]
    assert {c.verdict for c in perceptron[2:]} == {"no verdict"}
    maximal = tr.PerceptronAtK("max", k=3, random_state=0).fit(X, y).certify(data, comparator=np.ones(5))
    # k = 3 of the judged list is a share of its positives in each batch, so what holds for shares holds too.
    assert [c.reference for c in maximal] == ["Theorem 9", "Corollary 10", "Theorem 12", "Theorem 13", "Corollary 14"]
    sgd = tr.SGDAtK(radius=5.0, random_state=0, batch_size=100, epochs=1).fit(X, y).certify(data)
    assert [c.reference for c in sgd] == ["Theorem 12", "Theorem 15"]
    assert sgd[1].verdict == "no verdict"
    assert "PrecMax" in tr.SGDAtK("max", kappa=0.5, batch_size=100).fit(X, y).certify(data)[0].statement
    for certificate in (*perceptron, *maximal, *sgd):
        assert certificate.verdict != "violated", str(certificate)
    assert tr.OnePassMiniBatch(random_state=0).fit(X, y).certify(data) == []


def oracle_mistakes(ranker, X, y, passes):
    """Mistakes of Algorithm 1 over the batches of each pass, in the order that the ranker's seed deals out."""
    rng, size, n = np.random.default_rng(ranker.random_state), ranker.batch_size, len(y)
    stream = []
    for _ in range(passes):
        rows = rng.permutation(n) if ranker.shuffle == "rows" else np.arange(n)
        starts = np.arange(0, n, size)
        if ranker.shuffle == "batches":
            starts = starts[rng.permutation(len(starts))]
        stream += [(X[rows[a : a + size]].tolist(), y[rows[a : a + size]].tolist()) for a in starts]
    # k is that of the judged list: in a batch it is the share k/n₊.
    return oracle.perceptron_avg(stream, X.shape[1], kappa=ranker.k / y.sum())[1]


@pytest.mark.parametrize("shuffle", ["batches", "rows", None])
def test_the_certificate_is_about_the_run_that_happened(shuffle, tmp_path):
    X, y, _ = blobs(5, -0.9, rows=300)
    data = tr.QueryDataset.from_arrays(X, y)
    ranker = tr.PerceptronAtK(k=3, batch_size=30, epochs=4, shuffle=shuffle, random_state=3).fit(X, y)
    theorem, corollary = ranker.certify(data)[:2]
    assert theorem.observed == oracle_mistakes(ranker, X, y, 4)
    assert theorem.verdict in ("holds", "vacuous")
    assert corollary.verdict == "does not apply"  # nothing separates these rows
    ranker.save(tmp_path / "model.json")
    assert tr.load(tmp_path / "model.json").certify(data)[:2] == [theorem, corollary]
    once = tr.PerceptronAtK(k=3, batch_size=30).partial_fit(X, y, classes=[0, 1]).certify(data)[0]
    assert once.observed != theorem.observed


def test_other_rows_and_other_weights_are_another_run(tmp_path):
    X, y, _ = blobs(5, 0.5, rows=300)
    data, other = tr.QueryDataset.from_arrays(X, y), tr.QueryDataset.from_arrays(-X[::-1], y[::-1])
    ranker = tr.PerceptronAtK(k=3, batch_size=30).fit(X, y)
    assert [c.verdict for c in ranker.certify(other)] == ["does not apply"]
    ranker.weights_ = -ranker.weights_
    assert [c.verdict for c in ranker.certify(data)] == ["does not apply"]


def test_a_separable_run_is_certified_and_its_arithmetic_can_be_redone():
    X, y, _ = blobs(6, 3.0, rows=4000)
    data = tr.QueryDataset.from_arrays(X, y)
    ranker = tr.PerceptronAtK(k=1, batch_size=20, epochs=5).fit(X, y)
    theorem, corollary = ranker.certify(data)[:2]
    for certificate in (theorem, corollary):
        assert certificate.verdict == "holds"
        assert certificate.meaning
        assert "u = a vector of 5 weights" in certificate.explain()
    terms = theorem.terms
    again = (terms["‖u‖"] * terms["R"] * math.sqrt(4 * terms["k"]) + math.sqrt(terms["L(u)"])) ** 2
    assert again == pytest.approx(theorem.value)
    assert np.linalg.norm(terms["u"]) == pytest.approx(terms["‖u‖"])
    first = tr.certify(ranker, data)[1]
    assert first.recompute(data).value <= theorem.value * (1 + 1e-6)


def test_few_rows_stop_one_theorem_and_not_the_others():
    X, y, _ = blobs(4, 0.5, rows=90)
    found = tr.PerceptronAtK(kappa=0.5, batch_size=30, epochs=1).fit(X, y).certify(tr.QueryDataset.from_arrays(X, y))
    assert [c.verdict for c in found if c.reference == "Theorem 12"] == ["does not apply"]
    assert len(found) == 5


@pytest.mark.parametrize("u", [np.ones(1), np.ones(6), np.full(5, np.nan), "nonsense"])
def test_a_comparator_that_does_not_fit_is_refused(u):
    X, y, _ = blobs(4, 0.5, rows=90)
    with pytest.raises(InputError, match="comparator"):
        tr.PerceptronAtK(batch_size=30).fit(X, y).certify(tr.QueryDataset.from_arrays(X, y), comparator=u)
    with pytest.raises(InputError, match="start"):
        largest_margin(tr.QueryDataset.from_arrays(X, y), k=1, start=u)


def test_theorem_15_needs_a_ball():
    X, y, _ = blobs(4, 0.5, rows=600)
    data = tr.QueryDataset.from_arrays(X, y)
    free = tr.SGDAtK(random_state=0, batch_size=100).fit(X, y).certify(data)[-1]
    assert free.reference == "Theorem 15"
    assert free.verdict == "does not apply"


def test_a_ranker_of_queries_gets_the_bounds_that_hold_for_any_stream():
    X, y, _ = blobs(4, 0.5, rows=600)
    data = tr.QueryDataset.from_arrays(X, y, qid=np.arange(600) // 30)
    ranker = tr.PerceptronAtK(random_state=0).fit_queries(data)
    assert [c.reference for c in ranker.certify(data)] == ["Theorem 7", "Corollary 8"]


def test_the_run_is_recorded_and_does_not_hang_on_later_parameters(tmp_path):
    import json

    X, y, _ = blobs(5, -0.9, rows=300)
    data = tr.QueryDataset.from_arrays(X, y)
    ranker = tr.PerceptronAtK(k=3, batch_size=30, epochs=4, shuffle="rows", random_state=None).fit(X, y)
    found = ranker.certify(data)
    assert found[0].assumptions_hold  # the seed was drawn, and kept
    assert found[0].observed == pytest.approx(ranker.run_["lost"].sum())
    ranker.save(tmp_path / "model.json")
    ranker.set_params(epochs=1, batch_size=10, shuffle="batches", random_state=5)
    assert ranker.certify(data) == found
    loaded = tr.load(tmp_path / "model.json")
    assert loaded.certify(data) == found
    loaded.run_["lost"][0] += 1
    assert [c.verdict for c in loaded.certify(data)] == ["does not apply"]
    content = json.loads((tmp_path / "model.json").read_text())
    del content["state"]["run_"]
    (tmp_path / "model.json").write_text(json.dumps(content))
    older = tr.load(tmp_path / "model.json")  # a file of before has no record, and no seed
    assert [c.verdict for c in older.certify(data)] == ["does not apply"]
    both = tr.PerceptronAtK(k=3, batch_size=30, epochs=1).fit(X, y).partial_fit(X, y)
    assert [c.verdict for c in both.certify(data)] == ["does not apply"]
    stream = tr.PerceptronAtK(k=3).partial_fit(X, y, qid=np.arange(300) // 30)
    stream.partial_fit(X, y, qid=np.arange(300) // 30)
    twice = tr.QueryDataset.from_arrays(np.vstack([X, X]), np.r_[y, y], qid=np.arange(600) // 30)
    assert stream.certify(twice)[0].assumptions_hold
