# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The learners of precision at the top, each as its listing has it; equations and numbers are those of that paper.

A learner plays the batches of `order` one after the other, steps on `iterates` in place, and writes down the loss of
every batch at the weights before its step. It returns how many batches moved w, and the place in `order` of the batch
whose scores are not finite, where it stops; −1 where it came to the end.

Every batch of `order` holds both classes. `weight` multiplies the loss of a batch; it is 1 in the paper.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ..core.jit import kernel
from ..core.rows import Dense, add_chosen_rows, score_rows
from ..surrogates._at_k_kernels import mistakes_avg, mistakes_max, prec_avg, prec_max, prec_struct


class Stream(NamedTuple):
    """Rows in batches: batch c has the rows permutation[bounds[c]:bounds[c + 1]] of X, and its labels stand so in y."""

    rows: Any
    """X, dense or sparse."""
    permutation: Any
    """Numbers of rows; empty where rows stay as they are."""
    bounds: Any
    y: Any
    """True for positives, in the order of the batches."""
    k: Any
    """k of each batch."""
    weight: Any
    """Weight of each batch."""


class Iterates(NamedTuple):
    """w after t batches and drift = Σ_{τ≤t} (τ − 1)(w_τ − w_{τ−1}), so that the mean of w_1, …, w_t is w − drift/t."""

    w: Any
    drift: Any


class StepSizes(NamedTuple):
    """η_t = eta, or eta/√t if `falls`; divided by k if `normalize` (the κ-form); w stays in a ball of this radius."""

    eta: float
    falls: bool
    normalize: bool
    radius: float


@kernel
def receive(stream, c):
    """Return the rows of batch c, as their numbers in X, and its labels."""
    first, last = stream.bounds[c], stream.bounds[c + 1]
    y_t = stream.y[first:last]
    if len(stream.permutation) > 0:
        return stream.permutation[first:last], y_t
    return np.arange(first, last), y_t


@kernel
def scores_of_batch(stream, X_t, w):
    """Return the scores of a batch and whether all of them are finite."""
    s, infinite = np.empty(len(X_t)), 0
    score_rows(stream.rows, X_t, w, s)
    for i in range(len(s)):
        infinite += not math.isfinite(s[i])
    return s, infinite == 0


@kernel
def descend(stream, X_t, g, eta, t, iterates):
    """w ← w − η Σ_i g_i x_i, in batch t; return whether a row has g_i ≠ 0."""
    moving, slopes, n = np.empty(len(g), np.int64), np.empty(len(g)), 0
    for i in range(len(g)):  # no branch depends on g: there is nothing to mispredict
        moving[n], slopes[n] = X_t[i], g[i]
        n += g[i] != 0.0
    move(stream.rows, moving[:n], slopes[:n], -eta, t, iterates)
    return n > 0


@kernel
def move_by_dense_rows(rows, chosen, g, factor, t, iterates):
    """Add factor · Σ_i g_i x_i to w, and (t − 1) times as much to drift: the sum is made once."""
    z = np.zeros(len(iterates.w))
    add_chosen_rows(rows, chosen, g, factor, z)
    for j in range(len(z)):
        iterates.w[j] += z[j]
        iterates.drift[j] += (t - 1) * z[j]


@kernel
def move_by_sparse_rows(rows, chosen, g, factor, t, iterates):
    """Add factor · Σ_i g_i x_i to w, and (t − 1) times as much to drift: only columns with a value are touched."""
    add_chosen_rows(rows, chosen, g, factor, iterates.w)
    add_chosen_rows(rows, chosen, g, factor * (t - 1), iterates.drift)


def move(rows, chosen, g, factor, t, iterates):
    """w += factor · Σ_i g_i x_i, inside a kernel; drift follows."""
    raise NotImplementedError("move is called by kernels")


@overload(move)
def _move(rows, chosen, g, factor, t, iterates):
    if rows.instance_class is Dense:
        return lambda rows, chosen, g, factor, t, iterates: move_by_dense_rows(rows, chosen, g, factor, t, iterates)
    return lambda rows, chosen, g, factor, t, iterates: move_by_sparse_rows(rows, chosen, g, factor, t, iterates)


@kernel
def project(iterates, radius, t):
    """w ← Π[w], the nearest point of the ball of this radius, in batch t."""
    w, drift = iterates.w, iterates.drift
    norm2 = 0.0
    for j in range(len(w)):
        norm2 += w[j] * w[j]
    if norm2 > radius * radius:
        scale = radius / math.sqrt(norm2)
        for j in range(len(w)):
            drift[j] += (t - 1) * (scale - 1.0) * w[j]
            w[j] *= scale


@kernel
def step_size(steps, t, k):
    """η_t."""
    eta = steps.eta / math.sqrt(t) if steps.falls else steps.eta
    return eta / k if steps.normalize else eta


@kernel
def perceptron_at_k_avg(stream, order, iterates, t, losses):
    """PERCEPTRON@K-AVG, Algorithm 1 of precision at the top.

    4: receive X_t, y_t. 5: s_t = w X_t, ŷ_t = y^(s_t, k). 6: Δ_t = Δ(y_t, ŷ_t). 7: if Δ_t > 0,
    10: D_t = Δ_t/(‖y_t‖₁ − K(y_t, ŷ_t)), 11: w ← w − Σ (1 − y_i) ŷ_i x_i, 12: w ← w + D_t Σ (1 − ŷ_i) y_i x_i.
    """
    updates = 0
    for i in range(len(order)):
        t += 1
        c = order[i]
        X_t, y_t = receive(stream, c)
        s_t, finite = scores_of_batch(stream, X_t, iterates.w)
        if not finite:
            return updates, i
        g = np.empty(len(s_t))  # 1 on the false positives, −D_t on the false negatives
        delta_t = mistakes_avg(s_t, y_t, stream.k[c], g)
        if delta_t > 0:
            updates += descend(stream, X_t, g, stream.weight[c], t, iterates)
        losses[i] = stream.weight[c] * delta_t
    return updates, -1


@kernel
def perceptron_at_k_max(stream, order, iterates, t, losses):
    """PERCEPTRON@K-MAX, Algorithm 2 of precision at the top: as Algorithm 1, but for lines 10 and 12.

    10: S_t = FN(s_t, Δ_t), the Δ_t best-ranked false negatives, 12: w ← w + Σ_{i∈S_t} x_i.
    """
    updates = 0
    for i in range(len(order)):
        t += 1
        c = order[i]
        X_t, y_t = receive(stream, c)
        s_t, finite = scores_of_batch(stream, X_t, iterates.w)
        if not finite:
            return updates, i
        g = np.empty(len(s_t))  # 1 on the false positives, −1 on S_t
        delta_t = mistakes_max(s_t, y_t, stream.k[c], g)
        if delta_t > 0:
            updates += descend(stream, X_t, g, stream.weight[c], t, iterates)
        losses[i] = stream.weight[c] * delta_t
    return updates, -1


@kernel
def sgd_at_k_avg(stream, order, steps, iterates, t, losses):
    """SGD@K-AVG, Algorithm 3 of precision at the top.

    4: receive X_t, y_t. 5: g_t ∈ ∂ℓ^avg(w; X_t, y_t) by Algorithm 4, which is `prec_avg`. 6: w ← Π[w − η_t g_t].
    """
    updates = 0
    for i in range(len(order)):
        t += 1
        c = order[i]
        X_t, y_t = receive(stream, c)
        s_t, finite = scores_of_batch(stream, X_t, iterates.w)
        if not finite:
            return updates, i
        g = np.empty(len(s_t))
        losses[i] = stream.weight[c] * prec_avg(s_t, y_t, stream.k[c], g)
        eta_t = step_size(steps, t, stream.k[c])
        updates += descend(stream, X_t, g, stream.weight[c] * eta_t, t, iterates)
        project(iterates, steps.radius, t)
    return updates, -1


@kernel
def sgd_at_k_max(stream, order, steps, iterates, t, losses):
    """SGD@K-MAX of Section 6 of precision at the top: Algorithm 3 with g_t ∈ ∂ℓ^max(w; X_t, y_t)."""
    updates = 0
    for i in range(len(order)):
        t += 1
        c = order[i]
        X_t, y_t = receive(stream, c)
        s_t, finite = scores_of_batch(stream, X_t, iterates.w)
        if not finite:
            return updates, i
        g = np.empty(len(s_t))
        losses[i] = stream.weight[c] * prec_max(s_t, y_t, stream.k[c], g)
        eta_t = step_size(steps, t, stream.k[c])
        updates += descend(stream, X_t, g, stream.weight[c] * eta_t, t, iterates)
        project(iterates, steps.radius, t)
    return updates, -1


@kernel
def one_pass_mini_batch(stream, order, steps, iterates, t, losses):
    """1PMB (Kar et al. 2014): Algorithm 3 of precision at the top with g_t ∈ ∂ℓ^struct(w; X_t, y_t)."""
    updates = 0
    for i in range(len(order)):
        t += 1
        c = order[i]
        X_t, y_t = receive(stream, c)
        s_t, finite = scores_of_batch(stream, X_t, iterates.w)
        if not finite:
            return updates, i
        g = np.empty(len(s_t))
        losses[i] = stream.weight[c] * prec_struct(s_t, y_t, stream.k[c], g)
        eta_t = step_size(steps, t, stream.k[c])
        updates += descend(stream, X_t, g, stream.weight[c] * eta_t, t, iterates)
        project(iterates, steps.radius, t)
    return updates, -1
