"""Models for the tests of exports, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toprank.data.preparation import steps_of
from toprank.model import Inputs, LinearFunction, MissingRule, Model, StumpFunction, TreeFunction


def _inputs(names: Sequence[str], fill: Any, *, native: bool = False) -> Inputs:
    rule = MissingRule("native" if native else "error")
    if fill is not None:
        rule = MissingRule("fill", np.asarray(fill, dtype=np.float64))
    return Inputs(len(names), tuple(names), rule)


def linear_model(
    names: Sequence[str],
    weights: Any,
    offset: float = 0.0,
    fill: Any = None,
    source: str = "linear model",
    center: Any = None,
    scale: Any = None,
) -> Model:
    scaler = None if center is None else (np.asarray(center, dtype=float), np.asarray(scale, dtype=float))
    function = LinearFunction(np.asarray(weights, dtype=np.float64))
    return Model(function, _inputs(names, fill), source, offset, scaler)


def stump_model(
    names: Sequence[str],
    function: StumpFunction,
    fill: Any = None,
    source: str = "sum of thresholds",
    offset: float = 0.0,
) -> Model:
    return Model(function, _inputs(names, fill), source, offset)


def tree_model(
    names: Sequence[str],
    function: TreeFunction,
    fill: Any = None,
    source: str = "trees",
    offset: float = 0.0,
    gaps: str = "follow",
) -> Model:
    return Model(function, _inputs(names, fill, native=fill is None and gaps == "follow"), source, offset)


def prepared_model(inner: Model, steps: Sequence[str], fill: Any = None) -> Model:
    """Return a model that prepares its features first; `fill` stands in for missing values before that."""
    inputs = replace(_inputs(inner.names, fill), steps=steps_of(steps))
    return replace(inner, inputs=inputs)
