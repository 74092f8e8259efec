"""Elasticsearch, OpenSearch and Solr: float32 dot products over features that have normalisers but no constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._typing import Floats
from ..errors import InputError
from ..model import Model
from .model_trees import negative_note, shift_note
from .replicas import LinearReplica
from .targets import Settings, listing, policy_note, round_up, single_precision_notes

RULE = "float32{order}; a feature without a value is {default}"


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


def normal_form(linear: Model, settings: Settings, *, lifted: bool = False) -> NormalForm:
    """Return the score without a constant; a shift rides on the normaliser of the feature with the largest weight.

    w_j x_j + c = w_j (x_j − (−c/w_j)): a centre of −c/w_j adds c to every score, and a missing value cannot undo it.
    Where scores must not be negative (`lifted`), no shift is given and no weight is below 0, the shift lifts the lowest
    score that features of 0 and more can have to 0.
    """
    width = len(linear.names)
    center, scale = np.zeros(width), np.ones(width)
    if settings.normalizers and linear.scaler is not None:
        used = linear.weights != 0  # a normaliser for a feature that does not count would only cost time
        center[used], scale[used] = (column[used] for column in linear.scaler)
    with np.errstate(over="ignore", under="ignore"):
        weights = linear.weights * scale
    columns = (("scale", scale), ("centre", center), ("weight", weights))
    notes = [note for what, column in columns for note in single_precision_notes(linear.names, column, what)]
    vanished = np.flatnonzero(scale.astype(np.float32) == 0)
    if len(vanished):
        raise InputError(f"the scale of {linear.names[vanished[0]]!r} is 0 in float32, in which the engine computes")
    constant = -float(linear.weights @ center)
    shift = settings.shift or 0.0
    if settings.shift is None and lifted and constant < 0 and (linear.weights >= 0).all():
        shift = round_up(-constant * (1 + 1e-6)) + constant - linear.offset
    if shift:
        pivot = int(np.argmax(np.abs(linear.weights)))
        if linear.weights[pivot] == 0:
            raise InputError("all weights are 0: there is no feature that could carry the shift")
        center[pivot] -= (linear.offset + shift - constant) / linear.weights[pivot]
        if not abs(center[pivot]) < np.finfo(np.float32).max:
            raise InputError(
                f"the weights are too small to carry a shift of {shift:g} (the largest is "
                f"{linear.weights[pivot]:.3g}): multiply them all by a constant, which changes no ranking"
            )
        notes.append(shift_note(shift, f" through the normaliser of {linear.names[pivot]!r}"))
    elif not np.isclose(linear.offset, constant, rtol=1e-12, atol=0):
        notes.append(
            f"the constant {linear.offset:+g} is left out: it is the same for all documents, no ranking changes"
        )
    form = NormalForm(weights, center, scale, tuple(notes))
    if not lifted:
        return form
    return replace(form, notes=(*notes, *_negative_notes(linear, form, given=bool(settings.shift))))


def _negative_notes(linear: Model, form: NormalForm, given: bool) -> list[str]:
    """Say that scores can fall below 0: features of Lucene cannot, so weights and normalisers decide."""
    negative = [name for name, weight in zip(linear.names, linear.weights, strict=True) if weight < 0]
    if negative:
        return [] if given else [negative_note(f"{listing(negative)} count against a document", "--shift-from DATA")]
    least = -float(form.weights @ (form.center / form.scale))
    return [negative_note(f"down to {least:.3g}, by the normalisers", "--shift-from DATA")] if least < 0 else []


def missing_notes(linear: Model, where: str) -> list[str]:
    """State the missing-value policy and what the engine does instead, where it differs."""
    values = [(name, linear.rule.fill_value(j)) for j, name in enumerate(linear.names) if linear.weights[j] != 0]
    values_text = listing([f"{name} = {value:g}" for name, value in values if value])
    instead = f" ({values_text}), but {where}: let the features themselves give these values"
    return [policy_note(linear, where, instead if values_text else f", as {where}")]


def replica(
    path: str,
    names: tuple[str, ...],
    weights: Floats,
    scalers: Sequence[tuple[float, float]],
    fill: Floats,
    order: str = "",
) -> LinearReplica:
    """Return float32 arithmetic over weights, and the centre and scale of each feature."""
    center, scale = np.array(scalers, dtype=np.float64).reshape(-1, 2).T
    with np.errstate(over="ignore", under="ignore"):
        fits = all(np.isfinite(column.astype(np.float32)).all() for column in (weights, center, scale))
        if not fits or not (scale.astype(np.float32) > 0).all():
            raise InputError(f"{path}: weights and normalisers must be finite float32 numbers, and scales above 0")
    rule = RULE.format(order=order, default="0" if not fill.any() else "its defaultValue")
    return LinearReplica(names, weights, rule, np.float32, np.float32, fill=fill, center=center, scale=scale)
