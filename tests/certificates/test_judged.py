"""Few people, many machines: the interval holds for every machine, and a good one makes it narrower."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import toprank as tr
from toprank.certificates.judged import judged_difference, judged_interval, sample_p_value

JUDGES = {
    "good": lambda h, rng: np.clip(h + 0.1 + rng.normal(scale=0.05, size=h.shape), 0, 1),
    "constant": lambda h, rng: np.full(h.shape, 0.7),
    "noise": lambda h, rng: rng.random(h.shape),
    "adversarial": lambda h, rng: 1 - h,
    "flattering": lambda h, rng: np.ones(h.shape),
}


def width(interval):
    return interval.upper - interval.lower


def slow_log_capital(h, f, m, judge_mean, size, target):
    """K by its definition, one draw after the other, with the regression and the variance computed anew each time."""
    capital = 0.0
    for t in range(len(h)):
        past_h, past_f = h[:t], f[:t]
        cov = np.mean(past_h * past_f) - past_h.mean() * past_f.mean() if t else 0.0
        var_f = past_f.var() if t else 0.0
        c = min(max(cov * t / (var_f * t + 0.25 * 1.0), 0.0), 1.5)
        residual = np.var(past_h - c * past_f) if t else 0.0
        variance = (0.25 + t * residual) / (t + 1)
        left = size - t
        m_t, phi_t = (size * m - past_h.sum()) / left, (size * judge_mean - past_f.sum()) / left
        if m_t < 0:
            return np.inf
        bet = min(np.sqrt(2 * (target - capital) / ((len(h) - t) * variance)), 0.9 / (m_t + c * (1 - phi_t)))
        capital += np.log1p(bet * ((h[t] - m_t) - c * (f[t] - phi_t)))
        if capital >= target:
            break
    return capital


def test_the_capital_is_that_of_the_definition():
    from toprank.certificates import _judged_kernels as kernels

    rng = np.random.default_rng(0)
    for _ in range(50):
        size, n = 60, int(rng.integers(1, 50))
        h, f = rng.random(n), rng.random(n)
        slope, variance = np.empty(n), np.empty(n)
        kernels.slopes_and_variances(h, f, slope, variance)
        m = float(rng.uniform(0.05, 0.95))
        found = kernels.log_capital(h, f, slope, variance, m, 0.5, size, 3.0)
        assert found == pytest.approx(slow_log_capital(h, f, m, 0.5, size, 3.0), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("judge", sorted(JUDGES))
def test_every_ordered_sample_of_a_small_population_is_tried_and_few_miss(judge):
    rng = np.random.default_rng(3)
    h = np.array([0.0, 1.0, 0.3, 0.9, 1.0, 0.2])
    f = JUDGES[judge](h, rng)
    missed = total = 0
    for chosen in itertools.permutations(range(6), 3):
        picked, others = list(chosen), [i for i in range(6) if i not in chosen]
        found = judged_interval(h[picked], f[picked], f[others], 0.6, with_machine=True)
        missed += not found.lower <= h.mean() <= found.upper
        total += 1
    assert missed <= 0.4 * total


@pytest.mark.parametrize("judge", sorted(JUDGES))
@pytest.mark.parametrize("target", ["these", "new"])
@pytest.mark.parametrize("repeats", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_the_interval_holds_whatever_the_judge(judge, target, repeats):
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(repeats):
        h = rng.beta(2, 3, size=300)
        f = JUDGES[judge](h, rng)
        found = judged_interval(h[:60], f[:60], f[60:], 0.8, target=target, with_machine=True)
        truth = h.mean() if target == "these" else 0.4
        missed += not found.lower <= truth <= found.upper
        assert found.with_machine
        # never wider than people alone by more than the share of δ that people keep
        assert found.lower >= judged_interval(h[:60], f[:60], f[60:], 0.98, target=target, with_machine=False).lower
    assert missed <= 0.2 * repeats


def test_a_good_judge_narrows_and_a_bad_one_does_not():
    rng = np.random.default_rng(1)
    h = rng.beta(2, 3, size=1000)
    found = {name: judged_interval(h[:200], f[:200], f[200:]) for name, make in JUDGES.items() for f in [make(h, rng)]}
    assert width(found["good"]) < 0.75 * width(found["good"].people)
    for name in ("constant", "noise", "adversarial", "flattering"):
        assert width(found[name]) > 0.95 * width(found[name].people), name
        assert width(found[name]) < 1.1 * width(found[name].people), name


def test_people_alone_below_fifty_and_all_of_them_exactly():
    rng = np.random.default_rng(2)
    h = rng.random(80)
    few = judged_interval(h[:49], h[:49], h[49:])
    assert not few.with_machine
    assert (few.lower, few.upper) == (few.people.lower, few.people.upper)
    assert judged_interval(h[:50], h[:50], h[50:]).with_machine
    whole = judged_interval(h, h, [])
    assert whole.lower == whole.upper == pytest.approx(h.mean())


def test_differences_lie_in_twice_the_range():
    rng = np.random.default_rng(4)
    a, b = rng.beta(3, 2, size=3000), rng.beta(2, 3, size=3000)
    judge_a, judge_b = np.clip(a + 0.1, 0, 1), np.clip(b + 0.1, 0, 1)
    n = 300
    found = judged_difference((a[:n], b[:n]), (judge_a[:n], judge_b[:n]), (judge_a[n:], judge_b[n:]))
    assert found.lower <= (a - b).mean() <= found.upper
    assert found.lower > 0
    assert width(found) < width(found.people)


def test_a_sample_that_is_not_random_is_seen():
    rng = np.random.default_rng(0)
    f = rng.random(200)
    assert sample_p_value(f[:50], f[50:]) > 0.05
    assert sample_p_value(np.sort(f)[:50], np.sort(f)[50:]) < 0.001
    assert sample_p_value(f, []) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [0.5, 0.5], [0.5]), "human has 1 values and judge 2"),
        (([0.5], [1.5], [0.5]), r"values must lie in \[0, 1\]"),
        (([], [], [0.5]), "there are no values"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(tr.InputError, match=message):
        tr.certificates.judged_interval(*arguments)
    with pytest.raises(tr.InputError, match="target must be one of 'these', 'new'"):
        tr.certificates.judged_interval([0.5], [0.5], [0.5], target="all")
