"""Signs of features as a caller gives them, and what they ask of the columns that a linear function sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from .._suggest import did_you_mean
from ..data.preparation import Ramps
from ..errors import InputError
from ..model import Inputs
from ..solvers.bounded import Signs

SignsOfFeatures: TypeAlias = Mapping[str | int, str]
"""'+' or '-' by the name of a feature, or by its number from 1 where features have no names."""

_SIGNS = {"+": 1, "-": -1}


def check_signs(signs: Any) -> None:
    """Refuse what is no mapping of features to '+' and '-'.

    >>> check_signs({"price": "down"})
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: signs must be '+' (never below 0) or '-' (never above 0), got 'down' for 'price'
    """
    if not isinstance(signs, Mapping):
        raise InputError(f'signs must be a dictionary such as {{"price": "-", "bm25": "+"}}, got {signs!r}')
    for feature, sign in signs.items():
        if not isinstance(sign, str) or sign not in _SIGNS:
            raise InputError(f"signs must be '+' (never below 0) or '-' (never above 0), got {sign!r} for {feature!r}")


def signs_of(given: SignsOfFeatures, inputs: Inputs) -> Signs:
    """Return the signs of all columns that are made of the features.

    Copies rise with their feature, so a copy has its sign; so has each step of "steps:16". The weight of a ramp is a
    change of slope: there the slopes of the curve have the sign, from the first piece to the last.
    """
    check_signs(given)
    sign, origins = np.zeros(inputs.n_outputs, dtype=np.int64), inputs.origins
    for feature, value in _by_place(given, inputs).items():
        sign[origins == feature] = value
    before, factor = np.full(len(sign), -1), np.ones(len(sign))
    step = inputs.steps[-1] if inputs.steps else None
    if isinstance(step, Ramps):
        column, _, scale = step.learned
        ramp = step.width + np.arange(len(column))
        first = np.diff(column, prepend=-1) != 0
        signed = sign[ramp] != 0
        before[ramp[signed]] = np.where(first, column, ramp - 1)[signed]
        factor[ramp[signed]] = scale[signed]
    return Signs(sign, before, factor)


def _by_place(given: SignsOfFeatures, inputs: Inputs) -> dict[int, int]:
    """Return the sign of each feature that has one, by its place."""
    found: dict[int, int] = {}
    for feature, word in given.items():
        j = _place(feature, inputs)
        if found.setdefault(j, _SIGNS[word]) != _SIGNS[word]:
            raise InputError(f"signs contradict each other: feature {inputs.labels[j]!r} has both '+' and '-'")
    return found


def _place(feature: Any, inputs: Inputs) -> int:
    n, named = inputs.n_features, inputs.names is not None
    if isinstance(feature, str) and feature in inputs.labels:
        return inputs.labels.index(feature)
    number = int(feature) if isinstance(feature, str) and feature.isdecimal() and len(feature) < 10 else feature
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not named and whole and 1 <= number <= n:
        return int(number) - 1
    if not named:
        raise InputError(f"signs names {feature!r}, and features have the numbers 1 to {n}")
    close = did_you_mean(str(feature), inputs.labels)
    raise InputError(f"signs names {feature!r}{close}, and the {n} features have other names")
