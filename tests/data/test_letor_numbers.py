"""Decimal text to the nearest double, and back to the shortest text, for any number there is."""

from __future__ import annotations

import io
import struct
from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from toprank.data import _letor_kernels as kernels
from toprank.data.letor import _number_words

pytestmark = pytest.mark.filterwarnings("ignore:.* has no qid")


def read_values(texts: list[str], dtype=np.float64) -> np.ndarray:
    line = "0 " + " ".join(f"{k}:{text}" for k, text in enumerate(texts, start=1)) + "\n"
    return tr.read_letor(io.BytesIO(line.encode()), dtype=dtype, dense=True, threads=1).X[0]


def assert_nearest(texts: list[str]) -> None:
    want = np.array([float(text) for text in texts])
    assert read_values(texts).tobytes() == want.tobytes()
    with np.errstate(over="ignore"):
        single = want.astype(np.float32)
    fits = np.isfinite(single)
    if fits.any():
        some = [text for text, fit in zip(texts, fits, strict=True) if fit]
        assert read_values(some, np.float32).tobytes() == single[fits].tobytes()


digits = st.text("0123456789", max_size=30)
exponents = st.one_of(
    st.just(""), st.integers(-400, 330).map(lambda e: f"e{e}"), st.integers(0, 30).map(lambda e: f"E+{e}")
)
signs = st.sampled_from(["", "-", "+"])
decimals = st.builds(lambda s, a, b, e: f"{s}{a}.{b}{e}", signs, digits, digits, exponents).filter(
    lambda text: any(c.isdigit() for c in text.lower().partition("e")[0]) and abs(float(text)) < inf
)


@given(st.lists(decimals, min_size=1, max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_decimal_text(texts):
    assert_nearest(texts)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_any_double_as_python_prints_it(values):
    assert_nearest([repr(v) for v in values] + [f"{v:.17e}" for v in values] + [f"{v:.25e}" for v in values])


def exact_text(value: Fraction) -> str:
    """All digits of a number whose denominator is a power of two."""
    with localcontext() as context:
        context.prec = 1200
        return str(Decimal(value.numerator) / Decimal(value.denominator))


@given(st.floats(min_value=0, max_value=1e308), st.sampled_from(["", "0", "1", "000000000000000000000000001"]))
@settings(max_examples=300, deadline=None)
def test_the_middle_between_two_doubles_and_just_beside_it(value, tail):
    middle = exact_text((Fraction(value) + Fraction(nextafter(value, inf))) / 2)
    mantissa, e, exponent = middle.partition("E")
    texts = [middle, mantissa + ("" if "." in mantissa else ".") + tail + e + exponent]
    below = mantissa[:-1] + str(int(mantissa[-1]) - 1) if mantissa[-1] != "0" else mantissa
    assert_nearest([*texts, below + e + exponent])


def test_middles_of_few_digits_and_the_edges_of_the_range():
    texts = [str(2**53 + k) for k in range(-5, 40)] + [str(2**54 + k) for k in range(60)]
    texts += [f"{9007199254740993 + 2 * k}e{e}" for k in range(20) for e in (-30, -4, -1, 1, 7, 23)]
    texts += ["1.7976931348623157e308", "1.7976931348623158e308", "179769313486231580793728971405301e276"]
    texts += [
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "2.225073858507201136057409796709131975934819546351645e-308",
    ]
    texts += ["4.9e-324", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.5e-324", "1e-400", "0e999"]
    texts += [
        "1.4e-45",
        "7.006492321624085e-46",
        "7.006492321624086e-46",
        "3.4028234663852886e38",
        "3.4028235677973362e38",
    ]
    assert_nearest(texts)


def test_many_random_doubles():
    bits = np.random.default_rng(3).integers(0, 2**64, size=20_000, dtype=np.uint64)
    values = bits.view(np.float64)
    values = values[np.isfinite(values)]
    assert_nearest([repr(v) for v in values.tolist()])
    assert_nearest([f"{v:.18e}" for v in values.tolist()])
    assert_nearest([f"{v:.20f}" for v in np.random.default_rng(4).normal(size=5_000).tolist()])


def test_powers_of_ten_are_sums_of_two_doubles():
    assert kernels.TENS.tolist() == [float(f"1e{k}") for k in range(23)]
    for q, high, low in zip(
        range(kernels.FIRST_POWER, kernels.LAST_POWER + 1), kernels.HIGH.tolist(), kernels.LOW.tolist(), strict=True
    ):
        power = Fraction(10) ** q
        assert high == float(f"1e{q}")
        assert abs(power - Fraction(high) - Fraction(low)) <= power / 2**106


@given(st.integers(1, 10**18 - 1), st.integers(kernels.FIRST_POWER - 3, kernels.LAST_POWER + 3), st.booleans())
@settings(max_examples=500, deadline=None)
def test_a_double_that_is_sure_is_the_nearest(w, q, is_cut):
    """With digits cut off, the true number may be anything from w to w + 1."""
    found = kernels.nearest_double(w, q, is_cut)
    ends = {float(f"{w}e{q}"), float(f"{w + is_cut}e{q}")}
    assert np.isnan(found) or {found} == ends
    if not is_cut and kernels.FIRST_POWER <= q <= kernels.LAST_POWER:
        assert not np.isnan(found) or is_close_to_a_middle(w, q)


def is_close_to_a_middle(w: int, q: int) -> bool:
    """Say whether w·10^q lies next to the middle between two doubles: 2^-98 of it or less away."""
    exact = Fraction(w) * Fraction(10) ** q
    near = float(exact)
    middles = [(Fraction(near) + Fraction(nextafter(near, to))) / 2 for to in (-inf, inf)]
    return min(abs(exact - middle) for middle in middles) <= exact / 2**98


@given(st.integers(0, 2**52 - 1))
def test_a_middle_is_left_to_python(k):
    """From 2^54 on, doubles are 4 apart."""
    assert np.isnan(kernels.nearest_double(2**54 + 4 * k + 2, 0, False))
    assert kernels.nearest_double(2**54 + 4 * k + 1, 0, False) == 2**54 + 4 * k


def test_few_numbers_are_left_to_python():
    """What the writer writes of doubles is read by the kernel, but for one in a million."""
    rng = np.random.default_rng(6)
    texts = [repr(v) for v in (rng.normal(size=20_000) * 10.0 ** rng.integers(-30, 15, 20_000)).tolist()]
    left = 0
    for text in texts:
        _, value, is_number = kernels.read_number(np.frombuffer(f"{text}\n".encode(), dtype=np.uint8), np.uint64(0))
        assert is_number
        left += np.isnan(value)
        assert np.isnan(value) or value == float(text)
    assert left == 0


def written(value: float, single: bool = False) -> str:
    return _number_words(np.array([value], dtype=np.float32 if single else np.float64))[0]


def significant(text: str) -> int:
    return len(text.lstrip("-").partition("e")[0].replace(".", "").strip("0"))


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=500, deadline=None)
def test_the_shortest_text_of_a_double(value):
    text = written(value)
    assert struct.pack("d", float(text)) == struct.pack("d", value)
    assert significant(text) == significant(repr(value))
    assert len(text) <= len(repr(value))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@settings(max_examples=500, deadline=None)
def test_the_shortest_text_of_a_single(value):
    text = written(value, single=True)
    assert np.float32(float(text)).tobytes() == np.float32(value).tobytes()
    assert significant(text) <= significant(np.format_float_scientific(np.float32(value), trim="-"))


def test_text_of_many_random_numbers():
    rng = np.random.default_rng(5)
    for values in (
        rng.integers(0, 2**64, size=20_000, dtype=np.uint64).view(np.float64),
        rng.integers(0, 2**52, size=5_000, dtype=np.uint64).view(np.float64) / 2 ** rng.integers(0, 52, 5_000),
        np.round(rng.normal(size=5_000) * 100, 4),
        2.0 ** np.arange(-1074, 1024),
        10.0 ** np.arange(-323, 309),
        rng.integers(0, 2**32, size=20_000, dtype=np.uint32).view(np.float32),
    ):
        values = values[np.isfinite(values)]
        again = np.array([float(text) for text in _number_words(values)], dtype=values.dtype)
        assert again.tobytes() == values.tobytes()


def test_how_numbers_look():
    looks = (
        (0.0, "0"),
        (-0.0, "-0"),
        (3.0, "3"),
        (-2.5, "-2.5"),
        (1e15, "1000000000000000"),
        (1e16, "1e+16"),
        (1234.5, "1234.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (2.0**53, "9007199254740992"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    )
    assert [(value, written(value)) for value, _ in looks] == list(looks)
    assert written(float(np.float32(0.1)), single=True) == "0.1"
    assert written(float(np.float32(0.1))) == "0.10000000149011612"
