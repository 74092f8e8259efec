# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Epochs of learning precision at the top, over batches of rows or whole lists: score, select, step, project."""

from __future__ import annotations

import math

import numpy as np

from ..core._order_kernels import longest_list
from ..core._prefetch_kernels import LINE, prefetch
from ..core._selection_kernels import fill
from ..core._vector_kernels import dot
from ..core.jit import kernel, sum_kernel
from ..surrogates._at_k_kernels import avg, list_k, maximum, perceptron, ramp, struct, workspace
from ..surrogates.precision_at_k import Rule


@kernel
def loss_of_list(rule, s, y, k, work, g):
    """Loss of one list with 1 ≤ k ≤ n₊ and, in g, its subgradient in the scores (or the perceptron's step)."""
    if rule == Rule.AVG:
        return avg(s, y, k, work, g)
    if rule == Rule.MAX:
        return maximum(s, y, k, work, g)
    if rule == Rule.STRUCT:
        return struct(s, y, k, work, g)
    if rule == Rule.RAMP:
        return ramp(s, y, k, work, g)
    return perceptron(s, y, k, rule == Rule.PERCEPTRON_AVG, work, g)


@sum_kernel
def dense_scores(X, v, s, ahead):
    """s = X v, four rows at a time, in the precision of X: nothing here but the order of a batch hangs on it.

    Meanwhile three in four of the rows that far `ahead` (none where it is 0) are asked for.
    """
    n, d = X.shape
    zero, width = np.zeros(1, X.dtype)[0], d * X.itemsize
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = b = c = e = zero
        if ahead != 0:
            first = ahead + 3 * (i >> 2)
            for offset in range(first * width, (first + 3) * width, LINE):
                prefetch(X, np.int64(offset))
        for j in range(d):
            weight = v[j]
            a += X[i, j] * weight
            b += X[i + 1, j] * weight
            c += X[i + 2, j] * weight
            e += X[i + 3, j] * weight
        s[i], s[i + 1], s[i + 2], s[i + 3] = a, b, c, e
    for i in range(whole, n):
        a = zero
        for j in range(d):
            a += X[i, j] * v[j]
        s[i] = a


@sum_kernel
def dense_step(X, g, chosen, step, ahead):
    """step = Xᵀ g over the rows where g is not 0, four at a time; return how many those are.

    Meanwhile the last in four of the rows that far `ahead` (none where it is 0) are asked for.
    """
    n, d = X.shape
    count, width = 0, d * X.itemsize
    for i in range(n):
        chosen[count] = i
        count += g[i] != 0.0
    fill(step, 0, d, 0.0)
    whole = count - count % 4
    last = ahead + 3 * (n // 4)
    for i in range(0, whole, 4):
        p, q, r, v = chosen[i], chosen[i + 1], chosen[i + 2], chosen[i + 3]
        a, b, c, e = g[p], g[q], g[r], g[v]
        if ahead != 0 and i < n // 4:
            for offset in range((last + i) * width, (last + i + 4) * width, LINE):
                prefetch(X, np.int64(offset))
        for j in range(d):
            step[j] += (a * X[p, j] + b * X[q, j]) + (c * X[r, j] + e * X[v, j])
    for i in range(whole, count):
        p = chosen[i]
        a = g[p]
        for j in range(d):
            step[j] += a * X[p, j]
    return count


@kernel
def read_batch(y, rows, start, m, ids, labels):
    """Put down which rows one batch holds, and their labels; return how many are positive."""
    n_pos = 0
    for i in range(m):
        ids[i] = rows[start + i] if len(rows) > 0 else start + i
        labels[i] = y[ids[i]]
        n_pos += labels[i] > 0.0
    return n_pos


@kernel
def step_size(t, eta, decay, k, normalize, weight):
    """η_t = eta · t^−decay, over k where the loss is, times the weight of the list."""
    return eta * t**-decay * weight / (k if normalize else 1.0)


@kernel
def note(stats, loss, k, rows):
    """Add one batch to [batches, loss, loss/k, k, largest k, updates, skipped]."""
    stats[0] += 1.0
    stats[1] += loss
    stats[2] += loss / k
    stats[3] += k
    stats[4] = max(stats[4], k)
    stats[5] += rows > 0


@kernel
def shrink(w, drift, t, radius):
    """Project w on the ball; `drift` keeps Σ_τ w_τ = t w − drift."""
    square = dot(w, w)
    if square > radius * radius:
        scale = radius / math.sqrt(square)
        for j in range(len(w)):
            change = (scale - 1.0) * w[j]
            w[j] += change
            drift[j] += (t - 1) * change


@kernel
def move(scale, t, radius, step, w, drift):
    """w ← Π_radius[w − scale · step]; `drift` keeps Σ_τ w_τ = t w − drift."""
    for j in range(len(w)):
        change = scale * step[j]
        w[j] -= change
        drift[j] -= (t - 1) * change
    if radius < math.inf:
        shrink(w, drift, t, radius)


@kernel
def dense_epoch(X, y, rows, bounds, order, weights, rule, k, kappa, eta, decay, normalize, radius, w, drift, t, stats):
    """Work through the batches `order`: score, select, step, project; w and drift are changed, the new t returned.

    Batch c holds rows bounds[c]:bounds[c+1] of X, or of the permutation `rows` where that is not empty.
    """
    work = workspace(longest_list(bounds))
    d, longest = X.shape[1], work.shape[1] - 1
    s, g, labels = np.empty(longest), np.empty(longest), np.empty(longest)
    ids, chosen = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    step, v = np.empty(d), np.empty(d, X.dtype)
    block = np.empty((longest if len(rows) > 0 else 0, d), X.dtype)
    for place in range(len(order)):
        c = order[place]
        start, m = bounds[c], bounds[c + 1] - bounds[c]
        n_pos = read_batch(y, rows, start, m, ids, labels)
        size = list_k(n_pos, k, kappa)
        if size == 0 or n_pos == m:
            stats[6] += 1.0
            continue
        t += 1
        for j in range(d):
            v[j] = w[j]
        if len(rows) > 0:
            for i in range(m):
                for j in range(d):
                    block[i, j] = X[ids[i], j]
        batch = block[:m] if len(rows) > 0 else X[start : start + m]
        following = bounds[order[place + 1]] - start if place + 1 < len(order) and len(rows) == 0 else 0
        dense_scores(batch, v, s, following)
        loss = loss_of_list(rule, s[:m], labels[:m], size, work, g[:m])
        count = dense_step(batch, g, chosen, step, following)
        note(stats, loss, size, count)
        if count > 0:
            scale = step_size(t, eta, decay, size, normalize, weights[c] if len(weights) > 0 else 1.0)
            move(scale, t, radius, step, w, drift)
    return t


@sum_kernel
def csr_scores(values, indices, indptr, ids, w, s):
    """s = scores of the rows of one batch; return how many values they hold."""
    held = 0
    for i in range(len(ids)):
        held += indptr[ids[i] + 1] - indptr[ids[i]]
        score = 0.0
        for p in range(np.uint64(indptr[ids[i]]), np.uint64(indptr[ids[i] + 1])):
            score += values[p] * w[np.uint32(indices[p])]
        s[i] = score
    return held


@kernel
def csr_step(values, indices, indptr, ids, g, step):
    """step += Xᵀ g over the rows where g is not 0; return how many those are."""
    count = 0
    for i in range(len(ids)):
        a = g[i]
        if a != 0.0:
            count += 1
            for p in range(np.uint64(indptr[ids[i]]), np.uint64(indptr[ids[i] + 1])):
                step[np.uint32(indices[p])] += a * values[p]
    return count


@kernel
def csr_move(values, indices, indptr, ids, g, scale, t, step, w, drift):
    """`move` on the features of those rows alone, which leaves step at 0; return by how much ‖w‖² grew."""
    grown = 0.0
    for i in range(len(ids)):
        if g[i] != 0.0:
            for p in range(np.uint64(indptr[ids[i]]), np.uint64(indptr[ids[i] + 1])):
                j = np.uint32(indices[p])
                change = scale * step[j]
                step[j] = 0.0
                grown += change * (change - 2.0 * w[j])
                w[j] -= change
                drift[j] -= (t - 1) * change
    return grown


@kernel
def csr_epoch(
    values, indices, indptr, y, rows, bounds, order, weights,
    rule, k, kappa, eta, decay, normalize, radius, w, drift, t, stats,
):  # fmt: skip
    """`dense_epoch` for CSR: where features are many, a step touches those of its rows only."""
    work = workspace(longest_list(bounds))
    longest = work.shape[1] - 1
    s, g, labels, step = np.empty(longest), np.empty(longest), np.empty(longest), np.zeros(len(w))
    ids, square = np.empty(longest, np.int64), dot(w, w)
    for c in order:
        start, m = bounds[c], bounds[c + 1] - bounds[c]
        n_pos = read_batch(y, rows, start, m, ids, labels)
        size = list_k(n_pos, k, kappa)
        if size == 0 or n_pos == m:
            stats[6] += 1.0
            continue
        t += 1
        held = csr_scores(values, indices, indptr, ids[:m], w, s)
        loss = loss_of_list(rule, s[:m], labels[:m], size, work, g[:m])
        scale = step_size(t, eta, decay, size, normalize, weights[c] if len(weights) > 0 else 1.0)
        note(stats, loss, size, csr_step(values, indices, indptr, ids[:m], g, step))
        if len(w) < held:
            move(scale, t, math.inf, step, w, drift)
            fill(step, 0, len(w), 0.0)
            square = dot(w, w)
        else:
            square += csr_move(values, indices, indptr, ids[:m], g, scale, t, step, w, drift)
        if square > radius * radius:
            shrink(w, drift, t, radius)
            square = dot(w, w)
    return t
