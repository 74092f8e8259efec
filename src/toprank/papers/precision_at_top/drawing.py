"""How the exhibits of precision at the top are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Floats
from ...surrogates.precision_at_k import PrecisionSurrogate
from ..exhibits import interval
from .methods import METHODS, baselines
from .tasks import COVERTYPE, TASKS

_COLORS = {"avg": "#1b6ca8", "max": "#d1495b", "struct": "#8d8d8d", "other": "#3a7d44"}


def _title(task: str) -> str:
    return {**TASKS, **COVERTYPE}[task].title


def _dashes(name: str) -> str:
    return "--" if "averaged" in name or "with" in name else "-"


def draw_curves(figure: Any, curves: Mapping[str, Mapping[str, Any]]) -> None:
    """One panel per task: mean precision against mean training time, the interval at the end."""
    columns = min(2, len(curves))
    lines = -(-len(curves) // columns)
    figure.set_size_inches(5.2 * columns, 3.6 * lines + 0.9)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    marks = dict(zip((*METHODS, *baselines()), "osDv^<PX*osD*", strict=False))
    for axis, (task, methods) in zip(axes, curves.items(), strict=False):
        for name, runs in methods.items():
            family = METHODS[name].family if name in METHODS else "other"
            length = min(len(run["seconds"]) for run in runs)
            seconds = np.mean([run["seconds"][:length] for run in runs], axis=0)
            heights = np.array([run["precision"][:length] for run in runs])
            half = interval(heights[:, -1].tolist())[1]
            axis.plot(
                seconds,
                heights.mean(axis=0),
                _dashes(name),
                color=_COLORS[family],
                marker=marks[name],
                markersize=4,
                markevery=[-1],
                linewidth=1.1,
                label=name,
            )
            if np.isfinite(half):
                axis.errorbar(seconds[-1], heights[:, -1].mean(), half, color=_COLORS[family], linewidth=1.0)
        axis.set_xscale("log")
        axis.set_title(_title(task), fontsize=10)
        axis.set_xlabel("training time (CPU s)", fontsize=9)
        axis.set_ylabel("prec@0.25 on the test part", fontsize=9)
        axis.grid(alpha=0.25)
    for axis in axes[len(curves) :]:
        axis.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def draw_sweeps(
    figure: Any,
    kappas: Sequence[float],
    lengths: Sequence[int],
    by_kappa: Mapping[str, Any],
    by_length: Mapping[str, Any],
) -> None:
    """Above, precision against κ; below, against the batch length."""
    figure.set_size_inches(3.4 * len(by_kappa), 6.8)
    axes = figure.subplots(2, len(by_kappa), squeeze=False)
    marks = dict(zip(METHODS, "osDv^<PX*", strict=False))
    for column, task in enumerate(by_kappa):
        for axis, places, methods in (
            (axes[0, column], kappas, by_kappa[task]),
            (axes[1, column], lengths, by_length[task]),
        ):
            for name, runs in methods.items():
                mean, half = np.array(runs).T
                axis.errorbar(
                    places,
                    mean,
                    np.nan_to_num(half),
                    color=_COLORS[METHODS[name].family],
                    marker=marks[name],
                    markersize=4,
                    linewidth=1.1,
                    linestyle=_dashes(name),
                    label=name,
                )
            axis.grid(alpha=0.25)
        axes[0, column].set_title(_title(task), fontsize=10)
        axes[0, column].set_xlabel("κ", fontsize=9)
        axes[1, column].set_xlabel("batch length b", fontsize=9)
        axes[1, column].set_xscale("log")
    axes[0, 0].set_ylabel("prec@κ on the test part", fontsize=9)
    axes[1, 0].set_ylabel("prec@0.25 on the test part", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def draw_counterexample(
    figure: Any,
    X: Floats,
    y: Floats,
    losses: Mapping[str, PrecisionSurrogate],
    found: Mapping[str, Floats],
    right: Floats,
    C: float,
) -> None:
    """The regularised struct and avg surrogates over the plane of weights."""
    figure.set_size_inches(9.0, 4.4)
    side = np.linspace(-7, 7, 141)
    grid = np.array([(a, b) for b in side for a in side])
    scores = grid @ X.T
    ptr = np.arange(0, 4 * len(grid) + 1, 4)
    for axis, (name, loss) in zip(figure.subplots(1, 2, sharey=True), losses.items(), strict=True):
        value = loss.per_query(scores.ravel(), np.tile(y, len(grid)), ptr)[0] + (grid**2).sum(axis=1) / (2 * C)
        axis.contourf(side, side, value.reshape(141, 141), levels=18, cmap="Blues_r", alpha=0.9)
        wrong = (scores[:, 3] > scores[:, 0]).reshape(141, 141).astype(float)
        axis.contourf(side, side, wrong, levels=[0.5, 1.5], colors="none", hatches=["///"])
        axis.plot(*right, "o", color="#3a7d44", markersize=8, label="separates with a margin")
        axis.plot(*found[name], "X", color="#d1495b", markersize=9, label=f"minimiser of {name}")
        axis.set_title(f"{name} + ‖w‖²/{2 * C:g}; hatched: the negative is ranked first", fontsize=9)
        axis.set_xlabel("w₁")
        axis.legend(loc="lower left", fontsize=8)
        axis.set_aspect("equal")
    figure.axes[0].set_ylabel("w₂")
