"""Laws that every surrogate obeys, run over every surrogate there is."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import surrogates
from toprank.surrogates import Surrogate


def _instances() -> list[Surrogate]:
    kinds = [getattr(surrogates, name) for name in surrogates.__all__]
    found = []
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Surrogate)) or inspect.isabstract(kind):
            continue
        takes_k = "kappa" in inspect.signature(kind).parameters
        found.append(kind(k=1) if takes_k else kind())
    return found


ALL = _instances()
lists = st.lists(
    st.lists(st.tuples(st.floats(-4, 4, width=32), st.integers(0, 2)), min_size=2, max_size=5), min_size=1, max_size=3
)


def flat(queries):
    scores = np.array([s for q in queries for s, _ in q], dtype=np.float64)
    y = np.array([float(g) for q in queries for _, g in q])
    return scores, y, np.cumsum([0] + [len(q) for q in queries])


def test_there_are_surrogates_to_test():
    assert len(ALL) >= 12


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: type(loss).__name__)
class TestEverySurrogate:
    @given(queries=lists)
    def test_blocks_add_up(self, loss, queries):
        scores, y, ptr = flat(queries)
        value, grad = loss.value_and_grad(scores, y, ptr)
        parts = [loss.value_and_grad(*flat([query])) for query in queries]
        assert value == pytest.approx(sum(v for v, _ in parts), rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(grad, np.concatenate([g for _, g in parts]))

    @given(queries=lists, shift=st.floats(-3, 3))
    def test_gradient_is_finite_and_of_the_right_shape(self, loss, queries, shift):
        scores, y, ptr = flat(queries)
        value, grad = loss.value_and_grad(scores + shift, y, ptr)
        assert np.isfinite(value)
        assert grad.shape == scores.shape
        assert np.isfinite(grad).all()

    @given(queries=lists, other=st.integers(0, 2**32 - 1))
    def test_a_convex_loss_lies_above_its_tangents(self, loss, queries, other):
        if not loss.convex:
            return
        scores, y, ptr = flat(queries)
        elsewhere = scores + np.random.default_rng(other).normal(size=len(scores)) * 2
        value, grad = loss.value_and_grad(scores, y, ptr)
        there, _ = loss.value_and_grad(elsewhere, y, ptr)
        assert there >= value + grad @ (elsewhere - scores) - 1e-9 * max(1.0, abs(value), abs(there))

    @given(queries=lists)
    def test_an_upper_bound_bounds_its_measure(self, loss, queries):
        measure = loss.upper_bounds
        if measure is None:
            return
        scores, y, ptr = flat(queries)
        losses, _ = loss.per_query(scores, y, ptr)
        # Only where something can be found and lost; P@k needs k positives (k = 1 here).
        known = np.array([y[a:b].max() > max(0, y[a:b].min()) for a, b in pairwise(ptr)])
        assert (losses[known] >= 1 - measure.per_query(scores, y, ptr)[known] - 1e-9).all()

    def test_frozen_values_are_equal_when_their_fields_are(self, loss):
        again = type(loss)(k=1) if hasattr(loss, "kappa") else type(loss)()
        assert again == loss
        assert hash(again) == hash(loss)
        with pytest.raises(AttributeError):
            loss.k = 3
