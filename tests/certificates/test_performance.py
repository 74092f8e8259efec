"""Performance certificates: bounds on means that hold for any distribution of values in [0, 1]."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import betting as oracle
from toprank.certificates import performance as ours
from toprank.certificates.base import Assumption
from toprank.errors import InputError

unit = st.floats(0, 1, width=32)


def orders(n, count=20):
    rng = np.random.default_rng(0)
    return [rng.permutation(n).tolist() for _ in range(count)]


@settings(max_examples=6, deadline=None)
@given(st.lists(unit, min_size=2, max_size=7), st.floats(0.05, 0.6), st.booleans())
def test_the_definition_gives_the_same_bounds(values, delta, weighted):
    values = [*values, 0.5]  # not all 0 or 1
    weights = [1.0 + i % 3 for i in range(len(values))] if weighted else None
    found = ours.mean_interval(values, 1 - 2 * delta if delta < 0.5 else 0.05, weight=weights)
    share = delta if delta < 0.5 else 0.475
    scaled = None if weights is None else [w / max(weights) for w in weights]
    assert found.lower == pytest.approx(oracle.lower_bound(values, orders(len(values)), share, scaled), abs=1e-12)
    other = [1 - x for x in values]
    assert 1 - found.upper == pytest.approx(oracle.lower_bound(other, orders(len(values)), share, scaled), abs=1e-12)


@given(st.integers(1, 60), st.data(), st.floats(0.8, 0.99))
def test_successes_get_exact_binomial_bounds(n, data, confidence):
    successes = data.draw(st.integers(0, n))
    lower, mean, upper = ours.mean_interval([1.0] * successes + [0.0] * (n - successes), confidence)
    delta = (1 - confidence) / 2
    assert mean == successes / n
    if successes:
        assert oracle.binomial_tail(successes, n, lower) == pytest.approx(delta, rel=1e-6)
    else:
        assert lower == 0
    if successes < n:
        assert 1 - oracle.binomial_tail(successes + 1, n, upper) == pytest.approx(delta, rel=1e-6)
    else:
        assert upper == 1


@pytest.mark.parametrize(
    "support", [{0.0: 0.3, 0.5: 0.4, 1.0: 0.3}, {0.1: 0.9, 1.0: 0.1}, {0.0: 0.1, 0.25: 0.2, 0.9: 0.7}]
)
@pytest.mark.parametrize("n", [1, 3, 5])
def test_every_sample_of_a_small_distribution(support, n):
    """P(lower > mean) and P(upper < mean), added up over all samples: each at most its share of δ."""
    truth = sum(x * p for x, p in support.items())
    low = high = 0.0
    for sample, probability in oracle.outcomes(support, n):
        lower, _, upper = ours.mean_interval(sample, 0.5)
        low += probability * (lower > truth)
        high += probability * (upper < truth)
    assert low <= 0.25
    assert high <= 0.25


DRAWS = {
    "mass at both ends": lambda rng, n: np.where(
        rng.random(n) < 0.6, (rng.random(n) < 0.5).astype(float), rng.random(n)
    ),
    "a rare success": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
    "skewed": lambda rng, n: rng.beta(0.3, 0.6, n),
    "narrow": lambda rng, n: 0.7 + 0.1 * rng.random(n),
}
MEANS = {"mass at both ends": 0.5, "a rare success": 0.05, "skewed": 1 / 3, "narrow": 0.75}


@pytest.mark.parametrize("name", DRAWS)
def test_bounds_miss_no_more_often_than_they_may(name):
    """At 80% each side may miss a tenth of the time; three standard errors of 200 trials are allowed beyond it."""
    rng, trials = np.random.default_rng(1), 200
    misses = np.zeros(2)
    for _ in range(trials):
        lower, _, upper = ours.mean_interval(DRAWS[name](rng, 25), 0.8)
        misses += lower > MEANS[name], upper < MEANS[name]
    assert (misses / trials <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / trials)).all()


def test_a_bound_that_is_too_bold_would_be_found_out():
    """The same simulation refuses mean ± 1 standard error, so it can fail."""
    rng, trials, missed = np.random.default_rng(1), 300, 0
    for _ in range(trials):
        x = DRAWS["skewed"](rng, 40)
        missed += x.mean() - x.std() / np.sqrt(40) > MEANS["skewed"]
    assert missed / trials > 0.1 + 3 * np.sqrt(0.1 * 0.9 / trials) - 0.02


def test_weighted_bounds_cover_the_weighted_mean():
    rng, trials, misses = np.random.default_rng(2), 100, np.zeros(2)
    for _ in range(trials):
        heavy = rng.random(40) < 0.3
        x, weight = np.where(heavy, rng.random(40), 0.2 * rng.random(40)), np.where(heavy, 3.0, 1.0)
        lower, _, upper = ours.mean_interval(x, 0.8, weight=weight)
        truth = (0.3 * 3 * 0.5 + 0.7 * 0.1) / (0.3 * 3 + 0.7)
        misses += lower > truth, upper < truth
    assert (misses / trials <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / trials)).all()


def test_equal_weights_change_nothing():
    x = np.random.default_rng(0).random(50)
    assert ours.mean_interval(x, weight=np.full(50, 7.0))[::2] == ours.mean_interval(x)[::2]


def test_bounds_are_about_as_tight_as_the_published_interval():
    rng = np.random.default_rng(3)
    x = rng.beta(1.0, 1.5, 150)
    lower, _, upper = ours.mean_interval(x)
    low, high = oracle.hedged_capital_lower(x.tolist(), 0.05)
    assert lower < high
    assert low < upper
    assert upper - lower < 1.05 * (high - low)


def test_more_queries_and_fewer_claims_say_more():
    x = np.random.default_rng(0).beta(2, 2, 400)
    widths = [np.subtract(*ours.mean_interval(x[:n])[::-2]) for n in (50, 100, 400)]
    assert widths[0] > widths[1] > widths[2]
    assert ours.mean_interval(x, claims=20).lower < ours.mean_interval(x).lower


def test_differences_are_means_of_half_of_them_and_a_half():
    rng = np.random.default_rng(0)
    a, b = rng.random(80), 0.5 * rng.random(80)
    lower, mean, upper = ours.difference_interval(a, b)
    half = ours.mean_interval((a - b + 1) / 2)
    assert (lower, upper) == pytest.approx((2 * half.lower - 1, 2 * half.upper - 1))
    assert mean == pytest.approx((a - b).mean())


@settings(max_examples=20, deadline=None)
@given(st.lists(unit, min_size=1, max_size=12))
def test_a_sequence_rejects_what_the_mixture_rejects(values):
    """A bound beyond that of `changing` was rejected at some time, and the next mean never: K falls with m."""
    lower, _ = ours.confidence_sequence(values, 0.5)
    drift = np.maximum.accumulate(ours.confidence_sequence(values, 0.5, changing=True).lower)
    for t, (bound, other) in enumerate(zip(lower.tolist(), drift.tolist(), strict=True), start=1):
        if bound > other:
            assert max(oracle.mixture(values[:s], bound) for s in range(1, t + 1)) >= 8 * (1 - 1e-9)
        if bound < 1 - 1 / 2000:
            assert max(oracle.mixture(values[:s], bound + 1 / 2000) for s in range(1, t + 1)) < 8 * (1 + 1e-9)


@pytest.mark.parametrize("name", DRAWS)
def test_one_mean_is_never_bounded_less_closely_than_many(name):
    x = DRAWS[name](np.random.default_rng(8), 30_000)
    one, many = ours.confidence_sequence(x), ours.confidence_sequence(x, changing=True)
    assert (one.lower >= many.lower).all()
    assert (one.upper <= many.upper).all()
    assert one.upper[30] - one.lower[30] < 0.9 * (many.upper[30] - many.lower[30])
    for spread in (0.1, 10.0, 1e4):
        reach = ours.RunningMean(10**6, 5e5, spread).interval(0.9).upper * 10**6 - 5e5
        rates = np.geomspace(0.004, 0.9, 24)
        capital = np.mean(np.exp(rates * reach - (-np.log1p(-rates) - rates) * spread))
        assert capital == pytest.approx(40, rel=1e-6)


def test_sequences_hold_at_all_times_at_once():
    """80%: any miss at any time up to 250, each side at most a tenth."""
    rng, trials, missed = np.random.default_rng(4), 200, np.zeros(2)
    for _ in range(trials):
        lower, upper = tr.confidence_sequence(DRAWS["mass at both ends"](rng, 250), 0.8)
        missed += (lower > 0.5).any(), (upper < 0.5).any()
    assert (missed / trials <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / trials)).all()


def test_a_mean_that_changes_needs_the_sequence_for_it():
    """Expectations fall from 0.9 to 0.1: the running mean stays covered with `changing`, and without it is missed."""
    rng, n, trials = np.random.default_rng(5), 400, 100
    truth = np.linspace(0.9, 0.1, n)
    running = np.cumsum(truth) / np.arange(1, n + 1)
    missed = np.zeros(2)
    for _ in range(trials):
        x = (rng.random(n) < truth).astype(float)
        lower, upper = tr.confidence_sequence(x, 0.8, changing=True)
        missed += (lower > running + 1e-12).any(), (upper < running - 1e-12).any()
    assert (missed / trials <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / trials)).all()
    lower, _ = tr.confidence_sequence(x, 0.8)
    assert (lower > running).any()


@pytest.mark.parametrize("changing", [False, True])
def test_sequences_narrow_down(changing):
    x = np.random.default_rng(6).beta(2, 2, 2000)
    lower, upper = tr.confidence_sequence(x, changing=changing)
    assert len(lower) == len(upper) == 2000
    assert lower[-1] < 0.5 < upper[-1]
    assert upper[-1] - lower[-1] < 0.06


@pytest.mark.parametrize(
    ("values", "problem"),
    [([], "no values"), ([0.5, 1.5], "number 1 is 1.5"), ([0.5, np.nan], "NaN"), ([-0.1], "[0, 1]")],
)
def test_values_that_no_bound_is_for(values, problem):
    with pytest.raises(InputError, match=problem.replace("[", r"\[")):
        ours.mean_interval(values)
    with pytest.raises(InputError, match="confidence"):
        ours.mean_interval([0.5], 1.0)


def test_three_verdicts():
    x = np.random.default_rng(0).random(60)
    assert ours.performance(x, "map").verdict == "holds"
    assert ours.performance([0.5, 0.4], "map").verdict == "vacuous"
    learned = [Assumption("none of them was learned from, and 60 of 60 were", False)]
    refused = ours.performance(x, "map", unseen=learned)
    assert refused.verdict == "does not apply"
    assert (refused.lower, refused.upper) == (0.0, 1.0)
    assert "60 of 60" in refused.meaning


def test_differences_say_who_is_better_or_that_nobody_knows():
    rng = np.random.default_rng(0)
    low, high = 0.3 * rng.random(100), 0.5 + 0.3 * rng.random(100)
    better = ours.performance(high, "map", against=low, name="BM25")
    worse = ours.performance(low, "map", against=high, name="BM25")
    unclear = ours.performance(high, "map", against=np.roll(high, 1), name="BM25")
    assert (better.verdict, worse.verdict, unclear.verdict) == ("holds", "holds", "vacuous")
    assert "better than BM25 by at least" in better.meaning
    assert "worse than BM25 by at least" in worse.meaning
    assert "either may be better" in unclear.meaning


def test_skipped_queries_do_not_count():
    x = np.random.default_rng(0).random(60)
    with_blanks = np.insert(x, 30, [np.nan] * 5)
    found = ours.performance(with_blanks, "map")
    assert found.n_queries == 60
    assert found.lower == ours.performance(x, "map").lower


@pytest.fixture(scope="module")
def parts():
    data = tr.datasets.make_graded(n_queries=240, n_features=6, random_state=0)
    return data[:120], data[120:160], data[160:]


@pytest.mark.parametrize("ranker", [tr.ListNet(), tr.SlamPerceptron(), tr.RankBoost(rounds=5), tr.SVMPerf(k=2)])
def test_certify_says_first_what_new_queries_will_see(parts, ranker, tmp_path):
    train, valid, test = parts
    ranker = type(ranker)(**ranker.get_params()).fit_queries(train, valid=valid)
    first = tr.certify(ranker, test)[0]
    assert isinstance(first, tr.PerformanceCertificate)
    assert first.verdict == "holds"
    assert first.lower < first.mean < first.upper
    assert first.mean == pytest.approx(next(iter(tr.evaluate(ranker, test, [ranker.measure]).mean.values())))
    ranker.save(tmp_path / "model.json")
    loaded = tr.load(tmp_path / "model.json")
    assert tr.certify(loaded, test)[0] == first
    for part in (train, valid, train[5:60]):
        for one in (ranker, loaded):
            refused = tr.certify(one, part)[0]
            assert refused.verdict == "does not apply"
            assert refused.lower == 0


def test_a_stream_remembers_what_it_learned_from(parts):
    train, _, test = parts
    ranker = tr.SlamPerceptron()
    for q in range(train.n_queries):
        ranker.partial_fit(train[q : q + 1].X, train[q : q + 1].y)
    assert tr.certify(ranker, train)[0].verdict == "does not apply"
    assert tr.certify(ranker, test)[0].verdict == "holds"


def test_dense_sparse_and_single_precision_are_the_same_queries(parts):
    from scipy.sparse import csr_array

    train, _, test = parts
    ranker = tr.ListNet().fit_queries(train)
    for X in (csr_array(train.X), train.X.astype(np.float32)):
        assert tr.certify(ranker, train.with_X(X))[0].verdict == "does not apply"
    assert tr.certify(ranker, test.with_X(csr_array(test.X)))[0].verdict == "holds"


def test_a_few_queries_that_were_learned_from_stop_it(parts):
    train, _, test = parts
    ranker = tr.ListNet().fit_queries(train)
    ids = np.arange(82)
    mixed = tr.QueryDataset.from_arrays(
        np.vstack([test.X, train[:2].X]),
        np.append(test.y, train[:2].y),
        np.repeat(ids, [*test.lengths, *train[:2].lengths]),
    )
    found = tr.certify(ranker, mixed)[0]
    assert found.verdict == "does not apply"
    assert found.meaning.endswith("were learned from (queries 80, 81)")


def test_baselines_share_the_confidence(parts):
    train, _, test = parts
    ranker = tr.ListNet().fit_queries(train)
    alone = tr.certify(ranker, test)[0]
    own, better, *_ = tr.certify(ranker, test, baseline={"feature 1": test.X[:, 0]})
    assert own.lower < alone.lower
    assert better.verdict == "holds"
    assert better.mean == pytest.approx(own.mean - tr.evaluate(test.X[:, 0], test, ["ndcg@10"]).mean["ndcg@10"])
    assert better.recompute(test) == better


def test_a_measure_without_an_end_is_refused(parts):
    train, _, test = parts
    found = tr.certify(tr.ListNet("dcg@5").fit_queries(train), test)[0]
    assert found.verdict == "does not apply"
    assert "not a measure in [0, 1]" in found.meaning


def test_weighted_queries_bound_the_weighted_mean(parts):
    from dataclasses import replace

    train, _, test = parts
    weighted = replace(test, query_weight=1.0 + np.arange(test.n_queries) % 3)
    found = tr.certify(tr.ListNet().fit_queries(train), weighted)[0]
    assert any("weighted mean" in a.text for a in found.assumptions)
    ranker = tr.ListNet().fit_queries(train)
    assert found.mean == pytest.approx(tr.evaluate(ranker, weighted, ["ndcg@10"]).mean["ndcg@10"])
    assert found.lower < found.mean < found.upper


def test_the_trace_draws_its_band(parts):
    pytest.importorskip("matplotlib")
    ranker = tr.SlamPerceptron(epochs=1).fit_queries(parts[0])
    (band,) = ranker.trace_.plot().axes[0].collections
    lower, upper = tr.confidence_sequence(ranker.trace_["measure"], changing=True)
    drawn = band.get_paths()[0].vertices[:, 1]
    assert drawn.min() == pytest.approx(lower.min())
    assert drawn.max() == pytest.approx(upper.max())
    assert len(ranker.trace_.plot("mistake").axes[0].collections) == 0
    assert len(ranker.partial_fit_queries(parts[2]).trace_.plot().axes[0].collections) == 0  # it starts in mid-stream
