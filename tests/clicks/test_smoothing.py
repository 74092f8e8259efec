"""Propensities near a power law: what is believed before a log is read must give way to what the log tells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.oracles import clicks as oracle
from toprank.clicks import ClickLog, Propensities
from toprank.clicks.smoothing import SPREADS, smooth

PLACES = np.arange(1, 7)
CURVES = {"power": PLACES**-0.8, "step": np.where(PLACES < 4, 1.0, 0.3), "flat": np.ones(6)}


def made(p, pairs, shown, seed):
    """A log of documents that moved between two positions each, shown so often at either."""
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(pairs), 2)
    position = np.concatenate([rng.choice(len(p), 2, replace=False) + 1 for _ in range(pairs)])
    clicks = rng.binomial(shown, p[position - 1] * np.repeat(rng.choice([0.1, 0.9], pairs), 2))
    flags = np.concatenate([np.arange(shown) < n for n in clicks])
    return ClickLog.from_arrays(
        np.repeat(document, shown), np.repeat(document, shown), np.repeat(position, shown), flags
    )


def error(found, p):
    return np.abs(np.log(found.values / p)).mean()


def test_the_mean_of_the_best_curves_by_how_likely_each_spread_is():
    cells = [
        ("a", 1, 100, 60),
        ("a", 2, 120, 60),
        ("b", 2, 80, 40),
        ("b", 3, 200, 50),
    ]  # document, place, shown, clicks
    rows = [("q", d, k, i < clicks) for d, k, shown, clicks in cells for i in range(shown)]
    table = oracle.counts(rows)
    best, mass = [], []
    for spread in SPREADS:
        top = minimize(lambda t, s=spread: -oracle.belief(table, [0, *t], s), [0.0, 0.0], tol=1e-10)
        best.append(np.append(0.0, top.x))
        grid = [np.linspace(at - 1.5, at + 1.5, 61) for at in top.x]
        mass.append(sum(np.exp(oracle.belief(table, [0, a, b], spread) + top.fun) for a in grid[0] for b in grid[1]))
        mass[-1] *= np.exp(-top.fun - oracle.belief(table, [0, 0, 0], 1.0))
    log = ClickLog.from_arrays(*map(list, zip(*rows, strict=True)))
    counts = log.counts
    told = (counts.ptr, counts.position - 1, counts.shown, counts.clicks, np.ones(counts.n_pairs))
    expected = np.array(mass) / sum(mass)
    np.testing.assert_allclose(smooth(told, 3)[1], expected, atol=0.01)  # Laplace's integral is an approximation
    found = Propensities.estimate(log, resamples=0)
    np.testing.assert_allclose(np.log(found.values), expected @ np.array(best), atol=0.002)
    assert found.converged


@pytest.mark.parametrize("name", CURVES)
def test_a_long_log_is_believed(name):
    log = made(CURVES[name], 60, 3000, 0)
    drawn = Propensities.estimate(log, resamples=40)
    plain = Propensities.estimate(log, "harvest", resamples=40)
    assert (np.abs(np.log(drawn.values / plain.values)) < np.log(plain.upper / plain.lower) / 2 + 1e-9).all()
    assert error(drawn, CURVES[name]) < 0.04
    width = np.log(drawn.upper / drawn.lower)[1:].sum() / np.log(plain.upper / plain.lower)[1:].sum()
    assert 0.5 < width < 1.3


@pytest.mark.parametrize("name", CURVES)
def test_a_short_log_gains(name):
    logs = [made(CURVES[name], 60, 10, seed) for seed in range(12)]
    errors = {how: np.mean([error(Propensities.estimate(log, how, resamples=0), CURVES[name]) for log in logs])
              for how in ("smooth", "harvest")}  # fmt: skip
    assert errors["smooth"] < errors["harvest"]


@pytest.mark.parametrize("name", CURVES)
def test_intervals_hold_the_truth_about_as_often_as_they_say(name):
    held = []
    for seed in range(15):
        found = Propensities.estimate(made(CURVES[name], 60, 15, seed), resamples=60)
        held.append(((found.lower <= CURVES[name]) & (CURVES[name] <= found.upper))[1:].mean())
    assert np.mean(held) > 0.85


def test_where_the_log_is_nearly_silent_the_interval_is_as_wide_as_what_is_believed():
    log = ClickLog.from_arrays(["q"] * 4, ["d"] * 4, [1, 1, 2, 2], [1, 0, 0, 0])
    found = Propensities.estimate(log, resamples=400)
    assert found.upper[1] / found.lower[1] > 5


def test_harvested_intervals_leave_out_logs_drawn_again_that_tell_nothing():
    for seed in (0, 1, 3):
        found = Propensities.estimate(made(CURVES["power"], 25, 6, seed), "harvest", resamples=60)
        assert (np.log(found.upper / found.lower) < 10).all()  # some ran to 0 or to NaN
