import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import toprank as tr
from toprank.certificates import generalization as g
from toprank.surrogates import Exponential, Linear, ListMLE, ListNet, RankCosine, Sigmoid

ALL = ("ListMLE", "ListNet", "ListNet top-one", "RankCosine")


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=60, n_docs=(6, 6), n_features=5, random_state=0)


def phis(u):
    return (Linear(1.0, u + 0.7), Exponential(1.0), Sigmoid(1.0))


@given(st.floats(0.01, 5), st.integers(2, 40))
def test_constants_are_table_1(u, m):
    b = u + 0.7
    printed = {
        Linear(1.0, b): (2 / ((b - u) * (math.log(m) + math.log((b + u) / (b - u)))), math.sqrt(m) / (2 * (b - u))),
        Exponential(1.0): (2 * math.exp(u) / (math.log(m) + 2 * u), math.sqrt(m) * math.exp(u) / 2),
        Sigmoid(1.0): (2 * (1 + math.exp(u)) / (math.log(m) + u), math.sqrt(m) * (1 + math.exp(u)) / 2),
    }
    for phi, (likelihood, cosine) in printed.items():
        assert math.exp(g.log_c("ListMLE", phi, u, m)) == pytest.approx(likelihood, rel=1e-9)
        assert math.exp(g.log_c("RankCosine", phi, u, m)) == pytest.approx(cosine, rel=1e-9)
        assert g.log_c("ListNet", phi, u, m) - g.log_c("ListMLE", phi, u, m) == pytest.approx(math.lgamma(m + 1))


@given(st.floats(0.01, 3), st.integers(2, 60), st.sampled_from(ALL))
def test_mixed_lengths_lie_between_and_above(u, m, algorithm):
    """One length given twice is that length, and a wider range never has a smaller constant."""
    for phi in phis(u):
        alone = g.log_c(algorithm, phi, u, m)
        assert g.log_c(algorithm, phi, u, m, m) == alone
        wider = [g.log_c(algorithm, phi, u, m, shortest) for shortest in range(m, max(1, m // 3) - 1, -1)]
        assert (np.diff(wider) >= -1e-12).all()


def slow_likelihood_constant(phi, u, m, shortest):
    """The double sum over positions j ≤ s of the proof, term by term."""
    total = 0.0
    for s in range(1, m + 1):
        length = max(s, shortest)
        z = length * (math.log(length) + phi.log_range(u))
        total += 1 / z + sum(1 / (z * (length - j + 1)) for j in range(1, s + 1))
    return total / float(phi(-u))


def test_mixed_lengths_are_the_proof_s_sum():
    for phi, shortest in product(phis(1.3), (2, 5, 9)):
        assert math.exp(g.log_c("ListMLE", phi, 1.3, 9, shortest)) == pytest.approx(
            slow_likelihood_constant(phi, 1.3, 9, shortest), rel=1e-12
        )


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=6),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.floats(0.1, 4),
)
def test_normalised_losses_lie_between_0_and_1(scores, y, bound):
    s, labels = bound * np.array(scores), np.array(y[: len(scores)], dtype=float)
    ptr = np.array([0, len(s)])
    for phi in phis(bound):
        for loss in (
            ListMLE(transform=phi),
            ListNet(transform=phi),
            ListNet(transform=phi, k="full"),
            RankCosine(transform=phi),
        ):
            z = g.normalizer(g.algorithm_of(loss), phi, bound, len(s))
            assert -1e-12 <= loss.per_query(s, labels, ptr)[0][0] / z <= 1 + 1e-12


def test_bound_is_the_formula():
    B, M, m, n, delta = 2.0, 1.5, 12, 5000, 0.1
    phi = Exponential(0.5)
    C = 2 * math.exp(1.5) / (math.log(m) + 3.0)
    wanted = 4 * B * M / math.sqrt(n) * C * 0.5 * math.exp(1.5) + math.sqrt(2 * math.log(2 / delta) / n)
    bound = g.generalization_bound("ListMLE", phi, radius=B, norm=M, m=m, n=n, delta=delta)
    assert bound.value == pytest.approx(wanted, rel=1e-12)
    assert "informative" in str(bound) if wanted < 1 else "vacuous" in str(bound)


def test_factorials_beyond_floats_are_said_plainly():
    bound = g.generalization_bound("ListNet", Exponential(), radius=1, norm=1, m=1000, n=10**6)
    assert bound.value == math.inf
    assert bound.vacuous
    assert bound.log_value == pytest.approx(math.lgamma(1001), rel=0.01)
    assert str(bound).endswith("(vacuous)")
    assert "e+25" in str(bound)  # 1000! has 2568 digits


@given(st.integers(1, 10**9))
def test_bounds_vanish_like_one_over_root_n(n):
    one, four = (g.generalization_bound("RankCosine", Sigmoid(), radius=1, norm=1, m=8, n=k).value for k in (n, 4 * n))
    assert one == pytest.approx(2 * four)


def test_rademacher_average_by_enumeration():
    """With few queries all sign vectors can be listed."""
    data = tr.datasets.make_graded(n_queries=6, n_docs=(3, 3), n_features=4, random_state=1)
    order = [data.ptr[q] + np.argsort(-data.y[data.ptr[q] : data.ptr[q + 1]], kind="stable") for q in range(6)]
    exact = max(
        np.mean(
            [np.linalg.norm(np.array(signs) @ data.X[[o[p] for o in order]]) for signs in product((-1, 1), repeat=6)]
        )
        for p in range(3)
    )
    estimate, error = g.rademacher_sampled(data, radius=2.0, draws=4000)
    assert abs(estimate - 2.0 * exact / 6) <= error
    assert estimate <= g.rademacher_closed(2.0, g.largest_norm(data), 6)
    assert (estimate, error) == g.rademacher_sampled(data, radius=2.0, draws=4000)


def test_sparse_rows_have_the_same_norms_and_averages(data):
    thin = data.with_X(sparse.csr_array(data.X))
    assert g.largest_norm(thin) == pytest.approx(np.linalg.norm(data.X, axis=1).max(), rel=1e-12)
    assert g.largest_norm(data) == pytest.approx(g.largest_norm(thin), rel=1e-12)
    assert g.rademacher_sampled(thin, 1.0, draws=20) == pytest.approx(g.rademacher_sampled(data, 1.0, draws=20))


@given(
    st.sampled_from(["ListMLE", "ListNet", "ListNet top-one", "RankCosine"]),
    st.sampled_from([Sigmoid(2.0), Exponential(1.5), Linear(1.0, 1.6)]),
    st.integers(2, 6),
    st.integers(0, 10**6),
)
def test_no_two_lists_of_scores_differ_by_more_than_the_lipschitz_constant_says(algorithm, phi, m, seed):
    """The normalised loss, from the library's surrogates (which have oracles of their own), at two random places."""
    rng, reach = np.random.default_rng(seed), 1.5
    loss = {
        "ListMLE": ListMLE(transform=phi, ties="fixed"), "ListNet": ListNet(transform=phi, k="full"),
        "ListNet top-one": ListNet(transform=phi), "RankCosine": RankCosine(transform=phi),
    }[algorithm]  # fmt: skip
    y, ptr = rng.permutation(m).astype(float) / m, np.array([0, m])
    one = rng.uniform(-reach, reach, m)
    other = np.clip(one + rng.normal(size=m) * rng.choice([1e-3, 0.3, 3.0]), -reach, reach)
    values = [loss.per_query(s, y, ptr)[0][0] for s in (one, other)]
    scale = g.normalizer(algorithm, phi, reach, m)
    assert (
        abs(values[0] - values[1]) / scale
        <= g.lipschitz(algorithm, phi, reach, m) * np.linalg.norm(one - other) + 1e-12
    )


@pytest.mark.parametrize("algorithm", ["ListMLE", "ListNet top-one", "RankCosine"])
def test_the_bound_list_by_list_is_above_the_complexity_of_the_losses(algorithm):
    """2 R̂(l∘F) by all signs of four queries and a dense grid of weights, on lists of different lengths."""
    rng, B, phi = np.random.default_rng(0), 1.5, Sigmoid(1.0)
    sizes = [2, 5, 3, 7]
    data = tr.QueryDataset.from_arrays(
        rng.normal(size=(sum(sizes), 1)),
        np.concatenate([rng.permutation(m) for m in sizes]),
        np.repeat(range(4), sizes),
    )
    loss = {
        "ListMLE": ListMLE(transform=phi), "ListNet top-one": ListNet(transform=phi),
        "RankCosine": RankCosine(transform=phi),
    }[algorithm]  # fmt: skip
    scale = np.array([g.normalizer(algorithm, phi, B * g.largest_norm(data), m) for m in sizes])
    losses = np.array([loss.per_query(w * data.X[:, 0], data.y, data.ptr)[0] / scale for w in np.linspace(-B, B, 201)])
    exact = np.mean([(losses @ np.array(signs)).max() / 4 for signs in product((-1, 1), repeat=4)])
    bound = g.list_by_list(algorithm, phi, data, B)
    assert 2 * exact <= math.exp(bound.log_complexity)
    assert math.exp(bound.log_complexity) < 300 * exact


@pytest.mark.parametrize("kind", [tr.ListMLE, tr.ListNet, tr.RankCosine])
def test_certificates_of_a_fitted_ranker(kind, tmp_path):
    data = tr.datasets.make_graded(n_queries=600, n_docs=(6, 6), n_features=5, random_state=0)
    ranker = kind(transform="sigmoid", radius=0.05).fit_queries(data)
    found = ranker.certify(data)
    assert len(found) == 4  # as printed, exact N, sampled average, list by list
    printed, exact, sampled, _ = (c.value for c in found)
    assert sampled < exact < printed
    largest = 0.5 if kind is tr.RankCosine else 1.0
    for certificate in found:
        assert certificate.holds()
        assert certificate.assumptions_hold
        assert certificate.verdict == ("vacuous" if certificate.value >= largest else "holds")
    assert found[-1].verdict == ("vacuous" if kind is tr.ListNet else "holds")  # its loss is near its largest value
    few = ranker.certify(data[:10])
    assert {c.verdict for c in few} == {"vacuous"}
    ranker.save(tmp_path / "model.json")
    assert tr.load(tmp_path / "model.json").certify(data) == found
    fresh = tr.datasets.make_graded(n_queries=60, n_docs=(3, 9), n_features=5, random_state=0)
    assert "lists have 3 to 9 documents" in str(ranker.certify(fresh)[0])
    assert "0.9" in ranker.certify(data, delta=0.1)[0].statement


def test_a_length_that_was_not_bounded_beforehand_is_compared_with_powers_of_two(data):
    (found, *_) = tr.ListMLE().fit_queries(data).certify(data)
    w = np.linalg.norm(tr.ListMLE().fit_queries(data).coef_)
    power = found.terms["B"]
    assert power / 2 < w <= power
    assert found.terms["δ"] == pytest.approx(0.05 * 2 ** -abs(math.log2(power)) / 3)
    assert any(f"≤ B = {power:.6g}" in a.text and a.verified for a in found.assumptions)


def test_weights_outside_the_ball_are_found_out(data):
    found = g.certificates(ListMLE(), 50 * np.ones(5), data, radius=0.1)
    assert {c.verdict for c in found} == {"does not apply"}
    assert any("≤ B = 0.1" in a.text and a.verified is False for a in found[0].assumptions)


def test_queries_that_are_not_draws_of_one_distribution_violate_it():
    """The second half wants the opposite of the first: the expected loss is not near the mean of both."""
    n, w = 40_000, np.array([0.2])
    grades = np.where(np.arange(2 * n) // 2 < n // 2, np.arange(2 * n) % 2 == 0, np.arange(2 * n) % 2 == 1)
    data = tr.QueryDataset.from_arrays(
        np.where(np.arange(2 * n) % 2 == 0, 1.0, -1.0)[:, None], grades.astype(float), np.arange(2 * n) // 2
    )
    *_, own = g.certificates(ListMLE(), w, data, radius=0.2)
    assert own.verdict == "violated"
    mixed = data[np.random.default_rng(0).permutation(n)]
    assert g.certificates(ListMLE(), w, mixed, radius=0.2)[-1].verdict == "holds"


def test_nothing_is_certified_where_nothing_applies(data):
    blank = tr.QueryDataset.from_arrays(data.X, np.zeros(data.n_docs), data.qid)
    assert tr.ListMLE().fit_queries(data).certify(blank) == []
    narrow = tr.ListNet(transform="linear(1, 1)", radius=0.01).fit_queries(data)
    (far,) = narrow.certify(data.with_X(1e4 * data.X))  # a·w·x + b is not positive there
    assert far.verdict == "does not apply"
    assert "is positive for scores" in far.assumptions[-1].text


def test_advice_is_sorted_and_what_the_certificate_adds(data):
    advice = tr.advise(data, radius=0.3)
    logs = [bound.log_value for bound in advice.bounds]
    assert logs == sorted(logs)
    assert len(logs) == 9
    assert "vacuous" in str(advice)
    for kind, name in ((tr.ListMLE, "ListMLE"), (tr.RankCosine, "RankCosine")):
        ranker = kind(transform="sigmoid", radius=0.3).fit_queries(data)
        best = min(ranker.certify(data), key=lambda c: c.value)
        told = next(b for b in advice.bounds if b.algorithm == name and str(b.transform) == "sigmoid(1)")
        assert best.value - best.terms["empirical loss"] == pytest.approx(told.value, rel=1e-9)
    one = tr.advise(data, 1.0, transforms=("sigmoid",), algorithms=("ListMLE",))
    assert len(one.bounds) == 1
    blank = tr.QueryDataset.from_arrays(
        np.vstack([data.X, data.X[:3]]), np.append(data.y, [0, 0, 0]), np.append(data.qid, [999] * 3)
    )
    assert tr.advise(blank, 0.3).best.n == tr.advise(data, 0.3).best.n


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: tr.advise(d, 0.0), "radius must be a number above 0"),
        (lambda d: tr.advise(d, 1.0, algorithms=()), "nothing to rank"),
        (lambda d: tr.advise(d, 1.0, transforms=("spline",)), "spline"),
        (
            lambda d: g.generalization_bound("ListMLE", Sigmoid(), radius=1, norm=1, m=3, n=9, rademacher=-3.0),
            "rademacher must be a number not below 0",
        ),
        (lambda d: tr.advise(d.with_X(0 * d.X), 1.0), "every row of X is 0"),
        (lambda d: g.log_c("ListMLE", Linear(1, 1), 2.0, 5), "take b above"),
        (lambda d: g.log_c("SoftRank", Sigmoid(), 2.0, 5), "algorithm must be one of"),
        (
            lambda d: g.generalization_bound("ListMLE", Sigmoid(), radius=1, norm=1, m=3, n=9, delta=0.0),
            "delta must be a number between 0 and 1",
        ),
    ],
)
def test_bad_input_is_named(call, message, data):
    with pytest.raises(tr.InputError, match=message):
        call(data)
