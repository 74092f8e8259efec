"""What a paper module returns: exhibits (figures and tables) that hold their data and can draw and save themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._checkpoint import Checkpoint as Checkpoint
from .._checkpoint import plain as plain
from .._files import replacing
from .._tables import Table
from ..errors import InputError, MissingExtraError


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper, recomputed: its data, a table to read, notes, and how to draw it.

    `draw` gets an empty matplotlib `Figure` and fills it; None where a table says it all.
    """

    name: str
    title: str
    data: Mapping[str, Any]
    table: Table | None = None
    notes: tuple[str, ...] = ()
    draw: Callable[[Any], None] | None = field(default=None, repr=False)

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

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.json (data), NAME.md (table and notes) and NAME.png (figure) and return their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        written = []
        with replacing(target / f"{self.name}.json") as draft:
            content = {"name": self.name, "title": self.title, "notes": self.notes, "data": plain(self.data)}
            draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(target / f"{self.name}.json")
        parts = [f"# {self.title}", *([self.table.markdown()] if self.table else []), *self.notes]
        with replacing(target / f"{self.name}.md") as draft:
            draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        written.append(target / f"{self.name}.md")
        if self.draw is not None:
            with replacing(target / f"{self.name}.png") as draft:
                self.figure().savefig(draft, dpi=150, format="png")
            written.append(target / f"{self.name}.png")
        return written

    def __str__(self) -> str:
        return "\n\n".join([self.title, *([self.table.plain()] if self.table else []), *self.notes])
