# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What a round loses on a list, and by how much each of its documents is to move: one function for each loss.

Each returns the loss and how many documents move; active[p] moves by coef[p], which is the gradient in its score.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._vector_kernels import exponentials
from ..core.jit import inner_kernel, inner_sum_kernel
from ._ranking_kernels import best_below
from .steps import Target

AP = int(Target.AP)


@inner_kernel
def step_slam(target, room, weighted, discount, best, margin, scale, m, r, order, ideal, level, gain, coef, active):
    """Σ_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i), weights by the order at s (Eq. 9); its subgradient (Eq. 16)."""
    n = 0
    value = 0.0
    g = at = leader = at_leader = -1
    for p in range(weighted):
        i = ideal[p]
        if level[i] != g:  # the next lower grade: its leader is the first of still lower grades in the order by score
            g = level[i]
            at = max(at, 0)
            while at < room and level[order[at]] >= g:
                at += 1
            leader = order[at] if at < room else best_below(r, m, level, g)
            at_leader = -1
        if gain[g] == 0.0 or leader < 0:
            break
        v = (1.0 if target == AP else gain[g] * discount[p]) / best
        hinge = margin + scale * (r[leader] - r[i])
        if hinge > 0.0:
            value += v * hinge
            coef[n], active[n] = -v, i
            n += 1
            if at_leader < 0:
                at_leader = n
                coef[n], active[n] = 0.0, leader
                n += 1
            coef[at_leader] += v
    return value, n


@inner_kernel
def step_minimax(margin, scale, m, n_levels, r, level, high, low, coef, active):
    """max_{R_i>R_j} (Δ + s_j − s_i)₊ (Eq. 27): the best of the lower grades against the worst of each grade."""
    for g in range(n_levels):
        high[g], low[g] = -math.inf, math.inf
    for i in range(m):
        g = level[i]
        high[g] = max(high[g], float(r[i]))
        low[g] = min(low[g], float(r[i]))
    running = gap = -math.inf
    for g in range(n_levels):  # from the best of each level to the best of all lower ones
        gap = max(gap, running - low[g])
        high[g], running = running, max(running, high[g])
    value = margin + scale * gap
    if value <= 0.0:
        return 0.0, 0
    i = j = 0  # the first pair that attains the maximum
    while high[level[i]] - r[i] != gap:
        i += 1
    while level[j] >= level[i] or r[j] != high[level[i]]:
        j += 1
    coef[0], active[0], coef[1], active[1] = -1.0, i, 1.0, j
    return value, 2


@inner_kernel
def share_out(n_levels, count, mass, share):
    """P_R of a document of each level: mass / Σ mass, added up level by level, so that absent levels change nothing."""
    total = 0.0
    for g in range(n_levels):
        total += count[g] * mass[g]
    for g in range(n_levels):
        share[g] = mass[g] / total


@inner_sum_kernel
def step_listnet(scale, m, n_levels, r, high, count, mass, level, share, coef, active, goal):
    """−Σ_i P_R(i) log P_s(i), gradient P_s − P_R."""
    share_out(n_levels, count, mass, share)
    for i in range(m):
        goal[i] = share[np.uint32(level[i])]
    dot = 0.0
    for i in range(m):
        coef[i] = scale * (r[i] - high)
        dot += goal[i] * coef[i]
        active[i] = i
    exponentials(coef[:m])
    total = 0.0
    for i in range(m):
        total += coef[i]
    inverse = 1.0 / total
    for i in range(m):
        coef[i] = coef[i] * inverse - goal[i]
    return math.log(total) - dot, m
