"""What a kernel computes must not depend on who called it first."""

import pytest

from toprank.core.jit import inner_kernel, inner_sum_kernel, kernel, sum_kernel

LARGE = 1e16
"""1 + LARGE − LARGE is 0 in this order; a compiler that may reorder sums makes it 1."""


@kernel
def plain(x):
    return (x + LARGE) - LARGE


@inner_kernel
def inner(x):
    return (x + LARGE) - LARGE


@sum_kernel
def free(x):
    return (x + LARGE) - LARGE


@sum_kernel
def through_plain(x):
    return plain(x)


@inner_sum_kernel
def through_inner(x):
    return inner(x)


@pytest.mark.parametrize("caller", [through_plain, through_inner])
def test_a_kernel_keeps_its_own_arithmetic_when_a_sum_calls_it_first(caller):
    assert free(1.0) == 1  # else this test could not fail
    assert caller(1.0) == 0
