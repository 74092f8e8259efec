from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import precision_at_k as oracle
from toprank.errors import InputError
from toprank.surrogates import PrecAvg, PrecMax, PrecRamp, PrecStruct

KINDS = {PrecStruct: oracle.struct, PrecRamp: oracle.ramp, PrecAvg: oracle.avg, PrecMax: oracle.maximum}
BOUNDS = (PrecRamp, PrecAvg, PrecMax)


@st.composite
def lists(draw, longest=7):
    """Scores with many ties, 0/1 labels with at least one positive, and k ≤ n₊."""
    y = draw(st.lists(st.integers(0, 1), min_size=1, max_size=longest).filter(any))
    s = draw(st.lists(st.integers(-6, 6).map(lambda v: v / 4), min_size=len(y), max_size=len(y)))
    return s, y, draw(st.integers(1, sum(y)))


def value(kind, s, y, k, **options):
    return kind(k=k, **options).value_and_grad(s, y, [0, len(s)])


@settings(deadline=None, max_examples=150)
@given(lists())
def test_every_surrogate_is_the_maximum_over_all_labelings(case):
    s, y, k = case
    for kind, naive in KINDS.items():
        assert value(kind, s, y, k)[0] == pytest.approx(naive(s, y, k), abs=1e-12), kind


@settings(deadline=None, max_examples=20)
@given(lists(longest=10))
def test_longer_lists_too(case):
    s, y, k = case
    for kind, naive in KINDS.items():
        assert value(kind, s, y, k)[0] == pytest.approx(naive(s, y, k), abs=1e-12), kind


@settings(deadline=None, max_examples=200)
@given(lists(longest=20))
def test_the_hierarchy_loss_ramp_avg_max(case):
    s, y, k = case
    values = [value(kind, s, y, k)[0] for kind in BOUNDS]
    assert oracle.loss(s, y, k) <= values[0] + 1e-12
    assert values[0] <= values[1] + 1e-12
    assert values[1] <= values[2] + 1e-12


@settings(deadline=None, max_examples=100)
@given(lists(longest=20))
def test_avg_is_struct_where_k_is_all_the_positives(case):
    s, y, _ = case
    assert value(PrecAvg, s, y, sum(y))[0] == pytest.approx(value(PrecStruct, s, y, sum(y))[0], abs=1e-12)


@settings(deadline=None, max_examples=200)
@given(lists(longest=20), st.integers(0, 2**32 - 1))
def test_the_subgradient_inequality_holds_for_the_convex_ones(case, seed):
    s, y, k = case
    other = np.array(s) + np.random.default_rng(seed).normal(size=len(s))
    for kind in (PrecStruct, PrecAvg, PrecMax):
        here, grad = value(kind, s, y, k)
        assert value(kind, other, y, k)[0] >= here + grad @ (other - s) - 1e-9, kind


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_the_gradient_is_the_slope_where_there_is_one(seed):
    rng = np.random.default_rng(seed)
    s, y = rng.normal(size=60), (rng.random(60) < 0.4).astype(float)
    y[0], k, h = 1.0, int(rng.integers(1, 20)), 1e-7
    for kind in KINDS:
        surrogate = kind(k=k)
        _, grad = surrogate.value_and_grad(s, y, [0, 60])
        direction = rng.normal(size=60)
        up = surrogate.value_and_grad(s + h * direction, y, [0, 60])[0]
        down = surrogate.value_and_grad(s - h * direction, y, [0, 60])[0]
        assert (up - down) / (2 * h) == pytest.approx(grad @ direction, abs=1e-4), kind


@settings(deadline=None, max_examples=100)
@given(lists(longest=15), st.integers(-20, 20))
def test_a_shift_of_all_scores_changes_only_struct(case, shift):
    s, y, k = case
    moved = [z + shift for z in s]
    for kind in BOUNDS:
        here, grad = value(kind, s, y, k)
        assert value(kind, moved, y, k)[0] == pytest.approx(here, abs=1e-9), kind
        assert grad.sum() == pytest.approx(0, abs=1e-9), kind
    expected = value(PrecStruct, s, y, k)[0] - shift * (sum(y) - k)
    assert value(PrecStruct, moved, y, k)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("k", "n"), [(1, 40), (13, 400), (70, 400), (200, 3000)])
def test_long_lists_against_the_sorted_formulas(k, n):
    rng = np.random.default_rng(k)
    for s in (rng.normal(size=n), rng.integers(0, 5, size=n) / 2, np.zeros(n), np.arange(n) / 7, -np.arange(n) / 7):
        y = (rng.random(n) < 0.5).astype(float)
        y[: k + 1], y[-1] = 1.0, 0.0
        up, down = -np.sort(-s[y == 1]), -np.sort(-s[y == 0])
        first = np.sort(s + 1 - y)[::-1][:k].sum()
        n_pos = len(up)
        swaps = range(min(k, len(down)) + 1)
        avg = max(j + down[:j].sum() - (j / (n_pos - k + j) * up[k - j :].sum() if j else 0) for j in swaps)
        most = max(sum(1 + down[i] - up[n_pos - 1 - i] for i in range(j)) for j in (0, *swaps[1:]))
        assert value(PrecStruct, s, y, k)[0] == pytest.approx(first - up.sum())
        assert value(PrecRamp, s, y, k)[0] == pytest.approx(first - up[:k].sum())
        assert value(PrecAvg, s, y, k)[0] == pytest.approx(avg)
        assert value(PrecMax, s, y, k)[0] == pytest.approx(most)


def test_of_tied_scores_the_earlier_row_is_the_better_one():
    s, y = [0.0, 0.0, 0.0, 0.0], [1, 0, 0, 1]
    assert value(PrecAvg, s, y, 1)[1].tolist() == [-0.5, 1.0, 0.0, -0.5]
    assert value(PrecMax, s, y, 1)[1].tolist() == [0.0, 1.0, 0.0, -1.0]
    assert value(PrecRamp, s, y, 1)[1].tolist() == [-1.0, 1.0, 0.0, 0.0]
    assert value(PrecStruct, s, y, 1)[1].tolist() == [-1.0, 1.0, 0.0, -1.0]


def test_a_list_with_fewer_than_k_positives_is_judged_at_all_of_them():
    s, y = [0.3, 0.1, 0.2, -1.0], [1, 0, 1, 0]
    for kind in KINDS:
        assert value(kind, s, y, 9)[0] == value(kind, s, y, 2)[0]


def test_without_positives_nothing_is_lost_and_without_negatives_no_bound_is_above_zero():
    for kind in KINDS:
        here, grad = value(kind, [1.0, 2.0], [0, 0], 1)
        assert (here, grad.tolist()) == (0.0, [0.0, 0.0])
    for kind in BOUNDS:
        assert value(kind, [1.0, 2.0], [1, 1], 1)[0] == 0.0
    assert value(PrecStruct, [1.0, 2.0], [1, 1], 1)[0] == -1.0


def test_kappa_is_a_share_of_the_positives_rounded_up_without_dust():
    rng = np.random.default_rng(0)
    s = rng.normal(size=300)
    y = np.r_[np.ones(100), np.zeros(200)]
    for kappa, k in ((0.07, 7), (0.071, 8), (0.29, 29), (1.0, 100), (0.001, 1)):
        whole = PrecAvg(kappa=kappa).value_and_grad(s, y, [0, 300])[0]
        assert whole == value(PrecAvg, s, y, k)[0]
        assert PrecAvg(kappa=kappa, normalize=True).value_and_grad(s, y, [0, 300])[0] == pytest.approx(whole / k)


def test_lists_add_up_and_grades_are_cut_at_above():
    rng = np.random.default_rng(1)
    s, y, ptr = rng.normal(size=30), rng.integers(0, 4, size=30).astype(float), [0, 12, 12, 30]
    for kind in KINDS:
        total, grad = kind(k=2, above=1.0).value_and_grad(s, y, ptr)
        parts = [kind(k=2).value_and_grad(s[a:b], y[a:b] > 1, [0, b - a]) for a, b in ((0, 12), (12, 30))]
        assert total == pytest.approx(parts[0][0] + parts[1][0])
        np.testing.assert_allclose(grad, np.concatenate([parts[0][1], parts[1][1]]))


def test_the_normalised_gradient_is_divided_list_by_list():
    s, y, ptr = [0.0, 0.0, 0.0, 0.0, 0.0], [1, 1, 0, 0, 1], [0, 4, 5]
    plain = PrecAvg(k=2).value_and_grad(s, y, ptr)[1]
    np.testing.assert_allclose(PrecAvg(k=2, normalize=True).value_and_grad(s, y, ptr)[1], plain / [2, 2, 2, 2, 1])


def test_what_a_surrogate_says_of_itself():
    assert str(PrecAvg(k=5).upper_bounds) == "p@5"
    assert PrecStruct(k=5).upper_bounds is None
    assert [kind.convex for kind in KINDS] == [True, False, True, True]


@pytest.mark.parametrize("options", [{"k": 0}, {"k": 1.5}, {"kappa": 0.0}, {"kappa": 1.5}, {"k": 1, "kappa": 0.5}])
def test_a_cutoff_that_makes_no_sense_is_refused(options):
    with pytest.raises(InputError, match=r"k|kappa"):
        PrecAvg(**options)


def test_struct_is_no_upper_bound_and_its_minimiser_is_wrong():
    """Every positive is separated from the negative by a margin, and yet struct prefers to rank the negative first."""
    exhibit = tr.papers.precision_at_top.counterexample()
    X, y = np.array(exhibit.data["X"]), np.array(exhibit.data["y"])
    k = exhibit.data["k"]
    right, wrong = np.array(exhibit.data["right"]), np.array(exhibit.data["struct"])
    assert oracle.strong_margin(list(X @ right), list(y)) >= 1
    assert oracle.loss(list(X @ wrong), list(y), k) > 0
    assert oracle.struct(list(X @ wrong), list(y), k) < oracle.loss(list(X @ wrong), list(y), k)
    assert oracle.struct(list(X @ wrong), list(y), k) < oracle.struct(list(X @ right), list(y), k)
    assert oracle.loss(list(X @ np.array(exhibit.data["avg"])), list(y), k) == 0
