"""How many queries it takes: against the textbook, and by simulation of the tests that are planned for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import toprank as tr
from tests.test_compare import FakeReport, reports
from toprank.errors import InputError
from toprank.statistics.comparison import compare
from toprank.statistics.power import power_of


def spread_of(n: int, mean: float, sd: float) -> np.ndarray:
    """n differences with exactly this mean and standard deviation."""
    d = np.random.default_rng(0).standard_normal(n)
    return mean + sd * (d - d.mean()) / d.std(ddof=1)


def plan(d: np.ndarray, **options):
    return tr.queries_needed(FakeReport({"map": d}), FakeReport({"map": 0 * d}), **options)["map"]


@pytest.mark.parametrize(("effect", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_cohens_table(effect: float, n: int) -> None:
    """Paired t test, two-sided 5%, 80%: the numbers that every textbook prints."""
    assert plan(spread_of(60, effect, 1.0)).needed == n
    assert power_of(n, effect, 0.05) >= 0.8 > power_of(n - 1, effect, 0.05)


def test_what_is_detectable_is_what_is_needed() -> None:
    found = plan(spread_of(80, 0.03, 0.2))
    again = plan(spread_of(80, 0.03, 0.2), difference=found.detectable)
    assert again.needed == pytest.approx(80, abs=1)
    assert again.power == pytest.approx(0.8, abs=1e-6)
    assert found.spread == pytest.approx(0.2)
    assert plan(spread_of(80, 0.03, 0.2), comparisons=10).needed > found.needed


@pytest.mark.parametrize("test", ["permutation", "t"])
def test_by_simulation(test: str) -> None:
    """As many queries as planned show the difference in about 80 of 100 samples."""
    n = plan(spread_of(50, 0.5, 1.0)).needed
    rng, trials = np.random.default_rng(1), 300
    shown = [
        compare(reports(a=rng.standard_normal(n) + 0.5, b=np.zeros(n)), test, n_resamples=400).differences[0].shown
        for _ in range(trials)
    ]
    assert np.mean(shown) == pytest.approx(0.8, abs=3 * np.sqrt(0.8 * 0.2 / trials) + 0.01)


def test_power_is_the_chance_of_the_test() -> None:
    rng = np.random.default_rng(2)
    p = stats.ttest_1samp(rng.standard_normal((4000, 20)) + 0.4, 0, axis=1).pvalue
    assert power_of(20, 0.4, 0.05) == pytest.approx((p <= 0.05).mean(), abs=0.025)


def test_ends() -> None:
    assert plan(np.zeros(10)).needed is None
    assert plan(np.full(10, 0.25)).needed == 2
    assert plan(spread_of(10, 1e-9, 1.0)).needed is None
    assert "no number" in str(tr.queries_needed(FakeReport({"map": [0, 0]}), FakeReport({"map": [0, 0]})))
    huge = plan(spread_of(5000, 5.0, 1.0))
    assert (huge.power, huge.needed <= 5) == (1.0, True)


def test_what_is_said() -> None:
    found = tr.queries_needed(FakeReport({"map": [0.5, 0.25, 1]}), FakeReport({"map": [0.25, 0.25, 0.5]}))
    assert "may be luck: better name the smallest that matters" in str(found)
    named = tr.queries_needed(*(FakeReport({"map": v}) for v in ([0.5, 0, 1], [0.25, 0.25, 0.5])), difference=0.01)
    assert "may be luck" not in str(named)
    with pytest.raises(KeyError, match="'mrr' was not planned for"):
        found["mrr"]
    one, two = FakeReport({"map": [1.0]}), FakeReport({"map": [1.0, 0.5]})
    for args, options, message in (
        ((one, one), {}, "1 query says nothing about spread"),
        ((two, two), {"power": 0.01}, "power must be"),
        ((two, two), {"alpha": 0}, "alpha must be"),
        ((two, two), {"difference": -1}, "difference must be"),
        ((two, one), {}, "hold different queries"),
        ((two, 3), {}, "'b' is no report but int"),
    ):
        with pytest.raises(InputError, match=message):
            tr.queries_needed(*args, **options)
