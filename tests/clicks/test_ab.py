"""An A/B test by rewards that may be looked at after every session errs as rarely as it says, and sees differences."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import toprank as tr
from tests.oracles import clicks as oracle
from tests.oracles.betting import outcomes
from toprank import InputError
from toprank.clicks import ABMonitor, ab_sessions_needed
from toprank.clicks.ab import BETS


def after(a, b, **settings):
    monitor = ABMonitor(**settings)
    for reward in a:
        monitor.add_a(reward)
    for reward in b:
        monitor.add_b(reward)
    return monitor


@pytest.mark.parametrize(("n_a", "n_b", "ratio"), [(0, 3, (1, 1)), (7, 7, (1, 1)), (30, 22, (1, 1)), (29, 9, (3, 1))])
def test_e_is_what_its_definition_says(n_a, n_b, ratio):
    rng = np.random.default_rng(n_a)
    a, b = rng.random(n_a).tolist(), (rng.random(n_b) ** 3).tolist()
    first, second = (
        oracle.ab_capital(*arms, 0.0, BETS, sides) for arms, sides in [((a, b), ratio), ((b, a), ratio[::-1])]
    )
    monitor = after(a, b, ratio=ratio)
    assert monitor.e_value == pytest.approx((first + second) / 2, rel=1e-9)
    assert (monitor.n, monitor.n_a, monitor.n_b) == (n_a + n_b, n_a, n_b)


def test_the_interval_is_what_the_bets_do_not_reject():
    rng = np.random.default_rng(1)
    a, b = rng.random(40).tolist(), (0.5 * rng.random(40)).tolist()
    lower, mean, upper = after(a, b, alpha=0.1).interval
    assert lower == pytest.approx(oracle.ab_lower(a, b, 0.05, BETS), abs=1 / 1000)
    assert upper == pytest.approx(-oracle.ab_lower(b, a, 0.05, BETS), abs=1 / 1000)
    assert mean == pytest.approx(np.mean(a) - np.mean(b), rel=1e-12)
    # other units: seconds of reading from -30 to 90
    seconds = after(*([120 * x - 30 for x in arm] for arm in (a, b)), low=-30, high=90, alpha=0.1)
    assert seconds.interval == pytest.approx([120 * end for end in (lower, mean, upper)], rel=1e-9)
    assert seconds.p == pytest.approx(after(a, b, alpha=0.1).p, rel=1e-9)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({0.0: 0.5, 1.0: 0.5}, {0.0: 0.5, 1.0: 0.5}),
        ({0.0: 0.9, 1.0: 0.1}, {0.1: 1.0}),
        ({0.0: 0.1, 1.0: 0.9}, {0.8: 0.5, 1.0: 0.5}),
        ({0.5: 1.0}, {0.0: 0.5, 1.0: 0.5}),
    ],
)
def test_e_is_expected_to_be_1_at_most_where_means_are_equal(a, b):
    """Over all sequences of four pairs, each with its probability: both bets, after each number of pairs."""
    expected = np.zeros((4, 2))
    for (mine, p), (theirs, q) in itertools.product(outcomes(a, 4), outcomes(b, 4)):
        monitor = ABMonitor()
        for k, pair in enumerate(zip(mine, theirs, strict=True)):
            monitor.add_a(pair[0]).add_b(pair[1])
            expected[k] += [p * q * math.exp(monitor._log_capital(0.0, sign)) for sign in (1, -1)]
    assert (expected <= 1 + 1e-12).all()
    assert (expected > 0.5).all()


def log_capitals(d):
    """ln of both bets of many streams after each pair, for all pairs at once."""
    n = np.arange(1, d.shape[1] + 1)
    total = d.cumsum(axis=1)
    center = np.concatenate([np.zeros((len(d), 1)), (total / n)[:, :-1]], axis=1)
    spread = ((d - center) ** 2).cumsum(axis=1)
    shares = np.cbrt(BETS) / np.cbrt(BETS).sum()
    both = np.full((2, *d.shape), -np.inf)
    for share, bet in zip(shares, BETS, strict=True):
        cost = (-np.log1p(-bet) - bet) * spread / 4
        for side, sign in enumerate((1, -1)):
            np.logaddexp(both[side], np.log(share) + sign * bet * total / 2 - cost, out=both[side])
    return both


def clicks_of(share):
    return lambda rng, size: (rng.random(size) < share).astype(float)


def reciprocal_ranks(rng, size):
    """1 over the rank of the first click; one session in two has none."""
    rank = rng.geometric(0.4, size)
    return np.where(rng.random(size) < 0.5, 1 / rank, 0.0)


def reading(rng, size):
    """Seconds of reading, most of them few, capped at 300; the unit is the cap."""
    return np.minimum(rng.lognormal(2, 1.5, size), 300) / 300


NULLS = {
    "clicks": (clicks_of(0.3), clicks_of(0.3)),
    "seldom": (clicks_of(0.02), clicks_of(0.02)),
    "reciprocal rank": (reciprocal_ranks, reciprocal_ranks),
    "reading": (reading, reading),
    "one that does not vary": (clicks_of(0.1), lambda rng, size: np.full(size, 0.1)),
}


def pairs_of(kinds, repeats, pairs, seed):
    rng = np.random.default_rng(seed)
    return kinds[0](rng, (repeats, pairs)) - kinds[1](rng, (repeats, pairs))


@pytest.mark.parametrize("repeats", [250, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kinds", NULLS)
def test_a_look_after_every_session_errs_in_5_percent_at_most(kinds, repeats):
    enough, shown = math.log(2 / 0.05), []
    for seed in range(repeats // 125):
        both = log_capitals(pairs_of(NULLS[kinds], 125, 2000, seed))
        shown.append((both >= enough).any(axis=2))
    first, second = np.concatenate(shown, axis=1)
    print(f"{kinds}: {repeats:,} experiments, errors {(first | second).mean():.2%} ({first.mean():.2%} for the first)")
    assert first.mean() <= 0.025
    assert second.mean() <= 0.025


def test_the_monitor_is_the_formula_of_the_simulations():
    d = pairs_of((clicks_of(0.6), reading), 3, 400, 5)
    first, second = log_capitals(d)
    for row in range(3):
        monitor = ABMonitor()
        for k, x in enumerate(d[row]):
            monitor.add_a(max(x, 0)).add_b(max(-x, 0))
            assert monitor._log_capital(0.0, 1) == pytest.approx(first[row, k], abs=1e-9)
            assert monitor._log_capital(0.0, -1) == pytest.approx(second[row, k], abs=1e-9)
        assert monitor.largest_log_first == pytest.approx(first[row].max(), abs=1e-9)


def test_the_z_test_would_err_far_more_often():
    """What the monitor is for: a z test looked at every 50 pairs."""
    d = pairs_of(NULLS["clicks"], 500, 2000, 0)
    n = np.arange(1, 2001)
    z = d.cumsum(axis=1) / np.sqrt(np.maximum((d**2).cumsum(axis=1), 1)) * (n >= 50)
    assert (np.abs(z[:, 49::50]) > 1.96).any(axis=1).mean() > 0.2


def test_the_interval_holds_the_difference_at_all_times():
    """At α = 0.4, so that an interval that is too short would miss often."""
    missed, rng = 0, np.random.default_rng(3)
    for _ in range(40):
        monitor, outside = ABMonitor(alpha=0.4), False
        for a, b in zip(rng.random(120) < 0.6, rng.random(120) < 0.4, strict=True):
            lower, _, upper = monitor.add_a(a).add_b(b).interval
            outside |= not lower <= 0.2 <= upper
        missed += outside
    assert missed <= 0.4 * 40


def test_a_difference_is_seen_when_planning_says_so():
    planned = ab_sessions_needed(0.1, std=math.sqrt(0.35 * 0.65))
    both = log_capitals(pairs_of((clicks_of(0.4), clicks_of(0.3)), 300, 3000, 1))
    shown = both[0] >= math.log(2 / 0.05)
    assert shown.any(axis=1).mean() > 0.99
    when = 2 * (shown.argmax(axis=1) + 1)
    assert np.quantile(when, 0.35) < planned.anytime < np.quantile(when, 0.7)
    assert not (both[1] >= math.log(2 / 0.05)).any()
    d = pairs_of((clicks_of(0.4), clicks_of(0.3)), 4000, planned.fixed // 2, 2)
    z = d.mean(axis=1) / (d.std(axis=1) / math.sqrt(d.shape[1]))
    assert (z > 1.96).mean() == pytest.approx(0.8, abs=0.03)


def test_more_of_one_are_compared_in_groups():
    """Nine in ten sessions for the first: groups of nine waste none, and need fewer sessions than pairs."""
    rng = np.random.default_rng(0)
    grouped, paired = ABMonitor(ratio=(9, 1)), ABMonitor()
    for _ in range(800):
        for reward in rng.random(9) < 0.5:
            grouped.add_a(reward)
            paired.add_a(reward)
        served = rng.random() < 0.3
        grouped.add_b(served)
        paired.add_b(served)
    assert grouped.verdict == "first"
    assert grouped.largest_log_first > paired.largest_log_first
    assert (grouped.pairs, len(grouped.waiting_a), len(paired.waiting_a)) == (800, 0, 6400)
    assert ab_sessions_needed(0.2, 0.5, ratio=(9, 1)).fixed < 5 * ab_sessions_needed(0.2, 0.5).fixed


def test_nothing_is_said_where_nothing_differs():
    rng = np.random.default_rng(7)
    coin = after(rng.random(3000) < 0.5, [0.5] * 3000)
    assert (coin.verdict, coin.p > 0.05) == ("undecided", True)
    assert coin.interval.lower < 0 < coin.interval.upper
    assert "no difference shown so far" in str(coin)
    empty = ABMonitor(high=2.0)
    assert (empty.verdict, empty.p, empty.n) == ("undecided", 1.0, 0)
    assert empty.e_value == pytest.approx(1, rel=1e-12)
    assert (empty.interval.lower, empty.interval.upper) == (-2.0, 2.0)
    alone = after([1.0] * 5000, [])  # one ranker alone says nothing of the other
    assert (alone.verdict, alone.p) == ("undecided", 1.0)
    assert after([0.9] * 4, [0.1] * 4).verdict == "undecided"  # four sessions are few


def test_verdict_and_text():
    first, second = after([0.9] * 200, [0.2] * 200), after([0.2] * 200, [0.9] * 200)
    assert (first.verdict, second.verdict) == ("first", "second")
    assert "the first is worth more" in str(first)
    assert "the second is worth more" in str(second)
    assert first.p == second.p <= 0.05
    assert first.interval.lower == pytest.approx(-second.interval.upper, abs=1e-12)
    caught_up = after([0.9] * 200 + [0.5] * 2000, [0.2] * 200 + [0.5] * 2000)
    assert caught_up.verdict == "first"  # what was shown stays shown
    assert caught_up.p == first.p
    turned = after([0.9] * 200 + [0.0] * 3000, [0.2] * 200 + [1.0] * 3000)
    assert turned.verdict == "undecided"  # both were shown: the users have changed
    assert ABMonitor().add("a", 1).add("b", 0) == after([1], [0])


@pytest.mark.parametrize("ratio", [(1, 1), (3, 2)])
def test_a_saved_monitor_goes_on_with_the_same_numbers(ratio):
    rng = np.random.default_rng(11)
    rewards = [(str(rng.choice(["a", "b"])), float(x)) for x in 7 * rng.random(500) - 2]
    through, saved = (ABMonitor(low=-2, high=5, ratio=ratio) for _ in range(2))
    for arm, reward in rewards:
        through.add(arm, reward)
        saved = ABMonitor.from_json(saved.add(arm, reward).to_json())
    assert saved == through
    assert ABMonitor.from_json(ABMonitor(alpha=np.float64(0.1), low=np.int64(-2)).to_json()).alpha == 0.1
    assert (saved.e_value, saved.p, saved.interval) == (through.e_value, through.p, through.interval)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_a": 12}, {"pairs": -1},
        {"n_a": 502, "n_b": 500, "pairs": 500, "total": 400.0},
        {"total": 1e9}, {"total": "3"}, {"spread": -1.0}, {"waiting_a": [2.0]},
        {"largest_log_first": -1.0}, {"alpha": 2}, {"low": 3.0}, {"ratio": [1]}, {"monitor": "InterleavingMonitor"},
        {"more": 1}, {"total": None},
    ],
)  # fmt: skip
def test_what_no_monitor_wrote_is_refused(changes):
    content = json.loads(after([0.5, 1.0, 0.0], [0.2]).to_json())
    with pytest.raises(InputError, match="not the state of an ABMonitor"):
        ABMonitor.from_json(json.dumps(content | changes))
    content.pop("spread")
    for text in (json.dumps(content), "[]", "{", "", b"\xff"):
        with pytest.raises(InputError, match="not the state of an ABMonitor"):
            ABMonitor.from_json(text)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ABMonitor().add_a(1.5), "a reward is a number from 0 to 1, got 1.5: cap it"),
        (lambda: ABMonitor(high=60).add_b(-1), "from 0 to 60, got -1"),
        (lambda: ABMonitor().add_a(math.nan), "got nan"),
        (lambda: ABMonitor().add_a("1"), "got '1'"),
        (lambda: ABMonitor().add("c", 1), "arm must be 'a' or 'b', got 'c'"),
        (lambda: ABMonitor(low=1, high=1), "low must be below high"),
        (lambda: ABMonitor(high=math.inf), "high must be a finite number"),
        (lambda: ABMonitor(alpha=0), "alpha must be"),
        (lambda: ABMonitor(ratio=(0, 1)), r"ratio\[0\] must be a whole number of at least 1"),
        (lambda: ABMonitor(ratio=3), "ratio must be two whole numbers"),
        (lambda: ab_sessions_needed(0, 0.5), "difference must not be 0"),
        (lambda: ab_sessions_needed(1, 0.5), "differ by less than 1"),
        (lambda: ab_sessions_needed(0.1, 0.6), "their std is at most 0.5"),
        (lambda: ab_sessions_needed(0.1, 0), "std must be a number above 0"),
        (lambda: ab_sessions_needed(1e-6, 0.5), "too small to be seen"),
        (lambda: ab_sessions_needed(0.1, 0.5, power=1), "power must be"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_a_refused_reward_changes_nothing():
    monitor = after([0.5], [0.25])
    before = monitor.to_json()
    with pytest.raises(InputError):
        monitor.add_a(2)
    assert monitor.to_json() == before
    assert tr.clicks.ABMonitor is ABMonitor
