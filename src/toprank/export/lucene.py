"""Elasticsearch, OpenSearch and Solr: float32 dot products over features that have normalisers but no constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Floats
from ..errors import InputError
from .replicas import LinearReplica
from .scorers import Linear
from .targets import Settings, listing, single_precision_notes

RULE = "float32; a feature without a value is {default}"


@dataclass(frozen=True)
class NormalForm:
    """score = Σ_j weights_j (x_j − center_j)/scale_j; normalisers are needed for the features in `moved`."""

    weights: Floats
    center: Floats
    scale: Floats
    notes: tuple[str, ...]

    @property
    def moved(self) -> list[int]:
        """Features whose centre is not 0 or whose scale is not 1."""
        return [int(j) for j in np.flatnonzero((self.center != 0) | (self.scale != 1))]


def normal_form(linear: Linear, settings: Settings) -> NormalForm:
    """Return the score without a constant; a shift rides on the normaliser of the feature with the largest weight.

    w_j x_j + c = w_j (x_j − (−c/w_j)): a centre of −c/w_j adds c to every score, and a missing value cannot undo it.
    """
    width = len(linear.names)
    center, scale = np.zeros(width), np.ones(width)
    notes = single_precision_notes(linear)
    if settings.normalizers and linear.center is not None and linear.scale is not None:
        used = linear.weights != 0  # a normaliser for a feature that does not count would only cost time
        center[used], scale[used] = linear.center[used], linear.scale[used]
    constant = -float(linear.weights @ center)
    if settings.shift:
        pivot = int(np.argmax(np.abs(linear.weights)))
        if linear.weights[pivot] == 0:
            raise InputError("all weights are 0: there is no feature that could carry the shift")
        center[pivot] -= (linear.offset + settings.shift - constant) / linear.weights[pivot]
        if not abs(center[pivot]) < np.finfo(np.float32).max:
            raise InputError(
                f"the weights are too small to carry a shift of {settings.shift:g} (the largest is "
                f"{linear.weights[pivot]:.3g}): multiply them all by a constant, which changes no ranking"
            )
        notes.append(
            f"{settings.shift:+g} is added to every score through the normaliser of {linear.names[pivot]!r}: no "
            "ranking changes"
        )
    elif not np.isclose(linear.offset, constant, rtol=1e-12, atol=0):
        notes.append(
            f"the constant {linear.offset:+g} is left out: it is the same for all documents, no ranking changes"
        )
    return NormalForm(linear.weights * scale, center, scale, tuple(notes))


def negative_notes(linear: Linear, settings: Settings) -> list[str]:
    """Say that scores can fall below 0, which Lucene does not allow: features cannot, so weights decide."""
    below = [name for name, weight in zip(linear.names, linear.weights, strict=True) if weight < 0]
    if not below or settings.shift:
        return []
    return [
        f"scores can be negative ({listing(below)} count against a document), and Lucene allows no negative scores: "
        "--shift-from DATA adds what is needed and changes no ranking"
    ]


def missing_notes(linear: Linear, where: str) -> list[str]:
    """State the missing-value policy and what the engine does instead, where it differs."""
    if linear.fill is None:
        return [f"{linear.missing} by the model, but {where}: make sure that every feature has a value"]
    other = [j for j in np.flatnonzero(linear.fill) if linear.weights[j] != 0]
    if not other:
        return [f"{linear.missing}, as {where}"]
    told = listing([f"{linear.names[j]} = {linear.fill[j]:g}" for j in other])
    return [f"{linear.missing} ({told}), but {where}: let the features themselves give these values"]


def replica(names: tuple[str, ...], form: tuple[Floats, Floats, Floats], fill: Floats) -> LinearReplica:
    """Return float32 arithmetic over weights, centres and scales."""
    weights, center, scale = form
    if not all(np.isfinite(column).all() for column in form) or not (scale > 0).all():
        raise InputError("weights and normalisers must be finite numbers, and scales above 0")
    default = "0" if not fill.any() else "its defaultValue"
    return LinearReplica(
        names, weights, RULE.format(default=default), np.float32, np.float32, fill=fill, center=center, scale=scale
    )
