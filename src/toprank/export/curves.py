"""A linear model over copies and knots, as engines take it: a curve for each feature and each view of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._typing import Floats, Ints
from ..data.preparation import Knotted, QueryRelative, Ramps
from ..errors import InputError
from ..model import LinearFunction, Model
from .replicas import Replica


@dataclass(frozen=True)
class Curve:
    """weight · z + Σ_k w_k h_k(z), z a feature as it comes ("") or in one view ("rank", "minmax", "standard").

    h_k(z) is (max(z, t_k) − max(0, t_k))/s_k of ramps and [z > t_k] − [0 > t_k] of steps.
    """

    feature: int
    view: str
    weight: float
    knots: tuple[tuple[float, float, float], ...]
    """t_k, s_k and w_k of the knots whose weight is not 0."""
    ramps: bool

    def terms(self, value: str, literal: Callable[[float], str], larger: str, above: str) -> list[str]:
        """Return the terms of the sum as text; `larger` and `above` are patterns of max(x, t) and [x > t]."""
        found = [f"{literal(self.weight)} * {value}"] if self.weight else []
        for t, s, w in self.knots:
            pattern, at_zero = (larger, max(0.0, t)) if self.ramps else (above, float(t < 0))
            shape = pattern.format(x=value, t=literal(t))
            shape = f"({shape} - {literal(at_zero)})" if at_zero else f"({shape})"
            found.append(f"{literal(w)} * {shape}" + (f" / {literal(s)}" if s != 1 else ""))
        return found


def curves_of(model: Model, who: str, *, everything: bool = False) -> list[Curve]:
    """Return the curves of a model whose steps make more columns; `who` writes them.

    What counts nothing is left out, unless `everything` is wanted.
    """
    if not isinstance(model.function, LinearFunction):
        raise InputError(
            f"{who} writes {','.join(model.inputs.words)} for linear models, and {model.source} is none: let the "
            "server score (toprank serve)"
        )
    weights, width = model.function.coef, model.inputs.filled_width
    views, knotted = [""], None
    for step in model.inputs.steps:
        views += step.views if isinstance(step, QueryRelative) else ()
        knotted = step if isinstance(step, Knotted) else knotted
    found = []
    for column in range(width * len(views)):
        knots = []
        if knotted is not None:
            own, (_, t, s) = slice(*knotted.starts[column : column + 2].tolist()), knotted.learned
            rows = np.column_stack([t[own], s[own], weights[width * len(views) :][own]])
            knots = [(a, b, c) for a, b, c in rows.tolist() if c or everything]
        view, feature = divmod(column, width)
        if weights[column] or knots or everything:
            curve = (float(weights[column]), tuple(knots), isinstance(knotted, Ramps))
            found.append(Curve(feature, views[view], *curve))
    return found


@dataclass(frozen=True, eq=False)
class CurvesReplica(Replica):
    """s = start + Σ of the curves, each from its definition, in float64."""

    names: tuple[str, ...] | None
    curves: tuple[Curve, ...]
    rule: str
    start: float
    fill: Floats | None = None

    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return the sums."""
        query = np.zeros(len(X), dtype=np.int64) if query is None else query
        X = X if self.fill is None else np.where(np.isnan(X), self.fill, X)
        scores = np.full(len(X), self.start)
        for curve in self.curves:
            z = _seen(X[:, curve.feature], curve.view, query)
            scores += curve.weight * z
            for t, s, w in curve.knots:
                shape = np.maximum(z, t) - max(0.0, t) if curve.ramps else (z > t) - float(t < 0)
                scores += w * shape / s
        return scores


def _seen(x: Floats, view: str, query: Ints) -> Floats:
    """Return a feature in one view."""
    if not view:
        return x
    out = np.zeros(len(x))
    for one in np.unique(query):
        rows = np.flatnonzero(query == one)
        own, spread = x[rows], float(np.ptp(x[rows]))
        if spread > 0 and view == "minmax":
            out[rows] = (own - own.min()) / spread
        elif spread > 0 and view == "standard":
            out[rows] = (own - own.mean()) / own.std()
        elif spread > 0:
            below, same = own[:, None] > own, own[:, None] == own
            out[rows] = (below.sum(axis=1) + (same.sum(axis=1) - 1) / 2) / (len(own) - 1)
    return out
