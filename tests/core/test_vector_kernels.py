"""e^x and log x over arrays, against numpy's."""

import numpy as np
import pytest

from toprank.core._vector_kernels import exponentials, logarithms


def units(ours, theirs):
    """How many units in the last place two arrays differ by, at most."""
    return float((np.abs(ours - theirs) / np.spacing(np.abs(theirs))).max())


@pytest.mark.parametrize(("low", "high"), [(-708, 709), (-40, 0), (-1, 1), (-1e-3, 1e-3), (-1e-12, 1e-12)])
def test_exponentials_are_within_two_units(low, high):
    x = np.random.default_rng(0).uniform(low, high, 20_001)
    ours = x.copy()
    exponentials(ours)
    assert units(ours, np.exp(x)) <= 2


def test_exponentials_at_the_ends():
    x = np.array([0.0, -0.0, -708.1, -1e9, -np.inf, np.nan, 1e9])
    exponentials(x)
    np.testing.assert_array_equal(x, [1, 1, 0, 0, 0, np.nan, np.exp(709.0)])


@pytest.mark.parametrize(("low", "high"), [(-700, 700), (-1, 1), (-1e-6, 1e-6)])
def test_logarithms_are_within_two_units(low, high):
    x = np.exp(np.random.default_rng(1).uniform(low, high, 20_001))
    ours = x.copy()
    logarithms(ours)
    apart = x != 1
    assert units(ours[apart], np.log(x[apart])) <= 2
    np.testing.assert_array_equal(ours[~apart], 0)


def test_logarithms_of_powers_of_two():
    x = 2.0 ** np.arange(-1022, 1024)
    ours = x.copy()
    logarithms(ours)
    assert units(ours[x != 1], np.log(x[x != 1])) <= 1
