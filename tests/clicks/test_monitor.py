"""An interleaving test that may be looked at after every session errs as rarely as it says, and sees differences."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from toprank import InputError
from toprank.clicks import InterleavingMonitor, interleaving_test, sessions_needed
from toprank.clicks.monitor import PRIOR


def after(wins_first, wins_second, alpha=0.05):
    monitor = InterleavingMonitor(alpha)
    for _ in range(wins_first):
        monitor.add(1, 0)
    for _ in range(wins_second):
        monitor.add(0, 3)
    return monitor


@pytest.mark.parametrize(("a", "b"), [(0, 0), (3, 1), (40, 60), (200, 250)])
def test_e_is_the_integral_of_its_definition(a, b):
    def likelihood_ratio(share):
        return np.exp(a * np.log(2 * share) + b * np.log(2 * (1 - share))) * beta.pdf(share, PRIOR, PRIOR)

    expected, _ = quad(likelihood_ratio, 0, 1, points=[0.4, 0.5, 0.6])
    assert after(a, b).e_value == pytest.approx(expected, rel=1e-6)


def test_e_is_expected_to_stay_1_where_users_do_not_tell_the_rankers_apart():
    """Over all sequences of ten sessions, each as likely: the mean of e after each number of sessions is 1."""
    for n in range(1, 11):
        values = []
        for code in range(2**n):
            first = bin(code).count("1")
            values.append(after(first, n - first).e_value)
        assert np.mean(values) == pytest.approx(1.0, rel=1e-12)


def looked_at_always(share, sessions, repeats, seed, alpha=0.05):
    """Whether and when each stream is shown, by the formula for all sessions at once."""
    from scipy.special import betaln

    wins = (np.random.default_rng(seed).random((repeats, sessions)) < share).cumsum(axis=1)
    n = np.arange(1, sessions + 1)
    log_e = betaln(PRIOR + wins, PRIOR + n - wins) - betaln(PRIOR, PRIOR) + n * np.log(2)
    shown = log_e >= -np.log(alpha)
    return shown.any(axis=1), np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, sessions)


@pytest.mark.parametrize("repeats", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_look_after_every_session_errs_in_5_percent_at_most(repeats):
    shown = np.concatenate([looked_at_always(0.5, 4000, 250, seed)[0] for seed in range(repeats // 250)])
    assert shown.mean() <= 0.05


def test_the_fixed_test_would_err_far_more_often():
    """What the monitor is for: the sign test looked at every 100 sessions."""
    from scipy.stats import norm

    wins = (np.random.default_rng(0).random((500, 4000)) < 0.5).cumsum(axis=1)[:, 99::100]
    n = np.arange(100, 4001, 100)
    assert (2 * norm.sf(np.abs(2 * wins - n) / np.sqrt(n)) < 0.05).any(axis=1).mean() > 0.2


def test_a_difference_is_seen_when_planning_says_so():
    shown, when = looked_at_always(0.55, 6000, 400, 1)
    assert shown.mean() > 0.99
    planned = sessions_needed(0.55)
    assert np.median(when) < planned.anytime < np.quantile(when, 0.8)
    # the fixed number of sessions has the power that was asked for, by the exact test
    from scipy.stats import binom

    n = planned.fixed
    threshold = next(k for k in range(n // 2, n) if 2 * binom.sf(k - 1, n, 0.5) <= 0.05)
    assert binom.sf(threshold - 1, n, 0.55) == pytest.approx(0.8, abs=0.03)


def test_the_interval_holds_the_share_at_all_times():
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(60):
        monitor, outside = InterleavingMonitor(0.2), False
        for won in rng.random(300) < 0.6:
            monitor.add(won, not won)
            lower, _, upper = monitor.interval
            outside |= not lower <= 0.6 <= upper
        missed += outside
    assert missed <= 0.2 * 60
    lower, mean, upper = after(60, 40).interval
    assert lower < 0.6 == mean < upper
    assert after(60, 40).interval.lower == pytest.approx(1 - after(40, 60).interval.upper, abs=1e-12)


def test_verdict_and_text():
    monitor = InterleavingMonitor()
    assert monitor.verdict == "undecided"
    assert (monitor.e_value, monitor.p) == (1.0, 1.0)
    assert "no difference shown so far" in str(after(5, 5))
    assert after(90, 10).verdict == "first"
    assert after(10, 90).verdict == "second"
    assert "the second is clicked more" in str(after(10, 90))
    lost = after(90, 10)
    for _ in range(85):
        lost.add(0, 1)
    assert lost.p == after(90, 10).p  # what was shown stays shown
    assert lost.verdict == "first"  # that the second has won more since, 95 to 90, shows nothing for it
    assert lost.n == 185
    same = interleaving_test([[1, 0]] * 90 + [[0, 3]] * 10 + [[2, 2]], anytime=True)
    assert (same.wins_first, same.wins_second, same.ties) == (90, 10, 1)
    assert same.p == after(90, 10).p


def test_a_saved_monitor_goes_on_with_the_same_numbers():
    through, saved = InterleavingMonitor(0.01), InterleavingMonitor(0.01)
    for won in np.random.default_rng(4).random(600) < 0.7:
        through.add(won, not won)
        saved = InterleavingMonitor.from_json(saved.add(won, not won).to_json())
    assert saved == through
    assert saved.verdict == "first"
    assert (saved.e_value, saved.p, saved.interval) == (through.e_value, through.p, through.interval)


@pytest.mark.parametrize(
    "changes",
    [
        {"wins_first": -1},
        {"wins_first": 90},
        {"shown": "first"},
        {"ties": 0.5},
        {"monitor": "ABMonitor"},
        {"alpha": None},
    ],
)
def test_what_no_monitor_wrote_is_refused(changes):
    content = json.loads(after(3, 1).to_json())
    with pytest.raises(InputError, match="not the state of an InterleavingMonitor"):
        InterleavingMonitor.from_json(json.dumps(content | changes))


def test_bad_input_is_named():
    with pytest.raises(InputError, match="credits are numbers from 0 on"):
        InterleavingMonitor().add(-1, 0)
    with pytest.raises(InputError, match="credits are numbers from 0 on"):
        InterleavingMonitor().add(float("nan"), 0)
    with pytest.raises(InputError, match="alpha"):
        InterleavingMonitor(alpha=2.0)
    with pytest.raises(InputError, match="two columns"):
        interleaving_test([1, 2], anytime=True)
