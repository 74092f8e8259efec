"""What a paper's module returns: exhibits that hold their numbers, the paper's claims about them, and how to draw."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeAlias, get_args

import numpy as np

from .._checkpoint import Checkpoint as Checkpoint
from .._checkpoint import plain as plain
from .._files import replacing
from .._tables import Table
from .._typing import Floats
from ..errors import InputError, MissingExtraError

Verdict = Literal["replicates", "does not replicate", "cannot be decided here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what these numbers say about it, and the numbers."""

    text: str
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        return f"{self.verdict.capitalize()}: {self.text} {self.why}"


Said: TypeAlias = Iterator[tuple[str, bool | None, str]]
"""The paper's sentences, each with a comparison of numbers (None where these cannot decide) and the numbers."""
P = ParamSpec("P")
JUDGES: list[Callable[..., Said]] = []
"""All judges of the papers that were imported: tests hold each of their sentences against numbers that refute it."""


def judge(say: Callable[P, Said]) -> Callable[P, tuple[Claim, ...]]:
    """Make a generator of sentences one of claims with verdicts.

    >>> @judge
    ... def compared(a, b):
    ...     yield "A is above B.", a > b, f"{a:.3f} against {b:.3f}."
    >>> print(*compared(0.3, 0.4))
    Does not replicate: A is above B. 0.300 against 0.400.
    """
    JUDGES.append(say)

    @wraps(say)
    def judged(*args: P.args, **kwargs: P.kwargs) -> tuple[Claim, ...]:
        found = say(*args, **kwargs)
        return tuple(Claim(text, VERDICTS[2 if holds is None else not holds], why) for text, holds, why in found)

    return judged


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper, recomputed: its data, a table to read, notes, the claims, and how to draw it.

    `draw` gets an empty matplotlib `Figure` and fills it; None where a table says it all.
    """

    name: str
    title: str
    data: Mapping[str, Any]
    table: Table | None = None
    notes: tuple[str, ...] = ()
    draw: Callable[[Any], None] | None = field(default=None, repr=False)
    claims: tuple[Claim, ...] = ()

    def figure(self) -> Any:
        """Return a matplotlib figure (the `plot` extra)."""
        if self.draw is None:
            raise InputError(f"{self.name} is a table, there is nothing to draw: print(exhibit.table.plain())")
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingExtraError("matplotlib", extra="plot", purpose="drawing a figure") from None
        canvas = Figure(figsize=(7.0, 4.5), layout="constrained")
        self.draw(canvas)
        return canvas

    def picture(self, kind: Literal["png", "svg"]) -> bytes:
        """Return the figure as a file; the same figure gives the same bytes."""
        import matplotlib as mpl

        held = io.BytesIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": self.name}):
            about = {"Date": None} if kind == "svg" else None
            self.figure().savefig(held, format=kind, dpi=150, metadata=about)
        return held.getvalue()

    def save(self, folder: str | Path, options: Mapping[str, Any] | None = None) -> list[Path]:
        """Write NAME.json (data), NAME.md (table, claims, notes), NAME.png and NAME.svg, and return their paths.

        `options` are those that the exhibit was made with, where they are not the usual ones.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        content = {"name": self.name, "title": self.title, "notes": self.notes, "data": plain(self.data)}
        content |= {"claims": [vars(found) for found in self.claims], "options": plain(options or {})}
        parts = [f"# {self.title}", *([self.table.markdown()] if self.table else [])]
        parts += [*(f"- {found}" for found in self.claims), *self.notes]
        files = {"json": json.dumps(content, indent=1, ensure_ascii=False) + "\n", "md": "\n\n".join(parts) + "\n"}
        bodies = {kind: text.encode("utf-8") for kind, text in files.items()}
        if self.draw is not None:
            bodies |= {"png": self.picture("png"), "svg": self.picture("svg")}
        for kind, body in bodies.items():
            with replacing(target / f"{self.name}.{kind}") as draft:
                draft.write_bytes(body)
        return [target / f"{self.name}.{kind}" for kind in bodies]

    def __str__(self) -> str:
        claims = ["\n".join(f"- {found}" for found in self.claims)] if self.claims else []
        return "\n\n".join([self.title, *([self.table.plain()] if self.table else []), *claims, *self.notes])


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
        for number, (name, curve) in enumerate(self.curves.items()):
            x, y, half = curve if isinstance(curve, tuple) else (self.x, curve, None)
            if self.bars:
                width = 0.8 / len(self.curves)
                places = np.arange(len(self.x)) + width * (number - (len(self.curves) - 1) / 2)
                axis.bar(places, [value or 0.0 for value in y], width, label=name)
                continue
            (line,) = axis.plot(x, y, self.styles.get(name, "-"), markersize=4, linewidth=1.2, label=name)
            if half is not None:
                axis.errorbar(x, y, np.nan_to_num(half), fmt="none", ecolor=line.get_color(), linewidth=1, capsize=2)
        if self.bars:
            axis.set_xticks(range(len(self.x)), list(self.x), rotation=45 if len(self.x) > 6 else 0)
        for which, place in self.at.items():
            (axis.axvline if which == "x" else axis.axhline)(place, color="grey", linewidth=1, linestyle=":")
        for which in self.log:
            axis.set(**{f"{which}scale": "log"})
        axis.set(xlabel=self.xlabel, ylabel=self.ylabel)
        if self.ylim is not None:  # limits that are set, even to None, stay as they were on a linear axis
            axis.set_ylim(*self.ylim)
        axis.set_title(self.title, fontsize=10)
        axis.grid(alpha=0.3)
        if legend:
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


def interval(values: Sequence[float] | Floats) -> tuple[float, float]:
    """Return the mean over seeds and half the width of its 95% interval (Student's t).

    >>> [round(v, 4) for v in interval([0.5, 0.6, 0.7])]
    [0.6, 0.2484]
    """
    from scipy.special import stdtrit

    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return float(array.mean()), float("nan")
    spread = float(stdtrit(len(array) - 1, 0.975) * array.std(ddof=1) / np.sqrt(len(array)))
    return float(array.mean()), spread
