"""Figures by matplotlib (the `plot` extra): panels of curves or bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .errors import needed


def empty_figure() -> Any:
    """Return a figure of the usual size, nothing on it."""
    return needed("matplotlib.figure", "drawing a figure").Figure(figsize=(7.0, 4.5), layout="constrained")


@dataclass(frozen=True)
class Panel:
    """One set of axes: curves by name, or bars; a curve is y over the panel's `x`, or (x, y, half an interval)."""

    curves: Mapping[str, Any]
    x: Any = ()
    xlabel: str = ""
    ylabel: str = ""
    title: str = ""
    log: str = ""
    """The axes that are logarithmic: "x", "y" or "xy"."""
    ylim: tuple[float | None, float | None] | None = None
    styles: Mapping[str, str] = field(default_factory=dict)
    """Matplotlib's format of a curve, such as "C0--"."""
    at: Mapping[str, float] = field(default_factory=dict)
    """Dotted lines at one x, or one y."""
    bars: bool = False

    def draw(self, axis: Any, legend: bool) -> None:
        """Fill matplotlib's axes."""
        marks: set[float] = set()
        for number, (name, curve) in enumerate(self.curves.items()):
            x, y, half = curve if isinstance(curve, tuple) else (self.x, curve, None)
            if self.bars:
                width = 0.8 / len(self.curves)
                places = np.arange(len(self.x)) + width * (number - (len(self.curves) - 1) / 2)
                axis.bar(places, [value or 0.0 for value in y], width, label=name)
                continue
            style = self.styles.get(name, "-" if np.size(y) > 1 else "o")  # a line of one point cannot be seen
            (line,) = axis.plot(x, y, style, markersize=4, linewidth=1.2, label=name)
            marks |= set(map(float, x))
            if half is not None:
                axis.errorbar(x, y, np.nan_to_num(half), fmt="none", ecolor=line.get_color(), linewidth=1, capsize=2)
        if self.bars:
            axis.set_xticks(range(len(self.x)), list(self.x), rotation=45 if len(self.x) > 6 else 0)
        for which, place in self.at.items():
            (axis.axvline if which == "x" else axis.axhline)(place, color="grey", linewidth=1, linestyle=":")
        for which in self.log:
            axis.set(**{f"{which}scale": "log"})
        if "x" in self.log and len(marks) <= 8:  # the usual marks of a short logarithmic axis overlap
            axis.set_xticks(sorted(marks), [f"{mark:.4g}" for mark in sorted(marks)])
            axis.set_xticks([], minor=True)
        axis.set(xlabel=self.xlabel, ylabel=self.ylabel)
        if self.ylim is not None:  # limits that are set, even to None, stay as they were on a linear axis
            axis.set_ylim(*self.ylim)
        axis.set_title(self.title, fontsize=10)
        axis.grid(alpha=0.3)
        if legend and len(self.curves) > 1:
            axis.legend(fontsize=8)


def panels(*shown: Panel, columns: int = 2, legend: Literal["each", "below"] = "each") -> Callable[[Any], None]:
    """Return how to draw panels side by side, with a legend each or one for all below them."""

    def draw(figure: Any) -> None:
        wide = min(columns, len(shown))
        rows = -(-len(shown) // wide)
        figure.set_size_inches(max(7.0, 4.2 * wide), 3.6 * rows + 0.9)
        axes = figure.subplots(rows, wide, squeeze=False).ravel()
        for axis, panel in zip(axes, shown, strict=False):
            panel.draw(axis, legend == "each")
        for axis in axes[len(shown) :]:
            axis.set_visible(False)
        if legend == "below":
            named = axes[0].get_legend_handles_labels()
            figure.legend(*named, loc="outside lower center", ncols=3, fontsize=8, frameon=False)

    return draw
