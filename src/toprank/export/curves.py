"""A linear model over copies and knots, as engines take it: a curve for each feature and each view of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data.preparation import Knotted, QueryRelative, Ramps
from ..errors import InputError
from ..model import LinearFunction, Model


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


def curves_of(model: Model, who: str) -> list[Curve]:
    """Return the curves of a model whose steps make more columns, those that count; `who` writes them."""
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
            knots = [(a, b, c) for a, b, c in rows.tolist() if c]
        view, feature = divmod(column, width)
        if weights[column] or knots:
            curve = (float(weights[column]), tuple(knots), isinstance(knotted, Ramps))
            found.append(Curve(feature, views[view], *curve))
    return found
