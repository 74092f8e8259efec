import math

import numpy as np
import pytest

import toprank as tr
from tests.oracles import listwise as oracle
from toprank.surrogates import Exponential, Linear, Sigmoid
from toprank.surrogates.transforms import parse_transform

CASES = {
    Linear(0.5, 4.0): oracle.phi("linear", 0.5, 4.0),
    Exponential(0.5): oracle.phi("exponential", 0.5),
    Sigmoid(0.5): oracle.phi("sigmoid", 0.5),
}


@pytest.mark.parametrize("transform", CASES, ids=str)
def test_values_slopes_and_ranges_are_the_definitions(transform):
    phi = CASES[transform]
    x = np.linspace(-6, 6, 25)
    np.testing.assert_allclose(transform(x), [phi(v) for v in x], rtol=1e-13)
    np.testing.assert_allclose(transform.log(x), [math.log(phi(v)) for v in x], rtol=1e-12, atol=1e-14)
    slope = [(math.log(phi(v + 1e-6)) - math.log(phi(v - 1e-6))) / 2e-6 for v in x]
    np.testing.assert_allclose(transform.log_slope(x), slope, rtol=1e-6)
    assert transform.log_range(3.0) == pytest.approx(math.log(phi(3) / phi(-3)))


@pytest.mark.parametrize("transform", CASES, ids=str)
def test_steepest_slope(transform):
    phi, grid = CASES[transform], np.linspace(-3, 3, 6001)
    steepest = max((phi(v + 1e-6) - phi(v - 1e-6)) / 2e-6 for v in grid)
    assert math.exp(transform.steepest(3.0, exact=True)) == pytest.approx(steepest, rel=1e-5)
    assert transform.steepest(3.0) >= transform.steepest(3.0, exact=True) - 1e-12


def test_printed_slope_of_the_sigmoid_is_the_paper_s():
    a, bm = 0.5, 3.0
    printed = a * math.exp(a * bm) / (1 + math.exp(-a * bm)) ** 2
    assert math.exp(Sigmoid(a).steepest(bm)) == pytest.approx(printed)


def test_linear_is_positive_inside_its_ball_only():
    assert Linear(1, 11).is_positive(10)
    assert not Linear(1, 10).is_positive(10)
    assert Linear.on_ball(radius=2, norm=3, a=2, slack=0.5) == Linear(2, 12.5)
    assert math.isnan(Linear(1, 1).log(-2.0))


@pytest.mark.parametrize("transform", [*CASES, Linear(), Exponential(), Sigmoid(2.5)], ids=str)
def test_text_parses_back(transform):
    assert parse_transform(str(transform)) == transform
    assert parse_transform(transform) is transform


@pytest.mark.parametrize("bad", ["cubic", "linear(", "linear(1,2,3)", "sigmoid(x)", None, 3])
def test_unknown_transforms_are_named(bad):
    with pytest.raises(tr.InputError, match="transform must be 'linear', 'exponential' or 'sigmoid'"):
        parse_transform(bad)


def test_bad_parameters_are_named():
    with pytest.raises(tr.InputError, match="a must be a number above 0, got -1"):
        Exponential(-1)
    with pytest.raises(tr.InputError, match="b must be a number above 0"):
        parse_transform("linear(1, 0)")
