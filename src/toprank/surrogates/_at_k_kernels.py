# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Precision at the top of lists: selection, the losses with their subgradients, and whole epochs over X.

The epochs live here and not beside their solver because a compiled caller does not notice that a callee in another
file has changed. Of equal scores the earlier row ranks higher, everywhere.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import kernel, sum_kernel
from .precision_at_k import Rule

SMALL = 12
"""Up to this many, the largest are kept in a sorted strip; beyond it, they are selected around pivots."""
COUNTED = 64
"""Up to this many are sorted by counting."""


@kernel
def copy(a, n, b):
    """b[:n] = a[:n]; a plain loop compiles ten times faster than slices do."""
    for i in range(n):
        b[i] = a[i]


@kernel
def fill(a, start, stop, value):
    """a[start:stop] = value."""
    for i in range(start, stop):
        a[i] = value


@kernel
def ascend(a, n, b):
    """Sort a[:n] upwards: short runs by counting, which has no branch to mispredict, long ones by merging."""
    if n <= COUNTED:
        copy(a, n, b)
        for i in range(n):
            x = b[i]
            place = 0
            for j in range(i):
                place += b[j] <= x
            for j in range(i + 1, n):
                place += b[j] < x
            a[place] = x
        return
    source, target, width = a, b, 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for place in range(low, high):
                if i < middle and (j >= high or source[i] <= source[j]):
                    target[place] = source[i]
                    i += 1
                else:
                    target[place] = source[j]
                    j += 1
        source, target, width = target, source, 2 * width
    copy(source, n, a)  # where they are the same array, each element is copied on itself


@kernel
def guess(a, n, k):
    """A pivot: the median of three, or of three larger ones of pairs where the k-th is far up."""
    x, y, z = a[0], a[n >> 1], a[n - 1]
    if n > 4 * k:
        x, y, z = max(x, a[n >> 3]), max(y, a[3 * n >> 3]), max(z, a[5 * n >> 3])
    return max(min(x, y), min(max(x, y), z))


@kernel
def kth_largest(a, n, k, b):
    """Return the k-th largest of a[:n], 1 ≤ k ≤ n; both buffers are used up."""
    if k <= SMALL:
        strip_of_largest(a, n, k, b)
        return a[0]
    while True:  # no branch depends on a comparison of two elements: nothing to mispredict
        pivot = guess(a, n, k)
        more = less = 0
        for i in range(n):
            value = a[i]
            a[more] = value  # more ≤ i: nothing unread is overwritten
            b[less] = value
            more += value > pivot
            less += value < pivot
        if k <= more:
            n = more
        elif k <= n - less:
            return pivot
        else:
            k -= n - less
            n = less
            a, b = b, a


@kernel
def strip_of_largest(a, n, k, b):
    """Move the k largest of a[:n] to a[:k], ascending."""
    ascend(a, k, b)
    for i in range(k, n):
        x = a[i]
        if x > a[0]:
            j = 1
            while j < k and a[j] < x:
                a[j - 1] = a[j]
                j += 1
            a[j - 1] = x


@kernel
def sorted_top(a, n, k, b, c):
    """Move the k largest of a[:n] to a[:k], ascending."""
    if k <= SMALL:
        strip_of_largest(a, n, k, b)
        return
    copy(a, n, b)
    cut = kth_largest(b, n, k, c)
    above = 0
    for i in range(n):
        a[above] = a[i]
        above += a[i] > cut
    fill(a, above, k, cut)
    ascend(a, k, b)


@kernel
def list_k(n_pos, k, kappa):
    """k of one list: min(k, n₊), or ⌈κ n₊⌉ with the dust of rounding taken off."""
    if k > 0:
        return min(k, n_pos)
    return min(n_pos, math.ceil(kappa * n_pos * (1.0 - 1e-12)))


@kernel
def by_class(s, y, a, b):
    """Copy the positive scores to the front of a, the negative ones to that of b; return how many positives."""
    n_pos = n_neg = 0
    for i in range(len(s)):
        a[n_pos] = s[i]
        b[n_neg] = s[i]
        n_pos += y[i] > 0.0
        n_neg += y[i] <= 0.0
    return n_pos


@sum_kernel
def total(a, n):
    """Σ a[:n]."""
    result = 0.0
    for i in range(n):
        result += a[i]
    return result


@sum_kernel
def dot(a, b):
    """Σ a_i b_i."""
    result = 0.0
    for i in range(len(a)):
        result += a[i] * b[i]
    return result


@kernel
def mark_top(s, y, positive, cut, wanted, value, other, g):
    """On the rows of one class: g = value on the first `wanted` at or above the cut, `other` elsewhere."""
    count = 0
    for i in range(len(s)):
        inside = (y[i] > 0.0) == positive
        count += inside & (s[i] >= cut)
        g[i] = (value if s[i] >= cut else other) if inside else g[i]
    for i in range(len(s) - 1, -1, -1):
        if count == wanted:
            break
        if s[i] == cut and (y[i] > 0.0) == positive:
            g[i] = other
            count -= 1


@kernel
def mark_lowest_positives(s, y, cut, wanted, value, g):
    """On the positives: g = value on the last `wanted` at or below the cut, 0 elsewhere."""
    count = 0
    for i in range(len(s)):
        inside = y[i] > 0.0
        count += inside & (s[i] <= cut)
        g[i] = (value if s[i] <= cut else 0.0) if inside else g[i]
    for i in range(len(s)):
        if count == wanted:
            break
        if s[i] == cut and y[i] > 0.0:
            g[i] = 0.0
            count -= 1


@kernel
def candidate(s, y, k, bonus, work, g):
    """ŷ in g: 1 on the k rows with the largest s + bonus·(1 − y), else 0."""
    shifted, a = work[0], work[1]
    m = len(s)
    for i in range(m):
        shifted[i] = s[i] + (bonus if y[i] <= 0.0 else 0.0)
        a[i] = shifted[i]
    cut = kth_largest(a, m, k, work[2])
    count = 0
    for i in range(m):
        count += shifted[i] >= cut
        g[i] = 1.0 if shifted[i] >= cut else 0.0
    for i in range(m - 1, -1, -1):
        if count == k:
            break
        if shifted[i] == cut:
            g[i] = 0.0
            count -= 1


@kernel
def struct(s, y, k, work, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ_{y=1} s_i (Eq. 3, over ŷ with k ones); g = ŷ − y."""
    candidate(s, y, k, 1.0, work, g)
    errors = 0.0
    for i in range(len(s)):
        errors += g[i] if y[i] <= 0.0 else 0.0
        g[i] -= 1.0 if y[i] > 0.0 else 0.0
    return errors + dot(g, s)


@kernel
def ramp(s, y, k, work, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ of the k best positives (Eq. 4); g = ŷ − ỹ."""
    candidate(s, y, k, 1.0, work, g)
    a, best = work[0], work[1]
    n_pos = by_class(s, y, a, best)
    cut = kth_largest(a, n_pos, k, work[2])
    fill(best, 0, len(s), 0.0)
    mark_top(s, y, True, cut, k, 1.0, 0.0, best)
    errors = 0.0
    for i in range(len(s)):
        errors += g[i] if y[i] <= 0.0 else 0.0
        g[i] -= best[i]
    return errors + dot(g, s)


@kernel
def avg(s, y, k, work, g):
    """max_j j + Σ_{i≤j} s⁻_i − D_j Σ_{i>k−j} s⁺_i, D_j = j/(n₊ − k + j) (Eq. 7 with j = k − k'); g for that j."""
    a, b = work[0], work[1]
    n_pos = by_class(s, y, a, b)
    n_neg = len(s) - n_pos
    most = min(k, n_neg)
    fill(g, 0, len(s), 0.0)
    if most == 0:
        return 0.0
    rest = total(a, n_pos)
    sorted_top(a, n_pos, k, work[2], work[3])  # a[j − 1] is s⁺ at place k − j + 1
    sorted_top(b, n_neg, most, work[2], work[3])
    rest -= total(a, k)
    best, swaps, negatives = 0.0, 0, 0.0
    for j in range(1, most + 1):
        rest += a[j - 1]
        negatives += b[most - j]
        value = j + negatives - j / (n_pos - k + j) * rest
        if value > best:
            best, swaps = value, j
    if swaps > 0:
        mark_top(s, y, False, b[most - swaps], swaps, 1.0, 0.0, g)
        share = -swaps / (n_pos - k + swaps)
        cut = a[swaps] if swaps < k else math.inf
        mark_top(s, y, True, cut, k - swaps, 0.0, share, g)
    return best


@kernel
def maximum(s, y, k, work, g):
    """Σ_{i≤k} max(0, 1 + s⁻_i − (i-th lowest positive)): Eq. 6, whose terms only fall; g over the terms above 0."""
    a, b = work[0], work[1]
    n_pos = by_class(s, y, a, b)
    n_neg = len(s) - n_pos
    most = min(k, n_neg)
    fill(g, 0, len(s), 0.0)
    if most == 0:
        return 0.0
    for i in range(n_pos):
        a[i] = -a[i]
    sorted_top(a, n_pos, most, work[2], work[3])
    sorted_top(b, n_neg, most, work[2], work[3])
    value, swaps = 0.0, 0
    while swaps < most:
        term = 1.0 + b[most - 1 - swaps] + a[most - 1 - swaps]
        if term <= 0.0:
            break
        value += term
        swaps += 1
    if swaps > 0:
        mark_top(s, y, False, b[most - swaps], swaps, 1.0, 0.0, g)
        mark_lowest_positives(s, y, -a[most - swaps], swaps, -1.0, g)
    return value


@kernel
def perceptron(s, y, k, spread, work, g):
    """Δ = negatives in the top k; g = 1 on them, and −D on the missed positives or −1 on the Δ best of those."""
    candidate(s, y, k, 0.0, work, g)
    a = work[0]
    m, mistakes, missed = len(s), 0, 0
    for i in range(m):
        positive = y[i] > 0.0
        chosen = g[i] > 0.0
        a[missed] = s[i]
        missed += positive & (not chosen)
        mistakes += chosen & (not positive)
        g[i] -= 1.0 if positive else 0.0  # 1 on false positives, −1 on missed positives
    if mistakes == 0:
        fill(g, 0, m, 0.0)
    elif spread:
        share = mistakes / missed
        for i in range(m):
            g[i] *= share if g[i] < 0.0 else 1.0
    elif mistakes < missed:
        cut = kth_largest(a, missed, mistakes, work[1])
        count = 0
        for i in range(m):
            below = g[i] < 0.0
            count += below & (s[i] >= cut)
            g[i] = 0.0 if below & (s[i] < cut) else g[i]
        for i in range(m - 1, -1, -1):
            if count == mistakes:
                break
            if g[i] < 0.0 and s[i] == cut:
                g[i] = 0.0
                count -= 1
    return float(mistakes)


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


@kernel
def workspace(ptr):
    """Buffers for the longest list; one place more than its rows, for writes that are then not counted."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    return np.empty((4, longest + 1))


@kernel
def losses_of_lists(rule, scores, y, ptr, k, kappa, losses, ks, grad):
    """Fill each list's loss, its k (0 where it has no positives: then loss and gradient are 0) and the gradient."""
    work = workspace(ptr)
    for q in range(len(ptr) - 1):
        start, stop = ptr[q], ptr[q + 1]
        labels, g = y[start:stop], grad[start:stop]
        n_pos = 0
        for i in range(stop - start):
            n_pos += labels[i] > 0.0
        ks[q] = list_k(n_pos, k, kappa)
        losses[q] = 0.0
        if ks[q] == 0:
            fill(g, 0, stop - start, 0.0)
        else:
            losses[q] = loss_of_list(rule, scores[start:stop], labels, ks[q], work, g)


@sum_kernel
def dense_scores(X, v, s):
    """s = X v, four rows at a time, in the precision of X: nothing here but the order of a batch hangs on it."""
    n, d = X.shape
    zero = np.zeros(1, X.dtype)[0]
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = b = c = e = zero
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
def dense_step(X, g, chosen, step):
    """step = Xᵀ g over the rows where g is not 0, four at a time; return how many those are."""
    n, d = X.shape
    count = 0
    for i in range(n):
        chosen[count] = i
        count += g[i] != 0.0
    fill(step, 0, d, 0.0)
    whole = count - count % 4
    for i in range(0, whole, 4):
        p, q, r, v = chosen[i], chosen[i + 1], chosen[i + 2], chosen[i + 3]
        a, b, c, e = g[p], g[q], g[r], g[v]
        for j in range(d):
            step[j] += (a * X[p, j] + b * X[q, j]) + (c * X[r, j] + e * X[v, j])
    for i in range(whole, count):
        p = chosen[i]
        a = g[p]
        for j in range(d):
            step[j] += a * X[p, j]
    return count


@kernel
def dense_batch(X, y, k, rule, v, work, s, g, chosen, step):
    """Loss of one batch at w, and Xᵀ of its subgradient in `step`; return (loss, rows in the step)."""
    m = len(y)
    dense_scores(X, v, s)
    loss = loss_of_list(rule, s[:m], y, k, work, g[:m])
    return loss, dense_step(X, g, chosen, step)


@kernel
def read_labels(y, rows, start, m, labels):
    """Copy the labels of one batch; return how many are positive."""
    n_pos = 0
    if len(rows) > 0:
        for i in range(m):
            labels[i] = y[rows[start + i]]
    else:
        for i in range(m):
            labels[i] = y[start + i]
    for i in range(m):
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
def dense_epoch(X, y, rows, bounds, order, weights, rule, k, kappa, eta, decay, normalize, radius, w, drift, t, stats):
    """Work through the batches `order`: score, select, step, project; w and drift are changed, the new t returned.

    Batch c holds rows bounds[c]:bounds[c+1] of X, or of the permutation `rows` where that is not empty.
    """
    work = workspace(bounds)
    d, longest = X.shape[1], work.shape[1] - 1
    s, g = np.empty(longest), np.empty(longest)
    chosen, step = np.empty(longest + 1, np.int64), np.empty(d)
    block = np.empty((longest if len(rows) > 0 else 0, d), X.dtype)
    labels, v = np.empty(longest), np.empty(d, X.dtype)
    for c in order:
        start, m = bounds[c], bounds[c + 1] - bounds[c]
        n_pos = read_labels(y, rows, start, m, labels)
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
                    block[i, j] = X[rows[start + i], j]
            loss, count = dense_batch(block[:m], labels[:m], size, rule, v, work, s, g, chosen, step)
        else:
            loss, count = dense_batch(X[start : start + m], labels[:m], size, rule, v, work, s, g, chosen, step)
        note(stats, loss, size, count)
        if count > 0:
            scale = step_size(t, eta, decay, size, normalize, weights[c] if len(weights) > 0 else 1.0)
            for j in range(d):
                change = scale * step[j]
                w[j] -= change
                drift[j] -= (t - 1) * change
            if radius < math.inf:
                shrink(w, drift, t, radius)
    return t


@sum_kernel
def csr_scores(values, indices, indptr, rows, start, m, w, s):
    """s = scores of the rows of one batch."""
    for i in range(m):
        row = rows[start + i] if len(rows) > 0 else start + i
        score = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            score += values[p] * w[indices[p]]
        s[i] = score


@sum_kernel
def csr_step(values, indices, indptr, rows, start, m, g, scale, t, w, drift):
    """w −= scale · Xᵀg, with its drift; return how many rows took part and by how much ‖w‖² grew."""
    count, grown = 0, 0.0
    for i in range(m):
        if g[i] != 0.0:
            count += 1
            row = rows[start + i] if len(rows) > 0 else start + i
            for p in range(indptr[row], indptr[row + 1]):
                j = indices[p]
                change = scale * g[i] * values[p]
                grown += change * (change - 2.0 * w[j])
                w[j] -= change
                drift[j] -= (t - 1) * change
    return count, grown


@kernel
def csr_epoch(
    values, indices, indptr, y, rows, bounds, order, weights,
    rule, k, kappa, eta, decay, normalize, radius, w, drift, t, stats,
):  # fmt: skip
    """`dense_epoch` for CSR: a step touches the features of its rows only, a projection touches all of them."""
    work = workspace(bounds)
    longest = work.shape[1] - 1
    s, g, labels = np.empty(longest), np.empty(longest), np.empty(longest)
    square = dot(w, w)
    for c in order:
        start, m = bounds[c], bounds[c + 1] - bounds[c]
        n_pos = read_labels(y, rows, start, m, labels)
        size = list_k(n_pos, k, kappa)
        if size == 0 or n_pos == m:
            stats[6] += 1.0
            continue
        t += 1
        csr_scores(values, indices, indptr, rows, start, m, w, s)
        loss = loss_of_list(rule, s[:m], labels[:m], size, work, g[:m])
        scale = step_size(t, eta, decay, size, normalize, weights[c] if len(weights) > 0 else 1.0)
        count, grown = csr_step(values, indices, indptr, rows, start, m, g, scale, t, w, drift)
        square += grown
        note(stats, loss, size, count)
        if square > radius * radius:
            shrink(w, drift, t, radius)
            square = dot(w, w)
    return t
