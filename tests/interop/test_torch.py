"""Surrogates as PyTorch losses."""

import numpy as np
import pytest

import toprank as tr
from tests.interop.test_trees import EVERY, named
from toprank.surrogates import ListMLE, ListNet, RankCosine

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=6, n_docs=(3, 6), n_features=4, n_grades=2, random_state=0)


SMOOTH = [
    kind(transform=phi) for kind in (ListNet, ListMLE, RankCosine) for phi in ("exponential", "sigmoid", "linear(1, 9)")
]


@pytest.mark.parametrize("surrogate", SMOOTH, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradcheck(surrogate, reduction, data):
    loss = tr.interop.torch_loss(surrogate, reduction)
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=data.n_docs)).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss(s, torch.from_numpy(data.y), data.ptr), scores)


@pytest.mark.parametrize("surrogate", EVERY, ids=named)
def test_value_and_gradient_are_the_surrogate_s(surrogate, data):
    values = np.random.default_rng(1).normal(size=data.n_docs)
    scores = torch.from_numpy(values).requires_grad_()
    value = tr.interop.torch_loss(surrogate, "sum")(scores, torch.from_numpy(data.y), torch.from_numpy(data.ptr))
    value.backward()
    wanted, grad = surrogate.value_and_grad(values, data.y, data.ptr)
    assert value.item() == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(scores.grad.numpy(), grad, rtol=1e-12)


def test_padded_lists_with_a_mask_are_the_same(data):
    longest = data.lengths.max()
    padded, y = torch.full((data.n_queries, longest), 99.0, dtype=torch.float64), torch.zeros(data.n_queries, longest)
    mask = torch.arange(longest)[None, :] < torch.from_numpy(data.lengths)[:, None]
    values = torch.from_numpy(np.random.default_rng(2).normal(size=data.n_docs))
    padded[mask], y[mask] = values, torch.from_numpy(data.y).float()
    loss = tr.interop.torch_loss(ListNet())
    flat = values.clone().requires_grad_()
    padded.requires_grad_()
    one, two = loss(padded, y, mask=mask), loss(flat, data.y, data.ptr)
    one.backward()
    two.backward()
    assert one.item() == two.item()
    np.testing.assert_array_equal(padded.grad[mask].numpy(), flat.grad.numpy())
    assert (padded.grad[~mask] == 0).all()


def test_float32_scores_stay_float32(data):
    scores = torch.zeros(data.n_docs, requires_grad=True)
    value = tr.interop.torch_loss(ListMLE())(scores, data.y, data.ptr)
    value.backward()
    assert value.dtype == scores.grad.dtype == torch.float32


def test_a_network_learns(data):
    torch.manual_seed(0)
    model, loss = torch.nn.Linear(4, 1), tr.interop.torch_loss(ListNet())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    X, y = torch.from_numpy(data.X).float(), torch.from_numpy(data.y)
    values = []
    for _ in range(60):
        optimizer.zero_grad()
        value = loss(model(X)[:, 0], y, data.ptr)
        value.backward()
        optimizer.step()
        values.append(value.item())
    best = tr.ListNet(alpha=0.0).fit_queries(data).solution_.value
    assert best - 1e-6 <= values[-1] < values[0]


def test_misuse_is_named(data):
    loss = tr.interop.torch_loss(ListNet())
    with pytest.raises(tr.InputError, match="mask, not ptr"):
        loss(torch.zeros(2, 3), torch.zeros(2, 3), [0, 6])
    with pytest.raises(tr.InputError, match=r"y has shape \(2, 2\) for scores of shape \(2, 3\)"):
        loss(torch.zeros(2, 3), torch.zeros(2, 2))
    with pytest.raises(tr.InputError, match="negative grade"):
        loss(torch.zeros(2), torch.tensor([1.0, -1.0]))
    with pytest.raises(tr.InputError, match="reduction must be one of"):
        tr.interop.torch_loss(ListNet(), "max")
    assert "ListNet" in repr(loss)
