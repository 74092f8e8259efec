"""Curves as inline SVG: no library, no script, no text inside, so that they stretch to any width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .._html import element

WIDTH, HEIGHT = 240, 96
MOST_POINTS = 48
"""Points drawn of a curve: more cannot be seen at this size."""


def curves(series: Mapping[str, Sequence[float]], label: str, limits: tuple[float, float] | None = None) -> str:
    """Draw curves over their steps in one frame; each polyline has its name as class, gaps where a value is not finite.

    >>> drawn = curves({"train": [1.0, 2.0, 1.5]}, "loss by step")
    >>> drawn.count("<polyline"), 'points="0,92.0 120,4.0 240,48.0"' in drawn
    (1, True)
    """
    low, high = extent(series.values()) if limits is None else limits
    span = high - low or 1.0
    longest = max(len(values) for values in series.values())
    parts = []
    for name, values in series.items():
        steps = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).round().astype(int))
        places = [
            f"{i / max(1, longest - 1) * WIDTH:.0f},{4 + (high - values[i]) / span * (HEIGHT - 8):.1f}"
            for i in steps.tolist()
            if math.isfinite(values[i])
        ]
        if len(places) == 1:  # a single step is drawn as a level
            places.append(f"{WIDTH},{places[0].split(',')[1]}")
        parts.append(element("polyline", points=" ".join(places), class_=f"curve {name}"))
    frame = f"0 0 {WIDTH} {HEIGHT}"
    return element("svg", *parts, viewBox=frame, preserveAspectRatio="none", role="img", aria_label=label)


def extent(many: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Return the smallest and largest finite value of several sequences; 0 and 1 where there is none.

    >>> extent([[1.0, math.nan], [3.0]])
    (1.0, 3.0)
    """
    finite = [value for values in many for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)
