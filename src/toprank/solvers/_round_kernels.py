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

from ..core.plain import kernel
from ..core.rows import Dense, add_dense_rows, score_list
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
    """Sum over the rows first:last of a dense X."""
    mean = np.zeros(len(moment))
    for i in range(first, last):
        for j in range(len(mean)):
            mean[j] += X[i, j]
    mean /= last - first
    for i in range(first, last):
        for j in range(len(mean)):
            moment[j] += (X[i, j] - mean[j]) ** 2


@kernel
def add_sparse_spread(data, indices, indptr, first, last, moment):
    """Sum over the rows first:last of a CSR matrix; a column also varies from the values that are not stored, 0."""
    d, n = len(moment), last - first
    mean, stored = np.zeros(d), np.zeros(d)
    for p in range(indptr[first], indptr[last]):
        mean[indices[p]] += data[p] / n
        stored[indices[p]] += 1.0
    for p in range(indptr[first], indptr[last]):
        moment[indices[p]] += (data[p] - mean[indices[p]]) ** 2
    for j in range(d):
        moment[j] += (n - stored[j]) * mean[j] ** 2


@overload(add_spread)
def _add_spread(rows, first, last, moment):
    if rows.instance_class is Dense:
        return lambda rows, first, last, moment: add_dense_spread(rows.X, first, last, moment)
    return lambda rows, first, last, moment: add_sparse_spread(
        rows.data, rows.indices, rows.indptr, first, last, moment
    )


@kernel
def score_round(lists, q, learner, state, inverse, s):
    """s = X_t w_t, w_t being raw ∘ inverse; return whether all numbers are finite.

    inverse is 1/σ (0 for a feature that never varied) where features are on a running scale, else it stays as it is: 1.
    """
    first, last, w, finite = lists.ptr[q], lists.ptr[q + 1], state.raw, True
    state.totals[DOCS] += last - first
    if learner.running:
        add_spread(lists.rows, first, last, state.moment)
        for j in range(len(inverse)):
            moment = state.moment[j]
            inverse[j] = math.sqrt(state.totals[DOCS] / moment) if moment > 0.0 else 0.0
            finite &= math.isfinite(moment)
        w = state.raw * inverse
    score_list(lists.rows, first, last, w, s)
    for i in range(len(s)):
        s[i] *= lists.size[q]
        finite &= math.isfinite(s[i])
    return finite


@kernel
def average_scores(lists, q, state, inverse, s):
    """The scores by the mean of the weights, s − X (drift/T), from those by the last weights."""
    first, last, average = lists.ptr[q], lists.ptr[q + 1], np.empty(len(s))
    score_list(lists.rows, first, last, state.drift * inverse, average)
    for i in range(len(s)):
        average[i] = s[i] - lists.size[q] * average[i] / state.totals[ROUNDS]
    return average


@kernel
def is_compared(learner, state):
    """Whether this round is one in which the averaged weights rank the list too."""
    return learner.compare and state.totals[ROUNDS] % COMPARE_EVERY == COMPARE_EVERY - 1


@kernel
def judge_round(lists, q, rule, learner, state, inverse, s):
    """The measure of the ranking by s; every eighth round is ranked by the averaged weights too, for the totals."""
    R = lists.y[lists.ptr[q] : lists.ptr[q + 1]]
    measure = measure_of_list(rule, s, R)
    if is_compared(learner, state):
        state.totals[LAST] += measure
        state.totals[AVERAGE] += measure_of_list(rule, average_scores(lists, q, state, inverse, s), R)
    return measure


def weighted_sum(rows, first, g, factor, z):
    """z += factor · X[first:first + len(g)]ᵀ g, inside a kernel; return the columns in which z may not be 0."""
    raise NotImplementedError("weighted_sum is called by kernels")


@kernel
def dense_weighted_sum(X, first, g, factor, z):
    """z += factor · Xᵀ g; every column is returned."""
    add_dense_rows(X, first, g, factor, z)
    return np.arange(len(z))


@kernel
def sparse_weighted_sum(data, indices, indptr, first, g, factor, z):
    """z += factor · Xᵀ g, z being 0; return the columns that are stored, some of them maybe twice."""
    columns, n = np.empty(indptr[first + len(g)] - indptr[first], np.int64), 0
    for i in range(len(g)):
        if g[i] != 0.0:
            coefficient = factor * g[i]
            for p in range(indptr[first + i], indptr[first + i + 1]):
                j = indices[p]
                columns[n] = j
                n += z[j] == 0.0
                z[j] += coefficient * data[p]
    return columns[:n]


@overload(weighted_sum)
def _weighted_sum(rows, first, g, factor, z):
    if rows.instance_class is Dense:
        return lambda rows, first, g, factor, z: dense_weighted_sum(rows.X, first, g, factor, z)
    return lambda rows, first, g, factor, z: sparse_weighted_sum(
        rows.data, rows.indices, rows.indptr, first, g, factor, z
    )


@kernel
def step_size(rule, totals, znorm2):
    """η_t / η: 1, 1/√t or 1/√Σ_{s≤t}‖z_s‖²; the totals do not have the round yet."""
    if rule == SQRT:
        return 1.0 / math.sqrt(totals[ROUNDS] + 1)
    if rule == ADAPTIVE:
        return 1.0 / math.sqrt(totals[ZNORM2] + znorm2)
    return 1.0


@kernel
def take_step(lists, q, g, learner, state, inverse, z):
    """w_{t+1} = Π[w_t − η_t z_t], z_t = X_tᵀ g, g being a subgradient in the scores; return ‖z_t‖².

    Only the columns that a document with g ≠ 0 stores are touched. `z` is 0 before and after. No step is taken where
    numbers overflow.
    """
    columns = weighted_sum(lists.rows, lists.ptr[q], g, lists.weight[q] * lists.size[q], z)
    change, znorm2 = np.empty(len(columns)), 0.0
    for p in range(len(columns)):
        j = columns[p]
        change[p], z[j] = z[j] * inverse[j], 0.0
        znorm2 += change[p] ** 2
    if not 0.0 < znorm2 < math.inf:
        return znorm2
    step, past = step_size(learner.rule, state.totals, znorm2), state.totals[ROUNDS]
    for p in range(len(columns)):
        state.raw[columns[p]] -= step * change[p]
        state.drift[columns[p]] -= past * step * change[p]
    if learner.radius < math.inf:
        norm = math.sqrt(np.sum(state.raw**2))
        for j in range(len(state.raw) if norm > learner.radius else 0):
            too_much = (1.0 - learner.radius / norm) * state.raw[j]
            state.raw[j] -= too_much
            state.drift[j] -= past * too_much
    return znorm2


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
