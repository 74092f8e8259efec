"""Quicker compiling changes nothing else: not what kernels compute, not numba, not which errors are told."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.compiler import Compiler
from numba.core.types.functions import BaseFunction

from toprank.core.caching import NotKept
from toprank.core.compiling import compiling
from toprank.core.jit import inner_kernel, inner_sum_kernel, kernel

LARGE = 1e16


@inner_kernel
def strict(x):
    return (x + LARGE) - LARGE


@inner_sum_kernel
def reordered(x):
    return (x + LARGE) - LARGE


@kernel
def both(x):
    return strict(x), reordered(x)


@inner_kernel
def third(a, i):
    return a[i + 2]


@kernel
def outer(a, i):
    return third(a, i) + strict(1.0)


def test_a_helper_is_compiled_once_whether_or_not_a_number_is_known_beforehand():
    @inner_kernel
    def doubled(n):
        return 2 * n

    @kernel
    def twice(a):
        n = 0
        for _ in a:
            n += doubled(n) + doubled(1)
        return n

    assert twice(np.zeros(3)) == 26
    assert len(doubled.signatures) == 1


def test_calls_are_typed_anew_where_other_arithmetic_is_allowed():
    assert both(1.0) == (0, 1)


def test_numba_is_as_before_when_a_kernel_is_compiled():
    def changed():
        return BaseFunction.get_call_type, Compiler.__init__

    before = changed()
    with compiling(NotKept()):
        assert not set(before) & set(changed())  # else nothing would be spared
        with compiling(NotKept()):
            pass
        assert not set(before) & set(changed())
    assert before == changed()
    with pytest.raises(ZeroDivisionError), compiling(NotKept()):
        raise ZeroDivisionError
    assert before == changed()


def test_helpers_of_numba_that_went_into_a_kernel_run_in_the_functions_of_other_people():
    def lowest(a):
        return np.sort(a)[0] + np.zeros(2).sum()

    a = np.array([3.0, 1.0, 2.0])
    with compiling(NotKept()):
        inside = numba.njit(lambda a: np.sort(a))  # as if a kernel had called it
        inside.compile((numba.typeof(a),))
    assert numba.njit(lowest)(a) == kernel(lowest)(a) == 1


def test_kernels_run_inside_those_of_other_people():
    @numba.njit
    def theirs(a):
        return outer(a, 0)

    assert theirs(np.array([1.0, 2.0, 3.0])) == 3


def test_an_index_out_of_bounds_inside_an_inner_kernel_is_seen_where_bounds_are_checked():
    code = "import numpy as np; from tests.core.test_compiling import outer; print(outer(np.arange(3.0), 5))"
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": os.devnull + "/none"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "IndexError" in done.stderr
