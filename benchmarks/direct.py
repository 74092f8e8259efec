"""The direct-optimisation learners against the clock: seconds per round and per fit, and scikit-learn where it can.

`python -m benchmarks direct` prints a table; `run()` returns its rows. The data are of one shape: 500 queries × 100
documents × 46 features, three grades; AdaRank also learns from 707,410 × 136.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import toprank as tr

from . import Row, one_pass, row


def data_of(n_queries: int = 500, n_docs: int = 100, n_features: int = 46, dtype: Any = np.float64) -> tr.QueryDataset:
    rng = np.random.default_rng(0)
    X = rng.random((n_queries * n_docs, n_features), dtype=np.float32).astype(dtype)
    s = X @ rng.normal(size=n_features) + rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(s, [0.7, 0.9]), s)
    return tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(n_queries), n_docs))


def best_of(job: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    job()  # compiles
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = job()
        times.append(time.perf_counter() - began)
    return min(times), result


def ranksvm_rows(data: tr.QueryDataset) -> list[Row]:
    """Fit to a gap of 1e-3 of the value, and LinearSVC on explicit pairs of a part that it can hold."""
    rows, product = [], one_pass(data.X)
    for loss, C in (("squared_hinge", 1e-4), ("hinge", 1e-4)):
        seconds, fitted = best_of(
            lambda loss=loss, C=C: tr.RankSVM(C=C, loss=loss, normalize=False, tol=1e-3).fit_queries(data)
        )
        solution = fitted.solution_
        rows.append(
            row(
                f"RankSVM {loss}, ½‖w‖² + C Σ pairs, C={C:g}",
                seconds,
                passes=seconds / product,
                note=f"{solution.n_iter} steps, gap {solution.gap / solution.value:.1e} of the value",
            )
        )
    from sklearn.svm import LinearSVC

    part = data[:40]
    pairs = np.concatenate(
        [
            part.X[a:b][better[:, 0]] - part.X[a:b][better[:, 1]]
            for a, b in zip(part.ptr[:-1], part.ptr[1:], strict=True)
            for better in [np.argwhere(part.y[a:b, None] > part.y[None, a:b])]
        ]
    )
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    signed = pairs * signs[:, None]
    C = 1e-3

    def primal(w: Any) -> float:
        return float(0.5 * w @ w + C * (np.maximum(1 - pairs @ w, 0) ** 2).sum())

    seconds, fitted = best_of(lambda: tr.RankSVM(C=C, normalize=False, tol=1e-6).fit_queries(part))
    peer, svm = best_of(
        lambda: LinearSVC(C=C, loss="squared_hinge", fit_intercept=False, dual=False, tol=1e-4).fit(signed, signs), 1
    )
    note = f"{len(pairs):,} pairs of 40 queries; objective ours {primal(fitted.coef_):.6g}, "
    note += f"LinearSVC (primal) {primal(svm.coef_[0]):.6g}; building the pairs is not timed"
    rows.append(row("RankSVM, squared hinge", seconds, peer="LinearSVC on explicit pairs", theirs=peer, note=note))
    return rows


def run() -> list[Row]:
    data = data_of()
    rows, product = [], one_pass(data.X)
    with ThreadPoolExecutor(2) as pool:
        for rule in ("paper", "improve"):
            for label, executor in (("1 thread", None), ("2 threads", pool)):
                seconds, fitted = best_of(
                    lambda r=rule, e=executor: tr.AdaRank("ndcg@10", rounds=100, rule=r).fit_queries(data, executor=e)
                )
                rounds, reached = len(fitted.alphas_), fitted.trace_["measure"][-1]
                rows.append(
                    row(
                        f"AdaRank, rule {rule}, ndcg@10, {label}",
                        seconds,
                        passes=seconds / product,
                        note=f"{rounds} rounds, {1e3 * seconds / rounds:.2f} ms a round, NDCG@10 {reached:.4f}",
                    )
                )
        for thresholds in (None, 256, 10):
            seconds, fitted = best_of(lambda t=thresholds: tr.RankBoost(rounds=100, thresholds=t).fit_queries(data))
            again, _ = best_of(lambda t=thresholds: tr.RankBoost(rounds=200, thresholds=t).fit_queries(data), 2)
            rows.append(
                row(
                    f"RankBoost, {thresholds or 'all'} thresholds, 100 rounds",
                    seconds,
                    passes=seconds / product,
                    note=f"{1e3 * (again - seconds) / 100:.2f} ms a round after the sort",
                )
            )
    rows += ranksvm_rows(data)
    seconds, fitted = best_of(lambda: tr.SVMMap(C=100, tol=1e-3).fit_queries(data), 2)
    note = f"{fitted.n_iter_} cutting planes, gap {fitted.solution_.gap:.1e}"
    rows.append(row("SVMMap, C=100", seconds, passes=seconds / product, note=note))
    seconds, fitted = best_of(lambda: tr.PermuRank(C=1000, rounds=20).fit_queries(data), 1)
    rows.append(
        row(
            "PermuRank, C=1000, up to 20 rounds",
            seconds,
            passes=seconds / product,
            note=f"{fitted.n_iter_} rounds, {seconds / fitted.n_iter_:.3f} s a round",
        )
    )
    rng = np.random.default_rng(0)
    s, y = rng.normal(size=5000), rng.integers(0, 2, 5000).astype(float)
    for name in ("map", "ndcg", "ndcg@10"):
        surrogate = tr.surrogates.StructuralHinge(name)
        seconds, _ = best_of(lambda u=surrogate: u.per_query(s, y, np.array([0, 5000])), 20)
        job = f"most violated ranking, {name}, 5,000 documents"
        rows.append(row(job, 1e3 * seconds, "ms", note="half of them relevant"))
    return rows + many_features() + large_rows()


def many_features() -> list[Row]:
    """SVMMap and PermuRank on 2,240 documents of 300 features; rounds and whole fits on 472,000 of 136."""
    wide, rows = data_of(112, 20, 300), []
    product = one_pass(wide.X)
    for ranker in (tr.SVMMap(), tr.PermuRank(rounds=20)):
        seconds, fitted = best_of(lambda r=ranker: r.fit_queries(wide), 1)
        solution = fitted.solution_
        note = f"{fitted.n_iter_} steps, {'converged' if solution.converged else solution.message}"
        rows.append(
            row(f"{type(ranker).__name__}, {wide.n_docs:,} × 300", seconds, passes=seconds / product, note=note)
        )
    large = data_of(4000, 118, 136, np.float32)
    product, size = one_pass(large.X), f"{large.n_docs:,} × 136"
    few, more = (best_of(lambda t=t: tr.RankBoost(rounds=t, thresholds=100).fit_queries(large), 1)[0] for t in (5, 15))
    a_round = (more - few) / 10
    job = f"RankBoost, a round, 100 thresholds, {size}"
    rows.append(row(job, a_round, passes=a_round / product, note="goal ≤ 5 passes"))
    for job, ranker, goal in (
        ("ListMLE, a whole fit as it comes", tr.ListMLE(), "goal ≤ 20 passes"),
        ("AdaRank, 50 rounds of its default rule", tr.AdaRank(rounds=50), ""),
        ("RankSVM, a whole fit as it comes", tr.RankSVM(), ""),
    ):
        seconds, fitted = best_of(lambda r=ranker: r.fit_queries(large), 2)
        note = f"{fitted.n_iter_} steps; {goal}" if goal else f"{fitted.n_iter_} steps"
        rows.append(row(f"{job}, {size}", seconds, passes=seconds / product, note=note))
    return rows


def large_rows() -> list[Row]:
    """AdaRank on as many documents as a fold of MSLR-WEB10K has."""
    wide, rows = data_of(5995, 118, 136, np.float32), []
    product = one_pass(wide.X)
    with ThreadPoolExecutor(2) as pool:
        for rule, name in (("paper", "ndcg@10"), ("improve", "ndcg@10"), ("improve", "ndcg"), ("improve", "map")):
            for label, executor in (("1 thread", None), ("2 threads", pool)):
                tr.AdaRank(name, rounds=2, rule=rule).fit_queries(wide[:50], executor=executor)  # compiles
                began = time.perf_counter()
                fitted = tr.AdaRank(name, rounds=100, rule=rule).fit_queries(wide, executor=executor)
                seconds, rounds = time.perf_counter() - began, len(fitted.alphas_)
                note = f"{rounds} rounds, {name} {fitted.trace_['measure'][-1]:.4f}"
                job = f"AdaRank, rule {rule}, {name}, {wide.n_docs:,} × 136, {label}"
                rows.append(row(job, seconds, passes=seconds / product, note=note))
    return rows
