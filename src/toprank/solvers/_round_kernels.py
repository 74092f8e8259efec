# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What the rounds of all online learners share: scores of a list, its judge, the step, and what is written down.

Weights are kept in units of η: w = η·raw, or η·raw/σ where features are on a running scale. A step of Algorithm 3 then
does not contain η at all, so that no order depends on how η rounds; and φ(η s; Δ) = η φ(s; Δ/η) for both margin losses.
drift = Σ (t−1)·(change of round t) gives the mean of the weights over T rounds as raw − drift/T, so that a round
without a step costs nothing for it. No bit of a round depends on which lists came in the same call.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ..core.jit import kernel, sum_kernel
from ..core.rows import Dense, add_dense_rows, add_sparse_rows, score_list
from ..measures._list_kernels import measure_of_list
from .steps import COMPARE_EVERY, Rule, Total

SQRT, ADAPTIVE = int(Rule.SQRT), int(Rule.ADAPTIVE)
ROUNDS, STEPS, MISTAKES, MEASURE = int(Total.ROUNDS), int(Total.STEPS), int(Total.MISTAKES), int(Total.MEASURE)
SURROGATE, ZNORM2, DOCS = int(Total.SURROGATE), int(Total.ZNORM2), int(Total.DOCS)
LAST, AVERAGE = int(Total.LAST), int(Total.AVERAGE)


class Lists(NamedTuple):
    """Lists of documents: list q has the rows ptr[q]:ptr[q + 1] of X, with their grades in y."""

    rows: Any
    """X as `core.rows` has it."""
    y: Any
    ptr: Any
    weight: Any
    """What the loss of each list is multiplied by."""
    size: Any
    """What the features of each list are multiplied by."""


class Learner(NamedTuple):
    """What an online learner has besides its loss and its judge."""

    unit: float
    """η, in which weights are kept."""
    rule: int
    """How the step follows from η (`steps.Rule`)."""
    radius: float
    """The largest ‖raw‖."""
    always: bool
    """Whether every round takes a step, or only one in which the ranking falls short."""
    running: bool
    """Whether each feature is divided by its spread inside the lists so far."""
    compare: bool
    """Whether the averaged weights rank every eighth list too."""
    above: float
    """The judge finds something in a list with a grade above this."""
    binary: bool
    """Whether the loss reads grades as relevant (above that) or not."""


class Weights(NamedTuple):
    """What a stream remembers: three numbers for each feature, and its totals (`steps.Total` names their places)."""

    raw: Any
    drift: Any
    moment: Any
    """Σ over the lists so far of Σ_i (x_ij − list mean)²."""
    totals: Any


class Work(NamedTuple):
    """Scratch of an epoch, a number for each feature: made once, because there may be very many features."""

    inverse: Any
    """1/σ where features are on a running scale, else 1."""
    z: Any
    """0 between two steps."""
    marked: Any
    """False between two steps."""


@kernel
def work_of(state):
    """Return scratch for these weights."""
    d = len(state.raw)
    return Work(np.ones(d), np.zeros(d), np.zeros(d, np.bool_))


class Record(NamedTuple):
    """What is written down of the rounds."""

    rounds: Any
    """A row for each round: measure, surrogate f_t(w_t), mistake (0 or 1), ‖z_t‖²."""
    seen: Any
    """The scores that the losses saw, a place for each document; or of length 0 where nobody asks."""


@kernel
def is_round(lists, q, learner):
    """Whether the judge finds something in a list, the loss two different grades, and the list has a weight."""
    first, last = lists.ptr[q], lists.ptr[q + 1]
    if lists.weight[q] * lists.size[q] == 0.0 or first == last:
        return False
    lowest = highest = lists.y[first]
    for i in range(first, last):
        lowest, highest = min(lowest, lists.y[i]), max(highest, lists.y[i])
    return highest > learner.above and (lowest <= learner.above if learner.binary else lowest < highest)


def add_spread(rows, first, last, moment):
    """moment_j += Σ_i (x_ij − mean of the list)², inside a kernel."""
    raise NotImplementedError("add_spread is called by kernels")


@kernel
def add_dense_spread(X, first, last, moment):
    """Sum over the rows first:last of a dense X.

    Values are taken less that of the first row, so that a column that does not vary adds exactly 0.
    """
    mean = np.zeros(len(moment))
    for i in range(first, last):
        for j in range(len(mean)):
            mean[j] += X[i, j] - X[first, j]
    mean /= last - first
    for i in range(first, last):
        for j in range(len(mean)):
            moment[j] += (X[i, j] - X[first, j] - mean[j]) ** 2


@kernel
def add_sparse_spread(data, indices, indptr, first, last, moment):
    """Sum over the rows first:last of a CSR matrix; a column also varies from the values that are not stored, 0."""
    d, n = len(moment), last - first
    start, mean, stored = np.zeros(d), np.zeros(d), np.zeros(d)
    for p in range(indptr[first], indptr[first + 1]):
        start[indices[p]] = data[p]
    for p in range(indptr[first], indptr[last]):
        mean[indices[p]] += (data[p] - start[indices[p]]) / n
        stored[indices[p]] += 1.0
    for j in range(d):
        mean[j] -= (n - stored[j]) * start[j] / n
    for p in range(indptr[first], indptr[last]):
        moment[indices[p]] += (data[p] - start[indices[p]] - mean[indices[p]]) ** 2
    for j in range(d):
        moment[j] += (n - stored[j]) * (start[j] + mean[j]) ** 2


@overload(add_spread)
def _add_spread(rows, first, last, moment):
    if rows.instance_class is Dense:
        return lambda rows, first, last, moment: add_dense_spread(rows.X, first, last, moment)
    return lambda rows, first, last, moment: add_sparse_spread(
        rows.data, rows.indices, rows.indptr, first, last, moment
    )


@sum_kernel
def score_round(lists, q, learner, state, work, s):
    """s = X_t w_t; return whether all numbers are finite.

    Features on a running scale are divided by their spread σ up to this list; one that never varied counts as 0.
    """
    first, last, size, w, total = lists.ptr[q], lists.ptr[q + 1], lists.size[q], state.raw, 0.0
    state.totals[DOCS] += last - first
    if learner.running:
        add_spread(lists.rows, first, last, state.moment)
        for j in range(len(w)):
            moment = state.moment[j]
            work.inverse[j] = math.sqrt(state.totals[DOCS] / moment) if moment > 0.0 else 0.0
            total += moment
        w = state.raw * work.inverse
    score_list(lists.rows, first, last, w, s)
    for i in range(len(s)):
        s[i] *= size
        total += abs(s[i])
    return math.isfinite(total)


@kernel
def average_scores(lists, q, state, work, s):
    """The scores by the mean of the weights, s − X (drift/T), from those by the last weights."""
    first, last, average = lists.ptr[q], lists.ptr[q + 1], np.empty(len(s))
    score_list(lists.rows, first, last, state.drift * work.inverse, average)
    for i in range(len(s)):
        average[i] = s[i] - lists.size[q] * average[i] / state.totals[ROUNDS]
    return average


@kernel
def is_compared(learner, state):
    """Whether this round is one in which the averaged weights rank the list too."""
    return learner.compare and state.totals[ROUNDS] % COMPARE_EVERY == COMPARE_EVERY - 1


@kernel
def judge_round(lists, q, rule, learner, state, work, s):
    """The measure of the ranking by s; every eighth round is ranked by the averaged weights too, for the totals."""
    R = lists.y[lists.ptr[q] : lists.ptr[q + 1]]
    measure = measure_of_list(rule, s, R)
    if is_compared(learner, state):
        state.totals[LAST] += measure
        state.totals[AVERAGE] += measure_of_list(rule, average_scores(lists, q, state, work, s), R)
    return measure


def weighted_sum(rows, first, g, factor, work):
    """work.z += factor · X[first:first + len(g)]ᵀ g, inside a kernel; return the columns that are touched.

    An array of length 0 stands for all columns.
    """
    raise NotImplementedError("weighted_sum is called by kernels")


@kernel
def sparse_weighted_sum(data, indices, indptr, first, g, factor, work):
    """Add up rows of a CSR matrix; return the columns that they store, each once, or all if there are fewer columns."""
    stored, d = indptr[first + len(g)] - indptr[first], len(work.z)
    if stored >= d:
        add_sparse_rows(data, indices, indptr, first, g, factor, work.z)
        return np.empty(0, np.int64)
    columns, n = np.empty(stored, np.int64), 0
    for i in range(len(g)):
        if g[i] != 0.0:
            coefficient = factor * g[i]
            for p in range(indptr[first + i], indptr[first + i + 1]):
                j = indices[p]
                if not work.marked[j]:
                    work.marked[j] = True
                    columns[n] = j
                    n += 1
                work.z[j] += coefficient * data[p]
    for j in columns[:n]:
        work.marked[j] = False
    return columns[:n]


@overload(weighted_sum)
def _weighted_sum(rows, first, g, factor, work):
    if rows.instance_class is Dense:

        def dense_weighted_sum(rows, first, g, factor, work):
            add_dense_rows(rows.X, first, g, factor, work.z)
            return np.empty(0, np.int64)

        return dense_weighted_sum
    return lambda rows, first, g, factor, work: sparse_weighted_sum(
        rows.data, rows.indices, rows.indptr, first, g, factor, work
    )


@kernel
def step_size(rule, totals, znorm2):
    """η_t / η: 1, 1/√t or 1/√Σ_{s≤t}‖z_s‖²; the totals do not have the round yet."""
    if rule == SQRT:
        return 1.0 / math.sqrt(totals[ROUNDS] + 1)
    if rule == ADAPTIVE:
        return 1.0 / math.sqrt(totals[ZNORM2] + znorm2)
    return 1.0


@sum_kernel
def take_step(lists, q, g, learner, state, work):
    """w_{t+1} = Π[w_t − η_t z_t], z_t = X_tᵀ g, g being a subgradient in the scores; return ‖z_t‖².

    Only the columns that a document with g ≠ 0 stores are touched. No step is taken where numbers overflow.
    """
    raw, drift, z, inverse, znorm2 = state.raw, state.drift, work.z, work.inverse, 0.0
    columns = weighted_sum(lists.rows, lists.ptr[q], g, lists.weight[q] * lists.size[q], work)
    some = len(columns) > 0
    n = len(columns) if some else len(z)
    for p in range(n):
        j = columns[p] if some else p
        z[j] *= inverse[j]
        znorm2 += z[j] * z[j]
    if 0.0 < znorm2 < math.inf:
        step, past = step_size(learner.rule, state.totals, znorm2), state.totals[ROUNDS]
        for p in range(n):
            j = columns[p] if some else p
            raw[j] -= step * z[j]
            drift[j] -= past * (step * z[j])
        if learner.radius < math.inf:
            project(learner.radius, past, state)
    for p in range(n):
        z[columns[p] if some else p] = 0.0
    return znorm2


@kernel
def copy_scaled(source, factor, target):
    """target = factor · source: a slice that is assigned an array takes a second to compile."""
    for i in range(len(source)):
        target[i] = factor * source[i]


@kernel
def project(radius, past, state):
    """Shorten raw to the radius of the ball where it is longer, as a step of this round would."""
    square = 0.0
    for j in range(len(state.raw)):
        square += state.raw[j] ** 2
    norm = math.sqrt(square)
    if norm > radius:
        for j in range(len(state.raw)):
            change = (1.0 - radius / norm) * state.raw[j]
            state.raw[j] -= change
            state.drift[j] -= past * change


@kernel
def write_down(row, measure, loss, znorm2, state, record):
    """Write a round down and add it to the totals; `loss` is f_t(w_t) with the weight of the list."""
    rounds, totals, mistake = record.rounds, state.totals, measure < 1.0
    rounds[row, 0], rounds[row, 1], rounds[row, 2], rounds[row, 3] = measure, loss, mistake, znorm2
    totals[ROUNDS] += 1
    totals[STEPS] += znorm2 > 0
    totals[MISTAKES] += mistake
    totals[MEASURE] += measure
    totals[SURROGATE] += loss
    totals[ZNORM2] += znorm2
