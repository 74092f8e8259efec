"""The pass over X with the loss called list by list, against scores, losses and Xᵀ g one after the other."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank.data import blocks, linear
from toprank.objective import Objective
from toprank.surrogates import Linear, ListMLE, ListNet, RankCosine, Sigmoid

LOSSES = [
    ListNet(),
    ListNet("gains", Sigmoid(0.7)),
    ListMLE(transform=Linear(1.0, 60.0)),
    ListMLE(ties="sampled", seed=3),
    RankCosine(transform=Sigmoid()),
]


def graded(lengths, dtype=np.float64, n_features=7, weights=False):
    rng = np.random.default_rng(len(lengths))
    ptr = np.cumsum([0, *lengths])
    return tr.QueryDataset(
        X=rng.standard_normal((ptr[-1], n_features)).astype(dtype),
        y=rng.integers(0, 4, ptr[-1]).astype(float),
        ptr=ptr,
        query_ids=np.arange(len(lengths)),
        query_weight=rng.uniform(0.5, 2, len(lengths)) if weights else None,
    )


def in_steps(data, loss, w):
    """f(w) and its gradient from whole arrays, in numpy."""
    X = data.X.toarray() if data.is_sparse else data.X
    weight = data.informative * (1.0 if data.query_weight is None else data.query_weight)
    place = None if loss.tie_seed is None else linear.places_by_grade(data.X, data.y, data.ptr, loss.tie_seed)
    losses, grad = loss.per_query(X.astype(float) @ w, data.y, data.ptr, place=place)
    return losses @ weight / weight.sum(), X.astype(float).T @ (grad * np.repeat(weight, data.lengths)) / weight.sum()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(
    "lengths", [[5, 1, 9, 30, 2] * 40, [3000, 4, 2500], [1, 0, 6, 0, 0, 3]], ids=["short", "long", "empty"]
)
def test_one_pass_is_what_the_steps_give(loss, lengths):
    w = np.random.default_rng(0).standard_normal(7)
    for data in (graded(lengths), graded(lengths, np.float32, weights=True)):
        for same in (data, data.with_X(csr_array(data.X))):
            value, grad = Objective(same, loss).value_and_grad(w)
            wanted, slope = in_steps(same, loss, w)
            assert value == pytest.approx(wanted, rel=1e-12)
            np.testing.assert_allclose(grad, slope, rtol=1e-9, atol=1e-12)


def test_the_penalty_is_half_of_alpha_times_the_square():
    data, w = graded([5, 1, 9]), np.arange(1.0, 8.0)
    value, grad = Objective(data, ListNet()).value_and_grad(w)
    with_penalty, slope = Objective(data, ListNet(), alpha=0.3).value_and_grad(w)
    assert with_penalty - value == pytest.approx(0.15 * sum(x * x for x in w))
    np.testing.assert_allclose(slope - grad, 0.3 * w, rtol=1e-9, atol=1e-12)


def test_many_features_leave_one_list_at_a_time():
    data = graded([3, 40, 8], n_features=9000)
    w = np.random.default_rng(0).standard_normal(9000) / 100
    value, grad = Objective(data, ListNet()).value_and_grad(w)
    wanted, slope = in_steps(data, ListNet(), w)
    assert value == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(grad, slope, atol=1e-12)


def test_what_a_loss_refuses_is_named():
    data = graded([5, 5, 5])
    with pytest.raises(tr.InputError, match="query 0 has ties"):
        Objective(data, ListNet("order")).value_and_grad(np.zeros(7))
    late = replace(graded([1] * 9 + [5]), y=np.array([0.0] * 9 + [0.0, 1.0, 2.0, 3.0, 3.0]))
    with pytest.raises(tr.InputError, match="query 9 has ties"):
        Objective(late, ListNet("order")).value_and_grad(np.zeros(7))
    huge = replace(graded([3, 3]), y=np.array([0.0, 1.0, 0.0, 0.0, 2000.0, 1.0]))
    for loss in (ListNet("gains"), tr.surrogates.Slam("ndcg"), tr.surrogates.Slam("ndcg@2", within="score")):
        with pytest.raises(tr.InputError, match="grade 2000 in row 4"):
            Objective(huge, loss).value_and_grad(np.zeros(7))
    assert np.isfinite(Objective(huge, tr.surrogates.Slam("map")).value_and_grad(np.zeros(7))[0])
    with pytest.raises(tr.InputError, match="is outside linear"):
        Objective(data, ListNet(transform=Linear(1.0, 1e-3))).value_and_grad(np.ones(7))


def test_blocks_add_up(monkeypatch):
    data = graded([20, 30, 25] * 50, np.float32)
    w = np.random.default_rng(0).standard_normal(7)
    value, grad = Objective(data, ListMLE()).value_and_grad(w)
    monkeypatch.setattr(blocks, "RUN_VALUES", 1000)
    cut = Objective(data, ListMLE())
    assert len(cut._parts.runs) > 10
    value_cut, grad_cut = cut.value_and_grad(w)
    assert value_cut == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(grad_cut, grad, rtol=1e-10)


def test_sampled_orders_follow_the_documents_and_not_their_rows():
    """Rows in another order inside their queries: the same objective, and another one with the order of the rows."""
    data = graded([40, 30, 25])
    rng = np.random.default_rng(1)
    rows = np.concatenate([a + rng.permutation(b - a) for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True)])
    other = replace(data, X=data.X[rows], y=data.y[rows])
    w = rng.standard_normal(7)
    for loss, same in ((ListMLE(ties="sampled", seed=5), True), (ListMLE(), False)):
        here, there = (Objective(each, loss).value_and_grad(w) for each in (data, other))
        assert (here[0] == pytest.approx(there[0], rel=1e-12)) == same
        assert np.allclose(here[1], there[1], rtol=1e-9) == same
    sparse = data.with_X(csr_array(data.X))
    here, there = (linear.places_by_grade(part.X, part.y, part.ptr, 5).tolist() for part in (data, sparse))
    assert here == there


def test_parts_lie_where_their_rows_begin():
    """Whoever holds a part that begins at a border cuts it as the whole is cut."""
    data = graded([7, 3, 12, 5, 9] * 30)
    borders = blocks.block_boundaries(data.ptr, 40)
    at = borders[len(borders) // 2]
    rest = np.array(blocks.block_boundaries(data.ptr[at:], 40)) + at
    assert borders[len(borders) // 2 :] == rest.tolist()
    assert data.map_reduce(lambda block: block.n_docs, values=200) == data.n_docs
    kept = data.keep(lambda block: block.lengths, values=200)
    assert kept.map_reduce(len) == data.n_queries
    assert kept.map_reduce(lambda lengths: int(lengths.max()), max) == 12


def test_weights_of_documents_reach_the_loss():
    data = graded([5, 9, 30])
    heavy = replace(data, doc_weight=np.random.default_rng(2).uniform(0.5, 2, data.n_docs))
    w = np.random.default_rng(0).standard_normal(7)
    weight = data.informative.astype(float)
    for loss in (ListNet(), tr.surrogates.PairwiseHinge()):
        value, grad = Objective(heavy, loss).value_and_grad(w)
        losses, slopes = loss.per_query(data.X @ w, data.y, data.ptr, heavy.doc_weight)
        assert value == pytest.approx(losses @ weight / weight.sum(), rel=1e-12)
        np.testing.assert_allclose(
            grad, data.X.T @ (slopes * np.repeat(weight, data.lengths)) / weight.sum(), atol=1e-9
        )
    with pytest.raises(tr.InputError, match="ListMLE takes no weights of documents"):
        Objective(heavy, ListMLE()).value_and_grad(w)
