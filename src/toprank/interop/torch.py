"""Surrogates as PyTorch losses."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..data import validation
from ..data.grouping import bounds_of
from ..errors import InputError, needed
from ..surrogates.base import Surrogate
from .curvature import check_slope


def torch_loss(surrogate: Surrogate, reduction: Literal["mean", "sum", "none"] = "mean") -> Any:
    """Return the surrogate as a `torch.nn.Module`: loss(scores, y, ptr), differentiable in the scores.

    Scores and grades are either one long vector with the boundaries `ptr` of its queries (as everywhere in toprank), or
    padded matrices (queries × documents) with an optional boolean `mask` of the documents that are there. `reduction`
    is over queries. The loss is computed on the CPU in float64 and returned on the scores' device in their dtype.

    >>> import pytest; torch = pytest.importorskip("torch")
    >>> import toprank as tr
    >>> loss = tr.interop.torch_loss(tr.surrogates.ListNet())
    >>> scores = torch.zeros(2, requires_grad=True)
    >>> loss(scores, torch.tensor([1.0, 0.0]), [0, 2]).backward()
    >>> scores.grad
    tensor([-0.2311,  0.2311])
    """
    needed("torch", "a PyTorch loss")
    import torch

    validation.check_choice(("mean", "sum", "none"), reduction=reduction)
    check_slope(surrogate)

    class PerQuery(torch.autograd.Function):  # type: ignore[misc]
        """The loss of each query; its gradient is computed with it and kept for the way back."""

        @staticmethod
        def forward(ctx: Any, scores: Any, y: Any, ptr: Any) -> Any:
            s = validation.as_scores(scores.detach().cpu().double().numpy())
            losses, grad = surrogate.per_query(s, y, ptr)
            ctx.save_for_backward(torch.from_numpy(grad).to(scores), torch.from_numpy(np.diff(ptr)))
            return torch.from_numpy(losses).to(scores)

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, upstream: Any) -> Any:
            grad, lengths = ctx.saved_tensors
            return grad * upstream.repeat_interleave(lengths.to(upstream.device)), None, None

    class Loss(torch.nn.Module):  # type: ignore[misc]
        """A ranking loss; made by `torch_loss`."""

        def __init__(self) -> None:
            super().__init__()
            self.surrogate, self.reduction = surrogate, reduction

        def forward(self, scores: Any, y: Any, ptr: Any = None, mask: Any = None) -> Any:
            """Return the mean, the sum or all of the queries' losses."""
            if scores.dim() == 2:
                if ptr is not None:
                    raise InputError("padded scores (queries × documents) take a mask, not ptr")
                if tuple(y.shape) != tuple(scores.shape):
                    raise InputError(f"y has shape {tuple(y.shape)} for scores of shape {tuple(scores.shape)}")
                there = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.bool()
                scores, y = scores[there], y[there]
                ptr = bounds_of(there.sum(dim=1).cpu().numpy())
            elif ptr is None:
                ptr = np.array([0, len(scores)])
            if isinstance(ptr, torch.Tensor):
                ptr = ptr.cpu().numpy()
            labels = validation.as_labels(y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else y, len(scores))
            validation.check_grades(labels)
            losses = PerQuery.apply(scores, labels, validation.as_ptr(ptr, len(scores)))
            return {"mean": losses.mean, "sum": losses.sum, "none": losses.clone}[self.reduction]()

        def extra_repr(self) -> str:
            return f"{self.surrogate}, reduction={self.reduction!r}"

    return Loss()
