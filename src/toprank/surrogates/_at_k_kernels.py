# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Precision at the top of lists: selection, the losses with their subgradients, and whole epochs over X.

The epochs live here and not beside their solver because a compiled caller does not notice that a callee in another
file has changed. Of equal scores the earlier row ranks higher, everywhere.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import kernel, sum_kernel
from ..data._linear_kernels import prefetch
from .precision_at_k import Rule

SMALL = 12
"""Up to this many, the largest are kept in a sorted strip; beyond it, they are selected around pivots."""
COUNTED = 64
"""Up to this many are sorted by counting, in a buffer of twice as many."""
BUCKETS, CROWD = 128, 32
"""How many buckets the largest are dealt into, and the most that one of them may hold."""
SAMPLE = 16
"""How many are looked at to guess where the k-th largest lies; of less than eight times as many, none."""


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
        for i in range(n):
            b[i] = a[i]
            b[COUNTED + i] = 0.0
            a[i] = -math.inf
        for j in range(n):
            x = b[j]
            for i in range(n):  # b[COUNTED + i] counts what is below b[i]
                b[COUNTED + i] += 1.0 if x < b[i] else 0.0
        for i in range(n):
            a[int(b[COUNTED + i])] = b[i]
        for i in range(1, n):  # of equals one was placed, the places behind it are still empty
            a[i] = max(a[i], a[i - 1])
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
def narrow(a, n, k, b, c):
    """Leave out of a[:n] what a sample shows to lie below its k largest; return how many are left."""
    expected = k * SAMPLE / n
    rank = int(expected + 2.0 * math.sqrt(expected) + 1.5)
    if n < 8 * SAMPLE or 2 * rank > SAMPLE:
        return n
    for i in range(SAMPLE):
        b[i] = a[i * (n // SAMPLE)]
    ascend(b, SAMPLE, c)
    pivot, count = b[SAMPLE - rank], 0
    for i in range(n):
        count += a[i] >= pivot
    if count < k:
        return n
    kept = 0
    for i in range(n):  # no branch depends on a comparison of two elements: nothing to mispredict
        value = a[i]
        a[kept] = value  # kept ≤ i: nothing unread is overwritten
        kept += value >= pivot
    return kept


@kernel
def select(a, n, k, b):
    """Return the k-th largest of a[:n], 1 ≤ k ≤ n, around pivots (medians of three); both buffers are used up."""
    while True:
        x, y, z = a[0], a[n >> 1], a[n - 1]
        pivot = max(min(x, y), min(max(x, y), z))
        more = less = 0
        for i in range(n):
            value = a[i]
            a[more] = value
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
def kth_largest(a, n, k, b, c):
    """Return the k-th largest of a[:n], 1 ≤ k ≤ n; all buffers are used up."""
    if k <= SMALL:
        strip_of_largest(a, n, k, b)
        return a[0]
    return select(a, narrow(a, n, k, b, c), k, b)


@kernel
def top_by_buckets(a, n, k, b, c):
    """Do what `sorted_top` does by way of buckets of equal width; False where they fill too unevenly, nothing done.

    Nothing but the last touch, which moves an element past the others of its bucket, branches on what is compared.
    """
    low = high = a[0]
    for i in range(n):
        low = a[i] if a[i] < low else low
        high = a[i] if a[i] > high else high
    scale = (BUCKETS - 1) / (high - low)
    if not scale < math.inf:
        return False
    fill(c, 0, BUCKETS, 0.0)
    for i in range(n):
        c[np.uint8((a[i] - low) * scale)] += 1.0
    cut, kept, fullest = BUCKETS, 0, 0.0
    while kept < k:
        cut -= 1
        kept += int(c[cut])
        fullest = max(fullest, c[cut])
    if fullest > CROWD:
        return False
    fill(c, 0, cut, float(n))  # what lies below the cut goes to one place behind all others
    place = 0.0
    for j in range(cut, BUCKETS):  # from how many to where
        count = c[j]
        c[j] = place
        place += count
    for i in range(n):
        bucket = np.uint8((a[i] - low) * scale)
        b[int(c[bucket])] = a[i]
        c[bucket] += 1.0 if bucket >= cut else 0.0
    for i in range(1, kept):
        x, j = b[i], i
        while j > 0 and b[j - 1] > x:
            b[j] = b[j - 1]
            j -= 1
        b[j] = x
    for i in range(k):
        a[i] = b[kept - k + i]
    return True


@kernel
def sorted_top(a, n, k, b, c):
    """Move the k largest of a[:n] to a[:k], ascending."""
    if k <= SMALL:
        strip_of_largest(a, n, k, b)
        return
    n = narrow(a, n, k, b, c)
    if top_by_buckets(a, n, k, b, c):
        return
    if n > COUNTED:
        copy(a, n, b)
        cut = select(b, n, k, c)
        above = 0
        for i in range(n):
            a[above] = a[i]
            above += a[i] > cut
        fill(a, above, k, cut)
        n = k
    ascend(a, n, b)
    for i in range(k):
        a[i] = a[n - k + i]


@kernel
def list_k(n_pos, k, kappa):
    """k of one list: min(k, n₊), or ⌈κ n₊⌉ with the dust of rounding taken off."""
    if k > 0:
        return min(k, n_pos)
    return min(n_pos, math.ceil(kappa * n_pos * (1.0 - 1e-12)))


@kernel
def by_class(s, y, pos, neg, a, b):
    """pos and neg are the scores of one class, −∞ elsewhere; a and b the same without gaps; return n₊."""
    n_pos = n_neg = 0
    for i in range(len(s)):
        positive = y[i] > 0.0
        pos[i] = s[i] if positive else -math.inf
        neg[i] = -math.inf if positive else s[i]
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
def mark(values, cut, wanted, amount, last, n, g):
    """Add the amount to g on the rows at or above the cut: of the ties at it, the first ones (or `last`) as wanted."""
    count = 0
    for i in range(n):
        inside = values[i] >= cut
        count += inside
        g[i] += amount if inside else 0.0
    i, step = (0, 1) if last else (n - 1, -1)
    while count > wanted:
        if values[i] == cut:
            g[i] -= amount
            count -= 1
        i += step


@kernel
def candidate(s, y, k, bonus, work, g):
    """ŷ in g: 1 on the k rows with the largest s + bonus·(1 − y), else 0."""
    shifted, a = work[0], work[1]
    m = len(s)
    for i in range(m):
        shifted[i] = s[i] + (bonus if y[i] <= 0.0 else 0.0)
        a[i] = shifted[i]
        g[i] = 0.0
    mark(shifted, kth_largest(a, m, k, work[2], work[3]), k, 1.0, False, m, g)


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
    errors = 0.0
    for i in range(len(s)):
        errors += g[i] if y[i] <= 0.0 else 0.0
    pos, a = work[0], work[1]
    n_pos = by_class(s, y, pos, work[2], a, work[3])
    mark(pos, kth_largest(a, n_pos, k, work[2], work[3]), k, -1.0, False, len(s), g)
    return errors + dot(g, s)


@kernel
def avg(s, y, k, work, g):
    """max_j j + Σ_{i≤j} s⁻_i − D_j Σ_{i>k−j} s⁺_i, D_j = j/(n₊ − k + j) (Eq. 7 with j = k − k'); g for that j."""
    pos, neg, a, b = work[0], work[1], work[2], work[3]
    n_pos = by_class(s, y, pos, neg, a, b)
    n, n_neg = len(s), len(s) - n_pos
    most = min(k, n_neg)
    fill(g, 0, n, 0.0)
    if most == 0:
        return 0.0
    rest = total(a, n_pos)
    sorted_top(a, n_pos, k, work[4], work[5])  # a[j − 1] is s⁺ at place k − j + 1
    sorted_top(b, n_neg, most, work[4], work[5])
    rest -= total(a, k)
    best, swaps, negatives = 0.0, 0, 0.0
    for j in range(1, most + 1):
        rest += a[j - 1]
        negatives += b[most - j]
        value = j + negatives - j / (n_pos - k + j) * rest
        if value > best:
            best, swaps = value, j
    if swaps > 0:
        share = swaps / (n_pos - k + swaps)
        for i in range(n):
            g[i] = -share if y[i] > 0.0 else 0.0
        if swaps < k:
            mark(pos, a[swaps], k - swaps, share, False, n, g)
        mark(neg, b[most - swaps], swaps, 1.0, False, n, g)
    return best


@kernel
def maximum(s, y, k, work, g):
    """Σ_{i≤k} max(0, 1 + s⁻_i − (i-th lowest positive)): Eq. 6, whose terms only fall; g over the terms above 0."""
    low, neg, a, b = work[0], work[1], work[2], work[3]
    n_pos = by_class(s, y, low, neg, a, b)
    n, n_neg = len(s), len(s) - n_pos
    most = min(k, n_neg)
    fill(g, 0, n, 0.0)
    if most == 0:
        return 0.0
    for i in range(n_pos):
        a[i] = -a[i]
    sorted_top(a, n_pos, most, work[4], work[5])
    sorted_top(b, n_neg, most, work[4], work[5])
    value, swaps = 0.0, 0
    while swaps < most:
        term = 1.0 + b[most - 1 - swaps] + a[most - 1 - swaps]
        if term <= 0.0:
            break
        value += term
        swaps += 1
    if swaps > 0:
        for i in range(n):
            low[i] = -s[i] if y[i] > 0.0 else -math.inf
        mark(low, a[most - swaps], swaps, -1.0, True, n, g)
        mark(neg, b[most - swaps], swaps, 1.0, False, n, g)
    return value


@kernel
def perceptron(s, y, k, spread, work, g):
    """Δ = negatives in the top k; g = 1 on them, and −D on the missed positives or −1 on the Δ best of those."""
    candidate(s, y, k, 0.0, work, g)
    missing, a = work[0], work[1]
    n, mistakes, missed = len(s), 0, 0
    for i in range(n):
        positive, chosen = y[i] > 0.0, g[i] > 0.0
        lost = positive & (not chosen)
        a[missed] = s[i]
        missed += lost
        mistakes += chosen & (not positive)
        missing[i] = s[i] if lost else -math.inf
    if mistakes == 0:
        fill(g, 0, n, 0.0)
        return 0.0
    share = mistakes / missed if spread else 0.0
    for i in range(n):
        g[i] = (0.0 if g[i] > 0.0 else -share) if y[i] > 0.0 else g[i]
    if not spread:
        mark(missing, kth_largest(a, missed, mistakes, work[2], work[3]), mistakes, -1.0, False, n, g)
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
    return np.empty((6, max(longest + 1, 2 * COUNTED)))


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
def dense_scores(X, v, s, ahead):
    """s = X v, four rows at a time, in the precision of X: nothing here but the order of a batch hangs on it.

    Meanwhile three in four of the rows that far `ahead` (none where it is 0) are asked for.
    """
    n, d = X.shape
    zero, line = np.zeros(1, X.dtype)[0], 64 // X.itemsize
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = b = c = e = zero
        if ahead != 0:
            for row in range(ahead + 3 * (i >> 2), ahead + 3 * (i >> 2) + 3):
                for j in range(0, d, line):
                    prefetch(X, row, j)
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
    count, line = 0, 64 // X.itemsize
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
            for row in range(last + i, last + i + 4):
                for j in range(0, d, line):
                    prefetch(X, row, j)
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
    work = workspace(bounds)
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


@kernel
def csr_scores(values, indices, indptr, ids, w, s):
    """s = scores of the rows of one batch, each in two strands; return how many values they hold."""
    held, one, two = 0, np.uint64(1), np.uint64(2)
    for i in range(len(ids)):
        p, end = np.uint64(indptr[ids[i]]), np.uint64(indptr[ids[i] + 1])
        held += indptr[ids[i] + 1] - indptr[ids[i]]
        a = b = 0.0
        while p + one < end:
            a += values[p] * w[np.uint32(indices[p])]
            b += values[p + one] * w[np.uint32(indices[p + one])]
            p += two
        if p < end:
            a += values[p] * w[np.uint32(indices[p])]
        s[i] = a + b
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
    work = workspace(bounds)
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
