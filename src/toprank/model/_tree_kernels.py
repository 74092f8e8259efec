# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Scores of a sum of trees, row by row."""

from __future__ import annotations

from ..core.jit import kernel


@kernel
def tree_scores(X, root, feature, value, low, high, missing_low, out):
    """out_i = Σ_t the leaf of tree t that row i reaches, in the order of the trees; `feature` is −1 at a leaf."""
    for i in range(X.shape[0]):
        total = 0.0
        for t in range(len(root)):
            node = root[t]
            while feature[node] >= 0:
                x = X[i, feature[node]]
                node = low[node] if x <= value[node] or (x != x and missing_low[node]) else high[node]
            total += value[node]
        out[i] = total
