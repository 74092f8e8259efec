"""Intervals hold what the tests do not reject, point by point; they agree with the verdicts; how often they cover."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.oracles import betting
from tests.oracles import compare as oracle
from tests.test_compare import FakeReport, reports
from toprank.errors import InputError
from toprank.statistics import _bounded
from toprank.statistics import _intervals as intervals
from toprank.statistics import _statistics as statistics
from toprank.statistics.comparison import compare


def flip_intervals(d, alpha, n_resamples=20_000, seed=0, weight=None):
    weight = np.ones(len(d)) if weight is None else weight
    rng = np.random.default_rng(seed)
    return intervals.flip_intervals(np.array([d], dtype=float), weight, np.array([[alpha]]), n_resamples, rng)[0, 0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-8, 8), min_size=2, max_size=7), st.sampled_from([0.02, 0.05, 0.1, 0.3]))
def test_the_ends_are_where_the_test_begins_to_reject(d: list[int], alpha: float) -> None:
    low, high = flip_intervals(d, alpha)
    step = 1e-6
    inside = [x for x in np.linspace(max(low, -20), min(high, 20), 9) if low <= x <= high]
    assert all(oracle.kept_shifts(d, alpha, inside[1:-1]))
    if np.isfinite(low):
        assert oracle.kept_shifts(d, alpha, [low - step]) == [False]
    if np.isfinite(high):
        assert oracle.kept_shifts(d, alpha, [high + step]) == [False]
    assert np.isfinite(low) == (2 / 2 ** len(d) <= alpha)


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 2e-5])
def test_sampled_ends_against_exact_counts(alpha: float) -> None:
    """Whole differences, forty of them: p of d − δ counted exactly at the sampled ends is α, nearly."""
    d = np.random.default_rng(3).integers(-20, 60, 40) * 100
    low, high = flip_intervals(d, alpha)
    for end in (low, high):
        p = float(oracle.sign_flip_p_of_whole_numbers((d - round(end)).tolist()))
        assert p == pytest.approx(alpha, rel=0.12)


def test_weights_are_repeated_queries() -> None:
    """Not the same test (flips are of queries), but the centre and the scale are those of the weighted mean."""
    d, w = np.random.default_rng(0).standard_normal(60), np.random.default_rng(1).integers(1, 4, 60).astype(float)
    low, high = flip_intervals(d, 0.05, weight=w / w.mean())
    mean = np.average(d, weights=w)
    spread = np.sqrt((w**2 * (d - mean) ** 2).sum()) / w.sum()
    assert low < mean < high
    assert (high - low) / (2 * 1.96 * spread) == pytest.approx(1, abs=0.12)


small = st.lists(st.integers(-30, 60).map(lambda k: k / 50), min_size=6, max_size=6)


@settings(max_examples=30, deadline=None)
@given(st.lists(small, min_size=2, max_size=40), st.sampled_from(["permutation", "t", "wilcoxon"]), st.booleans())
def test_an_interval_leaves_0_out_exactly_where_a_difference_is_shown(rows, test, own) -> None:
    """Three systems on two measures; the law holds whatever the test, and whether flips are counted or sampled."""
    values = np.array(rows).T
    systems = {name: FakeReport({"map": values[i], "mrr": values[i + 3]}) for i, name in enumerate("abc")}
    result = compare(systems, test, n_resamples=200 if own else None)
    family = len(result.differences)
    for d in result.differences:
        for (low, high), shown in ((d.interval, d.shown), (d.simultaneous, family * d.p <= result.alpha)):
            assert (low > 0 or high < 0) == shown
            assert low <= high
            if shown:
                assert (low > 0) == (d.direction > 0)
        assert 1 - result.alpha <= d.level + 1e-12
        assert d.level <= 1 - result.alpha / family + 1e-12
    rejected = oracle.holm_rejects([d.p for d in result.differences], result.alpha)
    assert [d.shown for d in result.differences] == rejected


def test_levels_are_those_of_the_procedure() -> None:
    p = np.array([0.001, 0.2, 0.012, 0.012, 0.9])
    assert statistics.holm_levels(p, 0.05) == pytest.approx([0.05 / 5, 0.05 / 2, 0.05 / 4, 0.05 / 4, 0.05 / 2])
    assert statistics.holm_levels(np.array([0.5]), 0.05).tolist() == [0.05]
    assert statistics.holm_levels(np.array([0.01, 0.02]), 0.05).tolist() == [0.025, 0.05]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-500, 500), min_size=2, max_size=60), st.sampled_from([0.001, 0.05, 0.2]))
def test_ranks_turned_round_are_walsh_averages(d: list[int], alpha: float) -> None:
    low, high = intervals.rank_intervals(np.array([d], dtype=float) / 10, np.array([[alpha]]))[0, 0]
    averages = oracle.walsh_averages([x / 10 for x in d])
    c = intervals._critical(len(d), alpha)
    if c < 0:
        assert (low, high) == (-np.inf, np.inf)
    else:
        assert (low, high) == pytest.approx((averages[c], averages[-1 - c]), abs=1e-9)


@pytest.mark.parametrize("n", [5, 6, 10])
def test_the_critical_sum_by_enumeration(n: int) -> None:
    sums = np.array([sum(r for r, on in enumerate(s, 1) if on) for s in product((0, 1), repeat=n)])
    for alpha in (0.01, 0.05, 0.2):
        c = intervals._critical(n, alpha)
        assert (sums <= c).mean() <= alpha / 2 < (sums <= c + 1).mean()


def test_wilcoxon_points_where_its_ranks_do() -> None:
    d = np.array([-0.01] * 90 + [1.0] * 10)
    one = compare(reports(a=0.5 + d / 2, b=0.5 - d / 2), "wilcoxon").differences[0]
    assert one.difference > 0
    assert (one.shown, one.direction, one.verdict) == (True, -1, "b is better")
    assert one.interval[1] < 0
    assert "may point the other way than the mean" in str(compare(reports(a=d, b=0 * d), "wilcoxon"))
    assert compare(reports(a=d, b=0 * d)).differences[0].verdict == "a is better"  # the mean's test, the mean's verdict


def test_wilcoxon_ranks_what_the_measure_means_and_not_its_last_bits() -> None:
    """Tenths as precision@10 makes them: 0.3 − 0.2 and 0.2 − 0.1 differ in the last bit and are one rank."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 11, 60), rng.integers(0, 10, 60)
    expected = stats.wilcoxon(a - b).pvalue
    assert compare(reports(a=a / 10, b=b / 10), "wilcoxon").differences[0].p == pytest.approx(expected, abs=1e-12)
    assert abs(stats.wilcoxon(a / 10 - b / 10).pvalue - expected) > 1e-4  # what unrounded differences would have given


def test_t_turned_round_is_the_textbook_interval() -> None:
    a, b = np.random.default_rng(0).random((2, 60))
    one = compare(reports(a=a, b=b), "t").differences[0]
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert one.interval == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert one.level == pytest.approx(0.95)


@pytest.mark.parametrize("shape", ["even", "skewed"])
def test_bca_agrees_with_scipy(shape: str) -> None:
    rng, weight = np.random.default_rng(0), np.ones(40)
    values = rng.random(40) if shape == "even" else rng.beta(0.5, 4, 40)
    draws = intervals.bootstrap_means(values[None], weight, 20_000, np.random.default_rng(1))[0]
    mine = intervals.bca(values, weight, draws, 0.05)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=2).confidence_interval
    assert mine == pytest.approx((theirs.low, theirs.high), abs=0.03 * values.std())
    plain = np.quantile(draws, [0.025, 0.975])
    assert (mine[0] - plain[0] > 0.02 * values.std()) == (shape == "skewed")


def test_bca_of_constants_and_of_one_query() -> None:
    assert intervals.bca(np.full(5, 0.3), np.ones(5), np.full(100, 0.3), 0.05) == pytest.approx((0.3, 0.3))
    assert compare(reports(a=[0.5], b=[0.25])).interval("a", "map") == (0.5, 0.5)


def covered(n: int, trials: int, draws: int) -> tuple[float, float]:
    """How often 95% intervals of a mean near 1 hold it: ours, and plain percentiles of the same draws."""
    a, b = 6.0, 0.6
    mine = theirs = 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        values = rng.beta(a, b, n)
        means = intervals.bootstrap_means(values[None], np.ones(n), draws, rng)[0]
        low, high = intervals.bca(values, np.ones(n), means, 0.05)
        mine += low <= a / (a + b) <= high
        low, high = np.quantile(means, [0.025, 0.975])
        theirs += low <= a / (a + b) <= high
    return mine / trials, theirs / trials


def test_intervals_of_means_cover_near_1() -> None:
    mine, percentile = covered(20, 400, 1000)
    assert mine > 0.87
    assert mine >= percentile


@pytest.mark.slow
@pytest.mark.parametrize(("n", "least"), [(20, 0.88), (50, 0.91), (150, 0.93)])
def test_intervals_of_means_cover_near_1_at_length(n: int, least: float) -> None:
    assert covered(n, 4000, 2000)[0] > least


def missed(test: str, trials: int, n: int = 30, skew: bool = False) -> float:
    """How often the interval of a difference, one comparison, misses the truth."""
    rng, misses = np.random.default_rng(0), 0
    for _ in range(trials):
        d = rng.standard_normal(n) if not skew else rng.exponential(size=n) - 1
        low, high = compare(reports(a=d, b=np.zeros(n)), test, n_resamples=500).differences[0].interval
        misses += not low <= 0 <= high
    return misses / trials


@pytest.mark.parametrize("test", ["permutation", "t", "wilcoxon"])
def test_intervals_of_differences_cover(test: str) -> None:
    assert missed(test, 200) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.slow
@pytest.mark.parametrize("test", ["permutation", "t", "wilcoxon"])
def test_intervals_of_differences_cover_at_length(test: str) -> None:
    assert missed(test, 1500) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1500)


@pytest.mark.slow
def test_the_simultaneous_intervals_hold_together() -> None:
    """Five pairs, four of them truly different: all intervals at once hold their truths 95 times in 100."""
    truth, trials, held = np.array([0.0, 0.1, 0.2, 0.3, 0.5]), 400, 0
    rng = np.random.default_rng(0)
    for _ in range(trials):
        rows = {f"s{i}": rng.standard_normal(40) + shift for i, shift in enumerate(truth)}
        result = compare(reports(base=np.zeros(40), **rows), baseline="base")
        ends = [result.difference("map", f"s{i}", "base").simultaneous for i in range(5)]
        held += all(low <= t <= high for t, (low, high) in zip(truth, ends, strict=True))
    assert held / trials >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / trials)


def test_the_null_is_named_and_skewed_differences_are_rejected_too_often() -> None:
    """Mean 0, skewed: the test of exchangeability rejects more often than 5%, and the words say that it may."""
    assert "could be exchanged on every query" in str(compare(reports(a=[1, 2], b=[0, 0])))
    assert missed("permutation", 400, 20, skew=True) > 0.06


def test_few_queries_get_a_word() -> None:
    a, b = np.random.default_rng(0).random((2, 60))
    assert "With fewer than 50 queries they may miss more often" in str(compare(reports(a=a[:49], b=b[:49])))
    assert "fewer than 50" not in str(compare(reports(a=a, b=b)))


def test_queries_that_are_skipped_are_not_counted() -> None:
    nan = np.nan
    one = FakeReport({"map": [0.5, nan, 0.25, 0.5], "mrr": [0.5, 0.25, 0.25, 1]})
    other = FakeReport({"map": [0.25, nan, 0.25, 0.75], "mrr": [0.5, 0.5, 0.25, 1]})
    result = compare({"a": one, "b": other})
    assert (result.n_queries, dict(result.counted)) == (4, {"map": 3, "mrr": 4})
    assert "Some measures count fewer queries: map 3." in str(result)
    assert compare(reports(a=[0.5, nan], b=[1, nan])).n_queries == 1


def test_no_caution_where_all_flips_were_counted() -> None:
    """Sixty queries, of which five differ: 2^5 flips, whatever number was asked for."""
    a = np.full(60, 0.5)
    b = a + np.where(np.arange(60) < 5, 0.25, 0.0)
    assert compare(reports(a=a, b=b), n_resamples=5).caution == ""
    c = a + np.where(np.arange(60) < 40, 0.25, 0.0)
    assert compare(reports(a=a, c=c), n_resamples=5).caution != ""


class TestMargin:
    def test_no_worse_equivalent_and_better(self) -> None:
        rng = np.random.default_rng(0)
        base = 0.2 + 0.6 * rng.random(2000)
        noise = 0.01 * rng.standard_normal(2000)
        result = compare(
            reports(base=base, near=base + noise, lower=base - 0.012 + noise, up=base + 0.02 + noise),
            baseline="base",
            margin=0.01,
        )
        verdicts = {d.a: d.verdict for d in result.differences}
        assert verdicts == {
            "near": "equivalent within 0.01",
            "lower": "base is better",
            "up": "up is better",
        }
        near = result.difference("map", "near", "base")
        assert near.no_worse == (True, True)
        assert result.difference("map", "lower", "base").no_worse == (False, True)
        assert "No worse by more than 0.01" in str(result)

    def test_better_by_less_than_the_margin_and_no_worse_alone(self) -> None:
        rng = np.random.default_rng(0)
        base, noise = 0.2 + 0.6 * rng.random(2000), rng.standard_normal(2000)
        tight = compare(reports(a=base + 0.002 + 0.003 * noise, b=base), margin=0.01).differences[0]
        assert tight.verdict == "a is better, by less than 0.01"
        noise = np.clip(noise, -2, 2)
        wide = compare(reports(a=base + 0.003 + 0.08 * (noise - noise.mean()), b=base), margin=0.007).differences[0]
        assert wide.verdict == "a is no worse by more than 0.007"

    @pytest.mark.parametrize("weighted", [False, True])
    def test_against_the_definition(self, weighted: bool) -> None:
        a, b = np.random.default_rng(1).random((2, 25))
        weight = np.where(np.arange(25) % 3, 1.0, 2.0) if weighted else np.ones(25)
        diffs, orders = (a - b)[None], _bounded._orders(25)
        found = _bounded.p_of_margin(diffs, weight, 0.3, 0.025)
        x, v = ((a - b + 1) / 2).tolist(), (weight / weight.max()).tolist()
        capital = betting.mean_capital(x, v, orders.tolist(), 0.35, 0.025)
        assert found[0] == pytest.approx(min(1.0, 1 / capital), rel=1e-9)
        low, high = _bounded.bounded_intervals(diffs, weight, np.array([[0.05]]))[0, 0]
        ends = ((1 + low) / 2, x), ((1 - high) / 2, [1 - one for one in x])
        for m, values in ends:
            assert betting.mean_capital(values, v, orders.tolist(), m, 0.025) >= 40 * (1 - 1e-6)
            assert betting.mean_capital(values, v, orders.tolist(), m + 1e-6, 0.025) < 40

    def test_equal_queries_show_no_margin_that_they_are_too_few_for(self) -> None:
        values = np.linspace(0.1, 0.9, 8)
        result = compare(reports(a=values, b=values), margin=1e-4)
        one = result.differences[0]
        assert (one.verdict, one.no_worse) == ("not shown", (False, False))
        assert one.interval[0] < -0.2 < 0.2 < one.interval[1]
        assert "8 queries are too few for this margin" in str(result)
        assert "too few for this margin" not in str(compare(reports(a=values, b=values), margin=0.5))
        assert compare(reports(a=values, b=values), margin=0.5).differences[0].verdict == "equivalent within 0.5"

    @pytest.mark.parametrize("test", ["permutation", "t"])
    @pytest.mark.parametrize("n", [15, 40, 120])
    def test_a_rare_failure_is_covered(self, n: int, test: str) -> None:
        """−1 on 6% of the queries, and next to nothing on the others: the mean is about −.05, and no margin of .05."""
        rng, trials, covered, claimed = np.random.default_rng(n), 100, 0, 0
        for _ in range(trials):
            small, fails = 0.02 * rng.random(n), rng.random(n) < 0.06
            a, b = np.where(fails, 0.0, 0.5 + small), np.where(fails, 1.0, 0.5)
            one = compare(reports(a=a, b=b), test, n_resamples=200).differences[0]
            covered += one.interval[0] <= -0.06 + 0.94 * 0.01 <= one.interval[1]
            claimed += compare(reports(a=a, b=b), test, margin=0.04, n_resamples=200).differences[0].no_worse[0]
        assert covered / trials >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / trials)
        assert claimed / trials <= 0.05

    def test_a_measure_without_an_end_has_no_margin(self) -> None:
        far = {name: FakeReport({"dcg@5": np.full(500, value)}) for name, value in (("a", 0.5), ("b", 0.5))}
        one = compare(far, margin=0.1).differences[0]
        assert (one.no_worse, one.by_betting) == ((False, False), False)

    @pytest.mark.parametrize("test", ["permutation", "t", "wilcoxon"])
    def test_no_more_false_claims_than_stated(self, test: str) -> None:
        """a is worse by exactly the margin: "no worse" is claimed at most 5 times in 100."""
        rng, claims, trials = np.random.default_rng(0), 0, 300
        for _ in range(trials):
            d = np.clip(rng.standard_normal(20) * 0.1, -0.3, 0.3) - 0.05
            found = compare(reports(a=0.5 + d, b=np.full(20, 0.5)), test, margin=0.05, n_resamples=200)
            claims += found.differences[0].no_worse[0]
        assert claims / trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)

    def test_wrong_margins(self) -> None:
        for wrong in (0, -0.1, np.nan):
            with pytest.raises(InputError, match="margin must be"):
                compare(reports(a=[1], b=[0]), margin=wrong)


def test_effects_are_in_standard_deviations() -> None:
    d = np.random.default_rng(0).random(30)
    one = compare(reports(a=d, b=0 * d)).differences[0]
    assert one.effect == pytest.approx(d.mean() / d.std(ddof=1))
    assert compare(reports(a=[1, 1], b=[0, 0])).differences[0].effect is None


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_and_json(backend: str) -> None:
    result = compare(reports(a=[1, 0.5, 0.25], b=[0.5, 0.5, 0.5], c=[1, 1, 1]))
    frame = result.to_frame(backend)
    columns = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert columns[:6] == ["measure", "a", "b", "mean_a", "mean_b", "difference"]
    assert len(frame) == 3
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert told["differences"][0]["interval"] == [-1, 1]  # three queries show nothing
    assert told["differences"][0]["verdict"] == "not shown"
    assert told["n_queries"] == 3


def test_wrong_types_get_one_line() -> None:
    import pandas as pd

    frame = pd.DataFrame({"x": [1.0]})
    with pytest.raises(InputError, match="compare takes reports by name, got DataFrame: compare"):
        compare(frame, frame)
    with pytest.raises(InputError, match="'a' is no report but DataFrame"):
        compare({"a": frame, "b": frame})
