# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The online learners of the perceptron paper, each as its listing.

Each plays the lists of `order` one after the other, steps on `state`, writes the rounds into `record`, and returns how
many rounds there were and how many lists were passed: fewer than all where numbers overflow or a loss refuses a list.
Letters are the paper's: X_t are the documents, R_t their grades, w_t the weights, s_t the scores, z_t a subgradient of
f_t. Weights are in units of η (`_round_kernels` says why), and margins with them.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel
from ..surrogates._listnet_kernels import listnet_of_list
from ..surrogates._margin_kernels import largest_hinge_of_list, slam_of_list
from ._round_kernels import copy_scaled, is_round, judge_round, score_round, take_step, work_of, write_down


@kernel
def slam_perceptron(lists, order, rule, slam, learner, state, record):
    """Algorithm 2, the SLAM perceptron: the measure is `rule`, φ_v its SLAM surrogate `slam`.

    w_1 = 0
    for t = 1, …, T:
        receive X_t; s_t = X_t w_t, ranked by sorting; receive R_t
        if the measure of that ranking is below its best:
            w_{t+1} = w_t − η z_t,  z_t = X_tᵀ g,  g ∈ ∂φ_v(s_t, R_t)
        else:
            w_{t+1} = w_t
    """
    played, work = 0, work_of(state)
    for t in range(len(order)):
        q = order[t]
        if not is_round(lists, q, learner):
            continue
        first, last = lists.ptr[q], lists.ptr[q + 1]
        R, s, g = lists.y[first:last], np.empty(last - first), np.zeros(last - first)
        if not score_round(lists, q, learner, state, work, s):
            return played, t
        measure, loss, znorm2 = judge_round(lists, q, rule, learner, state, work, s), 0.0, 0.0
        if measure < 1.0 or learner.always:
            loss = learner.unit * slam_of_list(s, R, slam, g)
            znorm2 = take_step(lists, q, g, learner, state, work)
            if len(record.seen) > 0:
                copy_scaled(s, learner.unit, record.seen[first:last])
        if not math.isfinite(measure + loss + znorm2):
            return played, t
        write_down(played, measure, lists.weight[q] * loss, znorm2, state, record)
        played += 1
    return played, len(order)


@kernel
def minimax_perceptron(lists, order, rule, minimax, learner, state, record):
    """Algorithm 3, the minimax perceptron: the measure is `rule`, φ_C the largest hinge `minimax`.

    w_1 = 0
    for t = 1, …, T:
        receive X_t; s_t = X_t w_t, ranked by sorting; receive R_t
        if the measure of that ranking is below its best:
            (i, j) = the pair with R_i > R_j and the largest s_j − s_i
            w_{t+1} = w_t − η (x_j − x_i)
        else:
            w_{t+1} = w_t
    """
    played, work = 0, work_of(state)
    for t in range(len(order)):
        q = order[t]
        if not is_round(lists, q, learner):
            continue
        first, last = lists.ptr[q], lists.ptr[q + 1]
        R, s, g = lists.y[first:last], np.empty(last - first), np.zeros(last - first)
        if not score_round(lists, q, learner, state, work, s):
            return played, t
        measure, loss, znorm2 = judge_round(lists, q, rule, learner, state, work, s), 0.0, 0.0
        if measure < 1.0 or learner.always:
            loss = learner.unit * largest_hinge_of_list(s, R, minimax, g)  # g = e_j − e_i
            znorm2 = take_step(lists, q, g, learner, state, work)
            if len(record.seen) > 0:
                copy_scaled(s, learner.unit, record.seen[first:last])
        if not math.isfinite(measure + loss + znorm2):
            return played, t
        write_down(played, measure, lists.weight[q] * loss, znorm2, state, record)
        played += 1
    return played, len(order)


@kernel
def online_listnet(lists, order, rule, listnet, learner, state, record):
    """Online ListNet (section 8): gradient descent on the top-one cross entropy `listnet`; `rule` is its judge.

    w_1 = 0
    for t = 1, …, T:
        receive X_t; s_t = X_t w_t, ranked by sorting; receive R_t
        w_{t+1} = w_t − η X_tᵀ (softmax(s_t) − softmax(R_t))
    """
    played, work = 0, work_of(state)
    for t in range(len(order)):
        q = order[t]
        if not is_round(lists, q, learner):
            continue
        first, last = lists.ptr[q], lists.ptr[q + 1]
        R, s, g = lists.y[first:last], np.empty(last - first), np.zeros(last - first)
        if not score_round(lists, q, learner, state, work, s):
            return played, t
        measure = judge_round(lists, q, rule, learner, state, work, s)
        copy_scaled(s, learner.unit, s)
        loss = listnet_of_list(s, R, listnet, g)
        znorm2 = take_step(lists, q, g, learner, state, work)
        if len(record.seen) > 0:
            copy_scaled(s, 1.0, record.seen[first:last])
        if not math.isfinite(measure + loss + znorm2):
            return played, t
        write_down(played, measure, lists.weight[q] * loss, znorm2, state, record)
        played += 1
    return played, len(order)
