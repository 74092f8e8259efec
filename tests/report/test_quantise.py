"""What is shown must not depend on how it was packed: compared with the printed text of the exact numbers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.report.quantise import quantise, shown


def texts(values: np.ndarray) -> list[list[str]]:
    """Every value and every difference of two systems, as a reader sees them; a tie by rounding is a tie."""
    found = [[f"{v:.4f}" for v in row] for row in values.tolist()]
    for a, b in combinations(values, 2):
        gaps = (a - b).tolist()
        found.append(["tie" if abs(gap) <= 1e-12 else f"{gap:+.4f}" for gap in gaps])
    return found


def check(values: np.ndarray) -> None:
    decoded = quantise(values).decode()
    assert texts(decoded) == texts(values)
    assert np.nanmax(np.abs(decoded - values), initial=0) < 1e-5


@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([1e-3, 1.0, 30.0]), st.booleans())
def test_nothing_that_is_shown_changes(seed: int, systems: int, span: float, alike: bool) -> None:
    rng = np.random.default_rng(seed)
    values = span * rng.random((systems, 300))
    if alike:  # systems that agree on many queries, or all but agree: by rounding, or by less than is shown
        values[1] = values[0]
        values[1, :100] += 1e-7 * rng.standard_normal(100)
        values[-1, 100:200] = values[0, 100:200] * (1 + 1e-16)
    values[:, rng.random(300) < 0.1] = np.nan
    check(values)


def test_many_systems() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(400)
    check(np.clip(base + 0.001 * rng.standard_normal((30, 400)), 0, 1))


def test_values_in_the_middle_of_two_digits() -> None:
    halves = np.arange(320) / 32  # 1/32 = 0.03125 ends in a five and has no rounding error
    values = np.stack([halves, halves[::-1], halves + 1e-9])
    check(values)


def test_few_distinct_values_are_exact() -> None:
    values = np.random.default_rng(0).integers(0, 11, (5, 400)) / 10
    codes = quantise(values)
    assert codes.width == 1
    assert (codes.decode() == values).all()


@pytest.mark.parametrize("values", [np.zeros((2, 3)), np.full((2, 3), np.nan), np.zeros((3, 0))])
def test_nothing_to_tell(values: np.ndarray) -> None:
    np.testing.assert_array_equal(quantise(values).decode(), values)


def test_wide_ranges_get_more_bytes() -> None:
    values = np.random.default_rng(0).random((2, 1000)) * 500
    assert quantise(values).width == 4
    check(values)


@given(st.floats(-1e6, 1e6))
def test_shown_is_what_is_printed(value: float) -> None:
    assert shown(np.array([value]))[0] == int(f"{value:.4f}".replace(".", ""))
