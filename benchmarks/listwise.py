"""One value and gradient of the listwise losses on 707,505 × 136, against X @ w with one BLAS thread.

The two products with X are most of it: the loss itself is what is left. Peers compute the same loss: numpy with
reduceat, and PyTorch one list after the other where it is installed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import toprank as tr
from toprank.objective import Objective
from toprank.penalties import L2

from . import Row, row

DOCS, FEATURES = 707_505, 136


def best(call: Callable[[], Any], repeats: int = 15) -> float:
    """Shortest of several runs, after one that warms up: time of this thread, whatever else the machine is doing."""
    call()
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times)


def make(docs: int = DOCS, features: int = FEATURES, dtype: Any = np.float32) -> tr.QueryDataset:
    """Lists of 60 to 179 documents, as in web search."""
    rng = np.random.default_rng(0)
    cuts = np.cumsum(rng.integers(60, 180, docs // 60))
    ptr = np.concatenate(([0], cuts[cuts < docs], [docs]))
    X = rng.standard_normal((docs, features), dtype=np.float32).astype(dtype)
    y = rng.integers(0, 5, docs).astype(np.float64)
    return tr.QueryDataset(X=X, y=y, ptr=ptr, query_ids=np.arange(len(ptr) - 1))


def numpy_listnet(data: tr.QueryDataset, w: Any) -> tuple[float, Any]:
    """Top-one ListNet the way numpy people write it, in the storage's own precision."""
    starts, lengths = data.ptr[:-1], data.lengths
    s = data.X @ w
    e = np.exp(s - np.repeat(np.maximum.reduceat(s, starts), lengths))
    t = np.exp(data.y - np.repeat(np.maximum.reduceat(data.y, starts), lengths))
    p = e / np.repeat(np.add.reduceat(e, starts), lengths)
    q = t / np.repeat(np.add.reduceat(t, starts), lengths)
    return float(-(q * np.log(np.maximum(p, 1e-300))).sum()), data.X.T @ (p - q).astype(s.dtype)


def torch_listnet(data: tr.QueryDataset, w: Any) -> Any:
    """Top-one ListNet in PyTorch, one list after the other."""
    import torch

    X, y = torch.from_numpy(data.X), torch.from_numpy(data.y).float()
    weights = torch.from_numpy(w).requires_grad_()
    s = X @ weights
    total = torch.zeros(())
    for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True):
        total = total - (torch.softmax(y[a:b], 0) * torch.log_softmax(s[a:b], 0)).sum()
    total.backward()
    return weights.grad


def run() -> list[Row]:
    from threadpoolctl import threadpool_limits

    rows: list[Row] = []
    data = make()
    w = np.random.default_rng(1).standard_normal(FEATURES) * 0.05
    w32 = w.astype(np.float32)
    with threadpool_limits(1):
        for loss in (
            tr.surrogates.ListNet(),
            tr.surrogates.ListMLE(),
            tr.surrogates.ListMLE(ties="sampled"),
            tr.surrogates.RankCosine(),
            tr.surrogates.ListNet(transform="sigmoid"),
            tr.surrogates.ListNet(transform="linear(1, 20)"),
        ):
            objective = Objective(data, loss, L2(0.1))
            product = best(lambda: data.X @ w32)
            ours = best(lambda objective=objective: objective.value_and_grad(w))
            name = f"{type(loss).__name__} {loss.transform}" + (" sampled" if "sampled" in str(loss) else "")
            job = f"{name}: value and gradient, {DOCS:,} × {FEATURES}"
            rows.append(row(job, ours, passes=ours / product, note="goal ≤ 2 passes"))
        objective = Objective(data, tr.surrogates.ListNet())
        ours = best(lambda: objective.value_and_grad(w))
        peers: dict[str, Callable[[], Any]] = {"numpy reduceat, float32": lambda: numpy_listnet(data, w32)}
        try:
            import torch

            torch.set_num_threads(1)
            peers["PyTorch, list by list"] = lambda: torch_listnet(data, w32)
        except ImportError:
            pass
        for name, call in peers.items():
            peer = best(call, 3)
            rows.append(row("ListNet: value and gradient", ours, peer=name, theirs=peer))
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import show

    print(show(run()))
