"""What a kernel computes must not depend on who called it first, nor on where it is called from."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np

from toprank.core.jit import kernel, sum_kernel

LARGE = 1e16
"""1 + LARGE − LARGE is 0 in this order; a compiler that may reorder sums makes it 1."""


@kernel
def strict(x):
    return (x + LARGE) - LARGE


@sum_kernel
def reordered(x):
    return (x + LARGE) - LARGE


@sum_kernel
def through_strict(x):
    return strict(x)


@kernel
def third(a, i):
    return a[i + 2]


@kernel
def outer(a, i):
    return third(a, i) + strict(1.0)


def test_a_kernel_keeps_its_own_arithmetic_when_a_sum_calls_it_first():
    assert reordered(1.0) == 1  # else this test could not fail
    assert through_strict(1.0) == 0


def test_kernels_run_inside_those_of_other_people():
    @numba.njit
    def theirs(a):
        return outer(a, 0)

    assert theirs(np.array([1.0, 2.0, 3.0])) == 3


def test_an_index_out_of_bounds_inside_a_kernel_that_another_calls_is_seen_where_bounds_are_checked(tmp_path):
    code = "import numpy as np; from tests.core.test_jit import outer; print(outer(np.arange(3.0), 5))"
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "IndexError" in done.stderr


def test_a_kernel_stays_the_function_that_was_written():
    assert strict.py_func.__qualname__ == "strict"
    assert strict.py_func(1.0) == 0
