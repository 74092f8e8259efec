"""The sign-flip test where flips are many: exact counts, valid p-values below 1/(n + 1), and what is said about it."""

from __future__ import annotations

from itertools import product
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.oracles import compare as oracle
from tests.test_compare import FakeReport
from toprank.errors import InputError
from toprank.statistics import _bounded as bounds
from toprank.statistics import _intervals as intervals
from toprank.statistics import _statistics as statistics
from toprank.statistics.comparison import compare

LEVEL = 1e-5


def whole(z: float, n: int, seed: int, kind: str = "plain") -> np.ndarray:
    """Whole differences whose sum is about z times √Σd²."""
    if kind == "dominated":  # by two that agree: the others tell
        return np.append(whole(z, n - 2, seed), [50_000, 51_000])
    rng = np.random.default_rng(seed)
    sizes = {
        "plain": rng.integers(1, 40, n),
        "heavy": np.ceil(20 * np.abs(rng.standard_normal(n)) ** 3).astype(int),
        "equal": np.full(n, 3),
    }[kind]
    d = sizes * np.where(np.arange(n) % 2, 1, -1)
    for i in np.argsort(sizes, kind="stable"):  # turn minus into plus, small ones first, until the sum is there
        if d.sum() >= z * np.sqrt((sizes**2).sum()):
            break
        d[i] = sizes[i]
    return d


def sampled(d: np.ndarray, seed: int = 0, level: float | None = LEVEL, n_resamples: int = 10_000) -> np.ndarray:
    return statistics._sampled(np.atleast_2d(d).astype(float), n_resamples, np.random.default_rng(seed), level)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-30, 30), min_size=10, max_size=statistics.EXACT))
def test_all_flips_are_counted_up_to_the_limit(d: list[int]) -> None:
    """Tenths do not add without rounding: flips that tie must be counted all the same."""
    p = statistics.sign_flip(np.array([d, d[::-1]]) / 10, 1, np.random.default_rng(0))
    assert p.tolist() == [float(oracle.sign_flip_p_of_whole_numbers(d))] * 2


def test_the_two_oracles_agree() -> None:
    for d in ([1], [2, -2], [3, 1, 4, -1, 5], [0, 2, 7, 1, -8]):
        assert oracle.sign_flip_p_of_whole_numbers(d) == oracle.sign_flip_p(d)


@pytest.mark.parametrize("kind", ["plain", "heavy", "equal", "dominated"])
def test_tails_far_below_the_number_of_flips(kind: str) -> None:
    """10,000 flips tell p from 1/2 down to the level and beyond to a few per cent, as no 10,000 even flips could."""
    seen = []
    for z in (0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 4.5):
        d = whole(z, 60, seed=1, kind=kind)
        exact = float(oracle.sign_flip_p_of_whole_numbers(d.tolist()))
        seen.append(exact)
        estimates = np.array([sampled(d, seed)[0] for seed in range(8)])
        if exact < LEVEL / 1000:  # too far beyond the level to be told, and small enough
            assert (estimates > exact / 2).all()
            assert (estimates < LEVEL / 1000).all()
            continue
        near = 0.1 if exact > LEVEL / 10 else 0.6
        assert estimates == pytest.approx(exact, rel=2 * near)
        assert estimates.mean() == pytest.approx(exact, rel=near)
    assert min(seen) < 1e-5
    assert max(seen) > 0.1


def test_even_flips_are_the_textbook_estimate() -> None:
    d = whole(2.0, 40, seed=2)
    p = sampled(d, level=None, n_resamples=999)[0]
    assert (p * 1000) % 1 == pytest.approx(0, abs=1e-9)
    exact = float(oracle.sign_flip_p_of_whole_numbers(d.tolist()))
    assert p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 999) + 1e-3)
    assert sampled(np.ones(40), level=None, n_resamples=999)[0] == 1 / 1000


def test_p_is_never_nought() -> None:
    p = sampled(np.ones(40_000), n_resamples=20)
    assert 0 < p[0] < 1e-300


def test_sizes_of_every_order() -> None:
    """Twenty orders of magnitude: whatever the tilt comes to, p is a number, and the right one where it is large."""
    d = 10.0 ** -np.arange(0, 20, 0.5)
    p = sampled(np.array([d, d * np.where(np.arange(40) == 3, -1, 1), d * np.where(np.arange(40) == 0, -1, 1)]))
    assert p[0] < 1e-4
    assert p[1] == pytest.approx(2 / 2**4, rel=0.1)  # larger is what begins with + + + +, and its mirror
    assert p[2] == pytest.approx(1, rel=0.05)  # the smallest sum there is


@pytest.mark.parametrize("n_draws", [1, 2])
def test_valid_by_enumeration(n_draws: int) -> None:
    """Every observed pattern against every draw, with its probability: P(p ≤ a) ≤ a at each p that can come out."""
    from toprank.statistics._sign_flip_kernels import weight

    sizes, tilt, share = np.array([1.0, 2.0, 2.0, 3.5]), 0.9, 0.5
    log = float(np.log(np.cosh(tilt * sizes)).sum())
    patterns = np.array(list(product((1, -1), repeat=4)))
    plus = (1 + np.tanh(tilt * sizes)) / 2
    drawn = (1 - share) / 16 + share * np.where(patterns > 0, plus, 1 - plus).prod(axis=1)
    sums = np.abs(patterns @ sizes)
    weights = np.array([weight(s, tilt, log, share) for s in sums])
    # A tilt to the other side is as good: the weights are those of both together, and S counts by its size alone.
    assert 1 / 16 / weights == pytest.approx((drawn + drawn[::-1]) / 2, rel=1e-12)
    chance: dict[float, float] = {}
    for observed in range(16):
        for draws in product(range(16), repeat=n_draws):
            hits = sum(weights[i] for i in draws if sums[i] >= sums[observed] - 1e-9)
            p = round(float(weights[observed] + hits) / (n_draws + 1), 12)
            chance[p] = chance.get(p, 0.0) + float(np.prod(drawn[list(draws)])) / 16
    assert sum(chance.values()) == pytest.approx(1, abs=1e-9)
    for a in chance:
        assert sum(q for p, q in chance.items() if p <= a) <= a + 1e-9


@pytest.mark.parametrize("n_resamples", [3, 50])
def test_valid_by_simulation(n_resamples: int) -> None:
    """Random signs, random flips: no more p ≤ a than a, small a among them, even from a handful of flips."""
    sizes = np.random.default_rng(0).random(40) ** 3
    levels = np.array([1e-4, 0.001, 0.01, 0.05, 0.2, 0.5])
    shares = []
    for seed in range(250):
        signs = np.random.default_rng((seed, 1)).choice([-1.0, 1.0], size=(400, 40))
        p = sampled(signs * sizes, seed, level=0.001, n_resamples=n_resamples)
        shares.append((p[:, None] <= levels).mean(axis=0))
    error = np.std(shares, axis=0) / np.sqrt(len(shares))
    assert (np.mean(shares, axis=0) <= levels + 3 * error).all()
    assert np.mean(shares, axis=0)[1] > 0  # below 1/(n + 1), and yet it happens


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.45])
def test_agrees_with_scipy(shift: float) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal(60) + shift, rng.standard_normal(60)
    options = {"permutation_type": "samples", "vectorized": True, "alternative": "two-sided"}

    def mean_difference(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.mean(x - y, axis=axis)

    theirs = stats.permutation_test((a, b), mean_difference, n_resamples=9999, rng=1, **options).pvalue
    for level in (None, LEVEL):
        ours = sampled(a - b, level=level)[0]
        assert ours == pytest.approx(theirs, abs=5 * np.sqrt(2 * theirs * (1 - theirs) / 10_000) + 2e-4)
    few = stats.permutation_test((a[:12], b[:12]), mean_difference, n_resamples=2**12, **options).pvalue
    assert statistics.sign_flip((a - b)[None, :12], 1, rng)[0] == pytest.approx(few, abs=1e-14)


def test_blocks_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(0).standard_normal((3, 50)) + 0.3
    one = sampled(d, 5, n_resamples=1000)
    assert np.array_equal(one, sampled(d, 5, n_resamples=1000))
    monkeypatch.setattr(statistics, "_FLIPS", 350)
    assert sampled(d, 5, n_resamples=1000) == pytest.approx(one, rel=1e-12)


def systems(n: int, n_queries: int = 60, gap: float = 0.02) -> dict[str, FakeReport]:
    rng = np.random.default_rng(0)
    base = rng.random(n_queries)
    return {
        f"s{i}": FakeReport({m: base + gap * i + 0.2 * rng.random(n_queries) for m in ("map", "mrr")}) for i in range(n)
    }


@pytest.mark.parametrize("n_resamples", [None, 200])
def test_p_depends_on_no_order(n_resamples: int | None) -> None:
    forth = systems(4)
    back = {name: FakeReport(dict(reversed(forth[name].per_query.items()))) for name in reversed(forth)}
    mine, theirs = (compare(one, n_resamples=n_resamples) for one in (forth, back))
    for d in mine.differences:
        other = theirs.difference(d.measure, d.b, d.a)
        assert (d.p, d.p_holm, d.shown, d.wins) == (other.p, other.p_holm, other.shown, other.losses)
    assert max(d.p for d in mine.differences) > 0.01


def test_a_real_difference_shows_in_any_family() -> None:
    """780 tests: 10,000 even flips cannot pass Holm's correction, whatever the difference; the default can."""
    many = {name: FakeReport({"map": report.per_query["map"]}) for name, report in systems(40).items()}
    mine, own = compare(many), compare(many, n_resamples=10_000)
    assert mine.difference("map", "s0", "s39").shown
    assert not any(d.shown for d in own.differences)
    assert mine.caution == ""
    assert own.caution.startswith("With 10,000 flips no p can be below 0.0001, and 780 times that is above 0.05: ")
    assert own.caution in str(own)
    assert (mine.n_resamples, mine.tilted, own.tilted) == (10_000, True, False)
    assert "10,000 flips, half of them tilted towards the tail (all flips where at most 28 queries differ)" in str(mine)
    assert "10,000 flips (all flips where" in str(own)
    assert compare(many, n_resamples=15_600).caution == ""
    assert compare(many, "t", n_resamples=100).caution == ""
    assert not compare(many, "t").tilted
    few = {name: FakeReport({"map": report.per_query["map"][:28]}) for name, report in many.items()}
    assert compare(few, n_resamples=10).caution == ""


def test_no_number_of_resamples_is_not_any() -> None:
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="n_resamples must be a whole number"):
            compare(systems(2), n_resamples=wrong)


def test_large_families_have_a_quarter_of_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toprank.statistics._paired_tests.LARGE_FAMILY", 104)
    rng = np.random.default_rng(0)
    many = {f"s{i}": FakeReport({"map": rng.random(30)}) for i in range(15)}
    found = compare(many)
    assert (len(found.differences), found.n_resamples) == (105, 2_500)
    assert compare(many, baseline="s0").n_resamples == 10_000
    assert compare(many, n_resamples=300).n_resamples == 300


@pytest.mark.slow
def test_three_hundred_systems_are_compared_within_seconds() -> None:
    """44,850 differences over 100 queries in seconds of processor; it was half a minute."""
    rng = np.random.default_rng(1)
    many = {f"s{i}": FakeReport({"map": rng.random(100)}) for i in range(300)}
    compare(dict([*many.items()][:3]))  # compiled before
    began = process_time()
    found = compare(many)
    assert process_time() - began < 25
    assert len(found.differences) == 44_850


@pytest.mark.parametrize("n_rows", [1, 511, 512, 1200])
def test_p_and_intervals_do_not_depend_on_threads(n_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    diffs = np.random.default_rng(2).normal(size=(n_rows, 40)) * 0.1
    levels = np.full((n_rows, 2), 1e-3)

    def found() -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(0)
        p = statistics.sign_flip(diffs, 200, rng, 1e-3)
        ends = intervals.flip_intervals(diffs, np.ones(40), levels, 200, rng)
        return p, ends, bounds.bounded_intervals(np.clip(diffs, -1, 1), np.ones(40), levels)

    several = found()
    one_by_one = [
        np.concatenate(parts) for parts in zip(*(rows_alone(diffs[h : h + 1]) for h in range(3)), strict=True)
    ]
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    for ours, theirs in zip(several, found(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, alone in zip(several, one_by_one, strict=True):
        np.testing.assert_array_equal(ours[:3], alone[: len(ours)])


def rows_alone(diffs: np.ndarray) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    levels, ones = np.full((len(diffs), 2), 1e-3), np.ones(diffs.shape[1])
    if not len(diffs):
        return np.empty(0), np.empty((0, 2, 2)), np.empty((0, 2, 2))
    p = statistics.sign_flip(diffs, 200, rng, 1e-3)
    ends = intervals.flip_intervals(diffs, ones, levels, 200, rng)
    return p, ends, bounds.bounded_intervals(np.clip(diffs, -1, 1), ones, levels)
