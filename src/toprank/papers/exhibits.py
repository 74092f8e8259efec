"""What a paper's module returns: exhibits that hold their numbers, the paper's claims about them, and how to draw."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

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


def claim(text: str, holds: bool | None, why: str) -> Claim:
    """Return a claim with the verdict of a comparison; None where the numbers at hand cannot decide.

    >>> print(claim("A is above B.", 0.3 > 0.4, "0.300 against 0.400."))
    Does not replicate: A is above B. 0.300 against 0.400.
    """
    return Claim(text, VERDICTS[2] if holds is None else VERDICTS[0] if holds else VERDICTS[1], why)


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


def lines(
    axis: Any, x: Any, curves: Mapping[str, Any], colours: Mapping[str, str] | None = None, **labels: Any
) -> None:
    """Draw curves by name over one x; `labels` are the axis's own settings."""
    for name, values in curves.items():
        axis.plot(x, values, color=(colours or {}).get(name), label=name)
    axis.set(**labels)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)


def bars(axis: Any, names: Sequence[str], groups: Mapping[str, Sequence[float | None]], ylabel: str) -> None:
    """Draw one group of bars for each name."""
    width = 0.8 / len(groups)
    for i, (label, values) in enumerate(groups.items()):
        at = [place + width * (i - (len(groups) - 1) / 2) for place in range(len(names))]
        axis.bar(at, [value or 0.0 for value in values], width, label=label)
    axis.set_xticks(range(len(names)), list(names), rotation=45 if len(names) > 6 else 0)
    axis.set_ylabel(ylabel)
    axis.legend(fontsize=8)


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
